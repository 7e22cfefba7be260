"""Reductions on UB: of whole repeats (``vcadd``, ``vcmax``), of blocks (``vcgadd``), of neighbours (``vcpadd``).

Sources: asc-devkit C-API vector_compute (asc_repeat_reduce_max, asc_repeat_reduce_sum, asc_datablock_reduce_max,
asc_datablock_reduce_sum, asc_pair_reduce_sum and their kin, asc_get_reduce_max_cnt).
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A2A3, Out, Scalar, Sort, plain_instruction, types_of
from ascsim.isa.memory_form.masked import BLOCK_BYTES, BLOCKS, PAGES, REPEAT, SRC, Context, Layout, vector_family
from ascsim.isa.semantics import order, reduce
from ascsim.machine.core import Core
from ascsim.machine.dtypes import u16, u32
from ascsim.machine.operands import REGISTER_BYTES

_FLOATS = types_of("f16", "f32")
_DST = Out("dst", Sort.POINTER, "T", doc="the results, one after the other")
_HALF_LIMIT = np.float32(65504)
_SHAPE = (
    REPEAT,
    Scalar("dst_repeat_stride", u16, doc="from repeat to repeat of dst, in lengths of a repeat's result"),
    Scalar("src_block_stride", u16, doc="from block to block of src within a repeat, in blocks"),
    Scalar("src_repeat_stride", u16, doc="from repeat to repeat of src, in blocks"),
)
_DEFAULTS = {"repeat": 1, "dst_repeat_stride": 1, "src_block_stride": 1, "src_repeat_stride": BLOCKS}
_UNWRITTEN = "A result of which no element takes part is not written."
_TREE = "Neighbours are added, then neighbouring sums, and so on; an element that is left out counts as 0."
_SATURATED = "Half: a sum beyond 65504 stops there (the pages of the sums of repeats and blocks)."
_STEPS = "Half: each sum of two is rounded."


def _lanes(call: SimpleNamespace) -> int:
    return REGISTER_BYTES // int(call.src.dtype.size)


def _results(group: Callable[[int], int], times: Callable[[int], int] = lambda size: 1) -> Callable[..., Any]:
    """The layout of dst: ``times`` elements for each ``group(lanes)`` lanes; its repeats a result's length apart."""

    def layouts(call: SimpleNamespace) -> dict[str, Layout]:
        size, lanes = call.src.dtype.size, _lanes(call)
        layout = Layout(size, group=group(lanes), times=times(size))
        return {"dst": layout._replace(repeat=layout.elements(lanes) * size * int(call.dst_repeat_stride))}

    return layouts


def tree_sum(context: Context, values: np.ndarray, group: int) -> np.ndarray:
    """Sums of ``group`` neighbours each, halving step by step."""
    sums = np.where(context.active, values, np.float32(0))
    half = context.call.src.dtype.size == 2
    while group > 1:
        sums = sums[..., 0::2] + sums[..., 1::2]
        if half:
            sums = np.clip(sums, -_HALF_LIMIT, _HALF_LIMIT).astype(np.float16).astype(np.float32)
        group //= 2
    return sums


def _extremes(context: Context, bits: np.ndarray, group: int, smallest: bool) -> tuple[np.ndarray, np.ndarray]:
    """(bits, number within the group) of the largest or smallest of each ``group`` lanes."""
    kind = order.F32 if bits.itemsize == 4 else order.F16
    find = reduce.reduce_min if smallest else reduce.reduce_max
    lanes = bits.reshape(-1, bits.shape[-1] // group, group)
    active = context.active.reshape(-1, group)
    found = [[find(lanes[r, g], active[g], kind)[:2] for g in range(active.shape[0])] for r in range(lanes.shape[0])]
    pairs = np.array(found, bits.dtype).reshape(*bits.shape[:-1], -1, 2)
    return pairs[..., 0], pairs[..., 1]


def _keep(context: Context, values: np.ndarray, numbers: np.ndarray, smallest: bool) -> None:
    """Remember the best of all repeats, for asc_get_reduce_max_cnt."""
    rows = values.reshape(-1)
    find = reduce.reduce_min if smallest else reduce.reduce_max
    kind = order.F32 if rows.itemsize == 4 else order.F16
    if context.first:
        rows = np.concatenate([np.array([context.state.extreme[0]], rows.dtype), rows])
    rows = np.concatenate([rows, rows[-1:]])  # it wants two places for its answer; the first of equals wins
    best = find(rows, np.ones(rows.size, np.uint8), kind)[:2]
    place = int(best[1]) - bool(context.first)
    if place >= 0:
        lanes = _lanes(context.call)
        at = (context.first + place) * lanes + int(numbers.reshape(-1)[place])
        context.state.extreme = int(best[0]), at


# Sums

for _word, _builtin, _group, _cpp in (
    ("repeat", "vcadd", lambda lanes: lanes, "asc_repeat_reduce_sum"),
    ("block of 32 bytes", "vcgadd", lambda lanes: lanes // BLOCKS, "asc_datablock_reduce_sum"),
    ("pair of neighbours", "vcpadd", lambda lanes: 2, "asc_pair_reduce_sum"),
):

    def _sum(context: Context, values: np.ndarray, group: Callable[[int], int] = _group) -> np.ndarray:
        return tree_sum(context, values, group(_lanes(context.call)))

    vector_family(
        _cpp, _builtin, (_DST, SRC), _FLOATS, shape=_SHAPE, semantics=_sum, contextual=True, layouts=_results(_group),
        count=lambda call: _DEFAULTS, doc=f"The sum of each {_word}.", notes=(_TREE, _SATURATED), assumed=(_UNWRITTEN, _STEPS),
        aligns=(lambda call: {"dst": call.dst.dtype.size}) if _builtin == "vcadd" else None,
    )  # fmt: skip


# Largest and smallest

_TIES = "Among equals the first wins; +0 is larger than -0; a NaN beats all (the A5's page; these pages are silent)."


def _block_extreme(smallest: bool) -> Callable[..., Any]:
    return lambda context, bits: _extremes(context, bits, _lanes(context.call) // BLOCKS, smallest)[0]


def _as_numbers(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Numbers as 32-bit words, in elements of the values' width."""
    return places.astype(np.uint32).view(values.dtype)


def _repeat_extreme(smallest: bool, written: Callable[..., np.ndarray]) -> Callable[..., Any]:
    def compute(context: Context, bits: np.ndarray) -> np.ndarray:
        values, places = _extremes(context, bits, bits.shape[-1], smallest)
        _keep(context, values, places, smallest)
        return written(values, places)

    return compute


_ORDERS: tuple[tuple[str, str, Callable[..., np.ndarray], Callable[[int], int]], ...] = (
    ("value_index", "the value, then its number", lambda v, n: np.concatenate([v, n], -1), lambda size: 2),
    ("index_value", "the number, then the value", lambda v, n: np.concatenate([n, v], -1), lambda size: 2),
    ("only_value", "the value", lambda v, n: v, lambda size: 1),
    ("only_index", "its number, a uint32", _as_numbers, lambda size: 4 // size),
)

for _name, _said, _smallest in (("max", "largest", False), ("min", "smallest", True)):
    vector_family(
        f"asc_datablock_reduce_{_name}", f"vcg{_name}", (_DST, SRC), _FLOATS, shape=_SHAPE, values="bits",
        semantics=_block_extreme(_smallest), contextual=True, layouts=_results(lambda lanes: lanes // BLOCKS),
        count=lambda call: _DEFAULTS, doc=f"The {_said} element of each block of {BLOCK_BYTES} bytes.",
        assumed=(_TIES, _UNWRITTEN),
    )  # fmt: skip
    for _order, _which, _written, _times in _ORDERS:
        vector_family(
            f"asc_repeat_reduce_{_name}_{_order}", "", (_DST, SRC), _FLOATS, shape=_SHAPE, values="bits",
            semantics=_repeat_extreme(_smallest, _written), contextual=True, name=f"vc{_name}",
            layouts=_results(lambda lanes: lanes, _times), count=lambda call: _DEFAULTS,
            aligns=lambda call, times=_times: {"dst": call.dst.dtype.size * times(call.dst.dtype.size)},
            doc=f"The {_said} element of each repeat: {_which}.", page=f"asc_repeat_reduce_{_name}",
            notes=("A number has the width of an element where it stands beside the value.",),
            assumed=(_TIES, _UNWRITTEN, "What asc_get_reduce_max_cnt tells is the number among all elements."),
        )  # fmt: skip


@plain_instruction(
    "get_max_min_cnt", cpp="get_max_min_cnt", asm=(), profiles=A2A3, result="int64_t", level="system",
    sources=(f"{PAGES}asc_get_reduce_max_cnt and the code behind it",),
)  # fmt: skip
def get_max_min_cnt(core: Core, call: SimpleNamespace) -> int:
    """The largest or smallest element of the last reduction of repeats (its bits, low word) and its number (high word)."""
    bits, number = core.state.extreme
    return bits | number << 32


for _name, _kind in ((n, t["T"]) for n in ("max", "min") for t in _FLOATS):
    plain_instruction(
        f"asc_get_reduce_{_name}_cnt", cpp=f"asc_get_reduce_{_name}_cnt", asm=(), profiles=A2A3, level="system",
        references=(("val", _kind), ("index", u32)), sources=(f"{PAGES}asc_get_reduce_{_name}_cnt",),
        doc="The largest or smallest element of the last reduction of repeats, and its number; C++ passes their variables.",
        notes=("In Python it returns what get_max_min_cnt does.",),
    )(get_max_min_cnt.effect)  # fmt: skip
