"""The order in which cores saw their instructions, and which wait belongs to which set.

A flag is a pair of pipes and an event id. Correct kernels set it and wait for it in turn; then the k-th wait belongs to
the k-th set. Where they do not, each wait takes the newest set before it that no wait has taken, and what is left over
is paired in order with later sets (a wait before its set): so one call too many or too few stays one fault, and does
not shift all pairs after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ascsim.machine.trace import Kind, Trace
from ascsim.machine.words import N_PIPES


class Visit(NamedTuple):
    """The rows, core by core of each launch: ``order`` of rows, ``starts`` of the cores in it (and the end).

    ``order`` is empty where it is the order of the rows themselves.
    """

    order: np.ndarray
    starts: np.ndarray
    launch: np.ndarray
    """For each core visited: which launch (a count from 0; rows outside any launch have counts of their own)."""
    core: np.ndarray

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """The rows at positions."""
        return self.order[positions] if len(self.order) else positions


def visit_of(trace: Trace) -> Visit:
    """The rows of a trace, core by core.

    LAUNCH_BEGIN opens the rows of a core; its number says which launch that core belongs to.
    """
    n = len(trace.rows)
    marks = trace.marks
    core, begins = trace.rows["core"], marks[trace.kind[marks] == Kind.LAUNCH_BEGIN]
    ends = marks[trace.kind[marks] == Kind.LAUNCH_END] + 1
    cuts = sorted({0, n, *begins.tolist(), *ends.tolist(), *trace.turns.tolist()})
    numbers = dict(zip(begins.tolist(), trace.rows["arg"][begins].tolist(), strict=True))
    closed = set(ends.tolist())
    groups: list[list[tuple[int, int]]] = []
    launch_of, core_of = [], []
    running: dict[int, int] = {}  # core: its group
    launch, number = 0, None
    for low, high in pairwise(cuts):
        here = int(core[low])
        if low in closed:  # between launches: nothing before is concurrent with what follows
            running.pop(int(core[low - 1]), None)
        if low in numbers and numbers[low] != number:
            launch, number = launch + 1, numbers[low]
        if low in numbers or here not in running:
            if low not in numbers:
                launch, number = launch + 1, None
            running[here] = len(groups)
            groups.append([])
            launch_of.append(launch)
            core_of.append(here)
        groups[running[here]].append((low, high))
    pieces = [piece for group in groups for piece in group]
    starts = np.cumsum([0, *(sum(high - low for low, high in group) for group in groups)])
    order = np.zeros(0, np.int32)
    if any(a[1] != b[0] for a, b in pairwise(pieces)):
        order = np.concatenate([np.arange(low, high, dtype=np.int32) for low, high in pieces])
    return Visit(order, *(np.array(numbers, np.int64) for numbers in (starts, launch_of, core_of)))


@dataclass(frozen=True)
class Flags:
    """Every flag operation in visiting order (columns of one length).

    ``core`` is the index into :class:`Visit`; ``partner`` the number of the counterpart here, or -1; ``before``, of a set
    that finds its flag still set, the number of the set before it, else -1.
    """

    position: np.ndarray
    row: np.ndarray
    is_set: np.ndarray
    source: np.ndarray
    target: np.ndarray
    event: np.ndarray
    core: np.ndarray
    partner: np.ndarray
    before: np.ndarray

    @property
    def doubled(self) -> np.ndarray:
        """The sets that find their flag still set."""
        return self.before >= 0

    def between(self, core: int, source: int, target: int) -> np.ndarray:
        """Numbers of the operations of a pipe pair on one core, in order."""
        low, high = np.searchsorted(self.core, (core, core + 1))
        here = np.arange(low, high)
        return here[(self.source[low:high] == source) & (self.target[low:high] == target)]


def pair_flags(trace: Trace, row: np.ndarray, position: np.ndarray, visit: Visit) -> Flags:
    """Pair flag operations, given by their rows and positions in visiting order."""
    n, number = len(row), row.dtype
    is_set = trace.kind[row] == Kind.SET_FLAG
    pipe, pipe2, event = trace.fields(row, "pipe", "pipe2", "arg")
    source, target = np.where(is_set, pipe, pipe2), np.where(is_set, pipe2, pipe)
    counts = np.diff(np.searchsorted(position, visit.starts.astype(position.dtype)))
    core = np.repeat(np.arange(len(counts), dtype=np.int32), counts)

    partner, before = np.full(n, -1, number), np.full(n, -1, number)
    flag = _flag_numbers(source, target, event)
    order = np.argsort(flag, kind="stable").astype(number)  # of one flag by core, for the operations are
    flag, of_core = flag[order], core[order]
    fresh = np.ones(n, bool)
    fresh[1:] = (of_core[1:] != of_core[:-1]) | (flag[1:] != flag[:-1])
    begins = np.append(np.flatnonzero(fresh), n)
    # The turn of each operation in its flag's sequence; sets have even turns where sets and waits alternate.
    is_odd = np.arange(n) % 2 != np.repeat(begins[:-1] % 2 != 0, np.diff(begins))
    regular = is_set[order] != is_odd
    irregular = np.zeros(len(begins) - 1, bool)
    if n:
        irregular = ~np.logical_and.reduceat(regular, begins[:-1])
        waits = np.flatnonzero(is_odd & regular & ~np.repeat(irregular, np.diff(begins)))
        partner[order[waits]], partner[order[waits - 1]] = order[waits - 1], order[waits]
    for index in np.flatnonzero(irregular):
        _pair_irregular(order[begins[index] : begins[index + 1]].tolist(), is_set, partner, before)
    return Flags(position, row, is_set, source, target, event, core, partner, before)


def _flag_numbers(source: np.ndarray, target: np.ndarray, event: np.ndarray) -> np.ndarray:
    """A number for each flag: of 16 bits, by which long traces are sorted several times faster, where that is enough."""
    pairs = source.astype(np.uint16) * N_PIPES + target
    if event.max(initial=0) < 512 and pairs.max(initial=0) < 128:
        return pairs << 9 | event.astype(np.uint16)
    return pairs.astype(np.int64) << 32 | event


def _pair_irregular(numbers: list[int], is_set: np.ndarray, partner: np.ndarray, before: np.ndarray) -> None:
    pending: list[int] = []
    lonely: list[int] = []
    for number in numbers:
        if is_set[number]:
            if pending:
                before[number] = pending[-1]
            pending.append(number)
        elif pending:
            partner[number] = pending.pop()
            partner[partner[number]] = number
        else:
            lonely.append(number)
    for wait in lonely:
        later = next((number for number in pending if number > wait), None)
        if later is not None:
            pending.remove(later)
            partner[wait], partner[later] = later, wait
