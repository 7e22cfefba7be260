"""Builds with the real compiler, tiny headers and a tiny runtime (conftest.py): what comes out runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp import driver
from ascsim.frontends.cpp.compilers import Compiler
from ascsim.frontends.cpp.driver import (
    BuildOptions,
    CompileError,
    LinkError,
    build,
    compile_program,
    load_image,
    macros,
    survey,
)

PROGRAM = """\
#include <cstdio>
namespace {
__global__ __vector__ void fill(__gm__ float* p, int n)
{
    __ubuf__ float x[8];
    x[0] = n;
    p[0] = x[0] + ASCSIM_SIDE;
}
template <typename T, int N> __global__ __aicore__ void scale(__gm__ T* p)
{
    p[0] = p[0] * N;
}
}
struct Loud { Loud() { puts("init"); } } loud;
__simd_vf__ inline void vf() {}
int main(int argc, char** argv)
{
    float f = 0;
    fill<<<2>>>(&f, 5);
    scale<float, 3><<<1, nullptr, nullptr>>>(&f);
    scale<float, 7>(&f);
    printf("%g %s\\n", f, argv[argc - 1]);
    return 3;
}
"""


def run(toolbox: Path, program: Path | str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(toolbox / "runner.py"), str(toolbox / "libfake.so"), str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def written(directory: Path, **files: str) -> None:
    for name, text in files.items():
        place = directory / name.replace("__", "/").replace("_", ".")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def test_a_program_runs_its_kernels_on_the_device_image(options: BuildOptions, toolbox: Path, tmp_path: Path) -> None:
    written(tmp_path, k_asc=PROGRAM)
    result = build(["k.asc", "-o", "main", "--npu-arch=dav-3510"], options)
    assert result.outputs == (Path("main"),)
    done = run(toolbox, "main", "last word")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "init",
        "launch fill line 19 blocks 2",
        "array 0 32 x",
        "array 0 32 x",
        "launch scale<float, 3> line 20 blocks 1",
        "launch scale<float, 7> line 21 blocks 1",
        "126 last word",
    ], "the initialiser runs once, in the host image; the kernel's side is 1 (6 = 5 + 1, times 3, times 7)"
    assert done.returncode == 3


def test_the_program_describes_itself(options: BuildOptions, tmp_path: Path) -> None:
    written(tmp_path, k_asc=PROGRAM + "#if defined(__DAV_CUBE__)\n#endif\n")
    build(["k.asc", "-o", "main", "--npu-arch=a5"], options)
    image = load_image("main")
    assert (image.profile, image.has_main, image.sources) == ("a5", True, (str(tmp_path / "k.asc"),))
    assert [(k["name"], k["core"], k["is_template"], k["line"]) for k in image.kernels] == [
        ("fill", "vector", False, 3),
        ("scale", "", True, 9),
    ]
    assert [device.side for device in image.devices] == ["aiv", "aic"]
    host, device = (
        {s.name for s in table if "entry" in s.name} for table in (image.host_symbols, image.device_symbols("aiv"))
    )
    assert len(host) == 3
    assert host == device, "entries of kernels in an anonymous namespace and of templates have one name in both"
    assert image.extract("aiv").read_bytes() == image.read("aiv")
    with pytest.raises(KeyError):
        replace(image, devices=()).read("aiv")


def test_the_program_starts_the_tool(options: BuildOptions, tmp_path: Path) -> None:
    written(tmp_path, k_asc=PROGRAM)
    script = tmp_path / "python with blanks"
    script.write_text('#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done\nexit 5\n')
    script.chmod(0o755)
    build(["k.asc", "-o", "main", "--npu-arch=a5"], replace(options, python=str(script)))
    done = subprocess.run(["./main", "one", "two words", ""], capture_output=True, text=True, check=False)
    started = ["-P", "-m", "ascsim.cli", "run", "--report-to", "stderr", str(tmp_path / "main"), "--"]
    expected = "".join(f"<{word}>\n" for word in [*started, "one", "two words", ""])
    assert done.stdout == expected, "and no initialiser of the user has run"
    assert done.returncode == 5
    other = {**os.environ, "ASCSIM_PYTHON": "echo"}
    assert subprocess.run(["./main"], capture_output=True, text=True, env=other).stdout.startswith(
        "-P -m ascsim.cli run --report-to stderr"
    )
    lost = subprocess.run(["./main"], capture_output=True, text=True, env={"ASCSIM_PYTHON": "/no/python"})
    assert lost.returncode == 127
    assert "cannot start /no/python" in lost.stderr


def test_objects_archives_and_main_from_a_library(options: BuildOptions, toolbox: Path, tmp_path: Path) -> None:
    library = '#include <cstdio>\nint test_body();\nint main() { puts("library main"); return test_body(); }\n'
    kernel = "static __global__ void k(float* p) { p[0] += %d; }\nfloat run_%s(float f) { k<<<1>>>(&f); return f; }\n"
    written(
        tmp_path,
        main_cpp=library,
        a_asc=kernel % (10, "a"),
        b_asc=kernel % (200, "b"),
        unused_asc=kernel % (1, "unused"),
        body_cpp="float run_a(float); float run_b(float);\nint test_body() { return run_a(1) + run_b(1) - 200; }\n",
    )
    for name in ("main.cpp", "a.asc", "b.asc", "unused.asc", "body.cpp"):
        build(["-c", name, "-o", f"{Path(name).stem}.o", "--npu-arch=a2a3"], options)
    subprocess.run(["ar", "rcs", "libmain.a", "main.o"], check=True)
    subprocess.run(["ar", "rcs", "libkernels.a", "a.o", "b.o", "unused.o"], check=True)
    build(["body.o", "-L.", "-lkernels", "-lmain", "-lascendcl", "-o", "main"], options)
    image = load_image("main")
    assert [Path(source).name for source in image.sources] == ["a.asc", "b.asc"], "only what the linker took"
    assert image.profile == "a2a3"
    done = run(toolbox, "main")
    assert "library main" in done.stdout
    assert done.returncode == 1 + 10 + 1 + 200 - 200, done.stdout + done.stderr


def test_a_static_library_in_one_step(options: BuildOptions, toolbox: Path, tmp_path: Path) -> None:
    written(tmp_path, k_asc=PROGRAM)
    build(["-lib", "k.asc", "-o", "libk.a", "--npu-arch=a5"], options)
    build(["-o", "main", "-L.", "-lk"], options)
    assert run(toolbox, "main").returncode == 3


def test_a_shared_library_carries_its_own_image(options: BuildOptions, toolbox: Path, tmp_path: Path) -> None:
    written(
        tmp_path,
        k_asc="static __global__ void k(int* p) { *p = 40 + ASCSIM_SIDE; }\n"
        "int go() { int i; k<<<1>>>(&i); return i; }\n",
        main_cpp="int go();\nint main() { return go(); }\n",
    )
    build(["-shared", "k.asc", "-o", "libk.so", "--npu-arch=a5", "-fPIC", "-s"], options)
    build(["main.cpp", "-o", "main", "-L.", "-lk", "-Wl,-rpath,$ORIGIN", "-Wl,-z,relro,-z,now"], options)
    assert not load_image("libk.so").has_main
    image = load_image("main")
    assert (image.devices, image.libraries, image.profile) == ((), ("libk.so",), "a5")
    done = run(toolbox, tmp_path / "main")
    assert done.returncode == 41, done.stderr
    program = (
        "import ctypes, sys; from ascsim.frontends.cpp.image import load_image, loaded_libraries\n"
        "ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL); ctypes.CDLL('./main')\n"
        "((library, base),) = loaded_libraries(load_image('main')); print(library.path, base > 0)"
    )
    command = [sys.executable, "-c", program, str(toolbox / "libfake.so")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == f"{tmp_path}/libk.so True\n"


@pytest.mark.parametrize(
    ("library", "words"),
    [
        ("sub/libk.so", ["sub/libk.so"]),
        ("libk.so.1.2", ["libk.so.1.2", "-Wl,-rpath,."]),
        ("sub/libk.so", ["-Lsub", "-lk", "-Wl,-rpath,sub"]),
    ],
)
@pytest.mark.parametrize("soname", ["", "libk.so.1"])
def test_a_shared_library_is_known_however_it_is_linked(
    options: BuildOptions, tmp_path: Path, library: str, words: list[str], soname: str
) -> None:
    written(
        tmp_path,
        k_asc="static __global__ void k(int* p) { *p = 1; }\nint go() { int i; k<<<1>>>(&i); return i; }\n",
        main_cpp="int go();\nint main() { return go(); }\n",
    )
    (tmp_path / "sub").mkdir()
    named = [f"-Wl,-soname,{soname}"] if soname else []
    build(["-shared", "k.asc", "-o", library, "--npu-arch=a5", *named], options)
    build(["main.cpp", "-o", "main", *words], options)
    image = load_image("main")
    by_name = Path(library).name if "-lk" in words else words[0]
    assert image.libraries == (soname or by_name,)
    assert image.profile == "a5"


def test_objects_of_another_ascsim_are_refused(
    options: BuildOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(
        tmp_path,
        old_asc="__global__ void k() {}\nint go() { k<<<1>>>(); return 0; }\n",
        new_asc="int go();\nint main() { return go(); }\n",
    )
    with monkeypatch.context() as other:
        other.setattr(driver, "headers_hash", lambda: "of another")
        build(["-c", "old.asc", "--npu-arch=a5"], options)
        build(["-shared", "old.asc", "-o", "libold.so", "--npu-arch=a5"], options)
        build(["new.asc", "old.asc", "-o", "main", "--npu-arch=a5"], options)
    with pytest.raises(UserError, match=r"the object file of old\.asc was built by another ascsim") as caught:
        build(["new.asc", "old.o", "-o", "mixed", "--npu-arch=a5"], options)
    assert not (tmp_path / "mixed").exists()
    assert len(caught.value.message.splitlines()) == 1
    with pytest.raises(UserError, match=r"libold\.so was built by another ascsim"):
        build(["new.asc", "libold.so", "-o", "mixed", "--npu-arch=a5"], options)
    with pytest.raises(UserError, match=r"main was built by another ascsim.*Build it again"):
        load_image("main").check_is_current()
    build(["new.asc", "old.asc", "-o", "main", "--npu-arch=a5"], options)
    load_image("main").check_is_current()


def test_a_program_of_another_ascsim_is_built_again(
    options: BuildOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, k_asc="__global__ void k() {}\nint main() { return 0; }\n")
    with monkeypatch.context() as other:
        other.setattr(driver, "headers_hash", lambda: "of another")
        program = compile_program(["k.asc"], "a5", options=options)
    assert load_image(program).headers == "of another"
    assert compile_program(["k.asc"], "a5", options=options) == program
    load_image(program).check_is_current()


def test_headers_are_rewritten_too(options: BuildOptions, toolbox: Path, tmp_path: Path) -> None:
    written(
        tmp_path,
        main_asc='#include "inc/kernels.h"\n#include "inc/kernels.h"\nint main() { int i = 0; outer(&i); return i; }\n',
        inc__kernels_h='#pragma once\n#include "../plain.h"\n#include <deep.h>\n'
        "inline void outer(int* p) { deep(p); plain(p); k<<<1>>>(p); }\n",
        plain_h="#pragma once\ninline void plain(int* p) { *p += 100; }\n",
        other__deep_h="#pragma once\nstatic __global__ void k(int* p) { __ubuf__ int x[2]; *p += 7; }\n"
        "inline void deep(int* p) { k(p); }\n",
    )
    build(["main.asc", "-Iother", "-o", "main", "--npu-arch=a5"], options)
    done = run(toolbox, "main")
    assert done.returncode == 7 + 100 + 7, done.stderr
    assert "launch k line 3 blocks 1" in done.stdout, "the line of the header"
    (tmp_path / "other" / "deep.h").write_text((tmp_path / "other" / "deep.h").read_text().replace("+= 7", "+= 1"))
    build(["main.asc", "-Iother", "-o", "main", "--npu-arch=a5"], options)
    assert run(toolbox, "main").returncode == 1 + 100 + 1


def test_errors_name_the_users_line_and_column(options: BuildOptions, tmp_path: Path) -> None:
    written(
        tmp_path,
        k_asc="static __global__ void k(int* p) { }\nint main()\n{\n    int i;\n    k<<<1>>>(&i, missing);\n}\n",
        device_asc="__global__ void k(int* p)\n{\n    absent(p);\n}\n",
        header_asc='#include "h.h"\nint main() { return f(1); }\n',
        h_h="\n__global__ void k();\ninline int f(int i) { return wrong + i; }\n",
        template_asc="__global__ void k(double d)\n{\n    ::ascsim::must_be_float(d);\n}\n"
        "int main() { k<<<1>>>(1.0); }\n",
    )
    with pytest.raises(CompileError) as caught:
        build(["-c", "k.asc", "--npu-arch=a5"], options)
    head, *snippet = caught.value.text.splitlines()
    assert re.fullmatch(r"k\.asc:5:18: error: .*'missing'.*", head)
    assert snippet == [
        "      5 |     k<<<1>>>(&i, missing);",
        "        |                  ^",
    ], "once, though both compilations have seen it"
    with pytest.raises(
        CompileError, match=r"device\.asc does not compile: 1 error\ndevice\.asc:3:5: error: .*'absent'"
    ):
        build(["-c", "device.asc", "--npu-arch=a5"], options)
    with pytest.raises(CompileError, match=r"header\.asc does not compile: 1 error\nh\.h:3:30: error: .*'wrong'"):
        build(["-c", "header.asc", "--npu-arch=a5"], options)
    with pytest.raises(CompileError) as caught:
        build(["-c", "template.asc", "--npu-arch=a5"], options)
    assert re.match(r"template\.asc:3:\d+: error: static assertion failed.*: only float here", caught.value.text)
    with pytest.raises(CompileError, match=r"device\.asc, header\.asc do not compile: 2 errors\n") as caught:
        build(["device.asc", "header.asc", "-o", "main", "--npu-arch=a5"], options)
    assert list(dict.fromkeys(Path(message.path).name for message in caught.value.messages)) == ["device.asc", "h.h"]


def test_warnings_of_the_host_compilation_come_back(options: BuildOptions, tmp_path: Path) -> None:
    written(tmp_path, k_asc="__global__ void k(int* p) { }\nint f() { int unused = 1; k<<<1>>>(nullptr); return 0; }\n")
    for _ in range(2):  # from the compiler, then from the cache
        result = build(["-c", "k.asc", "-Wall", "-Wextra", "--npu-arch=a5"], options)
        assert result.messages.splitlines()[0].startswith("k.asc:2:15: warning: unused variable 'unused'")
        assert result.messages.count("warning:") == 1


def test_line_tables_name_the_users_file(options: BuildOptions, toolbox: Path, tmp_path: Path) -> None:
    written(tmp_path, k_asc='extern "C" __global__ void k(int* p)\n{\n    *p = 1;\n}\n')
    build(["-shared", "k.asc", "-o", "k.so", "--npu-arch=a5"], options)
    image = load_image("k.so")
    address = image.device_symbols("aiv").address_of("k")
    command = ["addr2line", "-e", str(image.extract("aiv")), hex(address or 0)]
    place = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert place in (f"{tmp_path}/k.asc:2", f"{tmp_path}/k.asc:3"), "the function's brace or its first statement"


def test_an_object_is_compiled_again_only_when_something_changed(options: BuildOptions, tmp_path: Path) -> None:
    written(tmp_path, k_asc='#include "v.h"\n' + PROGRAM, v_h="#define V 1\n")
    options = replace(options, cache=tmp_path / "cache")
    words = ["k.asc", "-o", "main", "--npu-arch=a5"]

    def compilations() -> int:
        return sum(" -c " in command for command in build(words, options).commands)

    assert compilations() == 3, "host, aiv and the entry"
    assert compilations() == 0
    (tmp_path / "v.h").write_text("#define V 1\n")
    os.utime(tmp_path / "v.h")
    assert compilations() == 0, "another time, the same content"
    (tmp_path / "v.h").write_text("#define V 2\n")
    assert compilations() == 2
    words.append("-O2")
    assert compilations() == 1, "the host's optimisation is not the device's"
    first = (tmp_path / "main").read_bytes()
    (tmp_path / "main").unlink()
    assert compilations() == 0
    assert (tmp_path / "main").read_bytes() == first


def test_an_edit_links_again_what_it_changed(options: BuildOptions, toolbox: Path, tmp_path: Path) -> None:
    options = replace(options, cache=tmp_path / "cache")

    def linked(text: str) -> list[str]:
        written(tmp_path, k_asc=text)
        commands = build(["k.asc", "-o", "main", "--npu-arch=a5"], options).commands
        return ["device" if "device-" in command else "host" for command in commands if " -shared " in command]

    assert sorted(linked(PROGRAM)) == ["device", "host"]
    assert linked(PROGRAM.replace("x[0] + ASCSIM", "2 * x[0] + ASCSIM")) == ["device"]
    assert run(toolbox, "main").stdout.splitlines()[-1] == "231 main", "(2 * 5 + 1) * 3 * 7"
    assert "host" in linked(PROGRAM.replace("return 3", "return 4"))
    assert run(toolbox, "main").returncode == 4
    assert linked(PROGRAM) == [], "as it was at first"
    assert run(toolbox, "main").returncode == 3


def test_an_edit_of_the_host_program_compiles_no_device_code(
    options: BuildOptions, toolbox: Path, tmp_path: Path
) -> None:
    text = """\
#include <cstdio>
namespace {
__global__ __vector__ void fill(__gm__ float* p, int n)
{
    *p = n + ASCSIM_SIDE;
}
}
int main()
{
    float f = 0;
    const short n = 4;
    fill<<<2>>>(&f, n);
    printf("%g\\n", f);
}
"""
    options = replace(options, cache=tmp_path / "cache")

    def sides(text: str) -> list[str]:
        written(tmp_path, k_asc=text)
        commands = build(["k.asc", "-o", "main", "--npu-arch=a5"], options).commands
        return sorted(set(re.findall(r"ASCSIM_SIDE=\d", " ".join(commands))))

    assert sides(text) == ["ASCSIM_SIDE=0", "ASCSIM_SIDE=1"]
    assert run(toolbox, "main").stdout == "launch fill line 12 blocks 2\n5\n", "compiled for the device"
    assert sides(text.replace("printf(", 'puts("now");\n    printf(')) == ["ASCSIM_SIDE=0"]
    assert run(toolbox, "main").stdout.splitlines()[-2:] == ["now", "5"]
    assert sides(text.replace("n + ASC", "2 * n + ASC").replace("printf(", 'puts("now");\n    printf(')) == [
        "ASCSIM_SIDE=1"
    ]
    assert run(toolbox, "main").stdout.splitlines()[-2:] == ["now", "9"]


def test_a_wrong_argument_of_a_launch_is_told_at_its_line(options: BuildOptions, tmp_path: Path) -> None:
    written(tmp_path, k_asc="__global__ void k(float* p) { }\nint main()\n{\n    k<<<1>>>(3.5);\n}\n")
    with pytest.raises(CompileError) as caught:
        build(["k.asc", "-o", "main", "--npu-arch=a5"], options)
    assert "k.asc:4:" in caught.value.text and "float*" in caught.value.text


def test_somebody_else_may_work_while_the_compilers_do(options: BuildOptions, tmp_path: Path) -> None:
    told: list[frozenset[str]] = []
    options = replace(options, cache=tmp_path / "cache", meanwhile=told.append)
    (tmp_path / "own.h").write_text("inline void asc_init() {}\n")
    written(tmp_path, k_asc='#include "own.h"\n' + PROGRAM.replace("x[0] = n;", "x[0] = n; asc_init();"))
    for times in (1, 2):
        build(["k.asc", "-o", "main", "--npu-arch=a5"], options)
        assert told == [frozenset({"asc_init"})] * times, "also when there is nothing to compile"


def test_dependency_files_name_the_users_files(options: BuildOptions, tmp_path: Path) -> None:
    written(tmp_path, k_asc='#include "h.h"\n__global__ void k();\n', h_h="inline __global__ void g() { }\n")
    build(["-c", "k.asc", "-o", "k.o", "--npu-arch=a5", "-MD", "-MT", "target.o", "-MF", "deps/k.d"], options)
    words = (tmp_path / "deps" / "k.d").read_text().split()
    assert words[0] == "target.o:"
    assert str(tmp_path / "k.asc") in words and str(tmp_path / "h.h") in words
    assert not any("overlay" in word for word in words)


def test_keep_leaves_the_rewritten_files_and_the_commands(options: BuildOptions, tmp_path: Path) -> None:
    written(tmp_path, k_asc=PROGRAM)
    build(["k.asc", "-c", "--npu-arch=a5", "--keep", "kept"], replace(options, cache=None))
    assert "ascsim::local_array<float[(8)]>" in (tmp_path / "kept" / "k.device.cpp").read_text()
    assert "ascsim::local_array" not in (tmp_path / "kept" / "k.host.cpp").read_text()
    commands = tmp_path / "kept" / "commands.txt"
    assert commands.read_text().count(" -c ") == 2
    for _ in range(2):
        build(["k.asc", "-c", "--npu-arch=a5", "--keep=kept"], options)
    assert commands.read_text().count(" -c\n") == 2, "of what was compiled before, too"


def test_plain_files_see_no_prelude(options: BuildOptions, tmp_path: Path) -> None:
    written(
        tmp_path,
        main_cpp='#ifdef __global__\n#error prelude\n#endif\nextern "C" int c(void);\nint main() { return c(); }\n',
        c_c="#ifdef __cplusplus\n#error not C\n#endif\nint c(void) { int class = 4; return class; }\n",
    )
    build(["main.cpp", "c.c", "-o", "main", "-xnone", "-mllvm", "-cce-aicore-stack-size=0x8000", "-std=c++17"], options)
    assert load_image("main").profile == ""


def test_a_host_file_may_include_device_code(options: BuildOptions, tmp_path: Path) -> None:
    written(tmp_path, main_cpp='#include "h.h"\nint main() { return 0; }\n', h_h="#define AICORE\nAICORE void f();\n")
    build(["main.cpp", "-o", "main"], options)
    assert load_image("main").devices == ()
    build(["main.cpp", "-o", "main", "--npu-arch=a5"], options)
    assert [device.side for device in load_image("main").devices] == ["aiv"]


def test_headers_of_the_vendors_library_do_not_come_before_ours(options: BuildOptions, tmp_path: Path) -> None:
    written(
        tmp_path,
        k_asc="#include <ascsim/launch.hpp>\n__global__ void k();\n",
        vendor__ascsim__launch_hpp="#error vendor\n",
    )
    build(["-c", "k.asc", "--npu-arch=a5", "-Ivendor"], options)


def test_what_the_sides_of_a_chip_define() -> None:
    host, vector, cube = (macros("a2a3", side) for side in ("host", "aiv", "aic"))
    assert "__CCE_AICORE__" not in host and "__NPU_ARCH__" not in host
    assert [entry["ASCSIM_SIDE"] for entry in (host, vector, cube)] == ["0", "1", "2"]
    assert vector["__CCE_AICORE__"] == cube["__CCE_AICORE__"] == "220"
    assert "__DAV_C220_VEC__" in vector and "__DAV_CUBE__" not in vector
    assert "__DAV_C220_CUBE__" in cube and "__DAV_VEC__" not in cube
    assert macros("a5", "aiv")["__NPU_ARCH__"] == "3510"
    assert "MEMORY_BASE" in host and "REGISTER_BASE" in macros("a5", "host")
    portable = macros("cpu", "aiv")
    assert "__CPU_SIM" in portable and "__DAV_VEC__" in portable and "__DAV_CUBE__" in portable
    assert "__CCE_AICORE__" not in portable


@pytest.mark.parametrize(
    ("words", "sides"),
    [
        (["--cce-aicore-arch=dav-c220-vec"], ["aiv"]),
        (["--cce-aicore-arch=dav-c310-cube"], ["aic"]),
        (["--npu-arch=dav-2201"], ["aiv", "aic"]),
        (["-D__CPU_SIM"], ["aiv"]),
        (["--npu-arch=a5", "--cce-host-only"], []),
    ],
)
def test_which_sides_are_compiled(options: BuildOptions, tmp_path: Path, words: list[str], sides: list[str]) -> None:
    written(
        tmp_path,
        k_asc="__global__ __mix__(1, 2) void k() { }\n".replace("__mix__(1, 2)", "/**/")
        + "// \n#ifdef __DAV_CUBE__\n#endif\n",
    )
    build(["-shared", "k.asc", "-o", "k.so", *words], options)
    assert [device.side for device in load_image("k.so").devices] == sides


def test_faults_of_the_input_are_told(options: BuildOptions, toolbox: Path, tmp_path: Path) -> None:
    written(
        tmp_path,
        k_asc="__global__ void k() { }\n",
        n_cpp="int f();\nint g() { return f(); }\n",
        two_asc="__global__ void k2() { }\nint main() { k2<<<1>>>(); }\n",
    )
    with pytest.raises(UserError, match=r"k\.asc has device code: name the chip"):
        build(["-c", "k.asc"], options)
    with pytest.raises(UserError, match="unknown NPU architecture 'dav-9'"):
        build(["-c", "k.asc", "--npu-arch=dav-9"], options)
    with pytest.raises(UserError, match=r"no such file: absent\.cpp"):
        build(["absent.cpp"], options)
    with pytest.raises(UserError, match="nothing to build"):
        build(["-O2", "-L."], options)
    with pytest.raises(LinkError, match="no main function"):
        build(["k.asc", "--npu-arch=a5"], options)
    with pytest.raises(LinkError, match=r"different chips: k\.asc for a5, two\.asc for a2a3"):
        build(["-c", "k.asc", "--npu-arch=a5"], options)
        build(["-c", "two.asc", "--npu-arch=a2a3"], options)
        build(["k.o", "two.o"], options)
    linked = replace(options, runtime_library=toolbox / "libfake.so")
    build(["-shared", "k.asc", "-o", "libk.so", "--npu-arch=a5"], options)
    with pytest.raises(LinkError, match=r"different chips: libk\.so for a5, two\.asc for a2a3"):
        build(["two.asc", "-Wl,--no-as-needed", "-L.", "-lk", "--npu-arch=a2a3"], options)
    with pytest.raises(LinkError, match=r"undefined .*f\(\)"):
        build(["-shared", "n.cpp", "-o", "n.so", "-Wl,--no-undefined"], linked)
    with pytest.raises(LinkError, match="nowhere"):
        build(["-shared", "n.cpp", "-o", "n.so", "-lnowhere"], options)
    with pytest.raises(UserError, match=r"k\.asc was not linked by ascsim"):
        load_image("k.asc")
    with pytest.raises(UserError, match="absent: No such file"):
        load_image("absent")


def test_objects_that_are_not_position_independent_are_explained(
    options: BuildOptions, compiler: Compiler, tmp_path: Path
) -> None:
    if compiler.kind == "zig":
        pytest.skip("zig makes no other objects")
    written(tmp_path, o_cpp="#include <iostream>\nint main() { std::cout << 1; }\n")
    subprocess.run([*compiler.command, "-fno-pic", "-fno-pie", "-c", "o.cpp", "-o", "o.o"], check=True)
    with pytest.raises(LinkError, match="compile it with -fPIC"):
        build(["o.o", "-o", "main"], options)


def test_a_question_goes_to_the_compiler(options: BuildOptions, compiler: Compiler) -> None:
    assert build(["--version"], options).messages.startswith(compiler.version)


def test_a_survey_needs_no_compiler(toolbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, k_asc='#include "h.h"\n' + PROGRAM, h_h="inline __aicore__ void g()\n{\n    asc_init();\n}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASCSIM_CXX", "no-such-compiler")
    options = BuildOptions(headers=(toolbox / "include",), cache=tmp_path / "cache", scalar_trace=False)
    (unit,) = survey(["k.asc", "--npu-arch=a5"], options)
    assert [(path.name, call.name, call.line) for path, call in unit.calls] == [("h.h", "asc_init", 3)]
    assert [kernel.name for _, kernel in unit.kernels] == ["fill", "scale"]


def test_preprocessing_answers_on_standard_output(
    options: BuildOptions, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, k_asc="__global__ void k() { }\nvoid f() { k<<<1>>>(); }\n")
    build(["-E", "k.asc", "--npu-arch=a5"], options)
    assert "ULL, k>([](auto" in capsys.readouterr().out


def test_compile_program_keeps_programs_in_the_cache(options: BuildOptions, toolbox: Path, tmp_path: Path) -> None:
    written(tmp_path, k_asc=PROGRAM)
    first = compile_program(["k.asc"], "a5", options=options)
    assert first.is_relative_to(toolbox / "cache")
    before = first.stat().st_mtime_ns
    assert compile_program(["k.asc"], "dav-3510", options=options) != first, "another command line"
    assert compile_program(["k.asc"], "a5", options=options) == first
    assert first.stat().st_mtime_ns == before, "nothing changed, nothing linked"
    library = compile_program(["k.asc"], "a5", shared=True, options=replace(options, export_kernels=True))
    assert load_image(library).device_symbols("aiv").address_of("ascsim_kernel_fill") is not None


def test_one_mistake_in_a_kernel_that_is_launched_is_told_as_one(options: BuildOptions, tmp_path: Path) -> None:
    text = "__global__ void k(Nothing* p) { }\nint main()\n{\n    k<<<1>>>(0);\n}\n"
    written(tmp_path, k_asc=text)
    with pytest.raises(CompileError) as caught:
        build(["k.asc", "-o", "main", "--npu-arch=a5"], options)
    lines = [(message.line, message.path) for message in caught.value.messages]
    assert len([line for line, _ in lines if line == 4]) <= 1, "what follows from the name that is missing is left out"
    assert {Path(path).name for _, path in lines} == {"k.asc"}
    assert "ASCSIM_" not in caught.value.text and "Launch" not in caught.value.text
