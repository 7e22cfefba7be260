"""``ascsim explain CODE``."""

from __future__ import annotations

import difflib
import json

import click

from ascsim.cli.options import json_option
from ascsim.diagnostics import CATALOGUE, UserError


@click.command("explain")
@click.argument("code", required=False)
@json_option
def command(code: str | None, as_json: bool) -> None:
    """What a diagnostic CODE means on the chip and how to mend it; without CODE, the list of all."""
    import ascsim.checks
    import ascsim.frontends.cpp.host
    import ascsim.frontends.cpp.kernels
    import ascsim.frontends.launch
    import ascsim.isa  # noqa: F401 - each registers its codes

    if code is None:
        rows = sorted(CATALOGUE.codes.values(), key=lambda c: c.code)
        if as_json:
            click.echo(json.dumps([{"code": c.code, "severity": c.severity, "title": c.title} for c in rows]))
            return
        width = max(len(c.code) for c in rows)
        for row in rows:
            click.echo(f"{row.code:<{width}}  {row.severity:<8} {row.title}")
        return
    entry = CATALOGUE.codes.get(code.upper())
    if entry is None:
        near = difflib.get_close_matches(code.upper(), CATALOGUE.codes, n=3)
        hint = f" Near are {', '.join(near)}." if near else ""
        raise UserError(f"there is no diagnostic code {code!r}.{hint} `ascsim explain` lists all.")
    if as_json:
        click.echo(
            json.dumps({"code": entry.code, "severity": entry.severity, "title": entry.title, "text": entry.text})
        )
        return
    click.echo(f"{entry.code} ({entry.severity}): {entry.title}\n")
    click.echo(click.wrap_text(entry.text, 96, preserve_paragraphs=True))
