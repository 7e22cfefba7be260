"""The trace: what a launch did, one row an instruction or sync operation.

Tables of fixed-size records, the first three shared with the C++ runtime (``frontends/cpp/runtime``), and a stream of
JSON lines for what has no fixed size:

``rows.bin``
    :data:`ROW`: core, pipe, kind, mnemonic, parent row, source site.
``accesses.bin``
    :data:`ACCESS`: the bytes a row read or wrote: a space, a start, the length of a burst, and how bursts repeat. Rows
    own their accesses in order (``n_access`` each).
``masks.bin``
    32 bytes each: which bytes of a 256-byte register store were written (access field ``mask``, 1-based; 0 is none).
``shapes.bin``
    :data:`SHAPE`: three nested (count, stride) pairs, innermost first, in which the bursts of an access repeat (access
    field ``shape``, 1-based; 0 is a single burst). Accesses of one shape share it: most of a long trace is single bursts.
``notes.jsonl``
    objects (tiles, buffers, allocations), launches, modules, findings made at issue time.

Everything is appended in program order, so a run that crashes or calls ``exit()`` leaves its trace behind.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np

from ascsim.diagnostics import UserError
from ascsim.progress import advance, stage


class Kind(IntEnum):
    """What a row is."""

    INSTRUCTION = 0
    SET_FLAG = 1
    WAIT_FLAG = 2
    BARRIER = 3
    LAUNCH_BEGIN = 4
    LAUNCH_END = 5
    VF_BEGIN = 6
    VF_END = 7
    MEM_BAR = 8
    LOCK = 9
    UNLOCK = 10
    ARRIVE = 11
    AWAIT = 12
    CACHE = 13
    """The scalar unit drops lines of its data cache: its access to core state has their bytes in GM; none for all."""


NEVER = (1 << 31) - 1
"""A row after all others."""
DATA_BARRIER = 1
"""The argument of a barrier on S that waits for its reads and writes (``dsb``)."""
DONE_IN_ORDER = 1
"""The argument of an instruction on M that is complete before the next one on M begins, whatever the pipe promises."""


class Mode(IntEnum):
    """How an access touches its bytes."""

    READ = 1
    WRITE = 2


ROW = np.dtype(
    [
        ("core", "<u2"),
        ("pipe", "u1"),
        ("kind", "u1"),
        ("mnemonic", "<u2"),
        ("n_access", "u1"),
        ("pipe2", "u1"),  # the other pipe of a flag; a lock's mode; flag and mode of a signal
        ("parent", "<i4"),  # row of the instruction this is a step of, or -1
        # event id; mutex; mem_bar mode; launch number; token of a signal, 0 for none; DATA_BARRIER; how many calls of an
        # expansion or turns of a loop (FOLDED) the row stands for; on pipe M DONE_IN_ORDER
        ("arg", "<u4"),
        ("site", "<u8"),  # 1-based index of a noted site, or a program counter where SITE_PC is set in flags
        ("work", "<u4"),  # repeats or blocks, for timing
        ("flags", "<u2"),
        ("dtype", "u1"),  # code of the element type, 0 for none
        ("body", "u1"),  # of the first row of a folded loop: how many rows its body has
    ]
)
ACCESS = np.dtype(
    [
        ("space", "u1"),
        ("mode", "u1"),
        ("operand", "u1"),
        ("align", "u1"),  # log2 of the alignment this operand needs
        ("mask", "<u4"),
        ("start", "<i8"),
        ("length", "<u4"),
        ("shape", "<u4"),
        ("object", "<u4"),  # 1-based index of a noted object
        # 1: fetched, but with no part in the result. More: the vector register loaded or stored, by some number of its
        # own. Of an unaligned register's state: the register.
        ("unused", "<u4"),
    ]
)
MASK = np.dtype("(32,)u1")
SHAPE = np.dtype(
    [
        ("n1", "<u4"), ("n2", "<u4"), ("n3", "<u4"),
        ("turns", "<u4"),  # 1: each burst belongs to a call of its own, in another turn of a loop (FOLDED)
        ("s1", "<i8"), ("s2", "<i8"), ("s3", "<i8"),
    ]
)  # fmt: skip
STREAM_OF_LOADS = 1 << 31
"""Set in the number of an unaligned register that is one for loads."""
SITE_PC = 1
"""Row flag: ``site`` is a program counter in a loaded module, not an index."""

CACHED = 2
"""Row flag: the scalar unit's accesses, of which those to GM go through its data cache."""
ATOMIC = 4
"""Row flag: the scalar unit's atomic accesses, which go past its data cache."""
FOLDED = 8
"""Row flag: turns of a loop in a vector function, one call each; an access has a burst for each, or one where all are in
one place. In all turns an access meets no other that is a write, unless in the order of the rows: so one may read the rows as
one would the turns (``frontends/cpp/runtime/turns.cpp``)."""
CACHE_LINE = 64
"""Bytes of a line of the data cache."""

pack_row = struct.Struct("<HBBHBBiIQIHBB").pack
pack_access = struct.Struct("<BBBBIqIIII").pack
assert struct.calcsize("<HBBHBBiIQIHBB") == ROW.itemsize == 32
assert struct.calcsize("<BBBBIqIIII") == ACCESS.itemsize == 32
_SHAPE = struct.Struct("<IIII3q")
assert _SHAPE.size == SHAPE.itemsize == 40


def pack_shape(n1: int, s1: int, n2: int = 1, s2: int = 0, n3: int = 1, s3: int = 0) -> bytes:
    """A :data:`SHAPE`: counts, and strides in bytes."""
    return _SHAPE.pack(n1, n2, n3, 0, s1, s2, s3)


SINGLE = np.frombuffer(pack_shape(1, 0), SHAPE)
"""The shapes of a trace of single bursts: number 0 alone."""


_CHUNK = 32768
"""Rows looked at together: so many stay in the processor's cache."""
_WINDOW = 16 << 20
"""Bytes of a table that a trace in the making keeps in memory: what is full goes to a file."""
_STRETCH = 1 << 20
"""Rows after which a pass over a long trace says how far it is, and gives the memory of what it has passed back."""
_KEPT = 128 << 20
"""Bytes of a trace in files that stay in memory between passes: what is larger is read again."""


class Table(IntEnum):
    """The tables, in the order in which a C++ run keeps them."""

    ROWS = 0
    ACCESSES = 1
    MASKS = 2
    SHAPES = 3


class Counts(NamedTuple):
    """How many records there are that others name by number."""

    rows: int
    masks: int
    shapes: int


class Sink(Protocol):
    """Where records go: files of the tool's own, memory, or the C++ runtime's windows.

    The second half is for processes that run blocks ahead (:mod:`ascsim.machine.ahead`): they record into files of their
    own, which the launch's process joins.
    """

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    def append(self, rows: bytes | bytearray, accesses: bytes) -> int:
        """Append rows (one, or a few) and their accesses; returns the first row's number."""

    def mask(self, packed: bytes) -> int:
        """The number (1-based) of a 32-byte mask; an equal one is the same."""

    def shape(self, packed: bytes) -> int:
        """The number of a shape; an equal one is the same."""

    def note(self, kind: str, data: dict[str, Any]) -> None:
        """Append a JSON note."""

    @property
    def counts(self) -> Counts:
        """How many records there are that others name by number."""

    @property
    def known(self) -> tuple[dict[bytes, int], dict[bytes, int]]:
        """The masks and the shapes that are given once, with their numbers."""

    def divert(self, directory: Path, before: Counts) -> None:
        """Append to files in this directory from now on, with numbers behind those that were counted before."""

    def settle(self) -> None:
        """Have all in the files that is recorded."""

    def shapes_of(self, numbers: np.ndarray, directory: Path, before: int) -> np.ndarray:
        """Shapes by their numbers in what was diverted to a directory: ``before`` of them it had from here.

        Of those that are not in its file yet: single bursts.
        """

    def join_known(self, table: Table, records: np.ndarray, own: dict[bytes, int], before: int) -> np.ndarray:
        """Append the masks or shapes that were recorded elsewhere behind the first ``before``.

        Those of ``own`` are given once. Returns the numbers that they have here.
        """

    def extend(self, table: Table, records: np.ndarray) -> None:
        """Append rows or accesses that were recorded elsewhere, with the numbers of here."""


def join_known(
    records: np.ndarray, own: dict[bytes, int], before: int, known: dict[bytes, int], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (behind ``count``) for records that were numbered behind ``before``, and which of them are new.

    ``own`` are those among them that are given once, with their numbers there, ``known`` those that are here; it grows.
    """
    is_new = np.ones(len(records), bool)
    for packed, number in own.items():
        is_new[number - before - 1] = packed not in known
    numbers = count + np.cumsum(is_new)
    for packed, number in own.items():
        numbers[number - before - 1] = known.setdefault(packed, int(numbers[number - before - 1]))
    return numbers, is_new


def shapes_of(numbers: np.ndarray, known: dict[bytes, int], directory: Path, before: int) -> np.ndarray:
    """Shapes by number: up to ``before`` those that are known by it, behind them the ones in a directory's file."""
    own = _read(directory / _FILES[Table.SHAPES], SHAPE)
    found = np.repeat(SINGLE, len(numbers))
    is_own = (numbers > before) & (numbers <= before + len(own))
    found[is_own] = own[numbers[is_own] - before - 1]
    for packed, number in known.items():
        if number <= before:
            found[numbers == number] = np.frombuffer(packed, SHAPE)[0]
    return found


class MemorySink:
    """Keeps the trace in this process: for Python kernels and ``.pto`` files, which cannot crash it.

    The rows and accesses of a long run go to files piece by piece, which nobody else sees and which end with the process.
    """

    def __init__(self) -> None:
        self._rows, self._accesses = bytearray(), bytearray()
        self._files: tuple[IO[bytes], IO[bytes]] | None = None
        self._rows_before = 0
        self.masks: dict[bytes, int] = {}
        self.shapes: dict[bytes, int] = {}
        self.notes: list[tuple[str, dict[str, Any]]] = []

    @property
    def n_rows(self) -> int:
        """See :class:`Sink`."""
        return self._rows_before + len(self._rows) // 32

    def append(self, rows: bytes | bytearray, accesses: bytes) -> int:
        """See :class:`Sink`.

        Raises:
            UserError: there is no room for the files of a long run.
        """
        window = self._rows
        number = self._rows_before + len(window) // 32
        window += rows
        self._accesses += accesses
        if len(window) >= _WINDOW:
            self._empty_windows()
        return number

    def _empty_windows(self) -> None:
        """Put what is in memory into the files."""
        windows = self._rows, self._accesses
        try:
            if self._files is None:
                self._files = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - open as long as this
            for file, window in zip(self._files, windows, strict=True):
                file.write(window)
                file.flush()
        except OSError as problem:
            raise UserError(
                f"the trace of this run is long, and its file in {tempfile.gettempdir()} cannot be written: "
                f"{problem.strerror or problem}. Name a directory with more room in TMPDIR."
            ) from None
        self._rows_before += len(self._rows) // 32
        for window in windows:
            window.clear()

    def mask(self, packed: bytes) -> int:
        """See :class:`Sink`."""
        return self.masks.setdefault(packed, len(self.masks) + 1)

    def shape(self, packed: bytes) -> int:
        """See :class:`Sink`."""
        return self.shapes.setdefault(packed, len(self.shapes) + 1)

    def note(self, kind: str, data: dict[str, Any]) -> None:
        """See :class:`Sink`."""
        self.notes.append((kind, data))

    def trace(self) -> Trace:
        """What was recorded so far, as a :class:`Trace`."""
        if self._files is None:
            rows, accesses = np.frombuffer(bytes(self._rows), ROW), np.frombuffer(bytes(self._accesses), ACCESS)
        else:
            self._empty_windows()
            rows, accesses = _mapped(self._files[0], ROW), _mapped(self._files[1], ACCESS)
        masks = np.frombuffer(b"".join(self.masks), np.uint8).reshape(-1, 32)
        shapes = _with_single(np.frombuffer(b"".join(self.shapes), SHAPE))
        return Trace(rows, accesses, masks, list(self.notes), shapes)

    def save(self, directory: Path) -> None:
        """Write the trace as the files that :meth:`Trace.load` reads."""
        self.trace().save(directory)

    @property
    def counts(self) -> Counts:
        """See :class:`Sink`."""
        return Counts(self.n_rows, len(self.masks), len(self.shapes))

    @property
    def known(self) -> tuple[dict[bytes, int], dict[bytes, int]]:
        """See :class:`Sink`."""
        return self.masks, self.shapes

    def divert(self, directory: Path, before: Counts) -> None:
        """See :class:`Sink`."""
        self._diverted = directory, before
        self._rows_before = before.rows
        self._rows, self._accesses, self.notes = bytearray(), bytearray(), []
        self._files = (directory / _FILES[0]).open("wb"), (directory / _FILES[1]).open("wb")

    def settle(self) -> None:
        """See :class:`Sink`."""
        directory, before = self._diverted
        self._empty_windows()
        (directory / _FILES[2]).write_bytes(b"".join(list(self.masks)[before.masks :]))
        (directory / _FILES[3]).write_bytes(b"".join(list(self.shapes)[before.shapes :]))
        write_notes(directory, self.notes)

    def shapes_of(self, numbers: np.ndarray, directory: Path, before: int) -> np.ndarray:
        """See :class:`Sink`."""
        return shapes_of(numbers, self.shapes, directory, before)

    def join_known(self, table: Table, records: np.ndarray, own: dict[bytes, int], before: int) -> np.ndarray:
        """See :class:`Sink`."""
        known = self.known[table - Table.MASKS]
        return join_known(records, own, before, known, len(known))[0]

    def extend(self, table: Table, records: np.ndarray) -> None:
        """See :class:`Sink`."""
        window = self._rows if table == Table.ROWS else self._accesses
        window += records.tobytes()
        if len(self._rows) >= _WINDOW:
            self._empty_windows()


def write_notes(directory: Path, notes: list[tuple[str, dict[str, Any]]]) -> None:
    """Write notes as the lines that :func:`read_notes` reads."""
    lines = [json.dumps({"kind": kind, **data}) for kind, data in notes]
    (directory / "notes.jsonl").write_text("".join(line + "\n" for line in lines))


def read_notes(directory: Path) -> list[tuple[str, dict[str, Any]]]:
    """The notes of a trace directory, up to one that a crash cut short."""
    path = directory / "notes.jsonl"
    notes: list[tuple[str, dict[str, Any]]] = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            data = json.loads(line)
        except json.JSONDecodeError:
            break
        notes.append((data.pop("kind"), data))
    return notes


_ROWS_IN_NOTES = {"finding": ("row",), "held": ("rows", "until")}
"""Which entries of the notes that instructions leave are numbers of rows."""


def moved_note(kind: str, data: dict[str, Any], first: int, by: int) -> dict[str, Any]:
    """An instruction's note, where rows from ``first`` on have numbers that are larger by so much."""

    def moved(row: int) -> int:
        return row + by if first <= row < NEVER else row

    entries = {name: data[name] for name in _ROWS_IN_NOTES.get(kind, ())}
    return data | {
        name: [moved(row) for row in entry] if isinstance(entry, list) else moved(entry)
        for name, entry in entries.items()
    }


@dataclass
class Trace:
    """A recorded run: the tables, and the notes beside them. ``shapes`` begins with that of a single burst."""

    rows: np.ndarray
    accesses: np.ndarray
    masks: np.ndarray
    notes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    shapes: np.ndarray = field(default_factory=SINGLE.copy)

    @staticmethod
    def load(directory: Path) -> Trace:
        """Read a trace directory. What a crash cut short is dropped: a record, an access without its row, a row without."""

        notes = read_notes(directory)
        layouts = (ROW, ACCESS, MASK, SHAPE)
        rows, accesses, masks, shapes = (
            _read(directory / name, layout) for name, layout in zip(_FILES, layouts, strict=True)
        )
        masks, shapes = masks.reshape(-1, 32), _with_single(shapes)
        trace = Trace(rows, accesses, masks, notes, shapes)
        first = trace.first_access
        if first[-1] == len(accesses):
            return trace
        whole = int(np.searchsorted(first, len(accesses), side="right")) - 1
        return Trace(rows[:whole], accesses[: first[whole]], masks, notes, shapes)

    def save(self, directory: Path) -> None:
        """Write the trace as the files that :meth:`load` reads."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, table in zip(_FILES, (self.rows, self.accesses, self.masks, self.shapes[1:]), strict=True):
            table.tofile(directory / f"{name}.new")
            os.replace(directory / f"{name}.new", directory / name)  # the old one may be what the table is mapped from
            self.release()
        write_notes(directory, self.notes)

    def release(self) -> None:
        """Give the memory of a long trace in files back: what is looked at again is read again."""
        maps = [found for table in (self.rows, self.accesses) if (found := _map_of(table)) is not None]
        if sum(map(len, maps)) > _KEPT:
            for each in maps:
                each.madvise(mmap.MADV_DONTNEED)

    def stretches(self, text: str, count: int | None = None) -> Iterator[tuple[int, int]]:
        """The parts, begin and end, of a pass over ``count`` rows, accesses or positions (default: the rows).

        Progress says ``text`` and how far it is; what has been passed is released.
        """
        count = len(self.rows) if count is None else count
        if count <= _STRETCH:
            yield 0, count
            return
        with stage(text, -(-count // _STRETCH)):
            for low in range(0, count, _STRETCH):
                yield low, min(low + _STRETCH, count)
                self.release()
                advance()

    def fields(self, rows: np.ndarray, *names: str) -> list[np.ndarray]:
        """Fields of many rows. Of a long trace no more than them is in memory afterwards."""
        return self._taken([self.rows[name] for name in names], rows)

    def records(self, rows: np.ndarray) -> np.ndarray:
        """The records of many rows. Of a long trace no more than them is in memory afterwards."""
        return self._taken([self.rows], rows)[0]

    def accessed(self, numbers: np.ndarray) -> np.ndarray:
        """The records of many accesses. Of a long trace no more than them is in memory afterwards."""
        return self._taken([self.accesses], numbers)[0]

    def _taken(self, columns: list[np.ndarray], numbers: np.ndarray) -> list[np.ndarray]:
        found = [np.empty(len(numbers), column.dtype) for column in columns]
        for begin in range(0, len(numbers), _STRETCH):
            here = slice(begin, begin + _STRETCH)
            for taken, column in zip(found, columns, strict=True):
                taken[here] = column[numbers[here]]
            self.release()
        return found

    @property
    def kind(self) -> np.ndarray:
        """The rows' kinds, contiguous."""
        return self._columns[0]

    @property
    def first_access(self) -> np.ndarray:
        """Index of each row's first access (integers, one more entry than rows)."""
        return self._columns[1]

    @property
    def marks(self) -> np.ndarray:
        """The rows that are no instructions."""
        return self._columns[2]

    @property
    def turns(self) -> np.ndarray:
        """The rows with another core than the row before them."""
        return self._columns[3]

    @cached_property
    def _columns(self) -> tuple[np.ndarray, ...]:
        """``kind``, ``first_access``, ``marks``, ``turns``, ``folded``: each row is read from memory once, for all of them."""
        many = max(len(self.accesses), len(self.rows)) > np.iinfo(np.int32).max
        number: Any = np.int64 if many else np.int32
        kind, first = np.empty(len(self.rows), np.uint8), np.zeros(len(self.rows) + 1, number)
        marks, turns, folded = ([np.zeros(0, number)] for _ in range(3))
        for begin, end in self.stretches("reading the trace"):
            for at in range(begin, end, _CHUNK):
                chunk = self.rows[at : min(at + _CHUNK, end)]
                here = slice(at, at + len(chunk))
                kind[here] = chunk["kind"]
                marks.append((np.flatnonzero(kind[here] != Kind.INSTRUCTION) + at).astype(number))
                folded.append((np.flatnonzero(chunk["flags"] & FOLDED) + at).astype(number))
                np.cumsum(chunk["n_access"], dtype=number, out=first[here.start + 1 : here.stop + 1])
                first[here.start + 1 : here.stop + 1] += first[at]
                core = self.rows["core"][max(at - 1, 0) : here.stop]
                turns.append((np.flatnonzero(core[1:] != core[:-1]) + max(at, 1)).astype(number))
        return kind, first, np.concatenate(marks), np.concatenate(turns), np.concatenate(folded)

    @property
    def folded(self) -> np.ndarray:
        """The rows that stand for the turns of a loop."""
        return self._columns[4]

    @cached_property
    def calls(self) -> np.ndarray:
        """How many calls each row stands for (int64): one, or the turns of a loop."""
        calls = np.ones(len(self.rows), np.int64)
        calls[self.folded] = self.rows["arg"][self.folded]
        return calls

    def rows_of(self, accesses: np.ndarray | int) -> np.ndarray:
        """The rows that own accesses (int64)."""
        first = self.first_access
        return np.searchsorted(first, np.asarray(accesses, first.dtype), side="right") - 1

    def noted(self, kind: str) -> list[dict[str, Any]]:
        """The notes of one kind, in order."""
        return [data for k, data in self.notes if k == kind]

    @cached_property
    def objects(self) -> list[dict[str, Any]]:
        """Noted objects; an access's ``object`` field counts from 1."""
        return self.noted("object")

    @cached_property
    def mnemonics(self) -> dict[int, str]:
        """Mnemonic number to name, as noted by the run."""
        return {data["id"]: data["name"] for data in self.noted("mnemonic")}

    @cached_property
    def titles(self) -> dict[int, str]:
        """Mnemonic number to the name that the kernel's author knows the instruction by."""
        key = "asm" if self.dialect == "ptoas" else "title"
        return {data["id"]: data.get(key) or data.get("title", data["name"]) for data in self.noted("mnemonic")}

    @property
    def dialect(self) -> str:
        """The language that the kernel is written in: ``pto`` (C++), ``c_api``, ``ptoas``, ``python``."""
        noted = self.noted("dialect")
        return noted[-1].get("name", "pto") if noted else "pto"

    def root(self, row: int) -> int:
        """The instruction that the user wrote: the row itself, or the one whose expansion it is a step of."""
        parent = int(self.rows["parent"][row])
        return row if parent < 0 else self.root(parent)


def all_bursts(accesses: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(index of the access, first byte) of every burst of every access; ``shape`` is the :data:`SHAPE` of each (int64)."""
    n1, n2, n3 = (shape[count].astype(np.int64) for count in ("n1", "n2", "n3"))
    each = n1 * n2 * n3
    owner = np.repeat(np.arange(len(accesses)), each)
    turn = np.arange(len(owner)) - np.repeat(np.cumsum(each) - each, each)
    starts = accesses["start"].astype(np.int64)[owner] + turn % n1[owner] * shape["s1"][owner]
    starts += turn // n1[owner] % n2[owner] * shape["s2"][owner]
    starts += turn // (n1 * n2)[owner] * shape["s3"][owner]
    return owner, starts


def _with_single(shapes: np.ndarray) -> np.ndarray:
    return np.concatenate((SINGLE, shapes))


_FILES = ("rows.bin", "accesses.bin", "masks.bin", "shapes.bin")
"""The tables of a trace directory."""


def _read(path: Path, dtype: np.dtype) -> np.ndarray:
    """The whole records of a file that may be missing; it is mapped, not copied."""
    if not path.exists():
        return np.zeros(0, dtype)
    with path.open("rb") as file:
        return _mapped(file, dtype)


def _mapped(file: IO[bytes], dtype: np.dtype) -> np.ndarray:
    """The whole records of a file, read-only."""
    size = os.fstat(file.fileno()).st_size
    if size < dtype.itemsize:
        return np.zeros(0, dtype)
    ways = mmap.MAP_SHARED
    if size <= _KEPT:
        ways |= getattr(mmap, "MAP_POPULATE", 0)  # all pages at once: they are in memory, just written
    return np.frombuffer(mmap.mmap(file.fileno(), 0, ways, mmap.PROT_READ), dtype, size // dtype.itemsize)


def _map_of(table: Any) -> mmap.mmap | None:
    """The mapped file that a table lies in, if it does."""
    while isinstance(table, np.ndarray):
        table = table.base
    table = table.obj if isinstance(table, memoryview) else table
    return table if isinstance(table, mmap.mmap) else None
