"""Unaligned loads and stores in vector registers: tails that nobody writes, registers that hold something else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ascsim.checks.context import Context, Found
from ascsim.diagnostics import CATALOGUE, Severity, plural
from ascsim.machine.trace import STREAM_OF_LOADS, Kind, Mode

LOST = CATALOGUE.add(
    "U001", Severity.ERROR, "The tail of an unaligned store is lost",
    "An unaligned store writes whole blocks of 32 bytes. What is left over stays in its unaligned register until the next "
    "store or a flush writes it, and nothing did: the last bytes are not in UB.\n\n"
    "After the last store of a stream call asc_storeunalign_post (asc_storeunalign_post_postupdate after stores that "
    "moved the pointer by a count), with the address where the data end.\n\n"
    "Example:\n"
    "    for (...) { asc_storeunalign_postupdate(dst, align, value, 64); }\n"
    "    asc_storeunalign_post_postupdate(dst, align, 0);   // without this line up to 31 bytes are lost",
)  # fmt: skip
ELSEWHERE = CATALOGUE.add(
    "U002", Severity.ERROR, "A flush of an unaligned register goes elsewhere",
    "A flush was given another address than the one where the stored data end. Its address and offset together are that "
    "end: the rest of the data belongs into the block before it.\n\n"
    "After stores that moved the pointer the offset is 0; after asc_storeunalign(dst, align, value, count) it is the "
    "number of elements that were stored from dst on.",
)  # fmt: skip
UNPRIMED = CATALOGUE.add(
    "U003", Severity.ERROR, "An unaligned load without its first block",
    "An unaligned load takes the bytes before the first whole block of 32 bytes from its unaligned register, and that "
    "holds another block, or none: these lanes are wrong.\n\n"
    "Call asc_loadunalign_pre with the load's address before it. Loads that follow one another, 256 bytes apart or by the "
    "count of asc_loadunalign_postupdate, need it only once.",
)  # fmt: skip

_FLUSH = "asc_storeunalign_post(dst, align, elements from dst to the end of the data)"


def check(context: Context) -> Iterator[Found]:
    """Findings of unaligned registers."""
    trace = context.trace
    numbers = context.suspects.state
    numbers = numbers[trace.kind[trace.rows_of(numbers)] == Kind.INSTRUCTION]
    if not len(numbers):
        return
    rows = trace.rows_of(numbers)
    edges = np.flatnonzero(np.isin(trace.kind, (Kind.VF_END, Kind.LAUNCH_END)))
    events = sorted([*zip(rows.tolist(), numbers.tolist(), strict=True), *((int(row), -1) for row in edges)])
    cores = context.cores_of(np.array([row for row, _ in events]))
    open_: dict[tuple[int, int], tuple[int, int, int]] = {}
    for (row, number), core in zip(events, cores.tolist(), strict=True):
        if number < 0:
            yield from _all_lost(context, open_, core)
            continue
        access = trace.accesses[number]
        register, low, length = int(access["unused"]), int(access["start"]), int(access["length"])
        key = (core, register)
        if register & STREAM_OF_LOADS:
            yield _unprimed(context, row, low)
        elif access["mode"] == Mode.READ:
            before = open_.pop(key, None)
            if not length and before:
                yield _elsewhere(context, row, low, before)
        else:
            if key in open_:
                yield _lost(context, open_[key])
            open_[key] = (row, low, length)
    yield from _all_lost(context, open_, None)


def _all_lost(
    context: Context, tails: dict[tuple[int, int], tuple[int, int, int]], core: int | None
) -> Iterator[Found]:
    """What is left at the end of a vector function or launch of a core, or of the trace."""
    for key in [key for key in tails if core is None or key[0] == core]:
        tail = tails.pop(key)
        if not context.stopped[key[0]]:
            yield _lost(context, tail)


def _lost(context: Context, tail: tuple[int, int, int]) -> Found:
    row, low, length = tail
    what = f"UB {low:#x} to {low + length - 1:#x} ({plural(length, 'byte')})"
    return Found(
        LOST.code, Severity.ERROR, f"The tail of an unaligned store is lost: {what}", (row,),
        (f"unaligned store by {context.name(row)}",),
        ("the bytes stay in the unaligned register: no store goes on behind them, and no flush writes them",),
        f"After the last store call {_FLUSH}.",
    )  # fmt: skip


def _elsewhere(context: Context, row: int, given: int, tail: tuple[int, int, int]) -> Found:
    store, low, length = tail
    return Found(
        ELSEWHERE.code, Severity.ERROR,
        f"The flush of an unaligned register goes to {given:#x}, but its data end at UB {low + length:#x}", (row, store),
        (f"flush by {context.name(row)}", f"unaligned store by {context.name(store)}"),
        (f"the register holds the {plural(length, 'byte')} from UB {low:#x} on",),
        f"Give it the end of the data: {_FLUSH}.",
    )  # fmt: skip


def _unprimed(context: Context, row: int, at: int) -> Found:
    return Found(
        UNPRIMED.code, Severity.ERROR, f"Unaligned load at UB {at:#x} without its first block in the register", (row,),
        (f"unaligned load by {context.name(row)}",),
        (f"the first {32 - at % 32} bytes come from what the register held",),
        "Call asc_loadunalign_pre(align, src) with the load's address before it.",
    )  # fmt: skip
