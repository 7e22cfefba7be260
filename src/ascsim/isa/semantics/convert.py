"""Conversions between element types: every rounding mode, with and without saturation, exact.

Floats are float32, or the raw bits of f16 and bf16 (uint16). Integers come as arrays of their type and leave as int64
within the target's range, for the caller to narrow.

How a value that does not fit is handled (Cast.md and rounding_mode.md of the Ascend C documentation):

=================  ==================================================  ================================
target             not saturating                                      saturating
=================  ==================================================  ================================
narrower float     infinity of its sign; infinities and NaN stay       largest finite value; NaN gives 0
integer            the low bits of the rounded integer; an infinity    the nearest limit; NaN gives 0
                   gives the limit of its side, NaN gives 0
=================  ==================================================  ================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

NONE, RINT, ROUND, FLOOR, CEIL, TRUNC, ODD = range(7)
"""Rounding modes, numbered as PTO's ``RoundMode`` (the Ascend C enumeration has FLOOR, CEIL, ROUND as 2, 3, 4).

``RINT``: to nearest, ties to even. ``ROUND``: to nearest, ties away from zero. ``ODD``: an inexact result is the odd
one of its two neighbours (precision_conversion.md). ``NONE``: the pair's default, see :data:`CONVERSIONS`.
"""

_SIGN = np.uint32(0x80000000)
_MAGNITUDE = np.uint32(0x7FFFFFFF)
_INFINITY = np.uint32(0x7F800000)
_FRACTION = np.uint32(0x007FFFFF)
_QUIET_BIT = np.uint32(0x00400000)


def round_bits(source: np.ndarray, drop: np.ndarray, negative: np.ndarray, mode: int) -> np.ndarray:
    """``source`` (unsigned magnitudes) without its lowest ``drop`` bits (at least 1; same type), rounded.

    ``negative`` (bool) gives the directions of FLOOR and CEIL. NONE is RINT.
    """
    one = np.ones_like(source)
    kept = source >> drop
    rest = source - (kept << drop)
    half = one << (drop - one)
    if mode == ROUND:
        up = rest >= half
    elif mode == FLOOR:
        up = negative & (rest != 0)
    elif mode == CEIL:
        up = ~negative & (rest != 0)
    elif mode == TRUNC:
        up = rest < 0
    elif mode == ODD:
        up = (rest != 0) & ((kept & one) == 0)
    else:
        up = (rest > half) | ((rest == half) & ((kept & one) == one))
    return kept + up


# Float to float


def f16_bits_to_f32(bits: np.ndarray) -> np.ndarray:
    """f16 (uint16) widened to float32; exact, subnormals and the payloads of NaNs too."""
    wide = bits.astype(np.uint32)
    scaled = ((wide & np.uint32(0x7FFF)) << np.uint32(13)).view(np.float32) * np.float32(2.0**112)
    magnitude = scaled.view(np.uint32) | np.where((wide & np.uint32(0x7C00)) == 0x7C00, _INFINITY, np.uint32(0))
    return (magnitude | ((wide & np.uint32(0x8000)) << np.uint32(16))).view(np.float32)


def bf16_bits_to_f32(bits: np.ndarray) -> np.ndarray:
    """bf16 (uint16) widened to float32; exact."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def f32_to_f16_bits(x: np.ndarray, mode: int, saturate: bool) -> np.ndarray:
    """float32 to f16 (uint16).

    Out of range is what rounds to more than 65504 when the exponent has no limit, in every mode (rounding_mode.md says
    infinity without a word on directed modes). Assumed: a NaN keeps its sign and upper payload and becomes quiet.
    """
    return _narrowed(x, mode, saturate, 10, -14, 0x7BFF, 16).astype(np.uint16)


def f32_to_e4m3_bits(x: np.ndarray, mode: int, saturate: bool) -> np.ndarray:
    """float32 to fp8 e4m3fn (uint8), which has no infinity: out of range is NaN, or saturating 448 (Cast.md)."""
    return _narrowed(x, mode, saturate, 3, -6, 0x7E, 8).astype(np.uint8)


def f32_to_e5m2_bits(x: np.ndarray, mode: int, saturate: bool) -> np.ndarray:
    """float32 to fp8 e5m2 (uint8); out of range and NaN as in :func:`f32_to_f16_bits`."""
    return _narrowed(x, mode, saturate, 2, -14, 0x7B, 8).astype(np.uint8)


def f32_to_e2m1_bits(x: np.ndarray, mode: int) -> np.ndarray:
    """float32 to fp4 e2m1 (uint8, 4 bits): saturates at 6; a NaN gives 0 (Cast.md)."""
    return _narrowed(x, mode, True, 1, 0, 0x7, 4).astype(np.uint8)


def f32_to_e1m2_bits(x: np.ndarray, mode: int) -> np.ndarray:
    """float32 to fp4 e1m2 (uint8, 4 bits): saturates at 1.75; a NaN gives 0 (Cast.md)."""
    return _narrowed(x, mode, True, 2, 0, 0x7, 4).astype(np.uint8)


def _narrowed(
    x: np.ndarray, mode: int, saturate: bool, mantissa: int, low: int, largest: int, width: int
) -> np.ndarray:
    """float32 to a type of ``width`` bits with ``mantissa`` bits, whose smallest normal number is 2**``low``; uint32."""
    bits = x.view(np.uint32)
    magnitude = bits & _MAGNITUDE
    exponent = magnitude >> np.uint32(23)
    significand = (magnitude & _FRACTION) | (np.minimum(exponent, np.uint32(1)) << np.uint32(23))
    # Below 2**low the type is subnormal: the significand moves right by as much as the exponent lacks.
    least = np.uint32(127 + low)
    drop = np.uint32(23 - mantissa)
    lacking = least - np.maximum(np.minimum(exponent, least), least - np.uint32(26) + drop)
    rounded = round_bits(significand, drop + lacking, bits >= _SIGN, mode)
    rounded = rounded + ((np.maximum(exponent, least) - least) << np.uint32(mantissa))
    return _limited(rounded, bits, np.uint32(largest), drop, np.uint32(32 - width), saturate)


def f32_to_bf16_bits(x: np.ndarray, mode: int, saturate: bool) -> np.ndarray:
    """float32 to bf16 (uint16); out of range and NaN as in :func:`f32_to_f16_bits`."""
    bits = x.view(np.uint32)
    magnitude = bits & _MAGNITUDE
    rounded = round_bits(magnitude, np.full_like(magnitude, 16), bits >= _SIGN, mode)
    limited = _limited(rounded, bits, np.uint32(0x7F7F), np.uint32(16), np.uint32(16), saturate)
    return limited.astype(np.uint16)


def _limited(
    rounded: np.ndarray, bits: np.ndarray, largest: np.uint32, drop: np.uint32, sign_drop: np.uint32, saturate: bool
) -> np.ndarray:
    """Rounded magnitudes with overflow, NaN and sign put right, as uint32.

    ``bits`` is the float32, ``largest`` the largest finite magnitude (the next is infinity), ``drop`` how far a
    float32's payload moves, ``sign_drop`` its sign.
    """
    nan = (bits & _MAGNITUDE) > _INFINITY
    sign = (bits & _SIGN) >> sign_drop
    if saturate:
        return np.where(nan, np.uint32(0), np.minimum(rounded, largest) | sign)
    magnitude = np.where(rounded > largest, np.uint32(largest + 1), rounded)
    quiet = np.uint32(largest + 1) | (((bits | _QUIET_BIT) & _FRACTION) >> drop)
    return np.where(nan, quiet, magnitude) | sign


_HIF8_NAN, _HIF8_INFINITY, _HIF8_LARGEST = 0x80, 0x6F, 0x6E


def _hif8_codes() -> np.ndarray:
    """The code of each positive number: at ``8 * (exponent + 23) + the upper 3 bits of the mantissa``, exponents to 16.

    The larger an exponent, the more of the seven bits it takes: 3 are left of the mantissa up to 3 or -3, 2 up to 7, 1
    up to 15; below 2**-15 there are powers of two down to 2**-22 alone. Source: arXiv 2409.16626.
    """
    codes = np.zeros((40, 8), np.uint8)
    codes[0] = 1  # at least half of 2**-22
    for exponent in range(-22, 16):
        size = abs(exponent)
        negative = int(exponent < 0)
        for mantissa in range(8):
            if exponent < -15:
                code = exponent + 23
            elif size == 0:
                code = 0b0001000 | mantissa
            else:
                kept = 3 if size < 4 else 2 if size < 8 else 1
                dot = {1: 0b0010000, 2: 0b0100000, 3: 0b1000000, 4: 0b1100000}[size.bit_length()]
                rest = size - (1 << (size.bit_length() - 1))
                sign_at = {1: 3, 2: 4, 3: 4, 4: 4}[size.bit_length()]
                code = dot | negative << sign_at | rest << kept | mantissa >> (3 - kept)
            codes[exponent + 23, mantissa] = code
    codes[39] = _HIF8_INFINITY
    return codes.reshape(-1)


HIF8_CODES = _hif8_codes()


def f32_to_hif8_bits(x: np.ndarray, saturate: bool) -> np.ndarray:
    """float32 to hifloat8 (uint8), to nearest with ties away from zero.

    Out of range is infinity, a NaN a NaN; saturating 32768 and 0. There is no -0. Source of the format: arXiv
    2409.16626; the Ascend C pages leave its border values empty.
    """
    bits = x.view(np.uint32)
    magnitude = bits & _MAGNITUDE
    exponent = (magnitude >> np.uint32(23)).astype(np.int32) - np.int32(127)
    size = np.abs(exponent)
    kept = np.where(size < 4, 3, np.where(size < 8, 2, np.where(exponent < -15, 0, 1)))
    drop = (23 - kept).astype(np.uint32)
    rounded = ((magnitude + (np.uint32(1) << (drop - np.uint32(1)))) >> drop) << drop
    place = (rounded >> np.uint32(20)).astype(np.int64) - 8 * (127 - 23)
    code = np.take_along_axis(HIF8_CODES, np.minimum(np.maximum(place, 0), 319), 0)
    code = np.where(exponent < -23, np.uint8(0), code)
    infinite = np.uint8(_HIF8_LARGEST if saturate else _HIF8_INFINITY)
    code = np.where((code == np.uint8(_HIF8_INFINITY)) | (magnitude >= _INFINITY), infinite, code)
    signed = code | np.where((bits >= _SIGN) & (code != 0), np.uint8(0x80), np.uint8(0))
    return np.where(magnitude > _INFINITY, np.uint8(0 if saturate else _HIF8_NAN), signed)


def narrow_f16(x: np.ndarray) -> np.ndarray:
    """float32 to f16 (uint16) as IEEE 754 rounds a result: to nearest even, overflow to infinity."""
    return f32_to_f16_bits(x, RINT, False)


def narrow_bf16(x: np.ndarray) -> np.ndarray:
    """float32 to bf16 (uint16) as IEEE 754 rounds a result."""
    return f32_to_bf16_bits(x, RINT, False)


def through_f16(x: Any) -> Any:
    """float32 rounded to f16, as float32: by NumPy, whose conversion is faster than ours, or by recorded lanes."""
    return x.astype(np.float16).astype(np.float32) if isinstance(x, np.ndarray) else x.to_half().from_half()


def round_to_integer(x: np.ndarray, mode: int) -> np.ndarray:
    """float32 rounded to whole numbers, in float64; signed zeros, infinities and NaN stay. NONE is RINT.

    It is TCVT from f32 to f32 (and ``vtrc``, ``asc_rint`` and its kin) but for the return to float32, which is exact.
    """
    wide = x.astype(np.float64)
    size = np.abs(wide)
    if mode == ROUND:
        rounded = np.floor(size + 0.5)
    elif mode == FLOOR:
        rounded = np.abs(np.floor(wide))
    elif mode == CEIL:
        rounded = np.abs(np.ceil(wide))
    elif mode == TRUNC:
        rounded = np.floor(size)
    elif mode == ODD:
        rounded = np.where(np.floor(size) == size, size, 2.0 * np.floor(size * 0.5) + 1.0)
    else:
        rounded = np.rint(size)
    return np.copysign(rounded, wide)


# Float to integer and back


def float_to_int(x: np.ndarray, mode: int, saturate: bool, low: int, high: int) -> np.ndarray:
    """float32 to an integer type with limits ``low`` and ``high``: int64 values. NONE is TRUNC.

    Source of the default: TCvt.hpp of a2a3 and a5 truncate floats to integers in every mode they do not know.
    """
    if mode in (NONE, ODD):
        mode = TRUNC
    whole = round_to_integer(x, mode)
    beyond = high + 1.0
    span = beyond - low
    if not saturate:
        finite = np.abs(whole) < np.inf
        wrapped = np.fmod(np.where(finite, whole, 0.0), span)
        wrapped = np.where(wrapped >= beyond, wrapped - span, wrapped)
        wrapped = np.where(wrapped < low, wrapped + span, wrapped)
        whole = np.where(finite, wrapped, whole)
    within = (whole >= low) & (whole < beyond)
    number = np.where(within, whole, 0.0).astype(np.int64)
    number = np.where(whole >= beyond, np.int64(high), number)
    return np.where(whole < low, np.int64(low), number)


def float_to_int_by_way_of_i32(x: np.ndarray, mode: int, low: int, high: int) -> np.ndarray:
    """float32 to a narrow integer type as TCVT does without saturation: saturated to int32, then its low bits.

    So an infinity gives -1 or 0 where one instruction gives a limit. Source: TCvt.hpp for f32 to i16, f16 to i16 and
    f16 to i8; on a5 always, on a2a3 in the forms with tmp (without it, one instruction converts).
    """
    return int_to_int(float_to_int(x, mode, True, -(2**31), 2**31 - 1), False, low, high)


def int_to_f32(values: np.ndarray, mode: int) -> np.ndarray:
    """Integers of at most 32 bits to float32; only 32-bit ones need the rounding mode. NONE is RINT."""
    return f64_to_f32(values.astype(np.float64), mode)


def int64_to_f32(values: np.ndarray, mode: int) -> np.ndarray:
    """64-bit integers to float32."""
    negative = values < 0
    magnitude = np.where(negative, -values, values).view(np.uint64)
    # The low bits only say whether there are any: float64 holds what is left exactly.
    low = np.where((magnitude & np.uint64(2047)) != 0, np.uint64(1), np.uint64(0))
    short = ((magnitude >> np.uint64(11)) | low).astype(np.float64) * 2048.0
    exact = np.where(magnitude < np.uint64(1 << 53), magnitude.astype(np.float64), short)
    return f64_to_f32(np.where(negative, -exact, exact), mode)


def f64_to_f32(x: np.ndarray, mode: int) -> np.ndarray:
    """float64 to float32, of zeros and numbers that are normal in both. NONE is RINT."""
    bits = x.view(np.uint64)
    negative = bits >= np.uint64(1 << 63)
    magnitude = bits & np.uint64((1 << 63) - 1)
    rounded = round_bits(magnitude, np.full_like(magnitude, 29), negative, mode)
    rebased = np.where(magnitude == 0, np.uint64(0), rounded - np.uint64((1023 - 127) << 23))
    return (rebased.astype(np.uint32) | (negative.astype(np.uint32) << np.uint32(31))).view(np.float32)


def int_to_int(values: np.ndarray, saturate: bool, low: int, high: int) -> np.ndarray:
    """Integers to a type with limits ``low`` and ``high``, int64 values: the nearest limit, or the low bits."""
    wide = values.astype(np.int64)
    if saturate:
        return np.minimum(np.maximum(wide, np.int64(low)), np.int64(high))
    kept = np.int64(high) - np.int64(low)  # all ones: the width of the type
    low_bits = wide & kept
    return np.where(low_bits > high, low_bits - kept - 1, low_bits)


# Two elements of 4 bits a byte

FOUR_BITS = {
    "f4e2m1x2": np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32),
    "f4e1m2x2": np.array(
        [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, -0.0, -0.25, -0.5, -0.75, -1, -1.25, -1.5, -1.75], np.float32
    ),
    "i4x2": np.array([*range(8), *range(-8, 0)], np.float32),
}
"""The number that each code of a type of four bits stands for."""


def f32_to_four_bits(x: np.ndarray, kind: str, mode: int) -> np.ndarray:
    """float32 as codes of a type of four bits (uint8), saturating."""
    if kind == "i4x2":
        return (float_to_int(x, mode, True, -8, 7) & 15).astype(np.uint8)
    return (f32_to_e2m1_bits if kind == "f4e2m1x2" else f32_to_e1m2_bits)(x, mode)


def codes_of_pairs(packed: np.ndarray) -> np.ndarray:
    """Bytes as codes of four bits, the low half first."""
    return np.stack([packed & np.uint8(15), packed >> np.uint8(4)], -1).reshape(*packed.shape[:-1], -1)


def pairs_of_codes(codes: np.ndarray) -> np.ndarray:
    """Codes of four bits as bytes; the last of an odd number is left out."""
    even = codes[..., : codes.shape[-1] // 2 * 2]
    return even[..., 0::2] | even[..., 1::2] << np.uint8(4)


class Conversion(NamedTuple):
    """A pair of element types: what TCVT does with it when it is not told.

    ``family`` names the function: ``widen``, ``narrow`` (float to float), ``tiny`` (float to a float of 8 bits),
    ``whole`` (f32 to f32), ``to_int``, ``from_int``, ``int``, or ``to_pairs`` and ``from_pairs`` (of 4-bit elements).
    ``default_rounding`` is what CAST_NONE means, ``modes`` which modes an instruction has (one it lacks is its default),
    ``saturates`` the default of the form without a SaturationMode.
    """

    source: str
    target: str
    family: str
    default_rounding: int
    modes: tuple[int, ...]
    saturates: bool


_NEAREST_AND_DIRECTED = (RINT, ROUND, FLOOR, CEIL, TRUNC)

CONVERSIONS: tuple[Conversion, ...] = (
    Conversion("f32", "f32", "whole", RINT, _NEAREST_AND_DIRECTED, True),
    Conversion("f32", "f16", "narrow", RINT, (*_NEAREST_AND_DIRECTED, ODD), True),
    Conversion("f32", "bf16", "narrow", RINT, _NEAREST_AND_DIRECTED, True),
    Conversion("f32", "i32", "to_int", TRUNC, _NEAREST_AND_DIRECTED, True),
    Conversion("f32", "i16", "to_int", TRUNC, _NEAREST_AND_DIRECTED, False),
    Conversion("f32", "i64", "to_int", TRUNC, _NEAREST_AND_DIRECTED, True),
    Conversion("f16", "f32", "widen", RINT, (), True),
    Conversion("f16", "i32", "to_int", TRUNC, _NEAREST_AND_DIRECTED, True),
    Conversion("f16", "i16", "to_int", TRUNC, _NEAREST_AND_DIRECTED, False),
    Conversion("f16", "i8", "to_int", TRUNC, _NEAREST_AND_DIRECTED, False),
    Conversion("f16", "u8", "to_int", TRUNC, _NEAREST_AND_DIRECTED, False),
    Conversion("bf16", "f32", "widen", RINT, (), True),
    Conversion("bf16", "i32", "to_int", TRUNC, _NEAREST_AND_DIRECTED, True),
    Conversion("i32", "f32", "from_int", RINT, _NEAREST_AND_DIRECTED, True),
    Conversion("i32", "i16", "int", RINT, (), False),
    Conversion("i16", "f32", "from_int", RINT, (), True),
    Conversion("i16", "f16", "from_int", RINT, _NEAREST_AND_DIRECTED, True),
    Conversion("i8", "f16", "from_int", RINT, (), True),
    Conversion("u8", "f16", "from_int", RINT, (), True),
    Conversion("i32", "i64", "int", RINT, (), True),
    Conversion("i64", "i32", "int", RINT, (), False),
    Conversion("i64", "f32", "from_int", RINT, _NEAREST_AND_DIRECTED, True),
    # A2/A3 alone
    Conversion("f16", "i4x2", "to_pairs", TRUNC, _NEAREST_AND_DIRECTED, True),
    Conversion("i4x2", "f16", "from_pairs", RINT, (), True),
    Conversion("i32", "f16", "from_int", RINT, (), True),
    # A5 alone
    *(Conversion("bf16", target, "to_pairs", RINT, _NEAREST_AND_DIRECTED, True) for target in ("f4e2m1x2", "f4e1m2x2")),
    *(Conversion(source, "bf16", "from_pairs", RINT, (), True) for source in ("f4e2m1x2", "f4e1m2x2")),
    Conversion("bf16", "f16", "narrow", RINT, _NEAREST_AND_DIRECTED, True),
    *(
        Conversion(source, target, "int", RINT, (), True)
        for source, targets in (
            ("i16", ("u8", "u32", "i32")), ("i32", ("u16", "u8")), ("u8", ("u16",)), ("i8", ("i16", "i32")),
            ("u32", ("u8", "u16", "i16")),
        )
        for target in targets
    ),
    *(Conversion("f32", target, "tiny", RINT, (), True) for target in ("f8e4m3", "f8e5m2", "hif8")),
    Conversion("f16", "hif8", "tiny", RINT, (), True),
    *(Conversion(source, "f32", "widen", RINT, (), True) for source in ("f8e4m3", "f8e5m2", "hif8")),
)  # fmt: skip
"""TCVT's pairs, those of both chips first. Source: the switches and default overloads of TCvt.hpp (a2a3, a5)."""
