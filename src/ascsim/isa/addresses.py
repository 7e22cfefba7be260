"""Address registers: an offset that follows the loops around an instruction.

They are C++'s alone: a chip's compiler turns the loops of a vector function into hardware loops, and an address register
counts those. The source pass tells the kernel where its loops are (frontends/cpp/rewrite.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ascsim.diagnostics import Diagnostic, Place, Refused, Severity
from ascsim.isa.definition import A5, REGISTRY, Definition, Scalar
from ascsim.machine.core import Core, Touch
from ascsim.machine.dtypes import u32
from ascsim.machine.words import Pipe


class AddressInstruction(Definition):
    """The offset of one address register: the sum of each loop's count times its stride, in units of ``unit`` bytes."""

    level = "register"
    unit = 1

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Any:
        """Nothing: Python has no loops to count.

        Raises:
            Refused: always.
        """
        raise Refused(
            Diagnostic(
                "L012", Severity.ERROR, f"{self.title} is not there for kernels in Python", (Place(self.title),), (),
                "Add the offset to the pointer.",
            )
        )  # fmt: skip


def address_instruction(unit: int, **record: Any) -> AddressInstruction:
    """A registered :class:`AddressInstruction` with up to four strides, outermost loop first."""
    doc = "elements that a turn of a loop moves on by; the outermost loop's stride first"
    first, *more = (Scalar(f"stride{k}", u32, optional=k > 0, default=0, doc=doc) for k in range(4))
    made = AddressInstruction(
        f"vag_b{8 * unit}", operands=(first, *more), pipe=Pipe.V, profiles=A5, asm=(), **record,
    )  # fmt: skip
    made.unit = unit
    REGISTRY.add(made)
    return made
