"""Reads of bytes that nothing has written: local memory since the core began, and global memory since it was allocated.

What counts is what an instruction uses. Bytes that it fetches without using them do not (the trace marks them), nor do
lanes beyond a tile's valid region that a step of an expansion works on, because whole blocks are what it works on. Of a
register load nobody can tell from the trace which lanes are used later, so it is reported where none of its bytes was
ever written.

After an instruction has read such bytes, what it writes counts as written: the first reader is the one to mend.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascsim.checks import written
from ascsim.checks.context import Context, Found
from ascsim.checks.naming import Tiles, bytes_text, element, space_name, tile_bytes
from ascsim.checks.spans import Intervals, calls, common, extent, merged, touched, without
from ascsim.diagnostics import CATALOGUE, Place, Severity, plural
from ascsim.machine.trace import SITE_PC, Mode
from ascsim.machine.words import Space

_MARGIN = 65536
"""Bytes beyond a memory that are still watched."""
_LOOKED_AT = 1000
"""So many different reads are worked out to the byte."""
_LINES = 64
"""So many bursts in a line are remembered as written."""

CATALOGUE.add(
    "I001", Severity.ERROR, "Read of local memory that was never written",
    "An instruction uses bytes of UB (or another memory of the core) that nothing has written since the core began. On "
    "a chip they hold whatever the kernel before left there: the result is right on one run and wrong on the next.\n\n"
    "Load or fill the bytes first; or give the operand fewer valid rows and columns, if they were not meant to be read. "
    "Lanes that take no part in the result may hold anything: masked lanes, and columns beyond the valid ones.\n\n"
    "`ascsim run --fill nan` (or random, zero) chooses what such memory holds, so that its use shows in the results.\n\n"
    "Example:\n"
    "    TLOAD(a, global);       // 16 rows of 60 columns\n"
    "    TADD(c, a, b);          // nothing was loaded into b",
)  # fmt: skip
CATALOGUE.add(
    "I002", Severity.ERROR, "Read of global memory that was never written",
    "A kernel reads bytes of a block of device memory that neither a copy from the host nor a kernel has written since "
    "it was allocated. On a chip they hold anything.\n\n"
    "Copy the data there before the launch (aclrtMemcpy), or fill it (aclrtMemset). An accumulation into an output needs "
    "zeros in it first.",
)  # fmt: skip
CATALOGUE.add(
    "I003", Severity.WARNING, "Result copied to the host that no kernel wrote",
    "The program copies bytes of device memory to the host that neither a kernel nor a copy has written since they were "
    "allocated: a kernel that did not run, or that left a part of its output out (the last rows, the last block).\n\n"
    "Look at the bytes that are named, and at the kernel's offsets and sizes.",
)  # fmt: skip


def check(context: Context) -> Iterator[Found]:
    """Findings of reads of bytes that were never written; none where the trace lacks writes."""
    if context.trace.noted("untraced"):
        context.hidden.append(
            "reads of bytes never written were not looked for: the scalar unit's writes were not traced"
        )
        return
    yield from _local(context)
    yield from _global(context)


# Local memories


def _local(context: Context) -> Iterator[Found]:
    numbers = unwritten_reads(context)
    if not len(numbers):
        return
    tiles = Tiles(context.trace)
    told: dict[Hashable, Intervals] = {}
    for number in _distinct(context, numbers).tolist():
        row = int(context.trace.rows_of(number))
        access = context.trace.accesses[number]
        missing = _missing(context, number)
        if not _writes_memory(context, row):
            unknown = [call for call in calls(context.trace, number) if common(missing, call) == call]
            missing = merged([part for call in unknown for part in call])
        elif context.root(row) != row:
            missing = _valid_part(tiles, number, missing)
        launch = int(context.visit.launch[context.cores_of(row)])
        if context.launches.get(launch, {}).get("is_host_code"):
            continue  # the program writes local memory without instructions
        place = (launch, int(access["space"]))
        before = told.get(place, [])
        if not missing or common(missing, before) == missing:
            continue
        told[place] = merged([*before, *missing])
        yield _found(context, tiles, number, missing)


def unwritten_reads(context: Context) -> np.ndarray:
    """Numbers of the accesses that :func:`ascsim.checks.written.find_unwritten` finds."""
    trace, visit = context.trace, context.visit
    if not len(trace.accesses):
        return np.zeros(0, np.int64)
    bases, sizes = np.zeros(256, np.int64), np.zeros(256, np.int64)
    total = 0
    for name, limits in context.profile.spaces.items():
        bases[Space[name]], sizes[Space[name]] = total, (limits.capacity + _MARGIN) >> written.BLOCK_BITS
        total += sizes[Space[name]]
    sizes[[Space.GM, Space.STATE]] = 0
    found = np.zeros(len(trace.accesses), np.int64)
    columns = [context.as_sequence(column) for column in (visit.order, visit.starts, bases, sizes)]
    table, whole, count = np.zeros(total, np.int64), np.zeros((256, 2), np.int64), 0
    lines = np.zeros((_LINES, 5), np.int64)
    find = context.loop(written.find_unwritten)
    for begin, end in trace.stretches("looking for reads of nothing written"):
        count = find(*context.tables, trace.masks, *columns, table, whole, lines, found, begin, end, count)
    return found[:count]


def _distinct(context: Context, numbers: np.ndarray) -> np.ndarray:
    """The first reads of each instruction (by site) at each place; a loop's repetitions tell nothing new."""
    trace = context.trace
    records, rows = trace.accessed(numbers), trace.rows_of(numbers)
    roots = context.roots(rows)
    columns = [trace.rows[name][roots].astype(np.int64) for name in ("site", "mnemonic")]
    columns += [records[name].astype(np.int64) for name in ("space", "operand", "start", "length", "shape")]
    columns.append(context.visit.launch[context.cores_of(rows)])
    _, first = np.unique(np.stack(columns), axis=1, return_index=True)
    if len(first) > _LOOKED_AT:
        context.hidden.append(f"{len(first) - _LOOKED_AT} more reads of bytes never written were not looked at")
    return numbers[np.sort(first)[:_LOOKED_AT]]


def _missing(context: Context, number: int) -> Intervals:
    """The bytes of a read that its core had not written before."""
    trace = context.trace
    row = int(trace.rows_of(number))
    core, at = int(context.cores_of(row)), int(context.positions(row))
    rows = context.visit.rows(np.arange(context.visit.starts[core], at))
    spans = np.concatenate(
        [np.arange(trace.first_access[r], trace.first_access[r + 1]) for r in rows.tolist()] or [rows]
    )
    return without(touched(trace, number), _written_by(context, spans, number))


def _written_by(context: Context, numbers: np.ndarray, reader: int) -> Intervals:
    """The bytes that the writes among some accesses left where a read reaches."""
    trace = context.trace
    records = trace.accesses[numbers]
    low, high = extent(trace.accesses[[reader]], trace.shapes)
    lows, highs = extent(records, trace.shapes)
    near = (records["space"] == trace.accesses["space"][reader]) & (records["mode"] == Mode.WRITE)
    near &= (lows < high) & (highs > low)
    return merged([part for number in numbers[near].tolist() for part in touched(trace, number)])


def _writes_memory(context: Context, row: int) -> bool:
    first = context.trace.first_access
    return bool((context.trace.accesses["mode"][first[row] : first[row + 1]] == Mode.WRITE).any())


def _valid_part(tiles: Tiles, number: int, missing: Intervals) -> Intervals:
    """What of some bytes of an access is an element in the valid region of its tile, or not in the tile at all."""
    tile = tiles.of(number)
    if tile is None or tile.get("type") != "tile" or tile["address"] < 0:
        return missing
    if (tile["valid_rows"], tile["valid_cols"]) == (tile["rows"], tile["cols"]):
        return missing
    inside = common(missing, [tile_bytes(tile)])
    valid = [(b, b + 1) for low, high in inside for b in range(low, high) if _is_valid(tile, b)]
    return merged([*without(missing, [tile_bytes(tile)]), *valid])


def _is_valid(tile: dict[str, Any], byte: int) -> bool:
    at = element(tile, byte)
    return at is None or (at[0] < tile["valid_rows"] and at[1] < tile["valid_cols"])


def _found(context: Context, tiles: Tiles, number: int, missing: Intervals) -> Found:
    row = int(context.trace.rows_of(number))
    access = context.trace.accesses[number]
    space = int(access["space"])
    size = sum(high - low for low, high in missing)
    name = tiles.name(number)
    position = tiles.position(number, missing[0][0])
    notes = [f"never written: {bytes_text(space, missing)}"]
    notes += [f"the first byte is {position}"] if position else []
    notes += [step] if (step := context.step(row)) else []
    what = f"{context.pipe(row)} read{f' of {name}' if name else ''} by {context.name(context.root(row))}"
    return Found(
        "I001", Severity.ERROR,
        f"read of {plural(size, 'byte')} of {space_name(space)} that nothing has written",
        (row,), (what,), tuple(notes),
        "Load or fill them first, or give the operand fewer valid rows and columns.",
        key=(space, int(access["operand"]), int(access["object"])),
    )  # fmt: skip


# Global memory


@dataclass(frozen=True)
class _Block:
    """A block of device memory that held nothing when it was allocated, at row ``born``; freed at ``died``."""

    start: int
    end: int
    born: int
    died: float


def _global(context: Context) -> Iterator[Found]:
    blocks = _fresh_blocks(context)
    if not blocks:
        return
    trace = context.trace
    numbers, rows, _, low, high, is_write = context.gm
    tiles = Tiles(trace)
    told: set[Hashable] = set()
    for block in blocks:
        inside = (low < block.end) & (high > block.start) & (rows >= block.born) & (rows < block.died)
        copies = [
            n for n in trace.noted("host_write") if block.start <= n["start"] < block.end and n["row"] >= block.born
        ]
        writes = [(int(rows[i]), int(numbers[i])) for i in np.flatnonzero(inside & is_write).tolist()]

        def known(row: int, block: _Block = block, copies: list = copies, writes: list = writes) -> Intervals:
            """What of the block is written before a row."""
            done = [(n["start"], n["start"] + n["size"]) for n in copies if block.born <= n["row"] <= row]
            done += [part for at, number in writes if at < row for part in touched(trace, number)]
            return merged(done)

        whole = [(n["row"], n["start"], n["start"] + n["size"]) for n in copies]
        reads = np.flatnonzero(inside & ~is_write)
        for copied, begin, end in whole:  # the usual case: an input that the host filled
            reads = reads[~((rows[reads] >= copied) & (low[reads] >= begin) & (high[reads] <= end))]
        for i in reads.tolist():
            row, number = int(rows[i]), int(numbers[i])
            who = (int(trace.rows["site"][context.root(row)]), int(trace.accesses["operand"][number]), block.start)
            if who in told or len(told) > _LOOKED_AT:
                continue
            own = common(touched(trace, number), [(block.start, block.end)])
            missing = without(own, known(row))
            if missing:
                told.add(who)
                yield _read_of_fresh(context, tiles, number, missing, block)
        yield from _copied_back(context, block, known)


def _fresh_blocks(context: Context) -> list[_Block]:
    """Blocks of device memory whose contents are not given from the start."""
    blocks: list[_Block] = []
    for kind, data in context.trace.notes:
        if kind == "allocation" and data.get("fresh"):
            start = int(data["start"])
            blocks.append(_Block(start, start + int(data["size"]), int(data.get("row", 0)), float("inf")))
        elif kind == "free":
            for i in range(len(blocks) - 1, -1, -1):
                if blocks[i].start == data["start"] and blocks[i].died == float("inf"):
                    blocks[i] = _Block(blocks[i].start, blocks[i].end, blocks[i].born, float(data.get("row", 0)))
                    break
    return blocks


def _read_of_fresh(context: Context, tiles: Tiles, number: int, missing: Intervals, block: _Block) -> Found:
    row = int(context.trace.rows_of(number))
    size = sum(high - low for low, high in missing)
    name = tiles.name(number)
    what = f"{context.pipe(row)} read{f' of {name}' if name else ''} by {context.name(context.root(row))}"
    notes = (
        f"never written: {bytes_text(Space.GM, missing)}",
        f"the first is byte {missing[0][0] - block.start} of the block of {plural(block.end - block.start, 'byte')} at GM "
        f"{block.start:#x}",
    )
    return Found(
        "I002", Severity.ERROR, f"read of {plural(size, 'byte')} of GM that neither the host nor a kernel has written",
        (row,), (what,), notes, "Copy or fill the block before the launch.", key=int(context.trace.accesses["operand"][number]),
    )  # fmt: skip


def _copied_back(context: Context, block: _Block, known: Any) -> Iterator[Found]:
    """Copies to the host of bytes that nothing wrote. A kernel that stopped or did not run is told as such."""
    if context.stopped.any() or context.trace.noted("not_run"):
        return
    for note in context.trace.noted("host_read"):
        low, high, row = note["start"], note["start"] + note["size"], note["row"]
        if not (block.start <= low < block.end and block.born <= row <= block.died):
            continue
        missing = without([(low, min(high, block.end))], known(row))
        if not missing:
            continue
        size = sum(b - a for a, b in missing)
        site = context.sites(note["site"], SITE_PC) if note.get("site") else None
        yield Found(
            "I003", Severity.WARNING,
            f"{plural(size, 'byte')} of {high - low} that are copied to the host were never written",
            notes=(
                f"the first is byte {missing[0][0] - block.start} of the block of {plural(block.end - block.start, 'byte')} "
                f"at GM {block.start:#x}",
            ),
            mend="Look at the kernel's offsets and sizes, and at whether it ran.",
            places=(Place("copied here", site),) if site else (),
        )  # fmt: skip
