"""Programs that crash, abort, hang or are not programs: what the parent makes of them."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp import image, session
from ascsim.machine.trace import Kind, Trace
from frontends.cpp.programs import build, count_common_as_own, line_of

MAIN = r"""
#include <cassert>
#include <chrono>
#include <csignal>
#include <thread>
namespace {
__global__ void works() { flag(SET_FLAG, 4, 1, 2); }  // MARK last
__global__ void crashes(int* out)
{
    flag(SET_FLAG, 4, 1, 1);  // MARK before
    *out = 1;  // MARK kernel crash
}
__global__ void hangs(int event)
{
    for (;;) flag(SET_FLAG, 4, 1, event);  // MARK kernel hang
}
}  // namespace

static void deep(int depth, volatile int* where)
{
    if (depth == 0) { *where = 1; return; }  // MARK host crash
    deep(depth - 1, where);
    std::printf(" ");
}

struct Early {
    Early()
    {
        if (std::getenv("ASCSIM_TEST_EARLY")) std::abort();  // MARK early
    }
} early;

int main(int argc, char** argv)
{
    std::string what = arg(argc, argv, 1);
    works<<<1>>>();
    if (what == "host") deep(3, (volatile int*)24);
    if (what == "kernel") crashes<<<1>>>((int*)40);
    if (what == "assert") assert(argc == 1);  // MARK assert
    if (what == "throw") throw std::runtime_error("lost");
    if (what == "divide") return argc / (argc - 2);  // MARK divide
    if (what == "kill") raise(SIGKILL);
    if (what == "hang") hangs<<<1>>>(0);
    if (what == "sleep") std::this_thread::sleep_for(std::chrono::hours(1));  // MARK sleep
    if (what == "stubborn") { signal(SIGQUIT, SIG_IGN); for (;;) std::this_thread::sleep_for(std::chrono::hours(1)); }
    if (what == "many") { for (int i = 0; i < 30; ++i) { works<<<2000>>>(); } }
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("session"), {"main.asc": MAIN}, flags=("-O1",))


@pytest.fixture
def run(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    count_common_as_own(program, monkeypatch)

    def runs(what: str, timeout: float = 60) -> session.Outcome:
        return session.run(program, [what], trace_directory=tmp_path / "trace", timeout=timeout)

    return runs


def sites_of(outcome: session.Outcome) -> list[int]:
    assert outcome.error is not None
    return [place.site.line if place.site else 0 for place in outcome.error.places]


def test_a_crash_of_the_host_program(run):
    outcome = run("host")
    assert (outcome.status, outcome.signal) == (None, signal.SIGSEGV)
    assert outcome.error.code == "H010"
    assert "SIGSEGV" in outcome.error.headline and "address 0x18" in outcome.error.headline
    assert sites_of(outcome) == [line_of(MAIN, "MARK host crash"), line_of(MAIN, "MARK last")]
    assert "set_flag" in outcome.error.places[1].what
    assert outcome.error.notes == ("It was in host code; no kernel was running.",)
    kinds = outcome.trace.rows["kind"].tolist()
    assert kinds == [Kind.LAUNCH_BEGIN, Kind.SET_FLAG, Kind.LAUNCH_END]  # whole, in spite of the crash


def test_a_crash_inside_a_kernel(run):
    outcome = run("kernel")
    assert outcome.signal == signal.SIGSEGV
    assert sites_of(outcome) == [line_of(MAIN, "MARK kernel crash"), line_of(MAIN, "MARK before")]
    assert outcome.error.notes == ("It was in the kernel crashes, on core 0.",)


@pytest.mark.parametrize(("what", "number", "mark"), [
    ("assert", signal.SIGABRT, "MARK assert"),
    ("divide", signal.SIGFPE, "MARK divide"),
])  # fmt: skip
def test_other_ways_to_die(run, what, number, mark):
    outcome = run(what)
    assert outcome.signal == number
    assert number.name in outcome.error.headline
    assert sites_of(outcome)[0] == line_of(MAIN, mark)


def test_an_uncaught_exception_aborts(run, capfd):
    outcome = run("throw")
    assert outcome.signal == signal.SIGABRT
    assert "lost" in capfd.readouterr().err  # the C++ library's own message


def test_a_kill_from_outside_leaves_no_record_but_the_trace(run):
    outcome = run("kill")
    assert outcome.signal == signal.SIGKILL
    assert "killed from outside" in outcome.error.headline
    assert sites_of(outcome) == [line_of(MAIN, "MARK last")]


def test_a_crash_before_main(run, monkeypatch):
    monkeypatch.setenv("ASCSIM_TEST_EARLY", "1")
    outcome = run("nothing")
    assert outcome.signal == signal.SIGABRT
    assert sites_of(outcome) == [line_of(MAIN, "MARK early")]


def ended(run, what: str) -> session.Outcome:
    """The end of a program whose time is up: enough of it to have come somewhere, which takes long on a busy machine."""
    for seconds in (1, 4, 16):
        outcome = run(what, timeout=seconds)
        assert outcome.timed_out
        if sites_of(outcome)[0]:
            assert f"did not end within {seconds} s" in outcome.error.headline
            break
    return outcome


def test_a_program_that_never_ends(run):
    outcome = ended(run, "hang")
    assert outcome.error.code == "H011"
    here = line_of(MAIN, "MARK kernel hang")
    assert here in sites_of(outcome)
    assert outcome.error.notes == ("It was in the kernel hangs, on core 0.",)
    assert len(outcome.trace.rows) > 1000


def test_a_program_that_sleeps(run):
    outcome = ended(run, "sleep")
    assert sites_of(outcome)[0] == line_of(MAIN, "MARK sleep")


def test_a_program_that_ignores_the_request_is_killed(run, monkeypatch):
    monkeypatch.setattr(session, "GRACE", 0.2)
    for seconds in (1, 4, 16):
        outcome = run("stubborn", timeout=seconds)
        assert outcome.timed_out
        if outcome.signal != signal.SIGQUIT:  # it had come so far as to ignore that
            break
    assert outcome.signal == signal.SIGKILL


def test_the_trace_grows_by_chunks(run):
    outcome = run("many")
    assert outcome.status == 0
    rows = outcome.trace.rows
    assert len(rows) == 3 + 30 * 2000 * 3
    assert (rows["kind"][1::3] == Kind.SET_FLAG).all()
    assert (outcome.trace_directory / "rows.bin").stat().st_size == 32 * len(rows)
    again = Trace.load(outcome.trace_directory)
    assert (again.rows == rows).all()


def test_the_process_may_be_started_before_there_is_a_program(program, tmp_path):
    with session.Child() as child:
        outcome = session.run(program, ["nothing"], trace_directory=tmp_path / "trace", child=child)
    assert (outcome.status, child.process.returncode) == (0, 0)
    assert len(outcome.trace.rows) == 3


def test_a_process_that_is_never_used_is_ended():
    with session.Child() as child:
        assert child.process.poll() is None
    assert child.process.returncode == -signal.SIGKILL


def test_a_temporary_trace_is_removed(program):
    outcome = session.run(program)
    assert outcome.trace_directory.exists()
    outcome.close()
    assert not outcome.trace_directory.exists()


def test_a_file_that_ascsim_did_not_link_is_refused(tmp_path):
    (tmp_path / "x").write_text("#!/bin/sh\n")
    with pytest.raises(UserError, match="was not linked by ascsim"):
        session.run(tmp_path / "x")


def test_a_program_of_another_ascsim_does_not_run(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "headers_hash", lambda: "of another")
    with pytest.raises(UserError, match="was built by another ascsim"):
        session.run(program, ["none"], trace_directory=tmp_path / "trace")
