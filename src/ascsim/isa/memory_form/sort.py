"""VBS32, the sort of 32-element blocks: ``vbitsort``, ``asc_bitsort``.

Sources: asc-devkit C-API vector_compute/asc_bitsort; pto-isa docs/isa/TSORT32 (tie rule), docs/isa/vector vsort32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import Bytes, Definition, In, Lanes, Out, Scalar, Sort, memory_instruction, types_of
from ascsim.isa.rules import finding
from ascsim.isa.semantics import network
from ascsim.isa.semantics.order import F16, F32, is_nan
from ascsim.isa.semantics.sort import depends_on_tie_rule, sorted_pairs
from ascsim.isa.sync import synchronous
from ascsim.machine.core import Core, Finding, Touch
from ascsim.machine.dtypes import i32, u32
from ascsim.machine.words import Pipe
from ascsim.profiles import Profile

BLOCK = 32
PAIR_BYTES = 8
_U4 = np.dtype(np.uint32)

NOTES = (
    "Equal values: the PTO manual puts the smaller index first, the Ascend C and PTOAS pages the earlier position. "
    "They are the same while the indices of a block ascend; ascsim takes the smaller index and warns (SORT-TIE) where "
    "it matters.",
    "+0 and -0 are equal. Each value keeps its bits.",
    "A pair is 8 bytes: the value and its index; after a half value come two zero bytes, which the Ascend C page calls "
    "reserved.",
)
ASSUMED = (
    "A NaN ranks by its sign: +NaN before +infinity, -NaN after -infinity. No page says so, but TSORT32 pads tails "
    "with -NaN and relies on that end (warning SORT-NAN).",
)

CATALOGUE.add(
    "SORT-TIE", Severity.WARNING, "The order of equal values is not agreed on",
    "A block holds equal values whose indices do not ascend with position. The PTO manual then puts the smaller index "
    "first, the Ascend C and PTOAS pages the earlier position; a chip may do either. ascsim took the smaller "
    "index.\n\n"
    "Let the indices ascend within each block, or do not depend on their order among equal values.",
)  # fmt: skip
CATALOGUE.add(
    "SORT-NAN", Severity.WARNING, "A NaN is sorted",
    "No document says where a NaN goes. ascsim ranks it by its sign: +NaN first, -NaN last, as the library's padding "
    "needs it.\n\n"
    "Replace NaNs before sorting.",
)  # fmt: skip
CATALOGUE.add(
    "BITSORT-3", Severity.ERROR, "The sort overwrites what it reads",
    "dst and a source share bytes. A block's 256 bytes of pairs overwrite the values and indices of later blocks "
    "before they are read; the page of asc_bitsort allows no overlap. ascsim read everything first.\n\n"
    "Sort into other memory.",
)  # fmt: skip


def order_of(bits: np.ndarray) -> int:
    """How to order raw float bits, by their width."""
    return F32 if bits.itemsize == 4 else F16


def blocks_of(row: np.ndarray) -> Iterator[np.ndarray]:
    """The whole blocks of rows (rows, columns), as (rows, blocks, 32), and their tail, as (rows, 1, columns % 32)."""
    whole = row.shape[1] // BLOCK * BLOCK
    if whole:
        yield row[:, :whole].reshape(-1, whole // BLOCK, BLOCK)
    if whole < row.shape[1]:
        yield row[:, None, whole:]


def sort_findings(title: str, bits: np.ndarray, indices: np.ndarray, order: int) -> list[Finding]:
    """SORT-NAN and SORT-TIE of rows of blocks about to be sorted; there may be one row of indices for all."""
    found = []
    nans = np.count_nonzero(is_nan(bits, order))
    if nans:
        headline = f"{title}: {nans} of {bits.size} values are NaN; where they go is not documented"
        found.append(Finding("SORT-NAN", Severity.WARNING, headline, ASSUMED[:1], "Replace NaNs before sorting."))
    if not (indices[:, 1:] > indices[:, :-1]).all() and any(
        depends_on_tie_rule(values, np.broadcast_to(places, values.shape), order)
        for values, places in zip(blocks_of(bits), blocks_of(indices), strict=True)
    ):
        headline = f"{title}: equal values whose indices do not ascend; documents disagree on their order"
        mend = "Let the indices ascend within each block of 32."
        found.append(Finding("SORT-TIE", Severity.WARNING, headline, NOTES[:1], mend))
    return found


def _repeats(call: SimpleNamespace) -> int:
    return int(call.repeat) & 0xFF


def _extent(call: SimpleNamespace) -> dict[str, Bytes]:
    count, size = _repeats(call), call.src0.dtype.size
    return {
        "dst": Bytes(BLOCK * PAIR_BYTES, ((count, BLOCK * PAIR_BYTES),), _U4),
        "src0": Bytes(BLOCK * size, ((count, BLOCK * size),)),
        "src1": Bytes(BLOCK * 4, ((count, BLOCK * 4),)),
    }


def _watch(core: Core, definition: Definition, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
    if not touches:
        touches = vbitsort.touches(core, args)
    dst, values, indices = touches
    if dst.region.is_empty():
        return []
    bits = core.view(values.region).view(args[1].dtype.bits_dtype)
    found = sort_findings(definition.title, bits, core.view(indices.region), order_of(bits))
    low, high = dst.region.bounds()
    for name, source in (("src0", values), ("src1", indices)):
        start, end = source.region.bounds()
        if start < high and low < end:
            headline = f"{definition.title}: dst and {name} share bytes {max(start, low):#x}..{min(end, high) - 1:#x}"
            found.append(Finding("BITSORT-3", Severity.ERROR, headline, (), "Sort into other memory."))
    return found


def sort_code(reads: list[Lanes], writes: list[Lanes]) -> Any:
    """The sort of whole blocks that do not lie where their pairs go; see :data:`Sought`."""
    (values, indices), pairs = (lanes.read() for lanes in reads), writes[0].view
    if not pairs.size or np.may_share_memory(pairs, values) or np.may_share_memory(pairs, indices):
        return None
    return partial(network.is_worth_it, values.size), partial(network.sorting, values, indices, pairs, order_of(values))


def sort_glance(reads: list[Lanes], writes: list[Lanes]) -> Any:
    """What :func:`sort_findings` needs to look at; see :data:`Sought`."""
    (values, indices), pairs = (lanes.read() for lanes in reads), writes[0].view
    if not pairs.size or np.may_share_memory(pairs, values) or np.may_share_memory(pairs, indices):
        return None
    return network.is_ready, partial(network.looking, values, indices, order_of(values))


def _encoded(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if 0 <= int(call.repeat) <= 255:
        return None
    return f"repeat is {int(call.repeat)}; the instruction holds 8 bits of it and sorts {_repeats(call)} blocks"


def _not_encoded(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for repeat in (-1, 256, 511):
        yield SimpleNamespace(**{**vars(call), "repeat": repeat})


def _zero(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "repeat is 0" if _repeats(call) == 0 else None


def _made_zero(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "repeat": 0})


@memory_instruction(
    "vbitsort", cpp="asc_bitsort", aliases=("vbitsort",), pipe=Pipe.V, variants=types_of("f16", "f32"),
    operands=(
        Out("dst", Sort.POINTER, "T", doc="pairs of value and index, 256 bytes a block"),
        In("src0", Sort.POINTER, "T", doc="values, 32 a block"),
        In("src1", Sort.POINTER, u32, doc="indices, 32 a block"),
        Scalar("repeat", i32, doc="blocks, 0 to 255"),
    ),
    extent=_extent, work=_repeats, watch=_watch, code=sort_code, glance=sort_glance,
    warns=("SORT-NAN", "SORT-TIE", "BITSORT-3"),
    rules=(
        finding("BITSORT-1", "repeat is 0 to 255", _encoded, breaks=_not_encoded,
                why="The encoding has 8 bits for it; the library masks or narrows the rest away.",
                mend="Split the work into calls of at most 255 blocks."),
        finding("BITSORT-2", "repeat is not 0 on this chip", _zero, breaks=_made_zero, severity=Severity.WARNING,
                profiles=("a5",), why="A repeat of 0 does nothing on A2 and A3 and is not guaranteed to on the A5.",
                mend="Skip the call when there is no block to sort."),
    ),
    notes=NOTES, assumed=ASSUMED,
    sources=("asc-devkit C-API vector_compute/asc_bitsort", "pto-isa docs/isa/TSORT32 (VBS32)"),
)  # fmt: skip
def vbitsort(values: np.ndarray, indices: np.ndarray, repeat: int) -> np.ndarray:
    """Sort blocks of 32 values, largest first, and carry the indices along.

    Block ``b`` takes ``src0[32b : 32b+32]`` and ``src1[32b : 32b+32]`` and writes 32 pairs of value and index,
    256 bytes, to ``dst`` (for half: value, 0x0000, index).
    """
    pairs = sorted_pairs(values, indices, order_of(values))
    return pairs.reshape(*values.shape[:-1], 2 * BLOCK)


synchronous(vbitsort, "asc_bitsort_sync", ("asc-devkit C-API vector_compute/asc_bitsort",))
