"""TREM, TREMS, TFMOD, TFMODS: what a division leaves, with the sign of the divisor or of the dividend.

Sources: pto-isa docs/isa (the page of each); include/pto/npu/a2a3 TRem.hpp, TRemS.hpp, TFmod.hpp, TFmodS.hpp;
include/pto/npu/a5 TRem.hpp, TRemS.hpp, TFMod.hpp, TFModS.hpp, Int64Div.hpp, custom/TFmodRemHp.hpp; include/pto/cpu/ElementOp.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import (
    A2A3,
    A5,
    CHIPS,
    Definition,
    In,
    Operand,
    Out,
    Scalar,
    Scratch,
    lanes_in,
    store_lanes,
    tile_instruction,
)
from ascsim.isa.rules import (
    Rule,
    dtype,
    finding,
    in_space,
    row_major,
    same_dtype,
    same_valid_shape,
    unchecked_valid_shape,
)
from ascsim.isa.semantics import arithmetic
from ascsim.isa.semantics.convert import TRUNC, f32_to_f16_bits
from ascsim.isa.tile.compound import needs_tmp
from ascsim.isa.tile.elementwise import (
    DIVIDED,
    FLUSHED,
    WORDS_OF_INT64,
    Types,
    beyond_64,
    changed,
    element_of,
    flushing,
    precision_operand,
    with_128_wide,
)
from ascsim.machine.core import Core, Finding, Touch
from ascsim.machine.dtypes import DType, f16, f32, i32
from ascsim.machine.operands import REGISTER_BYTES, Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

_LANES = 64
"""Elements of a repeat, all of 32 bits on the A2/A3."""
_NARROW_DIVIDED: Types = tuple(k for k in DIVIDED if k.size < 8)


def _to_int(value: np.ndarray) -> np.ndarray:
    """A whole float32 as int32: saturated, 0 of NaN."""
    whole = np.where(value == value, value, np.float32(0)).astype(np.float64)
    return np.clip(whole, -(2.0**31), 2.0**31 - 1).astype(np.int32)


class _Remainder:
    floors = False
    """TREM, TREMS: the result has the sign of the divisor."""
    has_number = False
    over = "dst"
    warns = ("TILE-INPLACE",)

    def tiles(self: Any) -> tuple[str, ...]:
        """The names of the tiles that are read."""
        return ("src",) if self.has_number else ("src0", "src1")

    def working_space(self: Any, call: SimpleNamespace, profile: Profile) -> list[Region]:
        """What the A2/A3 write of tmp: quotients of a row, and the bits of a comparison (of numbers: over them)."""
        if profile.name != "a2a3" or not self.floors or not (call.dst.valid_rows and call.dst.valid_cols):
            return []
        tmp, row = call.tmp, 4 * call.dst.valid_cols
        found = [Region(tmp.space, tmp.address, row, (), np.dtype(np.float32))]
        if not self.has_number:
            filled = REGISTER_BYTES if call.dst.dtype is f32 else row
            bits = -(-call.dst.valid_cols // _LANES) * _LANES // 8
            start = tmp.address + call.dst.row_bytes
            found.append(Region(tmp.space, start, max(filled, bits) // 4 * 4, (), np.dtype(np.uint32)))
        return found

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of dst in all; of int32 the A2/A3 write the sources too."""
        rows, cols = call.dst.valid_rows, call.dst.valid_cols
        if profile.name == "a5" and call.dst.dtype.size == 8:
            cols = min(cols, WORDS_OF_INT64)
        if not rows or not cols:
            return []
        numbers = {o.name: n for n, o in enumerate(self.inputs)}
        touched = [(numbers[n], int(Mode.READ), getattr(call, n).region(rows, cols)) for n in self.tiles()]
        if profile.name == "a2a3" and call.dst.dtype is i32:
            touched += [(number, int(Mode.WRITE), region) for number, _, region in touched]
        touched.append((0, int(Mode.WRITE), call.dst.region(rows, cols)))
        return touched + [(numbers["tmp"], int(Mode.WRITE), r) for r in self.working_space(call, profile)]

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """The A2/A3's steps on the tiles themselves; on the others, results from what was read."""
        call, profile, kind = self.call(args), core.profile, args[0].dtype
        if not touches:
            return
        views = [core.view(t.region) for t in touches if t.mode == Mode.READ]
        dst = core.view(next(t.region for t in touches if t.operand == 0))
        with np.errstate(all="ignore"):
            if profile.name == "a2a3":
                self._by_steps(core, call, dst, *views)
                return
            given = [lanes_in(v, "widen", kind) for v in views]
            if self.has_number:
                number = element_of(call.scalar, kind.numpy)
                given.append(number.astype(np.float32) if kind.is_narrow_float else number)
            result = _on_a5(self, call, profile, *given) if profile.is_chip else _on_cpu(self.floors, kind, *given)
            store_lanes(dst, result, "widen", kind)

    def _by_steps(self: Any, core: Core, call: SimpleNamespace, dst: np.ndarray, a: np.ndarray, b: Any = None) -> None:
        b = element_of(call.scalar, dst.dtype) if self.has_number else b
        if dst.dtype == np.float32 and not self.floors:
            dst[...] = np.trunc(_quotient(dst, a, b, self.has_number))
            dst[...] = dst * b
            dst[...] = a - dst
            return
        if dst.dtype == np.float32:
            whole = np.floor(a / b)
            dst[...] = whole * b
            dst[...] = a - dst
            left, by = dst, b
        else:
            floats, by = a.astype(np.float32), np.asarray(b).astype(np.float32)
            whole = _to_int(np.floor(floats / by))
            a[...] = _to_int(np.rint(floats))
            if not self.has_number:
                b[...] = _to_int(np.rint(by))
            dst[...] = whole * b
            dst[...] = a - dst
            left, by = dst.astype(np.float32), np.asarray(b).astype(np.float32)
            if not self.has_number:
                b.view(np.float32)[...] = by
        other = left * by < 0
        if self.has_number:  # one register of bits for all repeats
            other = other[:, np.arange(other.shape[1]) % _LANES]
        corrected = left + by
        result = np.where(other, corrected, left)
        dst[...] = result if dst.dtype == np.float32 else _to_int(np.trunc(result))
        self._leave(core, call, corrected[-1], other[-1])

    def _leave(self: Any, core: Core, call: SimpleNamespace, row: np.ndarray, bits: np.ndarray) -> None:
        """What tmp holds: the corrected remainders of the last row, and behind them the bits on their own address."""
        used = self.working_space(call, core.profile)
        core.view(used[0])[...] = row
        if len(used) > 1:
            held = core.view(used[1])
            held[...] = used[1].start
            packed = np.packbits(np.pad(bits, (0, -len(bits) % _LANES)), bitorder="little")
            held.view(np.uint8)[: packed.size] = packed

    def observe(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
        """Whether dst lies where a source does, and cannot."""
        call = self.call(args)
        shared = [n for n in self.tiles() if getattr(call, n).address == call.dst.address]
        if core.profile.name != "a2a3" or not shared or not touches:
            return []
        said = (
            f"{self.title}: dst and {shared[0]} lie in one place; dst is written before {shared[0]} was read for good"
        )
        return [Finding("TILE-INPLACE", Severity.ERROR, said, (), "Write to another tile.")]


def _quotient(dst: np.ndarray, a: np.ndarray, b: Any, fills: bool) -> np.ndarray:
    """``a / b``; where dst is filled with the number first, it may be what a is."""
    if not fills:
        return a / b
    dst[...] = b
    return a / dst


def _on_a5(self: Any, call: SimpleNamespace, profile: Profile, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind: DType = call.dst.dtype
    b = np.broadcast_to(b, a.shape)
    if kind.kind != "f":
        if self.floors and kind.size < 8:
            whole = np.where(b == 0, np.ones_like(b), b)
            return np.where(b == 0, np.zeros_like(a), a % whole)
        left: np.ndarray = a - arithmetic.divide_integers(a, b) * b
        return np.where(b == 0, np.zeros_like(a), left) if self.floors else left
    exact = bool(call.precision) and kind is f32
    if exact:
        left = np.fmod(a, b)
    else:
        divided = a / b if kind is f16 else flushing(arithmetic.divide, (a, b), "div", call, profile)
        left = a - (np.floor if self.floors else np.trunc)(divided) * b
    if kind is f16:
        left = f32_to_f16_bits(left, TRUNC, True).view(np.float16).astype(np.float32)
    if not self.floors or (self.has_number and not exact):
        return left
    return np.where((left * b).astype(kind.numpy) < 0, left + b, left)


def _on_cpu(floors: bool, kind: DType, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    b = np.broadcast_to(b, a.shape)
    if kind.kind == "f":
        left: np.ndarray = np.fmod(a.astype(np.float64), b.astype(np.float64)).astype(kind.numpy).astype(a.dtype)
    else:
        left = np.where(b == 0, np.zeros_like(a), a - arithmetic.divide_integers(a, b) * b)
    return np.where(((a >= 0) != (b >= 0)) & (left != 0), left + b, left) if floors else left


# Rules


def _small_tmp(definition: Any, call: SimpleNamespace, profile: Profile) -> str | None:
    used = definition.working_space(call, profile)
    beyond = max((r.bounds()[1] for r in used), default=0) - call.tmp.address - call.tmp.nbytes
    return f"tmp has {call.tmp.nbytes} bytes and {beyond} beyond it are written" if used and beyond > 0 else None


def _with_small_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(changed(call, "dst", cols=256, valid_cols=256), "tmp", rows=1, cols=8, valid_rows=1, valid_cols=8)


def _whole_numbers(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "src1 holds floats afterwards" if call.dst.dtype is i32 else None


def _with_whole_numbers(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("dst", "src0", "src1"):
        call = changed(call, name, dtype=i32)
    yield call


def _many_columns(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    cols = call.dst.valid_cols
    return (
        f"rows have {cols} columns; which results are corrected is told of the first 64 alone"
        if cols > _LANES
        else None
    )


def _with_many_columns(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("dst", "src"):
        call = changed(call, name, cols=128, valid_cols=128)
    yield changed(call, "tmp", cols=128)


def _rules(title: str, floors: bool, number: bool, a2a3: Types, a5: Types) -> Iterator[Rule]:
    tiles = ("dst", "src") if number else ("dst", "src0", "src1")
    yield dtype("dst", a2a3=a2a3, a5=a5, cpu=a5)
    yield same_dtype(*tiles)
    yield row_major(*tiles)
    yield in_space(Space.UB, *tiles, *(("tmp",) if floors else ()))
    yield same_valid_shape(*tiles, profiles=("cpu",))
    if floors:
        yield needs_tmp()
    yield unchecked_valid_shape(f"{title}-1", *tiles, profiles=CHIPS, why="The library works on what is valid in dst.")
    if not floors:
        return
    yield finding(
        f"{title}-2", "tmp holds what is written to it", _small_tmp, breaks=_with_small_tmp, profiles=A2A3,
        why="The library checks it in debug builds only.", mend="Give tmp 256 bytes more than a row of dst.",
    )  # fmt: skip
    if number:
        yield finding(
            f"{title}-3", "rows have at most 64 columns", _many_columns, breaks=_with_many_columns, profiles=A2A3,
            severity=Severity.WARNING, mend="Work on tiles of 64 columns.",
            why="The library selects by 64 bits, the same for every 64 columns: where a quotient was rounded up, a result "
            "keeps its wrong sign, and others are moved.",
        )  # fmt: skip
    else:
        yield finding(
            f"{title}-3", "elements are floats", _whole_numbers, breaks=_with_whole_numbers, profiles=A2A3,
            severity=Severity.WARNING, mend="Do not use src1 any more, or load it again.",
            why="Integers become floats in place, and those of src1 stay so; beyond 2**24 both sources are rounded.",
        )  # fmt: skip
    yield finding(
        f"{title}-4", "rows of 64-bit elements have at most 64", beyond_64, breaks=with_128_wide, profiles=A5,
        why="The A5's library loads 512 bytes of a row, once.", mend="Work on tiles of at most 64 columns.",
    )  # fmt: skip


def _define(name: str, does: str, floors: bool, number: bool, a2a3: Types, a5: Types, precision: str) -> None:
    title = name.upper()
    sources = ("src",) if number else ("src0", "src1")
    operands: list[Operand] = [Out("dst", dtype="T"), *(In(n, dtype="T") for n in sources)]
    if number:
        operands.append(Scalar("scalar", "T", doc="converted to the element type first"))
    if floors:
        doc = "of the A2/A3: a row" + ("" if number else ", and 256 bytes behind a row of dst")
        operands.append(Scratch("tmp", optional=True, cpp_given=True, used_on=A2A3, doc=doc))
    operands.append(precision_operand(precision, "on the A5, of float, the exact remainder"))
    steps = "fill dst with the number, " if number and not floors else ""
    tile_instruction(name, pipe=Pipe.V, cpp_templates=("precision",))(type(title, (_Remainder,), {
        "__doc__": does, "floors": floors, "has_number": number, "operands": tuple(operands),
        "rules": tuple(_rules(title, floors, number, a2a3, a5)),
        "notes": (
            f"The A2/A3 {steps}divide, round to a whole number, multiply and subtract, each step rounded, in dst: it cannot "
            "be a source.",
            *(("The A2/A3 take int32 by way of float, in place.",) if floors else ()),
            FLUSHED if not floors else "The A5 takes subnormals as 0 in the division, unless HIGH_PRECISION.",
            "The A5 works on half in float, and rounds towards zero.",
            *(("TREMS on the A5: floats are not corrected where a quotient was rounded up.",) if floors and number else ()),
        ),
        "assumed": (
            "By 0: integers give 0 (A5: TFMOD gives the dividend); no page tells.",
            *(("Integers of 16 and 32 bits on the A5: the sign of the divisor, as the public tests expect of vmod; those of 64 "
               "bits have the sign of the dividend.",) if floors else ()),
            "HIGH_PRECISION is exact.",
        ),
        "sources": (f"pto-isa docs/isa/{title}", "pto-isa include/pto/npu/a2a3 and a5: TRem.hpp, TFmod.hpp and their kin"),
    }))  # fmt: skip


_define("trem", "What is left of src0 divided by src1; it has the sign of src1.", True, False, (f32, i32), DIVIDED,
        "RemAlgorithm")  # fmt: skip
_define("trems", "What is left of each element divided by a number; it has the number's sign.", True, True, (f32, i32),
        DIVIDED, "RemSAlgorithm")  # fmt: skip
_define("tfmod", "What is left of src0 divided by src1; it has the sign of src0.", False, False, (f32,), _NARROW_DIVIDED,
        "FmodAlgorithm")  # fmt: skip
_define("tfmods", "What is left of each element divided by a number; it has the sign of the element.", False, True, (f32,),
        _NARROW_DIVIDED, "FmodSAlgorithm")  # fmt: skip
