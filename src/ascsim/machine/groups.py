"""Steps of an expansion that run row after row, and when they may run all rows at once.

A chip's library expands a tile instruction into a loop over rows. The machine runs each step over all rows as one array
operation where nobody can tell the difference; where rows share bytes it runs the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ascsim.machine.operands import Region
from ascsim.machine.trace import Mode

if TYPE_CHECKING:
    from ascsim.machine.core import Core, Instruction

Interval = tuple[int, int]


class Touch(NamedTuple):
    """One operand's access: which operand, how, which bytes; ``mask`` is a lane mask of a register store.

    ``used`` is False for bytes that are fetched but have no part in the result: they are in the trace, but no row of a
    group depends on them.
    """

    operand: int
    mode: int
    region: Region
    align: int = 0
    mask: np.ndarray | None = None
    used: bool = True


class Step(NamedTuple):
    """One instruction of an expansion. ``rows``/``strides`` repeat it: argument ``i`` moves ``strides[i]`` bytes a row."""

    instruction: Instruction
    args: tuple
    rows: int = 1
    strides: tuple[int, ...] = ()


@dataclass
class Group:
    """Steps that run row after row: ``for each row: step, step, ...``.

    The machine runs each step over all rows at once where that cannot be told from the chip's order: no step writes
    what another row reads, except the ``private`` window, a scratch that each row fills before it reads it.
    """

    steps: list[Step]
    private: tuple[int, int, int] | None = None
    """(space, start, length) of the scratch."""


def moved(step: Step, row: int) -> tuple:
    """The step's arguments for one row."""
    return tuple(
        arg._replace(offset=arg.offset + row * stride) if stride else arg
        for arg, stride in zip(step.args, step.strides, strict=True)
    )


def over_rows(touch: Touch, step: Step) -> Region:
    """The bytes that an operand touches in all rows."""
    if step.rows == 1:
        return touch.region
    return touch.region.over(step.rows, step.strides[touch.operand])


def redirected(touch: Touch, private: tuple[int, int, int]) -> Touch:
    """A touch of the private scratch, moved to the copy that each row has of it (space -1)."""
    region = touch.region
    if not _inside(region, private):
        return touch
    (rows, _), *inner = region.dims
    return touch._replace(
        region=region._replace(space=-1, start=region.start - private[1], dims=((rows, private[2]), *inner))
    )


def rows_are_independent(core: Core, group: Group) -> bool:
    """True when no row reads what another row writes, and rows write apart.

    In the private window each row may read what it has written itself before, and what nobody writes.
    """
    shared: list[tuple[int, int, Interval]] = []
    scratch_writes: list[Interval] = []
    scratch_leftovers: list[Interval] = []
    for step, touch in _touches(core, group):
        region = over_rows(touch, step)
        interval = region.bounds()
        if not group.private or not _overlaps(region, group.private):
            if touch.mode == Mode.WRITE and not _rows_apart(step, touch):
                return False
            shared.append((touch.mode, region.space, interval))
        elif not _inside(region, group.private) or step.strides[touch.operand] or touch.mask is not None:
            return False
        elif touch.mode == Mode.WRITE:
            if touch.region.dims:
                return False
            scratch_writes.append(interval)
        else:
            scratch_leftovers += _without(interval, scratch_writes)
    if any(_meets(left, written) for left in scratch_leftovers for written in scratch_writes):
        return False
    return not any(
        mode == Mode.WRITE and number != other and space == other_space and _meets(interval, other_interval)
        for number, (mode, space, interval) in enumerate(shared)
        for other, (_, other_space, other_interval) in enumerate(shared)
    )


def _touches(core: Core, group: Group) -> Iterator[tuple[Step, Touch]]:
    """Each step's touches in order, reads before writes."""
    for step in group.steps:
        for touch in sorted(step.instruction.touches(core, step.args), key=lambda t: t.mode):
            if touch.used:
                yield step, touch


def _rows_apart(step: Step, touch: Touch) -> bool:
    low, high = touch.region.bounds()
    return step.rows == 1 or abs(step.strides[touch.operand]) >= high - low


def _inside(region: Region, window: tuple[int, int, int]) -> bool:
    low, high = region.bounds()
    return region.space == window[0] and low >= window[1] and high <= window[1] + window[2]


def _overlaps(region: Region, window: tuple[int, int, int]) -> bool:
    return region.space == window[0] and _meets(region.bounds(), (window[1], window[1] + window[2]))


def _meets(a: Interval, b: Interval) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _without(interval: Interval, covered: list[Interval]) -> list[Interval]:
    """The parts of the interval that none of ``covered`` covers."""
    low, high = interval
    left = []
    for start, end in sorted(covered):
        if start > low:
            left.append((low, min(start, high)))
        low = max(low, end)
    if low < high:
        left.append((low, high))
    return [(a, b) for a, b in left if a < b]
