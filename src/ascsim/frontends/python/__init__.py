"""Kernels written in Python: ``@ascsim.kernel``, tiles and buffers, the instructions as functions."""

from __future__ import annotations

from ascsim.frontends.launch import KernelError, Run
from ascsim.frontends.python.kernels import Kernel, function, kernel, local, tassign, tile

__all__ = ["Kernel", "KernelError", "Run", "function", "kernel", "local", "tassign", "tile"]
