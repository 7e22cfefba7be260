"""TEXTRACT and TINSERT: every layout, place and width, what is touched, what is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.machine.dtypes import dtype
from ascsim.machine.operands import Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, SLayout
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
TYPES = ("f32", "f16", "bf16", "i8", "i32")
NZ = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.ROW_MAJOR}
DN = {"blayout": BLayout.COL_MAJOR}


def places(tile: Tile) -> np.ndarray:
    """The byte of each element of a whole tile, by (row, column)."""
    return np.array([[tile.byte_of(r, c) for c in range(tile.cols)] for r in range(tile.rows)])


def elements(bench: Bench, tile: Tile) -> np.ndarray:
    size = tile.dtype.size
    return bench.memory()[places(tile)[..., None] + np.arange(size)]


def check(data: st.DataObject, profile: str, kind: str, layouts: tuple[dict[str, Any], dict[str, Any]]) -> None:
    bench = Bench(profile)
    bench.memory()[:] = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 256, bench.memory().size)
    size, boxed = dtype(kind).size, NZ in layouts
    width, step = 32 // size, 16 if boxed and profile == "a2a3" else 1
    by = width if boxed or profile == "a2a3" else 1
    rows, cols = 16 * data.draw(st.integers(1, 2)), 32 * data.draw(st.integers(1, 2))
    row, col = step * data.draw(st.integers(0, (rows - 1) // step)), by * data.draw(st.integers(0, (cols - 1) // by))
    valid = data.draw(st.integers(1, rows - row)), data.draw(st.integers(1, cols - col))
    if size == 1 and profile == "a2a3" and valid != (1, 1):
        valid = valid[0], max(valid[1] // 2 * 2, 2)
    small = bench.tile(kind, rows, cols, valid=valid, **layouts[0])
    large = bench.tile(kind, rows, cols, **layouts[1])
    extracts = data.draw(st.booleans())
    before = bench.memory().copy()
    dst, src = (small, large) if extracts else (large, small)
    held, old = elements(bench, src), elements(bench, dst)
    bench.issue("TEXTRACT" if extracts else "TINSERT", dst, src, row, col)
    part, corner = np.s_[row : row + valid[0], col : col + valid[1]], np.s_[: valid[0], : valid[1]]
    to, source = (corner, part) if extracts else (part, corner)
    new = elements(bench, dst)
    assert np.array_equal(new[to], held[source])
    written = bench.traced(Mode.WRITE)
    assert np.array_equal(bench.memory()[~written], before[~written])
    if not (boxed and profile == "a5"):  # which writes whole rows of boxes
        old[to] = held[source]
        assert np.array_equal(new, old)
        assert written.sum() == valid[0] * valid[1] * size
    assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_parts_of_rows_and_of_boxes(profile: str, kind: str, data: st.DataObject) -> None:
    layout: dict[str, Any] = data.draw(st.sampled_from(({}, NZ)))
    check(data, profile, kind, (layout, layout))


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_portable_form_goes_from_any_layout_to_any(data: st.DataObject) -> None:
    check(data, "cpu", "f16", (data.draw(st.sampled_from(({}, NZ, DN))), data.draw(st.sampled_from(({}, NZ, DN)))))


@pytest.mark.parametrize("profile", ("a2a3", "a5"))
def test_a_single_element_goes_by_the_scalar_pipe(profile: str) -> None:
    bench = Bench(profile)
    src = bench.tile("f32", 16, 16, np.arange(256).reshape(16, 16))
    dst = bench.tile("f32", 16, 16, valid=(1, 1))
    bench.issue("TEXTRACT", dst, src, 3, 5)
    assert bench.read(dst)[0, 0] == 53
    assert [row["pipe"] for row in bench.trace().rows[1:]] == [Pipe.V, Pipe.S, Pipe.S, Pipe.S, Pipe.V]
    assert bench.findings() == []


def test_without_a_place_it_is_the_first_element() -> None:
    bench = Bench("a5")
    src = bench.tile("f32", 8, 8, np.arange(64).reshape(8, 8))
    dst = bench.tile("f32", 8, 8, valid=(2, 3))
    bench.issue("TEXTRACT", dst, src)
    assert bench.read(dst).tolist() == [[0, 1, 2], [8, 9, 10]]


@pytest.mark.parametrize(
    ("profile", "at", "codes"),
    [
        ("a2a3", (0, 3), ["TEXTRACT-2"]), ("a5", (0, 3), []), ("a2a3", (12, 0), ["TEXTRACT-1"]),
        ("a5", (12, 0), ["TEXTRACT-1"]), ("a2a3", (3, 8), []),
    ],
)  # fmt: skip
def test_what_the_library_checks_in_debug_builds_only(profile: str, at: tuple[int, int], codes: list[str]) -> None:
    bench = Bench(profile)
    bench.issue("TEXTRACT", bench.tile("f32", 8, 8), bench.tile("f32", 16, 16), *at)
    assert bench.findings() == codes


def test_parts_of_4_bit_elements_on_the_a5() -> None:
    """ND tiles count bytes, NZ tiles elements, and a single one is a byte."""
    bench = Bench("a5")
    data = np.random.default_rng(0).integers(0, 256, (16, 64)).astype(np.uint8)
    src = bench.tile("f4e2m1x2", 16, 64, data)
    dst = bench.tile("f4e2m1x2", 16, 32)
    bench.issue("TEXTRACT", replace(dst, valid_rows=14), src, 2, 32)
    assert np.array_equal(bench.read(dst)[:14], data[2:, 32:])
    boxes = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.ROW_MAJOR}
    nz, part = bench.tile("f4e2m1x2", 16, 128, **boxes), bench.tile("f4e2m1x2", 16, 64, **boxes)
    content = bench.memory()[nz.address : nz.address + 16 * 64]
    content[:] = np.random.default_rng(1).integers(0, 256, content.size)
    bench.issue("TEXTRACT", part, nz, 0, 64)
    assert np.array_equal(bench.memory()[part.address : part.address + 512], content[512:])
    one = replace(part, valid_rows=1, valid_cols=1)
    bench.issue("TEXTRACT", one, nz, 5, 17)
    assert bench.memory()[one.address] == content[5 * 32 + 17]
    assert not bench.findings()
    with pytest.raises(Refused, match="of which 16 are moved"):
        bench.issue("TEXTRACT", replace(dst, valid_cols=16), src, 0, 0)
