"""Races between the cores of one launch: bytes of GM that two of them touch, one writing. Only signals order cores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ascsim.checks import clocks
from ascsim.checks.context import PLAIN_BURSTS, Context, Found
from ascsim.checks.naming import Tiles, bytes_text
from ascsim.checks.spans import clusters, common, touched
from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.machine.trace import ATOMIC, CACHED, Mode, all_bursts
from ascsim.machine.words import Space

CATALOGUE.add(
    "R101", Severity.ERROR, "Blocks of one launch touch the same bytes of GM",
    "The blocks of a launch run at the same time on several cores, in no order. Here two of them touch the same bytes "
    "of global memory, at least one writes, and no signal between them orders the two: what is read, or what remains, "
    "depends on which comes first.\n\n"
    "Give every block its own part of the output (look at how the offset is computed from the block index, and at the "
    "last block's length), or do the step that must come later in a second launch.\n\n"
    "Example:\n"
    "    auto offset = get_block_idx() * 60;   // blocks write 64 elements each: must be * 64\n"
    "    TSTORE(out(offset), tile);",
)  # fmt: skip


_OF_BLOCKS = (
    "nothing orders the cores of a launch",
    "Give each block its own bytes of GM, signal between the cores, or do the later step in a second launch.",
)
_OF_SIGNALS = (
    "no signal between the cores orders the two",
    "Let the one core arrive at a signal after its access, on the pipe that does it, and the other wait for that signal "
    "before its own.",
)
_PAIRS = 2_000_000
"""Pairs of accesses that are compared at most, in launches whose cores signal each other."""


def check(context: Context) -> Iterator[Found]:
    """Findings of GM bytes that cores of one launch share."""
    visit, trace = context.visit, context.trace
    if (np.diff(visit.launch) > 0).all():  # no launch has two cores
        return
    numbers, owner, low, high = _shared_bursts(context)
    if not len(numbers):
        return
    rows = trace.rows_of(numbers)
    core = context.cores_of(rows)
    writes = trace.accesses["mode"][numbers] == Mode.WRITE
    launch = visit.launch[core]
    signalled = np.isin(launch, list(context.order.launches))[owner]
    apart, together = np.flatnonzero(~signalled), np.flatnonzero(signalled)
    columns = (low, high, writes[owner], core[owner], launch[owner])
    first, second = _conflicts(context, *(column[apart] for column in columns))
    coherent = np.isin(numbers, list(context.lines.coherent))[owner]
    pairs = [(apart[first], apart[second]), _unordered(context, rows[owner], *columns[:-1], coherent, together)]
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    yield from _findings(context, numbers[owner[first]], numbers[owner[second]])


def _unordered(
    context: Context, rows: np.ndarray, low: np.ndarray, high: np.ndarray, writes: np.ndarray, core: np.ndarray,
    coherent: np.ndarray, bursts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Pairs of ``bursts``, sorted by first byte, of two cores that share a byte, one writing, in no order.

    ``coherent`` are those of scalar units that mean to share the bytes: they need no order among themselves.
    """
    order, positions, pipes = context.order, context.positions(rows), context.trace.rows["pipe"][rows]
    found: dict[tuple[int, int], tuple[int, int]] = {}
    compared: set[tuple[int, int]] = set()
    open_bursts: list[int] = []
    budget = _PAIRS
    for i in bursts.tolist():
        open_bursts = [
            j
            for j in open_bursts
            if high[j] > low[i] and context.visit.launch[core[j]] == context.visit.launch[core[i]]
        ]
        for j in open_bursts:
            pair = int(rows[j]), int(rows[i])
            if core[j] == core[i] or not (writes[j] or writes[i]) or pair in compared or (coherent[i] and coherent[j]):
                continue
            budget -= 1
            if budget < 0:
                context.hidden.append("the check of the cores of a launch gave up comparing: more races may be there")
                return _pairs(found)
            compared.add(pair)
            a, b = (int(core[j]), int(pipes[j]), int(positions[j])), (int(core[i]), int(pipes[i]), int(positions[i]))
            if not order.knows(*a, *b) and not order.knows(*b, *a):
                found[pair] = j, i
        open_bursts.append(i)
    return _pairs(found)


def _pairs(found: dict[tuple[int, int], tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    both = np.array(list(found.values()), np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _shared_bursts(context: Context) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bursts of GM accesses whose extents meet those of another core, one of them writing; by launch and first byte.

    Returns the accesses' numbers, and for each burst which of them it is of, its first byte and one past its last.
    """
    visit, trace = context.visit, context.trace
    empty = np.zeros(0, np.int64)
    if not len(context.suspects.gm):
        return empty, empty, empty, empty
    numbers, _, core, low, high, writes = context.gm
    cluster = clusters(visit.launch[core], low, high)
    wrote = np.bincount(cluster, writes) > 0
    size = len(wrote)
    lowest, highest = np.full(size, len(visit.core)), np.full(size, -1)
    np.minimum.at(lowest, cluster, core)
    np.maximum.at(highest, cluster, core)
    numbers = numbers[(wrote & (lowest < highest))[cluster]]
    numbers = numbers[_needed(context, numbers)]
    accesses = trace.accesses[numbers]
    owner, starts = all_bursts(accesses, trace.shapes[accesses["shape"]])
    ends = starts + accesses["length"][owner]
    launch = visit.launch[context.cores_of(trace.rows_of(numbers))]
    order = np.lexsort((starts, launch[owner]))
    return numbers, owner[order], starts[order], ends[order]


def _needed(context: Context, numbers: np.ndarray) -> np.ndarray:
    """Indices of the accesses that no earlier one of their core equals: a loop's repetitions tell nothing new.

    Where cores signal each other, they do.
    """
    records = context.trace.accessed(numbers)
    names = ("mode", "start", "length", "shape")
    columns = [records[name].astype(np.int64) for name in names]
    core = context.cores_of(context.trace.rows_of(numbers))
    if not len(numbers):
        return np.zeros(0, np.int64)
    signalled = np.isin(context.visit.launch[core], list(context.order.launches))
    columns.append(np.where(signalled, numbers, 0))
    _, first = np.unique(np.stack([core, *columns]), axis=1, return_index=True)
    return np.sort(first)


def _conflicts(context: Context, *columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the bursts of each conflict that :func:`ascsim.checks.clocks.find_shared` finds."""
    n = len(columns[0])
    first, second = np.zeros(n, np.int64), np.zeros(n, np.int64)
    is_long = context.compile or (context.compile is None and n > PLAIN_BURSTS)
    find = context.loop(clocks.find_shared, is_long)
    arguments = [np.ascontiguousarray(column, np.int64) for column in columns]
    if not is_long:
        arguments = [column.tolist() for column in arguments]
    found = find(*arguments, np.full((2, 2), -1, np.int64), first, second)
    return first[:found], second[:found]


def _findings(context: Context, first: np.ndarray, second: np.ndarray) -> Iterator[Found]:
    """One finding for each pair of instructions; the row that was carried out later is to blame."""
    if not len(first):
        return
    trace = context.trace
    earlier, later = np.where(trace.rows_of(first) < trace.rows_of(second), [first, second], [second, first])
    roots = [context.roots(trace.rows_of(side)) for side in (later, earlier)]
    keys = [trace.rows[name][root].astype(np.int64) for root in roots for name in ("site", "mnemonic")]
    keys += [trace.accesses["mode"][side].astype(np.int64) for side in (later, earlier)]
    # (site, mnemonic, mode) of the later one, then of the earlier: the same two the other way round are the same pair.
    columns = np.stack(keys)[[0, 1, 4, 2, 3, 5]]
    turned = columns[[3, 4, 5, 0, 1, 2]]
    swap = np.array([a > b for a, b in zip(columns.T.tolist(), turned.T.tolist(), strict=True)])
    pair = np.where(swap, turned, columns)
    reads_first = np.lexsort((later, trace.accesses["mode"][later]))  # RAW says more than WAR
    _, index, count = np.unique(pair[:, reads_first], axis=1, return_index=True, return_counts=True)
    chosen = reads_first[index]
    tiles = Tiles(trace)
    for turn in np.argsort(later[chosen], kind="stable"):
        yield _found(context, tiles, int(later[chosen[turn]]), int(earlier[chosen[turn]]), int(count[turn]))


def _found(context: Context, tiles: Tiles, later: int, earlier: int, count: int) -> Found:
    modes = context.trace.accesses["mode"]
    kind = "RAW" if modes[later] == Mode.READ else "WAW" if modes[earlier] == Mode.WRITE else "WAR"
    rows = tuple(int(context.trace.rows_of(number)) for number in (later, earlier))
    cores = [int(context.visit.core[context.cores_of(row)]) for row in rows]
    shared = common(touched(context.trace, later), touched(context.trace, earlier))
    kernel = context.kernel(rows[0])
    whats = tuple(
        f"core {core}: {context.pipe(row)} {'write' if modes[number] == Mode.WRITE else 'read'}"
        f"{f' of {tiles.name(number)}' if tiles.name(number) else ''} by {context.name(context.root(row))}"
        for core, row, number in zip(cores, rows, (later, earlier), strict=True)
    )
    steps = [text for text in map(context.step, rows) if text]
    signalled = int(context.visit.launch[context.cores_of(rows[0])]) in context.order.launches
    why, mend = _OF_SIGNALS if signalled else _OF_BLOCKS
    flags = context.trace.rows["flags"][list(rows)]
    return Found(
        "R101", Severity.ERROR,
        f"Potential {kind} hazard detected at GM{f' in {kernel}' if kernel else ''}, "
        f"between cores {cores[1]} and {cores[0]}",
        rows, whats, (f"both touch {bytes_text(Space.GM, shared)}", why, *steps), mend, count, key=kind,
        yields=rows[:1] if (flags & (CACHED | ATOMIC)).all() else (),
    )  # fmt: skip
