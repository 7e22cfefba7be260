"""Directories for what a process needs while it runs: gone when it ends, or when another one of ours begins after it died."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_PREFIX = "ascsim-"
_LOCK = "in-use"
"""A file in each directory, which its process has locked: the system unlocks it however the process ends."""
_YOUNG = 60.0
"""Seconds in which a directory may not be locked yet by the process that makes it."""
_mine: dict[Path, tuple[int, int]] = {}
"""Directory: the process that made it, and the locked file."""


def make(kind: str) -> Path:
    """A fresh directory of this process's own, named after what it is for. It may be removed before the process ends."""
    _remove_left_over()
    directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}-"))
    file = os.open(directory / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    _mine[directory] = os.getpid(), file
    return directory


def remove(directory: Path) -> None:
    """Remove a directory that :func:`make` made."""
    process, file = _mine.pop(directory, (0, -1))
    if process == os.getpid():
        shutil.rmtree(directory, ignore_errors=True)
    if file >= 0:
        os.close(file)


@contextlib.contextmanager
def directory(kind: str) -> Iterator[Path]:
    """A fresh directory meanwhile."""
    made = make(kind)
    try:
        yield made
    finally:
        remove(made)


@atexit.register
def _remove_all() -> None:
    for made in list(_mine):
        remove(made)


@cache
def _remove_left_over() -> None:
    """Remove what processes left that were killed: their directories are not locked any more."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            if time.time() - lock.stat().st_mtime < _YOUNG:
                continue
            with lock.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:  # in use, another user's, or gone
            continue
