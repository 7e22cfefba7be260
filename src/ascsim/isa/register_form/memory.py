"""Aligned loads and stores of vector and mask registers, in every distribution mode.

A row of the tables below is a mode; each makes two instructions, the second of which moves the pointer
(``_postupdate``). What a mode does is in ``semantics/distribute.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ascsim.isa.definition import (
    Access,
    Asm,
    In,
    LaneMask,
    Load,
    Operand,
    Out,
    Scalar,
    Sort,
    Store,
    register_instruction,
    types_of,
)  # fmt: skip
from ascsim.isa.rules import different_registers
from ascsim.isa.semantics.distribute import distribution
from ascsim.machine.dtypes import DTYPES, DType, i32

B8 = ("i8", "u8", "f4e2m1x2", "f4e1m2x2", "i4x2", "f8e8m0", "f8e5m2", "f8e4m3", "hif8")
B16 = ("i16", "u16", "f16", "bf16")
B32 = ("i32", "u32", "f32")
B64 = ("i64", "u64")
_PLAIN = ("i8", "u8", *B16, *B32)
"""The types of the post-update stores."""


def _sources(page: str, pto: str) -> tuple[str, ...]:
    return f"asc-devkit C-API reg/{page}", "asc-devkit basic API Reg LoadAlign, StoreAlign", f"pto-isa docs/isa {pto}"


class Mode(NamedTuple):
    """A distribution mode: the builtin's token without its width, the C API's suffix, the types, what it does."""

    token: str
    suffix: str
    types: tuple[str, ...]
    doc: str
    deprecated: str = ""
    asm: tuple[str, ...] = ()
    """Other ``dist`` values of it."""
    post_types: tuple[str, ...] | None = None
    """The types of the post-update form: None for the same, empty for no such form."""
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


LOADS = (
    Mode("NORM", "", (*B8, *B16, *B32, *B64), "Load a register: 256 bytes as they stand."),
    Mode(
        "BRC", "_brc_elem", (*B8, *B16, *B32), "Load one element into all lanes.", "_brc", ("BRC",),
        notes=(
            "The C API's barrier page says that it reads 32 bytes, PTO's page that it reads 32 aligned bytes; the page "
            "on LoadAlign lets the address be a multiple of the element only. The access is taken to be the element.",
        ),
    ),
    Mode("BLK", "_brc_datablock", (*B8, *B16, *B32), "Load one block of 32 bytes over and over.", "_brc_v2"),
    Mode(
        "E2B", "_brc_elem2datablock", (*B16, *B32), "Load eight elements, each of which fills a block of 32 bytes.",
        "_brc_v3",
        notes=("A deprecated page has it load 8 bytes, the current ones 8 elements.",),
    ),
    Mode("US", "_upsample", (*B8, *B16), "Load half a register's worth (128 bytes), each element twice.",
         notes=("PTO's table gives US_B16 256 bytes.",)),
    Mode("DS", "_downsample", (*B8, *B16),
         "Load every other element of two registers' worth (512 bytes), from the first on.",
         notes=("PTO's table gives DS_B8 128 and DS_B16 256 bytes.",)),
    Mode(
        "UNPK", "_unpack", (*B8, *B16, *B32),
        "Load half a register's worth (128 bytes), each element followed by a zero: extended to twice its width.",
        notes=(
            "PTO's page gives the result lanes of 32 bits whatever the source's; the C API's is a register of the "
            "source type, in which every other lane is 0.",
        ),
    ),
    Mode("UNPK4", "_unpack4", B8,
         "Load a quarter of a register's worth (64 bytes), each byte followed by three zeros: extended to 32 bits.",
         "_unpack_v2"),
    Mode(
        "DINTLV", "_deintlv", (*B8, *B16, *B32),
        "Load two registers' worth (512 bytes): the even elements to dst0, the odd ones to dst1.",
        notes=("PTO's vlds page also has a form of DINTLV_B32 with one result; there is none here.",),
    ),
)  # fmt: skip

STORES = (
    Mode("NORM", "", (*B8, *B16, *B32), "Store the active lanes of a register, each in its place.", post_types=_PLAIN),
    Mode("ONEPT", "_1st", (*B8, *B16, *B32), "Store lane 0.", asm=("1PT",), post_types=_PLAIN),
    Mode(
        "INTLV", "_intlv", (*B8, *B16, *B32), "Store two registers (512 bytes), woven lane by lane.", post_types=(),
        notes=(
            "The C API has no overload for float.",
            "PTO's page has the mask gate the elements; the C API ignores it.",
        ),
    ),
    Mode(
        "PK", "_pack", (*B16, *B32, *B64), "Store the lower half of each active lane, half as far apart.",
        assumed=(
            "An inactive lane leaves a gap: lane i lands at place i. The C API's page says only that the active lanes "
            "are stored one after another; PTO's gives the place by the lane's number.",
        ),
    ),
    Mode("PK4", "_pack_quarter", B32, "Store the lowest byte of each active lane, one after another.", "_pack_v2",
         assumed=("An inactive lane leaves a gap, as with pack.",)),
)  # fmt: skip


def _sizes(types: Sequence[str]) -> list[int]:
    return sorted({v["T"].size for v in types_of(*types)})


def _token(kind: str, mode: Mode, size: int) -> str:
    bare = mode.token in ("NORM", "BLK") and kind == "load"
    return mode.token if bare else f"{mode.token}_B{8 * size}"


def _spellings(kind: str, mode: Mode, order: tuple[str, ...]) -> list[Asm]:
    paired = mode.token in ("DINTLV", "INTLV")
    name = {"load": "vlds", "store": "vsts"}[kind] + ("x2" if paired else "")
    key = "" if paired else "dist"
    spelled = [Asm(name, (), order)] if mode.token == "NORM" else []
    spelled += [Asm(name, (), ("src", "dst"))] if (kind, mode.token) == ("store", "NORM") else []
    spelled += [Asm(name, ((key, text),), order) for text in mode.asm]
    by_token: dict[str, list[int]] = {}
    for size in _sizes(mode.types):
        by_token.setdefault(_token(kind, mode, size), []).append(size)
    for token, sizes in by_token.items():
        spelled.append(Asm(name, ((key, token),), order, tuple(sizes)))
    return spelled


def _offset(unit: str, optional: bool) -> Operand:
    return Scalar("offset", i32, optional=optional, default=0, doc=f"how far from the pointer, in {unit}")


def _names(name: str, cpp: str, mode: Mode, post: bool) -> dict[str, Any]:
    """Name, C++ name and deprecated alias; post-update forms say so at their ends."""
    end = "_postupdate" if post else ""
    old = mode.deprecated
    alias = old.replace("_v", f"{end}_v") if "_v" in old else f"{old}{end}"
    tail = "" if mode.token == "NORM" else f"_{mode.token.lower()}"
    return {
        "name": f"{name}{tail}{'_post' if post else ''}",
        "cpp": f"{cpp}{mode.suffix}{end}",
        "aliases": (f"{cpp}{alias}",) if old else (),
    }


def _define_load(mode: Mode, post: bool) -> None:
    types = mode.types if mode.post_types is None or not post else mode.post_types
    pair = mode.token == "DINTLV"
    outs = ("dst0", "dst1") if pair else ("dst",)
    rows = {size: distribution("load", _token("load", mode, size), size) for size in _sizes(types)}

    def memory(chosen: dict[str, DType]) -> Access:
        row = rows[chosen["T"].size]
        return Load("src", row.nbytes, row.alignment, "offset", chosen["T"].size)

    operands = (
        *(Out(name, Sort.VREG, "T") for name in outs), In("src", Sort.POINTER, "T"), _offset("elements", not post),
    )  # fmt: skip
    names = _names("vlds", "asc_loadalign", mode, post)
    register_instruction(
        **names, operands=operands, variants=types_of(*types), memory=memory, post_update=post, native="moves",
        asm=() if post else _spellings("load", mode, ("src",)),
        rules=(different_registers(*outs),) if pair else (), doc=mode.doc + _MOVES_ON * post, notes=mode.notes,
        assumed=mode.assumed,
        sources=_sources(f"reg_load/{names['cpp']}", "vlds, vldsx2"),
    )(next(iter(rows.values())).function)  # fmt: skip


_MOVES_ON = " Then the pointer moves on by ``offset``."


def _define_store(mode: Mode, post: bool) -> None:
    types = mode.types if mode.post_types is None or not post else mode.post_types
    if not types:
        return
    pair = mode.token == "INTLV"
    sources = ("src0", "src1") if pair else ("src",)
    rows = {size: distribution("store", _token("store", mode, size), size) for size in _sizes(types)}
    row = next(iter(rows.values()))

    def memory(chosen: dict[str, DType]) -> Access:
        mine = rows[chosen["T"].size]
        return Store("dst", mine.nbytes, mine.alignment, "offset", chosen["T"].size)

    masks = (LaneMask(),) if row.masked else ()
    operands = (
        Out("dst", Sort.POINTER, "T"), *(In(name, Sort.VREG, "T") for name in sources), *masks,
        _offset("elements", not post),
    )  # fmt: skip
    names = _names("vsts", "asc_storealign", mode, post)
    order = (*sources, "dst", "mask" if row.masked else "_")
    register_instruction(
        **names, operands=operands, variants=types_of(*types), memory=memory, post_update=post, native="moves",
        cpp_order=("dst", *sources, "offset", *(m.name for m in masks)),
        cpp_lacks=types_of("f32") if pair else (),
        asm=() if post else _spellings("store", mode, order), doc=mode.doc + _MOVES_ON * post, notes=mode.notes,
        assumed=mode.assumed,
        sources=_sources(f"reg_store/{names['cpp']}", "vsts, vstsx2"),
    )(row.function)  # fmt: skip


_MASK_NOTES = (
    "PTO's pages load and store 64 bits and count offsets in units of 8 bytes; the C API moves all 256 bits of the "
    "register (VL/8 bytes) and counts offsets in bytes.",
)
_MASK_ASSUMED = ("The lowest bit of the lowest byte is the first.",)
_MASK_MODES = {
    "mask_load": {
        "NORM": ("", "Load a mask register: 32 bytes, one bit for each byte of a vector register."),
        "US": ("_upsample", "Load 16 bytes into a mask register, each bit twice: for lanes of twice the width."),
        "DS": ("_downsample", "Load every other bit of 64 bytes into a mask register: for lanes of half the width."),
    },
    "mask_store": {
        "NORM": ("", "Store a mask register: 32 bytes, one bit for each byte of a vector register."),
        "PK": ("_pack", "Store every other bit of a mask register: 16 bytes."),
    },
}


def _define_mask(kind: str, token: str, post: bool) -> None:
    suffix, doc = _MASK_MODES[kind][token]
    row = distribution(kind, token)
    loads = kind == "mask_load"
    side, pointer = (Load, "src") if loads else (Store, "dst")
    offset = _offset("bytes", not post)
    if loads:
        operands = (Out("dst", Sort.MREG), In("src", Sort.POINTER, "P"), offset)
    else:
        operands = (Out("dst", Sort.POINTER, "P"), In("src", Sort.MREG), offset)
    base, cpp = ("plds", "asc_loadalign") if loads else ("psts", "asc_storealign")
    order = ("src",) if loads else ("src", "dst")
    spelled = ([Asm(base, (), order)] if token == "NORM" else []) + [Asm(base, (("", token),), order)]
    end = "_postupdate" if post else ""
    page = f"reg_{'load' if loads else 'store'}/{cpp}{suffix}{end}"
    register_instruction(
        base + ("" if token == "NORM" else f"_{token.lower()}") + ("_post" if post else ""), cpp=cpp + suffix + end,
        operands=operands, variants=tuple({"P": DTYPES[t]} for t in (("u32",) if loads else ("u32", "u16", "u8"))),
        memory=lambda types: side(pointer, row.nbytes, row.alignment, "offset", 1), post_update=post, native="moves",
        asm=() if post else spelled, doc=doc + _MOVES_ON * post, notes=_MASK_NOTES, assumed=_MASK_ASSUMED,
        sources=_sources(page, f"{base}, {base[:3]}"),
    )(row.function)  # fmt: skip


for _post in (False, True):
    for _mode in LOADS:
        _define_load(_mode, _post)
    for _mode in STORES:
        _define_store(_mode, _post)
    for _kind, _modes in _MASK_MODES.items():
        for _one in _modes:
            _define_mask(_kind, _one, _post)
