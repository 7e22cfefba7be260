"""The reference pages in docs/ are those of the definitions."""

import subprocess
import sys
from pathlib import Path

from ascsim.isa import REGISTRY

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pages_are_up_to_date():
    done = subprocess.run(
        [sys.executable, DOCS / "make_reference.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_index_lists_every_instruction():
    rows = [s for s in (DOCS / "reference" / "README.md").read_text().splitlines() if s.startswith("| `")]
    assert [r.split("`")[1] for r in rows if "`TSORT32`" in r] == ["TSORT32"]
    assert len(rows) == len(REGISTRY.definitions)


def test_every_code_has_an_entry():
    text = (DOCS / "reference" / "codes.md").read_text()
    for code in ("L001", "R001", "SORT-NAN", "TSORT32-2"):
        assert f"## {code}: " in text
