"""TMATMUL and TGEMV, with an accumulator, with a bias: the cube.

Sources: pto-isa docs/isa/TMATMUL, TMATMUL_ACC, TMATMUL_BIAS, TGEMV and its kin; include/pto/npu/{a2a3,a5,cpu}/TMatmul.hpp;
asc-devkit C-API cube_compute/asc_mmad, which takes m, k and n and no distances: the boxes it works on lie packed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import A5, CHIPS, Asm, Choice, Definition, In, Operand, Out, tile_instruction
from ascsim.isa.rules import Rule, changed, finding, in_space, refuse
from ascsim.isa.semantics.matrix import multiply
from ascsim.isa.tile.boxes import ALIGNED, SIDE, STRIP, Grid, Order, grid_of, is_packed, order_of, up
from ascsim.isa.tile.cube_move import compact_modes
from ascsim.machine.core import Core, Finding, Touch
from ascsim.machine.dtypes import DType, bf16, f8e4m3, f8e5m2, f16, f32, hif8, i8, i32
from ascsim.machine.operands import Region, Tile
from ascsim.machine.trace import DONE_IN_ORDER, Kind, Mode
from ascsim.machine.words import BLayout, Pipe, SLayout, Space
from ascsim.profiles import Profile

_MOST = 4095
_LARGE = 10
"""Boxes of the result from which on products on pipe M follow each other without a barrier."""
_PLAIN = ((i8, i8, i32), (f16, f16, f32), (bf16, bf16, f32), (f32, f32, f32))
_BYTES = tuple((a, b, f32) for a in (f8e4m3, f8e5m2) for b in (f8e4m3, f8e5m2))
_TYPES: dict[str, tuple[tuple[DType, DType, DType], ...]] = {
    "a2a3": _PLAIN, "a5": (*_PLAIN, *_BYTES, (hif8, hif8, f32)), "cpu": _PLAIN,
}  # fmt: skip
"""(lhs, rhs, dst)."""
_BOXES = {"lhs": Order.NZ, "rhs": Order.ZN, "dst": Order.NZ}

CATALOGUE.add(
    "TMATMUL-ACC", Severity.ERROR, "The chip adds to dst, not to acc",
    "TMATMUL_ACC(dst, acc, lhs, rhs) adds to the tile `acc` by its page; the chips' libraries never look at `acc` and add to "
    "what `dst` holds.\n\n"
    "Give both the same address, or use the form with one accumulator.\n\n"
    "Example: TMATMUL_ACC(c, c, a, b).",
)  # fmt: skip


class AccPhase(IntEnum):
    """The phase of a product whose result is stored while it is made; the numbers of PTO's AccPhase."""

    Unspecified = 0
    Partial = 2
    Final = 3


def _sizes(definition: Any, call: SimpleNamespace, profile: Profile) -> tuple[int, int, int]:
    """m, k, n. A chip's product with a vector takes k from rhs."""
    if definition.takes_vector and profile.is_chip:
        return 1, call.rhs.valid_rows, call.rhs.valid_cols
    return call.lhs.valid_rows, call.lhs.valid_cols, call.rhs.valid_cols


def _across(tile: Tile) -> int:
    return STRIP // tile.dtype.size


def _grids(call: SimpleNamespace, profile: Profile, sizes: tuple[int, int, int]) -> dict[str, Grid]:
    """Where the operands' boxes lie: on chips packed, elsewhere as their tiles say."""
    m, k, n = sizes
    if not profile.is_chip:
        return {name: grid_of(getattr(call, name), profile) for name in ("lhs", "rhs", "dst")}
    inner = SIDE if call.lhs.dtype is f32 and (call.lhs.k_aligned or call.rhs.k_aligned) else _across(call.lhs)
    extents = {
        "lhs": (up(m, SIDE), up(k, inner if profile.name == "a2a3" else _across(call.lhs))),
        "rhs": (up(k, _across(call.rhs)), up(n, SIDE)),
        "dst": (up(m, SIDE), up(n, SIDE)),
    }
    return {name: _cube_grid(getattr(call, name), profile, extent) for name, extent in extents.items()}


def _cube_grid(tile: Tile, profile: Profile, extents: tuple[int, int]) -> Grid:
    """Packed boxes in the order in which a chip's cube takes them."""
    order = {Space.L0A: Order[profile.left_order], Space.L0B: Order.ZN, Space.L0C: Order.NZ}[tile.space]
    return Grid(tile.space, tile.address, tile.dtype.numpy, order, *extents)


# Rules


def _other_types(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    given = (call.lhs.dtype, call.rhs.dtype, call.dst.dtype)
    if given in _TYPES[profile.name]:
        return None
    listed = "; ".join(f"{a.name} by {b.name} to {c.name}" for a, b, c in _TYPES[profile.name])
    return f"multiplies {given[0].name} by {given[1].name} to {given[2].name}; {profile.name} takes {listed}"


def _with_other_types(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", dtype=f16)
    yield changed(call, "lhs", dtype=f16 if call.lhs.dtype is not f16 else f32)


def _types() -> Iterator[Rule]:
    for name, triples in _TYPES.items():
        said = "; ".join(f"{a.name} by {b.name} to {c.name}" for a, b, c in triples)
        yield refuse("L002", f"the types are {said}", _other_types, breaks=_with_other_types, profiles=(name,),
                     mend="Convert the operands, or accumulate in another type.")  # fmt: skip


def _other_boxes(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    for name, order in _BOXES.items():
        found = order_of(getattr(call, name))
        if found is not order and not (name == "lhs" and not profile.is_chip and found is Order.ZZ):
            return f"operand {name} is not {order.name}"
    return None


def _with_other_boxes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "rhs", blayout=BLayout.COL_MAJOR, slayout=SLayout.ROW_MAJOR)
    yield changed(call, "dst", fractal=512)


def _shapes_apart(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    lhs, rhs, dst = call.lhs, call.rhs, call.dst
    if (lhs.rows, lhs.cols, rhs.cols) == (dst.rows, rhs.rows, dst.cols):
        return None
    return f"lhs is {lhs.rows}x{lhs.cols}, rhs {rhs.rows}x{rhs.cols}, dst {dst.rows}x{dst.cols}"


def _with_shapes_apart(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "rhs", rows=call.rhs.rows * 2)


def _out_of_range(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    for name, number in zip("mkn", _sizes(definition, call, profile), strict=True):
        if not 1 <= number <= _MOST:
            return f"{name} is {number}; it must be 1 to {_MOST}"
    return None


def _made_out_of_range(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "rhs", valid_cols=0)
    yield changed(call, "rhs", cols=4096, valid_cols=4096)


def _short(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.rhs.valid_rows == call.lhs.valid_cols:
        return None
    k = _sizes(definition, call, profile)[1]
    return f"lhs has {call.lhs.valid_cols} valid columns and rhs {call.rhs.valid_rows} valid rows; k is {k}"


def _made_short(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "rhs", valid_rows=call.rhs.valid_rows - 1)


def _scattered(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    """Boxes that the cube takes to lie one behind the other, and do not: tiles with whole boxes that are not valid."""
    return _gaps(definition, call, profile) if call.lhs.dtype.size > 1 else None


def _scattered_bytes(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    """The same of 1-byte elements. TMOV packs those whose boxes turn: nearly always rhs, hardly ever lhs."""
    return _gaps(definition, call, profile) if call.lhs.dtype.size == 1 else None


def _gaps(definition: Any, call: SimpleNamespace, profile: Profile) -> str | None:
    lhs, rhs = call.lhs, call.rhs
    m, k, n = _sizes(definition, call, profile)
    packed = _grids(call, profile, (m, k, n))["lhs"]
    for name, tile, pitch, needed, alone in (
        ("lhs", lhs, *((lhs.cols, packed.cols, m <= SIDE) if profile.left_order == "ZZ"
                       else (lhs.rows, up(m, SIDE), k <= _across(lhs)))),
        ("rhs", rhs, rhs.cols, up(n, SIDE), k <= _across(rhs)),
    ):  # fmt: skip
        is_known = not definition.takes_vector if name == "lhs" else tile.dtype.size > 1
        if pitch != needed and not alone and not is_packed(tile) and is_known:
            by_rows = name == "rhs" or profile.left_order == "ZZ"
            lines, elements = ("rows", "columns") if by_rows else ("columns", "rows")
            return f"{lines} of boxes of {name} lie {pitch} {elements} apart; the cube takes them to lie {needed} apart"
    return None


def _made_scattered(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    wide = changed(call, "lhs", rows=64, cols=64, valid_rows=32, valid_cols=32)
    yield changed(wide, "rhs", rows=64, cols=64, valid_rows=32, valid_cols=32)


def _spread(definition: Any, call: SimpleNamespace, profile: Profile) -> str | None:
    m, _, n = _sizes(definition, call, profile)
    dst, written = call.dst, up(m, SIDE)
    if dst.rows == written or n <= SIDE or is_packed(dst):
        return None
    return f"dst has {dst.rows} rows, and columns of boxes of the result lie {written} apart, where m is {m}"


def _made_spread(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", rows=64)


def _made_scattered_bytes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    small = changed(changed(call, "lhs", rows=32, cols=96, valid_rows=32, valid_cols=64, dtype=i8), "dst", dtype=i32)
    if profile.left_order == "NZ":
        small = changed(small, "lhs", rows=32, valid_rows=16)
    if hasattr(call, "bias"):
        small = changed(small, "bias", dtype=i32)
    yield changed(small, "rhs", rows=96, cols=32, valid_rows=64, valid_cols=32, dtype=i8)


def _phased(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return f"phase is {int(call.phase)}: TSTORE follows box by box" if int(call.phase) else None


def _made_phased(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "phase": AccPhase.Final})


def _boxed(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.lhs.rows == 1:
        return None
    return f"lhs has {call.lhs.rows} rows; the cube takes the elements of the vector to lie one behind the other"


def _made_boxed(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "lhs", rows=16)


def _common(title: str, *results: str, takes_vector: bool = False) -> tuple[Rule, ...]:
    mend = "ascsim check FILE lists all such calls of a file."
    return (
        *_types(),
        in_space(Space.L0A, "lhs"),
        in_space(Space.L0B, "rhs"),
        in_space(Space.L0C, *results),
        refuse("L004", "lhs is NZ (cpu: or ZZ), rhs ZN, dst NZ of 1024-byte boxes", _other_boxes,
               breaks=_with_other_boxes, profiles=(*A5, "cpu"), mend="Use TileLeft, TileRight and TileAcc."),
        refuse("L007", "lhs has dst's rows and rhs its columns, lhs as many columns as rhs has rows", _shapes_apart,
               breaks=_with_shapes_apart, profiles=("cpu",), mend="Declare the tiles with one m, one k and one n."),
        compact_modes("lhs", "rhs", "dst"),
        refuse("L012", "phase is Unspecified", _phased, breaks=_made_phased, mend=mend),
        finding(f"{title}-1", "m, k and n are 1 to 4095", _out_of_range, breaks=_made_out_of_range, profiles=CHIPS,
                why="The library checks it in debug builds only; fields of the instruction have 12 bits, and with a zero in "
                "one of them nothing is done.",
                mend="Multiply in parts."),
        finding(f"{title}-2", "rhs has as many valid rows as lhs valid columns", _short, breaks=_made_short,
                severity=Severity.WARNING, why="k is the valid columns of lhs; the valid rows of rhs are not looked at.",
                mend="Give both tiles the same k."),
        finding(f"{title}-3", "lhs and rhs have no whole boxes that are not valid", _scattered, breaks=_made_scattered,
                profiles=CHIPS,
                why="The cube is given m, k and n, not the tiles' shapes: it takes the boxes to lie one behind the other, as "
                "many as m, k and n need. TMOV and TEXTRACT leave room for those that are not valid, but in compact tiles.",
                mend="Use TileLeftCompact and TileRightCompact, or tiles no larger than the boxes of their valid regions."),
        _lies_whole(title) if takes_vector else _lies_packed(title),
        finding(f"{title}-5", "dst has no whole boxes of rows beyond m", _spread, breaks=_made_spread, profiles=CHIPS,
                why="The cube packs its result as m needs; TSTORE takes the columns of boxes to lie as far apart as the tile "
                "is high, unless it is compact.",
                mend="Use TileAccCompact, or a tile no higher than the boxes of m rows."),
    )  # fmt: skip


def _lies_packed(title: str) -> Rule:
    return finding(
        f"{title}-4", "lhs of 1-byte elements has no whole boxes that are not valid", _scattered_bytes,
        breaks=_made_scattered_bytes, profiles=CHIPS, severity=Severity.WARNING,
        why="The cube takes the boxes to lie one behind the other. Only where they turned on the way (from a ZN tile) has "
        "TMOV packed them so.",
        mend="Use TileLeftCompact, or a tile no larger than the boxes of its valid region.",
    )  # fmt: skip


def _lies_whole(title: str) -> Rule:
    return finding(
        f"{title}-4", "lhs has one row", _boxed, breaks=_made_boxed, profiles=CHIPS,
        why="A product with a vector reads L0A as k elements one behind the other, not as boxes of 16 rows.",
        mend="Load the vector into a tile of one row without boxes, and move it to a TileLeft of one row.",
    )  # fmt: skip


class _Product:
    """What the three share; ``starts_with`` names the operand that the sum begins with."""

    starts_with = ""
    takes_vector = False
    notes: Sequence[str] = (
        "m, k and n are the valid rows and columns of lhs and the valid columns of rhs. On chips the boxes of all operands "
        "lie packed, as m, k and n make them: a tile with whole boxes that are not valid has to be a compact one.",
        "Chips compute whole boxes of dst: rows and columns beyond m and n are written too.",
        "A fair tolerance for floats is k * 2**-24 of the sum of the products' magnitudes.",
        "Two products that depend on each other need pipe_barrier(PIPE_M) between them where the first one's result has fewer "
        "than 10 whole 16x16 boxes.",
        "A2/A3: of float operands that are k-aligned (SetKAligned) L0A holds rows of a multiple of 16 elements.",
        "HF32 and TF32 modes are not implemented: float is multiplied as float.",
    )
    assumed: Sequence[str] = (
        "In what order a chip's cube adds, and how it rounds, no document tells. Here products are exact, sums are taken in "
        "double precision, and the result is rounded once to float. Integers wrap at 32 bits.",
    )
    sources: Sequence[str] = (
        "pto-isa docs/isa/TMATMUL, TMATMUL_ACC, TMATMUL_BIAS, TGEMV, TGEMV_ACC, TGEMV_BIAS",
        "pto-isa include/pto/npu/a2a3/TMatmul.hpp, include/pto/npu/a5/TMatmul.hpp, include/pto/cpu/TMatmul.hpp",
        "asc-devkit C-API cube_compute/asc_mmad; impl/adv_api matmul/stage/compute/mmad_compute.h: when a barrier is needed",
    )

    def row_fields(self: Any, core: Core, args: Sequence[Any]) -> tuple[int, int, int, int, int]:
        """The work is the boxes that are multiplied: 16 by 16 by 32 bytes. A large product needs no barrier behind it."""
        call = self.call(args)
        m, k, n = _sizes(self, call, core.profile)
        boxes = -(-m // SIDE) * -(-k // _across(call.lhs)) * -(-n // SIDE)
        is_large = m // SIDE * (n // SIDE) >= _LARGE
        return self.pipe, Kind.INSTRUCTION, 0, DONE_IN_ORDER if is_large else 0, boxes

    def element_type(self: Any, args: Sequence[Any]) -> DType:
        """That of lhs: what a product costs depends on it."""
        kind: DType = args[self._index["lhs"]].dtype
        return kind

    def touches(self: Any, core: Core, args: Sequence[Any]) -> list[Touch]:
        """dst; what the sum begins with; lhs and rhs."""
        call, profile = self.call(args), core.profile
        m, k, n = sizes = _sizes(self, call, profile)
        if not all(size & _MOST if profile.is_chip else size for size in sizes):  # a chip's fields have 12 bits
            return []
        numbers = {name: number for number, name in enumerate(self._names)}
        grids, high = _grids(call, profile, sizes), self._high(m, profile)

        def touch(name: str, mode: Mode, region: Region) -> Touch:
            return Touch(numbers[name], mode, region, ALIGNED[Space(region.space)])

        touched = [touch("dst", Mode.WRITE, grids["dst"].region(high, n))]
        if self.starts_with == "acc":
            name = "acc" if call.acc is not None and not profile.is_chip else "dst"
            start = replace(grids["dst"], address=getattr(call, name).address)
            touched.append(touch(name, Mode.READ, start.region(high, n)))
        elif self.starts_with == "bias":
            touched.append(touch("bias", Mode.READ, call.bias.region(1, n)))
        vector = Region(call.lhs.space, call.lhs.address, k * call.lhs.dtype.size, (), call.lhs.dtype.numpy)
        is_vector = self.takes_vector and profile.is_chip
        touched.append(touch("lhs", Mode.READ, vector if is_vector else grids["lhs"].region(high, k)))
        touched.append(touch("rhs", Mode.READ, grids["rhs"].region(k, up(n, SIDE))))
        return touched

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> Any:
        """The sum, in dst's boxes."""
        if not arrays:
            return ()
        m, k, n = sizes = _sizes(self, call, profile)
        grids = _grids(call, profile, sizes)
        high, wide = self._high(m, profile), up(n, SIDE)
        *started, left, right = arrays
        start = None
        if self.starts_with == "acc":
            start = grids["dst"].matrix(started[0], high, wide)
        elif self.starts_with == "bias":
            start = np.zeros(wide, started[0].dtype)
            start[:n] = started[0].reshape(-1)
        lhs = left.reshape(1, k) if self.takes_vector and profile.is_chip else grids["lhs"].matrix(left, high, k)
        rhs = grids["rhs"].matrix(right, k, wide)
        return grids["dst"].boxed(multiply(lhs, rhs, start, call.dst.dtype.numpy))

    def _high(self, m: int, profile: Profile) -> int:
        """Rows of the result that are written."""
        return up(m, SIDE) if profile.is_chip and not self.takes_vector else m


_DST = Out("dst", lies_in=(Space.L0C,), doc="m by n")
_LHS = In("lhs", lies_in=(Space.L0A,), doc="m by k")
_RHS = In("rhs", lies_in=(Space.L0B,), doc="k by n")
_VECTOR = In("lhs", lies_in=(Space.L0A,), doc="1 by k")
_VECTOR_NOTES = (
    "On chips L0A holds the vector as k elements one behind the other, and k is the valid rows of rhs. One row of dst is "
    "written, in boxes of 16 rows as ever.",
    "The portable form is that of TMATMUL.",
    *_Product.notes[2:],
)
_PHASE = Choice("phase", AccPhase, optional=True, default=AccPhase.Unspecified, doc="Unspecified")


def _operands(*first: Operand) -> tuple[Operand, ...]:
    return (_DST, *first, _PHASE)


@tile_instruction("tgemv", pipe=Pipe.M, core="aic", cpp_templates=("phase",))
class TGemv(_Product):
    """Multiply a vector by a matrix: dst = lhs * rhs."""

    operands = _operands(_VECTOR, _RHS)
    takes_vector = True
    rules = _common("TGEMV", "dst", takes_vector=True)
    notes = _VECTOR_NOTES


class _Sum(_Product):
    """What the two that add to an accumulator share."""

    starts_with = "acc"
    notes = (*_Product.notes, "Chips add to dst, wherever acc lies.")
    warns = ("TMATMUL-ACC",)

    def observe(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> Sequence[Finding]:
        """acc lies elsewhere than dst."""
        call = self.call(args)
        if not core.profile.is_chip or call.acc is None or call.acc.address == call.dst.address:
            return ()
        acc, dst = call.acc.address, call.dst.address
        headline = f"{self.title}: acc lies at {acc:#x} of L0C and dst at {dst:#x}; the chip adds to dst"
        mend = "Give both the same address, or use the form with one accumulator."
        return (Finding("TMATMUL-ACC", Severity.ERROR, headline, (), mend),)


@tile_instruction("tmatmul", pipe=Pipe.M, core="aic", cpp_templates=("phase",))
class TMatmul(_Product):
    """Multiply two matrices: dst = lhs * rhs."""

    operands = _operands(_LHS, _RHS)
    rules = _common("TMATMUL", "dst")


@tile_instruction("tmatmul_acc", pipe=Pipe.M, core="aic", cpp_templates=("phase",), asm=(Asm("tmatmul.acc"),))
class TMatmulAcc(_Sum):
    """Multiply two matrices and add: dst = acc + lhs * rhs. Without acc: dst = dst + lhs * rhs."""

    operands = _operands(
        In("acc", lies_in=(Space.L0C,), optional=True, doc="what the product is added to; dst where not given"), _LHS, _RHS,
    )  # fmt: skip
    rules = _common("TMATMUL_ACC", "dst", "acc")


@tile_instruction("tgemv_acc", pipe=Pipe.M, core="aic", cpp_templates=("phase",), asm=(Asm("tgemv.acc"),))
class TGemvAcc(_Sum):
    """Multiply a vector by a matrix and add: dst = acc + lhs * rhs."""

    operands = _operands(
        In("acc", lies_in=(Space.L0C,), shares="dst", doc="what the product is added to"), _VECTOR, _RHS
    )
    takes_vector = True
    rules = _common("TGEMV_ACC", "dst", "acc", takes_vector=True)
    notes = (*_VECTOR_NOTES, "Chips add to dst, wherever acc lies.")


def _other_bias(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    bias, dst = call.bias, call.dst
    return None if bias.dtype is dst.dtype else f"bias has type {bias.dtype.name}, dst {dst.dtype.name}"


def _with_other_bias(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "bias", dtype=f16)


def _many_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.bias.rows == 1 and call.bias.is_row_major:
        return None
    return f"bias is {call.bias.rows}x{call.bias.cols}; it is one row, row-major without boxes"


def _made_many_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "bias", rows=2)


def _bias_rules() -> tuple[Rule, ...]:
    return (
        in_space(Space.BT, "bias"),
        refuse("L003", "bias has the element type of dst", _other_bias, breaks=_with_other_bias,
               mend="Declare the Bias tile with the accumulator's type; TMOV converts half."),
        refuse("L007", "bias has one row", _many_rows, breaks=_made_many_rows, mend="Declare it 1 x n, row-major."),
    )  # fmt: skip


_BIAS = In("bias", lies_in=(Space.BT,), doc="1 by n")


@tile_instruction("tmatmul_bias", pipe=Pipe.M, core="aic", cpp_templates=("phase",), asm=(Asm("tmatmul.bias"),))
class TMatmulBias(_Product):
    """Multiply two matrices and add a row to each row of the result: dst = lhs * rhs + bias."""

    operands = _operands(_LHS, _RHS, _BIAS)
    starts_with = "bias"
    rules = (*_common("TMATMUL_BIAS", "dst"), *_bias_rules())


@tile_instruction("tgemv_bias", pipe=Pipe.M, core="aic", cpp_templates=("phase",), asm=(Asm("tgemv.bias"),))
class TGemvBias(_Product):
    """Multiply a vector by a matrix and add a row: dst = lhs * rhs + bias."""

    operands = _operands(_VECTOR, _RHS, _BIAS)
    starts_with = "bias"
    takes_vector = True
    rules = (*_common("TGEMV_BIAS", "dst", takes_vector=True), *_bias_rules())
    notes = _VECTOR_NOTES
