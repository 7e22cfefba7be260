"""What a unit of work costs on a chip: the tables in ``NAME.costs.toml``.

An instruction's row in a trace says what its work is (:data:`UNITS`); an entry says what a unit of it takes. An entry is
chosen by the instruction's name, else by the memories that a row moves bytes between, else by its pipe or, in a vector
function, its lane: an instruction that no entry names has its family's default, which is marked as a guess.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from ascsim.diagnostics import UserError

UNITS = ("call", "work", "repeats", "bytes", "bursts", "results")
"""Units of work that a trace row counts: the call itself; what its definition counts (repeats, blocks); 256-byte pieces
of its longest operand; bytes of it; separate runs of it; elements written."""

LANES = ("load", "execute", "store")
"""The lanes of a vector function."""

_GIB = 1 << 30


@dataclass(frozen=True)
class Entry:
    """The cost of some instructions: ``fixed`` cycles a call, which the next call of its pipe may overlap, and cycles a
    unit, for which it holds the pipe.

    ``names`` are mnemonics or titles (with ``*``); ``route`` is ``GM>UB`` or the like; ``types`` limits it to element
    types; ``guessed`` says which parts nothing public backs: ``fixed``, ``each`` (both where the source begins so).
    """

    source: str
    fixed: Fraction
    each: dict[str, Fraction]
    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    route: str = ""
    pipe: str = ""
    lane: str = ""
    guessed: frozenset[str] = frozenset()

    def fits(self, names: Sequence[str], dtype: str, route: str, pipe: str, lane: str) -> bool:
        """Whether the entry is for rows like these."""
        if self.types and dtype not in self.types:
            return False
        if self.names and not any(fnmatchcase(name.lower(), pattern) for pattern in self.names for name in names):
            return False
        return (self.route or route, self.pipe or pipe, self.lane or lane) == (route, pipe, lane)

    def cycles(self, **units: int) -> Fraction:
        """From start to completion of a call with so many units (a call is one by itself)."""
        counts = {"call": 1, **units}
        return self.fixed + sum((each * counts.get(unit, 0) for unit, each in self.each.items()), Fraction(0))


@dataclass(frozen=True, eq=False)
class Costs:
    """The cost table of a chip. Cycles are core cycles.

    ``slots`` are the vector cores that blocks run on at once; ``gm_bytes`` what global memory moves a cycle for all of
    them together; ``issue`` what the scalar unit takes to issue an instruction, ``queue`` how many may wait for a pipe;
    ``flag`` and ``barrier`` what a flag operation and a barrier take; ``vector_start`` the cycles before a vector
    function's first instruction, ``dispatch`` how many a cycle, ``ports`` how many each lane takes at once;
    ``vector_bytes`` what the vector unit works on in a cycle at best. ``sources`` says where each of these is from, in
    which ``guess`` begins what nothing public backs.
    """

    mhz: Fraction
    slots: int
    gm_bytes: Fraction
    issue: int
    queue: int
    flag: int
    barrier: int
    vector_start: int
    dispatch: int
    ports: dict[str, int]
    vector_bytes: Fraction
    sources: dict[str, str]
    entries: tuple[Entry, ...]

    def entry(self, names: Sequence[str], dtype: str = "", route: str = "", pipe: str = "V", lane: str = "") -> Entry:
        """The first entry that names the instruction, else the first that fits its route, pipe and lane."""
        fitting = [e for e in self.entries if e.fits(names, dtype, route, pipe, lane)]
        return next((e for e in fitting if e.names), fitting[0])

    def microseconds(self, cycles: int) -> float:
        """Cycles as time."""
        return float(cycles / self.mhz)


@cache
def costs(name: str) -> Costs:
    """The cost table of a profile.

    Raises:
        UserError: the profile is no chip.
    """
    file = Path(__file__).with_name(f"{name}.costs.toml")
    if not file.is_file():
        raise UserError(
            f"profile {name} is no chip and its instructions take no time; choose one: --npu-arch a3 or --npu-arch a5"
        )
    return read(file.read_text(encoding="utf-8"))


def read(text: str) -> Costs:
    """A cost table from its TOML."""
    data = tomllib.loads(text, parse_float=Fraction)
    chip = data["chip"]
    mhz = Fraction(chip["mhz"])
    return Costs(
        mhz=mhz,
        slots=chip["slots"],
        gm_bytes=_bytes_a_cycle(chip["gm_gb_s"] * 10**9, mhz),
        issue=chip["issue"],
        queue=chip["queue"],
        flag=chip["flag"],
        barrier=chip["barrier"],
        vector_start=chip["vector_start"],
        dispatch=chip["dispatch"],
        ports={lane: chip["ports"][lane] for lane in LANES},
        vector_bytes=Fraction(chip["vector_bytes"]),
        sources=dict(data["sources"]),
        entries=tuple(_entry(record, mhz) for record in data["cost"]),
    )


def _bytes_a_cycle(bytes_a_second: Fraction | int, mhz: Fraction) -> Fraction:
    return Fraction(bytes_a_second) / (mhz * 10**6)


def _entry(record: dict[str, Any], mhz: Fraction) -> Entry:
    each = {unit: Fraction(value) for unit, value in record.get("each", {}).items()}
    if "gib_s" in record:
        each["bytes"] = 1 / _bytes_a_cycle(record["gib_s"] * _GIB, mhz)
    if "bytes_a_cycle" in record:
        each["bytes"] = 1 / Fraction(record["bytes_a_cycle"])
    unknown = each.keys() - set(UNITS)
    if unknown:
        raise ValueError(f"unknown units of work {sorted(unknown)}")
    is_guess = record["source"].startswith("guess")
    return Entry(
        source=record["source"],
        fixed=Fraction(record.get("fixed", 0)),
        each=each,
        names=tuple(record.get("names", ())),
        types=tuple(record.get("types", ())),
        route=record.get("route", ""),
        pipe=record.get("pipe", ""),
        lane=record.get("lane", ""),
        guessed=frozenset(("fixed", "each") if is_guess else record.get("guess", ())),
    )
