"""Lines of the scalar units' data caches, on traces by hand: what is stale, what is behind, what is a signal."""

from __future__ import annotations

from ascsim.machine.trace import ATOMIC, CACHED, Kind, Mode
from ascsim.machine.words import Space
from checks.builder import MTE2, MTE3, Builder, S, gm


def scalar(builder: Builder, start: int, mode: int, flags: int = CACHED) -> int:
    return builder.row(S, Kind.INSTRUCTION, "scalar", [builder.at(gm(start, 4), mode)], flags=flags)


def read(builder: Builder, start: int = 0) -> int:
    return scalar(builder, start, Mode.READ)


def write(builder: Builder, start: int = 0) -> int:
    return scalar(builder, start, Mode.WRITE)


def drop(builder: Builder, start: int = 0, length: int = 64) -> int:
    access = {"space": Space.STATE, "start": start, "length": length}
    return builder.row(S, Kind.CACHE, "dcci", [builder.at(access, Mode.WRITE)])


def codes(builder: Builder) -> list[str]:
    return [d.code for d in builder.run() if d.code.startswith(("D", "R1"))]


def stored_between(*after: object, start: int = 0) -> Builder:
    """A scalar read, a copy that stores the line, what comes after, and the read again."""
    builder = Builder()
    read(builder)
    builder.sync(S, MTE3)
    builder.op(MTE3, "store", reads=[0], writes=[gm(start, 64)])
    builder.sync(MTE3, S)
    for one in after:
        one(builder)  # type: ignore[operator]
    read(builder, start)
    return builder


def test_a_line_that_is_in_the_cache_since_before_a_copy_stored_it_is_stale() -> None:
    assert codes(stored_between()) == ["D001"]
    assert codes(stored_between(drop)) == []
    assert codes(stored_between(lambda builder: drop(builder, 0, 0))) == [], "all lines"
    assert codes(stored_between(lambda builder: drop(builder, 64))) == ["D001"], "another line"
    assert codes(stored_between(start=128)) == [], "a line that was not in the cache"


def test_what_is_written_is_behind_until_it_is_written_back() -> None:
    for calls, expected in (((), ["D002"]), ((drop,), []), ((lambda b: drop(b, 64),), ["D002"])):
        builder = Builder()
        write(builder)
        for call in calls:
            call(builder)
        builder.sync(S, MTE2)
        builder.op(MTE2, "load", reads=[gm(0, 64)], writes=[0])
        assert codes(builder) == expected


def test_bytes_beside_each_other_in_a_line_are_no_conflict() -> None:
    builder = Builder()
    write(builder, 8)
    builder.sync(S, MTE2)
    builder.op(MTE2, "load", reads=[gm(16, 16)], writes=[0])
    assert codes(builder) == []


def two_cores(flags: int, publishes: bool = True, waits: bool = True) -> Builder:
    """Core 1 stores data and then a flag; core 0 sees the flag and loads the data."""
    builder = Builder()
    for core in (0, 1):
        builder.core = core
        builder.launch(1, blocks=2)
    builder.op(MTE3, "store", reads=[0], writes=[gm(4096, 64)])
    if publishes:
        builder.sync(MTE3, S)
    scalar(builder, 0, Mode.WRITE, flags)
    drop(builder)
    builder.core = 0
    drop(builder)
    if waits:
        scalar(builder, 0, Mode.READ, flags)
        builder.sync(S, MTE2)
    builder.op(MTE2, "load", reads=[gm(4096, 64)], writes=[0])
    for core in (0, 1):
        builder.core = core
        builder.end(1)
    return builder


def test_a_flag_in_memory_orders_two_cores() -> None:
    for flags in (CACHED, ATOMIC):
        assert codes(two_cores(flags)) == []
        assert codes(two_cores(flags, publishes=False)) == ["R101"], "the flag may be there before the data"
        assert codes(two_cores(flags, waits=False)) == ["R101"]


def test_scalar_units_that_share_bytes_without_meaning_to_are_a_race() -> None:
    builder = Builder()
    for core in (0, 1):
        builder.core = core
        builder.launch(1, blocks=2)
        write(builder)
        builder.end(1)
    assert codes(builder) == ["R101"]
