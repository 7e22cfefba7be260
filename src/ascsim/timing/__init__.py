"""Time: a reader of the trace that says when each instruction would run on the chip, and what that comes to.

:func:`schedule` gives every row its cycles; :mod:`ascsim.timing.summary` says what bounds the run.
"""

from __future__ import annotations

from ascsim.timing.schedule import GIVES, TAKES, TRACKS, CoreRun, Path, Schedule, schedule

__all__ = ["GIVES", "TAKES", "TRACKS", "CoreRun", "Path", "Schedule", "schedule"]
