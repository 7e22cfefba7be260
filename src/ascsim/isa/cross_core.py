"""Signals between the cores of a launch: who arrives, who waits (:mod:`ascsim.machine.signals`).

Sources: asc-devkit C-API sync (pages, include/c_api/sync/sync.h, impl/c_api/instr_impl/npu_arch_*/sync_impl); pto-isa
docs/isa/SYNCALL, docs/isa/scalar/ops/pipeline-sync, include/pto/npu/{a2a3,a5}/SyncAll.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

from ascsim.isa.definition import CHIPS, Asm, Choice, Definition, Scalar, plain_instruction
from ascsim.isa.rules import refuse
from ascsim.isa.sync import pipe_barrier
from ascsim.machine.baton import Halted
from ascsim.machine.core import Core, Group, Step
from ascsim.machine.dtypes import u64
from ascsim.machine.signals import SignalMode, packed
from ascsim.machine.trace import Kind
from ascsim.machine.words import Pipe
from ascsim.profiles import Profile

FLAGS = 16
"""Flags of gathered signals. Their counters hold up to 15."""
_DIRECT_FLAGS = 32

_ON = Choice("on", Pipe, doc="the pipe whose earlier instructions must be done first")
_HELD = Choice("on", Pipe, doc="the pipe that is held back")
_FLAG = Choice("flag", int, doc="the flag, 0 to 15")


def _in_range(limit: int) -> Any:
    def problem(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        if 0 <= int(call.flag) < limit:
            return None
        return f"flag {int(call.flag)} is out of range 0 to {limit - 1}"

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for wrong in (-1, limit):
            yield SimpleNamespace(**{**vars(call), "flag": wrong})

    return refuse("L006", f"the flag is 0 to {limit - 1}", problem, breaks=breaks,
                  mend=f"Use a flag from 0 to {limit - 1}.")  # fmt: skip


def _arrive(name: str, mode: SignalMode, doc: str, limit: int = FLAGS, **record: Any) -> Any:
    @plain_instruction(
        name, cpp=name, operands=(_ON, _FLAG), rules=(_in_range(limit),), core="any", doc=doc,
        row=lambda core, call: (call.on, Kind.ARRIVE, packed(mode, int(call.flag)), 0),
        signal=lambda core, call: core.machine.signals.arrive(core.index, mode, int(call.flag)), **record,
    )  # fmt: skip
    def arrive(core: Core, call: SimpleNamespace) -> None: ...

    return arrive


def _go_on(core: Core, call: SimpleNamespace) -> None:
    """What a wait does once its row is written: end the core, if the launch has ended meanwhile."""
    if core.machine.is_halted:
        raise Halted


def _wait(name: str, mode: SignalMode, doc: str, limit: int = FLAGS, **record: Any) -> Any:
    def row(core: Core, call: SimpleNamespace) -> tuple[int, int, int, int]:
        on = call.on if hasattr(call, "on") and core.profile.waits_on_pipes else Pipe.S
        return on, Kind.AWAIT, packed(mode, int(call.flag)), 0

    record.setdefault("operands", (_HELD, _FLAG))
    return plain_instruction(
        name, cpp=name, rules=(_in_range(limit),), core="any", doc=doc, row=row,
        signal=lambda core, call: core.machine.await_signal(core, mode, int(call.flag)), **record,
    )(_go_on)  # fmt: skip


_ASSUMED = ("A vector core's block signal without a cube core in the launch reaches nobody.",)
_LATER = "Hold the pipe back until the flag's counter is above 0, and take one off."
_ON_S = "On A2/A3 the scalar pipe waits whatever pipe is named: the public header drops the argument."

inter_arrive = _arrive(
    "asc_sync_inter_arrive", SignalMode.INTER,
    "Arrive at a point that all cores of this kind, of all blocks, come to: when the last one has, the flag's counter of "
    "each goes up by one.",
    asm=(), profiles=CHIPS, sources=("asc-devkit C-API sync/asc_sync_inter_arrive",),
)  # fmt: skip
subblock_arrive = _arrive(
    "asc_sync_subblock_arrive", SignalMode.SUBBLOCK,
    "Arrive at a point that all vector cores of this block come to: when the last one has, the flag's counter of each "
    "goes up by one.",
    asm=(), profiles=CHIPS, sources=("asc-devkit C-API sync/asc_sync_subblock_arrive",),
)  # fmt: skip
block_arrive = _arrive(
    "asc_sync_block_arrive", SignalMode.BLOCK,
    "Signal between the cube core and the vector cores of a block: from the cube core to all of its vector cores; from "
    "the vector cores, once all of them have arrived, to the cube core.",
    asm=(Asm("sync.set"),), profiles=CHIPS, assumed=_ASSUMED, sources=("asc-devkit C-API sync/asc_sync_block_arrive",),
)  # fmt: skip
intra_arrive = _arrive(
    "asc_sync_intra_arrive", SignalMode.DIRECT,
    "Signal one other core of the block: a vector core its cube core (whose flag is 16 higher for the second vector "
    "core); the cube core, with flags 0 to 15, its first vector core, with 16 to 31 its second.",
    limit=_DIRECT_FLAGS, aliases=("set_intra_block",), asm=(Asm("set_intra_block"),), profiles=("a5",),
    sources=("asc-devkit C-API sync/asc_sync_intra_arrive", "pto-isa docs/isa/scalar/ops/pipeline-sync/set-intra-block"),
)  # fmt: skip

for _name in ("inter", "subblock", "block"):
    _wait(
        f"asc_sync_{_name}_wait", SignalMode.INTER, f"{_LATER} The counter is the same for all kinds of gathered arrivals.",
        asm=(Asm("sync.wait"),) if _name == "block" else (), profiles=CHIPS, notes=(_ON_S,),
        sources=(f"asc-devkit C-API sync/asc_sync_{_name}_wait",),
    )  # fmt: skip
wait_flag_dev = _wait(
    "wait_flag_dev", SignalMode.INTER, _LATER, operands=(_FLAG,), profiles=("a2a3",),
    sources=("pto-isa docs/isa/scalar/ops/pipeline-sync/wait-flag-dev",),
)  # fmt: skip
wait_flag_dev_on = _wait(
    "wait_flag_dev", SignalMode.INTER, _LATER, profiles=("a5",),
    sources=("pto-isa docs/isa/scalar/ops/pipeline-sync/wait-flag-dev",),
)  # fmt: skip
intra_wait = _wait(
    "asc_sync_intra_wait", SignalMode.DIRECT, "Hold the pipe back until another core of the block has signalled the flag.",
    limit=_DIRECT_FLAGS, aliases=("wait_intra_block",), asm=(Asm("wait_intra_core"), Asm("wait_intra_block")),
    profiles=("a5",), sources=("asc-devkit C-API sync/asc_sync_intra_wait",),
)  # fmt: skip


def _decoded(config: int) -> tuple[SignalMode, int]:
    return SignalMode(config >> 4 & 3), config >> 8 & 15


def _is_config(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    config = int(call.config)
    if config & 15 == 1 and config >> 4 & 3 != SignalMode.DIRECT and not config >> 12:
        return None
    return f"{config:#x} is no signal: 1, a mode of 0 to 2 from bit 4 on, a flag of 0 to 15 from bit 8 on"


@plain_instruction(
    "ffts_cross_core_sync", cpp="ffts_cross_core_sync", asm=(), profiles=CHIPS, core="any",
    operands=(_ON, Scalar("config", u64, doc="1 + mode * 16 + flag * 256; modes: 0 all blocks, 1 subblocks, 2 block")),
    row=lambda core, call: (call.on, Kind.ARRIVE, packed(*_decoded(int(call.config))), 0),
    signal=lambda core, call: core.machine.signals.arrive(core.index, *_decoded(int(call.config))),
    rules=(
        refuse("L006", "the signal is one that there is", _is_config, mend="Use modes 0 to 2 and flags 0 to 15.",
               breaks=lambda call, profile: iter((SimpleNamespace(on=call.on, config=0x31),
                                                  SimpleNamespace(on=call.on, config=0x1001)))),
    ),
    sources=("asc-devkit impl/c_api, the code behind asc_sync_block_arrive",),
)  # fmt: skip
def ffts_cross_core_sync(core: Core, call: SimpleNamespace) -> None:
    """Arrive, as the C API's functions of one mode each do: the builtin behind them."""


# A barrier over all cores


class SyncCoreType(IntEnum):
    """Which cores meet."""

    AIVOnly = 0
    AICOnly = 1
    Mix = 2


# The flags that the public library keeps for itself.
_AIC, _AIV, _AIC_TO_AIV, _AIV_ONLY = 11, 12, 13, 14


def _meet(call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
    """Arrival and wait of all cores of a kind; for Mix the vector cores report to their cube core, which meets the others."""
    kind = SyncCoreType(call.cores)
    is_vector = call.side == "aiv"
    steps = [Step(pipe_barrier, (Pipe.ALL,))]
    if kind is not SyncCoreType.Mix:
        if is_vector == (kind is SyncCoreType.AIVOnly):
            flag, pipe = (_AIV_ONLY, Pipe.MTE3) if is_vector else (_AIC, Pipe.FIX)
            steps += [Step(inter_arrive, (pipe, flag)), _awaited(profile, flag)]
    elif profile.waits_on_pipes:
        of_second = _AIV + FLAGS, _AIC_TO_AIV + FLAGS
        if is_vector:
            steps += [Step(intra_arrive, (Pipe.MTE3, _AIV)), Step(intra_wait, (Pipe.S, _AIC_TO_AIV))]
        else:
            steps += [Step(intra_wait, (Pipe.S, _AIV)), Step(intra_wait, (Pipe.S, of_second[0]))]
            steps += [Step(inter_arrive, (Pipe.FIX, _AIC)), _awaited(profile, _AIC)]
            steps += [Step(intra_arrive, (Pipe.S, _AIC_TO_AIV)), Step(intra_arrive, (Pipe.S, of_second[1]))]
    elif is_vector:
        steps += [Step(block_arrive, (Pipe.MTE3, _AIV)), _awaited(profile, _AIC_TO_AIV)]
    else:
        steps += [_awaited(profile, _AIV), Step(inter_arrive, (Pipe.FIX, _AIC)), _awaited(profile, _AIC)]
        steps += [Step(block_arrive, (Pipe.MTE3, _AIC_TO_AIV))]
    yield Group(steps)


def _awaited(profile: Profile, flag: int) -> Step:
    return Step(wait_flag_dev_on, (Pipe.S, flag)) if profile.waits_on_pipes else Step(wait_flag_dev, (flag,))


@plain_instruction(
    "syncall", cpp="SYNCALL", aliases=("ascsim_syncall",), asm=(), profiles=CHIPS, core="any", expand=_meet,
    operands=(Choice("cores", SyncCoreType, optional=True, default=0, doc="which cores meet"),),
    notes=("C++ has a form with a counter in global memory too (SyncAllMode::Soft), which must be 0 at first.",),
    sources=("pto-isa docs/isa/SYNCALL", "pto-isa include/pto/npu/{a2a3,a5}/SyncAll.hpp"),
)  # fmt: skip
def syncall(core: Core, call: SimpleNamespace) -> None:
    """Wait until all cores of the launch (of the kind named) have come here; before that, a barrier on all pipes."""
