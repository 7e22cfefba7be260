"""Cores that wait for each other: the order in which they run, and what happens when none can."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.baton import Baton, Halted


class Play:
    """A launch whose cores follow scripts: a word is noted, ``!x`` sets x, ``?x`` waits for it, ``~`` gives way."""

    def __init__(self, *scripts: str, ends_at: int | None = None) -> None:
        self.said: list[str] = []
        self.flags: set[str] = set()
        self.stuck: list[int] = []
        self.halted: list[int] = []
        self.switches: list[tuple[str, int]] = []
        self.threads: set[int] = set()
        self.ends_at = ends_at
        self.baton = Baton(
            len(scripts),
            lambda number: self._core(number, scripts[number].split())(),
            lambda core: self.switches.append(("leave", core)),
            lambda core: self.switches.append(("enter", core)),
            self.stuck.extend,
        )
        self.baton.run()

    def _core(self, number: int, words: Sequence[str]) -> Callable[[], bool]:
        def run() -> bool:
            self.threads.add(threading.get_ident())
            try:
                for word in words:
                    if word[0] == "!":
                        self.flags.add(word[1:])
                    elif word[0] == "?":
                        self.baton.wait(number, lambda name=word[1:]: name in self.flags)
                    elif word == "~":
                        self.baton.give_way(number)
                    else:
                        self.said.append(f"{number}{word}")
            except Halted:
                self.halted.append(number)
                raise
            return number != self.ends_at

        return run


def test_cores_that_do_not_wait_run_one_after_the_other_on_the_callers_thread() -> None:
    play = Play("a b", "a", "a b")
    assert play.said == ["0a", "0b", "1a", "2a", "2b"]
    assert play.threads == {threading.get_ident()} and not play.switches


def test_a_core_that_waits_goes_on_as_soon_as_it_can_and_before_later_ones() -> None:
    play = Play("a ?x b", "a !x ?y b", "a !y b")
    assert play.said == ["0a", "1a", "0b", "2a", "2b", "1b"]
    assert play.switches == [("leave", 0), ("leave", 1), ("enter", 0), ("enter", 1)]


def test_a_wait_that_is_over_costs_no_switch() -> None:
    play = Play("!x", "?x a")
    assert play.said == ["1a"] and not play.switches and len(play.threads) == 1


def test_a_core_that_polls_lets_the_others_go_on() -> None:
    assert Play("a ~ b", "a ~ b", "a").said == ["0a", "1a", "2a", "0b", "1b"]


def test_a_core_that_gives_way_alone_goes_on() -> None:
    play = Play("a ~ b")
    assert play.said == ["0a", "0b"] and not play.switches


def test_when_none_can_go_on_all_that_wait_are_told_of_and_halted() -> None:
    play = Play("a ?x b", "a ?y b", "a")
    assert play.said == ["0a", "1a", "2a"]
    assert play.stuck == [0, 1] and play.halted == [0, 1]


def test_a_core_that_ends_the_launch_halts_those_that_wait_and_keeps_later_ones_from_beginning() -> None:
    play = Play("a ?x b", "a", "a", ends_at=1)
    assert play.said == ["0a", "1a"]
    assert play.halted == [0] and not play.stuck


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.sampled_from(["a", "!x", "!y", "?x", "?y", "~"]), max_size=6), min_size=1, max_size=5))
def test_two_runs_are_the_same_run_and_exactly_those_cores_are_stuck_that_must_be(scripts: list[list[str]]) -> None:
    words = [" ".join(script) for script in scripts]
    one, other = Play(*words), Play(*words)
    assert (one.said, one.stuck, one.halted) == (other.said, other.stuck, other.halted)
    assert one.stuck == one.halted == stuck(scripts)


def stuck(scripts: list[list[str]]) -> list[int]:
    """The cores that no order of events brings to their end: flags stay set, so all orders come to the same."""
    done, flags = [0] * len(scripts), set[str]()
    moved = True
    while moved:
        moved = False
        for number, script in enumerate(scripts):
            while done[number] < len(script):
                word = script[done[number]]
                if word[0] == "?" and word[1:] not in flags:
                    break
                flags |= {word[1:]} if word[0] == "!" else set()
                done[number] += 1
                moved = True
    return [number for number, script in enumerate(scripts) if done[number] < len(script)]
