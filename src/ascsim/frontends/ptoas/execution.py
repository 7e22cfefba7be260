"""What the instructions of a ``.pto`` file do: each becomes one ``machine.issue``.

The structures of the dialect (tiles, views, pointers) are values of the machine made here; everything else is found in
the instruction registry when the file is bound, so running an instruction is reading its slots and issuing it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from ascsim.diagnostics import Diagnostic, Fault, Place, Refused, Site, UserError
from ascsim.frontends.launch import Launch
from ascsim.frontends.placement import Placement
from ascsim.frontends.ptoas.dialect import AssignTile, Instruction
from ascsim.frontends.ptoas.lowering import Bound, Call, Ref
from ascsim.frontends.ptoas.matching import counted, is_counts, match, typed
from ascsim.frontends.ptoas.types import (
    DYNAMIC,
    LOCATIONS,
    PointerType,
    TileType,
    ViewType,
    Word,
)
from ascsim.frontends.ptoas.types import Tile as TileSpec
from ascsim.isa.definition import BoundRegisterInstruction, Definition, RegisterInstruction, Registry
from ascsim.machine.operands import NO_ADDRESS, GlobalTensor, Pointer, Tile
from ascsim.machine.words import BLayout, CompactMode, SLayout, Space
from ascsim.profiles import Profile

LAYOUTS = {"nd": 0, "dn": 1, "nz": 2}
MAX_RANK = 5


def tile_of(spec: TileSpec, name: str = "") -> Tile:
    """The machine's tile for a tile type, without an address; extents written ``?`` are the whole tile's."""
    return Tile(
        dtype=spec.dtype,
        rows=spec.rows,
        cols=spec.cols,
        valid_rows=spec.rows if spec.valid_rows == DYNAMIC else spec.valid_rows,
        valid_cols=spec.cols if spec.valid_cols == DYNAMIC else spec.valid_cols,
        address=NO_ADDRESS,
        space=LOCATIONS[spec.location],
        blayout=BLayout[spec.blayout.upper()],
        slayout=SLayout[spec.slayout.upper()],
        fractal=spec.fractal,
        pad=spec.pad,
        name=name,
        compact=CompactMode(spec.compact),
    )


def _with_counts(run: Callable[[tuple[Any, ...]], Any], call: Call) -> Bound:
    """An instruction that yields counts, or none: what stands for them among the text's outputs takes them."""
    places = [p for p, _ in enumerate(call.operand_types) if is_counts(Ref(p), call.operand_types)]
    if not places:
        return Bound(run)
    place = places[0]

    def updated(values: tuple[Any, ...]) -> Any:
        counts = run(values)
        return values[place] if counts is None else counts

    return Bound(updated, rebinds=(place,))


def global_tensor(base: Pointer, kind: Any, shape: Sequence[int], strides: Sequence[int], layout: int) -> GlobalTensor:
    """A view of at most five dimensions as the machine's, filled up with ones in front."""
    a, b, c, d, e = (1,) * (MAX_RANK - len(shape)) + tuple(shape)
    f, g, h, i, j = (1,) * (MAX_RANK - len(shape)) + tuple(strides)
    return GlobalTensor(kind, base.offset, (a, b, c, d, e), (f, g, h, i, j), layout, base.name)


class Executor:
    """A :class:`~ascsim.frontends.ptoas.lowering.Handler` that issues to the machine of the launch it is given."""

    def __init__(self, profile: Profile, registry: Registry) -> None:
        self.profile = profile
        self.registry = registry
        self.placement = Placement(profile)
        self.running: Launch | None = None
        self._sites: list[Site] = []
        self._numbers: list[int] = []
        self._numbered: Any = None
        self.pending: dict[str, Callable[[Tile], None]] = {}
        """Tile arguments without an address yet, and what fills them once they have one."""
        self.refusals: list[Diagnostic] = []
        """What the profile refuses of the instructions bound so far, as far as it shows before a run."""

    def begin(self, launch: Launch) -> None:
        """Issue to this launch's core from now on."""
        self.running = launch
        if self._numbered is not launch.machine:
            self._numbered = launch.machine
            self._numbers = [launch.machine.site(s.path, s.line, s.column, s.function) for s in self._sites]

    # The handler's three

    def bind(self, call: Call) -> Bound:
        """See :class:`~ascsim.frontends.ptoas.lowering.Handler`."""
        structure = _STRUCTURES.get(call.name)
        if structure is not None:
            return structure(self, call)
        return self._instruction(call)

    def enter(self, call: Call) -> Callable[[tuple[Any, ...]], bool]:
        """Sections of the other kind of core are passed over; vector scopes run."""
        side = {"section.cube": "aic", "section.vector": "aiv"}.get(call.name)
        if side is None:
            return lambda values: True
        return lambda values: self.running is not None and self.running.core.side == side

    def leave(self, call: Call) -> Callable[[], None]:
        """See :class:`~ascsim.frontends.ptoas.lowering.Handler`."""
        return lambda: None

    # Instructions

    def _instruction(self, call: Call) -> Bound:
        found = match(call, self.registry, self.profile.name)
        definition: Definition | BoundRegisterInstruction = found.definition
        arguments = found.reader()
        number = len(self._sites)
        self._sites.append(call.site)
        try:
            found.definition.check_profile(self.profile)
            if isinstance(definition, RegisterInstruction):
                definition = typed(found, call)
        except Refused as refusal:
            return self._refuse(refusal, call, found.definition)
        title = found.definition.title

        def run(values: tuple[Any, ...]) -> Any:
            running = self.running
            assert running is not None
            try:
                return running.machine.issue(running.core, definition, arguments(values), self._numbers[number])
            except (Refused, Fault) as stop:
                stop.diagnostic = _in_text(stop.diagnostic, call, title)
                raise

        if counted(found.definition):
            return _with_counts(run, call)
        return Bound(run)

    def _refuse(self, refusal: Refused, call: Call, definition: Definition | None = None) -> Bound:
        """An instruction that is refused when it is reached."""
        diagnostic = _in_text(refusal.diagnostic, call, definition.title if definition else "")
        self.refusals.append(diagnostic)

        def run(values: tuple[Any, ...]) -> Any:
            raise Refused(diagnostic)

        return Bound(run)

    # Structures

    def _alloc(self, call: Call) -> Bound:
        spec = _tile_spec(call)
        made = tile_of(spec, call.result_names[0])
        for keyword, extent, said in (("valid_row", spec.valid_rows, "v_row"), ("valid_col", spec.valid_cols, "v_col")):
            if call.given(keyword) and extent != DYNAMIC:
                raise UserError(
                    f"the type says {said}={extent}, so {keyword} has no place here; write {said}=?", call.site
                )
        address = _getter(call, "addr")
        valid_rows, valid_cols = _getter(call, "valid_row"), _getter(call, "valid_col")
        if address is None and not _is_assigned(call.operation):
            try:
                made = self.placement.place(made)
            except Refused as refusal:
                return self._refuse(refusal, call)
        if not (address or valid_rows or valid_cols):
            return Bound(lambda values: made)

        def alloc(values: tuple[Any, ...]) -> Tile:
            return replace(
                made,
                address=address(values) if address else made.address,
                valid_rows=valid_rows(values) if valid_rows else made.valid_rows,
                valid_cols=valid_cols(values) if valid_cols else made.valid_cols,
            )

        return Bound(alloc)

    def _assign(self, call: Call) -> Bound:
        if len(call.operand_types) != 2 or not isinstance(call.operand_types[0], TileType):
            raise UserError("pto.tassign takes a tile and an address, as in pto.tassign %t, tile(0x1000)", call.site)

        def assign(values: tuple[Any, ...]) -> tuple[Tile, Tile]:
            tile = values[0].at(values[1])
            fill = self.pending.pop(tile.name, None) if self.pending else None
            if fill is not None:
                fill(tile)
            return tile, tile

        return Bound(assign, rebinds=(0,))

    def _tensor_view(self, call: Call) -> Bound:
        view = call.result_types[0]
        shape, strides = _getters(call, "shape"), _getters(call, "strides")
        if not isinstance(view, ViewType) or len(shape) != len(strides) or len(shape) != len(view.data.shape):
            raise UserError(
                "pto.make_tensor_view takes as many sizes and strides as its type has dimensions", call.site
            )
        _check_rank(call, len(shape))
        kind = view.data.dtype
        layout = _layout(call)

        def make(values: tuple[Any, ...]) -> GlobalTensor:
            return global_tensor(
                values[0], kind, [get(values) for get in shape], [get(values) for get in strides], layout
            )

        return Bound(make)

    def _partition(self, call: Call) -> Bound:
        offsets, sizes = _getters(call, "offsets"), _getters(call, "sizes")
        rank = len(sizes)
        if not rank or len(offsets) != rank:
            raise UserError("pto.partition_view takes as many offsets as sizes", call.site)
        _check_rank(call, rank)
        fill = (1,) * (MAX_RANK - rank)

        def part(values: tuple[Any, ...]) -> GlobalTensor:
            whole: GlobalTensor = values[0]
            strides = whole.strides[MAX_RANK - rank :]
            at = sum(get(values) * stride for get, stride in zip(offsets, strides, strict=True))
            shape = (*fill, *(get(values) for get in sizes))
            return replace(whole, address=whole.address + at * whole.dtype.size, shape=shape)

        return Bound(part)

    def _tile_view(self, call: Call) -> Bound:
        if not call.result_types and len(call.given("outs")) == 1:  # in destination form the view is bound to outs
            return Bound(lambda values: replace(values[-1], address=values[0].address), (len(call.operand_types) - 1,))
        spec = _tile_spec(call)
        shape = tile_of(spec, call.result_names[0])
        rows, cols = _getter(call, "", 1), _getter(call, "", 2)

        def view(values: tuple[Any, ...]) -> Tile:
            seen = replace(shape, address=values[0].address, space=values[0].space)
            if rows is not None and cols is not None:
                return replace(seen, valid_rows=rows(values), valid_cols=cols(values))
            return seen

        return Bound(view)

    def _sub_tile(self, call: Call) -> Bound:
        row, col = (_operand(s) for s in call.arguments[""][0].subscripts)
        rows, cols = call.given("sizes")
        name = call.result_names[0]

        def sub(values: tuple[Any, ...]) -> Tile:
            whole: Tile = values[0]
            first = whole.byte_of(row(values), col(values))
            return replace(
                whole, address=first, rows=whole.rows - row(values), valid_rows=rows, valid_cols=cols, name=name
            )

        return Bound(sub)

    def _sub_view(self, call: Call) -> Bound:
        if not isinstance(call.operand_types[0], TileType):
            return self._partition(call)
        shape, name = tile_of(_tile_spec(call)), call.result_names[0]
        row, col = _getter(call, "", 1), _getter(call, "", 2)
        if row is None or col is None:
            raise UserError("pto.subview takes a tile, a row and a column", call.site)

        def sub(values: tuple[Any, ...]) -> Tile:
            whole: Tile = values[0]
            first, rows = whole.byte_of(row(values), col(values)), whole.rows - row(values)
            valid_rows, valid_cols = shape.valid_rows, shape.valid_cols
            return replace(whole, address=first, rows=rows, valid_rows=valid_rows, valid_cols=valid_cols, name=name)

        return Bound(sub)

    def _add_pointer(self, call: Call) -> Bound:
        amount = _getter(call, "", 1)
        if amount is None:
            raise UserError("pto.addptr takes a pointer and a number of elements", call.site)
        return Bound(lambda values: values[0] + amount(values))

    def _cast_pointer(self, call: Call) -> Bound:
        target = call.result_types[0]
        if not isinstance(target, PointerType):
            return Bound(lambda values: values[0].offset if isinstance(values[0], Pointer) else values[0])
        space, kind = Space[target.data.space.upper()], target.data.dtype
        name = call.result_names[0]

        def cast(values: tuple[Any, ...]) -> Pointer:
            value = values[0]
            if isinstance(value, Pointer):
                return value._replace(space=space, dtype=kind)
            return Pointer(space, value, kind, name)

        return Bound(cast)

    def _tile_address(self, call: Call) -> Bound:
        target = call.result_types[0]
        kind = target.data.dtype if isinstance(target, PointerType) else None
        return Bound(
            lambda values: Pointer(values[0].space, values[0].address, kind or values[0].dtype, values[0].name)
        )

    def _view_address(self, call: Call) -> Bound:
        return Bound(lambda values: Pointer(Space.GM, values[0].address, values[0].dtype, values[0].name))

    def _view_size(self, call: Call) -> Bound:
        view, number = call.operand_types[0], _getter(call, "", 1)
        if not isinstance(view, ViewType) or number is None:
            raise UserError("pto.get_tensor_view_dim takes a view and the number of a dimension", call.site)
        fill = MAX_RANK - len(view.data.shape)
        return Bound(lambda values: values[0].shape[fill + number(values)])

    def _valid_shape(self, call: Call) -> Bound:
        rows, cols = _getter(call, "", 1), _getter(call, "", 2)
        if rows is None or cols is None:
            raise UserError("pto.set_validshape takes a tile, its valid rows and its valid columns", call.site)
        return Bound(lambda values: replace(values[0], valid_rows=rows(values), valid_cols=cols(values)), rebinds=(0,))


_STRUCTURES: dict[str, Callable[[Executor, Call], Bound]] = {
    "alloc_tile": Executor._alloc,
    "tassign": Executor._assign,
    "make_tensor_view": Executor._tensor_view,
    "partition_view": Executor._partition,
    "subview": Executor._sub_view,
    "treshape": Executor._tile_view,
    "bitcast": Executor._tile_view,
    "bind_tile": Executor._tile_view,
    "subset": Executor._sub_tile,
    "addptr": Executor._add_pointer,
    "castptr": Executor._cast_pointer,
    "tile_buf_addr": Executor._tile_address,
    "tensor_view_addr": Executor._view_address,
    "get_tensor_view_dim": Executor._view_size,
    "set_validshape": Executor._valid_shape,
}

VIEWS = frozenset(_STRUCTURES) - {"alloc_tile"}
"""Names of what yields another way to the bytes of its first operand."""


def _in_text(diagnostic: Diagnostic, call: Call, title: str) -> Diagnostic:
    """A refusal in the words of the text: the instruction by its name there, and where it stands."""
    name = f"pto.{call.name}"
    headline = diagnostic.headline
    if title and headline.startswith(title):
        headline = name + headline[len(title) :]
    return replace(diagnostic, headline=headline, places=(Place(name, call.site),))


def _tile_spec(call: Call) -> TileSpec:
    kind = call.result_types[0] if call.result_types else None
    if not isinstance(kind, TileType):
        raise UserError(f"pto.{call.name} makes a tile; its result has a tile type", call.site)
    return kind.data


def _operand(value: Any) -> Callable[[tuple[Any, ...]], Any]:
    if isinstance(value, Ref):
        position = value.position
        return lambda values: values[position]
    return lambda values: value


def _getter(call: Call, keyword: str, number: int = 0) -> Callable[[tuple[Any, ...]], Any] | None:
    """The function that reads argument ``number`` under a keyword; None if there is none."""
    given = call.given(keyword)
    return _operand(given[number]) if number < len(given) else None


def _getters(call: Call, keyword: str) -> list[Callable[[tuple[Any, ...]], Any]]:
    return [_operand(value) for value in call.given(keyword)]


def _check_rank(call: Call, rank: int) -> None:
    if rank > MAX_RANK:
        raise UserError(
            f"pto.{call.name} with {rank} dimensions is not implemented; views have up to {MAX_RANK}", call.site
        )


def _layout(call: Call) -> int:
    word = call.attributes.get("layout")
    text = word.text if isinstance(word, Word) else word
    if text is None:
        return LAYOUTS["dn" if _stands_on_end(call) else "nd"]
    if text not in LAYOUTS:
        raise UserError(f"'{text}' is not a layout; allowed are {', '.join(LAYOUTS)}", call.site)
    return LAYOUTS[text]


def _stands_on_end(call: Call) -> bool:
    """Whether a view is a dense matrix of columns, all sizes and strides constants: PTOAS infers DN then."""
    shape, strides = (
        [constant_of(a.value) for a in call.operation.arguments_of(word)] for word in ("shape", "strides")
    )
    if len(shape) < 2 or None in shape or None in strides:
        return False
    rows, cols = (size or 0 for size in shape[-2:])
    return rows > 1 and cols > 1 and strides[-2:] == [1, rows]


def _is_assigned(op: Instruction) -> bool:
    """Does ``pto.tassign`` give the tile an address later?"""
    return is_assigned(op.results[0])


def is_assigned(tile: SSAValue) -> bool:
    """Does a ``pto.tassign`` give this tile an address?"""
    return any(isinstance(use.operation, AssignTile) and use.index == 0 for use in tile.uses)


def constant_of(value: Any) -> int | None:
    """The number behind a value that is a literal or an ``arith.constant``."""
    if isinstance(value, int):
        return value
    owner = getattr(value, "owner", None)
    if getattr(owner, "name", "") == "arith.constant":
        attribute = owner.properties["value"]  # type: ignore[union-attr]
        return attribute.value.data if isinstance(attribute, IntegerAttr) else None
    return None


def copy_in(tile: Tile, array: np.ndarray, launch: Launch) -> None:
    """Put an array's elements into a tile's valid part."""
    view = launch.core.view(tile.region())
    view[...] = array.reshape(view.shape)


def copy_out(tile: Tile, array: np.ndarray, launch: Launch) -> None:
    """Take a tile's valid part into an array."""
    array[...] = launch.core.view(tile.region()).reshape(array.shape)
