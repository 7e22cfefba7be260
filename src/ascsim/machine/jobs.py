"""How many processors a launch uses: a choice for the whole process (``ascsim run --jobs``)."""

from __future__ import annotations

import os
from pathlib import Path

AFTER = 0.1
"""Seconds that a launch takes, and has before it, before its blocks run ahead: a copy of the process costs a tenth of it."""

_chosen: tuple[int | None, float] = (None, AFTER)


def choose(jobs: int | None, after: float = AFTER) -> None:
    """Use so many processors from now on, in launches that take longer than ``after`` seconds.

    None: all that the process may use. With 1 no block runs ahead (:mod:`ascsim.machine.ahead`).

    Raises:
        ValueError: it is less than 1.
    """
    global _chosen
    if jobs is not None and jobs < 1:
        raise ValueError(f"a launch uses at least 1 processor, not {jobs}")
    _chosen = jobs, after


def processors() -> int:
    """How many processors are used."""
    return _chosen[0] or _usable()


def after() -> float:
    """From how many seconds on."""
    return _chosen[1]


def _usable(limit: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """The processors that this process may use: those that it is bound to, and of these as many as its container's share
    of time comes to."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    try:
        quota, period = limit.read_text(encoding="ascii").split()
        return max(min(bound, int(quota) // int(period)), 1)
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return bound
