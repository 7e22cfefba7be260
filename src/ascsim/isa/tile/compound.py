"""Lane-wise tile instructions of several operations: TAXPY, TMULADDDST, TFUSEDMULADD, TPRELU, TRSQRT, TADDC and their kin.

Each rounds where its profile's library does. Sources: pto-isa docs/isa (the page of each); include/pto/npu/a2a3 and a5
TAxpy.hpp, TMulAddDst.hpp, TFusedMulAdd.hpp, TFusedMulAddRelu.hpp, TPrelu.hpp, TUnaryOp.hpp, TRsqrt.hpp; include/pto/cpu
ElementOp.h, TBinSOps.hpp, TRSqrt.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import (
    A2A3,
    CHIPS,
    Definition,
    In,
    InOut,
    Operand,
    Out,
    Scalar,
    Scratch,
    tile_instruction,
)
from ascsim.isa.rules import (
    Rule,
    dtype,
    finding,
    in_space,
    refuse,
    row_major,
    same_dtype,
    same_valid_shape,
    unchecked_valid_shape,
)
from ascsim.isa.semantics import arithmetic, functions
from ascsim.isa.sync import pipe_barrier
from ascsim.isa.tile.compare import CmpMode, TCmpS, TSel
from ascsim.isa.tile.elementwise import (
    EVERY,
    FLOATS,
    FLUSHED,
    WRITTEN,
    Types,
    changed,
    element_of,
    flushing,
    precision_operand,
    tmul,
)
from ascsim.machine.core import Core, Finding, Group, Step, Touch
from ascsim.machine.dtypes import DType, f16, f32, i32, u8
from ascsim.machine.operands import Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import NAMES, Profile

_BLOCK_BYTES = 32


@dataclass(frozen=True)
class Run:
    """What the functions of the table know of a call."""

    call: SimpleNamespace
    profile: Profile

    @property
    def kind(self) -> DType:
        """The element type of dst."""
        kind: DType = self.call.dst.dtype
        return kind

    def rounded(self, value: np.ndarray) -> np.ndarray:
        """A value as an element of dst, in the type that is worked in."""
        return value.astype(self.kind.numpy).astype(value.dtype) if self.kind.is_narrow_float else value

    def flushing(self, operation: str, function: Callable[..., np.ndarray], *given: np.ndarray) -> np.ndarray:
        """The rounded result; zeros stand for subnormals where the profile says so."""
        return self.rounded(flushing(function, given, operation, self.call, self.profile))


@dataclass(frozen=True)
class Compound:
    """One row of the table. ``form`` names the inputs, ``dst`` among them where its old elements count.

    ``tmp_holds`` gives what the library puts at the beginning of tmp. ``strict``: the A2/A3 return at once where shapes
    differ. ``more`` are further members of the definition's class.
    """

    name: str
    does: str
    form: str
    of: Callable[..., np.ndarray]
    types: Types = FLOATS
    cpu: Types = FLOATS
    profiles: Sequence[str] = NAMES
    precision: str = ""
    rules: tuple[Rule, ...] = ()
    tmp: Operand | None = None
    tmp_holds: Callable[[Run], np.ndarray | None] | None = None
    strict: bool = False
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    headers: str = ""
    more: tuple[tuple[str, Any], ...] = ()


def _operands(row: Compound, mixed: bool) -> tuple[Operand, ...]:
    names = row.form.split()
    made: list[Operand] = [InOut("dst", dtype="T") if "dst" in names else Out("dst", dtype="T")]
    for name in names:
        if name == "scalar":
            made.append(Scalar("scalar", "S" if mixed else "T", doc="converted to the element type first"))
        elif name != "dst":
            made.append(In(name, dtype="S" if mixed else "T"))
    if row.tmp is not None:
        made.append(row.tmp)
    if row.precision:
        made.append(precision_operand(row.precision))
    return tuple(made)


def define(row: Compound, mixed: bool = False) -> Any:
    """The registered instruction of a row; ``mixed``: the sources may have another type than dst."""
    names = row.form.split()
    tiles = ("dst", *(n for n in names if n not in ("scalar", "dst")))
    title = row.name.upper()
    of_chips = tuple(p for p in CHIPS if p in row.profiles)
    by_profile = {p: row.cpu if p == "cpu" else row.types for p in row.profiles}
    why = "The library works on what is valid in dst."
    if row.strict:
        why = "The A5's library works on what is valid in dst; the A2/A3's returns and writes nothing."
    rules = [
        dtype("dst", **by_profile),
        *(() if mixed else (same_dtype(*tiles),)),
        row_major(*tiles),
        in_space(Space.UB, *tiles, *(("tmp",) if row.tmp is not None else ())),
        same_valid_shape(*tiles, profiles=("cpu",)),
        *((unchecked_valid_shape(f"{title}-1", *tiles, why=why, profiles=of_chips),) if of_chips else ()),
        *row.rules,
    ]

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of dst in all."""
        shape = call.dst.valid_rows, call.dst.valid_cols
        given = [getattr(call, n) for n in tiles]
        if row.strict and profile.name == "a2a3" and any((t.valid_rows, t.valid_cols) != shape for t in given):
            return []
        if not all(shape):
            return []
        numbers = {o.name: n for n, o in enumerate(self.inputs)}
        read = [(numbers[n], int(Mode.READ), getattr(call, n).region(*shape)) for n in names if n != "scalar"]
        touched = [*read, (0, int(Mode.WRITE), call.dst.region(*shape))]
        held = row.tmp_holds(Run(call, profile)) if row.tmp_holds else None
        if held is not None:
            place = Region(call.tmp.space, call.tmp.address, held.nbytes, (), held.dtype)
            touched.append((numbers["tmp"], int(Mode.WRITE), place))
        return touched

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The results."""
        if not arrays:
            return ()
        read, given = iter(arrays), []
        for name in names:
            if name == "scalar":
                kind: DType = call.src.dtype if mixed else call.dst.dtype
                element = element_of(call.scalar, kind.numpy)
                given.append(element.astype(np.float32) if kind.is_narrow_float else element)
            else:
                given.append(next(read))
        with np.errstate(all="ignore"):
            result = row.of(Run(call, profile), *given)
        held = row.tmp_holds(Run(call, profile)) if row.tmp_holds else None
        return (result,) if held is None else (result, held)

    members: dict[str, Any] = {
        "__doc__": row.does, "operands": _operands(row, mixed), "rules": tuple(rules), "values": "widen", "over": "dst",
        "regions": regions, "compute": compute, "notes": (*row.notes, WRITTEN), "assumed": row.assumed,
        "sources": (f"pto-isa docs/isa/{title}", f"pto-isa include/pto: {row.headers}"), **dict(row.more),
    }  # fmt: skip
    return tile_instruction(
        row.name, pipe=Pipe.V, profiles=row.profiles, cpp_templates=("precision",) if row.precision else ()
    )(type(title, (), members))


# A product and a sum


def _multiply_add(run: Run, a: np.ndarray, b: np.ndarray, c: np.ndarray, once: bool = False) -> np.ndarray:
    """``a * b + c``: on the chips with one rounding (half on the A2/A3: with two), on cpu with two."""
    if once or (run.profile.is_chip and not (run.profile.name == "a2a3" and run.kind is f16)):
        a, b, c = np.broadcast_arrays(a, b, c)
        return functions.multiply_add(a, b, c, run.kind.is_narrow_float)
    return run.rounded(a * b) + c


_FUSED = (
    "The chips round once, as the page of vmadd says of that; half on the A2/A3 twice: rounded once, two of the public tests "
    "of TAXPY and one of TFUSEDMULADDRELU, which compare bits, would fail."
)
_TWICE = "cpu, and the A2/A3 for half: the product is rounded, then the sum."
define(Compound("tmuladddst", "Add the product of two tiles to dst.", "dst src0 src1",
                lambda run, c, a, b: _multiply_add(run, a, b, c), notes=(_TWICE,), assumed=(_FUSED,),
                headers="TMulAddDst.hpp, cpu/ElementOp.h"))  # fmt: skip
define(Compound("tfusedmuladd", "Multiply dst by src0 and add src1.", "dst src0 src1",
                lambda run, c, a, b: _multiply_add(run, a, c, b, once=run.profile.name == "cpu"),
                notes=("cpu rounds once, the A2/A3 half twice: the product, then the sum.",), assumed=(_FUSED,),
                headers="TFusedMulAdd.hpp, cpu/ElementOp.h"))  # fmt: skip
define(Compound("tfusedmuladdrelu", "Multiply dst by src0 and add src1; 0 in place of what is below 0.", "dst src0 src1",
                lambda run, c, a, b: arithmetic.relu(_multiply_add(run, a, c, b)), notes=(_TWICE,), assumed=(_FUSED,),
                headers="TFusedMulAddRelu.hpp, cpu/ElementOp.h"))  # fmt: skip
define(Compound("tsubrelu", "Subtract src1 from src0; 0 in place of what is below 0.", "src0 src1",
                lambda run, a, b: arithmetic.relu(a - b), headers="TSubRelu.hpp, cpu/ElementOp.h"))  # fmt: skip


def _other_source(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst.dtype, call.src.dtype
    return None if src is dst or (dst, src) == (f32, f16) else f"src has type {src.name}, dst {dst.name}"


define(Compound(
    "taxpy", "Multiply a tile by a number and add it to dst.", "dst src scalar",
    lambda run, y, x, a: _multiply_add(run, x, a, y), strict=True, notes=(_TWICE,), assumed=(_FUSED,),
    rules=(refuse("L003", "src has the type of dst, or is half where dst is float", _other_source,
                  breaks=lambda call, profile: iter((changed(call, "src", dtype=i32),))),),
    headers="TAxpy.hpp, cpu/TBinSOps.hpp",
), mixed=True)  # fmt: skip


# One over the root


def _reciprocal_root(run: Run, a: np.ndarray) -> np.ndarray:
    in_two_steps = run.profile.name == "a5" or (run.profile.name == "a2a3" and run.call.tmp is not None)
    if not in_two_steps:
        return (1.0 / np.sqrt(a.astype(np.float64))).astype(np.float32)
    root = run.flushing("sqrt", arithmetic.square_root, a)
    return run.flushing("div", lambda b: np.float32(1) / b, root)


def _ones(run: Run) -> np.ndarray | None:
    """What the A2/A3 divide: a block of ones, in tmp."""
    if run.profile.name != "a2a3" or run.call.tmp is None:
        return None
    return np.ones(_BLOCK_BYTES // run.kind.size, run.kind.numpy)


define(Compound(
    "trsqrt", "One over the square root of each element.", "src", _reciprocal_root, precision="RsqrtAlgorithm", tmp_holds=_ones,
    tmp=Scratch("tmp", optional=True, used_on=A2A3, doc="of the A2/A3: 32 bytes, for a division by the root"),
    notes=(
        FLUSHED,
        "The A5, and the A2/A3 with tmp, divide 1 by the root, which is rounded first; the others round once.",
    ),
    assumed=("The A2/A3's vrsqrt, computed in float64 and rounded once: a chip's is an approximation.",),
    headers="TUnaryOp.hpp, TRsqrt.hpp, cpu/TRSqrt.hpp",
))  # fmt: skip


# A slope for each element


def _no_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "has no tmp, which the A2/A3 need" if call.tmp is None else None


def needs_tmp() -> Rule:
    """The A2/A3 have no form without tmp; assembly may leave it out elsewhere."""
    return refuse("L009", "tmp is given", _no_tmp, profiles=A2A3, mend="Give it a tile for working space.",
                  breaks=lambda call, profile: iter((SimpleNamespace(**{**vars(call), "tmp": None}),)))  # fmt: skip


def _prelu(run: Run, a: np.ndarray, slope: np.ndarray) -> np.ndarray:
    if run.profile.name == "a5":
        return arithmetic.leaky_relu(a, slope)
    return np.where(a > 0, a, a * slope)


def _mask_rows(call: SimpleNamespace) -> int:
    return int(call.dst.valid_rows * call.tmp.row_bytes)


def _prelu_steps(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group] | None:
    """TMUL, TCMPS, TSEL with barriers between them on the A2/A3."""
    if profile.name != "a2a3":
        return None
    after = Tile(u8, 1, _BLOCK_BYTES, 1, _BLOCK_BYTES, call.tmp.address + _mask_rows(call), name=call.tmp.name)
    made: list[tuple[Any, tuple[Any, ...]]] = [
        (tmul, (call.dst, call.src0, call.src1)),
        (TCmpS, (call.tmp, call.src0, 0, CmpMode.GT)),
        (TSel, (call.dst, call.tmp, call.src0, call.dst, after)),
    ]
    groups = []
    for number, (instruction, args) in enumerate(made):
        if number:
            groups.append(Group([Step(pipe_barrier, (Pipe.V,))]))
        groups.append(Group([Step(instruction, args)]))
    return iter(groups)


def _prelu_in_place(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
    """Whether dst lies where src0 does, and cannot."""
    call = self.call(args)
    if core.profile.name != "a2a3" or call.dst.address != call.src0.address:
        return []
    said = f"{self.title}: dst and src0 lie in one place; dst is filled before src0 is read"
    return [Finding("TILE-INPLACE", Severity.ERROR, said, (), "Write to another tile.")]


def _no_bytes(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return None if call.tmp.dtype is u8 else f"tmp has type {call.tmp.dtype.name}, not u8"


def _small_mask(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    needed = _mask_rows(call) + _BLOCK_BYTES
    if call.tmp.nbytes >= needed and call.tmp.row_bytes * 8 >= call.dst.valid_cols:
        return None
    return f"tmp is {call.tmp.rows}x{call.tmp.cols}: {call.dst.valid_rows} rows of bits and 32 bytes behind them do not fit"


define(Compound(
    "tprelu", "Multiply what is below 0 by the element of src1.", "src0 src1", _prelu,
    tmp=Scratch("tmp", optional=True, cpp_given=True, used_on=A2A3,
                doc="of the A2/A3: bytes, a row of bits for each of dst and one row more"),
    rules=(
        needs_tmp(),
        refuse("L002", "tmp has bytes", _no_bytes, profiles=A2A3,
               breaks=lambda call, profile: iter((changed(call, "tmp", dtype=f32),))),
        finding("TPRELU-2", "tmp has a row of bits for each row of dst, and a row more", _small_mask, profiles=A2A3,
                breaks=lambda call, profile: iter((changed(call, "tmp", rows=call.dst.valid_rows),)),
                why="The library checks it in debug builds only.", mend="Give tmp one row more than dst has."),
    ),
    notes=(
        "The A2/A3 multiply all, compare src0 with 0 into tmp, and select: dst cannot be src0.",
        "The A5 multiplies -0 and keeps +0; the A2/A3 and cpu multiply both.",
    ),
    headers="TPrelu.hpp, cpu/ElementOp.h",
    more=(("expand", _prelu_steps), ("observe", _prelu_in_place), ("warns", ("TILE-INPLACE",))),
))  # fmt: skip


# Three terms, on cpu


_TERMS: tuple[tuple[str, str, str, Callable[..., np.ndarray]], ...] = (
    ("taddc", "Add three tiles.", "src0 src1 src2", lambda run, a, b, c: run.rounded(a + b) + c),
    ("tsubc", "Subtract src1 from src0 and add src2.", "src0 src1 src2", lambda run, a, b, c: run.rounded(a - b) + c),
    ("taddsc", "Add two tiles and a number.", "src0 scalar src1", lambda run, a, s, b: run.rounded(a + s) + b),
    (
        "tsubsc",
        "Subtract a number from src0 and add src1.",
        "src0 scalar src1",
        lambda run, a, s, b: run.rounded(a - s) + b,
    ),
)
for _name, _does, _form, _of in _TERMS:
    define(Compound(_name, _does, _form, _of, cpu=(*EVERY,), profiles=("cpu",), headers="cpu/ElementOp.h",
                    notes=("The chips' library has no such function.", "Narrow floats are rounded twice.")))  # fmt: skip
