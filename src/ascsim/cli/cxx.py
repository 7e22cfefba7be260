"""``ascsim c++``: the vendor's command line with one word changed."""

from __future__ import annotations

import click


@click.command("c++", context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Compile and link: `ascsim c++ example.asc -o main --npu-arch=dav-3510 && ./main`.

    Takes what the vendor's compiler takes: sources, objects and archives, -c, -o, -I, -D, -O, -std=, -l, -L. Options that
    mean nothing here are passed over. The program that comes out runs here under all checks.
    """
    from ascsim.frontends.cpp.driver import build

    result = build(list(arguments))
    for text in (result.messages, *result.notes):
        if text:
            click.echo(text.rstrip(), err=True)
    return 0
