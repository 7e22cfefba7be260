"""What memory holds before anything writes it: a choice for the whole process (``ascsim run --fill``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

POISON = 0xFB
"""Loud but finite in every type (-2.6e36 as f32, -65376 as f16, -5 as i8)."""
BYTES = {"poison": POISON, "nan": 0xFF, "zero": 0}
"""The byte that each choice repeats; 0xff bytes are a NaN in every float type and -1 in every integer type."""
FILLS = (*BYTES, "random")
_SEED, _PATTERN = 20251201, 1 << 16

_chosen = "poison"


def choose(name: str) -> None:
    """Let fresh memory hold this from now on: one of :data:`FILLS`.

    Raises:
        ValueError: there is no such choice.
    """
    global _chosen
    if name not in FILLS:
        raise ValueError(f"memory is filled with {', '.join(FILLS)}, not {name}")
    _chosen = name


def chosen() -> str:
    """What fresh memory holds."""
    return _chosen


def fill(data: np.ndarray, name: str) -> None:
    """Fill bytes (uint8) in place; ``random`` is the same bytes each time."""
    if name in BYTES:
        data.fill(BYTES[name])
        return
    import numpy as np

    pattern = np.random.default_rng(_SEED).integers(0, 256, min(_PATTERN, len(data)), np.uint8)
    data[:] = np.resize(pattern, len(data))
