"""What became of a run: the record of a crash, the trace of what was done until then, and the sentence about both."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ascsim.diagnostics import Diagnostic, Place, Severity, Site
from ascsim.frontends.cpp import sink
from ascsim.frontends.cpp.session import FATAL
from ascsim.frontends.cpp.sites import Module, is_system, resolve_counters, resolver
from ascsim.machine.dtypes import BY_CODE
from ascsim.machine.trace import Kind, Mode, Trace
from ascsim.machine.words import Space

CRASH = np.dtype(
    [("signal", "<u8"), ("pc", "<u8"), ("address", "<u8"), ("rows", "<u8"), ("count", "<u8"), ("frames", "<u8", (59,))]
)
"""``Crash`` of runtime/runtime.cpp."""

_MEANINGS = {
    signal.SIGSEGV: "it used memory that is not there",
    signal.SIGBUS: "it used memory that is not there",
    signal.SIGFPE: "an impossible integer operation, such as a division by zero",
    signal.SIGILL: "an instruction that this computer does not have",
    signal.SIGABRT: "it aborted (a failed assert, an uncaught exception, a broken heap)",
    signal.SIGKILL: "it was killed from outside (the system may be out of memory)",
}


def read_trace(directory: Path) -> Trace:
    """The trace that a child left, complete or not."""
    sink.complete(directory)
    trace = Trace.load(directory)
    _complete_launches(trace)
    return trace


def _complete_launches(trace: Trace) -> None:
    """Put into launches what showed only while they ran: that the tool was to synchronise."""
    launches = {note["number"]: note for note in trace.noted("launch")}
    for note in trace.noted("sync"):
        launches[note["launch"]]["sync"] = note["sync"]


def stops(trace: Trace, sites: Callable[[int, int], Site | None]) -> list[Diagnostic]:
    """The diagnostics of kernels that the machine stopped, each at the line of its instruction."""
    found = []
    for kind, data in trace.notes:
        if kind in ("refused", "fault") and "diagnostic" in data:
            diagnostic = Diagnostic.from_dict(data["diagnostic"])
            site = sites(data["site"], 1)
            places = [replace(place, site=place.site or site) for place in diagnostic.places] or [Place("here", site)]
            found.append(replace(diagnostic, places=tuple(places)))
    return found


def results(trace: Trace, directory: Path) -> dict[str, np.ndarray]:
    """The blocks of device memory that the child left after each launch (:meth:`.session.Outcome.results`)."""
    kernels = {note["number"]: note["kernel"] for note in trace.noted("launch")}
    found = {}
    for note in trace.noted("result"):
        content = np.fromfile(directory / note["file"], np.uint8)
        kind = _stored_type(trace, note["start"], note["start"] + content.size)
        typed = content.view(kind) if content.size % kind.itemsize == 0 else content
        found[f"{kernels[note['launch']]} (launch {note['launch']}), memory {note['block'] + 1}"] = typed
    return found


def _stored_type(trace: Trace, start: int, end: int) -> np.dtype:
    """The element type of all stores that begin in a range of global memory; bytes where there is no such type."""
    accesses = trace.accesses
    inside = (accesses["space"] == Space.GM) & (accesses["mode"] == Mode.WRITE)
    inside &= (accesses["start"] >= start) & (accesses["start"] < end)
    codes = set(np.unique(trace.rows["dtype"][trace.rows_of(np.flatnonzero(inside))]).tolist())
    kind = BY_CODE.get(codes.pop()) if len(codes) == 1 else None
    return kind.numpy if kind is not None else np.dtype(np.uint8)


def error_of(program: Path, directory: Path, trace: Trace, status: int, timeout: float | None) -> Diagnostic | None:
    """Why the program did not end by itself; None if it did."""
    fatal = directory / FATAL
    if fatal.exists():
        return Diagnostic("H012", Severity.ERROR, fatal.read_text(encoding="utf-8"))
    if status >= 0 and timeout is None:
        return None
    crash = _crash(directory)
    places, notes = _where(directory, trace, crash)
    if timeout is not None:
        headline = f"{program.name} did not end within {timeout:g} s"
        mend = "Look for a loop that does not end, or allow more time (--timeout; from Python, timeout=)."
        return Diagnostic("H011", Severity.ERROR, headline, places, notes, mend)
    number = signal.Signals(-status)
    meaning = _MEANINGS.get(number, "it was ended by a signal")
    if crash is not None and number in (signal.SIGSEGV, signal.SIGBUS):
        meaning += f" (address {int(crash['address']):#x})"
    headline = f"{program.name} crashed with {number.name}: {meaning}"
    return Diagnostic("H010", Severity.ERROR, headline, places, notes)


def _crash(directory: Path) -> np.void | None:
    """The crash record, if the program left one."""
    path = directory / "crash.bin"
    data = path.read_bytes() if path.exists() else b""
    return np.frombuffer(data, CRASH)[0] if len(data) == CRASH.itemsize else None


def _where(directory: Path, trace: Trace, crash: np.void | None) -> tuple[tuple[Place, ...], tuple[str, ...]]:
    """Where the program was, and what its kernels last did."""
    places: list[Place] = []
    if crash is not None:
        frames = [int(frame) for frame in crash["frames"][: int(crash["count"])]]
        site = _innermost(_mapped(directory / "crash.maps"), int(crash["pc"]), frames)
        places.append(Place("the program was here", site))
    last = _last_row(trace)
    if last is not None:
        row = trace.rows[last]
        name = trace.titles.get(int(row["mnemonic"]), "an instruction")
        site = resolver(trace)(int(row["site"]), int(row["flags"]))
        places.append(Place(f"the last instruction was {name}, on core {int(row['core'])}", site))
    notes = []
    launches = trace.noted("launch")
    begun, ended = (np.count_nonzero(trace.rows["kind"] == kind) for kind in (Kind.LAUNCH_BEGIN, Kind.LAUNCH_END))
    if launches and begun > ended:
        core = int(trace.rows["core"][np.flatnonzero(trace.rows["kind"] == Kind.LAUNCH_BEGIN)[-1]])
        notes.append(f"It was in the kernel {launches[-1]['kernel']}, on core {core}.")
    elif launches:
        notes.append("It was in host code; no kernel was running.")
    return tuple(places), tuple(notes)


def _last_row(trace: Trace) -> int | None:
    """The last instruction that a user wrote."""
    rows = np.flatnonzero(~np.isin(trace.rows["kind"], (Kind.LAUNCH_BEGIN, Kind.LAUNCH_END)))
    return trace.root(int(rows[-1])) if len(rows) else None


def _mapped(path: Path) -> list[Module]:
    """The files in a copy of /proc/PID/maps."""
    spans: dict[str, tuple[int, int]] = {}
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        words = line.split(None, 5)
        if len(words) < 6 or not words[5].startswith("/"):
            continue
        start, end = (int(word, 16) for word in words[0].split("-"))
        base, last = spans.get(words[5], (start - int(words[2], 16), end))
        spans[words[5]] = (base, max(last, end))
    return [Module(name, base, end - base) for name, (base, end) in spans.items()]


def _innermost(loaded: list[Module], pc: int, frames: list[int]) -> Site | None:
    """The user's line nearest to the crash: of the counter itself, else of the callers' return addresses."""
    system = ("/usr/", "/lib", sys.prefix, sys.base_prefix)
    own = [module for module in loaded if not module.path.startswith(system) and "libascsim_rt" not in module.path]
    below = frames[frames.index(pc) + 1 :] if pc in frames else frames
    counters = {0: pc} | {index: frame - 1 for index, frame in enumerate(below, start=1)}
    sites = resolve_counters(own, counters)
    found = [sites[index] for index in sorted(sites)]
    for is_good in (lambda site: site.line and not is_system(site.path), lambda site: site.line, lambda site: True):
        for site in found:
            if is_good(site):
                return site
    return None
