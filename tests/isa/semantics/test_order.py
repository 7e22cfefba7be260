"""Ranks of raw bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.semantics import order as o
from ascsim.isa.semantics.order import BF16, F16, F32, SIGNED, UNSIGNED, bits_of_rank, is_nan, rank

FLOATS = {F32: np.float32, F16: np.float16, BF16: ml_dtypes.bfloat16}
ALL_16_BITS = np.arange(1 << 16, dtype=np.uint16)


def test_hand_worked_ranks():
    f32 = np.array([1.0, 0.0, -0.0, -1.0], np.float32).view(np.uint32)
    assert rank(f32, F32).tolist() == [0xBF800000, 0x80000000, 0x7FFFFFFF, 0x407FFFFF]
    assert rank(np.array([0x8000, 0xFFFF, 0, 0x7FFF], np.uint16), SIGNED).tolist() == [
        0, 0x7FFF0000, 0x80000000, 0xFFFF0000,
    ]  # fmt: skip
    assert rank(np.array([0, 255], np.uint8), UNSIGNED).tolist() == [0, 0xFF000000]


@pytest.mark.parametrize("order", [F16, BF16])
def test_every_16_bit_float_is_ranked_by_its_value(order):
    ranks = rank(ALL_16_BITS, order)
    with np.errstate(invalid="ignore"):
        values = ALL_16_BITS.view(FLOATS[order]).astype(np.float64)[np.argsort(ranks)]
    numbers = values[~np.isnan(values)]
    assert (np.diff(numbers) >= 0).all()
    nans = (values.size - numbers.size) // 2
    assert np.isnan(values[:nans]).all() and np.isnan(values[-nans:]).all()
    assert ranks[0x8000] + 1 <= ranks[0] and np.unique(ranks).size == ranks.size


def test_integers_are_ranked_by_their_value():
    assert (np.diff(rank(np.arange(-32768, 32768).astype(np.int16).view(np.uint16), SIGNED).astype(np.int64)) > 0).all()
    assert (np.diff(rank(np.arange(-128, 128).astype(np.int8).view(np.uint8), SIGNED).astype(np.int64)) > 0).all()
    assert (np.diff(rank(ALL_16_BITS, UNSIGNED).astype(np.int64)) > 0).all()


@pytest.mark.parametrize("order", range(5))
def test_bits_come_back(order):
    assert (bits_of_rank(rank(ALL_16_BITS, order), order, 2) == ALL_16_BITS).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1), st.sampled_from([UNSIGNED, SIGNED, F32]))
def test_bits_of_32_come_back(numbers, order):
    bits = np.array(numbers, np.uint32)
    assert (bits_of_rank(rank(bits, order), order, 4) == bits).all()


@pytest.mark.parametrize("order", [F16, BF16])
def test_nan_of_16_bits(order):
    with np.errstate(invalid="ignore"):
        assert (is_nan(ALL_16_BITS, order) == np.isnan(ALL_16_BITS.view(FLOATS[order]))).all()


def test_infinities():
    for order, kind in FLOATS.items():
        assert np.array([o.INFINITY_BITS[order]], f"u{np.dtype(kind).itemsize}").view(kind)[0] == np.inf


def test_compiled(agrees):
    random = np.random.default_rng(1).integers(0, 2**32, 120).astype(np.uint32)
    for bits, orders in ((random, (UNSIGNED, SIGNED, F32)), (random.astype(np.uint16), (SIGNED, F16, BF16))):
        for order in orders:
            agrees(rank, bits, order)
            agrees(bits_of_rank, rank(bits, order), order, bits.itemsize)
            agrees(is_nan, bits, order)
