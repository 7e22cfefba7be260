"""From program counters to the user's lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ascsim.diagnostics import Site
from ascsim.frontends.cpp import session, sites
from ascsim.machine.trace import ACCESS, ROW, SITE_PC, Kind, Trace
from frontends.cpp.programs import build, count_common_as_own, line_of

HEADER = r"""
#pragma once
INLINE void through_a_header(int event)
{
    flag(SET_FLAG, 4, 1, event);  // MARK header
}
"""
MAIN = r"""
#include "steps.hpp"
template <int N> INLINE void twice(int event)
{
    for (int i = 0; i < N; ++i) flag(SET_FLAG, 4, 1, event);  // MARK template
}
namespace {
__global__ void kernel(int event)
{
    flag(SET_FLAG, 4, 1, event); flag(WAIT_FLAG, 4, 1, event);  // MARK direct
    through_a_header(event);
    twice<2>(event);
}
}
int main()
{
    kernel<<<1>>>(  // MARK launch
        3);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sites"), {"main.asc": MAIN, "steps.hpp": HEADER}, flags=("-O2",))


@pytest.fixture
def outcome(program: Path, tmp_path: Path) -> session.Outcome:
    return session.run(program, trace_directory=tmp_path / "trace")


def test_instructions_are_at_the_users_lines(program, outcome, monkeypatch):
    count_common_as_own(program, monkeypatch)
    assert outcome.status == 0
    resolved = sites.resolve(outcome.trace, outcome.trace.rows["site"].tolist())
    rows = [resolved[int(row["site"])] for row in outcome.trace.rows]
    direct, template = line_of(MAIN, "MARK direct"), line_of(MAIN, "MARK template")
    header, launch = line_of(HEADER, "MARK header"), line_of(MAIN, "MARK launch")
    assert [site.line for site in rows] == [launch, direct, direct, header, template, template, launch]
    names = [Path(site.path).name for site in rows]
    assert names == ["main.asc"] * 3 + ["steps.hpp"] + ["main.asc"] * 3
    assert "twice<2>" in rows[4].function and "kernel" in rows[1].function
    assert outcome.trace.rows["kind"][0] == Kind.LAUNCH_BEGIN


def test_a_header_of_ascsim_is_not_the_users_line(program, outcome, monkeypatch):
    """The chain flag > issue > ascsim_issue is inlined; counted as the user's own it ends in issue."""
    number = int(outcome.trace.rows["site"][1])
    monkeypatch.setattr(sites, "_is_own", lambda path: False)
    assert Path(sites.resolve(outcome.trace, [number])[number].path).name == "common.hpp"


def test_the_resolver_looks_up_everything_at_once(program, outcome, monkeypatch):
    calls = []
    lines = sites._lines
    monkeypatch.setattr(sites, "_lines", lambda *words: calls.append(words) or lines(*words))
    resolver = sites.resolver(outcome.trace)
    assert all(resolver(int(row["site"]), SITE_PC) for row in outcome.trace.rows)
    assert len(calls) == 2  # the host program and the AIV image, once each
    assert resolver(12345, SITE_PC) is None


def test_without_a_reader_of_debug_information(program, outcome, monkeypatch):
    monkeypatch.setattr(sites, "symbolizer", lambda: None)
    number = int(outcome.trace.rows["site"][1])
    site = sites.resolve(outcome.trace, [number])[number]
    module = next(m for m in sites.modules(outcome.trace) if m.side == "aiv")
    assert site == Site(f"{Path(module.path).name}+{number - 1 - module.base:#x}")


@pytest.mark.parametrize("command", ["addr2line", "llvm-addr2line", "llvm-symbolizer"])
def test_every_reader_answers_alike(program, outcome, monkeypatch, command):
    import shutil

    if shutil.which(command) is None:
        pytest.skip(f"needs {command}")
    count_common_as_own(program, monkeypatch)
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: real(name) if name == command else None)
    sites.symbolizer.cache_clear()
    number = int(outcome.trace.rows["site"][3])
    site = sites.resolve(outcome.trace, [number])[number]
    sites.symbolizer.cache_clear()
    assert (Path(site.path).name, site.line) == ("steps.hpp", line_of(HEADER, "MARK header"))


def test_noted_sites_count_from_one():
    notes = [("site", {"path": "k.pto", "line": 4, "column": 2, "function": ""})]
    trace = Trace(np.zeros(0, ROW), np.zeros(0, ACCESS), np.zeros((0, 32), np.uint8), notes)
    assert sites.resolve(trace, [0, 1, 2]) == {1: Site("k.pto", 4, 2)}


def test_answers_are_parsed():
    own = sites.OWN_HEADERS[0] / "ascsim" / "machine.hpp"
    printed = (
        f"0x0000000000001139\nascsim::issue()\n{own}:12\nf(int)\n/src/a.asc:7 (discriminator 2)\nmain\n/src/a.asc:20\n"
        "0x0000000000001150\n??\n??:0\n"
        "0x0000000000001160\ng\n/src/b.asc:?\n"
    )
    assert dict(sites._parse(printed)) == {
        0x1139: Site("/src/a.asc", 7, 0, "f(int)"),
        0x1160: Site("/src/b.asc", 0, 0, "g"),
    }
