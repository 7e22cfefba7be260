"""Array functions as loops: NumPy code, recorded and written out again in scalar statements.

Semantics are NumPy functions on whole registers. A register is small, so what a compiler makes of whole-array code is
mostly temporaries, and takes seconds to make; loops over lanes run ten times faster and compile in a tenth of the time.
A :class:`Program` runs the array function once on stand-ins that note what is done to them. Every statement casts to
the types that NumPy itself says the operation has, so integers wrap and floats round as they do in NumPy.

What can be recorded: ufuncs, ``np.where``, ``astype``, ``view`` to a type of the same size, ``x_like`` constructors,
slices, ``np.argmax``, ``np.cumsum``, ``np.bincount``, ``np.take_along_axis`` of a constant table, and elements, read or
set, one or many. Sizes are known and data are not: a function that branches on data cannot be recorded. Constant arrays
are tables, so ``np.arange(lanes)`` is the lane's number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_BINARY = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "floor_divide": "//", "greater": ">", "greater_equal": ">=", "logical_and": "and", "logical_or": "or",
}  # fmt: skip
_CALLS = {"floor", "ceil", "rint", "copysign", "fmod", "sqrt", "trunc", "signbit"}
_REFERENCE = re.compile(r"<(\w+)>")


class NotRecorded(TypeError):
    """The function does something that cannot be written as loops."""


@dataclass(eq=False)
class Step:
    """Lines that work out a value; ``<name>`` in them is another step's value: its lane ``i``, where it has lanes.

    With ``lanes`` they stand in a loop over ``i``, else outside all loops. ``whole`` are the steps of which they read
    or set other lanes than ``i``: these must be complete, and lie in an array.
    """

    name: str
    lines: list[str]
    dtype: np.dtype
    lanes: int = 0
    whole: tuple[Step, ...] = ()
    array: str = ""
    """Of an input: where its lanes lie, lane ``i`` at ``step * i + first``."""
    first: int = 0
    step: int = 1

    # Where it stands, see Program._schedule
    level: int = 0
    """Its loop; of what stands outside loops: the loop before which it stands."""
    ready: int = 0
    """The first loop before which all of it is there."""
    last_read: int = -1
    kept: bool = False
    """Its lanes go to an array."""
    changed: bool = False
    """Lanes were overwritten: from then on the array alone has them."""

    def at(self, index: str) -> str:
        """The lane at an index, from where it lies."""
        return f"{self.array}[{affine(self.step, self.first, index)}]" if self.array else f"b_{self.name}[{index}]"


def affine(step: int, first: int, index: str = "i") -> str:
    """``step * index + first``, as short as can be."""
    if index.isdecimal():
        return str(step * int(index) + first)
    moving = {0: "", 1: index}.get(step, f"{step} * {index}")
    return " + ".join([*([moving] if moving else []), *([str(first)] if first or not moving else [])])


class Program:
    """What a function did, in order, and the constants that it names."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.constants: dict[str, np.ndarray | np.generic] = {}

    def input(self, array: str, dtype: np.dtype, lanes: int, first: int = 0, step: int = 1) -> Lanes:
        """Lanes that lie in an array; a scalar is the one that there is."""
        if lanes == 1:
            return self._add(f"{array}[{first}]", dtype, 1)
        made = Step(f"x{len(self.steps)}", [], dtype, lanes, array=array, first=first, step=step)
        self.steps.append(made)
        return Lanes(self, made)

    def record(self, function: Callable[..., Any], arguments: Sequence[Any]) -> list[Lanes]:
        """Record a call; its results, of which there may be a tuple.

        Raises:
            NotRecorded: it does what has no statement here.
        """
        results = function(*arguments)
        outputs = results if isinstance(results, tuple) else (results,)
        return [x if isinstance(x, Lanes) else self.fill(x, np.asarray(x).dtype, np.asarray(x).size) for x in outputs]

    def put(self, lines: Sequence[str], lanes: int = 1) -> None:
        """Lines that take results away: at each lane, or once after all loops."""
        self.steps.append(Step(f"p{len(self.steps)}", list(lines), np.dtype(bool), lanes if lanes > 1 else 0))

    def text(self, value: Any, dtype: np.dtype) -> str:
        """An operand as a number of type ``dtype``."""
        if isinstance(value, Lanes):
            reference = f"<{value.made.name}>"
            return reference if value.dtype == dtype else _cast(reference, dtype)
        array = np.asarray(value)
        if array.size > 1:
            return _cast(f"{self._name(array)}[i]", dtype)
        number = array.reshape(())[()]
        if dtype.kind not in "iub":
            return self._name(np.asarray(number, dtype)[()])
        if dtype.kind != "b" and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            raise NotRecorded(f"{number} is no {dtype}")
        return f"{_named(dtype)}({int(number)})"

    def _name(self, value: np.ndarray | np.generic) -> str:
        name = f"K{len(self.constants)}"
        self.constants[name] = value
        return name

    def _add(self, text: str, dtype: np.dtype, lanes: int, *whole: Step) -> Lanes:
        name = f"t{len(self.steps)}"
        made = Step(name, [f"{name} = {text}"], dtype, lanes if lanes > 1 else 0, whole)
        self.steps.append(made)
        return Lanes(self, made)

    # What functions do

    def fill(self, value: Any, dtype: np.dtype, lanes: int) -> Lanes:
        """The same number, or a constant array, in so many lanes."""
        return self._add(self.text(value, dtype), dtype, lanes)

    def ufunc(self, ufunc: np.ufunc, inputs: Sequence[Any]) -> Lanes:
        """A ufunc of lanes and constants."""
        *taken, made = ufunc.resolve_dtypes((*(_dtype(x) for x in inputs), None))
        operands = [self.text(x, t) for x, t in zip(inputs, taken, strict=True)]
        return self._add(_cast(_expression(ufunc.__name__, operands, taken[0]), made), made, _common(inputs))

    def where(self, condition: Any, yes: Any, no: Any) -> Lanes:
        """``np.where``."""
        made = np.where(True, *(np.ones(1, x.dtype) if isinstance(x, Lanes) else x for x in (yes, no))).dtype
        truth = self.text(condition, np.dtype(bool))
        chosen = f"({self.text(yes, made)} if {truth} else {self.text(no, made)})"
        return self._add(chosen, made, _common((condition, yes, no)))

    def argmax(self, values: Lanes) -> Lanes:
        """``np.argmax``: the first of the largest."""
        source, best, top = values.made, f"t{len(self.steps)}", f"top{len(self.steps)}"
        lines = [
            f"{best} = np.int64(0)", f"{top} = {source.at('0')}", f"for j in range(1, {source.lanes}):",
            f"    if {source.at('j')} > {top}:", f"        {best}, {top} = np.int64(j), {source.at('j')}",
        ]  # fmt: skip
        self.steps.append(Step(best, lines, np.dtype(np.int64), 0, (source,)))
        return Lanes(self, self.steps[-1])

    def element(self, values: Lanes, index: Any) -> Lanes:
        """One lane, at a constant place or one that was worked out; or one for each of many places."""
        if not values.made.lanes:
            return values
        if isinstance(index, Lanes):
            where, lanes = f"<{index.made.name}>", index.size
        elif np.ndim(index):
            where, lanes = f"{self._name(index)}[i]", index.size
        else:
            where, lanes = str(int(index) % values.size), 1
        return self._add(values.made.at(where), values.dtype, lanes, values.made)

    def take(self, table: np.ndarray, index: Lanes, axis: int) -> Lanes:
        """``np.take_along_axis`` from a constant table."""
        return self._add(f"{self._name(table)}[<{index.made.name}>]", table.dtype, index.size)

    def slice(self, values: Lanes, index: slice) -> Lanes:
        """Lanes at even distances."""
        chosen = range(*index.indices(values.size))
        if len(chosen) < 2:
            if not chosen:
                raise NotRecorded("the function takes no lanes")
            return self.element(values, chosen[0])
        return self._add(values.made.at(affine(chosen.step, chosen.start)), values.dtype, len(chosen), values.made)

    def set_elements(self, values: Lanes, index: Any, value: Any) -> None:
        """Overwrite one lane, lanes at even distances, or those at places that were worked out, the last one wins."""
        if isinstance(index, Lanes) and index.dtype.kind in "iu" and index.made.lanes:
            place, times = self._lane_j(index), index.size
        elif isinstance(index, slice):
            chosen = range(*index.indices(values.size))
            times = len(chosen) if len(chosen) > 1 else 0
            place = affine(chosen.step, chosen.start, "j" if times else "0")
        elif isinstance(index, int) and _size(value) == 1:
            place, times = str(index % values.size), 0
        else:
            raise NotRecorded("the function sets lanes in a way that is not known")
        self._overwrite(values, times, f"{values.made.at(place)} = {self._lane_j(value, values.dtype)}", index, value)

    def cumsum(self, values: Lanes) -> Lanes:
        """``np.cumsum`` of 64-bit integers, whose sums have their type."""
        if values.dtype.kind not in "iu" or values.itemsize != 8:
            raise NotRecorded("running sums are of 64-bit integers")
        sums = values.copy()
        self._overwrite(sums, sums.size - 1, f"{sums.made.at('(j + 1)')} += {sums.made.at('j')}")
        return sums

    def bincount(self, values: Lanes, weights: None, bins: int) -> Lanes:
        """``np.bincount`` of numbers below ``bins``."""
        counts = self.fill(0, np.dtype(np.int64), bins)
        self._overwrite(counts, values.size, f"{counts.made.at(self._lane_j(values))} += 1", values)
        return counts

    def _lane_j(self, value: Any, dtype: np.dtype | None = None) -> str:
        """Lane ``j`` of what has lanes, or the one number there is; as a ``dtype``."""
        if not isinstance(value, Lanes):
            array = np.asarray(value)
            return self.text(value, dtype or array.dtype) if array.size == 1 else f"{self._name(array)}[j]"
        lane = value.made.at("j") if value.made.lanes else f"<{value.made.name}>"
        return lane if dtype in (None, value.dtype) else _cast(lane, dtype)

    def _overwrite(self, values: Lanes, times: int, statement: str, *read: Any) -> None:
        """Change lanes of an array that the function made: a statement for ``j`` from 0 on, so many times; 0: once."""
        if not values.made.lanes or values.made.array:
            raise NotRecorded("the function writes into its arguments")
        lines = [f"for j in range({times}):", f"    {statement}"] if times else [statement]
        whole = [v.made for v in read if isinstance(v, Lanes) and v.made.lanes]
        self.steps.append(Step(f"s{len(self.steps)}", lines, values.dtype, 0, (values.made, *whole)))
        values.made.changed = True

    # Writing it out

    def lines(self) -> list[str]:
        """The program in statements. Constants and :meth:`buffers` are for the caller to set before."""
        loops = self._schedule()
        written: list[str] = []
        for number in range(len(loops) + 1):
            for step in self.steps:
                if not step.lanes and not step.name.startswith("p") and step.level == number:
                    written += self._filled(step, number)
            if number < len(loops):
                body = [line for step in loops[number][1] for line in self._filled(step, number)]
                read = {n for line in body for n in re.findall(r"\bx\d+\b", line)}
                taken = [f"{s.name} = {s.at('i')}" for s in self.steps if s.name in read]
                written.append(f"for i in range({loops[number][0]}):")
                written += [f"    {line}" for line in (*taken, *body)]
        return written + [line for s in self.steps if s.name[0] == "p" and not s.lanes for line in self._filled(s, -1)]

    def buffers(self) -> list[tuple[str, np.dtype, int]]:
        """(name, type, lanes) of the arrays that :meth:`lines` needs; call it afterwards."""
        return [(f"b_{s.name}", s.dtype, s.lanes) for s in self.steps if s.kept and not s.array]

    def _schedule(self) -> list[tuple[int, list[Step]]]:
        """Put every step as early as what it reads allows; steps of one length share a loop."""
        loops: list[tuple[int, list[Step]]] = []
        by_name = {step.name: step for step in self.steps}
        for step in self.steps:
            if step.array:
                continue
            read = [by_name[n] for line in step.lines for n in _REFERENCE.findall(line)]
            sets = step.name[0] == "s"
            after = [max(s.ready, s.last_read + 1) if sets else s.ready for s in step.whole]
            step.level = max([0, *after, *(s.ready if s.changed else s.level for s in read)])
            if step.lanes:
                fitting = (n for n in range(step.level, len(loops)) if loops[n][0] == step.lanes)
                step.level = next(fitting, len(loops))
                if step.level == len(loops):
                    loops.append((step.lanes, []))
                loops[step.level][1].append(step)
            for source in (*read, *step.whole):
                source.last_read = max(source.last_read, step.level if step.lanes else step.level - 1)
                elsewhere = source in step.whole or source.level != step.level or source.changed
                source.kept |= bool(source.lanes) and elsewhere
            step.ready = step.level + 1 if step.lanes else step.level
            if sets:
                step.whole[0].ready = step.level
        return loops

    def _filled(self, step: Step, number: int) -> list[str]:
        """The step's lines with what they read filled in."""
        by_name = {s.name: s for s in self.steps}

        def value(found: re.Match[str]) -> str:
            source = by_name[found[1]]
            is_here = not source.lanes or source.array or (source.level == number and not source.changed)
            return source.name if is_here else source.at("i")

        lines = [_REFERENCE.sub(value, line) for line in step.lines]
        if step.kept:
            lines.append(f"{step.at('i')} = {step.name}")
        return lines


class Lanes(np.lib.mixins.NDArrayOperatorsMixin):
    """A stand-in for an array that a program works out."""

    ndim = 1

    def __init__(self, program: Program, made: Step) -> None:
        self.program = program
        self.made = made
        self.dtype = made.dtype
        self.itemsize = made.dtype.itemsize
        self.size = max(made.lanes, 1)
        self.shape = (self.size,)

    def __bool__(self) -> bool:
        raise NotRecorded("the function branches on data")

    def __array__(self, *args: Any, **keywords: Any) -> np.ndarray:
        raise NotRecorded("the function makes an array of its own of the data")

    def __getitem__(self, index: Any) -> Lanes:
        if isinstance(index, slice):
            return self.program.slice(self, index)
        if isinstance(index, int | np.integer) or (isinstance(index, Lanes | np.ndarray) and index.dtype.kind in "iu"):
            return self.program.element(self, index)
        raise NotRecorded("the function picks lanes in a way that is not known")

    def __setitem__(self, index: Any, value: Any) -> None:
        self.program.set_elements(self, index, value)

    def copy(self) -> Lanes:
        """See ``ndarray.copy``."""
        return self.program._add(f"<{self.made.name}>", self.dtype, self.size)

    def astype(self, dtype: Any) -> Lanes:
        """See ``ndarray.astype``."""
        wanted = np.dtype(dtype)
        return self.program._add(_cast(f"<{self.made.name}>", wanted), wanted, self.size)

    def view(self, dtype: Any) -> Lanes:
        """See ``ndarray.view``; the types have one size."""
        wanted = np.dtype(dtype)
        if wanted.itemsize != self.itemsize:
            raise NotRecorded("the function views lanes as lanes of another size")
        return self.program._add(f"bitcast(<{self.made.name}>, {_named(wanted)}(0))", wanted, self.size)

    def from_half(self) -> Lanes:
        """Bits of half as float32, by the processor; see :func:`.compile.halves`."""
        return self.program._add(f"widen(<{self.made.name}>)", np.dtype(np.float32), self.size)

    def to_half(self) -> Lanes:
        """float32 as bits of half, by the processor; see :func:`.compile.halves`."""
        bits = self.program._add(f"narrow(<{self.made.name}>)", np.dtype(np.uint16), self.size)
        # LLVM leaves out both conversions of a half that becomes one again, and with them what makes a NaN quiet.
        return self.program.where((bits & np.uint16(0x7FFF)) > np.uint16(0x7C00), bits | np.uint16(0x0200), bits)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Lanes:
        if method != "__call__" or keywords:
            raise NotRecorded(f"np.{ufunc.__name__}.{method} is not done lane by lane")
        return self.program.ufunc(ufunc, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        known = _FUNCTIONS.get(function)
        if known is None or keywords:
            raise NotRecorded(f"np.{function.__name__} is not known here")
        return known(self.program, *args)


_FUNCTIONS: dict[Any, Callable[..., Lanes]] = {
    np.where: Program.where,
    np.argmax: Program.argmax,
    np.bincount: Program.bincount,
    np.cumsum: Program.cumsum,
    np.take_along_axis: Program.take,
    np.zeros_like: lambda program, like: program.fill(0, like.dtype, like.size),
    np.ones_like: lambda program, like: program.fill(1, like.dtype, like.size),
    np.full_like: lambda program, like, value: program.fill(value, like.dtype, like.size),
}


def _size(value: Any) -> int:
    return value.size if isinstance(value, Lanes) else np.asarray(value).size


def _common(values: Sequence[Any]) -> int:
    sizes = {_size(v) for v in values} - {1}
    if len(sizes) > 1:
        raise NotRecorded(f"the function puts arrays of {sorted(sizes)} lanes together")
    return sizes.pop() if sizes else 1


def _dtype(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return np.dtype(bool) if isinstance(value, bool) else type(value)
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
    raise NotRecorded(f"np.{name} is not known here")
