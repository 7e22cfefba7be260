"""Blocks that run ahead: spans of a launch in processes of their own, which come to what one after the other comes to.

Cores run one after the other, in block order. Once a launch has taken a while, the blocks that are left are run ahead: a
span of them in a copy of this process (``fork``), which has the memories, the plans and the loaded code as they are now, and
leaves its part of the trace in files of its own. This process takes the spans in block order: it appends what they recorded,
renumbered, and writes to global memory what they wrote.

That is right only as long as a span would have done the same in its turn. It is thrown away, and run again here, if

- it read bytes of global memory that a span before it wrote, and that were not there yet when it began;
- what cores of a launch share beside memory changed meanwhile (where declared arrays lie);
- it did what cannot be done apart: signalled other blocks, waited in vain, polled, called the host program's functions,
  wrote to memory that is in no memory of the chip (a static variable), was stopped, crashed.

So nothing depends on the schedule: neither results nor the trace, nor what was printed and in which order. A span that read
nothing that came too late does what it would have done, so one that does not end would not have ended either.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import mmap
import os
import pickle
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from ascsim import scratch
from ascsim.machine.jobs import after, processors
from ascsim.machine.signals import CoreId, Kept, SignalMode, Signals
from ascsim.machine.trace import ACCESS, MASK, ROW, SHAPE, Counts, Kind, Mode, Table, all_bursts, moved_note, read_notes
from ascsim.machine.words import Space
from ascsim.progress import silence

if TYPE_CHECKING:
    from ascsim.machine.core import Machine

SPANS_AFTER = 3
"""How many times as long a span is meant to take."""
MOST_CONFLICTS = 4
"""So many spans of a launch may be thrown away before it goes on one block after the other."""
MOST_WAITING = 4
"""Spans for each process that may be ahead of the first that is not taken yet: what memory and disk hold."""
MOST_BURSTS = 1 << 24
_UNFIT = 3
_CHUNK = 1 << 16
_LOOK = 1.0
"""Seconds after which the first span is looked at: whether it reads what came too late, and may never end."""
_IDLE = 4.0
"""Seconds after which a process that does nothing is taken to wait for a thread that it has no copy of."""
_SET_DEATH_SIGNAL = 1
"""An option of Linux's ``prctl``."""


def unfit() -> NoReturn:
    """What runs ahead cannot go on apart from the rest: this process ends, and its span is run in its turn."""
    os._exit(_UNFIT)


class OwnSignals(Signals):
    """The signals of blocks that run ahead: within a block."""

    def arrive(self, core: int, mode: SignalMode, flag: int) -> int:
        """See :class:`Signals`."""
        if mode is SignalMode.INTER:
            unfit()
        return super().arrive(core, mode, flag)


BEFORE = "before.json"
"""Beside a span's tables: how many rows, masks, shapes and objects there were before it."""
TOLD = "told"
"""Beside a span's tables once it has come to its end: what else is known of it."""


class Front(Protocol):
    """What a front end adds."""

    name: str
    """The kernel."""
    directory: Path | None
    """Where the files of spans go; None: where temporary ones do."""

    def may_run_ahead(self) -> bool:
        """Whether all that a block does to what others see shows in the trace."""

    def shared(self) -> Any:
        """What cores share beside memories and the trace. A span is thrown away if that changed since it began."""

    def flush(self) -> None:
        """Write out what is printed and still held (:func:`flush` at least)."""

    def begin(self) -> None:
        """In the process that runs ahead, before its first core."""

    def end(self, cores: Sequence[CoreId], is_last: bool) -> Any:
        """There, after its cores (``is_last``: the last of the launch): what the launch's own process has to know."""

    def take(self, told: Any) -> None:
        """In the launch's own process: take that over."""

    def done(self, cores: int) -> None:
        """So many cores more have been run."""

    def await_process(self, process: int) -> None:
        """In the launch's own process: it waits for the process of some blocks from now on; 0: for none."""


@dataclass
class _Told:
    """What a span leaves beside its tables."""

    base: Counts
    objects_before: int
    objects: list[Any]
    masks: dict[bytes, int]
    shapes: dict[bytes, int]
    signals: Kept
    reads: np.ndarray
    writes: np.ndarray
    pages: np.ndarray
    """Where pages of global memory begin of which more or less may be other than before, int64; their contents are in a
    file."""
    front: Any


@dataclass
class _Span:
    """Cores ``first`` to ``end``, by their place, in a process of their own."""

    first: int
    end: int
    directory: Path
    process: int
    pipe: int
    shared: bytes
    shapes_before: int
    foreign: list[np.ndarray] = field(default_factory=list)
    """What spans wrote that were taken since it began."""
    has_ended: bool = False
    is_whole: bool = False
    looked_at: int = 0
    ticks: int = -1
    """Of the processor, that it had used when it was looked at."""


class Ahead:
    """Runs a launch's blocks ahead; one for a launch.

    Called with the place of the next core, where no core is in the middle of its block; returns how many have been run.
    """

    def __init__(
        self, machine: Machine, cores: Sequence[CoreId], run: Callable[[CoreId], bool], front: Front
    ) -> None:  # fmt: skip
        self._machine, self._cores, self._run, self._front = machine, cores, run, front
        self._jobs, self._after = 0, after()
        self._started = time.perf_counter()
        self._here = 0
        self._conflicts = 0
        self._not_before = 1
        self._patience = _LOOK
        self._spans: deque[_Span] = deque()
        self._is_over = front.name in machine.unfit

    def __call__(self, first: int) -> int:
        """See the class."""
        cores = self._cores
        if self._is_over or first >= len(cores) or first == 0 or cores[first].block == cores[first - 1].block:
            return 0
        here = self._here = self._here + 1
        left = cores[-1].block - cores[first].block + 1
        each = (time.perf_counter() - self._started) / here
        if left < 2 or here < self._not_before or each * min(here, left) < self._after:
            return 0
        self._jobs = self._jobs or self._allowed()
        if self._jobs < 2:
            self._is_over = True
            return 0
        long = min(max(round(SPANS_AFTER * self._after / each), 1), -(-left // self._jobs))
        began = time.perf_counter()
        with self._place() as place:
            try:
                taken = self._run_spans(first, self._bounds(first, long), Path(place))
            finally:
                self._front.await_process(0)
                self._abandon()
        self._started += time.perf_counter() - began
        return taken

    def _allowed(self) -> int:
        """How many processes there may be; 1: none beside this one."""
        is_possible = sys.platform == "linux" and threading.current_thread() is threading.main_thread()
        return processors() if is_possible and self._front.may_run_ahead() and not _is_traced() else 1

    def _place(self) -> contextlib.AbstractContextManager[str | Path]:
        """A directory for the files of spans."""
        if self._front.directory is None:
            return scratch.directory("ahead")
        return tempfile.TemporaryDirectory(prefix="ahead-", dir=self._front.directory)

    def _bounds(self, first: int, blocks: int) -> deque[tuple[int, int]]:
        """The spans from a core on, so many blocks each: (first, one past the last)."""
        cores = self._cores
        bounds: deque[tuple[int, int]] = deque()
        while first < len(cores):
            end, block = first, cores[first].block
            while end < len(cores) and cores[end].block < block + blocks:
                end += 1
            bounds.append((first, end))
            first = end
        return bounds

    def _run_spans(self, first: int, bounds: deque[tuple[int, int]], place: Path) -> int:
        """Run spans until all are taken or one is thrown away; returns how many cores have been run."""
        taken = first
        while bounds or self._spans:
            running = sum(not span.has_ended for span in self._spans)
            if bounds and running < self._jobs and len(self._spans) < MOST_WAITING * self._jobs:
                if not self._fork(*bounds.popleft(), place):
                    self._is_over = True
                    break
                continue
            span = self._spans[0]
            if not span.has_ended:
                self._front.await_process(span.process)
                if not self._wait():
                    break
                continue
            if not span.is_whole:
                self._is_over = True
                self._machine.unfit.add(self._front.name)
                break
            if not self._take(span):
                break
            self._spans.popleft()
            shutil.rmtree(span.directory, ignore_errors=True)
            self._front.done(span.end - span.first)
            taken = span.end
        return taken - first

    # Processes

    def _fork(self, first: int, end: int, place: Path) -> bool:
        """Let a span begin; False where the system does not let it."""
        directory = place / f"{first:06}"
        shared, before = pickle.dumps(self._front.shared()), self._machine.sink.counts
        try:
            directory.mkdir()
            self._front.flush()
            reading, writing = os.pipe2(os.O_CLOEXEC)
            parent = os.getpid()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which know nothing of this launch
                process = os.fork()
        except OSError:
            return False
        if process == 0:
            self._work(first, end, directory, before, writing, parent)
        os.close(writing)
        self._spans.append(_Span(first, end, directory, process, reading, shared, before.shapes))
        return True

    def _work(self, first: int, end: int, directory: Path, base: Counts, pipe: int, parent: int) -> NoReturn:
        """What the process of a span does."""
        try:
            ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(_UNFIT)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            gc.freeze()
            silence()
            told = self._run_here(first, end, directory, base)
            (directory / TOLD).write_bytes(pickle.dumps(told))
            os.write(pipe, b"+")
            os._exit(0)
        except BaseException:
            if os.environ.get("ASCSIM_DEBUG"):
                os.dup2(_error_stream, 2)
                traceback.print_exc()
                sys.stderr.flush()
        finally:
            os._exit(_UNFIT)

    def _run_here(self, first: int, end: int, directory: Path, base: Counts) -> _Told:
        machine, sink = self._machine, self._machine.sink
        _divert_output(directory)
        objects = machine.object_count
        (directory / BEFORE).write_text(json.dumps([*base, objects]))
        machine.is_ahead = True
        sink.divert(directory, base)
        self._front.begin()
        if not machine.run_span(self._cores[first:end], self._run):
            unfit()
        front = self._front.end(self._cores[first:end], end == len(self._cores))
        self._front.flush()
        sink.settle()
        reads, writes = _global_bytes(directory, partial(sink.shapes_of, directory=directory, before=base.shapes))
        if len(writes) and writes[-1, 1] > machine.gm.data.size:
            unfit()
        pages = _changed_pages(machine.gm.data)
        pages = pages[~_are_within(pages, np.minimum(pages + _PAGE, machine.gm.data.size), writes)]
        with (directory / "memory").open("wb") as file:
            for _, content in _pieces(machine.gm.data, writes):
                file.write(content.tobytes())
        with (directory / "pages").open("wb") as file:
            for start in pages.tolist():
                file.write(machine.gm.data[max(start, 0) : start + _PAGE].tobytes())
        masks, shapes = (
            {packed: number for packed, number in known.items() if number > before}
            for known, before in zip(sink.known, (base.masks, base.shapes), strict=True)
        )
        noted, signals = machine.objects_from(objects), machine.signals.kept()
        return _Told(base, objects, noted, masks, shapes, signals, reads, writes, pages, front)

    def _wait(self) -> bool:
        """Wait until some span has ended; returns whether the first of them may still be right."""
        running = {span.pipe: span for span in self._spans if not span.has_ended}
        poll = select.poll()
        for pipe in running:
            poll.register(pipe, select.POLLIN)
        ended = poll.poll(self._patience * 1000)
        for pipe, _ in ended:
            running[pipe].is_whole = os.read(pipe, 1) == b"+"
            self._reap(running[pipe])
        if ended:
            self._patience = _LOOK
        else:
            first = self._spans[0]
            if self._is_idle(first) and self._patience >= _IDLE:
                self._is_over = True
                return False
            self._patience = min(2 * self._patience, 60)
            if self._reads_too_early(first):
                self._count_conflict()
                return False
        return True

    def _is_idle(self, span: _Span) -> bool:
        """Whether a span's process has done nothing since this was asked last."""
        try:
            fields = Path(f"/proc/{span.process}/stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1]
        except OSError:
            return False
        before, span.ticks = span.ticks, sum(map(int, fields.split()[11:13]))
        return span.ticks == before

    def _reap(self, span: _Span) -> None:
        span.has_ended = True
        os.close(span.pipe)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(span.process, 0)

    def _abandon(self) -> None:
        """End what still runs."""
        for span in self._spans:
            if not span.has_ended:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(span.process, signal.SIGKILL)
                self._reap(span)
        self._spans.clear()

    def _count_conflict(self) -> None:
        self._conflicts += 1
        self._not_before = self._here + 2**self._conflicts
        self._is_over = self._is_over or self._conflicts >= MOST_CONFLICTS

    # Taking over

    def _take(self, span: _Span) -> bool:
        """Make a span's records and writes those of the launch; False if it did not see what it had to."""
        told: _Told = pickle.loads((span.directory / TOLD).read_bytes())
        is_stale = span.shared != pickle.dumps(self._front.shared())
        if is_stale or any(meet(told.reads, written) for written in span.foreign):
            self._count_conflict()
            return False
        if self._has_untold_writes(span, told):
            self._is_over = True
            self._machine.unfit.add(self._front.name)
            return False
        self._join(span.directory, told)
        with (span.directory / "memory").open("rb") as file:
            _write(self._machine.gm.data, told.writes, file.read)
        for other in self._spans:
            if other is not span:
                other.foreign.append(told.writes)
        self._front.take(told.front)
        self._front.flush()
        for name, stream in (("output", 1), ("errors", 2)):
            _replay(span.directory / name, stream)
        return True

    def _join(self, directory: Path, told: _Told) -> None:
        """Append what a span recorded, with the numbers that it would have in its turn."""
        machine, sink, base = self._machine, self._machine.sink, told.base
        by = sink.counts.rows - base.rows
        masks, shapes = (
            np.fromfile(directory / name, kind) for name, kind in (("masks.bin", MASK), ("shapes.bin", SHAPE))
        )
        masks = sink.join_known(Table.MASKS, masks, told.masks, base.masks)
        shapes = sink.join_known(Table.SHAPES, shapes, told.shapes, base.shapes)
        objects, fresh = machine.join_objects(told.objects)
        for accesses in _chunks(directory / "accesses.bin", ACCESS):
            for name, before, numbers in (
                ("mask", base.masks, masks), ("shape", base.shapes, shapes), ("object", told.objects_before, objects)
            ):  # fmt: skip
                own = accesses[name] > before
                accesses[name][own] = numbers[accesses[name][own] - before - 1]
            sink.extend(Table.ACCESSES, accesses)
        later = machine.signals.join(told.signals)
        for rows in _chunks(directory / "rows.bin", ROW):
            rows["parent"][rows["parent"] >= base.rows] += by
            is_signal = np.isin(rows["kind"], (Kind.ARRIVE, Kind.AWAIT)) & (rows["arg"] > 0)
            rows["arg"][is_signal] += later
            sink.extend(Table.ROWS, rows)
        is_fresh = iter(fresh)
        for kind, data in read_notes(directory):
            once = data.pop("once", None)
            if (kind == "object" and not next(is_fresh)) or (once is not None and not machine.is_new(once)):
                continue
            sink.note(kind, moved_note(kind, data, base.rows, by))

    def _has_untold_writes(self, span: _Span, told: _Told) -> bool:
        """Whether a span changed bytes of global memory without a word in its trace."""
        memory = self._machine.gm.data
        known = merged(np.concatenate((told.writes, *span.foreign)))
        with (span.directory / "pages").open("rb") as file:
            for start in told.pages.tolist():
                here = memory[max(start, 0) : start + _PAGE]
                changed = np.flatnonzero(here != np.frombuffer(file.read(len(here)), np.uint8)) + max(start, 0)
                if not _are_within(changed, changed + 1, known).all():
                    return True
        return False

    def _reads_too_early(self, span: _Span) -> bool:
        """Whether a span that still runs has read what came too late, as far as its files tell."""
        path = span.directory / "accesses.bin"
        if not span.foreign or not path.exists() or not (span.directory / "shapes.bin").exists():
            return False
        new = np.fromfile(path, ACCESS, offset=span.looked_at)
        span.looked_at += new.nbytes
        reads = new[(new["space"] == Space.GM) & (new["mode"] == Mode.READ)]
        shapes = partial(self._machine.sink.shapes_of, directory=span.directory, before=span.shapes_before)
        try:
            return any(meet(part, written) for part in _intervals(reads, shapes) for written in span.foreign)
        except _Scattered:
            return True


def _is_traced() -> bool:
    """Whether a debugger follows this process: its breakpoints would not be met in others."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "TracerPid:\t0\n" not in status


# What is printed

_error_stream = 2


def flush() -> None:
    """Write out what Python and the C library still hold of standard output and error."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(ValueError, OSError):
                stream.flush()
    library = ctypes.CDLL(None)
    for name in ("stdout", "stderr"):  # not all files: a thread may be in the middle of reading one
        library.fflush(ctypes.c_void_p.in_dll(library, name))


def _divert_output(directory: Path) -> None:
    """Let standard output and error of this process go to files; to one, where they are one."""
    global _error_stream
    _error_stream = os.dup(2)
    ways = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        out, errors = os.fstat(1), os.fstat(2)
        are_one = (out.st_dev, out.st_ino) == (errors.st_dev, errors.st_ino)
    except OSError:
        are_one = False
    for stream, name in ((1, "output"), (2, "output" if are_one else "errors")):
        file = os.open(directory / name, ways, 0o600)
        os.dup2(file, stream)
        os.close(file)
    # What stands in Python for them may belong to a thread (of a progress bar) that is not in this process.
    sys.stdout, sys.stderr = (open(stream, "w", closefd=False) for stream in (1, 2))  # noqa: SIM115 - for good


def _replay(path: Path, stream: int) -> None:
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("rb") as file, contextlib.suppress(OSError):
        while piece := file.read(1 << 16):
            while piece:
                piece = piece[os.write(stream, piece) :]


# Bytes of global memory


def _chunks(path: Path, kind: np.dtype) -> Iterator[np.ndarray]:
    """A table, so many records at a time."""
    with path.open("rb") as file:
        while len(chunk := np.fromfile(file, kind, _CHUNK)):
            yield chunk


class _Scattered(Exception):
    """Bytes that are too many single ones to be worked out."""


def _global_bytes(directory: Path, shapes: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of global memory that a span read, and those it wrote, as intervals. ``shapes`` gives them by number."""
    found = {Mode.READ: np.zeros((0, 2), np.int64), Mode.WRITE: np.zeros((0, 2), np.int64)}
    for chunk in _chunks(directory / "accesses.bin", ACCESS):
        of_global = chunk[chunk["space"] == Space.GM]
        for mode, before in found.items():
            some = of_global[of_global["mode"] == mode]
            if mode == Mode.WRITE and some["mask"].any():
                raise _Scattered
            for new in _intervals(some, shapes):
                before = merged(np.concatenate((before, new)))
            found[mode] = before
    return found[Mode.READ], found[Mode.WRITE]


def _intervals(accesses: np.ndarray, shapes: Callable[[np.ndarray], np.ndarray]) -> Iterator[np.ndarray]:
    """The bytes of accesses as intervals, in parts that have not too many bursts.

    Raises:
        _Scattered: one access alone has more.
    """
    what = np.unique(accesses[["start", "length", "shape"]])
    numbers, which = np.unique(what["shape"], return_inverse=True)
    shape = shapes(numbers.astype(np.int64))[which]
    each = shape["n1"].astype(np.int64) * shape["n2"] * shape["n3"]
    if len(each) and each.max() > MOST_BURSTS:
        raise _Scattered
    part = np.cumsum(each) // MOST_BURSTS
    for number in np.unique(part):
        here = part == number
        owner, starts = all_bursts(what[here], shape[here])
        yield merged(np.stack((starts, starts + what["length"][here][owner]), axis=1))


def merged(intervals: np.ndarray) -> np.ndarray:
    """The same bytes as sorted intervals that do not touch: int64[n, 2]."""
    low, high = intervals[intervals[:, 1] > intervals[:, 0]].T
    order = np.argsort(low, kind="stable")
    low, reach = low[order], np.maximum.accumulate(high[order]) if len(high) else high
    opens = np.flatnonzero(np.concatenate(([True], low[1:] > reach[:-1]))) if len(low) else np.zeros(0, np.int64)
    closes = np.concatenate((opens[1:], [len(low)])) - 1 if len(opens) else opens
    return np.stack((low[opens], reach[closes]), axis=1).astype(np.int64)


def meet(some: np.ndarray, others: np.ndarray) -> bool:
    """Whether two sets of sorted intervals have a byte in common."""
    if not len(some) or not len(others):
        return False
    after = np.searchsorted(others[:, 1], some[:, 0], side="right")  # the first that ends behind where one begins
    inside = after < len(others)
    return bool((others[after[inside], 0] < some[inside, 1]).any())


def _are_within(low: np.ndarray, high: np.ndarray, intervals: np.ndarray) -> np.ndarray:
    """Which of some ranges lie in one interval each."""
    if not len(intervals):
        return np.zeros(len(low), bool)
    place = np.maximum(np.searchsorted(intervals[:, 0], low, side="right") - 1, 0)
    return (intervals[place, 0] <= low) & (high <= intervals[place, 1])


_PAGE = mmap.PAGESIZE
_PRESENT, _SWAPPED, _EXCLUSIVE = 1 << 63, 1 << 62, 1 << 56  # of an entry of /proc/self/pagemap


def _changed_pages(memory: np.ndarray) -> np.ndarray:
    """Where the pages begin (in a memory, in which the first may begin below 0) that this process alone has, int64.

    In a copy of a process those are the ones that it wrote to, and those that the other did. Empty where the system does
    not tell.
    """
    address = memory.ctypes.data
    first = address // _PAGE
    count = (address + memory.size + _PAGE - 1) // _PAGE - first
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as file:
            file.seek(8 * first)
            entries = np.frombuffer(file.read(8 * count), np.uint64)
    except OSError:
        return np.zeros(0, np.int64)
    alone = (entries & np.uint64(_PRESENT) != 0) & (entries & np.uint64(_EXCLUSIVE) != 0)
    alone |= entries & np.uint64(_SWAPPED) != 0
    return np.flatnonzero(alone) * _PAGE + (first * _PAGE - address)


_PIECE = 1 << 22


def _pieces(memory: np.ndarray, intervals: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """The bytes of intervals in order, a few MiB at a time: (what selects them, the bytes)."""
    sizes = intervals[:, 1] - intervals[:, 0]
    ends = np.cumsum(sizes)
    at = 0
    while at < len(intervals):
        before = ends[at] - sizes[at]
        stop = max(int(np.searchsorted(ends, before + _PIECE, side="right")), at + 1)
        if stop == at + 1:
            where: Any = slice(int(intervals[at, 0]), int(intervals[at, 1]))
        else:
            some = sizes[at:stop]
            where = np.repeat(intervals[at:stop, 0] - (np.cumsum(some) - some), some) + np.arange(some.sum())
        yield where, memory[where]
        at = stop


def _write(memory: np.ndarray, intervals: np.ndarray, read: Callable[[int], bytes]) -> None:
    """Write bytes, in the order of :func:`_pieces`."""
    for where, content in _pieces(memory, intervals):
        memory[where] = np.frombuffer(read(content.size), np.uint8)
