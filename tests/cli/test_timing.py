"""``ascsim time``, and the timelines of ``ascsim run``."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from ascsim.cli import run as run_command
from ascsim.cli import timing
from ascsim.diagnostics import UserError
from ascsim.frontends.cpp import compilers
from ascsim.report.page.columns import unpacked

EXAMPLES = Path(__file__).parents[2] / "examples"
PTO = ("sort_rows.pto", "--npu-arch=a3", "--arg", "src=random", "--arg", "idx=iota")


def invoke(command: Any, name: str, *arguments: str) -> str:
    """What a command prints on an example that has no findings."""
    result = CliRunner().invoke(
        command, [str(EXAMPLES / name), *arguments], catch_exceptions=False, standalone_mode=False
    )
    assert result.return_value == 0, result.output
    return result.stdout


def timed(name: str, *arguments: str) -> dict[str, Any]:
    """The only run of ``ascsim time --json``."""
    (report,) = json.loads(invoke(timing.command, name, *arguments, "--json").splitlines()[-1])["runs"]
    return report


def test_a_pto_kernel() -> None:
    report = timed(*PTO)
    assert report["ok"] and report["profile"] == "a2a3"
    assert 300 < report["cycles"] < 3000
    assert {"V", "MTE2", "MTE3"} <= {track["name"] for track in report["tracks"]}
    assert report["lines"][0]["where"].startswith(str(EXAMPLES / "sort_rows.pto:"))
    assert sum(line["cycles"] for line in report["lines"]) == report["cycles"]


def test_the_same_cycles_each_time() -> None:
    assert timed(*PTO) == timed(*PTO)


def test_what_if_a_pipe_took_no_time() -> None:
    report = timed(*PTO, "--infinite", "MTE2")
    assert report["infinite"] == ["MTE2"]
    assert report["cycles"] < report["without_what_if"]["cycles"] == timed(*PTO)["cycles"]


def test_text_and_timeline() -> None:
    text = invoke(timing.command, *PTO, "--timeline")
    assert "critical path by source line" in text
    assert "bound by" in text
    assert "cycles a character" in text


def test_chips_side_by_side() -> None:
    text = invoke(timing.command, PTO[0], "--npu-arch=a3,a5", *PTO[2:])
    assert "side by side" in text
    runs = json.loads(invoke(timing.command, PTO[0], "--npu-arch=a3,a5", *PTO[2:], "--json"))["runs"]
    assert [run["profile"] for run in runs] == ["a2a3", "a5"]


def test_of_several_launches_those_on_the_portable_profile_are_passed_over() -> None:
    runs = json.loads(invoke(timing.command, "sort_rows.py", "--json").splitlines()[-1])["runs"]
    assert [run["profile"] for run in runs] == ["a2a3", "a5"]


def test_run_draws_too(tmp_path: Path) -> None:
    files = [tmp_path / "t.json", tmp_path / "t.perfetto.json"]
    text = invoke(run_command.command, *PTO, "--timeline", *(word for file in files for word in ("--trace", str(file))))
    assert "no findings" in text and "cycles a character" in text
    assert all(json.loads(file.read_text())["traceEvents"] for file in files)
    assert (tmp_path / "core0.veccore0_code_exe.csv").exists()


def test_the_portable_profile_has_no_timeline() -> None:
    text = invoke(run_command.command, PTO[0], "--npu-arch=a3,cpu", *PTO[2:], "--timeline")
    assert text.count("cycles a character") == 1
    assert "no timeline: the portable profile is no chip" in text


def test_several_launches_have_files_of_their_own(tmp_path: Path) -> None:
    script = tmp_path / "twice.py"
    script.write_text(
        "import numpy as np, ascsim\n"
        "@ascsim.kernel\n"
        "def load(values):\n"
        "    ascsim.tload(ascsim.tile('f32', 1, 64, at=0), values)\n"
        "for blocks in (1, 2):\n"
        "    load[blocks](np.zeros((1, 64), np.float32))\n"
    )
    invoke(timing.command, str(script), "--trace", str(tmp_path / "t.json"))
    assert (tmp_path / "t.json").exists() and (tmp_path / "t-2.json").exists()
    assert {path.name for path in tmp_path.glob("*_code_exe*")} == {
        "core0.veccore0_code_exe.csv", "core0.veccore0_code_exe_2.csv", "core0.veccore1_code_exe_2.csv",
    }  # fmt: skip
    first, second = json.loads(invoke(timing.command, str(script), "--json", "--blocks", "3"))["runs"]
    assert first["cores"] == second["cores"] == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--trace", "x.txt"), "x.perfetto.json"),
        (("--trace", "/no/such/directory/x.json"), "cannot write"),
        (("--npu-arch", "cpu"), "no chip"),
    ],
)
def test_faults_of_the_input(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError, match=words):
        invoke(timing.command, *PTO, *arguments)


@pytest.mark.skipif(not shutil.which("addr2line"), reason="no program that reads debug information")
def test_a_cpp_kernel_is_told_by_its_lines() -> None:
    try:
        compilers.find_compiler()
    except UserError:
        pytest.skip("no compiler")
    command = [sys.executable, "-m", "ascsim.cli", "time", str(EXAMPLES / "sort_rows.cpp"), "--npu-arch=a3", "--json"]
    done = subprocess.run([*command, "--blocks", "2"], capture_output=True, text=True, check=False)
    (report,) = json.loads(done.stdout)["runs"]
    source = (EXAMPLES / "sort_rows.cpp").read_text().splitlines()
    assert (report["launches"], report["cores"]) == (2, 2), "two blocks, whatever the program says"
    for line in report["lines"]:
        number = int(line["where"].rpartition(":")[2])
        assert line["instructions"][0] in source[number - 1]


def page_of(path: Path) -> dict[str, Any]:
    """The data of a report page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found
    return json.loads(found[1])


@pytest.mark.parametrize("command", [run_command.command, timing.command])
def test_a_page(command: Any, tmp_path: Path) -> None:
    invoke(command, *PTO, "--html", str(tmp_path / "report.html"))
    data = page_of(tmp_path / "report.html")
    assert data["title"] == "sort_rows.pto"
    (run,) = data["runs"]
    assert run["time"]["cycles"] == timed(*PTO)["cycles"]
    assert any("pto.tsort32" in (text or "") for text in run["files"]["texts"])


def test_a_page_of_several_chips(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    invoke(run_command.command, PTO[0], "--npu-arch=a3,a5,cpu", *PTO[2:], "--html", str(path))
    assert [(run["profile"], run["time"] is None) for run in page_of(path)["runs"]] == [
        ("a2a3", False), ("a5", False), ("cpu", True),
    ]  # fmt: skip


def test_a_page_tells_of_results_that_differ(tmp_path: Path) -> None:
    path, golden = tmp_path / "report.html", tmp_path / "golden.npy"
    np.save(golden, np.zeros((4, 128), np.float32))
    result = CliRunner().invoke(
        run_command.command, [str(EXAMPLES / PTO[0]), *PTO[1:], "--golden", f"out={golden}", "--html", str(path)],
        standalone_mode=False,
    )  # fmt: skip
    assert result.return_value == 1
    ((outcome,),) = [run["outcomes"] for run in page_of(path)["runs"]]
    assert not outcome["ok"] and outcome["text"].startswith("golden out: ")


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        invoke(run_command.command, *PTO, "--html", str(tmp_path / "none" / "report.html"))


@pytest.mark.skipif(not shutil.which("addr2line"), reason="no program that reads debug information")
def test_a_page_of_a_program_with_a_race(tmp_path: Path) -> None:
    try:
        compilers.find_compiler()
    except UserError as missing:
        pytest.skip(str(missing))
    path = tmp_path / "report.html"
    result = CliRunner().invoke(
        run_command.command,
        [str(EXAMPLES / "missing_wait.cpp"), "--npu-arch=a3", "--html", str(path)],
        standalone_mode=False,
    )
    assert result.return_value == 1
    (run,) = page_of(path)["runs"]
    names = run["timeline"]["names"]
    name = unpacked(run["timeline"]["columns"]["name"])
    assert [names[name[place["bar"]]] for place in run["findings"][0]["places"]] == ["TADD", "TLOAD"]
