"""``ascsim isa``: the list, and names that are nearly right."""

import pytest
from click.testing import CliRunner

from ascsim.cli.isa import command
from ascsim.diagnostics import UserError
from ascsim.isa import REGISTRY, reference


def test_the_list_has_every_name_and_no_line_twice() -> None:
    lines = CliRunner().invoke(command).output.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == list(reference.LEVELS.values())
    rows = [line for line in lines if line.startswith(" ")]
    assert len(rows) == len(set(rows))
    assert {row.split()[0] for row in rows} == {d.title for d in REGISTRY.definitions}


@pytest.mark.parametrize(("name", "near"), [("sort", "asc_bitsort"), ("tsrot32", "TSORT32"), ("gatherb", "TGATHERB")])
def test_names_that_are_near_are_told(name: str, near: str) -> None:
    error = CliRunner().invoke(command, [name]).exception
    assert isinstance(error, UserError)
    assert near in error.message.partition("Near are ")[2]
