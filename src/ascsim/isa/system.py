"""Queries of the launch, and the core's initial state."""

from __future__ import annotations

from types import SimpleNamespace

from ascsim.isa.definition import CHIPS, plain_instruction
from ascsim.machine.core import ALL_ONES, Core


@plain_instruction(
    "get_block_idx", cpp="get_block_idx", aliases=("asc_get_block_idx",), result="int64_t", level="system", core="any",
    sources=("asc-devkit C-API sys_var/asc_get_block_idx",),
)  # fmt: skip
def get_block_idx(core: Core, call: SimpleNamespace) -> int:
    """The number of this block within the launch, from 0."""
    return core.block


@plain_instruction(
    "get_block_num", cpp="get_block_num", aliases=("asc_get_block_num",), result="int64_t", level="system", core="any",
    sources=("asc-devkit C-API sys_var/asc_get_block_num",),
)  # fmt: skip
def get_block_num(core: Core, call: SimpleNamespace) -> int:
    """How many blocks the launch has."""
    return core.machine.blocks


@plain_instruction(
    "asc_init", cpp="asc_init", asm=(), profiles=CHIPS, level="system",
    notes=("The pad value and the loop registers of copies keep what they held.",),
    sources=("asc-devkit C-API misc/asc_init and the code behind it",),
)  # fmt: skip
def asc_init(core: Core, call: SimpleNamespace) -> None:
    """Bring a vector core's state to its start: atomics off, mask mode normal, vector mask all ones."""
    core.state.counter_mode = False
    core.state.mask = (ALL_ONES, ALL_ONES)
