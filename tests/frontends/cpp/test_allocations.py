"""Device memory: where blocks lie, what is in them, and how pointers are described."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.frontends.cpp import allocations
from ascsim.frontends.cpp.allocations import ALIGNMENT, RED_ZONE, DeviceMemory
from ascsim.machine.core import GUARD
from ascsim.machine.fill import POISON


@pytest.fixture
def arena():
    area = mmap.mmap(-1, 1 << 20)
    anchor = ctypes.c_char.from_buffer(area)
    return area, DeviceMemory(ctypes.addressof(anchor), 1 << 20)


def test_blocks_are_aligned_apart_and_filled(arena):
    area, memory = arena
    first, second = memory.allocate(100, 7), memory.allocate(512, 8)
    assert (first.start, second.start) == (512, 1536)
    assert area[512 : 512 + 100 + RED_ZONE] == bytes([POISON]) * (100 + RED_ZONE)
    assert memory.memory.capacity == 2048
    assert memory.memory.data.size == 2048 + GUARD
    assert memory.free_bytes == (1 << 20) - 612


def test_the_fill_is_loud_in_every_type():
    fill = np.full(8, POISON, np.uint8)
    for kind in (np.float32, np.float16):
        assert abs(float(fill.view(kind)[0])) > 60000
    assert np.isfinite(fill.view(np.float64)[0])
    assert fill.view(np.int32)[0] not in (0, -1)


def test_pointers_are_described(arena):
    _, memory = arena
    block = memory.allocate(100, 7)
    start = memory.base + block.start
    assert memory.describe(start) == f"{start:#x} is the start of the block of 100 bytes at {start:#x}"
    assert "is byte 99 of the block of 100 bytes" in memory.describe(start + 99)
    assert "is 4 bytes behind the block of 100 bytes" in memory.describe(start + 104)
    assert memory.describe(memory.base).endswith("is device memory that was never allocated")
    memory.free(block, 9)
    assert memory.describe(start).endswith(", which is freed")
    assert memory.offset(memory.base + (1 << 20)) is None


def test_addresses_come_back_only_when_the_arena_is_full(arena):
    _, memory = arena
    blocks = [memory.allocate(1 << 18, n) for n in range(3)]
    memory.free(blocks[1], 5)
    fresh = memory.allocate(1 << 10, 6)
    assert fresh.start > blocks[2].start
    again = memory.allocate(1 << 18, 7)
    assert again.start == blocks[1].start
    assert memory.find(again.start) is again and not again.freed_at
    assert memory.allocate(1 << 18, 8) is None


def test_large_blocks_give_their_pages_back(arena, monkeypatch):
    area, memory = arena
    monkeypatch.setattr(allocations, "RETURNED", 1 << 16)
    block = memory.allocate(1 << 17, 1)
    memory.free(block, 2)
    page = mmap.PAGESIZE
    assert area[block.start] == POISON  # the page that it shares with its neighbour stays
    assert area[block.start // page * page + page] in (0, POISON)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 5000), st.booleans()), max_size=30))
def test_no_two_blocks_come_closer_than_a_red_zone(steps):
    area = mmap.mmap(-1, 1 << 20)
    anchor = ctypes.c_char.from_buffer(area)
    memory = DeviceMemory(ctypes.addressof(anchor), 1 << 20)
    taken: list[tuple[int, int]] = []
    for size, is_freed in steps:
        block = memory.allocate(size, 1)
        assert block is not None and block.start % ALIGNMENT == 0
        assert all(block.end + RED_ZONE <= low or high + RED_ZONE <= block.start for low, high in taken)
        taken.append((block.start, block.end))
        assert memory.find(block.end - 1) is block
        if is_freed:
            memory.free(block, 2)
