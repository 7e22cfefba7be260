"""Mask registers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.semantics.masks import (
    PATTERN_CODES,
    compared,
    from_lanes,
    lanes_of,
    pattern_mask,
)

SIZES = [1, 2, 4, 8]


def wanted(name, lanes):
    """The active lane numbers, from the words of the documentation."""
    if name.startswith("VL"):
        return list(range(min(int(name[2:]), lanes)))
    return {
        "ALL": list(range(lanes)), "ALLF": [], "M3": list(range(0, lanes, 3)), "M4": list(range(0, lanes, 4)),
        "H": list(range(lanes // 2)), "Q": list(range(lanes // 4)),
    }[name]  # fmt: skip


@pytest.mark.parametrize("name", PATTERN_CODES)
@pytest.mark.parametrize("size", SIZES)
def test_patterns(name, size):
    mask = pattern_mask(PATTERN_CODES[name], size)
    assert mask.dtype == np.uint8 and mask.size == 256
    assert np.flatnonzero(mask).tolist() == [size * lane for lane in wanted(name, 256 // size)]


def test_pattern_codes_are_the_public_enumeration():
    assert list(PATTERN_CODES.values()) == [*range(14), 15]
    assert not pattern_mask(14, 1).any()


@settings(deadline=None)
@given(st.sampled_from(SIZES), st.integers(0, 2**32 - 1))
def test_lanes_in_and_out(size, seed):
    random = np.random.default_rng(seed)
    lanes = random.integers(0, 2, 256 // size).astype(np.uint8)
    mask = from_lanes(lanes, size)
    assert lanes_of(mask, size).tolist() == lanes.tolist()
    assert mask.sum() == lanes.sum()
    noisy = mask.copy()
    noisy.reshape(-1, size)[:, 1:] = 1  # only the first entry of a group counts
    assert lanes_of(noisy, size).tolist() == lanes.tolist()


def test_comparison_writes_the_active_lanes():
    result = np.zeros(64, bool)
    result[[0, 3, 63]] = True
    active = np.ones(64, np.uint8)
    active[3] = 0
    assert np.flatnonzero(compared(result, active, 4)).tolist() == [0, 252]


def test_compiled(agrees):
    for code in range(16):
        agrees(pattern_mask, code, 2)
    lanes = np.random.default_rng(0).integers(0, 2, 64).astype(np.uint8)
    agrees(lanes_of, from_lanes(lanes, 4), 4)
    agrees(from_lanes, lanes, 4)
    agrees(compared, lanes != 0, lanes[::-1].copy(), 4)
