"""Element types: one record each, with its names in every front end.

``numpy`` is the type the bytes are viewed as; ``bits_dtype`` the unsigned integer of the same width. Types narrower
than a byte come packed, two to a byte, and are moved as bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import ml_dtypes
import numpy as np


@dataclass(frozen=True, eq=False)
class DType:
    """One element type. ``kind`` is ``f`` (float), ``i`` (signed), ``u`` (unsigned)."""

    name: str
    size: int
    kind: str
    numpy: np.dtype
    c_names: tuple[str, ...]
    asm_names: tuple[str, ...]
    code: int

    @cached_property
    def bits_dtype(self) -> np.dtype:
        """The unsigned integer type of the same width."""
        return np.dtype(f"u{self.size}")

    @property
    def is_narrow_float(self) -> bool:
        """True for floats that semantics see widened to float32."""
        return self.kind == "f" and self.size < 4

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        return (dtype, (self.name,))


def _hifloat8() -> np.dtype:
    import en_dtypes

    return np.dtype(en_dtypes.hifloat8)


def _make() -> dict[str, DType]:
    rows: list[tuple[str, int, str, object, tuple[str, ...], tuple[str, ...]]] = [
        ("f32", 4, "f", np.float32, ("float", "float32_t"), ("f32",)),
        ("f16", 2, "f", np.float16, ("half", "float16_t", "aclFloat16"), ("f16",)),
        ("bf16", 2, "f", ml_dtypes.bfloat16, ("bfloat16_t",), ("bf16",)),
        ("i8", 1, "i", np.int8, ("int8_t",), ("i8", "si8")),
        ("u8", 1, "u", np.uint8, ("uint8_t",), ("ui8", "u8")),
        ("i16", 2, "i", np.int16, ("int16_t",), ("i16", "si16")),
        ("u16", 2, "u", np.uint16, ("uint16_t",), ("ui16", "u16")),
        ("i32", 4, "i", np.int32, ("int32_t",), ("i32", "si32")),
        ("u32", 4, "u", np.uint32, ("uint32_t",), ("ui32", "u32")),
        ("i64", 8, "i", np.int64, ("int64_t",), ("i64", "si64")),
        ("u64", 8, "u", np.uint64, ("uint64_t",), ("ui64", "u64")),
        ("f8e4m3", 1, "f", ml_dtypes.float8_e4m3fn, ("fp8_e4m3fn_t", "float8_e4m3_t"), ("f8E4M3FN", "f8E4M3")),
        ("f8e5m2", 1, "f", ml_dtypes.float8_e5m2, ("fp8_e5m2_t", "float8_e5m2_t"), ("f8E5M2",)),
        ("f8e8m0", 1, "f", ml_dtypes.float8_e8m0fnu, ("fp8_e8m0_t", "float8_e8m0_t"), ("f8E8M0FNU", "f8E8M0")),
        ("hif8", 1, "f", "hif8", ("hifloat8_t",), ("hif8",)),
        ("f4e2m1x2", 1, "u", np.uint8, ("fp4x2_e2m1_t", "float4_e2m1x2_t"), ("f4E2M1x2",)),
        ("f4e1m2x2", 1, "u", np.uint8, ("fp4x2_e1m2_t", "float4_e1m2x2_t"), ("f4E1M2x2",)),
        ("i4x2", 1, "u", np.uint8, ("int4x2_t",), ("i4x2",)),
        ("f64", 8, "f", np.float64, ("double",), ("f64",)),
    ]
    made = {}
    for code, (name, size, kind, numpy_type, c_names, asm_names) in enumerate(rows, start=1):
        numpy_dtype = _hifloat8() if numpy_type == "hif8" else np.dtype(numpy_type)  # type: ignore[call-overload]
        made[name] = DType(name, size, kind, numpy_dtype, c_names, asm_names, code)
    return made


DTYPES: dict[str, DType] = _make()
BY_CODE: dict[int, DType] = {d.code: d for d in DTYPES.values()}
_BY_ANY_NAME: dict[str, DType] = {alias: d for d in DTYPES.values() for alias in (d.name, *d.c_names, *d.asm_names)}
_BY_NUMPY: dict[np.dtype, DType] = {}
for _d in DTYPES.values():
    _BY_NUMPY.setdefault(_d.numpy, _d)

f32, f16, bf16 = DTYPES["f32"], DTYPES["f16"], DTYPES["bf16"]
i8, u8, i16, u16 = DTYPES["i8"], DTYPES["u8"], DTYPES["i16"], DTYPES["u16"]
i32, u32, i64, u64 = DTYPES["i32"], DTYPES["u32"], DTYPES["i64"], DTYPES["u64"]
f8e4m3, f8e5m2, f8e8m0, hif8 = DTYPES["f8e4m3"], DTYPES["f8e5m2"], DTYPES["f8e8m0"], DTYPES["hif8"]
f4e2m1x2, f4e1m2x2, i4x2, f64 = DTYPES["f4e2m1x2"], DTYPES["f4e1m2x2"], DTYPES["i4x2"], DTYPES["f64"]


def dtype(name: str | DType | np.dtype | type) -> DType:
    """The element type of that name (``f32``, ``half``, ``ui32``, ``np.float32``, ...).

    Raises:
        ValueError: no element type has that name.
    """
    if isinstance(name, DType):
        return name
    found = _BY_ANY_NAME.get(name) if isinstance(name, str) else _BY_NUMPY.get(np.dtype(name))
    if found is None:
        raise ValueError(f"unknown element type {name!r}; known are {', '.join(DTYPES)}")
    return found
