"""Synchronisation that the tool inserts, for kernels written without flags (PTO's Auto mode, ``--sync auto``).

Before an instruction runs, every earlier instruction whose bytes it depends on and which no flag or barrier has ordered yet
gets one: a set/wait pair between two pipes, a barrier within one. What is inserted goes into the trace as rows of its
own, so that the checks judge it like the user's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ascsim.machine.trace import Kind, Mode, pack_row

if TYPE_CHECKING:
    from ascsim.machine.core import Core, Touch

INSERTED = 0xFFFF
"""Mnemonic number of inserted rows."""


class _Access(NamedTuple):
    order: int
    pipe: int
    mode: int
    space: int
    low: int
    high: int


@dataclass
class _CoreHistory:
    """What one core's pipes have touched and know of each other. ``known[p][q]`` counts q's instructions p is sure of."""

    accesses: list[_Access] = field(default_factory=list)
    issued: dict[int, int] = field(default_factory=dict)
    known: dict[int, dict[int, int]] = field(default_factory=dict)
    next_event: dict[tuple[int, int], int] = field(default_factory=dict)


class AutoSync:
    """Inserts flags and barriers; one for a machine."""

    def __init__(self) -> None:
        self._cores: dict[int, _CoreHistory] = {}

    def forget(self, core: int) -> None:
        """A core has come to its end."""
        self._cores.pop(core, None)

    def before(self, core: Core, fields: tuple[int, int, int, int, int], touches: Sequence[Touch], site: int) -> None:
        """Order the instruction with these touches after all it depends on."""
        pipe, kind = fields[0], fields[1]
        if kind != Kind.INSTRUCTION:
            return
        history = self._cores.setdefault(core.index, _CoreHistory())
        known = history.known.setdefault(pipe, {})
        mine = [(t.mode, t.region.space, *t.region.bounds()) for t in touches if not t.region.is_empty()]
        needed: dict[int, int] = {}
        for access in history.accesses:
            if access.order <= known.get(access.pipe, 0):
                continue
            if access.pipe == pipe and _ordered(core, pipe):
                continue
            for mode, space, low, high in mine:
                shares = space == access.space and low < access.high and access.low < high
                if shares and Mode.WRITE in (mode, access.mode):
                    needed[access.pipe] = max(needed.get(access.pipe, 0), access.order)
        for source in sorted(needed):
            self._order(core, history, source, pipe, site)
        history.issued[pipe] = history.issued.get(pipe, 0) + 1
        order = history.issued[pipe]
        history.accesses = [a for a in history.accesses if not _superseded(a, pipe, mine)]
        history.accesses += [_Access(order, pipe, *one) for one in mine]

    def _order(self, core: Core, history: _CoreHistory, source: int, target: int, site: int) -> None:
        if source == target:
            self._row(core, target, Kind.BARRIER, 0, 0, site)
        else:
            event = history.next_event.get((source, target), 0)
            history.next_event[source, target] = (event + 1) % core.profile.event_ids
            self._row(core, source, Kind.SET_FLAG, target, event, site)
            self._row(core, target, Kind.WAIT_FLAG, source, event, site)
        known = history.known.setdefault(target, {})
        for pipe, count in history.known.get(source, {}).items():
            known[pipe] = max(known.get(pipe, 0), count)
        known[source] = history.issued.get(source, 0)

    def _row(self, core: Core, pipe: int, kind: Kind, pipe2: int, event: int, site: int) -> None:
        machine = core.machine
        machine.note_once(INSERTED, "mnemonic", {"id": INSERTED, "name": "(inserted)"})
        row = machine.sink.append(
            pack_row(core.index, pipe, kind, INSERTED, 0, pipe2, -1, event, site, 1, machine.site_flags, 0, 0), b""
        )
        if core.held is not None:
            core.held.meet((pipe, kind, pipe2, event, 1), row)


def _ordered(core: Core, pipe: int) -> bool:
    from ascsim.machine.words import Pipe

    return Pipe(pipe).name in core.profile.ordered_pipes


def _superseded(access: _Access, pipe: int, mine: list[tuple[int, int, int, int]]) -> bool:
    """An earlier access that the new one covers wholly with a write of the same pipe need not be remembered."""
    return access.pipe == pipe and any(
        mode == Mode.WRITE and space == access.space and low <= access.low and access.high <= high
        for mode, space, low, high in mine
    )
