"""The sorting network."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ascsim.isa.semantics import network
from ascsim.isa.semantics.order import BF16, F16, F32, SIGNED, UNSIGNED, magnitudes, rank
from ascsim.isa.semantics.sort import pack_pairs, sort_blocks, sorted_pairs

ORDERS = [(F32, 4), (SIGNED, 4), (UNSIGNED, 4), (F16, 2), (BF16, 2), (SIGNED, 2)]


def blocks(order, itemsize, count, seed=3):
    random = np.random.default_rng(seed)
    bits = random.integers(0, 1 << (8 * itemsize), (count, 32)).astype(f"u{itemsize}")
    bits[:, ::3] = bits[:, :1]
    bits[:, 5::7] = 0
    if order in (F32, F16, BF16):
        bits[bits == 1 << (8 * itemsize - 1)] = 0
    return bits, random.integers(0, 9, (count, 32)).astype(np.uint32)


def put_through(row, comparisons):
    for low, high in comparisons:
        row[low], row[high] = min(row[low], row[high]), max(row[low], row[high])
    return row


@pytest.mark.parametrize("places", [2, 4, 8])
def test_a_network_that_sorts_all_zeros_and_ones_sorts_everything(places):
    pairs = network.comparisons(places).tolist()
    for row in itertools.product((0, 1), repeat=places):
        assert put_through(list(row), pairs) == sorted(row)


def test_the_network_of_a_block_has_as_many_comparisons_as_batcher_counts():
    pairs = network.comparisons()
    assert len(pairs) == 191
    assert ((pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] < 32)).all()
    for seed in range(50):
        row = np.random.default_rng(seed).permutation(32).tolist()
        assert put_through(row, pairs.tolist()) == list(range(32))


@pytest.mark.parametrize(("order", "itemsize"), ORDERS)
def test_flips_are_those_of_the_ranks(order, itemsize):
    flips = network.flips(order, itemsize)
    bits = np.random.default_rng(1).integers(0, 1 << (8 * itemsize), 500).astype(f"u{itemsize}")
    wide = bits.astype(np.uint32) << np.uint32(flips.by)
    flipped = wide ^ np.where(wide >> np.uint32(31), np.uint32(flips.set), np.uint32(flips.clear))
    assert (flipped == rank(bits, order)).all()


def plain(function, bits, indices, order):
    """A loop of the module run by Python itself."""
    pairs, rows, keys = np.zeros(bits.shape, np.uint64), np.zeros((2, 32), np.uint64), np.zeros((32, 2), np.uint64)
    flips, heads = network.flips(order, bits.itemsize), np.arange(len(bits))[:, None] * 32 + np.zeros(3, np.int64)
    scratch = rows, keys, np.zeros(32, np.uint64), np.zeros(32, np.int64)
    flat = bits.ravel(), indices.ravel(), pairs.ravel()
    zeros = function(*flat, heads, *scratch, network.comparisons(), *flips)
    return pairs.view(np.uint32).reshape(*bits.shape, 2), zeros


@pytest.mark.parametrize("few", [0, 8])
@pytest.mark.parametrize(("order", "itemsize"), ORDERS)
def test_the_loops_sort_as_the_definition_does(order, itemsize, few, monkeypatch):
    monkeypatch.setattr(network, "FEW", few)
    bits, indices = blocks(order, itemsize, 3)
    pairs, zeros = plain(network.sort_blocks_in, bits, indices, order)
    assert not zeros
    assert (pairs == pack_pairs(*sort_blocks(bits, indices, order))).all()


def test_negative_zeros_are_told_of_floats_alone():
    bits, indices = np.zeros((1, 32), np.uint32), np.zeros((1, 32), np.uint32)
    bits[0, 4:7] = 0x80000000
    assert plain(network.sort_blocks_in, bits, indices, F32)[1]
    assert not plain(network.sort_blocks_in, bits, indices, SIGNED)[1]


@pytest.mark.parametrize("order", [F32, F16, SIGNED])
def test_a_look_is_needed_where_there_is_a_nan_or_a_number_that_does_not_ascend(order):
    dtype = np.uint16 if order == F16 else np.uint32
    heads = np.array([[0, 0], [32, 32]])

    def asked(bits, indices):
        return network.needs_a_look(bits, indices, heads, *magnitudes(order))

    bits, ascending = np.zeros(64, dtype), np.tile(np.arange(32, dtype=np.uint32), 2)
    assert asked(bits, ascending) == 0
    bits[40] = 0xFE00 if order == F16 else 0xFFC00000
    assert asked(bits, ascending) == (order != SIGNED)
    bits[40] = 0xFC00 if order == F16 else 0xFF800000
    assert asked(bits, ascending) == 0, "an infinity"
    ascending[63] = ascending[62]
    assert asked(bits, ascending) == 1


@pytest.fixture
def worth_it(monkeypatch):
    monkeypatch.setattr(network, "_sorted", network.WORTH_MAKING)


@pytest.mark.parametrize(("order", "itemsize"), [(F32, 4), (F16, 2)])
def test_much_is_sorted_by_the_compiled_twin(order, itemsize, worth_it, monkeypatch):
    bits, indices = blocks(order, itemsize, 2 * network.ACROSS + 3)
    wanted = pack_pairs(*sort_blocks(bits, indices, order))
    shaped, shared = bits[:6].reshape(2, 3, 32), np.broadcast_to(indices[:3], (2, 3, 32))
    wanted_shaped = pack_pairs(*sort_blocks(shaped, shared, order))
    monkeypatch.setattr("ascsim.isa.semantics.sort.sort_blocks", None)
    assert (sorted_pairs(bits, indices, order) == wanted).all()
    assert (sorted_pairs(shaped, shared, order) == wanted_shaped).all()


def test_negative_zeros_and_tails_are_sorted_by_the_definition(worth_it):
    bits, indices = blocks(F32, 4, 2)
    bits[0, 4] = 0x80000000
    assert (sorted_pairs(bits, indices, F32) == pack_pairs(*sort_blocks(bits, indices, F32))).all()
    tail = sorted_pairs(bits[:, :7], indices[:, :7], F32)
    assert (tail == pack_pairs(*sort_blocks(bits[:, :7], indices[:, :7], F32))).all()


def test_little_is_sorted_by_the_definition(monkeypatch):
    monkeypatch.setattr(network, "_sorted", 0)
    monkeypatch.setattr(network, "sorted_pairs", None)
    bits, indices = blocks(F32, 4, 1)
    assert (sorted_pairs(bits, indices, F32) == pack_pairs(*sort_blocks(bits, indices, F32))).all()
