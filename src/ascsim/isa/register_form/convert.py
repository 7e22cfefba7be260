"""Conversion between half and float registers.

The types have different widths, so one instruction converts half a register of the narrower one: its even lanes, or
(the ``_v2`` forms) its odd ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ascsim.isa.definition import Asm, In, LaneMask, Out, Sort, register_instruction
from ascsim.isa.semantics.convert import CEIL, FLOOR, ODD, RINT, ROUND, TRUNC, f32_to_f16_bits
from ascsim.machine.dtypes import f16, f32

_WRITINGS = (("rnd", "", "SAT", "NOSAT", ""), ("round_mode", "ROUND_", "RS_ENABLE", "RS_DISABLE", "PART_"))
"""How ``.pto`` text writes rounding, saturation and part: the key and prefix of a rounding, saturation on and off, the
prefix of a part. The second writing, PTO's older one, may leave the mask out."""
_PARTS = ((0, "", "EVEN"), (1, "_v2", "ODD"))
_OPERANDS = (Out("dst", Sort.VREG, "T"), In("src", Sort.VREG, "S"), LaneMask(of="S"))
_MASK_NOTE = (
    "The mask is read as one for lanes of the source (the page on Cast, PTO's page). From half, the odd part looks at "
    "the bits of the odd half lanes, which a mask made for 32-bit lanes does not set."
)


def widen(values: np.ndarray) -> np.ndarray:
    """The lanes as they are: narrow floats come in widened."""
    return values


for _part, _end, _name in _PARTS:
    register_instruction(
        f"vcvt_f16_f32{_end}", cpp=f"asc_half2float{_end}", operands=_OPERANDS, variants=({"T": f32, "S": f16},),
        values="widen", masking="zero", native="loops", part=_part, asm=(
            Asm("vcvt", (("part", _name),), sizes=(4,)), Asm("vcvt", (("part", f"PART_{_name}"),), sizes=(4,)),
            Asm("vcvt", (("part", f"PART_{_name}"),), ("src",), sizes=(4,)),
        ),
        doc=f"Convert the {_name.lower()} lanes of src, 64 of its 128, to float; exact. Inactive lanes become 0.",
        notes=(_MASK_NOTE,),
        sources=("asc-devkit C-API reg/data_type_convert/asc_half2float", "pto-isa docs/isa vcvt"),
    )(widen)  # fmt: skip

_ROUNDING = (
    ("rn", RINT, "R", "to nearest, ties to even"), ("rna", ROUND, "A", "to nearest, ties away from zero"),
    ("rd", FLOOR, "F", "down"), ("ru", CEIL, "C", "up"), ("rz", TRUNC, "Z", "towards zero"), ("ro", ODD, "O", "to odd"),
)  # fmt: skip


def _spellings(rounding: str, saturates: bool, part: str) -> list[Asm]:
    """In both writings, with each attribute that has its default (R, no saturation) written or not."""
    spelled: list[Asm] = []
    for key, round_prefix, on, off, part_prefix in _WRITINGS:
        always: list[tuple[str, str]] = [("part", part_prefix + part)]
        optional: list[tuple[str, str]] = []
        (optional if rounding == "R" else always).append((key, round_prefix + rounding))
        always.append(("sat", on)) if saturates else optional.append(("sat", off))
        chosen: list[list[tuple[str, str]]] = [[]]
        for attribute in optional:
            chosen += [[*some, attribute] for some in chosen]
        orders: list[tuple[str, ...]] = [()] if not part_prefix else [(), ("src",)]
        spelled += [Asm("vcvt", (*always, *some), order, sizes=(2,)) for some in chosen for order in orders]
    return spelled


def _define_narrowing(rounding: tuple[str, int, str, str], saturates: bool, part: tuple[int, str, str]) -> None:
    (short, mode, letter, said), (number, end, name) = rounding, part
    beyond = "the largest finite value, a NaN 0" if saturates else "infinity, a NaN a NaN"
    sat = "_sat" if saturates else ""
    record: dict[str, Any] = {"masking": "zero", "native": "loops", "part": number, "values": "native"}
    register_instruction(
        f"vcvt_f32_f16_{short}{sat}{end}", cpp=f"asc_float2half_{short}{sat}{end}", operands=_OPERANDS,
        variants=({"T": f16, "S": f32},), extra=lambda types: (mode, saturates),
        asm=_spellings(letter, saturates, name), **record,
        doc=f"""Convert 64 float lanes to half, rounding {said}, into the {name.lower()} lanes of dst.

        The other lanes of dst, and those of inactive lanes, become 0. What is out of range becomes {beyond}.
        """,
        notes=(_MASK_NOTE,),
        assumed=(
            "CTRL is as after reset, so that the instruction itself says whether it saturates.",
            "A NaN keeps its sign and the upper bits of its payload.",
        ),
        sources=(
            "asc-devkit C-API reg/data_type_convert/asc_float2half", "asc-devkit C-API rounding_mode",
            "pto-isa docs/isa vcvt",
        ),
    )(f32_to_f16_bits)  # fmt: skip


for _rounding in _ROUNDING:
    for _saturates in (False, True):
        for _one in _PARTS:
            _define_narrowing(_rounding, _saturates, _one)
