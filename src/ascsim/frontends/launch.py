"""Launching a kernel that runs in this process: arguments into global memory, blocks in order, the checks, results back.

Python kernels and ``.pto`` files share it; a C++ kernel runs in a child process of its own (``frontends/cpp``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ascsim import profiles
from ascsim.diagnostics import Diagnostic, Fault, Refused, Severity, Site, UserError
from ascsim.frontends.placement import Placement
from ascsim.frontends.values import global_array
from ascsim.machine.ahead import flush
from ascsim.machine.autosync import AutoSync
from ascsim.machine.core import Core, Machine, Memory
from ascsim.machine.dtypes import dtype
from ascsim.machine.fill import chosen
from ascsim.machine.signals import CoreId, Cores
from ascsim.machine.trace import Kind, MemorySink, Trace, pack_row
from ascsim.machine.words import Pipe
from ascsim.progress import advance, stage

if TYPE_CHECKING:
    from rich.console import Console

    from ascsim.report.page import Shown
    from ascsim.report.time import TimeReport

RED_ZONE = 512
"""Bytes between two arguments in global memory that belong to neither."""


@dataclass
class Run:
    """What a launch (or a program's launches) came to: its trace, and what the checks say of it.

    ``results`` are the blocks of global memory after each launch, by name; of a C++ program only where asked for.
    """

    kernel: str
    profile: profiles.Profile
    trace: Trace
    diagnostics: list[Diagnostic]
    sync: str
    seconds: float = 0.0
    results: dict[str, np.ndarray] = field(default_factory=dict)
    sites: Callable[[int, int], Site | None] = lambda number, flags: None
    """The source site behind a row's ``site`` and ``flags``; of a C++ program only where asked for."""

    @property
    def ok(self) -> bool:
        """True when no finding is an error."""
        return not any(d.severity is Severity.ERROR for d in self.diagnostics)

    def report(self) -> str:
        """The report as plain text."""
        from ascsim.report import terminal

        return terminal.text(self.kernel, self.profile, self.trace, self.diagnostics, self.sync)

    def time(self, infinite: Collection[Pipe] = ()) -> TimeReport:
        """Where the time of the run goes: print it, or look at its ``summary`` and ``schedule``.

        ``infinite`` are pipes to suppose that take no time.

        Raises:
            UserError: the run's profile is no chip.
        """
        from ascsim.report.time import report

        return report(self.kernel, self.profile, self.trace, self.sites, infinite)

    def shown(self, outcomes: Collection[tuple[str, bool]] = ()) -> Shown:
        """The run as the report page takes it; ``outcomes`` are what else is known of it (see there)."""
        from ascsim.report.page import Shown
        from ascsim.timing import schedule

        plan = schedule(self.trace, self.profile) if self.profile.is_chip else None
        return Shown(
            self.kernel, self.profile, self.trace, self.diagnostics, self.sync, self.sites, plan, tuple(outcomes)
        )  # fmt: skip

    def save_page(self, path: str | Path) -> None:
        """Write the report page: findings, timeline, memory, source and instructions in one HTML file for a browser.

        Raises:
            UserError: the file cannot be written.
        """
        from ascsim.report import page

        page.write(Path(path), [self.shown()], self.kernel)

    def _repr_html_(self) -> str:
        from ascsim.report import notebook, terminal

        def show(console: Console) -> None:
            terminal.show(console, self.kernel, self.profile, self.trace, self.diagnostics, self.sync)

        return notebook.html(show)

    def __repr__(self) -> str:
        return f"<run of {self.kernel} on {self.profile.name}: {'ok' if self.ok else 'errors'}>"


class KernelError(Exception):
    """A launch had errors. ``run`` is the whole run; the output arrays hold what the chip would have written."""

    def __init__(self, run: Run) -> None:
        super().__init__("\n" + run.report())
        self.run = run


@dataclass
class Script:
    """What ``ascsim run FILE.py`` sets for the launches of a script."""

    observer: Callable[[Run], None] | None = None
    arch: str | None = None
    sync: str | None = None
    blocks: int = 0


script = Script()


def observe(
    observer: Callable[[Run], None] | None, arch: str | None = None, sync: str | None = None, blocks: int = 0
) -> None:
    """Show every finished launch to ``observer``; ``arch`` and ``sync`` are for kernels that name none themselves.

    ``blocks``, if not 0, stands for what launches say.
    """
    script.observer, script.arch, script.sync, script.blocks = observer, arch, sync, blocks


def conclude(run: Run, raise_on_error: bool) -> Run:
    """The end of a launch that Python code asked for: the observer sees the run.

    Raises:
        KernelError: the run has errors, and ``raise_on_error`` is set.
    """
    if script.observer is not None:
        script.observer(run)
    if raise_on_error and not run.ok:
        raise KernelError(run)
    return run


@dataclass
class Launch:
    """A launch in progress: what the instruction functions need."""

    machine: Machine
    core: Core
    placement: Placement


_running = threading.local()


def current_launch() -> Launch:
    """The launch whose kernel is running.

    Raises:
        UserError: none is.
    """
    launch = getattr(_running, "launch", None)
    if launch is None:
        raise UserError("instructions run inside a kernel: decorate the function with @ascsim.kernel and launch it")
    return launch


def place_arguments(
    arguments: dict[str, Any], sink: MemorySink
) -> tuple[Memory, dict[str, Any], dict[str, np.ndarray]]:
    """Lay arrays out in a fresh global memory, with red zones between; scalars pass through. One array given twice is
    one block.

    Returns the memory, the kernel's arguments by name, and the caller's arrays by name (to copy results back).
    """
    arrays = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
    start = RED_ZONE
    starts: dict[str, int] = {}
    blocks: dict[tuple, str] = {}
    for name, array in arrays.items():
        same = blocks.setdefault((array.__array_interface__["data"][0], array.shape, array.strides), name)
        if same != name:
            starts[name] = starts[same]
            continue
        starts[name] = start
        start = (start + array.nbytes + RED_ZONE + 511) // 512 * 512
    memory = Memory(start)
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in arrays:
            values[name] = value
            continue
        kind = dtype(value.dtype)
        at = starts[name]
        memory.data[at : at + value.nbytes] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        values[name] = global_array(value, kind, at, name)
        if name in blocks.values():
            sink.note("allocation", {"name": name, "start": at, "size": value.nbytes})
    return memory, values, arrays


@dataclass
class _Front:
    """What blocks of this process that run ahead have beside the machine: nothing (:class:`ascsim.machine.ahead.Front`)."""

    name: str
    directory: Path | None = None

    def may_run_ahead(self) -> bool:
        return True

    def shared(self) -> None:
        return None

    def flush(self) -> None:
        flush()

    def begin(self) -> None: ...

    def end(self, cores: Sequence[CoreId], is_last: bool) -> None: ...

    def take(self, told: None) -> None: ...

    def await_process(self, process: int) -> None: ...

    def done(self, cores: int) -> None:
        for _ in range(cores):
            advance()


def launch(
    name: str, function: Callable[..., None], profile: profiles.Profile, blocks: int, arguments: dict[str, Any],
    sync: str = "manual", dialect: str = "python", is_closed: bool = False, side: str = "aiv",
) -> Run:  # fmt: skip
    """Run ``function`` once for each block, in order, and check the trace. Arrays are updated in place.

    ``dialect`` is the language that the report's advice is written in. ``is_closed`` says that ``function`` does nothing
    but issue instructions, so that blocks may run ahead of one another. ``side`` is the core that runs each block:
    ``aiv``, the vector core, or ``aic``, the cube core.
    """
    sink = MemorySink()
    sink.note("dialect", {"name": dialect})
    memory, values, arrays = place_arguments(arguments, sink)
    machine = Machine(profile, sink, memory)
    machine.blocks = blocks
    machine.fill = chosen()
    machine.auto_sync = AutoSync() if sync == "auto" else None
    cores = [[side, 0]]
    sink.note("launch", {"number": 0, "kernel": name, "blocks": blocks, "sync": sync, "side": side, "cores": cores})
    started = time.perf_counter()
    stopped: list[Diagnostic] = []

    def run(core_id: CoreId) -> bool:
        core = Core(machine, *core_id)
        sink.append(pack_row(core.index, 0, Kind.LAUNCH_BEGIN, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0), b"")
        previous = getattr(_running, "launch", None)
        _running.launch = Launch(machine, core, Placement(profile))
        try:
            function(**values)
            core.finish()
        except (Refused, Fault) as stop:
            stopped.append(stop.diagnostic)
            sink.note("refused", {"row": sink.n_rows - 1})
            return False
        finally:
            _running.launch = previous
            sink.append(pack_row(core.index, 0, Kind.LAUNCH_END, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0), b"")
            advance()
        return True

    with stage(f"running {name}", blocks, lambda: f"{sink.n_rows:,} rows of trace"):
        machine.run_cores(Cores(blocks, [(side, 0)]), run, front=_Front(name) if is_closed else None)
    results: dict[str, np.ndarray] = {}
    for array_name, array in arrays.items():
        if array.flags.writeable:
            held = values[array_name]
            data = memory.data[held.address : held.address + array.nbytes].view(array.dtype)
            results[array_name] = data.reshape(array.shape)
            array[...] = results[array_name]
    from ascsim import checks

    trace = sink.trace()
    sites = checks.noted_sites(trace)
    with stage("checking"):
        diagnostics = checks.run(trace, profile, sites)
    findings = [*stopped, *diagnostics]
    return Run(name, profile, trace, findings, sync, time.perf_counter() - started, results, sites)
