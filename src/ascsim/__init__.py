"""ascsim: run Ascend NPU kernels on an ordinary computer.

Everything is imported on first use, so that ``import ascsim`` costs nothing::

    import ascsim

    @ascsim.kernel
    def sort(src, idx, out): ...

Instructions are functions by their mnemonic or their C API name: ``ascsim.tsort32``, ``ascsim.asc_bitsort``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascsim.frontends.cpp import load
    from ascsim.frontends.python import Kernel, KernelError, Run, kernel, local, tassign, tile
    from ascsim.machine.words import MaskPattern, Pipe, RoundMode, Space
    from ascsim.profiles import find as profile

__version__ = "0.1.0"

_ROOMS = ("checks", "cli", "diagnostics", "frontends", "isa", "machine", "profiles", "report", "scratch", "timing")
_PYTHON = ("Kernel", "KernelError", "Run", "kernel", "local", "tassign", "tile")
_WORDS = ("BLayout", "MaskPattern", "PadValue", "Pipe", "RoundMode", "SLayout", "Space")

__all__ = [
    "BLayout", "Kernel", "KernelError", "MaskPattern", "PadValue", "Pipe", "RoundMode", "Run", "SLayout", "Space", "kernel",
    "load", "local", "profile", "tassign", "tile",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _ROOMS:
        return importlib.import_module(f"ascsim.{name}")
    if name in _PYTHON:
        from ascsim.frontends import python

        return getattr(python, name)
    if name in _WORDS:
        from ascsim.machine import words

        return getattr(words, name)
    if name == "profile":
        from ascsim.profiles import find

        return find
    if name == "load":
        from ascsim.frontends.cpp import load

        return load
    from ascsim.machine.dtypes import DTYPES

    if name in DTYPES:
        return DTYPES[name]
    from ascsim.frontends.python import function

    found = function(name)
    if found is None:
        raise AttributeError(f"ascsim has no {name!r}, and no instruction of that name is implemented")
    globals()[name] = found  # the next look-up does not come here
    return found
