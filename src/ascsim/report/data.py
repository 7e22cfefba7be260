"""The report for programs: plain data for ``--json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ascsim.diagnostics import Diagnostic
from ascsim.machine.trace import Trace
from ascsim.profiles import Profile
from ascsim.report.terminal import counts, instructions


def run(
    kernel: str, profile: Profile, trace: Trace, diagnostics: Sequence[Diagnostic], sync: str, **more: Any
) -> dict[str, Any]:
    """A run: verdict, findings, and what ran. ``more`` is added at the top level."""
    found = counts(diagnostics)
    return {
        "ok": not found["error"],
        "kernel": kernel,
        "profile": profile.name,
        "sync": sync,
        "launches": trace.noted("launch"),
        "instructions": instructions(trace),
        "counts": found,
        "findings": [d.as_dict() for d in diagnostics],
        **more,
    }
