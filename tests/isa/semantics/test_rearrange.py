"""Interleaving and its inverse."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.semantics.rearrange import deinterleave, deinterleave_mask, interleave, interleave_mask

LANES = [np.uint8, np.int8, np.uint16, np.int32, np.float32, np.float16, ml_dtypes.bfloat16, np.uint64]


def test_hand_worked_lanes():
    low, high = interleave(np.array([1, 2, 3, 4]), np.array([10, 20, 30, 40]))
    assert low.tolist() == [1, 10, 2, 20]
    assert high.tolist() == [3, 30, 4, 40]
    even, odd = deinterleave(np.array([1, 2, 3, 4]), np.array([5, 6, 7, 8]))
    assert even.tolist() == [1, 3, 5, 7]
    assert odd.tolist() == [2, 4, 6, 8]


@settings(deadline=None)
@given(st.sampled_from(LANES), st.lists(st.integers(1, 3), max_size=2), st.integers(0, 70), st.integers(0, 2**32 - 1))
def test_against_the_definition_and_back(kind, leading, half, seed):
    shape = (*leading, 2 * half, np.dtype(kind).itemsize)
    random = np.random.default_rng(seed)
    a, b = (random.integers(0, 256, shape).astype(np.uint8).view(kind)[..., 0] for _ in range(2))
    woven = np.stack([a, b], axis=-1).reshape(*leading, 4 * half)
    low, high = interleave(a, b)
    assert low.tobytes() == np.ascontiguousarray(woven[..., : 2 * half]).tobytes()
    assert high.tobytes() == np.ascontiguousarray(woven[..., 2 * half :]).tobytes()
    assert [x.tobytes() for x in deinterleave(low, high)] == [a.tobytes(), b.tobytes()]
    assert [x.tobytes() for x in interleave(*deinterleave(a, b))] == [a.tobytes(), b.tobytes()]


def test_a_source_twice():
    a = np.arange(8)
    assert interleave(a, a)[0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("group", [1, 2, 4])
def test_mask_groups_move_as_lanes_do(group):
    random = np.random.default_rng(group)
    a, b = random.integers(0, 2, (2, 256)).astype(np.uint8)
    as_lanes = [m.view(f"u{group}") for m in (a, b)]
    for masks, lanes in ((interleave_mask, interleave), (deinterleave_mask, deinterleave)):
        assert [m.tobytes() for m in masks(a, b, group)] == [x.tobytes() for x in lanes(*as_lanes)]
    assert [m.tolist() for m in deinterleave_mask(*interleave_mask(a, b, group), group)] == [a.tolist(), b.tolist()]


def test_hand_worked_mask():
    a, b = np.zeros(256, np.uint8), np.zeros(256, np.uint8)
    a[4], b[252] = 1, 1  # b32: group 1 of a, group 63 of b
    low, high = interleave_mask(a, b, 4)
    assert np.flatnonzero(low).tolist() == [8]
    assert np.flatnonzero(high).tolist() == [252]


def test_compiled(agrees):
    random = np.random.default_rng(0)
    lanes = random.integers(0, 2**16, (2, 128)).astype(np.uint16)
    tile = random.standard_normal((2, 3, 10)).astype(np.float32)
    masks = random.integers(0, 2, (2, 256)).astype(np.uint8)
    agrees(interleave, *lanes)
    agrees(deinterleave, *lanes)
    agrees(interleave, *tile)
    for group in (1, 2, 4):
        agrees(interleave_mask, *masks, group)
        agrees(deinterleave_mask, *masks, group)
