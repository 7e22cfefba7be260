"""Flags and barriers: what orders the pipes of a core.

Sources: asc-devkit ``docs/zh/api/SIMD-API/C-API`` (sync), pto-isa ``docs/isa`` (set_flag, wait_flag, pipe_barrier).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

from ascsim.isa.definition import (
    CHIPS,
    Asm,
    Choice,
    Definition,
    MemoryInstruction,
    memory_instruction,
    plain_instruction,
)  # fmt: skip
from ascsim.isa.rules import refuse
from ascsim.machine.core import Core, Group, Step
from ascsim.machine.trace import Kind
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
    "set_flag", cpp="set_flag", aliases=("asc_sync_notify",), operands=(*_PIPES, _EVENT), rules=_FLAG_RULES,
    row=lambda core, call: (call.source, Kind.SET_FLAG, call.target, call.event), core="any",
    sources=("pto-isa docs/isa/scalar/ops/pipeline-sync", "asc-devkit C-API sync/asc_sync_notify"),
)  # fmt: skip
def set_flag(core: Core, call: SimpleNamespace) -> None:
    """Tell the target pipe, once all earlier instructions of the source pipe are done, that they are.

    Every set pairs with exactly one wait on the same pipes and event id; a second set before the wait is undefined.
    """


@plain_instruction(
    "wait_flag", cpp="wait_flag", aliases=("asc_sync_wait",), operands=(*_PIPES, _EVENT), rules=_FLAG_RULES,
    row=lambda core, call: (call.target, Kind.WAIT_FLAG, call.source, call.event), core="any",
    sources=("pto-isa docs/isa/scalar/ops/pipeline-sync", "asc-devkit C-API sync/asc_sync_wait"),
)  # fmt: skip
def wait_flag(core: Core, call: SimpleNamespace) -> None:
    """Hold the target pipe back until the flag with this event id has been set by the source pipe."""


@plain_instruction(
    "pipe_barrier", cpp="pipe_barrier", aliases=("asc_sync_pipe",), asm=(Asm("barrier"), Asm("pipe_barrier")),
    operands=(Choice("on", Pipe, doc="the pipe, or PIPE_ALL"),),
    row=lambda core, call: (call.on, Kind.BARRIER, 0, 0), core="any",
    sources=("pto-isa docs/isa/scalar/ops/pipeline-sync", "asc-devkit C-API sync/asc_sync_pipe"),
)  # fmt: skip
def pipe_barrier(core: Core, call: SimpleNamespace) -> None:
    """Hold the pipe back until its earlier instructions are done; with PIPE_ALL, all pipes of the core."""


def _as_barrier_all(call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
    yield Group([Step(pipe_barrier, (Pipe.ALL,))])


@plain_instruction(
    "sync_all_pipes", cpp="asc_sync", asm=(), profiles=CHIPS, expand=_as_barrier_all, core="any",
    sources=("asc-devkit C-API sync/asc_sync",),
)  # fmt: skip
def sync_all_pipes(core: Core, call: SimpleNamespace) -> None:
    """A barrier on all pipes: ``pipe_barrier(PIPE_ALL)``."""


def synchronous(base: MemoryInstruction, cpp: str, sources: Sequence[str]) -> MemoryInstruction:
    """Register the ``_sync`` form of an instruction: itself, then a barrier on all pipes."""
    names = [operand.name for operand in base.inputs]

    def expand(call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        yield Group([Step(base, tuple(getattr(call, name) for name in names)), Step(pipe_barrier, (Pipe.ALL,))])

    return memory_instruction(
        cpp, cpp=cpp, asm=(), profiles=base.profiles, operands=base.operands, pipe=base.pipe, variants=base.variants,
        extent=base.extent, stateful=base.stateful, rules=base.own_rules, watch=base.watch, work=base.work,
        expand=expand, notes=base.notes, assumed=base.assumed, sources=sources,
        doc=f"{base.doc}\n\nThen ``pipe_barrier(PIPE_ALL)``, so that what follows sees the result.",
    )(base.semantics)  # fmt: skip
