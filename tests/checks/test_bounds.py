"""Bounds and alignment, to the byte."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim import profiles
from ascsim.checks import bounds
from ascsim.diagnostics import Diagnostic, Severity
from ascsim.machine.words import SLayout, Space
from checks.builder import MTE2, MTE3, Builder, V, gm
from checks.programs import accesses
from checks.reference import Access

UB_A3 = 196608


def only(builder: Builder, profile: str = "a2a3") -> Diagnostic:
    """The one diagnostic there is."""
    found = builder.run(profile)
    assert len(found) == 1, [d.headline for d in found]
    return found[0]


def test_the_last_byte_of_a_memory_and_the_one_after() -> None:
    inside, outside = Builder(), Builder()
    inside.op(V, "TADD", writes=[{"start": UB_A3 - 64, "length": 64}])
    outside.op(V, "TADD", writes=[{"start": UB_A3 - 64, "length": 65}])
    assert inside.run() == []
    assert only(outside).headline == (
        "illegal write of 1 byte at UB 0x30000, 1 byte beyond the end of UB (196608 bytes)"
    )


def test_beyond_the_end_with_tile_and_element() -> None:
    builder = Builder()
    t = builder.tile("dst", UB_A3 - 1024, 4, 68)
    builder.op(V, "TADD", [], [t], line=7)
    found = only(builder)
    assert (found.code, found.severity) == ("B001", Severity.ERROR)
    assert found.headline == "illegal write of 64 bytes at UB 0x30000, 64 bytes beyond the end of UB (196608 bytes)"
    assert found.notes == ("the byte is element (3, 52) of dst 4x68 f32 at UB 0x2fc00",)
    assert (found.places[0].what, str(found.places[0].site)) == ("write of dst by TADD", "kernel.cpp:7")


def test_before_the_start() -> None:
    builder = Builder()
    builder.op(V, "TADD", [{"start": -32, "length": 64}])
    assert only(builder).headline == (
        "illegal read of 32 bytes at UB -0x20, 32 bytes before the start of UB (196608 bytes)"
    )


def test_strided_rows_count_the_bytes_that_are_outside() -> None:
    builder = Builder()
    builder.op(V, "TADD", [{"start": UB_A3 - 512, "length": 32, "n1": 4, "s1": 256}])
    assert only(builder).headline == (
        "illegal read of 64 bytes at UB 0x30000, 288 bytes beyond the end of UB (196608 bytes)"
    )


@pytest.mark.parametrize("space", [s for s in Space if s not in (Space.GM, Space.STATE)])
@pytest.mark.parametrize("profile", profiles.NAMES)
def test_every_memory_of_every_profile(space: Space, profile: str) -> None:
    capacity = profiles.load(profile).spaces[space.name].capacity
    builder = Builder()
    builder.op(V, "op", writes=[{"space": space, "start": capacity, "length": 32}])
    found = only(builder, profile)
    assert (found.code, f"beyond the end of {space.name} ({capacity} bytes)" in found.headline) == ("B001", True)


@settings(max_examples=150, deadline=None)
@given(access=accesses(), shift=st.integers(-600, 600))
def test_any_shape_is_judged_by_its_bytes(access: Access, shift: int) -> None:
    fields: dict[str, Any] = dict(access.fields) | {"space": Space.UB}
    fields["start"] = UB_A3 - 256 + shift
    outside = sorted(b for _, b in Access(tuple(fields.items()), True).bytes if b >= UB_A3)
    builder = Builder()
    builder.op(V, "op", [fields])
    found = [d for d in builder.run() if d.code == "B001"]
    assert bool(found) == bool(outside)
    if outside:
        assert f"illegal read of {len(outside)} byte" in found[0].headline
        assert f"at UB {outside[0]:#x}, {outside[-1] + 1 - UB_A3} byte" in found[0].headline


def test_what_a_mask_leaves_out_is_not_touched() -> None:
    builder = Builder()
    half = [1] * 128 + [0] * 128
    builder.op(V, "store", writes=[{"start": UB_A3 - 128, "mask": half}], line=1)
    assert builder.run() == []
    builder.barrier(V)
    builder.op(V, "store", writes=[{"start": UB_A3 - 124, "mask": half}], line=1)
    assert only(builder).headline.startswith("illegal write of 4 bytes at UB 0x30000, 4 bytes beyond")


def test_a_loop_of_accesses_outside_is_one_finding() -> None:
    builder = Builder()
    for turn in range(5000):
        builder.op(V, "TADD", [{"start": UB_A3 + 256 * turn}], line=3)
    found = only(builder)
    assert (found.code, found.count) == ("B001", 5000)


def test_the_bytes_are_judged_and_not_the_tile() -> None:
    builder = Builder()
    t = builder.tile("t", UB_A3 - 256, 4, 64)
    builder.op(V, "TADD", [{"start": t.address, "length": 256, "object": t.number}])
    assert builder.run() == []


def test_what_stopped_the_run_is_not_told_again() -> None:
    builder = Builder()
    row = builder.op(V, "TADD", [1 << 24])
    builder.note("fault", row=row, site=0, message="too far")
    assert builder.run() == []


# Alignment


def test_misaligned() -> None:
    builder = Builder()
    t = builder.tile("t", 0x1010, 1, 64)
    builder.op(V, "TADD", [{"start": 0x1010, "align": 5, "object": t.number}], line=4)
    found = only(builder)
    assert (found.code, found.severity) == ("B002", Severity.ERROR)
    assert found.headline == "misaligned access: read of 256 bytes at UB 0x1010"
    assert found.notes[0] == "the address must be a multiple of 32"
    assert found.mend == "Use UB 0x1000 or 0x1020."


@pytest.mark.parametrize("align", range(10))
def test_alignments(align: int) -> None:
    builder = Builder()
    builder.op(V, "op", [{"start": 3 << align, "align": align}])
    assert builder.run() == []
    if align:
        builder.op(V, "op", [{"start": (3 << align) + (1 << (align - 1)), "align": align}])
        assert only(builder).code == "B002"


# Reserved bytes


def test_reserved_bytes_of_the_a5() -> None:
    capacity = profiles.load("a5").spaces["UB"].capacity
    builder = Builder()
    builder.op(V, "TADD", [{"start": capacity - 8192 - 256, "length": 256}])
    assert builder.run("a5") == []
    builder.op(V, "TADD", [{"start": capacity - 8192 - 32, "length": 64}], line=9)
    found = only(builder, "a5")
    assert (found.code, found.severity) == ("B003", Severity.WARNING)
    assert found.headline == ("read of 32 bytes at UB 0x3e000, in the 8192 bytes at the top of UB that are reserved")


def test_outside_is_not_reserved_too() -> None:
    builder = Builder()
    builder.op(V, "TADD", [{"start": 262144 - 32, "length": 64}])
    assert builder.codes("a5") == ["B001"]


@pytest.mark.parametrize(("address", "code"), [(0x10, "B002"), (UB_A3 - 32, "B001")])
def test_a_tile_that_lies_wrong_is_one_finding(address: int, code: str) -> None:
    builder = Builder()
    wrong, right = builder.tile("wrong", address, 1, 64), builder.tile("right", 0x2000, 1, 64)
    at = {"start": address, "length": 256, "object": wrong.number, "align": 5}
    builder.op(MTE2, "TLOAD", [gm(0, 256)], [at], line=1)
    builder.sync(MTE2, V)
    builder.op(V, "TADD", [at, at], [right], line=2)
    builder.op(V, "TMUL", [at], [right.address + 1024], line=3)
    found = only(builder)
    assert (found.code, found.places[0].what) == (code, "write of wrong by TLOAD")
    assert found.notes[-2:] == (
        "the same for the read of wrong by TADD at line 2", "the same for the read of wrong by TMUL at line 3",
    )  # fmt: skip


def test_a_tile_that_lies_wrong_is_one_finding_on_one_line_too() -> None:
    builder = Builder()
    wrong = builder.tile("wrong", 0x10, 1, 64)
    at = {"start": 0x10, "length": 256, "object": wrong.number, "align": 5}
    builder.op(V, "TEXPANDS", [], [at], line=1)
    builder.barrier(V)
    builder.op(V, "TADD", [at, at], [0x2000], line=1)
    assert only(builder).notes[-1] == "the same for the read of wrong by TADD at line 1"


def test_two_tiles_that_lie_wrong_are_two_findings() -> None:
    builder = Builder()
    for line, address in enumerate((0x10, 0x1010), start=1):
        tile = builder.tile("wrong", address, 1, 64)
        builder.op(V, "TEXPANDS", [], [{"start": address, "object": tile.number, "align": 5}], line=line)
    assert builder.codes() == ["B002", "B002"]


# Tiles


def test_bytes_beyond_a_tile_in_another() -> None:
    builder = Builder()
    dst = builder.tile("dst", 0x1000, 1, 64)
    builder.tile("live", 0x1100, 1, 64)
    builder.op(V, "TSORT32", [], [{"start": 0x1000, "length": 512, "object": dst.number}], line=1)
    found = only(builder)
    assert (found.code, found.severity) == ("B005", Severity.NOTE)
    assert found.headline == (
        "write of 256 bytes beyond dst 1x64 f32 at UB 0x1000: 256 of them are in live 1x64 f32 at UB 0x1100"
    )


def test_a_step_of_an_expansion_finds_its_tile_by_address() -> None:
    builder = Builder()
    builder.tile("dst", 0x1000, 1, 64)
    builder.tile("live", 0x1100, 1, 64)
    root = builder.op(V, "TSORT32", line=1)
    builder.op(V, "vbitsort", [], [{"start": 0x1080, "length": 256}], line=1, parent=root)
    found = only(builder)
    assert found.code == "B005"
    assert "the step vbitsort of TSORT32 did it" in found.notes


def test_bytes_beyond_an_array_of_the_same_launch() -> None:
    builder = Builder()
    builder.note("local_array", space=1, start=0, size=100, name="before", launch=1, dtype="f32")
    builder.note("local_array", space=1, start=128, size=256, name="x", launch=1, dtype="f32")
    builder.note("local_array", space=1, start=0, size=4096, name="large", launch=2, dtype="f32")
    builder.launch(1)
    builder.op(V, "asc_storealign", [], [{"start": 0, "length": 128}], line=1)  # the end of its last block
    builder.op(V, "asc_storealign", [], [{"start": 256, "length": 256}], line=2)
    builder.op(V, "asc_storealign", [], [{"start": 96, "length": 64}], line=3)
    builder.op(V, "asc_storealign", [], [{"start": 1024, "length": 256}], line=4)  # in no array
    builder.end(1)
    builder.launch(2)
    builder.op(V, "asc_storealign", [], [{"start": 256, "length": 256}], line=2)
    builder.end(2)
    found = [d for d in builder.run("a5") if d.code == "B006"]
    assert [d.headline for d in found] == [
        "write of 128 bytes beyond the array x, which ends at UB 0x180: UB 0x180 to 0x1ff",
        "write of 32 bytes beyond the array before, which ends at UB 0x64: UB 0x80 to 0x9f",
    ]
    assert found[0].notes == ("no other array is there",)
    assert found[1].notes == ("32 bytes of them are in x",)


def test_views_of_the_same_place_are_not_overrun() -> None:
    builder = Builder()
    part = builder.tile("part", 0x1000, 1, 64)
    builder.tile("whole", 0x1000, 2, 64)
    builder.tile("far", 0x2000, 1, 64)
    builder.op(V, "op", [], [{"start": 0x1000, "length": 512, "object": part.number}])
    builder.op(V, "op", [], [{"start": 0x1000, "length": 512}])
    assert [d.code for d in builder.run("a5")] == []


def test_reading_beyond_a_tile_destroys_nothing() -> None:
    builder = Builder()
    src = builder.tile("src", 0x1000, 1, 64)
    builder.tile("live", 0x1100, 1, 64)
    builder.op(V, "copy", [{"start": 0x1000, "length": 512, "object": src.number}], [])
    assert builder.run() == []


def test_bytes_beyond_a_tile_that_are_nobody_s() -> None:
    builder = Builder()
    dst = builder.tile("dst", 0x1000, 1, 64)
    builder.tile("live", 0x2000, 1, 64)
    builder.op(V, "TSORT32", [], [{"start": 0x1000, "length": 512, "object": dst.number}])
    assert builder.run() == []


def test_a_tile_with_boxes_names_its_element() -> None:
    builder = Builder()
    t = builder.tile("t", UB_A3 - 512, 16, 32, "f16", blayout=1, slayout=int(SLayout.ROW_MAJOR))
    builder.op(V, "op", [t])
    assert only(builder).notes == ("the byte is element (0, 16) of t 16x32 f16 at UB 0x2fe00",)


# GM


def allocations(builder: Builder) -> None:
    """x: 0x1000 to 0x2000, y: 0x3000 to 0x3800."""
    builder.note("allocation", name="x", start=0x1000, size=0x1000)
    builder.note("allocation", name="y", start=0x3000, size=0x800)


def test_inside_an_allocation() -> None:
    builder = Builder()
    allocations(builder)
    builder.op(MTE2, "TLOAD", [gm(0x1000, 0x1000)])
    builder.op(MTE2, "TLOAD", [gm(0x1800, 32, n1=64, s1=32)])
    builder.op(MTE2, "TLOAD", [gm(0x1000, 16, n1=2, s1=0x2000)])  # a row in each: no byte is outside
    assert builder.run() == []


@pytest.mark.parametrize(
    ("operand", "headline", "note"),
    [
        (gm(0x2021, 64), "illegal read of 64 bytes at GM 0x2021, outside every allocation",
         "and is 33 bytes after the allocation x of 4096 bytes at GM 0x1000"),
        (gm(0x1fc0, 96), "illegal read of 32 bytes at GM 0x2000, outside every allocation",
         "and is 0 bytes after the allocation x of 4096 bytes at GM 0x1000"),
        (gm(0x2fe0, 16), "illegal read of 16 bytes at GM 0x2fe0, outside every allocation",
         "and is 32 bytes before the allocation y of 2048 bytes at GM 0x3000"),
        (gm(0x1f00, 128, n1=3, s1=256), "illegal read of 256 bytes at GM 0x2000, outside every allocation",
         "and is 0 bytes after the allocation x of 4096 bytes at GM 0x1000"),
        (gm(-64, 32), "illegal read of 32 bytes at GM -0x40, outside every allocation",
         "and is 4160 bytes before the allocation x of 4096 bytes at GM 0x1000"),
    ],
)  # fmt: skip
def test_outside_every_allocation(operand: dict[str, Any], headline: str, note: str) -> None:
    builder = Builder()
    allocations(builder)
    builder.op(MTE2, "TLOAD", [operand], line=2)
    found = only(builder)
    assert (found.code, found.headline) == ("B004", headline)
    assert note in found.notes


def test_from_one_allocation_into_the_next() -> None:
    builder = Builder()
    builder.note("allocation", name="x", start=0, size=64)
    builder.note("allocation", name="y", start=64, size=64)
    builder.op(MTE3, "TSTORE", writes=[gm(32, 64)])
    assert only(builder).headline == "illegal write of 32 bytes at GM 0x40, outside every allocation"


def test_without_allocations_gm_is_not_judged() -> None:
    builder = Builder()
    builder.op(MTE2, "TLOAD", [gm(1 << 50)])
    assert builder.run() == []


def test_freed_memory() -> None:
    builder = Builder()
    builder.note("allocation", name="x", start=0, size=256, row=0)
    builder.note("allocation", name="", start=4096, size=256, row=0)
    builder.op(MTE2, "TLOAD", [gm(0)], line=1)
    builder.note("free", start=0, row=1)
    builder.op(MTE2, "TLOAD", [gm(0)], line=2)
    builder.note("allocation", name="z", start=0, size=256, row=2)
    builder.op(MTE2, "TLOAD", [gm(0)], line=3)
    found = only(builder)
    assert found.code == "B004"
    assert found.places[0].site is not None and found.places[0].site.line == 2
    assert found.notes[0] == "it was part of the allocation x of 256 bytes at GM 0x0, which has been freed"
    assert found.notes[1] == "and is 4096 bytes before the allocation of 256 bytes at GM 0x1000"


def test_a_free_without_a_row_keeps_the_allocation_alive() -> None:
    builder = Builder()
    builder.note("allocation", name="x", start=0, size=256)
    builder.note("free", start=0)
    builder.op(MTE2, "TLOAD", [gm(0)])
    assert builder.run() == []


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_findings_do_not_depend_on_how_many_accesses_are_compared_at_once(at_once: int) -> None:
    builder = Builder()
    for turn in range(7):
        builder.op(V, "store", writes=[{"start": (192 << 10) + 256 * turn, "length": 256}], line=3 + turn % 2)
    with mock.patch("ascsim.checks.bounds._AT_ONCE", at_once):
        found = builder.run("a2a3", checks=[bounds.check])
    assert sorted((d.code, d.count) for d in found) == [("B001", 3), ("B001", 4)]
