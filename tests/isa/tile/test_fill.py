"""TFILLPAD in its three forms: results, what is touched, the steps of A2/A3 and what goes wrong in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa.tile.fill import TFillPadMode
from ascsim.isa.tile.transfer import pad_bits
from ascsim.machine.operands import CUSTOM_PAD
from ascsim.machine.trace import Kind, Mode
from ascsim.machine.words import PadValue, Pipe
from harness import Bench

TYPES = ("f32", "i32", "u32", "f16", "bf16", "i16", "u16", "i8", "u8")
PROFILES = ("a2a3", "a5", "cpu")
PADS = (PadValue.ZERO, PadValue.MAX, PadValue.MIN, CUSTOM_PAD | 0xBF803C41)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_valid_elements_stay_and_the_rest_is_filled(profile: str, kind: str, data: st.DataObject) -> None:
    bench = Bench(profile)
    bench.memory()[:] = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 256, bench.memory().size)
    before = bench.memory().copy()
    form = data.draw(st.sampled_from(("TFILLPAD", "TFILLPAD_INPLACE", "TFILLPAD_EXPAND")))
    pad = data.draw(st.sampled_from(PADS))
    rows, cols = data.draw(st.integers(1, 6)), 32 * data.draw(st.integers(1, 3))
    valid = data.draw(st.integers(0, rows)), data.draw(st.integers(0, cols))
    src = bench.tile(kind, rows, cols, valid=valid)
    if form == "TFILLPAD_INPLACE":
        dst = bench.tile(kind, rows, cols, at=src.address, pad=pad)
    else:
        more = data.draw(st.integers(0, 2)) if form == "TFILLPAD_EXPAND" else 0
        dst = bench.tile(kind, rows + more, cols + 32 * more, pad=pad)
    bits = np.dtype(f"u{src.dtype.size}")
    held = bench.core.view(src.region(*valid, bits)).copy()
    bench.issue(form, dst, src)
    expected = np.full((dst.rows, dst.cols), pad_bits(dst), bits)
    expected[: valid[0], : valid[1]] = held
    assert np.array_equal(bench.core.view(dst.region(None, None, bits)), expected)
    assert bench.findings() == []
    written = bench.traced(Mode.WRITE)
    assert np.array_equal(bench.memory()[~written], before[~written])
    assert not written[: dst.address].any() and not written[dst.address + dst.nbytes :].any()


@pytest.mark.parametrize("profile", PROFILES)
def test_the_mode_is_an_operand_too(profile: str) -> None:
    bench = Bench(profile)
    src = bench.tile("f32", 2, 8, [[1, 2, 3]] * 2, valid=(2, 3))
    dst = bench.tile("f32", 3, 16, pad=PadValue.ZERO)
    bench.issue("TFILLPAD", dst, src, TFillPadMode.Expand)
    assert bench.read(dst).tolist() == [[1, 2, 3, *[0] * 13]] * 2 + [[0] * 16]
    with pytest.raises(Refused, match="one shape"):
        bench.issue("TFILLPAD", dst, src)


def test_a_block_that_a_load_has_filled_is_left_alone_on_a2a3() -> None:
    bench = Bench("a2a3")
    src = bench.tile("f32", 1, 16, [np.arange(16)], pad=PadValue.ZERO)
    src = bench.tile("f32", 1, 16, valid=(1, 3), at=src.address, pad=PadValue.ZERO)
    dst = bench.tile("f32", 1, 16, pad=PadValue.ZERO)
    bench.issue("TFILLPAD", dst, src)
    assert bench.read(dst)[0].tolist() == [*range(8), *[0] * 8]


def test_bytes_are_filled_by_a_scalar_loop_on_a2a3() -> None:
    bench = Bench("a2a3")
    dst = bench.tile("u8", 2, 64, pad=PadValue.MAX)
    bench.issue("TFILLPAD", dst, bench.tile("u8", 2, 64, valid=(2, 33)))
    kinds = [(row["kind"], row["pipe"]) for row in bench.trace().rows[1:]]
    assert kinds[:5] == [
        (Kind.INSTRUCTION, Pipe.V), (Kind.SET_FLAG, Pipe.V), (Kind.WAIT_FLAG, Pipe.S), (Kind.INSTRUCTION, Pipe.S),
        (Kind.BARRIER, Pipe.S),
    ]  # fmt: skip


def test_more_than_510_rows_lose_their_last_block_on_a2a3() -> None:
    bench = Bench("a2a3")
    src = bench.tile("f32", 600, 8, np.ones((600, 8)), valid=(600, 3))
    dst = bench.tile("f32", 600, 8, pad=PadValue.ZERO)
    bench.issue("TFILLPAD", dst, src)
    assert bench.findings() == ["E-TFILLPAD-510"]
    filled = (bench.read(dst)[:, 3:] == 0).all(axis=1)
    assert filled[:344].all()  # 255, then 345 modulo 256
    twin = Bench("a5")
    src = twin.tile("f32", 600, 8, np.ones((600, 8)), valid=(600, 3))
    dst = twin.tile("f32", 600, 8, pad=PadValue.MAX)
    twin.issue("TFILLPAD", dst, src)
    assert twin.findings() == []
    assert np.isinf(twin.read(dst)[:, 3:]).all()


def test_a_full_tile_at_the_end_of_ub() -> None:
    """Nothing beyond UB is touched, the result is the input; the library's empty fill there is told."""
    bench = Bench("a2a3")
    src = bench.tile("f32", 1, 16384, [np.arange(16384)], at=0x20000)
    dst = bench.tile("f32", 1, 16384, at=0x20000, pad=PadValue.MIN)
    bench.issue("TFILLPAD_INPLACE", dst, src)
    assert bench.findings() == ["E-TFILLPAD-EMPTY"]
    assert np.array_equal(bench.read(dst)[0], np.arange(16384))
    assert not bench.traced(Mode.WRITE).any()
    lower = Bench("a2a3")
    src = lower.tile("f32", 1, 64, at=0x20000)
    lower.issue("TFILLPAD_INPLACE", lower.tile("f32", 1, 64, at=0x20000, pad=PadValue.MIN), src)
    assert lower.findings() == []


@pytest.mark.parametrize("profile", ("a2a3", "a5"))
def test_in_place_with_two_tiles_copies_nothing(profile: str) -> None:
    bench = Bench(profile)
    src, dst = bench.tile("f32", 1, 8, [np.ones(8)], valid=(1, 8)), bench.tile("f32", 1, 8, pad=PadValue.ZERO)
    bench.issue("TFILLPAD_INPLACE", dst, src)
    assert bench.findings() == ["TFILLPAD-1"]
    assert (bench.read(dst) == 0).all()
