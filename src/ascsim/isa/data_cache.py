"""The scalar unit's data cache: writing lines back and dropping them.

The scalar unit reads and writes global memory through a cache of the core's own, in lines of 64 bytes; copies go past it.
Here the cache has no content of its own: what was read stale is found from the trace (:mod:`ascsim.checks.data_cache`).

Sources: asc-devkit C-API cache_ctrl (pages and the code behind them), guide "Scalar reads and writes data".
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from ascsim.isa.definition import CHIPS, In, Sort, plain_instruction
from ascsim.machine.core import Core, Touch
from ascsim.machine.operands import Region
from ascsim.machine.trace import CACHE_LINE, Kind, Mode
from ascsim.machine.words import Pipe, Space

_PAGE = "asc-devkit C-API cache_ctrl/asc_dcci"
_NOTES = ("The second time in a row that a core asks for one line it is taken to poll: other cores go on first.",)


def _dropped(start: int, length: int) -> list[Touch]:
    """What the trace says of a call: the bytes of global memory whose lines are dropped; none for all."""
    return [Touch(0, Mode.WRITE, Region(Space.STATE, start, length, (), np.dtype(np.uint8)))]


def _line(core: Core, call: SimpleNamespace) -> list[Touch]:
    return _dropped(call.dst.offset // CACHE_LINE * CACHE_LINE, CACHE_LINE)


@plain_instruction(
    "asc_dcci_single", cpp="asc_dcci_single", aliases=("ascsim_dcci_single",), asm=(), profiles=CHIPS, core="any",
    operands=(In("dst", Sort.POINTER, None, space=Space.GM, align=1, doc="an address in the line"),), level="system",
    row=lambda core, call: (Pipe.S, Kind.CACHE, 0, 0), touched=_line, notes=_NOTES, sources=(_PAGE,),
)  # fmt: skip
def asc_dcci_single(core: Core, call: SimpleNamespace) -> None:
    """Write one line of the data cache back to global memory and drop it: the next scalar read of it sees what others wrote."""
    core.machine.poll(core, call.dst.offset // CACHE_LINE)


def _entire(name: str, which: str, *aliases: str) -> None:
    @plain_instruction(
        name, cpp=name, aliases=aliases, asm=(), profiles=CHIPS, core="any", level="system",
        row=lambda core, call: (Pipe.S, Kind.CACHE, 0, 0), touched=lambda core, call: _dropped(0, 0), notes=_NOTES,
        doc=f"Write {which} of the data cache back to memory and drop them.", sources=(_PAGE,),
    )  # fmt: skip
    def entire(core: Core, call: SimpleNamespace) -> None:
        core.machine.poll(core, -1)


_entire("asc_dcci_entire_all", "all lines")
_entire("asc_dcci_entire_out", "all lines of global memory", "ascsim_dcci_entire")
