"""SARIF: what the standard requires of a log, and what of a finding is in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import ascsim.checks  # noqa: F401 - registers its codes
from ascsim.diagnostics import Diagnostic, Place, Severity, Site
from ascsim.report.sarif import log

RACE = Diagnostic(
    "R001", Severity.ERROR, "Potential RAW hazard detected at UB",
    (Place("PIPE_V read", Site("src/my kernel.cpp", 12, 5)), Place("PIPE_MTE2 write", Site("src/my kernel.cpp", 10))),
    ("both touch UB 0x0 to 0xff",), "Add set_flag.", 1000,
)  # fmt: skip
NOTE = Diagnostic("N001", Severity.NOTE, "2 more findings are not shown")
UNKNOWN = Diagnostic("X999", Severity.WARNING, "Something", (Place("somewhere"),))


def check_log(data: Any) -> None:
    """The parts of the SARIF 2.1.0 schema that are about what is written here: required properties, types, values."""
    assert set(data) == {"$schema", "version", "runs"}
    assert data["version"] == "2.1.0"
    for run in data["runs"]:
        driver = run["tool"]["driver"]
        assert isinstance(driver["name"], str) and driver["name"]
        assert re.fullmatch(r"\d+\.\d+\.\d+\S*", driver["semanticVersion"])
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(set(ids)) == len(ids)
        for rule in driver["rules"]:
            for name in {"shortDescription", "fullDescription", "help"} & set(rule):
                assert rule[name]["text"]
        for result in run["results"]:
            assert result["message"]["text"]
            assert result["level"] in ("none", "note", "warning", "error")
            assert ids[result["ruleIndex"]] == result["ruleId"]
            assert result.get("occurrenceCount", 1) >= 1
            assert all(isinstance(v, str) for v in result["partialFingerprints"].values())
            related = result.get("relatedLocations", [])
            assert len({place["id"] for place in related}) == len(related)
            for place in [*result["locations"], *related]:
                physical = place["physicalLocation"]
                assert re.fullmatch(r"[A-Za-z0-9_.~/%:-]+", physical["artifactLocation"]["uri"])
                region = physical.get("region", {})
                assert all(isinstance(n, int) and n >= 1 for n in region.values())


@pytest.mark.parametrize("found", [[], [RACE], [RACE, NOTE, UNKNOWN, RACE]])
def test_the_log_is_what_the_standard_says(found: list[Diagnostic]) -> None:
    data = json.loads(json.dumps(log([("a2a3", found), ("a5", [])], "1.2.3")))
    check_log(data)
    assert [len(run["results"]) for run in data["runs"]] == [len(found), 0]


def test_a_finding_is_all_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (run,) = log([("a2a3", [RACE])], "1.2.3")["runs"]
    (result,) = run["results"]
    assert result["message"]["text"] == "Potential RAW hazard detected at UB. Add set_flag."
    assert (result["level"], result["occurrenceCount"]) == ("error", 1000)
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "src/my%20kernel.cpp"
    assert physical["region"] == {"startLine": 12, "startColumn": 5}
    assert result["relatedLocations"][0]["message"]["text"] == "PIPE_MTE2 write"
    assert result["properties"]["notes"] == ["both touch UB 0x0 to 0xff"]
    assert run["tool"]["driver"]["rules"][0]["shortDescription"]["text"].startswith("Read after write")


def test_a_file_elsewhere_has_a_whole_uri(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    far = Diagnostic("R001", Severity.ERROR, "x", (Place("read", Site("/usr/include/k.h", 3)),))
    (result,) = log([("a5", [far])], "1.2.3")["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///usr/include/k.h"


def test_the_fingerprint_outlives_a_move_of_lines() -> None:
    moved = Diagnostic(
        "R001", Severity.ERROR, "x", tuple(Place(p.what, Site("src/my kernel.cpp", 99)) for p in RACE.places)
    )
    results = log([("a5", [RACE, moved, UNKNOWN])], "1.2.3")["runs"][0]["results"]
    first, second, third = (result["partialFingerprints"]["ascsim/v1"] for result in results)
    assert first == second != third
