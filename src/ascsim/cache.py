"""Where compiled things are kept between runs, and how they get there whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

KEPT = 2
"""Generations of a kind that are kept: an older ascsim, or another Python, may be in use beside the newest."""


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
