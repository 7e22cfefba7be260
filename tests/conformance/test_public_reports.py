"""Bugs that others met on a chip and reported in public, rebuilt small: the right verdict on each.

Each case names its source. The kernels are Python; the checks see the same trace whatever the way in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ascsim
from ascsim import Pipe, profiles
from ascsim.diagnostics import Diagnostic, Severity
from ascsim.frontends.launch import Run, launch
from ascsim.isa.tile.fill import TFillPadMode


def run(body: Callable[..., None], arch: str, **arrays: np.ndarray) -> Run:
    return launch("kernel", body, profiles.find(arch), 1, arrays)


def errors(done: Run) -> list[Diagnostic]:
    return [d for d in done.diagnostics if d.severity is Severity.ERROR]


def sync(source: Pipe, target: Pipe) -> None:
    ascsim.set_flag(source, target, 0)
    ascsim.wait_flag(source, target, 0)


def test_a_scalar_loop_then_vector_work() -> None:
    """PTOAS 735: without tmp TCI fills its tile on the scalar pipe, and TMULS on the vector pipe must wait for it."""

    def body(flag: bool) -> Callable[..., None]:
        def kernel(out: Any) -> None:
            t = ascsim.tile("i32", 1, 64, name="t")
            ascsim.tci(t, 5)
            if flag:
                sync(Pipe.S, Pipe.V)
            ascsim.tmuls(t, t, 2)
            sync(Pipe.V, Pipe.MTE3)
            ascsim.tstore(out, t)

        return kernel

    out = np.zeros((1, 64), np.int32)
    (race,) = errors(run(body(False), "a2a3", out=out))
    assert race.code == "R001"
    assert "Add set_flag(Pipe.S, Pipe.V, 0)" in race.mend
    clean = run(body(True), "a2a3", out=out)
    assert clean.diagnostics == []
    assert (out == 2 * (5 + np.arange(64))).all()


@pytest.mark.parametrize("source", [Pipe.S, Pipe.V])
def test_a_flag_from_the_wrong_pipe(source: Pipe) -> None:
    """PTOAS 1532: with tmp TCI runs on the vector pipe; a flag from the scalar pipe orders nothing."""

    def kernel(out: Any) -> None:
        t, tmp = ascsim.tile("i32", 1, 192, name="t"), ascsim.tile("f32", 1, 192, name="tmp")
        ascsim.tci(t, 0, tmp)
        sync(source, Pipe.MTE3)
        ascsim.tstore(out, t)

    out = np.zeros((1, 192), np.int32)
    done = run(kernel, "a2a3", out=out)
    assert (out == np.arange(192)).all(), "a functional simulator sees nothing wrong"
    if source is Pipe.V:
        assert errors(done) == []
        return
    (race,) = errors(done)
    assert race.code == "R001"
    assert "set_flag(Pipe.V, Pipe.MTE3, 1)" in race.mend or "set_flag(Pipe.V, Pipe.MTE3, 0)" in race.mend


@pytest.mark.parametrize("n", [1, 2])
def test_a_wait_in_a_loop_that_makes_no_turn(n: int) -> None:
    """PTOAS 533: the wait for the loads stands inside ``for i in 1..n``. (TROWEXPANDDIV is a TDIV here.)"""

    def kernel(x: Any, y: Any, z: Any) -> None:
        a, b, c = (ascsim.tile("f32", 1, 8, at=at, name=name) for name, at in (("a", 6304), ("b", 10400), ("c", 10432)))
        for tile, source in ((a, x), (b, y), (c, z)):
            ascsim.tload(tile, source)
        ascsim.set_flag(Pipe.MTE2, Pipe.V, 0)
        for _ in range(1, n):
            ascsim.wait_flag(Pipe.MTE2, Pipe.V, 0)
        ascsim.tdiv(ascsim.tile("f32", 1, 8, at=20480, name="d"), a, b)

    found = errors(run(kernel, "a2a3", **{name: np.ones((1, 8), np.float32) for name in "xyz"}))
    assert [d.code for d in found] == (["R001"] if n == 1 else [])
    assert n == 2 or "Add wait_flag(Pipe.MTE2, Pipe.V, 0) before line" in found[0].mend


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("n", [0, 1])
def test_a_barrier_in_a_branch(n: int, arch: str) -> None:
    """tilelang-ascend 1824: the barrier between two vector instructions stands in a branch."""

    def kernel(out: Any) -> None:
        a, b, c, d = (ascsim.tile("f32", 1, 64, name=name) for name in "abcd")
        ascsim.texpands(a, 1.0)
        if n > 0:
            ascsim.texpands(b, 2.0)
            if arch == "a2a3":  # the A5 has no such barrier and needs none
                ascsim.pipe_barrier(Pipe.V)
            ascsim.tadd(c, a, b)
        ascsim.tadd(d, a, a)
        sync(Pipe.V, Pipe.MTE3)
        ascsim.tstore(out, d)

    found = errors(run(kernel, arch, out=np.zeros((1, 64), np.float32)))
    if n == 0 and arch == "a2a3":
        (race,) = found
        assert race.code == "R001"
        assert "Add pipe_barrier(Pipe.V) before line" in race.mend
    else:
        assert found == []


def test_padding_in_place_at_the_end_of_memory() -> None:
    """pto-isa 291: a tile whose valid region is full, and which ends where UB does."""

    def kernel(x: Any, y: Any) -> None:
        t = ascsim.tile("f32", 1, 16384, at=0x20000, name="t", pad=ascsim.PadValue.ZERO)
        ascsim.tload(t, x)
        sync(Pipe.MTE2, Pipe.V)
        ascsim.tfillpad(t, t, TFillPadMode.InPlace)
        sync(Pipe.V, Pipe.MTE3)
        ascsim.tstore(y, t)

    x = np.random.default_rng(3).standard_normal((1, 16384)).astype(np.float32)
    y = np.zeros_like(x)
    done = run(kernel, "a2a3", x=x, y=y)
    assert np.array_equal(x, y)
    assert errors(done) == []
    assert [d.code for d in done.diagnostics] == ["E-TFILLPAD-EMPTY"]


def test_a_buffer_loaded_again_while_it_is_stored() -> None:
    """PTOAS 706: nothing keeps the next load from overwriting what is still being stored."""

    def kernel(x: Any, y: Any) -> None:
        t = ascsim.tile("f32", 4, 64, name="t")
        ascsim.tload(t, x)
        sync(Pipe.MTE2, Pipe.MTE3)
        ascsim.tstore(y, t)
        ascsim.tload(t, x)

    ones = np.ones((4, 64), np.float32)
    (race,) = errors(run(kernel, "a2a3", x=ones, y=np.zeros_like(ones)))
    assert race.code == "R002"
    assert "set_flag(Pipe.MTE3, Pipe.MTE2, 0)" in race.mend


def test_tiles_that_do_not_fit() -> None:
    """triton-ascend 302: 384,000 bytes of tiles in 196,608 bytes of UB."""

    def kernel(x: Any) -> None:
        small, middle = (ascsim.tile("f32", rows, 64, name=name) for name, rows in (("small", 200), ("middle", 500)))
        large = ascsim.tile("f32", 800, 64, name="large")
        for tile in (small, middle, large):
            ascsim.tload(tile, x)

    (refused,) = errors(run(kernel, "a2a3", x=np.zeros((1, 64), np.float32)))
    assert refused.places[0].site is not None
    assert refused.code == "A001"
    assert "384000 bytes" in refused.headline and "196608" in refused.headline
    listing, left = refused.notes
    assert left == "large needs 204800 bytes, and 17408 are left"
    assert listing.index("large") < listing.index("middle") < listing.index("small")


def test_a_scratch_that_does_not_fit() -> None:
    """tilelang-ascend 1523: the parent tile takes 196,352 bytes, and a reduction then needs 8 KiB of scratch."""

    def kernel(x: Any) -> None:
        parent = ascsim.tile("f32", 767, 64, name="parent")
        ascsim.tload(parent, x)
        sync(Pipe.MTE2, Pipe.V)
        result = ascsim.tile("f32", 32, 8, at=0, valid=(32, 1), name="result")
        ascsim.trowmax(result, ascsim.tile("f32", 32, 64, at=0), ascsim.tile("f32", 32, 64, name="scratch"))

    (refused,) = errors(run(kernel, "a2a3", x=np.zeros((767, 64), np.float32)))
    assert refused.code == "A001"
    assert "204544 bytes" in refused.headline and "196608" in refused.headline
    assert all(name in refused.notes[0] for name in ("parent", "scratch"))


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_rows_that_end_before_their_pitch(arch: str) -> None:
    """tilelang-ascend 1304: rows of 126 floats, 128 apart in UB; nothing beyond column 125 is written in GM."""

    def kernel(x: Any, y: Any) -> None:
        t = ascsim.tile("f32", 8, 128, valid=(8, 126), name="t")
        ascsim.tload(t, x)
        sync(Pipe.MTE2, Pipe.MTE3)
        ascsim.tstore(y[:, :126], t)

    x, y = np.arange(8 * 126, dtype=np.float32).reshape(8, 126), np.full((8, 128), -1, np.float32)
    assert run(kernel, arch, x=x, y=y).diagnostics == []
    assert np.array_equal(y[:, :126], x)
    assert (y[:, 126:] == -1).all()


@pytest.mark.parametrize(("kind", "columns"), [("f32", 2), ("f16", 4)])
def test_a_sort_whose_result_has_no_room_for_its_pairs(kind: str, columns: int) -> None:
    """PTOAS 326, pypto 664: dst as wide as src; the indices are expected in the idx operand."""

    def kernel(x: Any, i: Any, after: Any) -> None:
        src, idx = ascsim.tile(kind, 1, 64, at=0, name="src"), ascsim.tile("u32", 1, 64, at=0x1000, name="idx")
        ascsim.tload(src, x)
        ascsim.tload(idx, i)
        sync(Pipe.MTE2, Pipe.V)
        ascsim.tsort32(ascsim.tile(kind, 1, 64, at=0x2000, name="dst"), src, idx)
        sync(Pipe.V, Pipe.MTE3)
        ascsim.tstore(after, idx)

    x = np.linspace(-1, 1, 64).astype(np.float16 if kind == "f16" else np.float32).reshape(1, 64)
    i = np.arange(64, dtype=np.uint32).reshape(1, 64)
    after = np.zeros_like(i)
    found = errors(run(kernel, "a2a3", x=x, i=i, after=after))
    assert [d.code for d in found] == ["TSORT32-1"]
    said = " ".join((found[0].headline, *found[0].notes, found[0].mend))
    assert str(64 * columns) in said and "bytes" in said
    assert np.array_equal(after, i), "idx is an input"


def test_a_sort_without_scratch() -> None:
    """pypto 2557: on the A5 TSORT32 takes no tmp where the columns are whole blocks."""

    def kernel(x: Any, i: Any, y: Any) -> None:
        src, idx, dst = ascsim.tile("f32", 2, 64), ascsim.tile("u32", 2, 64), ascsim.tile("f32", 2, 128)
        ascsim.tload(src, x)
        ascsim.tload(idx, i)
        sync(Pipe.MTE2, Pipe.V)
        ascsim.tsort32(dst, src, idx)
        sync(Pipe.V, Pipe.MTE3)
        ascsim.tstore(y, dst)

    x, i = np.ones((2, 64), np.float32), np.tile(np.arange(64, dtype=np.uint32), (2, 1))
    assert run(kernel, "a5", x=x, i=i, y=np.zeros((2, 128), np.float32)).diagnostics == []


def test_scattered_elements_have_flat_indices() -> None:
    """pto-isa 146 and 9: all indices are 1: element 1 of dst is the last of src, and nothing else is written."""

    def kernel(x: Any, i: Any, y: Any) -> None:
        dst = ascsim.tile("f32", 2, 16, name="dst")
        src, idx = ascsim.tile("f32", 1, 16, name="src"), ascsim.tile("u32", 1, 16, name="idx")
        for tile, array in ((dst, y), (src, x), (idx, i)):
            ascsim.tload(tile, array)
        sync(Pipe.MTE2, Pipe.V)
        sync(Pipe.MTE2, Pipe.S)
        ascsim.tscatter(dst, src, idx)
        ascsim.pipe_barrier(Pipe.ALL)
        ascsim.tstore(y, dst)

    x, i = np.arange(16, dtype=np.float32).reshape(1, 16) + 1, np.ones((1, 16), np.uint32)
    y = np.zeros((2, 16), np.float32)
    done = run(kernel, "a2a3", x=x, i=i, y=y)
    wanted = np.zeros((2, 16), np.float32)
    wanted[0, 1] = 16
    assert np.array_equal(y, wanted)
    assert errors(done) == []
