"""The order between cores that signal each other, against paths in a graph of starts and ends."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.machine.words import Pipe
from checks.builder import Builder

PIPES = (Pipe.S, Pipe.V, Pipe.MTE2, Pipe.MTE3)
CORES = 3


@dataclass(frozen=True)
class Step:
    """A row of a core: an instruction, a set with its wait (``other``), a barrier, an arrival, or its wait."""

    kind: str
    core: int
    pipe: int
    other: int = 0
    token: int = 0


@st.composite
def launches(draw: st.DrawFn) -> list[Step]:
    """Cores that work, meet, work, meet, work; a meeting gathers some of them."""
    steps: list[Step] = []
    pipe = st.sampled_from(PIPES)
    for meeting in range(3):
        for core in draw(st.permutations(range(CORES))):
            for _ in range(draw(st.integers(0, 4))):
                kind = draw(st.sampled_from(("work", "work", "work", "flag", "barrier", "all")))
                source, target = draw(st.permutations(PIPES))[:2]
                steps.append(Step(kind, core, source, target))
        if meeting < 2:
            gathered = draw(st.lists(st.integers(0, CORES - 1), min_size=1, unique=True))
            told = draw(st.lists(st.integers(0, CORES - 1), min_size=1, unique=True))
            steps += [Step("arrive", core, draw(pipe), token=meeting + 1) for core in gathered]
            steps += [Step("await", core, draw(pipe), token=meeting + 1) for core in told]
    return steps


def built(steps: list[Step]) -> tuple[Builder, dict[int, int]]:
    """The trace, and the row of each instruction by its place in ``steps``."""
    builder = Builder()
    for core in range(CORES):
        builder.core = core
        builder.launch(1, blocks=CORES)
    rows = {}
    for number, step in enumerate(steps):
        builder.core = step.core
        match step.kind:
            case "work":
                rows[number] = builder.op(step.pipe)
            case "flag":
                builder.sync(step.pipe, step.other)
            case "barrier" | "all":
                builder.barrier(Pipe.ALL if step.kind == "all" else step.pipe)
            case "arrive":
                builder.arrive(step.pipe, step.token)
            case "await":
                builder.take(step.pipe, step.token)
    for core in range(CORES):
        builder.core = core
        builder.end(1)
    return builder, rows


def complete_before(steps: list[Step], ordered: frozenset[str]) -> set[tuple[int, int]]:
    """Pairs (earlier, later) of instructions of two cores, the earlier complete before the later starts."""
    after: dict[tuple[str, int], set[tuple[str, int]]] = defaultdict(set)

    def pipes_of(step: Step) -> set[int]:
        return set(PIPES) if step.kind == "all" else {step.other if step.kind == "flag" else step.pipe}

    for j, step in enumerate(steps):
        for i, other in enumerate(steps[:j]):
            if other.core != step.core:
                if step.kind == "await" and other.kind == "arrive" and other.token == step.token:
                    after["sent", i].add(("start", j))
                continue
            waits = other.kind in ("flag", "await") and Pipe.S in pipes_of(other)
            if pipes_of(other) & pipes_of(step) or waits:
                after["start", i].add(("start", j))
            if step.kind == "await" and other.kind == "arrive" and other.token == step.token:
                after["sent", i].add(("start", j))
            if step.kind == "flag" and step.pipe in pipes_of(other):  # the set's own pipe has started so far
                after["start", i].add(("start", j))
            if other.kind != "work":
                continue
            if step.kind in ("flag", "arrive") and other.pipe == step.pipe:
                after["done", i].add(("sent", j) if step.kind == "arrive" else ("start", j))
            if step.kind == "all" or (
                step.kind == "barrier" and other.pipe == step.pipe and Pipe(step.pipe).name not in ordered
            ):
                after["done", i].add(("start", j))
        if step.kind == "arrive":
            after["start", j].add(("sent", j))
    found = set()
    works = [i for i, step in enumerate(steps) if step.kind == "work"]
    for i in works:
        reached, ahead = set(), [("done", i)]
        while ahead:
            node = ahead.pop()
            if node not in reached:
                reached.add(node)
                ahead += after[node]
        found |= {(i, j) for j in works if ("start", j) in reached and steps[i].core != steps[j].core}
    return found


@settings(deadline=None, max_examples=150)
@given(steps=launches())
def test_what_a_core_knows_of_another_is_what_paths_of_signals_tell(steps: list[Step]) -> None:
    builder, rows = built(steps)
    context = builder.context("a2a3")
    order, known = context.order, set()
    for i, a in rows.items():
        for j, b in rows.items():
            if steps[i].core == steps[j].core:
                continue
            here, there = (int(context.positions(row)) for row in (b, a))
            of_b, of_a = int(context.cores_of(b)), int(context.cores_of(a))
            if order.launches and order.knows(of_b, steps[j].pipe, here, of_a, steps[i].pipe, there):
                known.add((i, j))
    assert known == complete_before(steps, context.profile.ordered_pipes)


def test_a_launch_without_signals_has_no_order() -> None:
    builder, _ = built([Step("work", 0, Pipe.V), Step("work", 1, Pipe.V)])
    assert not builder.context("a2a3").order.launches
