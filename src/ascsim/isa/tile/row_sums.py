"""TROWSUM and TROWPROD: the sum and the product of each row, in the order of each chip.

Sources: pto-isa docs/isa/TROWSUM, TROWPROD; include/pto/npu/a2a3 TRowSum.hpp, TRowProd.hpp, TRowReduceOps.hpp;
include/pto/npu/a5 TRowReduce.hpp, TRowProd.hpp, Int64Reduce.hpp; include/pto/cpu TRowSum.hpp, TRowProd.hpp.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import tile_instruction
from ascsim.isa.lanewise import Code, Whole
from ascsim.isa.semantics import arithmetic, convert
from ascsim.isa.tile.columns import Step, stepwise
from ascsim.isa.tile.elementwise import FOUR
from ascsim.isa.tile.reduce import RowFold, row_of_tmp, rules, takes_short_way
from ascsim.isa.tile.reduce import scratch as scratch_of_extremes
from ascsim.machine.dtypes import DType, bf16, f16, f32, i64, u64
from ascsim.machine.operands import REGISTER_BYTES, Region
from ascsim.machine.words import Pipe
from ascsim.profiles import Profile

_BLOCK_BYTES = 32
_HALF_LIMIT = np.float32(65504)
_MOST_IN_CODE = 1 << 13
"""Elements of a tile whose sums machine code works out: it has a loop for each step, over all of them."""
_MOST_IN_TURN, _MOST_REGISTERS = 128, 8
"""Columns, or registers of a row, that machine code adds one after the other: each is a statement."""
_codes: dict[tuple, Whole] = {}
_SHORT_PROGRAMS = {128: "gb", 256: "gbb", 512: "gg", 1024: "ggb"}
"""What the short ways do before the last sums of blocks, by columns: sums of blocks (g), blocks added in pairs (b)."""

Rows = Callable[[np.ndarray], np.ndarray]


def _parts(values: np.ndarray, lanes: int, neutral: int) -> np.ndarray:
    """(rows, parts, lanes): each row in parts of so many columns, filled up with ``neutral``."""
    count = -(-values.shape[1] // lanes)
    filled = np.full((values.shape[0], count * lanes), neutral, values.dtype)
    filled[:, : values.shape[1]] = values
    return filled.reshape(values.shape[0], count, lanes)


def _one_after_another(parts: np.ndarray, step: Step) -> np.ndarray:
    """(rows, parts, ...) folded along the parts, the first first."""
    held = parts[:, 0]
    for number in range(1, parts.shape[1]):
        held = step(held, parts[:, number])
    return held


# Sums


def _neighbours(values: np.ndarray, count: int, rounded: Rows) -> np.ndarray:
    """The sums of so many (a power of two) elements one behind the other: neighbours, then neighbouring sums, and so on
    (vcadd, vcgadd)."""
    while count > 1:
        values, count = rounded(values[0::2] + values[1::2]), count // 2
    return values


def _exact(sums: np.ndarray) -> np.ndarray:
    return sums


def stopping(kind: DType) -> Rows:
    """Rounding of the A2/A3's sums of repeats and blocks: half stops at 65504."""
    if kind.size == 4:
        return _exact
    return lambda sums: convert.through_f16(np.minimum(np.maximum(sums, -_HALF_LIMIT), _HALF_LIMIT))


def _rounding(kind: DType) -> Rows:
    """Rounding of a sum to the type of the elements."""
    if kind is f16:
        return convert.through_f16
    return _exact if kind.size == 4 else lambda sums: sums.astype(kind.numpy).astype(np.float32)


def _halved(rows: np.ndarray, lanes: int, step: Step) -> np.ndarray:
    """tmp as the A2/A3 leave it: (rows, parts, lanes), the sum of each lane in part 0 (FillTmp, TmpProc)."""
    whole = rows.shape[1] // lanes
    full = rows[:, : whole * lanes].reshape(len(rows), whole, lanes)
    if whole == 1:
        tmp = full.copy()
    else:
        tmp = step(full[:, 0 : whole - 1 : 2], full[:, 1::2])
        if whole % 2:
            tmp[:, 0] = step(tmp[:, 0], full[:, -1])
    rest = rows[:, whole * lanes :]
    if rest.shape[1]:
        tmp[:, 0, : rest.shape[1]] = step(tmp[:, 0, : rest.shape[1]], rest)
    count = tmp.shape[1]
    while count > 1:
        half = count // 2
        for number in range(half):
            tmp[:, number] = step(tmp[:, 2 * number], tmp[:, 2 * number + 1])
        if count % 2:
            tmp[:, half - 1] = step(tmp[:, half - 1], tmp[:, 2 * half])
        count = half
    return tmp


Flat = Callable[[np.ndarray], tuple[np.ndarray, ...]]
"""Of all elements of a tile without gaps, row after row: the sums, and the parts of what tmp holds then."""


def _short_way(columns: int) -> Flat:
    """The shapes that the A2/A3 fold whole."""

    def fold(flat: np.ndarray) -> tuple[np.ndarray, ...]:
        fronts, front = [], flat
        for how in _SHORT_PROGRAMS[columns]:
            if how == "g":
                front = _neighbours(front, 8, _exact)
            else:
                numbers = np.arange(front.size // 2)
                first = numbers // 8 * 16 + numbers % 8
                front = front[first] + front[first + 8]
            fronts.append(front)
        left = [held[written.size :] for held, written in zip(fronts[-2::-1], fronts[:0:-1], strict=True)]
        return _neighbours(front, 8, _exact), front, *left

    return fold


def _sum_on_a2a3(rows: np.ndarray, kind: DType) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows that are no whole register, or more than one."""
    lanes, step = REGISTER_BYTES // kind.size, stepwise(arithmetic.add, arithmetic.add, kind)
    if rows.shape[1] <= lanes:
        return _neighbours(_parts(rows, lanes, 0).reshape(-1), lanes, stopping(kind)), None
    tmp = _halved(rows, lanes, step)
    return _neighbours(tmp[:, 0].reshape(-1), lanes, stopping(kind)), tmp.reshape(len(rows), -1)


def _registers_in_turn(parts: int, kind: DType) -> Flat:
    """The sum of each register, rounded, added to those before; the first to 0: the A5, rows of so many registers."""
    rounded = _rounding(kind)

    def fold(flat: np.ndarray) -> tuple[np.ndarray]:
        sums = rounded(_neighbours(flat, REGISTER_BYTES // kind.size, _exact))
        total = sums[0::parts] + np.float32(0)
        for number in range(1, parts):
            total = rounded(total + sums[number::parts])
        return (total,)

    return fold


def _columns_in_turn(columns: int) -> Flat:
    """Column after column: cpu."""

    def fold(flat: np.ndarray) -> tuple[np.ndarray]:
        if isinstance(flat, np.ndarray):  # one call instead of one for each column
            return (np.add.accumulate(flat.reshape(-1, columns), axis=1)[:, -1],)
        total = flat[0::columns]
        for number in range(1, columns):
            total = total + flat[number::columns]
        return (total,)

    return fold


def _flat_sum(call: SimpleNamespace, profile: Profile) -> Flat | None:
    """How a call folds floats, where rows are whole registers or the profile has none."""
    kind, columns = call.src.dtype, call.src.valid_cols
    lanes = REGISTER_BYTES // kind.size
    if kind.kind != "f":
        return None
    if not profile.is_chip:
        return _columns_in_turn(columns)
    if profile.name == "a5":
        return None if columns % lanes else _registers_in_turn(columns // lanes, kind)
    if takes_short_way(call):
        return _short_way(columns)
    return (lambda flat: (_neighbours(flat, lanes, stopping(kind)),)) if columns == lanes else None


def _scratch_of_sum(call: SimpleNamespace, profile: Profile) -> Region | None:
    """As that of TROWMAX, but rows of floats leave half as many registers as they have, at least one."""
    used = scratch_of_extremes(call, profile)
    if used is None or not used.dims:
        return used
    parts = max(1, call.src.valid_cols * call.src.dtype.size // REGISTER_BYTES // 2)
    return used._replace(length=parts * REGISTER_BYTES, dims=((call.src.valid_rows, row_of_tmp(call)),))


class _Sum(RowFold):
    scratch = staticmethod(_scratch_of_sum)

    def folded(
        self: Any, call: SimpleNamespace, rows: np.ndarray, profile: Profile
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """See :class:`RowFold`."""
        kind, fold = call.src.dtype, _flat_sum(call, profile)
        if fold is not None:
            sums, *held = fold(rows.reshape(-1))
            return sums, np.concatenate(held) if held else None
        if kind.kind != "f":
            lanes = _parts(rows, _BLOCK_BYTES // kind.size, 0).sum(axis=1, dtype=kind.numpy)
            return lanes.sum(axis=1, dtype=kind.numpy), lanes[-1]
        if profile.name == "a2a3":
            return _sum_on_a2a3(rows, kind)
        padded = _parts(rows, REGISTER_BYTES // kind.size, 0)
        return _registers_in_turn(padded.shape[1], kind)(padded.reshape(-1))[0], None

    def code(self: Any, call: SimpleNamespace, profile: Profile) -> Code | None:
        """See :class:`~ascsim.isa.definition.TileInstruction`."""
        kind, rows, columns = call.src.dtype, call.src.valid_rows, call.src.valid_cols
        fold = _flat_sum(call, profile)
        if fold is None or kind not in (f16, f32) or not 2 <= rows <= _MOST_IN_CODE // columns:
            return None
        most = _MOST_REGISTERS * REGISTER_BYTES // kind.size if profile.name == "a5" else _MOST_IN_TURN
        if columns < 2 or (columns > most and not takes_short_way(call)):
            return None
        step = call.dst.row_bytes // kind.size
        key = profile.name, kind, rows, columns, step, takes_short_way(call)
        if key not in _codes:
            _, *held = (part.size for part in fold(np.zeros(rows * columns, np.float32)))
            begins = np.cumsum([0, *held]).tolist()
            places = ((0, 0, step), *((1, begin, 1) for begin in begins[:-1]))
            _codes[key] = Whole(fold, kind, lanes=rows * columns, places=places)
        return _codes[key]


# Products


def _block_of_tmp(call: SimpleNamespace, profile: Profile) -> Region | None:
    if profile.name != "a2a3":
        return None
    return Region(call.tmp.space, call.tmp.address, _BLOCK_BYTES, (), call.src.dtype.numpy)


class _Product(RowFold):
    scratch = staticmethod(_block_of_tmp)
    returns_early = staticmethod(lambda call, profile: False)

    def folded(
        self: Any, call: SimpleNamespace, rows: np.ndarray, profile: Profile
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """See :class:`RowFold`."""
        kind = call.src.dtype
        step = stepwise(arithmetic.multiply, arithmetic.multiply, kind)
        if profile.name == "a2a3":
            lanes = _one_after_another(_parts(rows, _BLOCK_BYTES // kind.size, 1), step)
            return _one_after_another(lanes, arithmetic.multiply), lanes[-1]
        if profile.name == "a5":
            folded = _one_after_another(_parts(rows, REGISTER_BYTES // kind.size, 1), step)
            while folded.shape[1] > 1:
                half = folded.shape[1] // 2
                folded = step(folded[:, :half], folded[:, half:])
            return folded[:, 0], None
        return _one_after_another(rows, step), None


_EMPTY = "The A5 and cpu do not use tmp."
_SCALAR = "are folded in one block of tmp, whose elements the scalar unit puts together; the flags are part of it."

for _name, _does, _base, _rules, _notes, _assumed, _files in (
    (
        "trowsum", "Add the elements of each row, to column 0 of ``dst``.", _Sum,
        rules("TROWSUM", (*FOUR, i64, u64), (*FOUR, bf16)),
        (
            "The order of the additions: A2/A3, rows of at most 256 bytes: neighbours, then neighbouring sums. Longer rows: "
            "registers in pairs, their sums in pairs, in tmp, an odd one to the first (later the last) sum; then as short "
            "rows. A5: each register as a short row, then one register after the other. cpu: column after column, in float.",
            f"Integers wrap. On the A2/A3 they {_SCALAR}",
            "A2/A3: half stops at 65504 within the last register, as vcadd does.", _EMPTY,
        ),
        ("Half, A2/A3: each sum of two within a register is rounded; A5: a register's sum alone.",),
        "TRowSum.hpp, TRowReduceOps.hpp; include/pto/npu/a5/TRowReduce.hpp, Int64Reduce.hpp",
    ),
    (
        "trowprod", "Multiply the elements of each row, to column 0 of ``dst``.", _Product,
        rules("TROWPROD", FOUR, FOUR, folds_rows=False),
        (
            "The order: A2/A3, block by block of 32 bytes, then the elements of the block, half in float. A5: register by "
            "register, then its upper half to the lower, and so on. cpu: column after column. Narrow floats are rounded "
            "after each step.",
            f"Rows {_SCALAR} (A2/A3)", _EMPTY,
        ),
        (), "TRowProd.hpp; include/pto/npu/a5/TRowProd.hpp",
    ),
):  # fmt: skip
    _title = _name.upper()
    tile_instruction(_name, pipe=Pipe.V)(type(_title, (_base,), {
        "__doc__": _does, "operands": _base.operands, "rules": _rules, "notes": _notes, "assumed": _assumed,
        "sources": (f"pto-isa docs/isa/{_title}", f"pto-isa include/pto/npu/a2a3/{_files}"),
    }))  # fmt: skip
