"""Counters between cores: who is gathered, who receives."""

from __future__ import annotations

import pytest

from ascsim.machine.signals import CoreId, Cores, SignalMode, Signals, packed, unpacked

MIXED = [
    CoreId(block * 3 + place, block, side, subblock)
    for block in range(2)
    for place, (side, subblock) in enumerate((("aic", 0), ("aiv", 0), ("aiv", 1)))
]
CUBE, FIRST, SECOND, OTHER_CUBE = 0, 1, 2, 3


def received(signals: Signals, mode: SignalMode, flag: int) -> list[int]:
    return [core.number for core in MIXED if signals.is_set(core.number, mode, flag)]


def test_all_cores_of_a_kind_are_gathered_over_blocks() -> None:
    signals = Signals(MIXED)
    tokens = [signals.arrive(core, SignalMode.INTER, 4) for core in (1, 2, 4)]
    assert received(signals, SignalMode.INTER, 4) == []
    tokens.append(signals.arrive(5, SignalMode.INTER, 4))
    assert received(signals, SignalMode.INTER, 4) == [1, 2, 4, 5]
    assert len(set(tokens)) == 1 and signals.take(2, SignalMode.INTER, 4) == tokens[0]
    assert received(signals, SignalMode.INTER, 4) == [1, 4, 5]


def test_the_vector_cores_of_a_block_are_gathered_for_each_other() -> None:
    signals = Signals(MIXED)
    signals.arrive(FIRST, SignalMode.SUBBLOCK, 0)
    signals.arrive(SECOND, SignalMode.SUBBLOCK, 0)
    assert received(signals, SignalMode.SUBBLOCK, 0) == [FIRST, SECOND]


def test_a_block_signal_goes_from_the_cube_core_to_both_vector_cores_and_back_when_both_have_arrived() -> None:
    signals = Signals(MIXED)
    signals.arrive(CUBE, SignalMode.BLOCK, 1)
    assert received(signals, SignalMode.BLOCK, 1) == [FIRST, SECOND]
    signals.arrive(FIRST, SignalMode.BLOCK, 2)
    assert received(signals, SignalMode.BLOCK, 2) == []
    signals.arrive(SECOND, SignalMode.BLOCK, 2)
    assert received(signals, SignalMode.BLOCK, 2) == [CUBE]


@pytest.mark.parametrize(
    ("core", "flag", "receiver", "name"),
    [(FIRST, 3, CUBE, 3), (SECOND, 3, CUBE, 19), (CUBE, 3, FIRST, 3), (CUBE, 19, SECOND, 3)],
)
def test_a_direct_signal_reaches_one_core_under_its_own_number(core: int, flag: int, receiver: int, name: int) -> None:
    signals = Signals(MIXED)
    signals.arrive(core, SignalMode.DIRECT, flag)
    assert received(signals, SignalMode.DIRECT, name) == [receiver]
    assert not any(received(signals, SignalMode.INTER, number) for number in range(16))


def test_a_core_that_arrives_twice_is_in_two_rounds() -> None:
    signals = Signals([CoreId(0, 0, "aiv"), CoreId(1, 1, "aiv")])
    first, second = signals.arrive(0, SignalMode.INTER, 0), signals.arrive(0, SignalMode.INTER, 0)
    assert first != second
    assert signals.arrive(1, SignalMode.INTER, 0) == first
    assert [signals.take(0, SignalMode.INTER, 0)] == [first] and not signals.is_set(0, SignalMode.INTER, 0)


def test_counters_left_and_beyond_fifteen_are_known() -> None:
    signals = Signals([CoreId(0, 0, "aiv")])
    for _ in range(15):
        signals.arrive(0, SignalMode.INTER, 0)
    assert not signals.overflowed and [(left.core, left.flag) for left in signals.left()] == [(0, 0)]
    signals.arrive(0, SignalMode.INTER, 0)
    assert [(left.core, left.flag) for left in signals.overflowed] == [(0, 0)]


def test_a_flag_and_its_mode_fit_a_byte() -> None:
    for mode in SignalMode:
        for flag in range(32):
            assert 0 <= packed(mode, flag) < 256 and unpacked(packed(mode, flag)) == (mode, flag)


def test_cores_of_a_launch_are_made_when_they_are_asked_for() -> None:
    cores = Cores(2, [("aic", 0), ("aiv", 0), ("aiv", 1)])
    assert list(cores) == MIXED
    assert cores[4] == CoreId(4, 1, "aiv", 0) and cores[-1] == CoreId(5, 1, "aiv", 1)
    assert cores[1:3] == [CoreId(1, 0, "aiv", 0), CoreId(2, 0, "aiv", 1)]
    assert Cores(70_000)[65_537] == CoreId(1, 65_537, "aiv")


def test_signals_of_blocks_that_were_counted_apart_are_numbered_on() -> None:
    here, apart, whole = Signals(MIXED), Signals(MIXED[3:]), Signals(MIXED)
    for signals, blocks in ((here, (0,)), (apart, (1,)), (whole, (0, 1))):
        for block in blocks:
            signals.arrive(3 * block + CUBE, SignalMode.BLOCK, 1)
            signals.arrive(3 * block + FIRST, SignalMode.BLOCK, 2)
            signals.arrive(3 * block + SECOND, SignalMode.BLOCK, 2)
            for core in (FIRST, CUBE):
                flag = 1 if core == FIRST else 2
                signals.take(3 * block + core, SignalMode.BLOCK, flag)
    assert here.join(apart.kept()) == 2
    assert here.left() == whole.left() != []
    assert here.arrive(CUBE, SignalMode.BLOCK, 1) == whole.arrive(CUBE, SignalMode.BLOCK, 1) == 5
