"""asc_bitsort (VBS32): order, pairs, bytes, counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.machine.operands import Pointer
from ascsim.machine.trace import Kind
from ascsim.machine.words import Pipe, Space
from harness import Bench

CHIPS = ("a2a3", "a5")
BITS = {"f32": np.uint32, "f16": np.uint16}
FLOATS = {"f32": np.float32, "f16": np.float16}


def buffers(bench: Bench, kind: str, values: np.ndarray, indices: np.ndarray) -> tuple[Pointer, Pointer, Pointer]:
    """(dst, src0, src1); values are raw bits."""
    src0 = bench.pointer("u32" if kind == "f32" else "u16", values)
    dst = bench.pointer(kind, count=max(values.size, 1) * 8 // src0.dtype.size)  # type: ignore[union-attr]
    return dst, src0._replace(dtype=dst.dtype), bench.pointer("u32", indices)


def pairs(bench: Bench, dst: Pointer, count: int) -> np.ndarray:
    """(count, 2) raw pairs of value and index."""
    return bench.load(dst._replace(dtype=bench.pointer("u32", count=0).dtype), 2 * count).reshape(count, 2)


def reference(values: np.ndarray, indices: np.ndarray, kind: str) -> list[tuple[int, int]]:
    """One block by Python's sort: value descending, NaN by its sign, smaller index first, then earlier position."""

    def key(position: int) -> tuple[int, float, int, int]:
        raw = int(values[position])
        number = float(values[position : position + 1].view(FLOATS[kind])[0])
        if number != number:
            negative = raw >> (8 * values.itemsize - 1)
            return (1 if negative else -1), 0.0, (raw if negative else -raw), int(indices[position])
        return 0, -number, 0, int(indices[position])

    return [(int(values[p]), int(indices[p])) for p in sorted(range(len(values)), key=key)]


@pytest.mark.parametrize("profile", CHIPS)
def test_largest_first_with_index_beside_it(profile: str) -> None:
    bench = Bench(profile)
    values = np.array([5.0, -1.0, 9.5, 0.25] + [-100.0 - i for i in range(28)], np.float32)
    dst, src0, src1 = buffers(bench, "f32", values.view(np.uint32), np.arange(32))
    bench.issue("asc_bitsort", dst, src0, src1, 1)
    got = bench.load(dst, 64).reshape(32, 2)
    assert got[:5, 0].tolist() == [9.5, 5.0, 0.25, -1.0, -100.0]
    assert got.copy().view(np.uint32)[:5, 1].tolist() == [2, 0, 3, 1, 4]
    assert bench.findings() == []


def test_half_pairs_hold_value_two_zero_bytes_and_index() -> None:
    bench = Bench("a2a3")
    values = np.arange(32).astype(np.float16)
    dst, src0, src1 = buffers(bench, "f16", values.view(np.uint16), 0x01020304 + np.arange(32))
    bench.issue("vbitsort", dst, src0, src1, 1)
    first = bench.memory()[dst.offset : dst.offset + 8].tolist()
    assert first == [0xC0, 0x4F, 0, 0, 0x23, 3, 2, 1]  # 31.0, nothing, index of the last value


@pytest.mark.parametrize("profile", CHIPS)
@pytest.mark.parametrize("kind", BITS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_blocks_equal_a_plain_sort(profile: str, kind: str, data: st.DataObject) -> None:
    blocks = data.draw(st.integers(1, 4))
    bits = st.integers(0, (1 << (8 * BITS[kind]().itemsize)) - 1)
    few = st.sampled_from([int(v) for v in np.array([0.0, -0.0, 1.0, -np.inf, np.nan], FLOATS[kind]).view(BITS[kind])])
    values = np.array(data.draw(st.lists(bits | few, min_size=32 * blocks, max_size=32 * blocks)), BITS[kind])
    indices = np.array(data.draw(st.lists(st.integers(0, 40), min_size=32 * blocks, max_size=32 * blocks)), np.uint32)
    bench = Bench(profile)
    dst, src0, src1 = buffers(bench, kind, values, indices)
    bench.issue("asc_bitsort", dst, src0, src1, blocks)
    got = [tuple(p) for p in pairs(bench, dst, 32 * blocks).tolist()]
    want = [
        pair
        for b in range(blocks)
        for pair in reference(values[32 * b : 32 * b + 32], indices[32 * b : 32 * b + 32], kind)
    ]
    assert got == want


@pytest.mark.parametrize("kind", BITS)
@pytest.mark.parametrize("blocks", (0, 1, 3, 255))
def test_bytes_read_and_written(kind: str, blocks: int) -> None:
    bench = Bench("a2a3")
    values = np.random.default_rng(blocks).normal(size=max(32 * blocks, 1)).astype(FLOATS[kind]).view(BITS[kind])
    dst, src0, src1 = buffers(bench, kind, values, np.arange(values.size))
    before = bench.memory().copy()
    bench.issue("asc_bitsort", dst, src0, src1, blocks)
    changed = np.flatnonzero(before != bench.memory())
    assert changed.size == 0 or (changed[0] >= dst.offset and changed[-1] < dst.offset + 256 * blocks)
    row = bench.trace().rows[0]
    assert (row["pipe"], row["work"]) == (Pipe.V, blocks)
    size = values.itemsize
    touched = {int(a["operand"]): (int(a["start"]), int(a["length"])) for a in bench.accesses()}
    assert touched == ({} if not blocks else {
        0: (dst.offset, 256 * blocks), 1: (src0.offset, 32 * size * blocks), 2: (src1.offset, 128 * blocks),
    })  # fmt: skip


def test_repeat_keeps_eight_bits() -> None:
    for told, sorted_blocks in ((257, 1), (-1, 255), (256, 0)):
        bench = Bench("a2a3")
        values = np.arange(1, 1 + 32 * 255, dtype=np.float32).view(np.uint32)
        dst, src0, src1 = buffers(bench, "f32", values, np.arange(values.size))
        bench.issue("asc_bitsort", dst, src0, src1, told)
        written = pairs(bench, dst, values.size).any(axis=1)
        assert written.sum() == 32 * sorted_blocks
        assert bench.findings() == ["BITSORT-1"]


def test_repeat_zero_is_reported_on_the_a5_alone() -> None:
    for profile, codes in (("a2a3", []), ("a5", ["BITSORT-2"])):
        bench = Bench(profile)
        dst, src0, src1 = buffers(bench, "f32", np.arange(32, dtype=np.uint32), np.arange(32))
        bench.issue("asc_bitsort", dst, src0, src1, 0)
        assert bench.findings() == codes
        assert not pairs(bench, dst, 32).any()


def test_ties_are_reported_only_where_the_rules_differ() -> None:
    tied = np.array([1.0, 1.0, *range(-30, 0)], np.float32)
    for indices, codes in ((np.arange(32), []), (np.arange(32)[::-1], ["SORT-TIE"])):
        bench = Bench("a5")
        dst, src0, src1 = buffers(bench, "f32", tied.view(np.uint32), indices)
        bench.issue("asc_bitsort", dst, src0, src1, 1)
        assert bench.findings() == codes
        assert pairs(bench, dst, 2)[:, 1].tolist() == sorted(indices[:2].tolist())


def test_no_tie_is_seen_across_blocks() -> None:
    bench = Bench("a2a3")
    values = np.concatenate([np.arange(32), np.arange(32)]).astype(np.float32)
    dst, src0, src1 = buffers(bench, "f32", values.view(np.uint32), np.concatenate([np.arange(32) + 32, np.arange(32)]))
    bench.issue("asc_bitsort", dst, src0, src1, 2)
    assert bench.findings() == []


@pytest.mark.parametrize("kind", BITS)
def test_nans_stand_at_the_end_of_their_sign_and_are_reported(kind: str) -> None:
    bench = Bench("a2a3")
    values = np.zeros(32, FLOATS[kind])
    values[:4] = (np.inf, -np.inf, np.nan, -np.nan)
    bits = values.view(BITS[kind])
    sign = BITS[kind](1 << (8 * bits.itemsize - 1))
    bits[2] &= ~sign
    bits[3] |= sign
    dst, src0, src1 = buffers(bench, kind, bits, np.arange(32))
    bench.issue("asc_bitsort", dst, src0, src1, 1)
    got = pairs(bench, dst, 32)
    assert got[[0, 1, 30, 31], 1].tolist() == [2, 0, 1, 3]
    assert got[[0, 31], 0].tolist() == [int(bits[2]), int(bits[3])]
    assert bench.findings() == ["SORT-NAN"]


def test_zeros_keep_their_signs_in_the_order_of_their_indices() -> None:
    bench = Bench("a2a3")
    values = np.array([-0.0, 0.0] * 16, np.float32).view(np.uint32)
    dst, src0, src1 = buffers(bench, "f32", values, np.arange(32))
    bench.issue("asc_bitsort", dst, src0, src1, 1)
    assert pairs(bench, dst, 32)[:, 0].tolist() == values.tolist()


def test_overlap_is_reported() -> None:
    bench = Bench("a2a3")
    dst, src0, src1 = buffers(bench, "f32", np.arange(64, dtype=np.uint32), np.arange(64))
    bench.issue("asc_bitsort", src0, src0, src1, 2)
    assert bench.findings() == ["BITSORT-3"]
    bench = Bench("a2a3")
    dst, src0, src1 = buffers(bench, "f32", np.arange(64, dtype=np.uint32), np.arange(64))
    bench.issue("asc_bitsort", dst, src0, src1._replace(offset=dst.offset + 511), 2)
    assert bench.findings() == ["BITSORT-3"]


def test_misaligned_addresses_reach_the_trace_with_the_alignment_they_should_have() -> None:
    bench = Bench("a2a3")
    dst, src0, src1 = buffers(bench, "f32", np.arange(64, dtype=np.uint32), np.arange(64))
    bench.issue("asc_bitsort", dst, src0 + 1, src1, 1)
    assert all(a["align"] == 5 for a in bench.accesses())


@pytest.mark.parametrize("profile", CHIPS)
def test_the_sync_form_is_the_instruction_and_a_barrier_on_all_pipes(profile: str) -> None:
    plain, sync = Bench(profile), Bench(profile)
    values = np.random.default_rng(1).normal(size=64).astype(np.float32).view(np.uint32)
    for bench, name in ((plain, "asc_bitsort"), (sync, "asc_bitsort_sync")):
        bench.issue(name, *buffers(bench, "f32", values, np.arange(64)), 2)
    assert np.array_equal(plain.memory(), sync.memory())
    rows = sync.trace().rows
    assert [(r["kind"], r["pipe"], r["parent"]) for r in rows] == [
        (Kind.INSTRUCTION, Pipe.V, -1), (Kind.INSTRUCTION, Pipe.V, 0), (Kind.BARRIER, Pipe.ALL, 0),
    ]  # fmt: skip
    assert rows[1]["mnemonic"] == plain.trace().rows[0]["mnemonic"]


def test_data_findings_of_the_sync_form_are_reported_once() -> None:
    bench = Bench("a2a3")
    values = np.full(32, np.nan, np.float32).view(np.uint32)
    bench.issue("asc_bitsort_sync", *buffers(bench, "f32", values, np.arange(32)), 1)
    assert bench.findings() == ["SORT-NAN"]


def test_addresses_in_another_memory_are_refused() -> None:
    bench = Bench("a2a3")
    dst, src0, src1 = buffers(bench, "f32", np.arange(32, dtype=np.uint32), np.arange(32))
    with pytest.raises(Refused, match="src0 points into GM"):
        bench.issue("asc_bitsort", dst, src0._replace(space=Space.GM), src1, 1)
