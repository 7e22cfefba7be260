"""A source and the user's headers below it, rewritten together.

Kernels, ``__simd_vf__`` functions and on-chip arrays stand in headers as well. A header that changes in the source pass
gets a rewritten copy, and so does every file that includes it, whose ``#include`` then names the copy. Copies begin
with a ``#line`` that names the user's file, so messages and debug information do too.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from ascsim.cache import write_atomically
from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.rewrite import Call, Kernel, Names, Rewritten, rewrite
from ascsim.frontends.cpp.tokens import WORD, mask

Part = Literal["host", "device"]
PARTS: tuple[Part, ...] = ("host", "device")

_INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*)(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


@dataclass(frozen=True)
class Prepared:
    """A translation unit ready for the compilers: the texts' files, and what the source pass found in it.

    ``rewritten`` is the source alone; ``kernels`` and ``calls`` (of names that look like instructions) are those of its
    headers too, each with its file. ``first_includes`` are the library headers that the source includes before anything
    else. ``originals`` maps copies to the user's files.
    """

    path: Path
    host: Path
    device: Path
    host_text: str
    device_text: str
    rewritten: Rewritten
    kernels: tuple[tuple[Path, Kernel], ...]
    calls: tuple[tuple[Path, Call], ...]
    has_device_code: bool
    uses_aic: bool
    first_includes: tuple[str, ...]
    originals: dict[str, Path]


@dataclass
class _File:
    path: Path
    source: bytes
    includes: dict[tuple[str, str], tuple[Path, bool]] = field(default_factory=dict)
    rewritten: Rewritten | None = None
    is_copied: bool = False


def prepare(
    path: Path,
    include_dirs: Sequence[Path],
    overlay: Path,
    *,
    own_headers: Sequence[Path] = (),
    device_calls_are_launches: bool = False,
    export_kernels: bool = False,
) -> Prepared:
    """Rewrite ``path`` and the user's headers that it reaches.

    Args:
        path: the source.
        include_dirs: where the user's headers are looked for (``-I``), in order.
        overlay: the directory that takes the rewritten copies. They are named by their content: an edit within a kernel
            leaves the host's part, and what was compiled from it, as it was.
        own_headers: directories of ascsim's headers, which are left alone and found before the user's.
        device_calls_are_launches: see :func:`ascsim.frontends.cpp.rewrite.rewrite`.
        export_kernels: see there.

    Raises:
        UserError: a file cannot be read, or the source pass refuses it.
    """
    tree = _Tree(include_dirs, own_headers, device_calls_are_launches, export_kernels)
    main = tree.read(path.absolute())
    tree.rewrite_all(main)
    return tree.write(main, path, overlay)


class _Tree:
    def __init__(
        self,
        include_dirs: Sequence[Path],
        own_headers: Sequence[Path],
        device_calls_are_launches: bool,
        export_kernels: bool,
    ) -> None:
        self.include_dirs = [directory.absolute() for directory in include_dirs]
        self.own_headers = [directory.absolute() for directory in own_headers]
        self.device_calls_are_launches = device_calls_are_launches
        self.export_kernels = export_kernels
        self.files: dict[Path, _File] = {}

    def read(self, path: Path) -> _File:
        """Read a file and, below it, the headers that can be found."""
        try:
            file = _File(path, path.read_bytes())
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from error
        self.files[path] = file
        for match in _INCLUDE.finditer(file.source.decode("utf-8", "surrogateescape")):
            found = self._resolve(match[2], match[3], path.parent)
            if found is not None:
                file.includes[match[2] or "", match[3] or ""] = found
                if found[0] not in self.files:
                    self.read(found[0])
        return file

    def _resolve(self, quoted: str | None, angled: str | None, directory: Path) -> tuple[Path, bool] | None:
        """The user's file that an ``#include`` means, and whether it was found beside the including file."""
        name = quoted or angled or ""
        if quoted and (directory / name).is_file():
            return (directory / name).resolve(), True
        if any((own / name).is_file() for own in self.own_headers):
            return None
        found = next((place / name for place in self.include_dirs if (place / name).is_file()), None)
        return (found.resolve(), False) if found is not None else None

    def rewrite_all(self, main: _File) -> None:
        """Headers before the files that include them, so that what they declare is known there."""
        self._rewrite(main, [])
        is_changed = True
        while is_changed:  # a file that includes a copy becomes a copy; include cycles make this a fixed point
            is_changed = False
            for file in self.files.values():
                included = (self.files[path] for path, _ in file.includes.values())
                if not file.is_copied and any(other.is_copied for other in included):
                    file.is_copied = is_changed = True
        main.is_copied = True

    def _rewrite(self, file: _File, above: list[Path]) -> Names:
        if file.rewritten is not None:
            return file.rewritten.names
        known = Names()
        for path, _ in file.includes.values():
            if path not in above and path != file.path:
                known |= self._rewrite(self.files[path], [*above, file.path])
        file.rewritten = rewrite(
            file.source,
            str(file.path),
            known,
            device_calls_are_launches=self.device_calls_are_launches,
            export_kernels=self.export_kernels,
            elsewhere=None if above else partial(self._words_beside, file),
        )
        file.is_copied = file.rewritten.is_changed
        return file.rewritten.names

    def _words_beside(self, main: _File) -> frozenset[str]:
        """The words of all files but one."""
        others = [file.source for file in self.files.values() if file is not main]
        return frozenset(word.decode() for source in others for word in WORD.findall(source))

    def write(self, main: _File, path: Path, overlay: Path) -> Prepared:
        """Write the copies and describe the translation unit."""
        copies = [file for file in self.files.values() if file.is_copied]
        places = {file.path: f"{index}/{file.path.name}" for index, file in enumerate(copies)}
        parts: dict[Part, tuple[Path, str]] = {}
        originals: dict[str, Path] = {}
        for part in PARTS:
            contents = repr([(places[file.path], self._text(file, part, Path(), places)) for file in copies])
            root = overlay / hashlib.sha256(contents.encode()).hexdigest()[:24]
            root.mkdir(parents=True, exist_ok=True)
            os.utime(root)
            for file in copies:
                place, text = root / places[file.path], self._text(file, part, root, places)
                write_atomically(place, text.encode("utf-8", "surrogateescape"))
                originals[str(place)] = file.path
                if file is main:
                    parts[part] = place, text
        passed = [(file.path, file.rewritten) for file in self.files.values() if file.rewritten is not None]
        assert main.rewritten is not None
        return Prepared(
            path=path,
            host=parts["host"][0],
            device=parts["device"][0],
            host_text=parts["host"][1],
            device_text=parts["device"][1],
            rewritten=main.rewritten,
            kernels=tuple((path, kernel) for path, entry in passed for kernel in entry.kernels),
            calls=tuple((path, call) for path, entry in passed for call in entry.instructions_called),
            has_device_code=any(entry.has_device_code for _, entry in passed),
            uses_aic=any(entry.uses_aic for _, entry in passed),
            first_includes=_first_includes(main),
            originals=originals,
        )

    def _text(self, file: _File, part: Part, root: Path, places: dict[Path, str]) -> str:
        assert file.rewritten is not None
        text = file.rewritten.host_text if part == "host" else file.rewritten.text

        def renamed(match: re.Match[str]) -> str:
            found = file.includes.get((match[2] or "", match[3] or ""))
            if found is None:
                return match[0]
            path, is_beside = found
            if path in places:
                return f'{match[1]}"{root / places[path]}"'
            # The copy stands elsewhere, so what was found beside the original needs its full path.
            return f'{match[1]}"{path}"' if is_beside else match[0]

        name = str(file.path).replace("\\", "\\\\").replace('"', '\\"')
        return f'#line 1 "{name}"\n' + _INCLUDE.sub(renamed, text)


def _first_includes(file: _File) -> tuple[str, ...]:
    """The ``#include`` lines above everything else but comments, up to the first one of a file of the user's."""
    found = []
    for line in mask(file.source, strings=False).decode("utf-8", "surrogateescape").splitlines():
        if not line.strip():
            continue
        match = _INCLUDE.fullmatch(line.rstrip())
        if match is None or (match[2] or "", match[3] or "") in file.includes:
            break
        found.append(match[0].strip())
    return tuple(found)
