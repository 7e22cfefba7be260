"""A handler of ``.pto`` instructions that runs none of them: tests of the front end look at what it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ascsim.diagnostics import Site
from ascsim.frontends.ptoas.lowering import Bound, Call


class Recorder:
    """A :class:`Handler` that hands every instruction to one function ``on_instruction(call, values, site)``.

    What the function returns is the instruction's result (a tuple for several). Sections run always.
    """

    def __init__(self, on_instruction: Callable[[Call, tuple[Any, ...], Site], Any]) -> None:
        self._on_instruction = on_instruction

    def bind(self, call: Call) -> Bound:
        """See :class:`Handler`."""
        on_instruction, site = self._on_instruction, call.site
        return Bound(lambda values: on_instruction(call, values, site))

    def enter(self, call: Call) -> Callable[[tuple[Any, ...]], bool]:
        """See :class:`Handler`."""
        return lambda values: True

    def leave(self, call: Call) -> Callable[[], None]:
        """See :class:`Handler`."""
        return lambda: None
