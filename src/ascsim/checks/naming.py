"""Names for bytes: the space, the tile, the element.

Objects (tiles, views, named buffers) are noted in the trace as an instruction first uses them. Steps of an expansion
know addresses only, so for them the tile is looked up by address.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ascsim.checks.spans import Intervals
from ascsim.diagnostics import plural
from ascsim.machine.dtypes import DTYPES
from ascsim.machine.layout import box_shape
from ascsim.machine.trace import Trace
from ascsim.machine.words import BLayout, SLayout, Space


def space_name(space: int) -> str:
    """``UB``."""
    try:
        return Space(space).name
    except ValueError:
        return f"space {space}"


def bytes_text(space: int, intervals: Intervals) -> str:
    """``UB 0x1000 to 0x10ff (256 bytes)``; what has gaps says how many bytes of the range it is."""
    low, high = intervals[0][0], intervals[-1][1]
    size = sum(b - a for a, b in intervals)
    inside = "" if size == high - low else f", {size} of the {high - low}"
    return f"{space_name(space)} {low:#x} to {high - 1:#x} ({plural(size, 'byte')}{inside})"


# Tiles


def tile_bytes(tile: dict[str, Any]) -> tuple[int, int]:
    """The first byte of a noted tile and one past its last."""
    size = DTYPES[tile["dtype"]].size if tile["dtype"] in DTYPES else 1
    return tile["address"], tile["address"] + tile["rows"] * tile["cols"] * size


def element(tile: dict[str, Any], byte: int) -> tuple[int, int] | None:
    """(row, column) of the element that holds a byte, by the tile's layout; None for a byte before the tile.

    Beyond the tile's end the layout goes on: the element may have a row or column that the tile does not.
    """
    offset = byte - tile["address"]
    if offset < 0 or tile["dtype"] not in DTYPES or not tile["rows"] or not tile["cols"]:
        return None
    size, rows, cols = DTYPES[tile["dtype"]].size, tile["rows"], tile["cols"]
    blayout, slayout = BLayout(tile.get("blayout", 0)), SLayout(tile.get("slayout", 0))
    fractal = tile.get("fractal", 512)
    box_rows, box_cols = box_shape(slayout, fractal, size)
    box, rest = divmod(offset // size, box_rows * box_cols)
    if slayout == SLayout.COL_MAJOR:
        column, row = divmod(rest, box_rows)
    else:
        row, column = divmod(rest, box_cols)
    if blayout == BLayout.ROW_MAJOR:
        box_row, box_column = divmod(box, max(cols // box_cols, 1))
    else:
        box_column, box_row = divmod(box, max(rows // box_rows, 1))
    return box_row * box_rows + row, box_column * box_cols + column


class Place(NamedTuple):
    """The bytes from ``start`` to before ``end`` of a memory, and what is there in words."""

    start: int
    end: int
    what: str


class Tiles:
    """The tiles and other objects of a trace, by number and by address."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._arrays = trace.noted("local_array")
        self.all = [data for data in trace.objects if data.get("type") == "tile" and data.get("address", -1) >= 0]

    def containing(self, space: int, byte: int) -> list[dict[str, Any]]:
        """Tiles that hold the byte, the smallest first."""
        held = []
        for tile in self.all:
            low, high = tile_bytes(tile)
            if tile["space"] == space and low <= byte < high:
                held.append((high - low, tile))
        return [tile for _, tile in sorted(held, key=lambda entry: entry[0])]

    def _array(self, space: int, byte: int) -> dict[str, Any] | None:
        """The declared array that holds the byte, if all that do have one name (of launches, say)."""
        held = [a for a in self._arrays if a["space"] == space and 0 <= byte - a["start"] < a["size"]]
        return held[0] | {"type": "buffer"} if len({a["name"] for a in held}) == 1 else None

    def of(self, number: int) -> dict[str, Any] | None:
        """The object of an access: the noted one, or the one tile or array that holds its first byte."""
        access = self._trace.accesses[number]
        if 0 < access["object"] <= len(self._trace.objects):
            return self._trace.objects[int(access["object"]) - 1]
        space, start = int(access["space"]), int(access["start"])
        held = self.containing(space, start)
        if not held:
            return self._array(space, start)
        return held[0] if len(held) == 1 or _same_place(held) else None

    def place(self, number: int) -> Place | None:
        """Where the tile or array of an access lies, if it is known."""
        access = self._trace.accesses[number]
        if access["space"] == Space.GM:
            return None
        found = self.of(number)
        if found is not None and found.get("type") == "tile" and found.get("address", -1) >= 0:
            return Place(*tile_bytes(found), describe(found))
        start = int(access["start"])
        array = self._array(int(access["space"]), start)
        return Place(array["start"], array["start"] + array["size"], array["name"]) if array else None

    def name(self, number: int) -> str:
        """The name of an access's object, or nothing."""
        found = self.of(number)
        return str(found.get("name") or "") if found else ""

    def position(self, number: int, byte: int) -> str:
        """``element (0, 8) of src 4x64 f32 at UB 0x1000`` for a byte of an access, or nothing."""
        tile = self.of(number)
        if tile is None or tile.get("type") != "tile" or tile.get("address", -1) < 0:
            return ""
        at = element(tile, byte)
        if at is None:
            return f"before {describe(tile)}"
        inside = at[0] < tile["rows"] and at[1] < tile["cols"]
        return f"element {at} of {describe(tile)}" if inside else f"beyond {describe(tile)}, where {at} would be"


def _same_place(tiles: Sequence[dict[str, Any]]) -> bool:
    keys = ("address", "rows", "cols", "dtype", "blayout", "slayout", "name")
    return all(tile.get(key) == tiles[0].get(key) for tile in tiles for key in keys)


def describe(tile: dict[str, Any]) -> str:
    """``src 4x64 f32 at UB 0x1000``."""
    size = f"{tile['rows']}x{tile['cols']} {tile['dtype']}"
    return f"{tile.get('name') or 'a tile'} {size} at {space_name(tile['space'])} {tile['address']:#x}"
