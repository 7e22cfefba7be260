"""The memory map: regions, their lives, overlaps, the peak."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascsim.machine.trace import Mode
from ascsim.machine.words import Space
from ascsim.report.page import data_of
from ascsim.report.page.columns import unpacked
from ascsim.report.page.memory import regions_of
from checks.builder import MTE2, Builder, V, gm
from report.page.pages import racy, shown
from report.page.test_bars import with_steps


def memory(builder: Builder) -> dict[str, Any]:
    data: dict[str, Any] = data_of(shown(builder))["memory"]
    return data


def lives(builder: Builder) -> list[tuple[str, int, int]]:
    """(region, begin, end) of every life."""
    data = memory(builder)
    names = [region["name"] or region["text"] for region in data["regions"]]
    columns = {name: unpacked(column).tolist() for name, column in data["lives"].items()}
    return [(names[r], b, e) for r, b, e in zip(columns["region"], columns["begin"], columns["end"], strict=True)]


def kernel(*calls: tuple[str, list[Any], list[Any]], tiles: Builder | None = None) -> Builder:
    """Vector instructions (name, reads, writes), each after the one before it is complete."""
    builder = tiles or Builder()
    builder.launch(1)
    for name, reads, writes in calls:
        builder.op(V, name, reads=reads, writes=writes)
        builder.barrier(V)
    builder.end(1)
    return builder


def test_a_write_after_a_read_begins_another_life() -> None:
    builder = Builder()
    a, b = builder.tile("a", 0), builder.tile("b", 256)
    kernel(
        ("w", [], [a]), ("w", [], [a]), ("r", [a], [b]), ("r", [a], [b]), ("w", [], [a]), ("r", [a], [b]), tiles=builder
    )
    of_a = [life for life in lives(builder) if life[0] == "a"]
    assert len(of_a) == 2
    assert of_a[0][2] <= of_a[1][1]


def test_an_instruction_in_place_goes_on_with_a_life() -> None:
    builder = Builder()
    a = builder.tile("a", 0)
    kernel(("w", [], [a]), ("in place", [a], [a]), ("r", [a], [1024]), tiles=builder)
    assert [name for name, _, _ in lives(builder)].count("a") == 1


def test_reads_through_a_view_keep_the_whole_alive() -> None:
    builder = Builder()
    whole, row = builder.tile("whole", 0, 4, 64), builder.tile("row", 256)
    kernel(("w", [], [whole]), ("other", [], [4096]), ("r", [row], [4096]), tiles=builder)
    found = {name: (begin, end) for name, begin, end in lives(builder)}
    assert found["whole"][1] == found["row"][1]


def test_memory_used_again_does_not_keep_alive_what_lay_there() -> None:
    builder = Builder()
    whole, row = builder.tile("whole", 0, 4, 64), builder.tile("row", 256)
    kernel(("w", [], [whole]), ("r", [whole], [4096]), ("w", [], [row]), ("r", [row], [8192]), tiles=builder)
    found = {name: (begin, end) for name, begin, end in lives(builder)}
    assert found["whole"][1] <= found["row"][0]


def test_the_peak_counts_bytes_once() -> None:
    builder = Builder()
    whole, row, other = builder.tile("whole", 0, 4, 64), builder.tile("row", 256), builder.tile("other", 2048)
    kernel(("w", [], [whole]), ("r", [row], [other]), ("r", [whole, other], [8192]), tiles=builder)
    (space,) = memory(builder)["spaces"]
    assert space["name"] == "UB" and space["capacity"] == 196608 and space["highest"] == 8192 + 256
    assert space["peak"]["bytes"] == 1024 + 256 + 256


def test_tiles_across_each_other_overlap() -> None:
    builder = Builder()
    one, other = builder.tile("one", 0, 1, 64), builder.tile("other", 128, 1, 64)
    kernel(("w", [], [one]), ("w", [], [other]), ("r", [one, other], [4096]), tiles=builder)
    (overlap,) = memory(builder)["overlaps"]
    assert (overlap["low"], overlap["high"], overlap["core"]) == (128, 256, 0)
    assert overlap["begin"] < overlap["end"]


def test_views_and_memory_used_again_do_not_overlap() -> None:
    builder = Builder()
    whole, row, late = builder.tile("whole", 0, 4, 64), builder.tile("row", 256), builder.tile("late", 512, 4, 64)
    kernel(("w", [], [whole]), ("r", [row], [4096]), ("w", [], [late]), ("r", [late], [4096]), tiles=builder)
    assert memory(builder)["overlaps"] == []


def test_only_tiles_overlap() -> None:
    builder = Builder()
    one = builder.tile("one", 0, 1, 64)
    other = {"start": 128, "length": 256}
    kernel(("w", [], [one]), ("w", [], [other]), ("r", [one, other], [4096]), tiles=builder)
    assert memory(builder)["overlaps"] == []


def test_what_has_no_name_lies_in_the_smallest_region_around_it() -> None:
    builder = Builder()
    whole, row = builder.tile("whole", 0, 4, 64), builder.tile("row", 256)
    kernel(("w", [], [whole]), ("r", [row], []), ("r", [{"start": 300, "length": 8}], [8192]), tiles=builder)
    trace = builder.trace()
    local = np.flatnonzero(trace.accesses["space"] == Space.UB)
    regions, region_of = regions_of(trace, local)
    assert [regions[n].name for n in region_of] == ["whole", "row", "row", ""]
    assert regions[region_of[3]].low == 8192


def test_a_buffer_is_what_is_touched_under_its_name() -> None:
    builder = Builder()
    builder.note("object", type="buffer", name="local", dtype="u8", space=1)
    builder.launch(1)
    for start in (0, 256, 4096):
        builder.op(MTE2, "copy", reads=[gm(0)], writes=[{"start": start, "object": 1}])
    builder.end(1)
    regions = memory(builder)["regions"]
    assert [(region["name"], region["low"], region["high"]) for region in regions] == [
        ("local", 0, 256), ("local", 256, 512), ("local", 4096, 4352),
    ]  # fmt: skip


def test_what_reaches_into_a_buffer_is_more_of_it() -> None:
    builder = Builder()
    builder.note("object", type="buffer", name="local", dtype="u8", space=1)
    builder.launch(1)
    builder.op(MTE2, "copy", reads=[gm(0)], writes=[{"start": 0, "length": 1000, "object": 1}])
    builder.op(V, "load", reads=[{"start": 768, "length": 256}])
    builder.op(V, "load", reads=[2048])
    builder.end(1)
    regions = memory(builder)["regions"]
    assert [(region["name"], region["low"], region["high"]) for region in regions] == [
        ("local", 0, 1024), ("", 2048, 2304),
    ]  # fmt: skip
    assert regions[0]["text"] == "local, 1024 bytes at UB 0x0"


def test_elements_side_by_side_are_one_region() -> None:
    builder = Builder()
    builder.launch(1)
    for start in (0, 4, 8, 64):
        builder.op(V, "element", writes=[{"start": start, "length": 4}])
    for start in (256, 512):
        builder.op(V, "vector", writes=[start])
    builder.end(1)
    found = [(region["low"], region["high"]) for region in memory(builder)["regions"]]
    assert found == [(0, 12), (64, 68), (256, 512), (512, 768)]


def test_cores_have_their_own_lives() -> None:
    columns = {name: unpacked(column).tolist() for name, column in memory(racy(3))["lives"].items()}
    assert columns["core"] == sorted(columns["core"]) and set(columns["core"]) == {0, 1, 2}


def test_touches_are_in_order_of_their_bars() -> None:
    data = data_of(shown(racy()))
    bar, region, mode = (unpacked(data["memory"]["touches"][name]) for name in ("bar", "region", "mode"))
    assert (np.diff(bar) >= 0).all()
    words = [data["timeline"]["names"][n] for n in unpacked(data["timeline"]["columns"]["name"])]
    names = [one["name"] for one in data["memory"]["regions"]]
    found = {(words[b], names[r], int(m)) for b, r, m in zip(bar.tolist(), region.tolist(), mode.tolist(), strict=True)}
    assert found == {
        ("TLOAD", "source", Mode.WRITE), ("TADD", "source", Mode.READ), ("TADD", "target", Mode.WRITE),
        ("TSTORE", "target", Mode.READ),
    }  # fmt: skip


def test_an_instruction_touches_what_its_steps_touch() -> None:
    data = data_of(shown(with_steps()))
    words = [data["timeline"]["names"][n] for n in unpacked(data["timeline"]["columns"]["name"])]
    bar, mode = (unpacked(data["memory"]["touches"][name]).tolist() for name in ("bar", "mode"))
    assert [m for b, m in zip(bar, mode, strict=True) if words[b] == "TSORT32"].count(Mode.WRITE) == 2
