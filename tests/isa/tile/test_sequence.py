"""TCI with and without tmp."""

from __future__ import annotations

import numpy as np
import pytest

from ascsim.machine.trace import Kind, Mode
from ascsim.machine.words import Pipe
from harness import Bench

PROFILES = ["a2a3", "a5", "cpu"]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ["i16", "u16", "i32", "u32"])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_row_counts_up_or_down_from_its_first_number(profile: str, kind: str, descending: bool) -> None:
    bench = Bench(profile)
    dst = bench.tile(kind, 1, 64, [[9] * 64], valid=(1, 50))
    bench.issue("tci", dst, 3, descending)
    step = -1 if descending else 1
    wanted = np.concatenate([3 + step * np.arange(50), [9] * 14]).astype(dst.dtype.numpy)
    assert np.array_equal(bench.read(dst, cols=64)[0], wanted)
    assert bench.findings() == []


def test_floats_are_rounded_once() -> None:
    bench = Bench("a2a3")
    dst = bench.tile("f16", 1, 32)
    bench.issue("tci", dst, 2047.5, False)
    assert np.array_equal(bench.read(dst)[0], (2047.5 + np.arange(32)).astype(np.float16))


@pytest.mark.parametrize("columns", [1, 40, 64, 100, 128, 300])
@pytest.mark.parametrize("kind", ["i16", "i32"])
@pytest.mark.parametrize("profile", PROFILES)
def test_with_tmp_it_is_the_same_sequence_from_zero(profile: str, kind: str, columns: int) -> None:
    for descending in (False, True):
        bench = Bench(profile)
        dst, tmp = bench.tile(kind, 1, 320, valid=(1, columns)), bench.tile("f32", 1, 512)
        bench.issue("tci", dst, 0, tmp, descending)
        assert np.array_equal(bench.read(dst)[0], np.arange(columns) * (-1 if descending else 1))
        assert bench.findings() == []


def test_the_vector_form_of_a2_and_a3_changes_the_sign_of_all() -> None:
    bench = Bench("a2a3")
    dst, tmp = bench.tile("i32", 1, 32), bench.tile("f32", 1, 512)
    bench.issue("tci", dst, 5, tmp, True)
    assert np.array_equal(bench.read(dst)[0], -5 - np.arange(32))
    assert bench.findings() == ["E-TCI-DESCENDING"]
    bench = Bench("a5")
    dst, tmp = bench.tile("i32", 1, 32), bench.tile("f32", 1, 512)
    bench.issue("tci", dst, 5, tmp, True)
    assert np.array_equal(bench.read(dst)[0], 5 - np.arange(32))
    assert bench.findings() == []


def test_the_vector_form_writes_integers_into_floats_and_says_so() -> None:
    bench = Bench("a2a3")
    dst, tmp = bench.tile("f32", 1, 32), bench.tile("f32", 1, 512)
    bench.issue("tci", dst, 5.0, tmp, False)
    assert np.array_equal(bench.read(dst)[0].view(np.int32), 5 + np.arange(32))
    assert bench.findings() == ["TCI-2"]


def work(bench: Bench) -> list[tuple[int, int]]:
    rows = bench.trace().rows
    return [(row["pipe"], row["kind"]) for row in rows if row["parent"] >= 0 and row["pipe"] != Pipe.S]


def test_without_tmp_the_scalar_unit_writes() -> None:
    for chip in ("a2a3", "a5"):
        bench = Bench(chip)
        dst = bench.tile("i32", 1, 32)
        bench.issue("tci", dst, 0, False)
        rows = bench.trace().rows
        assert [row["pipe"] for row in rows] == [Pipe.S, Pipe.S]
        assert np.flatnonzero(bench.traced(Mode.WRITE)).tolist() == list(range(dst.address, dst.address + 128))


def test_with_tmp_the_vector_unit_writes() -> None:
    instruction, barrier = (Pipe.V, Kind.INSTRUCTION), (Pipe.V, Kind.BARRIER)
    for chip, descending, wanted in (
        ("a5", True, [instruction]),
        ("a2a3", False, [instruction, barrier] * 2),
        ("a2a3", True, [instruction, barrier] * 2 + [instruction]),
    ):
        bench = Bench(chip)
        dst, tmp = bench.tile("i32", 1, 32), bench.tile("f32", 1, 512)
        bench.issue("tci", dst, 0, tmp, descending)
        assert work(bench) == wanted


@pytest.mark.parametrize(
    ("columns", "descending", "counts", "mask"),
    [
        (40, False, True, (0, 40)),
        (128, False, False, ((1 << 64) - 1, (1 << 64) - 1)),
        (100, False, False, (0, (1 << 36) - 1)),
        (100, True, True, (0, 100)),
    ],
)
def test_the_vector_form_of_a2_and_a3_leaves_its_mask(
    columns: int, descending: bool, counts: bool, mask: tuple[int, int]
) -> None:
    bench = Bench("a2a3")
    dst, tmp = bench.tile("i32", 1, 128, valid=(1, columns)), bench.tile("f32", 1, 512)
    bench.issue("tci", dst, 0, tmp, descending)
    assert bench.core.state.counter_mode is counts
    assert bench.core.state.mask == mask


def test_a_small_tmp_is_told_and_its_bytes_are_in_the_trace() -> None:
    bench = Bench("a2a3")
    dst, tmp = bench.tile("i32", 1, 64), bench.tile("f32", 1, 64)
    bench.issue("tci", dst, 0, tmp, False)
    assert bench.findings() == ["TCI-1"]
    assert bench.traced(Mode.WRITE)[tmp.address : tmp.address + 768].all()
