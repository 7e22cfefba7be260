"""TGATHER by comparison on both chips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascsim.diagnostics import Refused
from ascsim.isa.tile.compare import CmpMode
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe
from harness import Bench

ROWS, COLS, VALID, ROOM = 3, 128, 128, 128


class Gather:
    """One call on rows of small numbers."""

    def __init__(self, chip: str, kind: str, number: str, mode: CmpMode, valid: int = VALID, k: Any = 50) -> None:
        self.bench, self.valid = Bench(chip), valid
        self.values = np.random.default_rng(4).integers(0, 60, (ROWS, COLS))
        self.src = self.bench.tile(kind, ROWS, COLS, self.values, valid=(ROWS, valid))
        self.k = self.bench.tile(number, 16, 1, blayout=BLayout.COL_MAJOR)
        self.bench.core.view(self.k.region())[...] = k
        self.dst = self.bench.tile("u32", ROWS, ROOM, np.full((ROWS, ROOM), 7777))
        self.cdst = self.bench.tile("u32", 8, 1, blayout=BLayout.COL_MAJOR)
        at = self.bench.place(ROWS * 32 + 4 * ROWS * COLS + 64)
        self.tmp = self.bench.tile("u8", ROWS, 32, at=at)
        self.mode = mode

    def issue(self, offset: int = 0) -> Gather:
        self.bench.issue("tgather", self.dst, self.src, self.k, self.cdst, self.tmp, offset, self.mode)
        return self

    def rows(self) -> list[np.ndarray]:
        return [row[row != 7777] for row in self.bench.read(self.dst)]

    def counts(self) -> list[int]:
        return self.bench.read(self.cdst).reshape(-1)[:ROWS].tolist()


def wanted(values: np.ndarray, mode: CmpMode, pitch: int, offset: int) -> list[np.ndarray]:
    found = values > 50 if mode is CmpMode.GT else values == 50
    return [offset + row * pitch + np.flatnonzero(line) for row, line in enumerate(found)]


@pytest.mark.parametrize(
    ("chip", "kind", "number"),
    [("a2a3", "f32", "u32"), ("a2a3", "f16", "u16"), ("a5", "f32", "u32"), ("a5", "f16", "u16"), ("a5", "u32", "u32"),
     ("a5", "i16", "u16"), ("a5", "u16", "u16"), ("a5", "i32", "u32"), ("a5", "u8", "u16"), ("a5", "i8", "u32")],
)  # fmt: skip
@pytest.mark.parametrize("mode", [CmpMode.EQ, CmpMode.GT])
def test_places_of_matches(chip: str, kind: str, number: str, mode: CmpMode) -> None:
    gather = Gather(chip, kind, number, mode).issue(offset=9)
    rows = wanted(gather.values, mode, COLS, 9)
    assert [row.tolist() for row in gather.rows()] == [row.tolist() for row in rows]
    unit = 4 if chip == "a5" else 1  # the A5 counts bytes
    assert gather.counts() == [unit * row.size for row in rows]
    assert gather.bench.findings() == []


def test_int32_is_compared_for_equality_on_a2_and_a3() -> None:
    gather = Gather("a2a3", "i32", "u32", CmpMode.EQ).issue()
    assert [r.tolist() for r in gather.rows()] == [r.tolist() for r in wanted(gather.values, CmpMode.EQ, COLS, 0)]
    with pytest.raises(Refused, match="equality only"):
        Gather("a2a3", "i32", "u32", CmpMode.GT).issue()


def test_the_a5_compares_behind_valid_halves() -> None:
    gather = Gather("a5", "f16", "u16", CmpMode.GT, valid=70).issue()
    assert gather.bench.findings() == ["E-TGATHER-TAIL"]
    assert [r.tolist() for r in gather.rows()] == [r.tolist() for r in wanted(gather.values, CmpMode.GT, COLS, 0)]
    gather = Gather("a2a3", "f16", "u16", CmpMode.GT, valid=70).issue()
    rows = wanted(gather.values[:, :70], CmpMode.GT, COLS, 0)
    assert gather.bench.findings() == []
    assert [r.tolist() for r in gather.rows()] == [r.tolist() for r in rows]


def test_the_a5_rounds_floats_and_takes_them_for_unsigned() -> None:
    gather = Gather("a5", "f32", "u32", CmpMode.GT)
    gather.bench.core.view(gather.src.region())[...] = np.where(np.arange(COLS) == 5, -1.0, 50.4)
    assert [r.tolist() for r in gather.issue().rows()] == [[5], [133], [261]]


def test_another_mode_is_refused_and_cpu_has_no_such_form() -> None:
    with pytest.raises(Refused, match="EQ or GT"):
        Gather("a2a3", "f32", "u32", CmpMode.LT).issue()
    with pytest.raises(Refused):
        Gather("cpu", "f32", "u32", CmpMode.GT).issue()


def test_pipes_and_bytes_of_a2_and_a3() -> None:
    gather = Gather("a2a3", "f32", "u32", CmpMode.GT).issue()
    bench, tmp = gather.bench, gather.tmp
    pipes = [row["pipe"] for row in bench.trace().rows if row["parent"] >= 0]
    assert pipes[0] == Pipe.S
    assert Pipe.V in pipes
    written = bench.traced(Mode.WRITE)
    end = tmp.address + tmp.nbytes + 4 * ROWS * COLS + 4 * ROWS
    assert written[tmp.address : end].all()
    assert not written[end]
    assert not bench.core.state.counter_mode
