"""Numba's functions as files, loaded by processes without it."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ascsim import compiled
from ascsim.compiled import find, is_kept, make, tools

MAKE = """
import sys
from pathlib import Path
import numba
import numpy as np
from ascsim.compiled import make

def double(cells):
    numbers = numba.carray(cells, (4,), np.int64)
    for i in range(4):
        numbers[i] = numbers[i] * 2

made = numba.cfunc(numba.types.void(numba.types.voidptr), error_model="numpy")(double)
for place in sys.argv[1:]:
    make(Path(place), made)
"""
USE = """
import ctypes, sys
from pathlib import Path
import numpy as np
from ascsim.compiled import find
cells = np.arange(4)
ctypes.CFUNCTYPE(None, ctypes.c_void_p)(find(Path(sys.argv[1])))(cells.ctypes.data)
print(cells.tolist(), "numba" in sys.modules, "llvmlite" in sys.modules)
"""
HAS_LINKER = sys.platform == "linux" and bool(shutil.which("ld") or shutil.which("ld.lld"))


def made(*places: Path, path: str | None = None) -> None:
    """Keep a function that doubles four numbers; ``path`` is where programs are looked for."""
    environment = os.environ if path is None else {**os.environ, "PATH": path}
    subprocess.run([sys.executable, "-c", MAKE, *map(str, places)], check=True, env=environment)


def used(place: Path) -> str:
    done = subprocess.run([sys.executable, "-c", USE, str(place)], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.skipif(not HAS_LINKER, reason="this machine has no linker")
def test_a_kept_function_needs_neither_numba_nor_llvm(tmp_path: Path) -> None:
    made(tmp_path / "double")
    assert [path.name for path in tmp_path.iterdir()] == ["double.so"]
    assert used(tmp_path / "double") == "[0, 2, 4, 6] False False\n"


@pytest.mark.skipif(not HAS_LINKER, reason="this machine has no linker")
def test_constants_lie_in_the_segment_of_the_code(tmp_path: Path) -> None:
    made(tmp_path / "double")
    text = (tmp_path / "double.so").read_bytes()
    (start,), (size, count) = struct.unpack_from("<Q", text, 32), struct.unpack_from("<HH", text, 54)
    headers = [struct.unpack_from("<II", text, start + number * size) for number in range(count)]
    read_only = [flags for kind, flags in headers if kind == 1 and not flags & 2]  # loaded, not writable
    assert read_only == [5]  # read and executed


def test_without_a_linker_an_object_file_is_kept(tmp_path: Path) -> None:
    made(tmp_path / "double", path=str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["double.o"]
    assert used(tmp_path / "double") == "[0, 2, 4, 6] False True\n"


def test_two_files_of_one_name_are_two_functions(tmp_path: Path) -> None:
    places = [tmp_path / name / "double" for name in ("first", "second")]
    made(places[0])
    made(places[1], path=str(tmp_path))
    first, second = map(find, places)
    assert first != second and None not in (first, second)
    cells = np.arange(4)
    for address in (first, second):
        assert address is not None
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(cells.ctypes.data)
    assert cells.tolist() == [0, 4, 8, 12]


def test_what_cannot_be_loaded_is_made_again(tmp_path: Path) -> None:
    place = tmp_path / "double"
    (tmp_path / "double.so").write_bytes(b"no library")
    assert find(place) is None
    made(place)
    assert used(place).startswith("[0, 2, 4, 6]")


def test_a_library_that_does_not_load_is_an_object_file_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numba

    monkeypatch.setattr(compiled, "_load", lambda library: None)  # as on a file system that holds no programs
    nothing = numba.cfunc(numba.types.void(numba.types.voidptr), error_model="numpy")(lambda cells: None)
    assert make(tmp_path / "nothing", nothing)
    assert [path.name for path in tmp_path.iterdir()] == ["nothing.o"]


def test_what_is_kept_is_known_by_the_beginning_of_its_name(tmp_path: Path) -> None:
    assert not is_kept(tmp_path, "loop_")
    (tmp_path / "loop_of_others.txt").touch()
    assert not is_kept(tmp_path, "loop_")
    (tmp_path / "loop_1.so").touch()
    assert is_kept(tmp_path, "loop_") and not is_kept(tmp_path, "other_")


def test_the_tools_name_what_code_depends_on() -> None:
    import numba

    assert np.__version__ in tools() and sys.version in tools() and numba.__version__ in tools()
