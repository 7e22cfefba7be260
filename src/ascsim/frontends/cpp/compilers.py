"""Which C++ compiler of this machine compiles the user's program."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from ascsim.diagnostics import UserError

Kind = Literal["gcc", "clang", "zig"]

NOT_FOUND = (
    'no C++ compiler was found. Install one (for example `apt install g++`, or `pip install "ascsim[zig]"` for one '
    "that comes as a Python package), or name it in the environment variable ASCSIM_CXX."
)


@dataclass(frozen=True)
class Compiler:
    """A compiler driver: ``command`` compiles C++, ``version`` is the first line of what it says of itself."""

    kind: Kind
    command: tuple[str, ...]
    version: str

    @property
    def archiver(self) -> tuple[str, ...]:
        """The command that makes static libraries."""
        if self.kind == "zig":
            return (*self.command[:-1], "ar")
        return ("ar",)

    def __str__(self) -> str:
        return f"{shlex.join(self.command)} ({self.version})"


def find_compiler(environ: Mapping[str, str] | None = None) -> Compiler:
    """The compiler to use: ``ASCSIM_CXX`` if set, else g++, else clang++, else the ``ziglang`` package.

    Of a family the plain name is taken, or the newest versioned one (``g++-13``) where there is no plain name.

    Raises:
        UserError: there is none, or the one that ``ASCSIM_CXX`` names does not run.
    """
    environ = os.environ if environ is None else environ
    named = environ.get("ASCSIM_CXX", "").strip()
    if named:
        compiler = _describe(tuple(shlex.split(named)))
        if compiler is None:
            raise UserError(
                f"the compiler {named!r} that ASCSIM_CXX names does not run. Give a C++ compiler's name or path, or "
                "unset ASCSIM_CXX to use the one that is found on PATH."
            )
        return compiler
    for command in _candidates(environ.get("PATH", "")):
        compiler = _describe(command)
        if compiler is not None:
            return compiler
    raise UserError(NOT_FOUND)


def _candidates(search: str) -> list[tuple[str, ...]]:
    """Commands worth a try, the preferred one first."""
    found: list[tuple[str, ...]] = []
    for family in ("g++", "clang++"):
        path = shutil.which(family, path=search) or _newest_versioned(family, search)
        if path:
            found.append((path,))
    if importlib.util.find_spec("ziglang") is not None:
        found.append((sys.executable, "-m", "ziglang", "c++"))
    return found


def _newest_versioned(family: str, search: str) -> str | None:
    """``g++-13`` before ``g++-12``, wherever they stand on the search path."""
    pattern = re.compile(re.escape(family) + r"-(\d+)")
    versions: dict[int, str] = {}
    for directory in search.split(os.pathsep):
        if not directory or not Path(directory).is_dir():
            continue
        for name in os.listdir(directory):
            match = pattern.fullmatch(name)
            if match and os.access(Path(directory, name), os.X_OK):
                versions.setdefault(int(match[1]), str(Path(directory, name)))
    return versions[max(versions)] if versions else None


@cache
def _describe(command: tuple[str, ...]) -> Compiler | None:
    """Ask the command for its version; None if it does not run."""
    try:
        answer = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = answer.stdout.strip().splitlines()
    if answer.returncode != 0 or not lines:
        return None
    is_zig = any(Path(word).name in ("zig", "ziglang") for word in command)
    kind: Kind = "zig" if is_zig else "clang" if "clang" in lines[0] else "gcc"
    return Compiler(kind, command, lines[0])
