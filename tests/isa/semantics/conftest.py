"""Semantics run by NumPy and compiled by Numba: the fixture that holds the two to the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
import numpy as np
import pytest

_compiled: dict[FunctionType, Any] = {}


def _jit(function: FunctionType) -> Any:
    if function not in _compiled:
        names = dict(function.__globals__)
        for name in function.__code__.co_names:
            value = names.get(name)
            ours = isinstance(value, FunctionType) and value.__module__.startswith("ascsim.isa.semantics")
            if ours and value is not function:
                names[name] = _jit(value)
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        _compiled[function] = numba.njit(copy, error_model="numpy")
    return _compiled[function]


def _assert_same(compiled: Any, plain: Any, where: str) -> None:
    if isinstance(plain, tuple):
        assert len(compiled) == len(plain)
        for i, (c, p) in enumerate(zip(compiled, plain, strict=True)):
            _assert_same(c, p, f"{where}[{i}]")
        return
    if isinstance(plain, np.ndarray) and plain.ndim:
        assert compiled.dtype == plain.dtype, where
        assert compiled.shape == plain.shape, where
        assert compiled.tobytes() == plain.tobytes(), where
    else:
        assert np.asarray(plain) == compiled or (plain != plain and compiled != compiled), where


@pytest.fixture(scope="session")
def compiled() -> Callable[[FunctionType], Any]:
    """``compiled(f)`` is ``f`` in Numba's nopython mode, with the semantics functions that it calls."""
    return _jit


@pytest.fixture(scope="session")
def agrees() -> Callable[..., None]:
    """``agrees(f, *args)``: NumPy and Numba give the same types, shapes and bytes."""

    def check(function: FunctionType, *args: Any) -> None:
        with np.errstate(all="ignore"):
            plain = function(*args)
        _assert_same(_jit(function)(*args), plain, function.__name__)

    return check
