"""``ascsim doctor``."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys

import click

from ascsim import __version__, profiles
from ascsim.cli.options import json_option
from ascsim.diagnostics import UserError

_LIBRARIES = ("numpy", "numba", "ml_dtypes", "en_dtypes", "xdsl", "tree-sitter", "tree-sitter-cuda", "click", "rich")


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """What was found on this machine: the C++ compiler, the profiles, the versions of what ascsim stands on."""
    from ascsim.cache import cache_directory
    from ascsim.frontends.cpp import compilers
    from ascsim.isa import REGISTRY

    try:
        found = compilers.find_compiler()
        compiler = {"command": " ".join(found.command), "version": found.version}
        trouble = ""
    except UserError as error:
        compiler, trouble = None, str(error)
    libraries = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    report = {
        "ascsim": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "compiler": compiler,
        "cache": str(cache_directory()),
        "profiles": {p.name: p.title for p in profiles.profiles()},
        "instructions": len(REGISTRY.definitions),
        "libraries": libraries,
    }
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return 1 if trouble else 0
    click.echo(f"ascsim {__version__} on Python {report['python']}, {report['platform']}")
    click.echo(
        f"C++ compiler  {compiler['version']} ({compiler['command']})" if compiler else f"C++ compiler  {trouble}"
    )
    click.echo(f"cache         {report['cache']}")
    click.echo(f"instructions  {report['instructions']}")
    for profile in profiles.profiles():
        limits = profile.spaces["UB"]
        click.echo(f"profile       {profile.name:<5} {profile.title}; UB {limits.capacity // 1024} KiB")
    click.echo("libraries     " + ", ".join(f"{k} {v}" for k, v in libraries.items()))
    return 1 if trouble else 0
