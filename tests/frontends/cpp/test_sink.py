"""The trace of a C++ run, written from Python."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.compilers import find_compiler
from ascsim.frontends.cpp.library import runtime_library
from ascsim.frontends.cpp.sink import complete
from ascsim.machine.trace import Trace

SCRIPT = r"""
import sys
from pathlib import Path
from ascsim import profiles
from ascsim.frontends.cpp.host import Host
from ascsim.machine.trace import pack_access, pack_row, pack_shape

host = Host(Path(sys.argv[1]), profiles.load("a2a3"), Path(sys.argv[2]))
sink = host.sink
accesses = b"".join(pack_access(1, 1, 0, 5, 0, n, 32, sink.shape(pack_shape(2, n + 1)), 0, 0) for n in range(3))
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
    complete(tmp_path)
    assert not (tmp_path / "tail.bin").exists()
    complete(tmp_path)  # of a whole trace there is nothing to do
    trace = Trace.load(tmp_path)
    assert trace.rows["arg"].tolist() == list(range(count))
    assert len(trace.accesses) == 3 * count
    assert trace.accesses["start"].reshape(-1, 3)[-1].tolist() == [0, 1, 2]
    assert trace.shapes["s1"][trace.accesses["shape"][-3:]].tolist() == [1, 2, 3]
    assert len(trace.shapes) == 4
    assert np.array_equal(trace.masks, np.repeat(np.arange(3, dtype=np.uint8), 32).reshape(3, 32))
    assert trace.noted("object") == [{"name": "a\nb"}]
    assert (tmp_path / "rows.bin").stat().st_size == 32 * count


def tail(counted: list[int], written: list[int], rows: bytes, window: int = 128) -> bytes:
    """A tail as the runtime library leaves it."""
    head = np.array([*counted, *written, window], "<u8").tobytes().ljust(4096, b"\0")
    return head + rows.ljust(window, b"\0") + bytes(3 * window)


@pytest.mark.parametrize("in_file", [2, 3, 4])
def test_a_window_that_was_on_its_way_to_the_file_is_whole(tmp_path, in_file):
    rows = [bytes([n]) * 32 for n in range(4)]
    (tmp_path / "rows.bin").write_bytes(b"".join(rows[:in_file]))
    (tmp_path / "accesses.bin").write_bytes(b"")
    (tmp_path / "masks.bin").write_bytes(bytes(64))
    (tmp_path / "shapes.bin").write_bytes(b"")
    (tmp_path / "tail.bin").write_bytes(tail([4, 0, 1, 0], [2, 0, 1, 0], b"".join(rows[2:])))
    complete(tmp_path)
    assert (tmp_path / "rows.bin").read_bytes() == b"".join(rows)
    assert (tmp_path / "accesses.bin").read_bytes() == b""
    assert (tmp_path / "masks.bin").read_bytes() == bytes(32)
