"""TROWMAX and TROWMIN: the largest and the smallest element of each row.

Sources: pto-isa docs/isa/TROWMAX, TROWMIN; include/pto/npu/a2a3 TRowMax.hpp, TRowMin.hpp, TRowReduceOps.hpp; include/pto/npu/a5
TRowReduce.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import A2A3, CHIPS, Definition, In, Out, Scratch, tile_instruction
from ascsim.isa.rules import Rule, dtype, finding, in_space, refuse, row_major, same_dtype
from ascsim.isa.semantics.reduce import float_row_max, row_max
from ascsim.isa.tile.elementwise import FOUR, WORDS_OF_INT64, Types, changed, first_64
from ascsim.machine.dtypes import f32, i8, i64, u8, u64
from ascsim.machine.operands import REGISTER_BYTES, Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import BLayout, Pipe, SLayout, Space
from ascsim.profiles import Profile

_ALL_TYPES = (*FOUR, i64, u64, i8, u8)
_BLOCK_BYTES = 32
Fold = Callable[[np.ndarray, bool], np.ndarray]
Scratched = Callable[[SimpleNamespace, Profile], "Region | None"]
_SHORT_WAYS = ((64, 128), (32, 256), (16, 512), (8, 1024))
"""Shapes of float tiles for which the A2/A3 have a way of their own when dst is one column (TryOptimizeFP32Reduce)."""
_SHORT_WAY_BYTES = 4096


def takes_short_way(call: SimpleNamespace) -> bool:
    """Whether the A2/A3 fold the whole tile at once."""
    src, dst = call.src, call.dst
    whole = (src.valid_rows, src.valid_cols) == (src.rows, src.cols) and dst.valid_cols == 1
    is_column = dst.blayout == BLayout.COL_MAJOR
    return src.dtype is f32 and is_column and whole and (src.rows, src.cols) in _SHORT_WAYS


def scratch(call: SimpleNamespace, profile: Profile) -> Region | None:
    """The bytes of tmp that a call writes, as elements of src; None where it writes none."""
    src, tmp = call.src, call.tmp
    if profile.name != "a2a3":
        return None
    if src.dtype.kind != "f":
        return Region(tmp.space, tmp.address, _BLOCK_BYTES, (), src.dtype.numpy)
    if takes_short_way(call):
        return Region(tmp.space, tmp.address, _SHORT_WAY_BYTES, (), src.dtype.numpy)
    if src.valid_cols * src.dtype.size <= REGISTER_BYTES:
        return None
    return Region(tmp.space, tmp.address, REGISTER_BYTES, ((src.valid_rows, row_of_tmp(call)),), src.dtype.numpy)


def row_of_tmp(call: SimpleNamespace) -> int:
    """Bytes from row to row of tmp; the library counts its columns as elements of src."""
    return int(call.tmp.cols * call.src.dtype.size)


def does_nothing(call: SimpleNamespace, profile: Profile) -> bool:
    """True where the A2/A3 return at once: between one and two repeats a row, and rows of tmp of less than one."""
    if profile.name != "a2a3" or call.src.dtype.kind != "f" or takes_short_way(call):
        return False
    used = call.src.valid_cols * call.src.dtype.size
    return REGISTER_BYTES < used < 2 * REGISTER_BYTES and row_of_tmp(call) < REGISTER_BYTES


# Rules


def _not_a_column(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst = call.dst
    if dst.is_row_major or (dst.slayout == SLayout.NONE_BOX and dst.cols == 1):
        return None
    return f"operand dst is not row-major, and has {dst.cols} columns"


def _with_columns(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", blayout=BLayout.COL_MAJOR, rows=32, cols=2, valid_cols=1)
    yield changed(call, "dst", blayout=BLayout.COL_MAJOR, slayout=SLayout.ROW_MAJOR, rows=16, cols=32, valid_cols=1)


def _empty(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    src = call.src
    if src.valid_rows and src.valid_cols:
        return None
    return f"src has {src.valid_rows}x{src.valid_cols} valid; there is nothing to reduce"


def _other_rows(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    return None if dst.valid_rows == src.valid_rows else f"dst has {dst.valid_rows} valid rows, src {src.valid_rows}"


def _with_other_rows(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_rows=call.dst.valid_rows - 1)


def _small_tmp(definition: Any, call: SimpleNamespace, profile: Profile) -> str | None:
    written = definition.scratch(call, profile)
    if written is None or definition.returns_early(call, profile):
        return None
    row = row_of_tmp(call)
    if written.dims and row < written.length:
        return f"rows of tmp are {row} bytes, and {written.length} of each are written: they overwrite each other"
    beyond = written.bounds()[1] - call.tmp.address - call.tmp.nbytes
    return f"tmp has {call.tmp.nbytes} bytes and {beyond} beyond it are written" if beyond > 0 else None


def _wide(call: SimpleNamespace, columns: int) -> SimpleNamespace:
    """The call with rows of so many floats, and a tmp of one row."""
    call = changed(call, "dst", dtype=f32)
    call = changed(call, "src", dtype=f32, cols=columns, valid_cols=columns)
    return changed(call, "tmp", dtype=f32, rows=1, valid_rows=1)


def _with_small_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(_wide(call, 256), "tmp", cols=64, valid_cols=64)
    yield changed(_wide(call, 256), "tmp", cols=32, valid_cols=32)


def _returns_at_once(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if not does_nothing(call, profile):
        return None
    return f"rows of tmp are {row_of_tmp(call)} bytes: the library returns and writes nothing"


def _with_narrow_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(_wide(call, 96), "tmp", cols=32, valid_cols=32)


_SAME_AS_SRC = "Give tmp the type and shape of src."
_SAME_ROWS = "Give dst the valid rows of src."


def rules(title: str, a5: Types, cpu: Types, folds_rows: bool = True) -> tuple[Rule, ...]:
    """Those of a reduction of rows; ``folds_rows``: the A2/A3 fold rows of floats into rows of tmp."""
    of_rows = (
        finding(
            f"{title}-1", "tmp holds what is written to it", _small_tmp, breaks=_with_small_tmp, profiles=A2A3,
            why="The library folds rows into tmp and checks no size. ascsim gives the right result all the same.",
            mend=_SAME_AS_SRC,
        ),
        finding(
            f"{title}-2", "tmp has rows of 256 bytes where rows of src have more", _returns_at_once,
            breaks=_with_narrow_tmp, profiles=A2A3, mend=_SAME_AS_SRC,
            why="With floats between 256 and 512 bytes a row the library first copies 256 bytes of each to tmp, and "
            "returns without a word where they do not fit.",
        ),
    )  # fmt: skip
    of_wide = (first_64(f"{title}-4"),) if i64 in a5 else ()
    return (
        dtype("dst", a2a3=FOUR, a5=a5, cpu=cpu),
        same_dtype("dst", "src"),
        row_major("src"),
        refuse("L004", "dst is row-major, or has one column", _not_a_column, breaks=_with_columns,
               mend="Declare dst with BLayout::RowMajor, or BLayout::ColMajor with one column, and SLayout::NoneBox."),
        in_space(Space.UB, "dst", "src", "tmp"),
        refuse("L007", "src is not empty", _empty, mend="Leave the call out.",
               breaks=lambda call, profile: iter((changed(call, "src", valid_cols=0),))),
        refuse("L007", "dst has the valid rows of src", _other_rows, breaks=_with_other_rows, profiles=("cpu",),
               mend=_SAME_ROWS),
        *(of_rows if folds_rows else ()),
        finding(
            f"{title}-3", "dst has the valid rows of src", _other_rows, breaks=_with_other_rows,
            profiles=CHIPS, mend=_SAME_ROWS,
            why="The library checks it in debug builds only, and takes the rows of src.",
        ),
        *of_wide,
    )  # fmt: skip


class RowFold:
    """One number of each row. A subclass says what tmp holds (``scratch``) and how rows are folded (``folded``)."""

    operands = (
        Out("dst", doc="row-major, of which column 0 is written, or column-major with one column"),
        In("src"),
        Scratch("tmp", used_on=A2A3, doc="working space of the A2/A3; the shape of src is enough"),
    )
    values = "widen"
    scratch: Scratched = staticmethod(lambda call, profile: None)
    returns_early = staticmethod(does_nothing)

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """Column 0 of dst, the valid region of src, and what is written of tmp."""
        if self.returns_early(call, profile):
            return []
        dst, rows = call.dst, call.src.valid_rows
        column = Region(dst.space, dst.address, dst.dtype.size, ((rows, dst.row_bytes),), dst.dtype.numpy)
        used = self.scratch(call, profile)
        working = [] if used is None else [(2, int(Mode.WRITE), used)]
        cols = call.src.valid_cols
        seen = min(cols, WORDS_OF_INT64) if profile.name == "a5" and call.src.dtype.size == 8 else cols
        return [(0, Mode.WRITE, column), (1, Mode.READ, call.src.region(rows, seen)), *working]

    def compute(self: Any, call: SimpleNamespace, arrays: list[np.ndarray], profile: Profile) -> tuple[np.ndarray, ...]:
        """The results, and what tmp holds."""
        if not arrays:
            return ()
        column, held = self.folded(call, arrays[0], profile)
        return (column[:, None],) if self.scratch(call, profile) is None else (column[:, None], held)

    def folded(
        self: Any, call: SimpleNamespace, rows: np.ndarray, profile: Profile
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """(the number of each row, what tmp holds then)."""
        raise NotImplementedError


class _Extreme(RowFold):
    """The largest or the smallest element of each row."""

    scratch = staticmethod(scratch)
    fold: Fold

    def folded(
        self: Any, call: SimpleNamespace, rows: np.ndarray, profile: Profile
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """See :class:`RowFold`."""
        floats, fold = call.src.dtype.kind == "f", type(self).fold
        found = fold(rows, floats)
        used = scratch(call, profile)
        if used is None:
            return found, None
        lanes = used.length // call.src.dtype.size
        if not used.dims and floats:
            return found, fold(rows.reshape(lanes, -1), floats)
        folded = _folded(rows, lanes, floats, fold)
        return found, folded if used.dims else folded[-1]


def _folded(values: np.ndarray, lanes: int, floats: bool, fold: Fold) -> np.ndarray:
    """Rows (rows, columns) with their parts of ``lanes`` columns laid over each other: the result of each lane."""
    limits = (
        np.array([-np.inf, np.inf]) if floats else np.array([np.iinfo(values.dtype).min, np.iinfo(values.dtype).max])
    )
    both = limits.astype(values.dtype)
    neutral = both[0] if fold(both, floats) == both[1] else both[1]
    parts = -(-values.shape[1] // lanes)
    filled = np.full((values.shape[0], parts * lanes), neutral, values.dtype)
    filled[:, : values.shape[1]] = values
    return fold(filled.reshape(-1, parts, lanes).swapaxes(1, 2), floats)


def _largest(values: np.ndarray, floats: bool) -> np.ndarray:
    return float_row_max(values) if floats else row_max(values)


def _smallest(values: np.ndarray, floats: bool) -> np.ndarray:
    return -float_row_max(-values) if floats else np.asarray(values.min(axis=-1))


for _name, _word, _fold, _zero in (
    ("trowmax", "largest", _largest, "+0 is larger than -0"), ("trowmin", "smallest", _smallest, "-0 is smaller than +0"),
):  # fmt: skip
    _title = _name.upper()
    _header = "TRowMax.hpp" if _name == "trowmax" else "TRowMin.hpp"
    tile_instruction(_name, pipe=Pipe.V)(type(_title, (_Extreme,), {
        "__doc__": f"Write the {_word} element of each row of ``src`` to column 0 of ``dst``.",
        "operands": _Extreme.operands,
        "rules": rules(_title, _ALL_TYPES, _ALL_TYPES),
        "fold": staticmethod(_fold),
        "notes": (
            f"A row with a NaN gives NaN. {_zero[0].upper()}{_zero[1:]}.",
            "The A2/A3 write tmp: floats 256 bytes a row where rows are longer than that (4096 bytes in all for float "
            "tiles of 64x128, 32x256, 16x512 and 8x1024 into one column), integers 32 bytes. Integers are compared by the "
            "scalar unit in the end; the flags between the pipes are part of the instruction.",
            "The A5 and cpu do not use tmp.",
        ),
        "assumed": (
            "The A2/A3 take NaN and signed zeros as the A5's registers do, whose pages alone tell.",
            "What tmp holds afterwards: the folded rows (of the short ways: each 32 bytes folded).",
        ),
        "sources": (
            f"pto-isa docs/isa/{_title}",
            f"pto-isa include/pto/npu/a2a3/{_header}, TRowReduceOps.hpp; include/pto/npu/a5/TRowReduce.hpp",
            "asc-devkit C-API asc_max, asc_reduce_max; pto-isa vmax (NaN, zeros)",
        ),
    }))  # fmt: skip
