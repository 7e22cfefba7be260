"""Squeezing and its count, packing and unpacking, histograms.

Sources: asc-devkit C-API reg/compare_and_select/asc_squeeze, reg/data_compress, reg/histogram_compute.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ascsim.isa.definition import (
    A5,
    Asm,
    In,
    InOut,
    LaneMask,
    Out,
    Role,
    Sort,
    State,
    plain_instruction,
    register_instruction,
    types_of,
)  # fmt: skip
from ascsim.isa.register_form.rearrange import LANES_8_16_32
from ascsim.isa.semantics import compress
from ascsim.machine.core import Core
from ascsim.machine.dtypes import DTYPES, DType
from ascsim.machine.words import Kept

_DST, _SRC = Out("dst", Sort.VREG, "T"), In("src", Sort.VREG, "T")


# Squeezing

_SQUEEZE_PAGE = "asc-devkit C-API reg/compare_and_select/asc_squeeze"

register_instruction(
    "vsqz", cpp="asc_squeeze", operands=(_DST, _SRC, LaneMask()), variants=LANES_8_16_32,
    doc="Put the active lanes of src one after another into dst, from lane 0 on; the rest of dst becomes 0.",
    sources=(_SQUEEZE_PAGE, "pto-isa docs/isa vsqz"),
)(compress.squeeze)  # fmt: skip
register_instruction(
    "vsqz_stored", cpp="asc_squeeze_with_status", aliases=("asc_squeeze_v2",), asm=(), variants=LANES_8_16_32,
    operands=(_DST, _SRC, LaneMask(), State(Kept.SQUEEZED, Role.INOUT)),
    doc="""As asc_squeeze; and add the bytes of the active lanes to the AR register.

        asc_clear_ar_spr clears that register, asc_get_squeeze_status reads it, and an unaligned store without a count
        takes its place from it.
        """,
    assumed=(
        "The bytes add up until AR is cleared. The page says that they are saved; library code reads the sum of a loop.",
    ),
    sources=(f"{_SQUEEZE_PAGE}_with_status", "asc-devkit library code of GatherMask"),
)(compress.squeeze_and_count)  # fmt: skip


@register_instruction(
    "sprclr", cpp="asc_clear_ar_spr", asm=(), 
    operands=(State(Kept.SQUEEZED, Role.OUT), State(Kept.STORED, Role.OUT)),
    doc="Clear the AR register, in which asc_squeeze_with_status adds up the bytes that it keeps.",
    sources=("asc-devkit C-API reg/system_variables_access/asc_clear_ar_spr",),
)  # fmt: skip
def clear() -> tuple[np.ndarray, np.ndarray]:
    """Zero, and so is what unaligned stores have taken of it."""
    return np.zeros(1, np.uint64), np.zeros(1, np.uint64)


@plain_instruction(
    "get_ar", cpp="asc_get_squeeze_status", aliases=("asc_get_ar_spr", "get_ar"), profiles=A5, asm=(),
    result="int64_t", level="system",
    sources=("asc-devkit C-API sys_var/asc_get_squeeze_status",),
)  # fmt: skip
def squeezed(core: Core, call: Any) -> int:
    """The AR register: how many bytes asc_squeeze_with_status has kept since it was cleared."""
    return int(core.state.words[Kept.SQUEEZED])


register_instruction(
    "vusqz", cpp="asc_unsqueeze", operands=(_DST, LaneMask()), native="loops",
    variants=types_of("u8", "i8", "u16", "i16", "u32", "i32"),
    doc="""Put into each lane of dst how many lanes before it are active: lane 0 gets 0.

        It is where an active lane lies after a squeeze. The last lane of the mask counts for none.
        """,
    notes=("PTO's page puts the lanes of a front-packed source that it does not name into the active lanes.",),
    assumed=("What dst held makes no difference: the page lists it as an input, and describes none.",),
    sources=("asc-devkit C-API reg/data_compress/asc_unsqueeze", "pto-isa docs/isa vusqz"),
)(compress.count_below)  # fmt: skip


# Halves


def pack_lanes(lanes: np.ndarray, high: bool) -> np.ndarray:
    """The lower halves of lanes."""
    return compress.pack(lanes.view(np.dtype(f"u{lanes.itemsize // 2}")), high)


def _pairs(*pairs: tuple[str, str]) -> tuple[dict[str, DType], ...]:
    return tuple({"T": DTYPES[t], "S": DTYPES[s]} for t, s in pairs)


_HALF = (Out("dst", Sort.VREG, "T"), In("src", Sort.VREG, "S"))
_MASKS = (Out("dst", Sort.MREG), In("src", Sort.MREG))
_UNSIGNED = _pairs(("u8", "u16"), ("u16", "u32"))
_PACKED = (
    ("LOWER", "low", "lower", False, "asc_pack_to_low", "asc_pack"),
    ("HIGHER", "high", "upper", True, "asc_pack_to_high", "asc_pack_v2"),
)
_PART_NOTE = "The page of the .pto form has a second source, or the half as a number; this is the C API's instruction."

for _part, _short, _half, _high, _cpp, _old in _PACKED:
    for _name, _variants in ((_cpp, _UNSIGNED), (_old, (*_UNSIGNED, *_pairs(("u8", "i16"), ("u16", "i32"))))):
        register_instruction(
            f"vpack_{_short}{'_old' if _name == _old else ''}", cpp=_name, operands=_HALF, variants=_variants,
            native="moves", extra=lambda types, high=_high: (high,),
            asm=(Asm("vpack", (("", _part),)),) if _name == _old else (),
            doc=f"Put the lower half of the bits of each lane of src into the {_half} half of dst; the other becomes 0.",
            notes=(_PART_NOTE,),
            assumed=("The other half becomes 0, as PTO's page on masks says; the C API's page is silent.",),
            sources=(f"asc-devkit C-API reg/data_compress/{_cpp}", "pto-isa docs/isa vpack, ppack"),
        )(pack_lanes)  # fmt: skip
    register_instruction(
        f"ppack_{_short}", cpp=_cpp, aliases=(_old,), operands=_MASKS, native="moves",
        extra=lambda types, high=_high: (high,), asm=(Asm("ppack", (("", _part),)),),
        doc=f"Put the even bits of src into the {_half} half of dst; the other half becomes 0.",
        sources=(f"asc-devkit C-API reg/data_compress/{_cpp}", "pto-isa docs/isa ppack"),
    )(compress.pack)  # fmt: skip

_UNPACK_SOURCE = "asc-devkit C-API reg/data_compress/asc_unpack"

for _part, _short, _upper in (("LOWER", "lower", False), ("HIGHER", "upper", True)):
    for _letter, _said, _variants in (
        ("z", "zeros", _pairs(("u16", "u8"), ("u32", "u16"))), ("s", "its sign", _pairs(("i16", "i8"), ("i32", "i16"))),
    ):  # fmt: skip
        register_instruction(
            f"v{_letter}unpack_{_short}", cpp=f"asc_unpack_{_short}", operands=_HALF, variants=_variants,
            values="native", extra=lambda types, upper=_upper: (upper,),
            asm=(Asm(f"v{_letter}unpack", (("", _part),)),),
            doc=f"Widen each lane of the {_short} half of src to twice its width, by {_said}.", notes=(_PART_NOTE,),
            sources=(_UNPACK_SOURCE, f"pto-isa docs/isa v{_letter}unpack"),
        )(compress.unpack)  # fmt: skip
    register_instruction(
        f"punpack_{_short}", cpp=f"asc_unpack_{_short}", operands=_MASKS, native="moves",
        extra=lambda types, upper=_upper: (upper,), asm=(Asm("punpack", (("", _part),)),),
        doc=f"Spread the bits of the {_short} half of src: each is followed by a 0.",
        sources=(_UNPACK_SOURCE, "pto-isa docs/isa punpack"),
    )(compress.unpack_mask)  # fmt: skip


# Histograms

_HISTOGRAMS = (
    ("dhistv2", "frequency", False, "how often each value from {first} to {last} occurs among"),
    ("chistv2", "cumulative", True, "for each value from {first} to {last} how many are not larger, of"),
)

for _name, _kind, _cumulative, _said in _HISTOGRAMS:
    for _bin in (0, 1):
        _counted = _said.format(first=128 * _bin, last=128 * _bin + 127)
        register_instruction(
            f"{_name}_n{_bin}", cpp=f"asc_{_kind}_histogram_bin{_bin}", asm=(), native="loops", variants=_pairs(("u16", "u8")),
            operands=(InOut("dst", Sort.VREG, "T"), In("src", Sort.VREG, "S"), LaneMask(of="S")),
            extra=lambda types, first=128 * _bin, cumulative=_cumulative: (first, cumulative),
            doc=f"Add to the 128 lanes of dst {_counted} the active lanes of src.",
            assumed=("A count above 65535 wraps.",),
            notes=(
                "The page's words can be read as if the upper half counted from 128 on; PTO's THISTOGRAM, which is this "
                "instruction, has the values below counted too.",
            ) * _cumulative,
            sources=(
                f"asc-devkit C-API reg/histogram_compute/asc_{_kind}_histogram", "pto-isa THISTOGRAM for the A5",
            ),
        )(compress.histogram)  # fmt: skip
