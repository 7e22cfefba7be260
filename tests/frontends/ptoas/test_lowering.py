"""Lowering: control flow over slots, instructions handed to a handler."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import UserError
from ascsim.frontends.ptoas.lowering import (
    MAX_DEPTH,
    Bound,
    Call,
    Parameter,
    Program,
    Ref,
    entry_function,
    lower,
    not_implemented,
    parameters_of,
)
from ascsim.frontends.ptoas.parser import parse_text
from recorder import Recorder


def program(body: str, arguments: str = "", results: str = "", returned: str = "") -> Program:
    arrow = f" -> ({results})" if results else ""
    text = f"func.func @k({arguments}){arrow} {{\n{body}\n  return {returned}\n}}\n"
    return lower(parse_text(text, "k.pto"), Recorder(lambda call, values, site: None))


def run(body: str, arguments: str, results: str, returned: str, *values: Any) -> tuple[Any, ...]:
    return program(body, arguments, results, f"{returned} : {results}").run(*values)


CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in range(5))


# Loops and branches


@given(low=st.integers(-20, 20), high=st.integers(-20, 20), step=st.integers(1, 7))
@settings(deadline=None)
def test_a_for_loop_carries_values(low: int, high: int, step: int) -> None:
    body = """
  %r:2 = scf.for %i = %low to %high step %step iter_args(%sum = %low, %last = %high) -> (index, index) {
    %next = arith.addi %sum, %i : index
    scf.yield %next, %i : index, index
  }"""
    got = run(body, "%low: index, %high: index, %step: index", "index, index", "%r#0, %r#1", low, high, step)
    counted = list(range(low, high, step))
    assert got == (low + sum(counted), counted[-1] if counted else high)


def test_carried_values_may_swap() -> None:
    body = f"""{CONSTANTS}
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %c1, %b = %c2) -> (index, index) {{
    scf.yield %b, %a : index, index
  }}"""
    assert run(body, "", "index, index", "%r#0, %r#1") == (2, 1)


def test_a_step_below_one_is_the_users_error() -> None:
    body = f"{CONSTANTS}\nscf.for %i = %c0 to %c3 step %s {{\n}}"
    with pytest.raises(UserError, match=r"k.pto:7:1: scf.for steps by 0; a step is at least 1"):
        program(body, "%s: index").run(0)


@pytest.mark.parametrize(("flag", "want"), [(1, 10), (0, 20)])
def test_an_if_yields(flag: int, want: int) -> None:
    body = """
  %r = scf.if %c -> (i32) {
    %a = arith.constant 10 : i32
    scf.yield %a : i32
  } else {
    %b = arith.constant 20 : i32
    scf.yield %b : i32
  }"""
    assert run(body, "%c: i1", "i32", "%r", flag) == (want,)


@pytest.mark.parametrize("flag", [0, 1])
def test_an_if_without_else(flag: int) -> None:
    seen: list[str] = []
    text = "func.func @k(%c: i1) {\n  scf.if %c {\n    pto.inside\n  }\n  pto.behind\n  return\n}\n"
    lower(parse_text(text), Recorder(lambda call, values, site: seen.append(call.name))).run(flag)
    assert seen == ["inside"] * flag + ["behind"]


@given(st.integers(0, 1 << 20))
@settings(deadline=None)
def test_a_while_loop(n: int) -> None:
    body = f"""{CONSTANTS}
  %r:2 = scf.while (%x = %n, %count = %c0) : (index, index) -> (index, index) {{
    %more = arith.cmpi sgt, %x, %c1 : index
    scf.condition(%more) %x, %count : index, index
  }} do {{
  ^bb0(%y: index, %k: index):
    %half = arith.divui %y, %c2 : index
    %next = arith.addi %k, %c1 : index
    scf.yield %half, %next : index, index
  }}"""
    assert run(body, "%n: index", "index, index", "%r#0, %r#1", n) == (min(n, 1), max(n.bit_length() - 1, 0))


@pytest.mark.parametrize(("case", "want"), [(2, 20), (5, 50), (9, 0)])
def test_a_switch(case: int, want: int) -> None:
    body = """
  %a = arith.constant 20 : i32
  %b = arith.constant 50 : i32
  %z = arith.constant 0 : i32
  %r = scf.index_switch %x -> i32
  case 2 {
    scf.yield %a : i32
  }
  case 5 {
    scf.yield %b : i32
  }
  default {
    scf.yield %z : i32
  }"""
    assert run(body, "%x: index", "i32", "%r", case) == (want,)


def test_a_region_yields() -> None:
    body = "%r = scf.execute_region -> i32 {\n  %a = arith.constant 7 : i32\n  scf.yield %a : i32\n}"
    assert run(body, "", "i32", "%r") == (7,)


@given(a=st.integers(0, 200), b=st.integers(0, 200))
@settings(deadline=None)
def test_blocks_and_branches(a: int, b: int) -> None:
    import math

    text = """
func.func @gcd(%a: i32, %b: i32) -> i32 {
  %zero = arith.constant 0 : i32
  cf.br ^test(%a, %b : i32, i32)
^test(%x: i32, %y: i32):
  %done = arith.cmpi eq, %y, %zero : i32
  cf.cond_br %done, ^end(%x : i32), ^step(%y, %x : i32, i32)
^step(%p: i32, %q: i32):
  %r = arith.remsi %q, %p : i32
  cf.br ^test(%p, %r : i32, i32)
^end(%found: i32):
  return %found : i32
}
"""
    assert lower(parse_text(text), Recorder(lambda *_: None)).run(a, b) == (math.gcd(a, b),)


def test_an_assertion() -> None:
    body = 'cf.assert %c, "rows are even"'
    program(body, "%c: i1").run(1)
    with pytest.raises(UserError, match=r"k.pto:2:1: cf.assert failed: rows are even"):
        program(body, "%c: i1").run(0)


# Scalars


def test_scalars_flow_through_slots() -> None:
    body = """
  %k = arith.constant -3 : i8
  %w = arith.extsi %k : i8 to i32
  %u = arith.extui %k : i8 to i32
  %less = arith.cmpi slt, %w, %u : i32
  %pick = arith.select %less, %x, %w : i32
  %sum = arith.addi %pick, %u : i32
  %f = arith.sitofp %sum : i32 to f32
  %h = arith.constant 0.5 : f32
  %g = arith.mulf %f, %h : f32
  %neg = arith.negf %g : f32
  %back = arith.fptosi %neg : f32 to i64
  %true = arith.constant true"""
    assert run(body, "%x: i32", "i64, i1", "%back, %true", 7) == (-130, 1)


def test_a_constant_is_held_in_its_type() -> None:
    body = "%a = arith.constant 255 : i8\n%b = arith.constant 0.1 : f16\n%c = arith.constant 0x7FC00000 : f32"
    a, b, c = run(body, "", "i8, f16, f32", "%a, %b, %c")
    assert a == -1 and b == 0.0999755859375 and c != c


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("%q = arith.divsi %x, %z : i32", "arith.divsi divides by zero"),
        ("%q = arith.shli %x, %x : i32", "arith.shli shifts a value of 32 bits by 40"),
        ("%q = arith.trunci %x : i32 to i8\n%n = arith.constant -1.0 : f32\n%r = arith.fptoui %n : f32 to i8",
         "arith.fptoui converts -1.0"),
    ],
)  # fmt: skip
def test_an_undefined_result_is_told_at_its_place(body: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        program(body, "%x: i32, %z: i32").run(40, 0)
    assert caught.value.site is not None and caught.value.site.line >= 2


# Functions

FUNCTIONS = """
func.func @twice(%x: i32) -> i32 {
  %r = arith.addi %x, %x : i32
  return %r : i32
}
func.func private @outside(%x: i32)
func.func @main(%x: i32) -> i32 {
  %a = func.call @twice(%x) : (i32) -> i32
  %b = func.call @twice(%a) : (i32) -> i32
  return %b : i32
}
"""


def test_functions_call_each_other() -> None:
    assert lower(parse_text(FUNCTIONS), Recorder(lambda *_: None)).run(5) == (20,)


def test_a_recursion_returns_and_an_endless_one_is_stopped() -> None:
    text = """
func.func @down(%x: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %end = arith.cmpi eq, %x, %zero : i32
  %r = scf.if %end -> (i32) {
    scf.yield %zero : i32
  } else {
    %less = arith.subi %x, %one : i32
    %below = func.call @down(%less) : (i32) -> i32
    %sum = arith.addi %below, %x : i32
    scf.yield %sum : i32
  }
  return %r : i32
}
"""
    down = lower(parse_text(text), Recorder(lambda *_: None), "down")
    assert down.run(10) == (55,)
    with pytest.raises(UserError, match=f"more than {MAX_DEPTH} calls deep"):
        down.run(-1)
    assert down.run(3) == (6,)


def test_the_function_to_launch() -> None:
    module = parse_text(FUNCTIONS)
    assert lower(module, Recorder(lambda *_: None)).name == "main"
    assert lower(module, Recorder(lambda *_: None), "twice").run(4) == (8,)
    with pytest.raises(UserError, match=r"no function @third; the functions are twice, main"):
        entry_function(module, "third")
    with pytest.raises(UserError, match=r"2 functions that could be launched: @a, @b"):
        entry_function(parse_text("func.func @a() {\n return\n}\nfunc.func @b() {\n return\n}\n"))
    with pytest.raises(UserError, match="no function to launch"):
        entry_function(parse_text("func.func private @a()\n"))
    marked = parse_text("func.func @a() {\n return\n}\nfunc.func @b() attributes {pto.entry} {\n return\n}\n")
    assert lower(marked, Recorder(lambda *_: None)).name == "b"


def test_a_declaration_fails_when_it_is_called() -> None:
    text = (
        "func.func private @out()\n"
        "func.func @k(%c: i1) {\n  scf.if %c {\n    func.call @out() : () -> ()\n  }\n  return\n}\n"
    )
    kernel = lower(parse_text(text, "k.pto"), Recorder(lambda *_: None))
    kernel.run(0)
    with pytest.raises(UserError, match=r"k.pto:1:1: @out is declared without a body"):
        kernel.run(1)


def test_parameters_have_the_names_of_the_text() -> None:
    module = parse_text("func.func @k(%src_1: !pto.ptr<f32>, %0: index) {\n  return\n}\n")
    parameters = parameters_of(entry_function(module))
    assert [p.name for p in parameters] == ["src_1", "0"]
    assert isinstance(parameters[0], Parameter) and str(parameters[1].type) == "index"


def test_the_number_of_values_is_checked() -> None:
    with pytest.raises(UserError, match=r"k takes 2 arguments \(a, b\), not 1"):
        program("", "%a: i32, %b: i32").run(1)


# Instructions


def test_instructions_reach_the_handler_with_values_and_place() -> None:
    calls: list[tuple[Call, tuple[Any, ...]]] = []

    def on_instruction(call: Call, values: tuple[Any, ...], site: Any) -> Any:
        assert site is call.site
        calls.append((call, values))
        return {"alloc_tile": "a tile", "vintlv": ("low", "high")}.get(call.name)

    text = """
func.func @k(%x: f32) {
  %a = arith.constant 64 : i64
  %t = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 1x8xf32>
  pto.tadds ins(%t, %x {mode = 2} : !pto.tile_buf<vec, 1x8xf32>, f32) outs(%t : !pto.tile_buf<vec, 1x8xf32>)
  %v = pto.vlds %p[%i] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
  %lo, %hi = pto.vintlv %v, %v : !pto.vreg<64xf32>, !pto.vreg<64xf32> -> !pto.vreg<64xf32>, !pto.vreg<64xf32>
  pto.use %hi, "PAT_ALL" : !pto.vreg<64xf32>
  return
}
"""
    text = text.replace("%x: f32", "%x: f32, %p: !pto.ptr<f32, ub>, %i: index")
    lower(parse_text(text, "k.pto"), Recorder(on_instruction)).run(1.5, "pointer", 3)
    alloc, add, load, weave, use = calls
    assert alloc[1] == (64,) and alloc[0].given("addr") == [Ref(0)] and alloc[0].result_names == ("t",)
    assert add[1] == ("a tile", 1.5, "a tile") and add[0].attributes == {"mode": 2}
    assert add[0].given("ins") == [Ref(0), Ref(1)] and add[0].given("outs") == [Ref(2)]
    assert str(add[0].site) == "k.pto:5:3" and add[0].operand_names == ("t", "x", "t")
    assert load[1] == ("pointer", 3) and load[0].arguments[""][0].subscripts == (Ref(1),)
    assert weave[1] == (None, None) and weave[0].result_names == ("lo", "hi")
    assert use[1] == ("high",) and use[0].given() == [Ref(0), "PAT_ALL"]


class Rebinder(Recorder):
    """Assigning an address changes the tile's own name."""

    def bind(self, call: Call) -> Bound:
        if call.name == "tassign":
            return Bound(lambda values: (f"new {values[0]}", f"{values[0]} at {values[1]}"), rebinds=(0,))
        return super().bind(call)


def test_an_instruction_may_rebind_an_operand() -> None:
    seen: list[Any] = []
    text = (
        "func.func @k(%t: !pto.tile<1x8xf32>) {\n  %u = pto.tassign %t, tile(64)\n"
        "  pto.use %t, %u : !pto.tile<1x8xf32>, !pto.tile<1x8xf32>\n  return\n}\n"
    )
    lower(parse_text(text), Rebinder(lambda call, values, site: seen.append(values))).run("tile")
    assert seen == [("tile at 64", "new tile")]


class OneSide(Recorder):
    """Runs vector sections only, and notes their ends."""

    left = 0

    def enter(self, call: Call) -> Any:
        return lambda values: call.name != "section.cube"

    def leave(self, call: Call) -> Any:
        def done() -> None:
            self.left += 1

        return done


def test_sections_run_where_the_handler_says() -> None:
    seen: list[Any] = []
    text = """
func.func @k(%i: index) {
  pto.section.cube {
    pto.cube
  }
  pto.section.vector {
    pto.vector
  }
  pto.strict_vecscope(%i) {
  ^bb0(%j: index):
    pto.scope %j : index
  } : (index) -> ()
  return
}
"""
    handler = OneSide(lambda call, values, site: seen.append((call.name, *values)))
    lower(parse_text(text), handler).run(4)
    assert seen == [("vector",), ("scope", 4)]
    assert handler.left == 2


class Picky(Recorder):
    """Knows no instruction called ``odd``."""

    def bind(self, call: Call) -> Bound:
        if call.name == "odd":
            raise UserError(f"pto.{call.name} is not implemented", call.site)
        return super().bind(call)


def test_everything_that_cannot_run_is_told_before_the_run() -> None:
    text = """
func.func @k(%c: index) {
  pto.odd
  %m = memref.alloc() : memref<4xf32>
  scf.for %i = %c to %c step %c {
    pto.odd
    pto.even
  }
  %v = arith.constant dense<0> : vector<4xi32>
  return
}
"""
    module = parse_text(text, "k.pto")
    handler = Picky(lambda *_: None)
    errors = [str(e) for e in not_implemented(module, handler)]
    assert [e.partition(": ")[0] for e in errors] == ["k.pto:3:3", "k.pto:4:8", "k.pto:6:5", "k.pto:9:8"]
    with pytest.raises(UserError, match="4 things in this file cannot be run") as caught:
        lower(module, handler)
    assert "memref.alloc is not implemented" in caught.value.message
    assert not_implemented(parse_text(FUNCTIONS), handler) == []


def test_one_thing_that_cannot_run_is_told_alone() -> None:
    with pytest.raises(UserError, match=r"k.pto:1:1: pto.odd is not implemented"):
        lower(parse_text("pto.odd\n", "k.pto"), Picky(lambda *_: None))


def test_arithmetic_on_vectors_is_not_implemented() -> None:
    body = "%r = arith.addi %v, %v : vector<4xi32>"
    with pytest.raises(UserError, match=r"arith.addi cannot be run: vector<4xi32> is not an integer type"):
        program(body, "%v: vector<4xi32>")
