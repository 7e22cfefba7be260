"""A progress bar on work that takes more than a second. Only on a terminal, on standard error, and gone when it is over."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ascsim.progress import Detail, watched

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID

PATIENCE = 1.0
"""Seconds of work before there is a bar."""


class Bar:
    """The bar: what is being done, how much of it where that is known, and for how long."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._stages: list[tuple[str, int | None, int, Detail | None]] = []
        self._timer = threading.Timer(PATIENCE, self._appear)
        self._timer.daemon = True
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._is_hidden = False
        self._timer.start()

    def begin(self, text: str, total: int | None, detail: Detail | None) -> None:
        """See :class:`ascsim.progress.Watcher`."""
        with self._lock:
            self._stages.append((text, total, 0, detail))
            self._update()

    def advance(self) -> None:
        """See :class:`ascsim.progress.Watcher`."""
        with self._lock:
            if self._stages:
                text, total, done, detail = self._stages[-1]
                self._stages[-1] = text, total, done + 1, detail
                self._update()

    def end(self) -> None:
        """See :class:`ascsim.progress.Watcher`."""
        with self._lock:
            self._stages.pop()
            self._update()

    def close(self) -> None:
        """Take the bar away."""
        self._timer.cancel()
        with self._lock:
            if self._progress is not None and not self._is_hidden:
                self._progress.stop()
            self._progress = None

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.text import Text

        class Far(ProgressColumn):
            """How far the work is: in its own words, else by parts."""

            def render(column, task: Task) -> Text:
                return Text(self._far(), style="dim")

        columns = (
            SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), Far(), TimeElapsedColumn(),
        )  # fmt: skip
        with self._lock:
            if self._timer.finished.is_set():  # closed meanwhile
                return
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task("", total=None)
            self._update()
            if not self._is_hidden:
                self._progress.start()

    def _update(self) -> None:
        if self._progress is not None and self._task is not None and self._stages:
            text, total, done, _ = self._stages[-1]
            self._progress.update(self._task, description=text, total=total, completed=done)

    def _far(self) -> str:
        """How far the work is, in words."""
        with self._lock:
            _, total, done, detail = self._stages[-1] if self._stages else ("", None, 0, None)
        if detail is not None:
            return detail()
        return f"{done / total:.0%}" if total else ""

    # The program's own output

    @contextlib.contextmanager
    def terminal(self) -> Iterator[int]:
        """A terminal for a program that runs meanwhile: what it writes appears above the bar."""
        import pty

        reading, writing = pty.openpty()
        with contextlib.suppress(OSError):
            import fcntl
            import termios

            fcntl.ioctl(writing, termios.TIOCSWINSZ, fcntl.ioctl(1, termios.TIOCGWINSZ, bytes(8)))
            modes = termios.tcgetattr(writing)
            modes[1] &= ~termios.OPOST  # the real terminal sees to line ends
            termios.tcsetattr(writing, termios.TCSANOW, modes)
        forward = threading.Thread(target=self._forward, args=(reading,), daemon=True)
        forward.start()
        try:
            yield writing
        finally:
            os.close(writing)
            forward.join(1)  # not longer: a process that the program left behind may hold the terminal
            os.close(reading)

    def _forward(self, reading: int) -> None:
        while True:
            try:
                data = os.read(reading, 1 << 16)
            except OSError as problem:
                if problem.errno != errno.EIO:  # EIO: nobody writes any more
                    raise
                data = b""
            if not data:
                return
            with self._lock:
                if self._progress is not None and not self._is_hidden:
                    self._progress.stop()
                self._is_hidden = not data.endswith(b"\n")  # an unfinished line stays as it is
                while data:
                    data = data[os.write(1, data) :]
                if self._progress is not None and not self._is_hidden:
                    self._progress.start()


@contextlib.contextmanager
def shown(is_wanted: bool) -> Iterator[Bar | None]:
    """Show progress meanwhile, if it is wanted and there is a terminal to show it on."""
    if not (is_wanted and sys.stderr.isatty() and sys.stdout.isatty()):
        yield None
        return
    bar = Bar()
    try:
        with watched(bar):
            yield bar
    finally:
        bar.close()
