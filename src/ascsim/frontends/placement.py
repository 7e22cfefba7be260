"""Addresses for tiles that have none."""

from __future__ import annotations

from dataclasses import dataclass, field

from ascsim.diagnostics import CATALOGUE, Diagnostic, Place, Refused, Severity, Site
from ascsim.machine.operands import Tile
from ascsim.machine.words import Space
from ascsim.profiles import Profile

CATALOGUE.add(
    "A001", Severity.ERROR, "Tiles do not fit the memory",
    "Tiles without an address are placed one after the other, and together they are larger than the memory.\n\n"
    "Make tiles smaller, process fewer rows at a time, or give addresses yourself to reuse memory. The message lists the "
    "tiles by size.\n\n"
    "Example: four tiles of 64x256 float take 256 KiB; UB has 192 KiB on A2 and A3, 248 KiB on the 950.",
)  # fmt: skip


@dataclass
class Placement:
    """Tiles one after the other in each memory, above the addresses that are reserved."""

    profile: Profile
    next_free: dict[Space, int] = field(default_factory=dict)
    placed: list[Tile] = field(default_factory=list)

    def reserve(self, tile: Tile) -> None:
        """Keep clear of a tile at its address."""
        end = tile.address + tile.nbytes
        self.next_free[tile.space] = max(self.next_free.get(tile.space, 0), end)

    def place(self, tile: Tile, site: Site | None = None) -> Tile:
        """The tile at the next free address; ``site`` is where the kernel asks for it.

        Raises:
            Refused: the memory is full; the tiles are listed by size.
        """
        limits = self.profile.spaces[tile.space.name]
        start = -(-self.next_free.get(tile.space, 0) // limits.alignment) * limits.alignment
        room = limits.capacity - limits.reserved
        self.placed.append(tile)
        if start + tile.nbytes > room:
            ordered = sorted(self.placed, key=lambda t: -t.nbytes)
            listing = ", ".join(f"{t.name or 'tile'} {t.rows}x{t.cols} {t.dtype.name} {t.nbytes} B" for t in ordered)
            headline = f"tiles need {start + tile.nbytes} bytes of {tile.space.name}, which has {room}"
            name = tile.name or "the tile"
            left = f"{name} needs {tile.nbytes} bytes, and {max(room - start, 0)} are left"
            mend = "Make tiles smaller, or give addresses yourself to reuse memory."
            place, notes = Place(name, site), (f"by size: {listing}", left)
            raise Refused(Diagnostic("A001", Severity.ERROR, headline, (place,), notes, mend))
        self.next_free[tile.space] = start + tile.nbytes
        return tile.at(start)
