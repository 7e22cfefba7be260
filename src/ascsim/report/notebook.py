"""Reports in a notebook: what the terminal would show, as HTML in the page's own background."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console
from rich.terminal_theme import TerminalTheme

_THEME = TerminalTheme(
    (255, 255, 255),
    (0, 0, 0),
    [
        (90, 90, 90),
        (200, 50, 50),
        (40, 140, 60),
        (170, 120, 0),
        (60, 110, 200),
        (160, 70, 160),
        (0, 140, 150),
        (130, 130, 130),
    ],
)
"""Colours that can be read on white and on black."""


def html(show: Callable[[Console], None], width: int = 120) -> str:
    """What ``show`` prints, with its colours."""
    console = Console(
        file=io.StringIO(), record=True, width=width, force_terminal=True, force_jupyter=False, highlight=False
    )
    show(console)
    form = '<pre style="font-family:monospace;line-height:1.2;white-space:pre-wrap"><code>{code}</code></pre>'
    return console.export_html(theme=_THEME, inline_styles=True, code_format=form)
