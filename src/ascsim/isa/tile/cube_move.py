"""TMOV and TEXTRACT from L1: operands of the cube to L0A and L0B, a bias to BT.

Sources: pto-isa docs/isa/TMOV, TEXTRACT; include/pto/common/arch/memory/tmov_common.hpp, textract_common.hpp and
include/pto/npu/a2a3/TMov.hpp (A2/A3); include/pto/npu/a5/TMov.hpp, TExtract.hpp; include/pto/cpu/TMov.hpp, TExtract.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ascsim.isa.definition import A5, CHIPS, Asm, Definition, In, Out, Scalar, tile_instruction
from ascsim.isa.rules import Rule, changed, dtype, finding, in_space, refuse, row_major, same_dtype, scalar_range
from ascsim.isa.tile.boxes import ALIGNED, SIDE, STRIP, Grid, Order, grid_of, is_packed, order_of, up, whole_boxes
from ascsim.machine.core import Core, Touch
from ascsim.machine.dtypes import bf16, f8e4m3, f8e5m2, f16, f32, hif8, i8, i32, u16
from ascsim.machine.operands import Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, CompactMode, Pipe, SLayout, Space
from ascsim.profiles import Profile

FRACTAL = 512
"""Bytes of a box, in which vectors are moved."""
_A2A3_TYPES = (i8, f16, bf16, f32)
_A5_TYPES = (*_A2A3_TYPES, f8e4m3, f8e5m2, hif8)


# What moves


def _is_row(tile: Tile) -> bool:
    """A vector: a single row without boxes."""
    return tile.rows == 1 and tile.is_row_major


def _turns(call: SimpleNamespace) -> bool:
    """Whether lines of the source's boxes become columns."""
    return order_of(call.src) is (Order.ZN if call.dst.space == Space.L0A else Order.NZ)


class _Move(NamedTuple):
    """Rows and columns from (row, col) of ``src`` on, which become the first ones of ``dst``."""

    dst: Grid
    src: Grid
    row: int
    col: int
    rows: int
    cols: int

    @property
    def written(self) -> Region:
        """The bytes of dst."""
        return self.dst.region(self.rows, self.cols)

    @property
    def read(self) -> Region:
        """The bytes of src."""
        return self.src.region(self.rows, self.cols, self.row, self.col)


def _move(call: SimpleNamespace, profile: Profile, packs_bytes: bool) -> _Move:
    dst, src = call.dst, call.src
    kind = dst.dtype.bits_dtype
    turns = _turns(call)
    moved = packed = (dst.rows, dst.cols)
    if not profile.is_chip:
        moved = whole_boxes(dst)
    elif is_packed(dst) or (turns and dst.dtype.size == 1 and packs_bytes):
        moved = packed = _packed(dst, turns)
    row, col = int(getattr(call, "row", 0)), int(getattr(call, "col", 0))
    if profile.is_chip:
        down, across = _units(call)
        row, col = row // down * down, col // across * across
    return _Move(grid_of(dst, profile, kind, packed), grid_of(src, profile, kind), row, col, *moved)


def _packed(dst: Tile, turns: bool) -> tuple[int, int]:
    """The rows and columns of a tile that lies packed."""
    inner = STRIP // dst.dtype.size
    if turns or (dst.k_aligned and dst.dtype is f32):
        inner = max(inner, SIDE)
    if dst.space == Space.L0A:
        return up(dst.valid_rows, SIDE), up(dst.valid_cols, inner)
    return up(dst.valid_rows, inner), up(dst.valid_cols, SIDE)


def _units(call: SimpleNamespace) -> tuple[int, int]:
    """What rows and columns are a multiple of: those of boxes, of square ones where they turn."""
    inner = STRIP // call.dst.dtype.size
    if _is_row(call.src):
        return 1, FRACTAL // call.dst.dtype.size
    if _turns(call):
        return max(inner, SIDE), max(inner, SIDE)
    return (SIDE, inner) if call.dst.space == Space.L0A else (inner, SIDE)


# Rules


def _no_fractals(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if not _is_row(call.src):
        return None
    for name in ("dst", "src"):
        tile = getattr(call, name)
        if tile.cols * tile.dtype.size % FRACTAL:
            return f"a row of {name} has {tile.cols * tile.dtype.size} bytes; a vector is moved in pieces of {FRACTAL}"
    return None


def _with_no_fractals(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    boxes: dict[str, Any] = {"blayout": BLayout.ROW_MAJOR, "slayout": SLayout.ROW_MAJOR}
    if profile.left_order == "NZ":
        boxes["blayout"] = BLayout.COL_MAJOR
    row: dict[str, Any] = {"rows": 1, "valid_rows": 1, "cols": 32, "valid_cols": 32}
    left = changed(call, "dst", space=Space.L0A, **row, **boxes)
    yield changed(left, "src", blayout=BLayout.ROW_MAJOR, slayout=SLayout.NONE_BOX, **row)


def _no_source_boxes(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if order_of(call.src) in (Order.NZ, Order.ZN) or (_is_row(call.src) and call.dst.space == Space.L0A):
        return None
    return "src has no boxes, or such of another kind"


def _without_source_boxes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", slayout=SLayout.NONE_BOX)
    yield changed(call, "src", blayout=BLayout.ROW_MAJOR, slayout=SLayout.ROW_MAJOR)


def _other_boxes(strict: bool) -> Rule:
    """dst has the boxes of its memory. A2/A3's TMOV does not look at the order of boxes in L0A."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        dst, order = call.dst, order_of(call.dst)
        if dst.space == Space.L0B:
            return None if order is Order.ZN else "dst, in L0B, is not ZN"
        wanted = Order[profile.left_order] if profile.left_order else Order.NZ
        if order is wanted or (
            order in (Order.NZ, Order.ZZ) and (not profile.is_chip or not (strict or profile.name == "a5"))
        ):
            return None
        return f"dst, in L0A, is not {wanted.name}"

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield changed(call, "dst", slayout=SLayout.NONE_BOX)

    said = "dst is ZN in L0B; in L0A it is NZ on a5, ZZ on a2a3, either on cpu"
    loose = "dst is ZN in L0B; in L0A it is NZ on a5, NZ or ZZ elsewhere"
    return refuse("L004", said if strict else loose, test, breaks=breaks, mend="Use TileLeft and TileRight.")


def compact_modes(*operands: str) -> Rule:
    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        for name in operands:
            tile = getattr(call, name)
            if tile.compact not in (CompactMode.NULL, CompactMode.NORMAL):
                return f"{name} has CompactMode {tile.compact.name}"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield changed(call, operands[0], compact=CompactMode.ROW_PLUS_ONE)

    return refuse("L012", f"the CompactMode of {', '.join(operands)} is Null or Normal", test, breaks=breaks,
                  mend="ascsim check FILE lists all such calls of a file.")  # fmt: skip


def _no_squares(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if not _turns(call) or _is_row(call.src):
        return None
    down, across = _units(call)
    for name in ("dst", "src"):
        tile = getattr(call, name)
        if tile.rows % down or tile.cols % across:
            return f"{name} is {tile.rows}x{tile.cols}; boxes that turn are {down}x{across}"
    return None


def _with_no_squares(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    odd: dict[str, Any] = {"blayout": BLayout.ROW_MAJOR, "slayout": SLayout.COL_MAJOR, "rows": 32, "cols": 48}
    if call.dst.space == Space.L0B:
        odd = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.ROW_MAJOR, "rows": 48, "cols": 32}
    yield changed(changed(call, "dst", dtype=i8), "src", dtype=i8, valid_rows=4, valid_cols=16, **odd)


def _common(strict: bool) -> tuple[Rule, ...]:
    return (
        dtype("dst", a2a3=_A2A3_TYPES, a5=_A5_TYPES, cpu=_A5_TYPES),
        same_dtype("dst", "src"),
        in_space(Space.L1, "src"),
        refuse("L004", "src is NZ or ZN; to L0A also a single row without boxes", _no_source_boxes,
               breaks=_without_source_boxes,
               mend="Load the matrix into a tile with BLayout::ColMajor and SLayout::RowMajor, or the other way round."),
        _other_boxes(strict),
        compact_modes("dst", "src"),
        refuse("L007", "where boxes turn (NZ to L0B, ZN to L0A), rows and columns are multiples of 16 and of 32 bytes",
               _no_squares, breaks=_with_no_squares, profiles=CHIPS, mend="Declare larger tiles."),
        refuse("L007", "a single row without boxes is a multiple of 512 bytes, there and here", _no_fractals,
               breaks=_with_no_fractals, profiles=CHIPS, mend="Declare longer tiles."),
    )  # fmt: skip


_NOTES = (
    "A single row without boxes is a vector for TGEMV: it goes to L0A as it lies, in pieces of 512 bytes.",
    "dst has the boxes of its memory, whatever those of src: L0A is ZZ on A2/A3 and NZ on the A5, L0B is ZN. Where lines "
    "of src's boxes are columns there, they turn on the way.",
    "Chips move all rows and columns of dst's type, valid or not. Of a compact tile (TileLeftCompact, TileRightCompact) they "
    "move the boxes of the valid region alone, and pack them as TMATMUL finds them.",
    "1-byte elements whose boxes turn are packed so by TMOV, compact or not (A5: by TEXTRACT too). Of what the library "
    "writes beyond such a tile's last box nothing is shown.",
)


class _ToCube:
    """What TMOV and TEXTRACT to L0A and L0B share."""

    values = "bits"
    notes: Sequence[str] = _NOTES
    packs_bytes: tuple[str, ...] = CHIPS
    """The profiles that pack 1-byte elements whose boxes turn."""

    def _moved(self: Any, call: SimpleNamespace, profile: Profile) -> _Move:
        return _move(call, profile, profile.name in self.packs_bytes)

    def touches(self: Any, core: Core, args: Sequence[Any]) -> list[Touch]:
        """What is written; what is read, of which the valid part counts."""
        call, profile = self.call(args), core.profile
        if _is_row(call.src):
            return _vector_touches(call, profile)
        move = self._moved(call, profile)
        if not move.rows * move.cols:
            return []
        inside = min(call.dst.valid_rows, move.rows), min(call.dst.valid_cols, move.cols)
        counted = move.src.region(*inside, move.row, move.col)
        begins = ALIGNED[call.src.space] if not (move.row or move.col) else 0
        touched = [
            Touch(0, Mode.WRITE, move.written, ALIGNED[call.dst.space]),
            Touch(1, Mode.READ, move.read, begins, None, counted == move.read),
        ]
        if counted != move.read and all(inside):
            touched.append(Touch(1, Mode.READ, counted))
        return touched

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> np.ndarray | tuple:
        """The elements in dst's order."""
        if not arrays:
            return ()
        if _is_row(call.src):
            return (
                arrays[0]
                if profile.is_chip
                else grid_of(call.dst, profile, arrays[0].dtype).boxed(arrays[0].reshape(1, -1))
            )
        move = self._moved(call, profile)
        if move.src.order is move.dst.order:
            return arrays[0]
        return move.dst.boxed(move.src.matrix(arrays[0], move.rows, move.cols))


def _vector_touches(call: SimpleNamespace, profile: Profile) -> list[Touch]:
    """A vector: chips move whole boxes' worth of bytes as they lie."""
    dst, src, size = call.dst, call.src, call.dst.dtype.size
    col, count = int(getattr(call, "col", 0)), call.dst.valid_cols
    if not count or not call.dst.valid_rows:
        return []
    used = Region(src.space, src.address + col * size, count * size, (), dst.dtype.bits_dtype)
    if not profile.is_chip:
        written = grid_of(dst, profile, dst.dtype.bits_dtype).region(1, count)
        return [Touch(0, Mode.WRITE, written, ALIGNED[dst.space]), Touch(1, Mode.READ, used)]
    start = src.address + col * size // FRACTAL * FRACTAL
    read = used._replace(start=start, length=up(count * size, FRACTAL))
    written = read._replace(space=dst.space, start=dst.address)
    touched = [Touch(0, Mode.WRITE, written, ALIGNED[dst.space]), Touch(1, Mode.READ, read, 5, None, read == used)]
    return touched if read == used else [*touched, Touch(1, Mode.READ, used._replace(start=start))]


def _other_tile(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if (dst.rows, dst.cols) == (src.rows, src.cols):
        return None
    return f"dst is {dst.rows}x{dst.cols} and src {src.rows}x{src.cols}; both need one shape"


def _with_other_tile(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", rows=2 * call.src.rows)


def _other_valid(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if (dst.valid_rows, dst.valid_cols) == (src.valid_rows, src.valid_cols):
        return None
    return f"dst has {dst.valid_rows}x{dst.valid_cols} valid and src {src.valid_rows}x{src.valid_cols}"


def _with_other_valid(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", valid_rows=call.src.valid_rows - 1)


SAME_TILE = refuse("L007", "dst and src have one shape", _other_tile, breaks=_with_other_tile, profiles=CHIPS,
                    mend="Declare both tiles with the same rows and columns, or use TEXTRACT.")  # fmt: skip
SAME_VALID = refuse("L007", "dst and src have one valid shape", _other_valid, breaks=_with_other_valid,
                     profiles=("cpu",), mend="Give both tiles the same valid region.")  # fmt: skip


@tile_instruction("tmov", pipe=Pipe.MTE1, core="aic", asm=(Asm("tmov"), Asm("tmov.m2l"), Asm("tmov.m2r")))
class TMovToCube(_ToCube):
    """Move a matrix from L1 to L0A or L0B, the operands of the cube."""

    operands = (Out("dst", lies_in=(Space.L0A, Space.L0B)), In("src", lies_in=(Space.L1,)))
    rules = (*_common(strict=False), SAME_TILE, SAME_VALID)
    sources = (
        "pto-isa docs/isa/TMOV",
        "pto-isa include/pto/common/arch/memory/tmov_common.hpp, textract_common.hpp, include/pto/npu/a5/TMov.hpp",
    )


def _outside(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    packs = is_packed(dst) and not _is_row(src)
    rows, cols = _packed(dst, _turns(call)) if packs else (dst.rows, dst.cols)
    row, col = int(call.row) + rows, int(call.col) + cols
    if row <= src.rows and col <= src.cols:
        return None
    return f"the part ends at row {row}, column {col}; src is {src.rows}x{src.cols}"


def _outside_valid(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    row, col = int(call.row) + dst.valid_rows, int(call.col) + dst.valid_cols
    if row <= src.valid_rows and col <= src.valid_cols:
        return None
    return f"the part ends at row {row}, column {col}; src has {src.valid_rows}x{src.valid_cols} valid"


def _made_outside(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "row": 32})


def _unaligned(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    down, across = _units(call) if profile.is_chip else _strips(call)
    if int(call.row) % down or int(call.col) % across:
        return f"the part begins at ({int(call.row)}, {int(call.col)}), which is no multiple of ({down}, {across})"
    return None


def _strips(call: SimpleNamespace) -> tuple[int, int]:
    if _is_row(call.src):
        return 1, 1
    inner = STRIP // call.src.dtype.size
    return (1, inner) if order_of(call.src) is Order.NZ else (inner, 1)


def _made_unaligned(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(changed(call, "dst", valid_rows=1, valid_cols=1)), "row": 1, "col": 1})


@tile_instruction("textract", pipe=Pipe.MTE1, core="aic")
class TExtractToCube(_ToCube):
    """Move a part of a matrix from L1 to L0A or L0B, the operands of the cube: from (row, col) on, as large as dst."""

    operands = (
        Out("dst", lies_in=(Space.L0A, Space.L0B)), In("src", lies_in=(Space.L1,)),
        Scalar("row", u16, optional=True, default=0, doc="the part's first row"),
        Scalar("col", u16, optional=True, default=0, doc="the part's first column"),
    )  # fmt: skip
    packs_bytes = A5
    rules = (
        *_common(strict=True),
        scalar_range("row", 0, 65535),
        scalar_range("col", 0, 65535),
        refuse("L007", "the part lies within the valid region of src", _outside_valid, breaks=_made_outside,
               profiles=("cpu",), mend="Move the part, or make it smaller."),
        refuse("L012", "the part begins where a strip of boxes does", _unaligned, breaks=_made_unaligned, profiles=("cpu",),
               mend="Begin at whole boxes."),
        finding("TEXTRACT-3", "the part lies within src (L1)", _outside, breaks=_made_outside, profiles=CHIPS,
                why="The library checks it in debug builds only (A5: never).", mend="Move the part, or make it smaller."),
        finding("TEXTRACT-4", "the part begins at whole boxes (L1)", _unaligned, breaks=_made_unaligned, profiles=CHIPS,
                why="The library checks it in debug builds only (A5: never). Here, as on the A5, the part begins where the "
                "box does.",
                mend="Begin at multiples of 16 and of 32 bytes (of the larger one of both where boxes turn)."),
    )  # fmt: skip
    sources = (
        "pto-isa docs/isa/TEXTRACT",
        "pto-isa include/pto/common/arch/memory/textract_common.hpp, include/pto/npu/a5/TExtract.hpp",
    )
    assumed = ("A2/A3: a part that begins within a box begins where the box does, as on the A5.",)


# To BT


def _bias_types(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    pair = (call.src.dtype, call.dst.dtype)
    pairs = [(i32, i32), (f32, f32), (f16, f32)]
    if profile.name != "a2a3":
        pairs.append((bf16, f32))
    if pair in pairs:
        return None
    return f"moves {pair[0].name} to {pair[1].name}; a bias is moved " + ", ".join(
        f"{a.name} to {b.name}" for a, b in pairs
    )


def _other_bias_types(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", dtype=f16)


def _many_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return f"src has {call.src.rows} rows; a bias has one" if call.src.rows != 1 else None


def _made_many_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(changed(call, "src", rows=2), "dst", rows=2)


def _broken_unit(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    name = "src" if profile.name == "a2a3" else "dst"
    tile = getattr(call, name)
    nbytes = tile.cols * tile.dtype.size
    return f"{name} has {nbytes} bytes; a bias is a multiple of 64" if nbytes % 64 else None


def _made_broken_unit(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(changed(call, "src", cols=24, valid_cols=1), "dst", cols=24, valid_cols=1)


def _large(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    room = profile.spaces["BT"].capacity
    return f"dst has {call.dst.nbytes} bytes; BT has {room}" if call.dst.nbytes > room else None


def _made_large(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(changed(call, "src", cols=2048), "dst", cols=2048)


@tile_instruction("tmov", pipe=Pipe.MTE1, core="aic", asm=(Asm("tmov"), Asm("tmov.m2b")))
class TMovToBias:
    """Move a row from L1 to BT, where TMATMUL_BIAS finds it; half (A5: bfloat16 too) becomes float on the way."""

    operands = (Out("dst", lies_in=(Space.BT,)), In("src", lies_in=(Space.L1,)))
    values = "widen"
    rules = (
        refuse("L003", "the types are i32 to i32, f32 to f32, f16 to f32 (a5, cpu: bf16 to f32)", _bias_types,
               breaks=_other_bias_types, mend="Declare the Bias tile as float (int32_t for int8_t matrices)."),
        in_space(Space.L1, "src"),
        in_space(Space.BT, "dst"),
        row_major("dst", "src"),
        SAME_TILE,
        SAME_VALID,
        refuse("L007", "dst and src have one row", _many_rows, breaks=_made_many_rows, profiles=CHIPS,
               mend="Declare both tiles with one row."),
        refuse("L007", "the row (a2a3: of src, a5: of dst) is a multiple of 64 bytes", _broken_unit,
               breaks=_made_broken_unit, profiles=CHIPS, mend="Declare wider tiles."),
        refuse("L013", "dst is no larger than BT", _large, breaks=_made_large, profiles=A5, mend="Use a narrower tile."),
    )  # fmt: skip
    notes = ("Chips move all columns, valid or not.",)
    assumed = (
        "A2/A3: the copy counts units of 64 bytes, as the library takes it; the page of asc_copy_l12bt says 32.",
    )
    sources = ("pto-isa docs/isa/TMOV", "pto-isa include/pto/npu/a2a3/TMov.hpp, include/pto/npu/a5/TMov.hpp")

    def touches(self: Any, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The row written; the row read, of which the valid part counts."""
        call = self.call(args)
        dst, src = call.dst, call.src
        rows, cols = (1, dst.cols) if core.profile.is_chip else (dst.valid_rows, dst.valid_cols)
        valid = min(cols, src.valid_cols)
        read = src.region(rows, cols)
        touched = [
            Touch(0, Mode.WRITE, dst.region(rows, cols), ALIGNED[dst.space]),
            Touch(1, Mode.READ, read, ALIGNED[src.space], None, valid == cols),
        ]
        if valid < cols:
            touched.append(Touch(1, Mode.READ, src.region(rows, valid)))
        return touched

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> np.ndarray:
        """The elements."""
        return arrays[0]
