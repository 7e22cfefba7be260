"""Signals between cores that are waited for in vain, left over, or too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ascsim.checks.context import Context, Found
from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.machine.signals import SignalMode, unpacked
from ascsim.machine.trace import Kind

CATALOGUE.add(
    "S201", Severity.ERROR, "Deadlock between cores",
    "Every core that is left waits for a signal that no core will give: on a chip the kernel hangs. The report names the "
    "cores that wait, the flag that each waits for, and who has arrived at it so far.\n\n"
    "Look for a core that leaves the kernel early, or takes a branch without the signal: all cores that are gathered must "
    "arrive, equally often. Look for two cores that each wait for the other before they signal.\n\n"
    "Example:\n"
    "    if (get_block_idx() == 0) return;   // and the others wait for ever\n"
    "    SYNCALL();",
)  # fmt: skip
CATALOGUE.add(
    "S202", Severity.ERROR, "A signal that nobody waits for",
    "The counter of a flag is not 0 when the kernel ends. The counters outlive the kernel: the next one that uses the flag "
    "goes on at its first wait without having been signalled.\n\n"
    "Wait for each signal on every core that receives it.\n\n"
    "Example:\n"
    "    asc_sync_subblock_arrive(PIPE_MTE3, 0);   // reaches both vector cores\n"
    "    if (get_subblockid() == 0) asc_sync_subblock_wait(PIPE_MTE2, 0);   // the second one never takes it",
)  # fmt: skip
CATALOGUE.add(
    "S203", Severity.ERROR, "Too many signals without a wait",
    "The counter of a flag holds 15 signals; one more is an overflow, and the chip stops with an error.\n\n"
    "Wait in between.\n\n"
    "Example: a producer that signals after each of 16 parts, while its consumer waits only after the last.",
)  # fmt: skip
CATALOGUE.add(
    "S204", Severity.ERROR, "A core polls in vain",
    "A core reads the same place of global memory in a loop, to wait until another core writes it, and no other core is left "
    "that could: all have ended or wait themselves. On a chip the kernel hangs.\n\n"
    "Look for a core that leaves the kernel before it writes, and for two cores that each wait for the other.",
)  # fmt: skip
_NAMED = 8


def check(context: Context) -> Iterator[Found]:
    """Findings of signals between cores."""
    yield from _polling(context)
    rows, signals = context.trace.rows, context.signals
    if not len(signals):
        return
    stuck = signals[(rows["kind"][signals] == Kind.AWAIT) & (rows["arg"][signals] == 0)]
    launch = context.visit.launch[context.cores_of(stuck)] if len(stuck) and context.trace.noted("deadlock") else []
    for number in dict.fromkeys(np.asarray(launch).tolist()):
        yield _deadlock(context, stuck[launch == number])
    arrivals = {int(rows["arg"][row]): int(row) for row in signals.tolist() if rows["kind"][row] == Kind.ARRIVE}
    yield from _counted(context, arrivals, "signal_left", "S202", "is left when the kernel ends",
                        "Wait for the flag on that core, as often as it is signalled.")  # fmt: skip
    yield from _counted(context, arrivals, "signal_overflow", "S203", "is more than its counter holds (15)",
                        "Wait for the flag on that core before it is signalled again.")  # fmt: skip


def _polling(context: Context) -> Iterator[Found]:
    """Cores that looked at global memory again and again when no other core was left to write it."""
    for note in context.trace.noted("polling"):
        last = np.flatnonzero((context.trace.rows["core"] == note["core"]) & (context.trace.kind != Kind.LAUNCH_END))
        yield Found(
            "S204", Severity.ERROR, f"core {note['core']} waits for global memory that no core will write",
            (int(last[-1]),), ("the last that it did",), ("all other cores have ended, or wait themselves",),
            "Let a core write what the loop waits for, and look at the order in which the cores get there.",
        )  # fmt: skip


def _core(context: Context, row: int) -> int:
    return int(context.trace.rows["core"][row])


def _waits_for(context: Context, row: int) -> tuple[SignalMode, int]:
    return unpacked(int(context.trace.rows["pipe2"][row]))


def _deadlock(context: Context, stuck: np.ndarray) -> Found:
    """One finding for all cores of a launch: they wait for each other."""
    whats = tuple(
        f"core {_core(context, row)}: {context.pipe(row)} waits for flag {_waits_for(context, row)[1]}"
        for row in stuck[:_NAMED].tolist()
    )
    notes = [f"{len(stuck) - _NAMED} more cores wait"] if len(stuck) > _NAMED else []
    for mode, flag in dict.fromkeys(_waits_for(context, row) for row in stuck.tolist()):
        notes.append(_arrived(context, stuck, mode, flag))
    cores = f"{len(stuck)} cores wait" if len(stuck) > 1 else f"core {_core(context, int(stuck[0]))} waits"
    return Found(
        "S201", Severity.ERROR, f"deadlock: {cores} for a signal that nobody gives",
        tuple(stuck[:_NAMED].tolist()), whats, tuple(notes),
        "Let every core that takes part in a signal arrive, as often as the others wait for it.",
    )  # fmt: skip


def _arrived(context: Context, stuck: np.ndarray, mode: SignalMode, flag: int) -> str:
    """Who has arrived at a flag so far. Counters of direct signals have other numbers on the other side."""
    rows, signals = context.trace.rows, context.signals
    launch = context.visit.launch[context.cores_of(int(stuck[0]))]
    here = signals[context.visit.launch[context.cores_of(signals)] == launch]
    arrivals = [row for row in here.tolist() if rows["kind"][row] == Kind.ARRIVE]
    is_direct = mode is SignalMode.DIRECT
    times = Counter(
        _core(context, row)
        for row in arrivals
        if (_waits_for(context, row)[0] is SignalMode.DIRECT) == is_direct
        and (is_direct or _waits_for(context, row)[1] == flag)
    )
    if not times:
        return f"no core has arrived at flag {flag}" if not is_direct else "no core has signalled another directly"
    named = ", ".join(f"core {core} {_times(count)}" for core, count in sorted(times.items())[:_NAMED])
    more = f", and {len(times) - _NAMED} more cores" if len(times) > _NAMED else ""
    cores = np.count_nonzero(context.visit.launch == launch)
    never = cores - len(times)
    tail = f"; {never} of {cores} cores never" if never else ""
    return f"{'direct signals were given by' if is_direct else f'at flag {flag} have arrived'} {named}{more}{tail}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _counted(
    context: Context, arrivals: dict[int, int], kind: str, code: str, what: str, mend: str
) -> Iterator[Found]:  # fmt: skip
    for note in context.trace.noted(kind):
        row = arrivals.get(note["token"])
        if row is not None:
            headline = f"a signal of flag {note['flag']} to core {note['core']} {what}"
            yield Found(code, Severity.ERROR, headline, (row,), ("the newest one is given here",), (), mend,
                        key=note["flag"])  # fmt: skip
