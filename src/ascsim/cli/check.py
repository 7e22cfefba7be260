"""``ascsim check FILE``: what a source uses that is not there, before any run."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ascsim import profiles
from ascsim.cli.options import arch_option, existing, json_option
from ascsim.diagnostics import Diagnostic, Place, Severity, Site, UserError, plural


@click.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@arch_option
@json_option
def command(file: Path, arch: str | None, as_json: bool) -> int:
    """List every instruction in FILE that the chip does not have or that ascsim does not implement.

    For C++ this reads the text, both branches of every #if; the compiler judges what is really compiled when it runs.
    """
    existing(file)
    if file.suffix == ".pto":
        profile, found = _pto(file, arch)
    elif file.suffix == ".py":
        raise UserError("a Python kernel is checked by running it: ascsim run " + str(file))
    else:
        profile = profiles.find(arch or "a2a3")
        found = _cpp(file, profile)
    if as_json:
        click.echo(json.dumps({"profile": profile.name, "findings": [d.as_dict() for d in found]}))
        return 1 if found else 0
    from rich.console import Console

    from ascsim.report import terminal

    console = Console(highlight=False)
    for diagnostic in found:
        terminal.show_diagnostic(console, diagnostic)
    verdict = plural(len(found), "call") + " to mend" if found else "everything it uses is there"
    console.print(f"ascsim: {file.name} on {profile.title}: {verdict}", markup=False)
    return 1 if found else 0


def _cpp(file: Path, profile: profiles.Profile) -> list[Diagnostic]:
    from ascsim.frontends.cpp.driver import survey
    from ascsim.frontends.cpp.generate import unavailable

    absent = unavailable(profile)
    found: dict[Diagnostic, None] = {}
    header = ("-x", "c++") if file.suffix in (".h", ".hh", ".hpp", ".hxx") else ()
    units = survey([*header, str(file), f"--npu-arch={profile.name}"])
    if not units:
        raise UserError(f"{file} is no source that ascsim reads: give an .asc or C++ source or header, or a .pto file")
    for unit in units:
        for path, call in unit.calls:
            if call.name in absent:
                code, message = absent[call.name]
                site = Site(str(path), call.line, call.column)
                found[Diagnostic(code, Severity.ERROR, f"{call.name}: {message}", (Place(call.name, site),))] = None
    return list(found)


def _pto(file: Path, arch: str | None) -> tuple[profiles.Profile, list[Diagnostic]]:
    from ascsim.frontends import ptoas

    program = ptoas.load(file)
    profile = profiles.find(arch or program.arch or "a2a3")
    return profile, program.survey(profile)
