"""C++ programs and kernels: ``.asc`` and ``.cpp`` files, the compiler driver, and kernels called from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascsim.frontends.cpp.kernels import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    if name == "load":
        from ascsim.frontends.cpp.kernels import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
