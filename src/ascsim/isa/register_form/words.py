"""The enumerations of register instructions, with the names and numbers of the public headers."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from types import SimpleNamespace

from ascsim.isa.definition import Definition
from ascsim.isa.rules import Rule, refuse
from ascsim.isa.semantics.masks import PATTERN_CODES
from ascsim.machine.words import MemoryBarrier
from ascsim.profiles import Profile

Pattern = IntEnum("Pattern", {f"PAT_{name}": code for name, code in PATTERN_CODES.items()})  # type: ignore[misc]
"""Which lanes a mask pattern sets."""
__all__ = ["MemoryBarrier", "Pattern", "member"]


def member(operand: str, enum: type[IntEnum]) -> Rule:
    """The operand is a value of the enumeration."""
    values = {int(value) for value in enum}

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        value = int(getattr(call, operand))
        return None if value in values else f"{operand} {value} is no value of {enum.__name__}"

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for value in (*range(-1, max(values)), max(values) + 1):
            if value not in values:
                yield SimpleNamespace(**{**vars(call), operand: value})

    named = ", ".join(value.name for value in enum)
    return refuse("L006", f"{operand} is one of {named}", test, mend=f"Use one of {named}.", breaks=breaks)
