"""Folding, order, the limit, and traces with nothing in them."""

from __future__ import annotations

import numpy as np
import pytest

from ascsim import profiles
from ascsim.checks import CHECKS, noted_sites, run
from ascsim.checks.findings import fold
from ascsim.diagnostics import CATALOGUE, Severity, Site
from ascsim.machine.trace import ACCESS, ROW, SITE_PC, Kind, MemorySink, Trace
from checks.builder import MTE2, Builder, S, V, gm


def test_an_empty_trace() -> None:
    assert run(MemorySink().trace(), profiles.find("a3")) == []
    assert run(Trace(np.zeros(0, ROW), np.zeros(0, ACCESS), np.zeros((0, 32), np.uint8)), profiles.find("a5")) == []


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("compile", [False, True])
def test_a_trace_of_one_row(kind: Kind, compile: bool) -> None:
    builder = Builder()
    builder.row(V, kind, "row")
    context = builder.context(compile=compile)
    codes = {found.code for check in CHECKS for found in check(context)}
    lonely = {Kind.SET_FLAG: "S003", Kind.WAIT_FLAG: "S001", Kind.LOCK: "S101", Kind.UNLOCK: "S101"}
    assert codes == ({lonely[kind]} if kind in lonely else set())


def test_a_trace_without_notes() -> None:
    builder = Builder()
    builder.op(MTE2, "load", writes=[{"start": 0, "object": 77}])
    builder.op(V, "add", [{"start": 0, "object": 78}])
    trace = builder.trace()
    (found,) = run(Trace(trace.rows, trace.accesses, trace.masks), profiles.find("a3"))
    assert found.places[0].what == "PIPE_V read by an instruction"
    assert found.places[0].site is None


def test_program_order_and_plain_data() -> None:
    builder = Builder()
    for line in (5, 3, 9):
        builder.op(V, "op", [{"start": 16 + 1024 * line, "align": 5}], line=line)
    found = builder.run()
    assert [d.places[0].site.line for d in found if d.places[0].site] == [5, 3, 9]
    for d in found:
        assert type(d).from_dict(d.as_dict()) == d


def test_the_limit_says_what_it_hides() -> None:
    builder = Builder()
    for line in range(1, 11):
        builder.op(V, "op", [{"start": 16 + 1024 * line, "align": 5}], line=line)
    found = builder.run(limit=4)
    assert [d.code for d in found] == ["B002"] * 4 + ["N001"]
    assert (found[-1].severity, found[-1].headline) == (Severity.ERROR, "6 more findings are not shown")
    assert found[-1].notes == ("left out: B002 (6)",)
    assert len(builder.run(limit=10)) == 10


def test_errors_are_not_crowded_out_by_warnings() -> None:
    builder = Builder()
    for line in range(1, 6):
        builder.op(V, "op", [{"start": 262144 - 64 * line, "length": 32}], line=line)
    builder.op(V, "op", [{"start": 16, "align": 5}], line=9)
    found = builder.run("a5", limit=2)
    assert [d.code for d in found] == ["B003", "B002", "N001"]
    assert found[-1].severity == Severity.WARNING


def test_sites_are_the_caller_s_to_resolve() -> None:
    builder = Builder()
    for counter in (0x1000, 0x1010):  # two program counters of one line: one finding
        builder.row(V, Kind.INSTRUCTION, "op", [builder.at({"start": 16, "align": 5}, 2)], site=counter, flags=SITE_PC)
    asked = []

    def sites(number: int, flags: int) -> Site | None:
        asked.append((number, flags))
        return Site("k.asc", 7)

    (found,) = run(builder.trace(), profiles.find("a5"), sites)
    assert (found.count, str(found.places[0].site)) == (2, "k.asc:7")
    assert set(asked) == {(0x1000, SITE_PC), (0x1010, SITE_PC)}
    assert len(asked) == 2


def test_noted_sites() -> None:
    builder = Builder()
    builder.op(S, "op", line=4)
    resolve = noted_sites(builder.trace())
    assert resolve(1, 0) == Site("kernel.cpp", 4)
    assert resolve(0, 0) is None
    assert resolve(2, 0) is None
    assert resolve(1, SITE_PC) is None


def test_what_a_check_left_out_is_said() -> None:
    context = Builder().context()
    context.hidden.append("not everything was looked at")
    (found,) = fold([], context, 10)
    assert (found.code, found.severity) == ("N001", Severity.NOTE)
    assert found.notes == ("not everything was looked at",)


def test_every_code_is_explained() -> None:
    ours = {"B001", "B002", "B003", "B004", "B005", "N001", "R001", "R002", "R003", "R004", "R101",
            "S001", "S002", "S003", "S004"}  # fmt: skip
    for code in ours:
        entry = CATALOGUE.codes[code]
        assert entry.title and len(entry.text) > 100


def test_severities_are_those_of_the_catalogue() -> None:
    builder = Builder()
    builder.tile("a", 0, 1, 64)
    builder.tile("b", 256, 1, 64)
    builder.op(MTE2, "load", [gm(0)], [{"start": 0, "length": 512}])
    builder.op(V, "add", [{"start": 16, "align": 5, "length": 1 << 20}])
    builder.set(V, MTE2)
    for found in builder.run("a5"):
        assert found.severity == CATALOGUE.codes[found.code].severity


def test_one_lost_wait_in_a_function_of_two_kernels_is_one_finding() -> None:
    builder = Builder()
    for number, reader in ((1, 5), (2, 6)):
        builder.launch(number)
        builder.op(MTE2, "load", writes=[{"start": 0}], line=1)
        builder.set(MTE2, V, line=2)
        builder.op(V, "add", [{"start": 0}], line=reader)
        builder.end(number)
    (found,) = builder.run()
    assert (found.code, found.count) == ("R001", 2)
    assert "Add wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) before line 5." in found.mend
    assert "the same is missing for PIPE_V read by add at line 6" in found.notes
