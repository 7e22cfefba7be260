"""The process that a compiled program runs in.

``python -m ascsim.frontends.cpp.child FD`` loads what it needs, reads from the file descriptor which instructions to
expect (a line with the list of their names, as JSON) and what to run (the arguments of :func:`run`), and becomes that
program: same standard streams, same environment, the program's exit status. Whatever the program does, to crash or to
call ``exit()``, its trace is in ``directory``. What keeps the program from starting is in ``fatal.txt`` there. If
``directory`` holds a ``call.json``, the process runs that one kernel instead of ``main``.
"""

# ruff: noqa: E402

from __future__ import annotations

import gc
import signal

# Before all imports: who stops a program with ^C gets no traceback of ours, however early it is.
signal.signal(signal.SIGINT, signal.SIG_DFL)
# What the imports make stays: there is no garbage to look for.
gc.disable()

import ctypes
import json
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from ascsim.blas import import_numpy

import_numpy()

import numpy as np
import numpy.ctypeslib

from ascsim import profiles
from ascsim.diagnostics import Site, UserError
from ascsim.frontends.cpp.host import Host
from ascsim.frontends.cpp.image import load_image
from ascsim.frontends.cpp.session import CALL, FATAL
from ascsim.isa import REGISTRY
from ascsim.machine.fill import choose
from ascsim.machine.jobs import choose as choose_jobs
from ascsim.machine.late import choose as choose_late
from ascsim.machine.words import Pipe

FATAL_STATUS = 70


def main(job: int) -> NoReturn:
    """Run what the file descriptor says; nothing if it says nothing, because the program could not be built."""
    with os.fdopen(job, encoding="utf-8") as pipe:
        profiles.profiles()
        expect(json.loads(pipe.readline() or "[]"))
        gc.freeze()
        gc.enable()
        words = pipe.read()
    if not words:
        os._exit(FATAL_STATUS)
    run(**json.loads(words))


def expect(names: Iterable[str]) -> None:
    """Import the definitions of these instructions, and what carries out those of registers."""
    levels = {definition.level for name in names for definition in REGISTRY.find(name)}
    if "register" in levels:
        from ascsim.isa import compile

        compile.prepare()


def run(
    directory: str, profile: str, library: str, program: str, arguments: list[str], keep_results: bool, blocks: int,
    fill: str, late: str, jobs: int, after: float,
) -> NoReturn:  # fmt: skip
    """Load and run the program; ends the process with its status."""
    choose(fill)
    choose_jobs(jobs, after)
    choose_late(Pipe[late] if late else None)
    trace, file = Path(directory), Path(program)
    try:
        status = _run(trace, profile, Path(library), file, arguments, keep_results, blocks)
    except Exception as error:
        if os.environ.get("ASCSIM_DEBUG"):
            traceback.print_exc()
        (trace / FATAL).write_text(_sentence(file, error), encoding="utf-8")
        ctypes.CDLL(None).fflush(None)
        os._exit(FATAL_STATUS)
    # The C library's exit runs what the program registered and flushes its streams; callbacks still work meanwhile.
    ctypes.CDLL(None).exit(status)
    raise AssertionError("exit returned")


def _run(
    directory: Path, profile_name: str, library: Path, program: Path, arguments: list[str], keep_results: bool,
    blocks: int,
) -> int:  # fmt: skip
    image = load_image(program)
    call = directory / CALL
    if not image.has_main and not call.exists():
        raise UserError(f"{program} has no main function: it is a library of kernels, not a program")
    host = Host(library, profiles.load(profile_name), directory, keep_results, blocks)
    handle = host.load(image)
    if call.exists():
        return _call_kernel(host, directory, json.loads(call.read_text(encoding="utf-8")))
    loader = ctypes.CDLL(None)
    loader.dlsym.restype = ctypes.c_void_p
    address = loader.dlsym(ctypes.c_void_p(handle), b"main")
    words = [os.fsencode(word) for word in (str(program), *arguments)]
    argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    environment = ctypes.c_void_p.in_dll(loader, "environ")
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address)
    status: int = function(len(words), ctypes.addressof(argv), environment.value)
    host.end_host_code()
    return status


def _call_kernel(host: Host, directory: Path, call: dict[str, Any]) -> int:
    """Run the kernel of a call file; the files of its arrays hold the results afterwards."""
    arrays: dict[str, np.ndarray] = {}
    arguments: list[tuple[str, np.ndarray | bytes]] = []
    for argument in call["arguments"]:
        file = argument.get("file")
        if file is not None and file not in arrays:
            arrays[file] = np.fromfile(directory / file, np.uint8)
        value = bytes.fromhex(argument["bytes"]) if file is None else arrays[file]
        arguments.append((argument["name"], value))
    host.call(call["kernel"], call["blocks"], arguments, call["dynamic_ub"], Site(**call["caller"]))
    for file, array in arrays.items():
        array.tofile(directory / file)
    return 0


def _sentence(program: Path, error: Exception) -> str:
    """Why the program cannot start, for people."""
    text = str(error)
    name = text.rsplit("undefined symbol: ", 1)[-1].strip()
    if name != text:
        function = "an acl function that ascsim does not simulate" if name.startswith("acl") else "a function"
        return f"{program} cannot be loaded: it calls {name}, {function} that no library of the program defines."
    if isinstance(error, UserError):
        return text
    if isinstance(error, OSError):
        return f"{program} cannot be started: {text}"
    what = f"{type(error).__name__}: {text}"
    return f"ascsim failed on {program}: {what}. Please report this (ASCSIM_DEBUG=1 in the environment tells more)."


if __name__ == "__main__":
    main(int(sys.argv[1]))
