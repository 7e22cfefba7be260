"""Data for register instructions: random lanes with the awkward values among them, buffers of a compiled wrapper."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascsim.isa import REGISTRY
from ascsim.isa.compile import buffer_bytes, parameters
from ascsim.isa.definition import BoundRegisterInstruction, RegisterInstruction, Sort
from ascsim.machine.dtypes import DTYPES, DType
from ascsim.machine.operands import MReg, VReg
from harness import Bench

_AWKWARD = {
    "f32": [0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC01234, 0x7F812345, 0x00000001, 0x80000001,
            0x7F7FFFFF, 0x3F800000, 0xBF800000, 0x477FF000, 0x477FE000, 0x33000000, 0x33000001, 0x38800000, 0x387FFFFF],
    "f16": [0x0000, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01, 0x0001, 0x8001, 0x7BFF, 0x3C00, 0xBC00],
    "bf16": [0x0000, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81, 0x0001, 0x8001, 0x7F7F, 0x3F80, 0xBF80],
}  # fmt: skip
"""Bits of zeros, infinities, quiet and signalling NaNs, subnormals, limits, ties of conversions."""


def register_bytes(kind: DType, rng: np.random.Generator) -> np.ndarray:
    """256 bytes whose lanes are random bits, small numbers and awkward values of the type."""
    bits = rng.integers(0, 256, 256).astype(np.uint8).view(kind.bits_dtype)
    if kind.kind == "f" and kind.name in _AWKWARD:
        some = rng.integers(0, 3, bits.size)
        small = rng.integers(-4, 5, bits.size).astype(kind.numpy).view(kind.bits_dtype)
        bits = np.choose(some, [bits, small, rng.choice(np.array(_AWKWARD[kind.name], kind.bits_dtype), bits.size)])
    elif kind.kind in "iu" and kind.size <= 4:
        limits = np.array([0, 1, (1 << 8 * kind.size) - 1, 1 << (8 * kind.size - 1)], kind.bits_dtype)
        bits = np.where(rng.integers(0, 4, bits.size) == 0, rng.choice(limits, bits.size), bits)
    return np.ascontiguousarray(bits.astype(kind.bits_dtype)).view(np.uint8)


def buffers(bound: BoundRegisterInstruction, rng: np.random.Generator) -> list[np.ndarray]:
    """Buffers for :func:`ascsim.isa.compile.parameters`: random inputs, outputs full of rubbish."""
    made = []
    for name in parameters(bound):
        nbytes = buffer_bytes(bound, name)
        operand = next((o for o in bound.definition.operands if name == f"in_{o.name}"), None)
        if operand is None:
            made.append(rng.integers(0, 256, nbytes).astype(np.uint8))
        elif operand.sort is Sort.MREG:
            made.append(rng.integers(0, 2, nbytes).astype(np.uint8))
        elif operand.sort is Sort.ENUM:
            members = [int(m) for m in operand.enum]  # type: ignore[union-attr]
            made.append(np.array([rng.choice(members)], np.int64).view(np.uint8).copy())
        else:
            kind = bound.dtype_of(operand) or DTYPES["u8"]
            made.append(np.resize(register_bytes(kind, rng), nbytes).copy())
    return made


def register_instructions() -> list[RegisterInstruction]:
    """All of them, in order."""
    return [d for d in REGISTRY.definitions if isinstance(d, RegisterInstruction)]


def forms(cpp: str) -> list[RegisterInstruction]:
    """The register instructions of that C++ name."""
    return [d for d in REGISTRY.by_cpp[cpp] if isinstance(d, RegisterInstruction)]


def register(kind: str, seed: int) -> VReg:
    """A register of random lanes, awkward values among them."""
    return VReg(DTYPES[kind], register_bytes(DTYPES[kind], np.random.default_rng(seed)))


def random_mask(seed: int) -> MReg:
    """A mask register of random bits; not those that :func:`register` draws."""
    return MReg(np.random.default_rng(seed + 1).integers(0, 2, 256).astype(np.uint8))


def lanes_of(mask: MReg, kind: str) -> np.ndarray:
    """Which lanes of a type a mask has active."""
    return mask.data[:: DTYPES[kind].size].astype(bool)


def bits(value: VReg) -> np.ndarray:
    """A register's lanes as unsigned integers."""
    return value.data.view(value.dtype.bits_dtype)


def from_bits(kind: str, values: Any) -> VReg:
    """A register whose first lanes have these bits, the others 0."""
    made = np.zeros(256 // DTYPES[kind].size, DTYPES[kind].bits_dtype)
    made[: len(values)] = values
    return VReg(DTYPES[kind], made.view(np.uint8))


def issue(name: str, *args: Any, **more: Any) -> Any:
    """Issue an instruction on a fresh core of the A5; returns what it yields."""
    return Bench("a5").issue(name, *args, **more)
