"""Queries of the launch, and the core's initial state."""

from __future__ import annotations

from types import SimpleNamespace

from ascsim.isa.definition import CHIPS, Asm, Scalar, plain_instruction
from ascsim.machine.core import ALL_ONES, Core
from ascsim.machine.dtypes import u32, u64


@plain_instruction(
    "get_block_idx", cpp="get_block_idx", aliases=("asc_get_block_idx",), result="int64_t", level="system", core="any",
    sources=("asc-devkit C-API sys_var/asc_get_block_idx",),
)  # fmt: skip
def get_block_idx(core: Core, call: SimpleNamespace) -> int:
    """The number of this block within the launch, from 0."""
    return core.block


@plain_instruction(
    "get_block_num", cpp="get_block_num", aliases=("asc_get_block_num",), result="int64_t", level="system", core="any",
    sources=("asc-devkit C-API sys_var/asc_get_block_num",),
)  # fmt: skip
def get_block_num(core: Core, call: SimpleNamespace) -> int:
    """How many blocks the launch has."""
    return core.machine.blocks


@plain_instruction(
    "get_subblockid", cpp="get_subblockid", aliases=("asc_get_sub_block_id",), asm=(Asm("get_subblock_idx"),),
    result="int64_t", level="system", core="any", sources=("asc-devkit C-API sys_var/asc_get_sub_block_id",),
)  # fmt: skip
def get_subblockid(core: Core, call: SimpleNamespace) -> int:
    """The number of this vector core among those of its block, from 0; 0 on a cube core."""
    return core.subblock


@plain_instruction(
    "get_subblockdim", cpp="get_subblockdim", aliases=("asc_get_sub_block_num",), asm=(Asm("get_subblock_num"),),
    result="int64_t", level="system", core="any", sources=("asc-devkit C-API sys_var/asc_get_sub_block_num",),
)  # fmt: skip
def get_subblockdim(core: Core, call: SimpleNamespace) -> int:
    """How many cores of this kind a block has: 2 on the vector cores of a kernel with one cube core to two, else 1."""
    return core.machine.subblocks if core.side == "aiv" else 1


@plain_instruction(
    "get_coreid", cpp="get_coreid", aliases=("asc_get_core_id",), result="int64_t", level="system", core="any",
    assumed=("Cores are numbered as the launch fills them.",), sources=("asc-devkit C-API sys_var/asc_get_core_id",),
)  # fmt: skip
def get_coreid(core: Core, call: SimpleNamespace) -> int:
    """The number of the core that runs this."""
    return core.index


@plain_instruction(
    "get_imm", cpp="get_imm", aliases=("asc_get_phy_buf_addr",), asm=(), profiles=CHIPS, result="uint64_t",
    level="system", core="any", operands=(Scalar("offset", u64, doc="bytes from the start of the memory"),),
    notes=("Do not mix it with arrays (__ubuf__ T x[N]): they too begin at the start of the memory.",),
    sources=("asc-devkit C-API sys_var/asc_get_phy_buf_addr",),
)  # fmt: skip
def get_imm(core: Core, call: SimpleNamespace) -> int:
    """The address of a byte of on-chip memory, to be cast to a pointer into the memory that is meant."""
    return int(call.offset)


_ARCHITECTURES = {"a2a3": 0x220, "a5": 0x310}


@plain_instruction(
    "asc_get_arch_ver", cpp="asc_get_arch_ver", asm=(), profiles=CHIPS, level="system", core="any",
    references=(("core_version", u32),), assumed=("The hexadecimal digits of the core's name: 220 and 310.",),
    notes=("The page asks to read the number as hexadecimal digits.",),
    sources=("asc-devkit C-API sys_var/asc_get_arch_ver",),
)  # fmt: skip
def asc_get_arch_ver(core: Core, call: SimpleNamespace) -> int:
    """The version of the core's architecture; C++ passes the variable that receives it."""
    return _ARCHITECTURES[core.profile.name]


@plain_instruction(
    "asc_init", cpp="asc_init", asm=(), profiles=CHIPS, level="system",
    notes=("The pad value and the loop registers of copies keep what they held.",),
    sources=("asc-devkit C-API misc/asc_init and the code behind it",),
)  # fmt: skip
def asc_init(core: Core, call: SimpleNamespace) -> None:
    """Bring a vector core's state to its start: atomics off, mask mode normal, vector mask all ones."""
    core.state.counter_mode = False
    core.state.mask = (ALL_ONES, ALL_ONES)
