"""Precompiled headers: what every compilation of a source reads first is read once.

A compilation starts with ascsim's own headers and the library headers that the source includes before anything else.
An edit of a kernel changes none of them, and to parse them takes longer than the kernel. The second compilation that
starts in one way has them precompiled in the background; later ones use the result while every file in it is as it was.
A header that is not there, or that the compiler finds unfit, costs nothing but time: the compiler then reads its text.

Only gcc's are made: its check that a precompiled header fits the flags and macros of a compilation is the compiler's own.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ascsim.cache import prune, write_atomically
from ascsim.frontends.cpp.objects import digest_of

KEPT = 6
"""So many precompiled headers are kept, of some 50 MB each."""
_TEXT, _MADE, _FILES, _FAILED = "first.hpp", "first.hpp.gch", "files.json", "failed"
_makers: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Precompiled:
    """The header of one way to compile: ``directory`` is its place in the cache."""

    directory: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """What makes a compilation start with it."""
        return ("-include", str(self.directory / _TEXT))

    def is_ready(self) -> bool:
        """Whether it has been made and no file in it has changed since.

        Times of change (ctime) tell: unlike those of modification, no unpacking of an older file sets them back.
        """
        try:
            data = json.loads((self.directory / _FILES).read_text(encoding="utf-8"))
            is_fresh = all(os.stat(file).st_ctime_ns < data["started"] for file in data["files"])
            os.utime(self.directory / _MADE)
        except (OSError, ValueError, KeyError):
            return False
        if not is_fresh:
            (self.directory / _FILES).unlink(missing_ok=True)
        return is_fresh

    def ask_for(self, command: Sequence[str], lines: Sequence[str]) -> None:
        """Have it made in the background, if this is not the first time that it would have been of use.

        ``command`` compiles a file that starts with the ``lines``, but for the file's name.
        """
        text = self.directory / _TEXT
        try:
            if not text.exists():
                prune(self.directory.parent, 50)
                write_atomically(text, "".join(f"{line}\n" for line in lines).encode())
            elif not (self.directory / _FAILED).exists():
                _start([sys.executable, "-P", "-m", __name__, str(self.directory), *command])
        except OSError:  # a full disk, a process too many: then there is none
            pass


def precompiled(root: Path, version: str, command: Sequence[str], lines: Sequence[str]) -> Precompiled:
    """The header for a compiler's version and command, and the lines that a source starts with."""
    return Precompiled(root / "precompiled" / digest_of(version, *command, "", *lines))


def make(directory: Path, command: Sequence[str]) -> bool:
    """Precompile the header of a directory, one at a time on this machine; whether it is there afterwards."""
    with (directory.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return Precompiled(directory).is_ready() or _make(directory, command)


def _make(directory: Path, command: Sequence[str]) -> bool:
    made, depends = directory / f".{_MADE}", directory / "files.d"
    started = time.time_ns()
    words = [*command, "-x", "c++-header", str(directory / _TEXT), "-o", str(made), "-MD", "-MF", str(depends)]
    done = subprocess.run(words, capture_output=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    if done.returncode != 0:
        made.unlink(missing_ok=True)
        (directory / _FAILED).touch()
        return False
    files = dependencies(depends)
    (directory / _FILES).unlink(missing_ok=True)
    os.replace(made, directory / _MADE)
    data = {"started": started, "files": [str(file) for file in files if file.parent != directory]}
    write_atomically(directory / _FILES, json.dumps(data).encode())
    others = sorted(directory.parent.glob(f"*/{_MADE}"), key=lambda path: path.stat().st_mtime)
    for old in others[:-KEPT]:
        shutil.rmtree(old.parent, ignore_errors=True)
    return True


def dependencies(path: Path) -> tuple[Path, ...]:
    """The files that a compiler's dependency file names."""
    text = path.read_text(encoding="utf-8", errors="surrogateescape").replace("\\\n", " ")
    words = text.split(": ", 1)[-1].replace("\\ ", "\0").split()
    return tuple(Path(word.replace("\0", " ").replace("$$", "$")) for word in words)


def _start(command: list[str]) -> None:
    """Start a process that may outlive this one, and that keeps out of the way of others."""
    _makers[:] = [maker for maker in _makers if maker.poll() is None]
    if len(_makers) < 2:
        no = subprocess.DEVNULL
        words = ["nice", "-n", "5", *command]
        _makers.append(subprocess.Popen(words, stdin=no, stdout=no, stderr=no, start_new_session=True))


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2:])
