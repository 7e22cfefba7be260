"""Which definition an instruction's text means, and which operand each thing in the text is.

``ins`` are the operands that are read, ``outs`` those that are written, what stands under no keyword goes by what it is
(a tile, a register, an address, a number, a word); an attribute belongs to the operand of its name, or to the only
operand that takes words. A lane mask that a spelling leaves out is all ones. All of it comes from the definitions: no
instruction is known here.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute

from ascsim.diagnostics import Refused, UserError
from ascsim.frontends.ptoas.dialect import Argument, Flag
from ascsim.frontends.ptoas.lowering import Call, Ref
from ascsim.frontends.ptoas.types import (
    LOCATIONS,
    MaskType,
    OpaqueType,
    PointerType,
    TileType,
    VectorRegisterType,
    ViewType,
    Word,
    is_scalar,
)
from ascsim.isa.definition import (
    Asm,
    BoundRegisterInstruction,
    Definition,
    Operand,
    RegisterInstruction,
    Registry,
    Role,
    Sort,
)
from ascsim.isa.streams import StreamInstruction
from ascsim.machine.operands import REGISTER_BYTES, MReg, Pointer, VReg
from ascsim.machine.words import WORK_PIPES, Pipe, Space

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Match:
    """A definition and the arguments that the text gives it, one source for each of its inputs.

    A source is an :class:`Argument` with a :class:`Ref` (and subscripts), or a plain value.
    """

    definition: Definition
    sources: tuple[Any, ...]
    fits: bool = True
    """False where an operand is missing, left over or of another kind, for the definition's rules to refuse."""

    def reader(self) -> Callable[[Values], Values]:
        """The function that makes the definition's arguments of an instruction's values."""
        if all(isinstance(s, Argument) and not s.subscripts for s in self.sources) and len(self.sources) > 1:
            return operator.itemgetter(*(s.value.position for s in self.sources))
        getters = [_getter(source) for source in self.sources]
        return lambda values: tuple(get(values) for get in getters)


def _getter(source: Any) -> Callable[[Values], Any]:
    if not isinstance(source, Argument):
        return lambda values: source
    value = _value(source.value)
    if not source.subscripts:
        return value
    offsets = [_value(s) for s in source.subscripts]
    return lambda values: value(values) + sum(offset(values) for offset in offsets)


def _value(source: Any) -> Callable[[Values], Any]:
    return operator.itemgetter(source.position) if isinstance(source, Ref) else lambda values: source


def match(call: Call, registry: Registry, profile: str) -> Match:
    """The definition that ``call`` means on the profile, and its arguments.

    Where several definitions share the name, the attributes, words and element sizes select, then the operands and
    their types. One that does not fit is returned when none does, so that its rules say what is wrong.

    Raises:
        UserError: no definition has the name, an attribute or word means nothing to it, or none has the types.
    """
    problems: list[UserError] = []
    misfits: list[Match] = []
    mistyped: list[Match] = []
    for spelled in _selected(call, registry, profile):
        try:
            filled = _fill(call, spelled)
        except UserError as problem:  # another spelling may have the word in this place
            problems.append(problem)
            continue
        if not filled.fits:
            misfits.append(filled)
        elif _has_types(filled, call):
            return filled
        else:
            mistyped.append(filled)
    if mistyped and all(_converts(found.definition) for found in mistyped):
        raise UserError(_types_lacking(registry.by_asm[call.name], call), call.site)
    if mistyped or misfits:
        return (mistyped or misfits)[0]
    raise problems[0]


def _has_types(found: Match, call: Call) -> bool:
    if isinstance(found.definition, StreamInstruction):
        return len(call.result_types) == len(found.definition.results) + found.definition.post_update
    if not isinstance(found.definition, RegisterInstruction):
        return True
    try:
        typed(found, call)
    except Refused:
        return False
    return True


def _converts(definition: Definition) -> bool:
    """Has it types of its own for source and result? The chip may then have pairs that no definition is for yet."""
    return isinstance(definition, RegisterInstruction) and any(len(v) > 1 for v in definition.variants)


def _types_lacking(definitions: Sequence[Definition], call: Call) -> str:
    """The sentence for types that no form of the name has."""
    kinds = [k for k in (*call.operand_types, *call.result_types) if isinstance(k, VectorRegisterType | PointerType)]
    said = " to ".join(dict.fromkeys(k.data.dtype.name for k in kinds))
    forms: dict[str, None] = {}
    for definition in definitions:
        for variant in definition.variants if isinstance(definition, RegisterInstruction) else ():
            order = dict.fromkeys(o.dtype for o in (*definition.inputs, *definition.operands) if o.dtype in variant)
            forms[" to ".join(variant[str(name)].name for name in order)] = None
    return f"pto.{call.name} of {said} is not implemented; it is for {'; '.join(f for f in forms if f)}"


def typed(found: Match, call: Call) -> BoundRegisterInstruction:
    """The register instruction for the types that the text states.

    Raises:
        Refused: it does not exist for them.
        UserError: the text states another type for a result than the instruction yields.
    """
    definition = found.definition
    assert isinstance(definition, RegisterInstruction)
    samples = found.reader()(tuple(_sample(kind) for kind in call.operand_types))
    stated = [k.data.dtype for k in call.result_types if isinstance(k, VectorRegisterType)]
    outs = [o for o in definition.operands if o.role is Role.OUT and o.sort is Sort.VREG]
    known = {o.dtype for o, _ in zip(definition.inputs, samples, strict=False) if o.sort in (Sort.VREG, Sort.POINTER)}
    is_open = bool(outs) and isinstance(outs[0].dtype, str) and outs[0].dtype not in known
    bound = definition.infer(samples, stated[0] if stated and is_open else None)
    for operand, said in zip(outs, stated, strict=False):
        kind = bound.dtype_of(operand)
        if kind is not said:
            made = f"{REGISTER_BYTES // kind.size}x{kind.asm_names[0]}" if kind else "another type"
            raise UserError(
                f"pto.{call.name} yields registers of {made} here, but its result is written as one of {said.name}",
                call.site,
            )
    return bound


def _sample(kind: Any) -> Any:
    """A value of a type, for the choice of a variant."""
    match kind:
        case VectorRegisterType():
            return VReg(kind.data.dtype)
        case MaskType():
            return MReg()
        case PointerType():
            return Pointer(Space[kind.data.space.upper()], 0, kind.data.dtype)
    return 0


@dataclass(frozen=True)
class _Spelled:
    """A definition by one of its spellings, and the attributes and words of the text that the spelling has."""

    definition: Definition
    spelling: Asm
    attributes: frozenset[str]
    words: frozenset[str]


def _selected(call: Call, registry: Registry, profile: str) -> list[_Spelled]:
    """The definitions that the name, attributes, words and element sizes select, the profile's own first."""
    named = registry.by_asm.get(call.name)
    if not named:
        close = difflib.get_close_matches(call.name, registry.by_asm, 1, 0.75)
        hint = f"; did you mean pto.{close[0]}?" if close else "; 'ascsim isa' lists what is"
        raise UserError(f"pto.{call.name} is not implemented{hint}", call.site)
    words = {str(_text(v)) for v in call.given() if not isinstance(v, Ref)}
    found: list[_Spelled] = []
    for definition in dict.fromkeys(named):
        for spelling in definition.asm:
            if spelling.name != call.name or not _sizes_agree(spelling, call):
                continue
            keys = frozenset(k for k, v in spelling.attributes if k and _says(call.attributes.get(k), v))
            said = frozenset(v for k, v in spelling.attributes if not k and v in words)
            if len(keys) + len(said) == len(spelling.attributes):
                found.append(_Spelled(definition, spelling, keys, said))
    selecting = {key for d in named for s in d.asm if s.name == call.name for key, _ in s.attributes}
    unknown = any(key in selecting and not any(key in s.attributes for s in found) for key in call.attributes)
    if not found or unknown:
        raise UserError(f"pto.{call.name} has no such form; {_choices(named, call.name)}", call.site)
    most = max(len(s.spelling.attributes) for s in found)
    best = [s for s in found if len(s.spelling.attributes) == most]
    return sorted(best, key=lambda s: profile not in s.definition.profiles)


def _says(given: Any, wanted: str) -> bool:
    """Does an attribute have that value? ``""`` is one that is there without a value."""
    return given is True if not wanted else _text(given) == wanted


def _sizes_agree(spelling: Asm, call: Call) -> bool:
    kinds = [k for k in (*call.result_types, *call.operand_types) if isinstance(k, VectorRegisterType | PointerType)]
    return not spelling.sizes or not kinds or kinds[0].data.dtype.size in spelling.sizes


def _choices(definitions: Sequence[Definition], name: str) -> str:
    """What the spellings of a name let one choose."""
    choices: dict[str, dict[str, None]] = {}
    for definition in definitions:
        for spelling in definition.asm:
            for key, value in spelling.attributes if spelling.name == name else ():
                choices.setdefault(key, {})[value or "present"] = None
    return "; ".join(f"{key or 'its word'} is one of {', '.join(values)}" for key, values in choices.items())


def _text(value: Any) -> Any:
    """A word as text; attributes spell the same thing as ``"NORM"``, ``NORM`` and ``<NORM>``."""
    return value.text if isinstance(value, Word | Flag) else value


@dataclass
class _Filling:
    """The operands of one spelling as they are filled."""

    call: Call
    spelled: _Spelled
    filled: dict[str, Any] = field(default_factory=dict)
    left: list[Any] = field(default_factory=list)
    fits: bool = True

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """The operands that the text gives values for."""
        return self.spelled.definition.inputs

    def take(self, keyword: str, arguments: Sequence[Argument]) -> None:
        """Give what stands under a keyword its operands: in the spelling's order, or by what each thing is."""
        given = [a for a in arguments if _is_operand(a) or str(_text(a.value)) not in self.spelled.words]
        if counted(self.spelled.definition):
            given = [a for a in given if not is_counts(a.value, self.call.operand_types)]
        is_tile = self.spelled.definition.level == "tile"
        order = self.spelled.spelling.order if keyword in ("", "ins" if is_tile else "") else ()
        if order and len(given) != len(order):
            self.fits = False
        wanted = [o for o in self.inputs if _may_stand(o, keyword)]
        for number, argument in enumerate(given):
            if number < len(order) and order[number] == "_":
                continue
            if number < len(order):
                place = next(o for o in self.inputs if o.name == order[number])
                is_free = place.name not in self.filled
                self.fits = self.fits and is_free and _takes(place, argument.value, self.call.operand_types)
                self.put(place, argument)
            else:
                found = self.free(argument, wanted) or self.free(argument, self.inputs)
                if found is None:
                    self.left.append(argument if _is_operand(argument) else _text(argument.value))
                else:
                    self.put(found, argument)

    def free(self, argument: Argument, wanted: Sequence[Operand]) -> Operand | None:
        """The first free operand that takes a thing of this kind."""
        for operand in wanted:
            if operand.name not in self.filled and _takes(operand, argument.value, self.call.operand_types):
                return operand
        return None

    def put(self, place: Operand, argument: Argument) -> None:
        """Fill an operand. A pointer's subscript goes to the definition's ``offset``, which counts in its own unit."""
        if argument.subscripts and "offset" not in self.filled and any(o.name == "offset" for o in self.inputs):
            offset = argument.subscripts[0]
            self.filled["offset"] = Argument(offset) if isinstance(offset, Ref) else offset
            argument = Argument(argument.value)
        self.filled[place.name] = argument if _is_operand(argument) else _literal(place, argument.value, self.call)


def _fill(call: Call, spelled: _Spelled) -> Match:
    """The arguments of a definition.

    Raises:
        UserError: the text has an attribute or a word that means nothing to it.
    """
    definition = spelled.definition
    filling = _Filling(call, spelled)
    for keyword, arguments in sorted(call.arguments.items(), key=lambda item: item[0] != "outs"):
        filling.take(keyword, arguments)
    for key, value in call.attributes.items():
        if key in spelled.attributes:
            continue
        place = _attribute_place(key, value, definition.inputs, filling.filled)
        if place is None:
            known = _operand_list(definition)
            raise UserError(f"pto.{call.name} has no attribute '{key}'; its operands are {known}", call.site)
        filling.filled[place.name] = _literal(place, value, call)
    for operand in definition.inputs:
        if operand.lane_mask and spelled.spelling.order and operand.name not in spelled.spelling.order:
            filling.filled.setdefault(operand.name, ALL_LANES)
    is_whole = all(o.optional or o.name in filling.filled for o in definition.inputs)
    sources = _in_order(definition.inputs, filling.filled, filling.left)
    return Match(definition, sources, filling.fits and is_whole and not filling.left)


def _is_operand(argument: Argument) -> bool:
    return isinstance(argument.value, Ref)


def _may_stand(operand: Operand, keyword: str) -> bool:
    match keyword:
        case "ins":
            return operand.role is not Role.OUT
        case "outs":
            return operand.role in (Role.OUT, Role.INOUT)
        case "":
            return True
    return operand.name == keyword


_SORTS: dict[Sort, tuple[type, ...]] = {
    Sort.TILE: (TileType,),
    Sort.GLOBAL: (ViewType, MemRefType),
    Sort.VREG: (VectorRegisterType,),
    Sort.MREG: (MaskType,),
    Sort.UREG: (OpaqueType,),
    Sort.POINTER: (PointerType,),
}


def _takes(operand: Operand, value: Any, types: Sequence[Attribute]) -> bool:
    if isinstance(value, Ref):
        kind = types[value.position]
        if operand.lies_in and isinstance(kind, TileType) and LOCATIONS[kind.data.location] not in operand.lies_in:
            return False
        kinds = _SORTS.get(operand.sort)
        return isinstance(kind, kinds) if kinds is not None else is_scalar(kind)
    if isinstance(value, Word | Flag | str):
        return operand.sort is Sort.ENUM
    return operand.sort in (Sort.SCALAR, Sort.ENUM) and isinstance(value, int | float)


def counted(definition: Definition) -> bool:
    """Does it yield counts, which the text may give a place among the outputs?"""
    return any(o.sort is Sort.COUNTS for o in definition.operands)


def is_counts(value: Any, types: Sequence[Attribute]) -> bool:
    """Is it a value of the type that counts have, ``vector<4xi16>``?"""
    return isinstance(value, Ref) and isinstance(types[value.position], VectorType)


def _attribute_place(key: str, value: Any, operands: Sequence[Operand], filled: dict[str, Any]) -> Operand | None:
    """The operand of that name, or the only free one that takes words where the value is one."""
    free = [o for o in operands if o.name not in filled and o.sort in (Sort.ENUM, Sort.SCALAR)]
    for operand in free:
        if key in (operand.name, operand.asm_name):
            return operand
    takers = [o for o in free if o.sort is Sort.ENUM]
    return takers[0] if len(takers) == 1 and isinstance(value, Word | str) else None


def _literal(operand: Operand, value: Any, call: Call) -> Any:
    """A literal as the operand wants it: a word as a member of its enumeration or the number in it."""
    if not isinstance(value, Word | Flag | str):
        return value
    word = str(_text(value))
    if operand.enum is Pipe and word in WORK_PIPES:
        return WORK_PIPES[word]
    if isinstance(operand.enum, type) and issubclass(operand.enum, IntEnum):
        members = {name.lower().replace("_", ""): member for name, member in operand.enum.__members__.items()}
        parts = word.lower().split("_")
        for start in range(len(parts)):  # PIPE_MTE2, CAST_RINT: the member's name behind a prefix
            member = members.get("".join(parts[start:]))
            if member is not None:
                return member
        allowed = ", ".join(operand.enum.__members__)
        raise UserError(f"pto.{call.name}: '{word}' is not a {operand.name}; allowed are {allowed}", call.site)
    number = re.search(r"\d+$", word)
    if operand.enum is int and number:
        return int(number[0])
    if operand.enum is int:
        raise UserError(f"pto.{call.name}: {operand.name} is a number, as in EVENT_ID0, not '{word}'", call.site)
    return word


def _in_order(operands: Sequence[Operand], filled: dict[str, Any], left: list[Any]) -> tuple[Any, ...]:
    """The sources in the definition's order; what found no place fills the gaps, so that the rules can name it."""
    remaining = iter(left)
    sources: list[Any] = []
    for operand in operands:
        if operand.name in filled:
            sources.append(filled[operand.name])
        else:
            sources.append(operand.default if operand.optional else next(remaining, _MISSING))
    sources += list(remaining)
    while sources and (sources[-1] is _MISSING or _is_default(operands, len(sources) - 1, sources[-1])):
        sources.pop()
    return tuple(None if s is _MISSING else s for s in sources)


_MISSING = object()
ALL_LANES = MReg(np.ones(REGISTER_BYTES, np.uint8))
"""The lane mask where the text has none."""


def _is_default(operands: Sequence[Operand], number: int, source: Any) -> bool:
    return number < len(operands) and operands[number].optional and source is operands[number].default


def _operand_list(definition: Definition) -> str:
    return ", ".join(o.asm_name or o.name for o in definition.inputs) or "none"
