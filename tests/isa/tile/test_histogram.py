"""THISTOGRAM: running totals of each byte, with and without the bytes above it."""

from __future__ import annotations

import numpy as np
import pytest

from ascsim.diagnostics import Refused
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout
from harness import Bench

PROFILES = ("a5", "cpu")


def totals(values: list[int]) -> list[int]:
    return [sum(v <= b for v in values) for b in range(256)]


@pytest.mark.parametrize("profile", PROFILES)
def test_both_bytes_of_16_bits(profile: str) -> None:
    bench = Bench(profile)
    a = np.random.default_rng(1).integers(0, 1024, (3, 300)).astype(np.uint16)
    src = bench.tile("u16", 3, 304, a, valid=(3, 300))
    idx = bench.tile("u8", 32, 1, valid=(3, 1), blayout=BLayout.COL_MAJOR)
    bench.memory()[idx.address : idx.address + 3] = [1, 3, 9]
    dst = bench.tile("u32", 3, 256)
    bench.issue("thistogram", dst, src, idx, 1)
    assert bench.read(dst).tolist() == [totals([int(v) >> 8 for v in line]) for line in a]
    assert not bench.traced(Mode.READ)[idx.address]
    bench.issue("thistogram", dst, src, idx, 0)
    want = [totals([int(v) & 255 for v in line if v >> 8 == top]) for line, top in zip(a, (1, 3, 9), strict=True)]
    assert bench.read(dst).tolist() == want
    assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("byte", (3, 2, 1, 0))
def test_each_byte_of_32_bits(profile: str, byte: int) -> None:
    bench = Bench(profile)
    a = np.random.default_rng(byte).choice(
        np.array([0x01020304, 0x01020305, 0x01FF0304, 0x02020304], np.uint32), (2, 64)
    )
    src, dst = bench.tile("u32", 2, 64, a), bench.tile("u32", 2, 256)
    rows = max(3 - byte, 1)
    idx = bench.tile("u8", rows, 64, np.repeat([[1], [2], [3]], 64, 1)[:rows])
    bench.issue("thistogram", dst, src, idx, byte)
    above = {3: 0, 2: 0x01, 1: 0x0102, 0: 0x010203}[byte]
    want = [
        totals([v >> 8 * byte & 255 for v in line if byte == 3 or v >> 8 * (byte + 1) == above]) for line in a.tolist()
    ]
    assert bench.read(dst).tolist() == want
    assert bench.findings() == []


def test_what_the_library_refuses() -> None:
    bench = Bench("a5")
    src, dst, idx = bench.tile("u16", 2, 64), bench.tile("u32", 2, 256), bench.tile("u8", 2, 64)
    with pytest.raises(Refused, match="one column"):
        bench.issue("thistogram", dst, src, idx, 1)
    with pytest.raises(Refused, match="u16 has the bytes 0 to 1"):
        bench.issue("thistogram", dst, src, idx, 2)
    with pytest.raises(Refused, match="3 rows and 64 columns"):
        bench.issue("thistogram", dst, bench.tile("u32", 2, 64), idx, 0)
