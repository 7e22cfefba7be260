"""TCOLSUM, TCOLPROD, TCOLMAX, TCOLMIN: columns reduced to one row.

Sources: pto-isa docs/isa (the page of each); include/pto/npu/a2a3 TColReduceOps.hpp, TColSum.hpp; include/pto/npu/a5
TColReduceOps.hpp, TColSum.hpp; include/pto/cpu TColSum.hpp and its kin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ascsim.isa.definition import (
    A5,
    CHIPS,
    Definition,
    In,
    Operand,
    Out,
    Scalar,
    Scratch,
    lanes_in,
    tile_instruction,
)
from ascsim.isa.rules import Rule, dtype, finding, in_space, refuse, row_major, same_dtype
from ascsim.isa.semantics import arithmetic
from ascsim.isa.tile.elementwise import EVERY, FOUR, changed
from ascsim.isa.transfer import whole_blocks
from ascsim.machine.dtypes import DType, f32, i64, u8
from ascsim.machine.operands import REGISTER_BYTES, Region
from ascsim.machine.trace import Mode
from ascsim.machine.words import Pipe, Space
from ascsim.profiles import Profile

Step = Callable[[np.ndarray, np.ndarray], np.ndarray]


def stepwise(of: Step, of_floats: Step, kind: DType) -> Step:
    """The operation on elements of a type as the chip does it: narrow floats are rounded after each."""
    if not kind.is_narrow_float:
        return of_floats if kind.kind == "f" else of

    def rounding(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return of_floats(a, b).astype(kind.numpy).astype(np.float32)

    return rounding


def one_by_one(rows: np.ndarray, step: Step) -> np.ndarray:
    """The first row with each other in turn: the A2/A3, and cpu."""
    held = rows[0]
    for row in rows[1:]:
        held = step(held, row)
    return held


def two_by_two(rows: np.ndarray, step: Step) -> np.ndarray:
    """The first row with each following pair: the A5 (TColReduceInstr_PostUpdate)."""
    held = rows[0]
    for first in range(1, len(rows) - 1, 2):
        held = step(held, step(rows[first], rows[first + 1]))
    return step(held, rows[-1]) if len(rows) % 2 == 0 else held


def halving(rows: np.ndarray, step: Step, odd_to_first: bool) -> tuple[np.ndarray, np.ndarray]:
    """(the sum, the scratch afterwards): neighbours added until one row is left.

    An odd last row is added to the first sum on the A2/A3, to the last one on the A5.
    """
    scratch = np.zeros((len(rows) // 2, *rows.shape[1:]), rows.dtype)
    source, count = rows, len(rows)
    while count > 1:
        half = count // 2
        sums = [step(source[2 * n], source[2 * n + 1]) for n in range(half)]
        if count % 2:
            at = 0 if odd_to_first else half - 1
            sums[at] = step(sums[at], source[count - 1]) if odd_to_first else step(source[count - 1], sums[at])
        scratch[:half] = sums
        source, count = scratch.copy(), half
    return scratch[0].copy(), scratch


# Rules


def _other_columns(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    dst, src = call.dst, call.src
    return None if dst.valid_cols == src.valid_cols else f"dst has {dst.valid_cols} valid columns, src {src.valid_cols}"


def _with_other_columns(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(call, "dst", valid_cols=call.dst.valid_cols - 1)


def _wide(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    return "reduces elements of 64 bits" if call.src.dtype.size == 8 else None


def _with_wide(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    yield changed(changed(call, "src", dtype=i64), "dst", dtype=i64)


def _small_tmp(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    if not call.is_binary or call.src.valid_rows < 2:
        return None
    used = _scratch(call, profile)
    beyond = used.bounds()[1] - call.tmp.address - call.tmp.nbytes if used else 0
    return f"tmp has {call.tmp.nbytes} bytes and {beyond} beyond it are written" if beyond > 0 else None


def _with_small_tmp(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    call = changed(call, "src", dtype=f32, rows=32, valid_rows=32, cols=64, valid_cols=64)
    call = changed(call, "dst", dtype=f32, valid_cols=64, cols=64)
    yield SimpleNamespace(**{**vars(changed(call, "tmp", dtype=f32, rows=1, valid_rows=1, cols=64)), "is_binary": 1})


def _rules(title: str, a5: tuple[DType, ...]) -> tuple[Rule, ...]:
    said = "dst has the valid columns of src"
    return (
        dtype("src", a2a3=FOUR, a5=a5, cpu=EVERY),
        same_dtype("dst", "src"),
        row_major("dst", "src"),
        in_space(Space.UB, "dst", "src"),
        *((refuse("L012", "elements have at most 32 bits", _wide, breaks=_with_wide, profiles=A5),) if i64 in a5 else ()),
        refuse("L007", said, _other_columns, breaks=_with_other_columns, profiles=("cpu",)),
        finding(f"{title}-1", said, _other_columns, breaks=_with_other_columns, profiles=CHIPS,
                why="The library checks it in debug builds only, and takes the columns of src.",
                mend="Give dst the valid columns of src."),
    )  # fmt: skip


def _scratch(call: SimpleNamespace, profile: Profile) -> Region | None:
    """The bytes of tmp that the halving form writes."""
    if not profile.is_chip or not getattr(call, "is_binary", False) or call.src.valid_rows < 2:
        return None
    src, tmp = call.src, call.tmp
    columns = src.valid_cols if profile.name == "a2a3" else min(src.valid_cols, REGISTER_BYTES // src.dtype.size)
    stride = tmp.cols * tmp.dtype.size
    return Region(tmp.space, tmp.address, columns * src.dtype.size, ((src.valid_rows // 2, stride),), src.dtype.numpy)


class _Columns:
    values = "widen"
    of: Step
    of_floats: Step

    def regions(self: Any, call: SimpleNamespace, profile: Profile) -> list[tuple[int, int, Region]]:
        """Row 0 of dst (on the A2/A3 in whole blocks, which the copy of row 0 fills), the valid region of src, tmp."""
        src, dst = call.src, call.dst
        if not src.valid_rows or not src.valid_cols:
            return []
        touched = [(0, int(Mode.WRITE), dst.region(1, src.valid_cols))]
        if profile.name == "a2a3":
            length = whole_blocks(src.valid_cols * src.dtype.size)
            tail = Region(dst.space, dst.address, length, (), dst.dtype.bits_dtype)
            touched = [(0, int(Mode.WRITE), tail), *touched]
        touched.append((1, int(Mode.READ), src.region()))
        used = _scratch(call, profile)
        return touched if used is None else [*touched, (2, int(Mode.WRITE), used)]

    def perform(self: Any, core: Any, args: Any, touches: list[Any]) -> None:
        """Copy the first row on the A2/A3, reduce, write."""
        call, profile = self.call(args), core.profile
        if not touches:
            return
        src, kind = call.src, call.src.dtype
        used = _scratch(call, profile)
        rows = lanes_in(core.view(src.region()), "widen", kind).copy()
        step = stepwise(type(self).of, type(self).of_floats, kind)
        reduced, held = self._reduced(rows, step, profile, used is not None, kind)
        if profile.name == "a2a3":
            padding = used.start if used is not None else src.address
            whole = core.view(touches[0].region)
            whole[...] = core.view(touches[0].region._replace(space=src.space, start=padding)).copy()
        with np.errstate(over="ignore", invalid="ignore"):
            core.view(call.dst.region(1, src.valid_cols))[0] = reduced.astype(kind.numpy)
            if used is not None:
                core.view(used)[...] = held.astype(kind.numpy)

    def _reduced(
        self, rows: np.ndarray, step: Step, profile: Profile, halves: bool, kind: DType
    ) -> tuple[np.ndarray, np.ndarray]:
        if not halves:
            return (two_by_two if profile.name == "a5" else one_by_one)(rows, step), rows[:0]
        if profile.name == "a2a3":
            return halving(rows, step, odd_to_first=True)
        lanes = REGISTER_BYTES // kind.size
        parts = [halving(rows[:, s : s + lanes], step, odd_to_first=False) for s in range(0, rows.shape[1], lanes)]
        held = parts[0][1]
        for _, part in parts[1:]:
            held[:, : part.shape[1]] = part
        return np.concatenate([p[0] for p in parts]), held


def _define(name: str, does: str, of: Step, of_floats: Step, a5: tuple[DType, ...], halves: bool = False) -> None:
    title = name.upper()
    operands: tuple[Operand, ...] = (Out("dst", doc="one row"), In("src"))
    rules = _rules(title, a5)
    notes = [
        "The A2/A3 take row after row, the A5 pair after pair; narrow floats are rounded after each step.",
        "A2/A3 copy the first row in whole 32-byte blocks: what lies beyond its valid columns comes along.",
        "An empty src writes nothing.",
    ]
    if halves:
        operands = (*operands, Scratch("tmp", doc="sums of neighbouring rows: half as many as src has"),
                    Scalar("is_binary", u8, optional=True, cpp_given=True, default=0, asm_name="isBinary",
                           doc="add neighbours, then neighbouring sums, in tmp"))  # fmt: skip
        rules = (
            *rules,
            row_major("tmp"),
            in_space(Space.UB, "tmp"),
            finding(f"{title}-2", "tmp holds what is written to it", _small_tmp, breaks=_with_small_tmp, profiles=CHIPS,
                    why="The library checks the columns of tmp in debug builds, its rows never.",
                    mend="Give tmp half the rows of src."),
        )  # fmt: skip
        notes.append(
            "An odd last row goes to the first sum on the A2/A3, to the last on the A5; cpu adds row after row."
        )
    body = {
        "__doc__": does, "operands": operands, "rules": rules, "notes": tuple(notes), "of": staticmethod(of),
        "of_floats": staticmethod(of_floats),
        "sources": (f"pto-isa docs/isa/{title}", "pto-isa include/pto/npu/a2a3 and a5: TColReduceOps.hpp, TColSum.hpp"),
    }  # fmt: skip
    tile_instruction(name, pipe=Pipe.V)(type(title, (_Columns,), body))


_PRODUCTS = tuple(k for k in EVERY if k.size in (2, 4))
_SUM = "Add the elements of each column."
_define("tcolsum", _SUM, arithmetic.add, arithmetic.add, EVERY)
_define("tcolsum", _SUM, arithmetic.add, arithmetic.add, EVERY, halves=True)
_define("tcolprod", "Multiply the elements of each column.", arithmetic.multiply, arithmetic.multiply, _PRODUCTS)
_define("tcolmax", "The largest element of each column.", arithmetic.maximum, arithmetic.float_maximum, EVERY)
_define("tcolmin", "The smallest element of each column.", arithmetic.minimum, arithmetic.float_minimum, EVERY)
