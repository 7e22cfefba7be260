"""Lane-wise tile arithmetic: TADD and TADDS.

Sources: pto-isa docs/isa/TADD, TADDS; include/pto/npu/{a2a3,a5} TAdd.hpp, TAddS.hpp, TBinOp.hpp.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import CHIPS, In, Out, Scalar, tile_instruction
from ascsim.isa.rules import (
    Rule,
    dtype,
    in_space,
    row_major,
    same_dtype,
    same_valid_shape,
    unchecked_valid_shape,
)
from ascsim.isa.semantics.arithmetic import add
from ascsim.machine.dtypes import bf16, f16, f32, i8, i16, i32, i64, u8, u16, u32, u64
from ascsim.machine.operands import Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

_CHIP_TYPES = (f32, f16, i32, i16)
_ALL_TYPES = (f32, f16, bf16, i32, u32, i16, u16, i8, u8, i64, u64)
_NOTES = (
    "Float sums are rounded once, to nearest even; a sum beyond the range of its type is an infinity. Integers wrap.",
    "The valid region of dst is written and no other byte.",
)
_ASSUMED = ("Half and bfloat16 sums keep subnormals; no page says that a chip flushes them.",)


def _tiles(code: str, *names: str, why: str) -> tuple[Rule, ...]:
    return (
        dtype(names[0], a2a3=_CHIP_TYPES, a5=_ALL_TYPES, cpu=_ALL_TYPES),
        same_dtype(*names),
        row_major(*names),
        in_space(Space.UB, *names),
        same_valid_shape(*names, profiles=("cpu",)),
        unchecked_valid_shape(code, *names, why=why, profiles=CHIPS),
    )


@tile_instruction("tadd", pipe=Pipe.V)
class TAdd:
    """Add two tiles lane by lane."""

    operands = (Out("dst"), In("src0"), In("src1"))
    values = "widen"
    over = "dst"
    rules = _tiles("TADD-1", "dst", "src0", "src1", why="The library adds what is valid in dst.")
    semantics = staticmethod(add)
    notes = _NOTES
    assumed = _ASSUMED
    sources = ("pto-isa docs/isa/TADD", "pto-isa include/pto/npu/a2a3/TAdd.hpp, include/pto/npu/a5/TAdd.hpp")


@tile_instruction("tadds", pipe=Pipe.V)
class TAddS:
    """Add a number to each element of a tile."""

    operands = (
        Out("dst"),
        In("src", dtype="T"),
        Scalar("scalar", "T", doc="converted to the element type of src first"),
    )
    values = "widen"
    rules = _tiles(
        "TADDS-1", "dst", "src",
        why="The A5's library adds to what is valid in dst; the A2/A3's returns and writes nothing.",
    )  # fmt: skip
    notes = _NOTES
    assumed = _ASSUMED
    sources = ("pto-isa docs/isa/TADDS", "pto-isa include/pto/npu/a2a3/TAddS.hpp, include/pto/npu/a5/TAddS.hpp")

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of dst in both."""
        dst, src = call.dst, call.src
        rows, cols = dst.valid_rows, dst.valid_cols
        if profile.name == "a2a3" and (src.valid_rows, src.valid_cols) != (rows, cols):
            return []
        return [(0, Mode.WRITE, dst.region(rows, cols)), (1, Mode.READ, src.region(rows, cols))]

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The sums with the number as an element."""
        return tuple(add(a, element_of(call.scalar, call.src.dtype.numpy).astype(a.dtype)) for a in arrays)


def element_of(value: Any, kind: np.dtype) -> np.ndarray:
    """A number as an element, as C++ converts it: integers keep their low bits, floats are rounded to nearest even."""
    if kind.kind in "iu":
        bits = int(value) & ((1 << (8 * kind.itemsize)) - 1)
        return np.array(bits, np.uint64).astype(f"u{kind.itemsize}").view(kind)
    with np.errstate(over="ignore"):
        return np.array(value, np.float64).astype(kind)
