"""What the chip does: every instruction, once. Importing this package registers them all.

Modules are found by themselves: a new instruction is one new file (or a line in one).
"""

from __future__ import annotations

import importlib
import pkgutil

from ascsim.isa.definition import REGISTRY

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    if ".semantics" not in _module.name:
        importlib.import_module(_module.name)

__all__ = ["REGISTRY"]
