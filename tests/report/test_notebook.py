"""Reports in a notebook."""

from __future__ import annotations

import numpy as np
from rich.console import Console

import ascsim
from ascsim import Pipe
from ascsim.frontends.launch import Run
from ascsim.report import notebook


@ascsim.kernel(raise_on_error=False)
def load_and_add(values):  # type: ignore[no-untyped-def]
    tile = ascsim.tile("f32", 1, 64, at=0)
    ascsim.tload(tile, values)
    ascsim.tadd(tile, tile, tile)


def run() -> Run:
    return load_and_add[1](np.zeros((1, 64), np.float32))


def test_html_keeps_text_and_colours() -> None:
    text = notebook.html(lambda console: console.print("a < b", style="red"))
    assert "a &lt; b" in text and "color: #c83232" in text
    assert notebook.html(lambda console: None).startswith("<pre")


def test_it_never_prints(capsys) -> None:  # type: ignore[no-untyped-def]
    def show(console: Console) -> None:
        console.print("only in the result")

    notebook.html(show)
    assert capsys.readouterr().out == ""


def test_a_run_shows_its_findings() -> None:
    text = run()._repr_html_()
    assert "Potential RAW hazard" in text and "1 error" in text


def test_a_run_tells_its_time() -> None:
    report = run().time()
    assert report.summary.cycles == report.schedule.total > 200
    assert "bound by MTE2" in str(report)
    page = report._repr_html_()
    assert "bound by" in page and "cycles a character" in page
    assert run().time([Pipe.MTE2]).without == report.summary
