"""Races between the cores of a launch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.checks import cores
from ascsim.machine.words import Space
from checks.builder import MTE2, MTE3, Builder, gm
from checks.reference import Access


def two_cores(first: Any, second: Any, writes: tuple[bool, bool]) -> Builder:
    """One transfer on each of two cores of one launch."""
    builder = Builder()
    builder.note("object", type="global", name="out", dtype="f32", space=int(Space.GM))
    for builder.core, operand, write in ((0, first, writes[0]), (1, second, writes[1])):
        builder.launch(1, "Kernel", 2)
        operand = operand | {"object": 1}
        if write:
            builder.op(MTE3, "TSTORE", [], [operand], line=5)
        else:
            builder.op(MTE2, "TLOAD", [operand], [], line=4)
        builder.end(1)
    return builder


@pytest.mark.parametrize(
    ("writes", "kind"), [((True, True), "WAW"), ((True, False), "RAW"), ((False, True), "WAR"), ((False, False), "")]
)
def test_kinds(writes: tuple[bool, bool], kind: str) -> None:
    found = two_cores(gm(0), gm(128), writes).run()
    if not kind:
        assert found == []
        return
    assert [d.code for d in found] == ["R101"]
    assert found[0].headline == f"Potential {kind} hazard detected at GM in Kernel, between cores 0 and 1"
    assert found[0].notes[0] == "both touch GM 0x80 to 0xff (128 bytes)"
    verbs = ["write of out by TSTORE" if write else "read of out by TLOAD" for write in writes]
    assert [place.what for place in found[0].places] == [
        f"core 1: PIPE_{'MTE3' if writes[1] else 'MTE2'} {verbs[1]}",
        f"core 0: PIPE_{'MTE3' if writes[0] else 'MTE2'} {verbs[0]}",
    ]


def test_the_same_two_instructions_either_way_round_are_one_finding() -> None:
    """Each core reads what the other writes: the one reads first, of the other the write comes first."""
    builder = Builder()
    for builder.core in (0, 1):
        builder.launch(1, "Kernel", 2)
        builder.op(MTE3, "TSTORE", [], [gm(4096 * builder.core)], line=1)
        builder.sync(MTE3, MTE2)
        builder.op(MTE2, "TLOAD", [gm(4096 * (1 - builder.core))], [], line=2)
        builder.end(1)
    (found,) = builder.run()
    assert found.headline == "Potential RAW hazard detected at GM in Kernel, between cores 0 and 1"
    assert found.count == 2


def test_each_core_its_own_bytes() -> None:
    assert two_cores(gm(0), gm(256), (True, True)).run() == []


def test_columns_of_one_matrix_do_not_share_bytes() -> None:
    left, right = gm(0, 128, n1=64, s1=256), gm(128, 128, n1=64, s1=256)
    assert two_cores(left, right, (True, True)).run() == []
    assert len(two_cores(left, right | {"start": 127}, (True, True)).run()) == 1


def test_launches_follow_each_other() -> None:
    builder = Builder()
    for number in (1, 2):
        builder.core = number
        builder.launch(number)
        builder.op(MTE3, "TSTORE", [], [gm(0)])
        builder.end(number)
    assert builder.run() == []


def test_local_memories_are_each_core_s_own() -> None:
    builder = Builder()
    for builder.core in (0, 1):
        builder.launch(1, blocks=2)
        builder.op(MTE2, "TLOAD", [], [0])
        builder.end(1)
    assert builder.run() == []


def test_many_cores_and_a_loop_are_one_finding() -> None:
    builder = Builder()
    for builder.core in range(20):
        builder.launch(1, blocks=20)
        for turn in range(5):
            builder.op(MTE3, "TSTORE", [], [gm(1000 * builder.core + 4096 * 100 * turn, 1024)], line=3)
        builder.end(1)
    (found,) = builder.run()
    assert found.code == "R101"
    assert found.count == 19 * 5
    assert "24 bytes" in found.notes[0]


def test_a_core_between_does_not_hide_a_conflict() -> None:
    builder = Builder()
    for builder.core, operand in enumerate((gm(0, 4096), gm(100, 8), gm(3000, 8))):
        builder.launch(1, blocks=3)
        builder.op(MTE3, "TSTORE", [], [operand], line=builder.core + 1)
        builder.end(1)
    found = builder.run()
    assert [[place.site.line for place in d.places if place.site] for d in found] == [[2, 1], [3, 1]]


@settings(max_examples=150, deadline=None)
@given(
    bursts=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(1, 16), st.booleans(), st.integers(1, 3),
                  st.integers(-40, 40)),
        min_size=1, max_size=10,
    )
)  # fmt: skip
@pytest.mark.parametrize("compile", [False, True])
def test_found_where_two_cores_share_a_byte(bursts: list[tuple], compile: bool) -> None:
    builder = Builder()
    made: list[tuple[int, bool, set]] = []
    for builder.core in range(4):
        builder.launch(1, blocks=4)
        for line, (core, start, length, write, n, stride) in enumerate(bursts, start=1):
            if core != builder.core:
                continue
            operand = gm(start + 1000, length, n1=n, s1=stride)
            builder.op(MTE3, "op", [] if write else [operand], [operand] if write else [], line=line)
            made.append((core, write, Access(tuple(operand.items()), write).bytes))
        builder.end(1)
    racy = {
        index
        for index, (core, write, mine) in enumerate(made)
        if any(core != c and (write or w) and mine & b for c, w, b in made)
    }
    found = list(cores.check(builder.context(compile=compile)))
    assert bool(found) == bool(racy)
    for each in found:
        shared = int(each.notes[0].split("(")[1].split(" ")[0])
        assert shared > 0
