"""What a command is busy with: told by those who work, shown by whoever watches (the command line's bar)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

Detail = Callable[[], str]
"""A few words on how far some work is, to be asked for again and again, from any thread."""


class Watcher(Protocol):
    """One who is told."""

    def begin(self, text: str, total: int | None, detail: Detail | None) -> None:
        """Work of so many parts begins; None: nobody knows how many. ``detail`` says, whenever it is asked, how far it is."""

    def advance(self) -> None:
        """A part is done."""

    def end(self) -> None:
        """The work that began last is done."""


_watchers: list[Watcher] = []


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tell ``watcher`` what goes on meanwhile."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def silence() -> None:
    """Nobody watches from now on: this process is a copy of the one that is watched."""
    _watchers.clear()


@contextlib.contextmanager
def stage(text: str, total: int | None = None, detail: Detail | None = None) -> Iterator[None]:
    """A piece of work, in words (``compiling x.cpp``), of so many parts; ``detail`` says how far it is."""
    for watcher in _watchers:
        watcher.begin(text, total, detail)
    try:
        yield
    finally:
        for watcher in _watchers:
            watcher.end()


def advance() -> None:
    """A part of the work is done."""
    for watcher in _watchers:
        watcher.advance()
