"""Machine code that Numba makes once and that runs without it: Numba takes a quarter of a second to import.

A C function (``numba.cfunc``) becomes an object file by :func:`emit`, and a later process links it by :func:`link`. Where
the file is kept, under a hash of what it was made from and of :func:`tools`, is its makers' affair.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ENTRY = "entry"
"""The function of an object file."""


def tools() -> str:
    """What all machine code depends on: Numba, NumPy, Python, the processor."""
    from importlib.metadata import version

    import llvmlite.binding as llvm

    processor = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    return f"{version('numba')} {np.__version__} {sys.version} {processor}"


def emit(function: Any) -> bytes:
    """An object file with a C function of Numba's as its :data:`ENTRY`.

    Numba's functions can report an exception. Ours raise none, and what they would do it with, functions of Python's
    and of Numba's, is cut out: the object can be used without Numba.
    """
    import llvmlite.binding as llvm

    reported = re.compile(r"^declare (?!.*@llvm\.)(.*@(?:Py|NRT_|numba_)\w+\(.*)$", re.MULTILINE)
    module = llvm.parse_assembly(reported.sub(r"define internal \1 { unreachable }", function.inspect_llvm()))
    module.get_function(function.native_name).name = ENTRY
    return _target().emit_object(module)


@cache
def _target() -> Any:
    """This computer, for LLVM."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    processor = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(*processor, opt=3, reloc="pic", codemodel="small", jit=True)


@cache
def _linker() -> Any:
    import llvmlite.binding as llvm

    return llvm.create_lljit_compiler(_target())


_libraries: list[Any] = []
"""What was linked stays in memory as long as this refers to it."""


def link(path: Path) -> int:
    """The address of the :data:`ENTRY` of an object file."""
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(path.read_bytes()).add_current_process().export_symbol(ENTRY)
    library = builder.link(_linker(), f"{path.stem}_{len(_libraries)}")
    _libraries.append(library)
    return library[ENTRY]
