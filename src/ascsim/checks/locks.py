"""Mutexes that are not locked and unlocked in turn, by one pipe."""

from __future__ import annotations

from collections.abc import Iterator

from ascsim.checks.context import Context, Found, pipe_name
from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.machine.trace import Kind

CATALOGUE.add(
    "S101", Severity.ERROR, "A lock without its unlock, or an unlock without its lock",
    "Every lock of a mutex pairs with one unlock after it, of the same pipe and the same mode. What a chip does "
    "otherwise is undefined; usually the next pipe that locks the mutex waits for ever.\n\n"
    "Pair the calls on each way through the kernel, also where it leaves a loop early.\n\n"
    "Example:\n"
    "    asc_lock(PIPE_MTE2, 0);\n"
    "    asc_copy_gm2ub_align(x, gm, 256);\n"
    "    asc_unlock(PIPE_MTE2, 0);   // without this line PIPE_V waits for ever\n"
    "    asc_lock(PIPE_V, 0);",
)  # fmt: skip
CATALOGUE.add(
    "S102", Severity.ERROR, "A mutex locked twice",
    "A mutex is locked while it is locked: pairs of one mutex must not nest, whatever their pipes and modes. What a "
    "chip does is undefined.\n\n"
    "Unlock it first, or use another mutex (0 to 31).\n\n"
    "Example:\n"
    "    asc_lock(PIPE_V, 0);\n"
    "    asc_lock(PIPE_V, 0);        // must follow asc_unlock(PIPE_V, 0)",
)  # fmt: skip


def check(context: Context) -> Iterator[Found]:
    """Findings of mutexes."""
    rows = context.trace.rows
    held: dict[tuple[int, int], int] = {}
    told: set[tuple[tuple[int, int], int]] = set()
    for row in context.locks.tolist():
        record = rows[row]
        key = int(context.cores_of(row)), int(record["arg"])
        holder = held.get(key)
        if record["kind"] == Kind.LOCK:
            if holder is not None:
                told.add(_line(context, holder))
                yield _locked_twice(context, row, holder)
            held[key] = row
        elif holder is None:
            yield _lonely(context, row, f"unlock without lock: mutex {key[1]} is not locked", "unlocks it",
                          f"Add asc_lock({context.pipe(row)}, {key[1]}) before the work of {context.pipe(row)}.")  # fmt: skip
        else:
            del held[key]
            if (record["pipe"], record["pipe2"]) != (rows[holder]["pipe"], rows[holder]["pipe2"]):
                yield _mismatched(context, row, holder)
    for (core, mutex), row in held.items():
        if not context.stopped[core] and _line(context, row) not in told:
            yield _lonely(context, row, f"lock without unlock: mutex {mutex} is still locked when the kernel ends",
                          "locks it", f"Add asc_unlock({context.pipe(row)}, {mutex}) after the work of "
                          f"{context.pipe(row)}.")  # fmt: skip


def _line(context: Context, row: int) -> tuple[tuple[int, int], int]:
    """The source line of a lock, and its mutex."""
    return context.line(row), int(context.trace.rows["arg"][row])


def _lonely(context: Context, row: int, headline: str, what: str, mend: str) -> Found:
    record = context.trace.rows[row]
    key = int(record["pipe"]), int(record["arg"])
    return Found("S101", Severity.ERROR, headline, (row,), (f"{context.pipe(row)} {what}",), (), mend, key=key)


def _locked_twice(context: Context, row: int, holder: int) -> Found:
    mutex = int(context.trace.rows[row]["arg"])
    pipes = context.pipe(row), context.pipe(holder)
    return Found(
        "S102", Severity.ERROR, f"mutex {mutex} is locked while it is locked", (row, holder),
        (f"{pipes[0]} locks it", f"{pipes[1]} holds it since"), (),
        f"Add asc_unlock({pipes[1]}, {mutex}) between the two, or use another mutex.", key=(*pipes, mutex),
    )  # fmt: skip


def _mismatched(context: Context, row: int, holder: int) -> Found:
    record, lock = context.trace.rows[row], context.trace.rows[holder]
    mutex = int(lock["arg"])
    is_pipe = record["pipe"] != lock["pipe"]
    said = f"{context.pipe(row)} unlocks what {context.pipe(holder)} locked" if is_pipe else "the modes differ"
    return Found(
        "S101", Severity.ERROR, f"mutex {mutex} is locked and unlocked differently: {said}", (row, holder),
        ("unlocked here", "locked here"), (),
        f"Give both calls the same pipe ({pipe_name(int(lock['pipe']))}) and the same mode.", key=(mutex, is_pipe),
    )  # fmt: skip
