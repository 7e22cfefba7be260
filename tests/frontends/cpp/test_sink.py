"""The mapped trace files, written from Python."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.compilers import find_compiler
from ascsim.frontends.cpp.library import runtime_library
from ascsim.machine.trace import Trace

SCRIPT = r"""
import sys
from pathlib import Path
from ascsim import profiles
from ascsim.frontends.cpp.host import Host
from ascsim.machine.trace import pack_access, pack_row

host = Host(Path(sys.argv[1]), profiles.load("a2a3"), Path(sys.argv[2]))
sink = host.sink
accesses = b"".join(pack_access(1, 1, 0, 5, 0, n, 32, 1, 0, 1, 1, 0, 0, 0, 0) for n in range(3))
for n in range(int(sys.argv[3])):
    assert sink.append(pack_row(n % 7, 1, 0, 5, 3, 0, -1, n, 9, 1, 1, 0, 0), accesses) == n
assert sink.n_rows == int(sys.argv[3])
assert [sink.mask(bytes([n]) * 32) for n in range(3)] == [1, 2, 3]
sink.note("object", {"name": "a\nb"})
import os, signal
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("count", [1, 150_000])
def test_what_was_appended_is_there_after_a_kill(tmp_path, count):
    try:
        library = runtime_library(find_compiler())
    except UserError:
        pytest.skip("needs a C++ compiler")
    words = [sys.executable, "-c", SCRIPT, str(library), str(tmp_path), str(count)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    trace = Trace.load(tmp_path)
    assert trace.rows["arg"].tolist() == list(range(count))
    assert len(trace.accesses) == 3 * count
    assert trace.accesses["start"].reshape(-1, 3)[-1].tolist() == [0, 1, 2]
    assert np.array_equal(trace.masks, np.repeat(np.arange(3, dtype=np.uint8), 32).reshape(3, 32))
    assert trace.noted("object") == [{"name": "a\nb"}]
    assert (tmp_path / "rows.bin").stat().st_size % (4 << 20) == 0
