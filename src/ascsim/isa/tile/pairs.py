"""TPAIRREDUCESUM: the sum of every two neighbours of a row.

Sources: pto-isa docs/isa/TPairReduceSum; include/pto/npu/a2a3 and a5 and include/pto/cpu: TPairReduceSum.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import A5, CHIPS, Definition, In, Out, tile_instruction
from ascsim.isa.rules import dtype, finding, in_space, row_major, same_dtype, same_valid_shape, unchecked_valid_shape
from ascsim.isa.tile.elementwise import FLOATS, changed
from ascsim.isa.tile.row_sums import stopping
from ascsim.machine.operands import Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile


def _may_be_packed(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    tiles = call.dst, call.src0
    if all(t.rows == 1 for t in tiles) or any(t.valid_cols != t.cols for t in tiles):
        return None
    return "all columns of both tiles are valid, and they have more than one row"


def _with_all_columns(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("dst", "src0"):
        call = changed(call, name, rows=2, valid_rows=2, cols=64, valid_cols=64)
    yield call


@tile_instruction("tpairreducesum", pipe=Pipe.V)
class TPairReduceSum:
    """Add every two neighbours of each row of ``src0``; the sums stand in the first half of the row of ``dst``."""

    operands = (Out("dst", dtype="T", doc="with the valid region of src0"), In("src0", dtype="T"))
    values = "widen"
    rules = (
        dtype("dst", a2a3=FLOATS, a5=FLOATS, cpu=FLOATS),
        same_dtype("dst", "src0"),
        row_major("dst", "src0"),
        in_space(Space.UB, "dst", "src0"),
        same_valid_shape("dst", "src0", profiles=("cpu",)),
        unchecked_valid_shape("TPAIRREDUCESUM-1", "dst", "src0", profiles=CHIPS,
                              why="The library works on what is valid in dst."),
        finding("TPAIRREDUCESUM-2", "there is one row, or a column that is not valid", _may_be_packed,
                breaks=_with_all_columns, profiles=A5, severity=Severity.WARNING,
                why="Where all columns of both tiles are valid by their type, the A5's library puts the sums of all rows one "
                "behind the other. ascsim cannot tell that from a dynamic valid region, and takes it for that.",
                mend="Give the tiles dynamic valid regions."),
    )  # fmt: skip
    notes = (
        "The second half of a row of dst is left as it was on the chips; the page and cpu put 0 there, and in all of the tile "
        "that is not valid.",
        "Of an odd number of columns the chips leave out the last element; the page and cpu take it for a sum.",
        "A2/A3: half stops at 65504, as vcpadd does.",
    )
    sources = (
        "pto-isa docs/isa/TPairReduceSum",
        "pto-isa include/pto/npu/a2a3 and a5, include/pto/cpu: TPairReduceSum.hpp",
    )

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """Whole pairs, and their sums; on cpu all of dst."""
        dst, src, rows = call.dst, call.src0, call.dst.valid_rows
        pairs = dst.valid_cols // 2
        if not profile.is_chip:
            read = [(1, int(Mode.READ), src.region())] if rows and dst.valid_cols else []
            return [*read, (0, int(Mode.WRITE), dst.region(dst.rows, dst.cols))]
        if not rows or not pairs:
            return []
        return [(1, int(Mode.READ), src.region(rows, 2 * pairs)), (0, int(Mode.WRITE), dst.region(rows, pairs))]

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The sums."""
        dst = call.dst
        if profile.is_chip:
            if not arrays:
                return ()
            sums = arrays[0][:, 0::2] + arrays[0][:, 1::2]
            return (stopping(dst.dtype)(sums) if profile.name == "a2a3" else sums,)
        held = np.zeros((dst.rows, dst.cols), np.float32)
        if arrays:
            even = np.pad(arrays[0], ((0, 0), (0, arrays[0].shape[1] % 2)))
            held[: len(even), : even.shape[1] // 2] = even[:, 0::2] + even[:, 1::2]
        return (held,)
