"""Functions that only move data: their tables and loops against the functions themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.moves import ONE, ZERO, Argument, Loop, byte_table, loop, sources, spread
from ascsim.isa.semantics import distribute, rearrange


def replay(function: Any, arguments: Sequence[Argument], data: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results by the loops alone."""
    made = []
    for table in sources(function, arguments):
        by_bytes = byte_table(table, arguments)
        assert by_bytes is not None
        plan = loop(by_bytes, arguments)
        out = np.full(len(table), 0xEE, np.uint8).view(f"u{plan.unit}")
        for i in range(plan.repeats):
            for place, stride, source, start, step in plan.moves:
                value = start if source is None else data[source].view(f"u{plan.unit}")[start + step * i]
                out[place + stride * i] = value
        made.append(out.view(np.uint8))
    return made


def assert_replays(function: Any, sizes: Sequence[int], live: Sequence[int] | None = None) -> list[int]:
    arguments = [Argument(n, bits) for n, bits in zip(sizes, live or [8] * len(sizes), strict=True)]
    rng = np.random.default_rng(0)
    data = [rng.integers(0, 1 << a.live, a.nbytes).astype(np.uint8) for a in arguments]
    expected = function(*data)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for ours, theirs in zip(replay(function, arguments, data), expected, strict=True):
        np.testing.assert_array_equal(ours, np.ascontiguousarray(theirs).view(np.uint8).ravel())
    return [len(loop(byte_table(t, arguments), arguments).moves) for t in sources(function, arguments)]


@pytest.mark.parametrize("lane", ("u1", "u2", "u4"))
def test_interleaving_is_two_moves_a_step_and_its_inverse_two_halves(lane: str) -> None:
    def viewed(function: Any) -> Any:
        return lambda a, b: function(a.view(lane), b.view(lane))

    assert assert_replays(viewed(rearrange.interleave), (256, 256)) == [2, 2]
    assert assert_replays(viewed(rearrange.deinterleave), (256, 256)) == [2, 2]


def test_a_step_does_not_run_from_one_argument_into_the_next() -> None:
    arguments = [Argument(256, 8), Argument(256, 8)]
    even, _ = sources(rearrange.deinterleave, arguments)
    plan = loop(byte_table(even, arguments), arguments)
    assert {move[2] for move in plan.moves} == {0, 1}


def test_a_copy_goes_byte_by_byte_and_a_reversal_by_the_widest_unit() -> None:
    arguments = [Argument(512, 8)]

    def plan(function: Any) -> Any:
        (table,) = sources(function, arguments)
        return loop(byte_table(table, arguments), arguments)

    assert plan(lambda a: a[256:]) == (1, 256, ((0, 1, 0, 256, 1),))
    assert plan(lambda a: a.view("u8")[31::-1]) == (8, 32, ((0, 1, 0, 31, -1),))


@pytest.mark.parametrize(
    "row",
    [r for r in distribute.DISTRIBUTIONS if r.kind in ("load", "store")],
    ids=lambda r: f"{r.kind} {r.token} {r.lane_size}",
)
def test_every_distribution_replays_in_few_moves(row: distribute.Distribution) -> None:
    lane = f"u{row.lane_size}"
    if row.kind == "load":
        moves = assert_replays(lambda memory: row.function(memory.view(lane)), [row.nbytes])
    else:
        registers = [256] * row.registers
        masks = [256 // row.lane_size] if row.masked else []

        def stored(*data: np.ndarray) -> Any:
            return row.function(*(d.view(lane) for d in data[: row.registers]), *data[row.registers :])

        moves = assert_replays(stored, registers + masks, [8] * row.registers + [1] * len(masks))
    assert max(moves) <= 8


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (np.arange(8), Loop(4, 8, ((0, 1, 1, 0, 1),))),
        (np.arange(8)[::-1], Loop(4, 8, ((0, 1, 1, 7, -1),))),
        (np.tile([0, 4], 4), Loop(4, 4, ((0, 2, 1, 0, 0), (1, 2, 1, 4, 0)))),
    ],
)
def test_a_flag_is_spread_over_the_bytes_of_its_lane(flags: np.ndarray, expected: Loop) -> None:
    arguments = (Argument(32, 8), Argument(32, 1))
    assert spread(np.repeat(32 + 4 * flags, 4), arguments) == expected
    assert spread(np.repeat(33 + 4 * flags, 4), arguments) is None  # another byte than the lane's first
    assert spread(32 + np.arange(32), arguments) is None


def test_constants_are_found_for_what_they_are() -> None:
    (table,) = sources(lambda a: np.concatenate([a[:2], [0, 1, 0xA5]]).astype(np.uint8), [Argument(4, 8)])
    np.testing.assert_array_equal(table[0], np.arange(8))
    np.testing.assert_array_equal(table[2], [ZERO] * 8)
    np.testing.assert_array_equal(table[4], [ONE, ZERO, ONE, ZERO, ZERO, ONE, ZERO, ONE])
    np.testing.assert_array_equal(byte_table(table, [Argument(4, 8)]), [0, 1, -1, -2, -1 - 0xA5])


def test_bits_that_part_company_have_no_byte_table() -> None:
    arguments = [Argument(32, 8)]
    (table,) = sources(distribute.load_mask_norm, arguments)
    assert byte_table(table, arguments) is None
    np.testing.assert_array_equal(table[:, 0], np.arange(256))
    assert (table[:, 1:] == ZERO).all()


def test_only_the_live_bit_of_a_mask_entry_counts() -> None:
    arguments = [Argument(256, 1)]
    data, written = sources(distribute.store_mask_norm, arguments)
    np.testing.assert_array_equal(data.ravel(), np.arange(256))
    np.testing.assert_array_equal(byte_table(written, arguments), [-2] * 32)


@pytest.mark.parametrize("function", [lambda a, b: a + b, lambda a, b: a & b, lambda a, b: np.maximum(a, b)])
def test_what_computes_is_no_move(function: Any) -> None:
    arguments = [Argument(16, 8), Argument(16, 8)]
    rng = np.random.default_rng(1)
    data = [rng.integers(0, 256, 16).astype(np.uint8) for _ in arguments]
    try:
        (table,) = sources(function, arguments)
    except ValueError:
        return
    by_bytes = byte_table(table, arguments)  # numbers may come out by chance, but not such that they replay
    assert by_bytes is None or not np.array_equal(replay(function, arguments, data)[0], function(*data))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-3, 31), min_size=1, max_size=64))
def test_any_choice_of_bytes_and_constants_replays(places: list[int]) -> None:
    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        both = np.concatenate([a, b])
        return np.array([both[p] if p >= 0 else -p for p in places], np.uint8)

    assert_replays(function, (16, 16))
