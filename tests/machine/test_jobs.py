"""How many processors a launch uses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascsim.machine import jobs


def test_all_that_the_process_may_use_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)), raising=False)
    monkeypatch.setattr(jobs, "_chosen", (None, jobs.AFTER))
    assert jobs.processors() in range(1, 7)
    jobs.choose(9, after=0.5)
    assert (jobs.processors(), jobs.after()) == (9, 0.5)
    with pytest.raises(ValueError, match="at least 1 processor, not 0"):
        jobs.choose(0)
    assert (jobs.processors(), jobs.after()) == (9, 0.5)


@pytest.mark.parametrize(
    ("limit", "usable"),
    [("max 100000", 6), ("250000 100000", 2), ("50000 100000", 1), ("900000 100000", 6), ("nonsense", 6), (None, 6)],
)
def test_a_container_has_a_share_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str | None, usable: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)), raising=False)
    file = tmp_path / "cpu.max"
    if limit is not None:
        file.write_text(limit + "\n")
    assert jobs._usable(file) == usable
