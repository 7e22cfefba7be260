"""The command line, run as a user runs it: what it prints, and its exit status."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def ascsim(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "ascsim.cli", *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False
    )


def test_help_lists_every_command():
    done = ascsim("--help")
    assert done.returncode == 0
    for command in ("run", "c++", "check", "isa", "explain", "demo", "doctor"):
        assert f"  {command}" in done.stdout


def test_help_and_import_load_nothing_heavy():
    code = (
        "import sys, ascsim, ascsim.cli; from click.testing import CliRunner;"
        "CliRunner().invoke(ascsim.cli.cli, ['--help']);"
        "print([m for m in ('numpy', 'numba', 'xdsl', 'rich', 'tree_sitter') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("run", "nowhere.asc"), 2, "there is no file nowhere.asc"),
        (("run", "x.pto", "--npu-arch=a9"), 2, "unknown NPU architecture 'a9'"),
        (("explain", "R0001"), 2, "there is no diagnostic code 'R0001'"),
        (("isa", "tsort33"), 2, "Near are"),
        (("check", "nowhere.asc"), 2, "there is no file"),
        (("check", "notes.txt"), 2, "notes.txt is no source that ascsim reads"),
        (("run", "."), 2, ". is a directory"),
        (("run", "x.pto", "--limit", "0"), 2, "run --help` shows"),
        (("runs", "x.pto"), 2, "No such command 'runs'"),
        (
            ("run", "x.pto", "--arg", "a=zeros:f32:1x8", "--sarif", "x.pto/y"),
            2,
            "cannot read or write x.pto/y: Not a directory",
        ),
        (("run", "x.pto", "--arg", "src"), 2, "is not NAME=VALUE"),
        (("run", "x.pto", "--arg", "nope=iota"), 2, "has no argument 'nope'"),
    ],
)
def test_faults_of_the_input_are_one_paragraph(arguments, status, words, tmp_path):
    (tmp_path / "notes.txt").write_text("TADD\n")
    (tmp_path / "x.pto").write_text("module {\n  func.func @k(%a: !pto.ptr<f32>) {\n    return\n  }\n}\n")
    done = ascsim(*arguments, cwd=tmp_path)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_fault_of_the_input_is_json_too():
    done = ascsim("run", "nowhere.asc", "--json")
    report = json.loads(done.stdout)
    assert (report["ok"], report["status"]) == (False, done.returncode)
    assert "nowhere.asc" in report["error"]


def test_explain_prints_the_catalogue_and_a_page():
    assert "L010" in ascsim("explain").stdout
    page = ascsim("explain", "l010").stdout
    assert page.startswith("L010 (error): Tile without an address")
    assert json.loads(ascsim("explain", "L010", "--json").stdout)["code"] == "L010"


@pytest.mark.parametrize("name", ["asc_intlv", "vintlv", "pto.vintlv"])
def test_reference_page_by_any_name(name):
    done = ascsim("isa", name)
    assert done.returncode == 0
    assert "asc_intlv (register instruction, pipe V, a5)" in done.stdout


def test_reference_index_is_data():
    rows = json.loads(ascsim("isa", "--json").stdout)
    assert {"tile", "memory", "register", "sync", "system"} <= {r["level"] for r in rows}


def test_doctor_reports_what_it_found():
    report = json.loads(ascsim("doctor", "--json").stdout)
    assert set(report["profiles"]) == {"a2a3", "a5", "cpu"}
    assert report["instructions"] > 100


def test_python_file_reports_its_launches(tmp_path):
    kernel = tmp_path / "k.py"
    kernel.write_text(
        "import ascsim, numpy as np\n"
        "@ascsim.kernel\n"
        "def add(x):\n"
        "    ascsim.tload(ascsim.tile('f32', 16, 64), x)\n"
        "add[1](np.zeros((16, 64), np.float32))\n"
        "print('done')\n"
    )
    done = ascsim("run", kernel, "--npu-arch=a5")
    assert done.stdout.splitlines()[0] == "done"
    assert "kernel add · 1 block · 1 instruction · manual sync · no findings" in done.stdout
    report = ascsim("run", kernel, "--npu-arch=a5", "--json")
    assert json.loads(report.stdout)["runs"][0]["profile"] == "a5"
    assert "done" in report.stderr


def test_python_file_that_launches_nothing_is_told(tmp_path):
    (tmp_path / "k.py").write_text("x = 1\n")
    done = ascsim("run", tmp_path / "k.py")
    assert done.returncode == 2
    assert "launched no kernel" in done.stderr


def test_refused_python_kernel_shows_its_line_and_no_traceback(tmp_path):
    kernel = tmp_path / "k.py"
    kernel.write_text(
        "import ascsim, numpy as np\n"
        "@ascsim.kernel\n"
        "def add(x):\n"
        "    a, b = ascsim.tile('f32', 16, 64), ascsim.tile('f16', 16, 64)\n"
        "    ascsim.tadd(b, a, a)\n"
        "add[1](np.zeros((16, 64), np.float32))\n"
    )
    done = ascsim("run", kernel)
    assert done.returncode == 1
    assert "error[L003]" in done.stdout
    assert f"{kernel}:5" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_script_ends_as_python_does(tmp_path: Path) -> None:
    script = tmp_path / "k.py"
    script.write_text(
        "import atexit, threading, time\n"
        "import ascsim, numpy\n"
        "@ascsim.kernel(arch='a5')\n"
        "def k(x): pass\n"
        "k[1](numpy.zeros(8, 'f4'))\n"
        "atexit.register(print, 'at the end')\n"
        "threading.Thread(target=lambda: (time.sleep(0.3), print('in a thread'))).start()\n"
        "left_open = open('left.txt', 'w')\n"
        "left_open.write('whole')\n"
    )
    command = [sys.executable, "-m", "ascsim.cli", "run", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.splitlines()[-2:] == ["in a thread", "at the end"]
    assert (tmp_path / "left.txt").read_text() == "whole"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_what_cannot_be_written_is_no_success_and_no_traceback() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "ascsim.cli", "isa"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "ascsim: error: cannot read or write the output: No space left on device\n"
