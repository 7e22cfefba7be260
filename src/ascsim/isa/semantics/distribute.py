"""Distribution modes: how bytes of UB become the lanes of a register, and lanes bytes; all of them in one table.

Memory and registers are seen as lanes: unsigned arrays whose item size is the mode's lane size (uint8 for mask
registers in memory). A register is 256 bytes of them. Little-endian throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

REGISTER_BYTES = 256
BLOCK_BYTES = 32

# Loads: lanes of memory -> lanes of a register (or of two).


def load_norm(memory: np.ndarray) -> np.ndarray:
    """A register's worth as it stands."""
    return memory.copy()


def load_broadcast(memory: np.ndarray) -> np.ndarray:
    """What is read (one element, or one block of 32 bytes) over and over."""
    register = np.empty((REGISTER_BYTES // (memory.size * memory.itemsize), memory.size), memory.dtype)
    register[:] = memory
    return register.reshape(-1)


def load_element_to_block(memory: np.ndarray) -> np.ndarray:
    """Eight elements, each filling a block of 32 bytes."""
    return np.repeat(memory, BLOCK_BYTES // memory.itemsize)


def load_upsample(memory: np.ndarray) -> np.ndarray:
    """Half a register's worth, each element twice."""
    return np.repeat(memory, 2)


def load_downsample(memory: np.ndarray) -> np.ndarray:
    """Two registers' worth, of which the even elements are kept."""
    return memory[::2].copy()


def load_unpack(memory: np.ndarray) -> np.ndarray:
    """Half a register's worth, each element followed by a zero: zero-extended to twice its width."""
    register = np.zeros(memory.size * 2, memory.dtype)
    register[::2] = memory
    return register


def load_unpack4(memory: np.ndarray) -> np.ndarray:
    """A quarter of a register's worth, each element followed by three zeros: zero-extended to four times its width."""
    register = np.zeros(memory.size * 4, memory.dtype)
    register[::4] = memory
    return register


def load_deinterleave(memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two registers' worth: the even elements to the first register, the odd ones to the second."""
    return memory[0::2].copy(), memory[1::2].copy()


# Stores: lanes of a register (or of two) -> (bytes for memory, 1 for each that is written).


def store_norm(register: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The active lanes (0/1 a lane), each in its place."""
    return register.copy().view(np.uint8), np.repeat(active, register.itemsize)


def store_even(register: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every other lane of those that are active, from the first on, one after another."""
    return register[::2].copy().view(np.uint8), np.repeat(active[::2], register.itemsize)


def store_first(register: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lane 0, whatever the mask says."""
    return register[:1].copy().view(np.uint8), np.ones(register.itemsize, np.uint8)


def store_interleave(register0: np.ndarray, register1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two registers woven lane by lane, whatever the mask says."""
    woven = np.empty((register0.size, 2), register0.dtype)
    woven[:, 0] = register0
    woven[:, 1] = register1
    return woven.reshape(-1).view(np.uint8), np.ones(2 * REGISTER_BYTES, np.uint8)


def store_pack(register: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lower half of each active lane, half as far apart.

    Assumed: an inactive lane leaves its place in memory as it is, so that lane ``i`` lands at place ``i``. The Ascend C
    pages only say that the active ones are stored one after another; PTO's vsts.md gives the place by lane number.
    """
    return _low_bytes(register, register.itemsize // 2), np.repeat(active, register.itemsize // 2)


def store_pack4(register: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest quarter of each active lane, a quarter as far apart; places as in :func:`store_pack`."""
    return _low_bytes(register, register.itemsize // 4), np.repeat(active, register.itemsize // 4)


def _low_bytes(register: np.ndarray, kept: int) -> np.ndarray:
    lanes = register.copy().view(np.uint8).reshape(register.size, register.itemsize)
    return lanes[:, :kept].copy().reshape(-1)


# Mask registers: 256 entries of 0 or 1, in memory one bit an entry, the lowest bit of the lowest byte first.


def _bits(memory: np.ndarray) -> np.ndarray:
    bits = (memory.reshape(memory.size, 1) >> np.arange(8).astype(np.uint8)) & np.uint8(1)
    return bits.reshape(8 * memory.size)


def _packed(bits: np.ndarray) -> np.ndarray:
    weights = np.uint8(1) << np.arange(8).astype(np.uint8)
    return (bits.reshape(bits.size // 8, 8) * weights).sum(axis=1).astype(np.uint8)


def load_mask_norm(memory: np.ndarray) -> np.ndarray:
    """All 256 bits."""
    return _bits(memory)


def load_mask_upsample(memory: np.ndarray) -> np.ndarray:
    """128 bits, each twice: a mask for lanes becomes one for lanes of twice the width."""
    return np.repeat(_bits(memory), 2)


def load_mask_downsample(memory: np.ndarray) -> np.ndarray:
    """512 bits, of which the even ones are kept: two masks become one for lanes of half the width."""
    return _bits(memory)[::2].copy()


def store_mask_norm(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All 256 bits."""
    return _packed(mask), np.ones(mask.size // 8, np.uint8)


def store_mask_pack(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 128 even bits."""
    return _packed(mask[::2].copy()), np.ones(mask.size // 16, np.uint8)


class Distribution(NamedTuple):
    """A mode: the builtin's token and the semantics, with what they touch.

    ``kind`` is ``load``, ``store``, ``mask_load`` or ``mask_store``. A load takes the lanes of ``nbytes`` bytes and
    returns one register or ``registers`` of them; a store takes the registers, then, if it is ``masked``, 0/1 for each
    lane, and returns ``nbytes`` bytes and which of them are written. ``lane_size`` is in bytes; loads and stores that
    have no width in their token serve them all, and a store of 8-byte lanes is one of pairs of 4-byte lanes.
    ``alignment`` is that of the address, in bytes.
    """

    kind: str
    token: str
    lane_size: int
    nbytes: int
    alignment: int
    registers: int
    masked: bool
    function: Callable[..., Any]


def _rows(
    kind: str, stem: str, sizes: tuple[int, ...], function: Callable[..., Any], nbytes: int = 0, align: int = 0,
    registers: int = 1, masked: bool = False,
) -> list[Distribution]:  # fmt: skip
    """One row a lane size; ``nbytes`` and ``align`` of 0 mean eight elements (``E2B``) or one element's size."""
    rows = []
    for size in sizes:
        count = 8 if stem == "E2B" else 1
        token = stem if stem in ("NORM", "BLK") and kind == "load" else f"{stem}_B{8 * size}"
        rows.append(
            Distribution(kind, token, size, nbytes or count * size, align or count * size, registers, masked, function)
        )
    return rows


def _mask_row(kind: str, token: str, nbytes: int, function: Callable[..., Any]) -> Distribution:
    return Distribution(kind, token, 1, nbytes, min(nbytes, 32), 1, False, function)


_VL = REGISTER_BYTES

DISTRIBUTIONS: tuple[Distribution, ...] = (
    *_rows("load", "NORM", (1, 2, 4, 8), load_norm, _VL, 32),
    *_rows("load", "BRC", (1, 2, 4), load_broadcast),
    *_rows("load", "BLK", (1, 2, 4), load_broadcast, 32, 32),
    *_rows("load", "E2B", (2, 4), load_element_to_block),
    *_rows("load", "US", (1, 2), load_upsample, _VL // 2, 32),
    *_rows("load", "DS", (1, 2), load_downsample, _VL * 2, 32),
    *_rows("load", "UNPK", (1, 2, 4), load_unpack, _VL // 2, 32),
    *_rows("load", "UNPK4", (1,), load_unpack4, _VL // 4, 32),
    *_rows("load", "DINTLV", (1, 2, 4), load_deinterleave, _VL * 2, 32, registers=2),
    *_rows("store", "NORM", (1, 2, 4), store_norm, _VL, 32, masked=True),
    *_rows("store", "ONEPT", (1, 2, 4), store_first),
    *_rows("store", "INTLV", (1, 2, 4), store_interleave, _VL * 2, 32, registers=2),
    *_rows("store", "PK", (2, 4, 8), store_pack, _VL // 2, 32, masked=True),
    *_rows("store", "PK4", (4,), store_pack4, _VL // 4, 32, masked=True),
    _mask_row("mask_load", "NORM", _VL // 8, load_mask_norm),
    _mask_row("mask_load", "US", _VL // 16, load_mask_upsample),
    _mask_row("mask_load", "DS", _VL // 4, load_mask_downsample),
    _mask_row("mask_store", "NORM", _VL // 8, store_mask_norm),
    _mask_row("mask_store", "PK", _VL // 16, store_mask_pack),
)


def distribution(kind: str, token: str, lane_size: int = 1) -> Distribution:
    """The table's row of a kind, a builtin's token (``"BRC_B16"``, ``"BLK"``) and a lane size.

    The token alone decides where it names a width.

    Raises:
        KeyError: there is no such mode.
    """
    for row in DISTRIBUTIONS:
        if row.kind == kind and row.token == token and (row.lane_size == lane_size or token[-1].isdigit()):
            return row
    raise KeyError(f"no {kind} distribution {token} for lanes of {lane_size} bytes")
