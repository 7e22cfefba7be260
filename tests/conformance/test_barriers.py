"""Memory barriers in a C++ vector function: what is missing is found, what the compiler's registers order is not."""

from __future__ import annotations

from pathlib import Path

SOURCE = """#include "kernel_operator.h"
#include "c_api/asc_simd.h"
#include "acl/acl.h"
__simd_vf__ inline void Racy(__ubuf__ float* a, __ubuf__ float* b)
{
    vector_float x, y;
    vector_bool mask = asc_create_mask_b32(PAT_ALL);
    asc_loadalign(x, a);
    asc_storealign(b, x, mask);
    asc_loadalign(y, b);  // no barrier before it
    asc_storealign(a, y, mask);
    asc_storealign(b, y, mask);  // behind the load that waited
}
__simd_vf__ inline void Fine(__ubuf__ float* a, __ubuf__ float* b)
{
    vector_float x, y;
    vector_bool mask = asc_create_mask_b32(PAT_ALL);
    for (uint16_t i = 0; i < 4; ++i) {
        asc_loadalign(x, a);
        asc_storealign(b, x, mask);
        asc_loadalign(x, b);  // the same register
        asc_storealign(b, x, mask);
        asc_mem_bar(VST_VLD);
        asc_loadalign(y, b);
        asc_storealign(a, y, mask);
        asc_mem_bar(VV_ALL);
    }
}
__global__ __vector__ void Kernel(__gm__ uint8_t* in, int which)
{
    __ubuf__ float a[64];
    __ubuf__ float b[64];
    asc_copy_gm2ub_align((__ubuf__ uint8_t*)a, in, 256);
    asc_sync_notify(PIPE_MTE2, PIPE_V, EVENT_ID0);
    asc_sync_wait(PIPE_MTE2, PIPE_V, EVENT_ID0);
    if (which) { Racy(a, b); } else { Fine(a, b); }
}
int main()
{
    aclInit(nullptr);
    aclrtSetDevice(0);
    void* p;
    aclrtMalloc(&p, 256, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemset(p, 256, 0, 256);
    Kernel<<<1, 0>>>((uint8_t*)p, 0);
    Kernel<<<1, 0>>>((uint8_t*)p, 1);
    aclrtSynchronizeDevice();
    return 0;
}
"""


def test_a_vector_function_without_its_barrier(tmp_path: Path) -> None:
    from ascsim.frontends.cpp.run import run_file

    source = tmp_path / "vf.asc"
    source.write_text(SOURCE)
    run, _ = run_file(source, "a5", [])
    (only,) = run.diagnostics
    lines = [place.site.line for place in only.places if place.site]
    assert (only.code, only.count, lines) == ("R005", 1, [10, 9])
    assert only.mend == "Add asc_mem_bar(VST_VLD) before line 10."
