"""Every instruction of the registry: a legal call runs, and whatever breaks one of its rules is refused or reported."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

from ascsim import profiles
from ascsim.diagnostics import CATALOGUE, Refused
from ascsim.isa import REGISTRY
from ascsim.isa.addresses import AddressInstruction
from ascsim.isa.definition import Definition, RegisterInstruction, Role, Sort
from ascsim.isa.rules import STANDING, Rule
from ascsim.machine.baton import Halted
from ascsim.machine.operands import NO_ADDRESS
from ascsim.machine.words import Space
from ascsim.profiles import Profile
from harness import Bench
from isa.examples import arguments, example, issuable

OF_PROFILES = [
    pytest.param(d, name, id=f"{d.title}-{d.number}-{name}") for d in REGISTRY.definitions for name in d.profiles
]


def broken_calls(rule: Rule, call: SimpleNamespace, profile: Profile) -> list[SimpleNamespace]:
    return list(rule.breaks(call, profile)) if rule.breaks is not None else []


def rules_of(definition: Definition, profile: Profile) -> list[Rule]:
    return [r for r in (*STANDING, *definition.rules) if not r.profiles or profile.name in r.profiles]


def memories(bench: Bench) -> dict[Space, np.ndarray]:
    return {space: bench.memory(space).copy() for space in (Space.GM, Space.UB)}


def issue(bench: Bench, definition: Definition, call: SimpleNamespace) -> None:
    bench.machine.issue(bench.core, issuable(definition), arguments(definition, call), 0)


@pytest.mark.parametrize(("definition", "profile_name"), OF_PROFILES)
def test_a_legal_call_runs_without_a_finding_and_leaves_its_row(definition: Definition, profile_name: str) -> None:
    bench = Bench(profile_name)
    if isinstance(definition, AddressInstruction):  # Python has no loops to count
        with pytest.raises(Refused, match="not there for kernels in Python"):
            issue(bench, definition, example(definition, profile_name))
        return
    with contextlib.suppress(Halted):  # a wait of the only core there is
        issue(bench, definition, example(definition, profile_name))
    assert bench.findings() == list(definition.warns if isinstance(definition, RegisterInstruction) else ())
    top = [row for row in bench.trace().rows if row["parent"] < 0]
    assert [row["mnemonic"] for row in top] == [definition.number]


@pytest.mark.parametrize(("definition", "profile_name"), OF_PROFILES)
def test_what_breaks_a_rule_is_refused_and_changes_nothing_or_is_reported(
    definition: Definition, profile_name: str
) -> None:
    bench = Bench(profile_name)
    for space in (Space.GM, Space.UB):
        data = bench.memory(space)
        data[:] = np.random.default_rng(5).integers(0, 256, data.size, np.uint8)
    before = memories(bench)
    call = example(definition, profile_name)
    for rule in rules_of(definition, bench.profile):
        for broken in broken_calls(rule, call, bench.profile):
            free = [o.name for o in definition.operands if o.binds or (o.used_on and profile_name not in o.used_on)]
            if any(getattr(getattr(broken, name), "address", 0) == NO_ADDRESS for name in free):
                continue  # that is how it usually is
            if rule.refuses:
                with pytest.raises(Refused) as refusal:
                    issue(bench, definition, broken)
                said = refusal.value.diagnostic
                assert said.code == rule.code, said.headline
                assert said.headline.startswith(definition.title)
            else:
                found = issuable(definition).check(bench.profile, arguments(definition, broken))
                assert (rule.code, rule.severity) in [(f.code, f.severity) for f in found], rule.sentence
    assert bench.trace().rows.size == 0
    after = memories(bench)
    assert all(np.array_equal(before[space], after[space]) for space in before)


@pytest.mark.parametrize("definition", REGISTRY.definitions, ids=lambda d: f"{d.title}-{d.number}")
def test_each_rule_can_be_broken_somewhere(definition: Definition) -> None:
    for rule in definition.rules:
        if rule.registers:
            continue
        cases = [
            case
            for name in definition.profiles
            if not rule.profiles or name in rule.profiles
            for case in broken_calls(rule, example(definition, name), profiles.load(name))
        ]
        assert cases, f"nothing breaks [{rule.code}] {rule.sentence}"


@pytest.mark.parametrize("definition", REGISTRY.definitions, ids=lambda d: f"{d.title}-{d.number}")
def test_other_profiles_refuse_it_and_say_where_it_is(definition: Definition) -> None:
    call = example(definition, definition.profiles[0])
    for profile in profiles.profiles():
        if profile.name in definition.profiles:
            continue
        bench = Bench(profile.name)
        with pytest.raises(Refused) as refusal:
            issue(bench, definition, call)
        said = refusal.value.diagnostic
        assert said.code == "L001"
        assert all(name in said.mend for name in definition.profiles)


@pytest.mark.parametrize("definition", REGISTRY.definitions, ids=lambda d: f"{d.title}-{d.number}")
def test_too_few_and_too_many_operands_are_refused(definition: Definition) -> None:
    name = definition.profiles[0]
    profile, given = profiles.load(name), arguments(definition, example(definition, name))
    needed = sum(not o.optional for o in definition.inputs)
    for wrong in (given[: needed - 1], (*given, 0)):
        if len(wrong) == needed:
            continue
        with pytest.raises(Refused) as refusal:
            issuable(definition).check(profile, wrong)
        assert refusal.value.diagnostic.code == "L009"


@pytest.mark.parametrize("definition", REGISTRY.definitions, ids=lambda d: f"{d.title}-{d.number}")
def test_an_operand_of_another_kind_is_refused(definition: Definition) -> None:
    name = definition.profiles[0]
    call = example(definition, name)
    for operand in definition.inputs:
        if operand.sort in (Sort.SCALAR, Sort.ENUM) or operand.optional:
            continue
        broken = SimpleNamespace(**{**vars(call), operand.name: "nothing of the kind"})
        with pytest.raises(Refused) as refusal:
            issuable(definition).check(profiles.load(name), arguments(definition, broken))
        assert refusal.value.diagnostic.code == "L009"
        assert operand.name in refusal.value.diagnostic.headline


@pytest.mark.parametrize("definition", REGISTRY.definitions, ids=lambda d: f"{d.title}-{d.number}")
def test_its_record_is_complete(definition: Definition) -> None:
    first = definition.doc.split("\n\n")[0]
    assert first.endswith((".", ":"))
    assert definition.sources
    assert set(definition.cpp_order) <= {o.name for o in definition.operands}
    for operand in definition.operands:
        if operand.role is Role.SCRATCH or operand.optional:
            assert operand.doc, operand.name
    for rule in definition.rules:
        assert rule.sentence
        assert rule.code in CATALOGUE.codes
        assert rule.refuses or (rule.why and rule.mend), rule.sentence
