"""The barrier inside a vector function: its trace row, its sixteen modes."""

from __future__ import annotations

import pytest

from ascsim.diagnostics import Refused
from ascsim.isa import REGISTRY
from ascsim.isa.register_form.words import MemoryBarrier
from ascsim.machine.trace import Kind
from ascsim.machine.words import Pipe
from harness import Bench


@pytest.mark.parametrize("mode", MemoryBarrier)
@pytest.mark.parametrize("name", ("asc_mem_bar", "mem_bar"))
def test_it_leaves_a_row_with_its_mode(name: str, mode: MemoryBarrier) -> None:
    bench = Bench("a5")
    assert bench.issue(name, mode) is None
    (row,) = bench.trace().rows
    assert (row["kind"], row["pipe"], row["arg"], row["n_access"]) == (Kind.MEM_BAR, Pipe.V, mode, 0)


@pytest.mark.parametrize("mode", (-1, 16))
def test_a_mode_that_is_none_is_refused(mode: int) -> None:
    with pytest.raises(Refused) as refusal:
        Bench("a5").issue("asc_mem_bar", mode)
    assert refusal.value.diagnostic.code == "L006"
    assert "VST_VLD" in refusal.value.diagnostic.mend


@pytest.mark.parametrize("profile", ("a2a3", "cpu"))
def test_only_the_950_has_it(profile: str) -> None:
    bench = Bench(profile)
    (definition,) = REGISTRY.by_name["mem_bar"]
    with pytest.raises(Refused) as refusal:
        bench.machine.issue(bench.core, definition, (MemoryBarrier.VST_VLD,), 0)
    assert refusal.value.diagnostic.code == "L001"
