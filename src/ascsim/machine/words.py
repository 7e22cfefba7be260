"""The machine's own words: spaces, pipes, event ids, tile layouts. Numbers are those of the public headers."""

from __future__ import annotations

from enum import IntEnum


class Space(IntEnum):
    """A memory: one byte array each. GM is shared by all cores, the others belong to one."""

    GM = 0
    UB = 1
    L1 = 2
    L0A = 3
    L0B = 4
    L0C = 5
    BT = 6
    FB = 7
    STATE = 8
    """Core state that instructions share: vector mask, mask mode. Never part of a memory check."""


class Pipe(IntEnum):
    """An in-order queue of a core."""

    S = 0
    V = 1
    M = 2
    MTE1 = 3
    MTE2 = 4
    MTE3 = 5
    ALL = 6
    MTE4 = 7
    MTE5 = 8
    V2 = 9
    FIX = 10


class Kept(IntEnum):
    """The 64-bit words that a core keeps for its instructions, by their place; C++ kernels share them (abi.h)."""

    SQUEEZED = 0
    """The AR register: how many bytes squeezes have kept since it was cleared."""
    MASK_LOW = 1
    """The vector mask of lanes 0 to 63."""
    MASK_HIGH = 2
    STORED = 3
    """How many bytes of AR unaligned stores have taken."""


WORK_PIPES = {
    "TLOAD": Pipe.MTE2, "TSTORE_ACC": Pipe.FIX, "TSTORE_VEC": Pipe.MTE3, "TMOV_M2L": Pipe.MTE1, "TMOV_M2S": Pipe.FIX,
    "TMOV_M2B": Pipe.MTE1, "TMOV_M2V": Pipe.V, "TMOV_V2M": Pipe.FIX, "TMATMUL": Pipe.M, "TVEC": Pipe.V,
    "TVECWAIT_EVENT": Pipe.V, "EVENT_LOAD_FROM_GM": Pipe.MTE2, "EVENT_STORE_FROM_ACC": Pipe.FIX,
    "EVENT_STORE_FROM_VEC": Pipe.MTE3, "EVENT_MOVE_MAT_TO_LEFT": Pipe.MTE1, "EVENT_MOVE_MAT_TO_SCALAR": Pipe.FIX,
    "EVENT_MOVE_MAT_TO_BIAS": Pipe.MTE1, "EVENT_MOVE_MAT_TO_VEC": Pipe.V, "EVENT_MOVE_VEC_TO_MAT": Pipe.FIX,
    "EVENT_COMPUTE_MATMUL": Pipe.M, "EVENT_COMPUTE_VEC": Pipe.V, "EVENT_VEC_WAITPOINT": Pipe.V,
}  # fmt: skip
"""Kinds of work by which ``.pto`` text names pipes, in both public spellings (PTOAS, ``sync_op_type`` and
``pipe_event_type``)."""


class BLayout(IntEnum):
    """Order of the boxes (or, without boxes, of the elements) of a tile."""

    ROW_MAJOR = 0
    COL_MAJOR = 1


class SLayout(IntEnum):
    """Order inside a box."""

    NONE_BOX = 0
    ROW_MAJOR = 1
    COL_MAJOR = 2


class CompactMode(IntEnum):
    """How a tile with boxes lies in memory; the numbers of PTO's CompactMode."""

    NULL = 0
    """As if all rows and columns were valid."""
    NORMAL = 1
    """The boxes of the valid region alone, one behind the other."""
    ROW_PLUS_ONE = 2
    ROW_ALIGNED_PADDING = 3


class PadValue(IntEnum):
    """What a load puts into the columns beyond the valid ones."""

    NULL = 0
    ZERO = 1
    MAX = 2
    MIN = 3


class RoundMode(IntEnum):
    """Rounding of a conversion; the numbers of PTO's RoundMode."""

    NONE = 0
    RINT = 1
    ROUND = 2
    FLOOR = 3
    CEIL = 4
    TRUNC = 5
    ODD = 6


class VectorAddress(IntEnum):
    """An address register of the vector unit: eight blocks of UB."""

    VA0 = 0
    VA1 = 1
    VA2 = 2
    VA3 = 3
    VA4 = 4
    VA5 = 5
    VA6 = 6
    VA7 = 7


class MaskPattern(IntEnum):
    """Which of each two or four elements count, the first one rightmost; the numbers of PTO's MaskPattern."""

    P0101 = 1
    P1010 = 2
    P0001 = 3
    P0010 = 4
    P0100 = 5
    P1000 = 6
    P1111 = 7


class MemoryBarrier(IntEnum):
    """Which accesses to UB wait for which: the source's kind, then the target's; V is vector, LD load, ST store."""

    VV_ALL = 0
    VST_VLD = 1
    VLD_VST = 2
    VST_VST = 3
    VS_ALL = 4
    VST_LD = 5
    VLD_ST = 6
    VST_ST = 7
    SV_ALL = 8
    ST_VLD = 9
    LD_VST = 10
    ST_VST = 11
    SS_ALL = 12
    ST_LD = 13
    LD_ST = 14
    ST_ST = 15


N_PIPES = 11
