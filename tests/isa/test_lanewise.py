"""Machine code for lane-wise tile instructions gives what NumPy gives."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from ascsim.compiled import converts_halves
from ascsim.diagnostics import Refused
from ascsim.isa import REGISTRY, lanewise
from ascsim.isa.compile import halves
from ascsim.isa.definition import Definition, TileInstruction
from ascsim.isa.semantics import convert
from ascsim.machine.dtypes import dtype
from harness import Bench

LANEWISE = [
    d for d in REGISTRY.definitions if isinstance(d, TileInstruction) and type(d).code is not TileInstruction.code
]
QUICK = {("tadd", "f16"), ("tadd", "f32"), ("tmax", "f16"), ("tadds", "f16"), ("tshrs", "i32"), ("tdiv", "i16")}
SPECIAL = {
    "f16": [0x0000, 0x8000, 0x7C00, 0xFC00, 0x7E01, 0xFE00, 0x7D55, 0xFD01, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF],
    "f32": [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFC00000, 0x7FA00001, 1, 0x007FFFFF, 0x00800000],
}
CASES = [
    pytest.param(
        d, kind, id=f"{d.name}-{len(d.inputs)}-{kind}", marks=[] if (d.name, kind) in QUICK else pytest.mark.slow
    )
    for d in LANEWISE
    for kind in ("f16", "f32", "i32", "u32", "i16", "u8")
]


def _values(kind: str, seed: int) -> np.ndarray:
    """Elements of random bits, and of bits that are special, in other places for each seed."""
    size = dtype(kind).size
    bits = np.random.default_rng(seed).integers(0, 256, 48 * 64 * size, np.uint8).view(f"u{size}").copy()
    special = SPECIAL.get(kind, [0, 1, (1 << (8 * size)) - 1, 1 << (8 * size - 1)])
    bits[:1024] = np.random.default_rng(seed + 1).choice(np.array(special, bits.dtype), 1024)
    return bits.view(dtype(kind).numpy).reshape(48, 64)


def _args(bench: Bench, definition: Definition, kind: str, cols: int) -> list[Any]:
    """Operands; the last columns of each tile are not valid where there are fewer than 64."""
    made: list[Any] = []
    for number, operand in enumerate(definition.inputs):
        if operand.optional:
            break
        if operand.sort.value == "tile":
            tile = bench.tile(kind, 48, 64, valid=(48, cols))
            bench.core.view(tile.region(48, 64))[...] = _values(kind, number)
            made.append(tile)
        else:
            made.append(3 if dtype(kind).kind != "f" else -1.5)
    return made


@pytest.mark.parametrize("cols", [64, 33])
@pytest.mark.parametrize(("definition", "kind"), CASES)
def test_code_gives_the_bits_that_numpy_gives(
    definition: Any, kind: str, cols: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanewise, "WORTH_LOADING", 0)
    monkeypatch.setattr(lanewise, "WORTH_MAKING", 0)
    took = 0
    for profile in definition.profiles:
        bench = Bench(profile)
        args = _args(bench, definition, kind, cols)
        try:
            definition.check(bench.profile, args)
        except Refused:
            continue
        if definition.expansion(bench.core, args) is not None:
            continue
        touches = definition.touches(bench.core, args)
        work = definition.prepared(bench.core, args, touches)
        if not isinstance(work, lanewise.Work):
            continue
        before = bench.memory().copy()
        work.slow()
        by_numpy = bench.memory().copy()
        bench.memory()[:] = before
        work.code.seek()
        if work.code.entry is None:
            continue
        work.code.entry(work.place)
        took += 1
        wrong = np.flatnonzero(bench.memory() != by_numpy)
        assert not wrong.size, f"{profile}: {wrong.size} bytes, first at {wrong[:4]}"
    if (definition.name, kind) in QUICK and (kind != "f16" or converts_halves()):
        assert took


def test_what_reads_what_it_has_written_stays_in_numpy() -> None:
    bench = Bench("a5")
    src = bench.tile("f32", 4, 64, np.arange(256).reshape(4, 64))
    work = {}
    for name, dst in (("in place", src), ("beside", bench.tile("f32", 4, 64)), ("across", src.at(src.address + 32))):
        definition = bench.definition("tadd", 3)
        args = (dst, src, src)
        work[name] = definition.prepared(bench.core, args, definition.touches(bench.core, args))
    assert isinstance(work["in place"], lanewise.Work) and isinstance(work["beside"], lanewise.Work)
    assert not isinstance(work["across"], lanewise.Work)


def test_code_is_sought_when_it_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    code = lanewise.Code(np.add, dtype("f32"))
    work = lanewise.Work(code, lambda: done.append("numpy"), np.zeros(2, np.int64), [])
    monkeypatch.setattr(lanewise.Code, "seek", lambda self: done.append("sought"))
    work()
    assert done == ["numpy"] and code.spent > 0
    code.spent = 1.0
    work()
    assert done == ["numpy", "numpy", "sought"]
    code.entry = lambda place: done.append("code")
    work()
    assert done[-1] == "code"


@pytest.mark.skipif(not converts_halves(), reason="this processor does not convert halves")
def test_the_processor_converts_halves_as_ieee_754_has_it() -> None:
    random = np.random.default_rng(8)
    every = np.arange(1 << 16, dtype=np.uint16)
    around = every.view(np.float16).astype(np.float32).view(np.uint32)
    between = [
        around,
        around + np.uint32(1),
        around - np.uint32(1),
        around + np.uint32(0x1000),
        around + np.uint32(0xFFF),
    ]
    numbers = np.concatenate([*between, random.integers(0, 1 << 32, 1 << 18, np.uint64).astype(np.uint32)])

    @numba.njit
    def through(bits: Any, wide: Any, given: Any, narrowed: Any) -> None:
        for i in range(len(bits)):
            wide[i] = widen(bits[i])
        for i in range(len(given)):
            narrowed[i] = narrow(given[i])

    widen, narrow = halves()
    wide, narrowed = np.zeros(1 << 16, np.float32), np.zeros(len(numbers), np.uint16)
    through(every, wide, numbers.view(np.float32), narrowed)
    nans = np.isnan(every.view(np.float16))
    quiet = np.where(nans, np.uint32(0x400000), np.uint32(0))
    assert np.array_equal(wide.view(np.uint32), convert.f16_bits_to_f32(every).view(np.uint32) | quiet)
    assert np.array_equal(narrowed, convert.narrow_f16(numbers.view(np.float32)))
