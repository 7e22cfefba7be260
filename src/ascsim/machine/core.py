"""The machine: memories, cores, and ``issue``, the one way in.

``issue`` does three things, in order: legality for this profile, before any effect; the bytes read and written, into the
trace; semantics. An instruction is anything with the :class:`Instruction` protocol; the machine knows none by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ascsim.diagnostics import CATALOGUE, Diagnostic, Fault, Place, Severity, Site
from ascsim.machine import groups
from ascsim.machine.autosync import AutoSync
from ascsim.machine.groups import Group, Step, Touch
from ascsim.machine.operands import GlobalTensor, Pointer, Region, Tile, folded
from ascsim.machine.trace import Kind, Sink, pack_access, pack_row
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

GUARD = 65536
"""Bytes beyond a local memory's capacity that an overrun may touch without ending the run."""

CATALOGUE.add(
    "M001", Severity.ERROR, "Access far outside a memory",
    "An instruction touched bytes so far outside the memory that the run could not go on. On a chip the core stops with "
    "an address error. The bytes, the operand and the memory's size are named; make the tile smaller, or move it.",
)  # fmt: skip


class Finding(NamedTuple):
    """What a rule found at issue time, without its site."""

    code: str
    severity: Severity
    headline: str
    notes: tuple[str, ...] = ()
    mend: str = ""


class Instruction(Protocol):
    """What the machine needs of an instruction; ``isa.definition`` builds them."""

    number: int
    name: str

    def check(self, profile: Profile, args: Sequence[Any]) -> Sequence[Finding]:
        """Findings of this call. Raises Refused."""

    def expansion(self, core: Core, args: Sequence[Any]) -> Iterator[Group] | None:
        """The smaller instructions this one is made of on the core's profile, or None."""

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The bytes this call reads and writes."""

    def row_fields(self, core: Core, args: Sequence[Any]) -> tuple[int, int, int, int, int]:
        """(pipe, kind, pipe2, arg, work) of the trace row."""

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Any:
        """Carry it out; returns what it yields (registers, scalars)."""

    def observe(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Sequence[Finding]:
        """Warnings that depend on the data the call is about to read. Not asked of the steps of an expansion."""


class Memory:
    """One memory: ``data`` is uint8[capacity + guard]."""

    def __init__(self, capacity: int, data: np.ndarray | None = None, guard: int = GUARD) -> None:
        self.capacity = capacity
        self.data = np.zeros(capacity + guard, np.uint8) if data is None else data

    def view(self, region: Region) -> np.ndarray:
        """The region as an array, shape ``(*counts, length // itemsize)``, sharing memory.

        Raises:
            ValueError: the region leaves the memory and its guard.
        """
        low, high = region.bounds()
        if low < 0 or high > self.data.size:
            raise ValueError(f"bytes {low:#x}..{high:#x} leave a memory of {self.capacity} bytes")
        item = region.dtype.itemsize
        return np.ndarray(
            (*(n for n, _ in region.dims), region.length // item),
            region.dtype,
            self.data,
            region.start,
            (*(s for _, s in region.dims), item),
        )


ALL_ONES = (1 << 64) - 1


@dataclass
class CoreState:
    """What instructions of a core share beside memory.

    ``mask`` holds the vector mask's high and low words: in normal mode one bit a lane of a repeat, in counter mode the
    low word is how many elements the whole call works on. ``pad`` are the bits that padding copies fill with. The loop
    registers of the A5's copies are (inner size, outer size, inner source and destination stride, outer ones).
    """

    mask: tuple[int, int] = (ALL_ONES, ALL_ONES)
    counter_mode: bool = False
    pad: int = 0
    gm2ub_loops: tuple[int, int, int, int, int, int] = (1, 1, 0, 0, 0, 0)
    ub2gm_loops: tuple[int, int, int, int, int, int] = (1, 1, 0, 0, 0, 0)


class Core:
    """One core of a launch: its own memories and state."""

    def __init__(self, machine: Machine, index: int, block: int, side: str = "aiv") -> None:
        self.machine = machine
        self.profile = machine.profile
        self.index = index
        self.block = block
        self.side = side
        self.state = CoreState()
        self.flags: dict[tuple[int, int, int], int] = {}
        self.auto_site = 0
        self.memories: dict[int, Memory] = {Space.GM: machine.gm}

    def memory(self, space: int) -> Memory:
        """The memory of that space, made on first use."""
        found = self.memories.get(space)
        if found is None:
            found = Memory(self.profile.spaces[Space(space).name].capacity)
            self.memories[space] = found
        return found

    def view(self, region: Region) -> np.ndarray:
        """The region as an array that shares memory."""
        return self.memory(region.space).view(region)


class Machine:
    """A chip of one profile, with its global memory, its trace and its noted sites and objects."""

    def __init__(self, profile: Profile, sink: Sink, gm: Memory | None = None) -> None:
        self.profile = profile
        self.sink = sink
        self.gm = gm or Memory(0, np.zeros(0, np.uint8))
        self._sites: dict[Any, int] = {}
        self._objects: dict[Any, int] = {}
        self._tiles: dict[int, tuple[Tile, int]] = {}
        self.blocks = 1
        self._mnemonics: set[int] = set()
        self._findings: set[tuple[int, str]] = set()
        self.site_flags = 0
        self.resolve_site: Any = None
        self.auto_sync: AutoSync | None = None
        sink.note("profile", {"name": profile.name})

    # Interned notes

    def site(self, path: str, line: int, column: int = 0, function: str = "") -> int:
        """The number of a source site, noted on first use."""
        key = (path, line, column)
        number = self._sites.get(key)
        if number is None:
            number = self._sites[key] = len(self._sites) + 1
            self.sink.note("site", {"path": path, "line": line, "column": column, "function": function})
        return number

    def object_number(self, value: Any) -> int:
        """The number of a tile, view or named buffer, noted on first use; 0 for what has none."""
        if isinstance(value, Tile):
            known = self._tiles.get(id(value))
            if known is not None and known[0] is value:
                return known[1]
            key: Any = value
        elif isinstance(value, (GlobalTensor, Pointer)) and value.name:
            key = (value.name, value.dtype)
        else:
            return 0
        number = self._objects.get(key)
        if number is None:
            number = self._objects[key] = len(self._objects) + 1
            self.sink.note("object", _object_note(value))
        if isinstance(value, Tile):
            self._tiles[id(value)] = (value, number)
        return number

    # The one way in

    def issue(self, core: Core, instruction: Instruction, args: Sequence[Any], site: int) -> Any:
        """Run one instruction on a core: legality, trace, semantics. Returns what the instruction yields.

        Raises:
            Refused: the chip's tool chain would not accept it.
            Fault: the run cannot go on.
        """
        findings = instruction.check(self.profile, args)
        groups = instruction.expansion(core, args)
        if groups is None:
            return self._run(core, instruction, args, site, -1, findings)
        row = self._write_row(core, instruction, args, (), site, -1)
        self._note_findings(findings, row, site)
        try:
            self._note_findings(instruction.observe(core, args, []), row, site)
        except ValueError as error:
            raise self._fault(instruction, [], site, row, error) from error
        for group in groups:
            self._run_group(core, group, site, row)
        return None

    def _run(
        self, core: Core, instruction: Instruction, args: Sequence[Any], site: int, parent: int,
        findings: Sequence[Finding] = (),
    ) -> Any:  # fmt: skip
        touches = instruction.touches(core, args)
        if self.auto_sync is not None:
            self.auto_sync.before(core, instruction.row_fields(core, args), touches, site)
        row = self._write_row(core, instruction, args, touches, site, parent)
        self._note_findings(findings, row, site)
        try:
            if parent < 0:
                self._note_findings(instruction.observe(core, args, touches), row, site)
            return instruction.perform(core, args, touches)
        except ValueError as error:
            raise self._fault(instruction, touches, site, row, error) from error

    def _run_group(self, core: Core, group: Group, site: int, parent: int) -> None:
        rows = max(step.rows for step in group.steps)
        if rows == 1:
            for step in group.steps:
                self._run(core, step.instruction, step.args, site, parent)
            return
        touched = [(step, step.instruction.touches(core, step.args)) for step in group.steps]
        if groups.rows_are_independent(touched, group.private):
            self._run_rows_at_once(core, group, touched, site, parent)
        else:
            for row in range(rows):
                for step in group.steps:
                    self._run(core, step.instruction, groups.moved(step, row), site, parent)

    def _run_rows_at_once(
        self, core: Core, group: Group, touched: Sequence[tuple[Step, Sequence[Touch]]], site: int, parent: int
    ) -> None:
        rows = max(step.rows for step in group.steps)
        scratch: Memory | None = None
        if group.private:
            space, start, length = group.private
            real = core.memory(space)
            window = real.data[start : start + length]
            scratch = Memory(0, np.tile(window, rows), guard=0)
        for step, first_row in touched:
            touches = [groups.over_rows(touch, step) for touch in first_row]
            if self.auto_sync is not None:
                self.auto_sync.before(core, step.instruction.row_fields(core, step.args), touches, site)
            row = self._write_row(core, step.instruction, step.args, touches, site, parent, step.rows)
            if scratch is not None and group.private:
                touches = [groups.redirected(touch, group.private) for touch in touches]
                core.memories[-1] = scratch
            try:
                step.instruction.perform(core, step.args, touches)
            except ValueError as error:
                raise self._fault(step.instruction, touches, site, row, error) from error
            finally:
                core.memories.pop(-1, None)
        if scratch is not None:
            window[:] = scratch.data[-length:]

    # The trace

    def _write_row(
        self, core: Core, instruction: Instruction, args: Sequence[Any], touches: Sequence[Touch], site: int,
        parent: int, times: int = 1,
    ) -> int:  # fmt: skip
        number = instruction.number
        if number not in self._mnemonics:
            self._mnemonics.add(number)
            self.sink.note("mnemonic", {"id": number, "name": instruction.name})
        accesses = b"".join([self._pack(touch, args) for touch in touches if not touch.region.is_empty()])
        pipe, kind, pipe2, arg, work = instruction.row_fields(core, args)
        return self.sink.append(
            pack_row(
                core.index, pipe, kind, number, len(accesses) // 64, pipe2, parent, arg, site, work * times,
                self.site_flags, 0, 0,
            ),
            accesses,
        )  # fmt: skip

    def _pack(self, touch: Touch, args: Sequence[Any]) -> bytes:
        region = touch.region
        mask = self.sink.mask(np.packbits(touch.mask, bitorder="little").tobytes()) if touch.mask is not None else 0
        number = self.object_number(args[touch.operand]) if touch.operand < len(args) else 0
        length, dims = folded(region)
        head = (region.space, touch.mode, touch.operand, touch.align, mask)
        if len(dims) == 1:
            return pack_access(*head, region.start, length, *dims[0], 1, 1, 0, 0, number, 0)
        packed = []
        for start, inner in _split(region.start, dims):
            (n3, s3), (n2, s2), (n1, s1) = ((1, 0),) * (3 - len(inner)) + inner
            packed.append(pack_access(*head, start, length, n1, s1, n2, n3, s2, s3, number, 0))
        return b"".join(packed)

    def _note_findings(self, findings: Sequence[Finding], row: int, site: int) -> None:
        for finding in findings:
            self.sink.note(
                "finding",
                {
                    "row": row, "site": site, "code": finding.code, "severity": str(finding.severity),
                    "headline": finding.headline, "notes": list(finding.notes), "mend": finding.mend,
                },
            )  # fmt: skip

    def _fault(self, instruction: Instruction, touches: list[Touch], site: int, row: int, error: ValueError) -> Fault:
        self.sink.note("fault", {"row": row, "site": site, "message": str(error)})
        return Fault(
            Diagnostic(
                code="M001",
                severity=Severity.ERROR,
                headline=f"{instruction.name} touches bytes far outside the memory: {error}",
                places=(Place(instruction.name, self.site_of(site)),),
                mend="Check the address and the size of its operands.",
            )
        )

    def site_of(self, number: int) -> Site | None:
        """The site behind a number, if it is an interned one."""
        if self.resolve_site is not None:
            return self.resolve_site(number)
        for (path, line, column), known in self._sites.items():
            if known == number:
                return Site(path, line, column)
        return None


def _object_note(value: Tile | GlobalTensor | Pointer) -> dict[str, Any]:
    note: dict[str, Any] = {"name": value.name, "dtype": value.dtype.name if value.dtype else "void"}
    if isinstance(value, Tile):
        note |= {
            "type": "tile", "space": int(value.space), "address": value.address, "rows": value.rows,
            "cols": value.cols, "valid_rows": value.valid_rows, "valid_cols": value.valid_cols,
            "blayout": int(value.blayout), "slayout": int(value.slayout), "fractal": value.fractal,
        }  # fmt: skip
    elif isinstance(value, GlobalTensor):
        note |= {"type": "global", "space": int(Space.GM)}
    else:
        note |= {"type": "buffer", "space": value.space}
    return note


def _split(
    start: int, dims: tuple[tuple[int, int], ...]
) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    """(start, at most three dims) pieces that together are ``dims``."""
    if len(dims) <= 3:
        yield start, dims
        return
    count, stride = dims[0]
    for index in range(count):
        yield from _split(start + index * stride, dims[1:])


PIPES_OF_BARRIER_ALL = tuple(p for p in Pipe if p != Pipe.ALL)
__all__ = ["Core", "CoreState", "Finding", "Group", "Instruction", "Kind", "Machine", "Memory", "Step", "Touch"]
