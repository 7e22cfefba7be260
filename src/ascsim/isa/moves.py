"""Functions that only move data, as loops.

Interleaving, loading and storing move the bytes (of mask registers in memory: the bits) of their arguments about, or
leave constants. Where each bit of a result comes from is found by running the function itself: every bit of the
arguments gets a number, and the function is run once for each binary digit of those numbers, with that digit as its
data. :func:`sources` reads the numbers off the results; :func:`byte_table` and :func:`loop` turn them into short loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

ZERO, ONE = -1, -2
"""Sources of a bit that is always 0, always 1; of a byte with the constant ``n`` the source is ``-1 - n``."""


class Argument(NamedTuple):
    """An argument in bytes, of which the lowest ``live`` bits of each say something: 8, or 1 in a mask register."""

    nbytes: int
    live: int


def _numbers(arguments: Sequence[Argument]) -> list[np.ndarray]:
    """The number of each live bit: one (nbytes, live) array an argument, from 0 on."""
    ends = np.cumsum([a.nbytes * a.live for a in arguments])
    sizes = [a.nbytes * a.live for a in arguments]
    return [np.arange(end - size, end).reshape(-1, a.live) for end, size, a in zip(ends, sizes, arguments, strict=True)]


def sources(function: Callable[..., object], arguments: Sequence[Argument]) -> tuple[np.ndarray, ...]:
    """Where the bits of each result come from: (bytes, 8) arrays of the numbers of the arguments' bits, or ZERO, ONE.

    ``function`` takes a uint8 array an argument and returns an array or a tuple of them, of any types.
    """
    numbers = _numbers(arguments)
    total = sum(n.size for n in numbers)
    digits = (total + 1).bit_length()
    found: list[np.ndarray] = []
    for digit in range(digits):
        data = [((n + 1) >> digit & 1) @ (1 << np.arange(n.shape[1])) for n in numbers]
        results = function(*(d.astype(np.uint8) for d in data))
        bits = [_bits(np.asarray(r)) for r in (results if isinstance(results, tuple) else (results,))]
        found = [b << digit if not digit else f | b << digit for f, b in zip(found or bits, bits, strict=True)]
    every_digit = (1 << digits) - 1
    tables = tuple(np.where(f == every_digit, ONE, np.where(f == 0, ZERO, f - 1)) for f in found)
    if any((t >= total).any() for t in tables):
        raise ValueError("the function does more than move data")
    return tables


def _bits(result: np.ndarray) -> np.ndarray:
    """(bytes, 8) of 0 and 1."""
    return np.unpackbits(np.frombuffer(result.tobytes(), np.uint8), bitorder="little").reshape(-1, 8).astype(np.int64)


def byte_table(table: np.ndarray, arguments: Sequence[Argument]) -> np.ndarray | None:
    """The same by whole bytes, which count through all arguments; None if bits of a byte part company."""
    constant = (table < 0).all(axis=1)
    result = np.where(constant, -1 - ((table == ONE) @ (1 << np.arange(8))), ZERO)
    settled = constant
    first_byte = 0
    for argument, numbers in zip(arguments, _numbers(arguments), strict=True):
        first, last = int(numbers[0, 0]), int(numbers[-1, -1])
        mine = (table[:, 0] >= first) & (table[:, 0] <= last)
        number = np.clip((table[:, 0] - first) // argument.live, 0, argument.nbytes - 1)
        expected = np.full((len(table), 8), ZERO)
        expected[:, : argument.live] = numbers[number]
        mine &= (table == expected).all(axis=1)
        result = np.where(mine, number + first_byte, result)
        settled = settled | mine
        first_byte += argument.nbytes
    return result if settled.all() else None


class Loop(NamedTuple):
    """``for i in range(repeats)``; in elements of ``unit`` bytes, each move is
    ``result[place + stride * i] = source[start + step * i]``: (place, stride, source, start, step), where ``source`` is
    the number of an argument, or None for the constant ``start``.
    """

    unit: int
    repeats: int
    moves: tuple[tuple[int, int, int | None, int, int], ...]


def loop(table: np.ndarray, arguments: Sequence[Argument]) -> Loop:
    """The loop with the fewest moves that fills one result from its :func:`byte_table`."""
    return _by_bytes(_shortest(*_units(table, arguments), arguments))


def _shortest(unit: int, cells: np.ndarray, arguments: Sequence[Argument]) -> Loop:
    """The loop with the fewest moves that fills cells of so many bytes from others."""
    ends = np.cumsum([a.nbytes // unit for a in arguments])
    argument = np.where(cells < 0, len(arguments), np.searchsorted(ends, cells, "right"))
    best: Loop | None = None
    for period in _divisors(cells.size):
        for outer in _divisors(cells.size // period):
            inner = cells.size // (period * outer)
            grid = cells.reshape(outer, inner, period)
            steps = np.diff(grid, axis=1)
            one_argument = argument.reshape(grid.shape)
            moving = (steps != 0) & (grid[:, 1:] < 0)
            if (steps != steps[:, :1]).any() or (one_argument != one_argument[:, :1]).any() or moving.any():
                continue
            if best is not None and len(best.moves) <= outer * period:
                continue
            moves = []
            for o in range(outer):
                for p in range(period):
                    start, whose = int(grid[o, 0, p]), int(one_argument[o, 0, p])
                    step = int(steps[o, 0, p]) if inner > 1 else 0
                    before = int(ends[whose - 1]) if 0 < whose < len(arguments) else 0
                    place = o * inner * period + p
                    known = (whose, start - before, step) if start >= 0 else (None, -1 - start, 0)
                    moves.append((place, period, *known))
            best = Loop(unit, inner, tuple(moves))
    assert best is not None
    return best


def spread(table: np.ndarray, arguments: Sequence[Argument]) -> Loop | None:
    """The loop that fills one result in elements whose bytes are all copies of one, as a lane's flag is spread over its bytes.

    ``result[place + stride * i]`` becomes the lowest byte of ``source[start + step * i]``, in each of its bytes. None where
    the result is not of that sort.
    """
    for unit in (8, 4, 2):
        if table.size % unit or any(a.nbytes % unit for a in arguments):
            continue
        groups = table.reshape(-1, unit)
        if (groups < 0).any() or (groups != groups[:, :1]).any() or (groups % unit).any():
            continue
        return _shortest(unit, groups[:, 0] // unit, arguments)
    return None


def _by_bytes(found: Loop) -> Loop:
    """A plain copy byte by byte: so the compiler sees it for what it is, and moves 64 bytes at once."""
    place, stride, source, start, step = found.moves[0]
    if len(found.moves) > 1 or source is None or (stride, step) != (1, 1):
        return found
    return Loop(1, found.repeats * found.unit, ((place * found.unit, 1, source, start * found.unit, 1),))


def _units(table: np.ndarray, arguments: Sequence[Argument]) -> tuple[int, np.ndarray]:
    """The widest unit (8, 4, 2, 1 bytes) in which the bytes move together, and the table in such units."""
    for unit in (8, 4, 2):
        if table.size % unit or any(a.nbytes % unit for a in arguments):
            continue
        groups = table.reshape(-1, unit)
        first = groups[:, 0]
        together = (groups == first[:, None] + np.arange(unit)).all(axis=1) & (first >= 0) & (first % unit == 0)
        zeros = (groups == ZERO).all(axis=1)
        if (together | zeros).all():
            return unit, np.where(first >= 0, first // unit, first)
    return 1, table


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]
