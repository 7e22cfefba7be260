"""One lane of an array function: NumPy code, traced into scalar statements.

Semantics are NumPy functions on whole registers. A register is small, so what a compiler makes of whole-array code is
mostly temporaries; a loop over lanes is ten times faster, and compiles faster too. :func:`trace` runs the array
function once on stand-ins that record what is done to them, and gives the body of that loop. Every statement casts to
the types that NumPy itself says the operation has, so integers wrap and floats round as they do in NumPy.

A function can be traced when each element of its results depends on the same element of its arguments: ufuncs,
``np.where``, ``astype``, ``view`` to a type of the same size, ``x_like`` constructors. Constant arrays are tables
indexed by lane, so ``np.arange(lanes)`` is the lane's number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_BINARY = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "logical_and": "and", "logical_or": "or",
}  # fmt: skip
_CALLS = {"floor", "ceil", "rint", "copysign", "fmod", "sqrt", "trunc"}


class NotLanewise(TypeError):
    """The function does something that cannot be told lane by lane."""


class Trace:
    """The statements of one lane, and the constants that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, np.ndarray | np.generic] = {}

    def assign(self, expression: str, dtype: np.dtype) -> Lane:
        """A new variable."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return Lane(self, name, dtype)

    def text(self, value: Any, dtype: np.dtype) -> str:
        """The expression for an operand, of type ``dtype``."""
        if isinstance(value, Lane):
            return value.name if value.dtype == dtype else _cast(value.name, dtype)
        array = np.asarray(value)
        if array.size == 1:
            return self._constant(array.reshape(())[()], dtype)
        return _cast(f"{self._name(array)}[i]", dtype)

    def _constant(self, value: Any, dtype: np.dtype) -> str:
        if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise NotLanewise(f"{value} is no {dtype}")
        if dtype.kind in "iub":
            return f"{_named(dtype)}({int(value)})"
        return self._name(np.asarray(value, dtype)[()])

    def _name(self, value: np.ndarray | np.generic) -> str:
        name = f"K{len(self.constants)}"
        self.constants[name] = value
        return name


class Lane(np.lib.mixins.NDArrayOperatorsMixin):
    """A stand-in for an array, that is one lane of it."""

    ndim, size, shape = 1, 1, (1,)

    def __init__(self, trace: Trace, name: str, dtype: np.dtype) -> None:
        self.trace = trace
        self.name = name
        self.dtype = dtype
        self.itemsize = dtype.itemsize

    def __bool__(self) -> bool:
        raise NotLanewise("the function branches on data")

    def __array__(self, *args: Any, **keywords: Any) -> np.ndarray:
        raise NotLanewise("the function makes an array of its own of the data")

    def __getitem__(self, index: Any) -> Lane:
        raise NotLanewise("the function picks single lanes")

    def copy(self) -> Lane:
        """See ``ndarray.copy``."""
        return self

    def astype(self, dtype: Any) -> Lane:
        """See ``ndarray.astype``."""
        wanted = np.dtype(dtype)
        return self if wanted == self.dtype else self.trace.assign(_cast(self.name, wanted), wanted)

    def view(self, dtype: Any) -> Lane:
        """See ``ndarray.view``; the types have one size."""
        wanted = np.dtype(dtype)
        if wanted.itemsize != self.itemsize:
            raise NotLanewise("the function views lanes as lanes of another size")
        return self.trace.assign(f"bitcast({self.name}, {_named(wanted)}(0))", wanted)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Lane:
        if method != "__call__" or keywords:
            raise NotLanewise(f"np.{ufunc.__name__}.{method} is not done lane by lane")
        *taken, made = ufunc.resolve_dtypes((*(_dtype(x) for x in inputs), None))
        operands = [self.trace.text(x, t) for x, t in zip(inputs, taken, strict=True)]
        return self.trace.assign(_cast(_expression(ufunc.__name__, operands, taken[0]), made), made)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        known = _FUNCTIONS.get(function)
        if known is None:
            raise NotLanewise(f"np.{function.__name__} is not done lane by lane")
        return known(self.trace, *args, **keywords)


def _dtype(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return type(value) if not isinstance(value, bool) else np.dtype(bool)
    return value.dtype


def _named(dtype: np.dtype) -> str:
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def _cast(expression: str, dtype: np.dtype) -> str:
    return f"{_named(dtype)}({expression})"


def _expression(name: str, operands: list[str], dtype: np.dtype) -> str:
    if name in _BINARY:
        return f"{operands[0]} {_BINARY[name]} {operands[1]}"
    if name in _CALLS:
        return f"np.{name}({', '.join(operands)})"
    one = operands[0]
    if name == "negative":
        return f"-{one}"
    if name in ("absolute", "fabs"):
        return f"abs({one})"
    if name in ("invert", "logical_not"):
        return f"not {one}" if dtype.kind == "b" else f"~{one}"
    if name in ("maximum", "minimum"):
        better = ">=" if name == "maximum" else "<="
        return f"({one} if ({one} {better} {operands[1]} or {one} != {one}) else {operands[1]})"  # a NaN wins
    raise NotLanewise(f"np.{name} is not known lane by lane")


def _where(trace: Trace, condition: Any, yes: Any, no: Any) -> Lane:
    made = np.where(True, *(np.ones(1, _dtype(x)) if isinstance(x, Lane) else x for x in (yes, no))).dtype
    chosen = f"({trace.text(yes, made)} if {trace.text(condition, np.dtype(bool))} else {trace.text(no, made)})"
    return trace.assign(chosen, made)


def _filled(trace: Trace, value: Any, dtype: np.dtype) -> Lane:
    return trace.assign(trace.text(value, dtype), dtype)


_FUNCTIONS: dict[Any, Callable[..., Lane]] = {
    np.where: _where,
    np.zeros_like: lambda trace, like: _filled(trace, 0, like.dtype),
    np.ones_like: lambda trace, like: _filled(trace, 1, like.dtype),
    np.full_like: lambda trace, like, value: _filled(trace, value, like.dtype),
}


def trace(function: Callable[..., Any], inputs: Sequence[tuple[str, np.dtype] | Any]) -> tuple[Trace, list[Lane]]:
    """Trace ``function``; an input is (variable, type) of a lane, or a constant.

    Returns the statements and the results.

    Raises:
        NotLanewise: it is no function of single lanes.
    """
    recorded = Trace()
    arguments = [Lane(recorded, *x) if isinstance(x, tuple) else x for x in inputs]
    results = function(*arguments)
    outputs = results if isinstance(results, tuple) else (results,)
    return recorded, [x if isinstance(x, Lane) else _filled(recorded, x, np.asarray(x).dtype) for x in outputs]
