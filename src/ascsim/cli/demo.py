"""``ascsim demo``: the main job, on the examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
from rich.console import Console

from ascsim.diagnostics import UserError

_STEPS = (
    ("An Ascend C program: weave registers with asc_intlv", ("interleave.asc", "--npu-arch=dav-3510"), True),
    ("A PTO program: TSORT32 with flags, on A2/A3", ("sort_rows.cpp", "--npu-arch=dav-2201"), True),
    ("The same program on the Ascend 950", ("sort_rows.cpp", "--npu-arch=dav-3510"), True),
    ("The same kernel as PTO assembly", ("sort_rows.pto", "--npu-arch=a3", "--arg", "src=random", "--arg", "idx=iota"),
     True),
    ("The same kernel in Python", ("sort_rows.py",), True),
    ("A kernel that forgot a wait: found", ("missing_wait.cpp", "--npu-arch=a3"), False),
)  # fmt: skip


def examples_directory() -> Path:
    """Where the examples are: in the source tree that this package was installed from.

    Raises:
        UserError: the package was installed without them.
    """
    directory = Path(__file__).parents[3] / "examples"
    if not (directory / "sort_rows.cpp").exists():
        raise UserError("the examples are not here: they come with the source tree, not with the installed package")
    return directory


@click.command("demo")
def command() -> int:
    """Run the examples in each way in, one of them with a mistake, and show what the tool says."""
    directory = examples_directory()
    console = Console(highlight=False)
    failed = 0
    for title, arguments, should_pass in _STEPS:
        name, *options = arguments
        console.rule(title, align="left")
        console.print(f"$ ascsim run examples/{' '.join((name, *options))}", style="dim", markup=False, soft_wrap=True)
        sys.stdout.flush()
        status = subprocess.run(
            [sys.executable, "-m", "ascsim.cli", "run", str(directory / name), *options], check=False
        ).returncode
        if (status == 0) != should_pass:
            failed += 1
            console.print(f"exit status {status}: not what this example should give", style="bold red")
    console.rule()
    return 1 if failed else 0
