"""Logic and shifts: references by Python's integers, and the examples of the pages."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.dtypes import DTYPES
from harness import Bench, MReg, VReg
from registers import bits, forms, issue, random_mask, register

seeds = st.integers(0, 2**32 - 1)
TWO = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
INTEGERS = ("u8", "i8", "u16", "i16", "u32", "i32")
ALL = MReg(np.ones(256, np.uint8))


def types_of(cpp: str) -> list[str]:
    return [v["T"].name for v in forms(cpp)[0].variants]


@pytest.mark.parametrize(("name", "kind"), [(n, t) for n in (*TWO, "not") for t in types_of(f"asc_{n}")])
def test_logic_of_registers(name: str, kind: str) -> None:
    a, b, mask = register(kind, 1), register(kind, 2), random_mask(3)
    on = mask.data[:: DTYPES[kind].size].astype(bool)
    given_ = (a,) if name == "not" else (a, b)
    expected = ~bits(a) if name == "not" else TWO[name](bits(a), bits(b))
    np.testing.assert_array_equal(bits(issue(f"v{name}", *given_, mask)), np.where(on, expected, 0))


@pytest.mark.parametrize("name", (*TWO, "not"))
def test_logic_of_masks_is_done_bit_by_bit_and_zeroes_what_the_mask_lacks(name: str) -> None:
    a, b, mask = (random_mask(seed) for seed in (1, 2, 3))
    given_ = (a,) if name == "not" else (a, b)
    expected = 1 - a.data if name == "not" else TWO[name](a.data, b.data)
    np.testing.assert_array_equal(issue(f"p{name}", *given_, mask).data, expected & mask.data)


def wrapped(number: int, kind: str) -> int:
    size = 8 * DTYPES[kind].size
    number %= 1 << size
    return number - (1 << size) if kind[0] == "i" and number >> (size - 1) else number


def left(x: int, count: int, kind: str) -> int:
    size = 8 * DTYPES[kind].size
    if not 0 <= count < size:
        return 0
    if kind[0] == "u":
        return wrapped(x << count, kind)
    below = (x << count) & ((1 << (size - 1)) - 1)
    return below - (1 << (size - 1)) if x < 0 else below


def right(x: int, count: int, kind: str) -> int:
    return x >> (count if 0 <= count < 64 else 64)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(INTEGERS), seeds, st.integers(-3, 70), st.sampled_from(((left, "left"), (right, "right"))))
def test_shifts(kind: str, seed: int, count: int, way: tuple[Callable[[int, int, str], int], str]) -> None:
    reference, name = way
    source, mask = register(kind, seed), random_mask(seed)
    on = mask.data[:: DTYPES[kind].size]
    by_number = issue(f"asc_shift{name}_scalar", source, count, mask).lanes.tolist()
    assert by_number == [reference(int(x), count, kind) if m else 0 for x, m in zip(source.lanes, on, strict=True)]
    counts = Bench("a5").vreg(f"i{8 * DTYPES[kind].size}", (np.arange(on.size) + count) % 40 - 2)
    by_lane = issue(f"asc_shift{name}", source, counts, mask).lanes.tolist()
    together = zip(source.lanes, counts.lanes, on, strict=True)
    assert by_lane == [reference(int(x), int(c), kind) if m else 0 for x, c, m in together]


@pytest.mark.parametrize(
    ("name", "kind", "count", "expected"),
    [
        ("left", "u16", 1, 0b0101010101010100), ("left", "i16", 1, 0b1101010101010100),
        ("left", "i16", 3, 0b1101010101010000), ("right", "u16", 1, 0b0101010101010101),
        ("right", "i16", 1, 0b1101010101010101), ("right", "i16", 3, 0b1111010101010101),
    ],
)  # fmt: skip
def test_the_examples_of_the_pages(name: str, kind: str, count: int, expected: int) -> None:
    source = VReg(DTYPES[kind], np.full(128, 0b1010101010101010, np.uint16).view(np.uint8))
    assert bits(issue(f"asc_shift{name}_scalar", source, count, ALL)).tolist() == [expected] * 128
