"""Counters by which the cores of a launch wait for each other.

Every core has a counter for each flag. An arrival is gathered with those of its fellows; when all of them have arrived,
the counters of the receivers go up by one. A wait takes one off, and holds its core while there is none.

=========  ===================================  ==========================================
mode       gathers                              receivers
=========  ===================================  ==========================================
INTER      all cores of one side of the launch  the same cores
SUBBLOCK   the vector cores of a block          the same cores
BLOCK      the vector cores of a block          its cube core
BLOCK      the cube core of a block             its vector cores
DIRECT     one core                             one other core of its block, named by the flag
=========  ===================================  ==========================================

Each gathered round is a *token*, by number: the rows of its arrivals and of the waits that took it carry it.

Sources: asc-devkit C-API sync (pages, and the ffts_cross_core_sync modes in impl/c_api); pto-isa
docs/isa/scalar/ops/pipeline-sync/set-cross-core, wait-flag-dev, set-intra-block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple, overload

MOST = 15
"""What a counter holds at most."""
_SUBBLOCK_FLAGS = 16
"""How many flags of the cube core belong to each of its vector cores, where one core signals another."""


class CoreId(NamedTuple):
    """A core of a launch: its number, its block, ``aic`` or ``aiv``, and which vector core of the block it is."""

    number: int
    block: int
    side: str
    subblock: int = 0


class Cores(Sequence[CoreId]):
    """The cores of a launch in the order in which they begin, each made when it is asked for.

    ``of_block`` are the (side, subblock) of the cores that run each block. Numbers have 16 bits, as in the trace.
    """

    def __init__(self, blocks: int, of_block: Sequence[tuple[str, int]] = (("aiv", 0),)) -> None:
        self._blocks, self._of_block = blocks, tuple(of_block)

    def __len__(self) -> int:
        return self._blocks * len(self._of_block)

    @overload
    def __getitem__(self, place: int) -> CoreId: ...
    @overload
    def __getitem__(self, place: slice) -> list[CoreId]: ...
    def __getitem__(self, place: int | slice) -> CoreId | list[CoreId]:
        numbers = range(len(self))[place]
        return self._core(numbers) if isinstance(numbers, int) else [self._core(number) for number in numbers]

    def _core(self, number: int) -> CoreId:
        block, position = divmod(number, len(self._of_block))
        return CoreId(number & 0xFFFF, block, *self._of_block[position])


class SignalMode(IntEnum):
    """Who signals whom."""

    INTER = 0
    SUBBLOCK = 1
    BLOCK = 2
    DIRECT = 3


class Left(NamedTuple):
    """A counter that is not zero when the launch ends, or went over what it holds: core, flag, and the newest token."""

    core: int
    flag: int
    token: int


class Kept(NamedTuple):
    """What signals of some blocks among themselves leave: how many tokens they are, and the counters that are not zero."""

    tokens: int
    counters: dict[tuple[int, SignalMode, int], list[int]]
    overflowed: list[Left]


class Signals:
    """The counters of one launch."""

    def __init__(self, cores: Sequence[CoreId]) -> None:
        self._launch = cores
        self._arrived: dict[tuple[SignalMode, int, int], int] = {}
        self._tokens: dict[tuple[SignalMode, tuple[int, ...], int, int], int] = {}
        self._counters: dict[tuple[int, SignalMode, int], deque[int]] = {}
        self._joined = 0
        self.overflowed: list[Left] = []

    @cached_property
    def _cores(self) -> dict[int, CoreId]:
        """By number; most launches have no signals and need none of this."""
        return {core.number: core for core in self._launch}

    @cached_property
    def _blocks(self) -> dict[int, list[CoreId]]:
        blocks: dict[int, list[CoreId]] = {}
        for core in self._cores.values():
            blocks.setdefault(core.block, []).append(core)
        return blocks

    def arrive(self, core: int, mode: SignalMode, flag: int) -> int:
        """A core has arrived; returns the number of the token that its arrival is part of, from 1."""
        gathered, receivers = self._groups(self._cores[core], mode, flag)
        turn = self._arrived.get((mode, core, flag), 0)
        self._arrived[mode, core, flag] = turn + 1
        token = self._tokens.setdefault((mode, gathered, flag, turn), self._joined + len(self._tokens) + 1)
        if all(self._arrived.get((mode, other, flag), 0) > turn for other in gathered):
            for receiver, name in receivers:
                counter = self._counters.setdefault((receiver, _counter(mode), name), deque())
                counter.append(token)
                if len(counter) > MOST:
                    self.overflowed.append(Left(receiver, name, token))
        return token

    def is_set(self, core: int, mode: SignalMode, flag: int) -> bool:
        """Whether a wait would go on."""
        return bool(self._counters.get((core, _counter(mode), flag)))

    def take(self, core: int, mode: SignalMode, flag: int) -> int:
        """Take one off a counter that is not zero; returns the token it stands for."""
        return self._counters[core, _counter(mode), flag].popleft()

    def left(self) -> list[Left]:
        """The counters that are not zero."""
        return [Left(core, flag, counter[-1]) for (core, _, flag), counter in self._counters.items() if counter]

    def kept(self) -> Kept:
        """What has to be known of these where they are joined."""
        counters = {key: list(counter) for key, counter in self._counters.items() if counter}
        return Kept(len(self._tokens), counters, self.overflowed)

    def join(self, kept: Kept) -> int:
        """Take over the signals of blocks that were counted apart; their tokens have numbers that are larger by what this
        returns."""
        by = self._joined + len(self._tokens)
        self._joined += kept.tokens
        for key, counter in kept.counters.items():
            self._counters[key] = deque(token + by for token in counter)
        self.overflowed += [left._replace(token=left.token + by) for left in kept.overflowed]
        return by

    def _groups(self, core: CoreId, mode: SignalMode, flag: int) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
        """The cores whose arrivals are gathered, and the receivers with the number that the flag has for each."""
        of_block = self._blocks[core.block]
        vectors = tuple(c.number for c in of_block if c.side == "aiv")
        cubes = tuple(c.number for c in of_block if c.side == "aic")
        if mode is SignalMode.INTER:
            group = tuple(c.number for c in self._cores.values() if c.side == core.side)
            return group, [(c, flag) for c in group]
        if mode is SignalMode.SUBBLOCK:
            return vectors, [(c, flag) for c in vectors]
        if mode is SignalMode.BLOCK:
            gathered, receivers = (cubes, vectors) if core.side == "aic" else (vectors, cubes)
            return gathered, [(c, flag) for c in receivers]
        if core.side == "aiv":
            return (core.number,), [(c, core.subblock * _SUBBLOCK_FLAGS + flag) for c in cubes]
        subblock, name = divmod(flag, _SUBBLOCK_FLAGS)
        return (core.number,), [(c.number, name) for c in of_block if c.side == "aiv" and c.subblock == subblock]


def _counter(mode: SignalMode) -> SignalMode:
    """A core has two sets of counters: one for direct signals, one for the gathered ones of any mode."""
    return SignalMode.DIRECT if mode is SignalMode.DIRECT else SignalMode.INTER


def packed(mode: SignalMode, flag: int) -> int:
    """A flag and its mode in the byte that a row has for them."""
    return mode << 5 | flag


def unpacked(byte: int) -> tuple[SignalMode, int]:
    """The inverse of :func:`packed`."""
    return SignalMode(byte >> 5), byte & 31
