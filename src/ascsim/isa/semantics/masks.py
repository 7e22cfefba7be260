"""Mask registers: patterns, element counts, and lanes in and out of a mask.

A mask register is a uint8 array of 256 entries, each 0 or 1, one a byte of a vector register. A lane of ``lane_size``
bytes (1, 2, 4 or 8) looks at the first entry of its group only (MaskReg.md of the Ascend C documentation). What
instructions leave in a group's other entries is not documented: 0 is assumed, so a mask made for narrow lanes has holes
for narrower ones.
"""

from __future__ import annotations

import numpy as np

REGISTER_BYTES = 256

PATTERN_CODES = {
    "ALL": 0, "VL1": 1, "VL2": 2, "VL3": 3, "VL4": 4, "VL8": 5, "VL16": 6, "VL32": 7, "VL64": 8, "VL128": 9,
    "M3": 10, "M4": 11, "H": 12, "Q": 13, "ALLF": 15,
}  # fmt: skip
"""The values of the public enumeration ``PAT_*`` (``Pat``, ``MaskPattern``); 14 is none."""

_HALF, _QUARTER = 12, 13
_LIMIT = (256, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 256, 0, 0, 0, 0)
_STEP = (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4, 1, 1, 1, 1)


def pattern_mask(code: int, lane_size: int) -> np.ndarray:
    """The mask that ``pset_b8``, ``_b16``, ``_b32`` make of a pattern: uint8[256]; unknown codes give no lane.

    ``VLn``: the first n lanes, at most all; ``M3``, ``M4``: lanes whose number is a multiple of 3, 4; ``H``, ``Q``:
    the lower half, quarter. Source: asc_create_mask.md. Disputed: PTO's predicate pages put ``H`` and ``Q`` at the
    upper end.
    """
    lanes = REGISTER_BYTES // lane_size
    limit = _LIMIT[code & 15]
    if code == _HALF:
        limit = lanes // 2
    if code == _QUARTER:
        limit = lanes // 4
    number = np.arange(lanes)
    return from_lanes((number < limit) & (number % _STEP[code & 15] == 0), lane_size)


def lanes_of(mask: np.ndarray, lane_size: int) -> np.ndarray:
    """The lanes' view of a mask: uint8, one entry a lane."""
    return mask[::lane_size].copy()


def from_lanes(lanes: np.ndarray, lane_size: int) -> np.ndarray:
    """The mask with one entry a lane set from ``lanes`` (bool or 0/1) and zeros between: uint8[256]."""
    mask = np.zeros(lanes.size * lane_size, np.uint8)
    mask[::lane_size] = lanes
    return mask


def compared(result: np.ndarray, active: np.ndarray, lane_size: int) -> np.ndarray:
    """The mask that a comparison writes: ``result`` (bool lanes) where ``active`` (0/1 lanes), else 0."""
    return from_lanes(result & (active != 0), lane_size)
