"""Exponential, logarithm and multiply-add: against the C library's, and what Numba makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ascsim.isa.semantics import functions


def floats(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    some = rng.integers(0, 2**32, 200_000, np.uint64).astype(np.uint32).view(np.float32)
    return np.concatenate(
        [some, rng.normal(0, 30, 100_000).astype(np.float32), np.float32([0, -0.0, 1, np.inf, -np.inf])]
    )


@pytest.mark.parametrize(("function", "reference"), [(functions.exponential, np.exp), (functions.logarithm, np.log)])
def test_rounded_as_the_c_librarys(function: Any, reference: Callable[..., np.ndarray]) -> None:
    given = floats(1)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(function(given), reference(given.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize("function", (functions.exponential, functions.logarithm))
def test_a_nan_keeps_its_payload(function: Any) -> None:
    given = np.array([0x7FC01234, 0xFFC00001], np.uint32).view(np.float32)
    np.testing.assert_array_equal(function(given).view(np.uint32), given.view(np.uint32))


@pytest.mark.parametrize("narrow", (False, True))
def test_multiply_add_of_small_numbers_is_exact(narrow: bool) -> None:
    a, b, c = np.random.default_rng(2).integers(-1000, 1000, (3, 5000)).astype(np.float32)
    np.testing.assert_array_equal(functions.multiply_add(a, b, c, narrow), a * b + c)


def test_for_narrow_types_what_float32_cannot_hold_is_odd() -> None:
    a, c = np.float32([1 + 2.0**-23, 2.0]), np.float32([2.0**-60, 2.0**-40])
    one = np.ones(2, np.float32)
    assert functions.multiply_add(a, one, c, False).tolist() == a.tolist()
    odd = functions.multiply_add(a, one, c, True)
    assert odd.tolist() == [1 + 2.0**-23, np.nextafter(np.float32(2), np.float32(3))]
