"""Where compiled things are kept between runs, and how they get there whole."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

KEPT = 2
"""Generations of a kind that are kept: an older ascsim, or another Python, may be in use beside the newest."""

_SOURCES = (".py", ".json", ".toml", ".hpp", ".h", ".txt")
_SETTLED = 2_000_000_000
"""Nanoseconds after which a second change of a file shows in its time of change, on any file system."""


def cache_directory() -> Path:
    """The directory of everything that is kept: ``ASCSIM_CACHE``, else ``ascsim`` in the user's cache directory.

    Where that cannot be written to (a home that is read-only), a directory of the user's among the temporary ones.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ascsim"
    chosen = Path(os.environ.get("ASCSIM_CACHE") or base)
    try:
        chosen.mkdir(parents=True, exist_ok=True)
        if os.access(chosen, os.W_OK):
            return chosen
    except OSError:
        pass
    spare = Path(tempfile.gettempdir()) / f"ascsim-{os.getuid()}"
    spare.mkdir(exist_ok=True)
    return spare


def generation(kind: str, state: str) -> Path:
    """The directory ``KIND-STATE`` of the cache, which is there afterwards: for what changes with those who make it.

    When a new one is made, of the older ones of its kind only the newest stays.
    """
    place = cache_directory() / f"{kind}-{state}"
    if not place.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        for old in sorted(place.parent.glob(f"{kind}-*"), key=_last_use)[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
    return place


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that others see it whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(name).chmod(0o644)
    os.replace(name, path)


def files_below(*rooms: Path) -> list[Path]:
    """The source files of directories of the package, in order."""
    found = []
    for room in rooms:
        for directory, below, names in os.walk(room):
            below.sort()
            found += [Path(directory, name) for name in sorted(names) if name.endswith(_SOURCES)]
    return found


def content_hash(files: Sequence[Path]) -> str:
    """A hash of what files hold, 16 hexadecimal digits.

    It is noted under the files' times of change (ctime), which nothing sets back, so that they are read once.
    """
    states = [
        (str(path), status.st_ino, status.st_size, status.st_ctime_ns) for path in files if (status := path.stat())
    ]
    key = hashlib.sha256(repr(states).encode()).hexdigest()[:32]
    place = cache_directory() / "contents" / key
    try:
        noted = place.read_text(encoding="ascii")
        if len(noted) == 16:
            return noted
    except OSError:
        pass
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    found = digest.hexdigest()[:16]
    if time.time_ns() - max((state[3] for state in states), default=0) > _SETTLED:
        prune(place.parent)
        write_atomically(place, found.encode("ascii"))
    return found


def prune(directory: Path, keep: int = 400) -> None:
    """Remove what was used longest ago from a directory of the cache once it holds twice as many entries as it may."""
    entries = list(directory.iterdir()) if directory.is_dir() else []
    if len(entries) < 2 * keep:
        return
    for entry in sorted(entries, key=_last_use)[:-keep]:
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process was first
        return 0.0
