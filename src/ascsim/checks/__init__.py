"""Checks: readers of the trace that report diagnostics.

:func:`run` is the way in. Each check is a module with ``check(context)``, which yields findings; :data:`CHECKS` lists
them. A check knows no instruction: rows have names, pipes, bytes and parents, and that is all it looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from ascsim.checks import (
    barriers,
    bounds,
    cores,
    data_cache,
    initialisation,
    locks,
    notes,
    overlaps,
    races,
    signals,
    sync,
    unaligned,
)
from ascsim.checks.context import Context, Found, Sites
from ascsim.checks.findings import fold
from ascsim.checks.suppressions import read_rules
from ascsim.diagnostics import Diagnostic, Site, settings
from ascsim.machine.trace import SITE_PC, Trace
from ascsim.profiles import Profile

Check = Callable[[Context], Iterator[Found]]
CHECKS: tuple[Check, ...] = (
    notes.check, bounds.check, sync.check, locks.check, signals.check, races.check, unaligned.check, barriers.check,
    cores.check, data_cache.check, initialisation.check, overlaps.check,
)  # fmt: skip


def run(
    trace: Trace,
    profile: Profile,
    sites: Sites | None = None,
    limit: int | None = None,
    notice: Callable[[str], None] | None = None,
    checks: Sequence[Check] | None = None,
) -> list[Diagnostic]:
    """All checks over a trace.

    Args:
        trace: the recorded run.
        profile: the chip it ran on.
        sites: ``sites(number, flags)`` gives the source site behind a row's ``site`` and ``flags``; default: the sites
            noted in the trace.
        limit: how many diagnostics at most; what is left out is counted in a last one. Default: that of
            :data:`ascsim.diagnostics.settings`.
        notice: told, in a sentence, of the one-time compilation that a long trace may start.
        checks: which, of :data:`CHECKS`; default: all.

    Returns:
        Diagnostics in program order, equal ones folded with their count.
    """
    context = Context(trace, profile, cache(sites or noted_sites(trace)), notice)

    def founds() -> Iterator[Found]:
        for check in checks or CHECKS:
            yield from check(context)
            trace.release()

    return fold(founds(), context, settings.limit if limit is None else limit, settings.rules)


def noted_sites(trace: Trace) -> Sites:
    """A resolver for the sites that the run noted; it does not know program counters."""
    noted = [
        Site(data["path"], data.get("line", 0), data.get("column", 0), data.get("function", ""))
        for data in trace.noted("site")
    ]

    def resolve(number: int, flags: int) -> Site | None:
        return noted[number - 1] if not flags & SITE_PC and 0 < number <= len(noted) else None

    return resolve


__all__ = ["CHECKS", "Context", "Found", "noted_sites", "read_rules", "run", "settings"]
