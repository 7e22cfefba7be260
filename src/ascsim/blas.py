"""NumPy without the threads of its linear algebra.

OpenBLAS starts one for each processor when NumPy is imported. They spin while they wait for work, in each process of
ours, and take the processors from the compiler; the arrays of kernels are too small for them.
"""

from __future__ import annotations

import os

_LIMITS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""Where OpenBLAS looks for a number, the first that is set."""


def import_numpy() -> None:
    """Import NumPy so, unless the environment says how many threads there are to be.

    It is for processes of our own: a user's Python has the threads that its user wants. The environment is as before
    afterwards, for programs that read it or inherit it.
    """
    is_set = any(name in os.environ for name in _LIMITS)
    if not is_set:
        os.environ[_LIMITS[0]] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        if not is_set:
            del os.environ[_LIMITS[0]]
