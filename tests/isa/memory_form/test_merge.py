"""vmrgsort4 in its two forms and asc_mrgsort4_sync, against a merge that looks at heads one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.memory_form.merge import packed
from ascsim.machine.operands import Pointer
from ascsim.machine.trace import Mode
from ascsim.machine.words import Space
from harness import Bench

CHIPS = ["a2a3", "a5"]
FLOATS = ["f16", "f32"]
Pair = tuple[float, int]


def one_by_one(lists: list[list[Pair]], stops: bool) -> tuple[list[Pair], list[int]]:
    """The merge as the documents tell it: the largest head, ties to the lower list, stop when a list has ended."""
    at, out = [0] * len(lists), []
    while any(a < len(x) for a, x in zip(at, lists, strict=True)):
        if stops and any(a == len(x) for a, x in zip(at, lists, strict=True)):
            break
        heads = [(x[a][0], -n) for n, (a, x) in enumerate(zip(at, lists, strict=True)) if a < len(x)]
        number = -max(heads)[1]
        out.append(lists[number][at[number]])
        at[number] += 1
    return out, at


def pairs_of(kind: str, pairs: list[Pair]) -> np.ndarray:
    """Pairs as they lie in memory: two words each."""
    words = np.zeros((len(pairs), 2), np.uint32)
    values = np.array([v for v, _ in pairs], np.float16 if kind == "f16" else np.float32)
    words[:, 0] = values.view(f"u{values.itemsize}")
    words[:, 1] = [i for _, i in pairs]
    return words


def read_pairs(kind: str, words: np.ndarray) -> list[Pair]:
    values = words[:, 0].astype(np.uint16).view(np.float16) if kind == "f16" else words[:, 0].copy().view(np.float32)
    return [(float(v), int(i)) for v, i in zip(values, words[:, 1], strict=True)]


class Merge:
    """Lists placed in UB, and the room behind for their merge."""

    def __init__(self, chip: str, kind: str, lists: list[list[Pair]]) -> None:
        self.bench, self.kind, self.lists = Bench(chip), kind, lists
        self.sources = [self.put(x) for x in lists]
        self.total = sum(map(len, lists))
        self.dst = self.put([(-1.0, 9999)] * (self.total + 4))
        self.before = self.written(self.total + 4)

    def put(self, pairs: list[Pair]) -> Pointer:
        raw = self.bench.pointer("u32", pairs_of(self.kind, pairs))
        return raw._replace(dtype=self.bench.pointer(self.kind, count=1).dtype)

    def issue(self, name: str = "vmrgsort4", stops: bool = False) -> Merge:
        lengths = [len(x) for x in self.lists] + [0] * (4 - len(self.lists))
        sources = [*self.sources, *[None] * (4 - len(self.lists))]
        valid = (1 << len(self.lists)) - 1
        self.bench.issue(name, self.dst, *sources, 1, *lengths, int(stops), valid)
        return self

    def written(self, pairs: int) -> list[Pair]:
        return read_pairs(self.kind, self.raw(pairs))

    def raw(self, pairs: int) -> np.ndarray:
        start = self.dst.offset
        return self.bench.memory()[start : start + 8 * pairs].copy().view(np.uint32).reshape(-1, 2)


def some_lists(data: Any, count: int, most: int = 12) -> list[list[Pair]]:
    lists = []
    for number in range(count):
        values = data.draw(st.lists(st.integers(-5, 5), min_size=0, max_size=most))
        lists.append([(float(v), 100 * number + i) for i, v in enumerate(sorted(values, reverse=True))])
    return lists


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("chip", CHIPS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_it_is_the_merge_of_heads(chip: str, kind: str, data: st.DataObject) -> None:
    lists = some_lists(data, data.draw(st.integers(2, 4)))
    stops = data.draw(st.booleans())
    merge = Merge(chip, kind, lists).issue(stops=stops)
    wanted, counts = one_by_one(lists, stops)
    assert merge.written(len(wanted)) == wanted
    assert merge.written(merge.total + 4)[len(wanted) :] == merge.before[len(wanted) :]
    assert merge.bench.core.state.merged == (*counts, *[0] * (4 - len(lists)))
    assert merge.bench.issue("get_vms4_sr") == merge.bench.core.state.merged
    assert merge.bench.traced(Mode.WRITE).sum() == 8 * len(wanted)
    assert merge.bench.findings() == []


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_lists_that_do_not_descend_are_merged_from_their_heads_and_told(data: st.DataObject) -> None:
    values = st.lists(st.integers(-5, 5), min_size=1, max_size=8)
    lists = [[(float(v), i) for i, v in enumerate(data.draw(values))] for _ in range(data.draw(st.integers(2, 4)))]
    merge = Merge("a2a3", "f32", lists).issue()
    assert merge.written(merge.total) == one_by_one(lists, False)[0]
    unsorted = sum([v for v, _ in x] != sorted([v for v, _ in x], reverse=True) for x in lists)
    assert merge.bench.findings() == ["MRGSORT-ORDER"] * unsorted


def test_zeros_are_equal_and_keep_their_sign() -> None:
    merge = Merge("a2a3", "f32", [[(-0.0, 1)], [(0.0, 2)]]).issue()
    assert [(np.signbit(v), i) for v, i in merge.written(2)] == [(True, 1), (False, 2)]


def test_repeats_merge_four_lists_each() -> None:
    values = np.sort(np.random.default_rng(3).standard_normal((8, 32)).astype(np.float32), axis=1)[:, ::-1]
    bench = Bench("a2a3")
    pairs = np.zeros((8, 32, 2), np.uint32)
    pairs[..., 0], pairs[..., 1] = values.copy().view(np.uint32), np.arange(256).reshape(8, 32)
    source = bench.pointer("u32", pairs)._replace(dtype=bench.pointer("f32", count=1).dtype)
    dst = bench.pointer("f32", count=512)
    sources = [source._replace(offset=source.offset + 256 * n) for n in range(4)]
    bench.issue("vmrgsort4", dst, *sources, 2, 32, 32, 32, 32, 0, 15)
    out = bench.load(dst, 512).view(np.uint32).reshape(2, 128, 2)
    for step in range(2):
        flat = values[4 * step : 4 * step + 4].reshape(-1)
        order = np.argsort(-flat, kind="stable")
        assert np.array_equal(out[step, :, 0].copy().view(np.float32), flat[order])
        assert np.array_equal(out[step, :, 1], order + 128 * step)
    assert bench.findings() == []


def test_words_mean_what_fields_mean() -> None:
    lists = [[(3.0, 1), (1.0, 2)], [(2.0, 3)]]
    by_fields, by_words = Merge("a5", "f32", lists), Merge("a5", "f32", lists)
    by_fields.issue(stops=True)
    by_words.bench.issue(
        "vmrgsort4", by_words.dst, *by_words.sources, None, None, packed([2, 1, 0, 0]), 1 | 0b11 << 8 | 1 << 12
    )
    assert np.array_equal(by_fields.raw(7), by_words.raw(7))
    assert by_words.bench.core.state.merged == (1, 1, 0, 0)
    assert [row["parent"] for row in by_words.bench.trace().rows] == [-1, 0]


def test_the_form_with_sync_ends_in_a_barrier() -> None:
    merge = Merge("a2a3", "f32", [[(3.0, 1)], [(2.0, 3)]]).issue("asc_mrgsort4_sync")
    assert merge.written(2) == [(3.0, 1), (2.0, 3)]
    assert len(merge.bench.trace().rows) == 3


def test_counts_exist_in_the_c_api_of_a2_and_a3() -> None:
    merge = Merge("a2a3", "f32", [[(3.0, 1)], [(2.0, 3), (1.0, 4)]]).issue(stops=True)
    assert merge.bench.issue("asc_get_vms4_sr") == (1, 0, 0, 0)


def test_a_destination_over_a_list_is_told() -> None:
    merge = Merge("a2a3", "f32", [[(3.0, 1)] * 8, [(2.0, 3)] * 8])
    merge.dst = merge.sources[1]
    merge.issue()
    assert merge.bench.findings() == ["MRGSORT-OVERLAP"]


def test_repeats_over_lists_that_lie_apart_are_told() -> None:
    merge = Merge("a2a3", "f32", [[(3.0, 1)]] * 4)
    merge.bench.issue("vmrgsort4", merge.dst, *merge.sources, 2, 1, 1, 1, 1, 0, 15)
    assert "MRGSORT-APART" in merge.bench.findings()


def test_the_trace_has_the_lists() -> None:
    merge = Merge("a2a3", "f16", [[(3.0, 1), (2.0, 2)], [(2.0, 3)]]).issue()
    reads = np.flatnonzero(merge.bench.traced(Mode.READ, Space.UB))
    wanted = [p.offset + b for p, n in zip(merge.sources, (2, 1), strict=True) for b in range(8 * n)]
    assert list(reads) == sorted(wanted)
