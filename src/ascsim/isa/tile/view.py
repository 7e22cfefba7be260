"""TRESHAPE and TSUBVIEW: another tile on the same bytes.

Sources: pto-isa docs/isa/TRESHAPE, TSUBVIEW; include/pto/npu/a2a3/TReshape.hpp, TSubView.hpp (A5: the same);
include/pto/cpu/TReshape.hpp, TSubView.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from ascsim.isa.definition import Definition, In, Out, Scalar, tile_instruction
from ascsim.isa.rules import Rule, changed, finding, refuse, scalar_range
from ascsim.machine.core import Core, Touch
from ascsim.machine.dtypes import f32, i32, u16
from ascsim.machine.operands import Region, Tile
from ascsim.machine.words import BLayout, Pipe, SLayout, Space
from ascsim.profiles import Profile


def _elsewhere(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    return None if dst.space == src.space else f"dst is a tile of {dst.space.name}, src one of {src.space.name}"


def _moved(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", space=Space.L1)


_ONE_MEMORY: Rule = refuse(
    "L005", "dst and src are tiles of one memory", _elsewhere, breaks=_moved, mend="Declare both with one TileType."
)


def _other_bytes(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    return None if dst.nbytes == src.nbytes else f"dst has {dst.nbytes} bytes and src {src.nbytes}"


def _shorter(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", rows=call.dst.rows - 1)


def _boxed(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    boxes = [t.slayout != SLayout.NONE_BOX for t in (call.dst, call.src)]
    return "one of dst and src has boxes, the other has not" if boxes[0] != boxes[1] else None


def _with_boxes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", slayout=SLayout.ROW_MAJOR, blayout=BLayout.COL_MAJOR)


def _other_kind(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst.dtype, call.src.dtype
    if dst is src or (dst.kind == "f") == (src.kind == "f"):
        return None
    return f"dst holds {dst.name} and src {src.name}; both are to be floats, or integers"


def _with_integers(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(changed(call, "src", dtype=f32), "dst", dtype=i32)


class _View:
    """What both share."""

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """No byte is touched."""
        return []

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> Tile:
        """dst at its address."""
        call = self.call(args)
        return call.dst.at(self.address(call))


@tile_instruction("treshape", pipe=Pipe.S, asm=())
class TReshape(_View):
    """Let dst be another view of all the bytes of src: other rows and columns, another element type.

    Nothing is moved and no pipe is waited for: the address of src becomes the address of dst.
    """

    operands = (Out("dst", binds=True), In("src"))
    rules = (
        _ONE_MEMORY,
        refuse("L007", "dst and src have as many bytes", _other_bytes, breaks=_shorter,
               mend="Declare dst with rows and columns that make up the bytes of src."),
        refuse("L004", "both have boxes, or neither", _boxed, breaks=_with_boxes, mend="Move the data with TMOV."),
        refuse("L003", "element types are both float, or both integer", _other_kind, breaks=_with_integers,
               profiles=("cpu",), mend="The chips take any two types; declare dst with another."),
    )  # fmt: skip
    notes = (
        "In .pto text: ``%r = pto.treshape %t : T -> R``.",
        "In Python it returns dst at its address.",
    )
    sources = ("pto-isa docs/isa/TRESHAPE", "pto-isa include/pto/npu/a2a3/TReshape.hpp, include/pto/cpu/TReshape.hpp")

    @staticmethod
    def address(call: SimpleNamespace) -> int:
        """Where src lies."""
        return int(call.src.address)


def _other_pitch(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if dst.blayout != src.blayout:
        return "dst and src are row-major and column-major: the lines of dst do not fall on lines of src"
    mine, lines = (
        (dst.row_bytes, dst.valid_rows) if dst.blayout == BLayout.ROW_MAJOR else (dst.col_bytes, dst.valid_cols)
    )
    pitch = src.row_bytes if src.blayout == BLayout.ROW_MAJOR else src.col_bytes
    if lines <= 1 or mine == pitch:
        return None
    return f"lines of dst stand {mine} bytes apart and those of src {pitch}: they do not fall on each other"


def _with_other_pitch(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", cols=call.dst.cols * 2)
    yield changed(call, "dst", blayout=BLayout.COL_MAJOR)


def _outside(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    rows, cols = int(call.row) + dst.valid_rows, int(call.col) + dst.valid_cols
    if rows <= src.rows and cols <= src.cols:
        return None
    return f"dst ends at row {rows}, column {cols} of src, which is {src.rows}x{src.cols}"


def _made_outside(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "row": call.src.rows})


@tile_instruction("tsubview", pipe=Pipe.S, asm=())
class TSubView(_View):
    """Let dst be a part of src, from a row and a column on: the address of that element becomes the address of dst.

    Declare dst with the columns of src (column-major: the rows), and with the part as its valid region.
    """

    operands = (
        Out("dst", binds=True), In("src"), Scalar("row", u16, doc="first row"), Scalar("col", u16, doc="first column"),
    )  # fmt: skip
    rules = (
        _ONE_MEMORY,
        scalar_range("row", 0, 65535),
        scalar_range("col", 0, 65535),
        finding("TSUBVIEW-1", "lines of dst fall on lines of src", _other_pitch, breaks=_with_other_pitch,
                why="Only the first element is looked up in src; the others lie as dst is declared.",
                mend="Declare dst with as many columns (column-major: rows) as src."),
        finding("TSUBVIEW-2", "dst lies within src", _outside, breaks=_made_outside,
                why="The library checks it in no build.", mend="Give dst fewer valid rows or columns."),
    )  # fmt: skip
    notes = (
        "The library computes the address as if src had no boxes.",
        "In .pto text: ``pto.subview``.",
        "In Python it returns dst at its address.",
    )
    sources = ("pto-isa docs/isa/TSUBVIEW", "pto-isa include/pto/npu/a2a3/TSubView.hpp, include/pto/cpu/TSubView.hpp")

    @staticmethod
    def address(call: SimpleNamespace) -> int:
        """Where the element lies."""
        src = call.src
        return int(src.address + int(call.row) * src.row_bytes + int(call.col) * src.col_bytes)
