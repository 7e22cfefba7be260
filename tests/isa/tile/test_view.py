"""TRESHAPE and TSUBVIEW: the address that dst gets, and that nothing is touched."""

from __future__ import annotations

import numpy as np
import pytest

from ascsim.diagnostics import Refused
from ascsim.machine.dtypes import f32, i32, u16
from ascsim.machine.operands import Tile
from ascsim.machine.words import BLayout
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")


@pytest.mark.parametrize("profile", PROFILES)
def test_a_reshaped_tile_is_the_same_bytes(profile: str) -> None:
    bench = Bench(profile)
    bench.place(64)
    src = bench.tile("f32", 4, 16, np.arange(64).reshape(4, 16))
    flat = bench.issue("TRESHAPE", Tile(f32, 1, 64, 1, 64), src)
    assert flat.address == src.address
    assert bench.read(flat)[0].tolist() == list(range(64))
    (row,) = bench.trace().rows
    assert row["n_access"] == 0


def test_the_portable_form_keeps_floats_apart_from_integers() -> None:
    bench = Bench("a5")
    src = bench.tile("f32", 1, 16, [np.ones(16)])
    assert (bench.read(bench.issue("TRESHAPE", Tile(u16, 1, 32, 1, 32), src))[0, 1::2] == 0x3F80).all()
    bench = Bench("cpu")
    with pytest.raises(Refused, match="floats, or integers"):
        bench.issue("TRESHAPE", Tile(i32, 1, 16, 1, 16), bench.tile("f32", 1, 16))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("blayout", tuple(BLayout))
def test_a_part_begins_at_its_first_element(profile: str, blayout: BLayout) -> None:
    bench = Bench(profile)
    src = bench.tile("f32", 16, 32, blayout=blayout)
    view = bench.core.view(src.region())
    view[...] = np.arange(512).reshape(view.shape)
    part = bench.issue("TSUBVIEW", Tile(f32, 16, 32, 4, 8, blayout=blayout), src, 8, 16)
    assert part.address == src.byte_of(8, 16)
    assert np.array_equal(bench.read(part).reshape(4, 8), np.arange(512).reshape(16, 32)[8:12, 16:24])
    assert bench.findings() == []


def test_parts_that_do_not_lie_on_src_are_told() -> None:
    bench = Bench()
    src = bench.tile("f32", 16, 32)
    bench.issue("TSUBVIEW", Tile(f32, 4, 8, 4, 8), src, 0, 0)
    bench.issue("TSUBVIEW", Tile(f32, 16, 32, 4, 8), src, 13, 0)
    assert bench.findings() == ["TSUBVIEW-1", "TSUBVIEW-2"]
