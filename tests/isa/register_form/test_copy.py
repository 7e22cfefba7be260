"""Copies between registers: what stays, what becomes zero, which lane is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascsim.frontends.python.kernels import _choose
from ascsim.isa import REGISTRY
from ascsim.machine.dtypes import DTYPES
from ascsim.machine.operands import MReg, VReg
from harness import Bench


def run(name: str, *args: Any) -> Any:
    bench = Bench("a5")
    definition: Any = _choose([d for d in REGISTRY.by_cpp[name] if "a5" in d.profiles], args)
    return bench.machine.issue(bench.core, definition.infer(args), args, 0)


def random_register(kind: str, seed: int = 0) -> VReg:
    return VReg(DTYPES[kind], np.random.default_rng(seed).integers(0, 256, 256).astype(np.uint8))


def random_mask(seed: int = 0) -> MReg:
    return MReg(np.random.default_rng(seed).integers(0, 2, 256).astype(np.uint8))


@pytest.mark.parametrize("kind", ("u8", "bf16", "f32"))
def test_a_masked_copy_keeps_the_other_lanes(kind: str) -> None:
    size = DTYPES[kind].size
    old, new, mask = random_register(kind, 1), random_register(kind, 2), random_mask()
    active = mask.data[::size].astype(bool)
    got = run("asc_copy", old, new, mask).data.view(f"u{size}")
    np.testing.assert_array_equal(got, np.where(active, new.data.view(f"u{size}"), old.data.view(f"u{size}")))


def test_masks_are_copied_whole_or_by_the_bits_of_another() -> None:
    one, other = random_mask(1), random_mask(2)
    np.testing.assert_array_equal(run("asc_copy", one).data, one.data)
    np.testing.assert_array_equal(run("asc_copy", one, other).data, one.data & other.data)


@pytest.mark.parametrize(("kind", "parts"), [("u16", 16), ("u32", 32)])
def test_a_part_of_a_register_becomes_a_mask(kind: str, parts: int) -> None:
    register, times = random_register(kind), DTYPES[kind].size
    bits = np.unpackbits(register.data, bitorder="little").reshape(parts, -1)
    for part in range(parts):
        mask = run("asc_copy", register, part)
        np.testing.assert_array_equal(mask.data, np.repeat(bits[part], times))


@pytest.mark.parametrize(("kind", "index"), [("i8", "u8"), ("f16", "u16"), ("u32", "u32")])
def test_lanes_are_taken_by_index_modulo_their_number(kind: str, index: str) -> None:
    register, places = random_register(kind, 3), random_register(index, 4)
    lanes = register.data.view(DTYPES[kind].bits_dtype)
    expected = lanes[places.lanes.astype(np.int64) % lanes.size]
    got = run("asc_gather", register, places)
    np.testing.assert_array_equal(got.data.view(DTYPES[kind].bits_dtype), expected)
