"""What the rows of a trace come to in cycles: their work, counted from the trace, times the chip's cost table.

Cycles are counted exactly: a cost is a fraction, rounded down to a multiple of 2**-24 of a cycle, and an instruction
takes the whole cycles that it begins. So a trace has the same cycles on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ascsim.machine.dtypes import BY_CODE
from ascsim.machine.trace import FOLDED, Kind, Mode, Trace
from ascsim.machine.words import Pipe, Space
from ascsim.profiles.costs import LANES, Costs, Entry

_BITS = 24
_PIECE = 256
_BLOCK = 32
"""A repeat works on 256 bytes: one burst, or up to eight blocks with a stride between them."""


@dataclass(frozen=True)
class Work:
    """For each row of a trace (int64 unless said otherwise); of a row that stands for turns of a loop, what one comes to.

    ``bytes``, ``bursts``, ``repeats`` (of 256 bytes) and ``elements`` are those of the longest operand, ``results`` the
    elements of the longest one that is written; ``gm`` are the bytes of global memory that it reads or writes.
    """

    bytes: np.ndarray
    bursts: np.ndarray
    repeats: np.ndarray
    results: np.ndarray
    gm: np.ndarray
    elements: np.ndarray
    route: np.ndarray
    """(source space + 1) * 16 + destination space + 1; 0 stands for none."""


@dataclass(frozen=True)
class Cycles:
    """For each row (int64): ``busy`` cycles for which it holds its pipe, and ``latency`` more until it is complete. A row that
    stands for turns of a loop is busy in each of them, and has the latency of one.

    ``guessed`` of the two together are guesses. ``entry`` is the number of its entry in the cost table, -1 for none.
    """

    busy: np.ndarray
    latency: np.ndarray
    guessed: np.ndarray
    entry: np.ndarray


def work_of(trace: Trace) -> Work:
    """Count the work of every row, from the bytes it touches."""
    accesses, shapes = trace.accesses, trace.shapes
    owner = np.repeat(np.arange(len(trace.rows)), np.diff(trace.first_access))
    shape = np.where((trace.rows["flags"] & FOLDED)[owner], 0, accesses["shape"])
    counts = (shapes["n1"].astype(np.int64) * shapes["n2"] * shapes["n3"])[shape]
    length = accesses["length"].astype(np.int64)
    space, writes = accesses["space"].astype(np.int64), accesses["mode"] == Mode.WRITE
    memory = space != Space.STATE
    total = np.where(memory, counts * length, 0)
    inner = np.maximum(shapes["n1"].astype(np.int64), 1)[shape]
    stride = np.abs(shapes["s1"])[shape]
    runs = inner * -(-length // _PIECE)
    runs[(length == _BLOCK) & (inner <= _PIECE // _BLOCK)] = 1
    close = (inner > 1) & (stride < _BLOCK)  # every so many elements of what lies together
    runs[close] = -(-((inner - 1) * stride + length) // _PIECE)[close]
    pieces = np.where(memory, counts // inner * runs, 0)
    size = np.array([BY_CODE[code].size if code in BY_CODE else 1 for code in range(256)], np.int64)
    item = size[trace.rows["dtype"]]

    def widest(values: np.ndarray) -> np.ndarray:
        out = np.zeros(len(trace.rows), np.int64)
        np.maximum.at(out, owner, values)
        return out

    def summed(values: np.ndarray) -> np.ndarray:
        return np.bincount(owner, values, len(trace.rows)).astype(np.int64)  # exact: below 2**53

    n_bytes = widest(total)
    source, target = widest(np.where(writes | ~memory, 0, space + 1)), widest(np.where(writes & memory, space + 1, 0))
    return Work(
        bytes=n_bytes,
        bursts=widest(np.where(memory, counts, 0)),
        repeats=widest(pieces),
        results=widest(np.where(writes, total, 0)) // item,
        gm=summed(np.where(space == Space.GM, total, 0)),
        elements=n_bytes // item,
        route=source * 16 + target,
    )


def lanes_of(trace: Trace, inside: np.ndarray) -> np.ndarray:
    """The number in LANES for the vector instructions among rows ``inside`` vector functions (bool); -1 elsewhere."""
    lane = np.full(len(trace.rows), -1, np.int64)
    counted = trace.rows["n_access"].astype(np.int64)
    first = np.minimum(trace.first_access[:-1], max(len(trace.accesses) - 1, 0))
    writes = trace.accesses["mode"][first] == Mode.WRITE if len(trace.accesses) else np.zeros(len(trace.rows), bool)
    inside = inside & (trace.rows["pipe"] == Pipe.V) & (trace.kind == Kind.INSTRUCTION)
    lane[inside] = LANES.index("execute")
    lane[inside & (counted > 0) & ~writes] = LANES.index("load")
    lane[inside & (counted > 0) & writes] = LANES.index("store")
    return lane


def route_name(route: int) -> str:
    """``GM>UB``."""
    return ">".join(Space(code - 1).name if code else "" for code in (route // 16, route % 16))


def cycles_of(
    trace: Trace, work: Work, costs: Costs, lane: np.ndarray, is_serial: np.ndarray, gm_share: np.ndarray,
    infinite: frozenset[int] = frozenset(),
) -> Cycles:  # fmt: skip
    """The cycles of every instruction of a trace.

    Args:
        lane: from :func:`lanes_of`.
        is_serial: rows that stand for several calls with a barrier after each.
        gm_share: for each row, how many cores share the bandwidth of global memory with its own.
        infinite: pipes whose work takes no time.
    """
    rows = trace.rows
    busy, latency, guessed = (np.zeros(len(rows), np.int64) for _ in range(3))
    entry_of = np.full(len(rows), -1, np.int64)
    numbers = np.flatnonzero(trace.kind == Kind.INSTRUCTION)
    if not len(numbers):
        return Cycles(busy, latency, guessed, entry_of)
    key = rows["mnemonic"][numbers].astype(np.int64)
    for column in (rows["dtype"][numbers], work.route[numbers], rows["pipe"][numbers], lane[numbers] + 1):
        key = key << 8 | column.astype(np.int64)
    kinds, member = np.unique(key, return_inverse=True)
    order = np.argsort(member, kind="stable")
    bounds = np.searchsorted(member[order], np.arange(len(kinds) + 1))
    units = {
        "call": np.ones(len(rows), np.int64), "work": rows["work"].astype(np.int64), "repeats": work.repeats,
        "bytes": work.bytes, "bursts": work.bursts, "results": work.results,
    }  # fmt: skip
    calls = np.where(is_serial, np.maximum(rows["arg"].astype(np.int64), 1), 1)
    for number, kind in enumerate(kinds.tolist()):
        at = numbers[order[bounds[number] : bounds[number + 1]]]
        entry = _entry_of(trace, costs, kind)
        if kind >> 8 & 0xFF in infinite:
            continue
        each, fixed = _of_units(entry, costs, units, at, work, gm_share), _quantised(entry.fixed)
        # a row of several calls, one after the other, pays for each; one of several that overlap pays once
        whole = _whole(each + (calls[at] - 1) * fixed)
        busy[at] = np.maximum(whole, 1)
        latency[at] = np.maximum(_whole(each + calls[at] * fixed) - busy[at], 0)
        busy[at] *= trace.calls[at]
        entry_of[at] = costs.entries.index(entry)
        guessed[at] = busy[at] * ("each" in entry.guessed) + latency[at] * ("fixed" in entry.guessed)
    return Cycles(busy, latency, guessed, entry_of)


def _of_units(
    entry: Entry, costs: Costs, units: dict[str, np.ndarray], at: np.ndarray, work: Work, gm_share: np.ndarray
) -> np.ndarray:
    """What the units of some rows take, in multiples of 2**-24 cycles; at least what global memory needs for them."""
    each = np.zeros(len(at), np.int64)
    for unit, cost in entry.each.items():
        each += units[unit][at] * _quantised(cost)
    shared = _quantised(1 / costs.gm_bytes)
    return np.maximum(each, work.gm[at] * gm_share[at] * shared)


def _entry_of(trace: Trace, costs: Costs, kind: int) -> Entry:
    mnemonic, dtype, route, pipe, lane = (kind >> shift & 0xFF for shift in (32, 24, 16, 8, 0))
    mnemonic = kind >> 32
    names = [table[mnemonic] for table in (trace.mnemonics, trace.titles) if mnemonic in table]
    element = BY_CODE[dtype].name if dtype in BY_CODE else ""
    return costs.entry(names, element, route_name(route), Pipe(pipe).name, LANES[lane - 1] if lane else "")


def _quantised(cost: Fraction) -> int:
    return (cost.numerator << _BITS) // cost.denominator


def _whole(quantised: np.ndarray) -> np.ndarray:
    """Begun cycles count."""
    return -(-quantised >> _BITS)
