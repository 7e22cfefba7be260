"""The process that a program runs in: it starts like the program, ends like it, and always leaves the trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ascsim.frontends.cpp import driver, session
from ascsim.machine.trace import Kind
from frontends.cpp.programs import build

MAIN = r"""
#include <csignal>
extern char** environ;
namespace {
int early_code = -1;
void* early_block = nullptr;
struct Early {
    Early()
    {
        early_code = aclInit(nullptr);
        aclrtSetDevice(0);
        aclrtMalloc(&early_block, 64, ACL_MEM_MALLOC_HUGE_FIRST);
    }
    ~Early() { std::printf("late %d\n", aclFinalize()); }
} early;

__global__ void kernel(int event)
{
    flag(SET_FLAG, 4, 1, event);
    flag(WAIT_FLAG, 4, 1, event);
}
__global__ void quits(int status)
{
    flag(SET_FLAG, 4, 1, 0);
    std::exit(status);
}
}  // namespace

int main(int argc, char** argv, char** environment)
{
    std::string what = arg(argc, argv, 1);
    if (what == "start") {
        std::printf("%d %d %s\n", early_code, early_block != nullptr, argv[0]);
        for (int i = 2; i <= argc; ++i) std::printf("[%s]", argv[i] ? argv[i] : "null");
        std::printf("%d %s\n", environment == environ, std::getenv("ASCSIM_TEST_WORD"));
        struct sigaction now;
        sigaction(SIGPIPE, nullptr, &now);
        std::printf("pipe %d\n", now.sa_handler == SIG_DFL);
        int word = 0;
        int count = std::scanf("%d", &word);
        std::printf("read %d %d\n", count, word);
        return 5;
    }
    kernel<<<2>>>(3);
    if (what == "exit") {
        std::printf("no newline at the end");
        std::exit(3);
    }
    if (what == "quick") _Exit(4);
    if (what == "kernel_exit") quits<<<1>>>(6);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("child"), {"main.asc": MAIN})


def test_static_initialisers_arguments_and_environment(program: Path, tmp_path: Path):
    script = (
        "import sys; from pathlib import Path; from ascsim.frontends.cpp import session\n"
        "out = session.run(Path(sys.argv[1]), sys.argv[3:], trace_directory=Path(sys.argv[2]))\n"
        "sys.exit(out.status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(program), str(tmp_path), "start", "a b", "", "--timeout"],
        input="42\n", capture_output=True, text=True, check=False, env={**os.environ, "ASCSIM_TEST_WORD": "word"},
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    rows = done.stdout.splitlines()
    assert rows[0] == f"0 1 {program}"
    assert rows[1:] == ["[a b][][--timeout][null]1 word", "pipe 1", "read 1 42", "late 0"]


@pytest.mark.parametrize(("what", "status", "printed", "n_rows"), [
    ("exit", 3, "no newline at the endlate 0\n", 8),
    ("quick", 4, "", 8),
    ("kernel_exit", 6, "late 0\n", 10),
])  # fmt: skip
def test_the_trace_is_whole_however_the_program_ends(program, tmp_path, capfd, what, status, printed, n_rows):
    outcome = session.run(program, [what], trace_directory=tmp_path)
    assert (outcome.status, outcome.error) == (status, None)
    assert capfd.readouterr().out == printed
    rows = outcome.trace.rows
    assert len(rows) == n_rows
    assert rows["kind"][:4].tolist() == [Kind.LAUNCH_BEGIN, Kind.SET_FLAG, Kind.WAIT_FLAG, Kind.LAUNCH_END]
    assert (tmp_path / "rows.bin").stat().st_size == 32 * n_rows


def test_a_function_that_is_not_simulated_is_named(tmp_path: Path):
    text = 'extern "C" int aclmdlLoadFromFile(const char*);\nint main() { return aclmdlLoadFromFile("x"); }\n'
    (tmp_path / "main.cpp").write_text(text)
    # Built without the runtime library at hand, so that the linker lets it pass.
    program = driver.build([str(tmp_path / "main.cpp"), "-o", str(tmp_path / "program")]).outputs[0]
    outcome = session.run(program, trace_directory=tmp_path / "trace")
    assert outcome.error is not None and outcome.error.code == "H012"
    assert "aclmdlLoadFromFile, an acl function that ascsim does not simulate" in outcome.error.headline


def test_a_library_is_not_a_program(tmp_path: Path):
    (tmp_path / "lib.cpp").write_text("int nothing() { return 1; }\n")
    library = driver.build([str(tmp_path / "lib.cpp"), "-shared", "-o", str(tmp_path / "lib.so")]).outputs[0]
    outcome = session.run(library, trace_directory=tmp_path / "trace")
    assert outcome.error is not None and "has no main function" in outcome.error.headline


def test_kernels_in_a_shared_library(tmp_path: Path, capfd):
    kernel = r"""
    namespace { __global__ void kernel(int* out, int value) { out[ascsim_core.block] = value + ascsim_core.block; } }
    void launch(int* out, int value) { kernel<<<2>>>(out, value); }
    """
    (tmp_path / "lib").mkdir()
    library = build(tmp_path / "lib", {"kernel.asc": kernel}, shared=True)
    main = r"""
    void launch(int* out, int value);
    namespace { __global__ void kernel(int* out, int value) { out[2] = value; } }
    int main()
    {
        aclrtSetDevice(0);
        int* out = device<int>(3);
        launch(out, 40);
        kernel<<<1>>>(out, 7);
        int got[3];
        aclrtMemcpy(got, 12, out, 12, ACL_MEMCPY_DEVICE_TO_HOST);
        std::printf("%d %d %d\n", got[0], got[1], got[2]);
        return 0;
    }
    """
    named = library.rename(library.parent / "libkernels.so")
    flags = (f"-L{named.parent}", "-lkernels", f"-Wl,-rpath,{named.parent}")
    program = build(tmp_path, {"main.asc": main}, flags=flags)
    outcome = session.run(program, trace_directory=tmp_path / "trace")
    assert (outcome.status, outcome.error) == (0, None)
    assert capfd.readouterr().out == "40 41 7\n"
    assert {note["side"] for note in outcome.trace.noted("module")} == {"runtime", "host", "library", "aiv"}


def test_a_child_is_told_what_to_expect_or_nothing(program: Path, tmp_path: Path) -> None:
    with session.Child() as told:
        told.expect({"asc_intlv", "TADD", "nothing_of_that_name"})
        assert session.run(program, ["quick"], trace_directory=tmp_path / "a", child=told).status == 4
    with session.Child() as untold:
        assert session.run(program, ["quick"], trace_directory=tmp_path / "b", child=untold).status == 4
    with session.Child() as unused:
        unused.expect(())
    assert unused.process.returncode is not None
