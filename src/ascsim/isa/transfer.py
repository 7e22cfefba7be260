"""Copies between global memory and UB, and within UB, on addresses.

The A2/A3 count 32-byte blocks and, from burst to burst, the gap from tail to head; the A5 counts bytes and strides from
head to head. Both have the same C names, so most of them are two definitions.

Sources: asc-devkit C-API vector_datamove (asc_copy_gm2ub, asc_copy_ub2gm, their _align forms, asc_copy_ub2ub,
asc_set_copy_pad_val, asc_set_gm2ub_loop_size and its kin) and the code behind them (impl/c_api/instr_impl); for what
fills a burst up to whole blocks, the DataCopyPad pages of the Ascend C base API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import (
    A2A3,
    A5,
    CHIPS,
    Bytes,
    Choice,
    Definition,
    In,
    MemoryInstruction,
    Operand,
    Out,
    Scalar,
    Sort,
    memory_instruction,
    plain_instruction,
    types_of,
)
from ascsim.isa.rules import Rule, finding, refuse, scalar_range
from ascsim.isa.sync import synchronous
from ascsim.machine.core import Core, CoreState
from ascsim.machine.dtypes import DType, dtype, u8, u16, u32, u64
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

BLOCK = 32
U8 = np.dtype(np.uint8)
_PAGES = "asc-devkit C-API vector_datamove/"


class LoadL2CacheMode(IntEnum):
    """``asc_load_l2_cache_mode``: how a copy from global memory uses the L2 cache. It has no effect on results."""

    NORMAL_FIRST_VICTIM = 0
    NORMAL_LAST_VICTIM = 1
    NORMAL_PERSISTENT = 2
    NOTALLOC_KEEP = 4
    NOTALLOC_CLEAN = 5
    NOTALLOC_DROP = 6


class StoreL2CacheMode(IntEnum):
    """``asc_store_l2_cache_mode``: how a copy to global memory uses the L2 cache. It has no effect on results."""

    NORMAL_FIRST_VICTIM = 0
    NORMAL_LAST_VICTIM = 1
    NORMAL_PERSISTENT = 2
    NOTALLOC_CLEAN = 4


# Shapes


def whole_blocks(nbytes: int) -> int:
    """``nbytes`` rounded up to whole 32-byte blocks."""
    return -(-nbytes // BLOCK) * BLOCK


def bursts(count: int, length: int, stride: int, loops: Sequence[tuple[int, int]] = ()) -> Bytes:
    """``count`` bursts of ``length`` bytes, ``stride`` bytes from head to head, all of it repeated over ``loops``."""
    if not count or not length:
        return Bytes(0, dtype=U8)
    dims = tuple((n, s) for n, s in (*loops, (count, stride)) if n != 1)
    return Bytes(length, dims, U8)


def same_bytes(source: np.ndarray, *scalars: Any) -> np.ndarray:
    """A plain copy."""
    return source


def filled(source: np.ndarray, left: int, total: int, fill: np.ndarray) -> np.ndarray:
    """Bursts (last axis, bytes) set into ``total`` bytes each after ``left``; the rest repeats ``fill``'s last axis."""
    padded = np.empty((*source.shape[:-1], total), np.uint8)
    element = fill.shape[-1]
    for byte in range(element):
        padded[..., byte::element] = fill[..., byte : byte + 1]
    padded[..., left : left + source.shape[-1]] = source
    return padded


def pad_bytes(state: CoreState, size: int) -> np.ndarray:
    """The core's pad value as the bytes of an element."""
    return np.array([state.pad], "<u8").view(np.uint8)[:size]


# Rules


def _pick(call: SimpleNamespace, *names: str) -> list[int]:
    return [int(getattr(call, name)) for name in names]


def _with(call: SimpleNamespace, **changes: Any) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(call), **changes})


def moves_something(*counts: str) -> Rule:
    """None of the counts is 0."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        zero = [name for name in counts if int(getattr(call, name)) == 0]
        return f"{zero[0]} is 0: nothing is copied" if zero else None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name in counts:
            yield _with(call, **{name: 0})

    return finding(
        "COPY-1", "the copy moves something", test, breaks=breaks, severity=Severity.WARNING,
        why="The page counts from 1; the chips take 0 as no operation.",
        mend="Skip the call when nothing is to be copied.",
    )  # fmt: skip


def whole_size(*, severity: Severity, code: str, why: str) -> Rule:
    """``size`` is a multiple of 32 bytes."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        rest = int(call.size) % BLOCK
        return f"size is {int(call.size)} bytes, {rest} more than a multiple of 32" if rest else None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield _with(call, size=int(call.size) + 4)

    return finding(
        code, "size is a multiple of 32 bytes", test, breaks=breaks, severity=severity, why=why,
        mend="Round the size up to whole blocks, or use the _align form with n_burst and len_burst, which takes any length.",
    )  # fmt: skip


_BLOCKS_ONLY = whole_size(
    severity=Severity.ERROR, code="COPY-2", why="The library divides the size by 32: the last bytes are not copied."
)
_BLOCKS_ASKED = whole_size(
    severity=Severity.WARNING, code="COPY-3", why="The page asks for it; the library passes the bytes on as they are."
)


def padding_fits(size_of: Callable[[SimpleNamespace], int]) -> Rule:
    """Neither padding is more than 32 bytes."""
    names = ("left_padding_num", "right_padding_num")

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        for name in names:
            nbytes = int(getattr(call, name)) * size_of(call)
            if not 0 <= nbytes <= BLOCK:
                return f"{name} is {int(getattr(call, name))} elements, {nbytes} bytes; at most 32 bytes fit"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name in names:
            yield _with(call, **{name: BLOCK // size_of(call) + 1})
            yield _with(call, **{name: -1})

    return refuse("L006", "left and right padding are at most 32 bytes each", test, breaks=breaks, mend="Pad less.")


def stride_in_ub(stride: str) -> Rule:
    """The stride in UB is a multiple of 32, unless the bursts lie side by side or there is one."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        count, length, step = _pick(call, "n_burst", "len_burst", stride)
        if count == 1 or step == length or step % BLOCK == 0:
            return None
        return f"{stride} is {step} bytes, neither a multiple of 32 nor len_burst ({length})"

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield _with(call, n_burst=2, **{stride: int(call.len_burst) + 4})

    return finding(
        "COPY-4", "from burst to burst in UB it is a multiple of 32 bytes, or the length of a burst", test,
        breaks=breaks, why="UB is written in 32-byte blocks; the page allows no other stride.",
        mend="Round the stride up.",
    )  # fmt: skip


def narrowed(*names: str) -> Rule:
    """E-COPY-16: the A5's library takes these as 16-bit numbers."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        for name in names:
            value = int(getattr(call, name))
            if value > 0xFFFF:
                return f"{name} {value} is narrowed to 16 bits, {value & 0xFFFF}"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name in names:
            yield _with(call, **{name: 65536})

    return finding(
        "E-COPY-16", f"{', '.join(names)} fit 16 bits", test, breaks=breaks, severity=Severity.WARNING,
        why="The page allows 2097151 bytes, but the library's function passes them on as uint16_t.",
        mend="Use the _align form, or several copies.",
    )  # fmt: skip


def gm_gap(gap: str) -> Rule:
    """E-COPY-GAP: the unit of the gap in global memory."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        count, value = _pick(call, "n_burst", gap)
        return f"{gap} is {value}, taken as bytes" if count > 1 and value else None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        yield _with(call, n_burst=2, **{gap: BLOCK})

    return finding(
        "E-COPY-GAP", "the gap in global memory counts bytes", test, breaks=breaks, severity=Severity.WARNING,
        why="The page says 32-byte blocks; TLOAD's code and the DataCopyPad page, on the same builtin, count bytes.",
        mend="Check the unit on the chip, or copy burst by burst.",
    )  # fmt: skip


_BURSTS = scalar_range("n_burst", 0, 4095)
_LONG = scalar_range("len_burst", 0, 2097151)
_SIZE = Scalar("size", u32, doc="bytes")
_N_BURST = Scalar("n_burst", u16, doc="bursts, 1 to 4095")


def _ends(target: Space, source: Space, kind: str | None = None) -> tuple[Operand, Operand]:
    return (
        Out("dst", Sort.POINTER, kind, space=target, align=1 if target == Space.GM else BLOCK),
        In("src", Sort.POINTER, kind, space=source, align=1 if source == Space.GM else BLOCK),
    )


# Whole blocks: within UB on both chips, and to and from global memory on A2/A3


def _size_in_blocks(call: SimpleNamespace) -> dict[str, Bytes]:
    covered = bursts(1, int(call.size) // BLOCK * BLOCK, 0)
    return {"dst": covered, "src": covered}


def _blocks_and_gaps(call: SimpleNamespace) -> dict[str, Bytes]:
    count, length, src_gap, dst_gap = _pick(call, "n_burst", "len_burst", "src_gap", "dst_gap")
    return {
        "dst": bursts(count, length * BLOCK, (length + dst_gap) * BLOCK),
        "src": bursts(count, length * BLOCK, (length + src_gap) * BLOCK),
    }


_BLOCK_SCALARS = (
    _N_BURST,
    Scalar("len_burst", u16, doc="length of a burst in 32-byte blocks, 1 to 65535"),
    Scalar("src_gap", u16, doc="from the tail of a burst to the head of the next, in blocks"),
    Scalar("dst_gap", u16, doc="the same at the destination"),
)
_BLOCK_RULES = (_BURSTS, scalar_range("len_burst", 0, 65535), moves_something("n_burst", "len_burst"))


def _block_copies(
    name: str, cpp: str, target: Space, source: Space, pipe: Pipe, profiles: Sequence[str], doc: str
) -> MemoryInstruction:
    """Register a copy of whole blocks: the simple form, the one with bursts, the ``_sync`` form. Returns the second."""
    record: dict[str, Any] = {
        "cpp": cpp, "asm": (), "pipe": pipe, "profiles": profiles, "variants": ({},),
        "sources": (f"{_PAGES}{cpp}",),
    }  # fmt: skip
    simple = memory_instruction(
        name, operands=(*_ends(target, source), _SIZE), extent=_size_in_blocks, doc=doc,
        work=lambda call: int(call.size) // BLOCK, rules=(moves_something("size"), _BLOCKS_ONLY), **record,
    )(same_bytes)  # fmt: skip
    synchronous(simple, f"{cpp}_sync", record["sources"])
    return memory_instruction(
        name, operands=(*_ends(target, source), *_BLOCK_SCALARS), extent=_blocks_and_gaps, rules=_BLOCK_RULES,
        work=lambda call: int(call.n_burst) * int(call.len_burst),
        doc=f"{doc} In bursts of 32-byte blocks with gaps between.", **record,
    )(same_bytes)  # fmt: skip


copy_ubuf_to_ubuf = _block_copies(
    "copy_ubuf_to_ubuf", "asc_copy_ub2ub", Space.UB, Space.UB, Pipe.V, CHIPS, "Copy within UB."
)
_TO_UB_SAID, _TO_GM_SAID = "Copy from global memory to UB.", "Copy from UB to global memory."
_block_copies("copy_gm_to_ubuf", "asc_copy_gm2ub", Space.UB, Space.GM, Pipe.MTE2, A2A3, _TO_UB_SAID)
_block_copies("copy_ubuf_to_gm", "asc_copy_ub2gm", Space.GM, Space.UB, Pipe.MTE3, A2A3, _TO_GM_SAID)

for _profiles, _extra in ((A2A3, (Scalar("sid", u8, doc="has no effect"),)), (A5, ())):
    memory_instruction(
        "copy_ubuf_to_ubuf", cpp="copy_ubuf_to_ubuf", asm=(), pipe=Pipe.V, profiles=_profiles, variants=({},),
        operands=(*_ends(Space.UB, Space.UB), *_extra, *_BLOCK_SCALARS), extent=_blocks_and_gaps, rules=_BLOCK_RULES,
        work=copy_ubuf_to_ubuf.work, doc="Copy within UB: the builtin behind asc_copy_ub2ub.",
        sources=("pto-isa include/pto/common/arch_cce_intrinsic.hpp",),
    )(same_bytes)  # fmt: skip


# The pad value, and the loops around copies of the A5


def _pad_value_of(kind: DType) -> None:
    @plain_instruction(
        f"set_mov_pad_val_{kind.name}", cpp="asc_set_copy_pad_val", asm=(), profiles=CHIPS,
        operands=(Scalar("pad_value", kind),), notes=("On the A5 it matters to copies into UB only.",),
        sources=(f"{_PAGES}asc_set_copy_pad_val",), doc="Set the value that padding copies fill with.",
    )  # fmt: skip
    def set_mov_pad_val(core: Core, call: SimpleNamespace) -> None:
        core.state.pad = int(np.array(call.pad_value).astype(kind.numpy).view(kind.bits_dtype))


_PADDED = types_of("i8", "u8", "i16", "u16", "f16", "bf16", "i32", "u32", "f32")
for _variant in _PADDED:
    _pad_value_of(_variant["T"])


def _loop_registers(way: str, doc: str) -> None:
    """``asc_set_{way}_loop_size`` and the two strides: attributes ``{way}_loops`` of the core's state."""

    def change(state: CoreState, first: int, *values: int) -> None:
        kept = list(getattr(state, f"{way}_loops"))
        kept[first : first + 2] = values
        setattr(state, f"{way}_loops", tuple(kept))

    def register(register: str, first: int, operands: Sequence[Operand], text: str, rules: Sequence[Rule] = ()) -> None:
        name = f"asc_set_{way}_{register}"

        @plain_instruction(
            name, cpp=name, asm=(), profiles=A5, operands=operands, rules=rules, doc=text, sources=(f"{_PAGES}{name}",)
        )
        def set_register(core: Core, call: SimpleNamespace) -> None:
            change(core.state, first, *_pick(call, *(o.name for o in operands)))

    sizes = [Scalar(f"loop{n}_size", u64, doc="0 to 2097151; 1 is no loop") for n in (1, 2)]
    ranges = [scalar_range(o.name, 0, (1 << 21) - 1) for o in sizes]
    register("loop_size", 0, sizes, f"Set how often {doc} is repeated, inner loop and outer; reset both to 1.", ranges)
    for number in (1, 2):
        strides = [Scalar(f"loop{number}_{end}_stride", u64, doc="bytes from head to head") for end in ("src", "dst")]
        which = "inner" if number == 1 else "outer"
        register(f"loop{number}_stride", 2 * number, strides, f"Set the strides of the {which} loop of {doc}.")


_loop_registers("gm2ub", "a copy from global memory to UB")
_loop_registers("ub2gm", "a copy from UB to global memory")


def _loops(registers: tuple[int, ...], end: int) -> tuple[tuple[int, int], ...]:
    """(count, stride) of the outer and the inner loop; ``end`` 0 is the source, 1 the destination."""
    inner, outer = registers[:2]
    return (outer, registers[4 + end]), (inner, registers[2 + end])


# To UB with padding. In UB a burst takes whole blocks: what padding leaves open is filled too


_FILL_NOTE = (
    "In UB each burst is filled up to whole 32-byte blocks. Without padding the fill repeats the burst's first "
    "element, with padding it is the pad value, as the DataCopyPad page tells of the same hardware."
)
_FILL_ASSUMED = "The fill of a burst is the same for this C function as for DataCopyPad, whose page alone tells it."
_PADDING = (
    Scalar("left_padding_num", u8, doc="elements before each burst"),
    Scalar("right_padding_num", u8, doc="elements after it"),
)
_LEN_BURST = Scalar("len_burst", u32, doc="length of a burst in bytes, 1 to 2097151")


def _element(call: SimpleNamespace) -> int:
    return int(call.dst.dtype.size)


def _padding(call: SimpleNamespace, size: int) -> tuple[int, int]:
    left, right = _pick(call, "left_padding_num", "right_padding_num")
    return left * size, right * size


def _align_in_a2a3_extent(call: SimpleNamespace, state: CoreState) -> dict[str, Bytes]:
    count, length, src_gap, dst_gap = _pick(call, "n_burst", "len_burst", "src_gap", "dst_gap")
    total = whole_blocks(length + sum(_padding(call, _element(call)))) if length else 0
    return {"dst": bursts(count, total, total + dst_gap * BLOCK), "src": bursts(count, length, length + src_gap)}


def _align_in_a2a3(call: SimpleNamespace, state: CoreState, source: np.ndarray) -> np.ndarray:
    size = _element(call)
    left, right = _padding(call, size)
    fill = pad_bytes(state, size) if left or right else source[..., :size]
    return filled(source, left, whole_blocks(left + source.shape[-1] + right), fill)


def _size_in_bytes(call: SimpleNamespace, state: CoreState) -> dict[str, Bytes]:
    covered = bursts(1, int(call.size), 0)
    return {"dst": covered, "src": covered}


def _size_into_blocks(call: SimpleNamespace, state: CoreState) -> dict[str, Bytes]:
    return {"dst": bursts(1, whole_blocks(int(call.size)), 0), "src": bursts(1, int(call.size), 0)}


def _align_simple(call: SimpleNamespace, state: CoreState, source: np.ndarray) -> np.ndarray:
    return filled(source, 0, whole_blocks(source.shape[-1]), source[..., : _element(call)])


def _plain_bytes(call: SimpleNamespace, state: CoreState, source: np.ndarray) -> np.ndarray:
    return source


def _register(
    name: str, cpp: str, semantics: Callable[..., Any], *, simple: bool = False, **record: Any
) -> MemoryInstruction:
    """Register one form of a stateful copy; with its ``_sync`` form where it is a simple one."""
    page = f"{_PAGES}{cpp}"
    made = memory_instruction(name, cpp=cpp, asm=(), stateful=True, sources=(page,), **record)(semantics)
    if simple:
        synchronous(made, f"{cpp}_sync", (page,))
    return made


_TO_UB, _TO_GM = _ends(Space.UB, Space.GM, "T"), _ends(Space.GM, Space.UB, "T")
_GAPS = (
    Scalar("src_gap", u32, doc="from a burst's tail to the next one's head: bytes in global memory, blocks in UB"),
    Scalar("dst_gap", u32, doc="the same at the destination"),
)
_SIZE_RULES = (scalar_range("size", 0, 2097151), moves_something("size"))
_BURST_RULES = (_BURSTS, _LONG, moves_something("n_burst", "len_burst"))
_DOC_IN = "Copy bytes from global memory to UB, where the copy need not be whole blocks."
_DOC_OUT = "Copy bytes from UB to global memory; they need not be whole blocks."
_IN_BURSTS = " In bursts with gaps between, and padding on both sides."

_register(
    "copy_gm_to_ubuf_align", "asc_copy_gm2ub_align", _align_simple, simple=True, profiles=A2A3, pipe=Pipe.MTE2,
    variants=_PADDED, operands=(*_TO_UB, _SIZE), extent=_size_into_blocks, rules=_SIZE_RULES, doc=_DOC_IN,
    notes=(_FILL_NOTE,), assumed=(_FILL_ASSUMED,),
)  # fmt: skip
_register(
    "copy_gm_to_ubuf_align", "asc_copy_gm2ub_align", _align_in_a2a3, profiles=A2A3, pipe=Pipe.MTE2, variants=_PADDED,
    operands=(*_TO_UB, _N_BURST, _LEN_BURST, *_PADDING, *_GAPS), extent=_align_in_a2a3_extent,
    rules=(*_BURST_RULES, padding_fits(_element), gm_gap("src_gap")), doc=_DOC_IN + _IN_BURSTS,
    notes=(_FILL_NOTE,), assumed=(_FILL_ASSUMED,),
)  # fmt: skip


# To global memory with padding, A2/A3


def _element_out(call: SimpleNamespace) -> int:
    """The library's function for half calls the builtin for bytes, so its padding counts bytes."""
    kind = call.dst.dtype
    return 1 if kind.name == "f16" else min(int(kind.size), 4)


def _align_out_a2a3_extent(call: SimpleNamespace, state: CoreState) -> dict[str, Bytes]:
    count, length, src_gap, dst_gap = _pick(call, "n_burst", "len_burst", "src_gap", "dst_gap")
    total = length + sum(_padding(call, _element_out(call))) if length else 0
    return {
        "dst": bursts(count, total, total + dst_gap),
        "src": bursts(count, length, whole_blocks(length) + src_gap * BLOCK),
    }


def _align_out_a2a3(call: SimpleNamespace, state: CoreState, source: np.ndarray) -> np.ndarray:
    left, right = _padding(call, _element_out(call))
    return filled(source, left, left + source.shape[-1] + right, pad_bytes(state, _element_out(call)))


def _half_padding(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    left, right = _pick(call, "left_padding_num", "right_padding_num")
    unit = _element_out(call)
    if call.dst.dtype.size == unit or not (left or right):
        return None
    return f"padding of {left} and {right} counts units of {unit} bytes"


def _padded_half(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    half = dtype("f16")
    dst, src = call.dst._replace(dtype=half), call.src._replace(dtype=half)
    yield _with(call, dst=dst, src=src, left_padding_num=1)


_WIDE = (*_PADDED, *types_of("f64", "i64", "u64"))
_register(
    "copy_ubuf_to_gm_align", "asc_copy_ub2gm_align", _plain_bytes, simple=True, profiles=A2A3, pipe=Pipe.MTE3,
    variants=_WIDE, operands=(*_TO_GM, _SIZE), extent=_size_in_bytes, rules=_SIZE_RULES, doc=_DOC_OUT,
)  # fmt: skip
_register(
    "copy_ubuf_to_gm_align", "asc_copy_ub2gm_align", _align_out_a2a3, profiles=A2A3, pipe=Pipe.MTE3, variants=_WIDE,
    operands=(*_TO_GM, _N_BURST, _LEN_BURST, *_PADDING, *_GAPS), extent=_align_out_a2a3_extent,
    rules=(
        *_BURST_RULES, padding_fits(_element_out), gm_gap("dst_gap"),
        finding("E-COPY-HALF", "padding counts elements", _half_padding, breaks=_padded_half, severity=Severity.WARNING,
                why="The library calls the builtin for bytes for half, and the one for 32 bits for 64-bit types.",
                mend="Do not pad this type on the way out."),
    ),
    doc=_DOC_OUT + _IN_BURSTS,
    assumed=("Padding on the way out is written to global memory around each burst, with the pad value.",),
)  # fmt: skip


# The A5: bytes, strides from head to head, loops


@dataclass(frozen=True)
class _A5Copy:
    """One way of the A5's copies. ``untyped`` functions take bytes, and their numbers as 16 bits."""

    into_ub: bool
    untyped: bool

    def numbers(self, call: SimpleNamespace) -> tuple[int, int, int, int]:
        """(n_burst, len_burst, src_stride, dst_stride)."""
        if hasattr(call, "size"):
            numbers = [1, int(call.size), 0, 0]
        else:
            numbers = _pick(call, "n_burst", "len_burst", "src_stride", "dst_stride")
        count, length, src_stride, dst_stride = (n & 0xFFFF for n in numbers) if self.untyped else numbers
        return count, length, src_stride, dst_stride

    def padding(self, call: SimpleNamespace) -> tuple[int, int]:
        """Bytes before and after each burst."""
        return _padding(call, _element(call)) if hasattr(call, "left_padding_num") else (0, 0)

    def compact(self, call: SimpleNamespace) -> bool:
        """Bursts that lie side by side in UB are filled up to whole blocks once, at the end, not each."""
        count, length, _, dst_stride = self.numbers(call)
        return count > 1 and dst_stride == length and length % BLOCK != 0

    def extent(self, call: SimpleNamespace, state: CoreState) -> dict[str, Bytes]:
        """The bytes of both ends."""
        count, length, src_stride, dst_stride = self.numbers(call)
        registers = state.gm2ub_loops if self.into_ub else state.ub2gm_loops
        there, here = _loops(registers, 1), _loops(registers, 0)
        source = bursts(count, length, src_stride, here)
        if not self.into_ub:
            return {"dst": bursts(count, length, dst_stride, there), "src": source}
        if self.compact(call):
            return {"dst": bursts(1, whole_blocks(count * length), 0, there), "src": source}
        total = whole_blocks(length + sum(self.padding(call))) if length else 0
        return {"dst": bursts(count, total, dst_stride, there), "src": source}

    def semantics(self, call: SimpleNamespace, state: CoreState, source: np.ndarray) -> np.ndarray:
        """Bytes as they arrive."""
        if not self.into_ub:
            return source
        count, length, _, _ = self.numbers(call)
        left, right = self.padding(call)
        if self.compact(call):
            source, left, right = source.reshape(*source.shape[:-2], count * length), 0, 0
        element = 1 if self.untyped else _element(call)
        constant = bool(getattr(call, "enable_constant_pad", False))
        fill = pad_bytes(state, element) if constant else source[..., :element]
        return filled(source, left, whole_blocks(left + source.shape[-1] + right), fill)


_A5_FILL = (
    "In UB each burst, or bursts that lie side by side as one, are filled up to whole 32-byte blocks: with the pad "
    "value where enable_constant_pad says so, else with the first element."
)
_LOOPS = "The loop registers (asc_set_*_loop_size) repeat it."
_A5_TYPES = (*_PADDED, *types_of("hif8", "f8e5m2", "f8e4m3"))
_TO_UB_STRIDES = (
    Scalar("src_stride", u64, doc="bytes from the head of a burst to the head of the next"),
    Scalar("dst_stride", u32, doc="the same at the destination"),
)
_TO_GM_STRIDES = (
    Scalar("dst_stride", u64, doc="bytes from the head of a burst to the head of the next"),
    Scalar("src_stride", u32, doc="the same in UB"),
)
_NARROW = narrowed("len_burst", "src_stride", "dst_stride")


def _a5(name: str, cpp: str, way: _A5Copy, pipe: Pipe, doc: str, **record: Any) -> None:
    notes = (_A5_FILL, _LOOPS) if way.into_ub else (_LOOPS,)
    assumed = (_FILL_ASSUMED,) if way.into_ub else ()
    _register(
        name, cpp, way.semantics, extent=way.extent, profiles=A5, pipe=pipe, doc=doc, notes=notes, assumed=assumed,
        **record,
    )  # fmt: skip


for _into, _name, _cpp, _pipe, _doc in (
    (True, "copy_gm_to_ubuf_align_v2", "asc_copy_gm2ub", Pipe.MTE2, _TO_UB_SAID),
    (False, "copy_ubuf_to_gm_align_v2", "asc_copy_ub2gm", Pipe.MTE3, _TO_GM_SAID),
):
    _way = _A5Copy(_into, untyped=True)
    _ends_here = _ends(Space.UB, Space.GM) if _into else _ends(Space.GM, Space.UB)
    _strides = [Scalar(o.name, u16, doc=o.doc) for o in (_TO_UB_STRIDES if _into else _TO_GM_STRIDES)]
    _in_ub = "dst_stride" if _into else "src_stride"
    _a5(_name, _cpp, _way, _pipe, _doc, simple=True, variants=({},), operands=(*_ends_here, _SIZE),
        rules=(moves_something("size"), narrowed("size"), _BLOCKS_ASKED))  # fmt: skip
    _a5(_name, _cpp, _way, _pipe, f"{_doc} In bursts, {_strides[0].name} before {_strides[1].name}.", variants=({},),
        operands=(*_ends_here, _N_BURST, Scalar("len_burst", u16, doc="length of a burst in bytes"), *_strides),
        rules=(_BURSTS, _LONG, moves_something("n_burst", "len_burst"), _NARROW, stride_in_ub(_in_ub)))  # fmt: skip

_IN, _OUT = _A5Copy(True, untyped=False), _A5Copy(False, untyped=False)
_a5("copy_gm_to_ubuf_align_v2", "asc_copy_gm2ub_align", _IN, Pipe.MTE2, _DOC_IN, simple=True, variants=_A5_TYPES,
    operands=(*_TO_UB, _SIZE), rules=(*_SIZE_RULES, _BLOCKS_ASKED))  # fmt: skip
_a5("copy_gm_to_ubuf_align_v2", "asc_copy_gm2ub_align", _IN, Pipe.MTE2, _DOC_IN + _IN_BURSTS, variants=_A5_TYPES,
    operands=(
        *_TO_UB, _N_BURST, _LEN_BURST, *_PADDING,
        Scalar("enable_constant_pad", u8, doc="1: pad with the set value; 0: with the first element"),
        Choice("l2_cache_mode", LoadL2CacheMode), *_TO_UB_STRIDES,
    ),
    rules=(*_BURST_RULES, padding_fits(_element), stride_in_ub("dst_stride")))  # fmt: skip
_a5("copy_ubuf_to_gm_align_v2", "asc_copy_ub2gm_align", _OUT, Pipe.MTE3, _DOC_OUT, simple=True, variants=_A5_TYPES,
    operands=(*_TO_GM, _SIZE), rules=(*_SIZE_RULES, _BLOCKS_ASKED))  # fmt: skip
_a5("copy_ubuf_to_gm_align_v2", "asc_copy_ub2gm_align", _OUT, Pipe.MTE3, f"{_DOC_OUT} In bursts, dst_stride first.",
    variants=_A5_TYPES,
    operands=(*_TO_GM, _N_BURST, _LEN_BURST, Choice("l2_cache_mode", StoreL2CacheMode), *_TO_GM_STRIDES),
    rules=(*_BURST_RULES, stride_in_ub("src_stride")))  # fmt: skip
