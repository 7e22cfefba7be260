"""The language of rules: what each kind of rule says, when it refuses, and what its broken calls look like."""

from types import SimpleNamespace

import pytest

from ascsim import profiles
from ascsim.diagnostics import CATALOGUE, Refused, Severity
from ascsim.isa import REGISTRY, rules
from ascsim.isa.definition import In, Out, Scalar, TileInstruction
from ascsim.machine.dtypes import f16, f32, i32
from ascsim.machine.operands import Tile
from ascsim.machine.words import Pipe, Space
from harness import Bench

A2A3 = profiles.load("a2a3")


def tile(kind=f32, **more):
    return Tile(kind, 4, 64, 4, 64, 0, **more)


def call(**operands):
    return SimpleNamespace(**operands)


def said(rule, a_call, profile=A2A3):
    return rule.test(REGISTRY.find("TADD")[0], a_call, profile)


@pytest.mark.parametrize(
    ("rule", "good", "words"),
    [
        (rules.dtype("src", a2a3=(f16, f32)), {"src": tile()}, "a2a3 takes f16, f32"),
        (rules.same_dtype("dst", "src"), {"dst": tile(), "src": tile()}, "has type"),
        (rules.row_major("src"), {"src": tile()}, "not row-major"),
        (rules.in_space(Space.UB, "src"), {"src": tile()}, "lies in L1, not in UB"),
        (rules.scalar_range("n", 1, 255), {"n": 7}, "it must be 1 to 255"),
        (rules.same_valid_shape("dst", "src"), {"dst": tile(), "src": tile()}, "valid region of src"),
    ],
)
def test_a_rule_accepts_the_good_call_and_says_what_is_wrong_with_each_broken_one(rule, good, words):
    assert said(rule, call(**good)) is None
    broken = list(rule.breaks(call(**good), A2A3))
    assert broken
    for wrong in broken:
        assert words in said(rule, wrong)


def test_an_absent_optional_operand_breaks_no_rule():
    for rule in (rules.dtype("tmp", a2a3=(f16,)), rules.row_major("tmp"), rules.in_space(Space.UB, "tmp")):
        assert said(rule, call(tmp=None)) is None


def test_a_rule_of_one_profile_says_nothing_on_another():
    rule = rules.dtype("src", a5=(f16,))
    assert said(rule, call(src=tile(i32))) is None
    assert said(rule, call(src=tile(i32)), profiles.load("a5"))


def test_a_finding_is_catalogued_and_the_run_goes_on():
    rule = rules.finding("TEST-1", "dst is wide", lambda d, c, p: "dst is narrow", why="It overruns.", mend="Widen it.")
    assert CATALOGUE.codes["TEST-1"].severity is Severity.ERROR
    definition = TileInstruction(
        "test_finding", operands=(Out("dst"),), pipe=Pipe.V, profiles=("a2a3",), doc="", rules=(rule,)
    )
    (found,) = definition.check(A2A3, (tile(),))
    assert (found.code, found.headline, found.mend) == ("TEST-1", "test_finding: dst is narrow", "Widen it.")


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ((), "L009", "was given 0 operands; it takes (dst, src, n?)"),
        ((tile(), 3), "L009", "operand src is a int; it must be a tile"),
        ((tile(), tile(), 1, 2), "L009", "was given 4 operands"),
        ((tile(), tile().at(-1)), "L010", "tile src has no address"),
    ],
)
def test_operands_are_judged_before_the_rules(args, code, words):
    definition = TileInstruction(
        "test_operands", operands=(Out("dst"), In("src"), Scalar("n", i32, optional=True, default=0)), pipe=Pipe.V,
        profiles=("a2a3",), doc="",
    )  # fmt: skip
    with pytest.raises(Refused) as refusal:
        definition.check(A2A3, args)
    assert refusal.value.diagnostic.code == code
    assert words in refusal.value.diagnostic.headline


def test_an_instruction_of_another_chip_names_the_products_that_have_it():
    with pytest.raises(Refused) as refusal:
        REGISTRY.find("asc_intlv")[0].check(A2A3, ())
    diagnostic = refusal.value.diagnostic
    assert diagnostic.code == "L001"
    assert "asc_intlv is not available on a2a3" in diagnostic.headline
    assert "Ascend 950PR / Ascend 950DT" in diagnostic.mend


def test_verdicts_do_not_depend_on_addresses():
    bench = Bench("a2a3")
    a, b = bench.tile("f32", 4, 64), bench.tile("f32", 4, 64)
    definition = bench.definition("TADD")
    definition.check(A2A3, (a, a, a))
    remembered = len(definition._verdicts)
    definition.check(A2A3, (b, b, b))
    assert len(definition._verdicts) == remembered
