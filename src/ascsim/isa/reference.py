"""The reference page of an instruction, made from its definition."""

from __future__ import annotations

from typing import Any

from ascsim.isa.definition import Definition, Operand, Registry, Role, Sort
from ascsim.machine.words import Space


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
    """How it is written in each front end."""
    written = []
    names = [o.name for o in definition.inputs]
    by_name = {o.name: o for o in definition.operands}
    if definition.cpp:
        order = [n + ("?" if by_name[n].optional else "") for n in definition.cpp_order if n in by_name]
        written += [f"C++     {name}({', '.join(order)})" for name in (definition.cpp, *definition.aliases)]
    outs = [o.name for o in definition.operands if o.role is Role.OUT]
    ins = [o.name for o in definition.operands if o.role is not Role.OUT]
    for spelling in definition.asm:
        attributes = "".join(f" {key}={value}" for key, value in spelling.attributes)
        if definition.level == "tile":
            written.append(f".pto    pto.{spelling.name} ins({_percent(ins)}) outs({_percent(outs)}){attributes}")
        elif definition.level == "register" and outs:
            written.append(f".pto    {_percent(outs)} = pto.{spelling.name} {_percent(ins)}{attributes}")
        else:
            written.append(f".pto    pto.{spelling.name} {_percent(names)}{attributes}")
    results = [o.name for o in definition.operands if not o.is_input]
    prefix = f"{', '.join(results)} = " if results else ""
    written.append(f"Python  {prefix}ascsim.{definition.name}({', '.join(names)})")
    return written


def _percent(names: list[str]) -> str:
    return ", ".join(f"%{n}" for n in names)


def page(definition: Definition) -> str:
    """The page as text."""
    lines = [
        f"{definition.title} ({definition.level} instruction, pipe {definition.pipe.name}, {', '.join(definition.profiles)})",
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
    variants = getattr(definition, "variants", ())
    if variants and variants[0]:
        if len(variants[0]) == 1:
            said = ", ".join(next(iter(v.values())).name for v in variants)
        else:
            said = "; ".join(", ".join(f"{k}={t.name}" for k, t in v.items()) for v in variants)
        lines += ["", "Element types", f"  {said}"]
    refusals = [r for r in definition.rules if r.refuses]
    findings = [r for r in definition.rules if not r.refuses]
    for title, rules in (("Refused unless", refusals), ("Reported", findings)):
        if rules:
            lines += ["", title]
            for rule in rules:
                where = f" ({', '.join(rule.profiles)})" if rule.profiles else ""
                why = f" - {rule.why}" if rule.why else ""
                lines.append(f"  [{rule.code}] {rule.sentence}{where}{why}")
    for title, texts in (("Notes", definition.notes), ("Assumed", definition.assumed), ("Sources", definition.sources)):
        if texts:
            lines += ["", title, *(f"  {text}" for text in texts)]
    return "\n".join(lines)
