"""The page as a file: what it holds, and that no text in it can break out of its place."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ascsim.diagnostics import Diagnostic, Place, Severity, Site, UserError
from ascsim.report import page
from ascsim.report.page.columns import unpacked
from checks.builder import Builder
from report.page.pages import racy, shown


class Elements(HTMLParser):
    """The scripts and styles of a page by id, and every attribute that could load something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[tuple[str, str]] = []
        self.loads: list[str] = []
        self._open: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loads += [str(given[name]) for name in ("src", "href") if given.get(name)]
        if tag in ("script", "style"):
            self._open = given.get("id") or tag
            self.texts.append((self._open, ""))

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[-1] = (self._open, self.texts[-1][1] + data)


def data_in(text: str) -> dict[str, Any]:
    return json.loads(dict(Elements(text).texts)["data"])


def test_the_data_are_embedded() -> None:
    data = data_in(page.html([shown(racy())], "kernel.cpp"))
    (run,) = data["runs"]
    assert data["title"] == "kernel.cpp"
    assert (run["kernel"], run["profile"], run["instructions"], run["counts"]["error"]) == ("kernel", "a2a3", 5, 1)
    assert run["time"]["cycles"] == run["timeline"]["total"] > 0
    names = [run["timeline"]["names"][number] for number in unpacked(run["timeline"]["columns"]["name"])]
    assert names == ["TLOAD", "TADD", "set_flag", "wait_flag", "TSTORE"]
    assert {entry["name"] for entry in run["table"]} == {"TLOAD", "TADD", "TSTORE"}


def test_a_finding_knows_both_bars() -> None:
    run = page.data_of(shown(racy()))
    (finding,) = run["findings"]
    names, name = run["timeline"]["names"], unpacked(run["timeline"]["columns"]["name"])
    assert [names[name[place["bar"]]] for place in finding["places"]] == ["TADD", "TLOAD"]
    lines = run["files"]["lines"]
    assert [lines[place["line"]]["line"] for place in finding["places"]] == [5, 3]
    assert finding["code"] == "R001" and "set_flag" in finding["mend"] and finding["about"]


def test_a_place_without_a_row_is_found_by_its_line() -> None:
    refused = Diagnostic(
        "L001", Severity.ERROR, "no", (Place("here", Site("kernel.cpp", 8)), Place("there", Site("a.h", 1)))
    )
    run = page.data_of(dataclasses.replace(shown(racy()), diagnostics=[refused]))
    here, there = run["findings"][0]["places"]
    names, name = run["timeline"]["names"], unpacked(run["timeline"]["columns"]["name"])
    assert names[name[here["bar"]]] == "TSTORE" and there["bar"] == -1


def test_nothing_is_loaded() -> None:
    text = page.html([shown(racy())], "kernel.cpp")
    elements = Elements(text)
    assert all(target.startswith(("#", "data:")) for target in elements.loads)
    assert "default-src 'none'" in text
    assert not re.search(r"\b(fetch|XMLHttpRequest|import)\s*\(|innerHTML", dict(elements.texts)["script"])


@pytest.mark.parametrize("evil", ["</script><b>x", "<!--<script>", "/* script */ /* data */", "\u2028]]>", '"\\'])
def test_text_stays_text(evil: str, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(f"// {evil}\n")
    one = shown(racy(), kernel=evil)
    one = dataclasses.replace(one, sites=lambda number, flags: Site(str(source), 1))
    elements = Elements(page.html([one], evil))
    assert [name for name, _ in elements.texts] == ["style", "data", "script"]
    data = json.loads(dict(elements.texts)["data"])
    assert data["title"] == data["runs"][0]["kernel"] == evil
    assert f"// {evil}\n" in data["runs"][0]["files"]["texts"]


def test_the_portable_profile_has_findings_and_source_alone() -> None:
    run = page.data_of(shown(racy(), "cpu"))
    assert run["time"] is None and "timeline" not in run and "memory" not in run
    assert run["findings"][0]["places"][0]["bar"] == -1
    assert {line["line"] for line in run["files"]["lines"]} == {3, 5}


def test_a_run_of_nothing() -> None:
    run = page.data_of(shown(Builder()))
    assert run["time"]["cycles"] == 0 and run["table"] == [] and run["memory"]["spaces"] == []


def test_write(tmp_path: Path) -> None:
    page.write(tmp_path / "report.html", [shown(racy()), shown(racy(), "a5")], "kernel.cpp")
    assert len(data_in((tmp_path / "report.html").read_text())["runs"]) == 2
    with pytest.raises(UserError, match="cannot write"):
        page.write(tmp_path / "none" / "report.html", [], "")


def test_errors_come_first() -> None:
    told = [Diagnostic(code, severity, code) for code, severity in (("N001", Severity.NOTE), ("R001", Severity.ERROR))]
    run = page.data_of(dataclasses.replace(shown(racy()), diagnostics=told))
    assert [finding["code"] for finding in run["findings"]] == ["R001", "N001"]
