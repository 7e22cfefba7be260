"""What the chip does: every instruction, once. Importing this package registers them all.

Modules are found by themselves: a new instruction is one new file (or a line in one).
"""

from __future__ import annotations

import gc
import importlib
import pkgutil

from ascsim.isa.definition import REGISTRY


def _register_all() -> None:
    """Import every module of definitions.

    All that they make stays, so a collector that looks through it for garbage, time and again, takes a third of the time
    for nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for module in pkgutil.walk_packages(__path__, f"{__name__}."):
            if ".semantics" not in module.name:
                importlib.import_module(module.name)
    finally:
        if was_enabled:
            gc.enable()


_register_all()

__all__ = ["REGISTRY"]
