"""TPARTADD, TPARTMUL, TPARTMAX, TPARTMIN: two tiles of which one may be valid in a part only; elsewhere the other stands alone.

Sources: pto-isa docs/isa/TPARTADD and its kin; include/pto/npu/a2a3 TPartOp.hpp, TPartAdd.hpp and its kin; include/pto/npu/a5
TPartBinOps.hpp, TPartAdd.hpp and its kin, Int64Reduce.hpp; include/pto/cpu/TPartOp.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.diagnostics import Severity
from ascsim.isa.definition import A2A3, A5, Definition, In, Out, lanes_in, store_lanes, tile_instruction
from ascsim.isa.rules import Rule, dtype, finding, in_space, refuse, row_major, same_dtype
from ascsim.isa.tile.broadcast import ADDED, LARGER, PRODUCT, SMALLER, Combined
from ascsim.isa.tile.elementwise import EVERY, FOUR, MULTIPLIED, ROUNDED, WORDS_OF_INT64, Types, changed
from ascsim.isa.transfer import whole_blocks
from ascsim.machine.core import Core, Finding, Touch
from ascsim.machine.dtypes import i64
from ascsim.machine.operands import Region, Tile
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

_NUMBERS = {"dst": 0, "src0": 1, "src1": 2}


def _shape(tile: Tile) -> tuple[int, int]:
    return tile.valid_rows, tile.valid_cols


def _within(tile: Tile, rows: int, cols: int) -> tuple[int, int]:
    """The valid rows and columns, at most so many."""
    return min(tile.valid_rows, rows), min(tile.valid_cols, cols)


def _large_and_small(call: SimpleNamespace, profile: Profile) -> tuple[str, str]:
    """The names of the source that covers dst and of the other, as the library tells them apart."""
    a, b = _shape(call.src0), _shape(call.src1)
    if profile.name == "a2a3":
        first = a == _shape(call.dst)
    elif not all(a) or not all(b):
        first = all(a)
    else:
        first = a[0] >= b[0] and a[1] >= b[1]
    return ("src0", "src1") if first else ("src1", "src0")


def _fits(call: SimpleNamespace, profile: Profile) -> bool:
    """Whether one source has the region of dst and the other lies within."""
    large, small = _large_and_small(call, profile)
    rows, cols = _shape(call.dst)
    other = getattr(call, small)
    return _shape(getattr(call, large)) == (rows, cols) and other.valid_rows <= rows and other.valid_cols <= cols


def _small(call: SimpleNamespace) -> tuple[int, int]:
    """The rows and columns in which both sources are valid."""
    return min(call.src0.valid_rows, call.src1.valid_rows), min(call.src0.valid_cols, call.src1.valid_cols)


def _columns(call: SimpleNamespace, profile: Profile) -> int:
    cols = int(call.dst.valid_cols)
    return min(cols, WORDS_OF_INT64) if call.dst.dtype.size == 8 and profile.name == "a5" else cols


def _copied(call: SimpleNamespace, profile: Profile) -> tuple[Region, Region] | None:
    """(written, read) of what the A2/A3 copy from the larger source in whole blocks, or rows."""
    large, small = _large_and_small(call, profile)
    (rows, cols), other = _shape(call.dst), getattr(call, small)
    if _shape(other) == (rows, cols):
        return None
    first = other.valid_rows if other.valid_cols == cols else 0
    src, dst = getattr(call, large), call.dst
    length = dst.row_bytes if dst.cols == src.cols else whole_blocks(cols * dst.dtype.size)
    read, written = (
        Region(t.space, t.address + first * t.row_bytes, length, ((rows - first, t.row_bytes),), dst.dtype.bits_dtype)
        for t in (src, dst)
    )
    return written, read


# Rules


def _unlike(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if not all(_shape(call.dst)) or _fits(call, profile):
        return None
    said = ", ".join("{} {}x{}".format(n, *_shape(getattr(call, n))) for n in ("dst", "src0", "src1"))
    return f"valid are {said}; one source must have the region of dst, the other lie within"


def _wide_unlike(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return (
        "64-bit elements, and other regions than that"
        if call.dst.dtype.size == 8 and _unlike(definition, call, profile)
        else None
    )


def _with_unlike(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("src0", "src1"):
        call = changed(call, name, valid_rows=call.dst.valid_rows - 1)
    yield call


def _with_wide_unlike(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("dst", "src0", "src1"):
        call = changed(call, name, dtype=i64)
    yield from _with_unlike(call, profile)


def _beyond_64(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    wide = call.dst.dtype.size == 8 and call.dst.valid_cols > WORDS_OF_INT64
    return (
        f"rows have {call.dst.valid_cols} elements of 64 bits, of which the library works on the first 64"
        if wide
        else None
    )


def _with_128(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name in ("dst", "src0", "src1"):
        call = changed(call, name, dtype=i64, cols=128, valid_cols=128)
    yield call


def _rules(title: str, a5: Types) -> tuple[Rule, ...]:
    tiles = ("dst", "src0", "src1")
    said = "one source has the valid region of dst, the other lies within it"
    wide = (
        refuse("L012", "regions of 64-bit elements are of that kind", _wide_unlike, breaks=_with_wide_unlike, profiles=A5),
        finding(f"{title}-3", "rows of 64-bit elements have at most 64", _beyond_64, breaks=_with_128, profiles=A5,
                why="The A5's library loads 512 bytes of a row, once.", mend="Work on tiles of at most 64 columns."),
    )  # fmt: skip
    return (
        dtype("dst", a2a3=FOUR, a5=a5, cpu=EVERY),
        same_dtype(*tiles),
        row_major(*tiles),
        in_space(Space.UB, *tiles),
        *(wide[:1] if i64 in a5 else ()),
        finding(f"{title}-1", said, _unlike, breaks=_with_unlike, profiles=A2A3, mend="Set the valid regions so.",
                why="The library checks it in debug builds only; else it returns and writes nothing."),
        finding(f"{title}-2", said, _unlike, breaks=_with_unlike, profiles=A5, mend="Set the valid regions so.",
                why="The library checks it in debug builds only; else it reads beyond what is valid."),
        *(wide[1:] if i64 in a5 else ()),
    )  # fmt: skip


class _Part:
    warns = ("TILE-INPLACE",)

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """What is written of dst, what is read of both sources."""
        rows, cols = call.dst.valid_rows, _columns(call, profile)
        if not rows or not cols or (profile.name == "a2a3" and not _fits(call, profile)):
            return []
        touched = [(0, int(Mode.WRITE), call.dst.region(rows, cols))]
        large, small = _large_and_small(call, profile)
        if profile.is_chip:
            both = _small(call)
            touched.append((_NUMBERS[large], int(Mode.READ), getattr(call, large).region(rows, cols)))
            touched.append((_NUMBERS[small], int(Mode.READ), getattr(call, small).region(both[0], min(both[1], cols))))
        else:
            for name in ("src0", "src1"):
                tile = getattr(call, name)
                touched.append((_NUMBERS[name], int(Mode.READ), tile.region(*_within(tile, rows, cols))))
        copied = _copied(call, profile) if profile.name == "a2a3" else None
        if copied is not None:
            touched += [(0, int(Mode.WRITE), copied[0]), (_NUMBERS[large], int(Mode.READ), copied[1])]
        return [t for t in touched if t[2].length and all(n for n, _ in t[2].dims)]

    def perform(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> None:
        """Copy and combine, in the library's order."""
        call, profile, kind = self.call(args), core.profile, args[0].dtype
        if not touches:
            return

        def read(name: str, rows: int, cols: int) -> np.ndarray:
            return lanes_in(core.view(getattr(call, name).region(rows, cols)), "widen", kind).copy()

        def combine(rows: int, cols: int, first: str, second: str) -> None:
            if rows and cols:
                both = read(first, rows, cols), read(second, rows, cols)
                result = self.combined(call, both, profile)
                store_lanes(core.view(call.dst.region(rows, cols)), result, "widen", kind)

        rows, cols = call.dst.valid_rows, _columns(call, profile)
        (both_rows, both_cols), (large, small) = _small(call), _large_and_small(call, profile)
        both_rows, both_cols = min(both_rows, rows), min(both_cols, cols)
        if profile.name == "a2a3":
            copied = _copied(call, profile)
            by_columns = getattr(call, small).valid_cols < call.dst.valid_cols
            if not by_columns:
                combine(both_rows, both_cols, large, small)
            if copied is not None and copied[0].dims[0][0]:
                core.view(copied[0])[...] = core.view(copied[1]).copy()
            if by_columns:
                combine(both_rows, both_cols, small, "dst")
            return
        bits = kind.bits_dtype
        found = np.zeros((rows, cols), bits)
        for name in (small, large) if not profile.is_chip else (large,):
            tile = getattr(call, name)
            shape = (rows, cols) if profile.is_chip else _within(tile, rows, cols)
            if all(shape):
                found[: shape[0], : shape[1]] = core.view(tile.region(*shape)).view(bits)
        if both_rows and both_cols:
            both = read("src0", both_rows, both_cols), read("src1", both_rows, both_cols)
            result = np.empty((both_rows, both_cols), kind.numpy)
            store_lanes(result, self.combined(call, both, profile), "widen", kind)
            found[:both_rows, :both_cols] = result.view(bits)
        core.view(call.dst.region(rows, cols)).view(bits)[...] = found

    def observe(self: Any, core: Core, args: Sequence[Any], touches: list[Touch]) -> list[Finding]:
        """Whether the A2/A3 copy over the smaller source before they read it."""
        call = self.call(args)
        if core.profile.name != "a2a3" or not touches or not all(_shape(call.dst)):
            return []
        large, small = _large_and_small(call, core.profile)
        tile = getattr(call, small)
        if tile.address != call.dst.address or tile.valid_cols >= call.dst.valid_cols or not tile.valid_cols:
            return []
        said = f"{self.title}: dst and {small} lie in one place; dst is filled with {large} before {small} is read"
        return [
            Finding(
                "TILE-INPLACE", Severity.ERROR, said, (), "Write to another tile, or to the place of the other source."
            )
        ]


def _define(name: str, does: str, how: type[Combined], a5: Types, notes: tuple[str, ...] = ()) -> None:
    title = name.upper()
    tile_instruction(name, pipe=Pipe.V)(type(title, (_Part, how), {
        "__doc__": f"{does} Where one source alone is valid, its element is taken.",
        "operands": (Out("dst", dtype="T"), In("src0", dtype="T"), In("src1", dtype="T")),
        "rules": _rules(title, a5),
        "notes": (
            *notes,
            "A2/A3: where one source is smaller, the other is copied in whole 32-byte blocks (whole rows where both tiles have "
            "the same columns): what lies beyond the valid columns comes along. With fewer columns it is copied first, so that "
            "dst cannot be the smaller source.",
            "cpu: where neither is valid, 0.",
        ),
        "sources": (
            f"pto-isa docs/isa/{title}",
            "pto-isa include/pto/npu/a2a3/TPartOp.hpp, include/pto/npu/a5/TPartBinOps.hpp, include/pto/cpu/TPartOp.hpp",
        ),
    }))  # fmt: skip


_define("tpartadd", "Add two tiles.", ADDED, EVERY, (ROUNDED,))
_define("tpartmul", "Multiply two tiles.", PRODUCT, tuple(k for k in MULTIPLIED if k.size < 8), (ROUNDED,))
_define("tpartmax", "The larger of two elements.", LARGER, EVERY)
_define("tpartmin", "The smaller of two elements.", SMALLER, EVERY)
