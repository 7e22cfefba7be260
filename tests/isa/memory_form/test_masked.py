"""What memory-form vector instructions share: repeats, layouts, forms made of others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa import REGISTRY
from ascsim.isa.memory_form.masked import Layout, VectorInstruction, masked_bytes, masked_repeats
from ascsim.machine.core import CoreState
from ascsim.machine.trace import Mode
from harness import Bench

ALL = (1 << 64) - 1
FAMILIES = [d for d in REGISTRY.definitions if isinstance(d, VectorInstruction)]


def state(high: int = ALL, low: int = ALL, counts: bool = False) -> CoreState:
    made = CoreState()
    made.mask, made.counter_mode = (high, low), counts
    return made


@given(count=st.integers(0, 1000), lanes=st.sampled_from((32, 64, 128)), repeat=st.integers(0, 255))
@settings(deadline=None)
def test_counter_mode_covers_the_count_whatever_the_repeats(count: int, lanes: int, repeat: int) -> None:
    found = masked_repeats(state(5, count, True), repeat, lanes)
    assert sum(r.number * int(r.lanes.sum()) for r in found) == count
    assert all(r.lanes.all() for r in found[:-1])


def test_normal_mode_has_the_same_lanes_in_each_repeat() -> None:
    (found,) = masked_repeats(state(0, 0b101), 7, 64)
    assert (found.first, found.number, np.flatnonzero(found.lanes).tolist()) == (0, 7, [0, 2])
    assert masked_repeats(state(ALL, 0), 7, 64) == ()
    assert masked_repeats(state(), 0, 64) == ()


def test_an_element_of_several_lanes_takes_part_with_one_of_them() -> None:
    layout = Layout(2, repeat=16, group=16)
    (covered,) = masked_bytes(state(0, 1 << 40 | 1 << 17), 3, 128, layout)
    assert (covered.offset, covered.length, covered.dims) == (2, 4, ((3, 16),))
    assert layout.elements(128) == 8
    pairs = Layout(4, repeat=8, group=64, times=2)
    assert pairs.elements(64) == 2
    assert pairs.span(64) == 8


def test_blocks_that_lie_apart_span_what_is_between_them() -> None:
    assert Layout(4, block=96).span(64) == 7 * 96 + 32
    assert Layout(4).span(64) == 256
    pieces = masked_bytes(state(), 1, 64, Layout(4, block=96))
    assert [p.offset for p in pieces] == [96 * n for n in range(8)]


@pytest.mark.parametrize("name", ("repeat", "dst_block_stride", "src1_repeat_stride"))
def test_numbers_beyond_their_type_are_refused(name: str) -> None:
    (full,) = (d for d in REGISTRY.by_cpp["vadd"] if d.level == "memory")
    bench = Bench("a2a3")
    values = {o.name: 1 for o in full.inputs[3:]} | {name: 256}
    with pytest.raises(Refused, match=f"{name} is 256"):
        bench.machine.issue(
            bench.core, full, (*(bench.pointer("f32", count=64) for _ in range(3)), *values.values()), 0
        )


@pytest.mark.parametrize("full", FAMILIES, ids=lambda d: f"{d.title}-{d.number}")
def test_a_full_form_has_a_sync_form_that_ends_with_all_pipes(full: VectorInstruction) -> None:
    if not full.cpp.startswith("asc_"):
        return
    forms = [d for d in REGISTRY.by_cpp[f"{full.cpp}_sync"] if d.profiles == full.profiles]
    assert forms
    assert all("PIPE_ALL" in d.doc for d in forms)


def test_a_count_that_ends_within_a_block_touches_no_byte_more() -> None:
    bench = Bench("a2a3")
    src = bench.pointer("f16", np.arange(200))
    dst = bench.pointer("f16", count=200)
    bench.issue("asc_abs", dst, src, 133)
    assert np.flatnonzero(bench.traced(Mode.WRITE)).tolist() == list(range(dst.offset, dst.offset + 266))
    assert np.flatnonzero(bench.traced(Mode.READ)).tolist() == list(range(src.offset, src.offset + 266))


def test_a_masked_source_is_read_where_lanes_take_part() -> None:
    bench = Bench("a2a3")
    src, dst = bench.pointer("f32", np.arange(64)), bench.pointer("f32", count=64)
    bench.issue("set_vector_mask", 0, 0b1001)
    bench.issue("vabs", dst, src, 1, 1, 1, 8, 8)
    assert (np.flatnonzero(bench.traced(Mode.READ)) - src.offset).tolist() == [0, 1, 2, 3, 12, 13, 14, 15]
