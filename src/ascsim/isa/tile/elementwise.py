"""Lane-wise tile instructions: arithmetic, bits, shifts and functions of one tile, of two, of a tile and a number.

One row of the table is one instruction. Sources: pto-isa docs/isa (the page of each); include/pto/npu/a2a3 TBinOp.hpp,
TBinSOp.hpp, TUnaryOp.hpp, TBitwiseSOp.hpp, TDivS.hpp; include/pto/npu/a5 the same, Int64Binary.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import (
    A2A3,
    A5,
    CHIPS,
    Asm,
    Choice,
    Definition,
    In,
    Operand,
    Out,
    Scalar,
    Scratch,
    TileInstruction,
    tile_instruction,
)
from ascsim.isa.lanewise import Code, LaneByLane
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
from ascsim.machine.core import Core, Finding, Group, Step, Touch
from ascsim.machine.dtypes import DType, bf16, f16, f32, i8, i16, i32, i64, u8, u16, u32, u64
from ascsim.machine.operands import Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, SLayout, Space
from ascsim.profiles import NAMES, Profile

Types = tuple[DType, ...]
FOUR: Types = (f32, f16, i32, i16)
FLOATS: Types = (f32, f16)
EVERY: Types = (f32, f16, bf16, i32, u32, i16, u16, i8, u8, i64, u64)
MULTIPLIED: Types = (f32, f16, bf16, i32, u32, i16, u16, i64, u64)
DIVIDED: Types = (f32, f16, i32, u32, i16, u16, i64, u64)
BITS: Types = (i32, u32, i16, u16, i8, u8)
SHIFTED: Types = (*BITS, i64, u64)
HALVES_TOO: Types = (*BITS, f16, bf16)
"""What the chips' TAND and TOR take, which ask for no type; the documentation tells of integers."""
COUNTED: Types = (i32, u32, i16, u16)

_SMALLEST = {f32: np.float32(2.0**-126), f16: np.float32(2.0**-14), bf16: np.float32(2.0**-126)}
"""The smallest number of each type that is not subnormal."""
WORDS_OF_INT64 = 64
"""How many 64-bit elements of a row the A5's library works on where an operand is a number."""

ROUNDED = (
    "Float results are rounded once, to nearest even; beyond the range of the type they are infinite. Integers wrap."
)
WRITTEN = "The valid region of dst is written and no other byte."
SUBNORMALS = "Half and bfloat16 results keep subnormals; no page says that a chip flushes them."
ROOTS = (
    "Computed in float64 and rounded once. Chips differ by one unit in the last place (asc-devkit: 1 ulp; half as good "
    "as half allows).",
)
FLUSHED = (
    "The A5 takes subnormals as 0 and gives 0 for them, unless the template argument says HIGH_PRECISION; the A2/A3 and "
    "cpu keep them and take no notice of it."
)

CATALOGUE.add(
    "TILE-INPLACE", Severity.ERROR, "In place, where the A2/A3's library cannot",
    "The A2/A3's library makes this instruction of several, of which the first fills dst before src has been read. With "
    "src and dst in one place it works on what it has just written. ascsim does what the library does.\n\n"
    "Write to another tile.",
)  # fmt: skip


@dataclass(frozen=True)
class Lanes:
    """One row of the table: an instruction on lanes.

    ``form`` names the inputs: tiles, ``scalar``. ``of_floats`` stands in for ``of`` where the elements are floats.
    ``once`` says that the A5 work on the first 64 elements of 64 bits of a row, ``strict`` that the A2/A3 return at once
    where shapes differ, ``in_words`` that they work on 8-bit elements in pairs, ``fills_first`` that they fill dst
    before they read src. ``flushed`` is what the profile calls the operation in ``subnormals_flushed``, ``precision`` the
    enumeration of its template argument. ``steps(call)`` are what the A2/A3's library makes of it, one after the other
    with barriers between them; ``tmp`` documents the scratch tile that its C++ form has.
    """

    name: str
    does: str
    form: str
    of: Callable[..., Any]
    a2a3: Types = ()
    a5: Types = ()
    cpu: Types = EVERY
    values: str = "widen"
    of_floats: Callable[..., Any] | None = None
    flushed: str = ""
    precision: str = ""
    strict: bool = False
    once: bool = False
    in_words: bool = False
    steps: Callable[[SimpleNamespace], list[tuple[TileInstruction, tuple]]] | None = None
    tmp: str = ""
    fills_first: bool = False
    rules: tuple[Rule, ...] = ()
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    headers: str = ""
    asm: tuple[Asm, ...] | None = None
    profiles: Sequence[str] = field(default=NAMES)


def element_of(value: Any, kind: np.dtype) -> np.ndarray:
    """A number as an element, as C++ converts it: integers keep their low bits, floats are rounded to nearest even."""
    if kind.kind in "iu":
        bits = int(value) & ((1 << (8 * kind.itemsize)) - 1)
        return np.array(bits, np.uint64).astype(f"u{kind.itemsize}").view(kind)
    with np.errstate(over="ignore"):
        return np.array(value, np.float64).astype(kind)


# Rules


def changed(call: SimpleNamespace, name: str, **changes: Any) -> SimpleNamespace:
    """The call with another tile in place of one."""
    return SimpleNamespace(**{**vars(call), name: replace(getattr(call, name), **changes)})


def _other_layout(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    for name in ("dst", "src"):
        tile = getattr(call, name)
        if not tile.is_row_major and (tile.slayout != SLayout.NONE_BOX or tile.cols != 1):
            return f"operand {name} is neither row-major nor one column"
    return None if call.dst.blayout == call.src.blayout else "dst and src have two layouts"


def _with_other_layout(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", blayout=BLayout.COL_MAJOR)
    yield changed(call, "src", slayout=SLayout.ROW_MAJOR)
    yield changed(call, "dst", blayout=BLayout.COL_MAJOR, cols=1, valid_cols=1)


SAME_LAYOUT = refuse(
    "L004", "dst and src are row-major without boxes, or columns of a column-major tile", _other_layout,
    breaks=_with_other_layout, mend="Declare the tiles with BLayout::RowMajor and SLayout::NoneBox.",
)  # fmt: skip


def _boxed(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return None if call.dst.slayout == SLayout.NONE_BOX else "operand dst has boxes"


NO_BOXES = refuse(
    "L004", "dst has no boxes", _boxed, mend="Declare the tile with SLayout::NoneBox.",
    breaks=lambda call, profile: iter((changed(call, "dst", slayout=SLayout.ROW_MAJOR),)),
)  # fmt: skip
IN_UB_OR_L1 = refuse(
    "L005", "dst lies in UB or L1",
    lambda definition, call, profile: (
        None if call.dst.space in (Space.UB, Space.L1) else f"operand dst lies in {Space(call.dst.space).name}"
    ),
    breaks=lambda call, profile: iter((changed(call, "dst", space=Space.L0A),)),
)  # fmt: skip
NOT_L1 = refuse(
    "L012", "dst does not lie in L1", lambda definition, call, profile: "fills in L1" if call.dst.space == Space.L1 else None,
    breaks=lambda call, profile: iter((changed(call, "dst", space=Space.L1),)),
    mend="ascsim check FILE lists all such calls of a file.",
)  # fmt: skip


def beyond_64(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    """What is wrong with rows of more than 64 elements of 64 bits."""
    tile = call.src if hasattr(call, "src") else call.src0
    governing = call.dst if definition.over == "dst" else tile  # type: ignore[attr-defined]
    if tile.dtype.size != 8 or governing.valid_cols <= WORDS_OF_INT64:
        return None
    return f"rows have {governing.valid_cols} elements of 64 bits, of which the library works on the first 64"


def with_128_wide(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    """The call with rows of 128 elements of 64 bits."""
    tiles = [n for n, v in vars(call).items() if isinstance(v, Tile) and n not in ("tmp", "mask")]
    for name in tiles:
        kind = u8 if name == "dst" and hasattr(call, "cmp_mode") else i64
        call = changed(call, name, dtype=kind, cols=128, valid_cols=128)
    yield call


def first_64(code: str) -> Rule:
    """The A5's library works on the first 64 elements of 64 bits of a row."""
    return finding(
        code, "rows of 64-bit elements have at most 64", beyond_64, breaks=with_128_wide, profiles=A5,
        why="Where an operand is a number or a mask the A5's library loads 512 bytes of a row, once.",
        mend="Work on tiles of at most 64 columns, or on 32-bit elements.",
    )  # fmt: skip


# The table


_PRECISIONS: dict[str, type[IntEnum]] = {}


def precision_operand(name: str, effect: str = "the A5 keeps subnormals") -> Operand:
    """The template argument DEFAULT or HIGH_PRECISION of the enumeration ``name``; ``effect`` is what the latter does."""
    if name not in _PRECISIONS:
        enumeration: Any = IntEnum
        _PRECISIONS[name] = enumeration(name, {"DEFAULT": 0, "HIGH_PRECISION": 1})
    doc = f"HIGH_PRECISION: {effect}"
    return Choice("precision", _PRECISIONS[name], optional=True, default=0, cpp_any=True, doc=doc)


def _operands(row: Lanes) -> tuple[Operand, ...]:
    made: list[Operand] = [Out("dst", dtype="T")]
    for name in row.form.split():
        if name == "scalar":
            made.append(Scalar("scalar", "T", doc="converted to the element type first"))
        else:
            made.append(In(name, dtype="T"))
    if row.tmp:
        made.append(Scratch("tmp", optional=True, cpp_given=True, used_on=A2A3, doc=row.tmp))
    if row.precision:
        made.append(precision_operand(row.precision))
    return tuple(made)


def _why(row: Lanes) -> str:
    if row.strict:
        return "The A5's library works on what is valid in dst; the A2/A3's returns and writes nothing."
    return "The library works on what is valid in dst."


def _rules(row: Lanes) -> tuple[Rule, ...]:
    tiles = ("dst", *(n for n in row.form.split() if n != "scalar"))
    by_profile = {n: t for n, t in (("a2a3", row.a2a3), ("a5", row.a5), ("cpu", row.cpu)) if n in row.profiles}
    layout = SAME_LAYOUT if "scalar" in row.form and len(tiles) == 2 else row_major(*tiles)
    of_chips = tuple(p for p in CHIPS if p in row.profiles)
    made = [dtype("dst", **by_profile)]
    if len(tiles) == 1:
        made += [IN_UB_OR_L1, NOT_L1, NO_BOXES]
    else:
        made += [same_dtype(*tiles), layout, in_space(Space.UB, *tiles, *(("tmp",) if row.tmp else ()))]
    if len(tiles) > 1:
        made.append(same_valid_shape(*tiles, profiles=("cpu",)))
        if of_chips:
            made.append(unchecked_valid_shape(f"{row.name.upper()}-1", *tiles, why=_why(row), profiles=of_chips))
    if row.once:
        made.append(first_64(f"{row.name.upper()}-2"))
    return (*made, *row.rules)


def _width(row: Lanes, call: SimpleNamespace, profile: Profile) -> int:
    """Columns that are worked on."""
    dst, cols = call.dst, call.dst.valid_cols
    if row.in_words and profile.name == "a2a3" and dst.dtype.size == 1:
        return int(cols + cols % 2)
    limited = row.once and dst.dtype.size == 8 and profile.name == "a5"
    return int(min(cols, WORDS_OF_INT64) if limited else cols)


def define(row: Lanes) -> TileInstruction:
    """The registered instruction of a row."""
    codes: dict[tuple[DType, bool], Code] = {}
    inputs = row.form.split()
    tiles = ["dst", *(n for n in inputs if n != "scalar")]

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of dst in all."""
        shape = call.dst.valid_rows, call.dst.valid_cols
        given = [getattr(call, name) for name in tiles]
        if row.strict and profile.name == "a2a3" and any((t.valid_rows, t.valid_cols) != shape for t in given):
            return []
        rows, cols = shape[0], _width(row, call, profile)
        numbers = {o.name: n for n, o in enumerate(self.inputs)}
        return [
            (numbers[name], int(Mode.READ if n else Mode.WRITE), tile.region(rows, cols))
            for n, (name, tile) in enumerate(zip(tiles, given, strict=True))
        ]

    def computation(self: Any, call: SimpleNamespace, profile: Profile) -> Callable[..., Any]:
        """The operation on the elements, and on the number as an element too."""
        kind: DType = call.dst.dtype
        if not self.regions(call, profile):
            return tuple
        work = of_lanes(call, profile)
        if "scalar" not in inputs:
            return work
        number = element(self, call)
        converted = number.view(kind.bits_dtype) if row.values == "bits" else number.astype(_worked_in(kind))
        if row.form == "scalar":
            return lambda: converted
        return partial(work, converted) if inputs[0] == "scalar" else lambda a: work(a, converted)

    def of_lanes(call: SimpleNamespace, profile: Profile) -> Callable[..., np.ndarray]:
        """The operation on elements as semantics see them."""
        work = row.of_floats if row.of_floats is not None and call.dst.dtype.kind == "f" else row.of
        if not flushes(row.flushed, call, profile):
            return work
        return lambda *given: flushing(work, given, row.flushed, call, profile)

    def element(self: Any, call: SimpleNamespace) -> np.ndarray:
        """The number as an element."""
        return element_of(call.scalar, call.dst.dtype.numpy)

    def code(self: Any, call: SimpleNamespace, profile: Profile) -> Code | None:
        """See :class:`TileInstruction`. Not of bfloat16, whose NaN ml_dtypes makes another, nor of 64 bits, where the
        quotient that wraps comes out otherwise."""
        kind: DType = call.dst.dtype
        is_known = (kind.kind in "iu" and kind.size <= 4) or kind is f32 or (kind is f16 and row.values != "native")
        if row.form == "scalar" or not is_known:
            return None
        key = kind, flushes(row.flushed, call, profile)
        if key not in codes:
            numbers = tuple(place for place, name in enumerate(inputs) if name == "scalar")
            codes[key] = LaneByLane(
                of_lanes(call, profile), kind, row.values == "bits", numbers, inputs=len(inputs)
            )  # fmt: skip
        return codes[key]

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group] | None:
        """The A2/A3's steps, with a barrier between them."""
        given = row.steps is not None and profile.name == "a2a3" and not (row.tmp and call.tmp is None)
        made = row.steps(call) if given and row.steps else []
        return _in_steps(made) if made else None

    def observe(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
        """Whether dst lies where src does, and cannot."""
        call = self.call(args)
        if core.profile.name != "a2a3" or call.dst.address != call.src.address:
            return []
        said = f"{self.title}: dst and src lie in one place; dst is filled before src is read"
        return [Finding("TILE-INPLACE", Severity.ERROR, said, (), "Write to another tile.")]

    members: dict[str, Any] = {
        "__doc__": row.does,
        "operands": _operands(row),
        "rules": _rules(row),
        "values": row.values,
        "over": "dst",
        "regions": regions,
        "computation": computation,
        "code": code,
        "element": element,
        "notes": (*row.notes, WRITTEN),
        "assumed": row.assumed,
        "sources": (
            f"pto-isa docs/isa/{row.name.upper()}",
            f"pto-isa include/pto/npu/a2a3 and a5: {row.headers or row.name[0].upper() + row.name[1:] + '.hpp'}",
        ),
    }
    if row.steps is not None:
        members["expand"] = expand
    if row.fills_first:
        members |= {"observe": observe, "warns": ("TILE-INPLACE",)}
    return tile_instruction(
        row.name, pipe=Pipe.V, cpp_templates=("precision",) if row.precision else (), asm=row.asm, profiles=row.profiles
    )(type(row.name, (), members))


def flushing(
    function: Callable[..., Any], given: Sequence[np.ndarray], flushed: str, call: SimpleNamespace, profile: Profile
) -> np.ndarray:
    """The result; zeros stand for subnormals where the profile's operation of that name takes and gives none."""
    result: np.ndarray
    if not flushes(flushed, call, profile):
        result = function(*given)
        return result
    smallest = _SMALLEST[call.dst.dtype]
    result = function(*[arithmetic.flush(g, smallest) for g in given])
    return arithmetic.flush(result, smallest)


def flushes(flushed: str, call: SimpleNamespace, profile: Profile) -> bool:
    """Whether the profile's operation of that name takes and gives zeros for subnormals."""
    return flushed in profile.subnormals_flushed and call.dst.dtype.kind == "f" and not getattr(call, "precision", 0)


def _worked_in(kind: DType) -> np.dtype:
    return np.dtype(np.float32) if kind.is_narrow_float else kind.numpy


def _in_steps(made: list[tuple[TileInstruction, tuple]]) -> Iterator[Group]:
    for number, (instruction, args) in enumerate(made):
        if number:
            yield Group([Step(pipe_barrier, (Pipe.V,))])
        yield Group([Step(instruction, args)])


_LOGIC = (
    "A2/A3 work on 8-bit elements in pairs: with an odd number of valid columns one more of each row is written.",
)
_SHIFTS = (
    "Shifted bits fall off and zeros come in (right shifts of signed integers: the sign). A count of the type's width "
    "or more leaves 0, or the sign.",
    "asc-devkit's pages have signed left shifts keep the sign bit; the public tests of the chips, with numbers of any "
    "bits, do not.",
)
_BY_ZERO = ("Integers divided by 0 give 0 (the A5's 64-bit division does; no page tells of the others).",)
_NEGATIVE_SHIFT = ("A negative count does what one of the type's width does; no page defines it.",)

# Two tiles

_BINARY = "src0 src1"
tadd = define(Lanes("tadd", "Add two tiles lane by lane.", _BINARY, arithmetic.add, FOUR, EVERY, EVERY,
                    notes=(ROUNDED,), assumed=(SUBNORMALS,)))  # fmt: skip
tsub = define(Lanes("tsub", "Subtract src1 from src0, lane by lane.", _BINARY, arithmetic.subtract, FOUR, EVERY, EVERY,
                    notes=(ROUNDED,), assumed=(SUBNORMALS,)))  # fmt: skip
tmul = define(Lanes("tmul", "Multiply two tiles lane by lane.", _BINARY, arithmetic.multiply, FOUR, MULTIPLIED, EVERY,
                    notes=(ROUNDED,), assumed=(SUBNORMALS,)))  # fmt: skip
tdiv = define(Lanes(
    "tdiv", "Divide src0 by src1, lane by lane; integers towards zero.", _BINARY, arithmetic.divide_integers, FLOATS,
    DIVIDED, EVERY, of_floats=arithmetic.divide, flushed="div", precision="DivAlgorithm",
    notes=(ROUNDED, FLUSHED, "Chips differ by one unit in the last place unless HIGH_PRECISION."), assumed=_BY_ZERO,
))  # fmt: skip
tmax = define(Lanes(
    "tmax", "The larger of two elements; of floats, +0 is larger than -0, and a NaN wins.", _BINARY, arithmetic.maximum,
    FOUR, EVERY, EVERY, of_floats=arithmetic.float_maximum,
    assumed=("The A2/A3 take NaN and signed zeros as the A5 does, whose pages alone tell.",),
))  # fmt: skip
tmin = define(Lanes(
    "tmin", "The smaller of two elements; of floats, -0 is smaller than +0, and a NaN wins.", _BINARY,
    arithmetic.minimum, FOUR, EVERY, EVERY, of_floats=arithmetic.float_minimum,
    assumed=("The A2/A3 take NaN and signed zeros as the A5 does, whose pages alone tell.",),
))  # fmt: skip
tand = define(Lanes("tand", "The bits that both tiles have.", _BINARY, arithmetic.bits_and, HALVES_TOO, HALVES_TOO, SHIFTED,
                    values="bits", in_words=True, notes=_LOGIC))  # fmt: skip
tor = define(Lanes("tor", "The bits that either tile has.", _BINARY, arithmetic.bits_or, HALVES_TOO, HALVES_TOO, SHIFTED,
                   values="bits", in_words=True, notes=_LOGIC))  # fmt: skip
tshl = define(Lanes("tshl", "Shift src0 left by as many bits as src1 says.", _BINARY, arithmetic.shift_left, BITS,
                    SHIFTED, SHIFTED, values="native", notes=_SHIFTS, assumed=_NEGATIVE_SHIFT))  # fmt: skip
tshr = define(Lanes("tshr", "Shift src0 right by as many bits as src1 says.", _BINARY, arithmetic.shift_right, BITS,
                    SHIFTED, SHIFTED, values="native", notes=_SHIFTS, assumed=_NEGATIVE_SHIFT))  # fmt: skip

# One tile

tabs = define(Lanes("tabs", "The magnitude of each element; the most negative integer stays.", "src",
                    arithmetic.absolute, FLOATS, (f32, f16, i32, i16, i8), (f32, f16, bf16, i32, i16, i8),
                    headers="TUnaryOp.hpp"))  # fmt: skip
tnot = define(Lanes("tnot", "Turn every bit.", "src", arithmetic.bits_not, BITS, BITS, SHIFTED, values="bits",
                    in_words=True, notes=_LOGIC, headers="TUnaryOp.hpp"))  # fmt: skip
trelu = define(Lanes("trelu", "Put 0 in place of what is below 0.", "src", arithmetic.relu, (f32, f16, i32),
                     (f32, f16, i32), EVERY, headers="TUnaryOp.hpp",
                     assumed=("The A2/A3 keep NaN and make +0 of -0, as the A5 does.",)))  # fmt: skip
tneg = define(Lanes("tneg", "Change the sign of each element: TMULS by -1.", "src", arithmetic.negate, FOUR, MULTIPLIED,
                    EVERY, headers="TUnaryOp.hpp"))  # fmt: skip
for _name, _does, _function, _flushed in (
    ("texp", "e to the power of each element.", functions.exponential, "exp"),
    ("tlog", "The natural logarithm of each element.", functions.logarithm, "ln"),
    ("tsqrt", "The square root of each element.", arithmetic.square_root, "sqrt"),
):
    define(Lanes(
        _name, _does, "src", _function, FLOATS, FLOATS, (f32, f16, bf16), flushed=_flushed, notes=(FLUSHED,),
        precision=f"{_name[1:].capitalize()}Algorithm", assumed=ROOTS, headers="TUnaryOp.hpp",
    ))  # fmt: skip

# A tile and a number

_NUMBER = "src scalar"
texpands = define(Lanes(
    "texpands", "Put a number into each element.", "scalar", arithmetic.add, (f32, f16, bf16, i32, u32, i16, u16, i8, u8),
    EVERY, EVERY, values="bits", in_words=True, notes=_LOGIC, headers="TExpandS.hpp",
))  # fmt: skip
tadds = define(Lanes("tadds", "Add a number to each element of a tile.", _NUMBER, arithmetic.add, FOUR, EVERY, EVERY,
                     strict=True, once=True, notes=(ROUNDED,), assumed=(SUBNORMALS,), headers="TAddS.hpp"))  # fmt: skip
tsubs = define(Lanes("tsubs", "Subtract a number from each element.", _NUMBER, arithmetic.subtract, FOUR, EVERY, EVERY,
                     strict=True, once=True, notes=(ROUNDED,), assumed=(SUBNORMALS,), headers="TSubS.hpp"))  # fmt: skip
tmuls = define(Lanes("tmuls", "Multiply each element by a number.", _NUMBER, arithmetic.multiply, FOUR, MULTIPLIED, EVERY,
                     once=True, notes=(ROUNDED,), assumed=(SUBNORMALS,), headers="TMulS.hpp"))  # fmt: skip
tmaxs = define(Lanes(
    "tmaxs", "The larger of each element and a number; floats as in TMAX.", _NUMBER, arithmetic.maximum, FOUR, EVERY, EVERY,
    of_floats=arithmetic.float_maximum, once=True, headers="TMaxS.hpp, TMaxs.hpp",
))  # fmt: skip
tmins = define(Lanes(
    "tmins", "The smaller of each element and a number; floats as in TMIN.", _NUMBER, arithmetic.minimum, FOUR, EVERY,
    EVERY, strict=True, once=True, of_floats=arithmetic.float_minimum, headers="TMins.hpp",
))  # fmt: skip
tshls = define(Lanes("tshls", "Shift each element left by a number of bits.", _NUMBER, arithmetic.shift_left, COUNTED,
                     SHIFTED, SHIFTED, values="native", once=True, notes=_SHIFTS, assumed=_NEGATIVE_SHIFT,
                     headers="TBitwiseSOp.hpp, TShlS.hpp"))  # fmt: skip
tshrs = define(Lanes("tshrs", "Shift each element right by a number of bits.", _NUMBER, arithmetic.shift_right, COUNTED,
                     SHIFTED, SHIFTED, values="native", once=True, notes=_SHIFTS, assumed=_NEGATIVE_SHIFT,
                     headers="TBitwiseSOp.hpp, TShrS.hpp"))  # fmt: skip
tlrelu = define(Lanes("tlrelu", "Multiply what is below 0 by a number.", _NUMBER, arithmetic.leaky_relu, FLOATS, FLOATS,
                      (f32, f16, bf16), notes=("-0 is multiplied too, +0 stays.",), headers="TLRelu.hpp",
                      assumed=("The A2/A3 do with -0 what the A5 does.",)))  # fmt: skip


def _logic_steps(second: TileInstruction) -> Callable[[SimpleNamespace], list[tuple[TileInstruction, tuple]]]:
    """Fill dst with the number, then work on both."""
    return lambda call: [
        (texpands, (call.dst, call.scalar)), (second, (call.dst, call.src, call.dst)),
    ]  # fmt: skip


_FILLS = ("The A2/A3 fill dst with the number first: it cannot be src.",)
tands = define(Lanes("tands", "The bits that each element and a number have.", _NUMBER, arithmetic.bits_and, BITS, BITS,
                     SHIFTED, values="bits", in_words=True, steps=_logic_steps(tand), fills_first=True,
                     notes=(*_LOGIC, *_FILLS), headers="TBitwiseSOp.hpp, TAndS.hpp"))  # fmt: skip
tors = define(Lanes("tors", "The bits that each element or a number has.", _NUMBER, arithmetic.bits_or, BITS, BITS,
                    SHIFTED, values="bits", in_words=True, steps=_logic_steps(tor), fills_first=True,
                    notes=(*_LOGIC, *_FILLS), headers="TBitwiseSOp.hpp, TOrS.hpp"))  # fmt: skip


def _xor_steps(call: SimpleNamespace) -> list[tuple[TileInstruction, tuple]]:
    return [
        (tor, (call.tmp, call.src0, call.src1)), (tand, (call.dst, call.src0, call.src1)), (tnot, (call.dst, call.dst)),
        (tand, (call.dst, call.dst, call.tmp)),
    ]  # fmt: skip


def _xors_steps(call: SimpleNamespace) -> list[tuple[TileInstruction, tuple]]:
    return [
        *_logic_steps(tor)(SimpleNamespace(dst=call.tmp, src=call.src, scalar=call.scalar)),
        *_logic_steps(tand)(call), (tnot, (call.dst, call.dst)), (tand, (call.dst, call.dst, call.tmp)),
    ]  # fmt: skip


def _other_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, tmp = call.dst, call.tmp
    same_shape = tmp is None or (tmp.valid_rows, tmp.valid_cols) == (dst.valid_rows, dst.valid_cols)
    if tmp is None or (tmp.dtype is dst.dtype and same_shape):
        return None
    said = f"{tmp.dtype.name} with {tmp.valid_rows}x{tmp.valid_cols} valid"
    return f"tmp is {said}, dst {dst.dtype.name} with {dst.valid_rows}x{dst.valid_cols}"


def _like_dst(code: str) -> tuple[Rule, ...]:
    """The A2/A3 need a tmp like dst; of another type it does not compile."""

    def other_type(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        return _other_tmp(definition, call, profile) if call.tmp and call.tmp.dtype is not call.dst.dtype else None

    def types(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(
            **{**vars(call), "tmp": replace(call.dst, dtype=f16 if call.dst.dtype is not f16 else f32)}
        )

    def shapes(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(**{**vars(call), "tmp": replace(call.dst, valid_rows=call.dst.valid_rows - 1)})

    return (
        refuse("L003", "tmp has the element type of dst", other_type, breaks=types, profiles=A2A3),
        finding(code, "tmp has the valid shape of dst", _other_tmp, breaks=shapes, profiles=A2A3,
                why="The library ORs into what is valid in tmp, and checks it in debug builds only.",
                mend="Give tmp the valid region of dst."),
    )  # fmt: skip


_XOR_NOTE = ("The A2/A3 have no such instruction: tmp takes src0 | src1, dst ~(src0 & src1), then both are ANDed.",)
_XOR_TMP = "of the A2/A3: like dst; the A5 and cpu take any"
txor = define(Lanes("txor", "The bits that one of two tiles has and the other not.", _BINARY, arithmetic.bits_xor, BITS,
                    BITS, SHIFTED, values="bits", in_words=True, steps=_xor_steps, tmp=_XOR_TMP, notes=_XOR_NOTE,
                    rules=_like_dst("TXOR-2")))  # fmt: skip
txors = define(Lanes("txors", "Turn the bits of each element that a number has.", _NUMBER, arithmetic.bits_xor, BITS, BITS,
                     SHIFTED, values="bits", in_words=True, steps=_xors_steps, tmp=_XOR_TMP, fills_first=True,
                     notes=_XOR_NOTE, rules=_like_dst("TXORS-2"), headers="TBitwiseSOp.hpp, TXorS.hpp"))  # fmt: skip


# Division by a number, and of one


def _divided(call: SimpleNamespace) -> list[tuple[TileInstruction, tuple]]:
    if call.dst.dtype.kind != "f":
        return []
    if call.dst.address == call.src.address:
        inverse = np.float32(1) / np.float32(element_of(call.scalar, call.dst.dtype.numpy)) if call.scalar else np.inf
        inverse = np.copysign(inverse, call.scalar)
        return [(tmuls, (call.dst, call.dst, float(element_of(inverse, call.dst.dtype.numpy))))]
    return [(texpands, (call.dst, call.scalar)), (tdiv, (call.dst, call.src, call.dst))]


def _divides(call: SimpleNamespace) -> list[tuple[TileInstruction, tuple]]:
    if call.dst.dtype.kind != "f":
        return []
    return [(texpands, (call.dst, call.scalar)), (tdiv, (call.dst, call.dst, call.src))]


def _when_shapes_agree(
    steps: Callable[[SimpleNamespace], list[tuple[TileInstruction, tuple]]],
) -> Callable[[SimpleNamespace], list[tuple[TileInstruction, tuple]]]:
    def agreeing(call: SimpleNamespace) -> list[tuple[TileInstruction, tuple]]:
        dst, src = call.dst, call.src
        return steps(call) if (dst.valid_rows, dst.valid_cols) == (src.valid_rows, src.valid_cols) else []

    return agreeing


def _inverted(scalar: np.ndarray, b: np.ndarray) -> np.ndarray:
    return arithmetic.divide(scalar, b)


def _inverted_integers(scalar: np.ndarray, b: np.ndarray) -> np.ndarray:
    return arithmetic.divide_integers(scalar, b)


def _reciprocal(b: np.ndarray) -> np.ndarray:
    return _inverted(np.ones((), b.dtype), b)


def _reciprocal_of_integers(b: np.ndarray) -> np.ndarray:
    return _inverted_integers(np.ones((), b.dtype), b)


_SCALAR_LOOP = "Integers are divided by the scalar unit, one by one; the flags between the pipes are part of it."
_DIVISION: dict[str, Any] = {
    "strict": True, "precision": "DivAlgorithm", "flushed": "div", "headers": "TDivS.hpp", "assumed": _BY_ZERO,
    "once": True,
}  # fmt: skip
tdivs = define(Lanes(
    "tdivs", "Divide each element by a number; integers towards zero.", _NUMBER, arithmetic.divide_integers, FOUR,
    DIVIDED, EVERY, of_floats=arithmetic.divide, steps=_when_shapes_agree(_divided),
    asm=(Asm("tdivs", order=("src", "scalar")),),
    notes=(ROUNDED, FLUSHED, _SCALAR_LOOP, "The A2/A3 fill dst with the number and divide by that; in place they "
           "multiply by the number's inverse instead, which is rounded twice."), **_DIVISION,
))  # fmt: skip
tdivs_by = define(Lanes(
    "tdivs", "Divide a number by each element; integers towards zero.", "scalar src", _inverted_integers, FOUR, DIVIDED,
    EVERY, of_floats=_inverted, steps=_when_shapes_agree(_divides), fills_first=True,
    asm=(Asm("tdivs", order=("scalar", "src")),),
    notes=(ROUNDED, FLUSHED, _SCALAR_LOOP, *_FILLS), **_DIVISION,
))  # fmt: skip
trecip = define(Lanes(
    "trecip", "One over each element: TDIVS of 1; integers towards zero.", "src", _reciprocal_of_integers, FOUR, DIVIDED,
    EVERY, of_floats=_reciprocal, fills_first=True, notes=(ROUNDED, FLUSHED, _SCALAR_LOOP, *_FILLS),
    steps=_when_shapes_agree(lambda call: _divides(SimpleNamespace(**{**vars(call), "scalar": 1}))),
    **{**_DIVISION, "precision": "RecipAlgorithm", "headers": "TUnaryOp.hpp, TDivS.hpp"},
))  # fmt: skip
