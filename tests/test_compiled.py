"""Numba's functions as object files."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np

from ascsim.compiled import link, tools

MAKE = """
import sys
from pathlib import Path
import numba
import numpy as np
from ascsim.compiled import emit

def double(cells):
    numbers = numba.carray(cells, (4,), np.int64)
    for i in range(4):
        numbers[i] = numbers[i] * 2

made = numba.cfunc(numba.types.void(numba.types.voidptr), error_model="numpy")(double)
Path(sys.argv[1]).write_bytes(emit(made))
"""


def test_an_object_file_is_linked_by_a_process_without_numba(tmp_path: Path) -> None:
    path = tmp_path / "double.o"
    subprocess.run([sys.executable, "-c", MAKE, str(path)], check=True)
    use = """
import ctypes, sys
from pathlib import Path
import numpy as np
from ascsim.compiled import link
cells = np.arange(4)
ctypes.CFUNCTYPE(None, ctypes.c_void_p)(link(Path(sys.argv[1])))(cells.ctypes.data)
print(cells.tolist(), "numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", use, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 2, 4, 6] False\n"


def test_two_files_of_one_name_are_two_functions(tmp_path: Path) -> None:
    path = tmp_path / "double.o"
    subprocess.run([sys.executable, "-c", MAKE, str(path)], check=True)
    first, second = link(path), link(path)
    assert first != second
    cells = np.arange(4)
    for address in (first, second):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(cells.ctypes.data)
    assert cells.tolist() == [0, 4, 8, 12]


def test_the_tools_name_what_code_depends_on() -> None:
    assert np.__version__ in tools() and sys.version in tools()
