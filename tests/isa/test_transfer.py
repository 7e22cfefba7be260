"""Copies on addresses: which bytes go where, what fills them up, and what the libraries get wrong."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa import REGISTRY
from ascsim.isa.transfer import LoadL2CacheMode, StoreL2CacheMode
from ascsim.machine.dtypes import dtype
from ascsim.machine.operands import Pointer
from ascsim.machine.trace import Kind, Mode
from ascsim.machine.words import Pipe, Space
from harness import Bench

CHIPS = ("a2a3", "a5")
DST, SRC = 8192, 4096


class Copy:
    """One copy on memories of random bytes: what it changed, compared with what a test wants."""

    def __init__(self, profile: str, target: Space, source: Space, kind: str | None = None) -> None:
        self.bench = Bench(profile)
        self.target, self.source = target, source
        for number, space in enumerate((Space.UB, Space.GM)):
            data = self.bench.memory(space)
            data[:] = np.random.default_rng(number).integers(0, 256, data.size, np.uint8)
        element = dtype(kind) if kind else None
        self.dst, self.src = Pointer(target, DST, element), Pointer(source, SRC, element)
        self.want = self.bench.memory(target).copy()
        self.data = self.bench.memory(source).copy()

    def take(self, at: int, start: int, length: int) -> None:
        """Expect bytes of the source at an offset of the destination."""
        self.want[DST + at : DST + at + length] = self.data[SRC + start : SRC + start + length]

    def fill(self, at: int, end: int, pattern: bytes) -> None:
        """Expect repetitions of a pattern, as if from offset 0 on."""
        for byte in range(at, end):
            self.want[DST + byte] = pattern[byte % len(pattern)]

    def run(self, name: str, *scalars: Any) -> list[str]:
        """Issue it; the destination must be as wanted, all else as it was. Returns the findings."""
        self.bench.issue(name, self.dst, self.src, *scalars)
        got = self.bench.memory(self.target)
        assert np.array_equal(got, self.want), np.flatnonzero(got != self.want)[:8] - DST
        other = Space.GM if self.target == Space.UB else Space.UB
        assert self.target == self.source or np.array_equal(self.bench.memory(other), self.data)
        return self.bench.findings()


# Within UB


@pytest.mark.parametrize("profile", CHIPS)
def test_within_ub_whole_blocks(profile: str) -> None:
    copy = Copy(profile, Space.UB, Space.UB)
    copy.take(0, 0, 160)
    assert copy.run("asc_copy_ub2ub", 160) == []
    row = copy.bench.trace().rows[0]
    assert (row["pipe"], row["work"]) == (Pipe.V, 5)


@pytest.mark.parametrize("profile", CHIPS)
def test_a_size_that_is_not_whole_blocks_loses_its_end(profile: str) -> None:
    copy = Copy(profile, Space.UB, Space.UB)
    copy.take(0, 0, 96)
    assert copy.run("asc_copy_ub2ub", 127) == ["COPY-2"]


@pytest.mark.parametrize("profile", CHIPS)
@given(count=st.integers(1, 5), length=st.integers(1, 4), gaps=st.tuples(st.integers(0, 5), st.integers(0, 5)))
@settings(max_examples=25, deadline=None)
def test_within_ub_gaps_go_from_tail_to_head(profile: str, count: int, length: int, gaps: tuple[int, int]) -> None:
    copy = Copy(profile, Space.UB, Space.UB)
    for burst in range(count):
        copy.take(burst * (length + gaps[1]) * 32, burst * (length + gaps[0]) * 32, length * 32)
    assert copy.run("asc_copy_ub2ub", count, length, *gaps) == []


def test_the_builtin_takes_a_sid_on_a2a3_alone() -> None:
    for profile, scalars in (("a2a3", (0, 2, 1, 1, 3)), ("a5", (2, 1, 1, 3))):
        copy = Copy(profile, Space.UB, Space.UB)
        copy.take(0, 0, 32)
        copy.take(128, 64, 32)
        assert copy.run("copy_ubuf_to_ubuf", *scalars) == []


@pytest.mark.parametrize("profile", CHIPS)
def test_nothing_to_copy_is_reported(profile: str) -> None:
    for scalars in ((0, 1, 0, 0), (1, 0, 0, 0), (0,)):
        assert Copy(profile, Space.UB, Space.UB).run("asc_copy_ub2ub", *scalars) == ["COPY-1"]


@pytest.mark.parametrize("profile", CHIPS)
def test_overlapping_ends_are_read_before_they_are_written(profile: str) -> None:
    copy = Copy(profile, Space.UB, Space.UB)
    copy.dst = copy.src + 32
    copy.want[SRC + 32 : SRC + 160] = copy.data[SRC : SRC + 128]
    assert copy.run("asc_copy_ub2ub", 128) == []


# A2/A3, whole blocks


@pytest.mark.parametrize(
    ("name", "target", "source", "pipe"),
    [("asc_copy_gm2ub", Space.UB, Space.GM, Pipe.MTE2), ("asc_copy_ub2gm", Space.GM, Space.UB, Pipe.MTE3)],
)
def test_a2a3_copies_blocks(name: str, target: Space, source: Space, pipe: Pipe) -> None:
    copy = Copy("a2a3", target, source)
    copy.take(0, 0, 64)
    assert copy.run(name, 64) == []
    assert copy.bench.trace().rows[0]["pipe"] == pipe
    copy = Copy("a2a3", target, source)
    for burst in range(3):
        copy.take(burst * 96, burst * 64, 32)
    assert copy.run(name, 3, 1, 1, 2) == []


# A2/A3, bytes


@pytest.mark.parametrize("size", (2, 30, 32, 34, 100))
def test_a2a3_bytes_to_ub_fill_the_last_block_with_the_first_element(size: int) -> None:
    copy = Copy("a2a3", Space.UB, Space.GM, "f16")
    copy.fill(0, -(-size // 32) * 32, bytes(copy.data[SRC : SRC + 2]))
    copy.take(0, 0, size)
    assert copy.run("asc_copy_gm2ub_align", size) == []


def test_a2a3_bursts_are_padded_with_the_set_value() -> None:
    copy = Copy("a2a3", Space.UB, Space.GM, "f32")
    copy.bench.issue("set_mov_pad_val_f32", 1.5)
    one = np.float32(1.5).tobytes()
    for burst in range(3):
        at = burst * (64 + 32)  # 8 + 40 + 4 bytes in two blocks, and a gap of one
        copy.fill(at, at + 64, one)
        copy.take(at + 8, burst * (40 + 4), 40)
    findings = copy.run("asc_copy_gm2ub_align", 3, 40, 2, 1, 4, 1)
    assert findings == ["E-COPY-GAP"]


def test_a2a3_out_of_ub_each_burst_starts_at_a_block() -> None:
    copy = Copy("a2a3", Space.GM, Space.UB, "f32")
    for burst in range(2):
        copy.take(burst * (20 + 12), burst * (32 + 64), 20)
    assert copy.run("asc_copy_ub2gm_align", 2, 20, 0, 0, 2, 12) == ["E-COPY-GAP"]


def test_a2a3_pads_half_on_the_way_out_by_bytes() -> None:
    copy = Copy("a2a3", Space.GM, Space.UB, "f16")
    copy.bench.issue("set_mov_pad_val_u8", 0xAB)
    copy.fill(0, 13, b"\xab")
    copy.take(3, 0, 8)
    assert copy.run("asc_copy_ub2gm_align", 1, 8, 3, 2, 0, 0) == ["E-COPY-HALF"]


# A5


@pytest.mark.parametrize(
    ("name", "target", "source", "pipe"),
    [("asc_copy_gm2ub", Space.UB, Space.GM, Pipe.MTE2), ("asc_copy_ub2gm", Space.GM, Space.UB, Pipe.MTE3)],
)
def test_a5_strides_go_from_head_to_head(name: str, target: Space, source: Space, pipe: Pipe) -> None:
    copy = Copy("a5", target, source)
    stride = {Space.UB: 96, Space.GM: 50}
    for burst in range(3):
        copy.take(burst * stride[target], burst * stride[source], 32)
    assert copy.run(name, 3, 32, stride[Space.GM], stride[Space.UB]) == []  # in the page's order
    assert copy.bench.trace().rows[0]["pipe"] == pipe


def test_a5_size_is_narrowed_to_16_bits() -> None:
    copy = Copy("a5", Space.UB, Space.GM)
    copy.take(0, 0, 64)
    assert copy.run("asc_copy_gm2ub", 65536 + 64) == ["E-COPY-16"]
    copy = Copy("a5", Space.UB, Space.GM)
    assert copy.run("asc_copy_gm2ub", 65536) == ["E-COPY-16"]


def test_a5_align_forms_are_not_narrowed() -> None:
    copy = Copy("a5", Space.UB, Space.GM, "i32")
    copy.take(0, 0, 65536 + 64)
    assert copy.run("asc_copy_gm2ub_align", 65536 + 64) == []


def test_a5_padding_with_the_value_or_with_the_first_element() -> None:
    for constant in (0, 1):
        copy = Copy("a5", Space.UB, Space.GM, "i16")
        copy.bench.issue("set_mov_pad_val_i16", -2)
        for burst in range(2):
            pattern = b"\xfe\xff" if constant else bytes(copy.data[SRC + 70 * burst : SRC + 70 * burst + 2])
            copy.fill(64 * burst, 64 * burst + 64, pattern)
            copy.take(64 * burst + 4, 70 * burst, 50)
        scalars = (2, 50, 2, 3, constant, LoadL2CacheMode.NORMAL_FIRST_VICTIM, 70, 64)
        assert copy.run("asc_copy_gm2ub_align", *scalars) == []


def test_a5_bursts_side_by_side_are_filled_up_once() -> None:
    copy = Copy("a5", Space.UB, Space.GM, "i16")
    copy.fill(0, 64, bytes(copy.data[SRC : SRC + 2]))
    for burst in range(3):
        copy.take(20 * burst, 100 * burst, 20)
    assert copy.run("asc_copy_gm2ub_align", 3, 20, 0, 0, 0, LoadL2CacheMode.NOTALLOC_KEEP, 100, 20) == []


def test_a5_other_strides_in_ub_are_reported() -> None:
    copy = Copy("a5", Space.GM, Space.UB, "i16")
    for burst in range(2):
        copy.take(64 * burst, 36 * burst, 32)
    scalars = (2, 32, StoreL2CacheMode.NORMAL_FIRST_VICTIM, 64, 36)
    assert copy.run("asc_copy_ub2gm_align", *scalars) == ["COPY-4"]


def test_a5_bursts_that_overlap_come_one_after_the_other() -> None:
    copy = Copy("a5", Space.UB, Space.GM)
    for burst in range(4):
        copy.take(32 * burst, 50 * burst, 96)
    assert copy.run("asc_copy_gm2ub", 4, 96, 50, 32) == []


@pytest.mark.parametrize(("way", "target", "source"), [("gm2ub", Space.UB, Space.GM), ("ub2gm", Space.GM, Space.UB)])
def test_a5_loop_registers_repeat_a_copy(way: str, target: Space, source: Space) -> None:
    copy = Copy("a5", target, source)
    copy.bench.issue(f"asc_set_{way}_loop_size", 2, 3)
    copy.bench.issue(f"asc_set_{way}_loop1_stride", 64, 128)
    copy.bench.issue(f"asc_set_{way}_loop2_stride", 1024, 512)
    for outer in range(3):
        for inner in range(2):
            copy.take(512 * outer + 128 * inner, 1024 * outer + 64 * inner, 32)
    assert copy.run(f"asc_copy_{way}", 32) == []
    copy.bench.issue(f"asc_set_{way}_loop_size", 1, 1)
    copy.bench.core.memory(target).data[:] = copy.want
    copy.dst += 4096
    copy.want[DST + 4096 : DST + 4128] = copy.data[SRC : SRC + 32]
    assert copy.run(f"asc_copy_{way}", 32) == []


# All


def test_the_profiles_have_their_own_forms_under_one_name() -> None:
    for name in ("asc_copy_gm2ub", "asc_copy_ub2gm", "asc_copy_gm2ub_align", "asc_copy_ub2gm_align"):
        forms = REGISTRY.by_cpp[name]
        assert [len(d.profiles) for d in forms] == [1] * len(forms)
        assert {d.profiles[0] for d in forms} == set(CHIPS)


SYNC = sorted(n for n, found in REGISTRY.by_cpp.items() if re.match(r"asc_copy_\w+2\w+_sync$", n) and found)


@pytest.mark.parametrize("profile", CHIPS)
@pytest.mark.parametrize("name", SYNC)
def test_sync_forms_are_the_copy_and_a_barrier(name: str, profile: str) -> None:
    ends = {"ub2ub": (Space.UB, Space.UB), "gm2ub": (Space.UB, Space.GM), "ub2gm": (Space.GM, Space.UB)}
    target, source = ends[name.split("_")[2]]
    copy = Copy(profile, target, source, "f32" if "align" in name else None)
    copy.take(0, 0, 96)
    assert copy.run(name, 96) == []
    rows = copy.bench.trace().rows
    assert [r["kind"] for r in rows] == [Kind.INSTRUCTION, Kind.INSTRUCTION, Kind.BARRIER]
    assert rows["parent"].tolist() == [-1, 0, 0]
    assert rows[2]["pipe"] == Pipe.ALL


def test_there_are_the_documented_sync_forms() -> None:
    assert SYNC == [
        "asc_copy_gm2ub_align_sync", "asc_copy_gm2ub_sync", "asc_copy_ub2gm_align_sync", "asc_copy_ub2gm_sync",
        "asc_copy_ub2ub_sync",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("profile", "name", "scalars", "said"),
    [
        ("a2a3", "asc_copy_gm2ub_align", (4096, 32, 0, 0, 0, 0), "n_burst is 4096"),
        ("a2a3", "asc_copy_gm2ub_align", (1, 2097152, 0, 0, 0, 0), "len_burst is 2097152"),
        ("a2a3", "asc_copy_gm2ub_align", (1, 32, 9, 0, 0, 0), "left_padding_num is 9 elements, 36 bytes"),
        ("a5", "asc_copy_gm2ub_align", (1, 32, 0, 9, 0, 0, 0, 32), "right_padding_num is 9 elements"),
        ("a2a3", "asc_copy_ub2ub", (4096, 1, 0, 0), "n_burst is 4096"),
        ("a2a3", "asc_copy_ub2ub", (1, 65536, 0, 0), "len_burst is 65536"),
    ],
)
def test_what_the_encoding_does_not_hold_is_refused(profile: str, name: str, scalars: tuple, said: str) -> None:
    target, source = (Space.UB, Space.UB) if "ub2ub" in name else (Space.UB, Space.GM)
    with pytest.raises(Refused, match=said) as refusal:
        Copy(profile, target, source, "f32").run(name, *scalars)
    assert refusal.value.diagnostic.code == "L006"


@pytest.mark.parametrize("profile", CHIPS)
@given(size=st.integers(1, 300))
@settings(max_examples=20, deadline=None)
def test_the_trace_covers_exactly_what_changes(profile: str, size: int) -> None:
    copy = Copy(profile, Space.UB, Space.GM, "u8")
    before = copy.bench.memory().copy()
    copy.bench.issue("asc_copy_gm2ub_align", copy.dst, copy.src, size)
    written = copy.bench.traced(Mode.WRITE)
    assert np.flatnonzero(written).tolist() == list(range(DST, DST + -(-size // 32) * 32))
    assert not (before != copy.bench.memory())[~written].any()
    assert np.flatnonzero(copy.bench.traced(Mode.READ, Space.GM)).tolist() == list(range(SRC, SRC + size))
