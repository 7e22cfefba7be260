"""C++ from the command line, as a user meets it: what is printed where, and the exit status."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.compilers import find_compiler

PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "acl/acl.h"
#include "c_api/asc_simd.h"

constexpr int kBytes = 256;


__simd_vf__ inline void Weave(__ubuf__ uint8_t* low, __ubuf__ uint8_t* left, __ubuf__ uint8_t* right)
{
    vector_bool all = asc_create_mask_b8(PAT_ALL);
    vector_uint8_t a, b, first, second;
    asc_loadalign(a, left);
    asc_loadalign(b, right);
    asc_intlv(first, second, a, b);
    asc_storealign(low, first, all);
}

__aicore__ inline void Work(__gm__ uint8_t* out, __gm__ uint8_t* in)
{
    asc_init();
    __ubuf__ uint8_t left[kBytes], right[kBytes], low[kBytes];
    asc_copy_gm2ub_align(left, in, kBytes);
    asc_copy_gm2ub_align(right, in + kBytes, kBytes);
    asc_sync_notify(PIPE_MTE2, PIPE_V, EVENT_ID0);
    asc_sync_wait(PIPE_MTE2, PIPE_V, EVENT_ID0);
    Weave(low, left, right);
    asc_sync_notify(PIPE_V, PIPE_MTE3, EVENT_ID0);
    asc_sync_wait(PIPE_V, PIPE_MTE3, EVENT_ID0);
    asc_copy_ub2gm_align(out, low, kBytes);
    printf("kernel prints %d\n", 3);
}

__global__ __vector__ void OnVector(__gm__ uint8_t* out, __gm__ uint8_t* in) { Work(out, in); }
__global__ __cube__ void OnCube(__gm__ uint8_t* out, __gm__ uint8_t* in) { Work(out, in); }
__global__ __vector__ void Beyond(__gm__ uint8_t* out)
{
    __ubuf__ uint8_t low[kBytes];
    asc_copy_ub2gm_align(out + kBytes, low, 32);  // MARK beyond
}
__global__ __vector__ void Writes(__gm__ int* out)
{
    asc_init();  // MARK before
    *out = 1;  // MARK crash in kernel
}
__global__ __vector__ void Endless()
{
    for (;;) asc_sync_pipe(PIPE_V);  // MARK endless
}

int main(int argc, char** argv)
{
    const char* what = argc > 1 ? argv[1] : "";
    aclInit(nullptr);
    aclrtSetDevice(0);
    std::vector<uint8_t> in(2 * kBytes), out(kBytes);
    for (int i = 0; i < kBytes; ++i) in[i] = 1, in[kBytes + i] = 2;
    void *from = nullptr, *to = nullptr;
    aclrtMalloc(&from, in.size(), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&to, out.size(), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(from, in.size(), in.data(), in.size(), ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemset(to, out.size(), 9, out.size());
    auto *target = (uint8_t*)to, *source = (uint8_t*)from;
    if (!strcmp(what, "vector")) OnVector<<<1>>>(target, source);
    if (!strcmp(what, "cube")) OnCube<<<1>>>(target, source);
    if (!strcmp(what, "beyond")) Beyond<<<1>>>(target);
    if (!strcmp(what, "kernel crash")) Writes<<<1>>>(nullptr);
    if (!strcmp(what, "endless")) Endless<<<1>>>();
    if (!strcmp(what, "host crash")) *(volatile int*)nullptr = 1;  // MARK crash in host
    aclrtMemcpy(out.data(), out.size(), to, out.size(), ACL_MEMCPY_DEVICE_TO_HOST);
    printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
    return argc > 2 ? atoi(argv[2]) : 0;
}
"""


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    try:
        find_compiler()
    except UserError as error:
        pytest.skip(error.message)


def ascsim(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ascsim.cli", *map(str, arguments)]
    whole = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, env=whole, timeout=120)


def line(mark: str) -> int:
    return next(n for n, row in enumerate(PROGRAM.splitlines(), start=1) if f"// MARK {mark}" in row)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, linked with the vendor's command line and one word changed."""
    place = tmp_path_factory.mktemp("cpp")
    (place / "example.asc").write_text(PROGRAM)
    made = ascsim("c++", "example.asc", "-o", "main", "--npu-arch=dav-3510", cwd=place)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    return place / "main"


PORTABLE = r"""
#include <cstdio>
#include <type_traits>
#include "acl/acl.h"
#include "pto/pto-inst.hpp"

using namespace pto;
static_assert(!std::is_same_v<aclFloat16, uint16_t> && std::is_same_v<aclFloat16, half>);

template <typename T>
AICORE void Double(__gm__ T* out, __gm__ T* in)
{
    using View = GlobalTensor<T, pto::Shape<1, 1, 1, 4, 64>, pto::Stride<256, 256, 256, 64, 1>>;
    Tile<TileType::Vec, T, 4, 64> a, b;
    TASSIGN(a, 0);
    TASSIGN(b, 0x1000);
    View from(in), to(out);
    TLOAD(a, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADD(b, a, a);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, b);
}

#define MAKE(NAME, T)                                                                           \
    extern "C" __global__ AICORE void Run##NAME(__gm__ T* out, __gm__ T* in) { Double<T>(out, in); } \
    void Launch##NAME(aclFloat16* out, aclFloat16* in)                                          \
    {                                                                                           \
        Run##NAME((T*)out, (T*)in);                                                             \
    }
MAKE(Half, half)

template <typename T>
struct Caller {
    void (*work)(T*, T*) = nullptr;
};

int OnHost()
{
    Tile<TileType::Vec, float, 2, 8> a, b;
    Tile<TileType::Vec, int32_t, 2, 8> wrong;
    TASSIGN(a, 0x100);
    TASSIGN(b, 0x200);
    TASSIGN(wrong, 0x300);
    for (int i = 0; i < 16; ++i) a.data()[i] = i;
    TADD(b, a, a);
    printf("host %g\n", b.data()[9]);
    TTRANS(wrong, a, b);
    printf("not here\n");
    return 0;
}

int main(int argc, char**)
{
    void *in, *out;
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtMalloc(&in, 512, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&out, 512, ACL_MEM_MALLOC_HUGE_FIRST);
    aclFloat16 values[256];
    printf("fresh %g\n", (float)((aclFloat16*)out)[7]);
    for (int i = 0; i < 256; ++i) values[i] = i + 0.5f;
    aclrtMemcpy(in, 512, values, 512, ACL_MEMCPY_HOST_TO_DEVICE);
    Caller<half> hidden;
    hidden.work = +[](half* to, half* from) { using Work = void (*)(half*, half*); Work work = Double; work(to, from); };
    if (argc > 2) return OnHost();
    if (argc > 1) hidden.work((half*)out, (half*)in);
    else LaunchHalf((aclFloat16*)out, (aclFloat16*)in);
    printf("%g\n", aclFloat16ToFloat(((aclFloat16*)out)[7]));
    return 0;
}
"""


@pytest.fixture(scope="module")
def portable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("portable")
    (place / "example.cpp").write_text(PORTABLE)
    made = ascsim("c++", "example.cpp", "-o", "main", "--npu-arch=cpu", cwd=place)
    assert (made.returncode, made.stderr) == (0, "")
    return place / "main"


def test_a_kernel_that_a_macro_makes_is_launched(portable: Path) -> None:
    done = ascsim("run", portable)
    assert done.stdout.splitlines()[-2] == "15"
    assert "kernel RunHalf" in done.stdout and "no findings" in done.stdout


def test_fresh_memory_is_chosen_in_the_environment(portable: Path) -> None:
    for environment, expected in (({}, "fresh -65376"), ({"ASCSIM_FILL": "zero"}, "fresh 0")):
        done = subprocess.run([portable], capture_output=True, text=True, env={**os.environ, **environment})
        assert done.stdout.splitlines()[0] == expected, done.stderr
    assert ascsim("run", portable, ASCSIM_FILL="none").returncode == 2


def test_host_code_of_portable_programs_works_on_tiles(portable: Path) -> None:
    done = ascsim("run", portable, "--", "hidden")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2] == "15"
    assert "kernel host code · 1 block" in done.stdout and "no findings" in done.stdout


def test_a_refusal_in_host_code_ends_the_program(portable: Path) -> None:
    done = ascsim("run", portable, "--", "on", "host")
    assert done.returncode == 1
    assert "host 18" in done.stdout and "not here" not in done.stdout
    assert "error[L007]: TTRANS" in done.stdout and "crashed" not in done.stdout
    assert "I001" not in done.stdout, "what the host writes is not in the trace"


# A program that works


def test_the_status_is_the_programs_own(program: Path) -> None:
    done = ascsim("run", program, "--", "vector", 7)
    assert done.returncode == 7
    own, report = done.stdout.splitlines()[:-1], done.stdout.splitlines()[-1]
    assert own == ["kernel prints 3", "1 2 1 2"], "printf of the kernel too"
    assert "kernel OnVector · 1 block" in report and report.endswith("no findings")
    assert done.stderr == ""


def test_a_source_is_built_and_run(program: Path) -> None:
    done = ascsim("run", program.with_name("example.asc"), "--npu-arch=dav-3510", "--", "vector", 7)
    assert done.returncode == 7
    assert done.stdout.startswith("kernel prints 3\n1 2 1 2\nascsim: Ascend 950")


def test_a_program_started_by_its_name_keeps_its_standard_output(program: Path) -> None:
    done = subprocess.run(["./main", "vector", "7"], capture_output=True, text=True, cwd=program.parent, check=False)
    assert done.returncode == 7
    assert done.stdout == "kernel prints 3\n1 2 1 2\n"
    assert done.stderr.startswith("ascsim: Ascend 950") and "no findings" in done.stderr
    together = subprocess.run(["sh", "-c", "./main vector 2>&1"], capture_output=True, text=True, cwd=program.parent)
    assert together.stdout.splitlines()[:2] == ["kernel prints 3", "1 2 1 2"], "its output first, then the report"


def test_json_is_alone_on_standard_output(program: Path) -> None:
    done = ascsim("run", program, "--json", "--", "vector", 7)
    report = json.loads(done.stdout)
    assert (done.returncode, report["status"], report["ok"]) == (7, 7, True)
    assert report["runs"][0]["kernel"] == "OnVector"
    assert done.stderr == "kernel prints 3\n1 2 1 2\n"


def test_vector_instructions_do_nothing_on_a_cube_core(program: Path) -> None:
    done = ascsim("run", program, "--json", "--", "cube")
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert run["launches"][0]["side"] == "aic"
    assert not run["findings"]
    assert done.stderr.splitlines()[0] == "kernel prints 3", "the kernel itself runs"
    assert done.stderr.splitlines()[1] == "9 9 9 9", "nothing was written"
    vector = json.loads(ascsim("run", program, "--json", "--", "vector").stdout)["runs"][0]
    assert vector["launches"][0]["side"] == "aiv"
    assert run["instructions"] < vector["instructions"]


# A program with findings


def test_a_finding_that_is_an_error_changes_the_status(program: Path) -> None:
    done = ascsim("run", program, "--", "beyond")
    assert done.returncode == 1
    assert f"example.asc:{line('beyond')}" in done.stdout
    assert "error[B004]" in done.stdout and " error" in done.stdout.splitlines()[-1]
    assert done.stdout.startswith("9 9 9 9\n"), "the program went on"


@pytest.mark.parametrize(("what", "where"), [("kernel crash", "crash in kernel"), ("host crash", "crash in host")])
def test_a_crash_names_signal_line_and_last_instruction(program: Path, what: str, where: str) -> None:
    done = ascsim("run", program, "--", what)
    assert done.returncode == 1
    assert "error[H010]: main crashed with SIGSEGV: it used memory that is not there (address 0x0)" in done.stdout
    assert f"example.asc:{line(where)}  the program was here" in done.stdout
    if what == "kernel crash":
        assert f"example.asc:{line('before')}  the last instruction was asc_init, on core 0" in done.stdout
        assert "It was in the kernel Writes" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_an_endless_loop_is_ended(program: Path) -> None:
    done = ascsim("run", program, "--timeout", 2, "--", "endless")
    assert done.returncode == 1
    assert "error[H011]: main did not end within 2 s" in done.stdout
    assert f"example.asc:{line('endless')}  the last instruction was asc_sync_pipe" in done.stdout


def test_a_program_of_another_ascsim_is_told_to_be_built_again(program: Path, tmp_path: Path) -> None:
    data = program.read_bytes()
    at = data.rindex(b'"headers": "') + len(b'"headers": "')
    (tmp_path / "old").write_bytes(data[:at] + b"0" * 16 + data[at + 16 :])
    done = ascsim("run", tmp_path / "old", "--", "vector")
    assert done.returncode == 2
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert "was built by another ascsim" in done.stderr and "Build it again" in done.stderr


# What does not compile


def test_errors_of_the_compiler_stand_at_the_users_lines(tmp_path: Path) -> None:
    (tmp_path / "bad.asc").write_text(
        '#include "h.h"\n__global__ void k(int* p) { *p = absent; }\n'
        "int main()\n{\n    k<<<1>>>(missing);\n    k<<<1>>>(nullptr);\n}\n"
    )
    (tmp_path / "h.h").write_text("#pragma once\n\ninline int f() { return wrong; }\n")
    done = ascsim("run", "bad.asc", "--npu-arch=a5", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    first, *errors = done.stderr.splitlines()
    assert first == "ascsim: error: bad.asc does not compile: 3 errors"
    places = [row.split(": error: ")[0] for row in errors if ": error: " in row]
    assert sorted(places) == ["bad.asc:2:34", "bad.asc:5:14", "h.h:3:25"]
    assert "      5 |     k<<<1>>>(missing);" in errors
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("configuration", ["", "1, nullptr, nullptr, 0"])
def test_a_launch_of_no_known_form_is_told(tmp_path: Path, configuration: str) -> None:
    text = f'#include "acl/acl.h"\n__global__ void k() {{}}\nint main() {{ k<<<{configuration}>>>(); }}\n'
    (tmp_path / "k.asc").write_text(text)
    done = ascsim("run", "k.asc", "--npu-arch=a5", cwd=tmp_path)
    assert done.returncode == 1
    assert "k.asc:3:14: error: static assertion failed" in done.stderr
    assert "a launch is kernel<<<blocks, dynamic UB bytes or nullptr, stream>>>(arguments)" in done.stderr


def test_what_a_chip_lacks_is_refused_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "k.asc").write_text(
        '#include "acl/acl.h"\n#include "c_api/asc_simd.h"\n'
        "__global__ __vector__ void k(__gm__ float* p)\n{\n    vector_float a, b, c, d;\n"
        "    asc_intlv(a, b, c, d);\n    asc_get_overflow_status();\n}\n"
        "int main()\n{\n    k<<<1>>>(nullptr);\n}\n"
    )
    done = ascsim("run", "k.asc", "--npu-arch=dav-2201", cwd=tmp_path)
    assert done.returncode == 1
    rows = done.stderr.splitlines()
    refused = next(row for row in rows if row.startswith("k.asc:6:"))
    assert "asc_intlv: not on a2a3; it exists on Ascend 950PR / Ascend 950DT [L001]" in refused
    absent = next(row for row in rows if row.startswith("k.asc:7:"))
    assert "asc_get_overflow_status: not implemented [L012]" in absent
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"ASCSIM_CXX": "/nonexistent"}, "the compiler '/nonexistent' that ASCSIM_CXX names does not run"),
        pytest.param(
            {"PATH": "", "ASCSIM_CXX": ""}, "no C++ compiler was found. Install one (for example `apt install g++`",
            marks=pytest.mark.skipif(importlib.util.find_spec("ziglang") is not None, reason="zig is a compiler"),
        ),
    ],
)  # fmt: skip
def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, environment: dict[str, str], words: str) -> None:
    (tmp_path / "k.asc").write_text("__global__ void k() {}\nint main() { return 0; }\n")
    done = ascsim("run", tmp_path / "k.asc", "--npu-arch=a5", **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and len(done.stderr.splitlines()) == 1


# Ways to build


def test_main_may_come_from_a_static_library(tmp_path: Path) -> None:
    (tmp_path / "framework.cpp").write_text(
        '#include <cstdio>\nint test_body();\nint main() { std::puts("from the library"); return test_body(); }\n'
    )
    (tmp_path / "body.asc").write_text(
        '#include "acl/acl.h"\n#include "c_api/asc_simd.h"\n'
        "__global__ __vector__ void k() { asc_init(); }\nint test_body() { k<<<3>>>(); return 4; }\n"
    )
    compiler = find_compiler()
    subprocess.run([*compiler.command, "-fPIC", "-c", "framework.cpp"], check=True, cwd=tmp_path)
    subprocess.run([*compiler.archiver, "rcs", "libframework.a", "framework.o"], check=True, cwd=tmp_path)
    made = ascsim("c++", "body.asc", "-L.", "-lframework", "-o", "t", "--npu-arch=a5", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([tmp_path / "t"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "from the library\n")
    assert "kernel k · 3 blocks · 3 instructions" in done.stderr


def test_several_sources_and_the_vendors_flags(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "go.h").write_text("#pragma once\nint go();\n")
    (tmp_path / "k.asc").write_text(
        '#include "acl/acl.h"\n#include "c_api/asc_simd.h"\n#include "go.h"\n'
        "#if __cplusplus < 202002L\n#error not C++20\n#endif\n"
        "__global__ __vector__ void k() { asc_init(); }\nint go() { k<<<1>>>(); return VALUE; }\n"
    )
    (tmp_path / "main.cpp").write_text(
        '#include <cmath>\n#include "go.h"\nint main(int argc, char**) { return go() + (int)std::cbrt(argc * 8.0); }\n'
    )
    flags = [
        *("-Iinc", "-DVALUE=40", "-O2", "-std=c++20", "-lm", "-lascendcl", "-xcce", "--npu-arch=dav-3510"),
        *("--cce-aicore-lang", "-mllvm", "-cce-aicore-stack-size=0x8000", "--cce-auto-sync=off"),
    ]
    made = ascsim("c++", "k.asc", "main.cpp", *flags, "-o", "main", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert subprocess.run([tmp_path / "main"], capture_output=True, check=False).returncode == 42
    one = ascsim("c++", "-c", "k.asc", "-Iinc", "-DVALUE=2", "-std=c++20", "--npu-arch=dav-3510", cwd=tmp_path)
    two = ascsim("c++", "k.o", "main.cpp", "-Iinc", "-lm", "-o", "other", cwd=tmp_path)
    assert one.returncode == two.returncode == 0, one.stderr + two.stderr
    assert subprocess.run([tmp_path / "other"], capture_output=True, check=False).returncode == 4


def test_kept_files_compile_with_a_bare_compiler(program: Path, tmp_path: Path) -> None:
    from ascsim.frontends.cpp.driver import include_flags

    source = program.with_name("example.asc")
    done = ascsim("run", source, "--npu-arch=dav-3510", "--keep", tmp_path / "kept")
    assert done.returncode == 0, done.stderr
    (host,) = (tmp_path / "kept").glob("*host*.cpp")
    command = [*find_compiler().command, "-O1", "-c", str(host), *include_flags("dav-3510"), "-o", str(tmp_path / "o")]
    subprocess.run(command, check=True)
    commands = (tmp_path / "kept" / "commands.txt").read_text()
    assert sorted(re.findall(r"-DASCSIM_SIDE=(\d)", commands)) == ["0", "1", "2"], "host, AIV, AIC"
