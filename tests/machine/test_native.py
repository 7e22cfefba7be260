"""When Numba is imported, and where its code is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SMALL_RUN = """
import sys
from ascsim import checks, profiles
from ascsim.machine.trace import MemorySink, pack_access, pack_row
sink = MemorySink()
store = pack_access(1, 2, 0, 0, 0, 0, 64, 0, 0, 0)
for _ in range(3):
    sink.append(pack_row(0, 1, 0, 0, 1, 0, -1, 0, 0, 1, 0, 0, 0), store)
assert [d.code for d in checks.run(sink.trace(), profiles.find("a3"))] == ["R003"]
assert "numba" not in sys.modules
"""

LONG_RUN = """
import sys
import numpy as np
from ascsim.checks import clocks
from ascsim.machine import native
said = []
one = np.zeros(1, np.int64)
find = native.compiled(clocks.find_shared, said.append)
assert find(one, one + 1, one, one, one, np.full((2, 2), -1), one.copy(), one.copy()) == 0
print(len(said), "numba" in sys.modules)
"""


def run(program: str, cache: Path) -> str:
    """Standard output of a program with its own cache."""
    environment = {**os.environ, "ASCSIM_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_small_run_needs_no_numba(tmp_path: Path) -> None:
    run(SMALL_RUN, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_compiled_code_is_kept_and_announced_once(tmp_path: Path) -> None:
    assert run(LONG_RUN, tmp_path) == "1 True"
    assert list(tmp_path.glob("loops-clocks-*/find_shared_*"))
    assert run(LONG_RUN, tmp_path) == "0 False"
