"""TCI: a tile of ascending or descending numbers.

Sources: pto-isa docs/isa/TCI; include/pto/npu/a2a3/TCI.hpp, include/pto/npu/a5/Tci.hpp, include/pto/cpu/TCI.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A2A3, Choice, Definition, Out, Scalar, Scratch, tile_instruction
from ascsim.isa.memory_form.masked import set_mask_count, set_mask_norm, set_vector_mask
from ascsim.isa.rules import changed, dtype, finding, in_space, refuse
from ascsim.isa.steps import Move, group
from ascsim.isa.sync import pipe_barrier
from ascsim.machine.core import Core, Group, Step, Touch
from ascsim.machine.dtypes import DType, bf16, f16, f32, i16, i32, u16, u32
from ascsim.machine.operands import REGISTER_BYTES, Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

_A2A3_TYPES = (i16, u16, i32, u32, f16, bf16, f32)
_A5_TYPES = (i16, u16, i32, u32)
_TMP_BYTES = {4: 768, 2: 1792}
"""Bytes of tmp that the A2/A3's library works in, by the size of an element."""
_PAGES = (
    "pto-isa docs/isa/TCI",
    "pto-isa include/pto/npu/a2a3/TCI.hpp, include/pto/npu/a5/Tci.hpp, include/pto/cpu/TCI.hpp",
)


def numbers(start: Any, count: int, descending: bool, kind: DType) -> np.ndarray:
    """``start``, and from there up or down by one: integers wrap, floats are rounded once."""
    steps = np.arange(count, dtype=np.int64) * (-1 if descending else 1)
    with np.errstate(over="ignore"):
        if kind.kind == "f":
            return (np.float32(start) + steps.astype(np.float32)).astype(kind.numpy)
        return (int(start) + steps).astype(kind.numpy)


def negated_integers(start: Any, count: int, descending: bool, kind: DType) -> np.ndarray:
    """What the A2/A3's vector form makes, as bits: integers from start up, and, descending, those with their sign
    changed."""
    made = int(start) + np.arange(count, dtype=np.int64)
    return (-made if descending else made).astype(kind.bits_dtype)


class _Ramp(Move):
    """A step that writes a sequence; its last argument is (function, start, descending)."""

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Write it."""
        dst, _, written, _, (made, start, descending) = args
        view = core.view(written)
        if view.size:
            values: np.ndarray = made(start, view.size, descending, dst.dtype)
            view.reshape(-1)[...] = values.view(view.dtype)


_SCALAR_RAMP = _Ramp("scalar_loop", Pipe.S, "a loop of scalar writes")
_VECTOR_FUNCTION = _Ramp("vector_function", Pipe.V, "a vector function")
_VECTOR_RAMP = _Ramp("vadds", Pipe.V)
_FRACTIONS = Move("vector_dup, vcgadd, vmuls, vbrcb, vadd", Pipe.V, "the steps that count in tmp")
_NEGATE = _Ramp("vmuls", Pipe.V)


def _several_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return f"dst has {call.dst.rows} rows; the sequence fills one" if call.dst.rows != 1 else None


def _with_several_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", rows=2)


_ONE_ROW = refuse("L007", "dst has one row", _several_rows, breaks=_with_several_rows,
                  mend="Bind a tile of one row to the address of each row.")  # fmt: skip
_DESCENDING = Choice("descending", bool, optional=True, default=False, explicit=True, doc="whether it goes down")
_NOTES = (
    "Integers wrap. The type of the first number is the tile's: C++ takes it as a template argument.",
    "The valid columns of dst are written; its valid rows are not looked at.",
)


class _Sequence:
    """What both forms share."""

    def row(self, call: SimpleNamespace) -> Region:
        """The bytes that are written."""
        dst = call.dst
        return Region(dst.space, dst.address, dst.valid_cols * dst.dtype.size, (), dst.dtype.bits_dtype)

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The one row."""
        return [(0, Mode.WRITE, self.row(call))]

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> np.ndarray:
        """The sequence."""
        return numbers(call.start, call.dst.valid_cols, bool(call.descending), call.dst.dtype).view(
            call.dst.dtype.bits_dtype
        )


def _integers_instead(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    kind = call.dst.dtype
    return f"dst is {kind.name}, and integers are written: their bits are no {kind.name}s" if kind.kind == "f" else None


def _with_floats(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", dtype=f32 if call.dst.dtype.size == 4 else f16)


def _sign_changed(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if not call.descending or int(call.start) == 0:
        return None
    start = int(call.start)
    return f"descending from {start} the library writes {-start}, {-start - 1}, ... and not {start}, {start - 1}, ..."


def _with_descent(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "descending": True, "start": 5})


def _small_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    need = _TMP_BYTES[call.dst.dtype.size]
    return f"tmp has {call.tmp.nbytes} bytes and {need} are worked in" if call.tmp.nbytes < need else None


def _with_small_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "tmp": replace(call.tmp, rows=1, cols=64, valid_rows=1, valid_cols=64)})


@tile_instruction("tci", pipe=Pipe.V, cpp_order=("dst", "start", "tmp", "descending"),
                  cpp_templates=("dst tmp start descending",))  # fmt: skip
class TCIWithTmp(_Sequence):
    """Fill a row with numbers that ascend or descend by one, on the vector pipe."""

    operands = (
        Out("dst", dtype="T", doc="one row"), Scalar("start", "T", doc="the first number"),
        Scratch("tmp", used_on=A2A3, doc="A2/A3: 768 bytes for 4-byte types, 1792 for 2-byte types; not used otherwise"),
        _DESCENDING,
    )  # fmt: skip
    rules = (
        dtype("dst", a2a3=(i32, i16, f32, f16), a5=_A5_TYPES, cpu=_A2A3_TYPES),
        dtype("tmp", a2a3=(f32,)),
        in_space(Space.UB, "dst", "tmp"),
        _ONE_ROW,
        finding("TCI-1", "tmp has the bytes that are worked in", _small_tmp, breaks=_with_small_tmp, profiles=A2A3,
                why="The library counts in tmp, in pieces at fixed distances; it checks no size.",
                mend="Give tmp 2048 bytes, as Tile<TileType::Vec, float, 1, 512>."),
        finding("TCI-2", "the elements of dst are integers", _integers_instead, breaks=_with_floats, profiles=A2A3,
                why="The library adds the first number as an integer, whatever the type.",
                mend="Use an integer tile and TCVT, or the form without tmp."),
        finding("E-TCI-DESCENDING", "a descending sequence begins with 0", _sign_changed, breaks=_with_descent,
                profiles=A2A3, why="The library makes the ascending sequence and changes its sign.",
                mend="Use the form without tmp, or begin with 0 and add."),
    )  # fmt: skip
    values = "bits"
    notes = (
        *_NOTES,
        "A2/A3: u16 and u32 are refused, though the manual lists them: the library's own TMULS does not take them. tmp "
        "is f32, though the manual allows any 4-byte type.",
        "A2/A3: barriers on pipe V lie between its steps and after the last, except descending 4-byte sequences and "
        "those of less than 256 bytes. They leave the vector mask as their last step needed it.",
    )
    assumed = ("16-bit integers wrap in its additions.",)
    sources = _PAGES

    def expand(self, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """A vector function (A5), or counting in tmp and adding the first number (A2/A3)."""
        dst, tmp, descending = call.dst, call.tmp, bool(call.descending)
        row = self.row(call)
        if profile.name == "a5":
            yield group(_VECTOR_FUNCTION.step(dst, row, bits=(numbers, call.start, descending)))  # type: ignore[arg-type]
            return
        barrier = Step(pipe_barrier, (Pipe.V,))
        size, columns = dst.dtype.size, dst.valid_cols
        count_in = Region(tmp.space, tmp.address, _TMP_BYTES[size], (), np.dtype(np.uint8))
        yield group(_FRACTIONS.step(tmp, count_in), barrier)
        ascending = (dst, tmp, row, count_in, (negated_integers, call.start, False))
        yield group(Step(_VECTOR_RAMP, ascending), barrier)
        if descending:
            yield group(Step(_NEGATE, (dst, dst, row, row, (negated_integers, call.start, True))))
        yield group(*_mask_left(size, columns, descending))


def _mask_left(size: int, columns: int, descending: bool) -> list[Step]:
    """The vector mask after the A2/A3's vector form."""
    lanes = REGISTER_BYTES // size
    tail = columns % lanes
    if columns < lanes or (descending and size == 4):
        return [Step(set_mask_count, ()), Step(set_vector_mask, (0, columns))]
    if not tail or descending:
        return [Step(set_mask_norm, ()), Step(set_vector_mask, (-1, -1))]
    bits = (1 << tail) - 1
    return [Step(set_mask_norm, ()), Step(set_vector_mask, (bits >> 64, bits & ((1 << 64) - 1)))]


@tile_instruction("tci", pipe=Pipe.S, cpp_templates=("dst start descending",))
class TCI(_Sequence):
    """Fill a row with numbers that ascend or descend by one: on chips a loop of the scalar unit."""

    operands = (Out("dst", dtype="T", doc="one row"), Scalar("start", "T", doc="the first number"), _DESCENDING)
    rules = (
        dtype("dst", a2a3=_A2A3_TYPES, a5=_A5_TYPES, cpu=_A2A3_TYPES),
        in_space(Space.UB, "dst"),
        _ONE_ROW,
    )
    values = "bits"
    notes = (
        *_NOTES,
        "It runs on pipe S: a vector instruction or a copy that uses the tile needs a flag from PIPE_S to its pipe.",
    )
    assumed = ("Floats are added in float32 and rounded to the element type.",)
    sources = _PAGES

    def expand(self, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """The loop."""
        row = (numbers, call.start, bool(call.descending))
        yield group(_SCALAR_RAMP.step(call.dst, self.row(call), bits=row))  # type: ignore[arg-type]
