"""Where the largest or the smallest element is: of each row, of each column, of two tiles element by element.

Sources: pto-isa docs/isa TROWARGMAX, TROWARGMIN, TCOLARGMAX, TCOLARGMIN, TPARTARGMAX, TPARTARGMIN; include/pto/npu/a2a3
TRowReduceIdxOps.hpp, TColReduceIdx.hpp, TPartArgOp.hpp; include/pto/npu/a5 TRowReduceIdx.hpp, TColReduceIdx.hpp,
TPartArgBinOps.hpp; include/pto/cpu TReduceIdx.hpp, TPartArgCommon.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A2A3, CHIPS, Definition, In, Out, Scratch, TileInstruction, tile_instruction
from ascsim.isa.rules import Rule, dtype, finding, in_space, refuse, row_major, same_dtype
from ascsim.isa.semantics import order
from ascsim.isa.semantics.arithmetic import float_maximum, float_minimum
from ascsim.isa.semantics.convert import ROUND, f16_bits_to_f32, f32_to_f16_bits, int_to_f32, narrow_f16
from ascsim.isa.tile.elementwise import EVERY, changed
from ascsim.machine.dtypes import DType, bf16, f16, f32, i8, i16, i32, u8, u16, u32
from ascsim.machine.operands import REGISTER_BYTES, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, SLayout, Space
from ascsim.profiles import Profile

_WORDS = (i32, u32)
_HALVES = (i16, u16)
_ORDERS = {f32: order.F32, f16: order.F16, bf16: order.BF16}
_BLOCK = 32


def _order(kind: DType) -> int:
    return _ORDERS.get(kind, order.SIGNED if kind.kind == "i" else order.UNSIGNED)


def _numbers(bits: np.ndarray, kind: DType) -> np.ndarray:
    """Raw elements as numbers that NumPy compares."""
    values = np.ascontiguousarray(bits).view(kind.numpy)
    return values.astype(np.float32) if kind.is_narrow_float else values


def first_of_registers(bits: np.ndarray, kind: DType, largest: bool) -> np.ndarray:
    """Where vcmax (vcmin) finds its element along the last axis: the first NaN, else the first of the largest."""
    score = order.rank(bits, _order(kind)).astype(np.int64)
    score = np.where(order.is_nan(bits, _order(kind)), np.int64(1) << 40, score if largest else -score)
    return np.argmax(score, axis=-1)


def first_by_comparison(bits: np.ndarray, kind: DType, largest: bool) -> np.ndarray:
    """Where the first element is along axis 0 that no later one exceeds; no comparison with a NaN holds."""
    values = _numbers(bits, kind)
    best, where = values[0].copy(), np.zeros(values.shape[1:], np.int64)
    for number, line in enumerate(values[1:], start=1):
        exceeds = line > best if largest else line < best
        where[exceeds], best[exceeds] = number, line[exceeds]
    return where


def _extreme_bits(kind: DType, lowest: bool) -> int:
    """The bits of the type's lowest (highest) value: an infinity, if it has one."""
    if kind.kind == "f":
        return order.INFINITY_BITS[_order(kind)] | ((1 << (8 * kind.size - 1)) if lowest else 0)
    limits = np.iinfo(kind.numpy)
    return int(limits.min if lowest else limits.max) & ((1 << (8 * kind.size)) - 1)


def _a5_rows(bits: np.ndarray, kind: DType, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """(indices, values' bits) as the A5 finds them: register by register, from the lowest value, by comparison."""
    rows, columns = bits.shape
    lanes = REGISTER_BYTES // kind.size
    starts = range(0, columns, lanes)
    found = [first_of_registers(bits[:, s : s + lanes], kind, largest) + s for s in starts]
    each = np.arange(rows)
    first = np.full((1, rows), _extreme_bits(kind, largest), bits.dtype)
    candidates = np.concatenate([first, [bits[each, f] for f in found]])
    winner = first_by_comparison(candidates, kind, largest)
    indices = np.concatenate([np.zeros((1, rows), np.int64), np.array(found)])
    return indices[winner, each], candidates[winner, each]


# Scratch of the A2/A3's rows


def _up(count: int, unit: int) -> int:
    return -(-count // unit) * unit


def _stages(bits: np.ndarray, kind: DType, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """(values' bits, indices) of each repeat of 256 bytes along the last axis."""
    lanes = REGISTER_BYTES // kind.size
    parts = [bits[:, s : s + lanes] for s in range(0, bits.shape[1], lanes)]
    where = [first_of_registers(p, kind, largest) for p in parts]
    each = np.arange(bits.shape[0])
    return np.stack([p[each, w] for p, w in zip(parts, where, strict=True)], 1), np.stack(where, 1)


def _scratch_of_row(bits: np.ndarray, kind: DType, largest: bool) -> list[tuple[int, np.ndarray]]:
    """What is written to a row of tmp, in order: (offset in elements, raw elements of all rows)."""
    block, lanes, columns = _BLOCK // kind.size, REGISTER_BYTES // kind.size, bits.shape[1]

    def grouped(
        offset_index: int, offset_values: int, source: np.ndarray
    ) -> tuple[list[tuple[int, np.ndarray]], np.ndarray]:
        values, indices = _stages(source, kind, largest)
        pairs = np.stack([values, indices.astype(values.dtype)], 2).reshape(len(values), -1)
        written = [(offset_index, pairs), (offset_values, values), (offset_index, indices.astype(values.dtype))]
        return written, values

    n1 = -(-columns // lanes)
    values_at = _up(2 * n1, block)
    written, values = grouped(0, values_at, bits)
    if columns > lanes * lanes:
        n2 = -(-n1 // lanes)
        index_at = _up(n1, block)
        values_at = index_at + _up(2 * n2, block)
        more, values = grouped(index_at, values_at, values)
        written += more
    best, number = _stages(values, kind, largest)
    written.append((values_at, np.stack([best[:, 0], number[:, 0].astype(best.dtype)], 1)))
    return written


def _row_scratch(
    call: SimpleNamespace, profile: Profile, bits: np.ndarray, largest: bool
) -> list[tuple[Region, np.ndarray]]:
    """(bytes of tmp, what they get) on the A2/A3."""
    src, tmp = call.src, call.tmp
    if profile.name != "a2a3" or tmp is None:
        return []
    kind, lanes = src.dtype, REGISTER_BYTES // src.dtype.size
    raw = kind.bits_dtype
    if src.valid_cols <= lanes:
        if not hasattr(call, "dst_val"):
            return []
        values, indices = _stages(bits, kind, largest)
        pairs = np.concatenate([values, indices.astype(values.dtype)], 1).reshape(-1)
        return [(Region(tmp.space, tmp.address, pairs.nbytes, (), raw), pairs)]
    stride, unit = tmp.cols * tmp.dtype.size, tmp.dtype.size
    return [
        (Region(tmp.space, tmp.address + at * unit, part.shape[1] * kind.size, ((src.valid_rows, stride),), raw), part)
        for at, part in _scratch_of_row(bits, kind, largest)
    ]


# Rules


def _not_a_column(name: str) -> Rule:
    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        dst = getattr(call, name)
        if dst.is_row_major or (dst.slayout == SLayout.NONE_BOX and dst.cols == 1):
            return None
        return f"operand {name} is not row-major, and has {dst.cols} columns"

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield changed(call, name, blayout=BLayout.COL_MAJOR, rows=32, cols=2, valid_cols=1)

    return refuse("L004", f"{name} is row-major, or has one column", test, breaks=breaks,
                  mend="Declare it with BLayout::RowMajor, or BLayout::ColMajor with one column.")  # fmt: skip


def _empty(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src = call.src
    return None if src.valid_rows and src.valid_cols else f"src has {src.valid_rows}x{src.valid_cols} valid"


_NOT_EMPTY = refuse("L007", "src is not empty", _empty, mend="Leave the call out.",
                    breaks=lambda call, profile: iter((changed(call, "src", valid_cols=0),)))  # fmt: skip


def _outs(call: SimpleNamespace) -> list[str]:
    return [n for n in ("dst_val", "dst_idx", "dst") if hasattr(call, n)]


def _index_of(call: SimpleNamespace) -> Tile:
    tile: Tile = call.dst_idx if hasattr(call, "dst_idx") else call.dst
    return tile


def _index_types(allowed: Callable[[SimpleNamespace, Profile], tuple[DType, ...]]) -> Rule:
    """The index has one of the types that go with src's."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        kind, types = _index_of(call).dtype, allowed(call, profile)
        if kind in types:
            return None
        return f"the index has type {kind.name}; with {call.src.dtype.name} it takes {', '.join(t.name for t in types)}"

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield changed(call, "dst_idx" if hasattr(call, "dst_idx") else "dst", dtype=f32)

    return refuse("L002", "the index is an integer of 32 bits (beside values of 16 bits: of 16)", test, breaks=breaks,
                  mend="Declare the index tile with uint32_t.")  # fmt: skip


def _beside_row_values(call: SimpleNamespace, profile: Profile) -> tuple[DType, ...]:
    return (*_WORDS, *_HALVES) if profile.is_chip and call.src.dtype.size == 2 else _WORDS


def _beside_column_values(call: SimpleNamespace, profile: Profile) -> tuple[DType, ...]:
    return _HALVES if profile.is_chip and call.src.dtype.size == 2 else _WORDS


def _other_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    for name in _outs(call):
        rows = getattr(call, name).valid_rows
        if rows != call.src.valid_rows:
            return f"{name} has {rows} valid rows, src {call.src.valid_rows}"
    return None


def _with_other_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in _outs(call):
        yield changed(call, name, valid_rows=getattr(call, name).valid_rows - 1)


def _tmp_too_small(need: Callable[[SimpleNamespace, Profile], tuple[int, int]]) -> Callable[..., str | None]:
    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        if call.tmp is None:
            return None
        row, rows = need(call, profile)
        tmp = call.tmp
        if rows > 1 and row > tmp.cols * tmp.dtype.size:
            return f"rows of tmp have {tmp.cols * tmp.dtype.size} bytes, and {row} of each are written"
        end = row + (rows - 1) * tmp.cols * tmp.dtype.size if rows else 0
        return f"tmp has {tmp.nbytes} bytes, and {end} are written" if end > tmp.nbytes else None

    return test


def _row_need(call: SimpleNamespace, profile: Profile) -> tuple[int, int]:
    """(bytes of a row of tmp, rows) that a row reduction writes."""
    src = call.src
    kind = src.dtype
    block, lanes = _BLOCK // kind.size, REGISTER_BYTES // kind.size
    if src.valid_cols <= lanes:
        return (src.valid_rows * 2 * kind.size, 1) if hasattr(call, "dst_val") else (0, 0)
    n1 = -(-src.valid_cols // lanes)
    end = _up(2 * n1, block) + max(n1, 2)
    if src.valid_cols > lanes * lanes:
        n2 = -(-n1 // lanes)
        end = max(end, _up(n1, block) + _up(2 * n2, block) + max(n2, 2))
    return end * call.tmp.dtype.size, src.valid_rows


def _with_small_row_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    call = changed(call, "src", dtype=f32, cols=512, valid_cols=512, rows=16, valid_rows=4)
    if hasattr(call, "dst_val"):
        call = changed(changed(call, "dst_val", dtype=f32), "dst_idx", dtype=u32)
    yield changed(call, "tmp", dtype=f32, rows=1, cols=64, valid_rows=1, valid_cols=64)


_TMP = Scratch("tmp", used_on=A2A3, doc="working space of the A2/A3; the A5 and cpu do not use it")
_NAN_NOTES = (
    "Among equals the first wins.",
    "A NaN: on the A2/A3 the first of a row wins; the A5 leaves out each register (64 or 128 elements) that has one, and "
    "gives index 0 and the lowest value if nothing else is left; cpu compares one by one, and no comparison holds.",
)


def _row_types(code: str, result: str) -> tuple[Rule, ...]:
    said = "index" if result == "dst" else "indices"
    return (
        dtype("src", a2a3=(f32, f16, i32, i16), a5=(f32, f16, bf16, i32, u32, i16, u16), cpu=EVERY),
        row_major("src"),
        _not_a_column(result),
        in_space(Space.UB, result, "src", "tmp"),
        _NOT_EMPTY,
        refuse("L007", f"the {said} and values have the valid rows of src", _other_rows, breaks=_with_other_rows,
               profiles=("cpu",), mend="Give them the valid rows of src."),
        finding(f"{code}-1", f"the {said} and values have the valid rows of src", _other_rows, breaks=_with_other_rows,
                profiles=CHIPS, mend="Give them the valid rows of src.",
                why="The library checks it in debug builds only, and takes the rows of src."),
        finding(f"{code}-2", "tmp holds what is written to it", _tmp_too_small(_row_need), breaks=_with_small_row_tmp,
                profiles=A2A3, mend="Give tmp the type and shape of src.",
                why="Rows longer than 256 bytes are reduced in two or three steps, whose results lie in tmp; the library "
                "checks no size."),
    )  # fmt: skip


def _in_column(tile: Tile, rows: int) -> Region:
    return Region(tile.space, tile.address, tile.dtype.size, ((rows, tile.row_bytes),), tile.dtype.numpy)


def _rows_found(
    call: SimpleNamespace, bits: np.ndarray, profile: Profile, largest: bool
) -> tuple[np.ndarray, np.ndarray]:
    kind = call.src.dtype
    if profile.name == "a5":
        return _a5_rows(bits, kind, largest)
    if profile.name == "a2a3":
        where = first_of_registers(bits, kind, largest)
    else:
        where = first_by_comparison(bits.T, kind, largest)
    return where, bits[np.arange(len(bits)), where]


class _OfRows:
    values = "bits"
    largest = True

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """Column 0 of the results, the valid region of src, what is written of tmp."""
        numbers = {o.name: n for n, o in enumerate(self.inputs)}
        rows = call.src.valid_rows
        touched = [(numbers[n], int(Mode.WRITE), _in_column(getattr(call, n), rows)) for n in _outs(call)]
        touched.append((numbers["src"], int(Mode.READ), call.src.region()))
        shape = np.zeros((rows, call.src.valid_cols), call.src.dtype.bits_dtype)
        written = _row_scratch(call, profile, shape, self.largest)
        return [*touched, *((numbers["tmp"], int(Mode.WRITE), region) for region, _ in written)]

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """Values, indices, and what tmp holds."""
        bits = np.ascontiguousarray(arrays[0])
        where, best = _rows_found(call, bits, profile, self.largest)
        results = {"dst_val": best, "dst_idx": where, "dst": where}
        found = [results[n].astype(getattr(call, n).dtype.bits_dtype)[:, None] for n in _outs(call)]
        return (*found, *(part for _, part in _row_scratch(call, profile, bits, self.largest)))


def _define_rows(name: str, largest: bool) -> None:
    word = "largest" if largest else "smallest"
    title = name.upper()
    members: dict[str, Any] = {
        "largest": largest,
        "notes": (
            *_NAN_NOTES,
            "A2/A3: with up to 64 elements a row (half: 128) the values and indices go through tmp, pair after pair, and "
            "an index alone does not; longer rows have the place in each repeat at the start of their row of tmp, the "
            "values behind it. The scalar unit puts the index together; the flags are part of the instruction.",
        ),
        "assumed": ("The A2/A3 take NaN and signed zeros as the A5's vcmax and vcmin do, whose pages alone tell.",),
        "sources": (
            f"pto-isa docs/isa/{title}",
            "pto-isa include/pto/npu/a2a3/TRowReduceIdxOps.hpp, include/pto/npu/a5/TRowReduceIdx.hpp, "
            "include/pto/cpu/TReduceIdx.hpp",
        ),
    }
    index = {
        **members, "__doc__": f"Write the column of the {word} element of each row of ``src`` to column 0 of ``dst``.",
        "operands": (Out("dst", doc="the indices"), In("src"), _TMP),
        "rules": (*_row_types(title, "dst"), _index_types(lambda call, profile: _WORDS)),
    }  # fmt: skip
    both = {
        **members,
        "__doc__": f"Write the {word} element of each row of ``src``, and its column, to column 0 of two tiles.",
        "operands": (
            Out("dst_val", doc="the elements"), Out("dst_idx", doc="their columns"), In("src"), _TMP,
        ),
        "rules": (
            *_row_types(title, "dst_idx"), same_dtype("src", "dst_val"), _not_a_column("dst_val"),
            in_space(Space.UB, "dst_val"), _index_types(_beside_row_values),
        ),
    }  # fmt: skip
    for body in (both, index):
        tile_instruction(name, pipe=Pipe.V)(type(title, (_OfRows,), body))


_define_rows("trowargmax", True)
_define_rows("trowargmin", False)


# Columns


def _compared_as(kind: DType, profile: Profile) -> DType:
    """The A2/A3 compare unsigned integers as floats of their width."""
    if profile.name == "a2a3" and kind.kind != "f":
        return f16 if kind.size == 2 else f32
    return kind


def _a2a3_columns(bits: np.ndarray, kind: DType, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """(indices, best values' bits): rows one after the other; what is not kept by >= (<=) takes the new index."""
    values = _numbers(bits, kind)
    best, where = values[0], np.zeros(values.shape[1], np.int64)
    for number, line in enumerate(values[1:], start=1):
        keeps = best >= line if largest else best <= line
        where = np.where(keeps, where, number)
        best = float_maximum(best, line) if largest else float_minimum(best, line)
    return where, best.view(np.uint32) if kind is f32 else narrow_f16(best)


def _as_floats(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    kind = call.src.dtype
    return f"src has type {kind.name}; the library compares its bits as floats" if kind.kind == "u" else None


def _unsigned(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    call = changed(changed(call, "src", dtype=u32), "tmp", dtype=u32)
    if hasattr(call, "dst_val"):
        call = changed(changed(call, "dst_val", dtype=u32), "dst_idx", dtype=u32)
    yield call


def _rounds(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.src.dtype.size != 2 or hasattr(call, "dst_val") or call.src.valid_rows <= 2049:
        return None
    return f"{call.src.valid_rows} rows; indices above 2048 are rounded on their way through half"


def _with_many_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    call = changed(call, "src", dtype=f16, rows=2064, cols=16, valid_rows=2064, valid_cols=16)
    yield changed(changed(call, "tmp", dtype=f16), "dst", valid_cols=16)


def _col_need(call: SimpleNamespace, profile: Profile) -> tuple[int, int]:
    """Bytes of tmp that a column reduction writes."""
    src = call.src
    size, lanes = src.dtype.size, REGISTER_BYTES // src.dtype.size
    gap = lanes if src.valid_cols >= lanes else _up(src.valid_cols, _BLOCK // size)
    parts = 3 if size == 2 and not hasattr(call, "dst_val") else 2
    return ((parts - 1) * gap + min(src.valid_cols, lanes)) * size, 1


def _with_small_col_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "tmp", rows=1, valid_rows=1, cols=32, valid_cols=32)


def _other_columns(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    for name in _outs(call):
        tile = getattr(call, name)
        if (tile.valid_rows, tile.valid_cols) != (1, call.src.valid_cols):
            return f"{name} has {tile.valid_rows}x{tile.valid_cols} valid; src has {call.src.valid_cols} valid columns"
    return None


def _with_other_columns(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in _outs(call):
        yield changed(call, name, valid_cols=call.src.valid_cols - 1)


class _OfColumns:
    values = "bits"
    largest = True

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """Row 0 of the results, the valid region of src, what is written of tmp."""
        numbers = {o.name: n for n, o in enumerate(self.inputs)}
        columns = call.src.valid_cols
        touched = [(numbers[n], int(Mode.WRITE), getattr(call, n).region(1, columns)) for n in _outs(call)]
        touched.append((numbers["src"], int(Mode.READ), call.src.region()))
        return [*touched, *((numbers["tmp"], int(Mode.WRITE), r) for r in self._scratch(call, profile))]

    def _scratch(self, call: SimpleNamespace, profile: Profile) -> list[Region]:
        if profile.name != "a2a3" or call.tmp is None:
            return []
        src = call.src
        kind, lanes = src.dtype, REGISTER_BYTES // src.dtype.size
        gap = lanes if src.valid_cols >= lanes else _up(src.valid_cols, _BLOCK // kind.size)
        parts = 3 if kind.size == 2 and not hasattr(call, "dst_val") else 2
        used = min(src.valid_cols, lanes) * kind.size
        return [
            Region(call.tmp.space, call.tmp.address + part * gap * kind.size, used, (), kind.bits_dtype)
            for part in range(parts)
        ]

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """Values, indices, and what tmp holds: the last row's number, the best values, indices as half."""
        bits, kind = np.ascontiguousarray(arrays[0]), call.src.dtype
        if profile.name == "a2a3":
            where, best = _a2a3_columns(bits, _compared_as(kind, profile), self.largest)
        else:
            where = first_by_comparison(bits, kind, self.largest)
            best = bits[where, np.arange(bits.shape[1])]
        halves = f32_to_f16_bits(int_to_f32(where.astype(np.int32), ROUND), ROUND, False)
        if profile.name == "a2a3" and kind.size == 2 and not hasattr(call, "dst_val"):
            where = f16_bits_to_f32(halves).astype(np.int64)
        results = {"dst_val": best, "dst_idx": where, "dst": where}
        found = [results[n].astype(getattr(call, n).dtype.bits_dtype)[None] for n in _outs(call)]
        lanes = REGISTER_BYTES // kind.size
        number = np.full(len(where), len(bits) - 1, bits.dtype)
        left = [_last_lanes(part.astype(bits.dtype), lanes) for part in (number, best, halves)]
        return (*found, *left[: len(self._scratch(call, profile))])


def _last_lanes(line: np.ndarray, lanes: int) -> np.ndarray:
    """What a scratch register holds after its parts went through it: the last part, and beyond it the one before."""
    held = line[:lanes].copy()
    for start in range(lanes, len(line), lanes):
        part = line[start : start + lanes]
        held[: len(part)] = part
    return held


def _define_columns(name: str, largest: bool) -> None:
    word, title = "largest" if largest else "smallest", name.upper()

    def rules(result: str) -> tuple[Rule, ...]:
        b8 = (i8, u8) if result == "dst" else ()
        said = "the results are one row, with src's valid columns"
        return (
            dtype("src", a2a3=(f32, f16, u32, u16), a5=(f32, f16, bf16, i32, u32, i16, u16, *b8), cpu=EVERY),
            row_major(result, "src"),
            in_space(Space.UB, result, "src", "tmp"),
            _NOT_EMPTY,
            refuse("L003", "tmp has the element type of src",
                   lambda d, call, p: None if call.tmp is None or call.tmp.dtype is call.src.dtype else
                   f"tmp has type {call.tmp.dtype.name}, src {call.src.dtype.name}",
                   profiles=A2A3, breaks=lambda call, p: iter((changed(call, "tmp", dtype=i32),))),
            refuse("L007", said, _other_columns, breaks=_with_other_columns, profiles=("cpu",)),
            finding(f"{title}-1", said, _other_columns, breaks=_with_other_columns, profiles=CHIPS,
                    why="The library checks it in debug builds only.", mend="Give them one row and src's valid columns."),
            finding(f"{title}-2", "tmp holds what is written to it", _tmp_too_small(_col_need), breaks=_with_small_col_tmp,
                    profiles=A2A3, mend="Give tmp three times 256 bytes, or the shape of src.",
                    why="tmp has the row's number, the best values (the manual leaves them out for float) and for half the "
                    "indices, side by side; the library checks no size."),
            finding(f"{title}-3", "elements are floats", _as_floats, breaks=_unsigned, profiles=A2A3,
                    why="The A2/A3's library casts unsigned integers to floats of their width to compare them.",
                    mend="Use numbers below 0x7F800000 (0x7C00), whose order is the same, or convert them."),
        )  # fmt: skip

    members: dict[str, Any] = {
        "largest": largest,
        "notes": (
            "Among equals the first wins. The A2/A3 take the new row where the comparison with the best so far does not "
            "hold, so that after a NaN the last row wins; on the A5 and cpu no comparison with a NaN holds.",
            "A2/A3, half, index alone: indices go through half, and above 2048 are rounded.",
        ),
        "sources": (
            f"pto-isa docs/isa/{title}",
            "pto-isa include/pto/npu/a2a3/TColReduceIdx.hpp, include/pto/npu/a5/TColReduceIdx.hpp, "
            "include/pto/cpu/TReduceIdx.hpp",
        ),
    }
    rounds = finding(
        f"{title}-4", "src has at most 2049 rows (half, index alone)", _rounds, breaks=_with_many_rows, profiles=A2A3,
        why="The index becomes int32 by way of half.", mend="Ask for the values too, or reduce part by part.",
    )  # fmt: skip
    index = {
        **members, "__doc__": f"Write the row of the {word} element of each column of ``src`` to ``dst``.",
        "operands": (Out("dst", doc="the indices, one row"), In("src"), _TMP),
        "rules": (*rules("dst"), _index_types(lambda call, profile: _WORDS), rounds),
    }  # fmt: skip
    both = {
        **members,
        "__doc__": f"Write the {word} element of each column of ``src``, and its row, to two tiles of one row.",
        "operands": (Out("dst_val", doc="the elements"), Out("dst_idx", doc="their rows"), In("src"), _TMP),
        "rules": (
            *rules("dst_idx"), same_dtype("src", "dst_val"), row_major("dst_val"), in_space(Space.UB, "dst_val"),
            _index_types(_beside_column_values),
        ),
    }  # fmt: skip
    for body in (both, index):
        tile_instruction(name, pipe=Pipe.V)(type(title, (_OfColumns,), body))


_define_columns("tcolargmax", True)
_define_columns("tcolargmin", False)


# Two tiles


def _shape(tile: Tile) -> tuple[int, int]:
    return tile.valid_rows, tile.valid_cols


def _part_problem(call: SimpleNamespace) -> str | None:
    """What is wrong with the valid regions, or None."""
    for value, index in (("dst", "dst_idx"), ("src0", "src0_idx"), ("src1", "src1_idx")):
        if _shape(getattr(call, value)) != _shape(getattr(call, index)):
            return "{} has {}x{} valid, {} {}x{}".format(
                value, *_shape(getattr(call, value)), index, *_shape(getattr(call, index))
            )
    dst, a, b = _shape(call.dst), _shape(call.src0), _shape(call.src1)
    if not all(dst):
        return f"dst has {dst[0]}x{dst[1]} valid"
    if dst != (max(a[0], b[0]), max(a[1], b[1])) or dst not in (a, b):
        return f"dst has {dst[0]}x{dst[1]} valid, src0 {a[0]}x{a[1]}, src1 {b[0]}x{b[1]}; one of them must be dst's"
    return None


def _bad_shapes(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return _part_problem(call)


def _with_bad_shapes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src0_idx", valid_cols=call.src0_idx.valid_cols - 1)
    yield changed(
        changed(call, "dst", valid_rows=call.dst.valid_rows - 1), "dst_idx", valid_rows=call.dst.valid_rows - 1
    )


def _half_lanes(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    columns = min(call.src0.valid_cols, call.src1.valid_cols)
    if call.dst.dtype.size != 2 or call.dst_idx.dtype.size != 4 or columns <= 64:
        return None
    return f"half with indices of 32 bits has {columns} columns; the library writes the first 64 of each 128"


def _with_half_lanes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("dst", "src0", "src1"):
        call = changed(call, name, dtype=f16, cols=128, valid_cols=128)
        call = changed(call, f"{name}_idx", dtype=u32, cols=128, valid_cols=128)
    yield call


def _bad_index(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    value, index = call.dst.dtype, call.dst_idx.dtype
    if index in _WORDS or (value is f16 and index in _HALVES):
        return None
    return f"indices have type {index.name}; beside {value.name} they are i32 or u32{', i16 or u16' if value is f16 else ''}"


def _with_bad_index(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("dst_idx", "src0_idx", "src1_idx"):
        call = changed(call, name, dtype=f32)
    yield call


class _OfTwo:
    values = "bits"
    largest = True

    def _does_nothing(self, call: SimpleNamespace, profile: Profile) -> bool:
        return bool(profile.name == "a2a3" and _part_problem(call)) or not all(_shape(call.dst))

    def _copied(self, call: SimpleNamespace, profile: Profile) -> list[tuple[str, int, int, int]]:
        """(suffix, first row, rows, bytes a row) that are copied from the larger source first, on the A2/A3."""
        small = min(call.src0.valid_rows, call.src1.valid_rows), min(call.src0.valid_cols, call.src1.valid_cols)
        large = _larger(call)
        rows, cols = _shape(getattr(call, large))
        if profile.name != "a2a3" or small == (rows, cols):
            return []
        first = small[0] if small[1] == cols else 0
        copies = []
        for suffix in ("", "_idx"):
            src, dst = getattr(call, large + suffix), getattr(call, "dst" + suffix)
            whole = dst.cols == src.cols
            nbytes = dst.row_bytes if whole else _up(cols * dst.dtype.size, _BLOCK)
            copies.append((suffix, first, rows - first, nbytes))
        return copies

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """What is written of the destinations; both sources' valid regions."""
        if self._does_nothing(call, profile):
            return []
        numbers = {o.name: n for n, o in enumerate(self.inputs)}
        touched = []
        for suffix in ("", "_idx"):
            name = "dst" + suffix
            touched.append((numbers[name], int(Mode.WRITE), getattr(call, name).region()))
            for source in ("src0", "src1"):
                touched.append((numbers[source + suffix], int(Mode.READ), getattr(call, source + suffix).region()))
        for suffix, first, rows, nbytes in self._copied(call, profile):
            large, dst = getattr(call, _larger(call) + suffix), getattr(call, "dst" + suffix)
            for tile, number, mode in (
                (dst, numbers["dst" + suffix], Mode.WRITE),
                (large, numbers[_larger(call) + suffix], Mode.READ),
            ):
                start = tile.address + first * tile.row_bytes
                region = Region(tile.space, start, nbytes, ((rows, tile.row_bytes),), dst.dtype.bits_dtype)
                touched.append((number, int(mode), region))
        return touched

    def perform(self: Any, core: Any, args: Any, touches: list[Any]) -> None:
        """Copy what is copied, then choose."""
        call, profile = self.call(args), core.profile
        if self._does_nothing(call, profile):
            return

        def whole(name: str) -> np.ndarray:
            tile = getattr(call, name)
            view: np.ndarray = core.view(tile.region(*_shape(tile), tile.dtype.bits_dtype))
            return view

        a, b, dst = whole("src0").copy(), whole("src1").copy(), whole("dst")
        ia, ib, idx = whole("src0_idx").copy(), whole("src1_idx").copy(), whole("dst_idx")
        copies = [(t.region, t.mode) for t in touches[6:]]
        for (written, _), (read, _) in zip(copies[::2], copies[1::2], strict=True):
            core.view(written)[...] = core.view(read).copy()
        if profile.name != "a2a3":
            for suffix, result in (("", dst), ("_idx", idx)):
                tile = getattr(call, _larger(call) + suffix)
                result[...] = core.view(tile.region(*result.shape, tile.dtype.bits_dtype)).copy()
        rows, cols = min(a.shape[0], b.shape[0]), min(a.shape[1], b.shape[1])
        first = self._first(
            _numbers(a[:rows, :cols], call.dst.dtype), _numbers(b[:rows, :cols], call.dst.dtype), profile
        )
        value_lanes, index_lanes = np.ones(cols, bool), np.ones(cols, bool)
        if profile.name == "a2a3" and call.dst.dtype.size == 2 and call.dst_idx.dtype.size == 4:
            column = np.arange(cols)
            index_lanes = column % 128 < 64
            value_lanes = index_lanes | (column >= cols // 128 * 128)
        chosen, chosen_idx = (
            np.where(first, a[:rows, :cols], b[:rows, :cols]),
            np.where(first, ia[:rows, :cols], ib[:rows, :cols]),
        )
        np.copyto(dst[:rows, :cols], chosen, where=value_lanes)
        np.copyto(idx[:rows, :cols], chosen_idx, where=index_lanes)

    def _first(self, a: np.ndarray, b: np.ndarray, profile: Profile) -> np.ndarray:
        """Where src0's element is taken."""
        with np.errstate(invalid="ignore"):
            if profile.name == "a2a3":
                return a >= b if self.largest else a <= b
            if profile.name == "a5":
                return ~(b > a) if self.largest else ~(b < a)
            return a > b if self.largest else a < b


def _larger(call: SimpleNamespace) -> str:
    a, b = _shape(call.src0), _shape(call.src1)
    return "src1" if a[0] < b[0] or a[1] < b[1] else "src0"


def _define_parts(name: str, largest: bool) -> TileInstruction:
    word, title = "larger" if largest else "smaller", name.upper()
    values, indices = ("dst", "src0", "src1"), ("dst_idx", "src0_idx", "src1_idx")
    said = "values and indices have one valid region each; dst's is that of src0 or src1, the other lies within"
    body = {
        "largest": largest,
        "__doc__": f"""Take the {word} of two elements, and its index; where only one source is valid, that one's.

        Sources may be valid in fewer rows or columns than dst, one of them at a time.
        """,
        "operands": (Out("dst"), In("src0"), In("src1"), Out("dst_idx"), In("src0_idx"), In("src1_idx")),
        "rules": (
            dtype("dst", a2a3=(f32, f16), a5=(f32, f16), cpu=(f32, f16)),
            same_dtype(*values),
            same_dtype(*indices),
            refuse("L002", "indices are integers of 32 bits (beside half: or of 16)", _bad_index, breaks=_with_bad_index),
            row_major(*values, *indices),
            in_space(Space.UB, *values, *indices),
            refuse("L007", said, _bad_shapes, breaks=_with_bad_shapes, profiles=("cpu",)),
            finding(f"{title}-1", said, _bad_shapes, breaks=_with_bad_shapes, profiles=CHIPS,
                    why="The A2/A3's library returns and writes nothing; the A5's checks it in debug builds only.",
                    mend="Set the valid regions alike."),
            finding(f"{title}-2", "half with indices of 32 bits has at most 64 columns", _half_lanes, breaks=_with_half_lanes,
                    profiles=A2A3, mend="Use indices of 16 bits, or tiles of 64 columns.",
                    why="The library works on 128 columns at a time, with a vector mask of 64 lanes."),
        ),
        "notes": (
            "Equal elements: src0's on the chips, src1's on cpu (as in the public simulator). With a NaN in either: src1's "
            "on the A2/A3 and cpu, src0's on the A5.",
            "A2/A3: where a source is smaller, the other is copied first, in whole 32-byte blocks (whole rows where both "
            "tiles have the same columns).",
        ),
        "sources": (
            f"pto-isa docs/isa/{title}",
            "pto-isa include/pto/npu/a2a3/TPartArgOp.hpp, include/pto/npu/a5/TPartArgBinOps.hpp, "
            "include/pto/cpu/TPartArgCommon.hpp",
        ),
    }  # fmt: skip
    return tile_instruction(name, pipe=Pipe.V)(type(title, (_OfTwo,), body))


_define_parts("tpartargmax", True)
_define_parts("tpartargmin", False)
