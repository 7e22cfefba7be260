"""Queries of the launch, and the core's state at its start."""

from __future__ import annotations

import pytest

from ascsim.machine.core import ALL_ONES, Core, CoreState
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
    assert bench.core.state == CoreState(mask=(ALL_ONES, ALL_ONES), counter_mode=False)
    bench.core.state = CoreState(mask=(1, 2), counter_mode=True, pad=7, gm2ub_loops=(2, 1, 0, 0, 0, 0))
    bench.issue("asc_init")
    assert bench.core.state == CoreState(pad=7, gm2ub_loops=(2, 1, 0, 0, 0, 0))
