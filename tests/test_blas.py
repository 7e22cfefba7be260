"""NumPy without the threads of its BLAS, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from ascsim.blas import import_numpy
before = dict(os.environ)
import_numpy()
assert "numpy" in sys.modules
print(len(os.listdir("/proc/self/task")), dict(os.environ) == before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir() or os.cpu_count() == 1, reason="counts threads in /proc")
@pytest.mark.parametrize(("limit", "threads"), [("", "1"), ("2", "2")])
def test_there_are_as_many_threads_as_the_environment_says_or_one(limit: str, threads: str) -> None:
    environment = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    environment |= {"OMP_NUM_THREADS": limit} if limit else {}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{threads} True\n"
