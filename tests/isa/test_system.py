"""Queries of the launch, and the core's state at its start."""

from __future__ import annotations

import pytest

from ascsim.machine.core import ALL_ONES, Core
from harness import Bench


@pytest.mark.parametrize("profile", ("a2a3", "a5", "cpu"))
@pytest.mark.parametrize("prefix", ("", "asc_"))
def test_each_block_knows_its_number_and_how_many_there_are(profile: str, prefix: str) -> None:
    bench = Bench(profile)
    bench.machine.blocks = 5
    for block in (0, 4):
        bench.core = Core(bench.machine, block, block)
        assert bench.issue(f"{prefix}get_block_idx") == block
        assert bench.issue(f"{prefix}get_block_num") == 5


@pytest.mark.parametrize("profile", ("a2a3", "a5"))
def test_init_sets_the_mask_and_leaves_the_copies_registers(profile: str) -> None:
    bench = Bench(profile)
    state = bench.core.state
    assert (state.mask, state.counter_mode) == ((ALL_ONES, ALL_ONES), False)
    state.mask, state.counter_mode, state.pad, state.gm2ub_loops = (1, 2), True, 7, (2, 1, 0, 0, 0, 0)
    assert state.mask == (1, 2)
    bench.issue("asc_init")
    assert (state.mask, state.counter_mode) == ((ALL_ONES, ALL_ONES), False)
    assert (state.pad, state.gm2ub_loops) == (7, (2, 1, 0, 0, 0, 0))


def test_a_vector_core_knows_its_place_in_its_block():
    bench = Bench("a2a3")
    assert (bench.issue("asc_get_sub_block_id"), bench.issue("asc_get_sub_block_num")) == (0, 1)
    bench.core.subblock, bench.machine.subblocks = 1, 2
    assert (bench.issue("asc_get_sub_block_id"), bench.issue("asc_get_sub_block_num")) == (1, 2)
    bench.core.side = "aic"
    assert bench.issue("asc_get_sub_block_num") == 1
    assert bench.issue("asc_get_core_id") == bench.core.index
    assert bench.issue("asc_get_arch_ver") == 0x220


def test_an_address_on_the_chip_is_an_offset():
    assert Bench("a5").issue("asc_get_phy_buf_addr", 4096) == 4096
