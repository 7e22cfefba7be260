"""TLOAD, TSTORE and TMOV: tiles to and from global memory, and from UB to UB.

Sources: pto-isa docs/isa/TLOAD, TSTORE, TMOV; include/pto/npu/{a2a3,a5} TLoad.hpp, TStore.hpp, TMov.hpp and the files
of include/pto/common/arch they share; include/pto/common/constants.hpp (pad values).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import A2A3, CHIPS, Choice, Definition, In, Out, Sort, tile_instruction
from ascsim.isa.rules import Rule, dtype, finding, refuse, same_valid_shape
from ascsim.isa.transfer import BLOCK, whole_blocks
from ascsim.machine.dtypes import (
    DType,
    bf16,
    f4e1m2x2,
    f4e2m1x2,
    f8e4m3,
    f8e5m2,
    f8e8m0,
    f16,
    f32,
    hif8,
    i4x2,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)  # fmt: skip
from ascsim.machine.operands import CUSTOM_PAD, GlobalTensor, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, PadValue, Pipe, SLayout, Space
from ascsim.profiles import Profile

ND, DN, NZ = 0, 1, 2
"""Layouts of a view of global memory (pto::Layout)."""
_ROWS_OF_A_BOX = 16
_PLAIN_TYPES = (i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32)
_ALL_TYPES = (*_PLAIN_TYPES, f8e4m3, f8e5m2, f8e8m0, hif8)
_PACKED = (f4e2m1x2, f4e1m2x2, i4x2)
_TYPES = {"a2a3": _PLAIN_TYPES, "a5": (*_ALL_TYPES, *_PACKED[:2]), "cpu": (*_ALL_TYPES, *_PACKED)}


class AtomicType(IntEnum):
    """What TSTORE does with what is in global memory; the numbers of PTO's AtomicType."""

    AtomicNone = 0
    AtomicAdd = 1


class STPhase(IntEnum):
    """The phase of a store from the accumulator; the numbers of PTO's STPhase."""

    Unspecified = 0
    Partial = 2
    Final = 3


# A tile and a view as lines: rows of a row-major tile, columns of a column-major one


def unsigned(kind: DType) -> np.dtype:
    """The type that moves elements of this width."""
    return np.dtype(f"u{kind.size}")


def _line_axes(tile: Tile) -> tuple[tuple[int, ...], int]:
    """Which axes of a view are a tile's lines, and which one runs along them."""
    return ((0, 1, 2, 3), 4) if tile.blayout == BLayout.ROW_MAJOR else ((0, 1, 2, 4), 3)


def _lines(tile: Tile, view: GlobalTensor, profile: Profile) -> tuple[int, int]:
    """(lines, elements along one) of a copy. Chips count the view's lines and take the valid length of the tile."""
    by_rows = tile.blayout == BLayout.ROW_MAJOR
    count, length = (tile.valid_rows, tile.valid_cols) if by_rows else (tile.valid_cols, tile.valid_rows)
    return (prod(view.shape[a] for a in _line_axes(tile)[0]) if profile.is_chip else count), length


def is_boxed(tile: Tile) -> bool:
    """True for NZ: boxes of 16 rows by 32 bytes, one column of boxes after the other."""
    return tile.blayout == BLayout.COL_MAJOR and tile.slayout == SLayout.ROW_MAJOR and tile.fractal == 512


def _box_lines(tile: Tile, view: GlobalTensor) -> Region:
    """The columns of boxes of a tile, each 32 bytes wide: the view's first two dimensions count them."""
    pitch = tile.rows * BLOCK
    columns = ((view.shape[0], view.shape[1] * pitch), (view.shape[1], pitch))
    return Region(tile.space, tile.address, tile.valid_rows * BLOCK, columns, unsigned(tile.dtype))


def _box_bursts(view: GlobalTensor, tile: Tile, profile: Profile, loads: bool) -> Region:
    """The bytes of a view in layout NZ. Chips take each column of boxes as one burst, whatever its inner strides say."""
    size, kind = view.dtype.size, unsigned(view.dtype)
    if not profile.is_chip:
        return view.region()._replace(dtype=kind)
    length = tile.valid_rows * BLOCK
    pitch = view.strides[1] * size
    if profile.name == "a2a3":  # which counts the gap behind a burst
        pitch += length - size * (tile.valid_rows * view.shape[4] if loads else prod(view.shape[2:]))
    return Region(
        Space.GM, view.address, length, ((view.shape[0], view.strides[0] * size), (view.shape[1], pitch)), kind
    )


def tile_lines(tile: Tile, view: GlobalTensor, profile: Profile, whole: bool) -> Region:
    """The lines of a tile; ``whole``: each up to whole 32-byte blocks."""
    if is_boxed(tile):
        return _box_lines(tile, view)
    lines, length = _lines(tile, view, profile)
    nbytes = length * tile.dtype.size
    step = tile.row_bytes if tile.blayout == BLayout.ROW_MAJOR else tile.col_bytes
    nbytes = whole_blocks(nbytes) if whole else nbytes
    return Region(tile.space, tile.address, nbytes, ((lines, step),), unsigned(tile.dtype))


def copies_nothing(tile: Tile, view: GlobalTensor, profile: Profile) -> bool:
    """Whether a copy of a chip has no line, or lines of no elements."""
    lines, length = (prod(view.shape), tile.valid_cols) if is_boxed(tile) else _lines(tile, view, profile)
    return not (lines and length)


def global_lines(view: GlobalTensor, tile: Tile, profile: Profile, loads: bool = True) -> Region:
    """The bytes of a view, line by line.

    Chips take each line as one burst, whatever its stride says, as long as the tile's lines. A2/A3 leave the gap behind
    a burst that the view has behind a line, so that longer bursts stand further apart.
    """
    if is_boxed(tile):
        return _box_bursts(view, tile, profile, loads)
    outer, inner = _line_axes(tile)
    size, length = view.dtype.size, view.shape[inner]
    strides = {a: view.strides[a] * size for a in outer}
    if profile.is_chip:
        length = _lines(tile, view, profile)[1]
        if profile.name == "a2a3":
            strides[outer[-1]] += (length - view.shape[inner]) * size
    dims = tuple((view.shape[a], strides[a]) for a in outer)
    if profile.is_chip or view.strides[inner] == 1 or view.shape[inner] == 1:
        return Region(Space.GM, view.address, length * size, dims, unsigned(view.dtype))
    dims = (*dims, (view.shape[inner], view.strides[inner] * size))
    return Region(Space.GM, view.address, size, dims, unsigned(view.dtype))


def pad_bits(tile: Tile) -> int:
    """The bits that a tile's PadValue stands for (PadValueMap)."""
    kind, pad = tile.dtype, int(tile.pad)
    if kind in _PACKED:
        return 0
    if pad >= CUSTOM_PAD:
        return pad & ((1 << (8 * min(kind.size, 4))) - 1)
    if pad == PadValue.ZERO or kind.size == 8 or (kind.kind == "f" and kind.size == 1):
        return 0
    if kind.kind == "f":
        infinity = {f32: 0x7F800000, f16: 0x7C00, bf16: 0x7F80}[kind]
        return infinity if pad == PadValue.MAX else infinity | 1 << (8 * kind.size - 1)
    limits = np.iinfo(kind.numpy)
    return int(limits.max if pad == PadValue.MAX else limits.min) & ((1 << (8 * kind.size)) - 1)


def _in_bytes(call: SimpleNamespace, tile: str, view: str) -> SimpleNamespace:
    """The call with tiles and views of 4-bit elements, two in a byte, as those of bytes. The A5 rounds up."""
    held, seen = getattr(call, tile), getattr(call, view)
    if held.dtype not in _PACKED:
        return call
    line = _line_axes(held)[1]
    shape = tuple(-(-n // 2) if axis == line else n for axis, n in enumerate(seen.shape))
    strides = tuple(1 if axis == line else -(-n // 2) for axis, n in enumerate(seen.strides))
    half = {"cols": -(-held.cols // 2), "valid_cols": -(-held.valid_cols // 2)}
    if held.blayout != BLayout.ROW_MAJOR:
        half = {"rows": -(-held.rows // 2), "valid_rows": -(-held.valid_rows // 2)}
    pad = PadValue.NULL if held.pad == PadValue.NULL else PadValue.ZERO
    return _with(_with(call, tile, dtype=u8, pad=pad, **half), view, dtype=u8, shape=shape, strides=strides)


def _half_bytes(held: Tile, seen: GlobalTensor, profile: Profile) -> bool:
    """Whether 4-bit elements lie in boxes, or lines of them begin or end within a byte where that is not rounded up."""
    outer, inner = _line_axes(held)
    length, pitch = (held.valid_cols, held.cols) if held.blayout == BLayout.ROW_MAJOR else (held.valid_rows, held.rows)
    steps = [seen.strides[axis] for axis in outer if seen.shape[axis] > 1]
    whole = profile.is_chip or all(n % 2 == 0 for n in (length, pitch, seen.shape[inner], *steps))
    return not whole or seen.strides[inner] != 1 or held.slayout != SLayout.NONE_BOX


# Rules


def _with(call: SimpleNamespace, name: str, **changes: object) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(call), name: replace(getattr(call, name), **changes)})


def _implemented(tile: str, view: str) -> Rule:
    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        held, seen = getattr(call, tile), getattr(call, view)
        if held.space != Space.UB:
            return f"operand {tile} lies in {held.space.name}, which is not implemented"
        if held.dtype in _PACKED and _half_bytes(held, seen, profile):
            return (
                f"{held.dtype.name} has two elements a byte; lines of {tile} or {view} are no whole bytes, or in boxes"
            )
        if (held.slayout != SLayout.NONE_BOX and not is_boxed(held)) or seen.layout not in (ND, DN, NZ):
            return "tiles with boxes other than NZ, and views with layouts other than ND, DN and NZ"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield _with(call, tile, space=Space.L1)
        if profile.name != "a2a3":
            boxes = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.ROW_MAJOR}
            yield _with(call, tile, dtype=f4e2m1x2, **boxes)
        yield _with(call, view, layout=NZ + 1)
        yield _with(call, tile, slayout=SLayout.COL_MAJOR)

    said = "the tile lies in UB, ND, DN or NZ, its lines in whole bytes"
    return refuse("L012", said, test, breaks=breaks, mend="ascsim check FILE lists all such calls of a file.")


def _same_size(tile: str, view: str) -> Rule:
    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        held, seen = getattr(call, tile).dtype, getattr(call, view).dtype
        if held.size == seen.size:
            return None
        return f"elements of {tile} ({held.name}) have {held.size} bytes, those of {view} ({seen.name}) {seen.size}"

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield _with(call, view, dtype=i8 if getattr(call, tile).dtype.size != 1 else i16)

    return refuse("L003", f"elements of {tile} and {view} have one size", test, breaks=breaks,
                  mend="Load as the type that is stored there, then convert with TCVT.")  # fmt: skip


def _same_layout(tile: str, view: str, single_line: bool) -> Rule:
    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        held, seen = getattr(call, tile), getattr(call, view)
        layout = NZ if is_boxed(held) else ND if held.blayout == BLayout.ROW_MAJOR else DN
        if layout == seen.layout or (
            single_line and (held.rows == 1 or held.cols == 1) and NZ not in (layout, seen.layout)
        ):
            return None
        names = ("ND", "DN", "NZ")
        return f"operand {tile} is {names[layout]}, but {view} is {names[seen.layout]}"

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield _with(call, view, layout=DN)
        yield _with(call, view, layout=NZ)

    but = ", or the tile has one row or column" if single_line else ""
    return refuse("L004", f"{tile} and {view} are both ND, both DN or both NZ{but}", test, breaks=breaks,
                  mend="Declare the GlobalTensor with the tile's layout.")  # fmt: skip


def boxes_of_view(tile: str, view: str) -> Rule:
    """The last two dimensions of a view in layout NZ are those of a box."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        held, seen = getattr(call, tile), getattr(call, view)
        if seen.layout != NZ:
            return None
        if held.dtype.size == 8 and profile.is_chip:
            return f"{tile} has 64-bit elements; they are moved ND or DN only"
        box = (_ROWS_OF_A_BOX, BLOCK // held.dtype.size)
        return (
            None
            if seen.shape[3:] == box
            else f"{view} has boxes of {seen.shape[3]}x{seen.shape[4]}, not {box[0]}x{box[1]}"
        )

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        boxed = _with(call, tile, blayout=BLayout.COL_MAJOR, slayout=SLayout.ROW_MAJOR)
        yield _with(boxed, view, layout=NZ)

    return refuse("L007", f"the boxes of {view} (NZ) are 16 rows by 32 bytes", test, breaks=breaks,
                  mend="Give the GlobalTensor the shape columns of boxes x 1 x rows of boxes x 16 x (32 / element bytes), "
                  "or TileShape2D with Layout::NZ.")  # fmt: skip


def _shapes(tile: str, view: str, call: SimpleNamespace) -> tuple[tuple[int, int], str]:
    """The rows and columns of a view as a tile holds them, and a sentence on both."""
    held, seen = getattr(call, tile), getattr(call, view)
    lines, inner = _line_axes(held)
    count, length = prod(seen.shape[a] for a in lines), seen.shape[inner]
    rows, cols = (count, length) if held.blayout == BLayout.ROW_MAJOR else (length, count)
    if is_boxed(held):
        rows, cols = seen.shape[2] * seen.shape[3], seen.shape[0] * seen.shape[1] * seen.shape[4]
    shape, valid = "x".join(str(n) for n in seen.shape), f"{held.valid_rows}x{held.valid_cols}"
    return (rows, cols), f"{view} has shape {shape}, {rows} rows by {cols} columns; {tile} has {valid} valid"


def _not_empty(code: str, tile: str, view: str) -> tuple[Rule, Rule]:
    """Nothing is copied of what is empty: the A2/A3's library asks for more in debug builds, the A5's never."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        held, ((rows, cols), sentence) = getattr(call, tile), _shapes(tile, view, call)
        return None if rows * cols * held.valid_rows * held.valid_cols else sentence

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield _with(call, view, shape=(*getattr(call, view).shape[:3], 0, getattr(call, view).shape[4]))

    said, mend = f"{tile} and {view} are not empty", "Leave the call out where there is nothing to copy."
    return (
        refuse("L007", said, test, breaks=breaks, mend=mend, profiles=("cpu",)),
        finding(code, said, test, breaks=breaks, mend=mend, profiles=A2A3, why="The library checks it in debug builds only."),
    )  # fmt: skip


def _same_shape(code: str, tile: str, view: str) -> tuple[Rule, Rule]:
    """The tile's valid region has the view's shape: refused by the portable semantics, unchecked by the chips."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        held, (shape, sentence) = getattr(call, tile), _shapes(tile, view, call)
        return None if (held.valid_rows, held.valid_cols) == shape else sentence

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield _with(call, tile, valid_rows=getattr(call, tile).valid_rows - 1)
        yield _with(call, tile, valid_cols=getattr(call, tile).valid_cols - 1)

    said = f"the valid region of {tile} has the shape of {view}"
    mend = "Set the tile's valid rows and columns (or the view's shape) to what is copied."
    why = (
        "The library checks it in debug builds only; otherwise it copies as many lines as the view has, each as long "
        "as the tile's valid ones, and on A2/A3 the lines in global memory stand further apart by the difference."
    )
    return (
        refuse("L007", said, test, breaks=breaks, mend=mend, profiles=("cpu",)),
        finding(code, said, test, why=why, mend=mend, profiles=CHIPS, breaks=breaks),
    )


def _stored_part(view: GlobalTensor, tile: Tile) -> GlobalTensor | None:
    """The part of a view that the valid region of a tile goes to where no chip's quirks do; None if it is no such part.

    The tile's lines are the view's from the first on. They are one part where they end with an outer dimension.
    """
    outer, inner = _line_axes(tile)
    by_rows = tile.blayout == BLayout.ROW_MAJOR
    lines, length = (tile.valid_rows, tile.valid_cols) if by_rows else (tile.valid_cols, tile.valid_rows)
    shape = list(view.shape)
    shape[inner] = length
    for place, axis in enumerate(outer):
        below = prod(view.shape[a] for a in outer[place + 1 :])
        if lines >= below:
            shape[axis] = lines // below
            return None if lines % below else replace(view, shape=(shape[0], shape[1], shape[2], shape[3], shape[4]))
        shape[axis] = 1
    return None


def _held_by_view() -> tuple[Rule, Rule]:
    """TSTORE writes the valid region of its tile, whatever the view has beside it (TSTORE's page, *Valid region*)."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        (rows, cols), sentence = _shapes("src", "dst", call)
        is_held = call.src.valid_rows <= rows and call.src.valid_cols <= cols
        if is_boxed(call.src):
            is_held = (call.src.valid_rows, call.src.valid_cols) == (rows, cols)
        return None if is_held else sentence

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield _with(call, "dst", shape=(*call.dst.shape[:4], call.src.valid_cols - 1))
        yield _with(call, "dst", shape=(1, 1, 1, call.src.valid_rows - 1, call.dst.shape[4]))

    def in_parts(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        if is_boxed(call.src) or _stored_part(call.dst, call.src) is not None:
            return None
        return f"{_shapes('src', 'dst', call)[1]}: the last line lies in the middle of an outer dimension"

    def breaks_parts(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield _with(_with(call, "src", valid_rows=3), "dst", shape=(1, 2, 1, 2, call.dst.shape[4]))

    return (
        refuse("L007", "the valid region of src fits dst (NZ: has its shape)", test, breaks=breaks, profiles=("cpu",),
               mend="Set the tile's valid rows and columns (or the view's shape) to what is copied."),
        refuse("L012", "the valid rows of src end where an outer dimension of dst does", in_parts, breaks=breaks_parts,
               profiles=("cpu",), mend="Store the rows beyond with a call of their own."),
    )  # fmt: skip


def _few_lines(code: str, tile: str, view: str) -> tuple[Rule, Rule]:
    """The number of bursts of one copy is below 4096: the A2/A3's copies hold no more, the A5's page allows no more."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        held, seen = getattr(call, tile), getattr(call, view)
        if profile.name == "a2a3" and held.rows >= 4096 and tile == "dst":
            return f"{tile} has {held.rows} rows; at most 4095"
        lines = seen.shape[1 if is_boxed(held) else _line_axes(held)[0][-1]]
        return f"{view} has {lines} lines in one dimension; one copy moves at most 4095" if lines >= 4096 else None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        held, seen = getattr(call, tile), getattr(call, view)
        many = replace(held, rows=4096, valid_rows=4096)
        yield SimpleNamespace(**{**vars(call), tile: many, view: replace(seen, shape=(1, 1, 1, 4096, seen.shape[4]))})

    mend = "Move part of them into the outer dimensions of the view."
    return (
        refuse("L006", "one copy moves fewer than 4096 lines", test, breaks=breaks, profiles=("a2a3",), mend=mend),
        finding(code, "one copy moves fewer than 4096 lines", test, breaks=breaks, profiles=("a5",), mend=mend,
                severity=Severity.WARNING,
                why="The C API's page of the copy allows 4095 bursts. The library hands on more, its own tests do so, and "
                "here all lines are moved; that the chip moves them too is assumed."),
    )  # fmt: skip


def _loose_dimension(view: GlobalTensor) -> int | None:
    """The innermost of the last three dimensions whose stride leaves gaps."""
    dense = 1
    for axis in (4, 3, 2):
        if view.shape[axis] != 1 and view.strides[axis] != dense:
            return axis
        dense *= view.shape[axis]
    return None


def _dense_lines(code: str, tile: str, view: str) -> Rule:
    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        held, seen = getattr(call, tile), getattr(call, view)
        inner = _loose_dimension(seen) if is_boxed(held) else _line_axes(held)[1]
        if inner is None:
            return None
        if not is_boxed(held) and (seen.strides[inner] == 1 or seen.shape[inner] == 1):
            return None
        return (
            f"{view} has stride {seen.strides[inner]} along its lines (dimension {inner}); the library copies "
            f"{seen.shape[inner]} of them side by side"
        )

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        strides = getattr(call, view).strides
        yield _with(call, view, strides=(*strides[:4], 2))

    return finding(
        code, f"{view} is contiguous along its lines", test, breaks=breaks, profiles=CHIPS,
        why="Each line is one burst of the copy; the stride of the last dimension is never looked at.",
        mend="Copy such elements line by line, or as a view with that dimension outside.",
    )  # fmt: skip


def _wide_pad(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.dst.dtype.size == 8 and call.dst.pad not in (PadValue.NULL, PadValue.ZERO):
        return "64-bit tiles are padded with zero only"
    return None


def _with_wide_pad(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    call = _with(call, "src", dtype=i64)
    yield _with(call, "dst", dtype=i64, pad=PadValue.MAX)


@tile_instruction("tload", pipe=Pipe.MTE2)
class TLoad:
    """Load a tile from global memory.

    The tile's valid region takes the elements of the view, row by row (ND) or column by column (DN): its rows are the
    view's first four dimensions (ND), or its columns the first three and the last (DN). In NZ the view's last two
    dimensions are a box of 16 rows by 32 bytes; the two before count boxes from top to bottom and, with the first, from
    left to right.
    """

    operands = (Out("dst"), In("src", Sort.GLOBAL, doc="a view of global memory, five dimensions with strides"))
    rules = (
        dtype("dst", **_TYPES),
        _implemented("dst", "src"),
        _same_size("dst", "src"),
        _same_layout("dst", "src", single_line=False),
        boxes_of_view("dst", "src"),
        *_not_empty("TLOAD-3", "dst", "src"),
        *_same_shape("TLOAD-2", "dst", "src"),
        *_few_lines("TLOAD-4", "dst", "src"),
        refuse("L006", "64-bit tiles have no pad value, or zero", _wide_pad, breaks=_with_wide_pad, profiles=("a5",),
               mend="Use PadValue::Null or PadValue::Zero."),
        _dense_lines("TLOAD-1", "dst", "src"),
    )  # fmt: skip
    notes = (
        "Elements of 4 bits are pairs in a byte: lengths and strides are halved. The A5 rounds half bytes up. What fills "
        "such lines up is 0.",
        "With a PadValue the columns (DN: rows) beyond the valid ones are filled up to the next 32-byte block: with 0 "
        "(Zero), +infinity or the largest integer (Max), -infinity or the smallest (Min), or the bits given. 64-bit "
        "and 8-bit float types are filled with 0. What lies further is left as it was; TFILLPAD fills that.",
        "Without a PadValue chips fill up the block too: the copy writes whole blocks.",
        "The public CPU simulator fills the whole tile with the pad value (0 without one) before it loads.",
    )
    assumed = ("Without a PadValue the fill is the line's first element, as the DataCopyPad page tells of this copy.",)
    sources = (
        "pto-isa docs/isa/TLOAD",
        "pto-isa include/pto/common/arch/memory/tload_common.hpp (A2/A3), include/pto/npu/a5/TLoad.hpp",
        "asc-devkit DataCopyPad (GM to UB): what fills a burst",
    )

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """Valid lines of the tile, with what fills their last block; the view."""
        call = _in_bytes(call, "dst", "src")
        if copies_nothing(call.dst, call.src, profile):
            return []
        whole = profile.is_chip or call.dst.pad != PadValue.NULL
        written = tile_lines(call.dst, call.src, profile, whole)
        return [(0, Mode.WRITE, written), (1, Mode.READ, global_lines(call.src, call.dst, profile))]

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> Any:
        """The view's elements as lines, filled up."""
        if not arrays:
            return ()
        call = _in_bytes(call, "dst", "src")
        tile = call.dst
        if is_boxed(tile):
            return arrays[0].reshape(*call.src.shape[:2], -1)
        lines, length = _lines(tile, call.src, profile)
        loaded = arrays[0].reshape(lines, length)
        if not profile.is_chip and tile.pad == PadValue.NULL:
            return loaded
        filled = np.empty((lines, whole_blocks(length * tile.dtype.size) // tile.dtype.size), loaded.dtype)
        filled[:, :length] = loaded
        filled[:, length:] = loaded[:, :1] if tile.pad == PadValue.NULL else loaded.dtype.type(pad_bits(tile))
        return filled


_ATOMIC_TYPES = (f16, f32, i16, i32, i8, bf16)


def _not_added(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.atomic == AtomicType.AtomicNone or call.dst.dtype in _ATOMIC_TYPES:
        return None
    return f"AtomicAdd does not take {call.dst.dtype.name}; it takes " + ", ".join(t.name for t in _ATOMIC_TYPES)


def _added_otherwise(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    call = _with(_with(call, "dst", dtype=u32), "src", dtype=u32)
    yield SimpleNamespace(**{**vars(call), "atomic": AtomicType.AtomicAdd})


@tile_instruction("tstore", pipe=Pipe.MTE3, cpp_templates=("src dst atomic", "phase"))
class TStore:
    """Store a tile's valid region to global memory.

    The view takes the elements row by row (ND tile) or column by column (DN tile): the tile's rows are the view's first
    four dimensions, or its columns the first three and the last. In NZ the view's last two dimensions are a box of 16
    rows by 32 bytes, as for TLOAD.
    """

    operands = (
        Out("dst", Sort.GLOBAL, doc="a view of global memory, five dimensions with strides"),
        In("src"),
        Choice("atomic", AtomicType, optional=True, default=AtomicType.AtomicNone, asm_name="atomicType",
               doc="AtomicAdd adds to the view"),
        Choice("phase", STPhase, optional=True, default=STPhase.Unspecified, asm_name="stPhase",
               doc="has no effect on vector tiles"),
    )  # fmt: skip
    rules = (
        dtype("src", **_TYPES),
        _implemented("src", "dst"),
        _same_size("src", "dst"),
        _same_layout("src", "dst", single_line=True),
        boxes_of_view("src", "dst"),
        *_not_empty("TSTORE-3", "src", "dst"),
        *_held_by_view(),
        _same_shape("TSTORE-2", "src", "dst")[1],
        *_few_lines("TSTORE-4", "src", "dst"),
        refuse("L002", "AtomicAdd takes f16, f32, i16, i32, i8, bf16", _not_added, breaks=_added_otherwise,
               mend="Store without AtomicAdd, or as another type."),
        _dense_lines("TSTORE-1", "src", "dst"),
    )  # fmt: skip
    notes = ("A sum of AtomicAdd is rounded once, to nearest even; integers wrap.",)
    sources = (
        "pto-isa docs/isa/TSTORE",
        "pto-isa include/pto/common/arch/memory/tstore_common.hpp (A2/A3), include/pto/npu/a5/TStore.hpp",
    )

    def _there(self, call: SimpleNamespace, profile: Profile) -> Region:
        """What is written of the view."""
        whole = profile.is_chip or is_boxed(call.src)
        part = None if whole else _stored_part(call.dst, call.src)
        return global_lines(part or call.dst, call.src, profile, False)

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The view (read too, to add to it) and the valid lines of the tile."""
        call = _in_bytes(call, "src", "dst")
        if copies_nothing(call.src, call.dst, profile):
            return []
        there = self._there(call, profile)
        added_to = [(0, int(Mode.READ), there)] if call.atomic else []
        return [*added_to, (0, Mode.WRITE, there), (1, Mode.READ, tile_lines(call.src, call.dst, profile, False))]

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> Any:
        """The lines in the shape of the view."""
        if not arrays:
            return ()
        call = _in_bytes(call, "src", "dst")
        there = self._there(call, profile)
        shape = (*(n for n, _ in there.dims), there.length // call.dst.dtype.size)
        stored = arrays[-1].reshape(shape)
        if not call.atomic:
            return stored
        kind = call.dst.dtype.numpy
        held, added = (np.ascontiguousarray(a).view(kind) for a in (arrays[0], stored))
        with np.errstate(over="ignore", invalid="ignore"):
            return (held + added).view(stored.dtype)


def _moved(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if dst.space != Space.UB or src.space != Space.UB:
        return f"moves from {src.space.name} to {dst.space.name}, which is not implemented"
    if not (dst.is_row_major and src.is_row_major):
        return "moves between tiles that are not row-major without boxes"
    return None


def _moved_elsewhere(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, "dst", space=Space.L1)
    yield _with(call, "dst", blayout=BLayout.COL_MAJOR)


def _same_tile_shape(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if (dst.rows, dst.cols) == (src.rows, src.cols):
        return None
    return f"dst is {dst.rows}x{dst.cols} and src {src.rows}x{src.cols}; both need one shape"


def _with_other_shape(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, "src", rows=call.src.rows + 1)


def _other_valid(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if (dst.valid_rows, dst.valid_cols) == (src.valid_rows, src.valid_cols):
        return None
    return (
        f"dst has {dst.valid_rows}x{dst.valid_cols} valid and src {src.valid_rows}x{src.valid_cols}; "
        "the chip moves the smaller of both"
    )


def _with_other_valid(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, "src", valid_rows=call.src.valid_rows - 1)


@tile_instruction("tmov", pipe=Pipe.V)
class TMov:
    """Copy a tile's valid region to another tile."""

    operands = (Out("dst"), In("src"))
    rules = (
        refuse("L012", "both tiles lie in UB, row-major without boxes", _moved, breaks=_moved_elsewhere,
               mend="ascsim check FILE lists all such calls of a file."),
        _same_size("dst", "src"),
        refuse("L007", "dst and src have one shape", _same_tile_shape, breaks=_with_other_shape, profiles=("a2a3",),
               mend="Declare both tiles with the same rows and columns."),
        same_valid_shape("dst", "src", profiles=("cpu",)),
        finding("TMOV-1", "dst and src have one valid shape", _other_valid, breaks=_with_other_valid,
                profiles=CHIPS, severity=Severity.WARNING, why="The library takes the smaller of both.",
                mend="Give both tiles the same valid region."),
    )  # fmt: skip
    notes = (
        "A2/A3 copy whole 32-byte blocks, and whole rows where all columns of dst are valid: columns beyond the valid "
        "ones are overwritten up to there. The A5 writes the valid columns only.",
        "Elements of another type but the same size keep their bits.",
    )
    sources = ("pto-isa docs/isa/TMOV", "pto-isa include/pto/npu/a2a3/TMov.hpp, include/pto/npu/a5/TMov.hpp")

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The smaller valid region of both, as wide as the chip copies it."""
        dst, src = call.dst, call.src
        rows, cols = min(dst.valid_rows, src.valid_rows), min(dst.valid_cols, src.valid_cols)
        width = cols * dst.dtype.size
        if profile.name == "a2a3":
            width = dst.row_bytes if dst.valid_cols == dst.cols else whole_blocks(width)
        kind = unsigned(dst.dtype)
        return [
            (0, Mode.WRITE, Region(dst.space, dst.address, width, ((rows, dst.row_bytes),), kind)),
            (1, Mode.READ, Region(src.space, src.address, width, ((rows, src.row_bytes),), kind)),
        ]

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> np.ndarray:
        """The elements as they are."""
        return arrays[0]
