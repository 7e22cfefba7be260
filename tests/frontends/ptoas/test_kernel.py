"""Kernels of .pto files, launched: arguments, structures, placement, instructions, blocks."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim import profiles
from ascsim.diagnostics import Severity, UserError
from ascsim.frontends import ptoas
from ascsim.frontends.launch import Run
from ascsim.frontends.ptoas.execution import Placement, tile_of
from ascsim.frontends.ptoas.kernel import Kernel, loads
from ascsim.frontends.ptoas.types import Tile as TileSpec
from ascsim.machine import jobs
from ascsim.machine.ahead import Ahead
from ascsim.machine.dtypes import f16, f32, i64, u8, u32
from ascsim.machine.operands import NO_ADDRESS
from ascsim.machine.words import BLayout, Space

_spec = importlib.util.spec_from_file_location("instructions", Path(__file__).with_name("instructions.py"))
assert _spec is not None and _spec.loader is not None
isa = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(isa)

A2A3, A5 = profiles.load("a2a3"), profiles.load("a5")

ADD = """
func.func @add(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %out: !pto.ptr<f32>) {
  %vx = pto.make_tensor_view %x, shape = [4, 8], strides = [8, 1] : !pto.tensor_view<4x8xf32>
  %vy = pto.make_tensor_view %y, shape = [4, 8], strides = [8, 1] : !pto.tensor_view<4x8xf32>
  %vo = pto.make_tensor_view %out, shape = [4, 8], strides = [8, 1] : !pto.tensor_view<4x8xf32>
  %a = pto.tload %vx : !pto.tensor_view<4x8xf32> -> !pto.tile<4x8xf32>
  %b = pto.tload %vy : !pto.tensor_view<4x8xf32> -> !pto.tile<4x8xf32>
  %c = pto.tadd %a, %b : (!pto.tile<4x8xf32>, !pto.tile<4x8xf32>) -> !pto.tile<4x8xf32>
  pto.tstore ins(%c : !pto.tile<4x8xf32>) outs(%vo : !pto.tensor_view<4x8xf32>)
  return
}
"""


def kernel(text: str, name: str | None = None) -> Kernel:
    return loads(text, "k.pto", isa.registry()).kernel(name)


def run(text: str, profile: Any = A2A3, blocks: int = 1, sync: str | None = None, **values: Any) -> Run:
    return kernel(text).run(profile, blocks, values, sync)


def objects(run: Run) -> dict[str, dict[str, Any]]:
    return {note["name"]: note for kind, note in run.trace.notes if kind == "object"}


def numbers(*shape: int, kind: Any = np.float32) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape).astype(kind)


# A whole kernel


def test_arrays_go_in_and_out() -> None:
    x, y, out = numbers(4, 8), 10 * numbers(4, 8), np.zeros((4, 8), np.float32)
    done = run(ADD, x=x, y=y, out=out)
    assert (out == 11 * numbers(4, 8)).all() and (x == numbers(4, 8)).all()
    assert done.kernel == "add" and done.profile is A2A3


def test_what_a_kernel_tells_of_its_arguments() -> None:
    add = kernel(ADD)
    assert [(a.name, a.is_pointer, a.dtype, a.shape) for a in add.arguments] == [
        (name, True, f32, (4, 8)) for name in ("x", "y", "out")
    ]
    assert add.written == ("out",)


def test_no_flags_and_no_addresses_mean_that_the_tool_synchronises() -> None:
    assert not kernel(ADD).is_manual
    flagged = ADD.replace("%c =", "pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\n  %c =")
    assert kernel(flagged).is_manual
    assert kernel("pto.tassign %t, tile(64)\n%t = pto.tadd %x, %x : !pto.tile<1x8xf32>\n").is_manual
    x, out = numbers(4, 8), np.zeros((4, 8), np.float32)
    assert run(ADD, x=x, y=x, out=out).sync == "auto"
    assert run(ADD, sync="manual", x=x, y=x, out=out).sync == "manual"


def test_sites_of_the_trace_are_those_of_the_text() -> None:
    x, out = numbers(4, 8), np.zeros((4, 8), np.float32)
    done = run(ADD, x=x, y=x, out=out)
    sites = {(note["line"], note["column"], note["function"]) for kind, note in done.trace.notes if kind == "site"}
    assert (8, 8, "add") in sites and (9, 3, "add") in sites


def test_tiles_are_placed_apart_and_have_the_names_of_the_text() -> None:
    x, out = numbers(4, 8), np.zeros((4, 8), np.float32)
    placed = objects(run(ADD, x=x, y=x, out=out))
    addresses = sorted(placed[n]["address"] for n in "abc")
    assert addresses[0] >= 0 and all(b - a >= 128 for a, b in pairwise(addresses))


def test_a_tile_in_a_loop_has_one_address() -> None:
    loop = "%n = arith.constant 2000 : index\n%s = arith.constant 1 : index\nscf.for %i = %s to %n step %s {\n  %c ="
    text = ADD.replace("%c =", loop, 1).replace("  return", "  }\n  return")
    out = np.zeros((4, 8), np.float32)
    done = run(text, sync="manual", x=numbers(4, 8), y=numbers(4, 8), out=out)
    assert (out == 2 * numbers(4, 8)).all()
    assert "A001" not in {d.code for d in done.diagnostics}


# Structures


BLOCKS = """
func.func @rows(%x: !pto.ptr<f32>, %out: !pto.ptr<f32>, %k: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %at = arith.constant 256 : i64
  %block = pto.get_block_idx
  %row = arith.index_cast %block : i64 to index
  %vx = pto.make_tensor_view %x, shape = [%n, %c8], strides = [%c8, %c1] : !pto.tensor_view<?x8xf32>
  %vo = pto.make_tensor_view %out, shape = [%n, %c8], strides = [%c8, %c1] : !pto.tensor_view<?x8xf32>
  %px = pto.partition_view %vx, offsets = [%row, %c0], sizes = [%c1, %c8] : !pto.tensor_view<?x8xf32> -> !pto.partition_tensor_view<1x8xf32>
  %po = pto.partition_view %vo, offsets = [%row, %c0], sizes = [%c1, %c8] : !pto.tensor_view<?x8xf32> -> !pto.partition_tensor_view<1x8xf32>
  %t = pto.alloc_tile addr = %at valid_row = %c1 valid_col = %c8 : !pto.tile_buf<vec, 1x8xf32, valid=?x?>
  pto.tload ins(%px : !pto.partition_tensor_view<1x8xf32>) outs(%t : !pto.tile_buf<vec, 1x8xf32, valid=?x?>)
  pto.tscale ins(%t, %k : !pto.tile_buf<vec, 1x8xf32, valid=?x?>, f32) outs(%t : !pto.tile_buf<vec, 1x8xf32, valid=?x?>)
  pto.tstore ins(%t : !pto.tile_buf<vec, 1x8xf32, valid=?x?>) outs(%po : !pto.partition_tensor_view<1x8xf32>)
  return
}
"""  # noqa: E501


@pytest.mark.skipif(sys.platform != "linux", reason="blocks run ahead on Linux")
def test_blocks_that_run_ahead_leave_the_trace_of_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = []
    take = Ahead._take
    monkeypatch.setattr(Ahead, "_take", lambda self, span: spans.append(span) or take(self, span))
    runs = []
    for processors in (1, 2, 3, 7):
        jobs.choose(processors, after=0)
        x, out = numbers(9, 8), np.zeros((9, 8), np.float32)
        runs.append((run(BLOCKS, blocks=9, sync="auto", x=x, out=out, k=2.0, n=9).trace, out))
        assert (out == 2 * x).all()
    jobs.choose(None)
    assert len(spans) == 3 * 8
    for trace, _ in runs[1:]:
        assert trace.notes == runs[0][0].notes
        for table in ("rows", "accesses", "masks", "shapes"):
            assert np.array_equal(getattr(trace, table), getattr(runs[0][0], table))


def test_each_block_takes_its_part() -> None:
    x, out = numbers(5, 8), np.zeros((5, 8), np.float32)
    done = run(BLOCKS, blocks=5, sync="auto", x=x, out=out, k=2.0, n=5)
    assert (out == 2 * x).all()
    assert objects(done)["t"]["address"] == 256


def test_a_shape_that_is_not_constant_is_not_known() -> None:
    arguments = {a.name: a for a in kernel(BLOCKS).arguments}
    assert arguments["x"].shape is None and arguments["n"].dtype is i64
    assert (arguments["k"].is_pointer, arguments["k"].dtype) == (False, f32)


def test_views_that_differ_give_a_flat_length() -> None:
    text = (
        "%a = make_tensor_view %g, shape = [4, 8], strides = [16, 1] : !pto.tensor_view<4x8xf32>\n"
        "%b = make_tensor_view %g, shape = [10], strides = [1] : !pto.tensor_view<10xf32>\n"
        "%c = make_tensor_view %h, shape = [2, 3, 4], strides = [12, 4, 1] : !pto.tensor_view<2x3x4xf32>\n"
        "%q = addptr %p, %n : !pto.ptr<f32> -> !pto.ptr<f32>\n"
    )
    shapes = {a.name: a.shape for a in kernel(text).arguments}
    assert shapes == {"g": (56,), "h": (2, 3, 4), "p": None, "n": None}


def test_assigning_rebinds_the_tile_and_its_new_name() -> None:
    text = """
func.func @k(%x: !pto.tensor_view<1x8xf32>, %out: !pto.tensor_view<1x8xf32>) {
  %t = pto.alloc_tile : !pto.tile<1x8xf32>
  %u = pto.tassign %t, tile(0x400)
  pto.tload ins(%x : !pto.tensor_view<1x8xf32>) outs(%t : !pto.tile<1x8xf32>)
  pto.tstore ins(%u : !pto.tile<1x8xf32>) outs(%out : !pto.tensor_view<1x8xf32>)
  return
}
"""
    out = np.zeros((1, 8), np.float32)
    done = run(text, x=numbers(1, 8), out=out, sync="auto")
    assert (out == numbers(1, 8)).all()
    assert objects(done)["t"]["address"] == 0x400


def test_pointers_count_elements() -> None:
    text = """
func.func @k(%x: !pto.ptr<f32>, %out: !pto.ptr<f32>, %n: index) {
  %p = pto.addptr %x, %n : !pto.ptr<f32> -> !pto.ptr<f32>
  %a = pto.castptr %p : !pto.ptr<f32> -> i64
  %q = pto.castptr %a : i64 -> !pto.ptr<f32>
  %v = pto.make_tensor_view %q, shape = [1, 8], strides = [8, 1] : !pto.tensor_view<1x8xf32>
  %w = pto.make_tensor_view %out, shape = [1, 8], strides = [8, 1] : !pto.tensor_view<1x8xf32>
  %t = pto.tload %v : !pto.tensor_view<1x8xf32> -> !pto.tile<1x8xf32>
  pto.tstore %t, %w : (!pto.tile<1x8xf32>, !pto.tensor_view<1x8xf32>) -> ()
  return
}
"""
    out = np.zeros(8, np.float32)
    run(text, x=numbers(32), out=out, n=5)
    assert (out == np.arange(5, 13)).all()


@pytest.mark.parametrize(
    "view",
    [
        "%r = pto.treshape %t : !pto.tile<2x16xf32> -> !pto.tile<4x8xf32>",
        "%r = pto.alloc_tile : !pto.tile<4x8xf32>\n"
        "  pto.treshape ins(%t : !pto.tile<2x16xf32>) outs(%r : !pto.tile<4x8xf32>)",
    ],
)
def test_other_views_of_a_tile(view: str) -> None:
    text = """
func.func @k(%x: !pto.tensor_view<2x16xf32>, %out: !pto.tensor_view<1x8xf32>, %shape: !pto.tensor_view<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = pto.tload %x : !pto.tensor_view<2x16xf32> -> !pto.tile<2x16xf32>
  %s = pto.subset %t[%c1, %c8] sizes [1, 8] : !pto.tile<2x16xf32>
  VIEW
  pto.tstore ins(%s : !pto.tile<1x8xf32>) outs(%out : !pto.tensor_view<1x8xf32>)
  pto.tstore ins(%r : !pto.tile<4x8xf32>) outs(%shape : !pto.tensor_view<4x8xf32>)
  return
}
""".replace("VIEW", view)
    out, shape = np.zeros((1, 8), np.float32), np.zeros((4, 8), np.float32)
    run(text, x=numbers(2, 16), out=out, shape=shape)
    assert (out == numbers(2, 16)[1:, 8:]).all()
    assert (shape == numbers(4, 8)).all()


def test_a_subview_of_a_tile() -> None:
    text = """
%s = pto.subview %x, 1, 8 : (!pto.tile<2x16xf32>) -> !pto.tile<1x8xf32>
pto.tstore ins(%s : !pto.tile<1x8xf32>) outs(%out : !pto.tensor_view<1x8xf32>)
"""
    out = np.zeros((1, 8), np.float32)
    run(text, x=numbers(2, 16), out=out)
    assert (out == numbers(2, 16)[1:, 8:]).all()


def test_the_valid_shape_can_be_set() -> None:
    text = """
func.func @k(%x: !pto.tensor_view<2x8xf32>, %out: !pto.tensor_view<1x8xf32>, %n: index) {
  %c8 = arith.constant 8 : index
  %t = pto.tload %x : !pto.tensor_view<2x8xf32> -> !pto.tile<2x8xf32>
  pto.set_validshape %t, %n, %c8 : !pto.tile<2x8xf32>
  pto.tstore ins(%t : !pto.tile<2x8xf32>) outs(%out : !pto.tensor_view<1x8xf32>)
  return
}
"""
    out = np.zeros((1, 8), np.float32)
    run(text, x=numbers(2, 8), out=out, n=1)
    assert (out == numbers(1, 8)).all()


def test_sections_of_the_vector_core_run_and_those_of_the_cube_do_not() -> None:
    text = ADD.replace(
        "%c = pto.tadd", "pto.section.cube {\n pto.tadd ins(%b, %b : T, T) outs(%b : T)\n }\n  %c = pto.tadd", 1
    )
    text = text.replace(" T,", " !pto.tile<4x8xf32>,").replace(" T)", " !pto.tile<4x8xf32>)")
    out = np.zeros((4, 8), np.float32)
    run(text, x=numbers(4, 8), y=numbers(4, 8), out=out)
    assert (out == 2 * numbers(4, 8)).all()
    run(text.replace("section.cube", "section.vector"), x=numbers(4, 8), y=numbers(4, 8), out=out)
    assert (out == 3 * numbers(4, 8)).all()


# Registers

INTERLEAVE = """
func.func @weave(%a: !pto.tile<1x64xf32>, %b: !pto.tile<1x64xf32>, %out: !pto.tile<1x128xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %pa = pto.tile_buf_addr %a : !pto.tile<1x64xf32> -> !pto.ptr<f32, ub>
  %pb = pto.tile_buf_addr %b : !pto.tile<1x64xf32> -> !pto.ptr<f32, ub>
  %po = pto.tile_buf_addr %out : !pto.tile<1x128xf32> -> !pto.ptr<f32, ub>
  pto.vecscope {
    %all = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
    %x = pto.vlds %pa[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
    %y = pto.vlds %pb[%c0] {dist = "NORM"} : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
    %lo, %hi = pto.vintlv %x, %y : !pto.vreg<64xf32>, !pto.vreg<64xf32> -> !pto.vreg<64xf32>, !pto.vreg<64xf32>
    pto.vsts %lo, %po[%c0], %all : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
    pto.vsts %hi, %po[%c64], %all : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
  }
  return
}
"""


def test_the_real_register_instructions_run() -> None:
    a, b, out = numbers(1, 64), -numbers(1, 64), np.zeros((1, 128), np.float32)
    weave = loads(INTERLEAVE, "k.pto").kernel()
    done = weave.run(A5, 1, {"a": a, "b": b, "out": out}, "auto")
    assert not [d for d in done.diagnostics if d.places and d.code.startswith("L")]
    assert weave.written == ("out",)
    assert (out[0, ::2] == a[0]).all() and (out[0, 1::2] == b[0]).all()


# Tile arguments


@given(st.integers(1, 4))
@settings(deadline=None, max_examples=4)
def test_tile_arguments_are_loaded_and_brought_back(rows: int) -> None:
    tile = f"!pto.tile<{rows}x8xf32>"
    text = f"%t = tadd %x, %y : {tile}\ntadd ins(%t, %x : {tile}, {tile}) outs(%out : {tile})\n"
    x, y, out = numbers(rows, 8), 10 * numbers(rows, 8), np.zeros((rows, 8), np.float32)
    done = run(text, blocks=2, x=x, y=y, out=out)
    assert (out == 12 * numbers(rows, 8)).all()
    assert done.kernel == "k"


def test_a_tile_argument_is_filled_when_it_gets_its_address() -> None:
    tile = "!pto.tile<1x8xf32>"
    text = (
        "pto.tassign %x, tile(0x200)\npto.tassign %out, tile(0x400)\n"
        f"tadd ins(%x, %x : {tile}, {tile}) outs(%out : {tile})\n"
    )
    out = np.zeros((1, 8), np.float32)
    done = run(text, x=numbers(1, 8), out=out)
    assert (out == 2 * numbers(1, 8)).all()
    assert (objects(done)["x"]["address"], objects(done)["out"]["address"]) == (0x200, 0x400)


# Refusals


def test_what_the_machine_refuses_has_its_place() -> None:
    text = ADD.replace("%b : (!pto.tile<4x8xf32>, !pto.tile<4x8xf32>)", "%k : (!pto.tile<4x8xf32>, f32)")
    text = text.replace("%out: !pto.ptr<f32>)", "%out: !pto.ptr<f32>, %k: f32)")
    done = run(text, x=numbers(4, 8), y=numbers(4, 8), out=numbers(4, 8), k=1.0)
    (first, *_) = done.diagnostics
    assert first.code == "L009" and first.severity is Severity.ERROR
    assert str(first.places[0].site) == "k.pto:8:8"


def test_an_instruction_of_another_chip_is_refused() -> None:
    text = """
func.func @k(%x: !pto.ptr<f32, ub>) {
  %v = pto.vload %x[0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
  return
}
"""
    done = run(text, A2A3, x=numbers(64))
    assert [d.code for d in done.diagnostics][:1] == ["L001"]
    assert str(done.diagnostics[0].places[0].site) == "k.pto:3:8"


def test_a_type_that_no_variant_has_is_refused() -> None:
    text = "%a = arith.constant 0 : i64\n%p = castptr %a : i64 -> !pto.ptr<f16, ub>\n"
    text += "%v = pto.vload %p[0] : !pto.ptr<f16, ub> -> !pto.vreg<128xf16>\n"
    done = run(text, A5)
    assert done.diagnostics[0].code == "L002"


def test_a_register_result_of_another_type_is_told() -> None:
    text = "%v = pto.vload %p[0] : !pto.ptr<f32, ub> -> !pto.vreg<64xi32>\n"
    with pytest.raises(UserError, match=r"k.pto:1:6: pto.vload yields registers of 64xf32 here, but .* one of i32"):
        run(text, A5, p=numbers(64))


def test_tiles_that_do_not_fit_are_listed_by_size() -> None:
    text = ADD.replace("%b = pto.tload", "%big = pto.alloc_tile : !pto.tile<256x256xf32>\n  %b = pto.tload", 1)
    done = run(text, x=numbers(4, 8), y=numbers(4, 8), out=numbers(4, 8))
    first = done.diagnostics[0]
    assert first.code == "A001" and "big 256x256 f32 262144 B" in first.notes[0]
    assert first.places[0].site is not None and first.places[0].site.line == 7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("pto.tadd %a", "pto.tsub %a"), "k.pto:8:8: pto.tsub is not implemented"),
        (("%x, shape = [4, 8]", "%x, shape = [4]"), "as many sizes and strides as its type has dimensions"),
        (("[8, 1] :", "[8, 1] {layout = #pto.layout<xy>} :"), "'xy' is not a layout; allowed are nd, dn, nz"),
        (("%c =", "%t = pto.alloc_tile valid_row = %n : !pto.tile<4x8xf32>\n  %c ="), "write v_row=?"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_told_before_the_run(change: tuple[str, str], words: str) -> None:
    text = ADD.replace(*change, 1)
    if "%n" in text:
        text = text.replace("%vx =", "%n = arith.constant 4 : index\n  %vx =", 1)
    out = np.zeros((4, 8), np.float32)
    with pytest.raises(UserError) as caught:
        run(text, x=numbers(4, 8), y=numbers(4, 8), out=out)
    assert words in str(caught.value)
    assert not out.any()


def test_more_dimensions_than_the_machine_has_are_not_implemented() -> None:
    dims = ", ".join("1" * 6)
    view = "!pto.tensor_view<1x1x1x1x1x1xf32>"
    with pytest.raises(UserError, match="with 6 dimensions is not implemented"):
        run(f"%v = make_tensor_view %g, shape = [{dims}], strides = [{dims}] : {view}\n", g=numbers(1))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"x": numbers(4, 8), "y": numbers(4, 8)}, "add has no value for 'out'; its arguments are x, y, out"),
        ({"x": 1, "y": numbers(4, 8), "out": numbers(4, 8)}, "argument x of add is an array, not int"),
        ({"x": numbers(4, 8), "y": numbers(4, 8), "out": numbers(4, 8), "z": 1}, "add has no argument 'z'"),
        ({"x": numbers(4, 8, kind=np.float16), "y": numbers(4, 8), "out": numbers(4, 8)}, "f32; the array holds"),
    ],
)
def test_values_are_checked(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        run(ADD, **values)
    assert words in str(caught.value)


def test_the_number_of_blocks_is_checked() -> None:
    with pytest.raises(UserError, match="a launch has 1 to"):
        run(ADD, blocks=0, x=numbers(4, 8), y=numbers(4, 8), out=numbers(4, 8))


def test_an_argument_that_cannot_be_given() -> None:
    with pytest.raises(UserError, match=r"argument v of k is !pto.vreg<64xf32>, which cannot be given"):
        _ = kernel("func.func @k(%v: !pto.vreg<64xf32>) {\n  return\n}\n").arguments


def test_numbers_are_held_in_their_type() -> None:
    seen: list[Any] = []
    operands = (isa.Scalar("a", i64), isa.Scalar("b", f32))
    use = isa.plain("use", operands, lambda core, call: seen.append((call.a, call.b)), level="system")
    registry = isa.registry(use)
    text = "func.func @k(%a: i8, %b: f16) {\n  pto.use %a, %b : i8, f16\n  return\n}\n"
    loads(text, "k.pto", registry).kernel().run(A2A3, 1, {"a": 255, "b": 0.1})
    assert seen == [(-1, 0.0999755859375)]


def test_arguments_of_other_kinds() -> None:
    arguments = "%m: memref<4x8xf16, #pto.address_space<gm>>, %c: i1, %u: !pto.tensor_view<?x8xui32>"
    text = f"func.func @k({arguments}) {{\n  return\n}}\n"
    assert [(a.dtype, a.shape, a.is_pointer) for a in kernel(text).arguments] == [
        (f16, (4, 8), True), (u8, None, False), (u32, None, True),
    ]  # fmt: skip


# Files


def test_a_file_names_its_chip_and_its_kernels(tmp_path: Path) -> None:
    path = tmp_path / "f.pto"
    path.write_text(
        'module attributes {"pto.target_arch" = "a5"} {\n  func.func @a() {\n    return\n  }\n'
        "  func.func @b() {\n    pto.odd\n    return\n  }\n}\n"
    )
    file = ptoas.load(path)
    assert file.arch == "a5" and file.names == ["a", "b"]
    assert file.kernel("b").name == "b"
    with pytest.raises(UserError, match="2 functions that could be launched"):
        file.kernel()
    (problem,) = file.not_implemented(A5)
    assert "pto.odd is not implemented" in str(problem)
    assert loads("pto.x\n").arch is None


def test_placement_keeps_clear_of_what_the_text_takes() -> None:
    placement = Placement(A2A3)
    tile = tile_of(TileSpec(f32, 1, 8, 1, 8), "t")
    assert tile.address == NO_ADDRESS and tile.space is Space.UB
    placement.reserve(tile.at(100))
    first = placement.place(tile)
    second = placement.place(tile)
    assert first.address >= 132 and first.address % 32 == 0
    assert second.address >= first.address + 32


def test_a_tile_type_becomes_the_machines_tile() -> None:
    tile = tile_of(TileSpec(f16, 16, 32, -1, 8, "left", "col_major", "row_major", 1024, 2))
    assert (tile.valid_rows, tile.valid_cols) == (16, 8)
    assert (tile.space, tile.blayout, tile.fractal, tile.pad) == (Space.L0A, BLayout.COL_MAJOR, 1024, 2)


# The cube


PRODUCT = """
func.func @product(%x: !pto.ptr<f16>)KIND {
  %zero = arith.constant 0 : i64
  %left = pto.alloc_tile addr = %zero : !pto.tile_buf<loc=left, dtype=f16, rows=16, cols=16, blayout=col_major, slayout=row_major>
  %right = pto.alloc_tile addr = %zero : !pto.tile_buf<loc=right, dtype=f16, rows=16, cols=16, blayout=row_major, slayout=col_major>
  %acc = pto.alloc_tile addr = %zero : !pto.tile_buf<loc=acc, dtype=f32, rows=16, cols=16, blayout=col_major, slayout=row_major, fractal=1024>
  pto.tmatmul ins(%left, %right : !pto.tile_buf<loc=left, dtype=f16, rows=16, cols=16, blayout=col_major, slayout=row_major>, !pto.tile_buf<loc=right, dtype=f16, rows=16, cols=16, blayout=row_major, slayout=col_major>) outs(%acc : !pto.tile_buf<loc=acc, dtype=f32, rows=16, cols=16, blayout=col_major, slayout=row_major, fractal=1024>)
  return
}
"""  # noqa: E501


@pytest.mark.parametrize("kind", ["", " attributes {pto.kernel_kind = #pto.kernel_kind<cube>}"])
def test_products_run_on_the_cube_core(kind: str) -> None:
    made = loads(PRODUCT.replace("KIND", kind), "k.pto").kernel()
    assert made.side == "aic"
    run = made.run(A5, 1, {"x": np.zeros(1, np.float16)})
    assert "pto.tmatmul" in run.trace.titles.values()
    assert {found.code for found in run.diagnostics} == {"I001"}, "nothing was loaded"


def test_other_kernels_run_on_the_vector_core() -> None:
    assert loads(ADD, "k.pto").kernel().side == "aiv"


TRANSPOSED = """
func.func @load(%x: !pto.ptr<f32>, %n: index) {
  %one = arith.constant 1 : index
  %rows = arith.constant 32 : index
  %cols = arith.constant 16 : index
  %zero = arith.constant 0 : i64
  %v = pto.make_tensor_view %x, shape = [ROWS, %cols], strides = [%one, ROWS] : !pto.tensor_view<?x?xf32>
  %t = pto.alloc_tile addr = %zero : !pto.tile_buf<loc=mat, dtype=f32, rows=32, cols=16, blayout=row_major, slayout=col_major>
  pto.tload ins(%v : !pto.tensor_view<?x?xf32>) outs(%t : !pto.tile_buf<loc=mat, dtype=f32, rows=32, cols=16, blayout=row_major, slayout=col_major>)
  return
}
"""  # noqa: E501


@pytest.mark.parametrize(("rows", "codes"), [("%rows", set()), ("%n", {"L004"})])
def test_a_view_of_columns_is_dn_where_that_is_known(rows: str, codes: set[str]) -> None:
    """PTOAS infers it of constants; DN is what loads into boxes of ZN."""
    run = loads(TRANSPOSED.replace("ROWS", rows), "k.pto").kernel().run(A5, 1, {"x": numbers(32, 16), "n": 32})
    assert {found.code for found in run.diagnostics} == codes
