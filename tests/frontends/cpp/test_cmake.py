"""A project whose CMake files know nothing of ascsim builds with the toolchain file, and its program is checked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.cmake import toolchain

KERNEL = """\
#include "acl/acl.h"
#include "c_api/asc_simd.h"

__global__ __vector__ void twice(__gm__ float* x)
{
    asc_init();
    __ubuf__ float here[64];
    asc_copy_gm2ub((__ubuf__ void*)here, (__gm__ void*)x, 256);
    asc_sync();
    asc_copy_ub2gm((__gm__ void*)x, (__ubuf__ void*)here, 256);
}

int run()
{
    void* x = nullptr;
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtMalloc(&x, 256, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemset(x, 256, 0, 256);
    twice<<<1, nullptr, nullptr>>>((__gm__ float*)x);
    return aclrtSynchronizeDevice();
}
"""
MAIN = "int run();\nint main() { return run(); }\n"
VENDOR_STYLE = """\
cmake_minimum_required(VERSION 3.16)
project(sample)
if(NOT DEFINED ENV{ASCEND_HOME_PATH})
  message(FATAL_ERROR "no toolkit")
endif()
set(CMAKE_CXX_COMPILER no-such-compiler)
add_compile_options(-D_FORTIFY_SOURCE=2 -O2 -std=c++17)
add_link_options(-s -Wl,-z,relro -Wl,-z,now)
add_library(kernel SHARED kernel.cpp)
target_compile_options(kernel PRIVATE -xcce "SHELL:-mllvm -cce-aicore-addr-transform" --cce-aicore-arch=dav-c220-vec)
target_link_options(kernel PRIVATE --cce-fatobj-link)
add_executable(sample main.cpp)
target_link_libraries(sample PRIVATE kernel runtime_camodel ascendcl tiling_api c_sec m dl pthread)
"""
ASC_STYLE = """\
cmake_minimum_required(VERSION 3.16)
find_package(ASC REQUIRED)
project(sample LANGUAGES ASC CXX)
add_executable(sample kernel.asc main.cpp)
target_compile_options(sample PRIVATE $<$<COMPILE_LANGUAGE:ASC>:--npu-arch=dav-2201>)
"""


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no cmake on this machine")
@pytest.mark.parametrize(("project", "source"), [(VENDOR_STYLE, "kernel.cpp"), (ASC_STYLE, "kernel.asc")])
def test_projects_for_the_vendors_compiler_build_as_they_stand(tmp_path: Path, project: str, source: str) -> None:
    (tmp_path / "CMakeLists.txt").write_text(project)
    (tmp_path / source).write_text(KERNEL)
    (tmp_path / "main.cpp").write_text(MAIN)
    file = toolchain()
    options = [f"-DCMAKE_TOOLCHAIN_FILE={file}", f"-DASC_DIR={file.parent}"]
    for command in (["-S", str(tmp_path), "-B", str(tmp_path / "b"), *options], ["--build", str(tmp_path / "b")]):
        done = subprocess.run(["cmake", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run([tmp_path / "b" / "sample"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kernel twice" in done.stderr and "no findings" in done.stderr


def test_the_chip_of_the_command_line_is_the_launchers_default() -> None:
    launcher = toolchain("dav-3510", python="/opt/my python/bin/python3").with_name("ascsim-c++")
    assert (
        launcher.read_text() == "#!/bin/sh\nexec '/opt/my python/bin/python3' -m ascsim.cli c++ --npu-arch=a5 \"$@\"\n"
    )
    assert launcher.stat().st_mode & 0o111


def test_an_unknown_chip_is_refused() -> None:
    with pytest.raises(UserError, match="no-such-chip"):
        toolchain("no-such-chip")
