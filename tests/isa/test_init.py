"""Importing the package."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("before", ["enable", "disable"])
def test_importing_all_definitions_leaves_the_collector_as_it_was(before: str) -> None:
    program = f"import gc; gc.{before}(); import ascsim.isa; print(gc.isenabled(), len(ascsim.isa.REGISTRY.definitions) > 1000)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(before == "enable"), "True"]
