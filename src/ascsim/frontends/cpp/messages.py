"""The host compiler's messages, told in the user's terms: the user's own lines, without the noise of our headers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

_LOCATED = re.compile(
    r"(?P<path>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<kind>fatal error|error|warning|note): (?P<text>.*)"
)
_REQUIRED = re.compile(
    r"(?P<path>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)?\s+(?:recursively )?required (?:from|by).*"
)
_INLINED = re.compile(r"\s+inlined from .* at (?P<path>[^:\n]+):(?P<line>\d+):(?P<column>\d+)[:,]?")
# What a function that ascsim declares only to refuse it carries in its error attribute.
_REFUSED = re.compile(r".*\bascsim (?P<code>[A-Z]+\d+) (?P<name>[\w:]+): (?P<text>.*)")
# Where the headers of compilers and C++ libraries stand.
_LIBRARY_PLACES = ("/usr/include/", "/usr/lib/gcc", "/include/c++/", "/libcxx/include/", "/lib/clang/", "/lib/gcc/")
_INSTANTIATED_HERE = re.compile(r"in instantiation of .* requested here")


@dataclass(frozen=True)
class Message:
    """One message of a compiler at a place; ``notes`` are the places it points to besides.

    ``code`` is that of a diagnostic of ascsim's, where a header refuses a call (an instruction that a chip lacks).
    """

    kind: str
    path: str
    line: int
    column: int
    text: str
    notes: tuple[Message, ...] = ()
    code: str = ""

    @property
    def is_error(self) -> bool:
        """Whether it is an ``error`` or ``fatal error``."""
        return self.kind.endswith("error")


@dataclass
class _Open:
    message: Message
    required: list[Message] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)


def parse_messages(text: str, own_headers: Sequence[Path] = ()) -> list[Message]:
    """The messages in what gcc or clang printed.

    A message placed in ascsim's or the library's headers is moved to the user's line that led there, if it is known; a
    warning that stays there is none of the user's.
    """
    found: list[_Open] = []
    required: list[Message] = []
    for row in text.splitlines():
        match = _LOCATED.fullmatch(row)
        if match is None:
            context = _REQUIRED.fullmatch(row) or _INLINED.fullmatch(row)
            if context:
                required.append(_message(context, "note", ""))
            continue
        message = _message(match, match["kind"], match["text"])
        if message.kind == "note" and found:
            found[-1].notes.append(message)
        elif message.kind != "note":
            found.append(_Open(message, required))
            required = []
    closed = [_closed(entry, own_headers) for entry in found]
    return [message for message in closed if message.is_error or not _is_foreign(message, own_headers)]


def _message(match: re.Match[str], kind: str, text: str) -> Message:
    refused = _REFUSED.fullmatch(text)
    code = ""
    if refused:
        code, text = refused["code"], f"{refused['name']}: {refused['text']}"
    return Message(kind, match["path"], int(match["line"]), int(match["column"] or 0), text, code=code)


def _closed(entry: _Open, own_headers: Sequence[Path]) -> Message:
    """The message at the user's line, with the notes that speak of the user's lines."""
    message = entry.message
    here = [note for note in entry.notes if _INSTANTIATED_HERE.match(note.text)]
    led_here = [place for place in [*entry.required, *here] if not _is_foreign(place, own_headers)]
    notes = [note for note in entry.notes if note not in here and not _is_foreign(note, own_headers)]
    if led_here and _is_foreign(message, own_headers):
        message = replace(message, path=led_here[0].path, line=led_here[0].line, column=led_here[0].column)
    elif led_here and not message.code:
        notes.append(replace(led_here[0], text="required from here"))
    return replace(message, notes=tuple(notes))


def _is_foreign(message: Message, own_headers: Sequence[Path]) -> bool:
    """Whether it stands in ascsim's headers or in those of the C++ library."""
    path = os.path.abspath(message.path)
    ours = any(path.startswith(f"{directory.absolute()}{os.sep}") for directory in own_headers)
    return ours or any(part in path for part in _LIBRARY_PLACES)


def render(messages: Iterable[Message]) -> str:
    """Messages as a compiler prints them: place, text, the source line and a caret. Equal ones once."""
    shown: list[str] = []
    files: dict[str, list[str]] = {}
    seen: set[tuple[str, str, int, str]] = set()
    for message in messages:
        for part in (message, *message.notes):
            key = (part.kind, part.path, part.line, part.text)
            if key in seen:
                continue
            seen.add(key)
            column = f"{part.column}:" if part.column else ""
            code = f" [{part.code}]" if part.code else ""
            shown.append(f"{_short(part.path)}:{part.line}:{column} {part.kind}: {part.text}{code}")
            if part.path not in files:
                files[part.path] = _lines(part.path)
            shown += _snippet(part, files[part.path])
    return "\n".join(shown)


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else path


def _snippet(message: Message, lines: list[str]) -> list[str]:
    if not 1 <= message.line <= len(lines):
        return []
    text = lines[message.line - 1]
    rows = [f"  {message.line:5} | {text}"]
    if message.column:
        before = "".join("\t" if character == "\t" else " " for character in text[: message.column - 1])
        rows.append(f"        | {before}^")
    return rows


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def original_column(original: str, rewritten: str, column: int) -> int:
    """The column of the user's line for a column (from 1) of the rewritten line.

    What lies before and behind the rewritten part keeps its distance to the line's ends; what lies in it becomes its
    beginning.
    """
    if original == rewritten or column == 0:
        return column
    limit = min(len(original), len(rewritten))
    front = next((i for i in range(limit) if original[i] != rewritten[i]), limit)
    back = next((i for i in range(limit - front) if original[-1 - i] != rewritten[-1 - i]), limit - front)
    if column - 1 < front:
        return column
    if column - 1 >= len(rewritten) - back:
        return column - len(rewritten) + len(original)
    return front + 1
