"""``ascsim explain CODE``."""

from __future__ import annotations

import difflib
import json
import textwrap

import click

from ascsim.cli.options import json_option
from ascsim.diagnostics import CATALOGUE, Code, UserError

WIDTH = 100


@click.command("explain")
@click.argument("code", required=False)
@json_option
def command(code: str | None, as_json: bool) -> None:
    """What a diagnostic CODE means on the chip and how to mend it; without CODE, the list of all."""
    codes = catalogue()
    if code is None:
        rows = list(codes.values())
        if as_json:
            click.echo(json.dumps([{"code": c.code, "severity": c.severity, "title": c.title} for c in rows]))
            return
        width = max(len(c.code) for c in rows)
        for row in rows:
            click.echo(f"{row.code:<{width}}  {row.severity:<8} {row.title}")
        return
    entry = codes.get(code.upper())
    if entry is None:
        near = difflib.get_close_matches(code.upper(), codes, n=3)
        hint = f" Near are {', '.join(near)}." if near else ""
        raise UserError(f"there is no diagnostic code {code!r}.{hint} `ascsim explain` lists all.")
    if as_json:
        plain = {"code": entry.code, "severity": entry.severity, "title": entry.title, "text": entry.text}
        click.echo(json.dumps(plain | {"reported_by": reported_by(entry.code)}))
        return
    click.echo(f"{entry.code} ({entry.severity}): {entry.title}")
    for is_code, text in entry.blocks():
        click.echo(f"\n{text if is_code else textwrap.fill(text, WIDTH, break_on_hyphens=False)}")
    told = reported_by(entry.code)
    if told:
        click.echo("\n" + textwrap.fill(f"Reported by: {', '.join(told)}.", WIDTH, break_on_hyphens=False))


def catalogue() -> dict[str, Code]:
    """All codes in order: each of these modules registers its own."""
    import ascsim.checks
    import ascsim.frontends.cpp.host
    import ascsim.frontends.cpp.kernels
    import ascsim.frontends.launch  # noqa: F401
    from ascsim.isa import REGISTRY

    assert REGISTRY.definitions  # imports them all
    return dict(sorted(CATALOGUE.codes.items()))


def reported_by(code: str) -> list[str]:
    """The instructions that a code is of, where it is not a general one; with the profiles, where not on all."""
    from ascsim.isa import REGISTRY

    told: dict[str, None] = {}
    for definition in REGISTRY.definitions:
        if code in definition.warns:
            told[definition.title] = None
        for rule in definition.rules:
            if rule.code == code and not rule.refuses:
                told[definition.title + (f" ({', '.join(rule.profiles)})" if rule.profiles else "")] = None
    return list(told)
