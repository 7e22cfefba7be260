"""One pipe held back: its instructions take effect when something waits for them, and no sooner (``--order late``).

Instructions otherwise take effect in program order, so that a kernel without a wait that it needs gives its right numbers
here, and now and then on a chip. With a pipe held back it gives wrong ones, and always the same.

=============================  ================================================
held back until                which instructions
=============================  ================================================
a wait for a flag of the pipe  those before the flag was set
a lock of another pipe         those before the pipe last unlocked the mutex
a signal to other cores        all
a barrier on all pipes         all
the end of the core            all
=============================  ================================================

What is done then is what a chip would do at the latest: the instruction reads its sources then, too. Its operands and what
the core keeps for it (loop sizes, padding) are those of its own time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ascsim.machine.words import Pipe

if TYPE_CHECKING:
    from ascsim.machine.trace import Sink

PIPES = (Pipe.MTE2, Pipe.MTE3)
"""The pipes that can be held back: those whose instructions yield nothing to the scalar unit."""

_chosen: Pipe | None = None


def choose(pipe: Pipe | None) -> None:
    """Hold this pipe back in machines that are made from now on, or none.

    Raises:
        ValueError: it cannot be held back.
    """
    global _chosen
    if pipe is not None and pipe not in PIPES:
        raise ValueError(f"{Pipe(pipe).name} cannot be held back, only {', '.join(p.name for p in PIPES)}")
    _chosen = pipe


def chosen() -> Pipe | None:
    """The pipe to hold back."""
    return _chosen


class _Waiting(NamedTuple):
    row: int
    perform: Callable[[], object]


class Held:
    """The instructions of one core's pipe that are still to take effect."""

    def __init__(self, pipe: Pipe, sink: Sink) -> None:
        self.pipe = pipe
        self._sink = sink
        self._waiting: deque[_Waiting] = deque()
        self._given = 0
        self._done = 0
        self._sets: dict[tuple[int, int], deque[int]] = {}
        self._unlocked: dict[int, int] = {}

    def hold(self, row: int, perform: Callable[[], object]) -> None:
        """Keep an instruction, whose row this is."""
        self._waiting.append(_Waiting(row, perform))
        self._given += 1

    def meet(self, fields: tuple[int, int, int, int, int], row: int) -> None:
        """Carry out what a row of synchronisation waits for. ``fields`` are those of :class:`~.core.Instruction`."""
        pipe, kind, pipe2, arg, _ = fields
        from ascsim.machine.trace import Kind  # here: a command that chooses a pipe needs no NumPy yet

        if kind == Kind.SET_FLAG and pipe == self.pipe:
            self._sets.setdefault((pipe2, arg), deque()).append(self._given)
        elif kind == Kind.WAIT_FLAG and pipe2 == self.pipe:
            sets = self._sets.get((pipe, arg))
            if sets:
                self._release(sets.popleft(), row)
        elif kind == Kind.UNLOCK and pipe == self.pipe:
            self._unlocked[arg] = self._given
        elif kind == Kind.LOCK and pipe != self.pipe and pipe2 == 0:
            self._release(self._unlocked.get(arg, 0), row)
        elif (kind == Kind.BARRIER and pipe == Pipe.ALL) or (kind == Kind.ARRIVE and pipe == self.pipe):
            self.release(row)

    def release(self, row: int) -> None:
        """Carry out all that is held, at a row."""
        self._release(self._given, row)

    def _release(self, count: int, row: int) -> None:
        rows = []
        while self._done < count:
            self._done += 1
            rows.append(self._waiting[0].row)
            self._waiting.popleft().perform()
        if rows:
            self._sink.note("held", {"rows": rows, "until": row})
