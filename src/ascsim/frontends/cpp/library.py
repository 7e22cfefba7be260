"""The runtime library: compiled once for this machine's compiler, then taken from the cache."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ascsim.cache import cache_directory, content_hash, generation
from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.compilers import Compiler, find_compiler

HERE = Path(__file__).parent
NAME = "libascsim_rt.so"
FLAGS = ("-std=c++17", "-O2", "-g1", "-fPIC", "-w")

_building = threading.Lock()


def runtime_library(compiler: Compiler | None = None) -> Path:
    """The path of ``libascsim_rt.so``, built if it is not in the cache (two seconds, once).

    It must be made by the compiler that makes the programs: exceptions pass between them.

    Raises:
        UserError: there is no compiler, or it cannot compile the runtime.
    """
    compiler = compiler or find_compiler()
    place = generation("runtime", _key(compiler)) / NAME
    if not place.exists():
        with _building:  # another thread may be at it
            if not place.exists():
                _build(compiler, place)
    return place


def build_ahead() -> None:
    """On a machine that never had the library, build it in the background, while a program is built."""
    if not any(cache_directory().glob("runtime-*")):
        threading.Thread(target=_build_quietly).start()


def _build_quietly() -> None:
    with contextlib.suppress(UserError):  # whoever needs it is told
        runtime_library()


def _sources() -> list[Path]:
    return sorted((HERE / "runtime").glob("*.cpp"))


def _key(compiler: Compiler) -> str:
    include = HERE / "include"
    headers = (include / "ascsim" / "abi.h", include / "ascsim" / "runtime.hpp", *sorted((include / "acl").glob("*.h")))
    content = content_hash([*sorted((HERE / "runtime").iterdir()), *headers])
    return hashlib.sha256(
        repr((compiler.command, compiler.version, FLAGS, platform.machine(), content)).encode()
    ).hexdigest()[:16]  # fmt: skip


def _build(compiler: Compiler, place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place.parent) as directory:
        includes = ["-I", str(HERE / "include"), "-I", str(HERE / "runtime")]
        objects = {str(source): str(Path(directory, f"{source.stem}.o")) for source in _sources()}

        def compiled(source: str) -> None:
            _run(compiler, [*compiler.command, *FLAGS, *includes, "-c", source, "-o", objects[source]])

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            list(pool.map(compiled, objects))
        made = Path(directory, NAME)
        link = [*objects.values(), "-o", str(made), f"-Wl,-soname,{NAME}", "-lpthread", "-ldl"]
        _run(compiler, [*compiler.command, "-fPIC", "-shared", *link])
        made.replace(place)


def _run(compiler: Compiler, command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise UserError(
            f"ascsim's runtime library does not compile with {compiler}. Use another compiler (ASCSIM_CXX names it), or "
            f"report this:\n{done.stderr.strip()}",
            status=1,
        )
