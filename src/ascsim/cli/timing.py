"""``ascsim time FILE``: where the time of a kernel goes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascsim.cli.options import existing, kernel_options
from ascsim.diagnostics import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from ascsim.cli.run import Finished
    from ascsim.frontends.launch import Run
    from ascsim.timing import Schedule

_PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
_OF_RUN: dict[str, Any] = {"outs": (), "goldens": (), "rtol": 0.0, "atol": 0.0}


@click.command("time")
@kernel_options
@click.option(
    "--infinite",
    multiple=True,
    type=click.Choice(_PIPES, case_sensitive=False),
    metavar="PIPE",
    help="What if this pipe's work took no time (MTE2: loads that cost nothing)?",
)
def command(file: Path, **options: Any) -> int:
    """Run FILE and say where its time goes on the chip: cycles by pipe, the critical path, idle pipes and why.

    The figures are a model's (docs/design.md, Time), the same on every machine. What if: --blocks, --npu-arch a3,a5 for
    several chips side by side, --infinite. The exit status is that of ascsim run: time that a wrong kernel takes means nothing.
    """
    from ascsim.cli.run import finish
    from ascsim.report import time

    existing(file)
    chips = (options["arch"] or "").split(",")
    reports: list[dict[str, Any]] = []
    all_finished: list[Finished] = []
    status = 0
    for chip in chips:
        finished = finish(file, {**options, **_OF_RUN, "arch": chip.strip() or None, "is_timed": True})
        if options["trace_dir"] and finished.runs:
            finished.runs[-1].trace.save(options["trace_dir"])
        timed = [run for run in finished.runs if run.profile.is_chip or len(finished.runs) == 1]
        reports += [_timed(run, number, options) for number, run in enumerate(timed, start=len(reports))]
        all_finished.append(finished)
        status = status or finished.exit_status
    write_page(file, all_finished, options)
    if options["as_json"]:
        click.echo(json.dumps({"ok": not status, "status": status, "runs": reports}))
    elif len(chips) > 1:
        time.compare(_console(options), reports)
    return status


def _timed(run: Run, number: int, options: dict[str, Any]) -> dict[str, Any]:
    """Report one run; returns it as plain data."""
    from ascsim.cli.progress import shown
    from ascsim.machine.words import Pipe
    from ascsim.progress import stage
    from ascsim.report import time

    with shown(not options["as_json"]), stage("scheduling"):
        report = run.time([Pipe[name.upper()] for name in options["infinite"]])
    console = _console(options)
    if not options["as_json"]:
        if number:
            console.print()
        _verdict(console, run)
        time.show(console, run.kernel, run.profile, report.summary, report.without)
    pictures(console, run, report.schedule, number, options)
    data = {"kernel": run.kernel, "profile": run.profile.name, "ok": run.ok, **report.summary.as_dict()}
    return data | ({"without_what_if": report.without.as_dict()} if report.without else {})


def _verdict(console: Console, run: Run) -> None:
    """Findings first, where there are errors."""
    from ascsim.report import terminal

    if not run.ok:
        terminal.show(console, run.kernel, run.profile, run.trace, run.diagnostics, run.sync)


def pictures(console: Console, run: Run, schedule: Schedule, number: int, options: dict[str, Any]) -> None:
    """The timeline and the trace files that the options ask for, of the run of that number (from 0).

    Raises:
        UserError: a file has another ending than .json, or cannot be written.
    """
    from ascsim.report import insight, perfetto, timeline

    if options["timeline"] and not options["as_json"]:
        console.print()
        timeline.show(console, schedule)
    for asked in options["trace_files"]:
        name, ending = asked.name, ".perfetto.json" if asked.name.endswith(".perfetto.json") else ".json"
        if not name.endswith(".json"):
            raise UserError(f"--trace {asked}: a timeline is x.json (MindStudio Insight) or x.perfetto.json (Perfetto)")
        path = asked.with_name(f"{name.removesuffix(ending)}{f'-{number + 1}' if number else ''}{ending}")
        try:
            if ending == ".json":
                insight.write(path, schedule, run.sites, f"_{number + 1}" if number else "")
            else:
                perfetto.write(path, schedule, run.sites)
        except OSError as problem:
            raise UserError(f"cannot write {path}: {problem.strerror or problem}") from None


def write_page(file: Path, finished: Sequence[Finished], options: dict[str, Any]) -> None:
    """The report page of what was run, if the options ask for it. What-if is not part of it: the page tells what was run.

    Raises:
        UserError: it cannot be written.
    """
    if not options["page"]:
        return
    from ascsim.cli.progress import shown
    from ascsim.progress import stage
    from ascsim.report import page

    with shown(not options["as_json"]), stage("writing the page"):
        page.write(options["page"], [run.shown(one.outcomes) for one in finished for run in one.runs], file.name)


def _console(options: dict[str, Any]) -> Console:
    from rich.console import Console

    return Console(highlight=False, stderr=options["report_to"] == "stderr")
