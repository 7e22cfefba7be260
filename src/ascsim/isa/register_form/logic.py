"""Bitwise logic of vector and mask registers, and shifts.

Source: asc-devkit C-API reg/logic_compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ascsim.isa.definition import In, LaneMask, Out, Scalar, Sort, register_instruction, types_of
from ascsim.isa.semantics import arithmetic
from ascsim.machine.dtypes import DTYPES, i16

_ZEROED = "Inactive lanes of dst become 0 (the C API's page); PTO's page leaves them as they were."
_DST, _MASK = Out("dst", Sort.VREG, "T"), LaneMask()
_EIGHT = ("u8", "i8", "u16", "i16", "f16", "u32", "i32", "f32")
_TWO = ("src0", "src1")

_LOGIC: tuple[tuple[str, tuple[str, ...], str, Callable[..., Any], tuple[str, ...]], ...] = (
    ("and", _TWO, "The bits that both have", arithmetic.bits_and, (*_EIGHT, "bf16", "f8e4m3", "f8e5m2")),
    ("or", _TWO, "The bits that either has", arithmetic.bits_or, _EIGHT),
    ("xor", _TWO, "The bits that one has and the other has not", arithmetic.bits_xor,
     ("u8", "i8", "u16", "i16", "u32", "i32")),
    ("not", ("src",), "The bits of src turned over", arithmetic.bits_not, _EIGHT),
)  # fmt: skip


def mask_and(a: np.ndarray, b: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Of masks."""
    return a & b & mask


def mask_or(a: np.ndarray, b: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Of masks."""
    return (a | b) & mask


def mask_xor(a: np.ndarray, b: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Of masks."""
    return (a ^ b) & mask


def mask_not(a: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Of a mask."""
    return (a ^ np.uint8(1)) & mask


_OF_MASKS: dict[str, Callable[..., Any]] = {"and": mask_and, "or": mask_or, "xor": mask_xor, "not": mask_not}

for _name, _sources, _said, _function, _types in _LOGIC:
    register_instruction(
        f"v{_name}", cpp=f"asc_{_name}", variants=types_of(*_types), masking="zero",
        operands=(_DST, *(In(s, Sort.VREG, "T") for s in _sources), _MASK),
        doc=f"{_said}, lane by lane; of floats, too, the bits as they stand.", notes=(_ZEROED,),
        sources=(f"asc-devkit C-API reg/logic_compute/asc_{_name}", f"pto-isa docs/isa v{_name}"),
    )(_function)  # fmt: skip
    register_instruction(
        f"p{_name}", cpp=f"asc_{_name}",
        operands=(Out("dst", Sort.MREG), *(In(s, Sort.MREG) for s in _sources), In("mask", Sort.MREG)),
        doc=f"{_said}, of mask registers; bits that the mask has not become 0.",
        sources=(f"asc-devkit C-API reg/logic_compute/asc_{_name}", f"pto-isa docs/isa p{_name}"),
    )(_OF_MASKS[_name])  # fmt: skip

_SHIFTED = tuple({"T": DTYPES[f"{sign}{bits}"], "S": DTYPES[f"i{bits}"]} for bits in (8, 16, 32) for sign in ("u", "i"))
_SHIFTS: tuple[tuple[str, str, str, str, Callable[..., Any]], ...] = (
    ("l", "left", "a signed lane keeps its sign, and only the bits below move", "0", arithmetic.shift_lanes_left),
    (
        "r",
        "right",
        "a signed lane is filled up with its sign",
        "0, or -1 of negative lanes",
        arithmetic.shift_lanes_right,
    ),
)

for _letter, _said, _signed, _beyond, _function in _SHIFTS:
    for _scalar in (False, True):
        _count = Scalar("value", i16) if _scalar else In("src1", Sort.VREG, "S")
        _cpp = f"asc_shift{_said}{'_scalar' if _scalar else ''}"
        _base = f"vsh{_letter}{'s' if _scalar else ''}"
        register_instruction(
            _base, cpp=_cpp, masking="zero",
            variants=types_of(*(v["T"].name for v in _SHIFTED)) if _scalar else _SHIFTED,
            operands=(_DST, In("src" if _scalar else "src0", Sort.VREG, "T"), _count, _MASK),
            extra=lambda types: (types["T"].kind == "i",),
            doc=f"Shift each lane {_said}: {_signed}. A count above the lane's width gives {_beyond}.",
            notes=(_ZEROED, *(("PTO's page shifts signed lanes as it does unsigned ones.",) if _letter == "l" else ())),
            assumed=("A count that equals the width, or is negative, counts as larger; the page leaves them open.",),
            sources=(f"asc-devkit C-API reg/logic_compute/{_cpp}", f"pto-isa docs/isa {_base}"),
        )(_function)  # fmt: skip
