"""Every register instruction refuses what each of its rules refuses, and exists on the 950 only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ascsim.diagnostics import Refused
from ascsim.isa.definition import Operand, RegisterInstruction, Sort
from ascsim.machine.dtypes import DTYPES
from ascsim.machine.operands import MReg, Pointer, Tile, VReg
from ascsim.machine.words import Space
from harness import Bench
from registers import register_instructions

INSTRUCTIONS = register_instructions()


def legal(definition: RegisterInstruction) -> SimpleNamespace:
    bound = definition.bind(**definition.variants[0])

    def value(operand: Operand) -> Any:
        kind = bound.dtype_of(operand) or DTYPES["u8"]
        match operand.sort:
            case Sort.VREG:
                return VReg(kind)
            case Sort.MREG:
                return MReg()
            case Sort.POINTER:
                return Pointer(Space.UB, 512, kind)
            case Sort.ENUM:
                return next(iter(operand.enum))  # type: ignore[call-overload]
        return 0

    return SimpleNamespace(**{o.name: value(o) for o in definition.inputs})


def issue(definition: RegisterInstruction, call: SimpleNamespace, profile: str = "a5") -> Any:
    bench = Bench(profile)
    bound = definition.bind(**definition.variants[0])
    return bench.machine.issue(bench.core, bound, tuple(vars(call).values()), 0)


@pytest.mark.parametrize("definition", INSTRUCTIONS, ids=lambda d: d.name)
def test_a_legal_call_runs(definition: RegisterInstruction) -> None:
    issue(definition, legal(definition))


@pytest.mark.parametrize("definition", INSTRUCTIONS, ids=lambda d: d.name)
def test_what_breaks_a_rule_is_refused_with_its_code(definition: RegisterInstruction) -> None:
    for rule in definition.rules:
        if rule.breaks is None:
            assert rule.registers, f"{rule.sentence}: nothing breaks it"
            continue
        broken = list(rule.breaks(legal(definition), Bench("a5").profile))
        assert broken
        for call in broken:
            with pytest.raises(Refused) as refusal:
                issue(definition, call)
            assert refusal.value.diagnostic.code == rule.code
            assert definition.title in refusal.value.diagnostic.headline


@pytest.mark.parametrize("definition", INSTRUCTIONS, ids=lambda d: d.name)
@pytest.mark.parametrize("profile", ("a2a3", "cpu"))
def test_no_other_profile_has_it(definition: RegisterInstruction, profile: str) -> None:
    with pytest.raises(Refused) as refusal:
        issue(definition, legal(definition), profile)
    assert refusal.value.diagnostic.code == "L001"


@pytest.mark.parametrize("definition", INSTRUCTIONS, ids=lambda d: d.name)
def test_operands_of_another_kind_or_number_are_refused(definition: RegisterInstruction) -> None:
    call = legal(definition)
    required = [o for o in definition.inputs if not o.optional]
    if not required:
        return
    attempts = [{k: v for k, v in vars(call).items() if k != required[-1].name and k != "offset"}]
    attempts += [
        {**vars(call), o.name: Tile(DTYPES["f32"], 8, 8, 8, 8, 0)}
        for o in required
        if o.sort in (Sort.VREG, Sort.MREG, Sort.POINTER)
    ]
    for attempt in attempts:
        with pytest.raises(Refused) as refusal:
            issue(definition, SimpleNamespace(**attempt))
        assert refusal.value.diagnostic.code == "L009"


@pytest.mark.parametrize("definition", INSTRUCTIONS, ids=lambda d: d.name)
def test_a_type_that_it_does_not_take_is_refused_with_those_it_takes(definition: RegisterInstruction) -> None:
    if not definition.variants[0]:
        return
    taken = definition.variants
    other = next(d for d in DTYPES.values() if not any(d in v.values() for v in taken))
    with pytest.raises(Refused) as refusal:
        definition.bind(**dict.fromkeys(taken[0], other))
    assert refusal.value.diagnostic.code == "L002"
    assert all(t.name in refusal.value.diagnostic.mend for v in taken for t in v.values())


def test_verdicts_do_not_pile_up_with_scalars() -> None:
    bench = Bench("a5")
    definition = bench.definition("asc_update_mask_b8")
    bench.issue("asc_update_mask_b8", 0)
    before = len(definition._verdicts)
    for value in range(50):
        bench.issue("asc_update_mask_b8", value)
    assert len(definition._verdicts) == before
