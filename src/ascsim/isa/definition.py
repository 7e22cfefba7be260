"""The definition of an instruction: one record that carries everything known about it.

From a definition come, without another line by hand: the Python function, the ``.pto`` operation, the C++ prototypes in
the generated header, the reference page, and the parametrised test that it refuses what its rules refuse.

There are four kinds, one a level:

* :class:`TileInstruction` - operands are tiles and views of global memory; a class with operands, rules, ``semantics``
  and, where a chip's library expands it, ``expand``.
* :class:`MemoryInstruction` - operands are typed addresses; a ``touches`` function says which bytes, the semantics see
  them as arrays.
* :class:`RegisterInstruction` - operands are 256-byte vector and mask registers, scalars and UB addresses.
* :class:`PlainInstruction` - flags, barriers, queries: no array semantics, an ``effect`` on the core.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from types import FrameType, SimpleNamespace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ascsim.diagnostics import CATALOGUE, Diagnostic, Place, Refused, Severity
from ascsim.isa import rules as rule_language
from ascsim.isa.lanewise import Code
from ascsim.isa.rules import Rule
from ascsim.machine.core import Core, Finding, Group, Touch, nothing
from ascsim.machine.dtypes import DTYPES, DType, f16, u64
from ascsim.machine.native import Bound, Tried
from ascsim.machine.operands import REGISTER_BYTES, GlobalTensor, MReg, Pointer, Region, Tile, VReg
from ascsim.machine.trace import Kind, Mode
from ascsim.machine.words import Kept, Pipe, Space
from ascsim.profiles import NAMES as ALL_PROFILES
from ascsim.profiles import Profile

_MAGNITUDE, _INFINITY, _QUIET = (np.uint16(bits) for bits in (0x7FFF, 0x7C00, 0x0200))
"""Bits of a half."""
CHIPS = ("a2a3", "a5")
A5 = ("a5",)
A2A3 = ("a2a3",)
_REMEMBERED = 10_000
"""Verdicts that one definition remembers."""


class Role(Enum):
    """What an instruction does with an operand."""

    OUT = "out"
    IN = "in"
    INOUT = "inout"
    SCRATCH = "scratch"


class Sort(Enum):
    """What an operand is."""

    TILE = "tile"
    GLOBAL = "global"
    VREG = "vector register"
    MREG = "mask register"
    UREG = "unaligned register"
    POINTER = "address"
    SCALAR = "scalar"
    ENUM = "enumeration"
    COUNTS = "counts"
    """Four 16-bit counts that a call yields as one number of 64 bits; -1 where it leaves those of its caller alone."""
    STATE = "core state"


@dataclass(frozen=True)
class Operand:
    """One operand. ``dtype`` is a type, the name of a type variable (``T``), or None for any.

    ``space`` is where a pointer points; ``enum`` the enumeration of an ENUM operand; ``kept`` which word of the core a
    STATE operand is, which no caller gives or gets; ``align`` the byte alignment that
    an address must have; ``lane_mask`` says that a mask register governs the lanes of that type variable; ``asm_name``
    is the name of its attribute in ``.pto`` text, where that is another; ``shares`` names the operand whose address it is
    to have too. ``element`` is (array, number) where C++ passes the operand as an element of an array of addresses, and
    ``if_bit`` the (operand, bit) that says whether it is there. ``binds`` marks a tile that gets its address from
    the instruction, which returns it. ``explicit``: C++ has no default for it.
    ``used_on`` are the profiles that touch it, where not all do; ``cpp_any``: C++ takes a value of any enumeration for it.
    ``lies_in`` are the memories of a tile by which forms of one name are told apart.
    """

    name: str
    role: Role
    sort: Sort
    dtype: DType | str | None = None
    optional: bool = False
    default: Any = None
    doc: str = ""
    space: Space = Space.UB
    enum: type | None = None
    align: int = 32
    lane_mask: str = ""
    asm_name: str = ""
    cpp_given: bool = False
    shares: str = ""
    element: tuple[str, int] | None = None
    if_bit: tuple[str, int] | None = None
    binds: bool = False
    kept: Kept | None = None
    explicit: bool = False
    used_on: tuple[str, ...] = ()
    cpp_any: bool = False
    lies_in: tuple[Space, ...] = ()

    @property
    def is_input(self) -> bool:
        """True where a caller gives a value."""
        return self.sort is not Sort.STATE and self.is_read

    @property
    def is_read(self) -> bool:
        """True where the instruction takes a value."""
        if self.sort is Sort.STATE:
            return self.role is not Role.OUT
        return self.role is not Role.OUT or self.sort not in (Sort.VREG, Sort.MREG, Sort.UREG, Sort.COUNTS)


def Out(name: str, sort: Sort = Sort.TILE, dtype: DType | str | None = None, **more: Any) -> Operand:
    """An operand that is written."""
    return Operand(name, Role.OUT, sort, dtype, **more)


def In(name: str, sort: Sort = Sort.TILE, dtype: DType | str | None = None, **more: Any) -> Operand:
    """An operand that is read."""
    return Operand(name, Role.IN, sort, dtype, **more)


def InOut(name: str, sort: Sort = Sort.TILE, dtype: DType | str | None = None, **more: Any) -> Operand:
    """An operand that is read and written."""
    return Operand(name, Role.INOUT, sort, dtype, **more)


def Scratch(name: str, sort: Sort = Sort.TILE, dtype: DType | str | None = None, **more: Any) -> Operand:
    """Working space of the instruction, its content undefined afterwards."""
    return Operand(name, Role.SCRATCH, sort, dtype, **more)


def Scalar(name: str, dtype: DType | str, **more: Any) -> Operand:
    """A number."""
    return Operand(name, Role.IN, Sort.SCALAR, dtype, **more)


def Choice(name: str, enum: type, **more: Any) -> Operand:
    """A value of an enumeration, or a small integer."""
    return Operand(name, Role.IN, Sort.ENUM, None, enum=enum, **more)


def LaneMask(name: str = "mask", of: str = "T") -> Operand:
    """A mask register that says which lanes of type ``of`` are active."""
    return Operand(name, Role.IN, Sort.MREG, lane_mask=of, doc="which lanes are active")


def State(kept: Kept, role: Role) -> Operand:
    """A 64-bit word that the core keeps between instructions."""
    return Operand(kept.name.lower(), role, Sort.STATE, u64, kept=kept)


@dataclass(frozen=True)
class Asm:
    """A ``.pto`` spelling: the operation's name after ``pto.``, and the attribute values that select this instruction.

    An attribute with the name ``""`` is a bare string of the text, one with the value ``""`` is there without a value.
    ``order`` names the operands as the text has them (of a tile instruction: under ``ins``), where that is not the
    order of the inputs; ``"_"`` is one that the text has and the instruction does without, and a lane mask that it
    leaves out has all lanes. ``sizes`` are the
    element sizes in bytes of the result, or else the first operand, that it stands for; empty: all. An operand of an
    enumeration is written as a bare string, or as an attribute of its name, that names a member.
    """

    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    order: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()


class Definition:
    """What all kinds of instruction share. ``number`` is given by the registry.

    ``cpp_order`` names the operands in the order of the C++ function's arguments; an optional operand may stand
    anywhere in it, and there is an overload without it. ``cpp_templates`` lists the forms that take template
    arguments: each a string of operand names in template order, a tile's or a number's name standing for its type and
    an enumeration's for its value (``"phase"`` for ``NAME<Phase>(dst, src)``, ``"src dst atomic"`` for
    ``NAME<Src, Dst, Atomic>(dst, src)``); an enumeration that stands there is never a function argument. ``warns`` are
    the codes of what it reports (``observe``) where data or addresses are so; the reference page lists them.
    """

    level: ClassVar[str] = ""
    is_static = False
    follows_data = False

    def __init__(
        self,
        name: str,
        *,
        operands: Sequence[Operand],
        pipe: Pipe,
        profiles: Sequence[str],
        doc: str,
        cpp: str = "",
        aliases: Sequence[str] = (),
        cpp_order: Sequence[str] | None = None,
        cpp_templates: Sequence[str] = (),
        asm: Sequence[Asm] = (),
        rules: Sequence[Rule] = (),
        notes: Sequence[str] = (),
        assumed: Sequence[str] = (),
        sources: Sequence[str] = (),
        warns: Sequence[str] = (),
        core: str = "aiv",
    ) -> None:
        self.name = name
        self.number = 0
        self.operands = tuple(operands)
        self.pipe = pipe
        self.profiles = tuple(profiles)
        self.doc = inspect.cleandoc(doc or "")
        self.cpp = cpp
        self.aliases = tuple(aliases)
        self.cpp_order = tuple(cpp_order or (o.name for o in operands if o.sort is not Sort.STATE))
        self.cpp_templates = tuple(cpp_templates)
        self.asm = tuple(asm)
        self.rules = tuple(rules)
        self.notes = tuple(notes)
        self.assumed = tuple(assumed)
        self.sources = tuple(sources)
        self.warns = tuple(warns)
        self.core = core
        self.inputs = tuple(o for o in self.operands if o.is_input)
        self.is_placed = any(o.lies_in for o in self.operands)
        self._names = [o.name for o in self.inputs]
        self._index = {name: i for i, name in enumerate(self._names)}
        self._verdicts: dict[tuple, tuple[Finding, ...] | Diagnostic] = {}

    def __repr__(self) -> str:
        return f"<{self.level} instruction {self.name}>"

    @property
    def title(self) -> str:
        """The name its users know it by."""
        return self.cpp or self.name

    @property
    def asm_title(self) -> str:
        """Its first name in ``.pto`` text, empty for what has none."""
        return f"pto.{self.asm[0].name}" if self.asm else ""

    def call(self, args: Sequence[Any]) -> SimpleNamespace:
        """The arguments by operand name; optional ones that were not given are at their default."""
        call = SimpleNamespace(**dict(zip(self._names, args, strict=False)))
        if len(args) < len(self._names):
            for operand in self.inputs[len(args) :]:
                setattr(call, operand.name, operand.default)
        return call

    def takes(self, args: Sequence[Any]) -> bool:
        """Whether the element types and the memories of the operands are among those it is for; how an overload is chosen."""
        return not self.is_placed or all(
            a.space in o.lies_in for o, a in zip(self.inputs, args, strict=False) if o.lies_in and a is not None
        )

    # Legality

    def check(self, profile: Profile, args: Sequence[Any]) -> tuple[Finding, ...]:
        """Findings of a call with these arguments on this profile; remembered by the arguments' signatures.

        Raises:
            Refused: the profile's tool chain would not accept the call.
        """
        key = (profile.name, *[a if isinstance(a, int) else getattr(a, "signature", a) for a in args])
        verdict = self._verdicts.get(key)
        if verdict is None:
            try:
                verdict = tuple(self._judge(profile, args))
            except Refused as refusal:  # which itself holds all frames that it came through
                verdict = refusal.diagnostic
            if len(self._verdicts) >= _REMEMBERED:  # a scalar that is data makes ever new calls
                self._verdicts.clear()
            self._verdicts[key] = verdict
        if isinstance(verdict, Diagnostic):
            raise Refused(verdict)
        return verdict

    def _judge(self, profile: Profile, args: Sequence[Any]) -> Iterator[Finding]:
        self.check_profile(profile)
        needed = sum(not o.optional for o in self.inputs)
        if not needed <= len(args) <= len(self.inputs):
            raise self._refusal("L009", rule_language.wrong_count(self, len(args)), "")
        call = self.call(args)
        for operand, value in zip(self.inputs, args, strict=False):
            problem = rule_language.wrong_sort(self, operand, value)
            if problem:
                raise self._refusal("L009", problem, "")
        for rule in (*rule_language.STANDING, *self.rules):
            if rule.profiles and profile.name not in rule.profiles:
                continue
            problem = rule.test(self, call, profile)
            if not problem:
                continue
            if rule.refuses:
                raise self._refusal(rule.code, f"{self.title}: {problem}", rule.mend)
            yield Finding(rule.code, rule.severity, f"{self.title}: {problem}", (rule.why,), rule.mend)

    def check_profile(self, profile: Profile) -> None:
        """Nothing.

        Raises:
            Refused: the profile does not have the instruction.
        """
        if profile.name not in self.profiles:
            raise self._refusal("L001", rule_language.not_on_profile(self, profile), self._where_it_is())

    def _where_it_is(self) -> str:
        from ascsim import profiles

        return "It exists on " + ", ".join(f"{n} ({profiles.load(n).products})" for n in self.profiles) + "."

    def _refusal(self, code: str, headline: str, mend: str) -> Refused:
        return Refused(Diagnostic(code, Severity.ERROR, headline, (Place(self.title),), (), mend))

    # What the machine asks (see machine.core.Instruction)

    def decided_by(self, core: Core, args: Sequence[Any]) -> Region:
        """The data that decides what a call comes to, of what follows data."""
        raise NotImplementedError

    def expansion(self, core: Core, args: Sequence[Any]) -> Iterator[Group] | None:
        """Groups of smaller instructions, or None."""
        return None

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The bytes this call reads and writes."""
        return []

    def row_fields(self, core: Core, args: Sequence[Any]) -> tuple[int, int, int, int, int]:
        """(pipe, kind, pipe2, arg, work) of the trace row."""
        return self.pipe, Kind.INSTRUCTION, 0, 0, 1

    def element_type(self, args: Sequence[Any]) -> DType | None:
        """The element type by which its work is counted and costs: that of its first operand that has one."""
        return first_type(args)

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Any:
        """Carry it out."""
        raise NotImplementedError

    def prepared(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Any] | None:
        """What carries out the same call any number of times; None where :meth:`perform` has to look each time."""
        return None

    def conclude(self, core: Core, args: Sequence[Any]) -> Any:
        """What a call yields after the steps of its expansion."""
        return None

    def observe(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Sequence[Finding]:
        """Warnings that depend on the data."""
        return ()

    def observer(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Sequence[Finding]] | None:
        """:meth:`observe` for the same call any number of times; None where there is nothing to observe."""
        return None if type(self).observe is Definition.observe else partial(self.observe, core, args, touches)


def first_type(args: Sequence[Any]) -> DType | None:
    """The element type of the first operand that has one."""
    kinds = (getattr(value, "dtype", None) for value in args)
    return next((kind for kind in kinds if isinstance(kind, DType)), None)


# Numbers in and out of semantics (docs/design.md, section 4)


def viewed_as(view: np.ndarray, dtype: DType | None) -> DType:
    """The element type to read a view with: the operand's own, or unsigned where the region has units of another size."""
    if dtype is not None and view.dtype.itemsize == dtype.size:
        return dtype
    return DTYPES[f"u{8 * view.dtype.itemsize}"]


def lanes_in(array: np.ndarray, values: str, dtype: DType) -> np.ndarray:
    """An operand's elements as its semantics want them: ``bits``, ``widen`` (narrow floats as float32) or ``native``."""
    if values == "bits":
        return array.view(dtype.bits_dtype)
    if values == "widen" and dtype.is_narrow_float:
        return array.astype(np.float32)
    return array


def in_bursts(region: Region, view: np.ndarray, result: Any) -> Iterator[tuple[np.ndarray, Any]]:
    """A written view and its result: as a whole, or burst by burst where bursts overlap and the last must win."""
    if region.dims and region.overlaps_itself():  # NumPy promises no order among the elements of one assignment
        every = np.broadcast_to(result, view.shape)
        for burst in np.ndindex(view.shape[:-1]):
            yield view[burst], every[burst]
    else:
        yield view, result


def store_lanes(view: np.ndarray, result: np.ndarray, values: str, dtype: DType) -> None:
    """Write a result of semantics into memory, rounding a widened float once. A NaN of half becomes quiet."""
    if values == "bits":
        view.view(dtype.bits_dtype)[...] = result
    elif values == "widen" and dtype.is_narrow_float:
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.asarray(result.astype(dtype.numpy))
        if dtype is f16:
            bits = rounded.view(np.uint16)
            nans = (bits & _MAGNITUDE) > _INFINITY
            if nans.any():
                bits[nans] |= _QUIET
        view[...] = rounded
    else:
        view[...] = result


class Lanes(NamedTuple):
    """An operand's bytes of one core, with how semantics see them: what :func:`lanes_in` and :func:`store_lanes` need."""

    view: np.ndarray
    values: str
    dtype: DType
    region: Region
    overlaps: bool
    """Bursts share bytes, so that they are written one after the other."""
    active: np.ndarray | None
    """Of a masked operand: which lanes of each burst are written."""

    @staticmethod
    def of(core: Core, region: Region, values: str, dtype: DType | None, mask: np.ndarray | None = None) -> Lanes:
        """Those of a region, of an operand of that element type; ``mask`` is that of :class:`Bytes`."""
        view = core.view(region)
        kind = viewed_as(view, dtype)
        active = None if mask is None else mask[: view.shape[-1] * kind.size : kind.size].astype(bool)
        return Lanes(view, values, kind, region, bool(region.dims) and region.overlaps_itself(), active)

    @property
    def converts(self) -> bool:
        """Whether semantics see other numbers than those in memory."""
        return self.values == "widen" and self.dtype.is_narrow_float

    def read(self) -> np.ndarray:
        """The elements, for semantics."""
        return lanes_in(self.view, self.values, self.dtype)

    def target(self) -> np.ndarray | None:
        """What a result can be assigned to; None where :meth:`write` is needed."""
        return None if self.overlaps or self.converts or self.active is not None else self.read()

    def write(self, result: Any) -> None:
        """A result of semantics into memory."""
        if not self.overlaps:
            self._store(self.view, result)
            return
        for burst, lanes in in_bursts(self.region, self.view, result):
            self._store(burst, lanes)

    def _store(self, burst: np.ndarray, lanes: Any) -> None:
        if self.active is None:
            store_lanes(burst, lanes, self.values, self.dtype)
        else:
            np.copyto(lanes_in(burst, "bits", self.dtype), lanes, where=self.active)


def _sources(reads: Sequence[Lanes]) -> Callable[[], list[np.ndarray]]:
    """What gives the operands that semantics read: the arrays themselves, unless they are converted each time."""
    if any(lanes.converts for lanes in reads):
        return lambda: [lanes.read() for lanes in reads]
    return [lanes.read() for lanes in reads].copy


def _write(targets: Sequence[tuple[Lanes, np.ndarray | None]], results: Sequence[Any]) -> None:
    """Results of semantics into memory."""
    for (lanes, target), result in zip(targets, results, strict=True):
        if target is None:
            lanes.write(result)
        else:
            target[...] = result


def _begins(operand: Any, region: Region) -> bool:
    return isinstance(operand, Tile) and region.start == operand.address


Sought = Callable[[list[Lanes], list[Lanes]], "tuple[Callable[[], bool], Callable[[], Bound | None]] | None"]
"""Of what a call reads and writes: whether machine code is worth it by now, and that code; see :class:`Tried`."""


def tried(
    seek: Sought | None, otherwise: Callable[[], Any], reads: list[Lanes], writes: list[Lanes], done: Any = None
) -> Callable[[], Any]:  # fmt: skip
    """Machine code for what is otherwise done so, if there is any."""
    found = seek(reads, writes) if seek is not None else None
    return otherwise if found is None else Tried(otherwise, *found, done)


class TileInstruction(Definition):
    """A PTO tile instruction. Subclass attributes and methods carry the definition; see :func:`tile_instruction`."""

    level = "tile"
    is_static = True
    values: str = "native"
    """How ``semantics`` sees elements: ``native``, ``bits`` or ``widen``."""
    observes_data = True
    """Whether what :meth:`observe` tells depends on more than the operands (and what the call is decided by)."""
    wait_events = True
    """Whether the C++ form takes events to wait for."""
    over: str | None = None
    """The operand whose valid shape governs all tiles; None: each its own."""

    semantics: Callable[..., Any]
    expand: Callable[..., Iterator[Group] | None] | None = None

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """(operand number, mode, region) of every tile and view the instruction touches, in operand order."""
        governing = getattr(call, self.over) if self.over else None
        shape = (governing.valid_rows, governing.valid_cols) if governing is not None else (None, None)
        touched: list[tuple[int, int, Region]] = []
        for number, operand in enumerate(self.inputs):
            value = getattr(call, operand.name)
            if value is None or operand.role is Role.SCRATCH:
                continue
            if isinstance(value, Tile):
                region = value.region(*shape)
            elif isinstance(value, GlobalTensor):
                region = value.region()
            else:
                continue
            if operand.role is not Role.OUT:
                touched.append((number, Mode.READ, region))
            if operand.role is not Role.IN:
                touched.append((number, Mode.WRITE, region))
        return touched

    def expansion(self, core: Core, args: Sequence[Any]) -> Iterator[Group] | None:
        """The profile's expansion, where the definition has one."""
        if self.expand is None or not core.profile.is_chip:
            return None
        return self.expand(self.call(args), core.profile)

    def observer(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Sequence[Finding]] | None:
        """See :class:`Definition`."""
        if self.observes_data:
            return super().observer(core, args, touches)
        found = self.observe(core, args, touches)
        return (lambda: found) if found else None

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """See :meth:`regions`. What begins at a tile's address has to be aligned; parts of a tile may lie anywhere."""
        return [
            Touch(number, mode, region, 5 if _begins(args[number], region) else 0)
            for number, mode, region in self.regions(self.call(args), core.profile)
        ]

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Read the operands as arrays, apply :meth:`compute`, write the results."""
        self._bind(core, args, touches)()

    def prepared(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Any] | None:
        """The call with its operands' arrays, which stay where they are in a core's own memories."""
        if type(self).perform is not TileInstruction.perform or any(t.region.space <= Space.GM for t in touches):
            return None
        call, run = self.call(args), self._bind(core, args, touches)
        code = self.code(call, core.profile)
        if code is None or not touches:
            return run
        reads, writes = self._lanes(core, args, touches)
        sources: list[Lanes | np.ndarray] = list(reads)
        for place in code.numbers:
            sources.insert(place, self.element(call))
        return code.on(run, writes, sources)

    def code(self, call: SimpleNamespace, profile: Profile) -> Code | None:
        """What the call does, for machine code; None where there is none."""
        return None

    def element(self, call: SimpleNamespace) -> np.ndarray:
        """The number of a :meth:`code` that takes one, as an element."""
        raise NotImplementedError

    def _lanes(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> tuple[list[Lanes], list[Lanes]]:
        """What is read, and what is written."""
        reads: list[Lanes] = []
        writes: list[Lanes] = []
        for touch in touches:
            lanes = Lanes.of(core, touch.region, self.values, args[touch.operand].dtype)
            (reads if touch.mode == Mode.READ else writes).append(lanes)
        return reads, writes

    def _bind(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], None]:
        call, profile = self.call(args), core.profile
        reads, writes = self._lanes(core, args, touches)
        sources, targets = _sources(reads), [(lanes, lanes.target()) for lanes in writes]
        computation = self.computation(call, profile)

        def run() -> None:
            results = computation(*sources())
            _write(targets, results if isinstance(results, tuple) else (results,))

        return partial(core.quietly, run)

    def computation(self, call: SimpleNamespace, profile: Profile) -> Callable[..., Any]:
        """:meth:`compute` as a function of the arrays, with what the call alone decides done before."""
        return lambda *arrays: self.compute(call, list(arrays), profile)

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> Any:
        """Results for the written operands, in operand order. Default: ``semantics(*arrays, *scalars)``."""
        scalars = [getattr(call, o.name) for o in self.inputs if o.sort in (Sort.SCALAR, Sort.ENUM)]
        return type(self).semantics(*arrays, *scalars)


class Bytes(NamedTuple):
    """Which bytes a pointer operand of a memory-form instruction covers: bursts of ``length`` over ``dims``.

    ``dtype`` is how the semantics view them, ``offset`` where they begin (from the pointer), ``mask`` which bytes of
    each burst really are read or written (uint8[256] of 0 and 1; None: all). ``used`` is False for bytes that are
    fetched and have no part in the result: the semantics do not see them.
    """

    length: int
    dims: tuple[tuple[int, int], ...] = ()
    dtype: np.dtype | None = None
    offset: int = 0
    mask: np.ndarray | None = None
    used: bool = True


class MemoryInstruction(Definition):
    """A vector instruction or copy on addresses.

    ``extent(call) -> {operand: Bytes, or several}`` says which bytes, ``semantics(*read arrays, *scalars)`` what becomes
    of them; a result that is no tuple goes to every written region.
    With ``stateful`` both get more: ``extent(call, state)``, ``semantics(call, state, *read arrays)``, where ``state``
    is the core's. ``watch(core, definition, args, touches)`` gives warnings that depend on the data. ``code(reads,
    writes)`` and ``glance(reads, writes)``, of the lanes of a call that lie in the core's own memories, may give machine
    code that does it, and that says whether there is anything to watch. That the operands
    have the types of one variant and lie in the memories they name is a rule of every such instruction.
    """

    level = "memory"

    def __init__(
        self, name: str, *, extent: Callable[..., dict[str, Bytes | Sequence[Bytes]]], semantics: Callable[..., Any],
        variants: Sequence[dict[str, DType]], values: str = "bits", work: Callable[..., int] | None = None,
        expand: Callable[..., Iterator[Group] | None] | None = None,
        watch: Callable[..., Sequence[Finding]] | None = None, stateful: bool = False, rules: Sequence[Rule] = (),
        code: Sought | None = None, glance: Sought | None = None, **record: Any,
    ) -> None:  # fmt: skip
        pointers = [o for o in record["operands"] if o.sort is Sort.POINTER]
        spaces = (rule_language.pointer_spaces(pointers),) if pointers else ()
        typed = any(o.dtype is not None for o in pointers)
        standing = (rule_language.variant_types(pointers, variants), *spaces) if typed else spaces
        super().__init__(name, rules=(*standing, *rules), **record)
        self.own_rules = tuple(rules)
        self.stateful = stateful
        self.is_static = not stateful
        self.extent = extent
        self.semantics = semantics
        self.variants = tuple(variants)
        self.values = values
        self.work = work
        self.expand = expand
        self.watch = watch
        self.code = code
        self.glance = glance

    def takes(self, args: Sequence[Any]) -> bool:
        """See :class:`Definition`."""
        typed = [
            (o, a) for o, a in zip(self.inputs, args, strict=False) if o.sort is Sort.POINTER and o.dtype is not None
        ]
        return any(all(a.dtype is v.get(str(o.dtype), o.dtype) for o, a in typed) for v in self.variants)

    def expansion(self, core: Core, args: Sequence[Any]) -> Iterator[Group] | None:
        """The steps of a form that is made of others (``_sync`` forms)."""
        return self.expand(self.call(args), core.profile) if self.expand else None

    def row_fields(self, core: Core, args: Sequence[Any]) -> tuple[int, int, int, int, int]:
        """See :class:`Definition`; ``work`` is the instruction's repeats."""
        work = self.work(self.call(args)) if self.work else 1
        return self.pipe, Kind.INSTRUCTION, 0, 0, work

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The bytes of each pointer operand."""
        call = self.call(args)
        extents = self.extent(call, core.state) if self.stateful else self.extent(call)
        touched = []
        for number, operand in enumerate(self.inputs):
            extent = extents.get(operand.name)
            if extent is None:
                continue
            pointer = args[number]
            for covered in (extent,) if isinstance(extent, Bytes) else extent:
                kind = covered.dtype or (pointer.dtype.numpy if pointer.dtype else np.dtype(np.uint8))
                region = Region(pointer.space, pointer.offset + covered.offset, covered.length, covered.dims, kind)
                align = operand.align.bit_length() - 1 if pointer.space != Space.GM and not covered.offset else 0
                if operand.role is not Role.OUT:
                    touched.append(Touch(number, Mode.READ, region, align, covered.mask, covered.used))
                if operand.role is not Role.IN:
                    touched.append(Touch(number, Mode.WRITE, region, align, covered.mask))
        return touched

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Apply the semantics to the bytes as arrays; rows come as leading dimensions."""
        self._bind(core, args, touches)()

    def prepared(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Any] | None:
        """The call with its operands' arrays, which stay where they are in a core's own memories."""
        own = type(self).perform is MemoryInstruction.perform and all(t.region.space > Space.GM for t in touches)
        if not own or self.stateful:
            return None
        return tried(self.code, self._bind(core, args, touches), *self._lanes(core, args, touches))

    def _lanes(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> tuple[list[Lanes], list[Lanes]]:
        """What is read, and what is written."""
        reads: list[Lanes] = []
        writes: list[Lanes] = []
        for touch in touches:
            if touch.used:
                lanes = Lanes.of(core, touch.region, self.values, args[touch.operand].dtype, touch.mask)
                (reads if touch.mode == Mode.READ else writes).append(lanes)
        return reads, writes

    def _bind(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], None]:
        reads, writes = self._lanes(core, args, touches)
        scalars = [v for o, v in zip(self.inputs, args, strict=False) if o.sort is Sort.SCALAR]
        sources, targets = _sources(reads), [(lanes, lanes.target()) for lanes in writes]
        writes_nothing = any(lanes.view.size == 0 for lanes in writes)

        def run() -> None:
            if writes_nothing:
                return
            if self.stateful:
                results = self.semantics(self.call(args), core.state, *sources())
            else:
                results = self.semantics(*sources(), *scalars)
            _write(targets, results if isinstance(results, tuple) else (results,) * len(targets))

        return run

    def observer(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Sequence[Finding]] | None:
        """Data-dependent warnings of the definition's ``watch``."""
        if self.watch is None:
            return None
        watch = partial(self.watch, core, self, args, touches)
        own = not self.stateful and touches and all(t.region.space > Space.GM for t in touches)
        return tried(self.glance, watch, *self._lanes(core, args, touches), ()) if own and self.glance else watch


def _word(core: Core, kept: Kept) -> np.ndarray:
    """The bytes of a word that the core keeps."""
    return core.state.words.view(np.uint8)[8 * kept : 8 * kept + 8]


def scalar_cell(value: Any, dtype: DType | None) -> np.ndarray:
    """A scalar as eight little-endian bytes: how a register wrapper receives it, from Python and from C++."""
    cell = np.zeros(8, np.uint8)
    if dtype is None:
        cell.view(np.int64)[0] = int(value)
        return cell
    with np.errstate(over="ignore"):
        number = np.array([value], np.float64 if dtype.kind == "f" else np.int64)
        cell[: dtype.size] = number.astype(dtype.numpy).view(np.uint8)
    return cell


def scalar_of(cell: np.ndarray, dtype: DType | None) -> Any:
    """The number in such a cell."""
    return (cell.view(np.int64) if dtype is None else cell[: dtype.size].view(dtype.numpy))[0].item()


@dataclass(frozen=True)
class Parts:
    """An access in ``count`` parts of ``nbytes`` bytes that lie apart.

    Part ``k`` lies ``scale`` bytes times a number after the address: lane ``k`` of the vector register ``index`` (lanes of
    ``lane`` bytes), or ``k`` times the scalar ``stride``. It takes part where any of ``asked`` entries of ``mask``, of
    every ``step``-th one from entry ``k * span`` on, is set; without a mask all parts do. A part of a load that takes no
    part reads as zeros. ``align`` is what the place of each part must be aligned to, beside that of the address.
    """

    nbytes: int
    count: int
    scale: int
    index: str = ""
    lane: int = 0
    stride: str = ""
    mask: str = ""
    span: int = 1
    step: int = 1
    asked: int = 1
    align: int = 1

    def active(self, mask: np.ndarray | None) -> np.ndarray:
        """Which parts take part, from the entries of the mask register."""
        if mask is None:
            return np.ones(self.count, bool)
        entries = np.arange(self.count)[:, None] * self.span + np.arange(self.asked) * self.step
        return mask[entries].any(axis=1)

    def distances(self, number: Any) -> list[int]:
        """How far after the address each part lies, from the bytes of the index register or from the stride."""
        if not self.index:
            return [k * int(number) * self.scale for k in range(self.count)]
        lanes = number.view(f"u{self.lane}")[: self.count]
        return [int(lane) * self.scale for lane in lanes]


@dataclass(frozen=True)
class Access:
    """The memory side of a register load or store: ``nbytes`` bytes (a store's: at most), aligned to ``align``, at the
    pointer ``operand``.

    ``offset`` names the scalar operand, if there is one, by which the address lies further on, in units of ``unit``
    bytes; with a definition's ``post_update`` the access is at the pointer itself, which then moves by as much.
    ``parts`` says how the bytes lie where that is not one after the other.
    """

    operand: str
    nbytes: int
    align: int
    offset: str = ""
    unit: int = 1
    parts: Parts | None = None

    @property
    def apart(self) -> tuple[str, ...]:
        """The operands that only say where the parts lie: the semantics do not see them."""
        return tuple(name for name in (self.parts.index, self.parts.stride) if name) if self.parts else ()


class Load(Access):
    """The memory side of a register load."""


class Store(Access):
    """The memory side of a register store."""


class RegisterInstruction(Definition):
    """A vector-function instruction on registers.

    ``semantics`` takes the inputs in operand order (vector registers as lanes in the ``values`` representation, lane
    masks as uint8 lanes, mask registers as uint8[256], scalars as arrays of one element, enumerations as integers,
    loaded bytes as lanes of their type, last words of the core as scalars), then ``extra(types)``, the constants of a
    variant. It returns the outputs in operand order, scalars and then words of the core last: lanes; for a mask
    register with ``lane_mask`` one bool a lane; a store returns ``(bytes, written)``, both uint8.
    ``float_semantics``, if given, stands in for it where the first type of a variant is a float.

    ``masking`` says what inactive lanes of a result hold: ``zero``, ``merge`` (the old destination, which is then
    INOUT), or ``none`` (the semantics see to the mask themselves, or there is none). ``part`` is for types of two
    widths: of the narrower one, the lanes number ``part``, ``part + ratio``, ... take part (PART_EVEN is 0), and others
    become 0. ``memory`` maps a variant to its :class:`Load` or :class:`Store`, or is None. ``returns`` names the
    written register that the C++ function returns; the others it takes by reference. The codes of ``warns`` are told
    wherever it is used. ``cpp_lacks`` are variants for
    which the C++ library has no overload, ``cpp_others`` argument lists that it takes beside ``cpp_order``.

    ``native`` says how the compiled form comes about (see isa/compile.py): ``loops`` (what the semantics do is recorded
    and written as loops), ``moves`` (they only move data), or ``table`` (their input is one enumeration).
    """

    level = "register"

    def __init__(
        self, name: str, *, semantics: Callable[..., Any], variants: Sequence[dict[str, DType]], values: str = "bits",
        masking: str = "none", memory: Callable[[dict[str, DType]], Access] | None = None,
        post_update: bool = False, returns: str = "", native: str = "loops", part: int | None = None,
        extra: Callable[[dict[str, DType]], tuple[Any, ...]] | None = None,
        float_semantics: Callable[..., Any] | None = None, cpp_lacks: Sequence[dict[str, DType]] = (),
        cpp_others: Sequence[tuple[str, ...]] = (),
        rules: Sequence[Rule] = (), **record: Any,
    ) -> None:  # fmt: skip
        pointers = [o for o in record["operands"] if o.sort is Sort.POINTER]
        standing = (rule_language.pointer_spaces(pointers),) if pointers else ()
        super().__init__(name, pipe=Pipe.V, rules=(*standing, *rules), **record)
        self.semantics = semantics
        self.variants = tuple(variants)
        self.values = values
        self.masking = masking
        self.memory = memory
        self.post_update = post_update
        self.returns = returns
        self.native = native
        self.part = part
        self.extra = extra
        self.float_semantics = float_semantics
        self.cpp_lacks = tuple(cpp_lacks)
        self.cpp_others = tuple(cpp_others)
        self._bound: dict[tuple, BoundRegisterInstruction] = {}
        # A mask register has no type: any pointer will do, if there is no other register.
        typed = any(o.sort is Sort.VREG for o in self.operands)
        self.pointer_types = set() if typed else {o.dtype for o in pointers} - {o.lane_mask for o in self.operands}

    @property
    def told(self) -> list[Finding]:
        """What every use of it is told."""
        entries = [CATALOGUE.codes[code] for code in self.warns]
        return [Finding(e.code, e.severity, f"{self.title}: {e.title[0].lower()}{e.title[1:]}") for e in entries]

    @property
    def results(self) -> list[Operand]:
        """The operands that a call writes as registers or scalars, in the order of its results."""
        return [o for o in self.written if o.sort is not Sort.STATE]

    @property
    def written(self) -> list[Operand]:
        """The results and, last of all, the words of the core that change."""
        registers = [o for o in self.operands if o.sort is not Sort.POINTER]
        written = [o for o in registers if o.role in (Role.OUT, Role.INOUT)]
        return sorted(written, key=lambda o: (o.sort is Sort.STATE, o.sort is Sort.SCALAR, o.role is Role.INOUT))

    @property
    def read(self) -> list[Operand]:
        """The inputs, and behind them the words of the core that it reads."""
        return [*self.inputs, *(o for o in self.operands if o.sort is Sort.STATE and o.is_read)]

    def bind(self, **types: DType) -> BoundRegisterInstruction:
        """The instruction for one choice of its type variables.

        Raises:
            Refused: it does not exist for those types.
        """
        key = tuple(sorted((k, v.code) for k, v in types.items()))
        found = self._bound.get(key)
        if found is None:
            if types not in self.variants:
                asked = ", ".join(v.name for v in types.values())
                known = "; ".join(", ".join(t.name for t in v.values()) for v in self.variants)
                raise self._refusal("L002", f"{self.title} does not exist for {asked}", f"It takes {known}.")
            found = self._bound[key] = BoundRegisterInstruction(self, types, self.variants.index(types))
        return found

    def takes(self, args: Sequence[Any]) -> bool:
        """Whether there is a variant for the types of these arguments."""
        typed = [(o, v.dtype) for o, v in zip(self.inputs, args, strict=False) if isinstance(v, (VReg, Pointer))]
        of_variables = [
            (o.dtype, kind) for o, kind in typed if isinstance(o.dtype, str) and o.dtype not in self.pointer_types
        ]
        return any(all(variant[name] is kind for name, kind in of_variables) for variant in self.variants)

    def infer(self, args: Sequence[Any], result: DType | None = None) -> BoundRegisterInstruction:
        """The instruction for the types of these arguments; ``result`` decides what they leave open.

        A type that only an address has (a mask register's in memory) makes no difference to what is done, so that any
        will do: ``.pto`` text writes ``!pto.ptr<i64, ub>`` there.

        Raises:
            Refused: the types are not among its variants, or they do not agree.
        """
        types: dict[str, DType] = {}
        for operand, value in zip(self.inputs, args, strict=False):
            if isinstance(operand.dtype, str) and isinstance(value, (VReg, Pointer)) and value.dtype is not None:
                known = types.setdefault(operand.dtype, value.dtype)
                if known is not value.dtype:
                    raise self._refusal(
                        "L003", f"{self.title}: operand {operand.name} is {value.dtype.name}, not {known.name}",
                        "All its operands of one type variable have one type.",
                    )  # fmt: skip
        wanted = [v for v in self.variants if all(v.get(k) is t for k, t in types.items())]
        if not wanted and self.pointer_types:
            of_registers = {k: t for k, t in types.items() if k not in self.pointer_types}
            wanted = [v for v in self.variants if all(v.get(k) is t for k, t in of_registers.items())][:1]
        out = next((o for o in self.operands if not o.is_input and isinstance(o.dtype, str)), None)
        if result is not None and out is not None:
            wanted = [v for v in wanted if v[str(out.dtype)] is result]
        if len(wanted) == 1:
            return self.bind(**wanted[0])
        if not wanted:
            return self.bind(**types, **({str(out.dtype): result} if result is not None and out is not None else {}))
        raise self._refusal("L002", f"{self.title}: the element type is not given", "Say which, with dtype=.")


NEW_REGISTER = 3
"""The number that a load's register has in the trace."""


class BoundRegisterInstruction:
    """A register instruction with its type variables chosen: what the machine issues and C++ calls."""

    is_static = False
    follows_data = False

    def __init__(self, definition: RegisterInstruction, types: dict[str, DType], index: int) -> None:
        self.definition = definition
        self.types = types
        self.index = index
        self.number = definition.number
        self.name = definition.name
        self.title = definition.title
        self.asm_title = definition.asm_title
        self.memory = definition.memory(types) if definition.memory else None
        self.constants = definition.extra(types) if definition.extra else ()
        self._run: Callable[..., None] | None = None
        self._stored: tuple[Sequence[Any], np.ndarray, np.ndarray] | None = None
        self._runs: list[tuple[int, int, int]] = []

    def __repr__(self) -> str:
        return f"<{self.name} {', '.join(t.name for t in self.types.values())}>"

    @property
    def semantics(self) -> Callable[..., Any]:
        """The semantics of this variant."""
        first = next(iter(self.types.values()), None)
        of_floats = self.definition.float_semantics
        return of_floats if of_floats and first is not None and first.kind == "f" else self.definition.semantics

    @property
    def written(self) -> list[Operand]:
        """See :attr:`RegisterInstruction.written`."""
        return self.definition.written

    def dtype_of(self, operand: Operand) -> DType | None:
        """The element type of an operand in this variant."""
        return self.types[operand.dtype] if isinstance(operand.dtype, str) else operand.dtype

    def check(self, profile: Profile, args: Sequence[Any]) -> tuple[Finding, ...]:
        """See :meth:`Definition.check`. A scalar is data here: no verdict depends on it."""
        kinds = [
            0 if operand.sort is Sort.SCALAR else value
            for operand, value in zip(self.definition.inputs, args, strict=False)
        ]
        return self.definition.check(profile, [*kinds, *args[len(kinds) :]])

    def expansion(self, core: Core, args: Sequence[Any]) -> None:
        """Register instructions have none."""
        return

    def decided_by(self, core: Core, args: Sequence[Any]) -> Region:
        """Nothing: a register is another object in each call."""
        raise NotImplementedError

    def prepared(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Nothing is: a register is another object in each call."""

    def conclude(self, core: Core, args: Sequence[Any]) -> None:
        """Register instructions have no expansion."""
        return

    def observer(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Sequence[Finding]] | None:
        """What is to be told of every use: the definition's ``warns``. Register instructions watch no data."""
        told = self.definition.told
        return (lambda: told) if told else None

    def element_type(self, args: Sequence[Any]) -> DType | None:
        """See :meth:`Definition.element_type`."""
        return first_type(args)

    def row_fields(self, core: Core, args: Sequence[Any]) -> tuple[int, int, int, int, int]:
        """See :class:`Definition`."""
        return Pipe.V, Kind.INSTRUCTION, 0, 0, 1

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The UB bytes of a load or store. A store's bytes depend on its mask, so it is carried out here first."""
        if self.memory is None:
            return []
        number = self.definition._index[self.memory.operand]
        pointer: Pointer = args[number]
        start = pointer.offset if self.definition.post_update else pointer.offset + self._distance(args)
        self._runs = self._runs_of(args)
        written = None
        if isinstance(self.memory, Store):
            data, written = np.zeros(self.memory.nbytes, np.uint8), np.zeros(self.memory.nbytes, np.uint8)
            self.run(data, written, *self._raw_inputs(args, None))
            self._stored = (args, data, written)
        parts = self.memory.parts
        align = (parts.align if parts else self.memory.align).bit_length() - 1
        touched = []
        if parts and start % self.memory.align:  # the address itself, where the parts do not tell
            touched.append(self._touch(pointer, number, start, 0, self.memory.align.bit_length() - 1, None))
        for place, distance, length in self._runs:
            flags = None if written is None else written[place : place + length]
            touched.append(self._touch(pointer, number, start + distance, length, align, flags))
        return touched if parts else [touch._replace(register=self._vector(args)) for touch in touched]

    def _vector(self, args: Sequence[Any]) -> int:
        """A number of the register that is stored; a load gives a register that nothing has held before."""
        stored = next((value for value in args if isinstance(value, VReg)), None)
        return NEW_REGISTER if stored is None else (id(stored) & 0xFFFFFFFF) | 2

    def _touch(
        self, pointer: Pointer, number: int, start: int, length: int, align: int, written: np.ndarray | None
    ) -> Touch:  # fmt: skip
        """One run of bytes; of a store, those up to the last that is written."""
        mask = None
        if written is not None:
            length = int(np.flatnonzero(written)[-1]) + 1 if written.any() else 0
            align = align if length else 0
            if not written[:length].all():
                mask = np.zeros(REGISTER_BYTES, np.uint8)
                mask[:length] = written[:length]
        mode = Mode.WRITE if isinstance(self.memory, Store) else Mode.READ
        return Touch(number, mode, Region(pointer.space, start, length, (), np.dtype(np.uint8)), align, mask)

    def _runs_of(self, args: Sequence[Any]) -> list[tuple[int, int, int]]:
        """(place among the access's bytes, distance from the address, length) of each run of bytes."""
        memory = self.memory
        assert memory is not None
        parts = memory.parts
        if parts is None:
            return [(0, 0, memory.nbytes)]
        named = dict(zip(self.definition._names, args, strict=False))
        number = named[parts.index].data if parts.index else named[parts.stride]
        active = parts.active(named[parts.mask].data if parts.mask else None)
        runs: list[tuple[int, int, int]] = []
        for k, distance in enumerate(parts.distances(number)):
            if not active[k]:
                continue
            place = k * parts.nbytes
            last = runs[-1] if runs else (0, 0, 0)
            joins = last[0] + last[2] == place and last[1] + last[2] == distance and last[2] and parts.align == 1
            if joins:
                runs[-1] = (*last[:2], last[2] + parts.nbytes)
            else:
                runs.append((place, distance, parts.nbytes))
        return runs

    def _distance(self, args: Sequence[Any]) -> int:
        """How many bytes the offset operand amounts to."""
        if self.memory is None or not self.memory.offset:
            return 0
        number = self.definition._index[self.memory.offset]
        return int(args[number]) * self.memory.unit if number < len(args) else 0

    def _raw_inputs(self, args: Sequence[Any], loaded: np.ndarray | None) -> list[Any]:
        raw: list[Any] = []
        for operand, value in zip(self.definition.inputs, args, strict=False):
            if operand.sort is Sort.POINTER:
                if loaded is not None:
                    raw.append(loaded)
            elif self.memory is not None and operand.name in (self.memory.offset, *self.memory.apart):
                continue
            elif isinstance(value, (VReg, MReg)):
                raw.append(value.data)
            else:
                raw.append(scalar_cell(value, self.dtype_of(operand) if operand.sort is Sort.SCALAR else None))
        return raw

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Any:
        """Run it on NumPy; returns the written registers, updated scalars and moved pointer (if one: itself)."""
        results: list[Any] = []
        if isinstance(self.memory, Store):
            self._write(core, args, touches)
        else:
            loaded = self._loaded(core, touches)
            for operand in self.written:
                if operand.kept is not None:
                    results.append(_word(core, operand.kept))
                elif operand.sort is Sort.MREG:
                    results.append(MReg())
                elif operand.sort is Sort.SCALAR:
                    results.append(np.zeros(8, np.uint8))
                elif operand.role is Role.INOUT:
                    results.append(VReg(*self._copy(args[self.definition._index[operand.name]])))
                else:
                    kind = self.dtype_of(operand)
                    assert kind is not None
                    results.append(VReg(kind))
            buffers = [r if isinstance(r, np.ndarray) else r.data for r in results]
            kept = [_word(core, o.kept).copy() for o in self.definition.read if o.kept is not None]
            self.run(*buffers, *self._raw_inputs(args, loaded), *kept)
            results = [
                scalar_of(r, self.dtype_of(o)) if isinstance(r, np.ndarray) else r
                for o, r in zip(self.written, results, strict=True)
                if o.kept is None
            ]
        if self.definition.post_update:
            assert self.memory is not None
            pointer: Pointer = args[self.definition._index[self.memory.operand]]
            results.append(pointer._replace(offset=pointer.offset + self._distance(args)))
        return tuple(results) if len(results) > 1 else results[0] if results else None

    def _copy(self, register: VReg) -> tuple[DType, np.ndarray]:
        return register.dtype, register.data.copy()

    def _loaded(self, core: Core, touches: list[Touch]) -> np.ndarray | None:
        """The bytes of a load, in the order of its parts."""
        if self.memory is None:
            return None
        if self.memory.parts is None:
            return core.view(touches[0].region)
        loaded = np.zeros(self.memory.nbytes, np.uint8)
        for (place, _, length), touch in zip(self._runs, touches[len(touches) - len(self._runs) :], strict=True):
            loaded[place : place + length] = core.view(touch.region)
        return loaded

    def _write(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        assert self._stored is not None and self._stored[0] is args
        _, data, written = self._stored
        runs = list(zip(self._runs, touches[len(touches) - len(self._runs) :], strict=True))
        for (place, _, _), touch in reversed(runs):  # of two in one place the first stays
            length = touch.region.length
            if length:
                flags = written[place : place + length].astype(bool)
                np.copyto(core.view(touch.region), data[place : place + length], where=flags)

    @property
    def run(self) -> Callable[..., None]:
        """``run(out buffers..., inputs...)``: the instruction on raw buffers, by NumPy (see isa.compile)."""
        if self._run is None:
            from ascsim.isa.compile import register_wrapper

            self._run = register_wrapper(self)
        return self._run


class PlainInstruction(Definition):
    """A flag, a barrier, a query: ``effect(core, call)`` returns what the instruction yields.

    ``row(core, call) -> (pipe, kind, pipe2, arg)`` is its trace row, which the operands alone decide; ``result`` the C++
    type it returns; ``references`` are variables, (name, type), that C++ passes to receive the result instead, 32 bits
    each. Where that row is all that an accepted call leaves (``row_only``), C++ kernels write it again for a
    call with the same operands, and ask the machine for the first one only. ``signal(core, call)``, where given, is what
    happens between cores before the row is written; it returns the row's ``arg``. ``touched(core, call)`` are the bytes
    that the row tells of, where it does.
    """

    level = "sync"

    def __init__(
        self, name: str, *, effect: Callable[[Core, SimpleNamespace], Any],
        row: Callable[[Core, SimpleNamespace], tuple[int, int, int, int]] | None = None, row_only: bool = False,
        signal: Callable[[Core, SimpleNamespace], int] | None = None, result: str = "void",
        references: Sequence[tuple[str, DType]] = (),
        touched: Callable[[Core, SimpleNamespace], list[Touch]] | None = None,
        level: str = "sync", expand: Callable[..., Iterator[Group] | None] | None = None, **record: Any,
    ) -> None:  # fmt: skip
        super().__init__(name, **record)
        self.effect = effect
        self.row = row
        self.row_only = row_only
        self.signal = signal
        self.is_static = signal is None
        self.result = result
        self.references = tuple(references)
        self.touched = touched
        self.expand = expand
        self.level = level  # type: ignore[misc]

    def expansion(self, core: Core, args: Sequence[Any]) -> Iterator[Group] | None:
        """The smaller instructions it stands for, if any."""
        if self.expand is None:
            return None
        call = self.call(args)
        call.side = core.side
        return self.expand(call, core.profile)

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """See :class:`Definition`."""
        return self.touched(core, self.call(args)) if self.touched else []

    def row_fields(self, core: Core, args: Sequence[Any]) -> tuple[int, int, int, int, int]:
        """See :class:`Definition`."""
        if self.row is None:
            return self.pipe, Kind.INSTRUCTION, 0, 0, 1
        call = self.call(args)
        pipe, kind, pipe2, arg = self.row(core, call)
        return pipe, kind, pipe2, self.signal(core, call) if self.signal else arg, 1

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Any:
        """Apply the effect."""
        return self.effect(core, self.call(args))

    def prepared(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Any] | None:
        """The effect with the call's operands."""
        return nothing if self.row_only else partial(self.effect, core, self.call(args))


_TABLES = ("by_name", "by_cpp", "by_asm")


class Numbering:
    """Numbers from ``first`` on, for what modules make as they are imported.

    They are those of an import of all modules in their order, where that order is known (``expected``: the numbers of
    each module in the order in which it takes them), whatever is imported, and when.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.given: dict[str, list[int]] = {}
        self.expected: dict[str, list[int]] = {}
        self.count = 0

    def expect(self, expected: dict[str, list[int]]) -> None:
        """Take the numbers from here."""
        self.expected, self.count = expected, sum(map(len, expected.values()))

    def next(self) -> tuple[int, bool]:
        """The number for what the module at work makes, and whether it was expected."""
        module = _module_at_work()
        given, expected = self.given.setdefault(module, []), self.expected.get(module, ())
        is_expected = len(given) < len(expected)
        if is_expected:
            number = expected[len(given)]
        else:
            number = self.first + self.count
            self.count += 1
        given.append(number)
        return number, is_expected


def _module_at_work() -> str:
    """The module whose import this is."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals["__name__"])


STEP_NUMBERS = Numbering(0xE000)
"""Steps (:mod:`ascsim.isa.steps`) are numbered apart from instructions that a kernel can name."""


@dataclass(frozen=True)
class Index:
    """What the modules of definitions hold, so that a look-up imports one of them.

    ``modules`` and ``steps`` are the numbers of each module's definitions and steps, for :class:`Numbering`; ``tables``
    are those of definitions by the names that each front end uses.
    """

    modules: dict[str, list[int]]
    steps: dict[str, list[int]]
    tables: dict[str, dict[str, list[int]]]

    @cached_property
    def owners(self) -> dict[int, str]:
        """The module of each number of a definition."""
        return {number: module for module, numbers in self.modules.items() for number in numbers}


def _names(definition: Definition) -> dict[str, list[str]]:
    """The names of a definition, by table."""
    cpp = [name for name in (definition.cpp, *definition.aliases) if name]
    return {"by_name": [definition.name], "by_cpp": cpp, "by_asm": [spelling.name for spelling in definition.asm]}


class Names(Mapping[str, list[Definition]]):
    """The definitions of each name."""

    def __init__(self, registry: Registry, numbers: dict[str, list[int]]) -> None:
        self._registry = registry
        self.numbers = numbers

    def __getitem__(self, name: str) -> list[Definition]:
        return [self._registry.numbered(number) for number in self.numbers[name]]

    def __contains__(self, name: object) -> bool:
        return name in self.numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


class Registry:
    """All definitions, by the names each front end uses.

    Modules register what they define as they are imported. With an :class:`Index` a look-up imports the module that it
    needs; the numbers are those that definitions have when all modules are imported in their order.
    """

    def __init__(self) -> None:
        self._made: dict[int, Definition] = {}
        self._numbers = Numbering(1)
        self._index = Index({}, {}, {})
        self.by_name, self.by_cpp, self.by_asm = (Names(self, {}) for _ in _TABLES)

    def expect(self, index: Index) -> None:
        """Definitions are to come from the modules of an index, each when it is asked for."""
        self._index = index
        self._numbers.expect(index.modules)
        STEP_NUMBERS.expect(index.steps)
        self.by_name, self.by_cpp, self.by_asm = (Names(self, index.tables[table]) for table in _TABLES)

    def index(self) -> Index:
        """The index of what is registered."""
        tables = {table: getattr(self, table).numbers for table in _TABLES}
        return Index(self._numbers.given, STEP_NUMBERS.given, tables)

    def add(self, definition: Definition) -> Definition:
        """Register a definition and number it. Of one name, forms for tiles in certain memories stand before the others."""
        definition.number, is_expected = self._numbers.next()
        self._made[definition.number] = definition
        for table, names in () if is_expected else _names(definition).items():
            for name in names:
                of_name = getattr(self, table).numbers.setdefault(name, [])
                of_name.append(definition.number)
                of_name.sort(key=lambda number: not self.numbered(number).is_placed)
        return definition

    def numbered(self, number: int) -> Definition:
        """The definition of a number."""
        found = self._made.get(number)
        if found is None:
            importlib.import_module(self._index.owners[number])
            found = self._made[number]
        return found

    @property
    def definitions(self) -> list[Definition]:
        """All definitions, in the order of their numbers."""
        if self._index.modules.keys() - self._numbers.given.keys():
            with without_collector():
                for module in self._index.modules:
                    importlib.import_module(module)
        return [self._made[number] for number in sorted(self._made)]

    def find(self, name: str, profile: Profile | None = None) -> list[Definition]:
        """Definitions known by that name in any front end (``TSORT32``, ``pto.tsort32``, ``asc_bitsort``, ``vbitsort``),
        those of the profile first."""
        bare = name.removeprefix("pto.")
        found: list[Definition] = []
        for table in (self.by_cpp, self.by_name, self.by_asm):
            found += (*table.get(name, ()), *table.get(bare, ()), *table.get(bare.lower(), ()))
        unique = list(dict.fromkeys(found))
        if profile is not None:
            unique.sort(key=lambda d: profile.name not in d.profiles)
        return unique


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Import definitions meanwhile.

    All that they make stays, so a collector that looks through it for garbage, time and again, takes a third of the time
    for nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


REGISTRY = Registry()


def tile_instruction(
    name: str, *, pipe: Pipe, cpp: str = "", profiles: Sequence[str] = ALL_PROFILES, asm: Sequence[Asm] | None = None,
    **record: Any,
) -> Callable[[type], TileInstruction]:  # fmt: skip
    """Class decorator: the class's operands, rules and methods become a registered :class:`TileInstruction`.

    The class has ``operands``, a docstring, ``semantics`` (a static method) or ``compute``, and may have ``rules``,
    ``regions``, ``expand``, ``values``, ``over``, ``wait_events``, ``notes``, ``assumed``, ``sources``, ``warns``. What
    it inherits, a family may share.
    """

    def make(body: type) -> TileInstruction:
        of_bases = [vars(one) for one in reversed(body.__mro__[:-1])]  # what a family shares stands in a base class
        members = {k: v for one in of_bases for k, v in one.items() if k not in ("__dict__", "__weakref__")}
        recorded = ("operands", "rules", "notes", "assumed", "sources", "warns")
        fields = {k: members.pop(k) for k in recorded if k in members}
        shared = tuple(base for base in body.__bases__ if base is not object)
        kind = type(body.__name__, (*shared, TileInstruction), members)
        made = kind(
            name, cpp=cpp or name.upper(), pipe=pipe, profiles=profiles, doc=body.__doc__ or "",
            asm=(Asm(name),) if asm is None else asm, **fields, **record,
        )  # fmt: skip
        REGISTRY.add(made)
        return made

    return make


AnyDefinition = TypeVar("AnyDefinition", bound=Definition)


def _registering(
    kind: type[AnyDefinition], holds: str, name: str, asm: Sequence[Asm] | None, doc: str, record: dict[str, Any]
) -> Callable[[Callable[..., Any]], AnyDefinition]:
    """A function decorator: the function, as the record's ``holds``, makes a registered instruction of that kind."""

    def make(function: Callable[..., Any]) -> AnyDefinition:
        spellings = (Asm(name),) if asm is None else asm
        fields: dict[str, Any] = {**record, holds: function}
        made = kind(name, asm=spellings, doc=doc or function.__doc__ or "", **fields)
        REGISTRY.add(made)
        return made

    return make


def register_instruction(
    name: str, *, variants: Sequence[dict[str, DType]] = ({},), profiles: Sequence[str] = A5,
    asm: Sequence[Asm] | None = None, doc: str = "", **record: Any,
) -> Callable[[Callable[..., Any]], RegisterInstruction]:  # fmt: skip
    """Function decorator: the function is the semantics of a registered :class:`RegisterInstruction`."""
    record |= {"variants": variants, "profiles": profiles}
    return _registering(RegisterInstruction, "semantics", name, asm, doc, record)


def memory_instruction(
    name: str, *, variants: Sequence[dict[str, DType]] = ({},), profiles: Sequence[str] = CHIPS,
    asm: Sequence[Asm] | None = None, doc: str = "", **record: Any,
) -> Callable[[Callable[..., Any]], MemoryInstruction]:  # fmt: skip
    """Function decorator: the function is the semantics of a registered :class:`MemoryInstruction`."""
    record |= {"variants": variants, "profiles": profiles}
    return _registering(MemoryInstruction, "semantics", name, asm, doc, record)


def plain_instruction(
    name: str, *, operands: Sequence[Operand] = (), pipe: Pipe = Pipe.S, profiles: Sequence[str] = ALL_PROFILES,
    asm: Sequence[Asm] | None = None, doc: str = "", **record: Any,
) -> Callable[[Callable[..., Any]], PlainInstruction]:  # fmt: skip
    """Function decorator: the function is the effect of a registered :class:`PlainInstruction`."""
    record |= {"operands": operands, "pipe": pipe, "profiles": profiles}
    return _registering(PlainInstruction, "effect", name, asm, doc, record)


def types_of(*names: str) -> tuple[dict[str, DType], ...]:
    """Variants with one type variable ``T``: ``types_of("f16", "f32")``."""
    return tuple({"T": DTYPES[name]} for name in names)
