"""Masks from patterns and from counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa import REGISTRY
from ascsim.isa.register_form.words import Pattern
from harness import Bench, MReg

WIDTHS = (8, 16, 32)


def created(bits: int, pattern: Any) -> np.ndarray:
    made = Bench("a5").issue(f"asc_create_mask_b{bits}", pattern)
    assert isinstance(made, MReg)
    return made.data


def lanes(mask: np.ndarray, bits: int) -> list[int]:
    """The lanes that are set; nothing but the lowest bit of a lane's group may be."""
    size = bits // 8
    set_bits = np.flatnonzero(mask)
    assert (set_bits % size == 0).all()
    assert set(np.unique(mask)) <= {0, 1}
    return (set_bits // size).tolist()


def expected(pattern: Pattern, count: int) -> list[int]:
    """As asc_create_mask.md says."""
    name = pattern.name.removeprefix("PAT_")
    if name.startswith("VL"):
        return list(range(min(int(name[2:]), count)))
    ways: dict[str, Any] = {
        "ALL": range(count), "ALLF": range(0), "H": range(count // 2), "Q": range(count // 4),
        "M3": range(0, count, 3), "M4": range(0, count, 4),
    }  # fmt: skip
    return list(ways[name])


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("pattern", Pattern)
def test_a_pattern_sets_the_lanes_that_it_names(pattern: Pattern, bits: int) -> None:
    assert lanes(created(bits, pattern), bits) == expected(pattern, 2048 // bits)


def test_hand_worked_patterns() -> None:
    assert lanes(created(32, Pattern.PAT_VL3), 32) == [0, 1, 2]
    assert np.flatnonzero(created(32, Pattern.PAT_VL3)).tolist() == [0, 4, 8]
    assert lanes(created(16, Pattern.PAT_M3), 16)[:4] == [0, 3, 6, 9]
    assert len(lanes(created(8, Pattern.PAT_H), 8)) == 128
    assert max(lanes(created(8, Pattern.PAT_Q), 8)) == 63  # the lower end
    assert len(lanes(created(32, Pattern.PAT_VL128), 32)) == 64


@pytest.mark.parametrize("bits", WIDTHS)
def test_the_builtin_and_both_operations_are_the_same_instruction(bits: int) -> None:
    for name in (f"pset_b{bits}", f"pto.pset_b{bits}"):
        assert REGISTRY.find(name)[0] is REGISTRY.by_cpp[f"asc_create_mask_b{bits}"][0]
    assert REGISTRY.find(f"pto.plt_b{bits}")[0] is REGISTRY.by_cpp[f"asc_update_mask_b{bits}"][0]


@pytest.mark.parametrize("bits", WIDTHS)
def test_the_c_function_returns_the_mask(bits: int) -> None:
    for name in (f"asc_create_mask_b{bits}", f"asc_update_mask_b{bits}"):
        (definition,) = REGISTRY.by_cpp[name]
        assert definition.returns == "mask"  # type: ignore[attr-defined]
        assert "mask" not in definition.cpp_order


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(WIDTHS), st.one_of(st.integers(0, 600), st.integers(0, 2**32 - 1)))
def test_update_sets_the_first_lanes_and_takes_them_off(bits: int, value: int) -> None:
    count = 2048 // bits
    mask, left = Bench("a5").issue(f"asc_update_mask_b{bits}", value)
    assert lanes(mask.data, bits) == list(range(min(value, count)))
    assert left == max(value - count, 0)
    assert isinstance(left, int)


def test_the_pages_example_of_320_elements() -> None:
    bench, value, seen = Bench("a5"), 320, []
    for _ in range(4):
        mask, value = bench.issue("asc_update_mask_b16", value)
        seen.append((len(lanes(mask.data, 16)), value))
    assert seen == [(128, 192), (128, 64), (64, 0), (0, 0)]


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(WIDTHS), st.integers(0, 3000))
def test_a_loop_masks_each_element_once(bits: int, count: int) -> None:
    bench, value, total = Bench("a5"), count, 0
    for _ in range(-(-count // (2048 // bits))):
        mask, value = bench.issue(f"asc_update_mask_b{bits}", value)
        total += int(mask.data.sum())
    assert (total, value) == (count, 0)


def test_masks_touch_no_memory() -> None:
    bench = Bench("a5")
    bench.issue("asc_create_mask_b8", Pattern.PAT_ALL)
    bench.issue("asc_update_mask_b8", 7)
    assert bench.trace().rows["n_access"].tolist() == [0, 0]


def test_the_cores_vector_mask_as_a_mask_register() -> None:
    bench = Bench("a5")
    assert bench.issue("asc_get_mask_spr_b32").data.all()
    bench.core.state.mask = (0x8000000000000001, 0x0000000000000006)
    wide = bench.issue("asc_get_mask_spr_b32").data.reshape(64, 4)
    assert np.flatnonzero(wide.all(axis=1)).tolist() == np.flatnonzero(wide.any(axis=1)).tolist() == [1, 2]
    narrow = bench.issue("asc_get_mask_spr_b16").data.reshape(128, 2)
    assert np.flatnonzero(narrow.all(axis=1)).tolist() == np.flatnonzero(narrow.any(axis=1)).tolist() == [1, 2, 64, 127]
