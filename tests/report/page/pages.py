"""Runs to show on a page, made by hand."""

from __future__ import annotations

from ascsim import checks, profiles, timing
from ascsim.report.page import Shown
from checks.builder import MTE2, MTE3, Builder, V, gm


def racy(cores: int = 1) -> Builder:
    """On every core a load into a tile, an addition that does not wait for it, and a store that waits for that."""
    builder = Builder()
    for core in range(cores):
        builder.core = core
        builder.launch(1, blocks=cores)
        source, target = builder.tile("source", 0, 16, 64), builder.tile("target", 4096, 16, 64)
        builder.op(MTE2, "TLOAD", reads=[gm(0, 4096)], writes=[source], line=3)
        builder.op(V, "TADD", reads=[source], writes=[target], line=5)
        builder.set(V, MTE3, line=6)
        builder.wait(V, MTE3, line=7)
        builder.op(MTE3, "TSTORE", reads=[target], writes=[gm(8192 + core * 4096, 4096)], line=8)
        builder.end(1)
    return builder


def shown(builder: Builder, profile: str = "a2a3", kernel: str = "kernel") -> Shown:
    """A builder's trace, checked and scheduled."""
    trace, chip = builder.trace(), profiles.find(profile)
    plan = timing.schedule(trace, chip) if chip.is_chip else None
    return Shown(kernel, chip, trace, builder.run(profile), "manual", checks.noted_sites(trace), plan)
