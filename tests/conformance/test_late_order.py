"""A pipe held back changes no number of a correct kernel: every example, whatever it is written in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ascsim import profiles
from ascsim.frontends.ptoas.kernel import loads
from ascsim.machine import late
from ascsim.machine.trace import Kind
from ascsim.machine.words import Pipe
from conformance.test_synchronisation import EXAMPLES, LONG, WRONG, arch_of


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    yield
    late.choose(None)


def examples(*suffixes: str) -> list[Path]:
    return sorted(p for p in EXAMPLES.iterdir() if p.suffix in suffixes and p.name not in WRONG)


@pytest.mark.parametrize("path", examples(".pto"), ids=lambda p: p.name)
def test_pto(path: Path) -> None:
    kernel = loads(path.read_text(), path.name).kernel()
    results = []
    for pipe in (None, *late.PIPES):
        late.choose(pipe)
        generator = np.random.default_rng(3)
        values = {
            a.name: generator.integers(0, 100, a.shape or (4096,)).astype(a.dtype.numpy) if a.is_pointer else 0
            for a in kernel.arguments
        }
        kernel.run(profiles.find(arch_of(path.name)), 1, values, None)
        results.append({name: value.tobytes() for name, value in values.items() if isinstance(value, np.ndarray)})
    assert results[1] == results[0]
    assert results[2] == results[0]


@pytest.mark.parametrize("pipe", late.PIPES)
@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.name, marks=[pytest.mark.slow] * (p.name in LONG)) for p in examples(".py")]
)
def test_python(path: Path, pipe: Pipe) -> None:
    late.choose(pipe)
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})  # the scripts check themselves


@pytest.mark.parametrize("pipe", late.PIPES)
@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.name, marks=[pytest.mark.slow] * (p.name in LONG)) for p in examples(".cpp", ".asc")]
)
def test_cpp(path: Path, pipe: Pipe) -> None:
    from ascsim.frontends.cpp.run import run_file

    late.choose(pipe)
    run, status = run_file(path, arch_of(path.name), [], output=sys.__stderr__)  # the programs check themselves
    assert (status, run.diagnostics) == (0, [])
    is_used = bool((run.trace.rows["pipe"][run.trace.kind == Kind.INSTRUCTION] == pipe).any())
    assert bool(run.trace.noted("held")) == is_used


def test_missing_wait_gives_wrong_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    from ascsim.frontends.cpp.run import run_file

    late.choose(Pipe.MTE2)
    run, _ = run_file(EXAMPLES / "missing_wait.cpp", "a5", [], output=sys.__stderr__)
    assert "out[0] = 3\n" not in capfd.readouterr().err
    assert any("held back by --order late" in note for d in run.diagnostics for note in d.notes)
