"""Cost tables: what an entry costs, which one is chosen, and that every figure says where it is from."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ascsim.diagnostics import UserError
from ascsim.isa import REGISTRY
from ascsim.machine.words import Pipe, Space
from ascsim.profiles.costs import LANES, UNITS, costs

CHIPS = ("a2a3", "a5")


@pytest.mark.parametrize("chip", CHIPS)
def test_every_figure_names_its_source(chip: str) -> None:
    table = costs(chip)
    assert all(entry.source.strip() for entry in table.entries)
    figures = {"mhz", "slots", "gm_gb_s", "issue", "queue", "flag", "barrier", "vector_bytes"}
    assert figures <= table.sources.keys()
    assert all(table.sources.values())


@pytest.mark.parametrize("chip", CHIPS)
def test_entries_cost_something_and_count_known_units(chip: str) -> None:
    for entry in costs(chip).entries:
        assert entry.each.keys() <= set(UNITS)
        assert entry.guessed <= {"fixed", "each"}
        assert entry.cycles(work=1, repeats=1, bytes=32, results=1) > 0, entry
        assert entry.pipe in ("", *(pipe.name for pipe in Pipe)) and entry.lane in ("", *LANES)
        memories = {"", *(space.name for space in Space)}
        assert not entry.route or set(entry.route.split(">")) <= memories


@pytest.mark.parametrize("chip", CHIPS)
def test_every_instruction_has_a_cost_and_one_without_an_entry_is_a_guess(chip: str) -> None:
    table = costs(chip)
    for definition in REGISTRY.definitions:
        if chip in definition.profiles and definition.pipe != Pipe.ALL:
            entry = table.entry([definition.name, definition.title], "f32", pipe=definition.pipe.name)
            assert entry.names or entry.lane or definition.pipe == Pipe.S or entry.guessed, definition
    unknown = table.entry(["no_such_instruction"])
    assert unknown.guessed == {"fixed", "each"}


def test_public_figures_of_the_910b3() -> None:
    table = costs("a2a3")
    add = table.entry(["tadd", "TADD"], "f32", "UB>UB")
    assert (add.cycles(repeats=64), add.cycles(repeats=32)) == (152, 88)
    assert [table.entry(["vbitsort"]).cycles(work=n) + table.barrier for n in (1, 32, 255)] == [37, 533, 4101]
    assert table.entry(["vmrgsort4"]).cycles(bytes=3 * 4 * 64 * 8) == 3 * 78 + 20
    # a product of (m, n, k): blocks of 16 x 16 by 32 bytes of k
    half, single, byte = 8 * 8 * 8, 8 * 8 * 16, 8 * 8 * 4
    product = ["tmatmul", "TMATMUL"]
    assert table.entry(product, "f16", pipe="M").cycles(work=half) == 518
    assert table.entry(product, "f16", pipe="M").cycles(work=1) == 7
    assert table.entry(product, "f32", pipe="M").cycles(work=single) == 2054
    assert table.entry(product, "i8", pipe="M").cycles(work=byte) == 262


@pytest.mark.parametrize(
    ("names", "dtype", "repeats", "profiled"),
    [
        (["tadd"], "f32", 64, 160), (["tadd"], "f16", 32, 92), (["tsub"], "f32", 64, 153), (["tmul"], "f32", 64, 168),
        (["tmul"], "f16", 32, 96), (["tdiv"], "f32", 64, 288), (["texp"], "f16", 32, 95), (["tsqrt"], "f16", 32, 102),
        (["tcvt"], "f32", 4, 33),
    ],
)  # fmt: skip
def test_profiled_points_of_the_910b3(names: list[str], dtype: str, repeats: int, profiled: int) -> None:
    """Cycles that pto-isa's tests/costmodel/st compare with, where its own model comes near them."""
    cycles = costs("a2a3").entry(names, dtype, "UB>UB").cycles(repeats=repeats)
    assert float(cycles) == pytest.approx(profiled, rel=0.1)


def test_a_copy_costs_its_bytes() -> None:
    table = costs("a2a3")
    load = table.entry(["tload"], "f32", "GM>UB", "MTE2")
    a_byte = Fraction(1_850_000_000) / (Fraction("100.9") * 2**30)
    assert load.cycles(bytes=1 << 20) == 200 + a_byte * 2**20
    assert load.guessed == {"fixed"}


def test_types_choose_the_entry() -> None:
    table = costs("a5")
    half, single = (table.entry(["vexp"], kind, lane="execute").each["call"] for kind in ("f16", "f32"))
    assert (half, single) == (8, 4)


def test_lanes_have_costs_of_their_own() -> None:
    table = costs("a5")
    latency = {lane: table.entry(["unknown"], "f32", lane=lane).cycles() for lane in LANES}
    assert latency == {"load": 9, "execute": 6, "store": 9}


def test_the_portable_profile_has_no_time() -> None:
    with pytest.raises(UserError, match="no chip"):
        costs("cpu")
