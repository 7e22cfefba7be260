"""What instruction tests share: a core of one profile, operands placed in its memories, one call, the result."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascsim import profiles
from ascsim.isa import REGISTRY
from ascsim.isa.definition import Definition, RegisterInstruction
from ascsim.isa.rules import wrong_sort
from ascsim.machine.core import Core, Machine, Memory
from ascsim.machine.dtypes import DType, dtype
from ascsim.machine.operands import GlobalTensor, MReg, Pointer, Tile, VReg
from ascsim.machine.trace import MemorySink, Mode, Trace
from ascsim.machine.words import Space


class Bench:
    """A core on a bench. Addresses are handed out upwards, with a gap, so that overruns hit nobody by accident."""

    def __init__(self, profile: str | profiles.Profile = "a2a3", gm_bytes: int = 1 << 20) -> None:
        self.profile = profiles.find(profile)
        self.sink = MemorySink()
        self.machine = Machine(self.profile, self.sink, Memory(gm_bytes))
        self.core = Core(self.machine, 0, 0)
        self._next = dict.fromkeys(Space, 0)

    def __del__(self) -> None:
        self.machine.release()

    def definition(self, name: str, operands: int | None = None) -> Definition:
        """The definition of that name for this profile; of several, the first that takes so many operands."""
        found = REGISTRY.find(name, self.profile)
        fits = [d for d in found if operands is None or _takes(d, operands)]
        return (fits or found)[0]

    def place(self, nbytes: int, space: Space = Space.UB, gap: int = 512) -> int:
        """A fresh 512-byte aligned address."""
        at = self._next[space]
        self._next[space] = (at + nbytes + gap + 511) // 512 * 512
        return at

    def tile(
        self, kind: DType | str, rows: int, cols: int, data: Any = None, valid: tuple[int, int] | None = None,
        at: int | None = None, **more: Any,
    ) -> Tile:  # fmt: skip
        """A tile in UB, its valid region filled with ``data`` (or all of it, if the shape says so)."""
        kind = dtype(kind)
        valid_rows, valid_cols = valid or (rows, cols)
        address = self.place(rows * cols * kind.size) if at is None else at
        tile = Tile(kind, rows, cols, valid_rows, valid_cols, address, **more)
        if data is not None:
            with np.errstate(over="ignore"):  # what is too large for a half is infinite
                array = np.asarray(data).astype(kind.numpy)
            shape = array.shape if array.ndim == 2 else (valid_rows, valid_cols)
            view = self.core.view(tile.region(*shape))
            view[...] = array.reshape(shape if view.ndim == 2 else view.shape)
        return tile

    def read(self, tile: Tile, rows: int | None = None, cols: int | None = None) -> np.ndarray:
        """A copy of the tile's valid region (or its first rows and columns)."""
        return self.core.view(tile.region(rows, cols)).copy()

    def pointer(
        self, kind: DType | str, data: Any = None, count: int = 0, space: Space = Space.UB, at: int | None = None
    ) -> Pointer:
        """A buffer holding ``data`` (or ``count`` elements)."""
        kind = dtype(kind)
        array = np.zeros(count, kind.numpy) if data is None else np.asarray(data).astype(kind.numpy).ravel()
        address = self.place(array.nbytes, space) if at is None else at
        self.memory(space)[address : address + array.nbytes] = array.view(np.uint8)
        return Pointer(space, address, kind)

    def memory(self, space: Space = Space.UB) -> np.ndarray:
        """The bytes of a memory (guard included)."""
        return self.core.memory(space).data

    def load(self, pointer: Pointer, count: int) -> np.ndarray:
        """A copy of ``count`` elements at the pointer."""
        assert pointer.dtype is not None
        data = self.memory(Space(pointer.space))[pointer.offset : pointer.offset + count * pointer.dtype.size]
        return data.copy().view(pointer.dtype.numpy)

    def vreg(self, kind: DType | str, lanes: Any) -> VReg:
        """A vector register with these lanes."""
        kind = dtype(kind)
        return VReg(kind, np.ascontiguousarray(np.asarray(lanes).astype(kind.numpy)).view(np.uint8).copy())

    def mask(self, lanes: Any, size: int) -> MReg:
        """A mask register with these lanes set, for lanes of ``size`` bytes."""
        register = MReg()
        register.data[::size] = np.asarray(lanes, np.uint8)
        return register

    def issue(self, name: str, *args: Any, result: DType | str | None = None) -> Any:
        """Issue by name; for register instructions the types are inferred (``result`` gives what they leave open)."""
        fits = [d for d in REGISTRY.find(name, self.profile) if _takes(d, len(args)) and not _wrong(d, args)]
        definition: Any = next((d for d in fits if not d.is_placed or d.takes(args)), self.definition(name, len(args)))
        if isinstance(definition, RegisterInstruction):
            definition = definition.infer(args, dtype(result) if result else None)
        return self.machine.issue(self.core, definition, args, self.machine.site("test.py", 1))

    def findings(self) -> list[str]:
        """Codes found at issue time, in order."""
        return [data["code"] for kind, data in self.sink.notes if kind == "finding"]

    def trace(self) -> Trace:
        """The trace so far."""
        return self.sink.trace()

    def accesses(self, row: int = 0) -> np.ndarray:
        """The accesses of a row of the trace."""
        trace = self.trace()
        return trace.accesses[trace.first_access[row] : trace.first_access[row + 1]]

    def traced(self, mode: Mode, space: Space = Space.UB) -> np.ndarray:
        """Which bytes of a memory (bool, guard included) the trace says are read, or written."""
        trace = self.trace()
        bytes_ = np.zeros(self.memory(space).size, bool)
        for access in trace.accesses[(trace.accesses["mode"] == mode) & (trace.accesses["space"] == space)]:
            burst = np.arange(access["length"])
            if access["mask"]:
                bits = np.unpackbits(trace.masks[access["mask"] - 1], bitorder="little")
                burst = np.flatnonzero(bits[: access["length"]])
            shape = trace.shapes[access["shape"]]
            steps = [(int(shape[f"n{i}"]), int(shape[f"s{i}"])) for i in (1, 2, 3)]
            heads = np.array([access["start"]], np.int64)
            for count, stride in steps:
                heads = (heads[:, None] + np.arange(count) * stride).ravel()
            bytes_[(heads[:, None] + burst).ravel()] = True
        return bytes_


def _wrong(definition: Definition, args: Any) -> bool:
    return any(wrong_sort(definition, o, a) for o, a in zip(definition.inputs, args, strict=False))


def _takes(definition: Definition, operands: int) -> bool:
    return sum(not o.optional for o in definition.inputs) <= operands <= len(definition.inputs)


__all__ = ["Bench", "GlobalTensor", "MReg", "Pointer", "Tile", "VReg"]
