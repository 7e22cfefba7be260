"""Loads and stores at any address: whole registers at once, and streams through an unaligned register."""

from __future__ import annotations

from typing import Any

from ascsim.isa.definition import (
    A5,
    Asm,
    In,
    InOut,
    Load,
    Out,
    Scalar,
    Sort,
    register_instruction,
    types_of,
)  # fmt: skip
from ascsim.isa.register_form.memory import B8, B16, B32
from ascsim.isa.semantics.distribute import load_norm
from ascsim.isa.streams import Action, stream_instruction
from ascsim.machine.dtypes import i32, u32
from ascsim.machine.operands import REGISTER_BYTES

_TYPES = types_of(*B8, *B16, *B32, "i64")
_WITHOUT_HIF8 = types_of(*(t for t in B8 if t != "hif8"), *B16, *B32, "i64")

register_instruction(
    "vld_any", cpp="asc_load", variants=_TYPES, native="moves", asm=(),
    memory=lambda types: Load("src", REGISTER_BYTES, types["T"].size),
    operands=(Out("dst", Sort.VREG, "T"), In("src", Sort.POINTER, "T")),
    doc="Load a register, 256 bytes, from any address. The library primes an unaligned register of its own for it.",
    sources=("asc-devkit C-API reg/reg_load/asc_load and its impl",),
)(load_norm)  # fmt: skip

_ALIGN = "the unaligned register"
_STATE = (
    "The trace has the bytes that go into the result. A chip reads whole blocks of 32 bytes, up to 32 bytes further.",
)
_LOADS: dict[str, Any] = {
    "profiles": A5, "variants": _TYPES, "notes": _STATE,
    "sources": (
        "asc-devkit C-API reg/reg_load/asc_loadunalign_pre, asc_loadunalign, asc_loadunalign_postupdate",
        "asc-devkit basic API Reg LoadUnAlign", "pto-isa docs/isa vldas, vldus, align-type",
    ),
}  # fmt: skip
_SOURCE = In("address", Sort.POINTER, "T", doc="where the data begin; a multiple of the element is enough")
_MOVES = Scalar("count", u32, doc="how many elements the pointer moves on by")

stream_instruction(
    "vldas", action=Action.PRIME, cpp="asc_loadunalign_pre", asm=(Asm("vldas"),),
    operands=(Out("align", Sort.UREG, doc=_ALIGN), _SOURCE),
    doc="Fill an unaligned register with the block of 32 bytes that the address lies in, for the loads that follow.",
    **_LOADS,
)  # fmt: skip
_LOADED = (Out("value", Sort.VREG, "T"), InOut("align", Sort.UREG, doc=_ALIGN), _SOURCE)
_LOAD_DOC = """Load a register from any address: the bytes before the first whole block come from the unaligned register.

        Afterwards that holds the block in which the next load's data begin{next}.
        """
stream_instruction(
    "vldus", action=Action.LOAD, cpp="asc_loadunalign", operands=_LOADED, asm=(Asm("vldus", (), ("address", "align")),),
    cpp_order=("value", "align", "address"), doc=_LOAD_DOC.format(next=", 256 bytes further"), **_LOADS,
)  # fmt: skip
stream_instruction(
    "vldus_next", action=Action.LOAD, operands=_LOADED, asm=(Asm("vldus", (), ("address", "align")),), post_update=True,
    doc=_LOAD_DOC.format(next=", 256 bytes further: there the pointer moves"), **_LOADS,
)  # fmt: skip
stream_instruction(
    "vldus_post", action=Action.LOAD, cpp="asc_loadunalign_postupdate", operands=(*_LOADED, _MOVES), asm=(),
    cpp_order=("value", "align", "address", "count"), post_update=True,
    doc=_LOAD_DOC.format(next=", after the pointer has moved on by ``count``"), **_LOADS,
)  # fmt: skip


_STORES: dict[str, Any] = {
    "profiles": A5, "variants": _TYPES,
    "sources": (
        "asc-devkit C-API reg/reg_store/asc_storeunalign, asc_storeunalign_postupdate, asc_storeunalign_post",
        "asc-devkit basic API Reg StoreUnAlign", "pto-isa docs/isa vstus, vstur, vstas, vstar",
    ),
}  # fmt: skip
_TARGET = Out("address", Sort.POINTER, "T", doc="where the data go; a multiple of the element is enough")
_STORED = (InOut("align", Sort.UREG, doc=_ALIGN), In("value", Sort.VREG, "T"))
_COUNT = Scalar("count", u32, doc="how many elements are stored, from lane 0 on")
_END = Scalar("end", i32, doc="how many elements after the address the data end that were stored")
_STORE_DOC = """Store the first elements of a register at any address: whole blocks of 32 bytes go to UB, with what the
        unaligned register holds of the first one; the rest stays in that register.

        A flush writes the rest; without it the tail is lost.
        """
_ELSEWHERE = (
    "What the register still holds is dropped where a store begins elsewhere than the last one ended; a flush to another "
    "address than the end of the data puts them at their places of the block there.",
)

stream_instruction(
    "init_align", action=Action.INIT, profiles=A5, variants=({},), operands=(Out("align", Sort.UREG, doc=_ALIGN),),
    asm=(Asm("init_align"),), doc="An empty unaligned register, for stores. A C++ variable begins as one.",
    sources=("asc-devkit C-API reg/reg_data_types/data_type_definition",),
)  # fmt: skip
stream_instruction(
    "vstus", action=Action.STORE, cpp="asc_storeunalign", operands=(_TARGET, *_STORED, _COUNT), doc=_STORE_DOC,
    asm=tuple(Asm("vstus", mode, ("align", "count", "value", "address")) for mode in ((), (("", "NO_POST_UPDATE"),))),
    assumed=_ELSEWHERE, **_STORES,
)  # fmt: skip
stream_instruction(
    "vstus_post", action=Action.STORE, cpp="asc_storeunalign_postupdate", operands=(_TARGET, *_STORED, _COUNT),
    post_update=True, doc=f"{_STORE_DOC.rstrip()} Then the pointer moves on by ``count``.", assumed=_ELSEWHERE,
    asm=(Asm("vstus", (("", "POST_UPDATE"),), ("align", "count", "value", "address")),), **_STORES,
)  # fmt: skip
stream_instruction(
    "vstur", action=Action.STORE, cpp="asc_storeunalign_postupdate", operands=(_TARGET, *_STORED),
    asm=tuple(Asm("vstur", mode, ("align", "value", "address")) for mode in ((), (("", "POST_UPDATE"),))),
    doc=f"""{_STORE_DOC.rstrip()}

        It stores what the last asc_squeeze_with_status kept, behind what the stores since asc_clear_ar_spr took.
        """,
    notes=("Squeezes and stores must take turns, and asc_clear_ar_spr stands before the first.",),
    assumed=_ELSEWHERE, **_STORES,
)  # fmt: skip
stream_instruction(
    "pstu", action=Action.STORE, cpp="asc_storeunalign_postupdate", profiles=A5, variants=types_of("u16", "u32", "u8"),
    operands=(_TARGET, InOut("align", Sort.UREG, doc=_ALIGN), In("value", Sort.MREG)), post_update=True,
    asm=(Asm("pstu", (), ("align", "value", "address")),),
    doc="""Store a mask register, one bit a lane, behind what the unaligned register holds; the pointer moves on.

        For 16-bit lanes 16 bytes, at a multiple of 16; for 32-bit lanes 8 bytes, at a multiple of 8.
        """,
    notes=("A pointer to bytes counts as one to 32-bit elements, as in the C API's code.",), assumed=_ELSEWHERE,
    sources=("asc-devkit C-API reg/reg_store/asc_storeunalign_postupdate and its impl",
             "asc-devkit basic API Reg StoreUnAlign (MaskReg)", "pto-isa docs/isa pstu"),
)  # fmt: skip
stream_instruction(
    "vstas", action=Action.FLUSH, cpp="asc_storeunalign_post", asm=(Asm("vstas", (), ("align", "address", "end")),),
    operands=(_TARGET, In("align", Sort.UREG, doc=_ALIGN), _END),
    doc="Write what an unaligned register holds. The address and the offset are the end of the data.",
    assumed=_ELSEWHERE, **_STORES,
)  # fmt: skip
stream_instruction(
    "vstas_post", action=Action.FLUSH, cpp="asc_storeunalign_post_postupdate", asm=(), post_update=True,
    operands=(_TARGET, In("align", Sort.UREG, doc=_ALIGN), _END),
    doc="""Write what an unaligned register holds. The address and the offset are the end of the data; the pointer moves
        there.""",
    assumed=_ELSEWHERE, **_STORES,
)  # fmt: skip
stream_instruction(
    "vstar", action=Action.FLUSH, cpp="asc_storeunalign_post", asm=(Asm("vstar", (), ("align", "address")),),
    operands=(_TARGET, In("align", Sort.UREG, doc=_ALIGN)),
    doc="Write what an unaligned register holds; the data end as far after the address as the AR register says.",
    assumed=_ELSEWHERE, **{**_STORES, "variants": _WITHOUT_HIF8},
)  # fmt: skip
stream_instruction(
    "vst_any", action=Action.WHOLE, cpp="asc_store", profiles=A5, variants=_TYPES, asm=(),
    operands=(_TARGET, In("value", Sort.VREG, "T"), Scalar("count", u32, optional=True, doc="how many elements; all")),
    doc="Store the first ``count`` elements of a register at any address.",
    notes=(
        "The library's code flushes its unaligned register at the address where the data begin; the page of the flush "
        "asks for where they end. The data are stored here as the page of asc_store says.",
    ),
    sources=("asc-devkit C-API reg/reg_store/asc_store and its impl",),
)  # fmt: skip
