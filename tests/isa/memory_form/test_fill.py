"""The vector mask and the fill that it governs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.machine.operands import Pointer
from ascsim.machine.trace import Mode
from harness import Bench

ALL = (1 << 64) - 1


def filled(bench: Bench, kind: str, value: float, *scalars: int) -> np.ndarray:
    """The bytes that changed of a UB of ones, after a fill at 4096."""
    bench.memory()[:] = 1
    dst = bench.pointer(kind, at=4096)
    bench.issue("vector_dup", Pointer(dst.space, 4096, dst.dtype), value, *scalars)
    assert np.array_equal(bench.memory() != 1, bench.traced(Mode.WRITE))
    return np.flatnonzero(bench.memory() != 1) - 4096


def test_all_lanes_of_a_repeat() -> None:
    bench = Bench("a2a3")
    changed = filled(bench, "f32", -2.5, 1, 1, 1, 8, 0)
    assert changed.tolist() == list(range(256))
    assert (bench.memory()[4096:4352].view(np.float32) == -2.5).all()


def test_the_low_word_masks_64_lanes_and_the_high_word_the_next_64() -> None:
    bench = Bench("a2a3")
    bench.issue("set_vector_mask", 0b1, 0b101 << 62)
    lanes = sorted({int(b) // 2 for b in filled(bench, "i16", 7, 1, 1, 1, 8, 0)})
    assert lanes == [62, 64]  # bit 64 of 0b101 << 62 does not fit a word
    bench = Bench("a2a3")
    bench.issue("set_vector_mask", ALL, 0)
    assert not filled(bench, "i32", 7, 1, 1, 1, 8, 0).size


@pytest.mark.parametrize("kind", ("f16", "bf16", "i16", "u16", "f32", "i32", "u32"))
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_masks_strides_and_repeats(kind: str, data: st.DataObject) -> None:
    high, low = data.draw(st.integers(0, ALL)), data.draw(st.integers(0, ALL))
    repeat = data.draw(st.integers(0, 5))
    block_stride, repeat_stride = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 40))
    bench = Bench("a2a3")
    size = bench.pointer(kind).dtype.size  # type: ignore[union-attr]
    bench.issue("set_vector_mask", high, low)
    changed = filled(bench, kind, 5, repeat, block_stride, 1, repeat_stride, 0)
    want = {
        32 * (r * repeat_stride + lane * size // 32 * block_stride) + lane * size % 32 + byte
        for r in range(repeat)
        for lane in range(256 // size)
        if ((high << 64 | low) >> lane) & 1
        for byte in range(size)
    }
    assert set(changed.tolist()) == want


@pytest.mark.parametrize(("kind", "size"), [("f32", 4), ("f16", 2)])
@pytest.mark.parametrize("count", (0, 1, 63, 64, 65, 128, 300))
def test_in_counter_mode_the_low_word_counts_elements_and_repeats_are_ignored(kind: str, size: int, count: int) -> None:
    bench = Bench("a2a3")
    bench.issue("set_mask_count")
    bench.issue("asc_set_vector_mask", 0, count)
    assert filled(bench, kind, 3, 255, 1, 1, 8, 0).tolist() == list(range(count * size))
    bench.issue("set_mask_norm")
    assert len(bench.core.state.mask) == 2
    assert not bench.core.state.counter_mode


def test_minus_one_is_a_full_mask() -> None:
    bench = Bench("a5")
    bench.issue("set_vector_mask", 0, 0)
    bench.issue("set_vector_mask", -1, -1)
    assert bench.core.state.mask == (ALL, ALL)


def test_more_than_255_repeats_are_refused() -> None:
    with pytest.raises(Refused, match="repeat is 256"):
        Bench("a2a3").issue("vector_dup", Bench("a2a3").pointer("f32"), 1.0, 256, 1, 1, 8, 0)
