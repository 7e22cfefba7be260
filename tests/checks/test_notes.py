"""Findings that rules made as the instruction was issued."""

from __future__ import annotations

import pytest

from ascsim import profiles
from ascsim.checks import run
from ascsim.diagnostics import Severity, Site
from ascsim.machine.trace import Kind, pack_row
from checks.builder import Builder, V


def finding(builder: Builder, row: int, **more: object) -> None:
    """Note a finding as the machine does."""
    note = {
        "row": row, "site": 1, "code": "TSORT32-1", "severity": "error",
        "headline": "TSORT32: dst has 64 columns, needs 128", "notes": ["each value becomes a pair", ""],
        "mend": "Give dst 128 columns.",
    }  # fmt: skip
    builder.note("finding", **(note | more))


def test_a_finding_has_the_instruction_s_name_and_site() -> None:
    builder = Builder()
    finding(builder, builder.op(V, "TSORT32", line=12))
    (found,) = builder.run()
    assert (found.code, found.severity, found.count) == ("TSORT32-1", Severity.ERROR, 1)
    assert found.headline == "TSORT32: dst has 64 columns, needs 128"
    assert [(place.what, str(place.site)) for place in found.places] == [("TSORT32", "kernel.cpp:12")]
    assert found.notes == ("each value becomes a pair",)
    assert found.mend == "Give dst 128 columns."


def test_a_loop_is_one_finding() -> None:
    builder = Builder()
    for _ in range(10):
        finding(builder, builder.op(V, "TSORT32", line=12), severity="warning")
    finding(builder, builder.op(V, "TSORT32", line=13))
    assert [(d.severity, d.count) for d in builder.run()] == [(Severity.WARNING, 10), (Severity.ERROR, 1)]


def test_a_step_speaks_of_its_instruction() -> None:
    builder = Builder()
    root = builder.op(V, "TSORT32", line=12)
    finding(builder, builder.op(V, "vbitsort", line=12, parent=root))
    (found,) = builder.run()
    assert found.places[0].what == "TSORT32"


def test_a_finding_without_a_row() -> None:
    builder = Builder()
    finding(builder, -1)
    finding(builder, 99)
    (found,) = builder.run()
    assert (found.places, found.count) == ((), 2)


def test_a_finding_of_the_host_program_has_its_lines() -> None:
    builder = Builder()
    builder.op(V, "add", line=3)
    places = [{"what": "allocated here", "site": 1000}, {"what": "lost", "site": 7}]
    for site in (2000, 2000, 3000):
        finding(builder, -1, site=site, places=places)
    lines = {1000: 10, 2000: 20, 3000: 30}
    found = run(builder.trace(), profiles.find("a3"), lambda n, _: Site("main.cpp", lines[n]) if n in lines else None)
    shown = [(d.count, [(place.what, str(place.site)) for place in d.places]) for d in found]
    allocated = ("allocated here", "main.cpp:10")
    assert shown == [(2, [("called here", "main.cpp:20"), allocated]), (1, [("called here", "main.cpp:30"), allocated])]


@pytest.mark.parametrize(("dialect", "name"), [("pto", "TADD"), ("ptoas", "pto.tadd")])
def test_a_rule_s_finding_names_the_instruction_as_the_kernel_does(dialect: str, name: str) -> None:
    builder = Builder()
    builder.note("dialect", name=dialect)
    builder.note("mnemonic", id=1, name="tadd", title="TADD", asm="pto.tadd")
    row = builder.sink.append(pack_row(0, V, Kind.INSTRUCTION, 1, 0, 0, -1, 0, 0, 1, 0, 0, 0), b"")
    builder.note(
        "finding", row=row, code="L003", severity="error", headline="TADD: operand b is f16", notes=[], mend=""
    )
    (found,) = builder.run()
    assert found.headline == f"{name}: operand b is f16"
