"""Printing: the second writing, and reading it back."""

import pytest

from ascsim.frontends.ptoas.parser import parse_text
from ascsim.frontends.ptoas.printer import to_text

TILE = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=1, cols=8, v_row=1, v_col=8, blayout=row_major, slayout=none_box, "
    "fractal=512, pad=0>"
)

EXAMPLES = {
    "tile instruction": (
        "%y = tadds %x, %s : (!pto.tile<1x8xf32>, f32) -> !pto.tile<1x8xf32>\n"
        "tadds ins(%y, %s : !pto.tile<1x8xf32>, f32) outs(%x : !pto.tile<1x8xf32>)"
    ),
    "assembly form": "tadd %d, %a, %b #atomic=add : !pto.tile<1x8xf32>",
    "manual addresses": "pto.tassign %y, tile(0x40)\n%y = tneg %x : !pto.tile<1x8xf32> -> !pto.tile<1x8xf32>",
    "alloc": "%t = pto.alloc_tile addr = %a valid_row = %n valid_col = %n : !pto.tile_buf<vec, 4x8xf32, valid=?x?>",
    "views": (
        "%v = make_tensor_view %g, shape = [%n, 8], strides = [8, 1] {layout = #pto.layout<nd>} "
        ": !pto.tensor_view<?x8xf32>\n"
        "%w = partition_view %v, offsets = [%n, 0], sizes = [4, 8] : !pto.tensor_view<?x8xf32> "
        "-> !pto.partition_tensor_view<4x8xf32>\n"
        "pto.tload ins(%w : !pto.partition_tensor_view<4x8xf32>) outs(%t : !pto.tile<4x8xf32>)"
    ),
    "subset": "%s = pto.subset %t[%i, 4] sizes [2, 4] : !pto.tile<4x8xf32>",
    "pointers": (
        "%p = castptr %a : i64 -> !pto.ptr<f32, ub>\n%q = addptr %p, %n : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>"
    ),
    "flags": 'pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]\npto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID1"]\n'
    "pto.record_event [#pto.pipe_event_type<TLOAD>, #pto.event<EVENT_ID0>]\n"
    "pto.barrier <PIPE_ALL>\npto.sync.set <PIPE_V>, 3",
    "registers": (
        '%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>\n%v = pto.vlds %p[%i] {dist = "NORM"} : !pto.ptr<f32, ub> -> '
        "!pto.vreg<64xf32>\n%lo, %hi = pto.vintlv %v, %v : !pto.vreg<64xf32>, !pto.vreg<64xf32> -> !pto.vreg<64xf32>, "
        "!pto.vreg<64xf32>\npto.vsts %lo, %p[%i], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>"
    ),
    "queries": "%b = pto.get_block_idx\n%i = arith.index_cast %b : i64 to index\n%n = pto.get_block_num",
    "call-like": (
        "pto.tpush(%t, %p : !pto.tile<1x8xf32>, !pto.pipe) {split = 0}\n%e = pto.tpop {split = 1} -> !pto.tile<1x8xf32>"
    ),
    "sections": "pto.section.vector {\n  pto.barrier <PIPE_V>\n}\npto.section.cube {}",
    "groups": "pto.copy_in %g, %n, %n nburst(%n, %n) loop(%n, 4) nosat : !pto.ptr<f32>, i64, i64, i64, i64, i64",
    "literals": 'pto.thing 1, -2, 0.5, true, "a\\22b", @name, <word>, #pto.pipe<PIPE_V>, fast {k = 3 : i32, u}',
    "generic form": '"pto.tmov"(%x, %x) <{sizes = array<i32: 1, 1>}> : (i32, i32) -> ()',
    "loops": (
        "%c0 = arith.constant 0 : index\n%c4 = arith.constant 4 : index\n%c1 = arith.constant 1 : index\n"
        "scf.for %i = %c0 to %c4 step %c1 {\n  %x = arith.cmpi eq, %i, %c0 : index\n  scf.if %x {\n"
        "    pto.a\n  } else {\n"
        "    pto.b\n  }\n}\nscf.for %i = %c0 to %c4 step %c1 {\n  %x = arith.muli %i, %i : index\n"
        "  pto.use %x : index\n}"
    ),
}


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_what_is_printed_reads_back_as_the_same(text: str) -> None:
    module = parse_text(text, "k.pto")
    printed = to_text(module)
    again = parse_text(printed, "k.pto")
    assert module.is_structurally_equivalent(again)
    assert to_text(again) == printed


def printed(text: str) -> list[str]:
    return [line.strip() for line in to_text(parse_text(text, "k.pto")).splitlines()]


def test_the_second_writing_is_printed() -> None:
    assert printed(EXAMPLES["tile instruction"])[2:5] == [
        f"%y = pto.alloc_tile : {TILE}",
        f"pto.tadds ins(%x, %s : {TILE}, f32) outs(%y : {TILE})",
        f"pto.tadds ins(%y, %s : {TILE}, f32) outs(%x : {TILE})",
    ]


def test_manual_addresses_are_printed_as_level_three() -> None:
    lines = printed(EXAMPLES["manual addresses"])
    assert "%0 = arith.constant 64 : i64" in lines
    assert f"%1 = pto.tassign %y, %0 : {TILE} -> {TILE}" in lines


def test_structures_are_printed_as_ptoas_writes_them() -> None:
    alloc = printed(EXAMPLES["alloc"])[2]
    assert alloc.startswith("%t = pto.alloc_tile addr = %a valid_row = %n valid_col = %n : !pto.tile_buf<loc=vec")
    view, part = printed(EXAMPLES["views"])[2:4]
    assert view == (
        "%v = pto.make_tensor_view %g, shape = [%n, 8], strides = [8, 1] {layout = #pto.layout<nd>} "
        ": !pto.tensor_view<?x8xf32>"
    )
    assert part.startswith(
        "%w = pto.partition_view %v, offsets = [%n, 0], sizes = [4, 8] : !pto.tensor_view<?x8xf32> ->"
    )
    assert "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]" in printed(EXAMPLES["flags"])


def test_names_stay_and_clashes_get_new_ones() -> None:
    text = (
        "func.func @k(%c: i1) {\n  scf.if %c {\n    %30 = arith.constant 1 : i32\n    pto.use %30 : i32\n  } else {\n"
        "    %30 = arith.constant 2 : i32\n    pto.use %30 : i32\n  }\n  return\n}\n"
    )
    lines = printed(text)
    assert "%30 = arith.constant 1 : i32" in lines and "%v30_0 = arith.constant 2 : i32" in lines


def test_an_instruction_alone_can_be_printed() -> None:
    module = parse_text("pto.barrier <PIPE_ALL>\n")
    op = next(op for op in module.walk() if op.name == "pto.barrier")
    assert to_text(op) == "pto.barrier <PIPE_ALL>\n"
