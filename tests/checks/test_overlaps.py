"""Tiles across each other: told when data are lost, and only then."""

from __future__ import annotations

import pytest

from ascsim.checks import overlaps
from checks.builder import MTE2, Builder, TileOf, V, gm


def two(second: int) -> tuple[Builder, TileOf, TileOf]:
    """Tiles of 4096 bytes, one at 0 and one further on."""
    builder = Builder()
    return builder, builder.tile("a", 0, 16, 64), builder.tile("b", second, 16, 64)


def codes(builder: Builder) -> list[str]:
    return [d.code for d in builder.run(checks=[overlaps.check])]


def test_a_tile_that_another_wrote_over_is_told_when_it_is_read() -> None:
    builder, a, b = two(0x800)
    for line, tile in enumerate((a, b), start=1):
        builder.op(MTE2, "TLOAD", [gm(8192 * line, 4096)], [tile], line=line)
    assert codes(builder) == []
    for _ in range(100):
        builder.op(V, "TADD", [a, b], [builder.tile("c", 0x4000, 16, 64)], line=3)
    (found,) = builder.run(checks=[overlaps.check])
    assert found.headline == "read of a 16x64 f32 at UB 0x0 after b 16x64 f32 at UB 0x800 was written over it"
    assert found.notes == ("read and overwritten: UB 0x800 to 0xfff (2048 bytes)",)
    assert [place.site.line for place in found.places if place.site] == [3, 2]
    assert found.mend == "Leave the two apart: the first ends at 0x1000."


def test_memory_used_again_after_its_last_read() -> None:
    builder, a, b = two(0x800)
    for tile in (a, b, a):
        builder.op(MTE2, "TLOAD", [gm(0, 4096)], [tile])
        builder.op(V, "TADD", [tile], [0x8000])
    assert codes(builder) == []


@pytest.mark.parametrize("second", [0, 0x1000, 0x2000])
def test_apart_or_in_one_place(second: int) -> None:
    builder, a, b = two(second)
    for tile in (a, b):
        builder.op(MTE2, "TLOAD", [gm(0, 4096)], [tile])
    builder.op(V, "TADD", [a, b], [0x8000])
    assert codes(builder) == []


def test_a_part_of_a_tile_is_a_view() -> None:
    builder = Builder()
    a, part = builder.tile("a", 0, 16, 64), builder.tile("part", 0x400, 4, 64)
    builder.op(MTE2, "TLOAD", [gm(0, 4096)], [a])
    builder.op(V, "TEXPANDS", [], [part])
    builder.op(V, "TADD", [a], [0x8000])
    assert codes(builder) == []


def test_each_core_has_its_own() -> None:
    builder, a, b = two(0x800)
    for builder.core, tile in enumerate((a, b, a)):
        builder.launch(1, blocks=3)
        builder.op(MTE2, "TLOAD", [gm(0, 4096)], [tile])
        builder.op(V, "TADD", [tile], [0x8000])
        builder.end(1)
    assert codes(builder) == []


def test_bytes_that_the_other_did_not_touch() -> None:
    builder, a, b = two(0x800)
    builder.op(MTE2, "TLOAD", [gm(0, 4096)], [a])
    builder.op(MTE2, "TLOAD", [gm(0, 256)], [{"start": 0x1000, "object": b.number}])
    builder.op(V, "TADD", [a], [0x8000])
    assert codes(builder) == []
