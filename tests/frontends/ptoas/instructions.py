"""A small instruction set for the tests of the front end, so that they do not depend on the real one's content."""

from typing import Any

import numpy as np

from ascsim.isa.definition import (
    Asm,
    Choice,
    Definition,
    In,
    InOut,
    Out,
    PlainInstruction,
    RegisterInstruction,
    Registry,
    Scalar,
    Scratch,
    Sort,
    TileInstruction,
    types_of,
)
from ascsim.machine.words import Pipe, RoundMode

ALL = ("a2a3", "a5", "cpu")


class Add(TileInstruction):
    """Two tiles, lane by lane."""

    semantics = staticmethod(lambda a, b: a + b)


class Scale(TileInstruction):
    """A tile times a number."""

    semantics = staticmethod(lambda a, k, mode: a * k + int(mode))


class Load(TileInstruction):
    """Global memory to a tile."""

    def compute(self, call: Any, arrays: list[np.ndarray], profile: Any) -> Any:
        return arrays[0].reshape(call.dst.valid_rows, call.dst.valid_cols)


class Store(TileInstruction):
    """A tile to global memory."""

    def compute(self, call: Any, arrays: list[np.ndarray], profile: Any) -> Any:
        return arrays[0].reshape(call.dst.shape)


def tile(
    kind: type[TileInstruction], name: str, operands: tuple, pipe: Pipe = Pipe.V, **record: Any
) -> TileInstruction:
    """A tile instruction of every profile."""
    record.setdefault("asm", (Asm(name),))
    return kind(name, operands=operands, pipe=pipe, profiles=ALL, doc=kind.__doc__ or "", cpp=name.upper(), **record)


def plain(name: str, operands: tuple, effect: Any, level: str = "sync", **record: Any) -> PlainInstruction:
    """A plain instruction of every profile."""
    return PlainInstruction(
        name,
        effect=effect,
        operands=operands,
        pipe=Pipe.S,
        profiles=ALL,
        doc=name,
        level=level,
        asm=record.pop("asm", (Asm(name),)),
        **record,
    )


def register(name: str, operands: tuple, semantics: Any, **record: Any) -> RegisterInstruction:
    """A register instruction of the a5 on 32-bit lanes."""
    record.setdefault("asm", (Asm(name),))
    record.setdefault("variants", types_of("f32", "i32"))
    return RegisterInstruction(
        name,
        operands=operands,
        semantics=semantics,
        profiles=("a5",),
        doc=name,
        **record,
    )


ADD = tile(Add, "tadd", (Out("dst"), In("src0"), In("src1")))
SORT = tile(Add, "tsort", (Out("dst"), In("src"), In("idx"), Scratch("tmp", optional=True)))
SCALE = tile(
    Scale, "tscale", (Out("dst"), In("src"), Scalar("scalar", "T"), Choice("mode", RoundMode, optional=True, default=0))
)
ACCUMULATE = tile(Add, "tacc", (InOut("dst"), In("src")))
LOAD = tile(Load, "tload", (Out("dst"), In("src", Sort.GLOBAL)), Pipe.MTE2)
STORE = tile(Store, "tstore", (Out("dst", Sort.GLOBAL), In("src")), Pipe.MTE3)
FLAG = plain(
    "set_flag", (Choice("source", Pipe), Choice("target", Pipe), Choice("event", int)), lambda core, call: None
)
TAKE = plain(
    "take", (Choice("on", Pipe), Choice("mutex", int)), lambda core, call: None,
    asm=(Asm("take"), Asm("take", order=("mutex", "on"))),
)  # fmt: skip
BLOCK = plain("get_block_idx", (), lambda core, call: core.block, level="system")
_VECTORS = (
    *(Out(name, Sort.VREG, "T") for name in ("dst0", "dst1")), *(In(name, Sort.VREG, "T") for name in ("src0", "src1")),
)  # fmt: skip
WEAVE = register("vweave", _VECTORS, lambda a, b: (b, a))
NORMAL = register("vload_norm", (Out("dst", Sort.VREG, "T"), In("src", Sort.POINTER, "T")), lambda a: a,
                  asm=(Asm("vload"), Asm("vload", (("dist", "NORM"),))))  # fmt: skip
BROADCAST = register("vload_brc", (Out("dst", Sort.VREG, "T"), In("src", Sort.POINTER, "T")), lambda a: a,
                     asm=(Asm("vload", (("dist", "BRC"),)), Asm("vload", (("", "BRC"),))))  # fmt: skip
STORE_REGISTER = register(
    "vstore", (In("dst", Sort.POINTER, "T"), In("src", Sort.VREG, "T"), In("mask", Sort.MREG)), lambda a, b: a
)


def registry(*definitions: Definition) -> Registry:
    """A registry of these definitions (all of the above without any)."""
    made = Registry()
    for definition in definitions or (
        ADD, SORT, SCALE, ACCUMULATE, LOAD, STORE, FLAG, TAKE, BLOCK, WEAVE, NORMAL, BROADCAST, STORE_REGISTER,
    ):  # fmt: skip
        made.add(definition)
    return made
