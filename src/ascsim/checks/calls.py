"""Synchronisation calls as the kernel's own language writes them: what a finding tells the user to add.

A trace whose front end speaks another language than PTO C++ carries a note ``dialect`` with its name.
"""

from __future__ import annotations

from dataclasses import dataclass

from ascsim.machine.trace import Trace
from ascsim.machine.words import Pipe


@dataclass(frozen=True)
class Calls:
    """Templates of the three calls."""

    set_template: str
    wait_template: str
    barrier_template: str
    pipe_template: str = "PIPE_{name}"
    event_template: str = "EVENT_ID{number}"
    memory_barrier_template: str = "asc_mem_bar({mode})"
    drop_line: str = "dcci(address, cache_line_t::SINGLE_CACHE_LINE)"

    def pipe(self, pipe: int) -> str:
        """A pipe's name."""
        return self.pipe_template.format(name=Pipe(pipe).name)

    def event(self, number: int) -> str:
        """An event id's name."""
        return self.event_template.format(number=number)

    def _flag(self, template: str, source: int, target: int, event: int) -> str:
        return template.format(source=self.pipe(source), target=self.pipe(target), event=self.event(event))

    def set(self, source: int, target: int, event: int) -> str:
        """The call that sets a flag."""
        return self._flag(self.set_template, source, target, event)

    def wait(self, source: int, target: int, event: int) -> str:
        """The call that waits for a flag."""
        return self._flag(self.wait_template, source, target, event)

    def memory_barrier(self, mode: str) -> str:
        """The call that orders loads and stores of vector registers."""
        return self.memory_barrier_template.format(mode=mode)

    def barrier(self, pipe: int) -> str:
        """The call that holds a pipe back until its earlier instructions are done."""
        return self.barrier_template.format(pipe=self.pipe(pipe))


DIALECTS = {
    "pto": Calls(
        "set_flag({source}, {target}, {event})", "wait_flag({source}, {target}, {event})", "pipe_barrier({pipe})"
    ),
    "c_api": Calls(
        "asc_sync_notify({source}, {target}, {event})",
        "asc_sync_wait({source}, {target}, {event})",
        "asc_sync_pipe({pipe})", drop_line="asc_dcci_single(address)",
    ),
    "ptoas": Calls(
        "pto.set_flag[<{source}>, <{target}>, <{event}>]",
        "pto.wait_flag[<{source}>, <{target}>, <{event}>]",
        "pto.barrier <{pipe}>", memory_barrier_template='pto.mem_bar "{mode}"',
    ),
    "python": Calls(
        "set_flag({source}, {target}, {event})", "wait_flag({source}, {target}, {event})", "pipe_barrier({pipe})",
        "Pipe.{name}", "{number}", "mem_bar(MemoryBarrier.{mode})",
    ),
}  # fmt: skip


def calls_of(trace: Trace) -> Calls:
    """The calls of the language that the traced kernel is written in."""
    return DIALECTS.get(trace.dialect, DIALECTS["pto"])
