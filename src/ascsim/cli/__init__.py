"""The command line. One file a command, imported when the command is used, so that ``ascsim --help`` is quick."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import json
import os
import sys
from typing import NoReturn

import click

from ascsim import __version__
from ascsim.diagnostics import UserError

COMMANDS = {
    "run": ("run", "Run a kernel and say whether it is right, legal and race-free."),
    "time": ("timing", "Say where a kernel's time goes: pipes, critical path, idle time and its cause."),
    "c++": ("cxx", "Compile and link like the vendor's compiler; the program then runs here."),
    "cmake-toolchain": ("cmake_toolchain", "The path of a CMake toolchain file that makes ascsim the compiler."),
    "check": ("check", "List what a source file uses that is not available or not implemented."),
    "isa": ("isa", "The reference page of an instruction, or the list of all."),
    "explain": ("explain", "What a diagnostic code means and how to mend it."),
    "demo": ("demo", "Run the examples and show their verdicts."),
    "doctor": ("doctor", "What was found on this machine: compiler, profiles, versions."),
}


_OF_A_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

runs_scripts = False
"""Whether the user's own Python was executed in this process, which has to end as Python does."""


class LazyGroup(click.Group):
    """A group whose commands are imported on use; the help texts stand in the table above."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        entry = COMMANDS.get(cmd_name)
        return importlib.import_module(f"ascsim.cli.{entry[0]}").command if entry else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help's list, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ascsim")
def cli() -> None:
    """Run Ascend NPU kernels on an ordinary computer: is the result right, is the kernel legal and race-free?

    FILE is an Ascend C .asc or PTO C++ source, PTO assembly (.pto), or a Python file with @ascsim.kernel.
    """


def main() -> None:
    """The console script: faults of the input are one paragraph on stderr and a status, never a traceback."""
    gc.disable()  # what imports make stays: to look for garbage in it, time and again, finds nothing
    try:
        status = cli(standalone_mode=False)
    except click.UsageError as error:
        help_of = error.ctx.command_path if error.ctx else "ascsim"
        _fail(f"{error.format_message().rstrip('.')}. `{help_of} --help` shows what it takes.", error.exit_code)
    except click.Abort:
        click.echo("ascsim: stopped", err=True)
        sys.exit(130)
    except UserError as error:
        _fail(str(error), error.status)
    except OSError as error:
        if error.filename is None and error.errno not in _OF_A_FULL_DISK:
            raise
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left there goes nowhere either
        _fail(f"cannot read or write {error.filename or 'the output'}: {error.strerror}", 2)
    _leave(status if isinstance(status, int) else 0)


def _leave(status: int) -> NoReturn:
    """End the process, without taking the interpreter apart: that takes longer than a short run's checks."""
    if not runs_scripts:
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:  # nobody reads any more, or a disk is full: Python says so in its own way
            sys.exit(status)
        os._exit(status)
    sys.exit(status)


def _fail(message: str, status: int) -> NoReturn:
    if "--json" in sys.argv[1:]:
        click.echo(json.dumps({"ok": False, "status": status, "error": message}))
    click.echo(f"ascsim: error: {message}", err=True)
    sys.exit(status)
