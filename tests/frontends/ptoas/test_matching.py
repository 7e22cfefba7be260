"""From an instruction's text to a definition and its arguments."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.ptoas.lowering import Call, lower
from ascsim.frontends.ptoas.matching import Match, match
from ascsim.frontends.ptoas.parser import parse_text
from ascsim.machine.dtypes import DTYPES
from ascsim.machine.words import Pipe, RoundMode
from recorder import Recorder

_spec = importlib.util.spec_from_file_location("instructions", Path(__file__).with_name("instructions.py"))
assert _spec is not None and _spec.loader is not None
isa = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(isa)

T = "!pto.tile<1x8xf32>"
ARGUMENTS = (
    f"%a: {T}, %b: {T}, %c: {T}, %d: {T}, %s: f32, %g: !pto.tensor_view<1x8xf32>, %v: !pto.vreg<64xf32>, "
    "%p: !pto.ptr<f32, ub>, %m: !pto.mask<b32>, %i: index"
)


class Token(str):
    """Stands for an operand's value: what is added to it is seen."""

    def __add__(self, other: Any) -> "Token":
        return Token(f"{self}+{other}")


def call_of(text: str) -> Call:
    calls: list[Call] = []

    class Seeing(Recorder):
        def bind(self, call: Call) -> Any:
            calls.append(call)
            return super().bind(call)

    lower(parse_text(f"func.func @k({ARGUMENTS}) {{\n{text}\n  return\n}}\n", "k.pto"), Seeing(lambda *_: None))
    return calls[-1]


def matched(text: str, profile: str = "a5") -> tuple[Match, tuple[Any, ...]]:
    call = call_of(text)
    found = match(call, isa.registry(), profile)
    values = tuple(Token(name) if name != "i" else 3 for name in call.operand_names)
    return found, found.reader()(values)


@pytest.mark.parametrize(
    ("text", "definition", "arguments"),
    [
        (f"pto.tadd ins(%a, %b : {T}, {T}) outs(%c : {T})", isa.ADD, ("c", "a", "b")),
        (f"pto.tadd %c, %a, %b : {T}, {T}, {T}", isa.ADD, ("c", "a", "b")),
        (f"pto.tsort ins(%a, %b : {T}, {T}) outs(%c : {T})", isa.SORT, ("c", "a", "b")),
        (f"pto.tsort ins(%a, %b, %d : {T}, {T}, {T}) outs(%c : {T})", isa.SORT, ("c", "a", "b", "d")),
        (f"pto.tscale ins(%a, %s : {T}, f32) outs(%c : {T})", isa.SCALE, ("c", "a", "s")),
        (f"pto.tscale ins(%s, %a : f32, {T}) outs(%c : {T})", isa.SCALE, ("c", "a", "s")),
        (f"pto.tscale ins(%a, 2.5 : {T}) outs(%c : {T})", isa.SCALE, ("c", "a", 2.5)),
        (f"pto.tscale ins(%a : {T}) outs(%c : {T}) {{scalar = 4}}", isa.SCALE, ("c", "a", 4)),
        (f"pto.tscale ins(%a, %s {{mode = #pto.round_mode<CAST_RINT>}} : {T}, f32) outs(%c : {T})", isa.SCALE,
         ("c", "a", "s", RoundMode.RINT)),
        (f'pto.tscale ins(%a, %s : {T}, f32) outs(%c : {T}) {{rmode = "FLOOR"}}', isa.SCALE,
         ("c", "a", "s", RoundMode.FLOOR)),
        (f"pto.tacc ins(%b : {T}) outs(%a : {T})", isa.ACCUMULATE, ("a", "b")),
        (f"pto.tload ins(%g : !pto.tensor_view<1x8xf32>) outs(%a : {T})", isa.LOAD, ("a", "g")),
        (f"pto.tstore %a, %g : ({T}, !pto.tensor_view<1x8xf32>) -> ()", isa.STORE, ("g", "a")),
        ("pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]", isa.FLAG, (Pipe.MTE2, Pipe.V, 3)),
        ('pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID3"]', isa.FLAG, (Pipe.MTE2, Pipe.V, 3)),
        ("pto.set_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, 3]", isa.FLAG, (Pipe.MTE2, Pipe.V, 3)),
        ("pto.set_flag[#pto.sync_op_type<TLOAD>, #pto.pipe_event_type<EVENT_COMPUTE_VEC>, <EVENT_ID3>]", isa.FLAG,
         (Pipe.MTE2, Pipe.V, 3)),
        ("pto.take[#pto.pipe_event_type<TSTORE_VEC>, 1]", isa.TAKE, (Pipe.MTE3, 1)),
        ('pto.take %i, "PIPE_V" : index', isa.TAKE, (Pipe.V, 3)),
        ("%b0 = pto.get_block_idx", isa.BLOCK, ()),
        ("%x, %y = pto.vweave %v, %v : !pto.vreg<64xf32>, !pto.vreg<64xf32> -> !pto.vreg<64xf32>, !pto.vreg<64xf32>",
         isa.WEAVE, ("v", "v")),
        ("%x = pto.vload %p[%i] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>", isa.NORMAL, ("p+3",)),
        ('%x = pto.vload %p[%i] {dist = "NORM"} : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>', isa.NORMAL, ("p+3",)),
        ('%x = pto.vload %p[2] {dist = "BRC"} : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>', isa.BROADCAST, ("p+2",)),
        ('%x = pto.vload %p[%i], "BRC" : !pto.ptr<f32, ub>, index -> !pto.vreg<64xf32>', isa.BROADCAST, ("p+3",)),
        ("pto.vstore %v, %p[%i], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>", isa.STORE_REGISTER,
         ("p+3", "v", "m")),
    ],
)  # fmt: skip
def test_the_text_finds_its_definition_and_operands(text: str, definition: Any, arguments: tuple[Any, ...]) -> None:
    found, got = matched(text)
    assert found.definition is definition
    assert got == arguments


def test_what_fits_no_operand_is_left_for_the_rules_to_refuse() -> None:
    _, got = matched(f"pto.tadd ins(%a, %s : {T}, f32) outs(%c : {T})")
    assert got == ("c", "a", "s")
    _, got = matched(f"pto.tadd ins(%a, %b, %d : {T}, {T}, {T}) outs(%c : {T})")
    assert got == ("c", "a", "b", "d")
    _, got = matched(f"pto.tadd ins(%a : {T}) outs(%c : {T})")
    assert got == ("c", "a")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pto.tad %a : i32", "pto.tad is not implemented; did you mean pto.tadd?"),
        ("pto.unheard %s : f32", "pto.unheard is not implemented; 'ascsim isa'"),
        (
            f"pto.tadd ins(%a, %b {{k = 1}} : {T}, {T}) outs(%c : {T})",
            "no attribute 'k'; its operands are dst, src0, src1",
        ),
        ("pto.set_flag[<PIPE_MTE9>, <PIPE_V>, <EVENT_ID0>]", "'PIPE_MTE9' is not a source; allowed are S, V"),
        ("pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT>]", "event is a number, as in EVENT_ID0, not 'EVENT'"),
        ('%x = pto.vload %p[0] {dist = "ODD"} : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>', "dist is one of NORM, BRC"),
    ],
)
def test_what_means_nothing_is_refused_with_what_is_allowed(text: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        matched(text.replace("%a : i32", f"%a : {T}"))
    assert words in str(caught.value)
    assert caught.value.site is not None and caught.value.site.line == 2


def test_an_instruction_with_choices_only_lists_them() -> None:
    with pytest.raises(UserError, match=r"pto.vload has no such form; dist is one of BRC; its word is one of BRC"):
        match(call_of('%x = pto.vload %p[0] {dist = "ODD"} : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>'),
              isa.registry(isa.BROADCAST), "a5")  # fmt: skip


def definition(name: str, *operands: Any, **record: Any) -> Any:
    return isa.register(name, operands, lambda *_: None, **record)


OUT, IN = isa.Out("dst", isa.Sort.VREG, "T"), isa.In("src", isa.Sort.VREG, "T")
BY_OPERAND = [
    definition("vfill", OUT, IN, isa.In("mask", isa.Sort.MREG)),
    definition("vfills", OUT, isa.Scalar("value", "T"), isa.In("mask", isa.Sort.MREG), asm=(isa.Asm("vfill"),)),
    definition("vfill1", OUT, IN, asm=(isa.Asm("vfill", (), ("src", "_")),)),
]


@pytest.mark.parametrize(
    ("operands", "number"), [("%v, %m : V, M", 0), ("%s, %m : f32, M", 1), ("%v, %v : V, V", 2), ("%p : P", 0)]
)
def test_the_operands_choose_among_definitions_of_one_name(operands: str, number: int) -> None:
    text = f"%x = pto.vfill {operands} -> V".replace("V", "!pto.vreg<64xf32>").replace("M", "!pto.mask<b32>")
    found = match(call_of(text.replace("P", "!pto.ptr<f32, ub>")), isa.registry(*BY_OPERAND), "a5")
    assert found.definition is BY_OPERAND[number]
    assert found.fits == ("P" not in operands)
    assert len(found.sources) == (1 if number == 2 or not found.fits else 2)


def test_a_spelling_may_have_its_own_order_and_element_sizes() -> None:
    order = ("src", "dst")
    store = (isa.Out("dst", isa.Sort.POINTER, "T"), IN, isa.Scalar("offset", "T", optional=True, default=0))
    wide = definition("wide", *store, asm=(isa.Asm("put", (("dist", "B32"),), order, (4,)),))
    narrow = definition("narrow", *store, asm=(isa.Asm("put", (("dist", "B32"),), order, (1, 2)),))
    text = 'pto.put %v, %p[%i] {dist = "B32"} : !pto.vreg<64xf32>, !pto.ptr<f32, ub>'
    found = match(call_of(text), isa.registry(narrow, wide), "a5")
    assert found.definition is wide
    assert found.reader()(("register", "pointer", 7)) == ("pointer", "register", 7)
    assert match(call_of(text.replace("%i", "4")), isa.registry(wide), "a5").reader()(("r", "p")) == ("p", "r", 4)
    with pytest.raises(UserError, match=r"pto.put has no such form; dist is one of B32"):
        match(call_of(text), isa.registry(narrow), "a5")


def test_an_attribute_may_select_by_being_there() -> None:
    plain = definition("a", OUT, IN, asm=(isa.Asm("x"),))
    marked = definition("b", OUT, IN, asm=(isa.Asm("x", (("post_update", ""),)),))
    registry = isa.registry(plain, marked)
    text = "%x = pto.x %v {post_update} : !pto.vreg<64xf32> -> !pto.vreg<64xf32>"
    assert match(call_of(text), registry, "a5").definition is marked
    assert match(call_of(text.replace(" {post_update}", "")), registry, "a5").definition is plain


def test_a_definition_of_the_profile_goes_first() -> None:
    there = isa.tile(isa.Add, "tadd", (isa.Out("dst"), isa.In("a"), isa.In("b")))
    there.profiles = ("a2a3",)
    here = isa.tile(isa.Add, "tadd", (isa.Out("dst"), isa.In("a"), isa.In("b")))
    here.profiles = ("a5",)
    call = call_of(f"pto.tadd ins(%a, %b : {T}, {T}) outs(%c : {T})")
    assert match(call, isa.registry(there, here), "a5").definition is here
    assert match(call, isa.registry(there, here), "a2a3").definition is there


def test_a_lane_mask_that_a_spelling_leaves_out_is_all_ones() -> None:
    mask = isa.In("mask", isa.Sort.MREG, lane_mask="T")
    spread = definition("vspread", OUT, IN, mask, asm=(isa.Asm("vspread"), isa.Asm("vspread", (), ("src",))))
    text = "%x = pto.vspread %v : !pto.vreg<64xf32> -> !pto.vreg<64xf32>"
    found = match(call_of(text), isa.registry(spread), "a5")
    assert found.fits
    source, lanes = found.reader()(("v",))
    assert source == "v"
    assert lanes.data.shape == (256,)
    assert lanes.data.all()
    given = match(call_of(text.replace("%v :", "%v, %m :").replace("32> ->", "32>, !pto.mask<b32> ->")),
                  isa.registry(spread), "a5")  # fmt: skip
    assert given.reader()(("v", "m")) == ("v", "m")
    strict = definition("vspread", OUT, IN, mask)
    assert not match(call_of(text), isa.registry(strict), "a5").fits


def test_the_types_choose_among_forms_of_one_size() -> None:
    down, back = isa.In("src", isa.Sort.VREG, "S"), isa.Out("dst", isa.Sort.VREG, "T")
    forms = [
        definition(name, back, down, asm=(isa.Asm("vturn"),), variants=({"T": DTYPES[to], "S": DTYPES["f32"]},))
        for name, to in (("to_f16", "f16"), ("to_bf16", "bf16"))
    ]
    text = "%x = pto.vturn %v : !pto.vreg<64xf32> -> !pto.vreg<128xT>"
    for form, to in zip(forms, ("f16", "bf16"), strict=True):
        assert match(call_of(text.replace("T", to)), isa.registry(*forms), "a5").definition is form
    with pytest.raises(
        UserError, match=r"pto.vturn of f32 to i16 is not implemented; it is for f32 to f16; f32 to bf16"
    ):
        match(call_of(text.replace("T", "i16")), isa.registry(*forms), "a5")


def test_an_attribute_may_have_another_name_than_the_operand_and_a_member_other_underscores() -> None:
    mode = isa.Choice("mode", isa.RoundMode, optional=True, asm_name="roundMode")
    pipe = isa.Choice("pipe", Pipe, optional=True)
    made = isa.tile(isa.Add, "tcast", (isa.Out("dst"), isa.In("src"), mode, pipe))
    text = f"pto.tcast ins(%a : {T}) outs(%c : {T}) {{roundMode = #pto<round_mode r_int>}}"
    assert match(call_of(text), isa.registry(made), "a5").reader()(("c", "a"))[-1] is RoundMode.RINT
    with pytest.raises(UserError, match="no attribute 'round'; its operands are dst, src, roundMode, pipe"):
        match(call_of(text.replace("roundMode", "round")), isa.registry(made), "a5")
