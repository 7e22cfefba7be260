"""``ascsim isa [NAME]``."""

from __future__ import annotations

import difflib
import json
import shutil
import sys
import textwrap

import click

from ascsim.cli.options import json_option
from ascsim.diagnostics import UserError
from ascsim.isa import REGISTRY, reference


@click.command("isa")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """The reference page of an instruction, by any of its names (TSORT32, pto.vintlv, asc_intlv); without NAME, the list."""
    if name is None:
        rows = reference.index(REGISTRY)
        if as_json:
            click.echo(json.dumps(rows))
            return
        click.echo("\n\n".join(_listing(level, [r for r in rows if r["level"] == level]) for level in reference.LEVELS))
        return
    found = REGISTRY.find(name)
    if not found:
        titles = {known: d.title for d in REGISTRY.definitions for known in (d.name, d.title.lower())}
        wanted = name.lower()
        near = [t for known, t in titles.items() if wanted in known] or difflib.get_close_matches(wanted, titles, n=3)
        listed = ", ".join(list(dict.fromkeys(titles.get(n, n) for n in near))[:8])
        hint = f" Near are {listed}." if near else ""
        raise UserError(f"there is no instruction {name!r}, or it is not implemented.{hint} `ascsim isa` lists all.")
    if as_json:
        click.echo(json.dumps([reference.data(d) for d in found]))
        return
    click.echo("\n\n".join(reference.page(d) for d in found))


def _listing(level: str, rows: list[dict[str, str]]) -> str:
    """The instructions of a level, a line each: forms of one name that do the same are one."""
    forms: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        profiles = forms.setdefault((row["title"], row["summary"]), [])
        profiles += [name for name in row["profiles"].split(", ") if name not in profiles]
    width = max(len(title) for title, _ in forms)
    heads = [f"  {title:<{width}}  {', '.join(profiles):<13}" for (title, _), profiles in forms.items()]
    lines = [f"{head}  {summary}" for head, (_, summary) in zip(heads, forms, strict=True)]
    if sys.stdout.isatty():
        columns, indent = max(shutil.get_terminal_size().columns, 80), " " * (len(heads[0]) + 2)
        lines = [textwrap.fill(line, columns, subsequent_indent=indent, break_on_hyphens=False) for line in lines]
    return "\n".join([reference.LEVELS[level], *lines])
