"""Words that a core keeps between instructions, from C++: the count of squeezes, the vector mask; what is told once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ascsim

SOURCE = """\
#include "c_api/asc_simd.h"

__simd_vf__ inline void squeeze(__ubuf__ float* y, __ubuf__ float* x, float limit)
{
    vector_float lanes, kept;
    vector_bool all = asc_get_mask_spr_b32(), above;
    asc_clear_ar_spr();
    for (uint16_t i = 0; i < 2; ++i) {
        asc_loadalign(lanes, x + i * 64);
        asc_gt_scalar(above, lanes, limit, all);
        asc_squeeze_with_status(kept, lanes, above);
        asc_storealign(y + i * 64, kept, all);
    }
}

__simd_vf__ inline void halve(__ubuf__ half* y, __ubuf__ bfloat16_t* x)
{
    vector_bfloat16_t lanes;
    vector_half halves;
    vector_bool all = asc_create_mask_b16(PAT_ALL);
    asc_loadalign(lanes, x);
    asc_bfloat162half_rn(halves, lanes, all);
    asc_bfloat162half_rn(halves, lanes, all);
    asc_storealign(y, halves, all);
}

__global__ __vector__ void count(__gm__ float* out, __gm__ float* in, __gm__ int64_t* counts, float limit)
{
    __ubuf__ float x[128];
    __ubuf__ float y[128];
    asc_copy_gm2ub_align((__ubuf__ float*)x, in, 512);
    asc_sync_notify(PIPE_MTE2, PIPE_V, EVENT_ID0);
    asc_sync_wait(PIPE_MTE2, PIPE_V, EVENT_ID0);
    squeeze((__ubuf__ float*)y, (__ubuf__ float*)x, limit);
    asc_sync_notify(PIPE_V, PIPE_MTE3, EVENT_ID0);
    asc_sync_wait(PIPE_V, PIPE_MTE3, EVENT_ID0);
    asc_sync_notify(PIPE_V, PIPE_S, EVENT_ID0);
    asc_sync_wait(PIPE_V, PIPE_S, EVENT_ID0);
    counts[block_idx] = asc_get_squeeze_status();
    asc_copy_ub2gm_align(out, (__ubuf__ float*)y, 512);
    asc_sync();
}

__global__ __vector__ void narrow(__gm__ half* out, __gm__ bfloat16_t* in)
{
    __ubuf__ bfloat16_t x[128];
    __ubuf__ half y[128];
    asc_copy_gm2ub_align((__ubuf__ bfloat16_t*)x, in, 256);
    asc_sync_notify(PIPE_MTE2, PIPE_V, EVENT_ID0);
    asc_sync_wait(PIPE_MTE2, PIPE_V, EVENT_ID0);
    halve((__ubuf__ half*)y, (__ubuf__ bfloat16_t*)x);
    asc_sync_notify(PIPE_V, PIPE_MTE3, EVENT_ID0);
    asc_sync_wait(PIPE_V, PIPE_MTE3, EVENT_ID0);
    asc_copy_ub2gm_align(out, (__ubuf__ half*)y, 256);
    asc_sync();
}
"""


def test_the_count_of_squeezes_is_the_cores_own(tmp_path: Path) -> None:
    path = tmp_path / "kept.asc"
    path.write_text(SOURCE)
    kernels = ascsim.load(path, arch="a5")
    given = np.random.default_rng(1).normal(0, 1, 128).astype(np.float32)
    out, counts = np.zeros(128, np.float32), np.zeros(1, np.int64)
    run = kernels.count[1](out, given, counts, 0.5)
    assert run.diagnostics == []
    assert counts.tolist() == [4 * int((given > 0.5).sum())]
    for half in (slice(0, 64), slice(64, 128)):
        above = given[half][given[half] > 0.5]
        assert out[half].tolist() == [*above.tolist(), *[0.0] * (64 - above.size)]


def test_what_an_instruction_does_against_its_page_is_told_once_where_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "kept.asc"
    path.write_text(SOURCE)
    kernels = ascsim.load(path, arch="a5")
    given, out = np.full(128, 0x3F81, np.uint16).view(ascsim.bf16.numpy), np.zeros(128, np.float16)
    run = kernels.narrow[1](out, given)
    (told,) = [f for f in run.diagnostics if f.code == "VCVT-1"]
    line = SOURCE.splitlines().index("    asc_bfloat162half_rn(halves, lanes, all);") + 1
    assert told.places[0].site is not None and told.places[0].site.line == line
    assert out.tolist() == [1.0078125] * 128
