"""TGATHER by a pattern and by index, on each profile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascsim.diagnostics import Refused
from ascsim.isa.tile.gather import GatherAxis
from ascsim.machine.core import CoreState
from ascsim.machine.operands import NO_ADDRESS
from ascsim.machine.trace import Kind, Mode
from ascsim.machine.words import MaskPattern, Pipe
from harness import Bench

PROFILES = ["a2a3", "a5", "cpu"]
PICKS = {
    "P0101": (0, 2),
    "P1010": (1, 2),
    "P0001": (0, 4),
    "P0010": (1, 4),
    "P0100": (2, 4),
    "P1000": (3, 4),
    "P1111": (0, 1),
}


@pytest.mark.parametrize("pattern", PICKS)
@pytest.mark.parametrize("kind", ["f32", "f16", "i16"])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_pattern_picks_and_leaves_no_gap_between_rows(profile: str, kind: str, pattern: str) -> None:
    first, step = PICKS[pattern]
    bench = Bench(profile)
    values = np.arange(3 * 96).reshape(3, 96) % 97
    for valid in (96, 78):
        picked = values[:, first:valid:step].reshape(-1)
        src = bench.tile(kind, 3, 96, values, valid=(3, valid))
        dst = bench.tile(kind, 9, 32, np.full((9, 32), -1))
        bench.issue("tgather", dst, src, MaskPattern[pattern])
        out = bench.read(dst).reshape(-1)
        assert np.array_equal(out[: picked.size], picked.astype(out.dtype))
        assert np.array_equal(out[picked.size :], np.full(out.size - picked.size, -1))
        assert bench.findings() == []


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("profile", PROFILES)
def test_other_indices_in_the_same_tile_are_seen(profile: str, kind: str) -> None:
    bench = Bench(profile)
    random = np.random.default_rng(3)
    src, idx, dst = bench.tile(kind, 4, 32), bench.tile("i32", 4, 32), bench.tile(kind, 4, 32)
    tmp = bench.tile("i32", 4, 32)
    chosen = [random.integers(0, 128, (4, 32)) for _ in range(2)]
    touched = []
    for turn in (0, 0, 0, 1, 1, 0):
        values = random.integers(-50, 50, (4, 32)).astype(src.dtype.numpy)
        bench.core.view(src.region())[...] = values
        bench.core.view(idx.region())[...] = chosen[turn]
        before = len(bench.trace().accesses)
        bench.issue("tgather", dst, src, idx, tmp)
        assert np.array_equal(bench.read(dst), values.reshape(-1)[chosen[turn]])
        touched.append([(int(a["start"]), int(a["length"]), int(a["mode"])) for a in bench.trace().accesses[before:]])
    assert touched[0] == touched[1] == touched[2] == touched[5] != touched[3]
    assert touched[3] == touched[4]
    bench.core.view(idx.region())[2, 3] = 1000
    bench.issue("tgather", dst, src, idx, tmp)
    bench.issue("tgather", dst, src, idx, tmp)
    assert bench.findings() == ["TGATHER-INDEX"] * 2


def test_values_and_indices_of_pairs() -> None:
    for kind, pattern in (("f32", MaskPattern.P0101), ("f16", MaskPattern.P0001)):
        bench = Bench("a2a3")
        values = np.linspace(9, 1, 64).astype(np.float32)
        src = bench.tile(kind, 1, 64, values)
        pairs = bench.tile(kind, 1, 64 * (8 // src.dtype.size))
        bench.issue("tsort32", pairs, src, bench.tile("u32", 1, 64, np.arange(64)))
        out, idx = bench.tile(kind, 1, 64), bench.tile("u32", 1, 64)
        words = bench.tile("u32", 1, 128, at=pairs.address)
        bench.issue("tgather", out, pairs, pattern)
        bench.issue("tgather", idx, words, MaskPattern.P1010)
        assert np.array_equal(bench.read(out)[0], values.astype(src.dtype.numpy))
        assert np.array_equal(bench.read(idx)[0], np.arange(64))
        assert bench.findings() == []


def test_types_of_one_size_may_differ() -> None:
    bench = Bench("a5")
    src = bench.tile("f32", 1, 32, np.arange(32))
    dst = bench.tile("u32", 1, 16)
    bench.issue("tgather", dst, src, MaskPattern.P1010)
    assert np.array_equal(bench.read(dst).view(np.float32)[0], np.arange(1, 32, 2))
    with pytest.raises(Refused, match="elements of dst have 2 bytes"):
        bench.issue("tgather", bench.tile("f16", 1, 16), src, MaskPattern.P1010)


def test_rows_are_picked() -> None:
    values = np.arange(8 * 16).reshape(8, 16)
    bench = Bench("cpu")
    dst, src = bench.tile("i32", 4, 16), bench.tile("i32", 8, 16, values)
    bench.issue("tgather", dst, src, MaskPattern.P1010, GatherAxis.GATHER_COL)
    assert np.array_equal(bench.read(dst), values[1::2])
    assert bench.findings() == []


@pytest.mark.parametrize("chip", ["a2a3", "a5"])
def test_a_chip_runs_on_over_as_many_rows_as_src_has(chip: str) -> None:
    values = np.arange(8 * 16).reshape(8, 16)
    bench = Bench(chip)
    at = bench.place(8 * 64, gap=8 * 64)
    src = bench.tile("i32", 8, 16, values, at=at)
    behind = bench.tile("i32", 8, 16, -values, at=at + 8 * 64)
    dst = bench.tile("i32", 4, 16)
    bench.issue("tgather", dst, src, MaskPattern.P0101, GatherAxis.GATHER_COL)
    assert np.array_equal(bench.read(dst), values[::2])
    assert bench.findings() == ["E-TGATHER-COL"]
    beyond = bench.tile("i32", 4, 16, at=dst.address + dst.nbytes)
    assert np.array_equal(bench.read(beyond), bench.read(behind)[::2])


def test_all_rows_may_be_copied_on_chips_without_a_word() -> None:
    bench = Bench("a2a3")
    dst, src = bench.tile("i32", 8, 16), bench.tile("i32", 8, 16, np.arange(128).reshape(8, 16))
    bench.issue("tgather", dst, src, MaskPattern.P1111, GatherAxis.GATHER_COL)
    assert np.array_equal(bench.read(dst), bench.read(src))
    assert bench.findings() == []


def test_columns_of_dst_that_are_not_valid_are_told_or_refused() -> None:
    src = ("f32", 2, 32)
    for rows, code in ((2, "TGATHER-1"), (1, "TGATHER-2")):
        bench = Bench("a2a3")
        bench.issue("tgather", bench.tile("f32", 2, 24, valid=(rows, 16)), bench.tile(*src), MaskPattern.P0101)
        assert bench.findings() == [code]
        bench = Bench("cpu")
        with pytest.raises(Refused, match="one behind the other"):
            bench.issue("tgather", bench.tile("f32", 2, 24, valid=(rows, 16)), bench.tile(*src), MaskPattern.P0101)


def test_what_does_not_fit_is_told_and_is_in_the_trace() -> None:
    bench = Bench("a5")
    dst, src = bench.tile("f32", 1, 8), bench.tile("f32", 1, 32)
    bench.issue("tgather", dst, src, MaskPattern.P0101)
    assert bench.findings() == ["TGATHER-3"]
    assert np.flatnonzero(bench.traced(Mode.WRITE)).tolist() == list(range(dst.address, dst.address + 64))


def test_the_trace_has_the_elements_that_are_picked() -> None:
    bench = Bench("a2a3")
    dst, src = bench.tile("f32", 1, 8), bench.tile("f32", 1, 16)
    bench.issue("tgather", dst, src, MaskPattern.P1010)
    reads = np.flatnonzero(bench.traced(Mode.READ))
    assert reads.tolist() == [src.address + 8 * n + 4 + b for n in range(8) for b in range(4)]


# By index


def gathered(profile: str, kind: str, index: str, indices: Any, cols: int = 32) -> tuple[Bench, Any]:
    """A gather from 4x32 numbers; (bench, result)."""
    bench = Bench(profile)
    indices = np.asarray(indices)
    rows, valid = indices.shape
    src = bench.tile(kind, 4, 32, np.arange(128).reshape(4, 32))
    idx, tmp = bench.tile(index, rows, cols, indices, valid=(rows, valid)), bench.tile(index, rows, cols)
    dst = bench.tile(kind, rows, cols, np.full((rows, cols), 99), valid=(rows, valid))
    bench.issue("tgather", dst, src, idx, tmp)
    return bench, bench.read(dst, rows, cols)


@pytest.mark.parametrize("index", ["i32", "u32"])
@pytest.mark.parametrize("kind", ["f32", "f16", "i16", "u32"])
@pytest.mark.parametrize("profile", PROFILES)
def test_indices_are_flat(profile: str, kind: str, index: str) -> None:
    indices = np.random.default_rng(3).integers(0, 128, (3, 20))
    bench, out = gathered(profile, kind, index, indices)
    assert np.array_equal(out[:, :20], indices.astype(out.dtype))
    assert np.array_equal(out[:, 20:], np.full((3, 12), 99))
    assert bench.findings() == []


def test_the_a5_takes_narrow_indices_and_bytes() -> None:
    indices = np.random.default_rng(3).integers(0, 128, (3, 20))
    for kind, index in (("f16", "i16"), ("f16", "u16"), ("u8", "u16"), ("i64", "i32")):
        _, out = gathered("a5", kind, index, indices)
        assert np.array_equal(out[:, :20].astype(np.int64), indices)
    with pytest.raises(Refused, match="elements of 4 bytes with indices of 2"):
        gathered("a5", "f32", "i16", indices)


def test_an_index_outside_src_is_told_with_its_place() -> None:
    for profile in PROFILES:
        bench, out = gathered(profile, "f32", "i32", [[1, 128, 3, 4]])
        assert bench.findings() == ["TGATHER-INDEX"]
        assert out[0, [0, 2, 3]].tolist() == [1, 3, 4]
    assert out[0, 1] == 0  # the portable form
    headline = next(d["headline"] for kind, d in bench.sink.notes if kind == "finding")
    assert "index 128 at (0, 1)" in headline


@pytest.mark.parametrize("profile", PROFILES)
def test_an_index_beyond_ub_gathers_nothing(profile: str) -> None:
    bench, out = gathered(profile, "f32", "i32", [[-1, 1 << 24, 5, 6]])
    assert bench.findings() == ["TGATHER-INDEX"]
    assert out[0, :4].tolist() == [0, 0, 5, 6]


def test_steps_of_a2_and_a3() -> None:
    for kind in ("f32", "f16"):
        bench, _ = gathered("a2a3", kind, "i32", [[1, 2, 3, 4]])
        steps = [(r["pipe"], r["kind"]) for r in bench.trace().rows if r["parent"] >= 0 and r["pipe"] == Pipe.V]
        assert steps == [(Pipe.V, Kind.INSTRUCTION), (Pipe.V, Kind.BARRIER), (Pipe.V, Kind.INSTRUCTION)]
        assert bench.core.state.mask == CoreState().mask
        assert not bench.core.state.counter_mode


def test_offsets_of_halves_stand_in_tmp_in_rows_of_dst() -> None:
    bench = Bench("a2a3")
    src = bench.tile("f16", 1, 32, np.arange(32))
    idx, tmp = bench.tile("i32", 2, 16, np.arange(32).reshape(2, 16), valid=(2, 8)), bench.tile("i32", 1, 16)
    dst = bench.tile("f16", 2, 16, valid=(2, 8))
    bench.issue("tgather", dst, src, idx, tmp)
    assert bench.findings() == ["TGATHER-5"]
    held = bench.memory()[tmp.address : tmp.address + 128].view(np.int32).reshape(2, 16)
    assert np.array_equal(held[:, :8], 2 * np.array([range(8), range(16, 24)]))


def test_chips_need_tmp_and_cpu_does_not() -> None:
    for profile in PROFILES:
        bench = Bench(profile)
        src, idx, dst = bench.tile("f32", 1, 16, np.arange(16)), bench.tile("i32", 1, 16), bench.tile("f32", 1, 16)
        if profile == "cpu":
            bench.issue("tgather", dst, src, idx)
            assert bench.findings() == []
        else:
            with pytest.raises(Refused, match="tmp is not given"):
                bench.issue("tgather", dst, src, idx)


def test_a_gather_into_its_source_is_told() -> None:
    bench = Bench("a2a3")
    src, idx = bench.tile("f32", 1, 16), bench.tile("i32", 1, 16)
    bench.issue("tgather", src, src, idx, bench.tile("i32", 1, 16))
    assert bench.findings() == ["TGATHER-OVERLAP"]
    bench = Bench("a2a3")
    src = bench.tile("f32", 1, 32)
    bench.issue("tgather", bench.tile("f32", 1, 16, at=src.address), src, MaskPattern.P0101)
    assert bench.findings() == ["TGATHER-OVERLAP"]


def test_a_tmp_that_the_a5_does_not_use_needs_no_address() -> None:
    for profile in ("a2a3", "a5"):
        bench = Bench(profile)
        src, idx, dst = bench.tile("f32", 1, 16, np.arange(16)), bench.tile("i32", 1, 16), bench.tile("f32", 1, 16)
        tmp = bench.tile("i32", 1, 16, at=NO_ADDRESS)
        if profile == "a5":
            bench.issue("tgather", dst, src, idx, tmp)
            assert bench.findings() == []
        else:
            with pytest.raises(Refused, match="tile tmp has no address"):
                bench.issue("tgather", dst, src, idx, tmp)


@pytest.mark.parametrize("pattern", PICKS)
def test_the_a5_picks_8_byte_elements_into_rows_that_lie_apart(pattern: str) -> None:
    first, step = PICKS[pattern]
    bench = Bench("a5")
    values = np.arange(3 * 24).reshape(3, 24)
    dst, src = bench.tile("i64", 3, 24), bench.tile("i64", 3, 24, values)
    bench.issue("tgather", dst, src, MaskPattern[pattern])
    pitch = 24 // step
    flat = bench.read(dst).reshape(-1)
    for row in range(3):
        assert np.array_equal(flat[row * pitch : (row + 1) * pitch], values[row, first::step])
    assert bench.findings() == []
    bench = Bench("a5")
    bench.issue("tgather", bench.tile("i64", 3, 12), bench.tile("i64", 3, 24), MaskPattern.P0101)
    assert bench.findings() == ["E-TGATHER-B64"]
