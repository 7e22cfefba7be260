"""Conversions between the element types of registers, and rounding floats to whole numbers: one table.

Where types differ in width, one instruction converts as many lanes as the wider one has. Of the narrower type these are
every other lane, or every fourth: the first of each group, or (``_v2``, ``_v3``, ``_v4``) the second, third, fourth.
Types of four bits lie two to a byte, and move in pairs.

Sources: asc-devkit C-API reg/data_type_convert with its page on rounding, the basic API's page on Cast, the table of
border values, and the library's code for the builtin behind each name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import Asm, In, LaneMask, Out, Sort, register_instruction, types_of
from ascsim.isa.semantics import convert
from ascsim.isa.semantics.convert import CEIL, FLOOR, ODD, RINT, ROUND, TRUNC
from ascsim.machine.dtypes import DTYPES
from ascsim.machine.operands import REGISTER_BYTES

CATALOGUE.add(
    "VCVT-1", Severity.WARNING, "Rounds up, though its name says to nearest",
    "The page of asc_bfloat162half_rn and asc_bfloat162half_rn_sat says that they round to nearest, ties to even. The "
    "chip's library passes ROUND_C to the instruction, so that they round up like asc_bfloat162half_ru; so they do here.\n\n"
    "Call asc_bfloat162float and asc_float2half_rn to round to nearest.",
)  # fmt: skip

Lanes = np.ndarray
Function = Callable[..., Any]


class Rounding(NamedTuple):
    """A rounding mode: the C API's suffix, the number, PTO's letter, in words."""

    suffix: str
    mode: int
    letter: str
    said: str


ROUNDINGS = (
    Rounding("rn", RINT, "R", "to nearest, ties to even"),
    Rounding("rna", ROUND, "A", "to nearest, ties away from zero"),
    Rounding("rd", FLOOR, "F", "down"),
    Rounding("ru", CEIL, "C", "up"),
    Rounding("rz", TRUNC, "Z", "towards zero"),
    Rounding("ro", ODD, "O", "to odd"),
)
_NONE = Rounding("", RINT, "", "")
_FIVE = ROUNDINGS[:5]
_NEAREST, _AWAY = ROUNDINGS[:1], ROUNDINGS[1:2]

_BIT_FLOATS = {
    **convert.FOUR_BITS,
    **{n: np.arange(256).astype(np.uint8).view(DTYPES[n].numpy).astype(np.float32) for n in ("f8e4m3", "f8e5m2", "hif8")},
}  # fmt: skip
"""The number that each code of a type of four or eight bits stands for."""
_PAIRED = ("f4e2m1x2", "f4e1m2x2", "i4x2")


class Row(NamedTuple):
    """Conversions of one pair of types: what names and instructions there are.

    ``saturations`` are the choices that names give (``_sat`` or not); with none the instruction always does the same.
    ``idle`` are attributes that PTO's text may have all the same, and that make no difference.
    """

    source: str
    target: str
    base: str
    roundings: tuple[Rounding, ...] = (_NONE,)
    saturations: tuple[bool, ...] = ()
    deprecated: bool = False
    idle: tuple[str, ...] = ()


_BOTH = (False, True)
ROWS = (
    Row("bf16", "f4e1m2x2", "bfloat162e1m2x2", _FIVE, deprecated=True),
    Row("bf16", "f4e2m1x2", "bfloat162e2m1x2", _FIVE, deprecated=True),
    Row("bf16", "f32", "bfloat162float"),
    Row("bf16", "f16", "bfloat162half", _FIVE, _BOTH),
    Row("bf16", "i32", "bfloat162int32", _FIVE, _BOTH),
    Row("f4e1m2x2", "bf16", "e1m2x22bfloat16", deprecated=True),
    Row("f4e2m1x2", "bf16", "e2m1x22bfloat16", deprecated=True),
    Row("f8e4m3", "f32", "e4m32float", deprecated=True),
    Row("f8e5m2", "f32", "e5m22float", deprecated=True),
    Row("f32", "bf16", "float2bfloat16", _FIVE, _BOTH),
    Row("f32", "f8e4m3", "float2e4m3", _NEAREST, _BOTH, deprecated=True),
    Row("f32", "f8e5m2", "float2e5m2", _NEAREST, _BOTH, deprecated=True),
    Row("f32", "f16", "float2half", ROUNDINGS, _BOTH),
    Row("f32", "hif8", "float2hif8", _AWAY, _BOTH, deprecated=True),
    Row("f32", "i16", "float2int16", _FIVE, _BOTH),
    Row("f32", "i32", "float2int32", _FIVE, _BOTH),
    Row("f32", "i64", "float2int64", _FIVE, _BOTH),
    Row("f16", "bf16", "half2bfloat16", _FIVE),
    Row("f16", "f32", "half2float"),
    Row("f16", "hif8", "half2hif8", _AWAY, _BOTH),
    Row("f16", "i16", "half2int16", _FIVE, _BOTH),
    Row("f16", "i32", "half2int32", _FIVE, idle=("sat",)),
    Row("f16", "i4x2", "half2int4x2", _FIVE, _BOTH, deprecated=True),
    Row("f16", "i8", "half2int8", _FIVE, _BOTH),
    Row("f16", "u8", "half2uint8", _FIVE, _BOTH),
    Row("hif8", "f32", "hif82float", deprecated=True),
    Row("hif8", "f16", "hif82half"),
    Row("i16", "f32", "int162float", idle=("rnd",)),
    Row("i16", "f16", "int162half", _FIVE),
    Row("i16", "i32", "int162int32"),
    Row("i16", "u32", "int162uint32"),
    Row("i16", "u8", "int162uint8", saturations=_BOTH),
    Row("i32", "f32", "int322float", _FIVE),
    Row("i32", "i16", "int322int16", saturations=_BOTH),
    Row("i32", "i64", "int322int64"),
    Row("i32", "u16", "int322uint16", saturations=_BOTH),
    Row("i32", "u8", "int322uint8", saturations=_BOTH, deprecated=True),
    Row("i4x2", "bf16", "int4x22bfloat16", deprecated=True),
    Row("i4x2", "f16", "int4x22half", deprecated=True),
    Row("i4x2", "i16", "int4x22int16", deprecated=True),
    Row("i64", "f32", "int642float", _FIVE),
    Row("i64", "i32", "int642int32", saturations=_BOTH),
    Row("i8", "f16", "int82half"),
    Row("i8", "i16", "int82int16"),
    Row("i8", "i32", "int82int32", deprecated=True),
    Row("u16", "u32", "uint162uint32"),
    Row("u16", "u8", "uint162uint8", saturations=_BOTH),
    Row("u32", "i16", "uint322int16", saturations=_BOTH),
    Row("u32", "u16", "uint322uint16", saturations=_BOTH),
    Row("u32", "u8", "uint322uint8", saturations=_BOTH, deprecated=True),
    Row("u8", "f16", "uint82half"),
    Row("u8", "u16", "uint82uint16"),
    Row("u8", "u32", "uint82uint32", deprecated=True),
)  # fmt: skip


# What a conversion does: the source as float32, or as it is, then the target


def _as_float(source: str) -> Function:
    """Lanes of a narrow float as float32."""
    if source in _BIT_FLOATS:
        return lambda lanes: np.take_along_axis(_BIT_FLOATS[source], lanes, 0)
    return {"f16": convert.f16_bits_to_f32, "bf16": convert.bf16_bits_to_f32}.get(source, lambda lanes: lanes)


def _from_float(target: str, mode: int, saturates: bool) -> Function:
    narrow: dict[str, Function] = {
        "f16": convert.f32_to_f16_bits, "bf16": convert.f32_to_bf16_bits, "f8e4m3": convert.f32_to_e4m3_bits,
        "f8e5m2": convert.f32_to_e5m2_bits,
    }  # fmt: skip
    of_four_bits: dict[str, Function] = {"f4e2m1x2": convert.f32_to_e2m1_bits, "f4e1m2x2": convert.f32_to_e1m2_bits}
    if target in narrow:
        return lambda x: narrow[target](x, mode, saturates)
    if target in of_four_bits:
        return lambda x: of_four_bits[target](x, mode)
    if target == "hif8":
        return lambda x: convert.f32_to_hif8_bits(x, saturates)
    if target == "f32":
        return lambda x: x
    low, high = _limits(target)
    return lambda x: convert.float_to_int(x, mode, saturates, low, high)


def _limits(target: str) -> tuple[int, int]:
    bits, signed = (4, True) if target == "i4x2" else (8 * DTYPES[target].size, target[0] == "i")
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def _is_integer(name: str) -> bool:
    return name[0] in "iu"


def converter(source: str, target: str, mode: int, saturates: bool) -> Function:
    """The function of lanes (narrow floats as bits; of four-bit types one code a lane)."""
    if _is_integer(source) and source not in _PAIRED:
        if _is_integer(target):
            low, high = _limits(target)
            return lambda lanes: convert.int_to_int(lanes, saturates, low, high)
        if source == "i64":
            return lambda lanes: convert.int64_to_f32(lanes, mode)
        if target == "f32":
            return lambda lanes: convert.int_to_f32(lanes, mode)
        return lambda lanes: convert.f32_to_f16_bits(lanes.astype(np.float32), mode, False)
    before, after = _as_float(source), _from_float(target, mode, saturates)
    return lambda lanes: after(before(lanes))


def narrowing_pairs(source: str, target: str, mode: int, saturates: bool, part: int) -> Function:
    """Pairs of lanes to bytes, one of every four; the mask's even lanes say which."""
    to_code = converter(source, target, mode, saturates)
    place = np.arange(REGISTER_BYTES)

    def convert_pairs(lanes: Lanes, active: Lanes) -> Lanes:
        codes = to_code(lanes).astype(np.uint8) & np.uint8(15)
        packed = np.where(active[0::2] != 0, codes[0::2] | (codes[1::2] << np.uint8(4)), np.uint8(0))
        return np.where(place % 4 == part, packed[place // 4], np.uint8(0))

    return convert_pairs


def widening_pairs(source: str, target: str, part: int) -> Function:
    """One of every four bytes to a pair of lanes each; the mask has a bit for the byte."""
    to_lane = converter(source, target, RINT, False)
    lane = np.arange(REGISTER_BYTES // DTYPES[target].size)
    byte, shift = 4 * (lane // 2) + part, (4 * (lane % 2)).astype(np.uint8)

    def convert_pairs(codes: Lanes, active: Lanes) -> Lanes:
        lanes = to_lane((codes[byte] >> shift) & np.uint8(15))
        return np.where(active[byte] != 0, lanes, np.zeros_like(lanes))

    return convert_pairs


# Their names and spellings

_WRITINGS = (("rnd", "", "SAT", "NOSAT", ""), ("round_mode", "ROUND_", "RS_ENABLE", "RS_DISABLE", "PART_"))
"""How ``.pto`` text writes rounding, saturation and part: the key and prefix of a rounding, saturation on and off, the
prefix of a part. The second writing, PTO's older one, may leave the mask out."""
_PARTS = {1: ("",), 2: ("EVEN", "ODD"), 4: ("P0", "P1", "P2", "P3")}


def _spellings(row: Row, rounding: Rounding, saturates: bool | None, part: str) -> Iterator[Asm]:
    """In both writings, with each attribute that has its default (R, no saturation) written or not."""
    sizes = (DTYPES[row.target].size,)
    for key, round_prefix, on, off, part_prefix in _WRITINGS:
        choices: list[list[tuple[tuple[str, str], ...]]] = []
        if part:
            choices.append([(("part", part_prefix + part),)])
        if rounding.letter:
            choices.append([((key, round_prefix + rounding.letter),), *([()] if rounding.letter == "R" else [])])
        elif "rnd" in row.idle:
            choices.append([(), *(((key, round_prefix + r.letter),) for r in _FIVE)])
        if saturates is not None:
            choices.append([(("sat", on),)] if saturates else [(("sat", off),), ()])
        elif "sat" in row.idle:
            choices.append([(), (("sat", on),), (("sat", off),)])
        orders: list[tuple[str, ...]] = [()] if not part_prefix else [(), ("src",)]
        for chosen, order in product(product(*choices), orders):
            yield Asm("vcvt", tuple(attribute for some in chosen for attribute in some), order, sizes)


_MASK_NOTE = (
    "The mask is read as one for lanes of the source (the page on Cast, PTO's page). A widening of the second part on "
    "looks at the bits of those lanes, which a mask made for lanes of the result does not set."
)
_TYPE_NAMES = {
    "f16": "half", "bf16": "bfloat16", "f32": "float", "f8e4m3": "fp8 e4m3", "f8e5m2": "fp8 e5m2", "hif8": "hifloat8",
    "f4e2m1x2": "fp4 e2m1", "f4e1m2x2": "fp4 e1m2", "i4x2": "int4",
}  # fmt: skip


def _said(name: str) -> str:
    return _TYPE_NAMES.get(name) or f"{'u' * (name[0] == 'u')}int{name[1:]}"


def _range_doc(row: Row, saturates: bool | None) -> str:
    """What becomes of what is out of range."""
    source, target = row.source, row.target
    if target in ("f4e2m1x2", "f4e1m2x2"):
        return "What is out of range, and infinity, becomes the largest number of its sign, a NaN 0."
    if _is_integer(target) and _is_integer(source):
        if (source, target) == ("i16", "u32"):
            return "Negative numbers become 0."
        return {None: "", True: "What is out of range becomes the nearest limit.", False: "The low bits stay."}[
            saturates
        ]
    if _is_integer(target):
        beyond = "the nearest limit" if saturates in (None, True) else "its low bits"
        return f"What is out of range becomes {beyond}, an infinity the limit of its side, a NaN 0."
    if saturates is None:
        return ""
    if saturates:
        return "What is out of range becomes the largest finite number of its sign, a NaN 0."
    return "What is out of range becomes a NaN." if target == "f8e4m3" else "What is out of range becomes infinity."


def _assumed(row: Row) -> tuple[str, ...]:
    said: list[str] = []
    if row.saturations:
        said.append("CTRL is as after reset, so that the instruction itself says whether it saturates.")
    if not _is_integer(row.source) and not _is_integer(row.target) and row.target != "f32":
        said.append("A NaN that stays one keeps its sign and the upper bits of its payload.")
    if row.source in _PAIRED or row.target in _PAIRED:
        said.append("The first of a pair lies in the lower four bits.")
    if "hif8" in (row.source, row.target):
        said.append("The pages leave the border values of hifloat8 empty: infinity, one NaN, no -0.")
    if "i64" in (row.source, row.target):
        said.append("A lane of 64 bits looks at the first of its eight bits of the mask.")
    return tuple(said)


def _define(row: Row, rounding: Rounding, saturates: bool | None, part: int) -> None:
    source, target = DTYPES[row.source], DTYPES[row.target]
    paired = row.source in _PAIRED or row.target in _PAIRED
    ratio = 4 if paired else max(source.size, target.size) // min(source.size, target.size)
    suffix = "".join(f"_{s}" for s in (rounding.suffix, "sat" * bool(saturates), f"v{part + 1}" if part else "") if s)
    does_saturate = _is_integer(row.target) if saturates is None else saturates
    mode = CEIL if (row.base, rounding.suffix) == ("bfloat162half", "rn") else rounding.mode
    record: dict[str, Any] = {"masking": "zero", "part": part if ratio > 1 else None}
    function = converter(row.source, row.target, mode, does_saturate)
    if row.target in _PAIRED:
        record, function = {}, narrowing_pairs(row.source, row.target, mode, does_saturate, part)
    elif row.source in _PAIRED:
        record, function = {}, widening_pairs(row.source, row.target, part)
    places = "" if ratio == 1 else f"Of the narrower type, it is lane {part} of every {ratio} that takes part."
    if paired:
        places = f"Pairs of the narrower type lie in byte {part} of every four."
    if places and source.size >= target.size:
        places += " The others become 0."
    notes = [*([_MASK_NOTE] if ratio > 1 else []), *(["Deprecated."] if row.deprecated else [])]
    round_text = f", rounding {rounding.said}" if rounding.said else ""
    register_instruction(
        f"vcvt_{row.source}_{row.target}{suffix}", cpp=f"asc_{row.base}{suffix}", values="native",
        operands=(Out("dst", Sort.VREG, "T"), In("src", Sort.VREG, "S"), LaneMask(of="S")),
        variants=({"T": target, "S": source},), native="loops",
        asm=tuple(_spellings(row, rounding, saturates, _PARTS[ratio][part])), **record,
        warns=("VCVT-1",) if mode != rounding.mode else (),
        doc="\n\n".join(
            s for s in (
                f"Convert {_said(row.source)} to {_said(row.target)}{round_text}; inactive lanes become 0.",
                " ".join(filter(None, (places, _range_doc(row, saturates)))),
            ) if s
        ),
        notes=tuple(notes), assumed=_assumed(row),
        sources=(
            f"asc-devkit C-API reg/data_type_convert/asc_{row.base}", "asc-devkit C-API rounding_mode",
            "asc-devkit table of border values", "pto-isa docs/isa vcvt",
        ),
    )(function)  # fmt: skip


for _row in ROWS:
    _sizes = [DTYPES[_row.source].size, DTYPES[_row.target].size]
    _parts = 4 if {_row.source, _row.target} & set(_PAIRED) else max(_sizes) // min(_sizes)
    for _rounding, _saturates, _part in product(_row.roundings, _row.saturations or (None,), range(_parts)):
        _define(_row, _rounding, _saturates, _part)


# Floats rounded to whole numbers


def _whole(mode: int) -> Function:
    return lambda x: convert.round_to_integer(x, mode).astype(np.float32)


_WHOLE = {"rint": RINT, "round": ROUND, "floor": FLOOR, "ceil": CEIL, "trunc": TRUNC}

for _name, _mode in _WHOLE.items():
    _mine = next(r for r in ROUNDINGS if r.mode == _mode)
    register_instruction(
        f"vtrc_{_name}", cpp=f"asc_{_name}", values="widen", masking="zero", variants=types_of("f16", "bf16", "f32"),
        operands=(Out("dst", Sort.VREG, "T"), In("src", Sort.VREG, "T"), LaneMask()), native="loops",
        asm=tuple(
            Asm("vtrc", (("", prefix + _mine.letter),), order)
            for prefix in ("", "ROUND_") for order in ((), ("src",))
        ),
        doc=f"Round each lane to a whole number, {_mine.said}; inactive lanes become 0.",
        assumed=("Zeros keep their sign, and what is rounded to zero keeps its own.",),
        sources=(f"asc-devkit C-API reg/data_type_convert/asc_{_name}", "pto-isa docs/isa vtrc"),
    )(_whole(_mode))  # fmt: skip
