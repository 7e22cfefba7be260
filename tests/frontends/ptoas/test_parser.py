"""Reading .pto text: each writing, each structure, each error."""

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from ascsim.diagnostics import UserError
from ascsim.frontends.ptoas.dialect import (
    AllocTile,
    AssignTile,
    Flag,
    Instruction,
    MakeTensorView,
    PartitionView,
    Section,
    SubTile,
    Symbol,
    site_of,
)
from ascsim.frontends.ptoas.parser import masked, parse_file, parse_text
from ascsim.frontends.ptoas.types import Pointer, TileType, Word
from ascsim.machine.dtypes import f32

SORT_IN_SSA = """
func.func @sort(%src: !pto.tile<2x32xf32>, %idx: !pto.tile<2x32xui32>) {
  %dst = pto.tsort32 %src, %idx : (!pto.tile<2x32xf32>, !pto.tile<2x32xui32>) -> !pto.tile<2x64xf32>
  return
}
"""
SORT_IN_DPS = """
module {
  func.func @sort(%src: !pto.tile_buf<vec, 2x32xf32>, %idx: !pto.tile_buf<vec, 2x32xui32>) {
    %dst = pto.alloc_tile : !pto.tile_buf<vec, 2x64xf32>
    pto.tsort32 ins(%src, %idx : !pto.tile_buf<vec, 2x32xf32>, !pto.tile_buf<vec, 2x32xui32>)
                outs(%dst : !pto.tile_buf<vec, 2x64xf32>)
    return
  }
}
"""
SORT_BARE = """
# sort one block
%dst = tsort32 %src, %idx : (!pto.tile<2x32xf32>, !pto.tile<2x32xui32>) -> !pto.tile<2x64xf32>
"""


def instructions(module: ModuleOp) -> list[Instruction]:
    return [op for op in module.walk() if isinstance(op, Instruction)]


def only(text: str, mnemonic: str) -> Instruction:
    (found,) = [op for op in instructions(parse_text(text)) if op.mnemonic == mnemonic]
    return found


def in_function(body: str, arguments: str = "") -> str:
    return f"func.func @k({arguments}) {{\n{body}\n  return\n}}\n"


def names(values: list) -> list[str]:
    return [v.value._name for v in values]


# The three writings


def test_the_three_writings_of_an_instruction_are_one_operation() -> None:
    ssa, dps = parse_text(SORT_IN_SSA, "sort.pto"), parse_text(SORT_IN_DPS, "sort.pto")
    assert ssa.is_structurally_equivalent(dps)
    bare, written = only(SORT_BARE, "tsort32"), only(SORT_IN_DPS, "tsort32")
    assert bare.items == written.items
    assert [v.type for v in bare.operands] == [v.type for v in written.operands]


def test_a_tile_instruction_has_its_inputs_and_outputs_by_name() -> None:
    op = only(SORT_IN_SSA, "tsort32")
    assert names(op.arguments_of("ins")) == ["src", "idx"]
    assert names(op.arguments_of("outs")) == ["dst"]
    assert not op.results


def test_several_tile_results_become_several_destinations() -> None:
    op = only(
        in_function("%a, %b = pto.tinterleave %x, %x : !pto.tile<1x8xf32>", "%x: !pto.tile<1x8xf32>"),
        "tinterleave",
    )
    assert names(op.arguments_of("outs")) == ["a", "b"]


def test_an_instruction_with_destinations_and_a_result_has_one_value() -> None:
    tile = "!pto.tile<1x8xf32>"
    module = parse_text(
        in_function(
            f"%r = pto.tadd ins(%x, %x : {tile}, {tile}) outs(%y : {tile}) -> {tile}\n"
            f"pto.tneg ins(%r : {tile}) outs(%x : {tile})",
            f"%x: {tile}, %y: {tile}",
        )
    )
    negate = next(op for op in instructions(module) if op.mnemonic == "tneg")
    assert names(negate.arguments_of("ins")) == ["y"]


def test_registers_in_outs_become_results() -> None:
    body = """
      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      pto.pset_b16 "PAT_H" outs(%h : !pto.mask<b16>)
      %v = pto.vlds %p[%i] {dist = "NORM"} : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      pto.vadd ins(%v, %v, %m : !pto.vreg<64xf32>, !pto.vreg<64xf32>, !pto.mask<b32>) outs(%s : !pto.vreg<64xf32>)
      %lo, %hi = pto.vintlv %v, %s : !pto.vreg<64xf32>, !pto.vreg<64xf32> -> !pto.vreg<64xf32>, !pto.vreg<64xf32>
      pto.vsts %hi, %p[%i], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>"""
    module = parse_text(in_function(body, "%p: !pto.ptr<f32, ub>, %i: index"))
    by_name = {op.mnemonic: op for op in instructions(module)}
    assert [r._name for r in by_name["vadd"].results] == ["s"]
    assert names(by_name["vadd"].arguments_of()) == ["v", "v", "m"]
    assert [r._name for r in by_name["vintlv"].results] == ["lo", "hi"]
    assert by_name["pset_b16"].arguments_of()[0].value == "PAT_H"
    load = by_name["vlds"].arguments_of()[0]
    assert load.value._name == "p" and [s._name for s in load.subscripts] == ["i"]
    assert by_name["vlds"].written()[1] == {"dist": "NORM"}
    store = by_name["vsts"].arguments_of()
    assert names(store) == ["hi", "p", "m"] and [s._name for s in store[1].subscripts] == ["i"]


def test_the_manuals_assembly_form_keeps_its_order() -> None:
    op = only("tadd %dst, %a, %b #mode=fast : !pto.tile<1x8xf32>\n", "tadd")
    assert names(op.arguments_of()) == ["dst", "a", "b"]
    assert op.written()[1] == {"mode": Word("fast")}


def test_names_with_and_without_prefix_and_with_dots() -> None:
    module = parse_text("%c = tmatmul.acc %a, %b : !pto.tile<8x8xf16>\npto.sync.set <PIPE_V>, 3\n")
    assert [op.mnemonic for op in instructions(module)] == ["tmatmul.acc", "sync.set"]


# Literals, words and groups


def test_flags_in_each_spelling() -> None:
    module = parse_text(
        "pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\n"
        'pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]\n'
        "pto.set_flag [#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]\n"
        "pto.barrier <PIPE_ALL>\npto.barrier #pto.pipe<PIPE_V>\n"
    )
    angle, quoted, typed, barrier, other = (op.arguments_of() for op in instructions(module))
    assert [a.value for a in angle] == [Word("PIPE_MTE2"), Word("PIPE_V"), Word("EVENT_ID0")]
    assert [a.value for a in quoted] == ["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    assert [a.value.text for a in typed] == ["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    assert typed[0].value.family == "pipe" and typed[2].value.family == "event"
    assert barrier[0].value == Word("PIPE_ALL") and other[0].value == Word("PIPE_V", "pipe")


def test_attributes_become_python_values() -> None:
    op = only(
        in_function(
            'pto.thing {split = 1, rounds = 7 : i32, rate = 0.5 : f32, name = "x", on = true, flag, place = <vec>, '
            "mode = #pto.round_mode<CAST_RINT>, old = #pto<cmp lt>, peer = @other, sizes = [1, 2], "
            "dims = array<i32: 3, 4>, word = fast}"
        ),
        "thing",
    )
    assert op.written()[1] == {
        "split": 1, "rounds": 7, "rate": 0.5, "name": "x", "on": True, "flag": True, "place": Word("vec"),
        "mode": Word("CAST_RINT", "round_mode"), "old": Word("lt", "cmp"), "peer": Symbol("other"),
        "sizes": [1, 2], "dims": [3, 4], "word": Word("fast"),
    }  # fmt: skip


def test_attributes_inside_ins_and_behind_outs() -> None:
    tile = "!pto.tile<1x8xf32>"
    op = only(
        in_function(
            f"pto.tmrgsort ins(%x, %x {{exhausted = false}} : {tile}, {tile}) outs(%x : {tile}) {{k = 2}}",
            f"%x: {tile}",
        ),
        "tmrgsort",
    )
    assert op.written()[1] == {"exhausted": False, "k": 2}


def test_types_may_stand_behind_each_operand() -> None:
    tile = "!pto.tile<1x8xf32>"
    op = only(in_function(f"pto.tmov ins(%x : {tile}, %s : f32) outs(%x : {tile})", f"%x: {tile}, %s: f32"), "tmov")
    assert names(op.arguments_of("ins")) == ["x", "s"]


def test_keyword_groups_over_several_lines() -> None:
    op = only(
        in_function(
            """
  pto.copy_in %g, %n,  // a comment
      %n
      nburst(%n, %n) loop(%n, 4)
      nosat
      : !pto.ptr<f32>, i64, i64, i64, i64, i64
  pto.barrier <PIPE_ALL>""",
            "%g: !pto.ptr<f32>, %n: i64",
        ),
        "copy_in",
    )
    assert names(op.arguments_of()[:3]) == ["g", "n", "n"]
    assert op.arguments_of()[3].value == Flag("nosat")
    assert names(op.arguments_of("nburst")) == ["n", "n"]
    assert [op.arguments_of("loop")[0].value._name, op.arguments_of("loop")[1].value] == ["n", 4]


def test_a_call_like_instruction() -> None:
    op = only(
        in_function("pto.open {dir = 1}(gm = %g : !pto.ptr<f32>, local = %n : i32)\n", "%g: !pto.ptr<f32>, %n: i32"),
        "open",
    )
    assert names(op.arguments_of("gm")) == ["g"] and names(op.arguments_of("local")) == ["n"]


def test_the_generic_form_of_mlir() -> None:
    op = only(
        in_function('"pto.tmov"(%x, %x) <{sizes = array<i32: 1, 1>}> {mode = 2} : (i32, i32) -> ()', "%x: i32"), "tmov"
    )
    assert names(op.arguments_of()) == ["x", "x"]
    assert op.written()[1] == {"sizes": [1, 1], "mode": 2}


def test_a_type_name_may_be_left_out_behind_a_value_that_has_it() -> None:
    op = only(in_function("%q = pto.addptr %p, %n : <f32> -> <f32>", "%p: !pto.ptr<f32>, %n: index"), "addptr")
    assert op.results[0].type.data == Pointer(f32)  # type: ignore[attr-defined]


def test_an_elided_type_is_the_operands_own() -> None:
    tile = "!pto.tile<1x8xf32>"
    op = only(in_function(f"%y = pto.tneg %x : (!pto.tile<...>) -> {tile}", f"%x: {tile}"), "tneg")
    assert isinstance(op.arguments_of("ins")[0].value.type, TileType)


# Structures


def test_tiles_views_and_pointers() -> None:
    module = parse_text(
        in_function(
            """
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %a = arith.constant 4096 : i64
  %t = pto.alloc_tile addr = %a valid_row = %c8 valid_col = %c8 : !pto.tile_buf<vec, 8x8xf32, valid=?x?>
  %v = pto.make_tensor_view %p, shape = [%c8, 8], strides = [%c8, 1] {layout = #pto.layout<nd>}
    : !pto.tensor_view<?x8xf32>
  %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c8, %c8]
    : !pto.tensor_view<?x8xf32> -> !pto.partition_tensor_view<8x8xf32>
  %s = pto.subset %t[%c0, %c8] sizes [4, 8] : !pto.tile_buf<vec, 8x8xf32, valid=?x?>
  %u = pto.castptr %a : i64 -> !pto.ptr<f32, ub>""",
            "%p: !pto.ptr<f32>",
        )
    )
    tile, view, part, sub, pointer = instructions(module)
    assert isinstance(tile, AllocTile) and names(tile.arguments_of("addr")) == ["a"]
    assert names(tile.arguments_of("valid_row")) == names(tile.arguments_of("valid_col")) == ["c8"]
    assert isinstance(view, MakeTensorView) and names(view.arguments_of()) == ["p"]
    assert [getattr(a.value, "_name", a.value) for a in view.arguments_of("shape")] == ["c8", 8]
    assert view.written()[1] == {"layout": Word("nd", "layout")}
    assert isinstance(part, PartitionView) and names(part.arguments_of("offsets")) == ["c0", "c0"]
    assert isinstance(sub, SubTile)
    data = sub.results[0].type.data  # type: ignore[attr-defined]
    assert (data.rows, data.cols, data.valid_rows) == (4, 8, 4)
    assert pointer.results[0].type.data == Pointer(f32, "ub")  # type: ignore[attr-defined]


@pytest.mark.parametrize("address", ["tile(0x1000)", "@tile(0x1000)", "4096", "%a"])
def test_assigning_an_address_in_each_spelling(address: str) -> None:
    body = f"%a = arith.constant 4096 : i64\npto.tassign %t, {address}"
    op = only(in_function(body, "%t: !pto.tile<1x8xf32>"), "tassign")
    assert isinstance(op, AssignTile)
    tile, where = op.arguments_of()
    assert tile.value._name == "t"
    assert where.value.owner.properties["value"].value.data == 4096
    assert op.results[0].type == tile.value.type


def test_sections_hold_code() -> None:
    module = parse_text(
        in_function(
            """
  pto.section.vector {
    pto.barrier <PIPE_V>
  }
  pto.section.cube {}
  pto.strict_vecscope(%p, %i) {
  ^bb0(%q: !pto.ptr<f32, ub>, %j: index):
    %v = pto.vlds %q[%j] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
  } : (!pto.ptr<f32, ub>, index) -> ()""",
            "%p: !pto.ptr<f32, ub>, %i: index",
        )
    )
    vector, cube, scope = (op for op in instructions(module) if isinstance(op, Section))
    assert [op.mnemonic for op in (vector, cube, scope)] == ["section.vector", "section.cube", "strict_vecscope"]
    assert [op.name for op in vector.regions[0].block.ops] == ["pto.barrier"]
    assert not list(cube.regions[0].block.ops)
    assert names(scope.arguments_of()) == ["p", "i"]


def test_functions_modules_aliases_and_attributes() -> None:
    module = parse_text(
        """
!tile = !pto.tile_buf<vec, 1x8xf32>
#where = #pto.address_space<vec>
module attributes {"pto.target_arch" = "a3"} {
  func.func private @outside(%x: i32)
  func.func @kernel(%t: !tile) attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>} {
    pto.tneg ins(%t : !tile) outs(%t : !tile) {place = #where}
    func.return
  }
}
"""
    )
    function = [*module.body.block.ops][1]
    assert set(function.attributes) == {"pto.entry", "pto.kernel_kind"}
    assert "pto.target_arch" in module.attributes
    assert instructions(module)[0].written()[1] == {"place": Word("vec", "address_space")}


def test_loops_branches_and_memrefs_are_those_of_mlir() -> None:
    module = parse_text(
        in_function(
            """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = arith.constant true
  %r:2 = scf.while (%i = %c0, %go = %t) : (index, i1) -> (index, i1) {
    scf.condition(%go) %i, %go : index, i1
  } do {
  ^bb0(%j: index, %on: i1):
    scf.yield %j, %on : index, i1
  }
  scf.for %i = %r#0 to %c1 step %c1 {
    scf.if %t {
      pto.barrier <PIPE_ALL>
    } else {
    }
  }
  %m = memref.alloc() : memref<4x8xf32, #pto.address_space<vec>>""",
        )
    )
    assert {op.name for op in module.walk()} >= {"scf.while", "scf.for", "scf.if", "memref.alloc"}


def test_unsigned_integers_and_operations_that_xdsl_lacks() -> None:
    body = "%i = arith.index_castui %x : i32 to index\n%r = arith.remf %f, %f : f32\npto.use %u, %i : ui32, index"
    module = parse_text(in_function(body, "%x: i32, %f: f32, %u: ui32"))
    assert {op.name for op in module.walk()} >= {"arith.index_castui", "arith.remf", "pto.use"}


# A bare list of statements


def test_a_list_of_statements_is_a_function_of_what_it_uses() -> None:
    module = parse_text(
        """
%v = make_tensor_view %g, shape = [%n, 8], strides = [8, 1] : !pto.tensor_view<?x8xf32>
%r = pto.vlds %p[%i] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
%t = alloc_tile addr = %where : !pto.tile<1x8xf32>
tadds %t, %t, %s : !pto.tile<1x8xf32>, !pto.tile<1x8xf32>, f32
""",
        "dir/my-kernel.pto",
    )
    (function,) = module.body.block.ops
    assert function.properties["sym_name"].data == "my_kernel"  # type: ignore[attr-defined]
    arguments = {a._name: str(a.type) for a in function.regions[0].block.args}
    assert list(arguments) == ["g", "n", "p", "i", "where", "s"]
    assert arguments["n"] == arguments["i"] == "index" and arguments["where"] == "i64" and arguments["s"] == "f32"


def test_a_value_that_no_text_types_is_refused_in_a_list_of_statements() -> None:
    with pytest.raises(UserError, match=r"k.pto:1:6: %x is not defined .* nothing says its type"):
        parse_text("tneg %x\n", "k.pto")


def test_an_address_may_be_assigned_before_the_tile_appears() -> None:
    tile = "!pto.tile<1x8xf32>"
    module = parse_text(
        f"pto.tassign %y, tile(0x100)\n%y = pto.tneg %x : {tile} -> {tile}\n%z = pto.tneg %y : {tile} -> {tile}\n"
    )
    alloc, assign, negate, _ = instructions(module)
    assert isinstance(alloc, AllocTile) and isinstance(assign, AssignTile)
    assert assign.arguments_of()[0].value is alloc.results[0] is negate.arguments_of("outs")[0].value


def test_a_tile_that_the_statements_compute_and_do_not_use_is_an_argument() -> None:
    tile = "!pto.tile<1x8xf32>"
    module = parse_text(
        f"%spare = pto.alloc_tile : {tile}\n%y = pto.tneg %x : {tile} -> {tile}\n%z = pto.tneg %y : {tile} -> {tile}\n"
        "pto.tassign %z, tile(64)\n"
    )
    (function,) = module.body.block.ops
    assert [a._name for a in function.regions[0].block.args] == ["x", "z"]
    assert [op.results[0]._name for op in instructions(module) if isinstance(op, AllocTile)] == ["spare", "y"]
    assert len(function.properties["function_type"].inputs) == 2  # type: ignore[attr-defined]


def test_numbered_placeholders_mean_the_next_instructions_tiles() -> None:
    text = (
        "pto.tassign %arg0, tile(0x100)\npto.tassign %arg2, @tile(0x300)\n"
        "%d = pto.tsort32 %src, %idx : (!pto.tile<1x32xf32>, !pto.tile<1x32xui32>) -> !pto.tile<1x64xf32>\n"
    )
    module = parse_text(text)
    first, second = (op for op in instructions(module) if isinstance(op, AssignTile))
    assert first.arguments_of()[0].value._name == "src"
    assert second.arguments_of()[0].value._name == "d"


def test_a_placeholder_beyond_the_tiles_is_refused() -> None:
    with pytest.raises(UserError, match=r"tile number 5, counted from 0, but the next instruction has 2 tile"):
        parse_text("pto.tassign %arg5, tile(0)\n%y = pto.tneg %x : !pto.tile<1x8xf32>\n")


def test_a_value_named_like_a_placeholder_is_itself() -> None:
    tile = "!pto.tile<1x8xf32>"
    op = only(f"pto.tassign %arg1, tile(0)\n%y = pto.tneg %arg1 : {tile} -> {tile}\n", "tassign")
    assert op.arguments_of()[0].value._name == "arg1"


# Text around the statements


def test_hash_comments_and_locations_are_blanked_in_place() -> None:
    text = '# note %x\n  #\npto.a // loc(1)\npto.b loc("f.mlir":(2):3)\n#loc1 = loc(unknown)\n#map = 3 : i32\n'
    blanked = masked(text)
    assert len(blanked) == len(text) and blanked.count("\n") == text.count("\n")
    assert blanked.split("\n")[0].strip() == "" and "loc(1)" in blanked
    assert '"f.mlir"' not in blanked and "unknown" not in blanked and "#map = 3" in blanked
    assert [op.mnemonic for op in instructions(parse_text(text))] == ["a", "b"]


def test_a_location_that_is_a_tile_property_stays() -> None:
    assert masked("!pto.tile_buf<loc=vec>") == "!pto.tile_buf<loc=vec>"


def test_every_operation_knows_its_place() -> None:
    module = parse_text(
        "func.func @k(%i: index) {\n  %j = arith.addi %i, %i : index\n\n    pto.barrier <PIPE_ALL>\n  return\n}\n",
        "k.pto",
    )
    places = {op.name: str(site_of(op)) for op in module.walk()}
    assert places["arith.addi"] == "k.pto:2:8"
    assert places["pto.barrier"] == "k.pto:4:5"
    assert places["func.func"] == "k.pto:1:1"


def test_a_tile_made_for_a_result_has_the_instructions_place() -> None:
    module = parse_text(SORT_IN_SSA, "s.pto")
    assert {str(site_of(op)) for op in instructions(module)} == {"s.pto:3:10"}


def test_names_are_kept_as_written() -> None:
    module = parse_text(in_function("%t_1 = arith.constant 1 : i32\n%0 = arith.constant 2 : i32"))
    assert [op.results[0]._name for op in module.walk() if op.results] == ["t_1", "0"]


def test_a_query_takes_the_type_of_its_first_use_and_else_i64() -> None:
    module = parse_text(
        in_function(
            "%a = pto.get_block_idx\n%b = pto.get_block_num\n%c = pto.get_subblock_idx\n"
            "%i = arith.index_cast %a : i64 to index\n%j = arith.addi %b, %i : index\n"
        )
    )
    assert [str(op.results[0].type) for op in instructions(module)] == ["i64", "index", "i64"]


# Errors


@pytest.mark.parametrize(
    ("text", "where", "words", "caret"),
    [
        ("func.func @k() {\n  pto.tadd ins(%x : i32)\n  return\n}\n", "2:16", "%x is used but never defined", "%x"),
        (in_function("pto.use %sec : i32", "%src: i32"), "2:9", "Did you mean %src?", "%sec"),
        ("pto.tadd ins(%x : i32\npto.b", "2:1", "')' after an operand", "pto.b"),
        ("%t = pto.alloc_tile : !pto.tile_buf<vec, 1x8xf9>\n", "1:46", "'f9' is not an element type", "f9"),
        (in_function("pto.use %x : f32", "%x: i32"), "2:9", "%x is i32, but its type is written as f32", "%x"),
        (in_function("%y = arith.addi %x, %x : i64", "%x: i32"), "2:17", "%x is i32", "%x"),
        (in_function("%x = arith.constant 1 : i32", "%x: i32"), "2:1", "%x is defined twice", "%x"),
        (in_function("%y = arith.addii %x, %x : i32", "%x: i32"), "2:6", "did you mean arith.addi?", "arith.addii"),
        (in_function("pto.use %x %x : i32, i32", "%x: i32"), "2:12", "a comma is missing", "%x"),
        (in_function("pto.use %x, : i32", "%x: i32"), "2:13", "an operand (%name)", ":"),
        (in_function("%a, %b = pto.tneg %x : (!pto.tile<1x8xf32>) -> !pto.tile<1x8xf32>", "%x: !pto.tile<1x8xf32>"),
         "2:10", "2 result(s) are named, but 1 type(s)", ""),
        (in_function("pto.use %x : i32, i32", "%x: f32"), "", "2 types are written for 1 operand", ""),
        (in_function("pto.use %x : 3", "%x: i32"), "2:14", "a type was expected here", "3"),
        (in_function("pto.use {a = }"), "2:14", "the value of an attribute was expected", "}"),
        (in_function("%y = pto.tneg %x : !pto.tile<1x8xf32> -> !pto.tile<...>", "%x: !pto.tile<1x8xf32>"), "2:6",
         "the type of a result must be written out", ""),
        (in_function("%s = pto.subset %x[0, 0] sizes [%n, 8] : !pto.tile<8x8xi8>", "%x: !pto.tile<8x8xi8>, %n: index"),
         "2:6", "two constant sizes", ""),
        (in_function("pto.use %y : i32\n%y = arith.constant 1 : i32"), "2:1", "further down (line 3)", "pto.use"),
        (in_function("%y = arith.extsi %x : i64 to i32", "%x: i64"), "2:6", "arith.extsi", "arith.extsi"),
        ("}\n", "1:1", "'}' cannot begin a statement", "}"),
        ("", "1:1", "nothing in this file", ""),
        ("pto.use ~\n", "1:9", "Unexpected character", "~"),
        ("func.func @k(%x: !pto.ptr<f32, moon>) {\n return\n}\n", "1:32", "space for a pointer", "moon"),
        ("func.func @k(%x: !nope) {\n return\n}\n", "1:23", "alias !nope is not defined", ""),
    ],
)  # fmt: skip
def test_an_error_has_its_place_a_caret_and_what_is_allowed(text: str, where: str, words: str, caret: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_text(text, "k.pto")
    message = str(caught.value)
    assert words in message
    assert message.startswith(f"k.pto:{where}")
    if caret:
        shown, marks = message.splitlines()[-2:]
        start = marks.index("^")
        assert shown[start:].startswith(caret) and marks.strip() == "^" * len(caret)


def test_tabs_keep_the_caret_in_its_column() -> None:
    with pytest.raises(UserError) as caught:
        parse_text("\tpto.use ~\n", "k.pto")
    assert str(caught.value).splitlines()[-1] == "    \t        ^"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*gone.pto: No such file"):
        parse_file(tmp_path / "gone.pto")
    binary = tmp_path / "b.pto"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not UTF-8 text"):
        parse_file(binary)


def test_a_file_is_read_with_its_path_in_sites(tmp_path: Path) -> None:
    path = tmp_path / "sort.pto"
    path.write_text(SORT_IN_DPS)
    module = parse_file(path)
    assert all(site_of(op).path == str(path) for op in module.walk())
