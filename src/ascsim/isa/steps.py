"""Steps: what a chip's library does inside a tile instruction, as moves between regions.

A library's code for a tile instruction is made of builtins, of loops on the scalar pipe, of vector functions. Where only
their order, their pipes and their bytes are visible, one step stands for each: it reads one region, or has a value, and
writes another region of as many elements, in the order of their dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ascsim.isa.definition import STEP_NUMBERS, first_type, in_bursts
from ascsim.isa.sync import set_flag, wait_flag
from ascsim.machine.core import Core, Finding, Group, Step, Touch, nothing
from ascsim.machine.dtypes import DType
from ascsim.machine.operands import Region, Tile
from ascsim.machine.trace import Kind, Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile


class Move:
    """One kind of step. Its arguments: written tile, read tile or None, written region, read region or None, bits.

    Without a region to read the elements become ``bits``. ``title`` is how a report calls it. With ``counts_reads`` False
    the bytes read are not in the trace: what a chip fetches, and nothing depends on.
    """

    is_static = True
    follows_data = False

    def __init__(self, name: str, pipe: Pipe, title: str = "", counts_reads: bool = True) -> None:
        self.name = name
        self.pipe = pipe
        self.title = self.asm_title = title or name
        self.counts_reads = counts_reads
        self.number, _ = STEP_NUMBERS.next()

    def __repr__(self) -> str:
        return f"<step {self.name}>"

    def check(self, profile: Profile, args: Sequence[Any]) -> Sequence[Finding]:
        """Nothing: the instruction that it is part of has been judged."""
        return ()

    def expansion(self, core: Core, args: Sequence[Any]) -> None:
        """None: a step is the smallest thing there is."""
        return

    def decided_by(self, core: Core, args: Sequence[Any]) -> Region:
        """Nothing but what decided the call that it is a step of."""
        raise NotImplementedError

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The region read, then the region written."""
        _, _, written, read, _ = args
        found = [] if read is None or not self.counts_reads else [Touch(1, Mode.READ, read)]
        return [*found, Touch(0, Mode.WRITE, written)]

    def row_fields(self, core: Core, args: Sequence[Any]) -> tuple[int, int, int, int, int]:
        """(pipe, kind, pipe2, arg, work) of the trace row; the work is its bursts."""
        bursts = int(np.prod([n for n, _ in args[2].dims], dtype=np.int64))
        return self.pipe, Kind.INSTRUCTION, 0, 0, bursts

    def element_type(self, args: Sequence[Any]) -> DType | None:
        """That of the first operand that has one."""
        return first_type(args)

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Move the elements, all read before the first is written."""
        _, _, written, read, bits = args
        view = core.view(written)
        if view.size == 0:
            return
        moved = core.view(read).copy().reshape(view.shape) if read is not None else np.array(bits, view.dtype)
        for burst, elements in in_bursts(written, view, moved):
            burst[...] = elements

    def prepared(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> Callable[[], Any] | None:
        """The move between arrays that stay where they are."""
        _, _, written, read, bits = args
        of_core = written.space > Space.GM and (read is None or read.space > Space.GM)
        if type(self).perform is not Move.perform or not of_core or written.overlaps_itself():
            return None
        to = core.view(written)
        if read is None or to.size == 0:
            return partial(to.fill, bits) if to.size else nothing
        source = core.view(read)
        shaped = source.reshape(to.shape)
        if np.shares_memory(shaped, source) and not np.may_share_memory(source, to):
            return partial(np.copyto, to, shaped)

        def move() -> None:
            to[...] = source.copy().reshape(to.shape)

        return move

    def conclude(self, core: Core, args: Sequence[Any]) -> None:
        """Nothing is yielded."""

    def observer(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """None: of a step nothing is observed."""

    def step(
        self, dst: Tile, written: Region, src: Tile | None = None, read: Region | None = None, bits: int = 0
    ) -> Step:
        """The step that moves ``read`` of ``src`` (or ``bits``) to ``written`` of ``dst``."""
        return Step(self, (dst, src, written, read, bits))


VCOPY = Move("vcopy", Pipe.V)
VECTOR_DUP = Move("vector_dup", Pipe.V)
COPY_UB = Move("copy_ubuf_to_ubuf", Pipe.V)
SCALAR_LOOP = Move("scalar_loop", Pipe.S, "a loop of scalar reads and writes")


class Named(NamedTuple):
    """What rows of the trace that no instruction stands behind are called."""

    number: int
    name: str
    title: str


SCALAR_ACCESS = Named(STEP_NUMBERS.next()[0], "scalar_access", "the scalar unit")
"""C++ code reads or writes memory of the chip through a pointer."""


def elements(tile: Tile, start: int, dims: Sequence[tuple[int, int]], bits: str = "") -> Region:
    """A region of single elements of a tile: ``start`` and the strides of ``dims`` in elements.

    The innermost dimension becomes a burst where it is contiguous and longer than one element.
    """
    size = tile.dtype.size
    kind = np.dtype(bits or f"u{size}")
    strides = tuple((n, s * size) for n, s in dims)
    if strides and strides[-1][1] == size:
        return Region(tile.space, tile.address + start * size, strides[-1][0] * size, strides[:-1], kind)
    return Region(tile.space, tile.address + start * size, size, strides, kind)


def flag_pair(source: Pipe, target: Pipe, event: int = 0) -> tuple[Step, Step]:
    """A set and the wait for it, as the library's PtoSetWaitFlag issues them."""
    return Step(set_flag, (source, target, event)), Step(wait_flag, (source, target, event))


def group(*steps: Step) -> Group:
    """Steps one after the other."""
    return Group(list(steps))
