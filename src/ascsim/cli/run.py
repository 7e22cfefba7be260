"""``ascsim run FILE``."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascsim.cli.options import arch_option, json_option
from ascsim.diagnostics import UserError

if TYPE_CHECKING:
    from ascsim.frontends.launch import Run
    from ascsim.report.compare import Comparison

@click.command("run", context_settings={"ignore_unknown_options": False})
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("program_arguments", nargs=-1, type=click.UNPROCESSED)
@arch_option
@click.option("--arg", "given", multiple=True, metavar="NAME=VALUE", help="An argument of a .pto kernel: a .npy file, "
              "a raw file with type and shape (x.bin:f16:4x64), iota, zeros, random, or a number.")
@click.option("--out", "outs", multiple=True, metavar="NAME=FILE", help="Write an argument after the run (.npy or raw).")
@click.option("--golden", "goldens", multiple=True, metavar="NAME=FILE", help="Compare an argument after the run.")
@click.option("--rtol", default=0.0, help="Relative tolerance of --golden (default: bit for bit).")
@click.option("--atol", default=0.0, help="Absolute tolerance of --golden.")
@click.option("--kernel", "kernel_name", default=None, help="Which function of a .pto file.")
@click.option("--blocks", default=1, show_default=True, help="Blocks of a .pto kernel's launch.")
@click.option("--sync", type=click.Choice(["manual", "auto"]), default=None, help="Who synchronises pipes: the kernel or "
              "the tool. Default: manual where an address or a flag appears.")
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro for a C++ source.")
@click.option("-I", "includes", multiple=True, metavar="DIR", help="Look for a C++ source's headers here.")
@click.option("--timeout", default=None, type=float, metavar="SECONDS", help="Stop a program that runs longer.")
@click.option("--keep", default=None, type=click.Path(path_type=Path), metavar="DIR",
              help="Leave the rewritten C++ sources and the compile commands here.")
@click.option("--trace-dir", default=None, type=click.Path(path_type=Path), metavar="DIR", help="Leave the trace here.")
@click.option("--report-to", type=click.Choice(["stdout", "stderr"]), default="stdout", help="Where the report goes "
              "(default: stdout; stderr for a program that ascsim c++ linked and that is started by its own name).")
@json_option
def command(file: Path, **options: Any) -> int:
    """Run FILE and say whether it is right, legal and race-free.

    The exit status is the program's own when nothing was found, and not 0 when a finding is an error. Arguments of the
    program itself come after --.
    """  # fmt: skip
    if not file.exists():
        raise UserError(f"there is no file {file}; give an .asc or C++ source, a .pto file, a Python file or a program")
    if file.suffix == ".pto":
        return _run_pto(file, options)
    of_pto = (("given", "--arg"), ("outs", "--out"), ("goldens", "--golden"), ("kernel_name", "--kernel"))
    for option, flag in of_pto:
        if options[option]:
            raise UserError(f"{flag} is for .pto files; {file.name} has a host program that makes its own arguments")
    if file.suffix == ".py":
        return _run_python(file, options)
    return _run_cpp(file, options)


# Python


def _run_python(file: Path, options: dict[str, Any]) -> int:
    """Execute the script; every launch in it is reported."""
    import runpy
    import traceback

    from ascsim.frontends import launch

    runs: list[Run] = []
    launch.observe(runs.append, options["arch"], options["sync"])
    status = 0
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
    return _report(runs, status, options)


@contextlib.contextmanager
def _program_output(as_json: bool) -> Any:
    """With --json, stdout belongs to the report: what the program prints goes to stderr."""
    if as_json:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    else:
        yield


# .pto


def _run_pto(file: Path, options: dict[str, Any]) -> int:
    from ascsim import profiles
    from ascsim.cli import arguments
    from ascsim.frontends import ptoas
    from ascsim.report.compare import compare

    program = ptoas.load(file)
    kernel = program.kernel(options["kernel_name"])
    profile = profiles.find(options["arch"] or program.arch or "a2a3")
    given = arguments.pairs(options["given"], "--arg")
    outs, goldens = arguments.pairs(options["outs"], "--out"), arguments.pairs(options["goldens"], "--golden")
    names = [a.name for a in kernel.arguments]
    for name in (*given, *outs, *goldens):
        if name not in names:
            raise UserError(f"{kernel.name} has no argument {name!r}; it has {', '.join(names) or 'none'}")
    values: dict[str, Any] = {}
    for argument in kernel.arguments:
        value = given.get(argument.name)
        if not argument.is_pointer:
            if value is None:
                raise UserError(f"{kernel.name} needs a number: --arg {argument.name}=...")
            values[argument.name] = arguments.number(argument.name, value, argument.dtype)
        else:
            values[argument.name] = arguments.array(argument.name, value or "zeros", argument.dtype, argument.shape)
    run = kernel.run(profile, options["blocks"], values, options["sync"])
    comparisons = []
    for name, path in goldens.items():
        golden = arguments.array(name, path, None, None)
        comparisons.append(compare(name, values[name], golden, options["rtol"], options["atol"]))
    for name, path in outs.items():
        arguments.save(Path(path), values[name])
    shown = {} if options["as_json"] else {n: values[n] for n in kernel.written if n not in outs and n not in goldens}
    return _report([run], 0, options, comparisons, shown)


# C++


def _run_cpp(file: Path, options: dict[str, Any]) -> int:
    from ascsim.frontends.cpp import run

    flags = [*(f"-D{d}" for d in options["defines"]), *(f"-I{d}" for d in options["includes"])]
    finished, status = run.run_file(
        file, options["arch"], list(options["program_arguments"]), flags=flags, sync=options["sync"], timeout=options["timeout"],
        keep=options["keep"], trace_directory=options["trace_dir"], output_to_stderr=options["as_json"],
    )  # fmt: skip
    return _report([finished], status, options)


# Reports


def _report(
    runs: Sequence[Run], status: int, options: dict[str, Any], comparisons: Sequence[Comparison] = (),
    shown: dict[str, Any] | None = None,
) -> int:  # fmt: skip
    """Print what was found; returns the exit status."""
    from ascsim.cli.arguments import shortened
    from ascsim.report import data, terminal

    ok = all(run.ok for run in runs) and all(c.ok for c in comparisons)
    status = status or (0 if ok else 1)
    if options["trace_dir"] and runs:
        runs[-1].trace.save(options["trace_dir"])
    if options["as_json"]:
        reports = [
            data.run(r.kernel, r.profile, r.trace, r.diagnostics, r.sync, seconds=r.seconds) for r in runs
        ]  # fmt: skip
        golden = [
            {"name": c.name, "ok": c.ok, "differ": c.differ, "total": c.total, "text": c.lines()} for c in comparisons
        ]
        click.echo(json.dumps({"ok": ok, "status": status, "runs": reports, "golden": golden}))
        return status
    from rich.console import Console

    console = Console(highlight=False, stderr=options["report_to"] == "stderr")
    for name, values in (shown or {}).items():
        shape = "x".join(map(str, values.shape))
        console.print(f"{name} {shape} {values.dtype}: {shortened(values)}", markup=False, soft_wrap=True)
    for comparison in comparisons:
        for line in comparison.lines():
            console.print(line, style="green" if comparison.ok else "red", markup=False, soft_wrap=True)
    for run in runs:
        terminal.show(console, run.kernel, run.profile, run.trace, run.diagnostics, run.sync)
    return status
