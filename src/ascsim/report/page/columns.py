"""Columns of numbers for the page: little-endian, compressed, as text; and what the numbers of one stand for."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

TYPES = {"u1": "Uint8Array", "u2": "Uint16Array", "i4": "Int32Array"}
WORK, SPAN, SET, WAIT, BARRIER, OTHER = range(6)
"""Kinds of bars: work, an instruction made of steps, operations of synchronisation. ``data.js`` has them too."""


def packed(values: np.ndarray, kind: str) -> dict[str, Any]:
    """A column of non-negative numbers (``u1``, ``u2``) or any (``i4``); those beyond the type's range are cut to it."""
    limits = np.iinfo(kind)
    column = np.clip(values, limits.min, limits.max).astype(f"<{kind}")
    text = base64.b64encode(zlib.compress(column.tobytes(), 6)).decode("ascii")
    return {"type": TYPES[kind], "length": len(column), "deflated": text}


def unpacked(data: dict[str, Any]) -> np.ndarray:
    """The inverse of :func:`packed`, for tests and tools."""
    kind = next(kind for kind, name in TYPES.items() if name == data["type"])
    return np.frombuffer(zlib.decompress(base64.b64decode(data["deflated"])), f"<{kind}")
