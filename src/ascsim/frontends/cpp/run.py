"""``ascsim run FILE`` for C++: build if it is a source, run, check the trace."""

from __future__ import annotations

import gc
import importlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ascsim import profiles
from ascsim.blas import import_numpy
from ascsim.diagnostics import UserError, fold_equal
from ascsim.frontends.cpp import driver, session
from ascsim.frontends.cpp.arguments import LANGUAGES
from ascsim.frontends.cpp.image import load_image
from ascsim.frontends.cpp.library import build_ahead
from ascsim.progress import stage

if TYPE_CHECKING:
    from ascsim.frontends.launch import Run
    from ascsim.machine.trace import Trace

AUTO_FLAGS = ("--cce-pto-auto-enable",)


def run_file(
    file: Path,
    arch: str | None,
    arguments: list[str],
    *,
    flags: Sequence[str] = (),
    sync: str | None = None,
    timeout: float | None = None,
    keep: Path | None = None,
    trace_directory: Path | None = None,
    output: IO[Any] | int | None = None,
    keep_results: bool = False,
    blocks: int = 0,
    keep_sites: bool = False,
) -> tuple[Run, int]:
    """Build ``file`` if it is a source (with these compiler ``flags``), run it, and judge its trace.

    Returns the run and the program's exit status (1 when it was ended by a signal or by its time limit).
    ``output`` takes the program's standard output, which by default goes where this process's does. ``keep_results`` is
    for :attr:`~ascsim.frontends.launch.Run.results`, ``keep_sites`` for :attr:`~ascsim.frontends.launch.Run.sites`;
    ``blocks``, if not 0, stands for what the program's launches say.

    Raises:
        UserError: the file is neither a source nor a program of ``ascsim c++``, or does not compile.
    """
    started = time.perf_counter()
    build_ahead()
    importing = threading.Thread(target=_import_what_follows)
    with session.Child(output) as child:

        def meanwhile(names: frozenset[str]) -> None:
            child.expect(names)
            importing.start()

        if file.suffix in LANGUAGES:
            words = [*flags, *(AUTO_FLAGS if sync == "auto" else ())]
            options = driver.BuildOptions(keep=keep, meanwhile=meanwhile)
            with stage(f"compiling {file.name}"):
                program = driver.compile_program([file], arch or "a2a3", flags=words, options=options)
        else:
            program = file
            if arch and profiles.find(arch).name != load_image(program).profile:
                raise UserError(f"{file} was compiled for {load_image(program).profile}; build it again for {arch}")
            importing.start()
        outcome = session.run(
            program, arguments, timeout=timeout, trace_directory=trace_directory, child=child,
            keep_results=keep_results, blocks=blocks,
        )  # fmt: skip
    try:
        if keep_sites:
            outcome.sites(0, 0)  # looked up while the modules are there
        return judge(outcome, file.stem, started), 1 if outcome.status is None else outcome.status
    finally:
        outcome.close()


def _import_what_follows() -> None:
    """Import what judges the run, while the compiler and the program are at work."""
    import_numpy()
    for name in ("ascsim.checks", "ascsim.frontends.cpp.endings", "ascsim.frontends.launch", "ascsim.report.terminal"):
        importlib.import_module(name)


def judge(outcome: session.Outcome, name: str, started: float) -> Run:
    """The run of a finished program: what stopped it, and what the checks say."""
    from ascsim import checks
    from ascsim.frontends.launch import Run

    gc.enable()
    outcome.trace.notes.append(("dialect", {"name": _dialect(outcome.trace)}))
    found = [*([outcome.error] if outcome.error else []), *fold_equal(outcome.stops())]
    with stage("checking"):
        found += checks.run(outcome.trace, outcome.profile, outcome.sites)
    launches = outcome.trace.noted("launch")
    kernel = launches[0]["kernel"] if launches else name
    modes = {note.get("sync", "manual") for note in launches}
    sync = "mixed" if len(modes) > 1 else next(iter(modes), "no")
    seconds = time.perf_counter() - started
    return Run(kernel, outcome.profile, outcome.trace, found, sync, seconds, outcome.results(), outcome.sites)


def _dialect(trace: Trace) -> str:
    """The library that the launched kernels are written with, so that advice is in its words."""
    for path in {str(note.get("file", "")) for note in trace.noted("launch")}:
        try:
            text = Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if '"c_api/' in text or "<c_api/" in text:
            return "c_api"
    return "pto"
