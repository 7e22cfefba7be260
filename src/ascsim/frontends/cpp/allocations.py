"""Global memory as the host program sees it: blocks of device memory, and what a pointer into them means."""

from __future__ import annotations

import ctypes
import mmap
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ascsim.frontends.cpp.sink import view_of
from ascsim.machine.core import GUARD, Memory
from ascsim.machine.fill import chosen, fill

ALIGNMENT = 512
RED_ZONE = 512
"""Bytes between two blocks that belong to neither."""
FILLED = 1 << 28
"""Larger blocks are filled so far only; the rest is zero, and takes no real memory until it is touched."""
RETURNED = 1 << 20
"""Freed blocks from this size on give their pages back."""


@dataclass(order=True)
class Allocation:
    """A block of device memory; ``start`` is an offset in global memory, ``freed_at`` the call that freed it, or 0."""

    start: int
    size: int = field(compare=False)
    allocated_at: int = field(compare=False)
    freed_at: int = field(compare=False, default=0)

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.start + self.size


class DeviceMemory:
    """The arena of global memory at ``base``, and the blocks in it.

    Addresses are not used again until the arena is full, so that a pointer to freed memory is known as such.
    """

    def __init__(self, base: int, capacity: int) -> None:
        self.base = base
        self.capacity = capacity
        self._arena = np.frombuffer(view_of(base, capacity), np.uint8)
        self.memory = Memory(0, self._arena[:GUARD])
        self._blocks: list[Allocation] = []
        self._next = RED_ZONE
        self.free_bytes = capacity

    @property
    def blocks(self) -> Sequence[Allocation]:
        """The blocks by address, freed ones too: the order in which they were allocated while the arena lasts."""
        return self._blocks

    def offset(self, address: int) -> int | None:
        """The offset of a host pointer into the arena; None for other pointers."""
        return address - self.base if self.base <= address < self.base + self.capacity else None

    def allocate(self, size: int, site: int) -> Allocation | None:
        """A fresh block; None when no room is left."""
        start = self._place(size)
        if start is None:
            return None
        block = Allocation(start, size, site)
        insort(self._blocks, block)
        end = min(block.end + RED_ZONE, self.capacity)
        fill(self._arena[start : min(end, start + FILLED)], chosen())
        if block.end > self.memory.capacity:
            self.memory.capacity = block.end
            self.memory.data = self._arena[: min(block.end + GUARD, self.capacity)]
        self.free_bytes -= size
        return block

    def _place(self, size: int) -> int | None:
        start = self._next
        after = _aligned(start + size + RED_ZONE)
        if after <= self.capacity:
            self._next = after
            return start
        for index, block in enumerate(self._blocks):
            if block.freed_at and block.size >= size:
                del self._blocks[index]
                return block.start
        return None

    def free(self, block: Allocation, site: int) -> None:
        """Mark a block as freed."""
        block.freed_at = site or 1
        self.free_bytes += block.size
        if block.size >= RETURNED:
            page = mmap.PAGESIZE
            first, last = (self.base + block.start + page - 1) // page * page, (self.base + block.end) // page * page
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), mmap.MADV_DONTNEED)

    def find(self, offset: int) -> Allocation | None:
        """The block that contains an offset, freed or not, or lies next below it."""
        index = bisect_right(self._blocks, offset, key=lambda block: block.start) - 1
        return self._blocks[index] if index >= 0 else None

    def describe(self, address: int) -> str:
        """What a pointer into the arena points to, for people."""
        offset = address - self.base
        block = self.find(offset)
        if block is None:
            return f"{address:#x} is device memory that was never allocated"
        state = ", which is freed" if block.freed_at else ""
        where = f"{block.size} bytes at {self.base + block.start:#x}{state}"
        if offset < block.end:
            inside = offset - block.start
            return f"{address:#x} is {f'byte {inside}' if inside else 'the start'} of the block of {where}"
        return f"{address:#x} is {offset - block.end} bytes behind the block of {where}"


def _aligned(offset: int) -> int:
    return (offset + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


libc = ctypes.CDLL(None)
