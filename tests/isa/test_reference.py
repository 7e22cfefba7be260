"""Reference pages: everything a definition says is on its page, and the .pto forms shown are forms that are read."""

import re

import pytest

from ascsim.diagnostics import CATALOGUE
from ascsim.frontends.ptoas.kernel import loads
from ascsim.frontends.ptoas.lowering import Call, lower
from ascsim.frontends.ptoas.matching import match
from ascsim.frontends.ptoas.types import LOCATIONS
from ascsim.isa import REGISTRY, reference
from ascsim.isa.definition import Definition, RegisterInstruction, Sort
from ascsim.isa.rules import finding
from recorder import Recorder

DEFINITIONS = REGISTRY.definitions
ids = [f"{d.name}-{d.number}" for d in DEFINITIONS]


def test_the_index_has_every_definition_once():
    rows = reference.index(REGISTRY)
    assert len(rows) == len(DEFINITIONS)
    assert [r["title"] for r in rows] == [d.title for d in DEFINITIONS]
    assert all(r["summary"] and r["profiles"] for r in rows)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=ids)
def test_a_page_has_every_form_operand_and_rule(definition: Definition) -> None:
    page = reference.page(definition)
    assert max(map(len, page.splitlines())) <= 120
    text = " ".join(page.split())
    for name in (definition.cpp, *definition.aliases):
        assert re.search(rf"C\+\+ (\w+ = )?{name}[(<]", text) if name else True
    for spelling in definition.asm:
        assert re.search(rf"\.pto .*pto\.{re.escape(spelling.name)}\b", page)
    assert f"ascsim.{definition.name}(" in page
    for operand in definition.operands:
        assert re.search(rf"^  {operand.name} +{operand.role.value}, ", page, re.M)
        assert " ".join(operand.doc.split()) in text
    for rule in definition.rules:
        assert f"[{rule.code}] {rule.sentence}" in text
    for code in definition.warns:
        assert f"[{code}] {CATALOGUE.codes[code].title}" in text
    for line in (*definition.notes, *definition.assumed, *definition.sources):
        assert " ".join(line.split()) in text
    data = reference.data(definition)
    assert [o["name"] for o in data["operands"]] == [o.name for o in definition.operands]
    assert data["warns"] == list(definition.warns)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("TSORT32", "C++     TSORT32(dst, src, idx[, tmp])"),
        ("TSORT32", ".pto    pto.tsort32 ins(%src, %idx[, %tmp]) outs(%dst)"),
        ("TSTORE", "C++     TSTORE<phase>(dst, src[, events...])"),
        ("TCVT", '.pto    pto.tcvt ins(%src[, %tmp]) outs(%dst) [{rmode = "RINT", sat_mode = "ON"}]'),
        ("asc_intlv", ".pto    %dst0, %dst1 = pto.vintlv %src0, %src1"),
        ("asc_loadalign", '.pto    %dst = pto.vlds %src[%offset] [{dist = "NORM"}]'),
        ("asc_storealign", ".pto    pto.vsts %src, %dst[%offset]"),
        ("set_flag", ".pto    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]"),
        ("get_block_idx", ".pto    %result = pto.get_block_idx"),
        ("asc_create_mask_b32", "C++     mask = asc_create_mask_b32(pattern)"),
        ("asc_update_mask_b32", "Python  mask, value = ascsim.plt_b32(value)"),
    ],
)
def test_forms_are_real_spellings(name: str, form: str) -> None:
    assert form in [f for d in REGISTRY.find(name) for f in reference.forms(d)]


def _asm_forms() -> list[tuple[Definition, str]]:
    return [
        (d, form.removeprefix(".pto").strip())
        for d in DEFINITIONS
        for form in reference.forms(d)
        if form.startswith(".pto")
    ]


def _text_of(definition: Definition, form: str) -> str:
    """A function with the form in it: everything in it that may be left out, and the types that it needs."""
    form, _, sizes = form.partition("  (elements of ")
    form = re.sub(r" \[(\{.*\})\]$", r" \1", re.sub(r"\[, ([^\]]*)\]", r", \1", form)).replace("([%acc]", "(%acc")
    variants = getattr(definition, "variants", ({},)) or ({},)
    size = int(sizes[0]) if sizes else 0
    types = next(v for v in variants if not size or v["T"].size == size)

    def type_of(name: str) -> str:
        operand = next((o for o in definition.operands if o.name == name.removeprefix("new_")), None)
        kind = types.get(operand.dtype, operand.dtype) if operand else None
        element = kind.asm_names[0] if hasattr(kind, "asm_names") else "f32"
        sort = operand.sort if operand else Sort.MREG
        if sort is Sort.TILE:
            places = {space: name for name, space in LOCATIONS.items()}
            where = places[operand.lies_in[0]] if operand and operand.lies_in else "vec"
            return f"!pto.tile_buf<{where}, 16x64xf32>"
        if sort is Sort.COUNTS:
            return "vector<4xi16>"
        if sort is Sort.GLOBAL:
            return "!pto.partition_tensor_view<16x64xf32>"
        if sort is Sort.VREG:
            return f"!pto.vreg<{256 // kind.size if hasattr(kind, 'size') else 64}x{element}>"
        if sort is Sort.UREG:
            return "!pto.align"
        if sort is Sort.POINTER:
            return f"!pto.ptr<{element}, ub>"
        return "!pto.mask" if sort is Sort.MREG else ("index" if name == "offset" else element)

    head, equals, body = form.rpartition(" = pto.")
    names = re.findall(r"%(\w+)", body or form)
    arguments = ", ".join(f"%{n}: {type_of(n)}" for n in dict.fromkeys(names))
    results = [type_of(n) for n in re.findall(r"%(\w+)", head)]
    if form.startswith("pto.") and " ins(" in form:

        def stated(m: re.Match[str]) -> str:
            kinds = ", ".join(type_of(n) for n in re.findall(r"%(\w+)", m[2]))
            return f"{m[1]}({m[2]} : {kinds})"

        form = re.sub(r"(ins|outs)\(([^)]*)\)", stated, form)
    elif equals and definition.level != "register":
        form += " : i64" if "%result" not in form else ""
    elif names or results:
        listed = ", ".join(type_of(n) for n in names if n != "offset")
        form += f" : {listed}" if listed else ""
        if results:
            form += f" -> {', '.join(results)}" if listed else f" : {', '.join(results)}"
    return f"func.func @k({arguments}) {{\n  {form}\n  return\n}}\n"


@pytest.mark.parametrize(("definition", "form"), _asm_forms(), ids=lambda v: v if isinstance(v, str) else v.name)
def test_the_front_end_reads_the_form_as_this_instruction(definition: Definition, form: str) -> None:
    calls: list[Call] = []

    class Seeing(Recorder):
        def bind(self, call: Call) -> object:
            calls.append(call)
            return super().bind(call)

    text = _text_of(definition, form)
    lower(loads(text, "k.pto").module, Seeing(lambda *_: None))
    found = match(calls[-1], REGISTRY, definition.profiles[0])
    assert found.fits, text
    same = found.definition is definition
    assert same or (found.definition.name == definition.name and not isinstance(definition, RegisterInstruction)), text


def test_two_instructions_may_state_one_rule_under_two_codes() -> None:
    codes = dict(CATALOGUE.codes)
    try:
        for code in ("TEST-1", "TEST-2"):
            finding(code, "src is there", lambda definition, call, profile: None, why="Because.", mend="Give it.")
        entries = [CATALOGUE.codes[code] for code in ("TEST-1", "TEST-2")]
        assert [e.title for e in entries] == ["Broken rule: src is there"] * 2
    finally:
        CATALOGUE.codes.clear()
        CATALOGUE.codes.update(codes)
    assert not [e.title for e in CATALOGUE.codes.values() if e.title.endswith(f"({e.code})")]


def test_a_page_tells_known_cycles() -> None:
    (sort,) = (d for d in REGISTRY.find("asc_bitsort") if d.name == "vbitsort")
    page = reference.page(sort)
    assert "a2a3: 20 + 16 a repeat or block" in page
    assert reference.data(sort)["cycles"].keys() == {"a2a3", "a5"}
    (barrier,) = REGISTRY.find("pipe_barrier")
    assert "Cycles" not in reference.page(barrier)
