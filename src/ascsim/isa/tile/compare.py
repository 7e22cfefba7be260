"""TCMP, TCMPS, TSEL, TSELS: comparison into packed bits, and selection by them.

A bit stands for an element: the lowest bit of a byte for the first of eight. Rows of the mask begin where rows of its
tile do.

Sources: pto-isa docs/isa/TCMP, TCMPS, TSEL, TSELS; include/pto/npu/a2a3 and a5 TCmp.hpp, TCmps.hpp, TSel.hpp, TSels.hpp;
include/pto/npu/a5/Int64Binary.hpp; include/pto/cpu TCmp.h, TCmps.hpp, TSel.hpp, TSelS.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import (
    A2A3,
    A5,
    CHIPS,
    Choice,
    Definition,
    In,
    Out,
    Scalar,
    Scratch,
    lanes_in,
    tile_instruction,
)
from ascsim.isa.rules import (
    Rule,
    dtype,
    finding,
    in_space,
    refuse,
    row_major,
    same_dtype,
    same_valid_shape,
    unchecked_valid_shape,
)
from ascsim.isa.semantics import arithmetic
from ascsim.isa.tile.elementwise import EVERY, WORDS_OF_INT64, changed, element_of, first_64
from ascsim.machine.core import Core, Touch
from ascsim.machine.dtypes import DType, bf16, f16, f32, i8, i16, i32, u8, u16, u32
from ascsim.machine.operands import REGISTER_BYTES, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

_BYTE = np.dtype(np.uint8)


class CmpMode(IntEnum):
    """The comparisons, with PTO's numbers and PTOAS' names."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    EQUAL = 0
    NOT_EQUAL = 1
    LESS_THAN = 2
    LESS_EQUAL = 3
    GREATER_THAN = 4
    GREATER_EQUAL = 5


_COMPARISONS = {
    CmpMode.EQ: arithmetic.equal, CmpMode.NE: arithmetic.not_equal, CmpMode.LT: arithmetic.less,
    CmpMode.LE: arithmetic.less_equal, CmpMode.GT: arithmetic.greater, CmpMode.GE: arithmetic.greater_equal,
}  # fmt: skip


def packed(bits: np.ndarray, nbytes: int) -> np.ndarray:
    """Rows of 0 and 1 as rows of ``nbytes`` bytes."""
    made = np.zeros((bits.shape[0], nbytes), np.uint8)
    whole = np.packbits(bits.astype(bool), axis=1, bitorder="little")[:, :nbytes]
    made[:, : whole.shape[1]] = whole
    return made


def row_bytes_written(kind: DType, columns: int, profile: Profile) -> int:
    """Bytes of a row of bits that a chip's library writes: one mask register, or as many bits as a repeat has lanes."""
    if profile.name == "a2a3":
        return -(-columns * kind.size // REGISTER_BYTES) * (REGISTER_BYTES // kind.size // 8)
    if profile.name == "a5":
        if kind.size == 8:
            return 32
        lanes = 256 if kind.size == 1 else 128
        return -(-columns // lanes) * (lanes // 8)
    return -(-columns // 8)


# Rules


def _no_mode(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    mode = int(call.cmp_mode)
    return None if mode in set(CmpMode) else f"cmpMode is {mode}; the comparisons are 0 (EQ) to 5 (GE)"


def _with_no_mode(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "cmp_mode": 6})


def _only_equal(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    mode = CmpMode(int(call.cmp_mode))
    if _first_source(call).dtype is not i32 or mode in (CmpMode.EQ, CmpMode.NE):
        return None
    return f"compares i32 by {mode.name}; the library compares 32-bit integers for equality, whatever the mode"


def _with_order_of_i32(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in _sources(call):
        call = changed(call, name, dtype=i32)
    yield SimpleNamespace(**{**vars(call), "cmp_mode": CmpMode.LT})


def _as_half(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    kind = _first_source(call).dtype
    return f"compares {kind.name}; the library compares its bits as half" if kind in (i16, u16) else None


def _with_i16(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in _sources(call):
        call = changed(call, name, dtype=i16)
    yield call


def _narrow(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src, dst = _first_source(call), call.dst
    written, room = row_bytes_written(src.dtype, src.valid_cols, profile), dst.row_bytes
    if written <= room or not src.valid_rows:
        return None
    return f"rows of dst have {room} bytes, and {written} of each are written"


def _with_narrow(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in _sources(call):
        call = changed(call, name, dtype=f32, cols=512, valid_cols=512)
    yield changed(call, "dst", dtype=u8, cols=32, valid_cols=32)


def _other_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src, dst = _first_source(call), call.dst
    return (
        None
        if dst.valid_rows == src.valid_rows
        else f"dst has {dst.valid_rows} valid rows, the source {src.valid_rows}"
    )


def _with_other_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_rows=call.dst.valid_rows - 1)


def _other_strides(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src0, src1 = call.src0, call.src1
    if src0.cols == src1.cols or src0.dtype.size != 4 or src0.valid_rows < 2:
        return None
    return (
        f"src0 has {src0.cols} columns and src1 {src1.cols}; the library steps from row to row of both by src0's for even "
        "blocks of 64 columns, by src1's for odd ones"
    )


def _with_other_strides(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    call = changed(call, "src0", dtype=f32, cols=256)
    yield changed(call, "src1", dtype=f32, cols=128)


def _sources(call: SimpleNamespace) -> list[str]:
    return [n for n in ("src0", "src1", "src") if isinstance(getattr(call, n, None), Tile)]


def _first_source(call: SimpleNamespace) -> Tile:
    tile: Tile = getattr(call, _sources(call)[0])
    return tile


_MASKS = (u8, i8)
_ANY_MASK = (u8, i8, u16, i16, u32, i32)


def _rules(name: str, a2a3: tuple[DType, ...], *sources: str) -> tuple[Rule, ...]:
    first = sources[0]
    return (
        dtype(first, a2a3=a2a3, a5=EVERY, cpu=EVERY),
        *((same_dtype(*sources),) if len(sources) > 1 else ()),
        dtype("dst", a2a3=_MASKS, a5=_ANY_MASK, cpu=_ANY_MASK),
        row_major("dst", *sources),
        in_space(Space.UB, "dst", *sources),
        refuse("L006", "cmpMode is a CmpMode", _no_mode, breaks=_with_no_mode, mend="Use CmpMode::EQ and its kin."),
        refuse("L007", "dst has the valid rows of the source", _other_rows, breaks=_with_other_rows, profiles=("cpu",)),
        finding(f"{name}-1", "dst has the valid rows of the source", _other_rows, breaks=_with_other_rows,
                profiles=CHIPS, why="The library checks it in debug builds only, and takes the rows of the source.",
                mend="Give dst the valid rows of the source."),
        finding(f"{name}-2", "rows of dst hold the bits that are written", _narrow, breaks=_with_narrow,
                profiles=CHIPS, mend="Make dst's rows wider: one byte for 8 columns, rounded up to the register.",
                why="Chips write whole mask registers, row by row; what runs over is in the next row."),
        finding(f"{name}-3", "32-bit integers are compared for EQ or NE", _only_equal, breaks=_with_order_of_i32,
                profiles=A2A3, why="The A2/A3 have no other comparison of integers; the library uses EQ without a word.",
                mend="Convert to float first, or take EQ or NE."),
        first_64(f"{name}-4"),
    )  # fmt: skip


_BITS = (
    "A bit an element: the lowest bit of a byte is the first of eight. Each row of bits begins at a row of dst.",
    "A2/A3 compare whole repeats of 256 bytes, and write 8 bytes (half: 16) for each: bits beyond the valid columns come "
    "of what lies there. For NE they compare for equality and turn every bit of dst's rows.",
    "The A5 writes 16 bytes for 128 columns of 16 or 32 bits, 32 for 256 columns of 8 bits, 32 a row for 64 bits; bits "
    "beyond the valid columns are 0.",
)
_CMP_ORDER = "No comparison with a NaN holds but NE; -0 equals +0 (the pages of the A5's comparisons)."
_MODE = Choice("cmp_mode", CmpMode, optional=True, default=CmpMode.EQ, asm_name="cmpMode", cpp_given=True,
               doc="the comparison")  # fmt: skip


class _Comparing:
    """What comparisons share: they see bytes beyond the valid columns, which no access of the trace tells of."""

    values = "widen"
    as_stream = False
    """On cpu: bytes one after the other in the valid region of dst, an element each; else rows of bits."""

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The bytes of dst that are written, the valid region of the sources."""
        src, dst = _first_source(call), call.dst
        rows, cols = src.valid_rows, src.valid_cols
        numbers = {o.name: n for n, o in enumerate(self.inputs)}  # type: ignore[attr-defined]
        reads = []
        for name in _sources(call):
            shape = (1, 1) if name == "src1" and self.first_only else (rows, cols)  # type: ignore[attr-defined]
            reads.append((numbers[name], int(Mode.READ), getattr(call, name).region(*shape)))
        if not profile.is_chip:
            return [(0, Mode.WRITE, dst.region(dst.rows, dst.cols, _bytes_of(dst))), *reads]
        length = row_bytes_written(src.dtype, cols, profile)
        wide = [(0, int(Mode.WRITE), Region(dst.space, dst.address, length, ((rows, dst.row_bytes),), _BYTE))]
        if profile.name == "a2a3" and call.cmp_mode == CmpMode.NE:
            turned = rows * dst.cols // 2 * 2
            wide.append((0, int(Mode.WRITE), Region(dst.space, dst.address, turned, (), _BYTE)))
        return [*wide, *reads]

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Compare, pack, write."""
        call = self.call(args)  # type: ignore[attr-defined]
        profile: Profile = core.profile
        src = _first_source(call)
        if not src.valid_rows or not src.valid_cols:
            return
        with np.errstate(invalid="ignore"):
            bits = self._bits(core, call, src)
        if not profile.is_chip:
            self._write_portable(core, call, bits)
            return
        written = core.view(touches[0].region)
        turns = profile.name == "a2a3" and call.cmp_mode == CmpMode.NE
        for row, line in enumerate(packed(bits, written.shape[1])):
            written[row] = line
        if turns:
            rows = core.view(touches[1].region)
            rows[...] = ~rows

    def _bits(self, core: Core, call: SimpleNamespace, src: Tile) -> np.ndarray:
        """0 and 1 for every element that the profile compares."""
        profile, mode, kind = core.profile, CmpMode(int(call.cmp_mode)), src.dtype
        columns = src.valid_cols
        if profile.name == "a2a3":
            columns = row_bytes_written(kind, columns, profile) * 8
            mode = CmpMode.EQ if mode == CmpMode.NE or kind is i32 else mode
        elif profile.name == "a5" and kind.size == 8:
            columns = min(columns, WORDS_OF_INT64)
        compared = f16 if profile.name == "a2a3" and kind in (i16, u16) else kind
        given = [self._lanes(core, call, name, columns, compared) for name in _sources(call)]
        if "scalar" in vars(call):
            element = element_of(call.scalar, kind.numpy).view(compared.numpy)
            given.append(lanes_in(element, "widen", compared))
        bits: np.ndarray = _COMPARISONS[mode](*given)
        return bits

    def _lanes(self, core: Core, call: SimpleNamespace, name: str, columns: int, kind: DType) -> np.ndarray:
        tile: Tile = getattr(call, name)
        rows = _first_source(call).valid_rows

        def lines(stride: int) -> np.ndarray:
            region = Region(tile.space, tile.address, columns * kind.size, ((rows, stride),), kind.numpy)
            return core.view(region)

        found = lines(tile.row_bytes)
        if name == "src1" and self.first_only and not (core.profile.name == "a5" and kind.size == 8):  # type: ignore[attr-defined]
            found = found[:1, :1]
        elif len(_sources(call)) == 2 and core.profile.name == "a5" and kind.size == 4 and not self.first_only:  # type: ignore[attr-defined]
            is_odd = (np.arange(columns) // 64) % 2 == 1
            found = np.where(is_odd, lines(call.src1.row_bytes), lines(call.src0.row_bytes))
        return lanes_in(found, "widen", kind)

    def _write_portable(self, core: Core, call: SimpleNamespace, bits: np.ndarray) -> None:
        """The public simulator's packing, which the pages leave open: all of dst becomes 0 first."""
        dst = call.dst
        view = core.view(dst.region(dst.rows, dst.cols, _bytes_of(dst)))
        if self.as_stream:
            stream = packed(bits, _first_source(call).cols // 8).reshape(-1)[: dst.valid_rows * dst.valid_cols]
            valid = np.zeros(dst.valid_rows * dst.valid_cols, view.dtype)
            valid[: stream.size] = stream
            view[...] = 0
            view[: dst.valid_rows, : dst.valid_cols] = valid.reshape(dst.valid_rows, dst.valid_cols)
            return
        lines = np.zeros((dst.rows, dst.row_bytes), np.uint8)
        room = dst.valid_cols * dst.dtype.size
        made = packed(bits, -(-bits.shape[1] // 8))[:, :room]
        lines[: made.shape[0], : made.shape[1]] = made[: dst.rows]
        view[...] = lines.view(_bytes_of(dst)).reshape(view.shape)


def _bytes_of(tile: Tile) -> np.dtype:
    return tile.dtype.bits_dtype


_SOURCES = (
    "pto-isa include/pto/npu/a2a3/TCmp.hpp, TCmps.hpp; include/pto/npu/a5 the same; include/pto/cpu/TCmp.h, TCmps.hpp",
)
_CPU_NOTE = (
    "cpu sets all of dst to 0 first, and writes no bits beyond the valid columns of dst, as the public simulator."
)
_CPU_STREAM_NOTE = (
    "cpu sets all of dst to 0 first and fills its valid region with the bytes of all rows of the source, one after the "
    "other, an element for each byte, as the public simulator."
)


@tile_instruction("tcmp", pipe=Pipe.V, cpp_order=("dst", "src0", "src1", "cmp_mode"))
class TCmp(_Comparing):
    """Compare two tiles, element by element, and write the results as packed bits."""

    first_only = False
    operands = (Out("dst", doc="packed bits"), In("src0"), In("src1"), _MODE)
    rules = (
        *_rules("TCMP", (f32, f16, i32), "src0", "src1"),
        same_valid_shape("src0", "src1", profiles=("cpu",)),
        unchecked_valid_shape("TCMP-5", "src0", "src1", profiles=CHIPS,
                              why="The library compares what is valid in src0."),
        finding("TCMP-6", "src0 and src1 have rows of one length (32-bit elements)", _other_strides,
                breaks=_with_other_strides, profiles=A5, mend="Declare both tiles with the same columns.",
                why="The library mixes the strides of both tiles up."),
    )  # fmt: skip
    notes = (*_BITS, _CPU_NOTE)
    assumed = (_CMP_ORDER,)
    sources = ("pto-isa docs/isa/TCMP", *_SOURCES)


_COMPARED_WITH_NUMBER = (f32, f16, i32, i16, u16)
_HALF_RULE = finding(
    "TCMPS-5", "16-bit elements are half", _as_half, breaks=_with_i16, profiles=A2A3,
    why="The library casts 16-bit integers to half: the order of negative numbers turns round, 0 equals -32768, and what "
    "is a NaN as half equals nothing.", mend="Convert to float or int32 first.",
)  # fmt: skip


@tile_instruction("tcmps", pipe=Pipe.V, cpp_order=("dst", "src", "scalar", "cmp_mode"))
class TCmpS(_Comparing):
    """Compare each element of a tile with a number, and write the results as packed bits."""

    first_only = False
    as_stream = True
    operands = (
        Out("dst", doc="packed bits"), In("src", dtype="T"), Scalar("scalar", "T", doc="converted to the element type first"),
        _MODE,
    )  # fmt: skip
    rules = (*_rules("TCMPS", _COMPARED_WITH_NUMBER, "src"), _HALF_RULE)
    notes = (*_BITS, _CPU_STREAM_NOTE)
    assumed = (_CMP_ORDER,)
    sources = ("pto-isa docs/isa/TCMPS", *_SOURCES)


def _whole_compared(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.src0.dtype.size != 8:
        return None
    return "compares 64-bit elements with a tile; the library compares element by element, as TCMP does"


def _with_i64(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    from ascsim.machine.dtypes import i64

    yield changed(changed(call, "src0", dtype=i64), "src1", dtype=i64)


@tile_instruction("tcmps", pipe=Pipe.V, cpp_order=("dst", "src0", "src1", "cmp_mode"))
class TCmpSTile(_Comparing):
    """Compare each element of a tile with the first element of another, and write the results as packed bits."""

    first_only = True
    as_stream = True
    operands = (Out("dst", doc="packed bits"), In("src0"), In("src1", doc="its first element counts"), _MODE)
    rules = (
        *_rules("TCMPS", _COMPARED_WITH_NUMBER, "src0", "src1"),
        _HALF_RULE,
        finding("TCMPS-6", "elements have at most 32 bits", _whole_compared, breaks=_with_i64, profiles=A5,
                why="The A5's library uses TCMP's comparison of two tiles for 64-bit elements.",
                mend="Compare with a number, or fill a tile with it and use TCMP."),
    )  # fmt: skip
    notes = (
        *_BITS,
        _CPU_STREAM_NOTE,
        "The A2/A3 read the number with the scalar unit; the flags are part of the instruction.",
    )
    assumed = (_CMP_ORDER,)
    sources = ("pto-isa docs/isa/TCMPS", *_SOURCES)


# Selection


def _mask_bits(view: np.ndarray, columns: int) -> np.ndarray:
    return np.unpackbits(np.ascontiguousarray(view), axis=1, bitorder="little")[:, :columns]


def _mask_lines(mask: Tile, rows: int, columns: int, stride: int) -> Region:
    return Region(mask.space, mask.address, -(-columns // 8), ((rows, stride),), _BYTE)


def _other_tile(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    kinds = [(t.dtype, t.rows, t.cols) for t in (call.dst, call.src0, call.src1)]
    if kinds[0] == kinds[1] == kinds[2]:
        return None
    said = ", ".join(f"{n} is {r}x{c} {k.name}" for n, (k, r, c) in zip(("dst", "src0", "src1"), kinds, strict=True))
    return f"{said}; dst, src0 and src1 have one type"


def _with_other_tile(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src1", rows=call.src1.rows + 32)
    yield changed(
        call, "src0", dtype=next(k for k in EVERY if k is not call.src0.dtype and k.size == call.src0.dtype.size)
    )


def _wide_mask(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    mask = call.mask
    if mask.dtype.size == 1 or call.dst.valid_rows < 2 or call.dst.dtype.size == 8:
        return None
    return f"mask is {mask.dtype.name}; the library takes its columns for bytes, and finds rows {mask.cols} bytes apart"


def _with_wide_mask(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "mask", dtype=u32)


def _wide_row(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.dst.dtype.size != 1 or call.dst.valid_cols <= 256:
        return None
    return (
        f"{call.dst.valid_cols} columns of 8 bits; the library steps by 16 bytes of the mask for 256 columns, not by 32"
    )


def _with_wide_row(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("dst", "src0", "src1"):
        call = changed(call, name, dtype=u8, cols=512, valid_cols=512)
    yield call


_SELECTED = (f32, f16, bf16, i32, u32, i16, u16)
_CPU_STREAM = "cpu reads the mask's valid region as one stream of bits, as the public simulator does."
_LAYOUT = "A bit an element: the lowest bit of a byte is the first of eight; each row of bits begins at a row of mask."


@tile_instruction("tsel", pipe=Pipe.V)
class TSel:
    """Take the element of ``src0`` where the bit of ``mask`` is 1, that of ``src1`` where it is 0."""

    operands = (
        Out("dst"), In("mask", doc="packed bits, as TCMP writes them"), In("src0"), In("src1"),
        Scratch("tmp", optional=True, cpp_given=True, used_on=A2A3, doc="of the A2/A3: 16 bytes, which get the mask's address"),
    )  # fmt: skip
    values = "bits"
    over = "dst"
    rules = (
        dtype("dst", a2a3=_SELECTED, a5=EVERY, cpu=EVERY),
        refuse("L003", "dst, src0 and src1 have one tile type", _other_tile, breaks=_with_other_tile,
               mend="Declare them with the same element type, rows and columns."),
        row_major("dst", "src0", "src1"),
        in_space(Space.UB, "dst", "mask", "src0", "src1", "tmp"),
        same_valid_shape("dst", "src0", "src1", profiles=("cpu",)),
        unchecked_valid_shape("TSEL-1", "dst", "src0", "src1", profiles=CHIPS, why="The library selects what is valid in dst."),
        finding("TSEL-2", "masks are 8-bit tiles", _wide_mask, breaks=_with_wide_mask, profiles=A5,
                why="TSELS counts the bytes of a mask's element, TSEL does not.", mend="Declare the mask as uint8_t."),
        finding("TSEL-3", "8-bit elements have at most 256 columns", _wide_row, breaks=_with_wide_row, profiles=A5,
                why="From column 256 on bits of the columns before decide.", mend="Select by tiles of 256 columns."),
        first_64("TSEL-4"),
    )  # fmt: skip
    notes = (_LAYOUT, _CPU_STREAM, "Elements keep their bits.")
    sources = ("pto-isa docs/isa/TSEL", "pto-isa include/pto/npu/a2a3/TSel.hpp, include/pto/npu/a5/TSel.hpp")

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of dst in all, the bits, what is written of tmp."""
        dst, mask = call.dst, call.mask
        rows, cols = dst.valid_rows, dst.valid_cols
        if profile.name == "a5" and dst.dtype.size == 8:
            cols = min(cols, WORDS_OF_INT64)
        touched = [(0, int(Mode.WRITE), dst.region(rows, cols))]
        stride = mask.cols if profile.name == "a5" and dst.dtype.size != 8 else mask.row_bytes
        if not profile.is_chip:
            touched.append((1, int(Mode.READ), mask.region(dtype=mask.dtype.bits_dtype)))
        else:
            touched.append((1, int(Mode.READ), _mask_lines(mask, rows, cols, stride)))
        touched += [
            (2, int(Mode.READ), call.src0.region(rows, cols)),
            (3, int(Mode.READ), call.src1.region(rows, cols)),
        ]
        if call.tmp is not None and profile.name == "a2a3" and rows:
            nbytes = 16 if dst.dtype.size == 2 else 8
            touched.append(
                (4, int(Mode.WRITE), Region(call.tmp.space, call.tmp.address, nbytes, (), np.dtype(np.uint32)))
            )
        return touched

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The selected elements; tmp gets the address of the last row's bits."""
        mask, a, b = arrays
        rows, cols = a.shape
        if not profile.is_chip:
            stream = np.unpackbits(np.ascontiguousarray(mask).view(np.uint8).reshape(-1), bitorder="little")
            bits = (
                np.resize(stream, rows * cols).reshape(rows, cols) if stream.size else np.zeros((rows, cols), np.uint8)
            )
        else:
            bits = _mask_bits(mask, cols)
            if profile.name == "a5" and a.itemsize == 1:
                columns = np.arange(cols)
                bits = bits[:, columns // 256 * 128 + columns % 256]
        chosen = arithmetic.select(bits.astype(a.dtype), a, b)
        if call.tmp is None or profile.name != "a2a3" or not rows:
            return (chosen,)
        last = call.mask.address + (rows - 1) * call.mask.row_bytes
        return chosen, np.full(4 if a.itemsize == 2 else 2, last, np.uint32)


@tile_instruction("tsels", pipe=Pipe.V)
class TSelS:
    """Take the element of ``src`` where the bit of ``mask`` is 1, a number where it is 0."""

    operands = (
        Out("dst"), In("mask", doc="packed bits, as TCMP writes them"), In("src", dtype="T"),
        Scratch("tmp", optional=True, cpp_given=True, used_on=A2A3, doc="of the A2/A3: one element, which gets the number"),
        Scalar("scalar", "T", doc="converted to the element type first"),
    )  # fmt: skip
    values = "bits"
    over = "dst"
    rules = (
        dtype("dst", a2a3=_SELECTED, a5=tuple(k for k in EVERY if k is not bf16), cpu=EVERY),
        same_dtype("dst", "src"),
        row_major("dst", "src"),
        row_major("mask", profiles=A5),
        in_space(Space.UB, "dst", "mask", "src", "tmp"),
        same_valid_shape("dst", "src", profiles=("cpu",)),
        unchecked_valid_shape("TSELS-1", "dst", "src", profiles=CHIPS, why="The library selects what is valid in dst."),
        first_64("TSELS-2"),
    )  # fmt: skip
    notes = (_LAYOUT, "Elements keep their bits.")
    sources = ("pto-isa docs/isa/TSELS", "pto-isa include/pto/npu/a2a3/TSels.hpp, include/pto/npu/a5/TSels.hpp")

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of dst in both, the bits, what is written of tmp."""
        dst, mask = call.dst, call.mask
        rows, cols = dst.valid_rows, dst.valid_cols
        if profile.name == "a5" and dst.dtype.size == 8:
            cols = min(cols, WORDS_OF_INT64)
        touched = [
            (0, int(Mode.WRITE), dst.region(rows, cols)),
            (1, int(Mode.READ), _mask_lines(mask, rows, cols, mask.row_bytes)),
            (2, int(Mode.READ), call.src.region(rows, cols)),
        ]
        if call.tmp is not None and profile.name == "a2a3":
            size = dst.dtype.size
            touched.append(
                (3, int(Mode.WRITE), Region(call.tmp.space, call.tmp.address, size, (), dst.dtype.bits_dtype))
            )
        return touched

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The selected elements; tmp gets the number."""
        mask, a = arrays
        number = element_of(call.scalar, call.dst.dtype.numpy).view(a.dtype)
        bits = _mask_bits(mask, a.shape[1]).astype(a.dtype)
        chosen = arithmetic.select(bits, a, np.broadcast_to(number, a.shape))
        return (chosen, number) if call.tmp is not None and profile.name == "a2a3" else (chosen,)
