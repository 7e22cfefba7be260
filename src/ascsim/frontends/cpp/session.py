"""Running a compiled program: a child process, its trace, and what became of it.

The parent process stays out of reach of whatever the program does. It waits, ends the program when its time is up, and
reads the trace that the child left, complete or not.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from ascsim import profiles
from ascsim.diagnostics import CATALOGUE, Diagnostic, Place, Severity, Site
from ascsim.frontends.cpp.image import load_image
from ascsim.frontends.cpp.library import runtime_library
from ascsim.frontends.cpp.sink import CALL, FATAL
from ascsim.frontends.cpp.sites import Module, is_system, resolve_counters, resolver
from ascsim.machine.trace import ACCESS, ROW, Kind, Trace
from ascsim.profiles import Profile

CATALOGUE.add(
    "H010", Severity.ERROR, "The program crashed",
    "The program that launches the kernels ended by a signal: it used memory that is not there, divided by zero, "
    "aborted. The place in the source is named as far as debug information tells, and the last instruction that a "
    "kernel issued.",
)  # fmt: skip
CATALOGUE.add(
    "H011", Severity.ERROR, "The program did not end in time",
    "The program was still running when the time given by --timeout was over. Where it was, and the last instruction "
    "that a kernel issued, are named.",
)  # fmt: skip
CATALOGUE.add(
    "H012", Severity.ERROR, "The program could not be started",
    "The program could not be loaded: a library is missing, a function is defined nowhere, it has no main function.",
)  # fmt: skip

GRACE = 2.0
"""Seconds that a program has to leave its crash record when it is ended."""
CRASH = np.dtype(
    [("signal", "<u8"), ("pc", "<u8"), ("address", "<u8"), ("rows", "<u8"), ("count", "<u8"), ("frames", "<u8", (59,))]
)
"""``Crash`` of runtime/runtime.cpp."""

_MEANINGS = {
    signal.SIGSEGV: "it used memory that is not there",
    signal.SIGBUS: "it used memory that is not there (or the disk with the trace is full)",
    signal.SIGFPE: "an impossible integer operation, such as a division by zero",
    signal.SIGILL: "an instruction that this computer does not have",
    signal.SIGABRT: "it aborted (a failed assert, an uncaught exception, a broken heap)",
    signal.SIGKILL: "it was killed from outside (the system may be out of memory)",
}


@dataclass
class Outcome:
    """What became of a run.

    ``status`` is the program's exit status, None when a signal ended it; ``error`` says why it did not end by itself.
    The trace directory is temporary unless one was given: :meth:`close` removes it.
    """

    status: int | None
    signal: int
    timed_out: bool
    trace_directory: Path
    trace: Trace
    error: Diagnostic | None
    profile: Profile
    is_temporary: bool = False

    def __post_init__(self) -> None:
        self.sites = resolver(self.trace)
        """(site number, row flags) to source site; looks all of them up at the first call."""

    def stops(self) -> list[Diagnostic]:
        """Why kernels were stopped (refused by the machine, or faulted), with their source lines."""
        return stops(self.trace, self.sites)

    def close(self) -> None:
        """Remove a temporary trace directory."""
        if self.is_temporary:
            shutil.rmtree(self.trace_directory, ignore_errors=True)


@dataclass(frozen=True)
class Call:
    """A kernel to run without a host program.

    ``arguments`` stand in the kernel's order, with their names: contiguous arrays, which go into device memory and hold
    the results afterwards (the same array twice is one block), and anything else as its bytes. ``caller`` is the place
    in the Python source.
    """

    kernel: str
    blocks: int
    arguments: tuple[tuple[str, np.ndarray | bytes], ...]
    dynamic_ub: int
    caller: Site

    def save(self, directory: Path) -> None:
        """Leave the call where the child finds it."""
        described = []
        files = self._files(directory)
        for name, value in self.arguments:
            if isinstance(value, np.ndarray):
                described.append({"name": name, "file": files[id(value)].name})
            else:
                described.append({"name": name, "bytes": value.hex()})
        for value in self._arrays():
            value.tofile(files[id(value)])
        data = {
            "kernel": self.kernel, "blocks": self.blocks, "arguments": described, "dynamic_ub": self.dynamic_ub,
            "caller": asdict(self.caller),
        }  # fmt: skip
        (directory / CALL).write_text(json.dumps(data), encoding="utf-8")

    def take_results(self, directory: Path) -> None:
        """Read the arrays back that may be written to."""
        files = self._files(directory)
        for value in self._arrays():
            if value.flags.writeable:
                value.reshape(-1).view(np.uint8)[:] = np.fromfile(files[id(value)], np.uint8)

    def _arrays(self) -> list[np.ndarray]:
        return list({id(value): value for _, value in self.arguments if isinstance(value, np.ndarray)}.values())

    def _files(self, directory: Path) -> dict[int, Path]:
        return {id(value): directory / f"argument-{index}.bin" for index, value in enumerate(self._arrays())}


def run(
    program: Path,
    arguments: Sequence[str] = (),
    *,
    profile: Profile | None = None,
    timeout: float | None = None,
    trace_directory: Path | None = None,
    stdout: IO[Any] | int | None = None,
    call: Call | None = None,
) -> Outcome:
    """Run a program that ``ascsim c++`` linked, on this process's standard streams.

    Args:
        program: the linked file.
        arguments: the program's own arguments, without its name.
        profile: the chip; by default the one that it was compiled for.
        timeout: seconds after which it is ended.
        trace_directory: where the trace goes; by default a temporary directory.
        stdout: a file for the program's standard output; by default this process's own.
        call: run this kernel of a library instead of the program's ``main``.

    Raises:
        UserError: the file was not linked by ascsim or by another one, or the runtime library cannot be built.
    """
    image = load_image(program)
    image.check_is_current()
    chip = profile or profiles.load(image.profile or "cpu")
    library = runtime_library()
    is_temporary = trace_directory is None
    directory = Path(tempfile.mkdtemp(prefix="ascsim-trace-")) if trace_directory is None else trace_directory
    directory.mkdir(parents=True, exist_ok=True)
    for left in ("notes.jsonl", FATAL, CALL):
        (directory / left).unlink(missing_ok=True)
    if call is not None:
        call.save(directory)
    command = [
        sys.executable, "-P", "-m", "ascsim.frontends.cpp.child", str(directory), chip.name, str(library),
        str(program.absolute()), *arguments,
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=stdout)
    timed_out = _wait(process, timeout)
    status = process.returncode
    if call is not None:
        call.take_results(directory)
    _cut(directory)
    trace = Trace.load(directory)
    _complete_launches(trace)
    error = _error(program, directory, trace, status, timeout if timed_out else None)
    return Outcome(
        status if status >= 0 else None, max(-status, 0), timed_out, directory, trace, error, chip, is_temporary
    )


def _wait(process: subprocess.Popen[bytes], timeout: float | None) -> bool:
    """Wait for the process; True when its time was up and it was ended."""
    try:
        process.wait(timeout)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGQUIT)  # the runtime notes where it is, and dies
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return True
    except BaseException:
        process.kill()
        process.wait()
        raise


def _cut(directory: Path) -> None:
    """Cut the trace files, which grow in chunks, to what was written."""
    extent = directory / "extent.bin"
    if not extent.exists():
        return
    counts = np.frombuffer(extent.read_bytes()[:24], "<u8")
    sizes = {"rows": ROW.itemsize, "accesses": ACCESS.itemsize, "masks": 32}
    for (name, size), count in zip(sizes.items(), counts, strict=True):
        path = directory / f"{name}.bin"
        if path.exists():
            os.truncate(path, int(count) * size)


def _complete_launches(trace: Trace) -> None:
    """Put into launches what showed only while they ran: that the tool was to synchronise."""
    launches = {note["number"]: note for note in trace.noted("launch")}
    for note in trace.noted("sync"):
        launches[note["launch"]]["sync"] = note["sync"]


# --------------------------------------------------------------------------------------------------------------------
# What went wrong


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


def _error(program: Path, directory: Path, trace: Trace, status: int, timeout: float | None) -> Diagnostic | None:
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
        name = trace.mnemonics.get(int(row["mnemonic"]), "an instruction")
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
