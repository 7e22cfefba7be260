"""CMake files that make ascsim the compiler of a project: a toolchain file, and the language ASC of ``.asc`` sources."""

from __future__ import annotations

import hashlib
import shlex
import sys
from pathlib import Path

from ascsim import profiles
from ascsim.cache import cache_directory, write_atomically

HERE = Path(__file__).parent


def toolchain(npu_arch: str | None = None, *, python: str = sys.executable) -> Path:
    """The path of a toolchain file for CMake; beside it stand the modules of the language ASC and ``ascsim-c++``.

    Args:
        npu_arch: the chip that is compiled for when the build files name none.
        python: the interpreter that runs ascsim.

    Raises:
        UserError: there is no such chip.
    """
    arch = [f"--npu-arch={profiles.find(npu_arch).name}"] if npu_arch else []
    words = shlex.join([python, "-m", "ascsim.cli", "c++", *arch])
    launcher = f'#!/bin/sh\nexec {words} "$@"\n'.encode()
    files = {path.name: path.read_bytes() for path in HERE.iterdir() if ".cmake" in path.suffixes}
    state = hashlib.sha256(repr((launcher, sorted(files.items()))).encode()).hexdigest()[:16]
    place = cache_directory() / "cmake" / state
    for name, content in {**files, "ascsim-c++": launcher}.items():
        if not (place / name).is_file():
            write_atomically(place / name, content)
    (place / "ascsim-c++").chmod(0o755)
    return place / "toolchain.cmake"
