"""The operations of the ``pto`` dialect.

Every instruction is one class, :class:`Instruction`: its name, operands, results and the shape of its text
(:class:`SyntaxAttr`), so that no instruction is listed here and a new one needs no line of this file. Classes
of their own are only the operations that make or describe values (tiles, views, pointers) and those that hold
a region.

The shape of the text is a tuple of *items* in the order written:

==================  ==========================================================
``OPERAND``         the next operand
``str, int, ...``   a literal
:class:`Word`       ``<PIPE_V>`` or ``#pto.pipe<PIPE_V>``
:class:`Flag`       a bare word, ``nosat``
:class:`Symbol`     ``@name``
:class:`Group`      ``ins(..)``, ``[..]``, ``addr = ..``, ``shape = [..]``, ``%p[..]``
``DictionaryAttr``  ``{exhausted = false}``
==================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FileLineColLoc,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
)
from xdsl.ir import Attribute, Data, Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator

from ascsim.diagnostics import Site
from ascsim.frontends.ptoas.types import Pointer, PointerType, TileType, ViewType, Word, WordAttr, is_scalar


@dataclass(frozen=True)
class Flag:
    """A word that stands alone among the operands, such as ``nosat``."""

    text: str


@dataclass(frozen=True)
class Symbol:
    """``@name``."""

    name: str


class _Operand:
    """The place of an operand among the items; there is one, :data:`OPERAND`."""

    def __repr__(self) -> str:
        return "OPERAND"

    def __reduce__(self) -> str:
        return "OPERAND"


OPERAND = _Operand()


@dataclass(frozen=True)
class Group:
    """Items held together: ``keyword`` before them and ``style`` around them.

    Styles are ``()``, ``[]``, ``=`` (one item), ``=[]`` and ``at`` (subscripts of the item before).
    """

    keyword: str
    style: str
    items: tuple[Any, ...]

    @property
    def states_types(self) -> bool:
        """True where the types of the operands stand inside the parentheses, not at the end of the line."""
        return self.style == "()" and self.keyword in ("", "ins", "outs")


@irdl_attr_definition
class SyntaxAttr(Data[tuple[Any, ...]]):
    """The items of an instruction's text."""

    name = "pto.syntax"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Any, ...]:
        raise NotImplementedError("the syntax of an instruction is not written as an attribute")

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data!r}>")


@dataclass(frozen=True)
class Argument:
    """One thing written after an instruction's name: an operand or a literal, and its subscripts."""

    value: Any
    subscripts: tuple[Any, ...] = ()


@irdl_op_definition
class Instruction(IRDLOperation):
    """Any instruction; ``mnemonic`` says which."""

    name = "pto.instruction"

    arguments = var_operand_def()
    outputs = var_result_def()
    bodies = var_region_def()
    syntax = prop_def(SyntaxAttr)

    traits = traits_def(NoTerminator())

    TYPES_ARE_RESULTS: ClassVar[bool] = False
    """The types after the colon are those of the results, as in ``pto.alloc_tile : T``."""
    RESULT_IS_IMPLIED: ClassVar[bool] = False
    """The text never states the result's type; :meth:`imply` says it."""
    LISTED_TYPES: ClassVar[int] = 1 << 30
    """How many operands have their types behind the colon; the others' are fixed."""
    SEPARATOR: ClassVar[str] = ", "
    HAS_REGION: ClassVar[bool] = False

    @classmethod
    def parse(cls, parser: Parser) -> Instruction:
        """Read the instruction after its name; ``parser`` is ours."""
        return parser.parse_instruction(cls)  # type: ignore[attr-defined]

    def print(self, printer: Printer) -> None:
        """Print what follows the name."""
        _InstructionText(self, printer).print()

    @property
    def mnemonic(self) -> str:
        """The name without the dialect, such as ``tsort32`` or ``tmatmul.acc``."""
        return self.name.removeprefix("pto.")

    @property
    def items(self) -> tuple[Any, ...]:
        """The items of the text, see the module."""
        return self.syntax.data

    def arguments_of(self, keyword: str = "") -> list[Argument]:
        """What stands under ``keyword`` (``ins``, ``shape``, ``addr``, ...); ``""`` for what stands under
        none.
        """
        return self.written()[0].get(keyword, [])

    def written(self, operands: Sequence[Any] = ()) -> tuple[dict[str, list[Argument]], dict[str, Any]]:
        """(arguments by keyword, attributes by name); attribute values are plain Python where they can be.

        ``operands`` may give other things to stand for the SSA values, one each.
        """
        found: dict[str, list[Argument]] = {}
        attributes: dict[str, Any] = {}
        _collect(self.items, "", iter(operands or self.operands), found, attributes)
        return found, attributes

    @classmethod
    def imply(cls, operand_types: Sequence[Attribute], items: Sequence[Any]) -> Attribute:
        """The type of the result, for classes whose text never states it."""
        raise NotImplementedError

    @classmethod
    def likely_source(cls, result_types: Sequence[Attribute]) -> Attribute | None:
        """The type of an operand that nothing states, judged by the results; None where it cannot be told."""
        return None


def _collect(
    items: Sequence[Any],
    keyword: str,
    operands: Iterator[Any],
    found: dict[str, list[Argument]],
    attributes: dict[str, Any],
) -> None:
    for item in items:
        if isinstance(item, Group):
            if item.style == "at":
                inside: dict[str, list[Argument]] = {}
                _collect(item.items, "", operands, inside, attributes)
                listed = found[keyword]
                listed[-1] = Argument(listed[-1].value, tuple(a.value for a in inside.get("", ())))
            else:
                _collect(item.items, item.keyword or keyword, operands, found, attributes)
        elif isinstance(item, DictionaryAttr):
            attributes.update((key, plain(value)) for key, value in item.data.items())
        else:
            value = next(operands) if item is OPERAND else item
            found.setdefault(keyword, []).append(Argument(value))


def plain(attribute: Attribute) -> Any:
    """An attribute as a Python value (int, float, bool, str, list, :class:`Word`); itself where there is
    none.

    A unit attribute, present without a value, is True.
    """
    match attribute:
        case UnitAttr():
            return True
        case IntegerAttr():
            value = attribute.value.data
            return bool(value) if attribute.type == i1 else value
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case WordAttr():
            return attribute.data
        case SymbolRefAttr():
            return Symbol(attribute.string_value())
        case ArrayAttr():
            return [plain(a) for a in attribute.data]
        case DenseArrayBase():
            return list(attribute.get_values())
        case _:
            return attribute


class AllocTile(Instruction):
    """``pto.alloc_tile [addr = %a] [valid_row = %r] [valid_col = %c] : TILE``: a tile, bound to an address or
    to be placed.
    """

    name = "pto.alloc_tile"
    TYPES_ARE_RESULTS = True
    SEPARATOR = " "


class AssignTile(Instruction):
    """``pto.tassign %tile, %address``: bind a tile to an address of its space."""

    name = "pto.tassign"
    LISTED_TYPES = 1


class MakeTensorView(Instruction):
    """``pto.make_tensor_view %p, shape = [..], strides = [..] : VIEW``: global memory seen as a tensor."""

    name = "pto.make_tensor_view"
    TYPES_ARE_RESULTS = True

    @classmethod
    def likely_source(cls, result_types: Sequence[Attribute]) -> Attribute | None:
        """A view's source is a pointer to its elements in GM."""
        view = result_types[0] if result_types else None
        return PointerType(Pointer(view.data.dtype)) if isinstance(view, ViewType) else None


class PartitionView(Instruction):
    """``pto.partition_view %v, offsets = [..], sizes = [..] : VIEW -> PART``: a box of a tensor view."""

    name = "pto.partition_view"


class TileView(Instruction):
    """Another view of a tile's bytes: reshape, reinterpret."""

    name = "pto.tile_view"


class SubTile(TileView):
    """``pto.subset %t[%row, %col] sizes [16, 16] : TILE``: a box of a tile."""

    name = "pto.subset"
    RESULT_IS_IMPLIED = True

    @classmethod
    def imply(cls, operand_types: Sequence[Attribute], items: Sequence[Any]) -> Attribute:
        """The source's type with the rows and columns of ``sizes``."""
        sizes = next((i.items for i in items if isinstance(i, Group) and i.keyword == "sizes"), ())
        source = operand_types[0] if operand_types else None
        if not isinstance(source, TileType) or len(sizes) != 2 or not all(isinstance(n, int) for n in sizes):
            raise ValueError("takes a tile, two offsets and two constant sizes, as in %t[%row, %col] sizes [16, 16]")
        rows, cols = sizes
        return TileType(replace(source.data, rows=rows, cols=cols, valid_rows=rows, valid_cols=cols))


class AddPointer(Instruction):
    """``pto.addptr %p, %n : PTR -> PTR``: a pointer ``n`` elements further on."""

    name = "pto.addptr"
    LISTED_TYPES = 1


class CastPointer(Instruction):
    """``pto.castptr %a : i64 -> PTR``: an address as a typed pointer, or a pointer as another."""

    name = "pto.castptr"


class Section(Instruction):
    """``pto.section.vector { .. }`` and its kind: code of one kind of core, or one vector function."""

    name = "pto.section"
    HAS_REGION = True


STRUCTURES: dict[str, type[Instruction]] = {
    "alloc_tile": AllocTile,
    "tassign": AssignTile,
    "make_tensor_view": MakeTensorView,
    "partition_view": PartitionView,
    "subview": PartitionView,
    "subset": SubTile,
    "treshape": TileView,
    "bitcast": TileView,
    "bind_tile": TileView,
    "addptr": AddPointer,
    "castptr": CastPointer,
    "section.vector": Section,
    "section.cube": Section,
    "vecscope": Section,
    "strict_vecscope": Section,
}


@cache
def instruction_class(mnemonic: str) -> type[Instruction]:
    """The operation class for ``pto.<mnemonic>``, made when the name is first met."""
    base = STRUCTURES.get(mnemonic, Instruction)
    name = f"pto.{mnemonic}"
    return base if base.name == name else type(base.__name__, (base,), {"name": name, "__module__": __name__})


def site_of(op: Operation) -> Site:
    """Where ``op`` stands in the source."""
    location = op.location
    if isinstance(location, FileLineColLoc):
        return Site(location.filename.data, location.line.data, location.column.data)
    return Site("<unknown>")


class _InstructionText:
    """Prints what follows an instruction's name, so that reading it again gives the same operation."""

    def __init__(self, op: Instruction, printer: Printer) -> None:
        self.op = op
        self.printer = printer
        self.operands = iter(op.operands)
        self.trailing: list[Attribute] = []

    def print(self) -> None:
        op, printer = self.op, self.printer
        if op.items:
            if not (isinstance(op.items[0], Group) and not op.items[0].keyword):
                printer.print_string(" ")
            self._items(op.items, self.trailing, op.SEPARATOR)
        if op.HAS_REGION:
            printer.print_string(" ")
            printer.print_region(op.regions[0])
        self._types()

    def _types(self) -> None:
        op = self.op
        results = [r.type for r in op.results]
        del self.trailing[op.LISTED_TYPES :]
        if op.TYPES_ARE_RESULTS:
            self._type_list(" : ", results)
        elif op.RESULT_IS_IMPLIED or not results:
            self._type_list(" : ", self.trailing)
        elif not op.items:
            if not all(map(is_scalar, results)):  # scalars out of nothing are settled by their uses
                self._type_list(" -> ", results)
        elif self.trailing or self._states_types() or all(isinstance(i, DictionaryAttr) for i in op.items):
            self._type_list(" : ", self.trailing)
            self._type_list(" -> ", results)
        else:
            self._type_list(" : ", results)

    def _states_types(self) -> bool:
        return any(isinstance(i, Group) and i.states_types for i in self.op.items)

    def _type_list(self, lead: str, types: Sequence[Attribute]) -> None:
        if types:
            self.printer.print_string(lead)
            self.printer.print_list(types, self.printer.print_attribute)

    def _items(self, items: Sequence[Any], types: list[Attribute], separator: str = ", ") -> None:
        """Print ``items``; the types of the operands directly among them are added to ``types``."""
        for i, item in enumerate(items):
            if i:
                self.printer.print_string(_between(item, separator))
            self._item(item, types)

    def _item(self, item: Any, types: list[Attribute]) -> None:
        printer = self.printer
        match item:
            case _Operand():
                value = next(self.operands)
                types.append(value.type)
                printer.print_ssa_value(value)
            case Group():
                self._group(item, types)
            case Word():
                printer.print_string(str(item))
            case Flag():
                printer.print_string(item.text)
            case Symbol():
                printer.print_string(f"@{item.name}")
            case bool():
                printer.print_string("true" if item else "false")
            case str():
                printer.print_string_literal(item)
            case float() | int():
                printer.print_string(repr(item))
            case _:
                printer.print_attribute(item)

    def _group(self, group: Group, types: list[Attribute]) -> None:
        printer = self.printer
        if group.style in ("=", "=[]"):
            printer.print_string(f"{group.keyword} = ")
        elif group.style == "[]" and group.keyword:
            printer.print_string(f"{group.keyword} ")
        else:
            printer.print_string(group.keyword)
        open_, close = {"()": "()", "=": ("", "")}.get(group.style, "[]")
        printer.print_string(open_)
        inside: list[Attribute] = []
        self._items(group.items, inside)
        if group.states_types:
            self._type_list(" : ", inside)
        elif group.style == "()":
            types.extend(inside)
        printer.print_string(close)


def _between(item: Any, separator: str) -> str:
    """What separates ``item`` from the one before it."""
    if isinstance(item, Group):
        if item.style == "at":
            return ""
        if item.style == "()" or (item.style == "[]" and item.keyword):
            return " "
        return separator
    return " " if isinstance(item, DictionaryAttr) else separator
