"""The reference page of an instruction, made from its definition."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from ascsim import profiles
from ascsim.diagnostics import CATALOGUE
from ascsim.isa.definition import Asm, Definition, Operand, RegisterInstruction, Registry, Role, Sort
from ascsim.isa.streams import StreamInstruction
from ascsim.machine.words import Pipe, Space
from ascsim.profiles.costs import costs

LEVELS = {
    "tile": "Tile instructions",
    "memory": "Memory-form vector instructions and copies",
    "register": "Register-form vector instructions",
    "sync": "Flags and barriers",
    "system": "Queries and core state",
}
"""The levels, in the order in which they are listed, and their titles."""


def index(registry: Registry) -> list[dict[str, str]]:
    """One row an instruction: level, title, profiles, the first sentence of its documentation."""
    return [
        {
            "level": d.level,
            "title": d.title,
            "profiles": ", ".join(d.profiles),
            "summary": d.doc.split("\n\n")[0].replace("\n", " "),
        }
        for d in registry.definitions
    ]


def data(definition: Definition) -> dict[str, Any]:
    """The page as plain data."""
    return {
        "title": definition.title,
        "mnemonic": definition.name,
        "aliases": list(definition.aliases),
        "level": definition.level,
        "pipe": definition.pipe.name,
        "profiles": list(definition.profiles),
        "doc": definition.doc,
        "operands": [
            {"name": o.name, "role": o.role.value, "kind": _kind(o), "optional": o.optional, "doc": o.doc}
            for o in definition.operands
        ],
        "types": [{k: t.name for k, t in v.items()} for v in getattr(definition, "variants", ())],
        "rules": [
            {"code": r.code, "sentence": r.sentence, "refuses": r.refuses, "profiles": list(r.profiles)}
            for r in definition.rules
        ],
        "warns": list(definition.warns),
        "cycles": known_costs(definition),
        "notes": list(definition.notes),
        "assumed": list(definition.assumed),
        "sources": list(definition.sources),
        "forms": forms(definition),
    }


def _kind(operand: Operand) -> str:
    if operand.sort is Sort.POINTER:
        kind = f"{Space(operand.space).name} address"
    elif operand.sort is Sort.ENUM and operand.enum is not None:
        kind = operand.enum.__name__
    else:
        kind = operand.sort.value
    if operand.dtype is None:
        return kind
    return f"{kind} of {operand.dtype if isinstance(operand.dtype, str) else operand.dtype.name}"


def forms(definition: Definition) -> list[str]:
    """How it is written in each front end; what may be left out stands in brackets."""
    given = [_with_default(o) for o in definition.inputs]
    results = _results(definition)
    prefix = f"{', '.join(results)} = " if results else ""
    return [
        *(f"C++     {form}" for form in _cpp_forms(definition)),
        *(f".pto    {form}" for form in _asm_forms(definition)),
        f"Python  {prefix}ascsim.{definition.name}({', '.join(given)})",
    ]


def _results(definition: Definition) -> list[str]:
    """The names of what a call yields as values."""
    if isinstance(definition, RegisterInstruction | StreamInstruction):
        moved = [o for o in definition.operands if o.sort is Sort.POINTER] if definition.post_update else []
        return [o.name for o in (*definition.results, *moved)]
    return ["result"] if getattr(definition, "result", "void") != "void" else []


def _with_default(operand: Operand) -> str:
    if not operand.optional:
        return operand.name
    default = operand.default
    return f"{operand.name}={default.name if isinstance(default, Enum) else default}"


# C++


def _cpp_forms(definition: Definition) -> list[str]:
    by_name = {o.name: o for o in definition.operands}
    returned = getattr(definition, "returns", "") or "result" * (getattr(definition, "result", "void") != "void")
    prefix = f"{returned} = " if returned else ""
    templates = [t.split() for t in definition.cpp_templates]
    in_templates = {n for names in templates for n in names if by_name[n].sort is Sort.ENUM}
    order = [n for n in definition.cpp_order if n in by_name and n != returned and n not in in_templates]
    arguments = _bracketed([(n, by_name[n].optional) for n in order])
    if getattr(definition, "wait_events", False):
        arguments += "[, events...]"
    written = []
    for name in dict.fromkeys((definition.cpp, *definition.aliases)):
        if name:
            written.append(f"{prefix}{name}({arguments})")
            for names in templates:
                listed = ", ".join(n if n in in_templates else n.capitalize() for n in names)
                written.append(f"{prefix}{name}<{listed}>({arguments})")
    return written


def _bracketed(items: Sequence[tuple[str, bool]]) -> str:
    """``a, b[, c]``: the items with those in brackets that may be left out."""
    text = ""
    for item, optional in items:
        listed = f", {item}" if text else item
        text += f"[{listed}]" if optional else listed
    return text


# .pto


def _asm_forms(definition: Definition) -> list[str]:
    """One form for each order and choice of attributes; spellings that only leave attributes out are not repeated."""
    written: dict[str, None] = {}
    for spelling in definition.asm:
        chosen, sizes = set(spelling.attributes), _sizes(definition, spelling)
        alike = [
            set(s.attributes) for s in definition.asm
            if (s.name, s.order, _sizes(definition, s)) == (spelling.name, spelling.order, sizes)
        ]  # fmt: skip
        if not any(chosen < other for other in alike):
            smaller = [other for other in alike if other < chosen]
            optional = {a for a in chosen if any(a not in other for other in smaller)}
            written[_asm_form(definition, spelling, optional)] = None
    return list(written)


def _sizes(definition: Definition, spelling: Asm) -> tuple[int, ...]:
    """The element sizes that a spelling is for; none where it is for all that the instruction takes."""
    taken = {t["T"].size for t in getattr(definition, "variants", ()) if "T" in t}
    return () if taken == set(spelling.sizes) else spelling.sizes


def _asm_form(definition: Definition, spelling: Asm, optional: set[tuple[str, str]]) -> str:
    words = [(f'"{value}"', (key, value) in optional) for key, value in spelling.attributes if not key]
    attributes = [
        (f'{key} = "{value}"' if value else key, (key, value) in optional) for key, value in spelling.attributes if key
    ]
    name = f"pto.{spelling.name}"
    if definition.level == "tile":
        choices = [o for o in definition.inputs if o.sort is Sort.ENUM]
        attributes += [(f"{o.asm_name or o.name} = {_asm_word(o, 0)}", o.optional) for o in choices]
        ins = [o for o in definition.operands if o.role in (Role.IN, Role.SCRATCH) and o not in choices]
        outs = [o for o in definition.operands if o.role in (Role.OUT, Role.INOUT)]
        if spelling.order:
            outs += [o for o in ins if o.name not in spelling.order and not o.optional]
            by_name = {o.name: o for o in ins}
            ins = [replace(by_name[name], optional=False) for name in spelling.order]
        return f"{name} ins({_values(ins)}) outs({_values(outs)}){_dictionary(attributes)}"
    if (
        definition.level == "sync"
        and len(definition.inputs) > 1
        and all(o.sort is Sort.ENUM for o in definition.inputs)
    ):
        return f"{name}[{', '.join(_asm_word(o, n) for n, o in enumerate(definition.inputs))}]"
    operands = _asm_operands(definition, spelling)
    at = 1 + max((n for n, (text, _) in enumerate(operands) if text.endswith("]")), default=len(operands) - 1)
    listed = _bracketed([*operands[:at], *words, *operands[at:]])
    line = f"{name} {listed}".rstrip() + _dictionary(attributes)
    given = {o.name for o in definition.inputs}
    results = [f"%new_{name}" if name in given else f"%{name}" for name in _results(definition)]
    sizes = _sizes(definition, spelling)
    if sizes:
        line += f"  (elements of {' or '.join(map(str, sizes))} byte{'s' * (sizes != (1,))})"
    return f"{', '.join(results)} = {line}" if results else line


def _asm_operands(definition: Definition, spelling: Asm) -> list[tuple[str, bool]]:
    """The operands as they stand behind the name, and whether each may be left out."""
    by_name = {o.name: o for o in definition.inputs}
    has_offset = definition.level == "register" and "offset" in by_name
    order = spelling.order or [n for n in by_name if not (has_offset and n == "offset")]
    listed = []
    for number, name in enumerate(order):
        operand = by_name.get(name)
        if operand is None:
            listed.append(("%unused", False))
        elif operand.sort is Sort.ENUM:
            listed.append((_asm_word(operand, number), operand.optional))
        elif operand.sort is Sort.POINTER and has_offset:
            listed.append((f"%{name}[%offset]", operand.optional))
        else:
            listed.append((f"%{name}", operand.optional))
    return listed


def _values(operands: Sequence[Operand]) -> str:
    return _bracketed([(f"%{o.name}", o.optional) for o in operands])


def _dictionary(attributes: Sequence[tuple[str, bool]]) -> str:
    if not attributes:
        return ""
    inside = f"{{{_bracketed(sorted(attributes, key=lambda a: a[1]))}}}"
    return f" [{{{', '.join(text for text, _ in attributes)}}}]" if all(o for _, o in attributes) else f" {inside}"


def _asm_word(operand: Operand, number: int) -> str:
    """An example of a word for an enumeration: its default, or else its first member."""
    if operand.enum is Pipe:
        return f"<PIPE_{('MTE2', 'V')[number % 2]}>"
    if operand.enum is int or operand.enum is None:
        return "<EVENT_ID0>"
    if operand.enum is bool:
        return str(bool(operand.default)).lower()
    default, members = operand.default, getattr(operand.enum, "__members__", {})
    return f'"{default.name if isinstance(default, Enum) else next(iter(members))}"'


# The page


def page(definition: Definition) -> str:
    """The page as text."""
    lines = [
        f"{definition.title} ({definition.level} instruction, pipe {definition.pipe.name}, "
        f"{', '.join(definition.profiles)})",
        "",
        definition.doc,
        "",
        "Forms",
        *(f"  {form}" for form in forms(definition)),
    ]
    if definition.operands:
        lines += ["", "Operands"]
        width = max(len(o.name) for o in definition.operands)
        for operand in definition.operands:
            optional = ", optional" if operand.optional else ""
            doc = f"; {operand.doc}" if operand.doc else ""
            lines.append(f"  {operand.name:<{width}}  {operand.role.value}, {_kind(operand)}{optional}{doc}")
    types = _types(definition)
    if types:
        lines += ["", "Element types", f"  {types}"]
    refusals = [r for r in definition.rules if r.refuses]
    findings = [r for r in definition.rules if not r.refuses]
    for title, rules in (("Refused unless", refusals), ("Reported unless", findings)):
        if rules:
            lines += ["", title]
            for rule in rules:
                where = f" ({', '.join(rule.profiles)})" if rule.profiles else ""
                why = f" - {rule.why}" if rule.why else ""
                lines.append(f"  [{rule.code}] {rule.sentence}{where}{why}")
    if definition.warns:
        lines += ["", "Reported where the data or addresses are so"]
        lines += [f"  [{code}] {CATALOGUE.codes[code].title}" for code in definition.warns]
    cycles = known_costs(definition)
    if cycles:
        lines += ["", "Cycles", *(f"  {profile}: {text}" for profile, text in cycles.items())]
    for title, texts in (("Notes", definition.notes), ("Assumed", definition.assumed), ("Sources", definition.sources)):
        if texts:
            lines += ["", title, *(f"  {text}" for text in texts)]
    return "\n".join(_wrapped(line) for text in lines for line in text.split("\n"))


_UNITS = {
    "call": "", "work": " a repeat or block", "repeats": " for each 256 bytes", "bytes": " a byte", "bursts": " a burst",
    "results": " a result",
}  # fmt: skip


def known_costs(definition: Definition) -> dict[str, str]:
    """By chip what the instruction takes, where its cost table names it; what is made of steps takes what they do."""
    found = {}
    for name in definition.profiles:
        if not profiles.load(name).is_chip:
            continue
        entry = costs(name).entry([definition.name, definition.title], pipe=definition.pipe.name)
        if entry.names:
            parts = [f"{float(entry.fixed):.4g}"] if entry.fixed else []
            parts += [f"{float(each):.4g}{_UNITS[unit]}" for unit, each in entry.each.items()]
            found[name] = f"{' + '.join(parts)} ({entry.source})"
    return found


def _types(definition: Definition) -> str:
    variants = getattr(definition, "variants", ())
    if not variants or not variants[0]:
        return ""
    if len(variants[0]) == 1:
        (variable,) = variants[0]
        return f"{variable}: {', '.join(next(iter(v.values())).name for v in variants)}"
    return "; ".join(", ".join(f"{k}={t.name}" for k, t in v.items()) for v in variants)


def _wrapped(line: str) -> str:
    """The line in lines of at most 120 characters, what follows further in."""
    if len(line) <= 120:
        return line
    margin = len(line) - len(line.lstrip())
    return textwrap.fill(
        line, 120, subsequent_indent=" " * (margin + 2), break_long_words=False, break_on_hyphens=False
    )
