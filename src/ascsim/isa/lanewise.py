"""Lane-wise work of tile instructions as machine code, for calls that come again and again.

What a tile instruction does to its elements is a NumPy function. For narrow floats, or on small tiles, NumPy takes many
times what the arithmetic takes. The same function is recorded (isa/loops.py), as a loop over rows and columns, and compiled;
the code is kept on disk, as that of register instructions is. To load it costs a few thousandths of a second and to make
it about a second, so either is done when as much time has gone into the work in NumPy.
"""

from __future__ import annotations

import ctypes
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ascsim.cache import generation
from ascsim.compiled import converts_halves, find, make
from ascsim.machine.dtypes import DType, f16
from ascsim.machine.native import Native

if TYPE_CHECKING:
    from ascsim.isa.definition import Lanes

WORTH_LOADING, WORTH_MAKING = 0.005, 1.0
"""Seconds in NumPy after which machine code is loaded, and made."""
_COLUMNS = 1 << 20
"""How many lanes the recorded function has: stands for as many as there are."""


@dataclass(eq=False)
class Code:
    """Work of one sort on elements of one type, and its machine code once that is worth it.

    ``function`` takes lanes as semantics see them (narrow floats widened) and gives lanes. ``as_bits``: it takes unsigned
    bits. ``numbers`` are the inputs that are one number for all lanes.
    """

    function: Callable[..., Any]
    kind: DType
    as_bits: bool = False
    numbers: tuple[int, ...] = ()
    times_dearer: int = 1
    """How many times as long it takes to make as what is done lane by lane."""
    spent: float = 0.0
    entry: Callable[[int], None] | None = None
    address: int = 0
    _is_looked_for: bool = False
    _is_given_up: bool = False

    @property
    def raw(self) -> np.dtype:
        """The type of the elements in memory, as machine code has it."""
        return self.kind.bits_dtype if self.as_bits or self.kind is f16 else self.kind.numpy

    def seek(self) -> None:
        """Load the code or make it, if so much time has been spent."""
        is_worth_making = self.spent >= WORTH_MAKING * self.times_dearer
        if self._is_given_up or (self._is_looked_for and not is_worth_making):
            return
        self._is_looked_for = True
        if self.kind is f16 and not converts_halves():
            self._is_given_up = True
            return
        from ascsim.isa.loops import NotRecorded

        try:
            text = _HEAD + self.text()
        except (NotRecorded, TypeError):
            self._is_given_up = True
            return
        self.address = _address(text, is_worth_making)
        if self.address:
            self.entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)

    def text(self) -> str:
        """``entry``, a C function of the address of its cells, as source.

        Raises:
            NotRecorded: the function cannot be written as loops.
        """
        raise NotImplementedError

    def on(
        self, slow: Callable[[], None], outs: Sequence[Lanes], sources: Sequence[Lanes | np.ndarray]
    ) -> Callable[[], None]:  # fmt: skip
        """``slow`` or the code, whichever is there: of results and inputs that stay where they are.

        Where code could see what it has just written, it is ``slow``.
        """
        raise NotImplementedError

    def _recorded(self, *lanes: Any) -> Any:
        """The function of raw lanes."""
        if self.kind is not f16 or self.as_bits:
            return self.function(*lanes)
        results = self.function(*[lane.from_half() for lane in lanes])
        return tuple(r.to_half() for r in results) if isinstance(results, tuple) else results.to_half()


@dataclass(eq=False)
class LaneByLane(Code):
    """A function of some lanes that gives one lane: of any number of rows and columns."""

    inputs: int = 1

    def text(self) -> str:
        """See :class:`Code`.

        Cells: rows, columns, and of the result and each input the address and the bytes from row to row.
        """
        from ascsim.isa.compile import constant
        from ascsim.isa.loops import NotRecorded, Program

        program, raw = Program(), self.raw
        taken = [program.input(f"a{n}", raw, 1 if n in self.numbers else _COLUMNS) for n in range(self.inputs)]
        (result,) = program.record(self._recorded, taken)
        program.put([f"out[i] = {program.text(result, raw)}"], _COLUMNS)
        lines = program.lines()
        if program.buffers() or any(value.ndim for value in program.constants.values()):
            raise NotRecorded("the function is none of single lanes")
        names = ["out", *(f"a{n}" for n in range(self.inputs))]
        arrays = [
            f"{name} = carray(pointer(cells[{2 + 2 * n}] + row * cells[{3 + 2 * n}]), (cells[1],), np.{raw.name})"
            for n, name in enumerate(names)
        ]
        constants = [constant(name, value) for name, value in program.constants.items()]
        body = [*arrays, *(line.replace(f"range({_COLUMNS})", "range(cells[1])") for line in lines)]
        return _entry(constants, 2 + 2 * len(names), ["for row in range(cells[0]):", *(f"    {x}" for x in body)])

    def on(
        self, slow: Callable[[], None], outs: Sequence[Lanes], sources: Sequence[Lanes | np.ndarray]
    ) -> Callable[[], None]:  # fmt: skip
        """See :class:`Code`."""
        (out,) = outs
        views = [out.view, *(s if isinstance(s, np.ndarray) else s.view for s in sources)]
        if out.overlaps or any(not _is_matrix(view) for view in views):
            return slow
        for view in views[1:]:
            same = view.ctypes.data == out.view.ctypes.data and view.strides == out.view.strides
            if not same and np.may_share_memory(view, out.view):
                return slow
        rows, columns = out.view.shape
        pitches = [view.strides[0] if view.ndim == 2 else 0 for view in views]
        if all(pitch in (0, columns * out.view.itemsize) for pitch in pitches):
            rows, columns = 1, rows * columns
        cells = [rows, columns]
        for view, pitch in zip(views, pitches, strict=True):
            cells += [view.ctypes.data, pitch]
        return Work(self, slow, np.array(cells, np.int64), views)


@dataclass(eq=False)
class Whole(Code):
    """A function of all the lanes of one tile without gaps; each result goes to a place of what is written.

    ``lanes`` is how many there are, ``places`` are (number of what is written, first element, elements from one to the
    next) for each result.
    """

    times_dearer: int = 8
    lanes: int = 0
    places: tuple[tuple[int, int, int], ...] = ()

    def text(self) -> str:
        """See :class:`Code`. Cells: the addresses of the tile and of all that is written."""
        from ascsim.isa.compile import constant
        from ascsim.isa.loops import Program, affine

        program, raw = Program(), self.raw
        results = program.record(self._recorded, [program.input("a", raw, self.lanes)])
        sizes: dict[int, int] = {}
        for result, (number, first, step) in zip(results, self.places, strict=True):
            sizes[number] = max(sizes.get(number, 0), first + step * result.size)
            program.put([f"out{number}[{affine(step, first)}] = {program.text(result, raw)}"], result.size)
        lines = program.lines()
        arrays = [f"a = carray(pointer(cells[0]), ({self.lanes},), np.{raw.name})"]
        for number, size in sizes.items():
            arrays.append(f"out{number} = carray(pointer(cells[{1 + number}]), ({size},), np.{raw.name})")
        for name, kind, count in program.buffers():
            arrays.append(f"{name} = carray(stack({count * kind.itemsize}), ({count},), np.{kind.name})")
        constants = [constant(name, value) for name, value in program.constants.items()]
        return _entry(constants, 1 + len(sizes), [*arrays, *lines])

    def on(
        self, slow: Callable[[], None], outs: Sequence[Lanes], sources: Sequence[Lanes | np.ndarray]
    ) -> Callable[[], None]:  # fmt: skip
        """See :class:`Code`."""
        (source,) = (s if isinstance(s, np.ndarray) else s.view for s in sources)
        views = [source, *(out.view for out in outs)]
        meet = any(np.may_share_memory(a, b) for n, a in enumerate(views) for b in views[:n])
        if meet or not source.flags.c_contiguous or source.size != self.lanes or any(out.overlaps for out in outs):
            return slow
        return Work(self, slow, np.array([view.ctypes.data for view in views], np.int64), views)


_HEAD = """\
import numba
import numpy as np
from numba import carray, types
from ascsim.isa import compile as _compile
from ascsim.machine import native as _native

bitcast, stack, pointer = _compile.bitcast(), _compile.stack(), _native.pointer()
widen, narrow = _compile.halves()
"""


def _entry(constants: Sequence[str], cells: int, body: Sequence[str]) -> str:
    lines = [f"cells = carray(address, ({cells},), np.int64)", *body]
    head = "@numba.cfunc(types.void(types.voidptr), error_model='numpy')\ndef entry(address):\n"
    return "".join(f"{line}\n" for line in constants) + head + "".join(f"    {line}\n" for line in lines)


def _is_matrix(view: np.ndarray) -> bool:
    """Rows of elements one behind the other, or one number."""
    return view.size > 0 and (view.ndim == 0 or (view.ndim == 2 and view.strides[1] == view.itemsize))


class Work:
    """A call's lanes, done by machine code where there is some."""

    def __init__(self, code: Code, slow: Callable[[], None], cells: np.ndarray, kept: Sequence[np.ndarray]) -> None:
        self.code, self.slow, self.cells, self.kept = code, slow, cells, kept
        self.place = cells.ctypes.data

    @property
    def native(self) -> Native | None:
        """See :class:`~ascsim.machine.native.MachineCode`."""
        return Native(self.code.address, self.place) if self.code.address else None

    def __call__(self) -> None:
        """Do it."""
        entry = self.code.entry
        if entry is not None:
            entry(self.place)
            return
        begin = time.perf_counter()
        self.slow()
        code = self.code
        code.spent += time.perf_counter() - begin
        if code.spent > WORTH_LOADING:
            code.seek()


def _address(text: str, make_it: bool) -> int:
    """The address of a text's machine code; 0 if it is not there, and not to be made."""
    from ascsim.isa.compile import tools_hash

    place = generation("lanes", tools_hash()) / hashlib.sha256(text.encode()).hexdigest()[:16]
    address = find(place)
    if address is None and make_it:
        namespace: dict[str, Any] = {}
        exec(compile(text, "<lanes>", "exec"), namespace)
        address = make(place, namespace["entry"])
    return address or 0
