"""``ascsim run --npu-arch a,b``: each profile's report, then where they differ."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SORT = """\
import numpy as np
import ascsim


@ascsim.kernel
def sort(x, index, out):
    src, idx, dst = ascsim.tile("f32", 1, 40), ascsim.tile("u32", 1, 40), ascsim.tile("f32", 1, 80)
    ascsim.tload(src, x)
    ascsim.tload(idx, index)
    ascsim.tload(dst, out)
    ascsim.set_flag(ascsim.Pipe.MTE2, ascsim.Pipe.V, 0)
    ascsim.wait_flag(ascsim.Pipe.MTE2, ascsim.Pipe.V, 0)
    ascsim.tsort32(dst, src, idx)
    ascsim.set_flag(ascsim.Pipe.V, ascsim.Pipe.MTE3, 0)
    ascsim.wait_flag(ascsim.Pipe.V, ascsim.Pipe.MTE3, 0)
    ascsim.tstore(out, dst)


sort[1](np.arange(40, dtype=np.float32)[None], np.arange(40, dtype=np.uint32)[None], np.zeros((1, 80), np.float32))
"""
DOUBLE = """\
#include "acl/acl.h"
#include "c_api/asc_simd.h"

__global__ __vector__ void Keep(__gm__ float* out)
{
    asc_init();
    __ubuf__ float x[64];
    asc_copy_gm2ub((__ubuf__ void*)x, (__gm__ void*)out, kBytes);
    asc_sync();
    asc_copy_ub2gm((__gm__ void*)(out + 64), (__ubuf__ void*)x, kBytes);
}

int main()
{
    float* out = nullptr;
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtMalloc((void**)&out, 512, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemset(out, 512, 0, 256);
    Keep<<<1>>>((__gm__ float*)out);
    return aclrtSynchronizeDevice();
}
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ascsim.cli", "run", *words], capture_output=True, text=True, check=False
    )


def test_a_tail_that_only_the_document_sorts_is_shown_as_a_difference_of_values(tmp_path: Path) -> None:
    file = tmp_path / "sort.py"
    file.write_text(SORT)
    done = run(str(file), "--npu-arch", "dav-2201,cpu", "--json")
    compared = json.loads(done.stdout)["compared"]
    (difference,) = compared["differences"]
    assert (difference["profile"], difference["from"], difference["total"]) == ("cpu", "a2a3", 80)
    assert difference["differ"] == 16  # eight values and their indices: the chip leaves the tail block alone
    assert [p["profile"] for p in compared["profiles"]] == ["a2a3", "cpu"]


def test_a_cpp_program_is_compiled_for_each_profile_and_its_device_memory_compared(tmp_path: Path) -> None:
    file = tmp_path / "keep.cpp"
    file.write_text(DOUBLE)
    done = run(str(file), "--npu-arch", "a2a3,a5", "-D", "kBytes=256")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "== a2a3" in done.stdout and "== a5" in done.stdout
    assert "The results are the same, bit for bit, on a2a3 and a5." in done.stdout


def test_a_profile_that_the_source_does_not_compile_for_does_not_keep_the_others_from_running(tmp_path: Path) -> None:
    file = tmp_path / "keep.cpp"
    file.write_text(f"#ifdef ASCSIM_PROFILE_A2A3\n#error only for the 950\n#endif\n{DOUBLE}")
    done = run(str(file), "--npu-arch", "a2a3,a5", "-D", "kBytes=256")
    assert done.returncode == 1
    verdict = next(line for line in done.stdout.splitlines() if line.startswith("verdict"))
    assert verdict.split() == ["verdict", "does", "not", "run", "ok"]
    assert "only for the 950" in done.stdout
