"""The trace files of a C++ run, which Python and compiled kernels append to side by side."""

from __future__ import annotations

import ctypes
import json
import os
import struct
from pathlib import Path
from typing import Any

from ascsim.machine.trace import ACCESS, ROW, SHAPE


class NativeTrace(ctypes.Structure):
    """``AscsimTrace`` of abi.h."""

    _fields_ = (
        ("rows", ctypes.c_void_p),
        ("accesses", ctypes.c_void_p),
        ("masks", ctypes.c_void_p),
        ("n_rows", ctypes.c_void_p),
        ("n_accesses", ctypes.c_void_p),
        ("n_masks", ctypes.c_void_p),
        ("row_capacity", ctypes.c_uint64),
        ("access_capacity", ctypes.c_uint64),
        ("mask_capacity", ctypes.c_uint64),
    )


TAIL = "tail.bin"
"""Beside the tables: what is not in their files yet (``Tail`` of runtime.cpp)."""
TABLES = (
    ("rows.bin", ROW.itemsize),
    ("accesses.bin", ACCESS.itemsize),
    ("masks.bin", 32),
    ("shapes.bin", SHAPE.itemsize),
)
"""The tables in the tail's order, and the bytes of a record."""
_PAGE = 4096


def view_of(address: int, size: int) -> memoryview:
    """Memory that C++ owns, as bytes."""
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")


def complete(directory: Path) -> None:
    """Put what a run left in the tail behind its tables. To be called when the process has ended, however it did."""
    path = directory / TAIL
    if not path.exists():
        return
    tail = path.read_bytes()
    numbers = struct.unpack_from(f"<{2 * len(TABLES) + 1}Q", tail)
    window = numbers[-1]
    for turn, (name, size) in enumerate(TABLES):
        counted, written = numbers[turn], numbers[len(TABLES) + turn]
        start = _PAGE + turn * window
        with (directory / name).open("r+b") as table:
            table.seek(written * size)
            table.write(tail[start : start + (counted - written) * size])
            table.truncate()
    path.unlink()


class NativeSink:
    """Appends to the windows of the runtime library's tables, and notes to ``notes.jsonl`` line by line."""

    def __init__(self, library: ctypes.CDLL, directory: Path) -> None:
        trace = NativeTrace.in_dll(library, "ascsim_trace")
        numbers = view_of(trace.n_rows, _PAGE).cast("Q")
        count = len(TABLES)
        window = numbers[2 * count]
        self._counts, self._written = numbers[:count], numbers[count : 2 * count]
        self._windows = [view_of(trace.n_rows + _PAGE + turn * window, window) for turn in range(len(TABLES))]
        self._room = [window // size for _, size in TABLES]
        self._grow = library.ascsim_trace_grow
        self._shapes: dict[bytes, int] = {}
        # What goes there is on disk at once: the program may crash next.
        ways = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._notes = os.open(directory / "notes.jsonl", ways, 0o644)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self._counts[0]

    @property
    def last_site(self) -> int:
        """The site of the newest row."""
        start = (self.n_rows - 1 - self._written[0]) * ROW.itemsize + ROW.fields["site"][1]  # type: ignore[index]
        return int.from_bytes(self._windows[0][start : start + 8], "little") if start >= 0 else 0

    def append(self, rows: bytes | bytearray, accesses: bytes) -> int:
        """See :class:`ascsim.machine.trace.Sink`."""
        if accesses:
            self._append(1, accesses)
        return self._append(0, rows)

    def mask(self, packed: bytes) -> int:
        """See :class:`ascsim.machine.trace.Sink`."""
        return self._append(2, packed) + 1

    def shape(self, packed: bytes) -> int:
        """See :class:`ascsim.machine.trace.Sink`."""
        number = self._shapes.get(packed)
        if number is None:
            number = self._shapes[packed] = self._append(3, packed) + 1
        return number

    def _append(self, turn: int, records: bytes | bytearray) -> int:
        """Append to a table; returns the number of the first record."""
        size = TABLES[turn][1]
        number = self._counts[turn]
        after = number + len(records) // size
        if after > self._written[turn] + self._room[turn]:
            self._grow()
        start = (number - self._written[turn]) * size
        self._windows[turn][start : start + len(records)] = records
        self._counts[turn] = after
        return number

    def note(self, kind: str, data: dict[str, Any]) -> None:
        """See :class:`ascsim.machine.trace.Sink`."""
        os.write(self._notes, (json.dumps({"kind": kind, **data}) + "\n").encode())
