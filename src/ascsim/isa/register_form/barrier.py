"""The barrier inside a vector function."""

from __future__ import annotations

from types import SimpleNamespace

from ascsim.isa.definition import A5, Choice, plain_instruction
from ascsim.isa.register_form.words import MemoryBarrier, member
from ascsim.machine.core import Core
from ascsim.machine.trace import Kind
from ascsim.machine.words import Pipe


@plain_instruction(
    "mem_bar", cpp="asc_mem_bar", aliases=("mem_bar",), profiles=A5, pipe=Pipe.V,
    operands=(Choice("mode", MemoryBarrier, doc="which accesses wait for which"),),
    rules=(member("mode", MemoryBarrier),),
    row=lambda core, call: (Pipe.V, Kind.MEM_BAR, 0, int(call.mode)), row_only=True,
    sources=("asc-devkit C-API reg/sync_control/asc_mem_bar", "pto-isa docs/isa mem-bar"),
    notes=(
        "Two accesses of one register stay in order without it. For a vector store before a vector load the mode is "
        "VST_VLD; one guide shows VST_LD, which is a vector store before a scalar load.",
    ),
)  # fmt: skip
def mem_bar(core: Core, call: SimpleNamespace) -> None:
    """Within a vector function, hold accesses to UB of the target kind back until those of the source kind are done.

    It is needed between accesses of the same bytes through different registers. At the end of the vector function all
    are done.
    """
