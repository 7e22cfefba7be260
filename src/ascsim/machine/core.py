"""The machine: memories, cores, and ``issue``, the one way in.

``issue`` does three things, in order: legality for this profile, before any effect; the bytes read and written, into the
trace; semantics. An instruction is anything with the :class:`Instruction` protocol; the machine knows none by name.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ascsim.diagnostics import CATALOGUE, Diagnostic, Fault, Place, Severity, Site
from ascsim.machine import groups
from ascsim.machine.ahead import Ahead, Front, OwnSignals, unfit
from ascsim.machine.autosync import AutoSync
from ascsim.machine.baton import Baton, Halted
from ascsim.machine.dtypes import DType
from ascsim.machine.fill import fill
from ascsim.machine.groups import Group, Step, Touch
from ascsim.machine.late import Held
from ascsim.machine.late import chosen as chosen_late
from ascsim.machine.native import MachineCode, Native, Tried
from ascsim.machine.operands import GlobalTensor, Pointer, Region, Tile, folded
from ascsim.machine.signals import CoreId, SignalMode, Signals
from ascsim.machine.trace import ACCESS, NEVER, ROW, Kind, Sink, pack_access, pack_row, pack_shape
from ascsim.machine.words import Kept, Space
from ascsim.profiles import Profile

SCRATCH = -1
"""The space of a group's private scratch, one copy a row."""
PLANS = 4096
VIEWS = 4096
"""How many plans and views are remembered."""
_MOST_ACCESSES = 255 * ACCESS.itemsize
"""Bytes of the accesses that one row of the trace can have."""
GUARD = 65536
"""Bytes beyond a local memory's capacity that an overrun may touch without ending the run."""
MOST_ALONE = 1000
"""So often a core may look at memory again while no other core is left that could write it."""

CATALOGUE.add(
    "M001", Severity.ERROR, "Access far outside a memory",
    "An instruction touched bytes so far outside the memory that the run could not go on. On a chip the core stops with "
    "an address error.\n\n"
    "The bytes, the operand and the memory's size are named; make the tile smaller, or move it.",
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
    is_static: bool
    """Whether operands alone decide its bytes, its trace row and its expansion (not core state, not data)."""

    @property
    def title(self) -> str:
        """How people call it."""

    @property
    def asm_title(self) -> str:
        """How ``.pto`` text calls it; may be empty."""

    def check(self, profile: Profile, args: Sequence[Any]) -> Sequence[Finding]:
        """Findings of this call. Raises Refused."""

    follows_data: bool
    """Of one that is not static: whether operands and known data alone decide that, and its warnings."""

    def decided_by(self, core: Core, args: Sequence[Any]) -> Region:
        """That data."""

    def expansion(self, core: Core, args: Sequence[Any]) -> Iterator[Group] | None:
        """The smaller instructions this one is made of on the core's profile, or None."""

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The bytes this call reads and writes."""

    def row_fields(self, core: Core, args: Sequence[Any]) -> tuple[int, int, int, int, int]:
        """(pipe, kind, pipe2, arg, work) of the trace row."""

    def element_type(self, args: Sequence[Any]) -> DType | None:
        """The element type by which its work is counted and costs."""

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Any:
        """Carry it out; returns what it yields (registers, scalars)."""

    def prepared(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Any] | None:
        """What carries out the same call any number of times, with all done before that can be; None: ``perform`` it.

        :func:`nothing` where the call is its row of the trace and no more."""

    def conclude(self, core: Core, args: Sequence[Any]) -> Any:
        """What the call yields once the smaller instructions have run."""

    def observer(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Sequence[Finding]] | None:
        """What gives the warnings that depend on the data which the call is about to read; None where there are none.

        Not asked of the steps of an expansion."""


def nothing() -> None:
    """What carries out a call that is its row of the trace and no more."""


@dataclass
class _PlannedGroup:
    """A group, and once it has run, its steps over all rows (empty: row by row; None: not known, or not the same
    again)."""

    group: Group
    owners: tuple[Tile, ...] = ()
    """The tiles that the expanded instruction works on: the steps know addresses only."""
    at_once: list[tuple[Step, Plan, list[Touch]]] | None = None


@dataclass
class Plan:
    """What a call comes to, as far as its operands decide it: remembered, so that a loop pays for it once."""

    instruction: Instruction
    findings: Sequence[Finding]
    touches: list[Touch]
    fields: tuple[int, int, int, int, int]
    accesses: bytes
    groups: list[_PlannedGroup] | None = None
    dtype: int = 0
    is_decided: bool = False
    """All calls with the same operands come to this, as long as the data stays that it depends on."""
    deciding: Any = None
    """The data that decides what the call comes to, where it is not static: an array in the memory of ``decided_on``."""
    decided_on: Core | None = None
    data: bytes = b""
    """What that was."""
    prepared: Callable[[], Any] | None = None
    """What carries it out on the core ``prepared_for``, where it has been asked for before."""
    prepared_for: Core | None = None
    observer: Callable[[], Sequence[Finding]] | None = None
    """What looks at its data first on the core ``observed_on``."""
    observed_on: Core | None = None
    row: bytes = b""
    """Its newest row, which is that of each call with the same ``row_key``."""
    row_key: tuple[int, int, int, int] | None = None
    again: _Again | None = None
    """Of an expansion: what carries it out once more on the core that it has run on."""

    def release(self) -> None:
        """Let go of the core."""
        self.deciding = self.decided_on = None
        self.prepared = self.prepared_for = self.observer = self.observed_on = self.again = None


@dataclass
class _Again:
    """An expansion as it has run on a core: the rows that it leaves, its own first, and what carries out its steps."""

    core: Core
    rows: bytearray
    parents: np.ndarray
    """The field of the rows of its steps that names its own."""
    sites: np.ndarray
    site: int
    accesses: bytes
    steps: list[Callable[[], Any]]


class Repetition(NamedTuple):
    """A call without Python: its rows of the trace (the parent of a step is 0), their accesses, the code that does it."""

    rows: bytes
    accesses: bytes
    work: list[Native]


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


def _words_at_start() -> np.ndarray:
    words = np.zeros(len(Kept), np.uint64)
    words[[Kept.MASK_LOW, Kept.MASK_HIGH]] = ALL_ONES
    return words


@dataclass(eq=False)
class CoreState:
    """What instructions of a core share beside memory.

    ``words`` are those that compiled instructions read and write (:class:`Kept`). ``mask`` holds the vector mask's
    high and low words: in normal mode one bit a lane of a repeat, in counter mode the low word is how many elements
    the whole call works on. ``pad`` are the bits that padding copies fill with. The loop registers of the A5's copies
    are (inner size, outer size, inner source and destination stride, outer ones). ``merged`` is VMS4_SR: how
    many pairs the last merge took of each of its four lists. ``compare_mask`` are the 128 bits that comparisons leave
    and selections read, ``kept`` how many elements the last gather by mask took, ``extreme`` the bits of the last
    reduction's largest or smallest element and its number, ``scale`` the factor of dequantising conversions.
    ``addresses`` are the address registers VA0 to VA7, each of eight blocks of UB. ``ndim_strides`` are (UB, global
    memory) of the five dimensions of the A5's copies, in elements, ``ndim_padding`` the elements of padding on either
    side of dimensions 1 to 4, ``ndim_value`` its bits.
    """

    counter_mode: bool = False
    pad: int = 0
    merged: tuple[int, int, int, int] = (0, 0, 0, 0)
    compare_mask: bytes = bytes(16)
    kept: int = 0
    extreme: tuple[int, int] = (0, 0)
    scale: float = 1.0
    addresses: tuple[tuple[int, ...], ...] = ((0,) * 8,) * 8
    gm2ub_loops: tuple[int, int, int, int, int, int] = (1, 1, 0, 0, 0, 0)
    ub2gm_loops: tuple[int, int, int, int, int, int] = (1, 1, 0, 0, 0, 0)
    ndim_strides: tuple[tuple[int, int], ...] = ((0, 0),) * 5
    ndim_padding: tuple[int, ...] = (0,) * 8
    ndim_value: int = 0
    words: np.ndarray = field(default_factory=_words_at_start)

    @property
    def mask(self) -> tuple[int, int]:
        """The vector mask: its high word and its low one."""
        return int(self.words[Kept.MASK_HIGH]), int(self.words[Kept.MASK_LOW])

    @mask.setter
    def mask(self, words: tuple[int, int]) -> None:
        self.words[Kept.MASK_HIGH], self.words[Kept.MASK_LOW] = words

    def copy(self) -> CoreState:
        """The state as it is now."""
        return replace(self, words=self.words.copy())

    def share(self, words: np.ndarray) -> None:
        """Keep the words in this array from now on."""
        words[:] = self.words
        self.words = words


class Core:
    """One core of a launch: its own memories and state."""

    def __init__(self, machine: Machine, index: int, block: int, side: str = "aiv", subblock: int = 0) -> None:
        self.machine = machine
        self.profile = machine.profile
        self.index = index
        self.block = block
        self.side = side
        self.subblock = subblock
        self.state = CoreState()
        self.flags: dict[tuple[int, int, int], int] = {}
        self.auto_site = 0
        self.memories: dict[int, Memory] = {Space.GM: machine.gm}
        self._views: dict[Region, np.ndarray] = {}
        self.held = Held(machine.late, machine.sink) if machine.late is not None else None
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.quietly = context.run
        """``quietly(function, *arguments)`` calls a function that NumPy does not warn in: in a tenth of the time that
        ``np.errstate`` takes."""

    def finish(self) -> None:
        """The kernel has come to its end: what is held back takes effect.

        Raises:
            Fault: it cannot.
        """
        if self.held is not None:
            self.held.release(NEVER)
        if self.machine.auto_sync is not None:
            self.machine.auto_sync.forget(self.index)

    def memory(self, space: int) -> Memory:
        """The memory of that space, made on first use."""
        found = self.memories.get(space)
        if found is None:
            found = Memory(self.profile.spaces[Space(space).name].capacity)
            if self.machine.fill != "zero":
                fill(found.data, self.machine.fill)
            self.memories[space] = found
        return found

    def view(self, region: Region) -> np.ndarray:
        """The region as an array that shares memory."""
        if region.space <= Space.GM:  # global memory may grow, scratch comes and goes
            return self.memory(region.space).view(region)
        view = self._views.get(region)
        if view is None:
            if len(self._views) >= VIEWS:
                self._views.clear()
            view = self._views[region] = self.memory(region.space).view(region)
        return view


class Machine:
    """A chip of one profile, with its global memory, its trace and its noted sites and objects."""

    def __init__(self, profile: Profile, sink: Sink, gm: Memory | None = None) -> None:
        self.profile = profile
        self.sink = sink
        self.fill = "zero"
        """What the memories of its cores hold at first (:mod:`ascsim.machine.fill`)."""
        self.late = chosen_late()
        """The pipe that is held back (:mod:`ascsim.machine.late`)."""
        self.gm = gm or Memory(0, np.zeros(0, np.uint8))
        self._sites: dict[Any, int] = {}
        self._objects: dict[Any, int] = {}
        self._tiles: dict[int, tuple[Tile, int]] = {}
        self.blocks = 1
        self._noted: set[int | str] = set()
        self.is_ahead = False
        """Whether this is the process of blocks that run ahead (:mod:`ascsim.machine.ahead`)."""
        self.unfit: set[str] = set()
        """Kernels whose blocks cannot."""
        self._plans: dict[tuple, Plan] = {}
        """By instruction and operands: the newest plan."""
        self.run_cores([CoreId(0, 0, "aiv")], lambda core: True)
        self.site_flags = 0
        self.resolve_site: Any = None
        self.auto_sync: AutoSync | None = None
        sink.note("profile", {"name": profile.name})

    # Cores that run side by side

    def run_cores(
        self, cores: Sequence[CoreId], run: Callable[[CoreId], bool], leave: Callable[[int], None] = lambda core: None,
        enter: Callable[[int], None] = lambda core: None, front: Front | None = None,
    ) -> None:  # fmt: skip
        """Run the cores of a launch: ``run`` each to its end, but where one waits for another, others in the middle of it.

        ``run`` returns whether the launch goes on. ``leave`` and ``enter`` are told which core (by its place in ``cores``)
        another one takes over from, and which goes on. With a ``front``, blocks may run ahead.
        """
        self._cores, self._switches = cores, (leave, enter)
        self._places: dict[int, int] = {}
        self.subblocks = max((core.subblock + 1 for core in cores), default=1)
        self.signals = Signals(cores)
        self._polled: dict[int, int] = {}
        self._alone = 0
        self._baton = Baton(
            len(cores), lambda place: run(cores[place]), leave, enter, partial(_note_deadlock, self.sink)
        )
        self._baton.run(Ahead(self, cores, run, front) if front is not None else lambda core: 0)
        self.release()
        if not self._baton.halted:
            for kind, found in (("signal_left", self.signals.left()), ("signal_overflow", self.signals.overflowed)):
                for left in found:
                    self.sink.note(kind, left._asdict())

    def release(self) -> None:
        """Let go of what plans hold of cores: then a core's memories go as soon as nobody else holds it."""
        for plan in self._plans.values():
            plan.release()
            for planned in plan.groups or ():
                for _, inner, _ in planned.at_once or ():
                    inner.release()

    def _place(self, core: Core) -> int:
        """Which of the launch's cores it is."""
        if not self._places:
            self._places.update((other.number, place) for place, other in enumerate(self._cores))
        return self._places[core.index]

    def await_signal(self, core: Core, mode: SignalMode, flag: int) -> int:
        """Hold a core until a signal is there, and take it; returns its token, 0 if the launch ends instead."""
        signals = self.signals
        try:
            self._baton.wait(self._place(core), lambda: signals.is_set(core.index, mode, flag))
        except Halted:
            return 0
        return signals.take(core.index, mode, flag)

    @property
    def is_halted(self) -> bool:
        """Whether the launch has ended, so that no core may go on."""
        return self._baton.halted

    def give_way(self, core: Core) -> None:
        """Let other cores go on: a core that polls memory must not keep them from writing it.

        Raises:
            Halted: the launch has ended.
        """
        if self.is_ahead:
            unfit()
        if self._baton.give_way(self._place(core)):
            self._alone = 0
            return
        self._alone += 1
        if self._alone > MOST_ALONE:
            self.sink.note("polling", {"core": core.index})
            self._baton.halt()
            raise Halted

    def poll(self, core: Core, place: int) -> None:
        """A core looks at a place in memory anew; the second time in a row others go on first.

        Raises:
            Halted: the launch has ended.
        """
        if self._polled.get(core.index) == place:
            self.give_way(core)
        self._polled[core.index] = place

    # Blocks that run ahead

    def run_span(self, cores: Sequence[CoreId], run: Callable[[CoreId], bool]) -> bool:
        """Run some blocks of the launch, in a process of theirs; returns whether the launch goes on behind them."""
        self._cores, self._places, self.signals = cores, {}, OwnSignals(cores)
        self._baton = Baton(len(cores), lambda place: run(cores[place]), *self._switches, lambda waiting: unfit())
        self._baton.run()
        return not self._baton.halted

    @property
    def object_count(self) -> int:
        """How many objects are noted."""
        return len(self._objects)

    def objects_from(self, number: int) -> list[Any]:
        """What is noted behind the first ``number`` objects."""
        return list(self._objects)[number:]

    def join_objects(self, keys: Sequence[Any]) -> tuple[np.ndarray, list[bool]]:
        """Number objects that were noted elsewhere: their numbers here (int64), and which of them are new."""
        before = len(self._objects)
        numbers = [self._objects.setdefault(key, len(self._objects) + 1) for key in keys]
        return np.array(numbers, np.int64), [number > before for number in numbers]

    # Notes that stand once

    def is_new(self, key: int | str) -> bool:
        """Whether nothing was noted under a key; from now on it is."""
        if key in self._noted:
            return False
        self._noted.add(key)
        return True

    def note_once(self, key: int | str, kind: str, data: dict[str, Any]) -> None:
        """Note something that needs to be said once in a run. The key of a mnemonic is its number."""
        if self.is_new(key):
            self.sink.note(kind, data | {"once": key} if self.is_ahead else data)

    def site(self, path: str, line: int, column: int = 0, function: str = "") -> int:
        """The number of a source site, noted on first use."""
        key = (path, line, column)
        number = self._sites.get(key)
        if number is None:
            if self.is_ahead:
                unfit()
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
            key = (type(value), value.name, value.dtype)
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
        return self.carry_out(core, self.plan(core, instruction, args), args, site)

    def plan(self, core: Core, instruction: Instruction, args: Sequence[Any]) -> Plan:
        """What a call comes to, for :meth:`carry_out`. Of an instruction that is static it is so for all calls with the
        same operands.

        Raises:
            Refused: the chip's tool chain would not accept it.
        """
        if not instruction.is_static and not instruction.follows_data:
            return self._new_plan(core, instruction, args)
        key = (instruction, *args)
        known = self._plans.get(key)
        if instruction.is_static:
            return known if known is not None else self._new_plan(core, instruction, args, key)
        if known is not None and self.still_holds(core, known):
            return known
        try:
            deciding = core.view(instruction.decided_by(core, args))
        except ValueError:  # outside the memory, which the call will tell
            return self._new_plan(core, instruction, args)
        data = deciding.tobytes()
        if known is None or known.data != data:
            known = self._new_plan(core, instruction, args, key)
        known.deciding, known.decided_on, known.data = deciding, core, data
        return known

    def still_holds(self, core: Core, plan: Plan) -> bool:
        """Whether the call of a plan of this machine comes to the same again on a core."""
        return plan.instruction.is_static or (plan.decided_on is core and plan.deciding.tobytes() == plan.data)

    def _new_plan(
        self, core: Core, instruction: Instruction, args: Sequence[Any], key: tuple | None = None
    ) -> Plan:  # fmt: skip
        """A plan, remembered under its key, if it has one."""
        findings = instruction.check(self.profile, args)
        expansion = instruction.expansion(core, args)
        plan = self._plan(core, instruction, args, findings, None if expansion is None else list(expansion))
        if key is not None:
            plan.is_decided = True
            if len(self._plans) >= PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def repetition(self, core: Core, plan: Plan) -> Repetition | None:
        """What the call of a plan comes to, if machine code does all of it and it has run on this core; None otherwise."""
        if plan.findings or not plan.is_decided or self.auto_sync is not None or core.held is not None:
            return None
        if plan.observed_on is not core or (plan.groups is None and plan.prepared_for is not core):
            return None
        if plan.groups is None:
            rows: bytes | bytearray = plan.row
            accesses, steps = plan.accesses, [plan.prepared] if plan.prepared is not nothing else []
        else:
            again = plan.again
            if again is None or again.core is not core:
                return None
            again.parents[...] = 0
            rows, accesses, steps = again.rows, again.accesses, list(again.steps)
        if any(isinstance(step, Tried) for step in steps[1:]):
            return None
        work: list[Any] = [*([plan.observer] if plan.observer is not None else []), *steps]
        native = [one.native for one in work if isinstance(one, MachineCode)]
        if (
            len(native) < len(work)
            or not rows
            or len(accesses) > _MOST_ACCESSES
            or any(code is None for code in native)
        ):
            return None
        return Repetition(bytes(rows), accesses, [code for code in native if code is not None])

    def carry_out(self, core: Core, plan: Plan, args: Sequence[Any], site: int) -> Any:
        """Run the call of a plan on a core: trace and semantics. Returns what the instruction yields.

        Raises:
            Fault: the run cannot go on.
        """
        if plan.groups is None:
            return self._run(core, plan, args, site, -1)
        again = plan.again
        if again is not None and again.core is core and self.auto_sync is None:
            self._run_again(plan, again, args, site)
        else:
            self._expand(core, plan, args, site)
        return plan.instruction.conclude(core, args)

    def _plan(
        self, core: Core, instruction: Instruction, args: Sequence[Any], findings: Sequence[Finding] = (),
        steps: list[Group] | None = None, owners: Sequence[Tile] = (),
    ) -> Plan:  # fmt: skip
        if steps is None:
            touches = instruction.touches(core, args)
            fields = instruction.row_fields(core, args)
            packed = self._pack(touches, args, owners)
            return Plan(instruction, findings, touches, fields, packed, None, _dtype_code(instruction, args))
        owners = tuple(arg for arg in args if isinstance(arg, Tile))
        planned = [_PlannedGroup(group, owners) for group in steps]
        return Plan(
            instruction, findings, [], instruction.row_fields(core, args), b"", planned, _dtype_code(instruction, args)
        )

    def _run(self, core: Core, plan: Plan, args: Sequence[Any], site: int, parent: int) -> Any:
        if self.auto_sync is not None:
            self.auto_sync.before(core, plan.fields, plan.touches, site)
        row = self._write_row(core, plan, site, parent)
        if plan.findings:
            self._note_findings(plan.findings, row, site)
        if parent < 0:
            self._observe(core, plan, args, site, row)
        return self._perform(core, plan, args, plan.touches, site, row)

    def _observe(self, core: Core, plan: Plan, args: Sequence[Any], site: int, row: int) -> None:
        if plan.observed_on is not core:
            plan.observer, plan.observed_on = plan.instruction.observer(core, args, plan.touches), core
        if plan.observer is None:
            return
        try:
            self._note_findings(plan.observer(), row, site)
        except ValueError as error:
            raise self._fault(plan.instruction, plan.touches, site, row, error) from error

    def _expand(self, core: Core, plan: Plan, args: Sequence[Any], site: int) -> None:
        """Run an expansion, group by group."""
        row = self._write_row(core, plan, site, -1)
        self._note_findings(plan.findings, row, site)
        self._observe(core, plan, args, site, row)
        assert plan.groups is not None
        for group in plan.groups:
            self._run_group(core, group, site, row, plan.is_decided and not plan.instruction.is_static)
        if plan.is_decided and core.held is None and self.auto_sync is None:
            plan.again = self._again(core, plan, site)

    def _again(self, core: Core, plan: Plan, site: int) -> _Again | None:
        """What carries out once more an expansion that has run; None where its steps may come out otherwise."""
        rows, accesses, steps = bytearray(self._pack_row(core, plan, site, -1, plan.fields[4], 0)), [], []
        for planned in plan.groups or ():
            if not planned.at_once or (planned.group.private and planned.group.rows > 1):
                return None
            for _, step, _ in planned.at_once:
                if step.prepared is None or step.prepared_for is not core or len(step.accesses) > _MOST_ACCESSES:
                    return None
                count = len(step.accesses) // ACCESS.itemsize
                rows += self._pack_row(core, step, site, 0, step.fields[4], count)
                accesses.append(step.accesses)
                if step.prepared is not nothing:
                    steps.append(step.prepared)
        packed = b"".join(accesses)
        if max(len(rows), len(packed)) > _MOST_ACCESSES:
            return None
        table = np.frombuffer(rows, ROW)
        return _Again(core, rows, table["parent"][1:], table["site"], site, packed, steps)

    def _run_again(self, plan: Plan, again: _Again, args: Sequence[Any], site: int) -> None:
        """An expansion that has run on this core, once more: all its rows in one piece, and then its steps."""
        row = self.sink.n_rows
        if plan.findings:
            self._note_findings(plan.findings, row, site)
        self._observe(again.core, plan, args, site, row)
        again.parents[...] = row
        if again.site != site:
            again.site = site
            again.sites[...] = site
        self.sink.append(again.rows, again.accesses)
        for step in again.steps:
            step()

    def _perform(
        self, core: Core, plan: Plan, args: Sequence[Any], touches: list[Touch], site: int, row: int,
        may_wait: bool = True,
    ) -> Any:  # fmt: skip
        """Carry an instruction out, now or (``may_wait``) when something waits for its pipe."""
        held = core.held
        if held is not None:
            if plan.fields[1] != Kind.INSTRUCTION:
                held.meet(plan.fields, row)
            elif may_wait and plan.fields[0] == held.pipe:
                held.hold(row, partial(self._perform_late, core, plan, args, touches, site, row, core.state.copy()))
                return None
        try:
            if plan.prepared_for is not core:
                plan.prepared, plan.prepared_for = plan.instruction.prepared(core, args, touches), core
            if plan.prepared is not None:
                return plan.prepared()
            return plan.instruction.perform(core, args, touches)
        except ValueError as error:
            raise self._fault(plan.instruction, touches, site, row, error) from error

    def _perform_late(
        self, core: Core, plan: Plan, args: Sequence[Any], touches: list[Touch], site: int, row: int, state: CoreState
    ) -> None:
        now, core.state = core.state, state
        try:
            self._perform(core, plan, args, touches, site, row, may_wait=False)
        finally:
            core.state = now

    def _run_group(
        self, core: Core, planned: _PlannedGroup, site: int, parent: int, follows_data: bool = False
    ) -> None:  # fmt: skip
        """``follows_data``: what decided the expansion decides its steps, too, static or not."""
        group = planned.group
        at_once = planned.at_once
        if at_once is None:
            is_static = follows_data or all(step.instruction.is_static for step in group.steps)
            at_once = self._plan_rows(core, planned) if is_static or group.rows > 1 else []
            if is_static:
                planned.at_once = at_once
        if not at_once:
            for row in range(group.rows):
                for step in group.steps:
                    args = groups.moved(step, row) if step.rows > 1 else step.args
                    plan = self._plan(core, step.instruction, args, owners=planned.owners)
                    self._run(core, plan, args, site, parent)
            return
        scratch: Memory | None = None
        if group.private and group.rows > 1:
            if core.held is not None:  # what is held back would not find the scratch again
                core.held.release(parent)
            space, start, length = group.private
            window = core.memory(space).data[start : start + length]
            scratch = Memory(0, np.tile(window, group.rows), guard=0)
            core.memories[SCRATCH] = scratch
        for step, plan, touches in at_once:
            if self.auto_sync is not None:
                self.auto_sync.before(core, plan.fields, plan.touches, site)
            row = self._write_row(core, plan, site, parent)
            self._perform(core, plan, step.args, touches, site, row, may_wait=scratch is None)
        if scratch is not None:
            window[:] = scratch.data[-length:]

    def _plan_rows(self, core: Core, planned_group: _PlannedGroup) -> list[tuple[Step, Plan, list[Touch]]]:
        """Each step with its row of the trace and its bytes over all rows; empty where rows must follow each other."""
        group, owners = planned_group.group, planned_group.owners
        touched = [(step, step.instruction.touches(core, step.args)) for step in group.steps]
        if group.rows > 1 and not groups.rows_are_independent(touched, group.private):
            return []
        scratch = group.private if group.rows > 1 else None
        planned = []
        for step, first_row in touched:
            touches = [groups.over_rows(touch, step) for touch in first_row]
            pipe, kind, pipe2, arg, work = step.instruction.row_fields(core, step.args)
            if step.rows > 1 and kind in (Kind.INSTRUCTION, Kind.BARRIER):
                arg, work = step.rows, work * step.rows
            code, packed = _dtype_code(step.instruction, step.args), self._pack(touches, step.args, owners)
            plan = Plan(step.instruction, (), touches, (pipe, kind, pipe2, arg, work), packed, None, code)
            planned.append((step, plan, [groups.redirected(t, scratch) for t in touches] if scratch else touches))
        return planned

    # The trace

    def _write_row(self, core: Core, plan: Plan, site: int, parent: int) -> int:
        accesses = plan.accesses
        if len(accesses) <= _MOST_ACCESSES:
            key = (core.index, site, parent, self.site_flags)
            if plan.row_key != key:
                plan.row_key = key
                plan.row = self._pack_row(core, plan, site, parent, plan.fields[4], len(accesses) // ACCESS.itemsize)
            return self.sink.append(plan.row, accesses)
        row = self._append(core, plan, site, parent, plan.fields[4], accesses[:_MOST_ACCESSES])
        for first in range(_MOST_ACCESSES, len(accesses), _MOST_ACCESSES):  # the rest stands in rows below it
            part = accesses[first : first + _MOST_ACCESSES]
            self._append(core, plan, site, row if parent < 0 else parent, 0, part)
        return row

    def _append(self, core: Core, plan: Plan, site: int, parent: int, work: int, accesses: bytes) -> int:
        count = len(accesses) // ACCESS.itemsize
        return self.sink.append(self._pack_row(core, plan, site, parent, work, count), accesses)

    def _pack_row(self, core: Core, plan: Plan, site: int, parent: int, work: int, accesses: int) -> bytes:
        """A row of the trace. The first one of an instruction in the run notes what it is called."""
        instruction, number = plan.instruction, plan.instruction.number
        if number not in self._noted:
            names = {"name": instruction.name, "title": instruction.title, "asm": instruction.asm_title}
            self.note_once(number, "mnemonic", {"id": number, **names})
        pipe, kind, pipe2, arg, _ = plan.fields
        return pack_row(
            core.index, pipe, kind, number, accesses, pipe2, parent, arg, site, work, self.site_flags, plan.dtype, 0
        )

    def _pack(self, touches: Sequence[Touch], args: Sequence[Any], owners: Sequence[Tile] = ()) -> bytes:
        return b"".join([self._pack_one(touch, args, owners) for touch in touches if _leaves_record(touch)])

    def _pack_one(self, touch: Touch, args: Sequence[Any], owners: Sequence[Tile]) -> bytes:
        region = touch.region
        mask = self.sink.mask(np.packbits(touch.mask, bitorder="little").tobytes()) if touch.mask is not None else 0
        number = self.object_number(_owner(owners, region)) if owners else 0
        if not number and touch.operand < len(args):
            number = self.object_number(args[touch.operand])
        masked = touch.mask is not None  # burst by burst
        length, dims = (region.length, region.dims) if masked else folded(region)
        head = (region.space, touch.mode, touch.operand, touch.align, mask)
        packed = []
        for start, inner in _split(region.start, dims):
            pairs = (pair for dim in reversed(inner) for pair in dim)
            shape = self.sink.shape(pack_shape(*pairs)) if inner else 0
            packed.append(pack_access(*head, start, length, shape, number, touch.register or not touch.used))
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


def _note_deadlock(sink: Sink, places: Sequence[int]) -> None:
    sink.note("deadlock", {"cores": list(places)})


def _dtype_code(instruction: Instruction, args: Sequence[Any]) -> int:
    """The element type of a call; 0 for none."""
    kind = instruction.element_type(args)
    return kind.code if kind else 0


def _owner(owners: Sequence[Tile], region: Region) -> Tile | None:
    """The smallest of some tiles that a region begins in."""
    held = [t for t in owners if t.space == region.space and 0 <= region.start - t.address < t.nbytes]
    return min(held, key=lambda tile: tile.nbytes, default=None)


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


def _leaves_record(touch: Touch) -> bool:
    """Whether it touches a byte; an operand that touches none is recorded where its address is misaligned."""
    region = touch.region
    if region.space == Space.STATE:
        return True
    return not region.is_empty() or bool(not region.length and not region.dims and region.start % (1 << touch.align))


def _split(start: int, dims: tuple[tuple[int, int], ...]) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    """(start, at most three dims) pieces that together are ``dims``."""
    if len(dims) <= 3:
        yield start, dims
        return
    count, stride = dims[0]
    for index in range(count):
        yield from _split(start + index * stride, dims[1:])


__all__ = [
    "Core", "CoreState", "Finding", "Group", "Instruction", "Kind", "Machine", "Memory", "Plan", "Step", "Touch",
    "nothing",
]  # fmt: skip
