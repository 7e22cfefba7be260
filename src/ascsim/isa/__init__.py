"""What the chip does: every instruction, once. Importing this package registers them all."""

from __future__ import annotations

from ascsim.isa import sync, system
from ascsim.isa.definition import REGISTRY
from ascsim.isa.tile import elementwise

__all__ = ["REGISTRY"]
