"""Bounds and alignment: which bytes were touched that are not there, to the byte.

Judged are the bytes an instruction touched, never the declaration of a tile: a tile that reaches beyond a memory harms
nobody while no instruction touches that part.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from ascsim.checks.context import Context, Found
from ascsim.checks.naming import Tiles, describe, space_name, tile_bytes
from ascsim.checks.spans import Intervals, calls, common, extent, touched, within
from ascsim.checks.sweep import FAR, farthest, rounded
from ascsim.diagnostics import CATALOGUE, Severity, plural
from ascsim.machine.trace import Mode

_AT_ONCE = 1 << 18
"""Accesses that are compared together: what is made of them is small beside a long trace."""
_ALSO = 4
"""So many other instructions at one place a finding names."""

CATALOGUE.add(
    "B001", Severity.ERROR, "Access outside a memory",
    "An instruction touched bytes beyond the end (or before the start) of a memory of the core. On a chip the core "
    "stops with an address error, or the access wraps around and destroys other data.\n\n"
    "The report names the first byte outside and the element of the tile it belongs to. Make the tile smaller, move it "
    "down (its TASSIGN or addr), or give it fewer valid rows; what counts is the bytes touched, and some instructions "
    "touch whole blocks of 32 elements.\n\n"
    "Example: 64 float at UB 0x2ff80 on a chip with 192 KiB of UB end 128 bytes beyond it.",
)  # fmt: skip
CATALOGUE.add(
    "B002", Severity.ERROR, "Misaligned access",
    "An instruction's operand begins at an address that is not a multiple of what the instruction needs (32 bytes in "
    "UB for most). On a chip this is an address error, or the low bits are dropped and other bytes are touched.\n\n"
    "Move the tile or buffer to a multiple of the alignment, or use an instruction for unaligned data.\n\n"
    "Example: a float tile at UB 0x1010; tiles of one row of 4 float each need 8 columns to keep the next row aligned.",
)  # fmt: skip
CATALOGUE.add(
    "B003", Severity.WARNING, "Access to reserved bytes",
    "The top of this memory belongs to the system by default (on the Ascend 950, the last 8 KiB of UB: stack of vector "
    "functions, and the runtime). The chip does not stop the access, but what it finds there may change under it.\n\n"
    "Keep tiles and buffers below the reserved bytes, unless the kernel is built without them.\n\n"
    "Example: a tile of 8 KiB at UB 0x3e000 on the 950 takes exactly the reserved bytes.",
)  # fmt: skip
CATALOGUE.add(
    "B004", Severity.ERROR, "Access to GM outside every allocation",
    "A transfer touched bytes of global memory that belong to no allocation, or went from one into the next. On a chip "
    "this is an address error, or it destroys another tensor in silence.\n\n"
    "Compare shape and strides of the global tensor with what was allocated, and the offset of the last block with the "
    "tensor's end. The report names the nearest allocation.\n\n"
    "Example: `and is 33 bytes after the allocation x of 4096 bytes` - the last row is one element too far.",
)  # fmt: skip
CATALOGUE.add(
    "B005", Severity.NOTE, "Bytes written beyond a tile, in another tile",
    "An instruction wrote bytes beyond the end of its operand's tile, and they belong to another tile of the kernel. "
    "It may be meant (one tile as a window on several); if not, the other tile's data is destroyed.\n\n"
    "Give the first tile the columns or rows that the instruction writes, or move the other.\n\n"
    "Example: TSORT32 with tmp writes 32 pairs for a tail of 5 columns, so that dst needs 64 columns.",
)  # fmt: skip

CATALOGUE.add(
    "B006", Severity.WARNING, "Bytes written beyond an on-chip array",
    "An instruction that writes into an array declared on chip (`__ubuf__ T x[N]`, or "
    "`ascsim.local` without an address) wrote bytes beyond its end. They may "
    "belong to another array, now or after the next change of the kernel. A vector register is 256 bytes, and a store "
    "writes all of it but for the lanes that its mask leaves out.\n\n"
    "Mask the last store (asc_update_mask), or declare the array as large as what is written: whole registers.\n\n"
    "Example:\n"
    "    __ubuf__ float x[100];                  // 400 bytes; two registers are 512\n"
    "    asc_storealign(x + 64, value, mask);    // mask must be that of 36 lanes",
)  # fmt: skip


def check(context: Context) -> Iterator[Found]:
    """Findings of bytes outside memories and allocations, and of misaligned operands."""
    tiles = Tiles(context.trace)
    suspects = context.suspects
    faults = {note.get("row") for note in context.trace.noted("fault")}  # told when the run stopped
    rows = context.trace.rows_of(suspects.outside)
    outside = [n for n, row in zip(suspects.outside.tolist(), rows.tolist(), strict=True) if row not in faults]
    outsiders = np.array(outside, np.int64)
    yield from _by_place(context, _each(context, outsiders, lambda n: _outside(context, tiles, n)))
    yield from _by_place(context, _each(context, suspects.misaligned, lambda n: _misaligned(context, tiles, n)))
    yield from _each(context, suspects.beyond_tile, lambda n: _beyond_tile(context, tiles, n))
    arrays = _Arrays(context)
    yield from _each(context, arrays.overrun, lambda n: arrays.tell(context, tiles, n))
    allocations = _Allocations(context)
    strangers = allocations.strangers()
    yield from _each(context, strangers, lambda n: _stranger(context, allocations, tiles, n))


def _each(context: Context, numbers: np.ndarray, tell: Callable[[int], Found | None]) -> Iterator[Found]:
    """One finding for each instruction (by site), operand and object among the accesses, counted."""
    if not len(numbers):
        return
    kind = _alike(context, numbers)
    count = np.bincount(kind)
    told: set[int] = set()
    for number, which in zip(numbers.tolist(), kind.tolist(), strict=True):
        if which in told:
            continue
        found = tell(number)  # None where a closer look clears it: the next of its kind is looked at
        if found is not None:
            told.add(which)
            yield replace(found, count=int(count[which]))


def _alike(context: Context, numbers: np.ndarray) -> np.ndarray:
    """A number for each of some accesses; the same for those of one instruction (by site), operand and object."""
    trace, kind = context.trace, np.empty(len(numbers), np.int32)
    known: dict[tuple[int, ...], int] = {}
    for low in range(0, len(numbers), _AT_ONCE):
        here = numbers[low : low + _AT_ONCE]
        records, roots = trace.accessed(here), context.roots(trace.rows_of(here))
        columns = [column.astype(np.int64) for column in trace.fields(roots, "site", "mnemonic")]
        columns += [records[name].astype(np.int64) for name in ("mode", "operand", "object", "space")]
        found, member = np.unique(np.stack(columns), axis=1, return_inverse=True)
        names = [known.setdefault(tuple(one), len(known)) for one in found.T.tolist()]
        kind[low : low + _AT_ONCE] = np.array(names)[member.ravel()]
    return kind


def _by_place(context: Context, founds: Iterator[Found]) -> Iterator[Found]:
    """One finding for each place: every instruction on a tile that lies wrong says the same."""
    places: dict[Hashable, list[Found]] = {}
    for found in founds:
        place, *_ = cast(tuple, found.key)
        places.setdefault((found.code, place), []).append(found)
    for first, *more in places.values():
        here = context.site(first.rows[0])
        twins = [f for f in more if here and context.site(f.rows[0]) == here and f.whats == first.whats]
        others = [f for f in more if f not in twins]
        lines = dict.fromkeys(f"{f.whats[0]} at {context.where(f.rows[0], first.rows[0])}" for f in others)
        notes = [f"the same for the {text}" for text in list(lines)[:_ALSO]]
        notes += [f"and for {len(lines) - _ALSO} more"] if len(lines) > _ALSO else []
        yield replace(first, notes=(*first.notes, *notes))
        yield from (twin for twin in twins if twin.key == first.key)  # they fold by themselves


def _place(context: Context, tiles: Tiles, number: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    row = int(context.trace.rows_of(number))
    name = tiles.name(number)
    return (row,), (f"{_verb(context, number)}{f' of {name}' if name else ''} by {context.name(context.root(row))}",)


def _verb(context: Context, number: int) -> str:
    return "write" if context.trace.accesses["mode"][number] == Mode.WRITE else "read"


def _key(context: Context, number: int) -> tuple[tuple[int, ...], int, int]:
    """What tells findings of one instruction apart: first the place, then how it was touched."""
    access = context.trace.accesses[number]
    space, object_ = int(access["space"]), int(access["object"])
    place = (space, object_, 0 if object_ else int(access["start"]))
    return place, int(access["mode"]), int(access["operand"])


def _notes(context: Context, tiles: Tiles, number: int, byte: int) -> tuple[str, ...]:
    row = int(context.trace.rows_of(number))
    position = tiles.position(number, byte)
    return tuple(text for text in (f"the byte is {position}" if position else "", context.step(row)) if text)


def _size(intervals: Intervals) -> int:
    return sum(high - low for low, high in intervals)


def _outside(context: Context, tiles: Tiles, number: int) -> Found | None:
    access = context.trace.accesses[number]
    name = space_name(int(access["space"]))
    limits = context.profile.spaces.get(name)
    if limits is None:
        return None
    bytes_touched = touched(context.trace, number)
    rows, whats = _place(context, tiles, number)
    verb = _verb(context, number)
    before = within(bytes_touched, -FAR, 0)
    beyond = within(bytes_touched, limits.capacity, FAR)
    if before or beyond:
        first = (before or beyond)[0][0]
        size = _size(before) + _size(beyond)
        reach = (
            f"{plural(beyond[-1][1] - limits.capacity, 'byte')} beyond the end" if not before
            else f"{plural(-first, 'byte')} before the start"
        )  # fmt: skip
        return Found(
            "B001", Severity.ERROR,
            f"illegal {verb} of {plural(size, 'byte')} at {name} {_hex(first)}, {reach} of {name} "
            f"({limits.capacity} bytes)",
            rows, whats, _notes(context, tiles, number, first),
            "Move the operand, or make it smaller, so that all bytes it touches lie in the memory.",
            key=_key(context, number),
        )  # fmt: skip
    reserved = within(bytes_touched, limits.capacity - limits.reserved, limits.capacity)
    if not reserved:
        return None
    return Found(
        "B003", Severity.WARNING,
        f"{verb} of {plural(_size(reserved), 'byte')} at {name} {_hex(reserved[0][0])}, in the {limits.reserved} bytes "
        f"at the top of {name} that are reserved",
        rows, whats, _notes(context, tiles, number, reserved[0][0]),
        f"Keep operands below {name} {limits.capacity - limits.reserved:#x}.", key=_key(context, number),
    )  # fmt: skip


def _hex(byte: int) -> str:
    return f"-{-byte:#x}" if byte < 0 else f"{byte:#x}"


def _misaligned(context: Context, tiles: Tiles, number: int) -> Found:
    access = context.trace.accesses[number]
    rows, whats = _place(context, tiles, number)
    start, align, name = int(access["start"]), 1 << int(access["align"]), space_name(int(access["space"]))
    size = _size(touched(context.trace, number))
    lower = start // align * align
    return Found(
        "B002", Severity.ERROR,
        f"misaligned access: {_verb(context, number)} of {plural(size, 'byte')} at {name} {_hex(start)}",
        rows, whats, (f"the address must be a multiple of {align}", *_notes(context, tiles, number, start)),
        f"Use {name} {_hex(lower)} or {_hex(lower + align)}.", key=_key(context, number),
    )  # fmt: skip


def _beyond_tile(context: Context, tiles: Tiles, number: int) -> Found | None:
    """A note where the bytes beyond the operand's tile belong to a tile that has no part in the operand's own place."""
    for call in calls(context.trace, number):
        found = _call_beyond_tile(context, tiles, number, call)
        if found is not None:
            return found
    return None


def _call_beyond_tile(context: Context, tiles: Tiles, number: int, call: Intervals) -> Found | None:
    """The same, of one of the calls that the row stands for."""
    access = context.trace.accesses[number]
    space = int(access["space"])
    start = call[0][0] if access["shape"] and context.trace.shapes["turns"][access["shape"]] else int(access["start"])
    named = tiles.of(number) if access["object"] else None
    own = [named] if named else tiles.containing(space, start)
    if not own:
        return None
    end = max(tile_bytes(tile)[1] for tile in own)
    begin = min(tile_bytes(tile)[0] for tile in own)
    over = within(call, end, FAR)
    for tile in tiles.all:
        low, high = tile_bytes(tile)
        if tile["space"] != space or (low < end and high > begin):
            continue
        hit = common(over, [(low, high)])
        if hit:
            rows, whats = _place(context, tiles, number)
            return Found(
                "B005", Severity.NOTE,
                f"write of {plural(_size(over), 'byte')} beyond {describe(own[0])}: "
                f"{_size(hit)} of them are in {describe(tile)}",
                rows, whats, _notes(context, tiles, number, hit[0][0]),
                f"Leave {plural(over[-1][1] - end, 'byte')} more between the two.", key=_key(context, number),
            )  # fmt: skip
    return None


# Arrays


class _Array(NamedTuple):
    space: int
    start: int
    end: int
    name: str


def _farthest(context: Context, number: int, array: _Array) -> int:
    """How far that of the calls of a row reaches which begins last in an array."""
    access = context.trace.accesses[number]
    shape = context.trace.shapes[access["shape"]]
    start, length, count, step = (int(n) for n in (access["start"], access["length"], shape["n1"], shape["s1"]))
    return farthest(start, length, count, step, array.start, array.end)


class _Arrays:
    """The on-chip arrays of each launch, and the writes that begin in one and end behind it."""

    def __init__(self, context: Context) -> None:
        self._of_launch: dict[int, dict[_Array, None]] = {}
        for note in context.trace.noted("local_array"):
            array = _Array(note["space"], note["start"], note["start"] + note["size"], note["name"])
            self._of_launch.setdefault(note["launch"], {})[array] = None  # each core of a launch may note it
        self.overrun = self._overrun(context) if self._of_launch else np.zeros(0, np.int64)

    def _overrun(self, context: Context) -> np.ndarray:
        trace = context.trace
        numbers = context.suspects.beyond_array
        _, high = extent(trace.accesses[numbers], trace.shapes)
        start, space = trace.accesses["start"][numbers], trace.accesses["space"][numbers]
        shape = trace.accesses["shape"][numbers]
        turning = np.flatnonzero(trace.shapes["turns"][shape])
        launches = self._launches(context, numbers)
        over = np.zeros(len(numbers), bool)
        for launch, arrays in self._of_launch.items():
            for array in arrays:
                here = (launches == launch) & (space == array.space)
                reach = np.where((start >= array.start) & (start < array.end), high, array.start)
                reach[turning] = [_farthest(context, number, array) for number in numbers[turning].tolist()]
                over |= here & (reach > rounded(array.end))
        farthest_first = np.argsort(-high[over], kind="stable")  # of one line's writes the worst is told
        return numbers[over][farthest_first]

    def _launches(self, context: Context, numbers: np.ndarray) -> np.ndarray:
        """The number of the launch of each access."""
        cores = context.cores_of(context.trace.rows_of(numbers))
        begins = context.visit.rows(context.visit.starts[:-1])
        return context.trace.rows["arg"][begins][cores]

    def tell(self, context: Context, tiles: Tiles, number: int) -> Found | None:
        """The finding of one such write."""
        access = context.trace.accesses[number]
        launch = int(self._launches(context, np.array([number]))[0])
        arrays = [a for a in self._of_launch.get(launch, ()) if a.space == access["space"]]
        if context.trace.shapes["turns"][access["shape"]]:
            own = next(a for a in arrays if _farthest(context, number, a) > rounded(a.end))
            end = _farthest(context, number, own)
            over = within([(end - int(access["length"]), end)], rounded(own.end), FAR)
        else:
            own = next(a for a in arrays if a.start <= access["start"] < a.end)
            over = within(touched(context.trace, number), rounded(own.end), FAR)
        if not over:
            return None
        name = space_name(own.space)
        told = [
            f"{plural(_size(common(over, [(a.start, a.end)])), 'byte')} of them are in {a.name}"
            for a in arrays if common(over, [(a.start, a.end)])
        ] or ["no other array is there"]  # fmt: skip
        rows, whats = _place(context, tiles, number)
        headline = (
            f"write of {plural(_size(over), 'byte')} beyond the array {own.name}, "
            f"which ends at {name} {own.end:#x}: {name} {over[0][0]:#x} to {over[-1][1] - 1:#x}"
        )
        mend = f"Mask the store, or make {own.name} {plural(over[-1][1] - own.end, 'byte')} longer."
        key = _key(context, number)
        return Found("B006", Severity.WARNING, headline, rows, whats, tuple(told), mend, key=key, yields=rows)


# GM


class _Allocation(NamedTuple):
    name: str
    start: int
    end: int
    born: int
    died: int

    def describe(self) -> str:
        """``the allocation x of 4096 bytes at GM 0x200``."""
        name = f" {self.name}" if self.name else ""
        return f"the allocation{name} of {plural(self.end - self.start, 'byte')} at GM {self.start:#x}"


class _Allocations:
    """Allocations of GM with the rows between which they lived.

    Notes: ``allocation`` {name, start, size} and ``free`` {start}; both may say at which ``row`` (the number of rows
    before it), else an allocation lives for the whole run.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.all: list[_Allocation] = []
        for kind, data in context.trace.notes:
            if kind == "allocation":
                start, born = int(data["start"]), int(data.get("row", 0))
                self.all.append(_Allocation(data.get("name") or "", start, start + int(data["size"]), born, FAR))
            elif kind == "free" and "row" in data:
                for index in range(len(self.all) - 1, -1, -1):
                    if self.all[index].start == data["start"] and self.all[index].died == FAR:
                        self.all[index] = self.all[index]._replace(died=int(data["row"]))
                        break

    def strangers(self) -> np.ndarray:
        """The GM accesses that do not lie in one allocation alive at their row."""
        if not self.all or not len(self._context.suspects.gm):
            return np.zeros(0, np.int64)
        numbers, rows, _, low, high, _ = self._context.gm
        inside = np.zeros(len(numbers), bool)
        changes = sorted({0, *(a.born for a in self.all), *(a.died for a in self.all if a.died != FAR)})
        for since, until in zip(changes, [*changes[1:], FAR], strict=True):
            begin, end = np.searchsorted(rows, (since, until))
            alive = sorted((a.start, a.end) for a in self.all if a.born <= since < a.died)
            if begin == end or not alive:
                continue
            starts, ends = (np.array(side) for side in zip(*alive, strict=True))
            index = np.searchsorted(starts, low[begin:end], side="right") - 1
            inside[begin:end] = (index >= 0) & (high[begin:end] <= ends[np.maximum(index, 0)])
        return numbers[~inside]

    def alive(self, row: int) -> list[_Allocation]:
        """What is allocated at a row."""
        return [a for a in self.all if a.born <= row < a.died]

    def freed(self, row: int, byte: int) -> _Allocation | None:
        """The allocation, freed before the row, that a byte belonged to."""
        return next((a for a in reversed(self.all) if a.died <= row and a.start <= byte < a.end), None)


def _stranger(context: Context, allocations: _Allocations, tiles: Tiles, number: int) -> Found | None:
    """The part of a GM access that lies in no allocation; None where each burst lies in one."""
    row = int(context.trace.rows_of(number))
    alive = allocations.alive(row)
    parts = touched(context.trace, number)
    outside: list[tuple[int, int]] = []
    for low, high in parts:
        home = max((a for a in alive if a.start <= low < a.end), key=lambda a: a.end, default=None)
        rest = high if home and high <= home.end else (home.end if home else low)
        if rest < high:
            outside.append((rest, high))
    if not outside:
        return None
    first, size = outside[0][0], _size(outside)
    rows, whats = _place(context, tiles, number)
    notes = []
    freed = allocations.freed(row, first)
    if freed is not None:
        notes.append(f"it was part of {freed.describe()}, which has been freed")
    nearest: Any = min(alive, key=lambda a: (_distance(a, first), -a.end), default=None)
    if nearest is not None:
        side = "after" if first >= nearest.end else "before"
        notes.append(f"and is {plural(_distance(nearest, first), 'byte')} {side} {nearest.describe()}")
    step = context.step(row)
    return Found(
        "B004", Severity.ERROR,
        f"illegal {_verb(context, number)} of {plural(size, 'byte')} at GM {_hex(first)}, outside every allocation",
        rows, whats, (*notes, *([step] if step else [])),
        "Compare the shape, strides and offset of the global tensor with what was allocated.",
        key=_key(context, number),
    )  # fmt: skip


def _distance(allocation: _Allocation, byte: int) -> int:
    """How many bytes lie between a byte and an allocation that does not hold it."""
    return byte - allocation.end if byte >= allocation.end else max(allocation.start - byte, 0)
