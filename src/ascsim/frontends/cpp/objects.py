"""The cache of compiled objects."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ascsim.cache import prune, write_atomically


def digest_of(*parts: str | bytes) -> str:
    """A digest of these parts in this order, 32 hexadecimal digits."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:32]


@dataclass(frozen=True)
class Cached:
    """What is kept of a compilation: the object, what the compiler printed, its key, and the files it read."""

    object: bytes
    printed: str
    key: str
    files: tuple[Path, ...]


class ObjectCache:
    """Objects by what went into them: command, text, compiler, and the state of every file that was included."""

    def __init__(self, root: Path | None) -> None:
        self.root = root / "objects" if root is not None else None

    def find(self, key: str) -> Cached | None:
        """The object of that command and text, if no included file has changed since."""
        if self.root is None:
            return None
        try:
            entry = self.root / f"{key}.json"
            data = json.loads(entry.read_text(encoding="utf-8"))
            kept = self.root / f"{data['object']}.o"
            content = kept.read_bytes()
            os.utime(entry)
            os.utime(kept)
        except (OSError, ValueError, KeyError):
            return None
        if not all(_is_unchanged(*entry) for entry in data["files"]):
            return None
        files = tuple(Path(entry[0]) for entry in data["files"])
        return Cached(content, data["printed"], data["object"], files)

    def keep(self, key: str, content: bytes, printed: str, files: Iterable[Path]) -> str:
        """Keep an object; the returned key stands for all that went into it."""
        states = [(str(file), *_state(file)) for file in files]
        whole = digest_of(key, *(state[3] for state in states))
        if self.root is not None:
            write_atomically(self.root / f"{whole}.o", content)
            data = {"object": whole, "printed": printed, "files": states}
            write_atomically(self.root / f"{key}.json", json.dumps(data).encode())
            prune(self.root)
        return whole


def _state(path: Path) -> tuple[int, int, str]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, _content_digest(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=4096)
def _content_digest(path: Path, _time: int, _size: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


def _is_unchanged(name: str, size: int, time: int, digest: str) -> bool:
    """Same size and time, or same content (a checkout changes times)."""
    path = Path(name)
    try:
        status = path.stat()
        if (status.st_size, status.st_mtime_ns) == (size, time):
            return True
        return status.st_size == size and _content_digest(path, status.st_mtime_ns, status.st_size) == digest
    except OSError:
        return False
