"""TCVT: element types converted, with a rounding mode and a saturation mode.

Sources: pto-isa docs/isa/TCVT; include/pto/npu/a2a3/TCvt.hpp, include/pto/npu/a5/TCvt.hpp, include/pto/cpu/TCvt.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum
from types import SimpleNamespace

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import A2A3, Choice, Definition, In, Out, Scratch, tile_instruction
from ascsim.isa.rules import finding, in_space, refuse, row_major
from ascsim.isa.semantics import convert
from ascsim.isa.semantics.convert import CONVERSIONS, Conversion
from ascsim.machine.dtypes import DTYPES, DType, bf16, f4e1m2x2, f4e2m1x2, f16, f32, i4x2, i8, i16
from ascsim.machine.operands import Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, RoundMode, Space
from ascsim.profiles import Profile


class SaturationMode(IntEnum):
    """What becomes of a value that does not fit; the numbers of PTO's SaturationMode."""

    ON = 0
    OFF = 1


def _pairs(table: str) -> frozenset[tuple[str, str]]:
    """Pairs from lines ``source: targets``."""
    lines = (line.split(":") for line in table.strip().splitlines())
    return frozenset((source.strip(), target) for source, targets in lines for target in targets.split())


_A2A3_PAIRS = _pairs("""
    f32: f16 f32 bf16 i16 i32 i64
    f16: f32 i32 i16 i8 u8 i4x2
    bf16: f32 i32
    i16: f16 f32
    i32: f32 i16 i64 f16
    i64: f32 i32
    u8: f16
    i8: f16
    i4x2: f16
""")
_A5_PAIRS = _pairs("""
    f32: f32 f16 bf16 i16 i32 i64 f8e4m3 f8e5m2 hif8
    f16: f32 i32 i16 i8 u8 hif8
    bf16: f32 i32 f16 f4e1m2x2 f4e2m1x2
    i16: u8 f16 f32 u32 i32
    i32: f32 i16 u16 i64 u8
    i64: f32 i32
    u8: f16 u16
    i8: f16 i16 i32
    u32: u8 u16 i16
    f8e4m3: f32
    f8e5m2: f32
    hif8: f32
    f4e1m2x2: bf16
    f4e2m1x2: bf16
""")
PAIRS = {"a2a3": _A2A3_PAIRS, "a5": _A5_PAIRS, "cpu": _A2A3_PAIRS | _A5_PAIRS}
"""What each profile converts: the table of the manual's page."""
_IMPLEMENTED: dict[tuple[str, str], Conversion] = {(c.source, c.target): c for c in CONVERSIONS}
_BY_WAY_OF_I32 = {(f32, i16), (f16, i16), (f16, i8)}
"""Pairs that are not saturated by way of int32, as PyTorch does it: its overflow and infinities then wrap."""


def conversion(call: SimpleNamespace) -> Conversion | None:
    """What is known of a call's pair of types."""
    return _IMPLEMENTED.get((call.src.dtype.name, call.dst.dtype.name))


def rounding(call: SimpleNamespace, pair: Conversion) -> int:
    """The mode that a pair rounds with; a mode that it lacks is its default."""
    return int(call.rmode) if int(call.rmode) in pair.modes else pair.default_rounding


def saturates(call: SimpleNamespace, pair: Conversion, profile: Profile) -> bool:
    """Whether a value that does not fit becomes the nearest that does."""
    if profile.name == "a2a3":
        if pair.family == "narrow" or (pair.saturates and call.tmp is None):
            return True
    elif profile.name == "cpu" and call.sat_mode is None:
        return False
    return pair.saturates if call.sat_mode is None else call.sat_mode == SaturationMode.ON


def goes_by_way_of_i32(call: SimpleNamespace, pair: Conversion, profile: Profile) -> bool:
    """Whether two instructions convert, of which the second drops high bits."""
    if not profile.is_chip or (profile.name == "a2a3" and call.tmp is None):
        return False
    return (call.src.dtype, call.dst.dtype) in _BY_WAY_OF_I32 and not saturates(call, pair, profile)


def scratch(call: SimpleNamespace, profile: Profile) -> list[Region]:
    """The bytes of tmp that a call writes."""
    pair, tmp, rows, columns = conversion(call), call.tmp, call.dst.valid_rows, call.dst.valid_cols
    if tmp is None or pair is None or profile.name != "a2a3" or not goes_by_way_of_i32(call, pair, profile):
        return []
    if not rows or not columns:
        return []

    def bytes_of(nbytes: int, offset: int = 0, dims: tuple[tuple[int, int], ...] = ()) -> Region:
        return Region(tmp.space, tmp.address + offset, nbytes, dims, np.dtype(np.uint8))

    if call.src.dtype is f32:
        whole, tail = divmod(columns, 64)
        head = [bytes_of(256 * min(whole, 255))] if whole else []
        return [*head, bytes_of(4 * tail, dims=((min(rows, 255), call.src.row_bytes),))] if tail else head
    part = min(columns, 64)
    return [bytes_of(4 * part)] + ([bytes_of(2 * part, 128)] if call.dst.dtype is i8 else [])


def converted(bits: np.ndarray, pair: Conversion, mode: int, saturate: bool, by_way_of_i32: bool) -> np.ndarray:
    """Raw elements of the source type as raw elements of the target type."""
    source, target = DTYPES[pair.source], DTYPES[pair.target]
    if pair.family == "from_pairs":
        numbers = convert.FOUR_BITS[pair.source][convert.codes_of_pairs(bits)]
        return _narrowed(numbers, target, mode, saturate)
    values = _values(bits, source)
    if pair.family == "to_pairs":
        return convert.pairs_of_codes(convert.f32_to_four_bits(values, pair.target, mode))
    if pair.family == "widen":
        return values.view(np.uint32)
    if pair.family == "whole":
        return convert.round_to_integer(values, mode).astype(np.float32).view(np.uint32)
    if pair.family == "narrow":
        return _narrowed(values, target, mode, saturate)
    if pair.family == "tiny":
        return _tiny(values, target, saturate)
    if pair.family == "from_int":
        exact = (convert.int64_to_f32 if source.size == 8 else convert.int_to_f32)(values, mode)
        return exact.view(np.uint32) if target is f32 else _narrowed(exact, target, mode, saturate)
    limits = np.iinfo(target.numpy)
    low, high = int(limits.min), int(limits.max)
    if pair.family == "int":
        whole = convert.int_to_int(values, saturate, low, high)
    elif by_way_of_i32:
        whole = convert.float_to_int_by_way_of_i32(values, mode, low, high)
    else:
        whole = convert.float_to_int(values, mode, saturate, low, high)
    return whole.astype(target.bits_dtype)


def _values(bits: np.ndarray, kind: DType) -> np.ndarray:
    """Elements as float32 or integers."""
    if kind in (f16, bf16):
        return convert.f16_bits_to_f32(bits) if kind is f16 else convert.bf16_bits_to_f32(bits)
    values = np.ascontiguousarray(bits).view(kind.numpy)
    return values.astype(np.float32) if kind.is_narrow_float else values


def _narrowed(values: np.ndarray, kind: DType, mode: int, saturate: bool) -> np.ndarray:
    to_bits = convert.f32_to_f16_bits if kind is f16 else convert.f32_to_bf16_bits
    return to_bits(values, mode, saturate)


def _tiny(values: np.ndarray, kind: DType, saturate: bool) -> np.ndarray:
    """float32 as an 8-bit float: to nearest, ties to even (hifloat8: away from zero), whatever the mode."""
    if saturate:
        codes = np.arange(256, dtype=np.uint8).view(kind.numpy).astype(np.float32)
        largest = codes[np.isfinite(codes)].max()
        values = np.where(np.isnan(values), np.float32(0), np.clip(values, -largest, largest))
    return np.asarray(values.astype(kind.numpy)).view(np.uint8)


def _is_packed(tile: Tile) -> bool:
    return tile.dtype in (i4x2, f4e2m1x2, f4e1m2x2)


def _elements(tile: Tile, rows: int, cols: int, profile: Profile, is_written: bool) -> Region:
    """The bytes of some rows and columns. Two elements of 4 bits share a byte.

    The A2/A3 find rows of such a tile as far apart as if each element had a byte, the A5 half as far. The A5 writes all
    bytes of such rows.
    """
    if not _is_packed(tile):
        return tile.region(rows, cols)
    pitch = tile.cols if profile.name == "a2a3" else tile.cols // 2
    nbytes = pitch if is_written and profile.name == "a5" else cols // 2 if is_written else -(-cols // 2)
    return Region(tile.space, tile.address, nbytes, ((rows, pitch),), np.dtype(np.uint8))


# Rules


def _with(call: SimpleNamespace, **changes: dict[str, object]) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(call), **{n: replace(getattr(call, n), **c) for n, c in changes.items()}})


def _types(call: SimpleNamespace) -> tuple[str, str]:
    return call.src.dtype.name, call.dst.dtype.name


def _no_pair(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    source, target = _types(call)
    if (source, target) in PAIRS[profile.name]:
        return None
    targets = ", ".join(sorted(t for s, t in PAIRS[profile.name] if s == source)) or "nothing"
    return f"{profile.name} does not convert {source} to {target}; it converts {source} to {targets}"


def _with_types(call: SimpleNamespace, source: str, target: str) -> SimpleNamespace:
    return _with(call, src={"dtype": DTYPES[source]}, dst={"dtype": DTYPES[target]})


def _without_pair(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with_types(call, "u8", "f32")
    yield _with_types(call, "i64", "f16")


def _half_byte(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if not call.dst.valid_cols % 2 or not (_is_packed(call.dst) or _is_packed(call.src)):
        return None
    return f"{call.dst.valid_cols} columns of dst are valid: half a byte at the end of each row of 4-bit elements"


def _with_half_byte(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    pair = ("f16", "i4x2") if profile.name == "a2a3" else ("bf16", "f4e2m1x2")
    yield _with(_with_types(call, *pair), dst={"valid_cols": 3}, src={"valid_cols": 3})


def _no_mode(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if int(call.rmode) not in set(RoundMode):
        return f"rmode is {int(call.rmode)}; the rounding modes are 0 to 6"
    if call.sat_mode is not None and int(call.sat_mode) not in set(SaturationMode):
        return f"sat_mode is {int(call.sat_mode)}; it is 0 (ON) or 1 (OFF)"
    return None


def _with_no_mode(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "rmode": 7})
    yield SimpleNamespace(**{**vars(call), "sat_mode": 2})


def _small_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    end = max((r.bounds()[1] for r in scratch(call, profile)), default=0) - (call.tmp.address if call.tmp else 0)
    if not end or end <= call.tmp.nbytes:
        return None
    return f"tmp has {call.tmp.nbytes} bytes, and it is written up to byte {end - 1}"


def _with_small_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    small = replace(call.src, dtype=f32, rows=1, cols=8, valid_rows=1, valid_cols=8)
    for source, target in (("f32", "i16"), ("f16", "i16"), ("f16", "i8")):
        yield SimpleNamespace(**{**vars(_with_types(call, source, target)), "tmp": small, "sat_mode": None})


def _other_shape(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    if (dst.valid_rows, dst.valid_cols) == (src.valid_rows, src.valid_cols):
        return None
    governing = "dst" if profile.is_chip else "src"
    return (
        f"dst has {dst.valid_rows}x{dst.valid_cols} valid and src {src.valid_rows}x{src.valid_cols}; the library "
        f"converts what is valid in {governing}"
    )


def _with_other_shape(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield _with(call, src={"valid_cols": call.src.valid_cols - 1})
    yield _with(call, dst={"valid_rows": call.dst.valid_rows - 1})


@tile_instruction("tcvt", pipe=Pipe.V, cpp_order=("dst", "src", "tmp", "rmode", "sat_mode"))
class TCvt:
    """Convert each element of ``src`` to the type of ``dst``.

    ``rmode`` says how a value between two of the target's is rounded: RINT to nearest, ties to even; ROUND to nearest,
    ties away from zero; FLOOR, CEIL, TRUNC to minus infinity, plus infinity, zero; ODD (float to half only) to the odd
    neighbour. NONE, and a mode that the pair lacks, is TRUNC from a float to an integer and RINT otherwise.

    ``sat_mode`` ON replaces what does not fit by the nearest value that does, and NaN by 0. OFF keeps the low bits of
    an integer, and makes a float infinite.
    """

    operands = (
        Out("dst"),
        In("src"),
        Choice("rmode", RoundMode, optional=True, default=RoundMode.RINT, cpp_given=True, doc="rounding mode"),
        Choice("sat_mode", SaturationMode, optional=True, doc="the pair's default where it is not given"),
        Scratch(
            "tmp", optional=True, used_on=A2A3, doc="working space of the A2/A3; 256 bytes are enough for half sources"
        ),
    )
    rules = (
        row_major("dst", "src"),
        in_space(Space.UB, "dst", "src", "tmp"),
        refuse("L002", "the profile converts src's type to dst's (table of the manual)", _no_pair, breaks=_without_pair,
               mend="Convert by way of a third type."),
        refuse("L012", "rows of 4-bit elements are whole bytes", _half_byte, breaks=_with_half_byte,
               profiles=("a2a3", "cpu"), mend="Convert an even number of columns."),
        refuse("L006", "rmode is a RoundMode, sat_mode a SaturationMode", _no_mode, breaks=_with_no_mode,
               mend="Use RoundMode::CAST_RINT and its kin, SaturationMode::ON or OFF."),
        finding("TCVT-1", "tmp holds what is written to it", _small_tmp, breaks=_with_small_tmp, profiles=A2A3,
                why="Float or half to int16, and half to int8, without saturation go by way of int32 in tmp; the "
                "library checks no size.", mend="Make tmp as large as an int32 tile of src's shape."),
        finding("TCVT-2", "dst and src have one valid shape", _other_shape, breaks=_with_other_shape,
                severity=Severity.WARNING, why="The libraries compare nothing; PTOAS refuses it.",
                mend="Give both tiles the same valid region."),
    )  # fmt: skip
    values = "bits"
    notes = (
        "Default without sat_mode: OFF for half to uint8, int8 and int16, float to int16, int64 to int32 and int32 to "
        "int16, ON for the others; on cpu always OFF.",
        "To 8-bit floats the A5 rounds to nearest in every mode: ties to even, to hifloat8 away from zero. A float8_e4m3 "
        "without saturation has NaN in place of an infinity.",
        "A2/A3: without tmp sat_mode counts for those five pairs only, and the others saturate; with tmp it counts for "
        "all. To half and bfloat16 they always saturate: another bit of CTRL, which TCVT leaves alone, governs those.",
        "Without saturation, float and half to int16 and half to int8 go by way of int32, saturating there: on the A5 "
        "always, on A2/A3 with tmp. An infinity then gives -1 or 0 (its low bits). Without tmp one instruction of the "
        "A2/A3 converts, and an infinity gives the limit.",
        "float to float rounds to whole numbers.",
        "Two elements of 4 bits share a byte, the first in its low half. Rows of such a tile are half as many bytes apart "
        "as it has columns (A5), or as many (A2/A3). The A5 fills what it does not write of dst's rows with 0, and leaves "
        "out the last of an odd number of elements. Such values saturate, and a NaN gives 0.",
        "cpu honours rmode for every pair, where the public CPU simulator rounds float to half to nearest.",
    )
    assumed = (
        "A2/A3: bit 48 of CTRL is 0, so that float to half and bfloat16 saturate.",
        "A NaN that stays one keeps its sign and upper payload and becomes quiet; ODD of half rounds to the odd one.",
        "What tmp holds afterwards: zeros.",
        "int32 to half, by way of dequantisation by 1 on the A2/A3: rounded to float, then to half.",
    )
    sources = (
        "pto-isa docs/isa/TCVT",
        "pto-isa include/pto/npu/a2a3/TCvt.hpp, include/pto/npu/a5/TCvt.hpp, include/pto/cpu/TCvt.hpp",
        "asc-devkit Cast, rounding_mode (overflow, NaN)",
    )

    def regions(self, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """The valid region of dst (cpu: src) in both, and what is written of tmp."""
        governing = call.dst if profile.is_chip else call.src
        shape = governing.valid_rows, governing.valid_cols
        return [
            (0, Mode.WRITE, _elements(call.dst, *shape, profile, True)),
            (1, Mode.READ, _elements(call.src, *shape, profile, False)),
            *((4, int(Mode.WRITE), region) for region in scratch(call, profile)),
        ]

    def compute(self, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The converted elements; tmp is left with zeros."""
        pair = conversion(call)
        assert pair is not None
        saturate, by_way = saturates(call, pair, profile), goes_by_way_of_i32(call, pair, profile)
        done = converted(arrays[0], pair, rounding(call, pair), saturate, by_way)
        if pair.family == "from_pairs":
            done = done[:, : (call.dst if profile.is_chip else call.src).valid_cols]
        elif pair.family == "to_pairs":
            width = _elements(call.dst, 1, 2 * done.shape[1], profile, True).length
            done = np.pad(done, ((0, 0), (0, width - done.shape[1])))
        return done, *(np.zeros(1, np.uint8) for _ in scratch(call, profile))
