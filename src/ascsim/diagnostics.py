"""Diagnostics: what the tool says when something is wrong, as data.

Every finding has a stable code, a headline, the places it speaks of, and the mend. The terminal, JSON and SARIF reports
are three renderings of :class:`Diagnostic`. A fault of the *input* (a missing file, a wrong argument) is a
:class:`UserError`; a kernel that the chip's tool chain would not accept raises :class:`Refused`, which carries its
diagnostic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import Any


class Severity(StrEnum):
    """How bad a finding is. Only an ``error`` changes the exit status."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Site:
    """A place in the user's source; line and column count from 1, 0 means unknown."""

    path: str
    line: int = 0
    column: int = 0
    function: str = ""

    def __str__(self) -> str:
        if not self.line:
            return self.path
        return f"{self.path}:{self.line}:{self.column}" if self.column else f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Place:
    """One of the places a diagnostic speaks of: ``what`` happened there, and its site and row of the trace if known.

    Places that differ in their rows alone are equal: the same call in another turn of a loop.
    """

    what: str
    site: Site | None = None
    row: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Diagnostic:
    """A finding.

    ``headline`` is one sentence; ``places`` the instructions concerned, first the one to blame; ``notes`` what
    else helps; ``mend`` what to do. ``count`` says how many equal findings were folded into this one.
    """

    code: str
    severity: Severity
    headline: str
    places: tuple[Place, ...] = ()
    notes: tuple[str, ...] = ()
    mend: str = ""
    count: int = 1

    def counted(self, count: int) -> Diagnostic:
        """The same finding, standing for ``count`` equal ones."""
        return replace(self, count=count)

    def as_dict(self) -> dict:
        """Plain data for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(data: dict) -> Diagnostic:
        """The inverse of :meth:`as_dict`."""
        places = tuple(
            Place(p["what"], Site(**p["site"]) if p.get("site") else None, p.get("row")) for p in data.get("places", ())
        )
        return Diagnostic(
            code=data["code"],
            severity=Severity(data["severity"]),
            headline=data["headline"],
            places=places,
            notes=tuple(data.get("notes", ())),
            mend=data.get("mend", ""),
            count=data.get("count", 1),
        )


def plural(count: int, thing: str) -> str:
    """``1 byte``, ``2 bytes``."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def fold_equal(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Equal findings as one that counts them, in the order of their first."""
    counts: dict[Diagnostic, int] = {}
    for diagnostic in diagnostics:
        counts[diagnostic] = counts.get(diagnostic, 0) + diagnostic.count
    return [diagnostic.counted(count) for diagnostic, count in counts.items()]


class UserError(Exception):
    """A fault of the input, told in one paragraph: what, where, what is allowed, what to do.

    ``status`` is the exit status of the command line.
    """

    def __init__(self, message: str, site: Site | None = None, status: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.site = site
        self.status = status

    def __str__(self) -> str:
        return f"{self.site}: {self.message}" if self.site else self.message


class Refused(Exception):
    """The chip's compiler or library would refuse this; raised before any effect."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.headline)
        self.diagnostic = diagnostic


class Fault(Exception):
    """The run cannot go on (an access far outside a memory, a hang); carries its diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.headline)
        self.diagnostic = diagnostic


@dataclass(frozen=True)
class Code:
    """An entry of the catalogue that ``ascsim explain CODE`` prints.

    ``text`` has paragraphs, parted by empty lines: what it means, what to do, and often an example. Lines that begin with
    four blanks are code.
    """

    code: str
    severity: Severity
    title: str
    text: str

    @property
    def mend(self) -> str:
        """The paragraph that says what to do: the last one but for an example."""
        return [p for p in self.text.split("\n\n") if not p.startswith("Example:")][-1]

    def blocks(self) -> Iterator[tuple[bool, str]]:
        """The text in pieces: whether it is code, and the paragraph or the lines of code."""
        for paragraph in self.text.split("\n\n"):
            for is_code, lines in groupby(paragraph.split("\n"), lambda line: line.startswith("    ")):
                yield is_code, "\n".join(lines)


@dataclass
class Catalogue:
    """Every stable code and its explanation. Checks register theirs at import; the ISA adds its rules."""

    codes: dict[str, Code] = field(default_factory=dict)

    def add(self, code: str, severity: Severity, title: str, text: str) -> Code:
        """Register a code.

        Raises:
            ValueError: the code is taken.
        """
        if code in self.codes:
            raise ValueError(f"diagnostic code {code} is registered twice")
        entry = Code(code, severity, title, text)
        self.codes[code] = entry
        return entry


CATALOGUE = Catalogue()


@dataclass
class Settings:
    """What this process reports: how many findings at most, and by which rules some are left out."""

    limit: int = 100
    rules: tuple[Any, ...] = ()


settings = Settings()
"""They stand here, where nothing else is loaded: a command sets them first."""
