"""``ascsim explain``: every code says what it means and what to do."""

import json

import pytest
from click.testing import CliRunner

from ascsim.cli.explain import WIDTH, catalogue, command, reported_by

CODES = catalogue()


@pytest.mark.parametrize("code", CODES)
def test_every_code_says_what_it_means_and_what_to_do(code: str) -> None:
    entry = CODES[code]
    paragraphs = [p for p in entry.text.split("\n\n") if not p.startswith("Example:")]
    assert len(paragraphs) >= 2
    assert entry.mend == paragraphs[-1]
    assert all(p.endswith((".", ")")) for p in paragraphs)


def test_code_in_an_example_stays_as_it_is() -> None:
    page = CliRunner().invoke(command, ["R001"]).output
    assert "\n    TADD(c, a, b);                             // PIPE_V reads a\n" in page
    assert max(map(len, page.splitlines())) <= WIDTH


def test_instructions_with_a_code_of_their_own_are_named() -> None:
    assert reported_by("TSORT32-2") == ["TSORT32 (a2a3, a5)"]
    assert "TSORT32" in reported_by("SORT-TIE")
    assert reported_by("R001") == reported_by("L002") == []
    assert "Reported by: TSORT32 (a2a3, a5).\n" in CliRunner().invoke(command, ["tsort32-2"]).output
    assert json.loads(CliRunner().invoke(command, ["TSORT32-2", "--json"]).output)["reported_by"] == [
        "TSORT32 (a2a3, a5)"
    ]
