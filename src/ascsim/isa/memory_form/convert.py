"""Conversions between element types on UB: ``vconv_f322f16r`` (``asc_float2half_rn``) and its kin.

Sources: asc-devkit C-API vector_compute (asc_float2half and its kin, asc_deq_int322half, asc_set_deq_scale) and the code
behind them; the basic API's page on precision conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A2A3, In, Out, Scalar, Sort, plain_instruction
from ascsim.isa.memory_form.masked import BLOCK_BYTES, PAGES, REPEAT, Context, Layout, strides, vector_family
from ascsim.isa.semantics import convert
from ascsim.machine.core import Core
from ascsim.machine.dtypes import DTYPES, DType, bf16, f16, f32, i4x2, u8, u16
from ascsim.machine.operands import REGISTER_BYTES

_MODES = {
    "": ("", convert.RINT), "_rn": ("r", convert.RINT), "_rna": ("a", convert.ROUND), "_rd": ("f", convert.FLOOR),
    "_ru": ("c", convert.CEIL), "_rz": ("z", convert.TRUNC), "_ro": ("o", convert.ODD),
}  # fmt: skip
"""By the end of the C API's name: that of the builtin's, and the rounding mode."""
_SAID = {
    convert.RINT: "to nearest, halves to even", convert.ROUND: "to nearest, halves away from zero",
    convert.FLOOR: "down", convert.CEIL: "up", convert.TRUNC: "towards zero",
    convert.ODD: "to the odd one of two neighbours",
}  # fmt: skip
_WORDS = {
    "f32": ("float", "f32"), "f16": ("half", "f16"), "bf16": ("bfloat16", "bf16"), "i64": ("int64", "s64"),
    "i32": ("int32", "s32"), "i16": ("int16", "s16"), "i8": ("int8", "s8"), "u8": ("uint8", "u8"), "i4x2": ("int4", "s4"),
}  # fmt: skip
"""By element type: its name in the C API and in the builtins."""
_ROUNDED = "_rn _rna _rd _ru _rz"
_TABLE: tuple[tuple[str, str, str], ...] = (
    ("f32", "f16", f"- {_ROUNDED} _ro"),
    ("f32", "bf16", _ROUNDED),
    ("f32", "f32", _ROUNDED),
    ("f32", "i16", _ROUNDED),
    ("f32", "i32", _ROUNDED),
    ("f32", "i64", _ROUNDED),
    ("f16", "f32", "-"),
    ("f16", "i32", _ROUNDED),
    ("f16", "i16", _ROUNDED),
    ("f16", "i8", f"- {_ROUNDED}"),
    ("f16", "u8", f"- {_ROUNDED}"),
    ("f16", "i4x2", f"- {_ROUNDED}"),
    ("bf16", "f32", "-"),
    ("bf16", "i32", _ROUNDED),
    ("i64", "f32", _ROUNDED),
    ("i64", "i32", "-"),
    ("i32", "f32", f"- {_ROUNDED}"),
    ("i32", "i16", "-"),
    ("i32", "i64", "-"),
    ("i16", "f32", "-"),
    ("i16", "f16", f"- {_ROUNDED}"),
    ("i8", "f16", "-"),
    ("u8", "f16", "-"),
    ("i4x2", "f16", "-"),
)
"""(source, target, rounding modes; ``-`` is the form that names none)."""
_STOPS = "A value that does not fit becomes the limit of its side, NaN 0: CTRL's bits 48 and 59 as after reset."
_SHARED = "Two elements share a byte, the first in its low half; a byte is written whole if one of them takes part."


def wide_to_f32(values: np.ndarray, mode: int) -> np.ndarray:
    """64-bit integers to float32, rounded once."""
    negative = values < 0
    size = np.where(negative, np.uint64(0) - values.view(np.uint64), values.view(np.uint64))
    length = sum((size >> np.uint64(bit) != 0).astype(np.int64) for bit in range(64))
    drop = np.maximum(length - 24, 1).astype(np.uint64)  # never none: round_bits drops one at least
    kept = convert.round_bits(size, drop, negative, mode)
    exact = np.where(length > 24, np.ldexp(kept.astype(np.float64), drop.astype(np.int64)), size.astype(np.float64))
    return np.where(negative, -exact, exact).astype(np.float32)


def _floats(bits: np.ndarray, kind: DType) -> np.ndarray:
    if kind is f32:
        return np.ascontiguousarray(bits).view(np.float32)
    return convert.f16_bits_to_f32(bits) if kind is f16 else convert.bf16_bits_to_f32(bits)


def _narrow(values: np.ndarray, kind: DType, mode: int) -> np.ndarray:
    if kind is f32:
        return values.view(np.uint32)
    return (convert.f32_to_f16_bits if kind is f16 else convert.f32_to_bf16_bits)(values, mode, True)


def _limits(kind: DType) -> tuple[int, int]:
    if kind is i4x2:
        return -8, 7
    limits = np.iinfo(kind.numpy)
    return int(limits.min), int(limits.max)


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """4-bit integers, two a byte."""
    both = np.stack([packed & np.uint8(15), packed >> np.uint8(4)], -1).astype(np.int8)
    return ((both ^ np.int8(8)) - np.int8(8)).reshape(*packed.shape[:-1], -1)


def _packed(values: np.ndarray) -> np.ndarray:
    low = (values & 15).astype(np.uint8)
    return low[..., 0::2] | low[..., 1::2] << np.uint8(4)


def conversion(source: DType, target: DType, mode: int) -> Callable[[np.ndarray], np.ndarray]:
    """Raw elements of one type to raw elements of the other."""

    def convert_lanes(bits: np.ndarray) -> np.ndarray:
        if source.kind == "f":
            values = _floats(bits, source)
            if target is f32 and source is f32:
                return convert.round_to_integer(values, mode).astype(np.float32).view(np.uint32)
            if target.kind == "f":
                return _narrow(values, target, mode)
            low, high = _limits(target)
            whole = convert.float_to_int(values, mode, True, low, high)
        else:
            numbers = _nibbles(bits) if source is i4x2 else np.ascontiguousarray(bits).view(source.numpy)
            if target.kind == "f":
                floats = wide_to_f32(numbers, mode) if source.size == 8 else convert.int_to_f32(numbers, mode)
                return _narrow(floats, target, mode)
            whole = convert.int_to_int(numbers, True, *_limits(target))
        return _packed(whole) if target is i4x2 else whole.astype(target.numpy).view(target.bits_dtype)

    return convert_lanes


def _halves_of_bytes(operand: str) -> Callable[[SimpleNamespace], dict[str, Layout]]:
    def layouts(call: SimpleNamespace) -> dict[str, Layout]:
        block, repeat = (int(getattr(call, f"{operand}_{which}_stride")) * BLOCK_BYTES for which in ("block", "repeat"))
        return {operand: Layout(1, block, repeat, group=2)}

    return layouts


def _register(source: DType, target: DType, ending: str) -> None:
    built, mode = _MODES[ending]
    (from_word, from_built), (to_word, to_built) = _WORDS[source.name], _WORDS[target.name]
    cpp = f"asc_{from_word}2{to_word}{ending}"
    loses = (source, target) not in _EXACT
    rounding = f", rounded {_SAID[mode]}" if loses and (source.kind == "f" or target.kind == "f") else ""
    what = f"{from_word} to whole numbers" if source is target else f"{from_word} to {to_word}"
    record: dict[str, Any] = {}
    packed = "dst" if target is i4x2 else "src" if source is i4x2 else ""
    if packed:
        record["layouts"] = _halves_of_bytes(packed)
        record["count"] = lambda call: _side_by_side(source, target)
    wide = strides(("dst", "src"), u16)
    shape = (REPEAT, *wide[:2], *(strides(("dst", "src"), u8)[2:] if source is i4x2 else wide[2:]))
    vector_family(
        cpp, f"vconv_{from_built}2{to_built}{built}",
        (Out("dst", Sort.POINTER, "T", doc="the converted elements"), In("src", Sort.POINTER, "S")),
        ({"T": target, "S": source},), semantics=conversion(source, target, mode), values="bits", shape=shape,
        page=f"asc_{from_word}2{to_word}", doc=f"Convert {what}{rounding}.",
        notes=(_SHARED,) if packed else (), assumed=(_STOPS,) if loses and source is not target else (), **record,
    )  # fmt: skip


def _side_by_side(source: DType, target: DType) -> dict[str, int]:
    """Repeats of 128 elements, half a byte each on one side."""
    blocks = {
        k: REGISTER_BYTES // 4 // BLOCK_BYTES if k is i4x2 else REGISTER_BYTES // BLOCK_BYTES for k in (source, target)
    }
    return {
        "repeat": 1, "dst_block_stride": 1, "src_block_stride": 1, "dst_repeat_stride": blocks[target],
        "src_repeat_stride": blocks[source],
    }  # fmt: skip


_EXACT = {(f16, f32), (bf16, f32)} | {
    (DTYPES[a], DTYPES[b]) for a, b in (("i16", "f32"), ("i8", "f16"), ("u8", "f16"), ("i4x2", "f16"), ("i32", "i64"))
}
"""Pairs that lose nothing."""

for _source, _target, _endings in _TABLE:
    for _ending in _endings.split():
        _register(DTYPES[_source], DTYPES[_target], _ending.replace("-", ""))


# With a scale


@plain_instruction(
    "set_deqscale", cpp="set_deqscale", aliases=("asc_set_deq_scale",), asm=(), profiles=A2A3,
    operands=(Scalar("scale", f16, doc="the factor"),), sources=(f"{PAGES}asc_set_deq_scale",),
)  # fmt: skip
def set_deqscale(core: Core, call: SimpleNamespace) -> None:
    """Set the factor that int32 elements are multiplied by on their way to half."""
    core.state.scale = float(np.float16(call.scale))


def scaled(context: Context, bits: np.ndarray) -> np.ndarray:
    """32-bit integers times the core's factor, as half."""
    product = np.ascontiguousarray(bits).view(np.int32).astype(np.float64) * context.state.scale
    return convert.f32_to_f16_bits(product.astype(np.float32), convert.RINT, True)


vector_family(
    "asc_deq_int322half", "vconv_deq", (Out("dst", Sort.POINTER, "T"), In("src", Sort.POINTER, "S")),
    ({"T": f16, "S": DTYPES["i32"]},), semantics=scaled, contextual=True, values="bits",
    shape=(REPEAT, *strides(("dst", "src"), u16)[:2], *strides(("dst", "src"), u8)[2:]),
    doc="Convert int32 to half, multiplied by the factor of asc_set_deq_scale.",
    assumed=("The product is exact, rounded to nearest (halves to even), and stops at 65504.",),
)  # fmt: skip
