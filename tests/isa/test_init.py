"""Importing the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("before", ["enable", "disable"])
def test_importing_all_definitions_leaves_the_collector_as_it_was(before: str) -> None:
    program = f"import gc; gc.{before}(); import ascsim.isa; print(gc.isenabled(), len(ascsim.isa.REGISTRY.definitions) > 1000)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(before == "enable"), "True"]


NUMBERS = """
import importlib, json, sys
from ascsim.isa import REGISTRY
from ascsim.isa.definition import STEP_NUMBERS
found = {"at first": len(REGISTRY._made)}
for name in sys.argv[1:]:
    importlib.import_module(name)
found["definitions"] = {d.number: [d.level, d.title, d.name, *d.profiles] for d in REGISTRY.definitions}
found["names"] = {name: [d.number for d in REGISTRY.by_cpp[name]] for name in REGISTRY.by_cpp}
found["steps"] = {module: numbers for module, numbers in STEP_NUMBERS.given.items()}
found["modules"] = list(REGISTRY.index().modules)
print(json.dumps(found))
"""


def numbers_in(cache: Path, *modules: str) -> dict[str, Any]:
    """What a process of its own with that cache finds after it has imported these modules."""
    environment = {**os.environ, "ASCSIM_CACHE": str(cache)}
    command = [sys.executable, "-c", NUMBERS, *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_numbers_are_the_same_whatever_is_imported_first(tmp_path: Path) -> None:
    whole = numbers_in(tmp_path)
    assert whole["at first"] == len(whole["definitions"]) > 1000
    lazy = numbers_in(tmp_path, *reversed(whole["modules"]))
    assert lazy["at first"] == 0
    for key in ("definitions", "names", "steps"):
        assert lazy[key] == whole[key]


def test_a_look_up_imports_what_it_needs(tmp_path: Path) -> None:
    numbers_in(tmp_path)
    program = (
        "from ascsim.isa import REGISTRY\n"
        "print([d.title for d in REGISTRY.find('tsort32')], 0 < len(REGISTRY._made) < 200)\n"
        "print('TADD' in REGISTRY.by_cpp, 'nothing' in REGISTRY.by_cpp, 0 < len(REGISTRY._made) < 200)\n"
    )
    environment = {**os.environ, "ASCSIM_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines() == ["['TSORT32'] True", "True False True"]


def test_a_damaged_note_is_made_again(tmp_path: Path) -> None:
    whole = numbers_in(tmp_path)
    (place,) = tmp_path.glob("isa-*/index.json")
    for damage in ("", "{}", '{"modules": 1, "steps": 2}'):
        place.write_text(damage)
        assert numbers_in(tmp_path)["definitions"] == whole["definitions"]
    assert numbers_in(tmp_path)["at first"] == 0
