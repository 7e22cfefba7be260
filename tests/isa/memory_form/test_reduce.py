"""Reductions on UB: of repeats, blocks and pairs."""

from __future__ import annotations

import numpy as np
import pytest

from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from harness import Bench

RNG = np.random.default_rng(3)
KINDS = ("f32", "f16")


def data(kind: str, repeats: int) -> np.ndarray:
    lanes = 256 // dtype(kind).size
    return RNG.integers(-50, 50, (repeats, lanes)).astype(dtype(kind).numpy)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "group"), [("vcadd", 0), ("vcgadd", 8), ("vcpadd", -1)])
def test_sums(kind: str, name: str, group: int) -> None:
    bench, values = Bench("a2a3"), data(kind, 4)
    lanes = values.shape[1]
    per = {0: lanes, 8: lanes // 8, -1: 2}[group]
    src, dst = bench.pointer(kind, values), bench.pointer(kind, count=4 * lanes)
    bench.issue(name, dst, src, 4, 1, 1, 8)
    want = values.reshape(-1, per).astype(np.float64).sum(1)
    assert np.array_equal(bench.load(dst, want.size), want.astype(values.dtype))
    written = np.flatnonzero(bench.traced(Mode.WRITE))
    assert written.tolist() == list(range(dst.offset, dst.offset + want.size * values.itemsize))


def test_sums_of_half_stop_at_the_largest() -> None:
    bench = Bench("a2a3")
    values = np.zeros(128, np.float16)
    values[:4] = [60000, 60000, -30000, 16]
    src, dst = bench.pointer("f16", values), bench.pointer("f16", count=1)
    bench.issue("asc_repeat_reduce_sum", dst, src, 128)
    assert bench.load(dst, 1)[0] == np.float16(65504 - 29984)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "best"), [("max", np.argmax), ("min", np.argmin)])
def test_the_largest_and_its_number_in_four_orders(kind: str, name: str, best) -> None:
    bench, values = Bench("a2a3"), data(kind, 3)
    integer = dtype(kind).bits_dtype
    src, dst = bench.pointer(kind, values), bench.pointer(kind, count=64)
    places = best(values, 1)
    found = values[np.arange(3), places]

    def reduced(which: str, elements: int) -> np.ndarray:
        bench.issue(f"asc_repeat_reduce_{name}_{which}", dst, src, 3, 1, 1, 8)
        return bench.load(dst, elements)

    pairs = reduced("value_index", 6)
    assert np.array_equal(pairs[0::2], found)
    assert np.array_equal(pairs.view(integer)[1::2], places)
    pairs = reduced("index_value", 6)
    assert np.array_equal(pairs[1::2], found)
    assert np.array_equal(pairs.view(integer)[0::2], places)
    assert np.array_equal(reduced("only_value", 3), found)
    assert np.array_equal(reduced("only_index", 12 // values.itemsize).view(np.uint32), places)
    number = bench.issue("get_max_min_cnt")
    assert number >> 32 == int(best(values))
    assert np.array([number & 0xFFFFFFFF], np.uint32).view(values.dtype)[0] == values.flat[int(best(values))]
    bench.issue(f"asc_datablock_reduce_{name}", dst, src, 3 * values.shape[1])
    want = getattr(values.reshape(24, -1), name)(1)
    assert np.array_equal(bench.load(dst, 24), want)


def test_elements_that_are_masked_out_do_not_count() -> None:
    bench, values = Bench("a2a3"), data("f32", 1)
    src, dst = bench.pointer("f32", values), bench.pointer("f32", [7] * 16)
    bench.issue("set_vector_mask", 0, 0b1011 << 16)
    bench.issue("vcgadd", dst, src, 1, 1, 1, 8)
    assert bench.load(dst, 8).tolist() == [7, 7, values[0, 16] + values[0, 17] + values[0, 19], 7, 7, 7, 7, 7]
    bench.issue("vcadd", dst, src, 1, 1, 1, 8)
    assert bench.load(dst, 2).tolist() == [values[0, 16] + values[0, 17] + values[0, 19], 7]
    read = np.flatnonzero(bench.traced(Mode.READ)) - src.offset
    assert read.tolist() == [*range(64, 72), *range(76, 80)]


def test_results_of_repeats_lie_as_far_apart_as_asked() -> None:
    bench, values = Bench("a2a3"), data("f16", 3)
    src, dst = bench.pointer("f16", values), bench.pointer("f16", count=64)
    bench.issue("vcgmax", dst, src, 3, 2, 1, 8)
    blocks = values.reshape(3, 8, 16).max(2)
    assert np.array_equal(bench.load(dst, 48).reshape(3, 16)[:, :8], blocks)
    assert not bench.load(dst, 48).reshape(3, 16)[:, 8:].any()


def test_one_repeat_alone() -> None:
    bench, values = Bench("a2a3"), data("f32", 1)
    src, dst = bench.pointer("f32", values), bench.pointer("f32", count=2)
    bench.issue("asc_repeat_reduce_max_value_index_sync", dst, src, 64)
    found = bench.load(dst, 2)
    assert found[0] == values.max()
    assert found.view(np.uint32)[1] == values.argmax()
    assert bench.issue("get_max_min_cnt") >> 32 == values.argmax()
