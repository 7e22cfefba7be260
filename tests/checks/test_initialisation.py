"""Reads of what nobody wrote: to the byte, told once, and never where the value does not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascsim
from ascsim import Pipe, profiles
from ascsim.checks import initialisation
from ascsim.checks.initialisation import unwritten_reads
from ascsim.diagnostics import Diagnostic
from ascsim.frontends.launch import launch
from ascsim.machine.words import Space
from checks.builder import MTE2, MTE3, Builder, V, gm, parts
from checks.programs import accesses
from checks.reference import Access


def found(builder: Builder) -> list[Diagnostic]:
    return builder.run(checks=[initialisation.check])


def test_a_read_of_nothing_is_told_to_the_byte() -> None:
    builder = Builder()
    a, b = builder.tile("a", 0, 4, 64), builder.tile("b", 0x1000, 4, 64)
    builder.op(MTE2, "TLOAD", [gm(0, 1024)], [a], line=1)
    builder.op(MTE2, "TLOAD", [gm(4096, 960)], [{"start": 0x1000, "length": 960, "object": b.number}], line=2)
    builder.op(V, "TADD", [a, b], [builder.tile("c", 0x2000, 4, 64)], line=3)
    (only,) = found(builder)
    assert (only.code, only.headline) == ("I001", "read of 64 bytes of UB that nothing has written")
    assert only.places[0].what == "PIPE_V read of b by TADD"
    assert only.notes == (
        "never written: UB 0x13c0 to 0x13ff (64 bytes)", "the first byte is element (3, 48) of b 4x64 f32 at UB 0x1000",
    )  # fmt: skip


def test_the_first_reader_is_told_and_nobody_after_it() -> None:
    builder = Builder()
    for line in (1, 2, 1, 2):
        builder.op(V, "TADD", [0], [0x1000], line=line)
    builder.op(MTE3, "TSTORE", [0x1000], [gm(0)], line=3)
    (only,) = found(builder)
    assert only.places[0].site is not None
    assert only.places[0].site.line == 1


def test_each_core_of_each_launch_begins_with_nothing() -> None:
    builder = Builder()
    for number in (1, 2):
        for builder.core in (0, 1):
            builder.launch(number)
            if (number, builder.core) != (2, 1):
                builder.op(MTE2, "TLOAD", [gm(0)], [0], line=1)
            builder.op(V, "TADD", [0], [0x1000], line=2)
            builder.end(number)
    (only,) = found(builder)
    assert only.count == 1


@pytest.mark.parametrize("mode", ["unused", "register", "state"])
def test_what_has_no_part_in_the_result_is_silent(mode: str) -> None:
    builder = Builder()
    builder.op(MTE2, "TLOAD", [gm(0)], [{"start": 0, "length": 100}], line=1)
    if mode == "unused":
        builder.op(V, "vbitsort", [{"start": 0, "length": 256, "unused": 1}], [0x1000], line=2)
    elif mode == "register":  # lanes beyond byte 100 may be masked later
        builder.op(V, "vlds", [{"start": 0, "length": 256}], [], line=2)
    else:
        builder.op(V, "query", [{"space": Space.STATE, "start": 0, "length": 16}], [0x1000], line=2)
    assert found(builder) == []


def test_a_register_load_of_nothing_at_all() -> None:
    builder = Builder()
    builder.op(V, "vlds", [{"start": 0, "length": 256}], [], line=2)
    assert [d.code for d in found(builder)] == ["I001"]


def test_steps_work_on_whole_blocks_beyond_the_valid_region() -> None:
    builder = Builder()
    a = builder.tile("a", 0, 2, 64, valid_cols=50)
    builder.op(MTE2, "TLOAD", [gm(0, 400)], [{"start": 0, "length": 200, "n1": 2, "s1": 256}], line=1)
    root = builder.op(V, "TSORT32", line=2)
    builder.op(V, "vbitsort", [a], [0x1000], line=2, parent=root)
    assert found(builder) == []
    builder.op(V, "vadd", [a], [0x1000], line=3)
    assert [d.notes[0] for d in found(builder)] == ["never written: UB 0xc8 to 0x1ff (112 bytes, 112 of the 312)"]


def written_before(ops: list[tuple[bool, Access]]) -> list[bool]:
    """Whether each read finds all its bytes written, naively."""
    done: set[tuple[int, int]] = set()
    verdicts = []
    for write, access in ops:
        bytes_ = {(space, byte) for space, byte in access.bytes if byte >= 0 and space != Space.GM}
        if write:
            done |= bytes_
        else:
            verdicts.append(bytes_ <= done)
    return verdicts


@settings(max_examples=150, deadline=None)
@given(ops=st.lists(st.tuples(st.booleans(), accesses()), min_size=1, max_size=12))
def test_agrees_with_sets_of_bytes(ops: list[tuple[bool, Access]]) -> None:
    builder = Builder()
    for write, access in ops:
        fields = dict(access.fields)
        builder.op(V, "op", [] if write else [fields], [fields] if write else [])
    context = builder.context(compile=False)
    reads = [number for number, access in enumerate(context.trace.accesses) if access["mode"] == 1]
    told = set(unwritten_reads(context).tolist())
    assert [number not in told for number in reads] == written_before(ops)


@settings(max_examples=30, deadline=None)
@given(ops=st.lists(st.tuples(st.booleans(), accesses()), min_size=1, max_size=12), size=st.integers(1, 8))
def test_compiled_and_plain_agree_and_so_do_parts(ops: list[tuple[bool, Access]], size: int) -> None:
    builder = Builder()
    for write, access in ops:
        fields = dict(access.fields)
        builder.op(V, "op", [] if write else [fields], [fields] if write else [])
    plain, compiled = (unwritten_reads(builder.context(compile=compile)).tolist() for compile in (False, True))
    with parts(size):
        parted = unwritten_reads(builder.context(compile=False)).tolist()
    assert plain == compiled == parted


# GM


def fresh_block(builder: Builder, size: int = 1024) -> None:
    builder.note("allocation", name="", start=0x1000, size=size, row=0, fresh=True)


def test_global_memory_that_nobody_filled() -> None:
    builder = Builder()
    fresh_block(builder)
    builder.note("host_write", start=0x1000, size=512, site=0, row=0)
    builder.op(MTE2, "TLOAD", [gm(0x1000, 512)], [0], line=1)
    assert found(builder) == []
    builder.op(MTE2, "TLOAD", [gm(0x1100, 512)], [0], line=2)
    (only,) = found(builder)
    assert (only.code, only.headline) == (
        "I002",
        "read of 256 bytes of GM that neither the host nor a kernel has written",
    )
    assert only.notes[0] == "never written: GM 0x1200 to 0x12ff (256 bytes)"


def test_global_memory_that_a_kernel_filled_in_parts() -> None:
    builder = Builder()
    fresh_block(builder)
    for start in (0x1000, 0x1200):
        builder.op(MTE3, "TSTORE", [], [gm(start, 512)], line=1)
    builder.op(MTE2, "TLOAD", [gm(0x1100, 512)], [0], line=2)
    builder.note("host_read", start=0x1000, size=1024, site=0, row=3)
    assert found(builder) == []


def test_a_result_that_was_written_in_part() -> None:
    builder = Builder()
    fresh_block(builder)
    builder.op(MTE3, "TSTORE", [], [gm(0x1000, 1000)], line=1)
    builder.note("host_read", start=0x1000, size=1024, site=0, row=1)
    (only,) = found(builder)
    assert (only.code, only.headline) == ("I003", "24 bytes of 1024 that are copied to the host were never written")
    assert only.notes == ("the first is byte 1000 of the block of 1024 bytes at GM 0x1000",)


@pytest.mark.parametrize("stop", ["refused", "not_run", None])
def test_a_kernel_that_did_not_finish_is_told_as_such_only(stop: str | None) -> None:
    builder = Builder()
    fresh_block(builder)
    builder.launch(1)
    builder.op(MTE3, "TSTORE", [], [gm(0x1000, 512)], line=1)
    builder.end(1)
    if stop:
        builder.note(stop, row=1)
    builder.note("host_read", start=0x1000, size=1024, site=0, row=3)
    assert [d.code for d in found(builder)] == ([] if stop else ["I003"])


def test_memory_that_the_caller_gave_is_full() -> None:
    builder = Builder()
    builder.note("allocation", name="x", start=0x1000, size=1024)
    builder.op(MTE2, "TLOAD", [gm(0x1000, 512)], [0], line=1)
    assert found(builder) == []


# Kernels


def run(body: Any, arch: str = "a2a3", **arrays: np.ndarray) -> list[Diagnostic]:
    return launch("kernel", body, profiles.find(arch), 1, arrays).diagnostics


@pytest.mark.parametrize("arch", profiles.NAMES)
@pytest.mark.parametrize("load", [False, True])
def test_a_kernel_that_forgets_an_operand(arch: str, load: bool) -> None:
    def body(x: Any, y: Any) -> None:
        a, b = (ascsim.tile("f32", 4, 64, valid=(4, 50), name=name) for name in "ab")
        ascsim.tload(a, x)
        if load:
            ascsim.tload(b, x)
        ascsim.set_flag(Pipe.MTE2, Pipe.V, 0)
        ascsim.wait_flag(Pipe.MTE2, Pipe.V, 0)
        ascsim.tadd(a, a, b)
        ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.tstore(y, a)

    told = run(body, arch, x=np.ones((4, 50), np.float32), y=np.zeros((4, 50), np.float32))
    assert [d.code for d in told if d.code.startswith("I")] == ([] if load else ["I001"])
    assert load or "read of 800 bytes of UB" in told[-1].headline
