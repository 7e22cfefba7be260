"""What device code reads and writes through raw pointers: rows of the scalar pipe, and what the checks make of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ascsim.isa.steps import SCALAR_ACCESS
from ascsim.machine.trace import Kind, Mode, Trace
from ascsim.machine.words import Pipe, Space

PROGRAM = r"""
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>
#include "acl/acl.h"
#include "c_api/asc_simd.h"

__simd_vf__ inline void Function(__ubuf__ float* at) { *at = 1.0f; }

__global__ __vector__ void Kernel(__gm__ float* out, __gm__ float* in)
{
    asc_init();
    __ubuf__ float local[1024];
    float host[64];
    BODY
}

int main()
{
    void *in, *out;
    aclInit(nullptr);
    aclrtSetDevice(0);
    std::vector<float> data(1024, 7);
    aclrtMalloc(&in, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&out, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(in, 4096, data.data(), 4096, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpy(out, 4096, data.data(), 4096, ACL_MEMCPY_HOST_TO_DEVICE);
    Kernel<<<1, 0>>>((float*)out, (float*)in);
    aclrtSynchronizeDevice();
    return 0;
}
"""
FILL = "for (int i = 0; i < 1024; ++i) local[i] = i;"
OUT = "asc_copy_ub2gm_align(out, local, 4096);"
IN = "asc_copy_gm2ub_align(local, in, 4096);"


def flag(source: str, target: str) -> str:
    return f"asc_sync_notify(PIPE_{source}, PIPE_{target}, 0); asc_sync_wait(PIPE_{source}, PIPE_{target}, 0);"


def run(directory: Path, body: str, *flags: str) -> str:
    """The report of a kernel with this body; its trace lies in ``trace``."""
    file = directory / "scalar.asc"
    file.write_text(PROGRAM.replace("BODY", body))
    command = [sys.executable, "-m", "ascsim.cli", "run", str(file), "--npu-arch", "a5", *flags]
    done = subprocess.run(
        [*command, "--trace-dir", str(directory / "trace")], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def accesses(directory: Path) -> list[tuple]:
    """(space, mode, start, length, count, stride, pipe) of what went through pointers, in the trace's order."""
    trace = Trace.load(directory / "trace")
    found = []
    for number, access in enumerate(trace.accesses):
        row = trace.rows[trace.rows_of(number)]
        if row["mnemonic"] == SCALAR_ACCESS.number and row["kind"] == Kind.INSTRUCTION:
            shape = trace.shapes[access["shape"]]
            found.append(
                (Space(int(access["space"])), Mode(int(access["mode"])), int(access["start"]), int(access["length"]),
                 int(shape["n1"]), int(shape["s1"]), Pipe(int(row["pipe"])))
            )  # fmt: skip
    return found


def test_a_loop_over_memory_is_a_row_for_each_place_in_the_code(tmp_path: Path) -> None:
    run(tmp_path, "for (int i = 0; i < 1000; ++i) { host[i % 64] = in[i]; local[i] = host[i % 64] + 1; }")
    (gm, *read), (ub, *written) = accesses(tmp_path)
    assert (gm, ub) == (Space.GM, Space.UB)
    assert read == [Mode.READ, read[1], 4000, 1, 0, Pipe.S]
    assert written == [Mode.WRITE, 0, 4000, 1, 0, Pipe.S]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (int i = 0; i < 100; ++i) local[3 * i] = i;", [(0, 4, 100, 12)]),
        ("for (int i = 99; i >= 0; --i) local[i] = i;", [(0, 400, 1, 0)]),
        ("for (int i = 0; i < 2; ++i) for (int k = 0; k < 8; ++k) local[64 * i + k] = k;",
         [(0, 32, 1, 0), (256, 32, 1, 0)]),
        ("local[5] = 1; asc_sync_pipe(PIPE_MTE2); local[6] = 2;", [(20, 4, 1, 0), (24, 4, 1, 0)]),
        ("((__ubuf__ double*)local)[1] = 2;", [(8, 8, 1, 0)]),
    ],
)  # fmt: skip
def test_a_constant_distance_is_a_shape(tmp_path: Path, body: str, expected: list[tuple]) -> None:
    run(tmp_path, body)
    assert [access[2:6] for access in accesses(tmp_path)] == expected


def test_a_row_does_not_grow_where_that_would_change_the_order_of_two_accesses_to_a_byte(tmp_path: Path) -> None:
    report = run(
        tmp_path, f"local[0] = 1; for (int i = 0; i < 50; ++i) local[i + 1] = local[i] + 1; {flag('S', 'MTE3')}"
    )
    assert "no findings" in report
    modes = [access[1] for access in accesses(tmp_path)]
    assert modes == [Mode.WRITE, *[Mode.READ, Mode.WRITE] * 50]


def test_in_place_a_loop_is_two_rows(tmp_path: Path) -> None:
    run(tmp_path, f"{FILL} for (int i = 0; i < 1000; ++i) local[i] *= 2;")
    assert [(a[1], a[3]) for a in accesses(tmp_path)] == [(Mode.WRITE, 4096), (Mode.READ, 4000), (Mode.WRITE, 4000)]


def test_atomics_read_and_write(tmp_path: Path) -> None:
    run(tmp_path, "local[0] = 0; __atomic_fetch_add((__ubuf__ int*)local, 3, __ATOMIC_SEQ_CST);")
    assert [a[1] for a in accesses(tmp_path)] == [Mode.WRITE, Mode.READ, Mode.WRITE]


def test_in_a_vector_function_they_are_of_the_vector_pipe(tmp_path: Path) -> None:
    run(tmp_path, "Function(local + 2);")
    assert accesses(tmp_path) == [(Space.UB, Mode.WRITE, 8, 4, 1, 0, Pipe.V)]


def test_what_the_scalar_unit_wrote_is_written(tmp_path: Path) -> None:
    assert "no findings" in run(tmp_path, f"{FILL} {flag('S', 'MTE3')} {OUT}")
    half = FILL.replace("1024", "512")
    assert "I001" in run(tmp_path, f"{half} {flag('S', 'MTE3')} {OUT}")
    untraced = run(tmp_path, f"{FILL} {flag('S', 'MTE3')} {OUT}", "--no-scalar-trace")
    assert "I001" not in untraced and "were not traced" in untraced


@pytest.mark.parametrize(
    ("before", "after", "source", "target", "kind"),
    [
        (FILL, OUT, "S", "MTE3", "RAW"),
        (IN, "host[0] = local[0]; *out = host[0];", "MTE2", "S", "RAW"),
        (f"{IN} {flag('MTE2', 'MTE3')} {flag('MTE2', 'S')} {OUT}", "local[9] = 1;", "MTE3", "S", "WAR"),
        (FILL, IN, "S", "MTE2", "WAW"),
    ],
)  # fmt: skip
def test_races_with_the_scalar_unit_are_told_and_mended(
    tmp_path: Path, before: str, after: str, source: str, target: str, kind: str
) -> None:
    racy = run(tmp_path, f"{before}\n{after}")
    assert f"Potential {kind} hazard detected at UB" in racy
    assert f"Add asc_sync_notify(PIPE_{source}, PIPE_{target}, EVENT_ID0) after" in racy
    assert "PIPE_S" in racy and "of local by the scalar unit" in racy
    assert "no findings" in run(tmp_path, f"{before}\n{flag(source, target).replace(', 0)', ', 1)')}\n{after}")


def test_accesses_outside_an_allocation_and_beyond_ub_are_told(tmp_path: Path) -> None:
    assert "B004" in run(tmp_path, "out[2048] = 1;")
    assert "B001" in run(tmp_path, "*(local + 65536) = 1;")


def test_each_run_gives_the_same_results(tmp_path: Path) -> None:
    traces = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        run(tmp_path / name, FILL)
        trace = Trace.load(tmp_path / name / "trace")
        traces.append((trace.accesses, trace.rows["kind"]))
    assert all(np.array_equal(one, other) for one, other in zip(*traces, strict=True))


@pytest.mark.parametrize(
    ("body", "spaces"),
    [
        ("int n = blocks * 4096; std::memset((void*)local, 0, n);", [(Space.UB, Mode.WRITE)]),
        ("int n = blocks * 4096; std::memcpy((void*)local, in, n);", [(Space.GM, Mode.READ), (Space.UB, Mode.WRITE)]),
    ],
)
def test_the_c_librarys_copies_and_fills_are_traced(
    tmp_path: Path, body: str, spaces: list[tuple[Space, Mode]]
) -> None:
    report = run(tmp_path, f"volatile int blocks = 1; {body} {flag('S', 'MTE3')} {OUT}")
    assert "no findings" in report
    assert [(space, mode) for space, mode, *_ in accesses(tmp_path)] == spaces
    assert all(length * count == 4096 for _, _, _, length, count, *_ in accesses(tmp_path))


@pytest.mark.parametrize(
    "copy",
    [
        "memcpy((void*)(local + i), in + i, 64);",
        "__builtin_memcpy((void*)(local + i), in + i, 64);",
        "std::copy(in + i, in + i + 16, (float*)(local + i));",
        "struct Piece { float values[16]; }; *(Piece*)(local + i) = *(Piece*)(in + i);",
    ],
)
def test_copies_are_traced_that_a_compiler_would_rather_do_in_place(tmp_path: Path, copy: str) -> None:
    report = run(tmp_path, f"for (int i = 0; i < 1024; i += 16) {{ {copy} }} {flag('S', 'MTE3')} {OUT}")
    assert "no findings" in report
    assert sorted((space, mode, length * count) for space, mode, _, length, count, *_ in accesses(tmp_path)) == [
        (Space.GM, Mode.READ, 4096), (Space.UB, Mode.WRITE, 4096),
    ]  # fmt: skip
