"""TGATHER by comparison: the places of the elements of each row that are equal to a number, or greater.

Sources: pto-isa docs/isa/TGATHER; include/pto/npu/a2a3/TGather.hpp, include/pto/npu/a5/TGather.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A2A3, CHIPS, Choice, Definition, In, Out, Scalar, Scratch, tile_instruction
from ascsim.isa.memory_form.masked import set_mask_norm, set_vector_mask
from ascsim.isa.rules import changed, dtype, finding, refuse
from ascsim.isa.steps import Move, flag_pair, group
from ascsim.isa.sync import pipe_barrier
from ascsim.isa.tile.compare import CmpMode
from ascsim.machine.core import Core, Group, Step, Touch
from ascsim.machine.dtypes import f16, f32, i8, i16, i32, u8, u16, u32
from ascsim.machine.operands import REGISTER_BYTES, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, SLayout
from ascsim.profiles import Profile

_WORD = np.dtype(np.uint32)
_BYTE = np.dtype(np.uint8)
_LANES = REGISTER_BYTES // 4
"""Elements that the A5's code compares at a time."""


def _looks_beyond(call: SimpleNamespace) -> bool:
    """Whether the A5 compares whole registers of a row, valid or not: for bytes and 2-byte elements."""
    return call.src.dtype.size < 4


def _unit(call: SimpleNamespace) -> int:
    """Columns that the A5 works on at a time."""
    return 2 * _LANES if call.src.dtype.size == 1 else _LANES


def compared_columns(call: SimpleNamespace, profile: Profile) -> int:
    """Columns of src whose places may be gathered."""
    columns = call.src.valid_cols
    return -(-columns // _unit(call)) * _unit(call) if profile.name == "a5" and _looks_beyond(call) else columns


def _rows(tile: Tile, rows: int, columns: int, kind: np.dtype | None = None) -> Region:
    size = tile.dtype.size
    return Region(tile.space, tile.address, columns * size, ((rows, tile.cols * size),), kind or tile.dtype.numpy)


def _numbers(call: SimpleNamespace, profile: Profile) -> Region:
    """The rows' numbers, as the library reads them: A2/A3 as int32 for floats, int16 for halves; else by their type."""
    k, src = call.k_value, call.src
    kind = k.dtype.numpy
    if profile.name == "a2a3" and src.dtype in (f32, f16):
        kind = np.dtype(f"i{src.dtype.size}")
    return Region(k.space, k.address, src.valid_rows * kind.itemsize, (), kind)


def matches(call: SimpleNamespace, core: Core) -> np.ndarray:
    """Which elements match, bool (rows, columns), by the chip's own way of comparing."""
    rows = call.src.valid_rows
    values = core.view(_rows(call.src, rows, compared_columns(call, core.profile)))
    numbers = core.view(_numbers(call, core.profile))[:, None]
    kind = call.src.dtype
    if kind is f16 or (core.profile.name == "a2a3" and kind is f32):
        whole = numbers.astype(np.int16 if kind is f16 else np.int32)
        left, right = values.astype(np.float32), whole.astype(np.float32)
    elif core.profile.name == "a2a3":
        left, right = values.astype(np.int32), numbers.astype(np.int32)
    else:
        if kind is f32:  # rounded to integers first
            with np.errstate(invalid="ignore"):
                values = np.rint(values).astype(np.int64).astype(np.int32)
        left, right = values.view(f"u{values.itemsize}").astype(np.uint32), numbers.astype(np.uint32)
    return left > right if int(call.cmp_mode) == CmpMode.GT else left == right


def places(call: SimpleNamespace, core: Core) -> list[np.ndarray]:
    """The places that each row gathers, and so how many: from ``offset`` on, by the row's length."""
    found = matches(call, core)
    columns = call.src.cols
    if core.profile.name == "a5":
        columns = -(-call.src.valid_cols // _unit(call)) * _unit(call)
    return [
        (int(call.offset) + row * columns + np.flatnonzero(line)).astype(np.int64).astype(np.uint32)
        for row, line in enumerate(found)
    ]


class _Gather(Move):
    """The step that gathers: its last argument is (call, whether the counts are written too)."""

    is_static = False

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """Values and numbers read; places, and maybe counts, written."""
        call, counts = args[-1]
        rows = call.src.valid_rows
        read = [
            Touch(1, Mode.READ, _rows(call.src, rows, compared_columns(call, core.profile))),
            Touch(2, Mode.READ, _numbers(call, core.profile)),
        ]
        written = [
            Touch(0, Mode.WRITE, self.row(call, row, found.size)) for row, found in enumerate(places(call, core))
        ]
        return [*read, *written, *([Touch(3, Mode.WRITE, _counts(call))] if counts else [])]

    @staticmethod
    def row(call: SimpleNamespace, row: int, count: int) -> Region:
        """Where a row's places go."""
        return Region(call.dst.space, call.dst.address + row * call.dst.row_bytes, 4 * count, (), _WORD)

    def row_fields(self, core: Core, args: Sequence[Any]) -> tuple[int, int, int, int, int]:
        """See :class:`Move`; the work is its rows."""
        pipe, kind, pipe2, arg, _ = super().row_fields(core, (None, None, _counts(args[-1][0])))
        return pipe, kind, pipe2, arg, args[-1][0].src.valid_rows

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Write the places row after row, and the counts."""
        call, counts = args[-1]
        found = places(call, core)
        for row, of_row in enumerate(found):
            core.view(self.row(call, row, of_row.size))[...] = of_row
        sizes = np.array([of_row.size for of_row in found])
        if counts:  # the register that the A5 stores counts bytes
            core.view(_counts(call))[...] = 4 * sizes
        call.taken[:] = [int(size) for size in sizes]


class _Count(Move):
    """The scalar unit's store of how many places each row has."""

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Write the counts that the gather left."""
        core.view(args[2])[...] = np.array(args[-1].taken)


def _counts(call: SimpleNamespace) -> Region:
    kind = call.cdst.dtype
    return Region(call.cdst.space, call.cdst.address, call.src.valid_rows * kind.size, (), kind.numpy)


_INDICES = Move("scalar_loop", Pipe.S, "a loop of scalar writes")
_CONVERT = Move("vconv", Pipe.V)
_COMPARE = Move("vcmpvs", Pipe.V)
_REDUCE = _Gather("vreducev2", Pipe.V)
_COUNT = _Count("scalar_loop", Pipe.S, "a loop of scalar writes")
_FUNCTION = _Gather("vector_function", Pipe.V, "a vector function")


def tmp_parts(call: SimpleNamespace) -> tuple[Region, Region, Region]:
    """The A2/A3's tmp: bits of the comparison, places, numbers converted."""
    tmp, src = call.tmp, call.src
    bits = Region(tmp.space, tmp.address, tmp.rows * tmp.cols, (), _BYTE)
    spots = Region(tmp.space, bits.start + bits.length, 4 * src.rows * src.cols, (), _BYTE)
    size = call.k_value.dtype.size if src.dtype is i32 else src.dtype.size
    numbers = Region(tmp.space, spots.start + spots.length, src.valid_rows * size, (), _BYTE)
    return bits, spots, numbers


# Rules


def _other_mode(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    mode = int(call.cmp_mode)
    return None if mode in (CmpMode.EQ, CmpMode.GT) else f"cmp_mode is {mode}; it is EQ or GT"


def _with_other_mode(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "cmp_mode": CmpMode.NE})


def _integers_greater(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "int32 is compared for equality only" if call.src.dtype is i32 and int(call.cmp_mode) == CmpMode.GT else None


def _with_integers(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(changed(call, "src", dtype=i32)), "cmp_mode": CmpMode.GT})


def _runs_beyond(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    beyond = compared_columns(call, profile) - call.src.valid_cols
    if profile.name != "a5" or not beyond:
        return None
    return f"{beyond} columns behind the {call.src.valid_cols} valid ones are compared too"


def _with_tail(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", dtype=f16, valid_cols=call.src.valid_cols - 1)


def _wide_numbers(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if call.src.dtype is not f16 or call.k_value.dtype.size == 2:
        return None
    return f"k_value is {call.k_value.dtype.name}, and its numbers are read as 16 bits each"


def _with_wide_numbers(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(changed(call, "src", dtype=f16), "k_value", dtype=u32)


def _not_row_major(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    for name in ("dst", "src"):
        tile = getattr(call, name)
        if not tile.is_row_major:
            return f"operand {name} is not row-major without boxes; only such tiles are implemented"
    return None


def _turned(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", slayout=SLayout.ROW_MAJOR)
    yield changed(call, "src", slayout=SLayout.ROW_MAJOR)


@tile_instruction(
    "tgather", pipe=Pipe.V, profiles=CHIPS, cpp_templates=("dst src k_value cdst tmp cmp_mode",),
)  # fmt: skip
class TGatherCompare:
    """Gather the places of the elements of each row that are equal to the row's number, or greater.

    ``dst`` gets the places of row r, one after the other, at the start of its row r: ``offset``, plus r times the
    length of a row of src, plus the column. ``cdst[r]`` says how many they are.
    """

    operands = (
        Out("dst", doc="places, u32 or i32; a row has room for all that may match"), In("src"),
        In("k_value", doc="a number for each row, one behind the other; unsigned integers"),
        Out("cdst", doc="how many places each row has, one behind the other"),
        Scratch("tmp", used_on=A2A3,
                doc="A2/A3: bits, places and numbers are worked out from here on, beyond the tile's own end"),
        Scalar("offset", i32, optional=True, default=0, doc="the first place"),
        Choice("cmp_mode", CmpMode, optional=True, default=CmpMode.EQ, explicit=True, asm_name="cmpMode",
               doc="EQ or GT"),
    )  # fmt: skip
    rules = (
        dtype("dst", a2a3=(u32, i32), a5=(u32, i32)),
        dtype("src", a2a3=(f32, f16, i32), a5=(f32, f16, i32, u32, i16, u16, i8, u8)),
        refuse("L006", "cmp_mode is EQ or GT", _other_mode, breaks=_with_other_mode, mend="Use TCMPS and TSEL."),
        refuse("L002", "int32 is compared with EQ", _integers_greater, breaks=_with_integers, profiles=A2A3,
               mend="Convert it to float."),
        refuse("L012", "dst and src are row-major without boxes", _not_row_major, breaks=_turned,
               mend="ascsim check FILE lists all such calls of a file."),
        finding("TGATHER-6", "the numbers for half elements have 16 bits", _wide_numbers, breaks=_with_wide_numbers,
                profiles=A2A3, why="The library reads them as int16, whatever the tile's type.",
                mend="Declare k_value as uint16."),
        finding("E-TGATHER-TAIL", "rows of 2-byte elements are multiples of 64, of bytes 128",
                _runs_beyond, breaks=_with_tail,
                profiles=("a5",), why="The library compares all lanes of the last register of a row.",
                mend="Make the valid columns a multiple of 64 (bytes: 128)."),
    )  # fmt: skip
    is_static = False
    notes = (
        "A2/A3: the scalar unit writes the places of all elements to tmp, a vconv the numbers; vcmpvs row by row, "
        "between flags; a vreducev2 a row; the scalar unit stores each row's count. The tile tmp is only the first part "
        "of what is used: bits (its own rows and columns), then 4 bytes for each element of src, then the numbers.",
        "A2/A3: rows count by the columns of src. A5: by its valid columns rounded up to 64 (bytes: 128), and cdst gets "
        "bytes, four for each place; floats are rounded to integers first; all but half are compared as unsigned numbers.",
        "In .pto the number is a tile too: the library has no form for a scalar.",
    )
    assumed = ("The A5 stores the AR register in cdst, which counts bytes.",)
    sources = (
        "pto-isa docs/isa/TGATHER",
        "pto-isa include/pto/npu/a2a3/TGather.hpp, include/pto/npu/a5/TGather.hpp",
    )

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """The steps of the chip's library."""
        call = SimpleNamespace(**vars(call), taken=[0] * call.src.valid_rows)
        if not call.src.valid_rows:
            return
        if profile.name == "a5":
            yield group(Step(_FUNCTION, (call.dst, call.src, call.k_value, call.cdst, (call, True))))
            return
        bits, spots, numbers = tmp_parts(call)
        src, tmp = call.src, call.tmp
        yield group(_INDICES.step(tmp, spots), *flag_pair(Pipe.S, Pipe.V))
        yield group(Step(_CONVERT, (tmp, call.k_value, numbers, _as_bytes(_numbers(call, profile)), 0)))
        yield group(*flag_pair(Pipe.V, Pipe.S), *flag_pair(Pipe.S, Pipe.V))
        yield group(Step(_COMPARE, (tmp, src, bits, None, 0)), Step(pipe_barrier, (Pipe.V,)))
        yield group(Step(_REDUCE, (call.dst, src, call.k_value, call.cdst, (call, False))))
        yield group(Step(_COUNT, (call.cdst, None, _counts(call), None, call)))
        yield group(Step(set_mask_norm, ()), Step(set_vector_mask, (-1, -1)))


def _as_bytes(region: Region) -> Region:
    return region._replace(dtype=_BYTE)
