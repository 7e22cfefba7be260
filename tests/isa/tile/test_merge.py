"""TMRGSORT in both forms, on each profile, against a merge of heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.machine.operands import Tile
from ascsim.machine.trace import Kind, Mode
from ascsim.machine.words import Pipe
from harness import Bench
from isa.memory_form.test_merge import one_by_one, pairs_of, read_pairs, some_lists

PROFILES = ["a2a3", "a5", "cpu"]
FLOATS = ["f16", "f32"]
PER_PAIR = {"f16": 4, "f32": 2}


def tile_of(bench: Bench, kind: str, pairs: list[Any], cols: int = 0, valid: int | None = None) -> Tile:
    """A tile of one row with these pairs."""
    per = PER_PAIR[kind]
    columns = max(cols, -(-len(pairs) * per // 16) * 16, 16)
    tile = bench.tile(kind, 1, columns, valid=(1, len(pairs) * per if valid is None else valid))
    words = pairs_of(kind, pairs).reshape(-1)
    bench.memory()[tile.address : tile.address + words.nbytes] = words.view(np.uint8)
    return tile


def pairs_in(bench: Bench, kind: str, tile: Tile, count: int) -> list[Any]:
    words = bench.memory()[tile.address : tile.address + 8 * count].copy().view(np.uint32)
    return read_pairs(kind, words.reshape(-1, 2))


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_lists_are_merged(profile: str, kind: str, data: st.DataObject) -> None:
    bench = Bench(profile)
    lists = some_lists(data, data.draw(st.integers(2, 4)))
    exhausted = data.draw(st.booleans())
    total = sum(map(len, lists))
    sources = [tile_of(bench, kind, pairs) for pairs in lists]
    old = [(float(-n), n) for n in range(total)]
    tmp, room = tile_of(bench, kind, old), data.draw(st.integers(0, total))
    dst = tile_of(bench, kind, [(7.0, 7)] * total, valid=room * PER_PAIR[kind])
    given_lists = [*sources, *[None] * (4 - len(sources))]
    counts = bench.issue("tmrgsort", dst, tmp, *given_lists, exhausted)
    wanted, taken = one_by_one(lists, exhausted)
    end = min(room, len(wanted))
    assert pairs_in(bench, kind, dst, end) == wanted[:end]
    assert bench.findings() == []
    if exhausted or profile == "cpu":
        assert counts == (*taken, *[0] * (4 - len(lists)))
    else:
        assert counts is None
    if profile != "cpu":  # what was not merged is what tmp held
        assert pairs_in(bench, kind, dst, room)[end:] == old[end:room]
        assert pairs_in(bench, kind, tmp, total) == [*wanted, *old[len(wanted) :]]
    else:
        assert pairs_in(bench, kind, tmp, total) == old


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("block_len", [64, 128])
@pytest.mark.parametrize("groups", [1, 3])
def test_blocks_are_merged_four_at_a_time(profile: str, kind: str, block_len: int, groups: int) -> None:
    per = block_len // PER_PAIR[kind]
    generator = np.random.default_rng(block_len + groups)
    blocks = [
        [(float(v), i) for i, v in enumerate(np.sort(generator.integers(-9, 9, per))[::-1])] for _ in range(4 * groups)
    ]
    bench = Bench(profile)
    src = tile_of(bench, kind, [pair for block in blocks for pair in block])
    dst = tile_of(bench, kind, [(0.0, 0)] * (4 * groups * per))
    bench.issue("tmrgsort", dst, src, block_len)
    wanted = [pair for g in range(groups) for pair in one_by_one(blocks[4 * g : 4 * g + 4], False)[0]]
    assert pairs_in(bench, kind, dst, len(wanted)) == wanted
    assert bench.findings() == []


def steps(bench: Bench) -> list[tuple[int, int]]:
    return [(row["pipe"], row["kind"]) for row in bench.trace().rows if row["parent"] >= 0]


@pytest.mark.parametrize("exhausted", [False, True])
@pytest.mark.parametrize("chip", ["a2a3", "a5"])
def test_steps_are_the_librarys(chip: str, exhausted: bool) -> None:
    bench = Bench(chip)
    a, b = (tile_of(bench, "f32", [(2.0, 1)]) for _ in range(2))
    tmp, dst = (tile_of(bench, "f32", [(0.0, 0)] * 2) for _ in range(2))
    bench.issue("tmrgsort", dst, tmp, a, b, None, None, exhausted)
    work = (Pipe.V, Kind.INSTRUCTION)
    reading = [(Pipe.V, Kind.SET_FLAG), (Pipe.S, Kind.WAIT_FLAG), (Pipe.S, Kind.INSTRUCTION)] if exhausted else []
    barrier = [(Pipe.V, Kind.BARRIER)] if chip == "a2a3" else []
    assert steps(bench) == [work, *reading, *barrier, work]


def test_one_step_of_a_whole_tile() -> None:
    bench = Bench("a2a3")
    src, dst = (tile_of(bench, "f32", [(0.0, 0)] * 128) for _ in range(2))
    bench.issue("tmrgsort", dst, src, 64)
    assert steps(bench) == [(Pipe.V, Kind.INSTRUCTION)]


def test_the_merge_may_go_over_one_of_its_lists() -> None:
    bench = Bench("a2a3")
    a, b = tile_of(bench, "f32", [(3.0, 1), (1.0, 2)], cols=16), tile_of(bench, "f32", [(2.0, 3)])
    tmp = tile_of(bench, "f32", [(0.0, 0)] * 3)
    dst = Tile(a.dtype, 1, 16, 1, 6, a.address)
    bench.issue("tmrgsort", dst, tmp, a, b)
    assert pairs_in(bench, "f32", dst, 3) == [(3.0, 1), (2.0, 3), (1.0, 2)]
    assert bench.findings() == []


def test_a_tmp_over_a_list_is_told() -> None:
    bench = Bench("a2a3")
    a, b = tile_of(bench, "f32", [(3.0, 1)] * 8), tile_of(bench, "f32", [(2.0, 3)] * 8)
    dst = tile_of(bench, "f32", [(0.0, 0)] * 16)
    tmp = Tile(a.dtype, 1, 32, 1, 32, a.address)
    bench.issue("tmrgsort", dst, tmp, a, b)
    assert bench.findings() == ["MRGSORT-OVERLAP"]


def test_blocks_in_place_are_told_on_every_profile() -> None:
    for profile in PROFILES:
        bench = Bench(profile)
        src = tile_of(bench, "f32", [(0.0, 0)] * 128)
        bench.issue("tmrgsort", src, src, 64)
        assert bench.findings() == ["MRGSORT-OVERLAP"]


def test_a_group_that_is_not_whole_stays_unwritten_on_chips_and_is_refused_on_cpu() -> None:
    pairs = [(5.0, 5)] * 160
    bench = Bench("a5")
    src, dst = tile_of(bench, "f32", pairs), tile_of(bench, "f32", [(1.0, 1)] * 160)
    bench.issue("tmrgsort", dst, src, 64)
    assert bench.findings() == ["TMRGSORT-2"]
    assert pairs_in(bench, "f32", dst, 160) == pairs[:128] + [(1.0, 1)] * 32
    bench = Bench("cpu")
    with pytest.raises(Refused, match="multiple of four blocks"):
        bench.issue("tmrgsort", tile_of(bench, "f32", pairs), tile_of(bench, "f32", pairs), 64)


def test_a_small_tmp_is_told_with_its_need_and_the_bytes_are_in_the_trace() -> None:
    bench = Bench("a2a3")
    a, b = (tile_of(bench, "f32", [(2.0, 1)] * 8) for _ in range(2))
    tmp, dst = (tile_of(bench, "f32", [(0.0, 0)] * 8) for _ in range(2))
    bench.issue("tmrgsort", dst, tmp, a, b)
    assert bench.findings() == ["TMRGSORT-6"]
    assert bench.traced(Mode.WRITE)[tmp.address : tmp.address + 128].all()


def test_what_a_stopped_merge_leaves_of_tmp_is_copied_but_nothing_depends_on_it() -> None:
    bench = Bench("a2a3")
    a, b = (tile_of(bench, "f32", pairs) for pairs in ([(9.0, 1)] * 8, [(2.0, 3)] * 8))
    tmp, dst = (tile_of(bench, "f32", [(0.0, 0)] * 16) for _ in range(2))
    assert bench.issue("tmrgsort", dst, tmp, a, b, None, None, True) == (8, 0, 0, 0)
    read, written = bench.traced(Mode.READ), bench.traced(Mode.WRITE)
    assert np.flatnonzero(read[tmp.address : tmp.address + 128]).tolist() == list(range(64))
    assert written[dst.address : dst.address + 128].all()
