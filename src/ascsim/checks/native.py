"""Compiled twins of the loops in :data:`MODULES`, for traces too long for plain Python.

Numba is imported here and only when it is asked for: its import costs more than the checks of a small run.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from ascsim.cache import generation
from ascsim.checks import clocks, sweep

MODULES = (clocks, sweep)
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""The loops make no arrays, so they need no reference counting: with it, that would be most of the work."""


def compiled(function: Callable, notice: Callable[[str], None] | None = None) -> Any:
    """The compiled twin of a function of :data:`MODULES`.

    Its machine code is kept on disk; ``notice`` is called with one sentence when it has to be made first.
    """
    assert isinstance(function, FunctionType)
    if notice is not None and not any(directory().rglob(f"*{function.__name__}*.nbi")):
        notice("compiling the checks for long traces (once, a few seconds)")
    return _compiled(function)


@cache
def directory() -> Path:
    """Where the machine code is kept: one directory for each state of the loops, and of what compiles them."""
    digest = hashlib.sha256(f"{sys.version} {np.__version__}".encode())
    for module in MODULES:
        digest.update(Path(str(module.__file__)).read_bytes())
    return generation("checks", digest.hexdigest()[:16])


@cache
def _compiled(function: FunctionType) -> Any:
    import numba

    ours: Any = numba.config
    before = ours.CACHE_DIR
    try:
        ours.CACHE_DIR = str(directory())  # read while the decorator runs, and not after
        return numba.njit(_with_compiled_helpers(function), cache=True, **_OPTIONS)
    finally:
        ours.CACHE_DIR = before


def _with_compiled_helpers(function: FunctionType) -> FunctionType:
    """A copy of the function whose calls of functions of its module go to compiled twins."""
    known = function.__globals__
    helpers = {
        name: _helper(known.get(f"{name}_compiled", known[name]))
        for name in function.__code__.co_names
        if isinstance(known.get(name), FunctionType) and known[name].__module__ == function.__module__
    }
    copy = FunctionType(function.__code__, {**known, **helpers}, function.__name__)
    copy.__module__ = function.__module__
    return copy


@cache
def _helper(function: FunctionType) -> Any:
    import numba

    return numba.njit(_with_compiled_helpers(function), **_OPTIONS)
