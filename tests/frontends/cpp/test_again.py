"""Calls of a C++ kernel that come again and need no Python: each takes effect once, and leaves its own rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ascsim
from ascsim.isa import lanewise
from ascsim.isa.semantics import network
from ascsim.isa.semantics.order import F32
from ascsim.machine.trace import Kind
from ascsim.machine.words import Pipe
from harness import Bench

SOURCE = """\
#include <pto/pto-inst.hpp>
using namespace pto;
using Row = Tile<TileType::Vec, float, 1, 64>;
using Numbers = Tile<TileType::Vec, uint32_t, 1, 64>;
using Pairs = Tile<TileType::Vec, float, 1, 128>;
template <typename T, int cols>
using Line = GlobalTensor<T, Shape<1, 1, 1, 1, cols>, Stride<cols, cols, cols, cols, 1>>;

__global__ AICORE void accumulate(__gm__ float* out, __gm__ float* in, int32_t calls)
{
    Row sum, src;
    TASSIGN(sum, 0);
    TASSIGN(src, 0x400);
    Line<float, 64> from(in), to(out + 64 * get_block_idx());
    TLOAD(src, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TEXPANDS(sum, 0.0f);
    pipe_barrier(PIPE_V);
    for (int32_t call = 0; call < calls; ++call) {
        TADD(sum, sum, src);
        pipe_barrier(PIPE_V);
        TADD(sum, sum, src);
        pipe_barrier(PIPE_V);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, sum);
}

__global__ AICORE void sort(__gm__ float* out, __gm__ float* in, __gm__ uint32_t* numbers, int32_t calls)
{
    Row src;
    Numbers idx;
    Pairs dst;
    TASSIGN(src, 0);
    TASSIGN(idx, 0x400);
    TASSIGN(dst, 0x800);
    Line<uint32_t, 64> order(numbers);
    TLOAD(idx, order);
    for (int32_t call = 0; call < calls; ++call) {
        Line<float, 64> from(in + 64 * call);
        Line<float, 128> to(out + 128 * call);
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        TLOAD(src, from);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
        TSORT32(dst, src, idx);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(to, dst);
    }
}
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernels; what they need of machine code is on disk."""
    monkeypatch.setattr(lanewise, "WORTH_LOADING", 0)
    monkeypatch.setattr(lanewise, "WORTH_MAKING", 0)
    bench = Bench("a2a3")
    tile = bench.tile("f32", 1, 64)
    for _ in range(2):
        bench.issue("tadd", tile, tile, tile)
    blocks, words = np.zeros((2, 32), np.uint32), np.zeros((2, 64), np.uint32)
    assert network.sorting(blocks, blocks, words, F32) and network.looking(blocks, blocks, F32)
    path = tmp_path / "again.cpp"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize("arch", ["a2a3", "cpu"])
def test_each_call_takes_effect_once_in_each_block(source: Path, arch: str) -> None:
    calls = 3000
    given, out = np.arange(64, dtype=np.float32), np.zeros((2, 64), np.float32)
    run = ascsim.load(source, arch=arch).accumulate[2](out, given, calls)
    assert run.diagnostics == []
    assert np.array_equal(out, np.stack([2 * calls * given] * 2))
    rows = run.trace.rows
    adds = rows[rows["mnemonic"] == next(n for n, name in run.trace.mnemonics.items() if name == "tadd")]
    assert len(adds) == 4 * calls and len(np.unique(adds["site"])) == 2
    assert np.array_equal(np.unique(adds["core"], return_counts=True)[1], [2 * calls, 2 * calls])
    assert (adds["n_access"] == 3).all() and (adds["parent"] == -1).all()
    first = run.trace.first_access
    of_adds = np.flatnonzero(rows["mnemonic"] == adds["mnemonic"][0])
    assert (run.trace.accesses["start"][first[of_adds][:, None] + np.arange(3)] == [0, 0, 0x400]).all()


def test_a_missing_barrier_between_calls_is_found(source: Path) -> None:
    text = source.read_text()
    twice = "TADD(sum, sum, src);\n        pipe_barrier(PIPE_V);\n        TADD"
    source.write_text(text.replace(twice, "TADD(sum, sum, src);\n        TADD"))
    with pytest.raises(ascsim.KernelError) as error:
        ascsim.load(source, arch="a2a3").accumulate[1](np.zeros(64, np.float32), np.zeros(64, np.float32), 3000)
    (found,) = error.value.run.diagnostics
    assert found.code == "R001" and found.count == 3000


@pytest.mark.parametrize("arch", ["a2a3", "cpu"])
def test_what_code_declines_is_done_and_told_by_python(source: Path, arch: str) -> None:
    calls = 400
    values = np.random.default_rng(0).permutation(calls * 64).astype(np.float32).reshape(calls, 64)
    values[390, 5], values[395, 3] = -0.0, np.nan
    out = np.zeros((calls, 128), np.float32)
    run = ascsim.load(source, arch=arch).sort[1](out, values, np.arange(64, dtype=np.uint32), calls)
    assert [(d.code, d.count) for d in run.diagnostics] == [("SORT-NAN", 1)]
    keys = np.where(np.isnan(values), np.inf, values).reshape(calls, 2, 32)
    places = np.argsort(-keys, axis=2, kind="stable")
    wanted = np.take_along_axis(values.reshape(calls, 2, 32), places, axis=2)
    assert np.array_equal(out.reshape(calls, 2, 32, 2)[..., 0].view(np.uint32), wanted.view(np.uint32))
    numbers = out.view(np.uint32).reshape(calls, 2, 32, 2)[..., 1]
    assert np.array_equal(numbers, places + np.array([0, 32])[:, None])
    rows = run.trace.rows
    sorts = np.flatnonzero(rows["mnemonic"] == next(n for n, m in run.trace.mnemonics.items() if m == "tsort32"))
    assert len(sorts) == calls
    if arch == "a2a3":
        assert np.array_equal(rows["parent"][sorts + 1], sorts) and np.array_equal(rows["parent"][sorts + 2], sorts)
        assert (rows["kind"][sorts + 2] == Kind.BARRIER).all() and (rows["pipe"][sorts + 2] == Pipe.V).all()
