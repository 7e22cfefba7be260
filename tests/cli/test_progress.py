"""The progress bar: on a terminal only, after a second, above it whatever the program writes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ascsim import progress
from ascsim.cli import progress as bar
from ascsim.diagnostics import UserError
from ascsim.frontends.cpp import compilers

SLOW = """
import time
import numpy as np, ascsim
@ascsim.kernel
def slow(values):
    print("block", flush=True)
    time.sleep(0.7)
slow[3](np.zeros((1, 64), np.float32))
"""
PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>
int main() {
    printf("one line\n");
    usleep(1800000);
    printf("two ");
    fflush(stdout);
    usleep(300000);
    printf("parts\n");
    return 0;
}
"""


def on_a_terminal(*arguments: str) -> str:
    """What ``ascsim run`` writes to a terminal."""
    reading, writing = pty.openpty()
    found = bytearray()

    def read() -> None:
        try:
            while data := os.read(reading, 4096):
                found.extend(data)
        except OSError:
            pass

    thread = threading.Thread(target=read)
    thread.start()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-m", "ascsim.cli", "run", *arguments]
    subprocess.run(command, stdout=writing, stderr=writing, env=environment, check=False, timeout=100)
    os.close(writing)
    thread.join(10)
    return found.decode()


def test_a_bar_counts_the_blocks(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    text = on_a_terminal(str(script))
    assert "running slow" in text
    assert "rows of trace" in text
    assert text.count("block\r\n") == 3
    assert "no findings" in text
    plain = subprocess.run(
        [sys.executable, "-m", "ascsim.cli", "run", str(script)], capture_output=True, text=True, check=False
    )
    assert "running slow" not in plain.stdout + plain.stderr


def test_a_programs_lines_stay_whole(tmp_path: Path) -> None:
    try:
        compilers.find_compiler()
    except UserError:
        pytest.skip("no compiler")
    source = tmp_path / "slow.cpp"
    source.write_text(PROGRAM)
    text = on_a_terminal(str(source))
    assert "running slow" in text
    assert "0 rows of trace" in text
    assert "one line\r\n" in text
    assert "two parts\r\n" in text


def test_no_bar_without_a_terminal() -> None:
    with bar.shown(True) as shown:
        assert shown is None


def test_stages_are_told_in_turn() -> None:
    told: list[object] = []

    class Watcher:
        def begin(self, text: str, total: int | None, detail: progress.Detail | None) -> None:
            told.append((text, total, detail and detail()))

        def advance(self) -> None:
            told.append("part")

        def end(self) -> None:
            told.append("end")

    with progress.watched(Watcher()), pytest.raises(ValueError), progress.stage("work", 2, lambda: "far"):
        progress.advance()
        with progress.stage("inside"):
            pass
        raise ValueError
    with progress.stage("nobody looks"):
        progress.advance()
    assert told == [("work", 2, "far"), "part", ("inside", None, None), "end", "end"]
