"""The runtime library: compiled once for this machine's compiler, then taken from the cache."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import tempfile
from pathlib import Path

from ascsim.cache import generation
from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.compilers import Compiler, find_compiler

HERE = Path(__file__).parent
NAME = "libascsim_rt.so"
FLAGS = ("-std=c++17", "-O2", "-g1", "-fPIC", "-shared", "-w")


def runtime_library(compiler: Compiler | None = None) -> Path:
    """The path of ``libascsim_rt.so``, built if it is not in the cache (two seconds, once).

    It must be made by the compiler that makes the programs: exceptions pass between them.

    Raises:
        UserError: there is no compiler, or it cannot compile the runtime.
    """
    compiler = compiler or find_compiler()
    place = generation("runtime", _key(compiler)) / NAME
    if not place.exists():
        _build(compiler, place)
    return place


def _sources() -> list[Path]:
    return sorted((HERE / "runtime").glob("*.cpp"))


def _key(compiler: Compiler) -> str:
    digest = hashlib.sha256(repr((compiler.command, compiler.version, FLAGS, platform.machine())).encode())
    include = HERE / "include"
    headers = (include / "ascsim" / "abi.h", include / "ascsim" / "runtime.hpp", *sorted((include / "acl").glob("*.h")))
    for path in (*sorted((HERE / "runtime").iterdir()), *headers):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build(compiler: Compiler, place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place.parent) as directory:
        made = Path(directory, NAME)
        command = [
            *compiler.command, *FLAGS, "-I", str(HERE / "include"), "-I", str(HERE / "runtime"),
            *(str(path) for path in _sources()), "-o", str(made), f"-Wl,-soname,{NAME}", "-lpthread", "-ldl",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            raise UserError(
                f"ascsim's runtime library does not compile with {compiler}. Use another compiler (ASCSIM_CXX names "
                f"it), or report this:\n{done.stderr.strip()}",
                status=1,
            )
        made.replace(place)
