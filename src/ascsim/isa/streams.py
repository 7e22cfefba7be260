"""Unaligned loads and stores: a register of 32 bytes holds what lies before the next whole block.

A load takes the bytes before the first whole block from the register, which a priming load or the load before it has
filled. A store writes whole blocks and leaves the rest in the register, for the next store or for a flush. What a store
leaves behind is in the trace as an access to :data:`Space.STATE` (start and length: the bytes of UB that it is for;
``unused``: the register), and so is its end: a read of the same bytes. A read of no bytes says that the register did not
fit: it was not primed for a load's address, or a flush went elsewhere. ``include/ascsim/machine.hpp`` does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa import rules as rule_language
from ascsim.isa.definition import REGISTRY, Definition, Operand, Role, Sort
from ascsim.isa.rules import Rule
from ascsim.machine.core import Core, Touch
from ascsim.machine.dtypes import DType
from ascsim.machine.operands import REGISTER_BYTES, Pointer, Region, UReg, VReg
from ascsim.machine.trace import STREAM_OF_LOADS, Mode
from ascsim.machine.words import Kept, Pipe, Space

BLOCK = 32
_BYTE = np.dtype(np.uint8)


class Action(Enum):
    """What a stream instruction does with the register."""

    INIT = "init"
    PRIME = "prime"
    LOAD = "load"
    STORE = "store"
    FLUSH = "flush"
    WHOLE = "whole"
    """A store that flushes, with a register of its own."""


class StreamInstruction(Definition):
    """An unaligned load or store.

    Operands: ``align`` is the register of 32 bytes, ``value`` the vector register, ``address`` the pointer. ``count``
    (elements) says how much a store takes, and how far the pointer of a ``post_update`` moves on; ``end`` (elements)
    how far after the address a flush's data end. Without them a store takes what the AR register has grown by, and a
    flush's data end where AR says. A ``value`` that is a mask register is stored as one bit a lane of the pointer's type,
    and the pointer moves on by as much; one of bytes counts as one of 32-bit lanes, as in the library.
    """

    level = "register"

    def __init__(
        self, name: str, *, action: Action, variants: Sequence[dict[str, DType]], post_update: bool = False,
        rules: Sequence[Rule] = (), **record: Any,
    ) -> None:  # fmt: skip
        pointers = [o for o in record["operands"] if o.sort is Sort.POINTER]
        registers = [o for o in record["operands"] if o.sort is Sort.VREG and o.role is Role.IN]
        standing = [rule_language.variant_types(pointers, variants), rule_language.pointer_spaces(pointers)]
        if registers:
            standing.append(rule_language.same_dtype(pointers[0].name, registers[0].name))
        super().__init__(name, pipe=Pipe.V, rules=(*(standing if pointers else ()), *rules), **record)
        self.action = action
        self.variants = tuple(variants)
        self.post_update = post_update

    @property
    def results(self) -> list[Operand]:
        """What a call yields, in order; a moved pointer comes after them."""
        written = [o for o in self.operands if o.role in (Role.OUT, Role.INOUT) and o.sort is not Sort.POINTER]
        return sorted(written, key=lambda o: o.sort is Sort.UREG)

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The bytes, and the register's where they matter."""
        call = self._placed(core, args)
        return [] if self.action is Action.INIT else self._plan(call)

    def _placed(self, core: Core, args: Sequence[Any]) -> SimpleNamespace:
        """The call with ``at``, the address that counts, and ``nbytes``, how many bytes a store takes."""
        call = self.call(args)
        if self.action is Action.INIT:
            return call
        if self.action is Action.STORE:
            call.align.number = call.align.number or UReg.next_number()
        words = core.state.words
        pointer: Pointer = call.address
        size = pointer.dtype.size if pointer.dtype else 1
        call.size, call.at, call.nbytes, call.multiple = size, pointer.offset, REGISTER_BYTES, size
        if self.of_masks:
            call.nbytes = call.multiple = REGISTER_BYTES // 8 // lane_bytes(size)
        if "count" in self._index and call.count is not None:
            call.nbytes = min(int(call.count) * size, REGISTER_BYTES)
        if "end" in self._index:
            call.at += int(call.end) * size
        if self.takes_ar and self.action is Action.STORE:
            taken = min(int(words[Kept.STORED]), int(words[Kept.SQUEEZED]))
            call.at += taken
            call.nbytes = min(int(words[Kept.SQUEEZED]) - taken, REGISTER_BYTES)
        elif self.takes_ar:
            call.at += int(words[Kept.SQUEEZED])
        return call

    @property
    def by_address_register(self) -> bool:
        """Whether C++ may give an address register behind the pointer; of a post-update form that moves on, then."""
        return self.action is Action.PRIME or (self.action is Action.LOAD and "count" in self._index)

    @property
    def takes_ar(self) -> bool:
        """Whether the AR register says where its data lie."""
        has_number = "count" in self._index or "end" in self._index
        return self.action in (Action.STORE, Action.FLUSH) and not has_number and not self.of_masks

    @property
    def of_masks(self) -> bool:
        """Whether it stores a mask register."""
        return any(o.sort is Sort.MREG for o in self.operands)

    def _plan(self, call: SimpleNamespace) -> list[Touch]:
        at, n = call.at, call.nbytes
        align: Any = getattr(call, "align", None)
        number = self._index["address"]
        state = self._index.get("align", 0)

        def bytes_of(mode: Mode, low: int, high: int) -> list[Touch]:
            region = Region(Space.UB, low, high - low, (), _BYTE)
            return [Touch(number, mode, region, call.multiple.bit_length() - 1)] if high > low else []

        def register(mode: Mode, low: int, high: int) -> Touch:
            return Touch(state, mode, Region(Space.STATE, low, high - low, (), _BYTE), register=_stream(align))

        match self.action:
            case Action.PRIME:
                return bytes_of(Mode.READ, at, at // BLOCK * BLOCK + BLOCK)
            case Action.LOAD:
                primed = align.high > align.low and align.low == at // BLOCK * BLOCK
                read = bytes_of(Mode.READ, at, at + REGISTER_BYTES)
                return read if primed else [*read, register(Mode.READ, at, at)]
            case Action.WHOLE:
                return bytes_of(Mode.WRITE, at, at + n)
            case Action.STORE:
                first, cut, rest = _split(align, at, n)
                goes_on = [register(Mode.READ, align.low, align.high)] if first < at else []
                written = bytes_of(Mode.WRITE, first, cut)
                return [*goes_on, *written, *([register(Mode.WRITE, rest, at + n)] if rest < at + n else [])]
            case Action.FLUSH if align.high > align.low:
                if align.high == at:
                    return [register(Mode.READ, align.low, at), *bytes_of(Mode.WRITE, align.low, at)]
                return [register(Mode.READ, at, at), *bytes_of(Mode.WRITE, *_elsewhere(align, at))]
        return []

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Any:
        """Move the bytes; yields the registers, then the moved pointer."""
        call = self._placed(core, args)
        memory = core.memory(Space.UB).data
        results: list[Any] = []
        match self.action:
            case Action.INIT:
                return UReg()
            case Action.PRIME:
                results = [_block(memory, call.at)]
            case Action.LOAD:
                moved = call.at + (int(call.count) * call.size if "count" in self._index else REGISTER_BYTES)
                value, align = _load(memory, call.align, call.at)
                results = [VReg(call.address.dtype, value), _block(memory, moved, align.number)]
            case Action.STORE:
                data = (
                    _bits(call.value.data, lane_bytes(call.size)) if self.of_masks else call.value.data[: call.nbytes]
                )
                results = [_store(memory, call.align, call.at, data)]
                if self.takes_ar:
                    core.state.words[Kept.STORED] = core.state.words[Kept.SQUEEZED]
            case Action.FLUSH:
                _flush(memory, call.align, call.at)
            case Action.WHOLE:
                _fits(memory, call.at, call.nbytes)
                memory[call.at : call.at + call.nbytes] = call.value.data[: call.nbytes]
        if self.post_update:
            further = (call.nbytes if self.of_masks else REGISTER_BYTES) // call.size
            further = call.count if "count" in self._index else call.end if "end" in self._index else further
            results.append(call.address + int(further))
        return tuple(results) if len(results) > 1 else results[0] if results else None


def lane_bytes(size: int) -> int:
    """The bytes of the lanes of a mask that goes to elements of that size."""
    return 2 if size == 2 else 4


def _bits(mask: np.ndarray, lane: int) -> np.ndarray:
    """The first entry of each lane, one bit a lane."""
    return np.packbits(mask[::lane], bitorder="little")


def _stream(align: UReg | None) -> int:
    return align.number if align is not None and align.number else STREAM_OF_LOADS


def _split(align: UReg, at: int, nbytes: int) -> tuple[int, int, int]:
    """(first byte written, where the whole blocks end, first byte that stays in the register) of a store."""
    first = align.low if align.high > align.low and align.high == at else at
    cut = (at + nbytes) // BLOCK * BLOCK
    return first, cut, max(first, cut)


def _elsewhere(align: UReg, at: int) -> tuple[int, int]:
    """Where a flush at another address than the data's end puts them: at their places of the block that ends there."""
    low = at // BLOCK * BLOCK + align.low % BLOCK
    return low, max(low, min(at, low + align.high - align.low))


def _fits(memory: np.ndarray, at: int, nbytes: int) -> None:
    if not 0 <= at <= memory.size - nbytes:
        raise ValueError(f"bytes {at:#x}..{at + nbytes:#x} leave UB")


def _block(memory: np.ndarray, at: int, number: int = 0) -> UReg:
    """The register with the whole block that an address lies in."""
    low = at // BLOCK * BLOCK
    made = UReg(low=low, high=low + BLOCK, number=number or UReg.next_number() | STREAM_OF_LOADS)
    part = memory[max(low, 0) : low + BLOCK]
    made.data[: part.size] = part
    return made


def _load(memory: np.ndarray, align: UReg, at: int) -> tuple[np.ndarray, UReg]:
    _fits(memory, at, REGISTER_BYTES)
    head = BLOCK - at % BLOCK
    return np.concatenate([align.data[at % BLOCK :], memory[at + head : at + REGISTER_BYTES]]), align


def _store(memory: np.ndarray, align: UReg, at: int, data: np.ndarray) -> UReg:
    first, cut, rest = _split(align, at, data.size)
    _fits(memory, first, at + data.size - first)
    joined = np.concatenate([align.data[first % BLOCK :][: at - first], data])
    if cut > first:
        memory[first:cut] = joined[: cut - first]
    made = UReg(low=rest, high=at + data.size, number=align.number)
    made.data[rest % BLOCK :][: made.high - rest] = joined[rest - first :]
    return made


def _flush(memory: np.ndarray, align: UReg, at: int) -> None:
    if align.high > align.low:
        low, high = (align.low, at) if align.high == at else _elsewhere(align, at)
        _fits(memory, low, high - low)
        memory[low:high] = align.data[align.low % BLOCK :][: high - low]
    align.low = align.high = 0


def stream_instruction(name: str, **record: Any) -> StreamInstruction:
    """A registered :class:`StreamInstruction`."""
    made = StreamInstruction(name, **record)
    REGISTRY.add(made)
    return made
