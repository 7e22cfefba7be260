"""TSTORE and TMOV from L0C: what the cube has made, to global memory and to L1.

Sources: pto-isa docs/isa/TSTORE, TMOV; include/pto/common/arch/memory/tstore_common.hpp, npu/a2a3/TStore.hpp (A2/A3);
include/pto/common/arch/register/tstore_common.hpp and include/pto/npu/a5/TStore.hpp; include/pto/cpu/TStore.hpp;
asc-devkit C-API cube_datamove/asc_copy_l0c2gm: what becomes of numbers that the narrower type does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import CHIPS, Choice, Definition, In, Out, Sort, tile_instruction
from ascsim.isa.rules import changed, finding, in_space, refuse
from ascsim.isa.tile.boxes import ALIGNED, SIDE, Grid, Order, grid_of, is_packed, order_of, up
from ascsim.isa.tile.cube_move import SAME_TILE, SAME_VALID, compact_modes
from ascsim.isa.tile.transfer import ND, NZ, AtomicType, STPhase
from ascsim.machine.core import Core, Touch
from ascsim.machine.dtypes import DType, bf16, f16, f32, i32, u32
from ascsim.machine.operands import GlobalTensor, Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, SLayout, Space
from ascsim.profiles import Profile

_PAIRS = ((f32, f32), (f32, f16), (f32, bf16), (i32, i32))
_SATURATES: dict[str, tuple[DType, ...]] = {"a2a3": (f16, bf16), "a5": (bf16,), "cpu": ()}
"""The types that know neither infinity nor NaN on the way out of L0C."""


class ReluPreMode(IntEnum):
    """What a store from L0C does with negative numbers; the numbers of PTO's ReluPreMode."""

    NoRelu = 0
    NormalRelu = 1


def _channels(kind: DType) -> tuple[int, ...]:
    """Columns of a view's boxes: 16, or float in halves of them."""
    return (8, 16) if kind is f32 else (16,)


def _shape(view: GlobalTensor) -> tuple[int, int]:
    """The rows and columns of a view."""
    if view.layout == NZ:
        return view.shape[2] * view.shape[3], view.shape[0] * view.shape[1] * view.shape[4]
    return view.shape[0] * view.shape[1] * view.shape[2] * view.shape[3], view.shape[4]


# Rules


def _other_types(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    pair = (call.src.dtype, call.dst.dtype)
    if pair in _PAIRS:
        return None
    listed = ", ".join(f"{a.name} to {b.name}" for a, b in _PAIRS)
    return f"stores {pair[0].name} to {pair[1].name}; without a factor it stores {listed}"


def _with_other_types(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", dtype=u32)


def _no_accumulator(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return None if order_of(call.src) is Order.NZ else "src is not NZ of 1024-byte boxes"


def _made_no_accumulator(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", blayout=BLayout.ROW_MAJOR)
    yield changed(call, "src", slayout=SLayout.NONE_BOX)


def _other_layout(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return None if call.dst.layout in (ND, NZ) else "dst is neither ND nor NZ"


def _with_other_layout(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", layout=1)


def _other_boxes(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    view = call.dst
    if view.layout != NZ or (view.shape[3] == SIDE and view.shape[4] in _channels(view.dtype)):
        return None
    return f"dst has boxes of {view.shape[3]}x{view.shape[4]}"


def _with_other_boxes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", layout=NZ)


def _large(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src = call.src
    rows = 8192 if call.dst.layout == ND else 65535
    if src.rows <= rows and src.cols <= 4095:
        return None
    return f"src is {src.rows}x{src.cols}; at most {rows}x4095"


def _made_large(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", cols=4096)


def _other_shape(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src, (rows, cols) = call.src, _shape(call.dst)
    if (src.valid_rows, src.valid_cols) == (rows, cols):
        return None
    shape = "x".join(str(n) for n in call.dst.shape)
    return f"dst has shape {shape}, {rows} rows by {cols} columns; src has {src.valid_rows}x{src.valid_cols} valid"


def _with_other_shape(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", valid_rows=call.src.valid_rows - 1)
    yield changed(call, "src", valid_cols=call.src.valid_cols - 1)


def _deep(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.dst.layout != ND or call.dst.shape[:3] == (1, 1, 1):
        return None
    return f"dst has shape {'x'.join(map(str, call.dst.shape))}; rows are stored at the distance of its dimension 3"


def _made_deep(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", shape=(1, 1, 2, *call.dst.shape[3:]))


def _loose(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    view = call.dst
    if view.strides[4] == 1 or view.shape[4] == 1:
        return None
    return f"dst has stride {view.strides[4]} along its rows; they are stored contiguous"


def _made_loose(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", strides=(*call.dst.strides[:4], 2))


def _not_done(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return f"phase is {int(call.phase)}: it follows TMATMUL box by box" if int(call.phase) else None


def _made_not_done(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "phase": STPhase.Final})


def _strided(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    view = call.dst
    rows = view.shape[2] * view.shape[3]
    dense = (view.shape[1] * rows * view.shape[4], rows * view.shape[4], SIDE * view.shape[4], view.shape[4], 1)
    if view.layout != NZ or all(n == 1 or a == b for n, a, b in zip(view.shape, view.strides, dense, strict=True)):
        return None
    return f"dst has strides {view.strides}; it is stored as if they were {dense}"


def _made_strided(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    shape, strides = (1, 2, 1, SIDE, SIDE), (1024, 1024, SIDE * SIDE, SIDE, 1)
    src = changed(call, "src", rows=SIDE, valid_rows=SIDE, cols=2 * SIDE, valid_cols=2 * SIDE)
    yield changed(src, "dst", layout=NZ, shape=shape, strides=strides)


_RELU = Choice("relu", ReluPreMode, optional=True, default=ReluPreMode.NoRelu, asm_name="reluPreMode",
               doc="NormalRelu stores negative numbers as 0")  # fmt: skip
_ACCUMULATOR = refuse("L004", "src is NZ of 1024-byte boxes", _no_accumulator, breaks=_made_no_accumulator,
                      mend="Use TileAcc.")  # fmt: skip
_WITH_RELU = "src dst atomic relu"


@tile_instruction("tstore", pipe=Pipe.FIX, core="aic", cpp_templates=("src dst atomic", "phase", _WITH_RELU))
class TStoreAcc:
    """Store what the cube has made: from L0C to global memory, row by row (ND) or in boxes (NZ), converted on the way."""

    operands = (
        Out("dst", Sort.GLOBAL, doc="a view of global memory, five dimensions with strides"),
        In("src", lies_in=(Space.L0C,)),
        Choice("atomic", AtomicType, optional=True, default=AtomicType.AtomicNone, asm_name="atomicType",
               doc="AtomicAdd adds to the view"),
        Choice("phase", STPhase, optional=True, default=STPhase.Unspecified, asm_name="stPhase", doc="Unspecified"),
        _RELU,
    )  # fmt: skip
    rules = (
        refuse("L002", "the types are f32 to f32, f16 or bf16, i32 to i32", _other_types, breaks=_with_other_types,
               mend="Stores with a factor (preQuantScalar, TSTORE_FP) are not implemented."),
        in_space(Space.L0C, "src"),
        _ACCUMULATOR,
        refuse("L012", "dst is ND or NZ", _other_layout, breaks=_with_other_layout,
               mend="ascsim check FILE lists all such calls of a file."),
        refuse("L007", "the boxes of dst (NZ) are 16x16, of float 16x8 too", _other_boxes, breaks=_with_other_boxes,
               mend="Give the GlobalTensor the shape columns of boxes x 1 x rows of boxes x 16 x 16."),
        compact_modes("src"),
        refuse("L012", "phase is Unspecified", _not_done, breaks=_made_not_done,
               mend="ascsim check FILE lists all such calls of a file."),
        refuse("L006", "src has at most 8192 rows (NZ: 65535) and 4095 columns", _large, breaks=_made_large, profiles=CHIPS,
               mend="Use a smaller tile."),
        refuse("L007", "the valid region of src has the shape of dst", _other_shape, breaks=_with_other_shape,
               profiles=("cpu",), mend="Set the tile's valid rows and columns (or the view's shape) to what is stored."),
        finding("TSTORE-5", "the valid region of src has the shape of dst (L0C)", _other_shape, breaks=_with_other_shape,
                profiles=CHIPS,
                why="The library checks it in debug builds only (A5: never). Here the valid region is stored.",
                mend="Set the tile's valid rows and columns (or the view's shape) to what is stored."),
        finding("TSTORE-6", "dst (ND) has two dimensions (L0C)", _deep, breaks=_made_deep, profiles=CHIPS,
                why="The library looks at the last two alone; A2/A3 check it in debug builds.",
                mend="Store part by part, with a view of two dimensions each."),
        finding("TSTORE-7", "dst is contiguous along its rows (L0C)", _loose, breaks=_made_loose, profiles=CHIPS,
                why="The library never looks at the stride of the last dimension.", mend="Store to a contiguous matrix."),
        finding("TSTORE-8", "dst (NZ) is dense", _strided, breaks=_made_strided, profiles=CHIPS,
                why="The library works out where boxes lie from the view's shape, and never looks at its strides.",
                mend="Store to a dense matrix in boxes."),
    )  # fmt: skip
    notes = (
        "float becomes half or bfloat16 by rounding to nearest even. On A2/A3, and as bfloat16 on the A5, what is too large "
        "becomes the largest number and NaN 0; elsewhere infinity and NaN.",
        "ReLU comes before the conversion. A sum of AtomicAdd is rounded once, to nearest even; integers wrap.",
        "Columns of boxes are taken to lie as far apart as the tile is high; of a compact tile, as its valid rows make them.",
        "Stores with a factor, to other layouts of global memory, and with a phase are not implemented.",
    )
    assumed = (
        "That stores to half (A2/A3) and bfloat16 (A2/A3, A5) do not support INF_NAN mode, as the pages of asc_copy_l0c2gm "
        "say, means that they saturate and make 0 of NaN.",
    )
    sources = (
        "pto-isa docs/isa/TSTORE",
        "pto-isa include/pto/common/arch/{memory,register}/tstore_common.hpp, include/pto/npu/{a2a3,a5}/TStore.hpp",
        "asc-devkit C-API cube_datamove/asc_copy_l0c2gm",
    )

    def _grid(self, call: SimpleNamespace, profile: Profile) -> Grid:
        src = call.src
        extents = (up(src.valid_rows, SIDE), src.cols) if profile.is_chip and is_packed(src) else None
        return grid_of(src, profile, extents=extents)

    def _there(self, call: SimpleNamespace, profile: Profile) -> Region:
        """What is written of the view."""
        view, rows, cols = call.dst, call.src.valid_rows, call.src.valid_cols
        size, kind = view.dtype.size, view.dtype.numpy
        if view.layout == NZ:
            wide = view.shape[4]
            if not profile.is_chip:
                return view.region()
            strip = up(view.shape[2] * view.shape[3], SIDE) * wide * size
            return Region(Space.GM, view.address, rows * wide * size, ((-(-cols // wide), strip),), kind)
        if not profile.is_chip:
            return view.region()
        return Region(Space.GM, view.address, cols * size, ((rows, view.strides[3] * size),), kind)

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The view (read too, to add to it); the valid rows of the tile, with whole boxes of columns."""
        rows, cols = call.src.valid_rows, call.src.valid_cols
        if not rows * cols:
            return []
        there = self._there(call, profile)
        added_to = [(0, int(Mode.READ), there)] if call.atomic else []
        return [*added_to, (0, Mode.WRITE, there), (1, Mode.READ, self._grid(call, profile).region(rows, cols))]

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> Any:
        """The matrix as the view has it."""
        if not arrays:
            return ()
        rows, cols = call.src.valid_rows, call.src.valid_cols
        matrix = self._grid(call, profile).matrix(arrays[-1], rows, cols)
        if call.relu:
            matrix = np.maximum(matrix, 0)
        stored = _converted(matrix, call.dst.dtype, profile)
        there = self._there(call, profile)
        if call.dst.layout == NZ:
            wide = call.dst.shape[4]
            stored = np.pad(stored, ((0, 0), (0, -cols % wide))).reshape(rows, -1, wide).transpose(1, 0, 2)
        shape = (*(n for n, _ in there.dims), there.length // there.dtype.itemsize)
        stored = np.ascontiguousarray(stored).reshape(shape)
        return arrays[0] + stored if call.atomic else stored


def _converted(matrix: np.ndarray, kind: DType, profile: Profile) -> np.ndarray:
    """The numbers in the view's type."""
    if kind.numpy == matrix.dtype:
        return matrix
    if kind in _SATURATES[profile.name]:
        most = {f16: np.float32(65504.0), bf16: np.uint32(0x7F7F0000).view(np.float32)}[kind]
        matrix = np.where(np.isnan(matrix), np.float32(0), np.clip(matrix, -most, most))
    return matrix.astype(kind.numpy)


# To L1


def _not_narrower(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.src.dtype is f32 and call.dst.dtype in (f16, bf16):
        return None
    return f"moves {call.src.dtype.name} to {call.dst.dtype.name}; without a factor it moves f32 to f16 or bf16"


def _no_matrix(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return None if order_of(call.dst) is Order.NZ else "dst is not NZ"


def _made_no_matrix(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", slayout=SLayout.NONE_BOX)
    yield changed(call, "dst", blayout=BLayout.ROW_MAJOR, slayout=SLayout.COL_MAJOR)


@tile_instruction("tmov", pipe=Pipe.FIX, core="aic", cpp_templates=("dst src relu",))
class TMovAcc:
    """Move what the cube has made from L0C to L1, as half or bfloat16: an operand of the next product."""

    operands = (Out("dst", lies_in=(Space.L1,)), In("src", lies_in=(Space.L0C,)), _RELU)
    rules = (
        refuse("L002", "the types are f32 to f16 or bf16", _not_narrower, breaks=_with_other_types,
               mend="Moves with a factor (preQuantScalar, TMOV_FP), and the A5's to other types, are not implemented."),
        _ACCUMULATOR,
        refuse("L012", "dst is NZ", _no_matrix, breaks=_made_no_matrix,
               mend="Use a tile with BLayout::ColMajor and SLayout::RowMajor."),
        SAME_TILE,
        SAME_VALID,
    )  # fmt: skip
    notes: Sequence[str] = (
        "float becomes half or bfloat16 as by TSTORE from L0C. ReLU comes before the conversion.",
        "Chips move all rows of the tile's type, valid or not, and the valid columns, in whole boxes.",
        "The A5's moves to tiles without boxes, and TEXTRACT from L0C, are not implemented.",
    )
    assumed = (
        "The A5's library has this move; the C API has its page for A2/A3 only.",
    )  # fmt: skip
    sources = (
        "pto-isa docs/isa/TMOV",
        "pto-isa include/pto/common/arch/memory/tmov_common.hpp, include/pto/npu/a5/TMov.hpp, include/pto/cpu/TMov.hpp",
        "asc-devkit C-API cube_datamove/asc_copy_l0c2l1",
    )

    def touches(self: Any, core: Core, args: Sequence[Any]) -> list[Touch]:
        """What is written; what is read, of which the valid rows count."""
        call, profile = self.call(args), core.profile
        rows, cols = call.src.valid_rows, up(call.src.valid_cols, SIDE)
        if not rows * cols:
            return []
        high = call.src.rows if profile.is_chip else rows
        there, here = grid_of(call.dst, profile), grid_of(call.src, profile)
        read, counted = here.region(high, cols), here.region(rows, cols)
        touched = [
            Touch(0, Mode.WRITE, there.region(high, cols), ALIGNED[Space.L1]),
            Touch(1, Mode.READ, read, ALIGNED[Space.L0C], None, counted == read),
        ]
        return touched if counted == read else [*touched, Touch(1, Mode.READ, counted)]

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> Any:
        """The matrix in dst's boxes."""
        if not arrays:
            return ()
        high = call.src.rows if profile.is_chip else call.src.valid_rows
        matrix = grid_of(call.src, profile).matrix(arrays[0], high, up(call.src.valid_cols, SIDE))
        if call.relu:
            matrix = np.maximum(matrix, 0)
        return grid_of(call.dst, profile).boxed(_converted(matrix, call.dst.dtype, profile))
