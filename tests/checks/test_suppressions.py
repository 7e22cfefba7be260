"""Findings that the user does not want: what is left out, what is not, and that it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascsim.checks.suppressions import Rule, note_on, read_rules, suppress
from ascsim.diagnostics import Diagnostic, Place, Severity, Site, UserError
from checks.builder import Builder, V


def finding(path: str, line: int, code: str = "R001") -> Diagnostic:
    return Diagnostic(code, Severity.ERROR, "race", (Place("read"), Place("write", Site(path, line))))


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("TADD(c, a, b);  // ascsim: ignore[R001]", False),
        ("TADD(c, a, b);  // ascsim: ignore", False),
        ("tadd(c, a, b)  # ascsim: ignore[B005, R001]", False),
        ("TADD(c, a, b);  // ascsim: ignore[R0*] known", False),
        ("TADD(c, a, b);  // ascsim: ignore[R002]", True),
        ("TADD(c, a, b);  // ignore[R001]", True),
        ("// ascsim: ignore[R001]\nTADD(c, a, b);", False),
        ("TADD(a, b);  // ascsim: ignore[R001]\nTADD(c, a, b);", True),
    ],
)
def test_comments(tmp_path: Path, text: str, is_told: bool) -> None:
    source = tmp_path / "k.cpp"
    source.write_text(text + "\n")
    told, silent = suppress([finding(str(source), text.count("\n") + 1)], ())
    assert (len(told), len(silent)) == ((1, 0) if is_told else (0, 1))


@pytest.mark.parametrize(
    ("rule", "is_told"),
    [
        ("R001", False),
        ("*", False),
        ("R00? kernel.cpp", False),
        ("R001 kernel.cpp:42", False),
        ("R001 src/*", False),
        ("R001 /home/me/src/kernel.cpp", False),
        ("R001 kernel.cpp:41", True),
        ("R001 other.cpp", True),
        ("R002", True),
        ("# R001", True),
    ],
)
def test_rules_of_a_file(tmp_path: Path, rule: str, is_told: bool) -> None:
    file = tmp_path / "rules"
    file.write_text(f"# what we know of\n\n{rule}  # why\n")
    told, silent = suppress([finding("/home/me/src/kernel.cpp", 42)], read_rules(file))
    assert (len(told), len(silent)) == ((1, 0) if is_told else (0, 1))


def test_faults_of_the_file_have_their_line(tmp_path: Path) -> None:
    file = tmp_path / "rules"
    file.write_text("R001\nR001 a.cpp b.cpp\n")
    with pytest.raises(UserError, match=r"rules:2: a rule is a code and a path"):
        read_rules(file)
    with pytest.raises(UserError, match="cannot be read"):
        read_rules(tmp_path / "none")


def test_what_is_suppressed_is_counted() -> None:
    note = note_on([finding("a", 1), finding("a", 2), finding("b", 1, "B005")])
    assert (note.code, note.severity, note.headline) == ("N002", Severity.NOTE, "3 findings are suppressed")
    assert note.notes == ("suppressed: B005 (1), R001 (2)",)


def test_the_limit_counts_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from ascsim import checks

    monkeypatch.setattr(checks.settings, "rules", (Rule("B002", "kernel.cpp", 1),))
    monkeypatch.setattr(checks.settings, "limit", 2)
    builder = Builder()
    for line in range(1, 5):
        builder.op(V, "op", [], [{"start": 16 + 1024 * line, "align": 5}], line=line)
    found = builder.run()
    assert [d.code for d in found] == ["B002", "B002", "N001", "N002"]
    assert [place.site.line for d in found[:2] for place in d.places if place.site] == [2, 3]
    assert found[2].headline == "1 more findings are not shown"
