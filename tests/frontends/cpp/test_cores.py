"""Cores of a C++ launch that wait for each other: each keeps its own memories, and a deadlock is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXCHANGE = """\
#include <cstdio>
#include <vector>
#include "acl/acl.h"
#include "pto/pto-inst.hpp"
using namespace pto;
constexpr int kCols = 64;

template <typename Sync> __aicore__ void Exchange(__gm__ float* work, __gm__ float* out, int me, int other, Sync sync)
{
    using Row = GlobalTensor<float, Shape<1, 1, 1, 1, kCols>, Stride<1, 1, 1, kCols, 1>>;
    using Line = Tile<TileType::Vec, float, 1, kCols, BLayout::RowMajor, 1, kCols>;
    Line mine, theirs, sum;
    TASSIGN(mine, 0x0);
    TASSIGN(theirs, 0x1000);
    TASSIGN(sum, 0x2000);
    Row to(work + me * kCols), from(work + other * kCols), result(out + me * kCols);
    TEXPANDS(mine, 1.0f + me);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, mine);
    sync();
    TLOAD(theirs, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADD(sum, theirs, mine);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);
    TSTORE(result, sum);
}

__global__ __aicore__ void All(__gm__ float* work, __gm__ float* out)
{
    int me = get_block_idx(), blocks = get_block_num();
#ifdef LEAVES
    if (me == 2) return;
#endif
    Exchange(work, out, me, (me + 1) % blocks, [] { SYNCALL(); });
}

__global__ __mix__(1, 2) void Pairs(__gm__ float* work, __gm__ float* out)
{
#if defined(__DAV_VEC__)
    int me = get_block_idx() * 2 + get_subblockid();
    Exchange(work, out, me, me ^ 1, [] { PAIR_OF_VECTORS });
#else
    PAIR_OF_CUBE
#endif
}

int main()
{
    float *work, *out;
    std::vector<float> h(4 * kCols);
    size_t n = h.size() * 4;
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtMalloc((void**)&work, n, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void**)&out, n, ACL_MEM_MALLOC_HUGE_FIRST);
    KERNEL
    int status = aclrtSynchronizeDevice();
    aclrtMemcpy(h.data(), n, out, n, ACL_MEMCPY_DEVICE_TO_HOST);
    printf("status %d: %g %g %g %g\\n", status != 0, h[0], h[64], h[128], h[192]);
    return 0;
}
"""
OF_A2 = {
    "PAIR_OF_VECTORS": "ffts_cross_core_sync(PIPE_MTE3, 0x121); wait_flag_dev(2);",
    "PAIR_OF_CUBE": "wait_flag_dev(1); ffts_cross_core_sync(PIPE_S, 0x221);",
}
OF_A5 = {
    "PAIR_OF_VECTORS": "set_intra_block(PIPE_MTE3, 1); wait_intra_block(PIPE_S, 2);",
    "PAIR_OF_CUBE": "wait_intra_block(PIPE_S, 1); wait_intra_block(PIPE_S, 17);"
    " set_intra_block(PIPE_S, 2); set_intra_block(PIPE_S, 18);",
}


def run(directory: Path, arch: str, *flags: str, **words: str) -> tuple[str, str]:
    text = EXCHANGE
    for name, value in {**(OF_A2 if arch == "a2a3" else OF_A5), **words}.items():
        text = text.replace(name, value)
    file = directory / "exchange.cpp"
    file.write_text(text)
    command = [sys.executable, "-m", "ascsim.cli", "run", str(file), "--npu-arch", arch, *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    first, _, rest = (done.stdout + done.stderr).partition("\n")
    return first, rest


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_blocks_meet_and_each_keeps_its_own_memory(tmp_path: Path, arch: str) -> None:
    said, report = run(tmp_path, arch, KERNEL="All<<<4, nullptr, nullptr>>>(work, out);")
    assert said == "status 0: 3 5 7 5"
    assert "4 blocks" in report and "no findings" in report


@pytest.mark.parametrize("order", ["late", "late:MTE3"])
def test_signals_bring_what_a_pipe_that_is_held_back_had_to_do(tmp_path: Path, order: str) -> None:
    said, report = run(tmp_path, "a5", "--order", order, KERNEL="All<<<4, nullptr, nullptr>>>(work, out);")
    assert said == "status 0: 3 5 7 5"
    assert "no findings" in report


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_two_vector_cores_meet_by_way_of_their_cube_core(tmp_path: Path, arch: str) -> None:
    said, report = run(tmp_path, arch, KERNEL="Pairs<<<2, nullptr, nullptr>>>(work, out);")
    assert said == "status 0: 3 3 7 7"
    assert "no findings" in report


def test_a_cube_core_that_does_not_wait_for_both_is_a_race_or_a_signal_left(tmp_path: Path) -> None:
    only_one = OF_A5["PAIR_OF_CUBE"].replace("wait_intra_block(PIPE_S, 17);", "")
    _, report = run(tmp_path, "a5", KERNEL="Pairs<<<1, nullptr, nullptr>>>(work, out);", PAIR_OF_CUBE=only_one)
    assert "S202" in report and "R101" in report


def test_a_block_that_leaves_early_is_a_deadlock_and_the_host_learns_of_it(tmp_path: Path) -> None:
    said, report = run(tmp_path, "a2a3", "-D", "LEAVES", KERNEL="All<<<4, nullptr, nullptr>>>(work, out);")
    assert said.startswith("status 1")
    assert "error[S201]: deadlock: 3 cores wait" in report
    assert "1 of 4 cores never" in report
