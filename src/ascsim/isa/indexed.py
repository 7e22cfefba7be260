"""Moves by index: elements that go to, or come from, places that data says.

What such a move touches is known when it runs. The trace has the bytes as bursts, or as 256-byte windows with a mask where
those are fewer. Beyond 1000 of them the smallest gaps between them count as touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ascsim.isa.steps import Move
from ascsim.machine.core import Core, Step, Touch
from ascsim.machine.operands import REGISTER_BYTES, GlobalTensor, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space

MOST_RECORDS = 1000
"""Accesses of one operand."""
BYTE = np.dtype(np.uint8)
NOTHING = -1
"""In place of an address: the element is not moved (written), or is zero (read)."""


class Places(NamedTuple):
    """Where elements of ``size`` bytes go, and where they come from: addresses, one an element, in the chip's order."""

    size: int
    to: np.ndarray
    source: np.ndarray


def touched(space: int, starts: np.ndarray, size: int) -> list[tuple[Region, np.ndarray | None]]:
    """Regions, some with a mask, that hold the bytes of elements at these addresses."""
    starts = np.unique(starts[starts != NOTHING])
    if not starts.size:
        return []
    gaps = starts[1:] - starts[:-1] - size
    breaks = np.flatnonzero(gaps > 0)
    windows = np.unique(np.concatenate([starts, starts + size - 1]) // REGISTER_BYTES)
    if windows.size <= min(MOST_RECORDS, breaks.size):
        return _windows(space, starts, size)
    if breaks.size >= MOST_RECORDS:
        breaks = np.sort(breaks[np.argsort(gaps[breaks], kind="stable")[-MOST_RECORDS + 1 :]])
    heads = starts[np.concatenate([[0], breaks + 1])]
    tails = starts[np.concatenate([breaks, [starts.size - 1]])] + size
    return [(Region(space, int(a), int(b - a), (), BYTE), None) for a, b in zip(heads, tails, strict=True)]


def _windows(space: int, starts: np.ndarray, size: int) -> list[tuple[Region, np.ndarray | None]]:
    every = np.unique((starts[:, None] + np.arange(size)).ravel())
    numbers = every // REGISTER_BYTES
    found: list[tuple[Region, np.ndarray | None]] = []
    begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    for begin, end in pairwise([*begins.tolist(), every.size]):
        inside = every[begin:end]
        first, last = int(inside[0]), int(inside[-1])
        mask = np.zeros(REGISTER_BYTES, np.uint8)
        mask[inside - first] = 1
        found.append((Region(space, first, last - first + 1, (), BYTE), mask))
    return found


def touches_of(operand: int, mode: Mode, space: int, starts: np.ndarray, size: int) -> list[Touch]:
    """:func:`touched` as an operand's accesses."""
    return [Touch(operand, mode, region, 0, mask) for region, mask in touched(space, starts, size)]


def space_of(operand: Tile | GlobalTensor) -> int:
    """The memory that an operand lies in."""
    return operand.space if isinstance(operand, Tile) else Space.GM


def elements_at(core: Core, space: int, starts: np.ndarray, size: int) -> Callable[[], np.ndarray]:
    """What reads the elements at these addresses, any number of times: items of ``size`` bytes; zeros for
    :data:`NOTHING`.

    Raises:
        ValueError: an address lies outside the memory and its guard.
    """
    there = starts != NOTHING
    is_whole = bool(there.all())
    items, numbers = _items(core, space, starts if is_whole else starts[there], size)
    # All places are in there; of the ways to say so, NumPy is fastest with this one.
    read = partial(items.take, numbers, mode="wrap") if items.flags.aligned else partial(items.__getitem__, numbers)
    if is_whole:
        return read

    def read_some() -> np.ndarray:
        held = np.zeros(starts.size, items.dtype)
        held[there] = read()
        return held

    return read_some


def putting(core: Core, space: int, starts: np.ndarray, size: int) -> Callable[[np.ndarray], None]:
    """What writes elements to these addresses, one after the other, so that of several for one place the last one stays.

    Raises:
        ValueError: an address lies outside the memory and its guard.
    """
    there = starts != NOTHING
    is_whole = bool(there.all())
    items, numbers = _items(core, space, starts if is_whole else starts[there], size)
    if not is_whole:
        return lambda elements: items.__setitem__(numbers, elements[there])
    if numbers.size and np.array_equal(numbers, np.arange(numbers.size) + numbers[0]):
        return partial(np.copyto, items[numbers[0] : numbers[-1] + 1])
    return partial(items.__setitem__, numbers)


def bytes_at(core: Core, space: int, starts: np.ndarray, size: int) -> np.ndarray:
    """The elements at these addresses, uint8[n, size]; zeros for :data:`NOTHING`.

    Raises:
        ValueError: an address lies outside the memory and its guard.
    """
    return elements_at(core, space, starts, size)().view(np.uint8).reshape(-1, size)


def put_bytes(core: Core, space: int, starts: np.ndarray, elements: np.ndarray) -> None:
    """See :func:`putting`; ``elements`` is uint8[n, size]."""
    size = elements.shape[1]
    putting(core, space, starts, size)(np.ascontiguousarray(elements).reshape(-1).view(_item(size)))


def _item(size: int) -> np.dtype:
    return np.dtype(f"u{size}" if size in (1, 2, 4, 8) else f"V{size}")


def _items(core: Core, space: int, starts: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A memory as an array of elements, and the place of each address in it.

    There is an element for every ``size`` bytes, or for every byte where the addresses are not so far apart.
    """
    data, kind = core.memory(space).data, _item(size)
    if not starts.size:
        return np.zeros(0, kind), starts
    low, high = int(starts.min()), int(starts.max()) + size
    core.memory(space).view(Region(space, low, high - low, (), BYTE))
    first = low % size
    if (starts % size == first).all():
        return data[first : first + (data.size - first) // size * size].view(kind), starts // size
    return np.ndarray(data.size - size + 1, kind, data, 0, 1), starts


def rows_of(tile: Tile, rows: int | None = None, cols: int | None = None) -> np.ndarray:
    """The addresses of the first rows and columns of a tile without boxes, (rows, cols)."""
    rows = tile.valid_rows if rows is None else rows
    cols = tile.valid_cols if cols is None else cols
    down, across = np.arange(rows, dtype=np.int64)[:, None], np.arange(cols, dtype=np.int64)
    return tile.address + down * tile.row_bytes + across * tile.col_bytes


def indices_of(core: Core, tile: Tile, rows: int | None = None, cols: int | None = None) -> np.ndarray:
    """The numbers in a tile of indices, int64."""
    view = core.view(tile.region(rows, cols))
    return view.astype(np.int64)


class IndexedMove(Move):
    """A step whose places data says. Its arguments: written operand, read operand, index tile, its region, a function
    of the core that yields the :class:`Places`."""

    is_static = False

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The indices read, the elements read and written."""
        written, read, _, region, find = args
        try:
            places = find(core)
        except ValueError:  # the indices lie outside their memory, which perform tells
            return [Touch(2, Mode.READ, region)]
        return [
            Touch(2, Mode.READ, region),
            *touches_of(1, Mode.READ, space_of(read), places.source, places.size),
            *touches_of(0, Mode.WRITE, space_of(written), places.to, places.size),
        ]

    def row_fields(self, core: Core, args: Sequence[Any]) -> tuple[int, int, int, int, int]:
        """See :class:`Move`; the work is its indices."""
        work = int(np.prod([n for n, _ in args[3].dims], dtype=np.int64)) * args[3].length // args[3].dtype.itemsize
        pipe, kind, pipe2, arg, _ = super().row_fields(core, (None, None, args[3]))
        return pipe, kind, pipe2, arg, work

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Move them."""
        self.move(core, args)()

    def prepared(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Any] | None:
        """The move from and to the places that the data says now: whoever asks again has seen that it is the same."""
        own = type(self).perform is IndexedMove.perform and Space.GM not in (space_of(args[0]), space_of(args[1]))
        return self.move(core, args) if own else None

    def move(self, core: Core, args: Sequence[Any]) -> Callable[[], None]:
        """What moves the elements."""
        written, read, _, _, find = args
        places = find(core)
        elements = elements_at(core, space_of(read), places.source, places.size)
        put = putting(core, space_of(written), places.to, places.size)
        return lambda: put(elements())

    def by(
        self, written: Tile | GlobalTensor, read: Tile | GlobalTensor, idx: Tile, region: Region,
        find: Callable[[Core], Places],
    ) -> Step:  # fmt: skip
        """The step for these operands."""
        return Step(self, (written, read, idx, region, find))


INDEXED_LOOP = IndexedMove("scalar_loop", Pipe.S, "a loop of scalar reads and writes")
