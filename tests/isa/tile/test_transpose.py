"""TTRANS: every type and shape on each profile, what it touches, the steps of A2/A3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe
from harness import Bench

TYPES = ("f32", "i32", "u32", "f16", "bf16", "i16", "u16", "i8", "u8")
PROFILES = ("a2a3", "a5", "cpu")


def up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_rows_become_columns(profile: str, kind: str, data: st.DataObject) -> None:
    bench = Bench(profile)
    bench.memory()[:] = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 256, bench.memory().size)
    before = bench.memory().copy()
    bench.place(32)  # what A2/A3 read for rows without a source
    size = bench.tile(kind, 1, 64).dtype.size
    width, height = 32 // size, 32 if size == 1 else 16
    rows, cols = data.draw(st.integers(1, 70)), data.draw(st.integers(1, 70))
    src = bench.tile(kind, rows, up(cols, width), valid=(rows, cols))
    converts = data.draw(st.booleans())
    wide = up(rows, height) if converts else up(rows, height) + width
    dst = bench.tile(kind, cols, wide, valid=(cols, rows))
    tmp = bench.tile(kind, up(cols, width), up(rows, height))
    bits = np.dtype(f"u{size}")
    source = bench.core.view(src.region(None, None, bits)).copy()
    bench.issue("TTRANS", dst, src, tmp)
    assert np.array_equal(bench.core.view(dst.region(None, None, bits)), source.T)
    assert bench.findings() == []
    written = bench.traced(Mode.WRITE)
    assert np.array_equal(bench.memory()[~written], before[~written])
    touched = bench.traced(Mode.READ) | written
    uses_tmp = profile == "a2a3" and wide % height == 0
    assert touched[tmp.address : tmp.address + tmp.nbytes].any() == uses_tmp


def steps(bench: Bench) -> list[tuple[str, int]]:
    names = {data["id"]: data["name"] for kind, data in bench.sink.notes if kind == "mnemonic"}
    return [(names[row["mnemonic"]], row["pipe"]) for row in bench.trace().rows[1:]]


def test_a2a3_goes_by_way_of_tmp() -> None:
    bench = Bench("a2a3")
    src, dst, tmp = bench.tile("f32", 20, 8), bench.tile("f32", 8, 32), bench.tile("f32", 8, 32)
    bench.issue("TTRANS", dst, src, tmp)
    conversion = ("scatter_vnchwconv_b32", Pipe.V)
    assert steps(bench) == [
        *[conversion] * 3, ("pipe_barrier", Pipe.V), ("copy_ubuf_to_ubuf", Pipe.V)
    ]  # fmt: skip
    written = bench.traced(Mode.WRITE)
    assert written[dst.address : dst.address + dst.nbytes].reshape(8, 128)[:, :96].all()  # 20 rows end a block at 24
    assert not written[dst.address : dst.address + dst.nbytes].reshape(8, 128)[:, 96:].any()


def test_a2a3_leaves_what_stands_at_the_start_of_ub_in_the_last_block() -> None:
    bench = Bench("a2a3")
    first = bench.tile("f32", 1, 8, [np.arange(8)])
    src, dst, tmp = bench.tile("f32", 17, 8), bench.tile("f32", 8, 32), bench.tile("f32", 8, 32)
    bench.issue("TTRANS", dst, src, tmp)
    assert first.address == 0
    assert np.array_equal(bench.read(dst)[:, 17:24], np.repeat(np.arange(8.0)[:, None], 7, axis=1))


def test_a2a3_loops_on_the_scalar_pipe_where_dst_is_not_aligned() -> None:
    bench = Bench("a2a3")
    src, dst, tmp = bench.tile("f32", 8, 16), bench.tile("f32", 16, 8), bench.tile("f32", 1, 8)
    bench.issue("TTRANS", dst, src, tmp)
    assert steps(bench) == [
        ("set_flag", Pipe.V), ("wait_flag", Pipe.S), ("scalar_loop", Pipe.S), ("set_flag", Pipe.S), ("wait_flag", Pipe.V)
    ]  # fmt: skip
    assert bench.findings() == []


def test_a_small_tmp_is_overrun_and_told() -> None:
    bench = Bench("a2a3")
    src, dst, tmp = bench.tile("f32", 16, 16, valid=(16, 9)), bench.tile("f32", 16, 16), bench.tile("f32", 9, 16)
    bench.place(448)
    bench.issue("TTRANS", dst, src, tmp)
    assert bench.findings() == ["TTRANS-2"]
    assert bench.traced(Mode.WRITE)[tmp.address + tmp.nbytes : tmp.address + 1024].all()


def test_a_turned_dst_is_told_on_chips_and_refused_on_cpu() -> None:
    for profile in ("a2a3", "a5"):
        bench = Bench(profile)
        dst = bench.tile("f32", 16, 16, valid=(8, 16), blayout=BLayout.COL_MAJOR)
        bench.issue("TTRANS", dst, bench.tile("f32", 16, 8), bench.tile("f32", 16, 16))
        assert "TTRANS-3" in bench.findings()
    bench = Bench("cpu")
    src = bench.tile("f32", 16, 8, np.arange(128).reshape(16, 8))
    dst = bench.tile("f32", 8, 16, blayout=BLayout.COL_MAJOR)
    bench.issue("TTRANS", dst, src, bench.tile("f32", 16, 16))
    assert np.array_equal(bench.read(dst)[..., 0], bench.read(src).T)
    with pytest.raises(Refused, match="valid"):
        bench.issue("TTRANS", bench.tile("f32", 16, 8), src, bench.tile("f32", 16, 16))
