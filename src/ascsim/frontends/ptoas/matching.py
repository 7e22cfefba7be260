"""Which definition an instruction's text means, and which operand each thing in the text is.

``ins`` are the operands that are read, ``outs`` those that are written, what stands under no keyword goes by what it is
(a tile, a register, an address, a number, a word); an attribute belongs to the operand of its name, or to the only
operand that takes words. All of it comes from the definitions: no instruction is known here.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from ascsim.diagnostics import UserError
from ascsim.frontends.ptoas.dialect import Argument, Flag
from ascsim.frontends.ptoas.lowering import Call, Ref
from ascsim.frontends.ptoas.types import (
    MaskType,
    PointerType,
    TileType,
    VectorRegisterType,
    ViewType,
    Word,
    is_scalar,
)
from ascsim.isa.definition import Definition, Operand, Registry, Role, Sort

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Match:
    """A definition and the arguments that the text gives it, one source for each of its inputs.

    A source is an :class:`Argument` with a :class:`Ref` (and subscripts), or a plain value.
    """

    definition: Definition
    sources: tuple[Any, ...]

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

    Where several definitions share the name, the attributes and words select, then the operands. One that does not fit
    is returned when none does, so that its rules say what is wrong.

    Raises:
        UserError: no definition has the name, or an attribute or word means nothing to it.
    """
    selected = _selected(call, registry)
    selected.sort(key=lambda found: profile not in found[0].profiles)
    problems = []
    for definition, used in selected:
        filled = _fill(call, definition, used)
        if isinstance(filled, Match):
            return filled
        problems.append(filled)
    raise UserError(problems[0], call.site)


def _selected(call: Call, registry: Registry) -> list[tuple[Definition, frozenset[str]]]:
    """The definitions that the name and the words select, each with the words and attributes that did so."""
    named = registry.by_asm.get(call.name)
    if not named:
        close = difflib.get_close_matches(call.name, registry.by_asm, 1, 0.75)
        hint = f"; did you mean pto.{close[0]}?" if close else "; 'ascsim isa' lists what is"
        raise UserError(f"pto.{call.name} is not implemented{hint}", call.site)
    words = {str(_text(v)) for v in call.given() if not isinstance(v, Ref)}
    found: list[tuple[Definition, frozenset[str]]] = []
    choices: dict[str, set[str]] = {}
    for definition in dict.fromkeys(named):
        for spelling in definition.asm:
            if spelling.name != call.name:
                continue
            used = set()
            for key, value in spelling.attributes:
                choices.setdefault(key, set()).add(value)
                if _text(call.attributes.get(key)) == value:
                    used.add(key)
                elif value in words:
                    used.add(value)
            if len(used) == len(spelling.attributes):
                found.append((definition, frozenset(used)))
    if not found:
        listing = "; ".join(f"{key} is one of {', '.join(sorted(values))}" for key, values in choices.items())
        raise UserError(f"pto.{call.name} has no form for these attributes; {listing}", call.site)
    most = max(len(used) for _, used in found)
    return [(definition, used) for definition, used in found if len(used) == most]


def _text(value: Any) -> Any:
    """A word as text; attributes spell the same thing as ``"NORM"``, ``NORM`` and ``<NORM>``."""
    return value.text if isinstance(value, Word | Flag) else value


def _fill(call: Call, definition: Definition, used: frozenset[str]) -> Match | str:
    """The arguments of ``definition``; a sentence where the text has something that no operand takes."""
    filled: dict[str, Any] = {}
    left: list[Any] = []
    for keyword, arguments in sorted(call.arguments.items(), key=lambda item: item[0] != "outs"):
        wanted = [o for o in definition.inputs if _may_stand(o, keyword)]
        for argument in arguments:
            if not isinstance(argument.value, Ref) and str(_text(argument.value)) in used:
                continue
            place = _place(argument, wanted, filled, call) or _place(argument, definition.inputs, filled, call)
            source = argument
            if place is None:
                left.append(source)
            else:
                filled[place.name] = _literal(place, source.value, call) if _is_literal(source) else source
    for key, value in call.attributes.items():
        if key in used:
            continue
        place = _attribute_place(key, value, definition.inputs, filled)
        if place is None:
            return f"pto.{call.name} has no attribute '{key}'; its operands are {_operand_list(definition)}"
        filled[place.name] = _literal(place, value, call)
    return Match(definition, _in_order(definition.inputs, filled, left, call))


def _may_stand(operand: Operand, keyword: str) -> bool:
    match keyword:
        case "ins":
            return operand.role is not Role.OUT
        case "outs":
            return operand.role in (Role.OUT, Role.INOUT)
        case "":
            return True
    return operand.name == keyword


def _is_literal(argument: Argument) -> bool:
    return not isinstance(argument.value, Ref)


def _place(argument: Argument, wanted: Sequence[Operand], filled: dict[str, Any], call: Call) -> Operand | None:
    """The first free operand that takes a thing of this kind."""
    for operand in wanted:
        if operand.name not in filled and _takes(operand, argument.value, call.operand_types):
            return operand
    return None


_SORTS: dict[Sort, tuple[type, ...]] = {
    Sort.TILE: (TileType,),
    Sort.GLOBAL: (ViewType, MemRefType),
    Sort.VREG: (VectorRegisterType,),
    Sort.MREG: (MaskType,),
    Sort.POINTER: (PointerType,),
}


def _takes(operand: Operand, value: Any, types: Sequence[Attribute]) -> bool:
    if isinstance(value, Ref):
        kind = types[value.position]
        kinds = _SORTS.get(operand.sort)
        return isinstance(kind, kinds) if kinds is not None else is_scalar(kind)
    if isinstance(value, Word | Flag | str):
        return operand.sort is Sort.ENUM
    return operand.sort in (Sort.SCALAR, Sort.ENUM) and isinstance(value, int | float)


def _attribute_place(key: str, value: Any, operands: Sequence[Operand], filled: dict[str, Any]) -> Operand | None:
    """The operand of that name, or the only free one that takes words where the value is one."""
    free = [o for o in operands if o.name not in filled and o.sort in (Sort.ENUM, Sort.SCALAR)]
    for operand in free:
        if operand.name == key:
            return operand
    takers = [o for o in free if o.sort is Sort.ENUM]
    return takers[0] if len(takers) == 1 and isinstance(value, Word | str) else None


def _literal(operand: Operand, value: Any, call: Call) -> Any:
    """A literal as the operand wants it: a word as a member of its enumeration or the number in it."""
    if not isinstance(value, Word | Flag | str):
        return value
    word = str(_text(value))
    if isinstance(operand.enum, type) and issubclass(operand.enum, IntEnum):
        members = {name.lower(): member for name, member in operand.enum.__members__.items()}
        parts = word.lower().split("_")
        for start in range(len(parts)):  # PIPE_MTE2, CAST_RINT: the member's name behind a prefix
            member = members.get("_".join(parts[start:]))
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


def _in_order(operands: Sequence[Operand], filled: dict[str, Any], left: list[Any], call: Call) -> tuple[Any, ...]:
    """The sources in the definition's order; what found no place fills the gaps, so that the rules can name it."""
    remaining = iter(left)
    sources: list[Any] = []
    for operand in operands:
        if operand.name in filled:
            sources.append(filled[operand.name])
        elif operand.optional:
            sources.append(operand.default)
        else:
            sources.append(next(remaining, _MISSING))
    sources += list(remaining)
    while sources and sources[-1] is _MISSING:
        sources.pop()
    while len(sources) <= len(operands) and sources and _is_default(operands[len(sources) - 1], sources[-1]):
        sources.pop()
    return tuple(None if s is _MISSING else s for s in sources)


_MISSING = object()


def _is_default(operand: Operand, source: Any) -> bool:
    return operand.optional and source is operand.default


def _operand_list(definition: Definition) -> str:
    return ", ".join(o.name for o in definition.inputs) or "none"
