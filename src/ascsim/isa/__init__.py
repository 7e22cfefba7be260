"""What the chip does: every instruction, once. A look-up in ``REGISTRY`` imports the module that it needs.

Modules are found by themselves: a new instruction is one new file (or a line in one). What each of them holds is noted in
the cache, under a hash of them all, the first time that all are imported.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from dataclasses import asdict
from pathlib import Path

from ascsim.cache import content_hash, files_below, generation, write_atomically
from ascsim.isa.definition import REGISTRY, Index, without_collector


def _noted(place: Path) -> Index | None:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        return Index(**found)
    except (OSError, ValueError, TypeError):
        return None


def _import_all() -> None:
    with without_collector():
        for module in pkgutil.walk_packages(__path__, f"{__name__}."):
            if ".semantics" not in module.name:
                importlib.import_module(module.name)


def _register() -> None:
    package = Path(__file__).parent
    state = content_hash(files_below(package, package.parent / "machine", package.parent / "profiles"))
    place = generation("isa", state) / "index.json"
    index = _noted(place)
    if index is not None:
        REGISTRY.expect(index)
        return
    _import_all()
    write_atomically(place, json.dumps(asdict(REGISTRY.index())).encode())


_register()

__all__ = ["REGISTRY"]
