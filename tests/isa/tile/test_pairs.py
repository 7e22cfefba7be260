"""TPAIRREDUCESUM: sums of neighbours, odd columns, what becomes of the rest of dst."""

from __future__ import annotations

import numpy as np
import pytest

from harness import Bench


@pytest.mark.parametrize("profile", ("a2a3", "a5", "cpu"))
@pytest.mark.parametrize("kind", ("f32", "f16"))
@pytest.mark.parametrize("cols", (1, 2, 7, 64, 130, 300))
def test_sums_of_neighbours(profile: str, kind: str, cols: int) -> None:
    bench = Bench(profile)
    a = np.random.default_rng(cols).integers(-99, 99, (3, cols))
    src = bench.tile(kind, 3, 320, a, valid=(3, cols))
    dst = bench.tile(kind, 3, 320, np.full((3, 320), 5), valid=(3, cols))
    bench.issue("tpairreducesum", dst, src)
    got, pairs = bench.read(dst, 3, 320), cols // 2
    assert np.array_equal(got[:, :pairs], a[:, 0 : 2 * pairs : 2] + a[:, 1 : 2 * pairs : 2])
    if profile == "cpu":
        assert not got[:, pairs + cols % 2 :].any()
        assert cols % 2 == 0 or np.array_equal(got[:, pairs], a[:, -1])
    else:
        assert (got[:, pairs:] == 5).all()
    assert bench.findings() == []


def test_half_at_its_limit() -> None:
    for profile, want in (("a2a3", 65504), ("a5", np.inf)):
        bench = Bench(profile)
        src, dst = bench.tile("f16", 1, 16, np.full((1, 16), 60000)), bench.tile("f16", 1, 16)
        bench.issue("tpairreducesum", dst, src)
        assert (bench.read(dst)[:, :8] == want).all()


def test_tiles_that_may_be_packed_are_told_of_on_the_a5() -> None:
    bench = Bench("a5")
    a = np.arange(32).reshape(2, 16)
    dst = bench.tile("f32", 2, 16)
    bench.issue("tpairreducesum", dst, bench.tile("f32", 2, 16, a))
    assert np.array_equal(bench.read(dst)[:, :8], a[:, 0::2] + a[:, 1::2])
    assert bench.findings() == ["TPAIRREDUCESUM-2"]
