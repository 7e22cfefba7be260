"""The examples on vector registers: each of the three ways in gives the right numbers, and nothing is found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(file: str, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ascsim.cli", "run", str(EXAMPLES / file), *options], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no findings" in done.stdout
    return done.stdout


@pytest.mark.parametrize("name", ("complex_multiply", "compaction"))
def test_the_programs_check_themselves(name: str) -> None:
    assert "[Success]" in run(f"{name}.asc", "--npu-arch=dav-3510")


@pytest.mark.parametrize("name", ("complex_multiply", "compaction"))
def test_the_python_kernels_check_themselves(name: str) -> None:
    assert "right" in run(f"{name}.py")


def test_the_assembly_multiplies_complex_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-9, 9, 256).astype(np.float32) for _ in range(2))
    product = a.view(np.complex64) * b.view(np.complex64)
    for name, array in (("a", a), ("b", b), ("out", product.view(np.float32))):
        np.save(tmp_path / f"{name}.npy", array.reshape(1, 256))
    given = [f"--arg={n}={tmp_path / n}.npy" for n in ("a", "b")]
    run("complex_multiply.pto", "--npu-arch=a5", *given, f"--golden=out={tmp_path / 'out'}.npy")


def test_the_assembly_keeps_every_third_number_of_each_register(tmp_path: Path) -> None:
    x = np.random.default_rng(3).standard_normal((16, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", x.reshape(1, 1024))
    np.save(tmp_path / "out.npy", x[:, ::3].reshape(1, 352))
    run("compaction.pto", "--npu-arch=a5", f"--arg=x={tmp_path / 'x'}.npy", f"--golden=out={tmp_path / 'out'}.npy")
