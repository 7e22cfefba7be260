"""What is done to a file after it has been read, so that everything behind the parser sees one form.

A list of statements becomes a function; tile instructions get destinations; literal addresses become
constants; types that nobody stated become ``i64``; and what xDSL's parser lets through (a value used before
its definition, an operation with wrong types) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import FunctionType, IntegerAttr, ModuleOp, VectorType, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ascsim.frontends.ptoas.dialect import (
    OPERAND,
    STRUCTURES,
    AllocTile,
    AssignTile,
    Group,
    Instruction,
    SyntaxAttr,
    site_of,
)
from ascsim.frontends.ptoas.types import UNSTATED, TileType

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

    from ascsim.frontends.ptoas.parser import PtoParser

_PLACEHOLDER = re.compile(r"arg(\d+)")


def normalize(module: ModuleOp, parser: PtoParser) -> None:
    """Bring a freshly read module into the one form, in place.

    Raises:
        UserError: a value is used before it is defined, a type stays unknown, an operation is malformed.
    """
    listed = _wrap_statements(module, parser) if parser.statements else None
    for op in [*module.walk()]:
        if isinstance(op, Instruction):
            if isinstance(op, AssignTile):
                _name_address(op)
            elif _yields_tiles(op):
                _give_destinations(op)
    if listed is not None:
        _show_results(listed)
    for op in module.walk():
        for result in op.results:
            if result.type is UNSTATED:
                result._type = i64
    for function in module.walk():
        if function.name == "func.func" and len(function.regions[0].blocks) == 1:
            _check_order(function.regions[0].block, set(), parser)
    for op in module.walk():
        if op.name.startswith("memref."):
            continue  # xDSL's rules for these are narrower than MLIR's, and nothing here runs them
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as problem:
            raise parser.error_at(f"{op.name}: {_first_line(problem)}", op) from None


def _first_line(problem: Exception) -> str:
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), "malformed operation")


# A bare list of statements


def _wrap_statements(module: ModuleOp, parser: PtoParser) -> FuncOp:
    """Make the statements outside functions the body of one, with what they use and do not define as arguments."""
    from xdsl.dialects.func import FuncOp, ReturnOp

    block = Block(parser.statements)
    _bind_placeholders(block, parser)
    for name, references in [*parser.forward_ssa_references.items()]:
        for reference in references.values():
            if reference.type is UNSTATED and name in parser.likely_types:
                reference._type = parser.likely_types[name]
            if reference.type is UNSTATED:
                span = parser.first_uses[name]
                raise parser.user_error(
                    f"%{name} is not defined in this list of statements, so it is an argument of the kernel, "
                    "but nothing says its type; write types behind the colon, as in ': !pto.tile<16x32xf32>'",
                    span.start,
                    span.end,
                )
            argument = block.insert_arg(reference.type, len(block.args))
            argument._name = name
            reference.replace_all_uses_with(argument)
    parser.forward_ssa_references.clear()
    last = block.last_op
    if last is None or last.name != "func.return":
        block.add_op(ReturnOp())
    name = re.sub(r"\W", "_", Path(parser.path).stem.strip("<>")) or "kernel"
    function = FuncOp(
        f"_{name}" if name[0].isdigit() else name,
        FunctionType.from_lists([a.type for a in block.args], []),
        Region(block),
    )
    function.location = parser.location(0)
    module.body.block.add_op(function)
    return function


def _show_results(function: FuncOp) -> None:
    """Make the tiles that a list of statements computes and does not use arguments: they are what it is there for."""
    block = function.body.block
    for op in [*block.ops]:
        if not isinstance(op, AllocTile) or op.operands:
            continue
        tile = op.results[0]
        users = [use.operation for use in tile.uses]
        makers = [
            user for user in users if not (isinstance(user, AssignTile) and not any(r.first_use for r in user.results))
        ]
        if len(makers) != 1 or site_of(makers[0]) != site_of(op):
            continue  # it is written out as an alloc_tile, or something reads it
        argument = block.insert_arg(tile.type, len(block.args))
        argument._name = tile._name
        tile.replace_all_uses_with(argument)
        block.erase_op(op)
    function.update_function_type()


def _bind_placeholders(block: Block, parser: PtoParser) -> None:
    """``pto.tassign %arg1, tile(0x2000)`` before an instruction means the instruction's tile number 1.

    The manual writes manual mode so; the tiles count in the order of the text, inputs before results. A name
    that the file gives to a value of its own is that value.
    """
    for name, references in [*parser.forward_ssa_references.items()]:
        number = _PLACEHOLDER.fullmatch(name)
        value = references.get(0)
        if number is None or value is None or value.type is not UNSTATED:
            continue
        for use in tuple(value.uses):
            assign = use.operation
            if not isinstance(assign, AssignTile):
                break
            tiles = _tiles_of_next_instruction(assign)
            if int(number[1]) >= len(tiles):
                raise parser.error_at(
                    f"%{name} is not defined; before an instruction it would mean the instruction's tile "
                    f"number {number[1]}, counted from 0, but the next instruction has {len(tiles)} tile(s)",
                    assign,
                )
            assign.operands[use.index] = tiles[int(number[1])]
        if value.first_use is None:
            del parser.forward_ssa_references[name]


def _tiles_of_next_instruction(op: Operation) -> list[SSAValue]:
    following = op.next_op
    while following is not None and (isinstance(following, AssignTile) or not isinstance(following, Instruction)):
        following = following.next_op
    if following is None:
        return []
    return [v for v in (*following.operands, *following.results) if isinstance(v.type, TileType)]


# Destinations


def _yields_tiles(op: Instruction) -> bool:
    """Is ``op`` a tile instruction in the SSA form? What yields a tile out of nothing (a pop from a pipe) is
    not.
    """
    return (
        op.mnemonic not in STRUCTURES
        and bool(op.results)
        and bool(op.operands)
        and isinstance(op.results[0].type, TileType)
        and all(isinstance(r.type, TileType | VectorType) for r in op.results)
    )


def _give_destinations(op: Instruction) -> None:
    """``%d = pto.x %a : (A) -> D`` becomes ``%d = pto.alloc_tile : D`` and ``pto.x ins(%a : A) outs(%d :
    D)``. A result that is no tile (the counts of a merge) stays one.
    """
    block = op.parent
    assert block is not None
    if any(isinstance(i, Group) and i.keyword == "outs" for i in op.items):
        for result, argument in zip(op.results, op.arguments_of("outs"), strict=False):
            result.replace_all_uses_with(argument.value)
        destinations: list[SSAValue] = []
    else:
        destinations = [_allocate(result, op) for result in op.results if isinstance(result.type, TileType)]
    items, operands = _with_outputs(op, destinations)
    kept = [result for result in op.results if not isinstance(result.type, TileType)]
    new = type(op).create(
        operands=operands, result_types=[result.type for result in kept], properties={"syntax": SyntaxAttr(items)},
        location=op.location, regions=[],
    )  # fmt: skip
    for before, after in zip(kept, new.results, strict=True):
        after._name = before._name
        before.replace_all_uses_with(after)
    block.insert_op_before(new, op)
    block.erase_op(op)


def _allocate(result: SSAValue, op: Instruction) -> SSAValue:
    """A tile for ``result``, allocated before ``op`` or before an earlier use (an address may be assigned
    first).
    """
    block = op.parent
    assert block is not None
    users = {use.operation for use in result.uses}
    place: Operation = op
    previous = op.prev_op
    while previous is not None:
        if previous in users:
            place = previous
        previous = previous.prev_op
    alloc = AllocTile.create(result_types=[result.type], properties={"syntax": SyntaxAttr(())}, location=op.location)
    alloc.results[0]._name = result._name
    block.insert_op_before(alloc, place)
    result.replace_all_uses_with(alloc.results[0])
    return alloc.results[0]


def _with_outputs(op: Instruction, outputs: Sequence[SSAValue]) -> tuple[tuple[Any, ...], list[SSAValue]]:
    """(items, operands) of ``op`` with its plain items inside ``ins`` and ``outputs`` in ``outs``."""
    operands = iter(op.operands)
    inputs: list[Any] = []
    rest: list[Any] = []
    taken: list[SSAValue] = []
    left: list[SSAValue] = []
    for item in op.items:
        own = [next(operands) for _ in range(_count(item))]
        if isinstance(item, Group) and item.keyword == "ins":
            inputs.extend(item.items)
            taken += own
        elif (isinstance(item, Group) and item.style != "at") or _is_dictionary(item):
            rest.append(item)
            left += own
        else:
            inputs.append(item)
            taken += own
    head = [Group("ins", "()", tuple(inputs))]
    if outputs:
        head.append(Group("outs", "()", (OPERAND,) * len(outputs)))
    return (*head, *rest), [*taken, *outputs, *left]


def _is_dictionary(item: Any) -> bool:
    from xdsl.dialects.builtin import DictionaryAttr

    return isinstance(item, DictionaryAttr)


def _count(item: Any) -> int:
    """Operands within an item."""
    if isinstance(item, Group):
        return sum(_count(i) for i in item.items)
    return int(item is OPERAND)


# Addresses


def _name_address(op: AssignTile) -> None:
    """A literal address becomes a constant, and the operation yields the tile it binds."""
    from xdsl.dialects.arith import ConstantOp

    block = op.parent
    assert block is not None
    operands = list(op.operands)
    items = list(op.items)
    literal = next((i for i, item in enumerate(items) if isinstance(item, int)), None)
    if literal is None and op.results:
        return
    if literal is not None:
        constant = ConstantOp(IntegerAttr(items[literal], i64))
        constant.location = op.location
        block.insert_op_before(constant, op)
        items[literal] = OPERAND
        operands.append(constant.result)
    types: list[Attribute] = [operands[0].type] if operands else []
    new = AssignTile.create(
        operands=operands,
        result_types=types,
        properties={"syntax": SyntaxAttr(tuple(items))},
        location=op.location,
    )
    block.insert_op_before(new, op)
    for old, result in zip(op.results, new.results, strict=False):
        result._name = old._name
        old.replace_all_uses_with(result)
    block.erase_op(op)


# Order


def _check_order(block: Block, known: set[SSAValue], parser: PtoParser) -> None:
    """Refuse values used before their definition; ``known`` are those defined before the block."""
    known = known.union(block.args)
    for op in block.ops:
        for value in op.operands:
            if value not in known:
                raise parser.error_at(
                    f"%{value._name} is used here but defined further down{_line_of(value)}; a value is "
                    "defined before its first use",
                    op,
                )
        for region in op.regions:
            for inner in region.blocks:
                _check_order(inner, known, parser)
        known.update(op.results)


def _line_of(value: SSAValue) -> str:
    if isinstance(value, BlockArgument):
        return ""
    owner = value.owner
    return f" (line {site_of(owner).line})" if isinstance(owner, Operation) and site_of(owner).line else ""
