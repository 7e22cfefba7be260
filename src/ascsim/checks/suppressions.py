"""Findings that the user does not want to hear of: by a comment on a line, or by a file of rules.

A comment ``ascsim: ignore`` (behind ``//`` or ``#``) on a line, or alone on the line above it, suppresses the findings
that have a place there; ``ascsim: ignore[R001, B005]`` those of these codes. A file has a rule a line: a code, and then,
if it holds for some places only, a path with or without a line number, both with ``*`` as a wildcard.

    B005                     # nowhere
    R001  kernel.cpp:42      # a known race there
    *     third_party/*
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from ascsim.diagnostics import CATALOGUE, Diagnostic, Severity, Site, UserError

CATALOGUE.add(
    "N002", Severity.NOTE, "Findings were suppressed",
    "Comments in the source (`// ascsim: ignore[R001]`) or the file given with --suppressions told ascsim to leave "
    "findings out. The note says how many of which codes, so that nothing is forgotten behind them.\n\n"
    "Take the comment or the rule away to see them again.",
)  # fmt: skip

_COMMENT = re.compile(r"(?://|#)\s*ascsim:\s*ignore(?:\[([^\]]*)\])?")


@dataclass(frozen=True)
class Rule:
    """Findings to suppress: of the codes that match ``code``, with a place that matches ``path`` (empty: any)."""

    code: str
    path: str = ""
    line: int = 0

    def matches(self, diagnostic: Diagnostic) -> bool:
        """Whether the rule is about a finding."""
        if not fnmatchcase(diagnostic.code, self.code):
            return False
        sites = [place.site for place in diagnostic.places if place.site is not None]
        return not self.path or any(self._is_at(site) for site in sites)

    def _is_at(self, site: Site) -> bool:
        path = site.path.replace("\\", "/")
        named = fnmatchcase(path, self.path) or fnmatchcase(path, f"*/{self.path}")
        return named and self.line in (0, site.line)


def read_rules(file: Path) -> tuple[Rule, ...]:
    """The rules of a file.

    Raises:
        UserError: it cannot be read, or a line is no rule.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the suppressions {file} cannot be read: {error}") from error
    rules = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        path, _, at = (
            words[1].rpartition(":") if len(words) == 2 and words[1].rpartition(":")[2].isdigit() else ("", "", "")
        )
        if len(words) > 2:
            raise UserError(
                f"a rule is a code and a path, as in `R001 kernel.cpp:42`; this line has {len(words)} words",
                Site(str(file), number),
            )
        rules.append(Rule(words[0], path or (words[1] if len(words) == 2 else ""), int(at or 0)))
    return tuple(rules)


def suppress(diagnostics: Iterable[Diagnostic], rules: Sequence[Rule]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """(those to tell, those that a comment or a rule suppresses)."""
    told: list[Diagnostic] = []
    silent: list[Diagnostic] = []
    for diagnostic in diagnostics:
        is_ignored = any(rule.matches(diagnostic) for rule in rules) or any(
            _ignores(place.site, diagnostic.code) for place in diagnostic.places if place.site is not None
        )
        (silent if is_ignored else told).append(diagnostic)
    return told, silent


def note_on(suppressed: Sequence[Diagnostic]) -> Diagnostic:
    """The note that says what was suppressed."""
    codes = Counter(d.code for d in suppressed)
    listing = ", ".join(f"{code} ({number})" for code, number in sorted(codes.items()))
    count = len(suppressed)
    headline = f"{count} finding{'s are' if count > 1 else ' is'} suppressed"
    return Diagnostic("N002", Severity.NOTE, headline, (), (f"suppressed: {listing}",))


def _ignores(site: Site, code: str) -> bool:
    lines = _lines(site.path)
    if not 0 < site.line <= len(lines):
        return False
    above = lines[site.line - 2].strip() if site.line > 1 else ""
    return _names(lines[site.line - 1], code) or (above.startswith(("//", "#")) and _names(above, code))


def _names(line: str, code: str) -> bool:
    found = _COMMENT.search(line)
    if found is None:
        return False
    codes = [word.strip() for word in (found.group(1) or "*").split(",")]
    return any(fnmatchcase(code, word) for word in codes)


@lru_cache(maxsize=64)
def _read(path: str, _stamp: int) -> tuple[str, ...]:
    return tuple(Path(path).read_text(encoding="utf-8", errors="replace").splitlines())


def _lines(path: str) -> tuple[str, ...]:
    """The lines of a source, as it is now."""
    try:
        return _read(path, Path(path).stat().st_mtime_ns)
    except OSError:
        return ()
