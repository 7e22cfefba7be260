"""Source lines and the table of instructions."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ascsim.diagnostics import Site
from ascsim.report.page import data_of
from ascsim.report.page.bars import bars_of
from ascsim.report.page.source import Lines
from report.page.pages import racy, shown
from report.page.test_bars import with_steps


def test_lines_have_calls_cycles_and_their_part_of_the_path() -> None:
    data = data_of(shown(racy(2)))
    lines = {line["line"]: line for line in data["files"]["lines"]}
    assert {number: line["calls"] for number, line in lines.items()} == {3: 2, 5: 2, 6: 2, 7: 2, 8: 2}
    assert lines[3]["cycles"] > 0 and lines[6]["cycles"] == 0
    assert sum(line["onPath"] for line in lines.values()) <= data["time"]["cycles"]
    assert lines[8]["onPath"] == next(
        line["cycles"] for line in data["time"]["lines"] if line["where"] == "kernel.cpp:8"
    )


def test_steps_count_for_the_line_of_what_they_are_of() -> None:
    run = shown(with_steps())
    data = data_of(run)
    line = next(line for line in data["files"]["lines"] if line["line"] == 1)
    entry = next(entry for entry in data["table"] if entry["name"] == "TSORT32")
    assert line["calls"] == entry["calls"] == 1
    assert "bitsort" not in {entry["name"] for entry in data["table"]}
    assert line["onPath"] == entry["onPath"] > 0


def test_the_table() -> None:
    table = {entry["name"]: entry for entry in data_of(shown(racy(2)))["table"]}
    assert set(table) == {"TLOAD", "TADD", "TSTORE"}
    load = table["TLOAD"]
    assert (load["calls"], load["track"], load["bytes"]) == (2, "MTE2", 2 * 4096)
    assert table["TADD"]["bytes"] == 0
    assert load["most"] * 2 >= load["cycles"] > load["most"]


def test_texts_of_files(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text("one\ntwo\n")
    run = shown(racy())
    assert run.schedule is not None
    lines = Lines(lambda number, flags: Site(str(source), number))
    files = lines.files(run.schedule, bars_of(run.schedule, lines))
    assert files["texts"] == ["one\ntwo\n"] and files["paths"][0].endswith("kernel.cpp")
    assert data_of(run)["files"]["texts"] == [None]  # there is no kernel.cpp here


def test_instructions_without_a_site_have_no_line() -> None:
    run = dataclasses.replace(shown(racy()), sites=lambda number, flags: None, diagnostics=[])
    data = data_of(run)
    assert data["files"] == {"paths": [], "texts": [], "lines": []}
    assert {entry["line"] for entry in data["table"]} == {-1}
