"""Findings as SARIF 2.1.0, the format that code-scanning viewers read.

Source of the structure: OASIS Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascsim.diagnostics import CATALOGUE, Diagnostic, Place, Severity

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def log(runs: Sequence[tuple[str, Sequence[Diagnostic]]], version: str) -> dict[str, Any]:
    """A SARIF log of runs, each the name of its profile and its findings; ``version`` is ascsim's own."""
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(profile, found, version) for profile, found in runs]}


def _run(profile: str, diagnostics: Sequence[Diagnostic], version: str) -> dict[str, Any]:
    codes = sorted({d.code for d in diagnostics})
    driver = {
        "name": "ascsim",
        "version": version,
        "semanticVersion": version,
        "rules": [_rule(code) for code in codes],
    }
    return {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(d, codes.index(d.code)) for d in diagnostics],
        "properties": {"profile": profile},
    }


def _rule(code: str) -> dict[str, Any]:
    entry = CATALOGUE.codes.get(code)
    if entry is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.text},
        "help": {"text": f"{entry.text}\n\nascsim explain {code} shows this text."},
        "defaultConfiguration": {"level": _LEVEL[entry.severity]},
    }


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    text = ". ".join(part.rstrip(".") for part in (diagnostic.headline, diagnostic.mend) if part) + "."
    located = [place for place in diagnostic.places if place.site is not None]
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": _LEVEL[diagnostic.severity],
        "message": {"text": text},
        "locations": [_location(place) for place in located[:1]],
        "partialFingerprints": {"ascsim/v1": _fingerprint(diagnostic)},
        "properties": {"notes": list(diagnostic.notes)},
    }
    if located[1:]:
        result["relatedLocations"] = [{"id": i, **_location(place)} for i, place in enumerate(located[1:], start=1)]
    if diagnostic.count > 1:
        result["occurrenceCount"] = diagnostic.count
    return result


def _location(place: Place) -> dict[str, Any]:
    assert place.site is not None
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.site.path)}}
    if place.site.line:
        physical["region"] = {"startLine": place.site.line}
        if place.site.column:
            physical["region"]["startColumn"] = place.site.column
    location: dict[str, Any] = {"physicalLocation": physical}
    if place.what:
        location["message"] = {"text": place.what}
    return location


def _uri(path: str) -> str:
    """The path from here, which is how viewers find it in a repository; a file URI for one that lies elsewhere."""
    from urllib.parse import quote

    whole = Path(path).absolute()
    try:
        return quote(whole.relative_to(Path.cwd()).as_posix())
    except ValueError:
        return whole.as_uri()


def _fingerprint(diagnostic: Diagnostic) -> str:
    """The same for a finding whose lines moved: its code, what happened, and in which files."""
    files = [Path(place.site.path).name if place.site else "" for place in diagnostic.places]
    what = [place.what for place in diagnostic.places]
    return hashlib.sha256(repr((diagnostic.code, what, files)).encode()).hexdigest()[:32]
