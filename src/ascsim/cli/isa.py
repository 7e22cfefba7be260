"""``ascsim isa [NAME]``."""

from __future__ import annotations

import difflib
import json

import click

from ascsim.cli.options import json_option
from ascsim.diagnostics import UserError


@click.command("isa")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """The reference page of an instruction, by any of its names (TSORT32, pto.vintlv, asc_intlv); without NAME, the list."""
    from ascsim.isa import REGISTRY, reference

    if name is None:
        rows = reference.index(REGISTRY)
        if as_json:
            click.echo(json.dumps(rows))
            return
        for level in dict.fromkeys(r["level"] for r in rows):
            click.echo(f"\n{level}")
            for row in (r for r in rows if r["level"] == level):
                click.echo(f"  {row['title']:<30} {row['profiles']:<12} {row['summary']}")
        return
    found = REGISTRY.find(name)
    if not found:
        known = [*REGISTRY.by_cpp, *REGISTRY.by_name]
        near = list(dict.fromkeys(difflib.get_close_matches(name, known, n=3)))
        hint = f" Near are {', '.join(near)}." if near else ""
        raise UserError(f"there is no instruction {name!r}, or it is not implemented.{hint} `ascsim isa` lists all.")
    if as_json:
        click.echo(json.dumps([reference.data(d) for d in found]))
        return
    click.echo("\n\n".join(reference.page(d) for d in found))
