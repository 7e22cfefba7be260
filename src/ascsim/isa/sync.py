"""Flags and barriers: what orders the pipes of a core.

Sources: asc-devkit C-API sync (pages and impl/c_api/instr_impl); pto-isa docs/isa (set_flag, wait_flag, pipe_barrier,
TSYNC), include/pto/npu/{a2a3,a5}/TSync.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from types import SimpleNamespace

from ascsim.diagnostics import Severity
from ascsim.isa.definition import (
    CHIPS,
    Asm,
    Choice,
    Definition,
    MemoryInstruction,
    memory_instruction,
    plain_instruction,
)  # fmt: skip
from ascsim.isa.rules import finding, refuse
from ascsim.machine.core import Core, Group, Step
from ascsim.machine.trace import DATA_BARRIER, Kind
from ascsim.machine.words import Pipe
from ascsim.profiles import Profile

_PIPES = (Choice("source", Pipe, doc="the pipe that sets"), Choice("target", Pipe, doc="the pipe that waits"))
_EVENT = Choice("event", int, doc="event id")


def _event_in_range(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if 0 <= int(call.event) < profile.event_ids:
        return None
    return f"event id {int(call.event)} is out of range 0 to {profile.event_ids - 1}"


def _two_pipes(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.source == call.target or Pipe.ALL in (call.source, call.target):
        return f"a flag goes from one pipe to another; {Pipe(call.source).name} to {Pipe(call.target).name} is none"
    return None


def _broken_event(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(source=call.source, target=call.target, event=profile.event_ids)
    yield SimpleNamespace(source=call.source, target=call.target, event=-1)


def _broken_pipes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(source=call.target, target=call.target, event=call.event)


_FLAG_RULES = (
    refuse("L006", "the event id is 0 to 7", _event_in_range, breaks=_broken_event,
           mend="Use EVENT_ID0 to EVENT_ID7."),
    refuse("L006", "the pipes differ", _two_pipes, breaks=_broken_pipes,
           mend="Order instructions of one pipe with pipe_barrier."),
)  # fmt: skip


@plain_instruction(
    "set_flag", cpp="set_flag", aliases=("asc_sync_notify",), asm=(Asm("set_flag"), Asm("record_event")),
    operands=(*_PIPES, _EVENT), rules=_FLAG_RULES,
    row=lambda core, call: (call.source, Kind.SET_FLAG, call.target, call.event), core="any", row_only=True,
    sources=("pto-isa docs/isa/scalar/ops/pipeline-sync", "asc-devkit C-API sync/asc_sync_notify"),
)  # fmt: skip
def set_flag(core: Core, call: SimpleNamespace) -> None:
    """Tell the target pipe, once all earlier instructions of the source pipe are done, that they are.

    Every set pairs with exactly one wait on the same pipes and event id; a second set before the wait is undefined.
    """


@plain_instruction(
    "wait_flag", cpp="wait_flag", aliases=("asc_sync_wait",), asm=(Asm("wait_flag"), Asm("wait_event")),
    operands=(*_PIPES, _EVENT), rules=_FLAG_RULES,
    row=lambda core, call: (call.target, Kind.WAIT_FLAG, call.source, call.event), core="any", row_only=True,
    sources=("pto-isa docs/isa/scalar/ops/pipeline-sync", "asc-devkit C-API sync/asc_sync_wait"),
)  # fmt: skip
def wait_flag(core: Core, call: SimpleNamespace) -> None:
    """Hold the target pipe back until the flag with this event id has been set by the source pipe."""


@plain_instruction(
    "pipe_barrier", cpp="pipe_barrier", asm=(Asm("barrier"), Asm("pipe_barrier")),
    operands=(Choice("on", Pipe, doc="the pipe, or PIPE_ALL"),),
    row=lambda core, call: (call.on, Kind.BARRIER, 0, 0), core="any", row_only=True,
    sources=("pto-isa docs/isa/scalar/ops/pipeline-sync",),
)  # fmt: skip
def pipe_barrier(core: Core, call: SimpleNamespace) -> None:
    """Hold the pipe back until its earlier instructions are done; with PIPE_ALL, all pipes of the core."""


@plain_instruction(
    "dsb", cpp="dsb", aliases=("asc_sync_data_barrier",), asm=(), profiles=CHIPS,
    operands=(Choice("memory", int, doc="which memory; DSB_UB, DSB_ALL"),), core="any",
    row=lambda core, call: (Pipe.S, Kind.BARRIER, 0, DATA_BARRIER),
    assumed=("Whatever memory is named, it waits for all reads and writes of the scalar unit.",),
    sources=("pto-isa include/pto/npu/a2a3/TFillPad.hpp", "asc-devkit C-API sync/asc_sync_data_barrier"),
)  # fmt: skip
def dsb(core: Core, call: SimpleNamespace) -> None:
    """Hold the scalar unit, which issues for all pipes, until its own reads and writes are done."""


def _scalar_pipe(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "PIPE_S needs no barrier and takes none" if call.on == Pipe.S else None


@plain_instruction(
    "asc_sync_pipe", cpp="asc_sync_pipe", asm=(), profiles=CHIPS,
    operands=(Choice("on", Pipe, doc="the pipe, or PIPE_ALL"),), row=pipe_barrier.row, core="any",
    rules=(
        finding("SYNC-1", "the barrier is not on PIPE_S", _scalar_pipe, severity=Severity.WARNING, profiles=CHIPS,
                breaks=lambda call, profile: iter((SimpleNamespace(on=Pipe.S),)),
                why="The scalar unit keeps its own order; the page says that the function does not support it.",
                mend="Leave it out."),
    ),
    sources=("asc-devkit C-API sync/asc_sync_pipe",),
)  # fmt: skip
def asc_sync_pipe(core: Core, call: SimpleNamespace) -> None:
    """Hold the pipe back until its earlier instructions are done: the C API's ``pipe_barrier``."""


def _no_barrier(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.on in (Pipe.MTE2, Pipe.MTE3, Pipe.ALL):
        return None
    return f"there is no barrier on pipe {Pipe(call.on).name}; the A5 takes MTE2, MTE3 and ALL"


@plain_instruction(
    "tsync", cpp="TSYNC", asm=(), operands=(Choice("on", Pipe, doc="the operation's pipe"),),
    row=pipe_barrier.row, core="any",
    rules=(
        refuse("L006", "the pipe is MTE2, MTE3 or ALL", _no_barrier, profiles=("a5",),
               breaks=lambda call, profile: iter((SimpleNamespace(on=Pipe.V),)),
               mend="Vector operations of the A5 need no barrier among themselves."),
    ),
    notes=(
        "In C++ a template argument names an operation and so its pipe: ``TSYNC<Op::TLOAD>()``.",
        "C++'s ``TSYNC(events...)`` waits for events; in Python and .pto flags stand for them.",
    ),
    sources=("pto-isa docs/isa/TSYNC", "pto-isa include/pto/npu/a2a3/TSync.hpp, include/pto/npu/a5/TSync.hpp"),
)  # fmt: skip
def tsync(core: Core, call: SimpleNamespace) -> None:
    """A barrier on the pipe of an operation: its later instructions wait for its earlier ones."""


class AscMutexExecuteMode(IntEnum):
    """Whether a lock holds its pipe back."""

    ASC_LOCK_BLOCK = 0
    ASC_LOCK_NON_BLOCK = 1


_MUTEX = (
    Choice("on", Pipe, doc="the pipe"),
    Choice("mutex", int, doc="the mutex or buffer id"),
    Choice("mode", AscMutexExecuteMode, optional=True, default=0, doc="1: the pipe is not held back"),
)


def _mutex_in_range(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if 0 <= int(call.mutex) < profile.mutexes:
        return None
    return f"mutex {int(call.mutex)} is out of range 0 to {profile.mutexes - 1}"


def _broken_mutex(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(on=call.on, mutex=profile.mutexes, mode=0)
    yield SimpleNamespace(on=call.on, mutex=-1, mode=0)


_MUTEX_RULES = (
    refuse("L006", "the mutex is 0 to 31", _mutex_in_range, breaks=_broken_mutex, mend="Use a mutex from 0 to 31."),
)
_MUTEX_SOURCES = (
    "asc-devkit C-API sync/asc_lock, sync/asc_unlock", "pto-isa docs/isa/scalar/ops/pipeline-sync/get-buf, rls-buf",
)  # fmt: skip
_MUTEX_NOTES = (
    "The page of pto.get_buf also speaks of flags between pipes that it sets by itself; the order told here has the "
    "same effect.",
)


@plain_instruction(
    "lock", cpp="asc_lock", aliases=("get_buf",), asm=(Asm("get_buf"), Asm("get_buf", order=("mutex", "on", "mode"))),
    profiles=("a5",), operands=_MUTEX, rules=_MUTEX_RULES, core="any",
    row=lambda core, call: (call.on, Kind.LOCK, int(call.mode), int(call.mutex)), notes=_MUTEX_NOTES,
    sources=_MUTEX_SOURCES,
)  # fmt: skip
def lock(core: Core, call: SimpleNamespace) -> None:
    """Hold the pipe back until the work that other pipes did under this mutex, earlier in the program, is done.

    What the pipe does until its unlock is under the mutex. A second lock of one pipe does not wait for the first: that
    takes ``asc_sync_pipe``.
    """


@plain_instruction(
    "unlock", cpp="asc_unlock", aliases=("rls_buf",), asm=(Asm("rls_buf"), Asm("rls_buf", order=("mutex", "on", "mode"))),
    profiles=("a5",), operands=_MUTEX, rules=_MUTEX_RULES, core="any",
    row=lambda core, call: (call.on, Kind.UNLOCK, int(call.mode), int(call.mutex)), notes=_MUTEX_NOTES,
    sources=_MUTEX_SOURCES,
)  # fmt: skip
def unlock(core: Core, call: SimpleNamespace) -> None:
    """End what the pipe does under this mutex: the next lock of another pipe waits until it is done."""


def _as_barrier_all(call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
    yield Group([Step(pipe_barrier, (Pipe.ALL,))])


@plain_instruction(
    "sync_all_pipes", cpp="asc_sync", aliases=("asc_sync_vec",), asm=(), profiles=CHIPS, expand=_as_barrier_all,
    core="any", notes=("asc_sync_vec too waits for all pipes, not for the vector pipe alone.",),
    sources=("asc-devkit C-API sync/asc_sync, sync/asc_sync_vec",),
)  # fmt: skip
def sync_all_pipes(core: Core, call: SimpleNamespace) -> None:
    """A barrier on all pipes: ``pipe_barrier(PIPE_ALL)``."""


def _after(name: str, done: Pipe, others: Sequence[Pipe]) -> None:
    """``asc_sync_mte2`` and ``asc_sync_mte3``: two other pipes, and the pipe's own later instructions, wait for it."""

    def expand(call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        event = int(call.id)
        sets = [Step(set_flag, (done, other, event)) for other in others]
        waits = [Step(wait_flag, (done, other, event)) for other in others]
        yield Group([*sets, *waits, Step(pipe_barrier, (done,))])

    @plain_instruction(
        name, cpp=name, asm=(), profiles=CHIPS, operands=(Choice("id", int, doc="event id"),), expand=expand,
        core="any", rules=(
            refuse("L006", "the event id is 0 to 7", _id_in_range, mend="Use an id from 0 to 7.",
                   breaks=lambda call, profile: iter((SimpleNamespace(id=-1), SimpleNamespace(id=profile.event_ids)))),
        ),
        doc=f"Let {' and '.join(p.name for p in others)}, and {done.name} itself, wait until {done.name} is done: two "
        "flags with one event id, and a barrier.",
        sources=(f"asc-devkit C-API sync/{name} and the code behind it",),
    )  # fmt: skip
    def after(core: Core, call: SimpleNamespace) -> None: ...


def _id_in_range(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return _event_in_range(definition, SimpleNamespace(event=call.id), profile)


_after("asc_sync_mte2", Pipe.MTE2, (Pipe.MTE3, Pipe.V))
_after("asc_sync_mte3", Pipe.MTE3, (Pipe.MTE2, Pipe.V))


def synchronous(base: MemoryInstruction, cpp: str, sources: Sequence[str]) -> MemoryInstruction:
    """Register the ``_sync`` form of an instruction: itself, then a barrier on all pipes."""
    names = [operand.name for operand in base.inputs]

    def expand(call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        own = base.expand(call, profile) if base.expand else None
        if own is None:
            own = iter([Group([Step(base, tuple(getattr(call, name) for name in names))])])
        yield from own
        yield Group([Step(pipe_barrier, (Pipe.ALL,))])

    return memory_instruction(
        cpp, cpp=cpp, asm=(), profiles=base.profiles, operands=base.operands, pipe=base.pipe, variants=base.variants,
        extent=base.extent, stateful=base.stateful, rules=base.own_rules, watch=base.watch, work=base.work,
        expand=expand, warns=base.warns, notes=base.notes, assumed=base.assumed, sources=sources,
        doc=f"{base.doc}\n\nThen ``pipe_barrier(PIPE_ALL)``, so that what follows sees the result.",
    )(base.semantics)  # fmt: skip
