"""Flags that do not pair: sets and waits of one pipe pair and event id must come in turn."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace

import numpy as np

from ascsim.checks.calls import calls_of
from ascsim.checks.context import Context, Found, pipe_name
from ascsim.checks.spans import Intervals, common, touched
from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.machine.trace import Mode, Trace
from ascsim.machine.visit import Flags

CATALOGUE.add(
    "S001", Severity.ERROR, "A wait without its set",
    "A pipe waits for a flag that nothing sets: on a chip the kernel hangs there. A flag is one pair of pipes and one "
    "event id, and all three must be the same in both calls.\n\n"
    "Set the flag on the source pipe after the work that the waiting pipe needs. In a loop whose wait comes first (a "
    "buffer must be free before it is filled again), set the flag once before the loop.\n\n"
    "Example:\n"
    "    TLOAD(a, global);\n"
    "    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);   // without this line the next one never returns\n"
    "    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
    "    TADD(c, a, b);",
)  # fmt: skip
CATALOGUE.add(
    "S002", Severity.ERROR, "A wait that stands before its set",
    "A pipe waits for a flag whose set comes later in the program. The source pipe runs on, so on a chip the wait ends "
    "when that later set takes effect: the waiting pipe's work happens after instructions that stand behind it in the "
    "source. ascsim carries instructions out in program order, so the results it shows here are not the chip's. If "
    "the source pipe in turn waits for this one, the kernel hangs.\n\n"
    "Move the set before the wait.\n\n"
    "Example:\n"
    "    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
    "    TADD(c, a, b);\n"
    "    TLOAD(a, global);\n"
    "    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);   // belongs, with the load, before the wait",
)  # fmt: skip
CATALOGUE.add(
    "S003", Severity.ERROR, "A set without its wait",
    "A flag is still set when the kernel ends. The next kernel on the core that uses this pipe pair and event id finds "
    "it set: its first wait returns too early, or its set meets a set flag, which is undefined.\n\n"
    "Wait for every flag that was set, also for the last one of a loop; or leave the set out.\n\n"
    "Example:\n"
    "    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);        // the buffer is free\n"
    "    for (...) {\n"
    "        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);   // load into it\n"
    "        ...\n"
    "        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);    // free again\n"
    "    }\n"
    "    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);       // takes back the last one",
)  # fmt: skip
CATALOGUE.add(
    "S004", Severity.ERROR, "A flag set twice before its wait",
    "A flag is set while it still is: what a second set does then is undefined, and a chip may hang. A flag holds one "
    "signal and does not count.\n\n"
    "Wait for the first set before the second, or give the second another event id.\n\n"
    "Example:\n"
    "    TLOAD(a, x); set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
    "    TLOAD(b, y); set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);   // not EVENT_ID0 again",
)  # fmt: skip

CATALOGUE.add(
    "S005", Severity.ERROR, "A set and a wait that name different flags",
    "A pipe waits for a flag that nothing sets, and as often a flag is set that nothing waits for; the two differ in the "
    "event id or in a pipe. On a chip the kernel hangs at the wait.\n\n"
    "A flag is a pair of pipes and an event id: give all three the same in both calls. In a loop over several buffers, "
    "look at how the event id follows from the turn.\n\n"
    "Example:\n"
    "    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n"
    "    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);   // must be EVENT_ID0",
)  # fmt: skip


def check(context: Context) -> Iterator[Found]:
    """Findings of flags that do not pair."""
    flags = context.flags
    mismatches = list(_mismatches(context, flags))
    yield from (_mismatch(context, flags, *found) for found in mismatches)
    known = np.zeros(len(flags.partner), bool)
    for waits, sets in mismatches:
        known[[*waits, *sets]] = True
    lonely = (flags.partner < 0) & ~known
    late = ~flags.is_set & (flags.partner > np.arange(len(flags.partner)))
    unset = np.flatnonzero(lonely & ~flags.is_set)
    yield from _one_a_call(context, _each(context, flags, unset, _wait_without_set, by_flag=True))
    yield from _each(context, flags, np.flatnonzero(late), _wait_before_set)
    doubled = np.flatnonzero(flags.doubled & ~known)
    doubled = doubled[~known[flags.before[doubled]]]
    yield from _each(context, flags, doubled, _set_twice)
    # A set that another finding speaks of is not told again, nor are its fellows of the same line.
    told = {_line(context, flags, n) for n in (*doubled.tolist(), *flags.before[doubled].tolist())}
    left = [n for n in np.flatnonzero(lonely & flags.is_set).tolist() if not context.stopped[flags.core[n]]]
    left = [number for number in left if _line(context, flags, number) not in told]
    yield from _each(context, flags, np.array(left, np.int64), _set_without_wait)


def _one_a_call(context: Context, founds: Iterator[Found]) -> Iterator[Found]:
    """Findings of one call that takes its event id from a variable, as one."""
    calls: dict[Hashable, Found] = {}
    for found in founds:
        assert isinstance(found.key, tuple)
        source, target, event = found.key
        call = (context.site(found.rows[0]) or found.rows[0], source, target)
        if call in calls:
            first = calls[call]
            notes = (*first.notes, f"the same with EVENT_ID{event}")
            calls[call] = replace(first, notes=notes, count=first.count + found.count)
        else:
            calls[call] = found
    yield from calls.values()


def _mismatches(context: Context, flags: Flags) -> Iterator[tuple[list[int], list[int]]]:
    """(lonely waits of one flag, sets without a wait of another) that were meant for each other.

    There are as many of the one as of the other, the flags are alike, and one of them is nowhere used as it should be:
    it has no set at all, or no wait.
    """
    for core in np.unique(flags.core[flags.partner < 0]).tolist():
        if context.stopped[core]:
            continue
        low, high = np.searchsorted(flags.core, (core, core + 1)).tolist()
        of: dict[tuple[bool, tuple[int, int, int]], list[int]] = {}
        kinds = set()
        for number in range(low, high):
            kinds.add((bool(flags.is_set[number]), _of(flags, number)))
            if flags.partner[number] < 0:
                of.setdefault((bool(flags.is_set[number]), _of(flags, number)), []).append(number)
        free = {flag: numbers for (is_set, flag), numbers in of.items() if is_set}
        for (is_set, flag), waits in of.items():
            alike = [
                other for other, sets in free.items()
                if not is_set and len(sets) == len(waits) and sets[0] < waits[0] and _are_alike(flag, other)
                and ((True, flag) not in kinds or (False, other) not in kinds or _take_turns(context, flags, waits, sets))
            ]  # fmt: skip
            if alike:
                yield waits, free.pop(min(alike, key=lambda other: other[:2] != flag[:2]))


def _take_turns(context: Context, flags: Flags, waits: list[int], sets: list[int]) -> bool:
    """Whether the sets of one call, each before its wait, name one event id where the waits of the pair name two in turn."""
    same_pipes = _of(flags, waits[0])[:2] == _of(flags, sets[0])[:2]
    one_call = len({_line(context, flags, number) for number in sets}) == 1
    return same_pipes and one_call and len(sets) > 1 and all(s < w for s, w in zip(sets, waits, strict=True))


def _are_alike(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """One pair of pipes (either way round), or one event id and one pipe."""
    if sorted(one[:2]) == sorted(other[:2]):
        return True
    return one[2] == other[2] and (one[0] == other[0] or one[1] == other[1])


def _mismatch(context: Context, flags: Flags, waits: list[int], sets: list[int]) -> Found:
    calls = calls_of(context.trace)
    wait, set_ = waits[0], sets[0]
    row, setter = int(flags.row[wait]), int(flags.row[set_])
    wanted, given = _of(flags, wait), _of(flags, set_)
    core = flags.core == flags.core[wait]
    is_set_elsewhere = bool((core & flags.is_set & _is(flags, wanted)).any())
    if is_set_elsewhere:
        mend = f"Change {calls.set(*given)} at {context.where(setter, row)} to {calls.set(*wanted)}."
    else:
        mend = f"Change {calls.wait(*wanted)} at {context.where(row, row)} to {calls.wait(*given)}."
    if not is_set_elsewhere and not (core & ~flags.is_set & _is(flags, given)).any():
        mend = f"Use one flag in both: {mend[0].lower()}{mend[1:-1]}, or the set to {calls.set(*wanted)}."
    here = _line(context, flags, set_)
    is_right_too = any(
        _line(context, flags, number) == here and flags.partner[number] >= 0
        for number in np.flatnonzero(core & flags.is_set & _is(flags, given)).tolist()
    )
    notes = (
        ("in other turns of the loop that event id is right: let it change as that of the wait does",)
        if is_right_too
        else ()
    )
    return Found(
        "S005", Severity.ERROR,
        f"set and wait differ: {pipe_name(wanted[1])} waits for the flag from {_name(*wanted)}, but the one from "
        f"{_name(*given)} is set",
        (row, setter), (f"{pipe_name(wanted[1])} waits", f"{pipe_name(given[0])} sets the other flag"), notes, mend,
        len(waits), key=(wanted, given), claims=tuple(int(flags.row[number]) for number in sets),
    )  # fmt: skip


def _is(flags: Flags, flag: tuple[int, int, int]) -> np.ndarray:
    source, target, event = flag
    return (flags.source == source) & (flags.target == target) & (flags.event == event)


def _line(context: Context, flags: Flags, number: int) -> tuple[int, int]:
    return context.line(int(flags.row[number]))


_Tell = Callable[[Context, Flags, int], Found]


def _each(
    context: Context, flags: Flags, numbers: np.ndarray, tell: _Tell, by_flag: bool = False
) -> Iterator[Found]:  # fmt: skip
    """One finding for each source site and flag, counted; ``by_flag``: one for each flag of a launch."""
    if not len(numbers):
        return
    roots = context.roots(flags.row[numbers])
    place = context.visit.launch[flags.core[numbers]] if by_flag else context.trace.rows["site"][roots].astype(np.int64)
    keys = np.stack([place, flags.source[numbers], flags.target[numbers], flags.event[numbers]])
    _, first, count = np.unique(keys, axis=1, return_index=True, return_counts=True)
    for index in np.argsort(first):
        found = tell(context, flags, int(numbers[first[index]]))
        yield replace(found, count=int(count[index]))


def _of(flags: Flags, number: int) -> tuple[int, int, int]:
    return int(flags.source[number]), int(flags.target[number]), int(flags.event[number])


def _name(source: int, target: int, event: int) -> str:
    return f"{pipe_name(source)} to {pipe_name(target)}, EVENT_ID{event}"


def _wait_without_set(context: Context, flags: Flags, number: int) -> Found:
    source, target, event = _of(flags, number)
    calls = calls_of(context.trace)
    row = int(flags.row[number])
    hints = []
    for other in _unpaired_sets(flags, int(flags.core[number]))[:100]:
        s, t, e = _of(flags, other)
        where = context.where(int(flags.row[other]), row)
        if e == event and (s, t) != (source, target):
            hints.append(f"the event is set for another pair of pipes, {_name(s, t, e)}, at {where}")
        elif (s, t) == (source, target):
            hints.append(f"the pair has a set of another event id, EVENT_ID{e}, at {where}")
    work = _work_waited_for(context, flags, number)
    after = "before it: it waits for nothing that comes first, so once, before the loop if it is in one"
    if work is not None:
        after = f"after {context.where(work, row)}"
    return Found(
        "S001", Severity.ERROR,
        f"wait without set: {pipe_name(target)} waits for ever for the flag from {_name(source, target, event)}",
        (row,), (f"{pipe_name(target)} waits",), tuple(dict.fromkeys(hints))[:3],
        f"Add {calls.set(source, target, event)} {after}.", key=(source, target, event),
    )  # fmt: skip


def _work_waited_for(context: Context, flags: Flags, number: int, limit: int = 64) -> int | None:
    """The last instruction of the source pipe before a wait that shares bytes with what the target pipe does after it.

    That is what comes before the target's next wait for the same pipe; ``limit`` rows are looked at on either side.
    """
    visit, core, trace = context.visit, int(flags.core[number]), context.trace
    source, target, at = int(flags.source[number]), int(flags.target[number]), int(flags.position[number])
    pair = flags.between(core, source, target)
    next_waits = flags.position[pair[~flags.is_set[pair] & (flags.position[pair] > at)]]
    end = int(next_waits[0]) if len(next_waits) else int(visit.starts[core + 1])
    before = _instructions(context, visit.rows(np.arange(visit.starts[core], at)), source)[::-1][:limit]
    after = _instructions(context, visit.rows(np.arange(at, end)), target)[:limit]
    needs = [_bytes(trace, row) for row in after.tolist()]
    for row in before.tolist():
        if any(_conflict(_bytes(trace, row), other) for other in needs):
            return row
    return None


def _instructions(context: Context, rows: np.ndarray, pipe: int) -> np.ndarray:
    table = context.trace.rows
    return rows[(table["pipe"][rows] == pipe) & (table["n_access"][rows] > 0)]


_Touched = list[tuple[int, int, Intervals]]
"""(space, mode, bytes) of each access of a row."""


def _conflict(some: _Touched, others: _Touched) -> bool:
    return any(
        space == other_space and Mode.WRITE in (mode, other_mode) and bool(common(mine, theirs))
        for space, mode, mine in some
        for other_space, other_mode, theirs in others
    )


def _bytes(trace: Trace, row: int) -> _Touched:
    numbers = range(int(trace.first_access[row]), int(trace.first_access[row + 1]))
    return [(int(trace.accesses["space"][n]), int(trace.accesses["mode"][n]), touched(trace, n)) for n in numbers]


def _unpaired_sets(flags: Flags, core: int) -> list[int]:
    low, high = np.searchsorted(flags.core, (core, core + 1))
    return (low + np.flatnonzero(flags.is_set[low:high] & (flags.partner[low:high] < 0))).tolist()


def _wait_before_set(context: Context, flags: Flags, number: int) -> Found:
    source, target, event = _of(flags, number)
    calls = calls_of(context.trace)
    row, setter = int(flags.row[number]), int(flags.row[flags.partner[number]])
    return Found(
        "S002", Severity.ERROR,
        f"wait before set: {pipe_name(target)} waits for the flag from {_name(source, target, event)}, set only later",
        (row, setter), (f"{pipe_name(target)} waits", f"{pipe_name(source)} sets the flag"),
        ("instructions are carried out in program order here: the results shown are not the chip's",),
        f"Move {calls.set(source, target, event)} from {context.where(setter, row)} to before "
        f"{context.where(row, row)}.",
        key=(source, target, event),
    )  # fmt: skip


def _set_without_wait(context: Context, flags: Flags, number: int) -> Found:
    source, target, event = _of(flags, number)
    calls = calls_of(context.trace)
    return Found(
        "S003", Severity.ERROR,
        f"set without wait: the flag from {_name(source, target, event)} is still set when the kernel ends",
        (int(flags.row[number]),), (f"{pipe_name(source)} sets the flag",), (),
        f"Add {calls.wait(source, target, event)} before the work on {pipe_name(target)} that needs it, or drop the "
        "set.", key=(source, target, event), yields=(int(flags.row[number]),),
    )  # fmt: skip


def _set_twice(context: Context, flags: Flags, number: int) -> Found:
    source, target, event = _of(flags, number)
    calls = calls_of(context.trace)
    row, first = int(flags.row[number]), int(flags.row[flags.before[number]])
    return Found(
        "S004", Severity.ERROR,
        f"set twice: the flag from {_name(source, target, event)} is set again before anything waited for it",
        (row, first), ("sets the flag again", "set it first"), (),
        f"Add {calls.wait(source, target, event)} between the two, or use another event id.",
        key=(source, target, event), yields=(row,),
    )  # fmt: skip
