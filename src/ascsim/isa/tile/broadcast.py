"""TCOLEXPANDADD and its kin: a tile and one row, which stands for all rows.

Sources: pto-isa docs/isa/TCOLEXPANDADD and its kin; include/pto/npu/a2a3 and a5: TColExpandBinOp.hpp, TColExpandAdd.hpp
and its kin; include/pto/cpu/TColExpandOp.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A2A3, CHIPS, Definition, In, Operand, Out, tile_instruction
from ascsim.isa.rules import Rule, dtype, finding, in_space, refuse, row_major, same_dtype
from ascsim.isa.semantics import arithmetic, functions
from ascsim.isa.tile.elementwise import FLOATS, FLUSHED, FOUR, ROUNDED, WRITTEN, changed, flushing, precision_operand
from ascsim.machine.dtypes import DType, bf16, f16, f32, i8, i16, i32, u8, u16, u32
from ascsim.machine.operands import Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

Types = tuple[DType, ...]
NARROW: Types = (i32, u32, f32, i16, u16, f16, bf16, u8, i8)
MULTIPLIED: Types = (i32, u32, f32, i16, u16, f16, bf16)
DIVIDED: Types = (i32, u32, f32, i16, u16, f16)
ON_CPU: Types = (f32, f16, i32, i16, u32, u16)

_REPEATS = 255
_BLOCKS = 255 * 32


def _has_shape_of(tile: Tile, dst: Tile) -> bool:
    return (tile.valid_rows, tile.valid_cols) == (dst.valid_rows, dst.valid_cols)


def _whole_and_row(call: SimpleNamespace) -> tuple[str, str]:
    """The names of the whole tile and of the one whose first row counts, as the chips' library tells them apart."""
    return ("src0", "src1") if _has_shape_of(call.src0, call.dst) else ("src1", "src0")


# Rules


def _not_beside(call: SimpleNamespace, whole: str, row: str) -> str | None:
    dst, tile, line = call.dst, getattr(call, whole), getattr(call, row)
    if not _has_shape_of(tile, dst):
        return (
            f"dst has {dst.valid_rows}x{dst.valid_cols} valid, {whole} {tile.valid_rows}x{tile.valid_cols} and {row} "
            f"{line.valid_rows}x{line.valid_cols}"
        )
    return None if line.valid_cols == dst.valid_cols else f"{row} has {line.valid_cols} columns for {dst.valid_cols}"


def _unlike_dst(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return _not_beside(call, *_whole_and_row(call))


def _src0_unlike_dst(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return _not_beside(call, "src0", "src1")


def _with_fewer_columns(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_cols=call.dst.valid_cols - 1)


def _beyond_repeats(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.dst.valid_rows > _REPEATS:
        return f"dst has {call.dst.valid_rows} valid rows"
    for name in ("dst", _whole_and_row(call)[0]):
        tile = getattr(call, name)
        if tile.cols * tile.dtype.size > _BLOCKS:
            return f"a row of {name} has {tile.cols * tile.dtype.size} bytes"
    return None


def _with_many_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("dst", "src0"):
        call = changed(call, name, rows=256, valid_rows=256)
    yield call


def _rules(title: str, a2a3: Types, a5: Types, cpu: Types) -> tuple[Rule, ...]:
    tiles = ("dst", "src0", "src1")
    said = "one source has the valid region of dst, the other its valid columns"
    return (
        dtype("dst", a2a3=a2a3, a5=a5, cpu=cpu),
        same_dtype(*tiles),
        row_major(*tiles),
        in_space(Space.UB, *tiles),
        refuse("L012", f"at most {_REPEATS} rows, of at most {_BLOCKS} bytes", _beyond_repeats, breaks=_with_many_rows,
               profiles=A2A3),
        refuse("L007", "src0 has the valid region of dst, src1 its valid columns", _src0_unlike_dst,
               breaks=_with_fewer_columns, profiles=("cpu",)),
        finding(f"{title}-1", said, _unlike_dst, breaks=_with_fewer_columns, profiles=CHIPS,
                why="The library checks nothing: where src0 has not the region of dst it takes src1 for the tile.",
                mend="Give one source the valid region of dst and the other its columns."),
    )  # fmt: skip


class _Broadcast:
    values = "widen"
    over = "dst"

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of dst in all, of the row its columns once."""
        whole, _ = _whole_and_row(call) if profile.is_chip else ("src0", "src1")
        rows, cols = call.dst.valid_rows, call.dst.valid_cols
        if not rows or not cols:
            return []
        touched = [(0, int(Mode.WRITE), call.dst.region(rows, cols))]
        for number, name in ((1, "src0"), (2, "src1")):
            tile = getattr(call, name)
            touched.append((number, int(Mode.READ), tile.region(rows if name == whole else 1, cols)))
        return touched

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The result, the row beside each row."""
        return (self.combined(call, arrays, profile),) if arrays else ()


class Combined:
    """How two values become one. ``of_floats`` stands in for ``of`` where they are floats."""

    of: Callable[..., Any]
    of_floats: Callable[..., Any]
    flushed = ""

    def combined(self: Any, call: SimpleNamespace, arrays: Sequence[np.ndarray], profile: Profile) -> np.ndarray:
        """The result of two arrays."""
        return flushing(self.of_floats if call.dst.dtype.kind == "f" else self.of, arrays, self.flushed, call, profile)


class ExponentialOfDifference(Combined):
    """e to the power of a difference, which is rounded to the element type first."""

    def combined(self: Any, call: SimpleNamespace, arrays: Sequence[np.ndarray], profile: Profile) -> np.ndarray:
        """See :class:`Combined`."""
        with np.errstate(over="ignore", invalid="ignore"):
            difference = arrays[0] - arrays[1]
            if call.dst.dtype.is_narrow_float:
                difference = difference.astype(call.dst.dtype.numpy).astype(np.float32)
        return flushing(functions.exponential, (difference,), "exp", call, profile)


def _define(
    name: str, does: str, how: type[Combined], *, a2a3: Types = FOUR,
    a5: Types = NARROW, cpu: Types = ON_CPU, precision: str = "", notes: tuple[str, ...] = (),
    assumed: tuple[str, ...] = (),
) -> None:  # fmt: skip
    title = name.upper()
    operands: list[Operand] = [
        Out("dst", dtype="T"),
        In("src0", dtype="T"),
        In("src1", dtype="T", doc="one row; on the chips src0 may be the row instead"),
    ]
    if precision:
        operands.append(precision_operand(precision))
    body: dict[str, Any] = {
        "__doc__": does,
        "operands": tuple(operands),
        "rules": _rules(title, a2a3, a5, cpu),
        "notes": (*notes, WRITTEN),
        "assumed": assumed,
        "sources": (f"pto-isa docs/isa/{title}", "pto-isa include/pto/npu/a2a3 and a5: TColExpandBinOp.hpp"),
    }
    tile_instruction(name, pipe=Pipe.V, cpp_templates=("precision",) if precision else ())(
        type(title, (_Broadcast, how), body)
    )


def combining(of: Callable[..., Any], of_floats: Callable[..., Any], flushed: str = "") -> type[Combined]:
    """A :class:`Combined` of these functions."""
    body: dict[str, Any] = {"of": staticmethod(of), "of_floats": staticmethod(of_floats), "flushed": flushed}
    return type("Combining", (Combined,), body)


ADDED = combining(arithmetic.add, arithmetic.add)
SUBTRACTED = combining(arithmetic.subtract, arithmetic.subtract)
PRODUCT = combining(arithmetic.multiply, arithmetic.multiply)
QUOTIENT = combining(arithmetic.divide_integers, arithmetic.divide, "div")
LARGER = combining(arithmetic.maximum, arithmetic.float_maximum)
SMALLER = combining(arithmetic.minimum, arithmetic.float_minimum)
ONE_UNIT = "Chips differ by one unit in the last place unless HIGH_PRECISION."
EXPONENTIAL_NOTES = (
    "The A5 gives 0 for subnormals, as its exp does.",
    "Chips differ by one unit in the last place (asc-devkit: 1 ulp; half as good as half allows).",
)

_define("tcolexpandadd", "Add a row to each row.", ADDED, notes=(ROUNDED,))
_define("tcolexpandsub", "Subtract a row from each row.", SUBTRACTED, notes=(ROUNDED,))
_define("tcolexpandmul", "Multiply each row by a row.", PRODUCT, a5=MULTIPLIED, cpu=(*ON_CPU, u8), notes=(ROUNDED,))
_define("tcolexpanddiv", "Divide each row by a row; integers towards zero.", QUOTIENT, a2a3=FLOATS, a5=DIVIDED,
        precision="DivAlgorithm", notes=(ROUNDED, FLUSHED, ONE_UNIT))  # fmt: skip
_define("tcolexpandmax", "The larger of each element and the one of a row.", LARGER)
_define("tcolexpandmin", "The smaller of each element and the one of a row.", SMALLER)
_define("tcolexpandexpdif", "e to the power of each row minus a row; half is rounded after the subtraction.",
        ExponentialOfDifference, a2a3=FLOATS, a5=FLOATS, cpu=FLOATS, notes=EXPONENTIAL_NOTES)  # fmt: skip
