"""Every synchronisation call of every example is needed, and its loss is told: the checks proved on real kernels.

Each call of each correct example is left out in turn. The report must then have one error, whose mend is that very
call; with all calls in place there is nothing to report. Calls that other calls make redundant are listed in
:data:`REDUNDANT`: leaving them out must be silent. Examples are found by looking, so a new one joins by itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascsim import profiles
from ascsim.diagnostics import Diagnostic, Severity
from ascsim.frontends import launch
from ascsim.frontends.ptoas.kernel import loads

EXAMPLES = Path(__file__).parents[2] / "examples"
WRONG = {"missing_wait.cpp"}
"""Examples of mistakes."""
LONG = {"topk.cpp", "topk.pto", "topk.py"}
"""Examples that run too long to be run once a call: tests/conformance/test_topk.py has them on fewer rows."""
REDUNDANT: dict[tuple[str, int], str] = {}
"""(example, line) of calls that nothing needs, with the reason."""

_WORDS = r"set_flag|wait_flag|pipe_barrier|asc_sync\w*|asc_mem_bar|TSYNC|tsync"
CALL = {
    ".cpp": re.compile(rf"\b(?:{_WORDS})\s*(?:<[^;()]*>)?\([^;()]*\);"),
    ".asc": re.compile(rf"\b(?:{_WORDS})\s*(?:<[^;()]*>)?\([^;()]*\);"),
    ".py": re.compile(rf"\bascsim\.(?:{_WORDS})\([^()]*\)"),
    ".pto": re.compile(r"\bpto\.(?:set_flag|wait_flag|barrier|mem_bar)\b[^\n]*"),
}
COMMENT = {".cpp": "//", ".asc": "//", ".py": "#", ".pto": "//"}
SKIP = "ASCSIM_TEST_SKIP"

Match = re.Match[str]


def arch_of(example: str) -> str:
    """The chip that the table of examples runs it on."""
    rows = [line for line in (EXAMPLES / "README.md").read_text().splitlines() if line.startswith("| `")]
    own = [row for row in rows if row.startswith(f"| `{example}`")]
    shared = [row for row in rows if row.startswith(f"| `{example.rpartition('.')[0]}.")]  # one row for all ways in
    found = re.search(r"--npu-arch[= ](\S+?)[ `]", (own or shared or [""])[0])
    return found.group(1) if found else "a2a3"


@cache
def calls(path: Path) -> tuple[Match, ...]:
    """The synchronisation calls of a source, comments apart."""
    text, comment = path.read_text(), COMMENT[path.suffix]
    found = CALL[path.suffix].finditer(text)
    return tuple(m for m in found if comment not in text[text.rfind("\n", 0, m.start()) + 1 : m.start()])


def line_of(call: Match) -> int:
    return call.string.count("\n", 0, call.start()) + 1


def examples(*suffixes: str) -> list[Path]:
    return sorted(p for p in EXAMPLES.iterdir() if p.suffix in suffixes and p.name not in WRONG | LONG)


def cases(*suffixes: str) -> Iterator[Any]:
    """(example, number of the call left out; -1: none)."""
    for path in examples(*suffixes):
        yield pytest.param(path, -1, id=path.name)
        for number, call in enumerate(calls(path)):
            yield pytest.param(path, number, id=f"{path.name}-{line_of(call)}")


def judge(path: Path, number: int, diagnostics: list[Diagnostic]) -> None:
    """What must be reported of an example without one of its calls."""
    if number < 0 or (path.name, line_of(calls(path)[number])) in REDUNDANT:
        assert diagnostics == []
        return
    errors = [d for d in diagnostics if d.severity is Severity.ERROR]
    call = re.sub(r"\s|ascsim\.|;", "", calls(path)[number].group())
    if "ALL" in call and "barrier" in call:  # it stands for a pair of calls between any two pipes
        assert errors and all(d.code in ("R001", "R002", "R003") for d in errors), diagnostics
        return
    assert len(errors) == 1, diagnostics
    pipes, comma, event = call.rpartition(",")
    if comma and not re.search(r"\d", event):  # an event id that the program works out
        call = pipes
    assert call in re.sub(r"\s", "", errors[0].mend), errors[0]


def without(path: Path, number: int, instead: str) -> str:
    """The source without a call, lines where they were."""
    text = path.read_text()
    if number < 0:
        return text
    begin, end = calls(path)[number].span()
    return text[:begin] + instead + text[end:]


@pytest.mark.parametrize(("path", "number"), list(cases(".pto")))
def test_pto(path: Path, number: int) -> None:
    kernel = loads(without(path, number, ""), path.name).kernel()
    values = {a.name: np.zeros(a.shape or (4096,), a.dtype.numpy) if a.is_pointer else 0 for a in kernel.arguments}
    run = kernel.run(profiles.find(arch_of(path.name)), 1, values, "manual" if calls(path) else None)
    judge(path, number, run.diagnostics)


@pytest.mark.parametrize(("path", "number"), list(cases(".py")))
def test_python(path: Path, number: int) -> None:
    runs: list[launch.Run] = []
    launch.observe(runs.append)
    try:
        exec(compile(without(path, number, "pass"), str(path), "exec"), {"__name__": "__main__"})
    except launch.KernelError:
        pass  # the first launch of the script that has errors
    finally:
        launch.observe(None)
    assert runs
    judge(path, number, runs[-1].diagnostics)


CPP = examples(".cpp", ".asc")


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.name, marks=[] if p == CPP[0] else [pytest.mark.slow]) for p in CPP]
)
def test_cpp(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One build for all calls of an example: the environment says which one not to make."""
    from ascsim.frontends.cpp.run import run_file

    text = path.read_text()
    for number, call in reversed(list(enumerate(calls(path)))):
        condition = f'if (!(std::getenv("{SKIP}") && std::atoi(std::getenv("{SKIP}")) == {number})) '
        text = text[: call.start()] + condition + text[call.start() :]
    source = tmp_path / path.name
    source.write_text(text)
    for number in range(-1, len(calls(path))):
        monkeypatch.setenv(SKIP, str(number))
        run, _ = run_file(source, arch_of(path.name), [], flags=["-include", "cstdlib"], output=sys.__stderr__)
        judge(path, number, run.diagnostics)


def test_what_is_called_redundant_is_there() -> None:
    lines = {(path.name, line_of(c)) for path in examples(".cpp", ".asc", ".py", ".pto") for c in calls(path)}
    assert set(REDUNDANT) <= lines
    assert len(lines) > 15
