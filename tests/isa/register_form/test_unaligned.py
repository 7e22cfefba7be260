"""Unaligned loads and stores: streams through their register, byte by byte, and the same from C++."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim import checks
from ascsim.frontends.python.kernels import _choose
from ascsim.isa import REGISTRY
from ascsim.machine.dtypes import DTYPES
from ascsim.machine.operands import MReg, Pointer, UReg, VReg
from ascsim.machine.trace import Mode
from ascsim.machine.words import Kept, Space
from compiled_headers import Compiled, compile_kernels
from harness import Bench

F32, HALF, U8 = DTYPES["f32"], DTYPES["f16"], DTYPES["u8"]


def bench(seed: int = 0) -> Bench:
    made = Bench("a5")
    made.memory()[:] = np.random.default_rng(seed).integers(0, 256, made.memory().size).astype(np.uint8)
    return made


def run(made: Bench, name: str, *args: Any) -> Any:
    definition: Any = _choose(REGISTRY.by_cpp[name], args)
    if hasattr(definition, "infer"):
        definition = definition.infer(args)
    return made.machine.issue(made.core, definition, args, made.machine.site("test.py", 1))


def codes(made: Bench) -> list[str]:
    found = checks.run(made.trace(), made.profile)
    return [d.code for d in found if d.code[0] == "U"]


def register(kind: Any, seed: int) -> VReg:
    return VReg(kind, np.random.default_rng(seed).integers(0, 256, 256).astype(np.uint8))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 200), st.lists(st.integers(1, 64), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_a_stream_of_stores_and_its_flush_write_exactly_the_data(at: int, counts: list[int], seed: int) -> None:
    made = bench(seed)
    expected, pointer, align = made.memory().copy(), Pointer(Space.UB, 4 * at, F32), UReg()
    data = []
    for number, count in enumerate(counts):
        value = register(F32, seed + number)
        data.append(value.data[: 4 * count])
        align, pointer = run(made, "asc_storeunalign_postupdate", pointer, align, value, count)
    assert pointer.offset == 4 * (at + sum(counts))
    run(made, "asc_storeunalign_post_postupdate", pointer, align, 0)
    joined = np.concatenate(data)
    expected[4 * at : 4 * at + joined.size] = joined
    np.testing.assert_array_equal(made.memory(), expected)
    written = np.flatnonzero(made.traced(Mode.WRITE))
    assert (written[0], written[-1], written.size) == (4 * at, 4 * at + joined.size - 1, joined.size)
    assert codes(made) == []


def test_without_a_flush_the_tail_stays_away_and_is_told() -> None:
    made = bench()
    before, value = made.memory().copy(), register(F32, 1)
    run(made, "asc_storeunalign", Pointer(Space.UB, 8, F32), UReg(), value, 64)
    np.testing.assert_array_equal(made.memory()[8:256], value.data[:248])
    np.testing.assert_array_equal(made.memory()[256:], before[256:])
    (found,) = [d for d in checks.run(made.trace(), made.profile) if d.code == "U001"]
    assert "UB 0x100 to 0x107 (8 bytes)" in found.headline


def test_a_flush_elsewhere_is_told_with_both_ends() -> None:
    made = bench()
    pointer = Pointer(Space.UB, 8, F32)
    align = run(made, "asc_storeunalign", pointer, UReg(), register(F32, 1), 64)
    run(made, "asc_storeunalign_post", pointer, align, 0)
    (found,) = [d for d in checks.run(made.trace(), made.profile) if d.code[0] == "U"]
    assert found.code == "U002"
    assert "goes to 0x8, but its data end at UB 0x108" in found.headline


def test_a_store_that_begins_elsewhere_drops_the_tail() -> None:
    made = bench()
    align = run(made, "asc_storeunalign", Pointer(Space.UB, 8, F32), UReg(), register(F32, 1), 64)
    align = run(made, "asc_storeunalign", Pointer(Space.UB, 1032, F32), align, register(F32, 2), 64)
    run(made, "asc_storeunalign_post", Pointer(Space.UB, 1032, F32), align, 64)
    assert codes(made) == ["U001"]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 300), st.integers(1, 4), st.integers(1, 128), st.integers(0, 2**32 - 1))
def test_a_stream_of_loads_needs_one_priming(at: int, loads: int, count: int, seed: int) -> None:
    made = bench(seed)
    memory, pointer = made.memory().copy(), Pointer(Space.UB, 2 * at, HALF)
    align = run(made, "asc_loadunalign_pre", pointer)
    for number in range(loads):
        value, align, pointer = run(made, "asc_loadunalign_postupdate", align, pointer, count)
        start = 2 * (at + number * count)
        np.testing.assert_array_equal(value.data, memory[start : start + 256])
    assert codes(made) == []
    assert made.traced(Mode.READ).sum() == 2 * (loads - 1) * count + 256 + 0 * seed


def test_the_first_lanes_come_from_the_register() -> None:
    made = bench()
    pointer = Pointer(Space.UB, 40, U8)
    align = run(made, "asc_loadunalign_pre", pointer)
    old = made.memory()[40:296].copy()
    made.memory()[40:64] = 0  # too late: these bytes are in the register
    value, align = run(made, "asc_loadunalign", align, pointer)
    np.testing.assert_array_equal(value.data, old)
    assert codes(made) == []
    value, _ = run(made, "asc_loadunalign", UReg(), pointer)
    np.testing.assert_array_equal(value.data[:24], 0)
    run(made, "asc_loadunalign", align, pointer)  # it holds the block of address 296 now
    assert codes(made) == ["U003"]


def test_stores_without_a_count_follow_the_squeezes() -> None:
    made = bench()
    run(made, "asc_clear_ar_spr")
    align, out = UReg(), Pointer(Space.UB, 4, F32)
    kept = []
    for number, lanes in enumerate((5, 0, 64, 17)):
        mask = MReg()
        mask.data[: 4 * lanes : 4] = 1
        value = register(F32, number)
        squeezed = run(made, "asc_squeeze_with_status", value, mask)
        kept.append(value.data[: 4 * lanes])
        align = run(made, "asc_storeunalign_postupdate", out, align, squeezed)
    run(made, "asc_storeunalign_post", out, align)
    data = np.concatenate(kept)
    np.testing.assert_array_equal(made.memory()[4 : 4 + data.size], data)
    assert codes(made) == []
    run(made, "asc_clear_ar_spr")
    assert made.core.state.words[Kept.STORED] == 0


@pytest.mark.parametrize("count", (None, 1, 100, 128))
def test_whole_registers_go_to_and_from_any_address(count: int | None) -> None:
    made = bench()
    value = run(made, "asc_load", Pointer(Space.UB, 1002, HALF))
    np.testing.assert_array_equal(value.data, made.memory()[1002:1258])
    expected, n = made.memory().copy(), 2 * (count or 128)
    expected[5006 : 5006 + n] = value.data[:n]
    run(made, "asc_store", Pointer(Space.UB, 5006, HALF), value, *(() if count is None else (count,)))
    np.testing.assert_array_equal(made.memory(), expected)
    assert made.traced(Mode.WRITE).sum() == n


# The same from C++

KERNELS = """
#include "c_api/asc_simd.h"
extern "C" void streams(void** a)
{
    vector_load_unalign in;
    vector_store_unalign out;
    vector_float value, squeezed;
    float* from = (float*)a[0];
    float* to = (float*)a[1];
    asc_loadunalign_pre(in, from);
    for (int i = 0; i < 3; ++i) {
        asc_loadunalign_postupdate(value, in, from, 50);
        asc_storeunalign_postupdate(to, out, value, 50);
    }
    asc_storeunalign_post_postupdate(to, out, 0);
    asc_loadunalign(value, in, from);
    asc_storeunalign(to, out, value, 9);
    asc_storeunalign_post(to, out, 9);
    asc_storeunalign(to, out, value, 11);
    asc_storeunalign_post(to, out, 0);  // elsewhere
    asc_loadunalign(value, in, to);     // not primed
    asc_storeunalign(to, out, value, 3);
    asc_storeunalign(to + 90, out, value, 3);
    asc_clear_ar_spr();
    vector_bool mask = asc_create_mask_b32(PAT_M3);
    for (int i = 0; i < 3; ++i) {
        asc_squeeze_with_status(squeezed, value, mask);
        asc_storeunalign_postupdate(to + 512, out, squeezed);
    }
    asc_storeunalign_post(to + 512, out);
    asc_load(value, (float*)(a[0]) + 1);
    asc_store(to + 1001, value);
    asc_store(to + 1101, value, 7);
}
extern "C" void masks(void** a)
{
    vector_store_unalign out;
    uint16_t* to = (uint16_t*)a[0];
    uint32_t* wide = (uint32_t*)a[1];
    asc_storeunalign_postupdate(to, out, asc_create_mask_b16(PAT_M3));
    asc_storeunalign_postupdate(to, out, asc_create_mask_b16(PAT_VL8));
    asc_storeunalign_post(to, out, 0);
    asc_storeunalign_postupdate(wide, out, asc_create_mask_b32(PAT_M4));
    asc_storeunalign_post(wide, out, 0);
}
extern "C" void addresses(void** a)
{
    const half* from = (half*)a[0];
    half* to = (half*)a[1];
    ascsim::Loop outer;
    for (int i = 0; i < 2; ++i) {
        outer.next();
        ascsim::Loop inner;
        for (int k = 0; k < 3; ++k) {
            inner.next();
            vector_half value;
            vector_load_unalign in;
            addr_reg offset = asc_update_addr_reg_b16(1001, 130);
            asc_loadunalign_pre(in, from, offset);
            asc_loadunalign_postupdate(value, in, from, offset, 5);
            asc_storealign(to, value, asc_update_addr_reg_b16(512, 128), asc_create_mask_b16(PAT_ALL));
            asc_storealign_1st(to + 2048, value, asc_update_addr_reg_b16(1));
            *(uint64_t*)a[2] = offset.offset;
        }
    }
    asc_update_addr_reg_b32(1, 2);
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_kernels(tmp_path_factory.mktemp("unaligned"), KERNELS, "a5")


def by_python(ub: np.ndarray) -> Bench:
    made = Bench("a5")
    made.memory()[: ub.size] = ub[: made.memory().size]
    first = source = Pointer(Space.UB, 20, F32)
    to, out = Pointer(Space.UB, 0x4004, F32), UReg()
    align = run(made, "asc_loadunalign_pre", source)
    for _ in range(3):
        value, align, source = run(made, "asc_loadunalign_postupdate", align, source, 50)
        out, to = run(made, "asc_storeunalign_postupdate", to, out, value, 50)
    to = run(made, "asc_storeunalign_post_postupdate", to, out, 0)
    value, align = run(made, "asc_loadunalign", align, source)
    out = run(made, "asc_storeunalign", to, out, value, 9)
    run(made, "asc_storeunalign_post", to, out, 9)
    out = run(made, "asc_storeunalign", to, out, value, 11)
    run(made, "asc_storeunalign_post", to, out, 0)
    value, align = run(made, "asc_loadunalign", align, to)
    out = run(made, "asc_storeunalign", to, out, value, 3)
    out = run(made, "asc_storeunalign", to + 90, out, value, 3)
    run(made, "asc_clear_ar_spr")
    mask = made.issue("asc_create_mask_b32", 10)
    for _ in range(3):
        squeezed = run(made, "asc_squeeze_with_status", value, mask)
        out = run(made, "asc_storeunalign_postupdate", to + 512, out, squeezed)
    run(made, "asc_storeunalign_post", to + 512, out)
    value = run(made, "asc_load", first + 1)
    run(made, "asc_store", to + 1001, value)
    run(made, "asc_store", to + 1101, value, 7)
    return made


def test_cpp_does_and_traces_the_same(compiled: Compiled) -> None:
    compiled.library.stub_start(1)
    compiled.library.stub_clear()
    compiled.ub[:] = np.random.default_rng(3).integers(0, 256, compiled.ub.size)
    before = compiled.ub.copy()
    assert compiled.run("streams", 20, 0x4004)
    made = by_python(before)
    np.testing.assert_array_equal(compiled.ub[:0x10000], made.memory()[:0x10000])
    fields = ["space", "mode", "operand", "align", "start", "length"]
    ours, theirs = compiled.accesses, made.trace().accesses
    assert ours[fields].tolist() == theirs[fields].tolist()
    assert (ours["unused"] == 0).tolist() == (theirs["unused"] == 0).tolist()
    rows = [r["n_access"].tolist() for r in (compiled.rows, made.trace().rows)]
    assert rows[0] == rows[1]
    assert codes(made) == ["U002", "U003", "U001"]  # two tails of one line are one


def test_address_registers_follow_the_loops(compiled: Compiled) -> None:
    compiled.library.stub_start(1)
    compiled.library.stub_clear()
    compiled.ub[:] = np.random.default_rng(4).integers(0, 256, compiled.ub.size)
    before = compiled.ub.copy()
    assert not compiled.run("addresses", 6, 0x4000, compiled.ub_address + 0x8000)  # two strides in one loop are refused
    assert [what for what, _ in compiled.events] == ["L006"]
    for i in range(2):
        for k in range(3):
            start, place = 6 + 2 * (1001 * i + 130 * k), 0x4000 + 2 * (512 * i + 128 * k)
            np.testing.assert_array_equal(compiled.ub[place : place + 256], before[start : start + 256])
    assert compiled.ub[0x8000:0x8008].view(np.uint64)[0] == 2 * (1001 + 2 * 130 + 5)
    firsts = [before[6 + 2 * (1001 + 130 * k) :][:2] for k in range(3)]  # the last round of the outer loop stays
    np.testing.assert_array_equal(compiled.ub[0x5000:0x5006], np.concatenate(firsts))


def test_masks_go_to_memory_one_bit_a_lane(compiled: Compiled) -> None:
    compiled.library.stub_start(1)
    compiled.library.stub_clear()
    compiled.ub[:] = 7
    assert compiled.run("masks", 16, 0x108)
    lanes = np.concatenate([np.arange(128) % 3 == 0, np.arange(128) < 8])
    np.testing.assert_array_equal(compiled.ub[16:48], np.packbits(lanes, bitorder="little"))
    np.testing.assert_array_equal(compiled.ub[0x108:0x110], np.packbits(np.arange(64) % 4 == 0, bitorder="little"))
    assert (compiled.ub[48:0x108] == 7).all() and (compiled.ub[:16] == 7).all()

    made = Bench("a5")
    made.memory()[:] = 7
    to, out = Pointer(Space.UB, 16, DTYPES["u16"]), UReg()
    for pattern in (10, 5):
        out, to = run(made, "asc_storeunalign_postupdate", to, out, made.issue("asc_create_mask_b16", pattern))
    run(made, "asc_storeunalign_post", to, out, 0)
    wide = Pointer(Space.UB, 0x108, DTYPES["u32"])
    out, wide = run(made, "asc_storeunalign_postupdate", wide, UReg(), made.issue("asc_create_mask_b32", 11))
    run(made, "asc_storeunalign_post", wide, out, 0)
    np.testing.assert_array_equal(made.memory()[:0x200], compiled.ub[:0x200])
    fields = ["space", "mode", "operand", "align", "start", "length"]
    assert compiled.accesses[fields].tolist() == made.trace().accesses[fields].tolist()
