"""Filling, comparison, selection, reduction: hand-worked values, references, properties."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.machine.dtypes import DTYPES
from harness import Bench, MReg, VReg
from registers import bits, forms, from_bits, issue, lanes_of, random_mask, register

INTEGERS = ("u8", "i8", "u16", "i16", "u32", "i32")
FLOATS = ("f16", "bf16", "f32")
ARITHMETIC = (*INTEGERS, *FLOATS)
NAN = {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC00000}

seeds = st.integers(0, 2**32 - 1)


ALL = MReg(np.ones(256, np.uint8))


def types_of(cpp: str) -> set[str]:
    return {v["T"].name for v in forms(cpp)[0].variants}


# Filling


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(sorted(types_of("asc_duplicate"))), seeds)
def test_duplicate_puts_lane_0_into_active_lanes_and_zero_elsewhere(kind: str, seed: int) -> None:
    source, mask = register(kind, seed), random_mask(seed)
    result = issue("asc_duplicate", source, mask)
    np.testing.assert_array_equal(bits(result), np.where(lanes_of(mask, kind), bits(source)[0], 0))


def test_duplicate_takes_the_types_of_its_page() -> None:
    expected = {*ARITHMETIC, "f8e4m3", "f8e5m2"}
    assert types_of("asc_duplicate") == expected
    masked, plain = forms("asc_duplicate_scalar")
    assert {v["T"].name for v in masked.variants} == expected  # type: ignore[attr-defined]
    assert {v["T"].name for v in plain.variants} == {*expected, "f8e8m0"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "value", "pattern"),
    [
        ("u8", 200, 0xC8), ("i8", -1, 0xFF), ("i16", -2, 0xFFFE), ("u32", 2**32 - 1, 2**32 - 1), ("i32", -7, 2**32 - 7),
        ("f16", 1.5, 0x3E00), ("bf16", 1.0, 0x3F80), ("f32", -0.0, 0x80000000), ("f8e4m3", 1.0, 0x38),
        ("f8e5m2", 1.0, 0x3C),
    ],
)  # fmt: skip
def test_a_number_goes_into_active_lanes_or_all(kind: str, value: float, pattern: int) -> None:
    mask = random_mask(4)
    masked = Bench("a5").issue("vdups", value, mask, result=kind)
    np.testing.assert_array_equal(bits(masked), np.where(lanes_of(mask, kind), pattern, 0))
    np.testing.assert_array_equal(bits(issue("vbr", value, result=kind)), pattern)


@pytest.mark.parametrize("kind", ("i8", "i16", "i32", "f16", "f32"))
def test_arange_counts_up_and_its_descending_form_down_to_the_number(kind: str) -> None:
    lanes = 256 // DTYPES[kind].size
    up = [10 + i for i in range(lanes)]
    expected = np.array(up).astype(np.int64).astype(DTYPES[kind].numpy)
    np.testing.assert_array_equal(issue("asc_arange", 10, result=kind).lanes, expected)
    np.testing.assert_array_equal(issue("asc_arange_descend", 10, result=kind).lanes, expected[::-1])


def test_the_pages_arange_example() -> None:
    assert issue("asc_arange", 10, result="i16").lanes[[0, 1, -1]].tolist() == [10, 11, 137]
    assert issue("asc_arange_descend", 10, result="i16").lanes[[0, 1, -1]].tolist() == [137, 136, 10]


@settings(deadline=None, max_examples=20)
@given(st.integers(-128, 127))
def test_integer_arange_wraps(start: int) -> None:
    result = issue("asc_arange", start, result="i8").lanes
    assert result.tolist() == [(start + i + 128) % 256 - 128 for i in range(256)]


def test_half_arange_rounds_each_lane_once() -> None:
    result = issue("asc_arange", 2047.0, result="f16").lanes.astype(float)
    assert result[:6].tolist() == [2047, 2048, 2048, 2050, 2052, 2052]  # ties to even above 2048


# Comparison

COMPARISONS: dict[str, Any] = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(COMPARISONS)), st.sampled_from(ARITHMETIC), seeds)
def test_a_comparison_sets_the_lowest_bit_of_a_lane(name: str, kind: str, seed: int) -> None:
    if name == "ne" and kind == "bf16":
        return
    a, b, mask = register(kind, seed), register(kind, seed + 1), random_mask(seed)
    size = DTYPES[kind].size
    b.data[: 128 - 128 % size] = a.data[: 128 - 128 % size]  # half of them equal bits
    result = issue(f"asc_{name}", a, b, mask).data.reshape(-1, size)
    assert not result[:, 1:].any()
    expected = [
        int(on and bool(COMPARISONS[name](float(x), float(y))))
        for x, y, on in zip(a.lanes, b.lanes, lanes_of(mask, kind), strict=True)
    ]
    np.testing.assert_array_equal(result[:, 0], expected)


@pytest.mark.parametrize("name", COMPARISONS)
def test_nan_is_unequal_to_all_and_zeros_are_equal(name: str) -> None:
    a = from_bits("f32", [NAN["f32"], NAN["f32"], 0x80000000, 0x3F800000])
    b = from_bits("f32", [NAN["f32"], 0x3F800000, 0x00000000, NAN["f32"]])
    result = issue(f"asc_{name}", a, b, ALL).data[:16:4].tolist()
    of_zeros = int(name in ("eq", "le", "ge"))
    assert result == [int(name == "ne"), int(name == "ne"), of_zeros, int(name == "ne")]


def test_unequal_has_no_bfloat16() -> None:
    assert types_of("asc_lt") == set(ARITHMETIC)
    assert types_of("asc_ne") == set(ARITHMETIC) - {"bf16"}
    with pytest.raises(Refused) as refusal:
        issue("asc_ne", register("bf16", 0), register("bf16", 1), ALL)
    assert refusal.value.diagnostic.code == "L002"


def test_signed_and_unsigned_compare_differently() -> None:
    for kind, expected in (("u8", 0), ("i8", 1)):
        result = issue("asc_lt", from_bits(kind, [0xFF]), from_bits(kind, [0x01]), ALL)
        assert int(result.data[0]) == expected


# Selection


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(types_of("asc_select"))), seeds)
def test_select_copies_bits_lane_by_lane(kind: str, seed: int) -> None:
    a, b, mask = register(kind, seed), register(kind, seed + 1), random_mask(seed)
    result = issue("asc_select", a, b, mask)
    assert result.dtype is DTYPES[kind]
    np.testing.assert_array_equal(bits(result), np.where(lanes_of(mask, kind), bits(a), bits(b)))


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_selecting_masks_works_on_every_bit(seed: int) -> None:
    a, b, mask = (random_mask(seed + k) for k in range(3))
    result = issue("psel", a, b, mask).data
    np.testing.assert_array_equal(result, (a.data & mask.data) | (b.data & (1 - mask.data)))


def test_select_takes_the_types_of_its_page() -> None:
    assert types_of("asc_select") == {*ARITHMETIC, "f8e4m3", "hif8", "f8e5m2"}


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(("lt", "le", "gt", "ge", "eq", "ne")), st.sampled_from(ARITHMETIC), seeds)
def test_comparison_with_a_number_is_comparison_with_a_register_of_it(name: str, kind: str, seed: int) -> None:
    source, mask = register(kind, seed), random_mask(seed)
    number = source.lanes[seed % source.lanes.size]
    every = VReg(DTYPES[kind], np.full(source.lanes.size, number).view(np.uint8))
    if (name, kind) == ("ne", "bf16"):  # only with a number
        expected = (issue("asc_eq", source, every, mask).data ^ 1) & mask.data & (np.arange(256) % 2 == 0)
    else:
        expected = issue(f"asc_{name}", source, every, mask).data
    given_ = float(number) if DTYPES[kind].kind == "f" else int(number)
    np.testing.assert_array_equal(issue(f"asc_{name}_scalar", source, given_, mask).data, expected)


# Reduction

REDUCED = ("i16", "i32", "u16", "u32", "f16", "f32")


def reduced(name: str, source: VReg, mask: MReg) -> tuple[int, int]:
    """(value bits, index) of the page's rules, by going through the lanes."""
    values = [(i, float(x)) for i, x in enumerate(source.lanes) if lanes_of(mask, source.dtype.name)[i]]
    if not values:
        kind = source.dtype.numpy
        if source.dtype.kind == "f":
            worst = np.array(-np.inf if name == "max" else np.inf, kind)
        else:
            worst = np.array(np.iinfo(kind).min if name == "max" else np.iinfo(kind).max, kind)
        return int(worst.view(source.dtype.bits_dtype)), 0
    for i, x in values:
        if x != x:
            return int(bits(source)[i]), i
    best = max(x for _, x in values) if name == "max" else min(x for _, x in values)
    equals = [i for i, x in values if x == best]
    if best == 0 and source.dtype.kind == "f":
        preferred = [i for i in equals if bool(np.signbit(source.lanes[i])) == (name == "min")]
        equals = preferred or equals
    return int(bits(source)[equals[0]]), equals[0]


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(("max", "min")), st.sampled_from(REDUCED), seeds, st.booleans())
def test_a_reduction_gives_the_value_and_its_first_lane(name: str, kind: str, seed: int, few: bool) -> None:
    source, mask = register(kind, seed), random_mask(seed)
    if few:
        source.data[64:] = np.tile(source.data[:64], 3)  # equals
    result = bits(issue(f"asc_reduce_{name}", source, mask))
    assert (int(result[0]), int(result[1])) == reduced(name, source, mask)
    assert not result[2:].any()


def test_hand_worked_reductions() -> None:
    source = from_bits("f16", [0x3C00, 0x4000, 0x4000, 0xBC00])  # 1, 2, 2, -1, 0, ...
    assert bits(issue("asc_reduce_max", source, ALL))[:2].tolist() == [0x4000, 1]
    assert bits(issue("asc_reduce_min", source, ALL))[:2].tolist() == [0xBC00, 3]


@pytest.mark.parametrize(("kind", "lowest", "highest"), [
    ("i16", 0x8000, 0x7FFF), ("u32", 0, 2**32 - 1), ("f16", 0xFC00, 0x7C00), ("f32", 0xFF800000, 0x7F800000),
])  # fmt: skip
def test_no_active_lane_gives_the_types_limit_and_lane_0(kind: str, lowest: int, highest: int) -> None:
    for name, limit in (("max", lowest), ("min", highest)):
        result = bits(issue(f"asc_reduce_{name}", register(kind, 1), MReg()))
        assert result[0] == limit
        assert not result[1:].any()


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(("max", "min")), st.sampled_from(REDUCED), seeds)
def test_reductions_of_blocks_are_those_of_their_lanes_alone(name: str, kind: str, seed: int) -> None:
    source, mask = register(kind, seed), random_mask(seed)
    mask.data[64:96] = 0  # a block without an active lane
    result = bits(issue(f"asc_reduce_{name}_datablock", source, mask))
    for block in range(8):
        alone = MReg(np.where(np.arange(256) // 32 == block, mask.data, 0).astype(np.uint8))
        assert int(result[block]) == reduced(name, source, alone)[0]
    assert not result[8:].any()


@pytest.mark.parametrize("name", ("reduce_sum", "reduce_sum_datablock"))
@pytest.mark.parametrize(("target", "kind"), [("i32", "i16"), ("i32", "i32"), ("u32", "u16"), ("u32", "u32")])
def test_sums_of_integers_wrap_in_32_bits(name: str, target: str, kind: str) -> None:
    source, mask = register(kind, 5), random_mask(5)
    lanes = np.where(lanes_of(mask, kind), source.lanes, 0).astype(object)
    groups = lanes.reshape(8 if name.endswith("block") else 1, -1).sum(axis=1)
    result = bits(issue(f"asc_{name}", source, mask, result=target))
    assert result.tolist() == [*(int(x) % 2**32 for x in groups), *[0] * (64 - len(groups))]


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from(("reduce_sum", "reduce_sum_datablock", "pair_reduce_sum")), st.sampled_from(("f16", "f32")), seeds
)
def test_sums_of_floats_are_made_pair_by_pair(name: str, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    source = VReg(DTYPES[kind], rng.normal(0, 100, 256 // DTYPES[kind].size).astype(DTYPES[kind].numpy).view(np.uint8))
    mask = random_mask(seed)
    sums = [np.float32(x) if on else np.float32(0) for x, on in zip(source.lanes, lanes_of(mask, kind), strict=True)]
    wanted = {"reduce_sum": 1, "reduce_sum_datablock": 8, "pair_reduce_sum": len(sums) // 2}[name]
    while len(sums) > wanted:
        sums = [a + b for a, b in zip(sums[::2], sums[1::2], strict=True)]
    result = issue(f"asc_{name}", source, mask)
    np.testing.assert_array_equal(result.lanes[:wanted], np.array(sums).astype(DTYPES[kind].numpy))
    assert not result.data[wanted * DTYPES[kind].size :].any()


def test_the_sum_of_no_lane_is_plus_zero() -> None:
    negative = VReg(DTYPES["f32"], np.full(64, -0.0, np.float32).view(np.uint8))
    for name in ("asc_reduce_sum", "asc_reduce_sum_datablock", "asc_pair_reduce_sum"):
        assert not issue(name, negative, MReg()).data.any()


def test_the_first_nan_beats_all_and_plus_zero_beats_minus_zero() -> None:
    source = from_bits("f32", [0x3F800000, 0x7FC00001, 0xFFC00002, 0x7F800000])
    assert bits(issue("asc_reduce_max", source, ALL))[:2].tolist() == [0x7FC00001, 1]
    zeros = from_bits("f32", [0x80000000, 0x80000000, 0x00000000])
    assert bits(issue("asc_reduce_max", zeros, ALL))[:2].tolist() == [0, 2]
    assert bits(issue("asc_reduce_min", zeros, ALL))[:2].tolist() == [0x80000000, 0]


def test_reductions_take_the_types_of_their_pages() -> None:
    assert types_of("asc_reduce_max") == types_of("asc_reduce_min") == set(REDUCED)


def test_computing_touches_no_memory() -> None:
    bench = Bench("a5")
    bench.issue("asc_add", register("f32", 1), register("f32", 2), ALL)
    bench.issue("asc_lt", register("f32", 1), register("f32", 2), ALL)
    assert bench.trace().rows["n_access"].tolist() == [0, 0]


def test_the_reference_rounds_as_ml_dtypes_does() -> None:
    assert np.array(1 + 2**-9, np.float32).astype(ml_dtypes.bfloat16) == 1
