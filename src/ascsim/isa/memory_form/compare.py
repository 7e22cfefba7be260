"""Comparison and selection on UB: ``vcmpv``, ``vcmp``, ``vsel`` and the compare mask between the last two.

Sources: asc-devkit C-API vector_compute (asc_eq and its kin, asc_eq_scalar and its kin, asc_select, asc_set_cmp_mask,
asc_get_cmp_mask); for where the bits of several repeats go, pto-isa include/pto/npu/a2a3/TCmp.hpp.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A2A3, REGISTRY, Bytes, In, Out, Scalar, Sort, memory_instruction, types_of
from ascsim.isa.memory_form.masked import (
    DST,
    PAGES,
    REPEAT,
    SRC,
    SRC0,
    SRC1,
    Context,
    Layout,
    VectorInstruction,
    numbers_fit,
    strides,
    vector_family,
)  # fmt: skip
from ascsim.isa.semantics import arithmetic
from ascsim.isa.sync import synchronous
from ascsim.machine.core import CoreState
from ascsim.machine.dtypes import u8
from ascsim.machine.operands import REGISTER_BYTES
from ascsim.machine.words import Pipe

MASK_BYTES = 16
_BITS = Out("dst", Sort.POINTER, u8, doc="a bit an element, the first lowest")
_FLOATS, _WITH_I32 = types_of("f16", "f32"), types_of("f16", "f32", "i32")
_COMPARISONS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("lt", "less than", arithmetic.less),
    ("le", "at most", arithmetic.less_equal),
    ("gt", "greater than", arithmetic.greater),
    ("ge", "at least", arithmetic.greater_equal),
    ("eq", "equal to", arithmetic.equal),
    ("ne", "unequal to", arithmetic.not_equal),
)
_NAN = 'No comparison with a NaN holds but "unequal"; -0 equals +0.'
_DENSE = (
    "The bits of a repeat follow those of the one before (8 bytes of 32-bit elements, 16 of 16-bit ones) whatever the "
    "strides of dst: TCmp.hpp steps over 240 repeats so, with a repeat stride of 8.",
)
_UNMASKED = ("The vector mask has no part in it; counter mode does.",)


def _bits_layout(source: str) -> Callable[[SimpleNamespace], dict[str, Layout]]:
    def layouts(call: SimpleNamespace) -> dict[str, Layout]:
        lanes = REGISTER_BYTES // getattr(call, source).dtype.size
        return {"dst": Layout(1, repeat=lanes // 8, group=8)}

    return layouts


def _as_bits(function: Callable[..., Any]) -> Callable[..., Any]:
    def compare(context: Context, a: np.ndarray, b: Any) -> np.ndarray:
        holds = function(a, np.asarray(b, a.dtype)) & context.active
        return np.packbits(holds, axis=-1, bitorder="little")

    return compare


def _to_mask(function: Callable[..., Any]) -> Callable[..., Any]:
    def compare(context: Context, a: np.ndarray, b: np.ndarray) -> None:
        bits = mask_bits(context.state)
        lanes = context.active.size
        bits[:lanes][context.active] = function(a, b).reshape(-1, lanes)[0][context.active]
        context.state.compare_mask = np.packbits(bits, bitorder="little").tobytes()

    return compare


def mask_bits(state: CoreState) -> np.ndarray:
    """The 128 bits of the compare mask."""
    return np.unpackbits(np.frombuffer(state.compare_mask, np.uint8), bitorder="little")


class MaskComparison(VectorInstruction):
    """A comparison of one repeat whose bits go to the compare mask."""

    def settled(self, call: SimpleNamespace) -> SimpleNamespace:
        """There is one repeat, whatever the call says."""
        call.repeat = 1
        return call


for _name, _said, _function in _COMPARISONS:
    _cpp, _types = f"asc_{_name}", _WITH_I32 if _name == "eq" else _FLOATS
    vector_family(
        _cpp, f"vcmpv_{_name}", (_BITS, SRC0, SRC1), _types, semantics=_as_bits(_function), contextual=True, count=False,
        unmasked=True, layouts=_bits_layout("src0"), notes=(*_DENSE, *_UNMASKED), assumed=(_NAN,),
        doc=f"Set a bit of dst where an element of src0 is {_said} that of src1, clear it elsewhere.",
    )  # fmt: skip
    vector_family(
        f"{_cpp}_scalar", f"vcmpvs_{_name}", (_BITS, SRC, Scalar("value", "T", doc="the number")), _types,
        semantics=_as_bits(_function), contextual=True, count=False, unmasked=True, layouts=_bits_layout("src"),
        notes=(*_DENSE, *_UNMASKED), assumed=(_NAN,),
        doc=f"Set a bit of dst where an element is {_said} a number, clear it elsewhere.",
    )  # fmt: skip
    _shape = (REPEAT, *strides(("dst", "src0", "src1"), u8))
    _made = MaskComparison(
        f"vcmp_{_name}", cpp=_cpp, aliases=(f"vcmp_{_name}",), profiles=A2A3, operands=(SRC0, SRC1, *_shape),
        variants=_FLOATS, semantics=_to_mask(_function), contextual=True, values="widen", rules=numbers_fit(_shape),
        doc=f"Set a bit of the compare mask where an element of src0 is {_said} that of src1: one repeat of 256 bytes.",
        notes=("Bits of elements that the vector mask leaves out stay as they were. repeat has no effect.",),
        assumed=(_NAN,), sources=(f"{PAGES}{_cpp}",),
    )  # fmt: skip
    REGISTRY.add(_made)
    synchronous(_made, f"{_cpp}_sync", (f"{PAGES}{_cpp}",))


@memory_instruction(
    "set_cmpmask", cpp="set_cmpmask", aliases=("asc_set_cmp_mask",), asm=(), profiles=A2A3, pipe=Pipe.V, stateful=True,
    operands=(In("sel_mask", Sort.POINTER, align=MASK_BYTES, doc="128 bits, the first element's lowest"),),
    extent=lambda call, state: {"sel_mask": Bytes(MASK_BYTES)}, sources=(f"{PAGES}asc_set_cmp_mask",),
    assumed=("The address is a multiple of 16 bytes.",),
)  # fmt: skip
def set_cmpmask(call: SimpleNamespace, state: CoreState, bits: np.ndarray) -> None:
    """Load the compare mask, which selections read, from 16 bytes of UB."""
    state.compare_mask = bits.tobytes()


@memory_instruction(
    "get_cmpmask", cpp="get_cmpmask", aliases=("asc_get_cmp_mask",), asm=(), profiles=A2A3, pipe=Pipe.V, stateful=True,
    operands=(Out("dst", Sort.POINTER, align=MASK_BYTES, doc="128 bits, the first element's lowest"),),
    extent=lambda call, state: {"dst": Bytes(MASK_BYTES)}, sources=(f"{PAGES}asc_get_cmp_mask",),
    assumed=("The address is a multiple of 16 bytes.",),
)  # fmt: skip
def get_cmpmask(call: SimpleNamespace, state: CoreState) -> np.ndarray:
    """Store the compare mask, which comparisons leave, to 16 bytes of UB."""
    return np.frombuffer(state.compare_mask, np.uint8)


def select(context: Context, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a`` where the compare mask has a 1, else ``b``."""
    return np.where(mask_bits(context.state)[: a.shape[-1]] != 0, a, b)


vector_family(
    "asc_select", "vsel", (DST, SRC0, SRC1), _FLOATS, semantics=select, contextual=True, values="bits",
    doc="The element of src0 where the compare mask has a 1, that of src1 where it has a 0.",
    notes=("Every repeat has the same bits: 64 for 32-bit elements, 128 for 16-bit ones.",),
)  # fmt: skip
