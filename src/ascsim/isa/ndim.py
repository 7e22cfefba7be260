"""The A5's copies in up to five dimensions, from global memory to UB, with padding: ``asc_ndim_copy_gm2ub``.

Sources: asc-devkit C-API vector_datamove (asc_ndim_copy_gm2ub, asc_set_ndim_loopi_stride, asc_set_ndim_pad_count,
asc_set_ndim_pad_value, asc_set_gm2ub_pad) and the code behind them.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from ascsim.isa.definition import (
    A5,
    Bytes,
    Choice,
    In,
    Out,
    Scalar,
    Sort,
    memory_instruction,
    plain_instruction,
    types_of,
)  # fmt: skip
from ascsim.isa.rules import scalar_range
from ascsim.isa.transfer import LoadL2CacheMode
from ascsim.machine.core import Core, CoreState
from ascsim.machine.dtypes import DType, u8, u32, u64
from ascsim.machine.words import Pipe, Space

_PAGES = "asc-devkit C-API vector_datamove/"
_LOOPS = range(5)
_MOST = (1 << 20) - 1


def _stride(loop: int) -> None:
    name = f"asc_set_ndim_loop{loop}_stride"

    @plain_instruction(
        name, cpp=name, asm=(), profiles=A5, sources=(f"{_PAGES}asc_set_ndim_loopi_stride",),
        operands=(
            Scalar("dst_stride", u64, doc="elements from one to the next in UB, at most 1048575"),
            Scalar("src_stride", u64, doc="elements from one to the next in global memory, at most 2^40 - 1"),
        ),
        rules=(scalar_range("dst_stride", 0, _MOST), scalar_range("src_stride", 0, (1 << 40) - 1)),
        doc=f"Set the strides of dimension {loop} of asc_ndim_copy_gm2ub.",
    )  # fmt: skip
    def set_stride(core: Core, call: SimpleNamespace) -> None:
        strides = list(core.state.ndim_strides)
        strides[loop] = int(call.dst_stride), int(call.src_stride)
        core.state.ndim_strides = tuple(strides)


for _loop in _LOOPS:
    _stride(_loop)


@plain_instruction(
    "asc_set_ndim_pad_count", cpp="asc_set_ndim_pad_count", asm=(), profiles=A5,
    operands=(Scalar("config", u64, doc="a byte each: left and right of dimension 1, then 2, 3, 4"),),
    notes=("C++ passes an asc_ndim_pad_count_config.",), sources=(f"{_PAGES}asc_set_ndim_pad_count",),
)  # fmt: skip
def set_pad_count(core: Core, call: SimpleNamespace) -> None:
    """Set how many elements of padding dimensions 1 to 4 of asc_ndim_copy_gm2ub get on either side."""
    core.state.ndim_padding = tuple(int(call.config).to_bytes(8, "little"))


def _pad_value(kind: DType) -> None:
    @plain_instruction(
        f"set_pad_val_nddma_{kind.name}", cpp="asc_set_ndim_pad_value", asm=(), profiles=A5,
        operands=(Scalar("pad_value", kind),), sources=(f"{_PAGES}asc_set_ndim_pad_value",),
        doc="Set the value that asc_ndim_copy_gm2ub pads with.",
    )  # fmt: skip
    def set_pad_value(core: Core, call: SimpleNamespace) -> None:
        core.state.ndim_value = int(np.array(call.pad_value).astype(kind.numpy).view(kind.bits_dtype))


for _variant in types_of("i8", "u8", "i16", "u16", "f16", "bf16", "i32", "u32", "f32"):
    _pad_value(_variant["T"])


@plain_instruction(
    "asc_set_gm2ub_pad", cpp="asc_set_gm2ub_pad", asm=(), profiles=A5, operands=(Scalar("pad_val", u32),),
    notes=("Superseded by asc_set_copy_pad_val.",), sources=(f"{_PAGES}asc_set_gm2ub_pad",),
    assumed=("It is the register that asc_set_copy_pad_val sets.",),
)  # fmt: skip
def set_gm2ub_pad(core: Core, call: SimpleNamespace) -> None:
    """Set the bits of the value that padding copies into UB fill with."""
    core.state.pad = int(call.pad_val) & 0xFFFFFFFF


@plain_instruction(
    "asc_ndim_copy_dci", cpp="asc_ndim_copy_dci", asm=(), profiles=A5, pipe=Pipe.MTE2,
    sources=("asc-devkit include/c_api/vector_datamove/vector_datamove.h",),
)  # fmt: skip
def ndim_copy_dci(core: Core, call: SimpleNamespace) -> None:
    """Empty the cache of copies in several dimensions. Here they always see memory as it is."""


_SIZES = tuple(Scalar(f"loop{n}_size", u32, doc=f"elements of dimension {n}, 1 to 1048575") for n in _LOOPS)


def _sizes(call: SimpleNamespace) -> list[int]:
    """Elements of the dimensions, outermost first."""
    return [int(getattr(call, f"loop{n}_size")) for n in reversed(_LOOPS)]


def _padding(call: SimpleNamespace, state: CoreState) -> list[tuple[int, int]]:
    """(left, right) of the dimensions, outermost first."""
    counts = (int(call.loop0_lp_count), int(call.loop0_rp_count), *state.ndim_padding)
    return [(counts[2 * n], counts[2 * n + 1]) for n in reversed(_LOOPS)]


def _extent(call: SimpleNamespace, state: CoreState) -> dict[str, Bytes]:
    size = call.dst.dtype.size
    strides = list(reversed(state.ndim_strides))
    padded = [left + n + right for n, (left, right) in zip(_sizes(call), _padding(call, state), strict=True)]
    return {
        "dst": Bytes(size, tuple((n, dst * size) for n, (dst, _) in zip(padded, strides, strict=True))),
        "src": Bytes(size, tuple((n, src * size) for n, (_, src) in zip(_sizes(call), strides, strict=True))),
    }


@memory_instruction(
    "nddma_out_to_ub", cpp="asc_ndim_copy_gm2ub", asm=(), profiles=A5, pipe=Pipe.MTE2, stateful=True, extent=_extent,
    variants=types_of("i8", "u8", "f4e2m1x2", "f4e1m2x2", "f8e8m0", "f8e5m2", "f8e4m3", "i16", "u16", "f16", "bf16",
                      "i32", "u32", "f32"),
    operands=(
        Out("dst", Sort.POINTER, "T"), In("src", Sort.POINTER, "T", space=Space.GM, align=1), *_SIZES,
        Scalar("loop0_lp_count", u8, doc="padding before dimension 0, in elements"),
        Scalar("loop0_rp_count", u8, doc="padding behind dimension 0, in elements"),
        Scalar("padding_mode", u8, doc="1: padding is the value set before; 0: the nearest element"),
        Choice("l2_cache_mode", LoadL2CacheMode),
    ),
    rules=(
        *(scalar_range(o.name, 1, _MOST) for o in _SIZES), scalar_range("loop0_lp_count", 0, 255),
        scalar_range("loop0_rp_count", 0, 255), scalar_range("padding_mode", 0, 1),
    ),
    notes=("Strides and the padding of dimensions 1 to 4 are core state, set before.",
           "Several such copies to overlapping bytes need a barrier between them."),
    sources=(f"{_PAGES}asc_ndim_copy_gm2ub",),
)  # fmt: skip
def ndim_copy(call: SimpleNamespace, state: CoreState, source: np.ndarray) -> np.ndarray:
    """Copy a block of up to five dimensions from global memory to UB, each with a stride and padding of its own."""
    ins = [
        np.arange(-left, n + right) for n, (left, right) in zip(_sizes(call), _padding(call, state), strict=True)
    ]  # fmt: skip
    nearest = [np.clip(index, 0, n - 1) for index, n in zip(ins, _sizes(call), strict=True)]
    copied = source[np.ix_(*nearest)]
    if not int(call.padding_mode):
        return copied
    inside = np.array(True)
    for index, n in zip(ins, _sizes(call), strict=True):
        inside = np.logical_and.outer(inside, (index >= 0) & (index < n))
    value = source.dtype.type(state.ndim_value & (1 << 8 * source.itemsize) - 1)
    return np.where(inside[..., None], copied, value)
