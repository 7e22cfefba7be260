"""Compiled twins of loops over a trace, for traces too long for plain Python.

They are made by Numba once and kept on disk (:mod:`ascsim.compiled`), one for each loop and the types of its arguments.
A loop calls functions of its own module alone.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ascsim.cache import generation
from ascsim.compiled import find, is_kept, make, tools

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""The loops make no arrays, so they need no reference counting: with it, that would be most of the work."""


def compiled(function: Callable, notice: Callable[[str], None] | None = None) -> Callable:
    """The compiled twin of a loop, which takes numbers, contiguous arrays, and named tuples.

    ``notice`` is called with one sentence when it has to be made first.
    """

    def call(*arguments: Any) -> int:
        return bound(function, arguments, notice)()

    return call


def bound(function: Callable, arguments: Sequence[Any], notice: Callable[[str], None] | None = None) -> Bound:
    """The compiled twin of a loop with its arguments: numbers, and arrays of which only the contents may change."""
    return Bound(_entry(function, _signature(arguments), notice), arguments)


class Native(NamedTuple):
    """Machine code with its arguments: ``entry(place)``, and where its result is then, if it has one."""

    entry: int
    place: int
    result: int = 0


@runtime_checkable
class MachineCode(Protocol):
    """What may be done by machine code."""

    @property
    def native(self) -> Native | None:
        """The code; None as long as there is none."""


class Bound:
    """A compiled loop and its arguments, which live as long as this."""

    def __init__(self, entry: Callable[[int], None], arguments: Sequence[Any]) -> None:
        self.entry, self.arguments = entry, arguments
        self.cells = np.array([*(cell for argument in arguments for cell in _cells(argument)), 0], np.int64)
        self.place = self.cells.ctypes.data

    def __call__(self) -> int:
        """Run it; its result."""
        self.entry(self.place)
        return int(self.cells[-1])

    @property
    def native(self) -> Native:
        """See :class:`MachineCode`."""
        address = ctypes.cast(self.entry, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
        return Native(address, self.place, self.place + self.cells.nbytes - self.cells.itemsize)


class Tried:
    """Machine code that may decline (its result is not 0), and what is done instead, or as long as there is none.

    ``make`` is asked for the code once ``is_worth_it`` says so; it may have none. ``done`` is what a call yields that the
    code has done.
    """

    def __init__(
        self, otherwise: Callable[[], Any], is_worth_it: Callable[[], bool], make: Callable[[], Bound | None],
        done: Any = None,
    ) -> None:  # fmt: skip
        self.otherwise, self.is_worth_it, self.make, self.done = otherwise, is_worth_it, make, done
        self.code: Bound | None = None
        self.is_made = False

    def __call__(self) -> Any:
        """Do it."""
        code = self.code
        if code is not None:
            return self.otherwise() if code() else self.done
        if not self.is_made and self.is_worth_it():
            self.is_made, self.code = True, self.make()
        return self.otherwise()

    @property
    def native(self) -> Native | None:
        """See :class:`MachineCode`. A result that is not 0 says that it declines."""
        return None if self.code is None else self.code.native


def is_made(function: Callable) -> bool:
    """Whether a compiled twin of a loop is on disk, so that it can be had in a moment."""
    return is_kept(_directory(function.__module__), f"{function.__name__}_")


Signature = tuple[Any, ...]
"""Of each argument: None for a number, (dtype, dimensions) of an array, (class, those of its fields) of a named tuple."""


def _signature(arguments: Sequence[Any]) -> Signature:
    return tuple(
        (type(one), _signature(one))
        if isinstance(one, tuple)
        else (one.dtype, one.ndim)
        if isinstance(one, np.ndarray)
        else None
        for one in arguments
    )


def _cells(argument: Any) -> Iterator[int]:
    """What the compiled twin is given of an argument: a number, or an array's address and shape."""
    if isinstance(argument, tuple):
        for one in argument:
            yield from _cells(one)
    elif isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        yield argument.ctypes.data
        yield from argument.shape
    else:
        yield int(argument)


@cache
def _directory(module: str) -> Path:
    """One directory for each state of a module of loops, and of what compiles them."""
    digest = hashlib.sha256(tools().encode())
    for path in (__file__, str(sys.modules[module].__file__)):
        digest.update(Path(path).read_bytes())
    return generation(f"loops-{module.rpartition('.')[2]}", digest.hexdigest()[:16])


@cache
def _entry(function: FunctionType, signature: Signature, notice: Callable[[str], None] | None) -> Callable:
    """The C function for arguments of these types; it takes the address of their cells and of one for the result."""
    types = hashlib.sha256(repr(signature).encode()).hexdigest()[:8]
    place = _directory(function.__module__) / f"{function.__name__}_{types}"
    address = find(place)
    if address is None:
        if notice is not None:
            notice("compiling the loops over long traces (once, a few seconds)")
        address = make(place, _made(function, signature))
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)


# What they are given


def as_sequence(table: np.ndarray, is_compiled: bool) -> Any:
    """A table as loops want it: plain Python indexes lists several times faster than arrays."""
    return plain_table(table) if is_compiled else listed(table)


def listed(table: np.ndarray) -> list:
    """An array as a list of numbers, or of mappings by field."""
    names = table.dtype.names
    return [dict(zip(names, record, strict=True)) for record in table.tolist()] if names else table.tolist()


def plain_table(table: np.ndarray) -> np.ndarray:
    """A table as compiled code wants it: read-only, aligned, sites signed (so that sums of fields stay integers)."""
    if table.ctypes.data % 8:
        table = table.copy()
    layout = [(name, "<i8" if code == "<u8" else code) for name, code, *_ in table.dtype.descr]
    return readonly(table.view(np.dtype(layout)) if table.dtype.names else table)


def readonly(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written through: so compiled loops have one type of argument, whatever they are given."""
    view = array.view()
    view.flags.writeable = False
    return view


# Making them


def _made(function: FunctionType, signature: Signature) -> Any:
    """The C function, by Numba."""
    import numba
    from numba import types

    names: dict[str, Any] = {"twin": _twin(function), "carray": numba.carray, "int64": np.int64, "pointer": pointer()}
    at = 0

    def argument(one: Any) -> str:
        nonlocal at
        if one is None:
            at += 1
            return f"cells[{at - 1}]"
        kind, more = one
        if isinstance(kind, type):
            names[kind.__name__] = kind
            return f"{kind.__name__}({', '.join([argument(part) for part in more])})"
        first, at = at, at + 1 + more
        names[f"dtype_{first}"] = kind
        shape = ", ".join(f"cells[{number}]" for number in range(first + 1, at))
        return f"carray(pointer(cells[{first}]), ({shape},), dtype_{first})"

    call = f"twin({', '.join([argument(one) for one in signature])})"
    result = f"cells[{at}] = {call}" if function.__annotations__["return"] == "int" else call
    text = f"def entry(address):\n    cells = carray(address, ({at + 1},), int64)\n    {result}\n"
    exec(compile(text, f"<{function.__name__}>", "exec"), names)
    return numba.cfunc(types.void(types.voidptr), error_model="numpy")(names["entry"])


@cache
def pointer() -> Any:
    """``pointer(number)`` for compiled code: an address as a pointer."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def cast(context: Any, address: Any) -> Any:
        return types.voidptr(types.int64), lambda _, builder, __, given: builder.inttoptr(given[0], cgutils.voidptr_t)

    return cast


def _twin(function: FunctionType) -> Any:
    import numba

    return numba.njit(_with_compiled_helpers(function), **_OPTIONS)


def _with_compiled_helpers(function: FunctionType) -> FunctionType:
    """A copy of the function whose calls of functions of its module go to compiled twins."""
    known = function.__globals__
    helpers = {
        name: _helper(known.get(f"{name}_compiled", known[name]))
        for name in function.__code__.co_names
        if isinstance(known.get(name), FunctionType) and known[name].__module__ == function.__module__
    }
    copy = FunctionType(function.__code__, {**known, **helpers}, function.__name__)
    copy.__module__ = function.__module__
    return copy


@cache
def _helper(function: FunctionType) -> Any:
    return _twin(function)
