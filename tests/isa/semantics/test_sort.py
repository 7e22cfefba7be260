"""Sorting of blocks."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.semantics.order import BF16, F16, F32, SIGNED
from ascsim.isa.semantics.sort import depends_on_tie_rule, pack_pairs, sort_blocks, value_rank

KINDS = [
    (F32, np.float32), (F16, np.float16), (BF16, ml_dtypes.bfloat16), (SIGNED, np.int32), (SIGNED, np.int16),
]  # fmt: skip


def bits_of(values, kind):
    array = np.asarray(values).astype(kind)
    return array.view(f"u{array.itemsize}")


def reference(bits, indices, kind):
    """One block with Python's stable sort on exact numbers: value descending, NaN by sign, index ascending."""

    def key(position):
        raw = int(bits[position])
        value = float(bits[position : position + 1].view(kind)[0])
        if value != value:
            sign = raw >> (8 * bits.itemsize - 1)
            return (1 if sign else -1, 0.0, raw if sign else -raw, int(indices[position]))
        return (0, -value, 0, int(indices[position]))

    order = sorted(range(bits.size), key=key)
    return bits[order], indices[order]


def assert_sorted(bits, indices, order, kind):
    got_bits, got_indices = sort_blocks(bits, indices, order)
    assert got_bits.dtype == bits.dtype and got_indices.dtype == np.uint32
    n = bits.shape[-1]
    rows = [a.reshape(-1, n) for a in (bits, indices, got_bits, got_indices)]
    for b, i, gb, gi in zip(*rows, strict=True):
        want_bits, want_indices = reference(b, i, kind)
        assert gb.tolist() == want_bits.tolist()
        assert gi.tolist() == want_indices.tolist()


def test_hand_worked_block():
    values = bits_of([3.0, -1.0, 7.0, 7.0, 0.5], np.float32)
    got_bits, got_indices = sort_blocks(values, np.array([10, 11, 40, 13, 14], np.uint32), F32)
    assert got_bits.view(np.float32).tolist() == [7.0, 7.0, 3.0, 0.5, -1.0]
    assert got_indices.tolist() == [13, 40, 10, 14, 11]


def test_zeros_are_equal_and_keep_their_sign():
    values = bits_of([[0.0, -0.0, -0.0, 0.0, 1.0], [-0.0, 0.0, -0.0, -1.0, 0.0]], np.float16)
    indices = np.array([[4, 3, 2, 1, 0], [7, 7, 1, 0, 1]], np.uint32)
    got_bits, got_indices = sort_blocks(values, indices, F16)
    assert got_indices.tolist() == [[0, 1, 2, 3, 4], [1, 1, 7, 7, 0]]
    assert got_bits.tolist() == [[0x3C00, 0, 0x8000, 0x8000, 0], [0x8000, 0, 0x8000, 0, 0xBC00]]


@pytest.mark.parametrize("kind", KINDS[:3])
def test_zeros_share_a_rank(kind):
    order, dtype = kind
    ranks = value_rank(bits_of([-0.0, 0.0, 1.0, -1.0], dtype), order)
    assert ranks[0] == ranks[1] and ranks[3] < ranks[1] < ranks[2]


def test_negative_nan_is_last_and_positive_nan_first():
    bits = np.array([0x7F800000, 0xFFC00000, 0x7FC00001, 0xFF800000, 0x7FC00000], np.uint32)
    got_bits, got_indices = sort_blocks(bits, np.arange(5, dtype=np.uint32), F32)
    assert got_bits.tolist() == [0x7FC00001, 0x7FC00000, 0x7F800000, 0xFF800000, 0xFFC00000]
    assert got_indices.tolist() == [2, 4, 0, 3, 1]


def test_padding_of_a_tail_lands_behind_everything():
    for bits, order, padding in ((np.uint32, F32, 0xFFC00000), (np.uint16, F16, 0xFE00)):
        lowest = 0xFF800000 if order == F32 else 0xFC00
        block = np.full(32, padding, bits)
        block[:20] = lowest
        got_bits, got_indices = sort_blocks(block, np.arange(32, dtype=np.uint32)[::-1].copy(), order)
        assert got_bits.tolist() == [lowest] * 20 + [padding] * 12
        assert got_indices[:20].tolist() == list(range(12, 32))


def test_extreme_indices_and_values():
    bits = bits_of([-(2**31), 2**31 - 1, 0, -1], np.int32)
    got_bits, got_indices = sort_blocks(bits, np.array([0, 0xFFFFFFFF, 1, 2], np.uint32), SIGNED)
    assert got_bits.view(np.int32).tolist() == [2**31 - 1, 0, -1, -(2**31)]
    assert got_indices.tolist() == [0xFFFFFFFF, 1, 2, 0]


def test_the_input_is_left_alone():
    bits, indices = bits_of([1.0, -0.0, 0.0], np.float32), np.array([2, 1, 0], np.uint32)
    sort_blocks(bits, indices, F32)
    assert bits.tolist() == bits_of([1.0, -0.0, 0.0], np.float32).tolist() and indices.tolist() == [2, 1, 0]


SPECIAL_F32 = [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x3F800000, 1, 0x80000001]
SHAPES = st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 32))


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(KINDS), SHAPES, st.integers(0, 2**32 - 1), st.sampled_from([3, 40, 2**32]))
def test_any_shape_and_type(kind, shape, seed, spread):
    order, dtype = kind
    random = np.random.default_rng(seed)
    width = np.dtype(dtype).itemsize
    bits = random.integers(0, 1 << (8 * width), shape).astype(f"u{width}")
    special = np.array(SPECIAL_F32, np.uint32)[random.integers(0, len(SPECIAL_F32), shape)]
    bits = np.where(random.random(shape) < 0.5, (special >> np.uint32(32 - 8 * width)).astype(bits.dtype), bits)
    assert_sorted(bits, random.integers(0, spread, shape).astype(np.uint32), order, dtype)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 32))
def test_the_result_is_a_permutation_of_the_pairs(seed, blocks, n):
    random = np.random.default_rng(seed)
    bits = random.integers(0, 2**32, (blocks, n)).astype(np.uint32)
    indices = random.integers(0, 2**32, (blocks, n)).astype(np.uint32)
    got = pack_pairs(*sort_blocks(bits, indices, F32))
    for block, want in zip(got, pack_pairs(bits, indices), strict=True):
        assert sorted(map(tuple, block.tolist())) == sorted(map(tuple, want.tolist()))


def test_pairs_are_eight_bytes():
    single = pack_pairs(bits_of([1.0], np.float32), np.array([7], np.uint32))
    assert single.tobytes() == bytes.fromhex("0000803f 07000000")
    half = pack_pairs(bits_of([[1.0, -2.0]], np.float16), np.array([[7, 0x01020304]], np.uint32))
    assert half.shape == (1, 2, 2)
    assert half.tobytes() == bytes.fromhex("003c0000 07000000 00c00000 04030201")


def brute_tie(bits, indices, order):
    ranks = value_rank(bits, order).reshape(-1, bits.shape[-1])
    rows = indices.reshape(ranks.shape)
    return any(
        r[i] == r[j] and x[i] > x[j] for r, x in zip(ranks, rows, strict=True) for j in range(r.size) for i in range(j)
    )


def test_tie_rule_by_hand():
    ascending = np.arange(4, dtype=np.uint32)
    same = bits_of([5.0, 5.0, 5.0, 5.0], np.float32)
    assert not depends_on_tie_rule(same, ascending, F32)
    assert depends_on_tie_rule(same, ascending[::-1].copy(), F32)
    assert not depends_on_tie_rule(bits_of([1, 2, 3, 4], np.float32), ascending[::-1].copy(), F32)
    assert depends_on_tie_rule(bits_of([0.0, -0.0], np.float32), np.array([1, 0], np.uint32), F32)
    assert not depends_on_tie_rule(same, np.full(4, 9, np.uint32), F32)
    two = np.array([[5.0, 1.0], [5.0, 0.0]])
    assert not depends_on_tie_rule(bits_of(two, np.float32), np.array([[9, 8], [3, 2]], np.uint32), F32)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 6), st.sampled_from(KINDS[:2]))
def test_tie_rule_against_brute_force(seed, blocks, n, kind):
    random = np.random.default_rng(seed)
    bits = bits_of(random.choice([0.0, -0.0, 1.0, 2.0], (blocks, n)), kind[1])
    indices = random.integers(0, 5, (blocks, n)).astype(np.uint32)
    assert depends_on_tie_rule(bits, indices, kind[0]) == brute_tie(bits, indices, kind[0])


def case(kind, seed=5):
    random = np.random.default_rng(seed)
    bits = bits_of(random.standard_normal((6, 32)).round(1), kind)
    bits[:, ::5] = 1 << (8 * bits.itemsize - 1)
    bits[:, ::6] = 0
    return bits, random.integers(0, 9, (6, 32)).astype(np.uint32)


def test_compiled(agrees):
    bits, indices = case(np.float32)
    for block, index in zip(bits, indices, strict=True):
        agrees(sort_blocks, block, index, F32)
        agrees(sort_blocks, block, index, SIGNED)
        agrees(depends_on_tie_rule, block, index, F32)
    agrees(depends_on_tie_rule, bits[0], np.arange(32, dtype=np.uint32), F32)
    agrees(pack_pairs, bits, indices)


@pytest.mark.slow
def test_compiled_in_other_shapes(agrees):
    for kind, order in ((np.float32, F32), (np.float16, F16)):
        bits, indices = case(kind)
        agrees(sort_blocks, bits, indices, order)
        agrees(sort_blocks, bits.reshape(2, 3, 32), indices.reshape(2, 3, 32), order)
        agrees(depends_on_tie_rule, bits, indices, order)
