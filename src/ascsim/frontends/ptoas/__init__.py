"""``.pto`` files: PTO assembly text, read through xDSL, run on the machine.

``load`` reads a file; nothing of xDSL is imported before it is called. The rooms behind it:

==============  =======================================================================
``types``       the types, in all their spellings
``dialect``     the operations: one class for every instruction, a few for structures
``parser``      text to operations, in all three writings
``normalize``   one form for what was read
``printer``     operations to text, in the second writing
``scalars``     the arithmetic of the scalar unit
``lowering``    a function to closures; instructions go to a handler
``matching``    an instruction's text to a definition and its arguments
``execution``   the handler that issues to the machine
``kernel``      a file as something to launch
==============  =======================================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascsim.frontends.ptoas.kernel import ProgramFile


def load(path: str | Path) -> ProgramFile:
    """Read a ``.pto`` file; see :func:`ascsim.frontends.ptoas.kernel.load`."""
    from ascsim.frontends.ptoas.kernel import load

    return load(path)
