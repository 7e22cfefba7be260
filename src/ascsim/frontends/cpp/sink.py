"""The trace files of a C++ run, which Python and compiled kernels append to side by side."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np

from ascsim.machine.ahead import BEFORE, TOLD
from ascsim.machine.trace import (
    ACCESS,
    MASK,
    ROW,
    SHAPE,
    Counts,
    Table,
    Trace,
    join_known,
    moved_note,
    shapes_of,
    write_notes,
)


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
TABLES = tuple(
    (f"{table.name.lower()}.bin", record.itemsize)
    for table, record in zip(Table, (ROW, ACCESS, MASK, SHAPE), strict=True)
)
"""The tables in the tail's order, and the bytes of a record."""
_PAGE = 4096


def view_of(address: int, size: int) -> memoryview:
    """Memory that C++ owns, as bytes."""
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")


def recorded(directory: Path) -> int:
    """How many rows a run that goes on has recorded so far; of blocks that run ahead, those that were taken."""
    try:
        with (directory / TAIL).open("rb") as tail:
            return int(struct.unpack("<Q", tail.read(8))[0])
    except (OSError, struct.error):  # it has not begun, or is over
        return 0


def complete(directory: Path) -> None:
    """Put what a run left in the tail behind its tables. To be called when the process has ended, however it did.

    Of blocks that were running ahead, what the first ones did until then is part of it.
    """
    _complete_tables(directory)
    spans = sorted(directory.glob("ahead-*/*"))
    if spans and (spans[0] / BEFORE).exists() and not (spans[0] / TOLD).exists():
        _complete_tables(spans[0])
        _append_span(directory, spans[0])
    for scratch in directory.glob("ahead-*"):
        shutil.rmtree(scratch, ignore_errors=True)


def _append_span(directory: Path, span: Path) -> None:
    """Append what blocks that ran ahead recorded before they were ended."""
    here, new = Trace.load(directory), Trace.load(span)
    *before, objects = json.loads((span / BEFORE).read_text())
    by = len(here.rows) - before[0]
    rows, accesses = new.rows.copy(), new.accesses.copy()
    rows["parent"][rows["parent"] >= before[0]] += by
    counts = (len(here.masks), len(here.shapes) - 1, len(here.objects))
    for name, first, count in zip(("mask", "shape", "object"), (*before[1:], objects), counts, strict=True):
        accesses[name][accesses[name] > first] += count - first
    for (name, _), records in zip(TABLES, (rows, accesses, new.masks, new.shapes[1:]), strict=True):
        with (directory / name).open("ab") as table:
            table.write(records.tobytes())
    for _, data in new.notes:
        data.pop("once", None)
    write_notes(directory, [*here.notes, *((kind, moved_note(kind, data, before[0], by)) for kind, data in new.notes)])


def _complete_tables(directory: Path) -> None:
    path = directory / TAIL
    if not path.exists():
        return
    tail = path.read_bytes()
    counts = len(TABLES)
    numbers = struct.unpack_from(f"<{3 * counts + 1}Q", tail)
    window = numbers[2 * counts]
    for turn, (name, size) in enumerate(TABLES):
        counted, written, before = numbers[turn], numbers[counts + turn], numbers[2 * counts + 1 + turn]
        start = _PAGE + turn * window
        with (directory / name).open("r+b") as table:
            table.seek((written - before) * size)
            table.write(tail[start : start + (counted - written) * size])
            table.truncate()
    path.unlink()


class NativeSink:
    """Appends to the windows of the runtime library's tables, and notes to ``notes.jsonl`` line by line."""

    def __init__(self, library: ctypes.CDLL, directory: Path) -> None:
        self._library = library
        self._grow = library.ascsim_trace_grow
        self._masks: dict[bytes, int] = {}
        self._shapes: dict[bytes, int] = {}
        self._open(directory)

    def _open(self, directory: Path) -> None:
        """Find the windows, and open the notes."""
        trace = NativeTrace.in_dll(self._library, "ascsim_trace")
        numbers = view_of(trace.n_rows, _PAGE).cast("Q")
        count = len(TABLES)
        window = numbers[2 * count]
        self._counts, self._written = numbers[:count], numbers[count : 2 * count]
        self._windows = [view_of(trace.n_rows + _PAGE + turn * window, window) for turn in range(len(TABLES))]
        self._room = [window // size for _, size in TABLES]
        self._directory = directory
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
        """See :class:`ascsim.machine.trace.Sink`. Compiled kernels append masks of their own, each anew."""
        return self._once(self._masks, Table.MASKS, packed)

    def shape(self, packed: bytes) -> int:
        """See :class:`ascsim.machine.trace.Sink`. Scalar accesses in loops have shapes of their own."""
        return self._once(self._shapes, Table.SHAPES, packed)

    def _once(self, known: dict[bytes, int], table: Table, packed: bytes) -> int:
        number = known.get(packed)
        if number is None:
            number = known[packed] = self._append(table, packed) + 1
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

    @property
    def counts(self) -> Counts:
        """See :class:`ascsim.machine.trace.Sink`."""
        return Counts(self._counts[Table.ROWS], self._counts[Table.MASKS], self._counts[Table.SHAPES])

    @property
    def known(self) -> tuple[dict[bytes, int], dict[bytes, int]]:
        """See :class:`ascsim.machine.trace.Sink`."""
        return self._masks, self._shapes

    def divert(self, directory: Path, before: Counts) -> None:
        """See :class:`ascsim.machine.trace.Sink`.

        Raises:
            OSError: the files cannot be made.
        """
        if self._library.ascsim_trace_divert(os.fsencode(directory), *(ctypes.c_uint64(count) for count in before)):
            raise OSError(f"the tables in {directory} cannot be opened")
        os.close(self._notes)
        self._open(directory)

    def settle(self) -> None:
        """See :class:`ascsim.machine.trace.Sink`."""
        self._library.ascsim_trace_settle()

    def shapes_of(self, numbers: np.ndarray, directory: Path, before: int) -> np.ndarray:
        """See :class:`ascsim.machine.trace.Sink`. Nothing else has the shapes of scalar accesses before."""
        return shapes_of(numbers, self._shapes, directory, before)

    def join_known(self, table: Table, records: np.ndarray, own: dict[bytes, int], before: int) -> np.ndarray:
        """See :class:`ascsim.machine.trace.Sink`."""
        known = self._masks if table == Table.MASKS else self._shapes
        numbers, is_new = join_known(records, own, before, known, self._counts[table])
        self.extend(table, records[is_new])
        return numbers

    def extend(self, table: Table, records: np.ndarray) -> None:
        """See :class:`ascsim.machine.trace.Sink`."""
        room = self._room[table]
        for at in range(0, len(records), room):
            self.settle()  # the whole window is free
            self._append(table, records[at : at + room].tobytes())
