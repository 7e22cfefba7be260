"""Printing a module as ``.pto`` text: the second writing, with prefixes, destinations and full tile types."""

from __future__ import annotations

from io import StringIO

from xdsl.ir import Operation, SSAValue
from xdsl.printer import Printer


def to_text(op: Operation) -> str:
    """``op`` (a module, a function, an instruction) as text; :func:`parse_text` reads a module's text back as
    it is.
    """
    stream = StringIO()
    PtoPrinter(stream=stream).print_op(op)
    return stream.getvalue() + "\n"


class PtoPrinter(Printer):
    """xDSL's printer, keeping value names as the user wrote them wherever two do not clash."""

    def print_ssa_value(self, value: SSAValue) -> str:
        """Print ``%name`` and return the name."""
        name = self._ssa_values.get(value)
        if name is None:
            name = self._ssa_values[value] = self._fresh(value._name or "")
        self.print_string(f"%{name}")
        return name

    def _fresh(self, wish: str) -> str:
        used = self.ssa_names
        name, n = wish, 0
        stem = f"v{wish}" if wish[:1].isdigit() else wish  # '%30_0' would not be a name
        while not name or name in used:
            name, n = (f"{stem}_{n}" if stem else str(n)), n + 1
        used[name] = 1
        return name
