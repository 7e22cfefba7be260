"""Moving elements within UB: copies, broadcasts, gathers, transposition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Fault
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from harness import Bench

RNG = np.random.default_rng(5)


def test_a_copy_moves_the_elements_that_take_part() -> None:
    bench = Bench("a2a3")
    values = RNG.integers(0, 1 << 16, 200)
    src, dst = bench.pointer("u16", values), bench.pointer("u16", count=200)
    bench.issue("asc_copy", dst, src, 130)
    assert bench.load(dst, 200).tolist() == [*values[:130].tolist(), *[0] * 70]


@pytest.mark.parametrize("kind", ("u16", "u32"))
def test_each_of_8_elements_fills_a_block(kind: str) -> None:
    bench = Bench("a2a3")
    per = 32 // dtype(kind).size
    values = RNG.integers(0, 1 << 16, 24)
    src, dst = bench.pointer(kind, values), bench.pointer(kind, count=2 * 24 * per)
    bench.issue("asc_brcb", dst, src, 1, 8, 3)
    assert np.array_equal(bench.load(dst, 24 * per).reshape(24, per), np.repeat(values[:, None], per, 1))
    assert bench.traced(Mode.READ).sum() == 24 * dtype(kind).size


@pytest.mark.parametrize("kind", ("i16", "u16", "f16", "bf16", "i32", "u32", "f32"))
def test_elements_are_gathered_by_their_offsets(kind: str) -> None:
    bench = Bench("a2a3")
    values = RNG.integers(0, 100, 400).astype(dtype(kind).numpy)
    chosen = RNG.integers(0, 400, 150)
    src, offsets = bench.pointer(kind, values), bench.pointer("u32", chosen * values.itemsize)
    dst = bench.pointer(kind, count=160)
    bench.issue("vgather", dst, src, offsets, 8, 1)
    lanes = 256 // values.itemsize
    assert np.array_equal(bench.load(dst, lanes), values[chosen[:lanes]])
    bench.issue("asc_gather_sync", dst, src, offsets, 150)
    assert np.array_equal(bench.load(dst, 150), values[chosen])
    reads = np.flatnonzero(bench.traced(Mode.READ)[src.offset : src.offset + values.nbytes]) // values.itemsize
    assert set(reads.tolist()) == set(chosen.tolist())


def test_an_offset_far_outside_stops_the_run() -> None:
    bench = Bench("a2a3")
    src, offsets = bench.pointer("f32", count=64), bench.pointer("u32", [1 << 30] * 64)
    with pytest.raises(Fault, match="vgather"):
        bench.issue("vgather", bench.pointer("f32", count=64), src, offsets, 8, 1)
    bench.issue("set_vector_mask", 0, 0)
    bench.issue("vgather", bench.pointer("f32", count=64), src, offsets, 8, 1)  # no element takes part


@pytest.mark.parametrize("kind", ("u16", "u32"))
def test_blocks_are_gathered_by_their_offsets(kind: str) -> None:
    bench = Bench("a2a3")
    per = 32 // dtype(kind).size
    values = RNG.integers(0, 1 << 16, (20, per))
    chosen = RNG.integers(0, 20, 16)
    src, offsets = bench.pointer(kind, values), bench.pointer("u32", chosen * 32)
    dst = bench.pointer(kind, count=32 * per)
    bench.issue("asc_gather_datablock", dst, src, offsets, 16, 2, 2)
    assert np.array_equal(bench.load(dst, 32 * per).reshape(16, 2, per)[:, 0], values[chosen])
    assert not bench.load(dst, 32 * per).reshape(16, 2, per)[:, 1].any()


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_elements_are_gathered_by_a_mask(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(("u16", "u32")))
    pattern = data.draw(st.integers(0, 7))
    repeat = data.draw(st.integers(1, 4))
    lanes = 256 // dtype(kind).size
    bench = Bench("a2a3")
    values = np.arange(repeat * lanes)
    mask = RNG.integers(0, 256, 32 * repeat).astype(np.uint8)
    src, bits = bench.pointer(kind, values), bench.pointer(kind, mask.view(dtype(kind).numpy))
    dst = bench.pointer(kind, count=repeat * lanes)
    bench.issue("vreducev2", dst, src, bits, repeat, 1, pattern, 8, 1)
    lane = np.arange(lanes)
    fixed = [lane % 2 == 0, lane % 2 == 1, *(lane % 4 == n for n in range(4)), lane >= 0]
    own = np.unpackbits(mask.reshape(repeat, 32), axis=1, bitorder="little")[:, :lanes].astype(bool)
    chosen = own if pattern == 0 else np.broadcast_to(fixed[pattern - 1], (repeat, lanes))
    want = values.reshape(repeat, lanes)[chosen]
    assert bench.load(dst, want.size).tolist() == want.tolist()
    assert bench.issue("get_rsvd_cnt") == want.size
    assert bench.traced(Mode.WRITE).sum() == want.size * dtype(kind).size


def test_a_count_of_elements_is_gathered_by_the_bits_of_src1() -> None:
    bench = Bench("a2a3")
    values, mask = np.arange(300), RNG.integers(0, 256, 64).astype(np.uint8)
    src, bits, dst = (
        bench.pointer("u32", values),
        bench.pointer("u32", mask.view(np.uint32)),
        bench.pointer("u32", count=300),
    )
    bench.issue("asc_reduce", dst, src, bits, 300)
    want = values[np.unpackbits(mask, bitorder="little")[:300].astype(bool)]
    assert bench.load(dst, want.size).tolist() == want.tolist()


@pytest.mark.parametrize("arch", ("a2a3", "a5"))
def test_a_matrix_of_16_by_16_is_transposed(arch: str) -> None:
    bench = Bench(arch)
    values = RNG.integers(0, 1 << 15, (16, 16))
    src, dst = bench.pointer("i16", values), bench.pointer("i16", count=256)
    bench.issue("asc_transpose", dst, src)
    assert np.array_equal(bench.load(dst, 256).reshape(16, 16), values.T)
    bench.issue("asc_transpose_sync", src, src)
    assert np.array_equal(bench.load(src, 256).reshape(16, 16), values.T)


def with_addresses(bench: Bench, kind: str, dst: list[int], src: list[int]) -> None:
    for number, blocks in enumerate((dst[:8], dst[8:], src[:8], src[8:])):
        bench.issue("asc_set_va_reg", number, *(bench.pointer(kind, at=block) for block in blocks))


@pytest.mark.parametrize("arch", ("a2a3", "a5"))
def test_sixteen_blocks_of_16_bits(arch: str) -> None:
    bench = Bench(arch)
    values = RNG.integers(0, 1 << 15, (16, 3, 16))
    src, dst = bench.pointer("i16", values), bench.pointer("i16", count=48 * 16)
    with_addresses(bench, "i16", [dst.offset + 32 * n for n in range(16)], [src.offset + 96 * n for n in range(16)])
    bench.issue("asc_transto5hd_b16", 0, 2, 3, 16, 1)
    assert np.array_equal(bench.load(dst, 768).reshape(48, 16), values.reshape(16, 48).T)
    assert bench.traced(Mode.WRITE).sum() == bench.traced(Mode.READ).sum() == 1536


def test_sixteen_blocks_of_32_bits() -> None:
    bench = Bench("a2a3")
    values = RNG.integers(0, 1 << 15, (16, 8))
    src, dst = bench.pointer("f32", values), bench.pointer("f32", count=128)
    with_addresses(bench, "f32", [dst.offset + 32 * n for n in range(16)], [src.offset + 32 * n for n in range(16)])
    bench.issue("asc_transto5hd_b32", 0, 2, 1, 0, 0)
    assert np.array_equal(bench.load(dst, 128).reshape(8, 16), values.T)


def test_sixteen_blocks_of_bytes_by_halves() -> None:
    bench = Bench("a2a3")
    values = RNG.integers(0, 128, (16, 32))
    src, dst = bench.pointer("i8", values), bench.pointer("i8", count=512)
    with_addresses(bench, "i8", [dst.offset + 32 * n for n in range(16)], [src.offset + 32 * n for n in range(16)])
    bench.issue("asc_transto5hd_b8", 0, 2, 1, 0, 0, 1, 0)
    found = bench.load(dst, 512).reshape(16, 32)
    assert np.array_equal(found[:, 16:], values[:, :16].T)
    assert not found[:, :16].any()


def test_one_repeat_adds_the_strides() -> None:
    bench = Bench("a2a3")
    values = RNG.integers(0, 1 << 15, (17, 16))
    src, dst = bench.pointer("i16", values), bench.pointer("i16", count=256)
    with_addresses(bench, "i16", [dst.offset + 32 * n for n in range(16)], [src.offset + 32 * n for n in range(16)])
    bench.issue("asc_transto5hd_b16", 0, 2, 1, 0, 1)
    assert np.array_equal(bench.load(dst, 256).reshape(16, 16), values[1:].T)
