"""A legal call of any instruction, found from its operand records alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

from ascsim import profiles
from ascsim.diagnostics import Refused
from ascsim.isa.definition import Definition, Operand, RegisterInstruction, Role, Sort
from ascsim.machine.dtypes import DTYPES, DType, f16, f32, u32
from ascsim.machine.operands import GlobalTensor, MReg, Pointer, Tile, UReg, VReg
from ascsim.machine.words import BLayout, PadValue, Pipe, SLayout, Space

ROWS, COLS = 4, 64
"""Valid rows and columns."""
_HEIGHTS = ((32, ROWS), (1, 1), (32, 1))
"""Rows and valid rows of tiles: 32, so that they may be turned column-major; or a single one."""
_GIVEN = (False, True)
"""Whether tiles that may be left out are there."""
_SCALARS = (1, 32, 0, 3, 64, 0x301)
_STEP = 32768


@cache
def example(definition: Definition, profile_name: str) -> SimpleNamespace:
    """A call that the profile takes without a finding; tiles and buffers lie apart.

    Raises:
        LookupError: none of those tried is one.
    """
    profile = profiles.load(profile_name)
    for call in _attempts(definition):
        try:
            if not issuable(definition).check(profile, arguments(definition, call)):
                return call
        except Refused:
            continue
    raise LookupError(f"no legal call of {definition.title} on {profile_name} was found")


def arguments(definition: Definition, call: SimpleNamespace) -> tuple[Any, ...]:
    """The operands of a call, in order."""
    return tuple(getattr(call, o.name) for o in definition.inputs)


def issuable(definition: Definition) -> Any:
    """What the machine issues: register instructions for their first types."""
    return definition.bind(**definition.variants[0]) if isinstance(definition, RegisterInstruction) else definition


def _attempts(definition: Definition) -> Iterator[SimpleNamespace]:
    """Calls with ever other types, widths and numbers."""
    choices = [_values(definition, o, number) for number, o in enumerate(definition.inputs)]
    tiles = [number for number, o in enumerate(definition.inputs) if o.sort in (Sort.TILE, Sort.GLOBAL)]
    names = [o.name for o in definition.inputs]
    if not tiles:
        for values in itertools.product(*choices):
            yield SimpleNamespace(**dict(zip(names, values, strict=True)))
        return
    others = list(itertools.product(*(c for n, c in enumerate(choices) if n not in tiles)))
    for given, height, rest in itertools.product(_GIVEN, _HEIGHTS, others):
        for kinds in _tile_types(len(tiles)):
            for columns in itertools.product((COLS, 2 * COLS, 4 * COLS, COLS // 2), repeat=min(len(tiles), 2)):
                made = iter(
                    _tile(definition.inputs[n], n, kind, width, height, given)
                    for n, kind, width in itertools.zip_longest(tiles, kinds, columns, fillvalue=COLS)
                )
                yield _filled(definition.inputs, tiles, made, rest)
            made = iter(_square(definition.inputs[n], n, kind) for n, kind in zip(tiles, kinds, strict=True))
            call = _filled(definition.inputs, tiles, made, rest)
            yield call
            if getattr(definition, "takes_vector", False):
                yield SimpleNamespace(**{**vars(call), "lhs": _one_row(call.lhs, 1), "dst": _one_row(call.dst, 16)})
            yield _with_a_column(definition, tiles, kinds, given, rest)


def _one_row(tile: Tile, rows: int) -> Tile:
    return replace(tile, rows=rows, valid_rows=1)


def _with_a_column(
    definition: Definition, tiles: Sequence[int], kinds: Sequence[DType], given: bool, rest: Sequence[Any]
) -> SimpleNamespace:
    """Tiles of one shape; the last that is read is one column."""
    made = [_tile(definition.inputs[n], n, k, COLS, _HEIGHTS[0], given) for n, k in zip(tiles, kinds, strict=True)]
    last = max((i for i, n in enumerate(tiles) if definition.inputs[n].role is Role.IN), default=0)
    column = made[last]
    if isinstance(column, Tile):
        made[last] = replace(column, blayout=BLayout.COL_MAJOR, cols=1, valid_cols=1)
    return _filled(definition.inputs, tiles, iter(made), rest)


def _filled(
    inputs: Sequence[Operand], tiles: Sequence[int], made: Iterator[Any], rest: Sequence[Any]
) -> SimpleNamespace:
    left, names = iter(rest), [o.name for o in inputs]
    call = SimpleNamespace(**{name: next(made) if n in tiles else next(left) for n, name in enumerate(names)})
    with_bias = any(Space.BT in o.lies_in for o in inputs)
    for operand in inputs:
        setattr(call, operand.name, _placed(operand, getattr(call, operand.name), with_bias))
    for operand in inputs:
        if operand.shares:
            setattr(call, operand.name, getattr(call, operand.name).at(getattr(call, operand.shares).address))
    return call


def _tile_types(count: int) -> Iterator[Sequence[DType]]:
    for kind in DTYPES.values():
        yield [kind] * count
    for kind in DTYPES.values():
        yield [u32, kind, *[DTYPES["u8"]] * (count - 2)][:count]
    for first, second in itertools.product((f32, f16), DTYPES.values()):
        yield ([first] * 2 + [second] * (count - 2))[:count]
        yield [second] + [first] * (count - 1)
        yield [first] * (count - 1) + [second]
        yield ([first, second] + [first] * (count - 2))[:count]
        yield [first] * (count // 2) + [second] * (count - count // 2)


def _tile(
    operand: Operand, number: int, kind: Any, columns: Any, height: tuple[int, int], given: bool = False
) -> Tile | GlobalTensor | None:
    if operand.optional and not given:
        return None
    if operand.sort is Sort.GLOBAL:
        rows = ROWS if height[1] == ROWS or height[0] == 32 else 1
        return GlobalTensor(kind, number * _STEP, (1, 1, 1, rows, COLS), (0, 0, 0, COLS, 1), name=operand.name)
    pad = PadValue.ZERO if operand.role is Role.OUT else PadValue.NULL
    rows, valid = height
    return Tile(kind, rows, columns, valid, columns, number * _STEP, pad=pad, name=operand.name)


_NZ: dict[str, Any] = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.ROW_MAJOR}
_BOXES: dict[Space, dict[str, Any]] = {
    Space.L1: _NZ, Space.L0A: _NZ, Space.L0B: {"slayout": SLayout.COL_MAJOR}, Space.L0C: {**_NZ, "fractal": 1024},
}  # fmt: skip
"""How tiles lie in the cube's memories."""


def _placed(operand: Operand, made: Any, with_bias: bool) -> Any:
    """The operand in the memory that it names, in the boxes that it has there."""
    if not operand.lies_in or made is None:
        return made
    space = operand.lies_in[-1]
    if space is Space.BT:
        return replace(made, space=space, rows=1, valid_rows=1, address=0)
    if space is Space.L1 and with_bias:
        return replace(made, space=space, rows=1, valid_rows=1)
    rows = 16 if space is Space.L0C and made.valid_rows == ROWS else 32
    return replace(made, space=space, rows=rows, **_BOXES[space])


def _square(operand: Operand, number: int, kind: DType) -> Tile | GlobalTensor | None:
    """The same with as many rows as columns, all of them valid."""
    made = _tile(operand, number, kind, COLS, _HEIGHTS[0])
    return replace(made, rows=32, cols=32, valid_rows=32, valid_cols=32) if isinstance(made, Tile) else made


def _values(definition: Definition, operand: Operand, number: int) -> list[Any]:
    variants = getattr(definition, "variants", ({},))
    types: dict[str, DType] = variants[0] if variants else {}
    kind = types.get(operand.dtype, f32) if isinstance(operand.dtype, str) else operand.dtype
    if operand.optional:
        others = list(operand.enum) if operand.sort is Sort.ENUM and operand.default is None else []  # type: ignore[call-overload]
        return [operand.default, *others]
    match operand.sort:
        case Sort.POINTER:
            return [Pointer(operand.space, number * _STEP, kind, operand.name)]
        case Sort.VREG:
            return [VReg(kind or u32)]
        case Sort.MREG:
            return [MReg()]
        case Sort.UREG:
            return [UReg()]
        case Sort.SCALAR:
            return list(_SCALARS)
        case Sort.ENUM:
            if operand.enum is Pipe:
                return [Pipe.MTE2, Pipe.MTE3, Pipe.V]
            return [0] if operand.enum in (int, None) else list(operand.enum)[:1]  # type: ignore[call-overload]
    return [None]
