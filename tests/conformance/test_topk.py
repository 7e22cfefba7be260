"""The top-k examples in all three ways in: exact against NumPy on fewer rows, and silent only with all their waits."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascsim
from ascsim import profiles
from ascsim.diagnostics import Severity
from ascsim.frontends.ptoas.kernel import loads

EXAMPLES = Path(__file__).parents[2] / "examples"
CHIPS = ["a2a3", "a5"]


def scores(rows: int, cols: int, kind: Any) -> np.ndarray:
    """Numbers with ties in every row."""
    return (np.random.default_rng(5).integers(-300, 300, (rows, cols)) / 4).astype(kind)


def expected(given: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-given, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(given, order, 1), order.astype(np.uint32)


@pytest.mark.parametrize("chip", CHIPS)
def test_cpp(chip: str) -> None:
    kernels = ascsim.load(EXAMPLES / "topk.cpp", arch=chip)
    for kernel, rows, cols, k, kind in (
        (kernels.TopKRows, 12, 1024, 1000, np.float32), (kernels.Gate, 60, 256, 8, np.float16),
    ):  # fmt: skip
        given = scores(rows, cols, kind)
        values, indices = np.zeros((rows, k), kind), np.zeros((rows, k), np.uint32)
        run = kernel[1](values, indices, given, rows)
        assert run.diagnostics == []
        for got, wanted in zip((values, indices), expected(given, k), strict=True):
            assert np.array_equal(got, wanted)


@pytest.mark.parametrize("chip", CHIPS)
def test_python(chip: str) -> None:
    spec = importlib.util.spec_from_file_location("topk_example", EXAMPLES / "topk.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    given, values, indices = example.check("top-k", (192, 1024), np.float32, 1000, 4, chip)
    assert np.array_equal(values, expected(given, 1000)[0])
    example.check("gate", (960, 256), np.float16, 8, 20, chip)
    assert indices.dtype == np.uint32


def run_pto(text: str, chip: str) -> tuple[Any, dict[str, np.ndarray]]:
    """The .pto example on four rows, or a changed text of it."""
    kernel = loads(text.replace("constant 100 : index", "constant 4 : index"), "topk.pto").kernel()
    values = {
        "scores": np.resize(scores(4, 1024, np.float32), (4800, 1024)),
        "values": np.zeros((4800, 1000), np.float32), "indices": np.zeros((4800, 1000), np.uint32),
    }  # fmt: skip
    return kernel.run(profiles.find(chip), 1, values, "manual"), values


@pytest.mark.parametrize("chip", CHIPS)
def test_pto(chip: str) -> None:
    run, arrays = run_pto((EXAMPLES / "topk.pto").read_text(), chip)
    assert run.diagnostics == []
    for got, wanted in zip((arrays["values"], arrays["indices"]), expected(arrays["scores"][:4], 1000), strict=True):
        assert np.array_equal(got[:4], wanted)


def test_each_wait_of_the_pto_example_is_needed() -> None:
    lines = (EXAMPLES / "topk.pto").read_text().splitlines(keepends=True)
    calls = [n for n, line in enumerate(lines) if re.search(r"^ *pto\.(set_flag|wait_flag|barrier)", line)]
    assert len(calls) > 15
    for number in calls:
        run, _ = run_pto("".join(line for n, line in enumerate(lines) if n != number), "a2a3")
        assert any(d.severity is Severity.ERROR for d in run.diagnostics), lines[number]
