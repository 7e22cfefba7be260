"""Steps of an expansion that run row after row, and when they may run all rows at once.

A chip's library expands a tile instruction into a loop over rows. The machine runs each step over all rows as one array
operation where nobody can tell the difference; where rows share bytes it runs the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ascsim.machine.operands import Region
from ascsim.machine.trace import Mode

if TYPE_CHECKING:
    from ascsim.machine.core import Instruction

Interval = tuple[int, int]
Interval3 = tuple[int, int, int]
"""(space, start, length)"""


class Touch(NamedTuple):
    """One operand's access: which operand, how, which bytes; ``mask`` is a lane mask of a register store.

    ``used`` is False for bytes that are fetched but have no part in the result: they are in the trace, but no row of a
    group depends on them. ``register`` is a number of the vector register that is loaded or stored, or, where the access
    is to core state, of the unaligned register.
    """

    operand: int
    mode: int
    region: Region
    align: int = 0
    mask: np.ndarray | None = None
    used: bool = True
    register: int = 0


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

    @property
    def rows(self) -> int:
        """How often the steps run."""
        return max(step.rows for step in self.steps)


def moved(step: Step, row: int) -> tuple:
    """The step's arguments for one row."""
    return tuple(
        arg._replace(offset=arg.offset + row * stride) if stride else arg
        for arg, stride in zip(step.args, step.strides, strict=True)
    )


def over_rows(touch: Touch, step: Step) -> Touch:
    """What an operand touches in all rows."""
    if step.rows == 1:
        return touch
    space, start, length, dims, kind = touch.region
    region = Region(space, start, length, ((step.rows, step.strides[touch.operand]), *dims), kind)
    return Touch(touch.operand, touch.mode, region, touch.align, touch.mask, touch.used)


def redirected(touch: Touch, private: tuple[int, int, int]) -> Touch:
    """A touch of the private scratch, moved to the copy that each row has of it (space -1)."""
    region = touch.region
    if not _inside(region, private):
        return touch
    (rows, _), *inner = region.dims
    return touch._replace(
        region=region._replace(space=-1, start=region.start - private[1], dims=((rows, private[2]), *inner))
    )


class _Access(NamedTuple):
    """Bytes that one operand touches in the first row, and how far they move from row to row."""

    mode: int
    space: int
    low: int
    high: int
    stride: int


def rows_are_independent(touched: Sequence[tuple[Step, Sequence[Touch]]], private: Interval3 | None) -> bool:
    """True when no row reads what another row writes, and rows write apart.

    ``touched`` are the steps with what they touch in the first row. In the private window each row may read what it has
    written itself before, and what nobody writes.
    """
    rows = max(step.rows for step, _ in touched)
    shared: list[_Access] = []
    scratch_writes: list[Interval] = []
    scratch_leftovers: list[Interval] = []
    for step, touches in touched:
        for touch in sorted(touches, key=_mode):
            if not touch.used:
                continue
            region = touch.region
            low, high = region.bounds()
            stride = step.strides[touch.operand] if step.rows > 1 else 0
            access = _Access(touch.mode, region.space, low, high, stride)
            if private is None or region.space != private[0] or not _meets(_span(access, rows), _window(private)):
                shared.append(access)
            elif not _inside(region, private) or stride or touch.mask is not None:
                return False
            elif touch.mode == Mode.WRITE:
                if region.dims:
                    return False
                scratch_writes.append((low, high))
            else:
                scratch_leftovers += _without((low, high), scratch_writes)
    if any(_meets(left, written) for left in scratch_leftovers for written in scratch_writes):
        return False
    return not any(
        write.mode == Mode.WRITE and write.space == other.space and _rows_meet(write, other, rows)
        for write in shared
        for other in shared
    )


def _rows_meet(a: _Access, b: _Access, rows: int) -> bool:
    """True when some row of ``a`` touches bytes of another row of ``b``."""
    if a.stride != b.stride:
        return _meets(_span(a, rows), _span(b, rows))
    step = abs(a.stride)
    if not step:
        return _meets((a.low, a.high), (b.low, b.high))
    # Rows that are k apart meet when k * step lies between these; k = 0 is one row with itself.
    least, most = (b.low - a.high) // step + 1, (b.high - a.low - 1) // step
    least, most = max(least, 1 - rows), min(most, rows - 1)
    return least < most or (least == most and least != 0)


def _span(access: _Access, rows: int) -> Interval:
    reach = (rows - 1) * access.stride
    return access.low + min(reach, 0), access.high + max(reach, 0)


def _window(private: Interval3) -> Interval:
    return private[1], private[1] + private[2]


def _mode(touch: Touch) -> int:
    return touch.mode


def _inside(region: Region, window: tuple[int, int, int]) -> bool:
    low, high = region.bounds()
    return region.space == window[0] and low >= window[1] and high <= window[1] + window[2]


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
