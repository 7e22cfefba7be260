"""Running a compiled program: a child process, its trace, and what became of it.

The parent process stays out of reach of whatever the program does. It waits, ends the program when its time is up, and
reads the trace that the child left, complete or not.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ascsim import profiles, scratch
from ascsim.diagnostics import CATALOGUE, Diagnostic, Severity, Site
from ascsim.frontends.cpp.image import load_image
from ascsim.frontends.cpp.library import runtime_library
from ascsim.machine import jobs
from ascsim.machine.fill import chosen
from ascsim.machine.late import chosen as chosen_late
from ascsim.profiles import Profile
from ascsim.progress import stage

if TYPE_CHECKING:
    import numpy as np

    from ascsim.machine.trace import Trace

CATALOGUE.add(
    "H010", Severity.ERROR, "The program crashed",
    "The program that launches the kernels ended by a signal: it used memory that is not there, divided by zero, "
    "aborted.\n\n"
    "Look at the place that is named, as far as debug information tells, and at the last instruction that a kernel "
    "issued: an index or a pointer there is wrong.",
)  # fmt: skip
CATALOGUE.add(
    "H011", Severity.ERROR, "The program did not end in time",
    "The program was still running when the time given by --timeout was over.\n\n"
    "Where it was, and the last instruction that a kernel issued, are named: look there for a loop that does not end. If "
    "there is none, give it more time, or less work.",
)  # fmt: skip
CATALOGUE.add(
    "H012", Severity.ERROR, "The program could not be started",
    "The program could not be loaded: a library is missing, a function is defined nowhere, it has no main function.\n\n"
    "Link what the message names. A kernel without a host program is called from Python (`ascsim.load`).",
)  # fmt: skip

FATAL = "fatal.txt"
"""Beside the trace: why the child process could not start or go on."""
CALL = "call.json"
"""Beside the trace: a kernel to run instead of ``main`` (:class:`Call`)."""
RESULT_FILE = "result-{launch}-{block}.bin"
"""Beside the trace, where asked for: a block of device memory after a launch."""
GRACE = 2.0
"""Seconds that a program has to leave its crash record when it is ended."""


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
        from ascsim.frontends.cpp.sites import resolver

        self.sites = resolver(self.trace)
        """(site number, row flags) to source site; looks all of them up at the first call."""

    def stops(self) -> list[Diagnostic]:
        """Why kernels were stopped (refused by the machine, or faulted), with their source lines."""
        from ascsim.frontends.cpp.endings import stops

        return stops(self.trace, self.sites)

    def results(self) -> dict[str, np.ndarray]:
        """The blocks of device memory after each launch, where the run kept them.

        The element type is that of the stores that wrote to the block, bytes where they differ or tell none.
        """
        from ascsim.frontends.cpp.endings import results

        return results(self.trace, self.trace_directory)

    def close(self) -> None:
        """Remove a temporary trace directory."""
        if self.is_temporary:
            scratch.remove(self.trace_directory)


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
            if isinstance(value, bytes):
                described.append({"name": name, "bytes": value.hex()})
            else:
                described.append({"name": name, "file": files[id(value)].name})
        for value in self._arrays():
            value.tofile(files[id(value)])
        data = {
            "kernel": self.kernel, "blocks": self.blocks, "arguments": described, "dynamic_ub": self.dynamic_ub,
            "caller": asdict(self.caller),
        }  # fmt: skip
        (directory / CALL).write_text(json.dumps(data), encoding="utf-8")

    def take_results(self, directory: Path) -> None:
        """Read the arrays back that may be written to."""
        import numpy as np

        files = self._files(directory)
        for value in self._arrays():
            if value.flags.writeable:
                value.reshape(-1).view(np.uint8)[:] = np.fromfile(files[id(value)], np.uint8)

    def _arrays(self) -> list[np.ndarray]:
        return list({id(value): value for _, value in self.arguments if not isinstance(value, bytes)}.values())

    def _files(self, directory: Path) -> dict[int, Path]:
        return {id(value): directory / f"argument-{index}.bin" for index, value in enumerate(self._arrays())}


class Child:
    """A process that is to become the program: it can be started while the program is built, to be ready by then."""

    def __init__(self, stdout: IO[Any] | int | None = None) -> None:
        job, pipe = os.pipe()
        self._job = os.fdopen(pipe, "w", encoding="utf-8")
        self._expects = False
        command = [sys.executable, "-P", "-m", "ascsim.frontends.cpp.child", str(job)]
        self.process = subprocess.Popen(command, stdout=stdout, pass_fds=(job,))
        os.close(job)

    def expect(self, names: Iterable[str]) -> None:
        """Say which instructions the program is going to use, as far as that is known."""
        self._expects = True
        with contextlib.suppress(BrokenPipeError):
            self._job.write(json.dumps(sorted(names)) + "\n")
            self._job.flush()

    def start(self, **job: str | float | Sequence[str]) -> None:
        """Say what to run: the arguments of :func:`ascsim.frontends.cpp.child.run`."""
        if not self._expects:
            self.expect(())
        with contextlib.suppress(BrokenPipeError), self._job:
            json.dump(job, self._job)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process if it was never told what to run."""
        if not self._job.closed:
            with contextlib.suppress(BrokenPipeError):
                self._job.close()
            self.process.kill()
            self.process.wait()


def run(
    program: Path,
    arguments: Sequence[str] = (),
    *,
    profile: Profile | None = None,
    timeout: float | None = None,
    trace_directory: Path | None = None,
    stdout: IO[Any] | int | None = None,
    call: Call | None = None,
    child: Child | None = None,
    keep_results: bool = False,
    blocks: int = 0,
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
        child: the process to use, which was made with its own ``stdout``.
        keep_results: leave what device memory holds after each launch (:meth:`Outcome.results`).
        blocks: how many blocks every launch has, instead of what the program says; 0: what it says.

    Raises:
        UserError: the file was not linked by ascsim or by another one, or the runtime library cannot be built.
    """
    image = load_image(program)
    image.check_is_current()
    chip = profile or profiles.load(image.profile or "cpu")
    library = runtime_library()
    is_temporary = trace_directory is None
    directory = scratch.make("trace") if trace_directory is None else trace_directory
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for left in ("notes.jsonl", FATAL, CALL):
            (directory / left).unlink(missing_ok=True)
        if call is not None:
            call.save(directory)
        child = child or Child(stdout)
        late = chosen_late()
        child.start(
            directory=str(directory), profile=chip.name, library=str(library), program=str(program.absolute()),
            arguments=list(arguments), keep_results=keep_results, blocks=blocks, fill=chosen(),
            late=late.name if late is not None else "", jobs=jobs.processors(), after=jobs.after(),
        )  # fmt: skip
        with stage(f"running {program.name}", detail=lambda: _recorded(directory)):
            timed_out = _wait(child.process, timeout)
        status = child.process.returncode
        if call is not None:
            call.take_results(directory)
        from ascsim.frontends.cpp import endings

        trace = endings.read_trace(directory)
        error = endings.error_of(program, directory, trace, status, timeout if timed_out else None)
        return Outcome(
            status if status >= 0 else None, max(-status, 0), timed_out, directory, trace, error, chip, is_temporary
        )
    except BaseException:
        if is_temporary:
            scratch.remove(directory)
        raise


def _recorded(directory: Path) -> str:
    """How far a run is."""
    from ascsim.frontends.cpp import sink  # and with it NumPy, which the compiler need not wait for

    return f"{sink.recorded(directory):,} rows of trace"


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
