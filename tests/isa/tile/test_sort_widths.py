"""TSORT32 at every width: right, and silent, but for the widths at which the public libraries go wrong, which are told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ascsim import profiles
from harness import Bench

WIDEST = 16_320
"""Columns of the widest row here: beyond what any chip's UB holds, so that UB is made larger."""
UNWRITTEN = 0xEE
PER_PAIR = {"f32": 2, "f16": 4}
PROFILES = ("a2a3", "a5", "cpu")


def told(profile: str, kind: str, columns: int, with_tmp: bool) -> str:
    """The erratum that a width meets, by the tables of the public expansions' faults; empty for none."""
    if profile == "cpu":
        return ""
    if not with_tmp and columns % 32:
        return "TSORT32-3"
    if columns == 16_320:
        return "E-TSORT32-510"
    size = 4 if kind == "f32" else 2
    if with_tmp and 16_289 <= columns <= 16_319:
        return "E-TSORT32-TAIL"
    if with_tmp and profile == "a5" and 8_129 <= columns <= 8_159 and columns * size > 8_160:
        return "E-TSORT32-TAIL"
    return ""


def empty_call(profile: str, kind: str, columns: int, with_tmp: bool) -> bool:
    """Whether the A5's library sorts 0 blocks in one of its calls, which its documents do not say does nothing."""
    whole, tail = divmod(columns, 32)
    if profile != "a5":
        return False
    if not with_tmp or not tail:
        return whole == 0 or (whole > 255 and whole % 255 == 0)
    copied = columns * (4 if kind == "f32" else 2) <= 8_160
    return not copied and (whole + 1) % 255 == 1


class Sweep:
    """One UB in which a row of ever other widths is sorted."""

    def __init__(self, profile: profiles.Profile, kind: str, widest: int) -> None:
        self.bench, self.kind = Bench(profile), kind
        rng = np.random.default_rng(11)
        self.values = rng.integers(-500, 500, widest).astype(np.float32)  # with ties
        unit = PER_PAIR[kind] * widest
        self.before = self.bench.place(256)  # what a broken width writes before dst
        self.dst = self.bench.tile(kind, 1, unit)
        self.src = self.bench.tile(kind, 1, widest, self.values)
        self.idx = self.bench.tile("u32", 1, widest, np.arange(widest))
        self.tmp = self.bench.tile(kind, 1, (widest + 31) // 32 * 32 + 128)
        sorted_ = np.stack([self.block(n, 32) for n in range(widest // 32)]) if widest >= 32 else np.zeros((0, 32, 2))
        self.whole = sorted_.reshape(-1, 2).astype(np.uint32)

    def bits(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.float16).view(np.uint16) if self.kind == "f16" else values.view(np.uint32)

    def block(self, number: int, length: int) -> np.ndarray:
        """The pairs of a block, by NumPy."""
        values = self.values[32 * number : 32 * number + length]
        order = np.argsort(-values, kind="stable")
        return np.stack([self.bits(values[order]), 32 * number + order], axis=1).astype(np.uint32)

    def issue(self, columns: int, with_tmp: bool) -> tuple[list[str], np.ndarray]:
        """(codes, pairs of dst) of one width."""
        memory = self.bench.memory()
        memory[self.dst.address : self.dst.address + self.dst.nbytes] = UNWRITTEN
        at = len(self.bench.sink.notes)
        args = [replace(t, valid_cols=columns) for t in (self.src, self.idx)]
        self.bench.issue("tsort32", self.dst, *args, *((self.tmp,) if with_tmp else ()))
        codes = [data["code"] for kind, data in self.bench.sink.notes[at:] if kind == "finding"]
        pairs = memory[self.dst.address : self.dst.address + self.dst.nbytes].view(np.uint32).reshape(-1, 2)
        return codes, pairs

    def check(self, columns: int, with_tmp: bool) -> None:
        codes, pairs = self.issue(columns, with_tmp)
        name = self.bench.profile.name
        wanted = told(name, self.kind, columns, with_tmp)
        whole, tail = divmod(columns, 32)
        right = np.array_equal(pairs[: 32 * whole], self.whole[: 32 * whole])
        if tail:
            right = right and np.array_equal(pairs[32 * whole : columns], self.block(whole, tail))
        empty = empty_call(name, self.kind, columns, with_tmp)
        assert sorted(codes) == sorted([wanted] * bool(wanted) + ["E-TSORT32-ZERO"] * empty), columns
        assert right is (not wanted), columns
        written = 32 * (whole + (tail > 0 and with_tmp)) if name != "cpu" else columns
        assert (pairs[max(written, columns) :] == UNWRITTEN * 0x01010101).all(), columns


@pytest.mark.parametrize("with_tmp", [False, True])
@pytest.mark.parametrize("kind", PER_PAIR)
@pytest.mark.parametrize("profile", PROFILES)
def test_widths_near_the_edges(profile: str, kind: str, with_tmp: bool) -> None:
    sweep = Sweep(profiles.load(profile).with_ub(1 << 20), kind, WIDEST)
    edges = (1, 2, 31, 32, 33, 63, 64, 65, 4064, 4080, 4096, 8128, 8129, 8140, 8159, 8160, 8161, 8192, 16_288)
    for columns in (*edges, 16_289, 16_300, 16_319, 16_320):
        sweep.check(columns, with_tmp)


@pytest.mark.slow
@pytest.mark.parametrize("with_tmp", [False, True])
@pytest.mark.parametrize("kind", PER_PAIR)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_width(profile: str, kind: str, with_tmp: bool) -> None:
    sweep = Sweep(profiles.load(profile).with_ub(1 << 20), kind, WIDEST)
    for columns in range(1, WIDEST + 1):
        sweep.check(columns, with_tmp)


FITS = {("a2a3", "f32"): 12_288, ("a2a3", "f16"): 14_016, ("a5", "f32"): 15_872, ("a5", "f16"): 15_872}
"""The widest rows whose tiles fit a chip's own UB side by side, as far as they are whole blocks."""


@pytest.mark.parametrize(("profile", "kind"), FITS)
def test_the_widest_row_of_a_chips_own_ub(profile: str, kind: str) -> None:
    chip = profiles.load(profile)
    bench, columns = Bench(chip), FITS[profile, kind]
    values = np.random.default_rng(2).integers(-500, 500, columns)
    size, at, tiles = (4 if kind == "f32" else 2), 0, []
    for name, count in ((kind, columns), ("u32", columns), (kind, columns * 8 // size)):
        made = bench.tile(name, 1, count, at=at)
        tiles.append(made)
        at += made.nbytes
    assert at <= chip.spaces["UB"].capacity
    src, idx, dst = tiles
    bench.core.view(src.region())[...] = values
    bench.core.view(idx.region())[...] = np.arange(columns)
    bench.issue("tsort32", dst, src, idx)
    order = np.argsort(-values.reshape(-1, 32), axis=1, kind="stable") + np.arange(columns // 32)[:, None] * 32
    pairs = bench.memory()[dst.address : dst.address + dst.nbytes].view(np.uint32).reshape(-1, 2)
    assert np.array_equal(pairs[:, 1], order.reshape(-1))
    assert bench.findings() == []
