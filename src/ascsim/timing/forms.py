"""Which rows of a trace are alike in all that their work, their cost and their names depend on.

Long runs are loops: ten million rows have some dozen forms. What follows from a form is worked out once, from the first of
its rows, and a row needs no more than its form's number.

The loop is plain Python over sequences, in the part that Numba compiles (:mod:`ascsim.machine.native`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascsim.machine.native import as_sequence, compiled
from ascsim.machine.trace import FOLDED, Trace
from ascsim.machine.visit import Visit

_INSTRUCTION, _BARRIER, _VF_BEGIN, _VF_END, _ARRIVE, _AWAIT = 0, 3, 6, 7, 11, 12
_GM = 0
_FIRST, _COUNT, _INSIDE, _SERIAL, _SPAN, _LAUNCH, _HASH = 0, 1, 2, 3, 4, 5, 6
_COLUMNS = 7
_ROOM = 1 << 12
"""Forms that there is room for at first: most traces have fewer."""


@dataclass(frozen=True)
class Forms:
    """``of`` is the form of each row (int32). Of each form ``first`` is its first row as the cores came by them, ``count`` how
    many it has, ``inside`` whether they stand in a vector function, ``is_serial`` whether they stand for several calls with a
    barrier after each, ``is_span`` whether they have steps, and ``launch``, where they touch global memory, the launch (-1:
    they do not). ``uses`` says of each core of the visit whether it touches global memory."""

    of: np.ndarray
    first: np.ndarray
    count: np.ndarray
    inside: np.ndarray
    is_serial: np.ndarray
    is_span: np.ndarray
    launch: np.ndarray
    uses: np.ndarray

    def sample(self, trace: Trace) -> Trace:
        """The first rows of the forms as a trace; their parents are those of the whole trace."""
        begins = trace.first_access[self.first]
        counts = trace.first_access[self.first + 1] - begins
        numbers = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return Trace(trace.records(self.first), trace.accessed(numbers), trace.masks, trace.notes, trace.shapes)


def forms_of(trace: Trace, visit: Visit, is_long: bool, notice: Callable[[str], None] | None = None) -> Forms:
    """The forms of a trace's rows."""
    n = len(trace.rows)
    is_span = np.zeros(n, bool)
    for begin, end in trace.stretches("reading the trace"):
        parents = trace.rows["parent"][begin:end]
        is_span[parents[parents >= 0]] = True
    of, uses = np.zeros(n, np.int32), np.zeros(len(visit.core), bool)
    found, slots, state = np.zeros((_ROOM, _COLUMNS), np.int64), np.zeros(2 * _ROOM, np.int32), np.zeros(2, np.int64)
    tables: Any = (
        trace.rows,
        trace.first_access,
        trace.accesses,
        trace.shapes,
        visit.order,
        visit.starts,
        visit.launch,
    )
    tables = [as_sequence(table, is_long) for table in tables]
    number: Any = compiled(number_forms, notice) if is_long else number_forms
    refill: Any = compiled(fill_slots, notice) if is_long else fill_slots
    for begin, end in trace.stretches("sorting rows by form"):
        while begin < end:
            begin = number(*tables, is_span, of, uses, slots, found, state, begin, end)
            if begin < end:
                found = np.concatenate((found, np.zeros_like(found)))
                slots = np.zeros(2 * len(found), np.int32)
                refill(found, int(state[0]), slots)
    first, count, inside, serial, span, launch, _ = found[: state[0]].T.copy()
    return Forms(of, first, count, inside != 0, serial != 0, span != 0, launch, uses)


# The loop


def _mixed(number: int, value: int) -> int:
    """A number that depends on another one and a value."""
    return ((number ^ value) * 0x9E3779B1 + (value >> 29)) & 0x3FFFFFFFFFFFFFF


def _hash(row: Any, begin: int, end: int, accesses: Any, place: int, arg: int) -> int:
    """A number that rows of one form have in common."""
    number = _mixed(
        place, int(row["mnemonic"]) | int(row["pipe"]) << 16 | int(row["kind"]) << 24 | int(row["dtype"]) << 32
    )
    number = _mixed(number, int(row["work"]) | int(row["flags"]) << 32)
    number = _mixed(number, arg | int(row["pipe2"]) << 32)
    number = _mixed(number, row["site"])
    number = _mixed(number, int(row["body"]))
    for a in range(begin, end):
        access = accesses[a]
        number = _mixed(number, int(access["length"]) | int(access["space"]) << 32 | int(access["mode"]) << 40)
        if row["flags"] & FOLDED == 0:  # of the turns of a loop, each is one burst
            number = _mixed(number, int(access["shape"]))
    return number


def _is_alike(rows: Any, first: Any, accesses: Any, row: int, other: int, arg: int, other_arg: int) -> bool:
    """Whether two rows have one form, what stands around them apart."""
    a, b = rows[row], rows[other]
    if (
        a["mnemonic"] != b["mnemonic"] or a["pipe"] != b["pipe"] or a["kind"] != b["kind"] or a["dtype"] != b["dtype"]
        or a["work"] != b["work"] or a["flags"] != b["flags"] or a["pipe2"] != b["pipe2"] or a["site"] != b["site"]
        or a["body"] != b["body"] or arg != other_arg or first[row + 1] - first[row] != first[other + 1] - first[other]
    ):  # fmt: skip
        return False
    for index in range(first[row + 1] - first[row]):
        x, y = accesses[first[row] + index], accesses[first[other] + index]
        if x["space"] != y["space"] or x["mode"] != y["mode"] or x["length"] != y["length"]:
            return False
        if x["shape"] != y["shape"] and a["flags"] & FOLDED == 0:
            return False
    return True


def _argument(row: Any) -> int:
    """What counts of a row's argument: the number of a signal is its own."""
    return 0 if row["kind"] == _ARRIVE or row["kind"] == _AWAIT else int(row["arg"])


def _touches_gm(accesses: Any, shapes: Any, begin: int, end: int) -> bool:
    for a in range(begin, end):
        access = accesses[a]
        if access["space"] == _GM and access["length"] > 0:
            shape = shapes[access["shape"]]
            if shape["n1"] > 0 and shape["n2"] > 0 and shape["n3"] > 0:
                return True
    return False


def number_forms(
    rows: Any, first: Any, accesses: Any, shapes: Any, order: Any, starts: Any, launch: Any, is_span: Any, of: Any,
    uses: Any, slots: Any, found: Any, state: Any, begin: int, until: int,
) -> int:  # fmt: skip
    """Number the forms of the rows at positions from ``begin`` to ``until``; all before are numbered.

    ``of``, ``uses``, ``found`` (the other columns of :class:`Forms`, a row a form) are filled. ``slots``, zero: by hash, the
    numbers of forms, from 1. ``state``, zero: how many forms there are, and how deep in vector functions. Returns up to where
    there was room for new forms.
    """
    n = starts[len(starts) - 1]
    for core in range(len(starts) - 1):
        here, end = max(starts[core], begin), min(starts[core + 1], until)
        if here < end and here == starts[core]:
            state[1] = 0
        for position in range(here, end):
            if state[0] == len(found):
                return position
            row = order[position] if len(order) > 0 else position
            record = rows[row]
            kind = record["kind"]
            if kind == _VF_BEGIN:
                state[1] += 1
            elif kind == _VF_END:
                state[1] -= 1
            inside = 1 if state[1] > 0 and kind != _VF_BEGIN else 0
            serial = 0
            if kind == _INSTRUCTION and record["parent"] >= 0 and position + 1 < n:
                then = rows[order[position + 1] if len(order) > 0 else position + 1]
                if then["parent"] == record["parent"] and then["kind"] == _BARRIER and then["arg"] > 1:
                    serial = 1
            span = 1 if is_span[row] else 0
            one = -1
            if _touches_gm(accesses, shapes, first[row], first[row + 1]):
                one = launch[core]
                uses[core] = True
            arg = _argument(record)
            place = (one + 1) << 3 | inside << 2 | serial << 1 | span
            hashed = _hash(record, first[row], first[row + 1], accesses, place, arg)
            slot = hashed % len(slots)
            form = slots[slot] - 1
            while form >= 0:
                known = found[form]
                if (
                    known[_INSIDE] == inside and known[_SERIAL] == serial and known[_SPAN] == span and known[_LAUNCH] == one
                    and _is_alike(rows, first, accesses, row, known[_FIRST], arg, _argument(rows[known[_FIRST]]))
                ):  # fmt: skip
                    break
                slot = (slot + 1) % len(slots)
                form = slots[slot] - 1
            if form < 0:
                form = state[0]
                state[0] += 1
                slots[slot] = form + 1
                known = found[form]
                known[_FIRST], known[_INSIDE], known[_SERIAL] = row, inside, serial
                known[_SPAN], known[_LAUNCH], known[_HASH] = span, one, hashed
            found[form, _COUNT] += 1
            of[row] = form
    return until


def fill_slots(found: Any, count: int, slots: Any) -> None:
    """Put so many forms into empty slots."""
    for form in range(count):
        slot = found[form, _HASH] % len(slots)
        while slots[slot] > 0:
            slot = (slot + 1) % len(slots)
        slots[slot] = form + 1
