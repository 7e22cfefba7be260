"""Gather, scatter and blocks at a stride: each lane's bytes, in UB and in the trace, and the same from C++."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Fault
from ascsim.frontends.python.kernels import _choose
from ascsim.isa import REGISTRY
from ascsim.machine.dtypes import DTYPES
from ascsim.machine.operands import MReg, Pointer, VReg
from ascsim.machine.trace import Mode
from ascsim.machine.words import Space
from compiled_headers import Compiled, compile_kernels
from harness import Bench

AT = 4096


def bench(seed: int = 0) -> Bench:
    made = Bench("a5")
    made.memory()[:] = np.random.default_rng(seed).integers(0, 256, made.memory().size).astype(np.uint8)
    return made


def run(made: Bench, name: str, *args: Any) -> Any:
    """Issue the form of that name that takes such operands, as a Python kernel would find it."""
    definition: Any = _choose([d for d in REGISTRY.by_cpp[name] if "a5" in d.profiles], args)
    return made.machine.issue(made.core, definition.infer(args), args, made.machine.site("test.py", 1))


def mask_of(active: np.ndarray, size: int) -> MReg:
    mask = MReg()
    mask.data[::size] = active
    return mask


@pytest.mark.parametrize(
    ("source", "index", "result"),
    [("i8", "u16", "i16"), ("u8", "u16", "u16"), ("f8e4m3", "u16", "f8e4m3"), ("f16", "u16", "f16"),
     ("f32", "u32", "f32"), ("u32", "u32", "u32")],
)  # fmt: skip
def test_a_gather_takes_each_element_from_its_index(source: str, index: str, result: str) -> None:
    made, kind, lane = bench(), DTYPES[source], DTYPES[index].size
    count = 256 // lane
    rng = np.random.default_rng(1)
    places, active = rng.integers(0, 3000, count), rng.integers(0, 2, count)
    before = made.memory().copy()
    got = run(
        made, "asc_gather", Pointer(Space.UB, AT, kind), made.vreg(index, places), mask_of(active, lane)
    )  # fmt: skip
    assert got.dtype is DTYPES[result]
    elements = before[AT:].view(kind.bits_dtype)[places].astype(f"u{lane}")
    np.testing.assert_array_equal(got.data.view(f"u{lane}"), np.where(active, elements, 0))
    read = np.zeros(before.size, bool)
    for place in places[active == 1]:
        read[AT + place * kind.size : AT + (place + 1) * kind.size] = True
    np.testing.assert_array_equal(made.traced(Mode.READ), read)


def test_16_bit_elements_with_32_bit_indices_lie_in_the_lower_halves() -> None:
    made, places = bench(), np.arange(64)[::-1] * 3
    memory = made.memory().copy()
    got = run(
        made, "asc_gather", Pointer(Space.UB, AT, DTYPES["bf16"]), made.vreg("u32", places), mask_of(np.ones(64), 4)
    )
    np.testing.assert_array_equal(got.data.view(np.uint32), memory[AT:].view(np.uint16)[places])


def test_an_index_of_an_inactive_lane_may_lie_anywhere() -> None:
    made = bench()
    places = np.full(64, 0xFFFFFFF0, np.uint32)
    active = np.zeros(64)
    active[5], places[5] = 1, 2
    pointer = Pointer(Space.UB, AT, DTYPES["i32"])
    run(made, "asc_gather", pointer, made.vreg("u32", places), mask_of(active, 4))
    assert made.accesses()[["start", "length"]].tolist() == [(AT + 8, 4)]
    with pytest.raises(Fault, match="outside the memory"):
        run(made, "asc_gather", pointer, made.vreg("u32", places), mask_of(np.ones(64), 4))


def test_neighbours_are_one_access_and_a_misaligned_address_is_told_by_an_empty_one() -> None:
    made = bench()
    everywhere = mask_of(np.ones(64), 4)
    for at in (AT, AT + 4):
        run(made, "asc_gather", Pointer(Space.UB, at, DTYPES["i32"]), made.vreg("u32", np.arange(64)), everywhere)
    told = [made.accesses(row)[["start", "length", "align"]].tolist() for row in (0, 1)]
    assert told == [[(AT, 256, 0)], [(AT + 4, 0, 5), (AT + 4, 256, 0)]]


@pytest.mark.parametrize(("kind", "index"), [("u8", "u16"), ("f16", "u16"), ("i32", "u32")])
def test_a_scatter_puts_each_lane_at_its_index(kind: str, index: str) -> None:
    made, size, lane = bench(), DTYPES[kind].size, DTYPES[index].size
    count = 256 // lane
    rng = np.random.default_rng(2)
    places, active = rng.permutation(3000)[:count], rng.integers(0, 2, count)
    register = VReg(DTYPES[kind], rng.integers(0, 256, 256).astype(np.uint8))
    mask = MReg()
    mask.data[::lane] = active  # of bytes, the even ones
    expected = made.memory().copy()
    elements = register.data.view(f"u{size}")[:: 256 // size // count]
    expected[AT:].view(f"u{size}")[places[active == 1]] = elements[active == 1]
    before = made.memory().copy()
    run(made, "asc_scatter", Pointer(Space.UB, AT, DTYPES[kind]), register, made.vreg(index, places), mask)
    np.testing.assert_array_equal(made.memory(), expected)
    written = made.traced(Mode.WRITE)
    assert written.sum() == active.sum() * size
    assert (expected == before)[~written].all()


def test_of_two_lanes_in_one_place_the_first_stays() -> None:
    made = bench()
    register = made.vreg("i32", np.arange(64))
    index = made.vreg("u32", np.arange(64) // 2)
    run(made, "asc_scatter", Pointer(Space.UB, AT, DTYPES["i32"]), register, index, mask_of(np.ones(64), 4))
    np.testing.assert_array_equal(made.load(Pointer(Space.UB, AT, DTYPES["i32"]), 32), np.arange(32) * 2)


def test_blocks_come_from_their_byte_offsets() -> None:
    made = bench()
    memory = made.memory().copy()
    offsets = np.array([96, 0, 64, 64, 32, 480, 0, 1024])
    index = made.vreg("u32", np.concatenate([offsets, np.full(56, 0xFFFFFFFF)]))
    pointer = Pointer(Space.UB, AT, DTYPES["f16"])
    expected = np.concatenate([memory[AT + o : AT + o + 32] for o in offsets])
    np.testing.assert_array_equal(run(made, "asc_gather_datablock", pointer, index).data, expected)
    mask = MReg()
    mask.data[[0, 4, 8, 28]] = 1
    mask.data[1] = 1  # no lane of 32 bits looks at it
    expected.reshape(8, 32)[[3, 4, 5, 6]] = 0
    got = run(made, "asc_gather_datablock", pointer, index, mask)
    np.testing.assert_array_equal(got.data, expected)
    assert made.accesses(1)["align"].tolist() == [5, 5, 5, 5]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 20), st.integers(0, 9), st.sampled_from(["u8", "f16", "f32"]), st.integers(0, 2**32 - 1))
def test_a_strided_load_takes_whole_blocks(stride: int, repeat: int, kind: str, seed: int) -> None:
    made, size = bench(seed), DTYPES[kind].size
    rng = np.random.default_rng(seed)
    mask = mask_of(rng.integers(0, 20, 256 // size) == 0, size)
    memory, pointer = made.memory().copy(), Pointer(Space.UB, AT, DTYPES[kind])
    plain = run(made, "asc_loadalign", pointer, stride, repeat, mask)
    moved, after = run(made, "asc_loadalign_postupdate", pointer, stride, repeat, mask)
    assert after.offset == AT + 32 * repeat
    used = np.atleast_1d(mask.data.reshape(8, 32)[:, ::size].any(axis=1))
    for got, start in ((plain, AT + 32 * repeat), (moved, AT)):
        for block in range(8):
            at = start + 32 * stride * block
            np.testing.assert_array_equal(got.data[32 * block :][:32], memory[at : at + 32] if used[block] else 0)
    assert (made.accesses(1)["align"] == 5).all()
    assert made.accesses(1)["start"].tolist() == [AT + 32 * stride * b for b in range(8) if used[b]]


def test_a_strided_store_writes_the_active_lanes_of_each_block() -> None:
    made = bench()
    register, active = made.vreg("i32", np.arange(64) + 1000), np.arange(64) % 3 == 0
    expected = made.memory().copy()
    for lane in np.flatnonzero(active):
        at = AT + lane // 8 * 96 + lane % 8 * 4
        expected[at : at + 4].view(np.int32)[0] = 1000 + lane
    pointer = Pointer(Space.UB, AT, DTYPES["i32"])
    after = run(made, "asc_storealign_postupdate", pointer, register, 3, 24, mask_of(active, 4))
    assert after.offset == AT + 24 * 32
    np.testing.assert_array_equal(made.memory(), expected)
    assert made.traced(Mode.WRITE).sum() == active.sum() * 4


# The same from C++

KERNELS = """
#include "c_api/asc_simd.h"
extern "C" void gather(void** a)
{
    vector_uint16_t index;
    vector_uint32_t wide;
    vector_half value;
    vector_int16_t bytes;
    vector_bool mask = asc_create_mask_b16(PAT_M3);
    asc_loadalign(index, (uint16_t*)a[1]);
    asc_loadalign(wide, (uint32_t*)a[1]);
    asc_gather(value, (half*)a[0], index, mask);
    asc_gather(bytes, (int8_t*)a[0], index, mask);
    asc_gather_datablock(value, (half*)a[0], wide);
    asc_storealign((half*)a[2], value, asc_create_mask_b16(PAT_ALL));
    asc_scatter((half*)a[2], value, index, mask);
    asc_scatter(value, (half*)a[2], index, mask);
}
extern "C" void strided(void** a)
{
    vector_half value;
    half* from = (half*)a[0];
    half* to = (half*)a[2];
    vector_bool mask = asc_create_mask_b16(PAT_VL64);
    asc_loadalign(value, from, 3, 2, mask);
    asc_loadalign_postupdate(value, from, 2, 16, mask);
    asc_loadalign_postupdate(value, from, 2, 16, mask);
    asc_storealign_postupdate(to, value, 1, 8, mask);
    asc_storealign(to, value, 1, 8, mask);
}
extern "C" void misaligned(void** a)
{
    vector_uint32_t index;
    vector_float value;
    asc_loadalign(index, (uint32_t*)a[1]);
    asc_gather(value, (float*)a[0], index, asc_create_mask_b32(PAT_VL1));
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_kernels(
        tmp_path_factory.mktemp("gather"), KERNELS, "a5", "-Wno-unused-but-set-variable", "-Wno-unused-variable"
    )


def by_python(ub: np.ndarray, name: str) -> Bench:
    """The same instructions on the bench."""
    made = Bench("a5")
    made.memory()[: ub.size] = ub[: made.memory().size]
    half, index, out = (Pointer(Space.UB, at, DTYPES[t]) for at, t in ((0, "f16"), (0x8000, "u16"), (0xC000, "f16")))
    whole = made.issue("asc_create_mask_b16", 0)
    if name == "gather":
        mask = made.issue("asc_create_mask_b16", 10)
        lanes = run(made, "asc_loadalign", index)
        wide = run(made, "asc_loadalign", index._replace(dtype=DTYPES["u32"]))
        run(made, "asc_gather", half, lanes, mask)
        run(made, "asc_gather", half._replace(dtype=DTYPES["i8"]), lanes, mask)
        value = run(made, "asc_gather_datablock", half, wide)
        run(made, "asc_storealign", out, value, whole)
        for _ in range(2):
            run(made, "asc_scatter", out, value, lanes, mask)
    elif name == "strided":
        mask = made.issue("asc_create_mask_b16", 8)
        run(made, "asc_loadalign", half, 3, 2, mask)
        value, half = run(made, "asc_loadalign_postupdate", half, 2, 16, mask)
        value, half = run(made, "asc_loadalign_postupdate", half, 2, 16, mask)
        out = run(made, "asc_storealign_postupdate", out, value, 1, 8, mask)
        run(made, "asc_storealign", out, value, 1, 8, mask)
    else:
        lanes = run(made, "asc_loadalign", index._replace(dtype=DTYPES["u32"]))
        mask = made.issue("asc_create_mask_b32", 1)
        run(made, "asc_gather", Pointer(Space.UB, 4, DTYPES["f32"]), lanes, mask)
    return made


@pytest.mark.parametrize("name", ("gather", "strided", "misaligned"))
def test_cpp_does_and_traces_the_same(compiled: Compiled, name: str) -> None:
    compiled.library.stub_start(1)
    compiled.library.stub_clear()
    rng = np.random.default_rng(7)
    compiled.ub[:] = rng.integers(0, 256, compiled.ub.size)
    if name != "misaligned":
        compiled.ub[0x8000:0x8100] = (rng.permutation(256)[:128] * 32).astype(np.uint16).view(np.uint8)
    if name == "gather":  # as 32-bit indices of blocks, too: every other one is the upper half
        compiled.ub[0x8000:0x8100].view(np.uint16)[1::2] = 0
    else:
        compiled.ub[0x8000:0x8100] = 0
    before = compiled.ub.copy()
    assert compiled.run(name, 4 if name == "misaligned" else 0, 0x8000, 0xC000)
    made = by_python(before, name)
    np.testing.assert_array_equal(compiled.ub[:0x10000], made.memory()[:0x10000])
    fields = ["space", "mode", "operand", "align", "start", "length"]
    ours, theirs = compiled.accesses, made.trace().accesses
    assert ours[fields].tolist() == theirs[fields].tolist()
    counts = [[n for n in rows["n_access"].tolist() if n] for rows in (compiled.rows, made.trace().rows)]
    assert counts[0] == counts[1]
