"""``ascsim run FILE``."""

from __future__ import annotations

import contextlib
import gc
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascsim import cli
from ascsim.cli.options import existing, kernel_options, wants_pictures, wants_time
from ascsim.cli.timing import write_page
from ascsim.diagnostics import UserError, settings

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from ascsim.cli.progress import Bar
    from ascsim.frontends.launch import Run
    from ascsim.frontends.ptoas.kernel import Argument
    from ascsim.machine.words import Pipe
    from ascsim.report.compare import Comparison


@click.command("run", context_settings={"ignore_unknown_options": False})
@kernel_options
@click.option(
    "--out",
    "outs",
    multiple=True,
    metavar="NAME=FILE",
    help="Write an argument after the run (.npy, or raw bytes for any other ending).",
)
@click.option(
    "--golden",
    "goldens",
    multiple=True,
    metavar="NAME=FILE",
    help="Compare an argument after the run with a .npy or raw file.",
)
@click.option(
    "--sarif", default=None, type=click.Path(path_type=Path), metavar="FILE", help="Write the findings as SARIF."
)
@click.option(
    "--error-exitcode",
    default=None,
    type=click.IntRange(1, 255),
    metavar="N",
    help="The exit status where a finding is an error (default: the program's own, or 1).",
)
@click.option("--rtol", default=0.0, metavar="X", help="Relative tolerance of --golden (default: bit for bit).")
@click.option("--atol", default=0.0, metavar="X", help="Absolute tolerance of --golden.")
def command(file: Path, **options: Any) -> int:
    """Run FILE and say whether it is right, legal and race-free.

    The exit status is the program's own when nothing was found, and not 0 when a finding is an error. Arguments of the
    program itself come after --. With several chips, --npu-arch a2a3,a5,cpu, it is run on each, and where they differ
    is shown side by side.
    """  # fmt: skip
    existing(file)
    if "," in (options["arch"] or ""):
        return _run_on_each(file, options)
    finished = finish(file, options)
    status = _report(finished, options)
    _write_sarif(finished.runs, options)
    write_page(file, [finished], options)
    return _exit_status(status, finished.runs, options)


@dataclass(frozen=True)
class Finished:
    """A file that ran: its launches, the program's exit status, golden comparisons, arrays to show."""

    runs: Sequence[Run]
    status: int = 0
    comparisons: Sequence[Comparison] = ()
    shown: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return all(run.ok for run in self.runs) and all(c.ok for c in self.comparisons)

    @property
    def outcomes(self) -> list[tuple[str, bool]]:
        """What is known beside the findings: sentences, and whether each is good."""
        told = [("\n".join(comparison.lines()), comparison.ok) for comparison in self.comparisons]
        return told + ([(f"the program's exit status is {self.status}", False)] if self.status else [])

    @property
    def exit_status(self) -> int:
        return self.status or (0 if self.ok else 1)


def finish(file: Path, options: dict[str, Any]) -> Finished:
    """Run a file as the options of ``ascsim run`` say, with a progress bar if it takes long."""
    from ascsim.cli.progress import shown
    from ascsim.machine import fill, jobs, late

    fill.choose(options["fill"])
    late.choose(_late(options["order"]))
    jobs.choose(options["jobs"])
    settings.limit, settings.rules = options["limit"], ()
    if options["suppressions"]:
        from ascsim.checks import read_rules

        settings.rules = read_rules(options["suppressions"])
    with shown(not options["as_json"]) as bar:
        return _finish(file, options, bar)


def _late(order: str | None) -> Pipe | None:
    """The pipe that ``--order`` holds back."""
    from ascsim.machine.late import PIPES

    if order is None:
        return None
    names = {"late": PIPES[0], **{f"late:{prefix}{pipe.name}": pipe for pipe in PIPES for prefix in ("", "PIPE_")}}
    if order not in names:
        raise UserError(f"--order {order}: give late, or late:PIPE with one of {', '.join(p.name for p in PIPES)}")
    return names[order]


def _finish(file: Path, options: dict[str, Any], bar: Bar | None) -> Finished:
    if file.suffix == ".pto":
        return _run_pto(file, options)
    of_pto = (("given", "--arg"), ("outs", "--out"), ("goldens", "--golden"), ("kernel_name", "--kernel"))
    for option, flag in of_pto:
        if options[option]:
            raise UserError(f"{flag} is for .pto files; {file.name} has a host program that makes its own arguments")
    if options["blocks"] is not None and options["blocks"] < 1:
        raise UserError(f"--blocks {options['blocks']}: a launch has at least one block")
    if file.suffix == ".py":
        return _run_python(file, options)
    return _run_cpp(file, options, bar)


# Python


def _run_python(file: Path, options: dict[str, Any]) -> Finished:
    """Execute the script; every launch in it is reported."""
    import runpy
    import traceback

    from ascsim.frontends import launch

    runs: list[Run] = []
    launch.observe(runs.append, options["arch"], options["sync"], options["blocks"] or 0)
    status = 0
    cli.runs_scripts = True
    gc.enable()
    before = sys.argv
    sys.argv = [str(file), *options["program_arguments"]]
    sys.path.insert(0, str(file.parent))
    try:
        with _program_output(options["as_json"]):
            runpy.run_path(str(file), run_name="__main__")
    except launch.KernelError:
        status = 1
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except UserError:
        raise
    except Exception as error:
        # A fault of the user's script outside any kernel: their own traceback, without the tool's frames.
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file)]
        sys.stderr.write("".join(traceback.format_list(frames)) + f"{type(error).__name__}: {error}\n")
        status = 1
    finally:
        sys.argv = before
        launch.observe(None)
    if not runs and not status:
        raise UserError(f"{file.name} ran, but launched no kernel; call one, as in kernel[1](x, y)")
    return Finished(runs, status)


@contextlib.contextmanager
def _program_output(as_json: bool) -> Any:
    """With --json, stdout belongs to the report: what the program prints goes to stderr."""
    if as_json:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    else:
        yield


# .pto


_OF_CPP = (
    ("defines", "-D"), ("includes", "-I"), ("keep", "--keep"), ("timeout", "--timeout"),
    ("no_scalar_trace", "--no-scalar-trace"),
)  # fmt: skip


def _run_pto(file: Path, options: dict[str, Any]) -> Finished:
    from ascsim.blas import import_numpy

    import_numpy()
    from ascsim import profiles
    from ascsim.cli import arguments
    from ascsim.frontends import ptoas
    from ascsim.report.compare import compare

    for option, flag in _OF_CPP:
        if options[option]:
            raise UserError(f"{flag} is for C++ sources; a .pto file takes --arg, --out and --golden")
    if options["program_arguments"]:
        first = options["program_arguments"][0]
        raise UserError(f"a .pto file has no program to give {first!r} to; use --arg NAME=VALUE")
    program = ptoas.load(file)
    gc.enable()
    kernel = program.kernel(options["kernel_name"])
    profile = profiles.find(options["arch"] or program.arch or "a2a3")
    given = arguments.pairs(options["given"], "--arg")
    outs, goldens = arguments.pairs(options["outs"], "--out"), arguments.pairs(options["goldens"], "--golden")
    by_name = {a.name: a for a in kernel.arguments}
    for name in (*given, *outs, *goldens):
        if name not in by_name:
            raise UserError(f"{kernel.name} has no argument {name!r}; it has {', '.join(by_name) or 'none'}")
    for name in (*outs, *goldens):
        if not by_name[name].is_pointer:
            raise UserError(f"argument {name} of {kernel.name} is a number; --out and --golden take arrays")
    values = {a.name: _value(kernel.name, a, given.get(a.name)) for a in kernel.arguments}
    wanted = {n: arguments.array(n, path, by_name[n].dtype, values[n].shape) for n, path in goldens.items()}
    run = kernel.run(profile, 1 if options["blocks"] is None else options["blocks"], values, options["sync"])
    if any(kind == "refused" for kind, _ in run.trace.notes):  # it stopped on the way: there are no results
        return Finished([run])
    comparisons = [compare(n, values[n], w, options["rtol"], options["atol"]) for n, w in wanted.items()]
    for name, path in outs.items():
        arguments.save(Path(path), values[name])
    shown = {} if options["as_json"] else {n: values[n] for n in kernel.written if n not in outs and n not in goldens}
    return Finished([run], 0, comparisons, shown)


def _value(kernel: str, argument: Argument, text: str | None) -> Any:
    """The value of a kernel's argument from ``--arg``; arrays that are not given are zeros."""
    from ascsim.cli import arguments

    if argument.is_pointer:
        return arguments.array(argument.name, text or "zeros", argument.dtype, argument.shape)
    if text is None:
        name, kind = argument.name, argument.dtype.name
        raise UserError(f"argument {name} of {kernel} is a number ({kind}): give it as --arg {name}=...")
    return arguments.number(argument.name, text, argument.dtype)


# C++


def _run_cpp(file: Path, options: dict[str, Any], bar: Bar | None) -> Finished:
    from ascsim.frontends.cpp import run

    flags = [*(f"-D{d}" for d in options["defines"]), *(f"-I{d}" for d in options["includes"])]
    flags += ["--no-scalar-trace"] if options["no_scalar_trace"] else []
    own = bar.terminal() if bar else contextlib.nullcontext(sys.stderr if options["as_json"] else None)
    with own as output:
        finished, status = run.run_file(
            file, options["arch"], list(options["program_arguments"]), flags=flags, sync=options["sync"],
            timeout=options["timeout"], keep=options["keep"], trace_directory=options["trace_dir"], output=output,
            keep_results=options.get("keep_results", False), blocks=options["blocks"] or 0,
            keep_sites=wants_time(options),
        )  # fmt: skip
    return Finished([finished], status)


# Several profiles


def _run_on_each(file: Path, options: dict[str, Any]) -> int:
    """Run on each profile that ``--npu-arch`` lists, report each, and then where they differ."""
    from ascsim import profiles
    from ascsim.report import side_by_side

    names = [profiles.find(word.strip()).name for word in options["arch"].split(",") if word.strip()]
    sides, reports = [], []
    runs: list[Run] = []
    all_finished: list[Finished] = []
    for name in dict.fromkeys(names):
        own = {**options, "arch": name, "keep_results": True}
        own["trace_files"] = [path.with_name(f"{name}-{path.name}") for path in options["trace_files"]]
        if options["trace_dir"]:
            own["trace_dir"] = options["trace_dir"] / name
        if not options["as_json"]:
            click.secho(f"== {name}", bold=True)
        try:
            finished = finish(file, own)
        except UserError as error:
            sides.append(side_by_side.Side(name, error.status, str(error)))
            continue
        reports += _data(finished.runs)
        runs += finished.runs
        all_finished.append(finished)
        if not options["as_json"]:
            _report(finished, own)
        results = {
            f"{run.kernel}: {key}" if len(finished.runs) == 1 else f"{run.kernel} (launch {number}): {key}": values
            for number, run in enumerate(finished.runs, start=1)
            for key, values in run.results.items()
        }
        found = [diagnostic for run in finished.runs for diagnostic in run.diagnostics]
        sides.append(side_by_side.Side(name, finished.exit_status, "", found, results))
    status = max(side.status for side in sides)
    if options["as_json"]:
        compared = side_by_side.as_dict(sides)
        click.echo(json.dumps({"ok": not status, "status": status, "runs": reports, "compared": compared}))
    else:
        click.secho("== side by side", bold=True)
        side_by_side.show(_console(options), sides)
    _write_sarif(runs, options)
    write_page(file, all_finished, options)
    return _exit_status(status, runs, options)


# Reports


def _exit_status(status: int, runs: Sequence[Run], options: dict[str, Any]) -> int:
    """The exit status: the user's own where a finding is an error."""
    has_errors = not all(run.ok for run in runs)
    return options["error_exitcode"] if has_errors and options["error_exitcode"] else status


def _write_sarif(runs: Sequence[Run], options: dict[str, Any]) -> None:
    if options["sarif"]:
        from ascsim import __version__
        from ascsim.report import sarif

        log = sarif.log([(run.profile.name, run.diagnostics) for run in runs], __version__)
        options["sarif"].write_text(json.dumps(log, indent=2) + "\n", encoding="utf-8")


def _report(finished: Finished, options: dict[str, Any]) -> int:
    """Print what was found; returns the exit status."""
    from ascsim.cli.arguments import shortened
    from ascsim.report import terminal

    runs, comparisons, status = finished.runs, finished.comparisons, finished.exit_status
    if options["trace_dir"] and runs:
        runs[-1].trace.save(options["trace_dir"])
    if options["as_json"]:
        golden = [
            {"name": c.name, "ok": c.ok, "differ": c.differ, "total": c.total, "text": c.lines()} for c in comparisons
        ]
        click.echo(json.dumps({"ok": finished.ok, "status": status, "runs": _data(runs), "golden": golden}))
        _draw(_console(options), runs, options)
        return status
    console = _console(options)
    for name, values in finished.shown.items():
        shape = "x".join(map(str, values.shape))
        console.print(f"{name} {shape} {values.dtype}: {shortened(values)}", markup=False, soft_wrap=True)
    for comparison in comparisons:
        for line in comparison.lines():
            console.print(line, style="green" if comparison.ok else "red", markup=False, soft_wrap=True)
    for run in runs:
        terminal.show(console, run.kernel, run.profile, run.trace, run.diagnostics, run.sync)
    _draw(console, runs, options)
    return status


def _draw(console: Console, runs: Sequence[Run], options: dict[str, Any]) -> None:
    """The timelines and trace files that were asked for."""
    if not wants_pictures(options):
        return
    from ascsim import timing
    from ascsim.cli.timing import pictures

    chips = [run for run in runs if run.profile.is_chip]
    if not chips and not options["as_json"]:
        console.print("no timeline: the portable profile is no chip, and its instructions take no time", style="dim")
    for number, run in enumerate(chips):
        pictures(console, run, timing.schedule(run.trace, run.profile), number, options)


def _data(runs: Sequence[Run]) -> list[dict[str, Any]]:
    from ascsim.report import data

    return [data.run(r.kernel, r.profile, r.trace, r.diagnostics, r.sync, seconds=r.seconds) for r in runs]


def _console(options: dict[str, Any]) -> Console:
    from rich.console import Console

    return Console(highlight=False, stderr=options["report_to"] == "stderr")
