"""The transpose examples in all three ways in: exact, and silent only with all their waits."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascsim
from ascsim import profiles
from ascsim.diagnostics import Severity, UserError
from ascsim.frontends.ptoas.kernel import loads

EXAMPLES = Path(__file__).parents[2] / "examples"
CHIPS = ["a2a3", "a5"]
MATRIX = np.random.default_rng(2).standard_normal((500, 300)).astype(np.float32)


@pytest.mark.parametrize("chip", CHIPS)
def test_cpp(chip: str) -> None:
    try:
        kernels = ascsim.load(EXAMPLES / "transpose.cpp", arch=chip)
    except UserError as error:
        if "no C++ compiler" in str(error):
            pytest.skip("needs a C++ compiler")
        raise
    out = np.zeros((300, 500), np.float32)
    run = kernels.Transpose[8](out, MATRIX)
    assert run.diagnostics == []
    assert np.array_equal(out, MATRIX.T)


@pytest.mark.parametrize("chip", CHIPS)
def test_python(chip: str) -> None:
    spec = importlib.util.spec_from_file_location("transpose_example", EXAMPLES / "transpose.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.check(chip)
    example.check(chip, np.float16, (130, 70))


def run_pto(text: str, chip: str) -> tuple[Any, np.ndarray]:
    kernel = loads(text, "transpose.pto").kernel()
    values = {"in": MATRIX.copy(), "out": np.zeros((300, 500), np.float32)}
    return kernel.run(profiles.find(chip), 8, values, "manual"), values["out"]


@pytest.mark.parametrize("chip", CHIPS)
def test_pto(chip: str) -> None:
    run, out = run_pto((EXAMPLES / "transpose.pto").read_text(), chip)
    assert run.diagnostics == []
    assert np.array_equal(out, MATRIX.T)


def test_each_wait_of_the_pto_example_is_needed() -> None:
    lines = (EXAMPLES / "transpose.pto").read_text().splitlines(keepends=True)
    calls = [n for n, line in enumerate(lines) if re.search(r"^ *pto\.(set_flag|wait_flag|barrier)", line)]
    assert len(calls) == 5
    for number in calls:
        run, _ = run_pto("".join(line for n, line in enumerate(lines) if n != number), "a2a3")
        assert any(d.severity is Severity.ERROR for d in run.diagnostics), lines[number]
