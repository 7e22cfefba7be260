"""Filling UB with one value: ``vector_dup``, ``asc_duplicate``.

Sources: asc-devkit C-API vector_compute/asc_duplicate and the code behind it.
"""

from __future__ import annotations

import numpy as np

from ascsim.isa.definition import A2A3, REGISTRY, Scalar, types_of
from ascsim.isa.memory_form.masked import DST, PAGES, REPEAT, VectorInstruction, numbers_fit, strides, vector_family
from ascsim.machine.dtypes import i64, u16

_TYPES = types_of("f16", "bf16", "i16", "u16", "f32", "i32", "u32")
_VALUE = Scalar("src", "T", doc="the value")
_BLOCK, _REPEAT = strides(("dst",), u16)
_DOC = "Write a value to the elements of each repeat that the vector mask selects."
_NOTES = ("Elements that the mask leaves out keep what they held.",)


def fill(value: np.ndarray) -> np.ndarray:
    """The value, for every lane."""
    return value


_OPERANDS = (
    DST, _VALUE, REPEAT, _BLOCK, Scalar("src_block_stride", u16, doc="has no effect"), _REPEAT,
    Scalar("src_repeat_stride", i64, doc="has no effect"),
)  # fmt: skip

vector_dup = VectorInstruction(
    "vector_dup", cpp="vector_dup", profiles=A2A3, variants=_TYPES, operands=_OPERANDS, semantics=fill, values="native",
    doc=_DOC, notes=_NOTES, rules=numbers_fit(_OPERANDS[:4]),
    sources=(f"{PAGES}asc_duplicate", "pto-isa include/pto/npu/a2a3/TSort32.hpp"),
)  # fmt: skip
REGISTRY.add(vector_dup)

vector_family(
    "asc_duplicate", "", (DST, _VALUE), _TYPES, semantics=fill, values="native", doc=_DOC, notes=_NOTES,
    name="vector_dup_strided",
)  # fmt: skip
