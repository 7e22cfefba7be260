"""Programs for the tests of the C++ runtime: kernels that call the machine directly, without the generated headers.

One program holds many scenarios, chosen by its first argument, because compiling takes longer than running.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp import driver, sites
from ascsim.frontends.cpp.compilers import find_compiler
from ascsim.frontends.cpp.library import runtime_library
from ascsim.isa import REGISTRY
from ascsim.profiles import load

COMMON = r"""
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>
#include "acl/acl.h"
#include "ascsim/runtime.hpp"
#define __gm__
#define __global__
#define __aicore__
#define __vector__
#define __cube__
#define __mix__(...)
#define INLINE inline __attribute__((always_inline))

INLINE AscsimOperand operand(int sort, int space, int dtype, uint64_t bits)
{
    AscsimOperand made;
    std::memset(&made, 0, sizeof made);
    made.sort = sort;
    made.space = space;
    made.dtype = dtype;
    made.address = bits;
    return made;
}
INLINE int64_t issue(int number, int count, const AscsimOperand* operands)
{
    int64_t result = ascsim_issue(number, count, operands);
    asm volatile("" : "+r"(result));
    return result;
}
INLINE void flag(int number, int source, int target, int event)
{
    AscsimOperand operands[] = {
        operand(ASCSIM_ENUM, 0, 0, source), operand(ASCSIM_ENUM, 0, 0, target), operand(ASCSIM_ENUM, 0, 0, event)};
    issue(number, 3, operands);
}
template <class To, class From> INLINE void copy(int number, int to, To target, int from, From source, int64_t bytes)
{
    AscsimOperand operands[] = {
        operand(ASCSIM_POINTER, to, 5, (uint64_t)target), operand(ASCSIM_POINTER, from, 5, (uint64_t)source),
        operand(ASCSIM_SCALAR, 0, 10, bytes)};
    issue(number, 3, operands);
}
INLINE int64_t block_index() { return issue(GET_BLOCK_IDX, 0, nullptr); }
static std::string arg(int argc, char** argv, int index) { return index < argc ? argv[index] : ""; }
template <class T> T* device(size_t count)
{
    void* made = nullptr;
    aclrtMalloc(&made, count * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST);
    return static_cast<T*>(made);
}
"""


OWN = "own"


def number(name: str, profile: str = "a5", arguments: int | None = None) -> int:
    """The number of an instruction by a name of its own, in a form with so many arguments."""
    found = [
        d for d in REGISTRY.find(name, load(profile))
        if profile in d.profiles and arguments in (None, len(d.inputs))
    ]  # fmt: skip
    return found[0].number


def defines() -> list[str]:
    """The instruction numbers that COMMON and the tests' kernels use."""
    numbers = {
        "SET_FLAG": number("set_flag"),
        "WAIT_FLAG": number("wait_flag"),
        "GET_BLOCK_IDX": number("get_block_idx"),
        "GM2UB": number("asc_copy_gm2ub_align", arguments=3),
        "UB2GM": number("asc_copy_ub2gm_align", arguments=3),
        "TADD": number("tadd"),
    }
    return [f"-D{name}={value}" for name, value in numbers.items()]


def build(
    place: Path, sources: dict[str, str], *, npu_arch: str = "a5", flags: tuple[str, ...] = (), shared: bool = False
) -> Path:
    """Build sources (name to text) into a program, or a library of kernels; skips the test without a compiler."""
    try:
        compiler = find_compiler()
    except UserError:
        pytest.skip("needs a C++ compiler")
    own = place / OWN
    own.mkdir()
    (own / "common.hpp").write_text(COMMON)
    for name, text in sources.items():
        (place / name).write_text(text)
    options = driver.BuildOptions(
        prelude=("ascsim/launch.hpp",),
        runtime_library=runtime_library(compiler),
        compiler=compiler,
        export_kernels=shared,
        scalar_trace=False,
    )
    words = ("-g", "-include", str(own / "common.hpp"), *defines(), *flags)
    listed = [place / name for name in sources if not name.endswith(".hpp")]
    output = place / "program"
    return driver.compile_program(listed, npu_arch, flags=words, output=output, shared=shared, options=options)


def count_common_as_own(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the functions of COMMON count as ascsim's own headers, which are not the user's lines."""
    monkeypatch.setattr(sites, "OWN_HEADERS", (*sites.OWN_HEADERS, program.parent / OWN))
    monkeypatch.setattr(sites, "_is_own", cache(sites._is_own.__wrapped__))


def line_of(text: str, mark: str) -> int:
    """The line of a source on which a mark stands."""
    return next(n for n, row in enumerate(text.splitlines(), start=1) if mark in row)
