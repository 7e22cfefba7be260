"""Chips as data: what a profile is, and how its names are found."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ascsim.diagnostics import UserError


@dataclass(frozen=True)
class SpaceLimits:
    """One memory of a profile; all figures in bytes. ``reserved`` counts from the top."""

    capacity: int
    alignment: int
    reserved: int


@dataclass(frozen=True, eq=False)
class Profile:
    """One chip family. ``ordered_pipes`` keep their own dependent instructions in order without a barrier.

    ``left_order`` is the order in which the cube finds the boxes of its left operand in L0A (``ZZ``, ``NZ``); empty: as
    the tile says.
    """

    name: str
    title: str
    products: str
    npu_arch: str
    aliases: tuple[str, ...]
    is_chip: bool
    vector_bytes: int
    event_ids: int
    mutexes: int
    waits_on_pipes: bool
    max_blocks: int
    spaces: dict[str, SpaceLimits]
    ordered_pipes: frozenset[str]
    subnormals_flushed: frozenset[str]
    left_order: str

    def __repr__(self) -> str:
        return f"<profile {self.name}>"

    def with_ub(self, capacity: int) -> Profile:
        """The same chip with a larger or smaller UB, for tests of widths that no chip's UB holds."""
        from dataclasses import replace

        limits = self.spaces["UB"]
        return replace(self, spaces={**self.spaces, "UB": SpaceLimits(capacity, limits.alignment, 0)})


NAMES = ("a2a3", "a5", "cpu")


@cache
def load(name: str) -> Profile:
    """The profile of that exact name."""
    data = tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))
    return Profile(
        name=data["name"],
        title=data["title"],
        products=data["products"],
        npu_arch=data["npu_arch"],
        aliases=tuple(data["aliases"]),
        is_chip=data["is_chip"],
        vector_bytes=data["vector_bytes"],
        event_ids=data["event_ids"],
        mutexes=data.get("mutexes", 0),
        waits_on_pipes=data.get("waits_on_pipes", False),
        max_blocks=data["max_blocks"],
        spaces={key: SpaceLimits(**limits) for key, limits in data["spaces"].items()},
        ordered_pipes=frozenset(data["order"]["kept"]),
        subnormals_flushed=frozenset(data["numbers"]["subnormals_flushed"]),
        left_order=data["cube"]["left_order"],
    )


def profiles() -> tuple[Profile, ...]:
    """All profiles, in the order they are shown."""
    return tuple(load(name) for name in NAMES)


def find(name: str | Profile) -> Profile:
    """The profile that a person means by ``name`` (``a5``, ``dav-3510``, ``Ascend950PR``, ...).

    Raises:
        UserError: no profile has that name; the message lists what is known and the nearest.
    """
    if isinstance(name, Profile):
        return name
    wanted = name.strip().lower()
    known = {alias: profile for profile in profiles() for alias in (profile.name, *profile.aliases)}
    if wanted in known:
        return known[wanted]
    import difflib

    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    listing = "; ".join(f"{p.name} ({', '.join(p.aliases[:4])}, ...)" for p in profiles())
    raise UserError(f"unknown NPU architecture {name!r}.{hint} Known are {listing}.")
