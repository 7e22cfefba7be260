"""The scalar unit's data cache: global memory that it reads stale, and what it wrote and nobody else can see yet.

:mod:`ascsim.checks.lines` finds them; this module puts them into words.
"""

from __future__ import annotations

from collections.abc import Iterator

from ascsim.checks.calls import calls_of
from ascsim.checks.context import Context, Found
from ascsim.checks.lines import STALE
from ascsim.checks.naming import Tiles, bytes_text
from ascsim.checks.spans import Intervals, common, touched
from ascsim.diagnostics import CATALOGUE, Severity, plural
from ascsim.machine.words import Space

CATALOGUE.add(
    "D001", Severity.ERROR, "Scalar read of global memory from a stale cache line",
    "The scalar unit reads global memory through a data cache of the core's own, in lines of 64 bytes. Here it had the "
    "line in its cache, then a copy or another core wrote bytes of it in global memory, and then it read them: it gets the "
    "old ones from its cache, for ever in a loop that waits for them.\n\n"
    "Drop the line between the write and the read, with dcci (asc_dcci_single); in a loop that polls, in each turn.\n\n"
    "Example:\n"
    "    while (*flag == 0) {                                // reads the cached 0 for ever\n"
    "        dcci(flag, cache_line_t::SINGLE_CACHE_LINE);    // missing\n"
    "    }",
)  # fmt: skip
CATALOGUE.add(
    "D002", Severity.ERROR, "Global memory read while its new bytes are in a scalar cache",
    "The scalar unit writes global memory through a data cache of the core's own: what it wrote reaches memory when the "
    "line is written back, by dcci or at the kernel's end. Here a copy or another core reads the bytes before that, and "
    "gets the old ones.\n\n"
    "Call dcci (asc_dcci_single) for each line of 64 bytes after the last write to it, before the reader goes on.\n\n"
    "Example:\n"
    "    table[0] = x;                                       // GM, by the scalar unit\n"
    "    dcci(table, cache_line_t::SINGLE_CACHE_LINE);       // missing\n"
    "    TLOAD(tile, tableGlobal);",
)  # fmt: skip


def check(context: Context) -> Iterator[Found]:
    """Findings of the data cache."""
    lines = context.lines
    if lines.left:
        context.hidden.append(f"{lines.left} more accesses beside the scalar unit's were not compared with them")
    tiles = Tiles(context.trace)
    for code, (later, earlier), count in lines.conflicts:
        yield _found(context, tiles, code, later, earlier, count)


def _found(context: Context, tiles: Tiles, code: str, later: int, earlier: int, count: int) -> Found:
    trace = context.trace
    rows = tuple(int(trace.rows_of(number)) for number in (later, earlier))
    shared: Intervals = common(touched(trace, later), touched(trace, earlier))
    size = plural(sum(high - low for low, high in shared), "byte")
    cores = [int(context.visit.core[context.cores_of(row)]) for row in rows]
    several = cores[0] != cores[1]
    whats = tuple(
        f"{f'core {core}: ' if several else ''}{context.pipe(row)} {verb}"
        f"{f' of {tiles.name(number)}' if tiles.name(number) else ''} by {context.name(context.root(row))}"
        for core, row, number, verb in zip(cores, rows, (later, earlier), ("read", "write"), strict=True)
    )
    drop = calls_of(trace).drop_line
    if code == STALE:
        headline = f"scalar read of {size} of GM from a cache line that is older"
        why = f"core {cores[0]} has the line in its data cache since before the write, and reads the old bytes there"
        mend = f"Call {drop} for the line after the write is done, before {context.where(rows[0], rows[0])}."
    else:
        headline = f"read of {size} of GM whose new values are still in a data cache"
        why = f"the scalar unit of core {cores[1]} wrote them to its data cache, and no call has written the line back"
        mend = f"Call {drop} for the line after {context.where(rows[1], rows[0])}."
    return Found(
        code, Severity.ERROR, headline, rows, whats, (f"both touch {bytes_text(Space.GM, shared)}", why), mend, count,
        covers=rows,
    )  # fmt: skip
