"""The vector mask, and what all memory-form vector instructions share: repeats, strides, lanes that take part.

An instruction works in repeats of 256 bytes of its widest operand, each of 32-byte blocks. ``X_block_stride`` is the
distance of an operand's blocks within a repeat, ``X_repeat_stride`` that from one repeat to the next, both in blocks.
In normal mode the vector mask says bit by bit which lanes of every repeat take part; in counter mode its low word
counts the elements of the whole call, and ``repeat`` is ignored.

:func:`lane_family` registers the forms that the C API has of one lane-wise operation: the full form (which is the
compiler's builtin), the form with a count, the ``_sync`` form.

Sources: asc-devkit C-API vector_compute and the code behind it (impl/c_api/instr_impl/npu_arch_2201), the sections on
masks, strides and overlap of the C-API's common constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import (
    A2A3,
    CHIPS,
    REGISTRY,
    Bytes,
    Definition,
    In,
    MemoryInstruction,
    Operand,
    Out,
    Role,
    Scalar,
    Sort,
    lanes_in,
    memory_instruction,
    plain_instruction,
)
from ascsim.isa.rules import Rule, refuse
from ascsim.isa.sync import synchronous
from ascsim.machine.core import Core, CoreState, Finding, Group, Step, Touch
from ascsim.machine.dtypes import DType, u8, u16, u32, u64
from ascsim.machine.operands import REGISTER_BYTES, Region
from ascsim.machine.trace import Kind, Mode
from ascsim.machine.words import Pipe
from ascsim.profiles import Profile

BLOCK_BYTES = 32
BLOCKS = REGISTER_BYTES // BLOCK_BYTES
_WORD = (1 << 64) - 1
PAGES = "asc-devkit C-API vector_compute/"
_BYTE = np.dtype(np.uint8)
_UNMASKED = CoreState()
"""The state of a core whose mask selects everything."""
_REMEMBERED = 4096
"""Calls whose geometry one instruction remembers."""


# The mask


@plain_instruction(
    "set_mask_norm", cpp="set_mask_norm", aliases=("asc_set_mask_norm",), profiles=CHIPS,
    sources=(f"{PAGES}asc_set_mask_norm",),
)  # fmt: skip
def set_mask_norm(core: Core, call: SimpleNamespace) -> None:
    """Let the vector mask say, bit by bit, which elements of each repeat take part (the mode a core starts in)."""
    core.state.counter_mode = False


@plain_instruction(
    "set_mask_count", cpp="set_mask_count", aliases=("asc_set_mask_count",), profiles=A2A3,
    sources=(f"{PAGES}asc_set_mask_count",),
)  # fmt: skip
def set_mask_count(core: Core, call: SimpleNamespace) -> None:
    """Let the low word of the vector mask say how many elements a whole call works on; repeat counts are ignored."""
    core.state.counter_mode = True


@plain_instruction(
    "set_vector_mask", cpp="set_vector_mask", aliases=("asc_set_vector_mask",), profiles=CHIPS,
    operands=(
        Scalar("mask1", u64, doc="elements 64 to 127 of a repeat (16-bit types only)"),
        Scalar("mask0", u64, doc="elements 0 to 63 of a repeat; in counter mode the number of elements"),
    ),
    sources=(f"{PAGES}asc_set_vector_mask",),
)  # fmt: skip
def set_vector_mask(core: Core, call: SimpleNamespace) -> None:
    """Set the vector mask of memory-form vector instructions; -1 is all ones."""
    core.state.mask = (int(call.mask1) & _WORD, int(call.mask0) & _WORD)


class Repeats(NamedTuple):
    """Repeats that have the same lanes: the first one's number, how many, which lanes take part (bool)."""

    first: int
    number: int
    lanes: np.ndarray


def masked_repeats(state: CoreState, repeats: int, lanes: int) -> tuple[Repeats, ...]:
    """The repeats of a call with ``lanes`` elements each, under the core's vector mask."""
    return _masked_repeats(*state.mask, state.counter_mode, repeats, lanes)


@lru_cache(maxsize=1024)
def _masked_repeats(high: int, low: int, counter_mode: bool, repeats: int, lanes: int) -> tuple[Repeats, ...]:
    if counter_mode:
        whole, rest = divmod(low, lanes)
        found = [Repeats(0, whole, np.ones(lanes, bool))] if whole else []
        return (*found, Repeats(whole, 1, np.arange(lanes) < rest)) if rest else tuple(found)
    bits = np.unpackbits(np.array([low, high], "<u8").view(np.uint8), bitorder="little")[:lanes].astype(bool)
    return (Repeats(0, repeats, bits),) if repeats and bits.any() else ()


class Layout(NamedTuple):
    """Where an operand's elements lie: ``size`` bytes each, ``block`` and ``repeat`` strides in bytes.

    ``group`` lanes share one element (a comparison's byte holds eight), which is there ``times`` over (a value and its
    index are two). It takes part if one of its lanes does.
    """

    size: int
    block: int = BLOCK_BYTES
    repeat: int = REGISTER_BYTES
    group: int = 1
    times: int = 1

    def chosen(self, lanes: np.ndarray) -> np.ndarray:
        """Which elements take part, where these lanes do."""
        found = np.asarray(lanes.reshape(-1, self.group).any(1))
        return np.repeat(found, self.times)

    def elements(self, lanes: int) -> int:
        """How many elements ``lanes`` lanes have."""
        return lanes // self.group * self.times

    def blocks(self, lanes: int) -> int:
        """How many 32-byte blocks, or parts of one, a repeat has."""
        return -(-self.elements(lanes) * self.size // BLOCK_BYTES)

    def span(self, lanes: int) -> int:
        """Bytes from the first to the last of a repeat."""
        blocks = self.blocks(lanes)
        return (blocks - 1) * self.block + (BLOCK_BYTES if blocks > 1 else self.elements(lanes) * self.size)


@lru_cache(maxsize=4096)
def _masked_bytes(
    high: int, low: int, counter_mode: bool, repeats: int, lanes: int, layout: Layout
) -> tuple[Bytes, ...]:
    found = []
    for first, count, active in _masked_repeats(high, low, counter_mode, repeats, lanes):
        chosen = np.repeat(layout.chosen(active), layout.size)
        together = layout.block == BLOCK_BYTES or chosen.size <= BLOCK_BYTES
        for number, piece in enumerate([chosen] if together else chosen.reshape(-1, BLOCK_BYTES)):
            where = np.flatnonzero(piece)
            if not where.size:
                continue
            start, end = int(where[0]), int(where[-1]) + 1
            mask = None
            if where.size < end - start:
                mask = np.zeros(REGISTER_BYTES, np.uint8)
                mask[: end - start] = piece[start:end]
            offset = start + number * layout.block + first * layout.repeat
            dims = ((count, layout.repeat),) if count > 1 else ()
            found.append(Bytes(end - start, dims, np.dtype(np.uint8), offset, mask))
    return tuple(found)


def masked_bytes(state: CoreState, repeats: int, lanes: int, layout: Layout) -> tuple[Bytes, ...]:
    """The bytes of an operand that a masked call of ``lanes`` lanes a repeat works on."""
    return _masked_bytes(*state.mask, state.counter_mode, repeats, lanes, layout)


# Rules


def numbers_fit(operands: Sequence[Operand]) -> tuple[Rule, ...]:
    """Every count and stride fits the C type of its parameter (C++ narrows it before anyone sees it)."""
    if not any(is_shape(o) for o in operands):
        return ()
    limits = {o.name: (1 << 8 * o.dtype.size) - 1 for o in operands if is_shape(o) and isinstance(o.dtype, DType)}

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        for name, most in limits.items():
            if not 0 <= int(getattr(call, name)) <= most:
                return f"{name} is {int(getattr(call, name))}; it must be 0 to {most}"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name, most in limits.items():
            yield SimpleNamespace(**{**vars(call), name: most + 1})
            yield SimpleNamespace(**{**vars(call), name: -1})

    said = "; ".join(
        f"{', '.join(n for n in limits if limits[n] == m)} at most {m}" for m in sorted({*limits.values()})
    )
    return (
        refuse("L006", f"counts and strides fit their types: {said}", test, breaks=breaks,
               mend="Split the work into several calls."),
    )  # fmt: skip


def is_shape(operand: Operand) -> bool:
    """True for numbers that say where the elements are, not what becomes of them."""
    return operand.sort is Sort.SCALAR and (operand.name in ("repeat", "count") or operand.name.endswith("_stride"))


# Operands

DST = Out("dst", Sort.POINTER, "T", doc="the result")
SRC = In("src", Sort.POINTER, "T")
SRC0, SRC1 = In("src0", Sort.POINTER, "T"), In("src1", Sort.POINTER, "T")
REPEAT = Scalar("repeat", u8, doc="repeats, 0 to 255; ignored in counter mode")
COUNT = Scalar("count", u32, doc="elements")


def strides(names: Sequence[str], kind: DType) -> tuple[Operand, ...]:
    """The block strides of these operands, then their repeat strides."""
    return (
        *(
            Scalar(f"{n}_block_stride", kind, doc=f"from block to block of {n} within a repeat, in blocks")
            for n in names
        ),
        *(Scalar(f"{n}_repeat_stride", kind, doc=f"from repeat to repeat of {n}, in blocks") for n in names),
    )


CATALOGUE.add(
    "VECTOR-1", Severity.WARNING, "Source and destination of a vector instruction overlap in part",
    "dst shares bytes with a source, and not exactly the same ones in each repeat. The page allows whole overlap within "
    "a repeat, and from repeat to repeat only dst with the second source of an operation on half, int32 or float, one "
    "of the two with a repeat stride of 0. Elsewhere a chip may read old bytes or new ones; ascsim finishes a repeat "
    "before it reads the next.\n\n"
    "Work in other memory.",
)  # fmt: skip


# Instructions that work repeat by repeat


class Context(NamedTuple):
    """What the semantics of an instruction may know beside its operands: the core, the call, which lanes of a repeat
    take part, the number of the first repeat."""

    core: Core
    call: SimpleNamespace
    active: np.ndarray
    first: int

    @property
    def state(self) -> CoreState:
        """The core's state."""
        return self.core.state


class Geometry(NamedTuple):
    """What the operands alone decide of a call: remembered, so that a loop pays for it once."""

    call: SimpleNamespace
    lanes: int
    layouts: dict[str, Layout]
    numbers: list[Any]
    aligns: dict[str, int]


class VectorInstruction(MemoryInstruction):
    """A vector instruction of repeats: ``semantics(*read operands, *numbers)`` gives the elements of the written one.

    Operands come as arrays (repeats, elements); numbers are the scalars that are not counts and strides. ``contextual``
    semantics get a :class:`Context` first. ``layouts`` gives the layout of operands that are not lanes with block and
    repeat strides in blocks. ``folds`` says that the second source may be the destination of an earlier repeat.
    ``unmasked`` instructions heed the vector mask in counter mode only. ``aligns`` gives the alignment of operands that
    need not begin at a block; ``loose`` names addresses whose bytes depend on data.
    """

    def __init__(
        self, name: str, *, layouts: Callable[[SimpleNamespace], dict[str, Layout]] | None = None,
        contextual: bool = False, folds: bool = False, unmasked: bool = False, warns: Sequence[str] = (),
        aligns: Callable[[SimpleNamespace], dict[str, int]] | None = None, loose: Sequence[str] = (), **record: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            name, extent=lambda *_: {}, stateful=True, watch=self._watch, warns=(*warns, "VECTOR-1"), pipe=Pipe.V, asm=(),
            **record,
        )  # fmt: skip
        self.layouts = layouts
        self.contextual = contextual
        self.folds = folds
        self.unmasked = unmasked
        self.aligns = aligns
        self._geometries: dict[tuple, Geometry] = {}
        self._turns: dict[tuple, bool] = {}
        self.pointers = [(n, o) for n, o in enumerate(self.inputs) if o.sort is Sort.POINTER and o.name not in loose]
        self.numbers = [o for o in self.inputs if o.sort is Sort.SCALAR and not is_shape(o)]

    def lanes(self, call: SimpleNamespace) -> int:
        """Elements of a repeat."""
        others = self.layouts(call) if self.layouts else {}
        sizes = [getattr(call, o.name).dtype.size for _, o in self.pointers if o.name not in others]
        return REGISTER_BYTES // max(sizes)

    def layout(self, call: SimpleNamespace, operand: str) -> Layout:
        """Where the elements of an operand lie."""
        if self.layouts and (own := self.layouts(call).get(operand)):
            return own
        block, repeat = strides_of(call, operand)
        return Layout(getattr(call, operand).dtype.size, block * BLOCK_BYTES, repeat * BLOCK_BYTES)

    def repeats(self, known: Geometry, state: CoreState) -> tuple[Repeats, ...]:
        """The repeats of a call and their lanes."""
        seen = _UNMASKED if self.unmasked and not state.counter_mode else state
        return masked_repeats(seen, int(known.call.repeat), known.lanes)

    def settled(self, call: SimpleNamespace) -> SimpleNamespace:
        """The call with the numbers that the chip takes instead of those given."""
        return call

    def geometry(self, args: Sequence[Any]) -> Geometry:
        """The geometry of a call."""
        key = tuple(args)
        known = self._geometries.get(key)
        if known is None:
            if len(self._geometries) >= _REMEMBERED:
                self._geometries.clear()
                self._turns.clear()
            call = self.settled(self.call(args))
            numbers = [as_number(getattr(call, o.name), self.type_of(o, call)) for o in self.numbers]
            layouts = {o.name: self.layout(call, o.name) for _, o in self.pointers}
            aligns = {o.name: o.align for _, o in self.pointers} | (self.aligns(call) if self.aligns else {})
            known = self._geometries[key] = Geometry(call, self.lanes(call), layouts, numbers, aligns)
        return known

    def _bytes(self, known: Geometry, state: CoreState, operand: str) -> tuple[Bytes, ...]:
        seen = _UNMASKED if self.unmasked and not state.counter_mode else state
        return masked_bytes(seen, int(known.call.repeat), known.lanes, known.layouts[operand])

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The bytes of the lanes that take part."""
        known = self.geometry(args)
        touched = []
        for number, operand in self.pointers:
            space, start, *_ = args[number]
            align = known.aligns[operand.name].bit_length() - 1
            for covered in self._bytes(known, core.state, operand.name):
                region = Region(space, start + covered.offset, covered.length, covered.dims, _BYTE)
                aligned = 0 if covered.offset else align
                if operand.role is not Role.OUT:
                    touched.append(Touch(number, Mode.READ, region, aligned, covered.mask))
                if operand.role is not Role.IN:
                    touched.append(Touch(number, Mode.WRITE, region, aligned, covered.mask))
        return touched

    def row_fields(self, core: Core, args: Sequence[Any]) -> tuple[int, int, int, int, int]:
        """See :class:`Definition`; ``work`` is how many repeats run."""
        return self.pipe, Kind.INSTRUCTION, 0, 0, sum(r.number for r in self.repeats(self.geometry(args), core.state))

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Read, compute, write what takes part; repeat by repeat where repeats share bytes."""
        if not touches:
            return
        known = self.geometry(args)
        call, layouts = known.call, known.layouts
        ends = {o.name: self._end(n, known, core.state, touches) for n, o in self.pointers}
        unit = max(max(BLOCK_BYTES // layout.size, layout.group) for layout in layouts.values())
        for first, count, chosen in self.repeats(known, core.state):
            in_turn = count > 1 and self._in_turn(tuple(args), known, count)
            active = chosen[: -(-(int(np.flatnonzero(chosen)[-1]) + 1) // unit) * unit]  # no view reaches further
            for begin, several in [(first + n, 1) for n in range(count)] if in_turn else [(first, count)]:
                views = {
                    o.name: _view(
                        core, getattr(call, o.name).dtype, layouts[o.name], ends[o.name], begin, several, active.size
                    )
                    for _, o in self.pointers
                }
                inputs: list[Any] = [
                    self._read(views[o.name], getattr(call, o.name).dtype, layouts[o.name].elements(active.size))
                    for _, o in self.pointers
                    if o.role is not Role.OUT
                ]
                if self.contextual:
                    inputs.insert(0, Context(core, call, active, begin))
                with np.errstate(all="ignore"):
                    result = self.semantics(*inputs, *known.numbers)
                    for _, o in self.pointers:
                        if o.role is not Role.IN:
                            self._write(
                                views[o.name], result, getattr(call, o.name).dtype, layouts[o.name].chosen(active)
                            )

    def type_of(self, operand: Operand, call: SimpleNamespace) -> DType:
        """The element type of an operand in this call."""
        if isinstance(operand.dtype, DType):
            return operand.dtype
        pointers = [o for _, o in self.pointers]
        for variant in self.variants:
            if all(getattr(call, o.name).dtype is variant.get(str(o.dtype), o.dtype) for o in pointers):
                return variant[str(operand.dtype)]
        raise AssertionError(f"{self.name} was called with types that its rules refuse")

    def _end(self, number: int, known: Geometry, state: CoreState, touches: list[Touch]) -> tuple:
        """(space, first byte, outer dimensions) of an operand, from what the machine says it touches."""
        region = next(t.region for t in touches if t.operand == number)
        covered = self._bytes(known, state, self.inputs[number].name)[0]
        return region.space, region.start - covered.offset, region.dims[: len(region.dims) - len(covered.dims)]

    def _in_turn(self, args: tuple, known: Geometry, count: int) -> bool:
        """Whether repeats share bytes, so that one must end before the next begins."""
        turn = self._turns.get((args, count))
        if turn is None:
            outs = [known.layouts[o.name] for _, o in self.pointers if o.role is not Role.IN]
            again = any(out.repeat < out.span(known.lanes) for out in outs)
            turn = self._turns[args, count] = again or bool(overlaps(self, known.call, count))
        return turn

    def _watch(
        self, core: Core, definition: Definition, args: Sequence[Any], touches: list[Touch]
    ) -> list[Finding]:  # fmt: skip
        known = self.geometry(args)
        repeats = sum(r.number for r in self.repeats(known, core.state))
        return overlap_findings(self, definition.title, known.call, repeats)

    def _read(self, view: np.ndarray, kind: DType, elements: int) -> np.ndarray:
        together = view if view.shape[-1] == elements else view.reshape(*view.shape[:-2], elements)
        return lanes_in(together, self.values, kind)

    def _write(self, view: np.ndarray, result: Any, kind: DType, chosen: np.ndarray) -> None:
        target = view.view(kind.bits_dtype) if self.values == "bits" else view
        made = np.asarray(result).astype(target.dtype)
        if view.shape[-1] != chosen.size:
            chosen = chosen.reshape(-1, view.shape[-1])
            made = made.reshape(*made.shape[:-1], *chosen.shape) if made.ndim else made
        np.copyto(target, made, where=chosen)


def _view(
    core: Core, kind: DType, layout: Layout, end: tuple, first: int, count: int, lanes: int
) -> np.ndarray:  # fmt: skip
    """Repeats of an operand: (..., count, elements), or (..., count, blocks, elements of a block) if blocks lie apart."""
    space, start, outer = end
    dims = (*outer, (count, layout.repeat))
    nbytes = layout.elements(lanes) * layout.size
    if layout.block != BLOCK_BYTES and nbytes > BLOCK_BYTES:
        dims, nbytes = (*dims, (nbytes // BLOCK_BYTES, layout.block)), BLOCK_BYTES
    return core.view(Region(space, start + first * layout.repeat, nbytes, dims, kind.numpy))


def as_number(value: Any, kind: DType) -> Any:
    """A scalar operand as its semantics want it: of its own type, narrow floats as float32."""
    with np.errstate(all="ignore"):
        number = np.array(value).astype(kind.numpy)
        return number.astype(np.float32)[()] if kind.is_narrow_float else number[()]


def strides_of(call: SimpleNamespace, operand: str) -> tuple[int, int]:
    """(block stride, repeat stride) of an operand, in blocks."""
    return int(getattr(call, f"{operand}_block_stride", 1)), int(getattr(call, f"{operand}_repeat_stride", BLOCKS))


def overlaps(definition: VectorInstruction, call: SimpleNamespace, repeats: int) -> list[str]:
    """The sources that share bytes with the destination, and not the same ones in each repeat."""
    lanes = definition.lanes(call)
    found = []
    for _, out in definition.pointers:
        if out.role is Role.IN:
            continue
        start, layout = getattr(call, out.name).offset, definition.layout(call, out.name)
        end = start + layout.span(lanes) + max(repeats - 1, 0) * layout.repeat
        for _, source in definition.pointers:
            if source.role is not Role.IN:
                continue
            other, walk = getattr(call, source.name).offset, definition.layout(call, source.name)
            if (start, layout) == (other, walk) and (repeats <= 1 or layout.repeat >= layout.span(lanes)):
                continue
            if start == other and layout.group > 1 and layout.repeat <= walk.repeat:  # writes stay behind reads
                continue
            if start < other + walk.span(lanes) + max(repeats - 1, 0) * walk.repeat and other < end:
                found.append(source.name)
    return found


def overlap_findings(
    definition: VectorInstruction, title: str, call: SimpleNamespace, repeats: int
) -> list[Finding]:  # fmt: skip
    """VECTOR-1 where a source and the destination overlap in a way that the page does not allow."""
    found = []
    for name in overlaps(definition, call, repeats) if repeats else ():
        wide = getattr(call, name).dtype.name in ("f16", "i32", "f32")
        still = 0 in (strides_of(call, "dst")[1], strides_of(call, name)[1])
        if name == "src1" and definition.folds and wide and still and call.dst.offset == call.src1.offset:
            continue
        headline = f"{title}: dst and {name} overlap in part; which bytes a repeat reads is not defined"
        found.append(Finding("VECTOR-1", Severity.WARNING, headline, (), "Work in other memory."))
    return found


# Forms


def default_shape(base: VectorInstruction, call: SimpleNamespace) -> dict[str, int]:
    """The repeat and the strides that the form with a count fills in: everything side by side."""
    made = {"repeat": 1}
    lanes = base.lanes(call)
    for _, operand in base.pointers:
        made[f"{operand.name}_block_stride"] = 1
        made[f"{operand.name}_repeat_stride"] = max(lanes * getattr(call, operand.name).dtype.size // BLOCK_BYTES, 1)
    return made


def counted(
    base: MemoryInstruction, cpp: str, shape: Callable[[SimpleNamespace], dict[str, int]], sources: Sequence[str],
    rules: Sequence[Rule] = (), without: Sequence[str] = (),
) -> MemoryInstruction:  # fmt: skip
    """Register the form that works on the first ``count`` elements: counter mode, the instruction with the numbers of
    ``shape``, normal mode again. ``without`` names numbers beside counts and strides that the form lacks."""
    operands = (*(o for o in base.operands if not is_shape(o) and o.name not in without), COUNT)

    def expand(call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        numbers = {**shape(call), **vars(call)}
        given = tuple(numbers[o.name] for o in base.inputs)
        count = Step(set_vector_mask, (0, int(call.count)))
        yield Group([Step(set_mask_count, ()), count, Step(base, given), Step(set_mask_norm, ())])

    def watch(core: Core, definition: Definition, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
        if not isinstance(base, VectorInstruction):
            return []
        call = definition.call(args)
        whole = SimpleNamespace(**{**shape(call), **vars(call)})
        return overlap_findings(base, definition.title, whole, -(-int(call.count) // base.lanes(whole)))

    first_paragraph = base.doc.split("\n\n")[0]
    return memory_instruction(
        cpp, cpp=cpp, asm=(), profiles=base.profiles, operands=operands, pipe=base.pipe, variants=base.variants,
        extent=lambda *_: {}, rules=(*rules, *numbers_fit(operands)), watch=watch, expand=expand, warns=base.warns,
        notes=(*base.notes, "The vector mask is (0, count) afterwards, the mask mode normal."), assumed=base.assumed,
        sources=sources, doc=f"{first_paragraph} Of the first ``count`` elements.",
    )(base.semantics)  # fmt: skip


def vector_family(
    cpp: str, builtin: str, operands: Sequence[Operand], variants: Sequence[dict[str, DType]], *,
    semantics: Callable[..., Any], doc: str, values: str = "widen", shape: Sequence[Operand] | None = None,
    count: bool | Callable[[SimpleNamespace], dict[str, int]] = True, sync: bool = True, without: Sequence[str] = (),
    profiles: Sequence[str] = A2A3, rules: Sequence[Rule] = (), page: str = "", name: str = "", **record: Any,
) -> VectorInstruction:  # fmt: skip
    """Register an operation: the full form ``cpp`` (and ``builtin``), the form with a count, ``cpp_sync``.

    ``operands`` are addresses and numbers; ``shape``, by default repeat and all strides, follows, of 8 bits with two
    sources, else of 16. ``count`` gives the numbers that the form with a count fills in.
    """
    names = [o.name for o in operands if o.sort is Sort.POINTER]
    if shape is None:
        shape = (REPEAT, *strides(names, u8 if len(names) > 2 else u16))
    sources = (f"{PAGES}{page or cpp}",)
    whole = (*operands, *shape)
    base = VectorInstruction(
        name or builtin, cpp=cpp, aliases=(builtin,) if builtin else (), profiles=profiles, operands=whole,
        variants=variants, semantics=semantics, values=values, doc=doc, sources=sources,
        rules=(*rules, *numbers_fit(whole)), **record,
    )  # fmt: skip
    REGISTRY.add(base)
    last: MemoryInstruction = base
    if count:
        fills = count if callable(count) else lambda call: default_shape(base, call)
        last = counted(base, cpp, fills, sources, rules, without)
    if sync:
        synchronous(last, f"{cpp}_sync", sources)
    return base
