"""Machine code that Numba makes once and that runs without it: Numba takes a quarter of a second to import.

A C function (``numba.cfunc``) is kept as a shared library where this machine has a linker, and then costs a process next
to nothing; without one it is kept as an object file, which LLVM links again in each process. The name of the file, with
a hash of what it was made from and of :func:`tools`, is its makers' affair.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ascsim.cache import write_atomically

ENTRY = "entry"
"""The function of a file."""
LIBRARY, OBJECT = ".so", ".o"
_ONE_PIECE = {"ld": ("-z", "noseparate-code"), "ld.lld": ("--no-rosegment",)}
"""Linkers, and what makes them put constants beside the code. Alone in a page they may be read under a mask that is empty, and
nothing else: such a page is never brought into memory, and each read of it takes a hundred times as long."""
_OF_A_PROCESSOR = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features")


def tools() -> str:
    """What all machine code depends on: Numba, NumPy, Python, the processor, this module."""
    own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    return f"{_version('numba')} {_version('llvmlite')} {np.__version__} {sys.version} {_processor()} {own}"


def _version(package: str) -> str:
    """What a package says of its version, without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return "none"
    return Path(spec.origin).with_name("_version.py").read_text(encoding="utf-8")


def _processor() -> str:
    """The processor's model and features; those that the system tells, for to ask LLVM means to import it."""
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            first = file.read(1 << 14).decode(errors="replace").split("\n\n")[0]
    except OSError:
        first = ""
    told = [line for line in first.splitlines() if line.startswith(_OF_A_PROCESSOR)]
    if told:
        return "\n".join(told)
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


@cache
def converts_halves() -> bool:
    """Whether the processor itself widens half and rounds to it; without that compiled code would call functions that are
    not there."""
    return platform.machine().lower() in ("aarch64", "arm64") or "f16c" in _processor().split()


def find(place: Path) -> int | None:
    """The address of the function that is kept at a place (a path without its ending); None if there is none."""
    library, plain = place.with_name(place.name + LIBRARY), place.with_name(place.name + OBJECT)
    if library.exists():
        return _load(library)
    return _link(plain) if plain.exists() else None


def make(place: Path, function: Any) -> int:
    """Keep a C function of Numba's at a place, for :func:`find`, and return its address."""
    code = _emit(function)
    library = place.with_name(place.name + LIBRARY)
    address = _load(library) if _link_library(code, library) else None
    if address is not None:
        return address
    library.unlink(missing_ok=True)
    plain = place.with_name(place.name + OBJECT)
    write_atomically(plain, code)
    return _link(plain)


def is_kept(directory: Path, name: str) -> bool:
    """Whether there is a function in a directory of places whose name begins so."""
    return any(path.suffix in (LIBRARY, OBJECT) for path in directory.glob(f"{name}*"))


def _link_library(code: bytes, library: Path) -> bool:
    """Make a shared library of an object file; False where no linker of this machine can."""
    linker = next(filter(shutil.which, _ONE_PIECE), None)
    if linker is None or sys.platform != "linux":
        return False
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as directory:
        plain, linked = Path(directory, "code.o"), Path(directory, "code.so")
        plain.write_bytes(code)
        command = [
            linker, *_ONE_PIECE[linker], "-shared", "-z", "noexecstack", str(plain), "-o", str(linked),
        ]  # fmt: skip
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return False
        os.replace(linked, library)
    return True


def _load(library: Path) -> int | None:
    """The address of a shared library's function; None if it cannot be loaded (from a file system without programs)."""
    try:
        loaded = ctypes.CDLL(str(library))
        return ctypes.cast(loaded[ENTRY], ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


# With LLVM


def _emit(function: Any) -> bytes:
    """An object file with a C function of Numba's as its :data:`ENTRY`.

    Numba's functions can report an exception. Ours raise none, and what they would do it with, functions of Python's
    and of Numba's, is cut out: the object can be used without Numba.
    """
    import llvmlite.binding as llvm

    reported = re.compile(r"^declare (?!.*@llvm\.)(.*@(?:Py|NRT_|numba_)\w+\(.*)$", re.MULTILINE)
    text = reported.sub(r"define internal \1 { unreachable }", function.inspect_llvm())
    module = llvm.parse_assembly(text.replace("{ noinline }", "{ nounwind }"))
    module.get_function(function.native_name).name = ENTRY
    for other in module.functions:
        if not other.is_declaration and other.name != ENTRY:
            other.linkage = "internal"  # the entry takes them in, and what could report is gone
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(_target(), options)
    builder.getModulePassManager().run(module, builder)
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


def _link(path: Path) -> int:
    """The address of the :data:`ENTRY` of an object file."""
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(path.read_bytes()).add_current_process().export_symbol(ENTRY)
    library = builder.link(_linker(), f"{path.stem}_{len(_libraries)}")
    _libraries.append(library)
    return library[ENTRY]
