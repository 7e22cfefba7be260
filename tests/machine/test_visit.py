"""Pairing of sets and waits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from checks.builder import MTE2, Builder, V


def pairs(text: str) -> list[int]:
    """Partners of a sequence of ``s`` (set) and ``w`` (wait) of one flag."""
    builder = Builder()
    for letter in text:
        (builder.set if letter == "s" else builder.wait)(MTE2, V)
    return builder.context().flags.partner.tolist()


def test_in_turn() -> None:
    assert pairs("") == []
    assert pairs("swsw") == [1, 0, 3, 2]


def test_one_call_less_does_not_shift_the_others() -> None:
    assert pairs("swwsw") == [1, 0, -1, 4, 3]
    assert pairs("wswsw") == [-1, 2, 1, 4, 3]
    assert pairs("swssw") == [1, 0, -1, 4, 3]


def test_a_wait_before_its_set_is_paired_with_it() -> None:
    assert pairs("ws") == [1, 0]
    assert pairs("wsws") == [3, 2, 1, 0]


@settings(max_examples=200, deadline=None)
@given(text=st.text("sw", max_size=24))
def test_partners_are_mutual_and_every_possible_pair_is_made(text: str) -> None:
    partner = pairs(text)
    for number, other in enumerate(partner):
        if other >= 0:
            assert partner[other] == number
            assert {text[number], text[other]} == {"s", "w"}
    sets = [n for n, letter in enumerate(text) if letter == "s" and partner[n] < 0]
    waits = [n for n, letter in enumerate(text) if letter == "w" and partner[n] < 0]
    assert not any(s < w for s in sets for w in waits)
    assert not any(w < s for s in sets for w in waits)


@settings(max_examples=100, deadline=None)
@given(events=st.lists(st.integers(0, 3), max_size=20))
def test_flags_of_different_events_do_not_touch(events: list[int]) -> None:
    builder = Builder()
    waiting: set[int] = set()
    for event in events:
        (builder.wait if event in waiting else builder.set)(MTE2, V, event)
        waiting ^= {event}
    flags = builder.context().flags
    assert int((flags.partner < 0).sum()) == len(waiting)
    paired = flags.partner >= 0
    assert (flags.event[paired] == flags.event[flags.partner[paired]]).all()
    assert not flags.doubled.any()
