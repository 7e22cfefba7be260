"""How operands look in a notebook: small HTML in the page's own colours, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

_TEXT = "font-family:monospace;font-size:0.9em"
_CELL = "padding:0 0.5em;text-align:right;border:none"
_WIDE = 16


def tile(name: str, facts: Sequence[tuple[str, str]], shape: tuple[int, int], valid: tuple[int, int]) -> str:
    """A tile: its facts, and a picture of its valid part (filled) in the whole (outline)."""
    rows, cols = max(shape[0], 1), max(shape[1], 1)
    scale = 120 / max(rows, cols)
    width, height = max(cols * scale, 6), max(rows * scale, 6)
    inner = f'width="{width * valid[1] / cols:.1f}" height="{height * valid[0] / rows:.1f}"'
    picture = (
        f'<svg width="{width + 2:.0f}" height="{height + 2:.0f}" role="img" aria-label="valid part of the tile">'
        f'<g transform="translate(1 1)" stroke="currentColor" fill="none">'
        f'<rect {inner} fill="currentColor" fill-opacity="0.25" stroke="none"/>'
        f'<rect width="{width:.1f}" height="{height:.1f}"/></g></svg>'
    )
    listed = "".join(f"<tr><th style='{_CELL}'>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts)
    title = escape(f"tile {name}".strip())
    return f"<div style='{_TEXT}'><b>{title}</b><div>{picture}</div><table>{listed}</table></div>"


def lanes(title: str, values: np.ndarray, active: np.ndarray | None = None) -> str:
    """Lanes in rows of sixteen, each row under the number of its first lane; lanes that are not ``active`` are pale."""
    rows = []
    for start in range(0, len(values), _WIDE):
        cells = []
        for number in range(start, min(start + _WIDE, len(values))):
            pale = ";opacity:0.35" if active is not None and not active[number] else ""
            cells.append(f"<td style='{_CELL}{pale}'>{escape(_number(values[number]))}</td>")
        rows.append(f"<tr><th style='{_CELL};opacity:0.6'>{start}</th>{''.join(cells)}</tr>")
    return f"<div style='{_TEXT}'><b>{escape(title)}</b><table>{''.join(rows)}</table></div>"


def _number(value: np.generic) -> str:
    return str(value) if value.dtype.kind in "iub" else f"{float(value):.6g}"
