"""The scalar unit's data cache: polling, what is read stale, what is not written back, barriers by a counter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = r"""
#include <cstdint>
#include <cstdio>
#include <vector>
#include "acl/acl.h"
#include "c_api/asc_simd.h"

__global__ __vector__ void Kernel(__gm__ int* out, __gm__ int* in)
{
    asc_init();
    __ubuf__ int local[64];
    volatile __gm__ int* seen = in;
    const int me = asc_get_block_idx();
    BODY
}

int main()
{
    void *in, *out;
    aclInit(nullptr);
    aclrtSetDevice(0);
    std::vector<int> data(1024, 0);
    aclrtMalloc(&in, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&out, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(in, 4096, data.data(), 4096, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpy(out, 4096, data.data(), 4096, ACL_MEMCPY_HOST_TO_DEVICE);
    Kernel<<<BLOCKS, 0>>>((int*)out, (int*)in);
    int status = aclrtSynchronizeDevice();
    aclrtMemcpy(data.data(), 4096, out, 4096, ACL_MEMCPY_DEVICE_TO_HOST);
    std::printf("status %d: %d %d %d %d\n", status != 0, data[0], data[1], data[2], data[3]);
    return 0;
}
"""


def run(directory: Path, body: str, blocks: int = 1, text: str = PROGRAM, name: str = "cache.asc") -> tuple[str, str]:
    file = directory / name
    file.write_text(text.replace("BODY", body).replace("BLOCKS", str(blocks)))
    command = [sys.executable, "-m", "ascsim.cli", "run", str(file), "--npu-arch", "a5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    first, _, rest = (done.stdout + done.stderr).partition("\n")
    return first, rest


def flag(source: str, target: str) -> str:
    return f"asc_sync_notify(PIPE_{source}, PIPE_{target}, 0); asc_sync_wait(PIPE_{source}, PIPE_{target}, 0);"


# Core 0 waits in a loop for what core 1 stores by a copy, then copies it itself: ordered by the flag alone.
POLL = f"""
    if (me == 0) {{
        while (*seen == 0) {{
            CONSUMER
        }}
        {flag("S", "MTE2")}
        asc_copy_gm2ub_align(local, out + 512, 256);
        {flag("MTE2", "MTE3")}
        asc_copy_ub2gm_align(out, local, 256);
    }} else {{
        for (int i = 0; i < 64; ++i) local[i] = 7;
        {flag("S", "MTE3")}
        asc_copy_ub2gm_align(out + 512, local, 256);
        ORDER
        *seen = 1;
        PRODUCER
        for (int i = 0; i < 64; ++i) out[256 + i] = 1;
    }}
"""


def polling(consumer: bool = True, producer: bool = True, order: bool = True) -> str:
    drop = "asc_dcci_single(in);"
    words = (("CONSUMER", drop, consumer), ("PRODUCER", drop, producer), ("ORDER", flag("MTE3", "S"), order))
    body = POLL
    for word, call, there in words:
        body = body.replace(word, call if there else "")
    return body


def test_a_core_that_polls_lets_others_write_and_a_flag_in_memory_orders(tmp_path: Path) -> None:
    said, report = run(tmp_path, polling(), 2)
    assert said == "status 0: 7 7 7 7"
    assert "no findings" in report


def test_polling_without_dropping_the_line_is_stale_and_told_once(tmp_path: Path) -> None:
    _, report = run(tmp_path, polling(consumer=False), 2)
    assert "error[D001]: scalar read of 4 bytes of GM from a cache line that is older" in report
    assert "core 0 has the line in its data cache since before the write" in report
    assert "Call asc_dcci_single(address) for the line after the write is done" in report


def test_data_behind_a_flag_must_be_there_before_it(tmp_path: Path) -> None:
    _, report = run(tmp_path, polling(order=False), 2)
    assert "error[R101]" in report and "D00" not in report


def test_polling_in_vain_ends_and_is_told(tmp_path: Path) -> None:
    said, report = run(tmp_path, "while (*seen == 0) asc_dcci_single(in);", 1)
    assert said.startswith("status 1")
    assert "error[S204]: core 0 waits for global memory that no core will write" in report
    _, report = run(tmp_path, "while (*seen == 0) { }", 1)
    assert "S204" in report


COPY_BACK = f"{flag('S', 'MTE2')} asc_copy_gm2ub_align(local, out, 256); {flag('MTE2', 'MTE3')} {flag('MTE2', 'S')}"


@pytest.mark.parametrize(
    ("call", "is_right"),
    [("", False), ("asc_dcci_single(out);", True), ("asc_dcci_single(out + 16);", False), ("asc_dcci_entire_all();", True),
     ("dcci(out, SINGLE_CACHE_LINE);", True), ("dcci((__gm__ void*)0, ENTIRE_DATA_CACHE, CACHELINE_OUT);", True),
     ("dcci((__gm__ void*)0, ENTIRE_DATA_CACHE, CACHELINE_UB);", False)],
)  # fmt: skip
def test_what_the_scalar_unit_wrote_must_be_written_back_before_a_copy_reads_it(
    tmp_path: Path, call: str, is_right: bool
) -> None:
    _, report = run(tmp_path, f"out[3] = 5;\n{call}\n{COPY_BACK}")
    assert ("no findings" in report) == is_right
    assert ("error[D002]: read of 4 bytes of GM whose new values are still in a data cache" in report) == (not is_right)


@pytest.mark.parametrize(("call", "is_right"), [("", False), ("asc_dcci_single(out);", True)])
def test_a_line_that_a_copy_has_overwritten_must_be_dropped(tmp_path: Path, call: str, is_right: bool) -> None:
    store = f"for (int i = 0; i < 64; ++i) local[i] = i; {flag('S', 'MTE3')} asc_copy_ub2gm_align(out, local, 256);"
    _, report = run(tmp_path, f"in[0] = out[2];\n{store} {flag('MTE3', 'S')} {call}\nin[1] = out[3];")
    assert ("no findings" in report) == is_right
    assert ("D001" in report) == (not is_right)


SOFT = (
    PROGRAM.replace('"c_api/asc_simd.h"', '"pto/pto-inst.hpp"')
    .replace("asc_init();", "")
    .replace("asc_get_block_idx()", "get_block_idx()")
)


def test_a_soft_barrier_is_a_barrier(tmp_path: Path) -> None:
    body = """
    using Counter = pto::GlobalTensor<int32_t, pto::Shape<>, pto::Stride<>>;
    Counter counter((__gm__ int32_t*)in);
    for (int round = 0; round < 3; ++round) {
        out[64 * me] = out[64 * me] + 1;
        dcci(out + 64 * me, SINGLE_CACHE_LINE);
        pto::SYNCALL<pto::SyncAllMode::Soft, pto::SyncCoreType::AIVOnly>(counter, 0);
        dcci(out + 64 * (3 - me), SINGLE_CACHE_LINE);
        local[round] = out[64 * (3 - me)];
        pto::SYNCALL<pto::SyncAllMode::Soft, pto::SyncCoreType::AIVOnly>(counter, 4);
    }
    """
    said, report = run(tmp_path, body, 4, SOFT, "soft.cpp")
    assert said == "status 0: 3 0 0 0"
    assert "no findings" in report
