"""MGATHER and MSCATTER: rows or elements of a table in global memory, by index.

Sources: pto-isa docs/isa/MGATHER, MSCATTER; include/pto/npu/{a2a3,a5} MGather.hpp, MScatter.hpp; include/pto/cpu
MGather.hpp, MScatter.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.isa.definition import A2A3, A5, CHIPS, Asm, Choice, Definition, In, Out, Sort, tile_instruction
from ascsim.isa.indexed import NOTHING, IndexedMove, Places, bytes_at, put_bytes, rows_of, space_of, touches_of
from ascsim.isa.rules import Rule, changed, dtype, finding, refuse
from ascsim.isa.steps import flag_pair, group
from ascsim.isa.tile.transfer import ND, NZ, is_boxed
from ascsim.isa.transfer import BLOCK
from ascsim.machine.core import Core, Finding, Group, Touch
from ascsim.machine.dtypes import DType, bf16, f8e4m3, f8e5m2, f16, f32, hif8, i8, i16, i32, i64, u8, u16, u32, u64
from ascsim.machine.operands import GlobalTensor, Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, SLayout, Space
from ascsim.profiles import Profile

_A2A3_TYPES = (i8, u8, i16, u16, i32, u32, f16, bf16, f32)
_A5_TYPES = (*_A2A3_TYPES, hif8, f8e4m3, f8e5m2)
_CPU_TYPES = (*_A5_TYPES, i64, u64)
_ROWS_OF_A_BOX = 16


class Coalesce(IntEnum):
    """What an index names; the numbers of PTO's Coalesce."""

    Row = 0
    Elem = 1


class GatherOOB(IntEnum):
    """What an index beyond the table does; the numbers of PTO's GatherOOB."""

    Undefined = 0
    Clamp = 1
    Wrap = 2
    Zero = 3


class ScatterOOB(IntEnum):
    """What an index beyond the table does; the numbers of PTO's ScatterOOB."""

    Undefined = 0
    Skip = 1
    Clamp = 2
    Wrap = 3


class ScatterAtomicOp(IntEnum):
    """What becomes of what is in the table; the numbers of PTO's ScatterAtomicOp."""

    none = 0
    Add = 1
    Max = 2
    Min = 3


class ScatterConflict(IntEnum):
    """Which of several elements for one place stays; the numbers of PTO's ScatterConflict."""

    Last = 0
    Default = 1


CATALOGUE.add(
    "TABLE-1", Severity.ERROR, "MGATHER or MSCATTER beyond the table",
    "An index is not below the number of rows (Coalesce::Row) or of elements (Coalesce::Elem) of the view, and the call "
    "leaves it undefined what happens: on a chip other bytes of global memory are read or written.\n\n"
    "Correct the indices, or choose Clamp, Wrap, Zero or Skip.",
)  # fmt: skip


class _Call(NamedTuple):
    """The operands by what they are."""

    tile: Tile
    table: GlobalTensor
    idx: Tile
    mode: int
    oob: str
    rows: int
    cols: int


def _read(call: SimpleNamespace, profile: Profile) -> _Call:
    gathers = isinstance(call.dst, Tile)
    tile, table = (call.dst, call.src) if gathers else (call.src, call.dst)
    mode = call.mode if call.mode is not None else Coalesce.Row if profile.is_chip else Coalesce.Elem
    oob = (GatherOOB if gathers else ScatterOOB)(int(call.oob or 0)).name
    return _Call(tile, table, call.idx, int(mode), oob, tile.valid_rows, tile.valid_cols)


def _table_rows(table: GlobalTensor, profile: Profile) -> int:
    if table.layout == NZ:
        return table.shape[2] * _ROWS_OF_A_BOX
    return prod(table.shape[:4]) if profile.name == "a2a3" else table.shape[3]


def _tile_places(tile: Tile, rows: int, cols: int) -> np.ndarray:
    if not is_boxed(tile):
        return rows_of(tile, rows, cols)
    width = BLOCK // tile.dtype.size
    row, col = np.arange(rows)[:, None], np.arange(cols)
    return tile.address + col // width * tile.rows * BLOCK + row * BLOCK + col % width * tile.dtype.size


def _boxed_offset(table: GlobalTensor, row: np.ndarray, col: np.ndarray) -> np.ndarray:
    """The elements from the start of a table in layout NZ to rows and columns."""
    _, columns, _, height, width = table.shape
    a, b, c, d, e = table.strides
    across = col // width
    return across // columns * a + across % columns * b + row // height * c + row % height * d + col % width * e


def _index_region(one: _Call) -> Region:
    """The indices that are read: one a row, side by side, or one an element."""
    if one.mode == Coalesce.Row:
        kind, size = one.idx.dtype.numpy, one.idx.dtype.size
        return Region(one.idx.space, one.idx.address, one.rows * size, ((1, 0),), kind)
    return one.idx.region(one.rows, one.cols)


def _indices(core: Core, one: _Call) -> np.ndarray:
    view = core.view(_index_region(one))
    count = (one.rows,) if one.mode == Coalesce.Row else (one.rows, one.cols)
    return view.astype(np.int64).reshape(count)


def _capacity(one: _Call, profile: Profile) -> int:
    if one.mode == Coalesce.Row:
        return _table_rows(one.table, profile)
    return prod(one.table.shape)


def _placed(core: Core, one: _Call) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(addresses in the tile, addresses in the table, which are left out), element by element."""
    table, profile, size = one.table, core.profile, one.tile.dtype.size
    numbers, capacity = _indices(core, one), _capacity(one, profile)
    if profile.is_chip:
        numbers &= 0xFFFFFFFF
    outside = (numbers < 0) | (numbers >= capacity)
    if one.oob == "Clamp":  # a negative number is a large one
        numbers = np.where(outside, capacity - 1, numbers)
    elif one.oob == "Wrap":
        numbers = numbers % max(capacity, 1)
    left_out = outside if one.oob in ("Zero", "Skip") else np.zeros_like(outside)
    cols = one.cols
    if table.layout == NZ and one.mode == Coalesce.Row:
        cols = table.shape[0] * table.shape[1] * table.shape[4]
    mine = _tile_places(one.tile, one.rows, cols)
    if one.mode == Coalesce.Row:
        col = np.arange(cols)
        row = numbers[:, None]
        if table.layout == NZ:
            there = _boxed_offset(table, row, col)
        elif profile.name == "a5":
            there = row * cols + col
        else:
            across = 1 if profile.is_chip else table.strides[4]
            there = row * table.strides[3] + col * across
        left_out = np.broadcast_to(left_out[:, None], there.shape)
    elif table.layout == NZ:
        width = table.shape[0] * table.shape[1] * table.shape[4]
        there = _boxed_offset(table, numbers // width, numbers % width)
    else:
        there = numbers
    return mine.ravel(), (table.address + there * size).ravel(), left_out.ravel()


# Rules


def _layouts(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    one = _read(call, profile)
    for name, tile in (("the tile", one.tile), ("idx", one.idx)):
        if tile.space != Space.UB:
            return f"{name} lies in {Space(tile.space).name}; only vector tiles, in UB, are implemented"
    boxed = is_boxed(one.tile) and one.table.layout == NZ and profile.name != "a5"
    plain = one.tile.slayout == SLayout.NONE_BOX and one.table.layout == ND
    if not (boxed or plain) or one.idx.slayout != SLayout.NONE_BOX:
        return "the tile and the table are not both ND, nor both NZ, or idx has boxes"
    return None


def _wrong_layouts(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "idx", space=Space.L1)
    yield changed(call, "idx", slayout=SLayout.ROW_MAJOR, cols=64)


def _other_type(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    tile, table = call.dst.dtype, call.src.dtype
    if tile is table or (not profile.is_chip and tile.size == table.size):
        return None
    return f"dst holds {tile.name} and src {table.name}"


def _with_other_type(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "src", dtype=i16 if call.dst.dtype.size != 2 else i32)


def _turned(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    one = _read(call, profile)
    names = [
        n for n, t in (("the tile", one.tile), ("idx", one.idx)) if t.blayout != BLayout.ROW_MAJOR and not is_boxed(t)
    ]
    return f"{' and '.join(names)} is column-major" if names else None


def _made_turned(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "idx", blayout=BLayout.COL_MAJOR)


def _shape_of_idx(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    one = _read(call, profile)
    has = one.idx.valid_rows, one.idx.valid_cols
    if one.mode == Coalesce.Row:
        wanted = [(1, one.rows)] if profile.name == "a2a3" else [(1, one.rows), (one.rows, 1)]
    else:
        wanted = [(one.rows, one.cols)]
    if has in wanted:
        return None
    return f"idx has {has[0]}x{has[1]} valid; it needs " + " or ".join(f"{r}x{c}" for r, c in wanted)


def _with_other_idx(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "idx", valid_rows=3)


def _other_pitch(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    one = _read(call, profile)
    if one.mode != Coalesce.Row or (one.table.shape[4] == one.cols == one.table.strides[3]):
        return None
    return (
        f"rows of the table have {one.table.shape[4]} elements and stand {one.table.strides[3]} apart; the library takes "
        f"{one.cols}, the valid columns of the tile"
    )


def _with_other_pitch(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    name = "src" if isinstance(call.dst, Tile) else "dst"
    table = getattr(call, name)
    rows = _read(call, profile).rows
    by_rows = SimpleNamespace(**{**vars(call), "mode": Coalesce.Row})
    call = changed(by_rows, "idx", blayout=BLayout.ROW_MAJOR, cols=64, valid_rows=1, valid_cols=rows)
    yield changed(call, name, strides=(*table.strides[:3], table.strides[3] + 8, 1))


def _strided(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    one = _read(call, profile)
    if one.table.layout == NZ:
        return None
    dense = 1
    axes = (4,) if one.mode == Coalesce.Row else (4, 3, 2, 1, 0)
    for axis in axes:
        if one.table.shape[axis] != 1 and one.table.strides[axis] != dense:
            return f"the table has stride {one.table.strides[axis]} in dimension {axis}; it is taken as {dense}"
        dense *= one.table.shape[axis]
    return None


def _with_strides(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    name = "src" if isinstance(call.dst, Tile) else "dst"
    one = _read(call, profile)
    by_elements = SimpleNamespace(**{**vars(call), "mode": Coalesce.Elem})
    call = changed(by_elements, "idx", blayout=BLayout.ROW_MAJOR, cols=64, valid_rows=one.rows, valid_cols=one.cols)
    yield changed(call, name, strides=(0, 0, 0, 3, 2))


def _rules(title: str) -> tuple[Rule, ...]:
    return (
        dtype("dst", a2a3=_A2A3_TYPES, a5=_A5_TYPES, cpu=_CPU_TYPES),
        dtype("idx", a2a3=(i32, u32), a5=(i32, u32), cpu=(i32, u32, i16, u16, i8, u8, i64, u64)),
        refuse("L003", "the tile and the table hold one element type", _other_type, breaks=_with_other_type,
               mend="Declare both with one element type."),
        refuse("L012", "vector tiles, ND with a table in ND or (not on the A5) NZ with one in NZ", _layouts,
               breaks=_wrong_layouts, mend="ascsim check FILE lists all such calls of a file."),
        refuse("L004", "the tile and idx are not column-major", _turned, breaks=_made_turned, profiles=A2A3,
               mend="Declare them row-major."),
        refuse("L007", "idx has an index for each row (Coalesce::Row), or for each element", _shape_of_idx,
               breaks=_with_other_idx, mend="Give idx the valid shape 1 x rows, or that of the tile (Coalesce::Elem)."),
        finding(f"E-{title}-PITCH", "rows of the table are as long as those of the tile", _other_pitch,
                breaks=_with_other_pitch, profiles=A5, severity=Severity.WARNING,
                why="The A5's library computes a row's place from the valid columns of the tile; the table's stride is "
                "never looked at.",
                mend="Work on whole, contiguous rows of the table."),
        finding(f"{title}-1", "the table is contiguous where it is taken to be", _strided, breaks=_with_strides,
                why="Elements are counted from the start of the table (Coalesce::Elem), or along a row.",
                mend="Work on a contiguous table."),
    )  # fmt: skip


_MODE = Choice("mode", Coalesce, optional=True, asm_name="coalesce",
               doc="an index for each row, or for each element; by default Row on chips, Elem on cpu")  # fmt: skip
_NOTES = (
    "Coalesce::Elem counts elements from the start of the table, whatever its strides (NZ: row by row of the matrix).",
    "Negative indices are large numbers: beyond the table.",
    "A2/A3: indices are read by the scalar pipe; rows go by DMA, elements by the scalar pipe. The library brings its "
    "flags, all with event 0, but waits for MTE2 only where it goes element by element: indices that were loaded need a "
    "flag MTE2 to S before it. A5: one vector function of many threads, and the scalar pipe for a single element.",
    "The forms that gather into L1 are not implemented.",
)
_ELEMENTS = IndexedMove("scalar_loop", Pipe.S, "a loop of scalar reads and writes")


class _ReadIndices(IndexedMove):
    """The scalar pipe reads the indices, and does no more."""

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The indices."""
        return [Touch(2, Mode.READ, args[3])]

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Nothing."""


class _RowsByDma(IndexedMove):
    """Rows that a DMA moves: the indices are read elsewhere."""

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """As :class:`IndexedMove`, without the indices."""
        return super().touches(core, args)[1:]


_INDICES = _ReadIndices("scalar_loop", Pipe.S, "a loop of scalar reads")
_ROWS_IN = _RowsByDma("copy_gm_to_ubuf_align", Pipe.MTE2)


def _beyond(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
    """Report indices beyond the table that the call leaves undefined."""
    one = _read(self.call(args), core.profile)
    if one.oob != "Undefined":
        return []
    numbers, capacity = _indices(core, one), _capacity(one, core.profile)
    if core.profile.is_chip:
        numbers &= 0xFFFFFFFF
    wrong = np.argwhere((numbers < 0) | (numbers >= capacity))
    if not len(wrong):
        return []
    where = tuple(int(n) for n in wrong[0])
    what = "rows" if one.mode == Coalesce.Row else "elements"
    headline = f"{self.title}: index {int(numbers[where])} at {where} is beyond the table, which has {capacity} {what}"
    return [
        Finding("TABLE-1", Severity.ERROR, headline, (), "Correct the index, or choose what happens beyond the table.")
    ]


def _combining(call: SimpleNamespace, touches: list[Touch]) -> list[Touch]:
    """Accesses, and before them reads of what an atomic operation adds to or compares with: what is written."""
    if not int(getattr(call, "atomic", 0)):
        return touches
    return [*(touch._replace(mode=Mode.READ) for touch in touches if touch.mode == Mode.WRITE), *touches]


class _Table:
    """What both share."""

    is_static = False
    warns = ("TABLE-1",)
    notes = _NOTES
    observe = _beyond

    def places(self: Any, call: SimpleNamespace, core: Core) -> Places:
        """Where each element goes, and where it comes from."""
        raise NotImplementedError

    def touches(self: Any, core: Core, args: Sequence[Any]) -> list[Touch]:
        """The indices, the elements read and written."""
        call = self.call(args)
        indices = Touch(2, Mode.READ, _index_region(_read(call, core.profile)))
        try:
            places = self.places(call, core)
        except ValueError:
            return [indices]
        size = places.size
        return [
            indices,
            *touches_of(1, Mode.READ, space_of(call.src), places.source, size),
            *_combining(call, touches_of(0, Mode.WRITE, space_of(call.dst), places.to, size)),
        ]

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Move the elements one after the other."""
        call = self.call(args)
        places = self.places(call, core)
        put_bytes(core, space_of(call.dst), places.to, bytes_at(core, space_of(call.src), places.source, places.size))

    def expand(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group] | None:
        """The steps of A2/A3, and those for a single element."""
        one = _read(call, profile)
        if profile.name == "a2a3":
            return self.steps(call, profile)
        single = one.mode == Coalesce.Elem and one.rows == one.cols == 1
        return self.alone(call, profile) if single else None

    def alone(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """One element on the A5."""
        yield group(*flag_pair(Pipe.V, Pipe.S))
        yield group(self.moved(_ELEMENTS, call, profile))
        yield group(*flag_pair(Pipe.S, Pipe.V))

    def moved(self: Any, step: IndexedMove, call: SimpleNamespace, profile: Profile) -> Any:
        """The step that moves the elements."""
        region = _index_region(_read(call, profile))
        return step.by(call.dst, call.src, call.idx, region, lambda core: self.places(call, core))

    def steps(self: Any, call: SimpleNamespace, profile: Profile) -> Iterator[Group]:
        """The steps of A2/A3: the pipes that are waited for, the work, the pipes that wait."""
        by_rows = _read(call, profile).mode == Coalesce.Row
        before, after = self.flags(by_rows)
        yield group(*(step for pair in before for step in flag_pair(*pair)))
        if by_rows:
            yield group(self.moved(_INDICES, call, profile), *self.between())
            yield group(self.moved(self.dma, call, profile))
        else:
            yield group(self.moved(_ELEMENTS, call, profile))
        yield group(*(step for pair in after for step in flag_pair(*pair)))


@tile_instruction("mgather", pipe=Pipe.V, cpp_templates=("mode", "mode oob"),
                  asm=(Asm("mgather", order=("src", "idx")),))  # fmt: skip
class MGather(_Table):
    """Gather rows, or single elements, of a table in global memory into a tile.

    With Coalesce::Row, row ``i`` of dst is row ``idx[i]`` of the table; with Coalesce::Elem, element (i, j) is element
    ``idx[i, j]`` of it.
    """

    operands = (
        Out("dst"), In("src", Sort.GLOBAL, doc="the table"), In("idx", doc="1 x rows, or as many as dst has elements"),
        _MODE, Choice("oob", GatherOOB, optional=True, default=GatherOOB.Undefined, asm_name="gatherOob",
                      doc="what an index beyond the table does: Clamp, Wrap, or Zero"),
    )  # fmt: skip
    rules = _rules("MGATHER")
    dma = _ROWS_IN
    sources = (
        "pto-isa docs/isa/MGATHER",
        "pto-isa include/pto/npu/a2a3/MGather.hpp, include/pto/npu/a5/MGather.hpp, include/pto/cpu/MGather.hpp",
    )
    assumed = (
        "A2/A3: of the last 32-byte block of a row, what lies beyond the valid columns of dst is left as it was.",
        "A2/A3: rows of zeros (GatherOOB::Zero) are written with the others; the library lets the scalar pipe do it.",
    )

    def places(self: Any, call: SimpleNamespace, core: Core) -> Places:
        """From the table to the tile; zeros for what is left out."""
        mine, there, left_out = _placed(core, _read(call, core.profile))
        return Places(call.dst.dtype.size, mine, np.where(left_out, NOTHING, there))

    @staticmethod
    def between() -> tuple[Any, ...]:
        """What stands between the indices and the DMA."""
        return flag_pair(Pipe.S, Pipe.MTE2)

    @staticmethod
    def flags(by_rows: bool) -> tuple[tuple[tuple[Pipe, Pipe], ...], tuple[tuple[Pipe, Pipe], ...]]:
        """(before, after)."""
        if by_rows:
            return (
                ((Pipe.V, Pipe.S), (Pipe.MTE3, Pipe.S)),
                ((Pipe.MTE2, Pipe.V), (Pipe.MTE2, Pipe.MTE3), (Pipe.S, Pipe.V), (Pipe.S, Pipe.MTE3)),
            )
        return (
            ((Pipe.V, Pipe.S), (Pipe.MTE3, Pipe.S), (Pipe.MTE2, Pipe.S)),
            ((Pipe.S, Pipe.V), (Pipe.S, Pipe.MTE2), (Pipe.S, Pipe.MTE3)),
        )


_ADDED: dict[str, tuple[DType, ...]] = {
    "a2a3": (f32, i32, f16, bf16, i16, i8), "a5": (i32, u32, f32, f16, bf16), "cpu": _CPU_TYPES
}  # fmt: skip
_COMPARED: dict[str, tuple[DType, ...]] = {"a2a3": (), "a5": (i32, u32, f32), "cpu": _CPU_TYPES}


def _not_atomic(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    atomic = ScatterAtomicOp(int(call.atomic))
    if atomic is ScatterAtomicOp.none:
        return None
    allowed = (_ADDED if atomic is ScatterAtomicOp.Add else _COMPARED)[profile.name]
    if call.dst.dtype in allowed:
        return None
    return f"{atomic.name} does not take {call.dst.dtype.name} on {profile.name}"


def _made_atomic(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    if profile.is_chip:
        wrong = changed(changed(call, "dst", dtype=u16), "src", dtype=u16)
        yield SimpleNamespace(**{**vars(wrong), "atomic": ScatterAtomicOp.Max})


def _last_and_atomic(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if int(call.atomic) and call.conflict is not None and int(call.conflict) == ScatterConflict.Last:
        return "ScatterConflict::Last does not go with an atomic operation"
    return None


def _made_last(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "atomic": ScatterAtomicOp.Add, "conflict": ScatterConflict.Last})


def _conflict_on_a2a3(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "there is no form with ScatterConflict on A2/A3" if call.conflict is not None else None


def _with_conflict(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(**{**vars(call), "conflict": ScatterConflict.Default})


_COMBINE = {ScatterAtomicOp.Add: np.add, ScatterAtomicOp.Max: np.maximum, ScatterAtomicOp.Min: np.minimum}


class _Combined:
    """Writes that look at what is in the table."""

    @staticmethod
    def write(core: Core, call: SimpleNamespace, places: Places) -> None:
        """Add, or compare, element after element."""
        elements = bytes_at(core, space_of(call.src), places.source, places.size)
        atomic = ScatterAtomicOp(int(call.atomic))
        if atomic is ScatterAtomicOp.none:
            put_bytes(core, Space.GM, places.to, elements)
            return
        kind, combine = call.dst.dtype.numpy, _COMBINE[atomic]
        once = np.unique(places.to[places.to != NOTHING]).size == np.count_nonzero(places.to != NOTHING)
        parts = [slice(None)] if once else [slice(n, n + 1) for n in range(places.to.size)]
        with np.errstate(over="ignore", invalid="ignore"):
            for part in parts:
                held = bytes_at(core, Space.GM, places.to[part], places.size)
                both = combine(held.view(kind), elements[part].view(kind)).astype(kind)
                put_bytes(core, Space.GM, places.to[part], both.view(np.uint8))


class _Stored(IndexedMove):
    """A step of MSCATTER: as :class:`IndexedMove`, but it may add. ``reads_indices``: the pipe that moves reads them too."""

    def __init__(self, name: str, pipe: Pipe, title: str = "", reads_indices: bool = True) -> None:
        super().__init__(name, pipe, title)
        self.reads_indices = reads_indices

    def touches(self, core: Core, args: Sequence[Any]) -> list[Touch]:
        """See :class:`IndexedMove`."""
        return _combining(args[4].call, super().touches(core, args)[0 if self.reads_indices else 1 :])

    def perform(self, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Write, or add."""
        find = args[4]
        _Combined.write(core, find.call, find(core))


class _Finder:
    """The places of a call, with the call."""

    def __init__(self, definition: Any, call: SimpleNamespace) -> None:
        self.definition, self.call = definition, call

    def __call__(self, core: Core) -> Places:
        found: Places = self.definition.places(self.call, core)
        return found


_STORED_ROWS = _Stored("copy_ubuf_to_gm_align", Pipe.MTE3, reads_indices=False)
_STORED_ELEMENTS = _Stored("scalar_loop", Pipe.S, "a loop of scalar reads and writes")


@tile_instruction("mscatter", pipe=Pipe.V,
                  cpp_templates=("mode", "mode atomic", "mode atomic oob", "mode atomic oob conflict"),
                  asm=(Asm("mscatter", order=("src", "idx")),))  # fmt: skip
class MScatter(_Table):
    """Scatter rows, or single elements, of a tile to a table in global memory.

    With Coalesce::Row, row ``i`` of src becomes row ``idx[i]`` of the table; with Coalesce::Elem, element (i, j) becomes
    element ``idx[i, j]`` of it. Of several for one place the last one stays.
    """

    operands = (
        Out("dst", Sort.GLOBAL, doc="the table"), In("src"), In("idx", doc="1 x rows, or as many as src has elements"),
        _MODE,
        Choice("atomic", ScatterAtomicOp, optional=True, default=ScatterAtomicOp.none, asm_name="scatterAtomicOp",
               doc="Add, Max or Min with what is in the table"),
        Choice("oob", ScatterOOB, optional=True, default=ScatterOOB.Undefined, asm_name="scatterOob",
               doc="what an index beyond the table does: Skip, Clamp or Wrap"),
        Choice("conflict", ScatterConflict, optional=True, doc="which of several for one place stays; not on A2/A3"),
    )  # fmt: skip
    rules = (
        *_rules("MSCATTER"),
        refuse("L002", "an atomic operation takes the element type", _not_atomic, breaks=_made_atomic, profiles=CHIPS,
               mend="A2/A3 add f32, i32, f16, bf16, i16, i8; "
               "the A5 adds i32, u32, f32, f16, bf16, and compares the first three."),
        refuse("L006", "ScatterConflict::Last goes without an atomic operation", _last_and_atomic, breaks=_made_last,
               profiles=("cpu",), mend="Use ScatterConflict::Default."),
        refuse("L009", "there is no ScatterConflict on A2/A3", _conflict_on_a2a3, breaks=_with_conflict, profiles=A2A3,
               mend="Leave it out: the last one stays."),
    )  # fmt: skip
    assumed = ("A5: of several elements for one place the last one stays, with ScatterConflict::Default too.",)
    sources = (
        "pto-isa docs/isa/MSCATTER",
        "pto-isa include/pto/npu/a2a3/MScatter.hpp, include/pto/npu/a5/MScatter.hpp, include/pto/cpu/MScatter.hpp",
    )
    dma = _STORED_ROWS

    def places(self: Any, call: SimpleNamespace, core: Core) -> Places:
        """From the tile to the table; what is left out goes nowhere."""
        mine, there, left_out = _placed(core, _read(call, core.profile))
        return Places(call.src.dtype.size, np.where(left_out, NOTHING, there), np.where(left_out, NOTHING, mine))

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Write, or add, element after element."""
        call = self.call(args)
        _Combined.write(core, call, self.places(call, core))

    def moved(self: Any, step: IndexedMove, call: SimpleNamespace, profile: Profile) -> Any:
        """The step that moves the elements."""
        region = _index_region(_read(call, profile))
        step = _STORED_ELEMENTS if step is _ELEMENTS else step
        return step.by(call.dst, call.src, call.idx, region, _Finder(self, call))

    @staticmethod
    def between() -> tuple[Any, ...]:
        """What stands between the indices and the DMA."""
        return flag_pair(Pipe.S, Pipe.MTE3)

    @staticmethod
    def flags(by_rows: bool) -> tuple[tuple[tuple[Pipe, Pipe], ...], tuple[tuple[Pipe, Pipe], ...]]:
        """(before, after)."""
        if by_rows:
            return (
                ((Pipe.V, Pipe.S), (Pipe.MTE2, Pipe.S)),
                ((Pipe.MTE3, Pipe.S), (Pipe.MTE3, Pipe.V), (Pipe.MTE3, Pipe.MTE2)),
            )
        return (
            ((Pipe.V, Pipe.S), (Pipe.MTE2, Pipe.S), (Pipe.MTE3, Pipe.S)),
            ((Pipe.S, Pipe.V), (Pipe.S, Pipe.MTE2), (Pipe.S, Pipe.MTE3)),
        )
