"""Directories of a process: gone with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ascsim import scratch


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The temporary directory of this process and those that it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    scratch._remove_left_over.cache_clear()
    yield tmp_path
    scratch._remove_left_over.cache_clear()


def start(here: Path, then: str) -> tuple[subprocess.Popen[str], Path]:
    """A process that makes a directory, says where, and goes on."""
    text = f"from ascsim import scratch; print(scratch.make('trace'), flush=True); {then}"
    process = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    made = Path(process.stdout.readline().strip())
    assert made.parent == here and made.is_dir()
    return process, made


def old(made: Path) -> None:
    """The directory was made a while ago."""
    os.utime(made / scratch._LOCK, (time.time() - 100,) * 2)


def test_a_directory_is_gone_when_it_is_removed(here):
    with scratch.directory("build") as made:
        (made / "file").write_text("")
        assert made.parent == here and made.name.startswith("ascsim-build-")
    assert not made.exists()


def test_a_process_that_ends_leaves_nothing(here):
    process, made = start(here, "input(); raise SystemExit(3)")
    process.communicate("on\n")
    assert process.returncode == 3
    assert not made.exists()


def test_what_a_killed_process_left_is_removed_by_the_next_one(here):
    process, made = start(here, "import time; time.sleep(100)")
    (made / "rows.bin").write_bytes(bytes(1000))
    process.send_signal(signal.SIGKILL)
    process.wait()
    scratch.remove(scratch.make("trace"))
    assert made.is_dir(), "it may be about to lock it"
    old(made)
    scratch._remove_left_over.cache_clear()
    scratch.remove(scratch.make("trace"))
    assert not made.exists()


def test_what_is_in_use_stays(here):
    process, made = start(here, "input()")
    old(made)
    scratch.remove(scratch.make("trace"))
    assert made.is_dir()
    process.kill()
    process.wait()


def test_a_copy_of_the_process_removes_nothing_of_it(here):
    made = scratch.make("trace")
    copy = os.fork()
    if not copy:
        scratch._remove_all()
        os._exit(0)
    os.waitpid(copy, 0)
    assert made.is_dir()
    scratch.remove(made)
