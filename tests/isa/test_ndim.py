"""Copies in several dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.operands import Pointer
from ascsim.machine.trace import Mode
from ascsim.machine.words import Space
from harness import Bench


def bench_with(data: np.ndarray, kind: str = "f16") -> tuple[Bench, Pointer, Pointer]:
    bench = Bench("a5")
    return bench, bench.pointer(kind, at=0), bench.pointer(kind, data, space=Space.GM)


@pytest.mark.parametrize("constant", (True, False))
def test_the_example_of_the_page_pads_both_dimensions(constant: bool) -> None:
    values = np.arange(1, 13).reshape(4, 3)
    bench, dst, src = bench_with(values)
    bench.issue("asc_set_ndim_loop0_stride", 1, 1)
    bench.issue("asc_set_ndim_loop1_stride", 6, 3)
    for loop in (2, 3, 4):
        bench.issue(f"asc_set_ndim_loop{loop}_stride", 0, 0)
    bench.issue("set_pad_val_nddma_f16", 88.0)
    bench.issue("asc_set_ndim_pad_count", 2 | 3 << 8)
    bench.issue("asc_ndim_copy_gm2ub", dst, src, 3, 4, 1, 1, 1, 2, 1, int(constant), 0)
    want = np.pad(values, ((2, 3), (2, 1)), **({"constant_values": 88} if constant else {"mode": "edge"}))
    assert np.array_equal(bench.load(dst, 54).reshape(9, 6), want)
    assert np.flatnonzero(bench.traced(Mode.WRITE)).tolist() == list(range(108))
    assert bench.traced(Mode.READ, Space.GM).sum() == 24


def test_strides_transpose_and_broadcast() -> None:
    values = np.arange(12).reshape(3, 4)
    bench, dst, src = bench_with(values, "i32")
    bench.issue("asc_set_ndim_loop0_stride", 3, 1)
    bench.issue("asc_set_ndim_loop1_stride", 1, 4)
    bench.issue("asc_ndim_copy_gm2ub", dst, src, 4, 3, 1, 1, 1, 0, 0, 0, 0)
    assert np.array_equal(bench.load(dst, 12).reshape(4, 3), values.T)
    bench.issue("asc_set_ndim_loop0_stride", 1, 1)
    bench.issue("asc_set_ndim_loop1_stride", 4, 0)
    bench.issue("asc_ndim_copy_gm2ub", dst, src, 4, 3, 1, 1, 1, 0, 0, 0, 0)
    assert np.array_equal(bench.load(dst, 12).reshape(3, 4), np.tile(values[0], (3, 1)))


@given(sizes=st.tuples(*[st.integers(1, 3)] * 5), pads=st.tuples(*[st.integers(0, 2)] * 10), constant=st.booleans())
@settings(max_examples=40, deadline=None)
def test_five_dimensions(sizes: tuple[int, ...], pads: tuple[int, ...], constant: bool) -> None:
    shape = sizes[::-1]
    values = np.arange(np.prod(shape)).reshape(shape)
    around = [(pads[2 * n], pads[2 * n + 1]) for n in range(5)][::-1]
    want = np.pad(values, around, **({"constant_values": 99} if constant else {"mode": "edge"}))
    bench, dst, src = bench_with(values, "i32")
    for loop in range(5):
        steps = [int(np.prod(array.shape[5 - loop :])) for array in (want, values)]
        bench.issue(f"asc_set_ndim_loop{loop}_stride", *steps)
    bench.issue("asc_set_ndim_pad_count", sum(count << 8 * n for n, count in enumerate(pads[2:])))
    bench.issue("set_pad_val_nddma_i32", 99)
    bench.issue("asc_ndim_copy_gm2ub", dst, src, *sizes, *pads[:2], int(constant), 0)
    assert np.array_equal(bench.load(dst, want.size).reshape(want.shape), want)


def test_the_older_way_to_set_the_padding_of_copies() -> None:
    bench = Bench("a5")
    bench.issue("asc_set_gm2ub_pad", 0x12345678)
    assert bench.core.state.pad == 0x12345678
    bench.issue("asc_ndim_copy_dci")
