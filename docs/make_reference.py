"""Write docs/reference/ from the instruction definitions; with --check, fail when the files differ from them."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from ascsim.cli.explain import catalogue, reported_by
from ascsim.isa import REGISTRY, reference

DIRECTORY = Path(__file__).parent / "reference"


def pages() -> dict[str, str]:
    """File name to text."""
    written = {}
    for level, title in reference.LEVELS.items():
        chosen = [d for d in REGISTRY.definitions if d.level == level]
        body = "\n\n".join(f"## {d.title}\n\n```text\n{reference.page(d)}\n```" for d in chosen)
        head = (
            f"# {title}\n\n"
            "Made from the definitions by `docs/make_reference.py`; `ascsim isa NAME` shows the same page.\n\n"
            "What stands in brackets behind a comma, `[, tmp]`, may be left out. The types that `.pto` text states\n"
            "behind the operands are not shown.\n"
        )
        written[f"{level}.md"] = f"{head}\n{body}\n"
    return written | {"codes.md": codes(), "README.md": index()}


def index() -> str:
    """Every instruction in one line, by level."""
    lines = ["# Reference", "", "Made by `docs/make_reference.py`; `ascsim isa` prints the same list.", ""]
    lines += ["[Diagnostic codes](codes.md) have a page of their own.", ""]
    for level, title in reference.LEVELS.items():
        lines += [f"## [{title}]({level}.md)", "", "| instruction | profiles | what it does |", "| --- | --- | --- |"]
        for row in reference.index(REGISTRY):
            if row["level"] == level:
                summary = row["summary"].replace("|", "\\|").replace("``", "`")
                lines.append(f"| `{row['title']}` | {row['profiles']} | {summary} |")
        lines.append("")
    return "\n".join(lines)


def codes() -> str:
    """Every diagnostic code."""
    parts = []
    for code in catalogue().values():
        parts += [f"## {code.code}: {code.title}", f"*{code.severity}*"]
        parts += [f"```c++\n{textwrap.dedent(text)}\n```" if is_code else text for is_code, text in code.blocks()]
        told = reported_by(code.code)
        parts += [f"Reported by: {', '.join(told)}."] if told else []
    body = "\n\n".join(parts)
    head = "# Diagnostic codes\n\nMade by `docs/make_reference.py`; `ascsim explain CODE` shows the same text."
    return f"{head}\n\n{body}\n"


def main() -> int:
    """Write the pages, or compare."""
    if "--check" in sys.argv:
        stale = [
            n for n, text in pages().items() if not (DIRECTORY / n).exists() or (DIRECTORY / n).read_text() != text
        ]
        if stale:
            print(f"docs/reference is not what the definitions say: {', '.join(stale)}. Run `make docs`.")
        return 1 if stale else 0
    DIRECTORY.mkdir(exist_ok=True)
    for name, text in pages().items():
        (DIRECTORY / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
