"""Merges and their counts as C++ and .pto spell them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ascsim
from ascsim import profiles
from ascsim.frontends.ptoas.kernel import loads
from isa.memory_form.test_merge import one_by_one, pairs_of

CHIPS = ["a2a3", "a5"]
LISTS = [[(9.0, 0), (5.0, 1), (1.0, 2), (0.0, 3)], [(8.0, 4), (7.0, 5), (6.0, 6), (5.0, 7)]]

TILES = """
#include <pto/pto-inst.hpp>
using namespace pto;
using List = Tile<TileType::Vec, float, 1, 8>;
using All = Tile<TileType::Vec, float, 1, 16>;
using View = GlobalTensor<float, Shape<1, 1, 1, 1, 8>, Stride<8, 8, 8, 8, 1>>;
using Out = GlobalTensor<float, Shape<1, 1, 1, 1, 16>, Stride<16, 16, 16, 16, 1>>;
static_assert(GETMRGSORTTMPSIZE<List, List>() == 16 && GETMRGSORTTMPSIZE<List, List, List, List>() == 32);

template <bool exhausted>
AICORE void Merge(__gm__ float* out, __gm__ float* in, __gm__ int32_t* counts)
{
    List first, second;
    All tmp, dst;
    TASSIGN(first, 0);
    TASSIGN(second, 0x100);
    TASSIGN(tmp, 0x200);
    TASSIGN(dst, 0x300);
    View firstView(in), secondView(in + 8);
    Out outView(out);
    TLOAD(first, firstView);
    TLOAD(second, secondView);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    MrgSortExecutedNumList executed{70, 71, 72, 73};
    TMRGSORT<All, All, List, List, exhausted>(dst, executed, tmp, first, second);
    counts[0] = executed.mrgSortList0;
    counts[1] = executed.mrgSortList1;
    counts[2] = executed.mrgSortList2;
    counts[3] = executed.mrgSortList3;
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(outView, dst);
}

__global__ AICORE void Whole(__gm__ float* out, __gm__ float* in, __gm__ int32_t* counts)
{
    Merge<false>(out, in, counts);
}

__global__ AICORE void Stopped(__gm__ float* out, __gm__ float* in, __gm__ int32_t* counts)
{
    Merge<true>(out, in, counts);
}
"""

POINTERS = """
#include "c_api/asc_simd.h"

__global__ __vector__ void Merge(__gm__ int32_t* counts)
{
    __ubuf__ float lists[16];
    __ubuf__ float merged[16];
    for (int i = 0; i < 4; i++) {
        lists[2 * i] = 4.0f - i;
        lists[8 + 2 * i] = 3.5f - 2 * i;
    }
    asc_sync();
    __ubuf__ float* sources[4];  // the last two are never looked at
    sources[0] = lists;
    sources[1] = lists + 8;
    asc_mrgsort4(merged, sources, 1, 4, 4, 0, 0, true, 3);
    asc_sync();
#ifdef WITH_ARRAY
    uint16_t taken[4];
    asc_get_vms4_sr(taken);
#else
    uint64_t word = get_vms4_sr();
    uint16_t taken[4] = {uint16_t(word), uint16_t(word >> 16), uint16_t(word >> 32), uint16_t(word >> 48)};
#endif
    for (int i = 0; i < 4; i++) {
        counts[i] = taken[i];
    }
    __ubuf__ float* two[2] = {lists, lists + 8};
    vmrgsort4(merged, two, uint64_t(4 | 4 << 16), uint64_t(1 | 3 << 8));
}
"""


@pytest.mark.parametrize("profile", [*CHIPS, "cpu"])
def test_tiles_in_cpp(profile: str, tmp_path: Path) -> None:
    source = tmp_path / "merge.cpp"
    source.write_text(TILES)
    library = ascsim.load(source, arch=profile)
    given = np.concatenate([pairs_of("f32", pairs) for pairs in LISTS]).reshape(-1).view(np.float32)
    for kernel, exhausted in ((library.Whole, False), (library.Stopped, True)):
        out, counts = np.zeros(16, np.float32), np.zeros(4, np.int32)
        run = kernel[1](out, given, counts)
        wanted, taken = one_by_one(LISTS, exhausted)
        bits = pairs_of("f32", wanted).reshape(-1)
        assert np.array_equal(out.view(np.uint32)[: bits.size], bits)
        left = [70, 71, 72, 73] if profile != "cpu" and not exhausted else [*taken, 0, 0]
        assert counts.tolist() == left
        assert run.diagnostics == []


@pytest.mark.parametrize("chip", CHIPS)
def test_pointers_in_cpp(chip: str, tmp_path: Path) -> None:
    source = tmp_path / "merge.asc"
    source.write_text(POINTERS)
    library = ascsim.load(source, arch=chip, flags=["-DWITH_ARRAY"] if chip == "a2a3" else [])
    counts = np.zeros(4, np.int32)
    library.Merge.options(raise_on_error=False)[1](counts)  # scalar writes of UB are not traced yet (I001)
    first, second = [(4.0 - i, 0) for i in range(4)], [(3.5 - 2 * i, 0) for i in range(4)]
    assert counts.tolist() == [*one_by_one([first, second], True)[1], 0, 0]


PTO = """
module {
  func.func @merge(%src: !pto.ptr<f32>, %out: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %v = pto.make_tensor_view %src, shape = [%c1, %c16], strides = [%c16, %c1] : !pto.tensor_view<1x16xf32>
    %o = pto.make_tensor_view %out, shape = [%c1, %c16], strides = [%c16, %c1] : !pto.tensor_view<1x16xf32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c8] : V -> P
    %q = pto.partition_view %v, offsets = [%c0, %c8], sizes = [%c1, %c8] : V -> P
    %r = pto.partition_view %o, offsets = [%c0, %c0], sizes = [%c1, %c16] : V -> !pto.partition_tensor_view<1x16xf32>
    %a = pto.alloc_tile : L
    %b = pto.alloc_tile : L
    %tmp = pto.alloc_tile : A
    %d = pto.alloc_tile : A
    pto.tload ins(%p : P) outs(%a : L)
    pto.tload ins(%q : P) outs(%b : L)
    MERGE
    pto.tstore ins(%d : A) outs(%r : !pto.partition_tensor_view<1x16xf32>)
    return
  }
}
"""


@pytest.mark.parametrize(
    "merge",
    [
        "%d2, %n = pto.tmrgsort %a, %b, %tmp {exhausted = false} : (L, L, A) -> (A, vector<4xi16>)\n"
        "    pto.tmrgsort ins(%a, %b, %tmp {exhausted = true} : L, L, A) outs(%d, %n : A, vector<4xi16>)\n"
        "    pto.tmrgsort ins(%a, %b {exhausted = false} : L, L) outs(%d, %tmp, %n : A, A, vector<4xi16>)",
        "pto.tmrgsort ins(%a, %b, %tmp : L, L, A) outs(%d : A)",
    ],
)
@pytest.mark.parametrize("chip", CHIPS)
def test_pto(chip: str, merge: str) -> None:
    text = PTO.replace("MERGE", merge)
    for short, long in (
        ("P", "!pto.partition_tensor_view<1x8xf32>"), ("V", "!pto.tensor_view<1x16xf32>"),
        ("L", "!pto.tile_buf<vec, 1x8xf32>"), ("A", "!pto.tile_buf<vec, 1x16xf32>"),
    ):  # fmt: skip
        text = "".join(long if word == short else word for word in _words(text))
    given = np.concatenate([pairs_of("f32", pairs) for pairs in LISTS]).reshape(1, -1).view(np.float32)
    values = {"src": given, "out": np.zeros((1, 16), np.float32)}
    run = loads(text, "merge.pto").kernel().run(profiles.find(chip), 1, values, None)
    assert run.diagnostics == []
    assert np.array_equal(values["out"].view(np.uint32)[0], pairs_of("f32", one_by_one(LISTS, False)[0]).reshape(-1))


def _words(text: str) -> list[str]:
    """The text as words and what lies between."""

    return re.split(r"(\b\w+\b)", text)
