"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ascsim.diagnostics import UserError

_CHIPS = "a2a3, a5, cpu, or an alias (dav-2201, dav-3510, Ascend910B, ...)"

arch_option = click.option("--npu-arch", "arch", default=None, metavar="CHIP", help=f"The chip: {_CHIPS}.")
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of text.")


def existing(file: Path) -> Path:
    """The file of a command's argument.

    Raises:
        UserError: there is none.
    """
    takes = "give an .asc or C++ source, a .pto file, a Python file or a program that `ascsim c++` linked"
    if not file.exists():
        raise UserError(f"there is no file {file}; {takes}")
    if file.is_dir():
        raise UserError(f"{file} is a directory; {takes}")
    return file


_KERNEL_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.argument("file", type=click.Path(path_type=Path)),
    click.argument("program_arguments", nargs=-1, type=click.UNPROCESSED),
    click.option(
        "--npu-arch",
        "arch",
        default=None,
        metavar="CHIP[,CHIP]",
        help=f"The chip, or several to compare: {_CHIPS}. Default: what the file says, or a2a3.",
    ),
    click.option(
        "--arg",
        "given",
        multiple=True,
        metavar="NAME=VALUE",
        help="An argument of a .pto kernel: a .npy file, "
        "a raw file (x.bin, x.bin:f16:4x64), iota, zeros, random, or a number. Arrays that are not given are zeros.",
    ),
    click.option("--kernel", "kernel_name", default=None, metavar="NAME", help="Which function of a .pto file."),
    click.option(
        "--blocks",
        default=None,
        type=int,
        metavar="N",
        help="Blocks of the launch: of a .pto kernel (default: 1); of another, in place of what the program says.",
    ),
    click.option(
        "--sync",
        type=click.Choice(["manual", "auto"]),
        default=None,
        help="Who synchronises pipes: the kernel or the tool. Default: manual where an address or a flag appears.",
    ),
    click.option(
        "--fill",
        type=click.Choice(["poison", "nan", "random", "zero"]),
        default="poison",
        show_default=True,
        envvar="ASCSIM_FILL",
        show_envvar=True,
        help="What memory holds that nothing has written: a loud pattern, NaN (-1 in integers), random bytes, or zero.",
    ),
    click.option(
        "--order",
        default=None,
        metavar="late[:PIPE]",
        help="Hold a pipe back (MTE2, the default, or MTE3): its instructions take effect only when something waits for "
        "them, so a missing wait gives wrong numbers.",
    ),
    click.option(
        "--jobs",
        default=None,
        type=click.IntRange(1),
        metavar="N",
        envvar="ASCSIM_JOBS",
        show_envvar=True,
        help="Use so many processors for the blocks of a launch that takes long (default: all); the outcome is the same.",
    ),
    click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro for a C++ source."),
    click.option("-I", "includes", multiple=True, metavar="DIR", help="Look for a C++ source's headers here."),
    click.option(
        "--no-scalar-trace",
        is_flag=True,
        help="Do not follow what a C++ source reads and writes through pointers: faster where it does little else.",
    ),
    click.option("--timeout", default=None, type=float, metavar="SECONDS", help="Stop a program that runs longer."),
    click.option(
        "--keep",
        default=None,
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Leave the rewritten C++ sources and the compile commands here.",
    ),
    click.option(
        "--trace",
        "trace_files",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write a timeline: x.perfetto.json for Perfetto and chrome://tracing, any other x.json for MindStudio "
        "Insight, with tables by instruction and by source line beside it.",
    ),
    click.option("--timeline", is_flag=True, help="Show a timeline of the pipes."),
    click.option(
        "--html",
        "page",
        default=None,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write a report page for a browser: findings, timeline, memory, source and instructions, in one file.",
    ),
    click.option(
        "--trace-dir",
        default=None,
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Leave the raw record of the run here: every instruction and the bytes it touched.",
    ),
    click.option(
        "--report-to",
        type=click.Choice(["stdout", "stderr"]),
        default="stdout",
        help="Where the report goes "
        "(default: stdout; stderr for a program that ascsim c++ linked and that is started by its own name).",
    ),
    click.option(
        "--limit",
        default=100,
        show_default=True,
        type=click.IntRange(1),
        metavar="N",
        help="Report so many findings; count the rest.",
    ),
    click.option(
        "--suppressions",
        default=None,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Leave out the findings that FILE names, a rule a line: `R001 kernel.cpp:42`.",
    ),
    json_option,
)


def kernel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the arguments and options of commands that run a kernel."""
    for option in reversed(_KERNEL_OPTIONS):
        command = option(command)
    return command


def wants_pictures(options: dict[str, Any]) -> bool:
    """Whether the options ask for a timeline in the terminal or in trace files."""
    return bool(options["trace_files"] or options["timeline"])


def wants_time(options: dict[str, Any]) -> bool:
    """Whether the options ask for more of a run than its verdict: its time, or pictures of it."""
    return bool(options.get("is_timed") or options["page"] or wants_pictures(options))
