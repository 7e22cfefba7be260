"""The trace files of a C++ run, which Python and compiled kernels append to side by side."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

from ascsim.machine.trace import ACCESS, ROW


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


ROW_BYTES, ACCESS_BYTES, MASK_BYTES = ROW.itemsize, ACCESS.itemsize, 32
_TABLE = 1 << 36
"""Bytes of address space that a table may grow through (``RESERVED`` in runtime.cpp)."""


def view_of(address: int, size: int) -> memoryview:
    """Memory that C++ owns, as bytes."""
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")


class NativeSink:
    """Appends to the runtime library's mapped tables, and notes to ``notes.jsonl`` line by line."""

    def __init__(self, library: ctypes.CDLL, directory: Path) -> None:
        trace = NativeTrace.in_dll(library, "ascsim_trace")
        self._rows = view_of(trace.rows, _TABLE)
        self._accesses = view_of(trace.accesses, _TABLE)
        self._masks = view_of(trace.masks, _TABLE)
        self._counts = view_of(trace.n_rows, 24).cast("Q")
        offset = NativeTrace.row_capacity.offset
        self._capacities = view_of(ctypes.addressof(trace) + offset, 24).cast("Q")
        self._grow = library.ascsim_trace_grow
        self._notes = os.open(directory / "notes.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self._counts[0]

    def append(self, row: bytes, accesses: bytes) -> int:
        """See :class:`ascsim.machine.trace.Sink`."""
        counts, capacities = self._counts, self._capacities
        number = counts[0]
        if number >= capacities[0]:
            self._grow()
        if accesses:
            first = counts[1]
            after = first + len(accesses) // ACCESS_BYTES
            if after > capacities[1]:
                self._grow()
            self._accesses[first * ACCESS_BYTES : after * ACCESS_BYTES] = accesses
            counts[1] = after
        start = number * ROW_BYTES
        self._rows[start : start + ROW_BYTES] = row
        counts[0] = number + 1
        return number

    def mask(self, packed: bytes) -> int:
        """See :class:`ascsim.machine.trace.Sink`."""
        counts = self._counts
        number = counts[2]
        if number >= self._capacities[2]:
            self._grow()
        self._masks[number * MASK_BYTES : (number + 1) * MASK_BYTES] = packed
        counts[2] = number + 1
        return number + 1

    def note(self, kind: str, data: dict[str, Any]) -> None:
        """See :class:`ascsim.machine.trace.Sink`. On disk when it returns: the program may crash next."""
        os.write(self._notes, (json.dumps({"kind": kind, **data}) + "\n").encode())
