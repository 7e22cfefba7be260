"""Cores of a launch that wait for each other: one runs at a time, and hands over where it must wait.

The first core runs on the caller's own thread, to its end, then the next: a kernel whose cores do not talk to each
other needs no thread at all. Where a core waits for something that another must do first, the core with the lowest
number that can go on does: one whose wait is over, or one that has not begun (which then gets a thread). So two runs
are the same run. Where none can, all of them are stuck: each gets a :class:`Halted`, the first of them with the reason.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass


class Halted(Exception):
    """A core ends where it stands, because the launch has ended elsewhere. Nobody is told of it again."""


@dataclass(frozen=True)
class _Waiting:
    """Why a core does not run: until ``ready()``, or (``turn`` is set) until the others had their turn."""

    ready: Callable[[], bool]
    turn: int = 0


class Baton:
    """Runs the cores of one launch.

    Args:
        count: how many cores there are.
        run: what a core does, by its number. It returns whether the launch goes on.
        leave: called with a core's number before another takes over in the middle of it.
        enter: called with its number when it goes on.
        stuck: called when no core can go on, with the numbers of those that wait.
    """

    def __init__(
        self,
        count: int,
        run: Callable[[int], bool],
        leave: Callable[[int], None] = lambda core: None,
        enter: Callable[[int], None] = lambda core: None,
        stuck: Callable[[Sequence[int]], None] = lambda cores: None,
    ) -> None:
        self._count, self._run = count, run
        self._leave, self._enter, self._stuck = leave, enter, stuck
        self._next = 0
        self._waiting: dict[int, _Waiting] = {}
        self._turn: int | None = None
        self._turns = 0
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self.halted = False

    def run(self, ahead: Callable[[int], int] = lambda core: 0) -> None:
        """All cores, on this thread as far as none waits; returns when they have ended.

        ``ahead`` is asked where none waits: it may run some from a core on by itself, and says how many it did.
        """
        while True:
            if not self._waiting and not self.halted:
                self._next += ahead(self._next)
            core = self._runnable()
            if core is None:
                break
            if core in self._waiting:
                self._hand_over(core, None)
            else:
                self._begin(core)
        for thread in self._threads:
            thread.join()
        # What the cores did may hold the machine, which holds this: without them both go at once, with their memories.
        self._run, self._threads = lambda core: False, []
        self._leave = self._enter = lambda core: None

    def wait(self, core: int, ready: Callable[[], bool]) -> None:
        """Hold a core until ``ready()``; others go on meanwhile.

        Raises:
            Halted: the launch ends instead.
        """
        if self.halted:
            raise Halted
        if not ready():
            self._pause(core, _Waiting(ready))

    def give_way(self, core: int) -> bool:
        """Let the others go on as far as they can: for a core that looks at memory again and again until another has
        written it. Returns whether there was another.

        Raises:
            Halted: the launch ends instead.
        """
        self._turns += 1
        return self._pause(core, _Waiting(lambda: True, self._turns))

    def halt(self) -> None:
        """End the launch: cores that wait are halted, those that have not begun never do."""
        self.halted = True

    def _pause(self, core: int, why: _Waiting) -> bool:
        """Let others run until it is this core's turn again; returns whether one did."""
        self._waiting[core] = why
        other = self._runnable()
        if other != core:
            self._leave(core)
            self._hand_over(other, core)
            self._enter(core)
        del self._waiting[core]
        if self.halted:
            raise Halted
        return other != core

    def _runnable(self) -> int | None:
        """The core that goes on: the first whose wait is over or the next to begin, else who gave way longest ago.

        Where none can, the launch is halted. In a halted launch it is the first that waits, for its end.
        """
        if not self.halted:
            over = [core for core, why in self._waiting.items() if not why.turn and why.ready()]
            fresh = [self._next] if self._next < self._count else []
            if over or fresh:
                return min(over + fresh)
            gave_way = [core for core, why in self._waiting.items() if why.turn]
            if gave_way:
                return min(gave_way, key=lambda core: self._waiting[core].turn)
            if self._waiting:
                self._stuck(sorted(self._waiting))
                self.halted = True
        return min(self._waiting, default=None)

    def _hand_over(self, core: int | None, own: int | None) -> None:
        """Let ``core`` run until the turn comes back to ``own`` (None: the thread that runs the launch)."""
        if core is not None and core not in self._waiting:
            thread = threading.Thread(target=self._run_beside, args=(core,), name=f"core {core}")
            self._threads.append(thread)
            thread.start()
        with self._changed:
            self._turn = core
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._turn == own)

    def _run_beside(self, core: int | None) -> None:
        """What a further thread does: a core, and those that begin after it, until the turn goes to one that waits, or
        none does: then to the thread that runs the launch."""
        with self._changed:
            self._changed.wait_for(lambda: self._turn == core)
        while core is not None and core not in self._waiting:
            self._begin(core)
            core = self._runnable() if self._waiting else None
        with self._changed:
            self._turn = core
            self._changed.notify_all()

    def _begin(self, core: int) -> None:
        self._next = core + 1
        try:
            goes_on = self._run(core)
        except Halted:
            return
        if not goes_on:
            self.halt()
