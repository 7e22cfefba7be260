"""The loop that finds reads of local memory that nothing has written since its core began.

Shadow memory: one number for every 32 bytes, whose low half has a bit for each byte written and whose high half says by
which core of the trace (counted from 1). A new core therefore needs no clearing: what another left counts as never
written. Everything here is plain Python over sequences, in the part that Numba compiles, like
:mod:`ascsim.checks.clocks`.
"""

from __future__ import annotations

from typing import Any

_READ, _WRITE = 1, 2
_WHOLE = 0xFFFFFFFF
BLOCK_BITS = 5


def _all_equal(values: Any, wanted: int) -> bool:
    """Whether all numbers are the wanted one."""
    return bool((values == wanted).all())


def _all_equal_compiled(values: Any, wanted: int) -> bool:
    """The same."""
    for i in range(len(values)):  # noqa: SIM110 - the compiled part knows no generators
        if values[i] != wanted:
            return False
    return True


def _set_all(values: Any, number: int) -> None:
    """Set all numbers."""
    values[:] = number


def _set_all_compiled(values: Any, number: int) -> None:
    """The same."""
    for i in range(len(values)):
        values[i] = number


def _bits(low: int, high: int) -> int:
    """The bits of bytes [low, high) of one block."""
    return ((1 << (high - low)) - 1) << low


def _has(table: Any, block: int, bits: int, core: int) -> bool:
    """Whether the core has written these bytes of a block."""
    word = int(table[block])
    return word >> 32 == core and word & bits == bits


def _add(table: Any, block: int, bits: int, core: int) -> None:
    """The core writes these bytes of a block."""
    word = int(table[block])
    table[block] = (word | bits) if word >> 32 == core else (core << 32 | bits)


def _burst(table: Any, base: int, blocks: int, low: int, high: int, core: int, mode: int) -> bool:
    """Mark the bytes [low, high) as written, or say whether all of them are. What lies outside a memory counts as such."""
    low, high = max(low, 0), min(high, blocks << BLOCK_BITS)
    if low >= high:
        return True
    first, last = low >> BLOCK_BITS, (high - 1) >> BLOCK_BITS
    head, tail = low & 31, ((high - 1) & 31) + 1
    if first == last:
        if mode == _READ:
            return _has(table, base + first, _bits(head, tail), core)
        _add(table, base + first, _bits(head, tail), core)
        return True
    begin, end = base + first + (1 if head else 0), base + last + (1 if tail == 32 else 0)
    if mode == _READ:
        return (
            (not head or _has(table, base + first, _bits(head, 32), core))
            and (tail == 32 or _has(table, base + last, _bits(0, tail), core))
            and (begin >= end or _all_equal(table[begin:end], core << 32 | _WHOLE))
        )
    if head:
        _add(table, base + first, _bits(head, 32), core)
    if tail < 32:
        _add(table, base + last, _bits(0, tail), core)
    if begin < end:
        _set_all(table[begin:end], core << 32 | _WHOLE)
    return True


def _touch(access: Any, shape: Any, masks: Any, table: Any, base: int, blocks: int, core: int, mode: int) -> bool:
    """Mark the bytes of an access as written, or say whether all of them are."""
    length, mask = int(access["length"]), int(access["mask"])
    for i3 in range(shape["n3"]):
        for i2 in range(shape["n2"]):
            for i1 in range(shape["n1"]):
                at = int(access["start"]) + i1 * int(shape["s1"]) + i2 * int(shape["s2"]) + i3 * int(shape["s3"])
                if mask == 0:
                    if not _burst(table, base, blocks, at, at + length, core, mode):
                        return False
                    continue
                for byte in range(at, at + length):
                    offset = byte - int(access["start"])
                    if 0 <= offset < 256 and not (int(masks[mask - 1, offset >> 3]) >> (offset & 7)) & 1:
                        continue
                    if not _burst(table, base, blocks, byte, byte + 1, core, mode):
                        return False
    return True


def _widen(whole: Any, space: int, low: int, high: int) -> None:
    """The bytes [low, high) of a space are written: they make its run of written bytes longer, or become it."""
    if low <= whole[space, 1] and high >= whole[space, 0]:
        whole[space, 0], whole[space, 1] = min(whole[space, 0], low), max(whole[space, 1], high)
    elif high - low > whole[space, 1] - whole[space, 0]:
        whole[space, 0], whole[space, 1] = low, high


def find_unwritten(
    rows: Any, first: Any, accesses: Any, shapes: Any, masks: Any, order: Any, starts: Any, bases: Any, sizes: Any,
    table: Any, whole: Any, lines: Any, found: Any, since: int, until: int, count: int,
) -> int:  # fmt: skip
    """Find the reads that have a byte which no instruction of their core wrote before.

    It looks at the positions from ``since`` to ``until``; all before were looked at, and ``count`` reads found.

    Args:
        rows, first, accesses, shapes, masks, order, starts: see :func:`ascsim.checks.clocks.find_hazards`.
        bases, sizes: for each space its first block in the table and how many it has; none: not looked at.
        table: the shadow memory, int64, zero. whole: scratch, int64[256, 2]: for each space a run of bytes that are all
            written; most accesses lie in it. lines: scratch, int64[n, 5]: bursts in a line that were found to be written,
            each at a place that follows from its first byte; loops come by the same ones again and again. found: filled with
            numbers of accesses.

    Returns how many. What an instruction reads is looked at before what it writes.
    """
    for core in range(len(starts) - 1):
        if starts[core] >= since:
            whole[:] = 0
            lines[:] = 0
        for position in range(max(starts[core], since), min(starts[core + 1], until)):
            row = order[position] if len(order) > 0 else position
            begin, end = first[row], first[row + 1]
            turns = 2 if end - begin > 1 else 1  # what it reads, then what it writes
            for turn in range(turns):
                for a in range(begin, end):
                    access = accesses[a]
                    space, mode = access["space"], access["mode"]
                    size = sizes[space]
                    if size == 0 or (turns == 2 and mode != turn + 1) or (mode == _READ and access["unused"] == 1):
                        continue
                    shape = shapes[access["shape"]]
                    low, length, step = int(access["start"]), int(access["length"]), int(shape["s1"])
                    is_line = shape["n1"] > 0 and shape["n2"] == shape["n3"] == 1 and access["mask"] == 0
                    further = (int(shape["n1"]) - 1) * step
                    low, high = low + min(further, 0), low + length + max(further, 0)
                    if not is_line:  # where its bursts lie between, wherever they are
                        second, third = (
                            (int(shape["n2"]) - 1) * int(shape["s2"]),
                            (int(shape["n3"]) - 1) * int(shape["s3"]),
                        )
                        low, high = low + min(second, 0) + min(third, 0), high + max(second, 0) + max(third, 0)
                    if whole[space, 0] <= low and high <= whole[space, 1]:
                        continue
                    if is_line and abs(step) <= length:
                        is_written = _burst(table, bases[space], size, low, high, core + 1, mode)
                        if mode == _WRITE:
                            _widen(whole, space, low, high)
                    elif is_line:
                        line = lines[(low >> BLOCK_BITS) % len(lines)]
                        if (
                            line[0] == low
                            and line[1] == high
                            and line[2] == step
                            and line[3] == length
                            and line[4] == space
                        ):
                            continue
                        is_written = _touch(access, shape, masks, table, bases[space], size, core + 1, mode)
                        if is_written:
                            line[0], line[1], line[2], line[3], line[4] = low, high, step, length, space
                    else:
                        is_written = _touch(access, shape, masks, table, bases[space], size, core + 1, mode)
                    if not is_written:
                        found[count] = a
                        count += 1
    return count
