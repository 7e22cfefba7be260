"""Mutexes: what a lock waits for, and pairs that do not pair."""

from __future__ import annotations

from checks.builder import MTE2, MTE3, Builder, V


def locked(builder: Builder, pipe: int, mutex: int = 0, *, lock: bool = True, mode: int = 0, **operands: list) -> None:
    if lock:
        builder.lock(pipe, mutex, mode=mode)
    builder.op(pipe, "work", **operands)
    if lock:
        builder.unlock(pipe, mutex, mode=mode)


def test_work_of_two_pipes_under_one_mutex_is_in_order() -> None:
    builder = Builder()
    for _ in range(3):
        locked(builder, MTE2, writes=[0])
        locked(builder, V, reads=[0], writes=[512])
        locked(builder, MTE3, reads=[512])
    assert builder.codes("a5") == []


def test_under_two_mutexes_it_is_not() -> None:
    builder = Builder()
    locked(builder, MTE2, 0, writes=[0])
    locked(builder, V, 1, reads=[0])
    assert builder.codes("a5") == ["R001"]


def test_a_lock_that_does_not_hold_its_pipe_back_orders_nothing() -> None:
    builder = Builder()
    locked(builder, MTE2, writes=[0], mode=1)
    locked(builder, V, reads=[0], mode=1)
    assert builder.codes("a5") == ["R001"]


def test_a_pipe_does_not_wait_for_its_own_unlock() -> None:
    builder = Builder()
    locked(builder, MTE2, writes=[0])
    locked(builder, MTE2, writes=[0])
    assert builder.codes("a5") == ["R003"]


def test_another_pipe_between_two_locks_of_one_passes_its_knowledge_on() -> None:
    builder = Builder()
    locked(builder, MTE2, writes=[0])
    locked(builder, V, reads=[0])
    locked(builder, MTE2, writes=[0])
    assert builder.codes("a5") == []


def test_a_lock_left_is_told_with_its_mend() -> None:
    builder = Builder()
    builder.lock(V, 3)
    (found,) = builder.run("a5")
    assert found.code == "S101" and "mutex 3 is still locked" in found.headline
    assert found.mend == "Add asc_unlock(PIPE_V, 3) after the work of PIPE_V."


def test_an_unlock_alone_is_told() -> None:
    builder = Builder()
    builder.unlock(V, 3)
    (found,) = builder.run("a5")
    assert found.code == "S101" and "mutex 3 is not locked" in found.headline


def test_a_mutex_locked_while_it_is_locked_is_told_once_with_both_places() -> None:
    builder = Builder()
    for _ in range(50):
        builder.lock(MTE2, 0, line=7)
        builder.lock(V, 0, line=8)
        builder.unlock(V, 0, line=9)
    (found,) = builder.run("a5")
    assert found.code == "S102" and found.count == 50
    assert [place.site.line for place in found.places if place.site] == [8, 7]


def test_a_pipe_that_unlocks_what_another_locked_is_told() -> None:
    builder = Builder()
    builder.lock(MTE2, 0)
    builder.unlock(V, 0)
    (found,) = builder.run("a5")
    assert found.code == "S101" and "PIPE_V unlocks what PIPE_MTE2 locked" in found.headline


def test_mutexes_of_two_cores_are_two() -> None:
    builder = Builder()
    builder.launch(1, blocks=2)
    builder.lock(V, 0)
    builder.core = 1
    builder.launch(1, blocks=2)
    builder.lock(V, 0)
    builder.unlock(V, 0)
    builder.core = 0
    builder.unlock(V, 0)
    assert builder.codes("a5") == []


def test_a_missing_unlock_is_one_finding_and_no_race() -> None:
    builder = Builder()
    for _ in range(4):
        builder.lock(MTE2, 0, line=1)
        builder.op(MTE2, "load", writes=[0], line=2)
        builder.unlock(MTE2, 0, line=3)
        builder.lock(MTE3, 0, line=4)
        builder.op(MTE3, "store", reads=[0], line=5)  # and no unlock
    assert builder.codes("a5") == ["S102"]
