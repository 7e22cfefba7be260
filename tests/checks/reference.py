"""Happens-before, naively: for every row the set of rows that are complete before it starts.

Independent of :mod:`ascsim.checks`: sets of rows and sets of bytes, every pair compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ascsim.machine.words import Pipe

INSTRUCTION, SET, WAIT, BARRIER, LOCK, UNLOCK = "instruction", "set", "wait", "barrier", "lock", "unlock"


@dataclass(frozen=True)
class Access:
    """An operand: ``fields`` as the builder packs them; ``bytes`` worked out here."""

    fields: tuple[tuple[str, Any], ...]
    write: bool

    @property
    def bytes(self) -> set[tuple[int, int]]:
        """(space, byte) of all bytes touched."""
        get = dict(self.fields).get
        mask = get("mask")
        touched = set()
        for i3 in range(get("n3", 1)):
            for i2 in range(get("n2", 1)):
                for i1 in range(get("n1", 1)):
                    at = get("start") + i1 * get("s1", 0) + i2 * get("s2", 0) + i3 * get("s3", 0)
                    touched |= set(range(at, at + get("length")))
        if mask is not None:
            touched = {b for b in touched if not 0 <= b - get("start") < 256 or mask[b - get("start")]}
        return {(get("space"), byte) for byte in touched}


@dataclass(frozen=True)
class Op:
    """One row of one core: of a flag, ``pipe`` is the source and ``pipe2`` the target. A barrier on S with an event is dsb;
    the event of a lock is its mutex.
    """

    kind: str
    pipe: int
    pipe2: int = 0
    event: int = 0
    accesses: tuple[Access, ...] = ()


@dataclass
class Reference:
    """All conflicts of a program that nothing orders. ``repairs[i]`` are rows that row i is made to wait for."""

    ops: list[Op]
    ordered: frozenset[str]
    repairs: dict[int, list[int]] = field(default_factory=dict)

    def known(self) -> list[set[int]]:
        """For each row the instructions that are complete before it starts."""
        known: list[set[int]] = []
        carried: dict[tuple[int, int, int], set[int]] = {}
        released: dict[tuple[int, int], set[int]] = {}
        for j, op in enumerate(self.ops):
            mine: set[int] = set()
            pipe = op.pipe2 if op.kind == WAIT else op.pipe
            for i in range(j):
                other = self.ops[i]
                starts_before = self._pipe(i) == pipe or Pipe.ALL in (self._pipe(i), pipe)
                scalar_waited = self._pipe(i) == Pipe.S and (other.kind in (WAIT, LOCK) or bool(self.repairs.get(i)))
                if starts_before or scalar_waited:
                    mine |= known[i]
            if op.kind == SET:
                carried[op.pipe, op.pipe2, op.event] = mine | self._instructions(j, op.pipe)
            elif op.kind == WAIT:
                mine |= carried.pop((op.pipe, op.pipe2, op.event))
            elif op.kind == UNLOCK:
                released[op.event, op.pipe] = mine | self._instructions(j, op.pipe)
            elif op.kind == LOCK:
                for (mutex, holder), complete in released.items():
                    mine |= complete if mutex == op.event and holder != op.pipe else set()
            elif op.kind == BARRIER and op.pipe == Pipe.ALL:
                mine |= {i for i in range(j) if self.ops[i].kind == INSTRUCTION}
            elif op.kind == BARRIER and Pipe(op.pipe).name not in self.ordered:
                mine |= self._instructions(j, op.pipe)
            for i in range(j):
                if self.ops[i].kind == BARRIER and self.ops[i].pipe == Pipe.S and self.ops[i].event:
                    mine |= self._instructions(i, Pipe.S)
            for i in self.repairs.get(j, ()):
                same = self.ops[i].pipe == op.pipe
                complete = self._instructions(i + 1, self.ops[i].pipe) | known[i]
                mine |= self._instructions(j, op.pipe) if same else complete
            known.append(mine)
        return known

    def _pipe(self, i: int) -> int:
        op = self.ops[i]
        return op.pipe2 if op.kind == WAIT else op.pipe

    def _instructions(self, j: int, pipe: int) -> set[int]:
        return {i for i in range(j) if self.ops[i].kind == INSTRUCTION and self.ops[i].pipe == pipe}

    def races(self) -> set[tuple[str, int, int]]:
        """Every (kind, later row, earlier row) that touches one byte, one of the two writing, with nothing between."""
        known = self.known()
        found = set()
        touched = [[(access.write, access.bytes) for access in op.accesses] for op in self.ops]
        for j, later in enumerate(self.ops):
            for i in range(j):
                if i in known[j]:
                    continue
                if self.ops[i].pipe == later.pipe and Pipe(later.pipe).name in self.ordered:
                    continue
                for write, bytes_ in touched[j]:
                    for earlier_write, earlier_bytes in touched[i]:
                        if (write or earlier_write) and bytes_ & earlier_bytes:
                            kind = "RAW" if not write else "WAW" if earlier_write else "WAR"
                            found.add((kind, j, i))
        return found

    def newest(self) -> set[tuple[str, int, int]]:
        """For each access of a row, other pipe and kind, the newest of :meth:`races`: what the engine names."""
        known = self.known()
        found = set()
        touched = [[(access.write, access.bytes) for access in op.accesses] for op in self.ops]
        for j, later in enumerate(self.ops):
            for pipe in {op.pipe for op in self.ops}:
                if pipe == later.pipe and Pipe(pipe).name in self.ordered:
                    continue
                for write, bytes_ in touched[j]:
                    for earlier_write in (True, False) if write else (True,):
                        met = [
                            i
                            for i in range(j)
                            if self.ops[i].pipe == pipe and i not in known[j]
                            and any(w == earlier_write and bytes_ & b for w, b in touched[i])
                        ]  # fmt: skip
                        if met:
                            kind = "RAW" if not write else "WAW" if earlier_write else "WAR"
                            found.add((kind, j, met[-1]))
        return found
