"""Vector functions: loads and stores of registers that meet in UB without a memory barrier between them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ascsim.checks import clocks
from ascsim.checks.calls import calls_of
from ascsim.checks.context import Context, Found
from ascsim.checks.naming import Tiles, bytes_text
from ascsim.checks.spans import common, touched
from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.machine.trace import Kind
from ascsim.machine.words import MemoryBarrier, Space

_WHY = (
    "Loads and stores of vector registers run side by side inside a vector function. Two of them that use the same register "
    "keep their order; two that use different registers and touch the same bytes of UB do not, unless asc_mem_bar stands "
    "between them. At the end of the vector function all are done.\n\n"
)  # fmt: skip
CATALOGUE.add(
    "R005", Severity.ERROR, "Load after store in a vector function without a memory barrier (RAW)",
    _WHY + "Here a load reads bytes that a store before it writes, and may get what was there before.\n\n"
    "Put asc_mem_bar(VST_VLD) between the two. (VST_LD is for scalar loads.) In a loop, first see whether the value can "
    "stay in a register.\n\n"
    "Example:\n"
    "    asc_storealign(buffer, x, mask);\n"
    "    asc_mem_bar(VST_VLD);              // missing\n"
    "    asc_loadalign(y, buffer);",
)  # fmt: skip
CATALOGUE.add(
    "R006", Severity.ERROR, "Two stores in a vector function without a memory barrier (WAW)",
    _WHY + "Here two stores write the same bytes, and either may come last.\n\n"
    "Put asc_mem_bar(VST_VST) between the two, or leave the first one out.",
)  # fmt: skip


def check(context: Context) -> Iterator[Found]:
    """Findings of register stores that a later load or store does not wait for."""
    hits = unbarred(context)
    tiles = Tiles(context.trace)
    for entry in hits.table[: int(hits.tally[0])]:
        yield _found(context, tiles, entry)


def unbarred(context: Context) -> clocks.Hits:
    """What :func:`ascsim.checks.clocks.find_unbarred` finds."""
    hits, trace = clocks.new_hits(), context.trace
    limits = context.profile.spaces.get(Space.UB.name)
    if limits is None or not len(context.suspects.by_register):
        return hits
    blocks = (limits.capacity + 65536) >> 5
    order, starts = (context.as_sequence(column) for column in (context.visit.order, context.visit.starts))
    find, shadows = context.loop(clocks.find_unbarred), np.zeros((4, blocks + 8), np.int64)
    chain, since = np.zeros(len(trace.rows), np.int32), np.zeros(6, np.int64)
    for begin, end in trace.stretches("looking at vector functions"):
        find(
            *context.tables, trace.masks, order, starts, int(Space.UB), blocks, *shadows, chain, hits, since, begin, end
        )
    return hits


def _found(context: Context, tiles: Tiles, entry: np.void) -> Found:
    later, earlier = int(entry["later"]), int(entry["earlier"])
    row, earlier_row = context.trace.rows_of(np.array([later, earlier])).tolist()
    is_raw = entry["kind"] == clocks.RAW
    code, kind, mode = ("R005", "RAW", "VST_VLD") if is_raw else ("R006", "WAW", "VST_VST")
    shared = common(touched(context.trace, later), touched(context.trace, earlier))
    position = tiles.position(later, shared[0][0])
    notes = [f"both touch {bytes_text(Space.UB, shared)}"]
    notes += [f"the first byte is {position}"] if position else []
    wrong = _wrong_barrier(context, row, earlier_row)
    notes += [wrong] if wrong else []
    kernel = context.kernel(row)
    return Found(
        code, Severity.ERROR,
        f"Potential {kind} hazard detected at UB{f' in {kernel}' if kernel else ''}, inside a vector function",
        (row, earlier_row),
        (f"{context.name(row)} {'loads' if is_raw else 'stores'}", f"{context.name(earlier_row)} stores"),
        tuple(notes),
        f"Add {calls_of(context.trace).memory_barrier(mode)} before {context.where(row, row)}.",
        int(entry["times"]), key=kind,
    )  # fmt: skip


def _wrong_barrier(context: Context, row: int, earlier_row: int) -> str:
    """A note on a memory barrier that stands between two rows and orders something else."""
    begin, end = (int(context.positions(r)) for r in (earlier_row, row))
    between = context.visit.rows(np.arange(begin + 1, end))
    bars = between[context.trace.kind[between] == Kind.MEM_BAR]
    if not len(bars):
        return ""
    bar = int(bars[-1])
    mode = MemoryBarrier(int(context.trace.rows["arg"][bar])).name
    return f"the barrier {mode} at {context.where(bar, row)} does not order the two"
