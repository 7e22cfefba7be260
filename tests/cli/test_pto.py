"""``ascsim run`` and ``ascsim check`` on .pto files, started as a user starts them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

DOUBLE = """\
module {
  func.func @double(%x: !pto.ptr<f32>, %out: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %x_view = pto.make_tensor_view %x, shape = [%c4, %c64], strides = [%c64, %c1] : !pto.tensor_view<4x64xf32>
    %out_view = pto.make_tensor_view %out, shape = [%c4, %c64], strides = [%c64, %c1] : !pto.tensor_view<4x64xf32>
    %x_part = pto.partition_view %x_view, offsets = [%c0, %c0], sizes = [%c4, %c64] : !pto.tensor_view<4x64xf32> -> !pto.partition_tensor_view<4x64xf32>
    %out_part = pto.partition_view %out_view, offsets = [%c0, %c0], sizes = [%c4, %c64] : !pto.tensor_view<4x64xf32> -> !pto.partition_tensor_view<4x64xf32>
BODY
    return
  }
}
"""  # noqa: E501 - text of a kernel
TILE, PART = "!pto.tile_buf<vec, 4x64xf32>", "!pto.partition_tensor_view<4x64xf32>"
IN_AUTO = f"""\
    %t = pto.tload %x_part : {PART} -> !pto.tile<4x64xf32>
    %s = pto.tadd %t, %t : (!pto.tile<4x64xf32>, !pto.tile<4x64xf32>) -> !pto.tile<4x64xf32>
    pto.tstore %s, %out_part : (!pto.tile<4x64xf32>, {PART}) -> ()"""
BY_HAND = f"""\
    %at_t = arith.constant 0 : i64
    %at_s = arith.constant 4096 : i64
    %t = pto.alloc_tile addr = %at_t : {TILE}
    %s = pto.alloc_tile addr = %at_s : {TILE}
    pto.tload ins(%x_part : {PART}) outs(%t : {TILE})
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.tadd ins(%t, %t : {TILE}, {TILE}) outs(%s : {TILE})
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.tstore ins(%s : {TILE}) outs(%out_part : {PART})"""

TWO = """\
func.func @first(%out: !pto.ptr<f32>) {
  return
}
func.func @second(%out: !pto.ptr<f32>, %n: i8, %factor: f32) {
  return
}
"""

ROWS = """\
func.func @rows(%x: !pto.ptr<i32>, %out: !pto.ptr<i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %block = pto.get_block_idx
  %row = arith.index_cast %block : i64 to index
  %x_view = pto.make_tensor_view %x, shape = [%c2, %c64], strides = [%c64, %c1] : !pto.tensor_view<2x64xi32>
  %out_view = pto.make_tensor_view %out, shape = [%c2, %c64], strides = [%c64, %c1] : !pto.tensor_view<2x64xi32>
  %x_row = pto.partition_view %x_view, offsets = [%row, %c0], sizes = [%c1, %c64] : !pto.tensor_view<2x64xi32> -> !pto.partition_tensor_view<1x64xi32>
  %out_row = pto.partition_view %out_view, offsets = [%row, %c0], sizes = [%c1, %c64] : !pto.tensor_view<2x64xi32> -> !pto.partition_tensor_view<1x64xi32>
  %t = pto.tload %x_row : !pto.partition_tensor_view<1x64xi32> -> !pto.tile<1x64xi32>
  pto.tstore %t, %out_row : (!pto.tile<1x64xi32>, !pto.partition_tensor_view<1x64xi32>) -> ()
  return
}
"""  # noqa: E501 - text of a kernel


def ascsim(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "ascsim.cli", *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False
    )


@pytest.fixture
def here(tmp_path):
    (tmp_path / "auto.pto").write_text(DOUBLE.replace("BODY", IN_AUTO))
    (tmp_path / "hand.pto").write_text(DOUBLE.replace("BODY", BY_HAND))
    (tmp_path / "two.pto").write_text(TWO)
    (tmp_path / "rows.pto").write_text(ROWS)
    return tmp_path


@pytest.mark.parametrize(("file", "sync"), [("auto.pto", "auto"), ("hand.pto", "manual")])
def test_both_writings_run_and_the_summary_says_who_synchronises(here, file, sync):
    x = np.random.default_rng(0).standard_normal((4, 64), np.float32)
    np.save(here / "x.npy", x)
    done = ascsim("run", file, "--arg", "x=x.npy", "--out", "out=out.npy", cwd=here)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"· {sync} sync · no findings" in done.stdout
    assert np.array_equal(np.load(here / "out.npy"), x + x)


def test_arrays_that_are_not_named_are_shown_in_short(here):
    done = ascsim("run", "auto.pto", "--arg", "x=iota", cwd=here)
    assert done.stdout.startswith("out 4x64 float32: [ 0.,  2.,  4.,  6.,  8., 10., 12., 14., ...]")
    named = ascsim("run", "auto.pto", "--arg", "x=iota", "--out", "out=o.bin", cwd=here)
    assert "out 4x64" not in named.stdout


@pytest.mark.parametrize("value", ["x.bin:f32:4x64", "x.bin:f32", "x.bin"])
def test_raw_files_go_in_and_out(here, value):
    x = np.arange(256, dtype=np.float32)
    (here / "x.bin").write_bytes(x.tobytes())
    done = ascsim("run", "hand.pto", "--arg", f"x={value}", "--out", "out=out.bin", cwd=here)
    assert done.returncode == 0, done.stderr
    assert (here / "out.bin").read_bytes() == (x * 2).tobytes()
    again = ascsim("run", "hand.pto", "--arg", f"x={value}", "--golden", "out=out.bin", cwd=here)
    assert "golden out: all 256 elements agree (bit for bit)" in again.stdout


def test_how_many_processors(here):
    one, three = (ascsim("run", "auto.pto", "--blocks", "3", "--jobs", n, cwd=here) for n in (1, 3))
    assert one.returncode == three.returncode and one.stdout == three.stdout
    none = ascsim("run", "auto.pto", "--jobs", "0", cwd=here)
    assert none.returncode == 2 and "--jobs" in none.stderr


def test_what_fills_an_array(here):
    def result(fill):
        done = ascsim("run", "auto.pto", *fill, "--out", "out=out.npy", cwd=here)
        assert done.returncode == 0, done.stderr
        return np.load(here / "out.npy")

    assert np.array_equal(result(["--arg", "x=iota"]).ravel(), 2 * np.arange(256, dtype=np.float32))
    assert not result(["--arg", "x=zeros"]).any()
    assert not result([]).any()
    random = result(["--arg", "x=random"])
    assert len(np.unique(random)) == 256
    assert np.array_equal(result(["--arg", "x=random"]), random)


def test_golden_files_are_compared(here):
    golden = 2 * np.arange(256, dtype=np.float32).reshape(4, 64)
    np.save(here / "right.npy", golden)
    golden[1, 2] += 0.5
    golden[3, 63] -= 1
    np.save(here / "wrong.npy", golden)
    right = ascsim("run", "auto.pto", "--arg", "x=iota", "--golden", "out=right.npy", cwd=here)
    assert right.returncode == 0
    assert "golden out: all 256 elements agree" in right.stdout
    wrong = ascsim("run", "auto.pto", "--arg", "x=iota", "--golden", "out=wrong.npy", cwd=here)
    assert wrong.returncode == 1
    assert "golden out: 2 of 256 elements differ (bit for bit; largest difference 1)" in wrong.stdout
    assert "  [1, 2] is 132.0, should be 132.5" in wrong.stdout
    assert "  [3, 63] is 510.0, should be 509.0" in wrong.stdout
    assert "no findings" in wrong.stdout
    for tolerance in ("--rtol=0.01", "--atol=1"):
        done = ascsim("run", "auto.pto", "--arg", "x=iota", "--golden", "out=wrong.npy", tolerance, cwd=here)
        assert done.returncode == 0, done.stdout
    close = ascsim("run", "auto.pto", "--arg", "x=iota", "--golden", "out=wrong.npy", "--atol=0.5", cwd=here)
    assert "1 of 256 elements differ (rtol 0, atol 0.5" in close.stdout


def test_json_is_one_object(here):
    np.save(here / "g.npy", np.ones((4, 64), np.float32))
    done = ascsim("run", "auto.pto", "--arg", "x=iota", "--golden", "out=g.npy", "--json", cwd=here)
    report = json.loads(done.stdout)
    assert (report["ok"], report["status"], done.returncode) == (False, 1, 1)
    (golden,) = report["golden"]
    assert (golden["name"], golden["ok"], golden["differ"], golden["total"]) == ("out", False, 256, 256)
    (run,) = report["runs"]
    assert (run["ok"], run["kernel"], run["sync"], run["findings"]) == (True, "double", "auto", [])


def test_blocks_know_their_number(here):
    done = ascsim("run", "rows.pto", "--arg", "x=iota", "--out", "out=out.npy", "--blocks", "2", cwd=here)
    assert "kernel rows · 2 blocks · " in done.stdout
    assert np.array_equal(np.load(here / "out.npy").ravel(), np.arange(128))
    ascsim("run", "rows.pto", "--arg", "x=iota", "--out", "out=out.npy", cwd=here)
    assert not np.load(here / "out.npy")[1].any()


def test_a_function_is_chosen_by_name(here):
    unsaid = ascsim("run", "two.pto", cwd=here)
    assert unsaid.returncode == 2
    assert "@first, @second" in unsaid.stderr and "--kernel" in unsaid.stderr
    done = ascsim("run", "two.pto", "--kernel", "first", "--arg", "out=zeros:f32:4", cwd=here)
    assert "kernel first" in done.stdout
    numbers = ("--arg", "n=-3", "--arg", "factor=1e-3")
    done = ascsim("run", "two.pto", "--kernel", "second", "--arg", "out=zeros:f32:4", *numbers, cwd=here)
    assert done.returncode == 0, done.stderr


SECOND = ("run", "two.pto", "--kernel", "second", "--arg", "out=zeros:f32:4")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "auto.pto", "--arg", "y=iota"), "double has no argument 'y'; it has x, out"),
        (("run", "auto.pto", "--out", "y=y.npy"), "double has no argument 'y'; it has x, out"),
        (("run", "auto.pto", "--arg", "x=iota", "--arg", "x=zeros"), "--arg gives 'x' twice"),
        (("run", "auto.pto", "--arg", "x=iota:f16"), "argument x has type f32; iota:f16 holds float16"),
        (("run", "auto.pto", "--arg", "x=iota:f32:4x63"), "256 elements (4x64); iota:f32:4x63 holds 252"),
        (("run", "auto.pto", "--arg", "x=iota:f33"), "unknown element type 'f33'"),
        (("run", "auto.pto", "--arg", "x=iota:f32:4by64"), "'4by64' is not a shape"),
        (("run", "auto.pto", "--arg", "x=x.npy"), "there is no file x.npy; its value is a .npy file, a raw file"),
        (("run", "auto.pto", "--arg", "x=3"), "argument x is an array, and there is no file 3"),
        (("run", "auto.pto", "--arg", "x=short.bin"), "short.bin has 5 bytes; an f32 takes 4"),
        (("run", "auto.pto", "--arg", "x=short.bin:f32:4x64"), "short.bin has 5 bytes; 4x64 of f32 are 1024"),
        (("run", "auto.pto", "--arg", "x=text.npy"), "text.npy is not a .npy file"),
        (("run", "auto.pto", "--golden", "out=g.npy"), "there is no file g.npy"),
        (("run", "auto.pto", "--golden", "out=short.npy"), "256 elements (4x64); short.npy holds 3"),
        (("run", "auto.pto", "--out", "out=none/o.npy"), "cannot write none/o.npy: No such file or directory"),
        (("run", "auto.pto", "--blocks", "0"), "a launch has 1 to"),
        (("run", "auto.pto", "--kernel", "k"), "there is no function @k; the functions are double"),
        (("run", "auto.pto", "-DX=1"), "-D is for C++ sources"),
        (("run", "auto.pto", "--", "7"), "no program to give '7' to"),
        (("run", "two.pto", "--kernel", "first"), "does not tell the type and shape of out; write them"),
        (SECOND, "argument n of second is a number (i8): give it as --arg n=..."),
        ((*SECOND, "--arg", "n=1.5"), "argument n is a scalar of type i8; '1.5' is not one"),
        ((*SECOND, "--arg", "n=128"), "argument n is i8, -128 to 127; 128 is outside"),
        ((*SECOND, "--arg", "n=1", "--out", "n=n.npy"), "argument n of second is a number"),
    ],
)
def test_faults_of_the_arguments_are_one_paragraph(here, arguments, words):
    (here / "short.bin").write_bytes(b"12345")
    (here / "text.npy").write_text("none")
    np.save(here / "short.npy", np.zeros(3, np.float32))
    done = ascsim(*arguments, cwd=here)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert len(done.stderr.strip().splitlines()) == 1


def test_every_unknown_instruction_is_listed_before_the_run(here):
    text = (here / "auto.pto").read_text().replace("pto.tadd", "pto.tadds_up").replace("pto.tstore", "pto.tstor")
    (here / "unknown.pto").write_text(text)
    run = ascsim("run", "unknown.pto", cwd=here)
    assert run.returncode == 2
    assert "2 things in this file cannot be run" in run.stderr
    assert re.search(r"unknown\.pto:12:\d+: pto\.tadds_up is not implemented", run.stderr)
    assert "unknown.pto:13:5: pto.tstor is not implemented; did you mean pto.tstore?" in run.stderr
    check = ascsim("check", "unknown.pto", cwd=here)
    assert check.returncode == 1
    assert check.stdout.count("error[L012]") == 2
    assert "2 calls to mend" in check.stdout
    found = json.loads(ascsim("check", "unknown.pto", "--json", cwd=here).stdout)["findings"]
    assert [f["code"] for f in found] == ["L012", "L012"]


def test_a_syntax_error_has_its_place(here):
    (here / "typo.pto").write_text((here / "hand.pto").read_text().replace("wait_flag[<PIPE_V>", "wait_flag[<PIPE_V"))
    done = ascsim("run", "typo.pto", cwd=here)
    assert done.returncode == 2
    assert re.match(r"ascsim: error: typo\.pto:20:\d+: ", done.stderr)
    assert "^" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_missing_wait_is_told_in_the_words_of_the_text(here):
    lines = (here / "hand.pto").read_text().splitlines(keepends=True)
    (here / "racy.pto").write_text("".join(s for s in lines if "wait_flag[<PIPE_MTE2>" not in s))
    done = ascsim("run", "racy.pto", cwd=here)
    assert done.returncode == 1
    assert "error[R001]" in done.stdout
    assert "racy.pto:17:5" in done.stdout
    assert "Add pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>] before line 17" in done.stdout
    whole = here / "bare.pto"
    whole.write_text("".join(s for s in lines if "_flag[<PIPE_MTE2>" not in s))
    assert "pto.set_flag[<PIPE_MTE2>, <PIPE_V>" in ascsim("run", whole).stdout


def test_register_text_is_refused_on_a_chip_without_registers():
    file = EXAMPLES / "interleave.pto"
    check = ascsim("check", file, "--npu-arch=a3")
    assert check.returncode == 1
    assert "error[L001]: pto.vintlv is not available on a2a3" in check.stdout
    run = ascsim("run", file, "--npu-arch=a3")
    assert run.returncode == 1
    assert "error[L001]: pto.pset_b32 is not available on a2a3" in run.stdout
    assert "interleave.pto:30:" in run.stdout
    assert "It exists on a5" in run.stdout
    assert "out 1x128" not in run.stdout


def _commands():
    table = (EXAMPLES / "README.md").read_text()
    return re.findall(r"`ascsim (run examples/\S+\.pto[^`]*)`", table)


def test_every_pto_example_is_in_the_table():
    assert {c.split()[1] for c in _commands()} == {f"examples/{p.name}" for p in EXAMPLES.glob("*.pto")}


@pytest.mark.parametrize("command", [c for c in _commands() if "DIR/" not in c])  # test_topk.py makes its files
def test_examples_run_clean(command):
    done = ascsim(*command.split(), cwd=EXAMPLES.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no findings" in done.stdout


RACY = EXAMPLES / "sort_rows.pto"


def without_wait(tmp_path: Path) -> Path:
    text = RACY.read_text().replace("    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]", "")
    path = tmp_path / "racy.pto"
    path.write_text(text)
    return path


def test_findings_in_the_form_that_is_asked_for(tmp_path: Path) -> None:
    racy, sarif, rules = without_wait(tmp_path), tmp_path / "o.sarif", tmp_path / "rules"
    done = ascsim("run", racy, "--sarif", sarif, "--error-exitcode", 42)
    assert done.returncode == 42
    (result,) = json.loads(sarif.read_text())["runs"][0]["results"]
    assert result["ruleId"] == "R001" and "pto.wait_flag[" in result["message"]["text"]
    rules.write_text("R001 racy.pto\n")
    done = ascsim("run", racy, "--suppressions", rules, "--error-exitcode", 42)
    assert done.returncode == 0
    assert "note[N002]: 1 finding is suppressed" in done.stdout
