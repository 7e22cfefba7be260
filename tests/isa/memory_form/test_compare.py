"""Comparison and selection on UB, and the compare mask."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from ascsim.machine.trace import Mode
from harness import Bench

RNG = np.random.default_rng(11)
OPERATORS = {n: getattr(operator, n) for n in ("lt", "le", "gt", "ge", "eq", "ne")}
NAN = float("nan")


def values(kind: str, count: int) -> np.ndarray:
    found = RNG.integers(-3, 3, count).astype(np.float32)
    found[::7] = NAN
    found[1::9] = -0.0
    return found.astype({"f32": np.float32, "f16": np.float16}[kind])


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", ("f32", "f16"))
def test_bits_in_memory_are_dense_and_heed_no_mask(name: str, kind: str) -> None:
    bench = Bench("a2a3")
    lanes = 64 if kind == "f32" else 128
    a, b = values(kind, 3 * lanes), values(kind, 3 * lanes)
    src0, src1, dst = bench.pointer(kind, a), bench.pointer(kind, b), bench.pointer("u8", count=64)
    bench.issue("set_vector_mask", 0, 1)
    bench.issue(f"vcmpv_{name}", dst, src0, src1, 3, 1, 1, 1, 8, 8, 8)
    want = np.packbits(OPERATORS[name](a, b), bitorder="little")
    assert np.array_equal(bench.load(dst, want.size), want)
    assert np.flatnonzero(bench.traced(Mode.WRITE)).tolist() == list(range(dst.offset, dst.offset + want.size))
    bench.issue(f"asc_{name}_scalar", dst, src0, 1.0, 3, 1, 1, 8, 8)
    want = np.packbits(OPERATORS[name](a, a.dtype.type(1)), bitorder="little")
    assert np.array_equal(bench.load(dst, want.size), want)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_compare_mask_keeps_bits_that_are_masked_out(name: str) -> None:
    bench = Bench("a2a3")
    a, b = values("f32", 64), values("f32", 64)
    src0, src1 = bench.pointer("f32", a), bench.pointer("f32", b)
    seed = bench.pointer("u8", np.full(16, 0xAA))
    bench.issue("asc_set_cmp_mask", seed)
    bench.issue("set_vector_mask", 0, (1 << 32) - 1)
    bench.issue(f"vcmp_{name}", src0, src1, 1, 1, 1, 1, 8, 8, 8)
    out = bench.pointer("u8", count=16)
    bench.issue("asc_get_cmp_mask", out)
    bits = np.unpackbits(np.full(16, 0xAA, np.uint8), bitorder="little")
    bits[:32] = OPERATORS[name](a, b)[:32]
    assert np.array_equal(bench.load(out, 16), np.packbits(bits, bitorder="little"))


@pytest.mark.parametrize(("kind", "lanes"), [("f32", 64), ("f16", 128)])
def test_a_selection_has_the_same_bits_in_each_repeat(kind: str, lanes: int) -> None:
    bench = Bench("a2a3")
    a, b = values(kind, 300), values(kind, 300)
    mask = RNG.integers(0, 256, 16).astype(np.uint8)
    src0, src1, dst = bench.pointer(kind, a), bench.pointer(kind, b), bench.pointer(kind, count=300)
    bench.issue("asc_set_cmp_mask", bench.pointer("u8", mask))
    bench.issue("asc_select", dst, src0, src1, 300)
    bits = np.resize(np.unpackbits(mask, bitorder="little")[:lanes], 300).astype(bool)
    assert np.array_equal(bench.load(dst, 300).view(np.uint8), np.where(bits, a, b).view(np.uint8))


def test_integers_are_compared_for_equality() -> None:
    bench = Bench("a2a3")
    a = np.array([2**31 - 1, 2**31 - 2] * 32)
    src, dst = bench.pointer("i32", a), bench.pointer("u8", count=8)
    bench.issue("asc_eq_scalar", dst, src, 2**31 - 1, 1, 1, 1, 8, 8)
    assert bench.load(dst, 8).tolist() == [0x55] * 8
    bench.issue("vcmpv_eq", dst, src, src, 1, 1, 1, 1, 8, 8, 8)
    assert bench.load(dst, 8).tolist() == [0xFF] * 8
