"""Traces by hand: what a kernel of a few calls would leave, without any instruction set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np

from ascsim import profiles
from ascsim.checks import CHECKS, initialisation, noted_sites, run
from ascsim.checks.context import Context
from ascsim.diagnostics import Diagnostic
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Kind, MemorySink, Mode, Trace, pack_access, pack_row, pack_shape
from ascsim.machine.words import Pipe, Space

S, V, M, MTE1, MTE2, MTE3, ALL, FIX = (
    Pipe.S, Pipe.V, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.ALL, Pipe.FIX,
)  # fmt: skip


class TileOf:
    """A noted tile: ``number`` is its object number."""

    def __init__(self, number: int, address: int, nbytes: int, space: int) -> None:
        self.number = number
        self.address = address
        self.nbytes = nbytes
        self.space = space


class Builder:
    """Appends rows; every call is a new source line unless ``line`` says which."""

    def __init__(self) -> None:
        self.sink = MemorySink()
        self._mnemonics: dict[str, int] = {}
        self._sites: dict[int, int] = {}
        self._objects = 0
        self.core = 0
        self.next_line = 1

    # Notes

    def tile(
        self, name: str, address: int, rows: int = 1, cols: int = 64, kind: str = "f32", space: int = Space.UB,
        **more: Any,
    ) -> TileOf:  # fmt: skip
        """Note a tile."""
        self._objects += 1
        note = {
            "type": "tile", "name": name, "dtype": kind, "space": int(space), "address": address, "rows": rows,
            "cols": cols, "valid_rows": rows, "valid_cols": cols, "blayout": 0, "slayout": 0, "fractal": 512,
        }  # fmt: skip
        self.sink.note("object", note | more)
        return TileOf(self._objects, address, rows * cols * dtype(kind).size, space)

    def note(self, kind: str, **data: Any) -> None:
        """Note anything."""
        self.sink.note(kind, data)

    def site(self, line: int | None) -> int:
        """The number of a source line of kernel.cpp; line 0 is unknown."""
        if line is None:
            line, self.next_line = self.next_line, self.next_line + 1
        if line == 0:
            return 0
        if line not in self._sites:
            self._sites[line] = len(self._sites) + 1
            self.sink.note("site", {"path": "kernel.cpp", "line": line, "column": 0, "function": ""})
        return self._sites[line]

    def mnemonic(self, name: str) -> int:
        """The number of an instruction's name."""
        if name not in self._mnemonics:
            self._mnemonics[name] = len(self._mnemonics) + 1
            self.sink.note("mnemonic", {"id": self._mnemonics[name], "name": name})
        return self._mnemonics[name]

    # Rows

    def row(
        self, pipe: int, kind: int, name: str, accesses: Sequence[bytes] = (), line: int | None = None, pipe2: int = 0,
        parent: int = -1, arg: int = 0, site: int | None = None, flags: int = 0,
    ) -> int:  # fmt: skip
        """Any row."""
        number = self.site(line) if site is None else site
        return self.sink.append(
            pack_row(
                self.core, pipe, kind, self.mnemonic(name), len(accesses), pipe2, parent, arg, number, 1, flags, 0, 0
            ),
            b"".join(accesses),
        )

    def op(
        self, pipe: int, name: str = "op", reads: Sequence[Any] = (), writes: Sequence[Any] = (),
        line: int | None = None, parent: int = -1,
    ) -> int:  # fmt: skip
        """An instruction. Operands are packed accesses made by :meth:`at`, or tiles."""
        packed = [self.at(x, mode=Mode.READ, operand=i + len(writes)) for i, x in enumerate(reads)]
        packed += [self.at(x, mode=Mode.WRITE, operand=i) for i, x in enumerate(writes)]
        return self.row(pipe, Kind.INSTRUCTION, name, packed, line, parent=parent)

    def at(self, what: Any, mode: int, operand: int = 0) -> bytes:
        """Pack an operand: a tile, or a dict of access fields (space UB, length 256 by default)."""
        fields: dict[str, Any] = {"space": Space.UB, "length": 256, "align": 0, "object": 0}
        if isinstance(what, TileOf):
            fields |= {"start": what.address, "length": what.nbytes, "space": what.space, "object": what.number}
        elif isinstance(what, int):
            fields["start"] = what
        else:
            fields |= what
        mask = fields.pop("mask", None)
        if mask is not None:
            fields["mask"] = self.sink.mask(np.packbits(np.asarray(mask, np.uint8), bitorder="little").tobytes())
        get = fields.get
        pairs = [value for i in (1, 2, 3) for value in (get(f"n{i}", 1), get(f"s{i}", 0))]
        return pack_access(
            fields["space"], mode, operand, fields["align"], get("mask", 0), fields["start"], fields["length"],
            self.sink.shape(pack_shape(*pairs)) if max(pairs[::2]) > 1 else 0, fields["object"], get("unused", 0),
        )  # fmt: skip

    def set(self, source: int, target: int, event: int = 0, line: int | None = None, parent: int = -1) -> int:
        """set_flag."""
        return self.row(source, Kind.SET_FLAG, "set_flag", (), line, target, parent, event)

    def wait(self, source: int, target: int, event: int = 0, line: int | None = None, parent: int = -1) -> int:
        """wait_flag."""
        return self.row(target, Kind.WAIT_FLAG, "wait_flag", (), line, source, parent, event)

    def sync(self, source: int, target: int, event: int = 0) -> None:
        """set_flag, then wait_flag."""
        self.set(source, target, event)
        self.wait(source, target, event)

    def barrier(self, pipe: int, line: int | None = None, parent: int = -1, arg: int = 0) -> int:
        """pipe_barrier; on S with ``arg`` 1 dsb."""
        return self.row(pipe, Kind.BARRIER, "pipe_barrier", (), line, parent=parent, arg=arg)

    def lock(self, pipe: int, mutex: int = 0, line: int | None = None, mode: int = 0) -> int:
        """asc_lock."""
        return self.row(pipe, Kind.LOCK, "asc_lock", (), line, mode, arg=mutex)

    def unlock(self, pipe: int, mutex: int = 0, line: int | None = None, mode: int = 0) -> int:
        """asc_unlock."""
        return self.row(pipe, Kind.UNLOCK, "asc_unlock", (), line, mode, arg=mutex)

    def arrive(self, pipe: int, token: int, line: int | None = None) -> int:
        """The arrival of a core at a signal, as part of a token."""
        return self.row(pipe, Kind.ARRIVE, "arrive", (), line, arg=token)

    def take(self, pipe: int, token: int, line: int | None = None) -> int:
        """The wait of a core for a signal, which took a token."""
        return self.row(pipe, Kind.AWAIT, "await", (), line, arg=token)

    def launch(self, number: int, kernel: str = "kernel", blocks: int = 1) -> None:
        """The begin of a launch."""
        self.note("launch", number=number, kernel=kernel, blocks=blocks, sync="manual")
        self.row(0, Kind.LAUNCH_BEGIN, "launch", line=0, arg=number)

    def end(self, number: int) -> None:
        """The end of a launch."""
        self.row(0, Kind.LAUNCH_END, "launch", line=0, arg=number)

    # Results

    def trace(self) -> Trace:
        """The trace so far."""
        return self.sink.trace()

    def run(self, profile: str = "a2a3", **more: Any) -> list[Diagnostic]:
        """All checks but that of initialisation: these traces say nothing of where their data comes from."""
        chosen = [check for check in CHECKS if check is not initialisation.check]
        return run(self.trace(), profiles.find(profile), **{"checks": chosen, **more})

    def codes(self, profile: str = "a2a3") -> list[str]:
        """The codes of all checks, in order."""
        return [d.code for d in self.run(profile)]

    def context(self, profile: str = "a2a3", compile: bool | None = None) -> Context:
        """What a check is given."""
        trace = self.trace()
        return Context(trace, profiles.find(profile), noted_sites(trace), compile=compile)


def gm(start: int, length: int = 256, **more: Any) -> dict[str, Any]:
    """An operand in GM."""
    return {"space": Space.GM, "start": start, "length": length, **more}


def parts(rows: int) -> Any:
    """Meanwhile, loops go over a trace in parts of so many rows, as they do over a long one."""
    return mock.patch("ascsim.machine.trace._STRETCH", rows)
