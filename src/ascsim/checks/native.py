"""Compiled twins of the loops in :mod:`ascsim.checks.clocks`, for traces too long for plain Python.

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

import ascsim.cache
from ascsim.checks import clocks

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""The loops make no arrays, so they need no reference counting: with it, that would be most of the work."""


def cache_directory() -> Path:
    """Where compiled loops are kept."""
    versions = f"{sys.version} {np.__version__}".encode()
    digest = hashlib.sha256(Path(clocks.__file__).read_bytes() + versions).hexdigest()[:16]
    return ascsim.cache.cache_directory() / f"checks-{digest}"


@cache
def _helper(name: str) -> Any:
    import numba

    function = getattr(clocks, f"{name}_compiled", None) or getattr(clocks, name)
    return numba.njit(_with_compiled_helpers(function), **_OPTIONS)


def _with_compiled_helpers(function: FunctionType) -> FunctionType:
    """A copy of the function whose calls go to compiled twins."""
    helpers = {
        name: _helper(name)
        for name in function.__code__.co_names
        if isinstance(function.__globals__.get(name), FunctionType)
        and function.__globals__[name].__module__ == clocks.__name__
    }
    copy = FunctionType(function.__code__, {**function.__globals__, **helpers}, function.__name__)
    copy.__module__ = function.__module__
    return copy


@cache
def _compiled(name: str) -> Any:
    import numba

    directory = cache_directory()
    ours: Any = numba.config
    before = ours.CACHE_DIR
    try:
        directory.mkdir(parents=True, exist_ok=True)
        ours.CACHE_DIR = str(directory)  # read while the decorator runs, and not after
        return numba.njit(_with_compiled_helpers(getattr(clocks, name)), cache=True, **_OPTIONS)
    except OSError:  # nowhere to write: compile every time
        return numba.njit(_with_compiled_helpers(getattr(clocks, name)), **_OPTIONS)
    finally:
        ours.CACHE_DIR = before


def compiled(function: Callable, notice: Callable[[str], None] | None = None) -> Any:
    """The compiled twin of a function of :mod:`ascsim.checks.clocks`.

    Its machine code is kept on disk; ``notice`` is called with one sentence when it has to be made first.
    """
    name = function.__name__
    if notice is not None and not any(cache_directory().rglob(f"*{name}*.nbi")):
        notice("compiling the race check for long traces (once, a few seconds)")
    return _compiled(name)
