"""Reading ``.pto`` text into xDSL operations.

Three writings are read as they stand: the manual's SSA form, PTOAS' ``ins(..) outs(..)`` form, and statements
without the ``pto.`` prefix; a file may be a module, functions, or a bare list of statements. Positions are
those of the file: :func:`masked` replaces what is not MLIR by as many blanks and never moves a character.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    Builtin,
    DictionaryAttr,
    FileLineColLoc,
    IndexType,
    IntAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
    UnknownLoc,
    i64,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue, TypeAttribute
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span, Token
from xdsl.utils.mlir_lexer import MLIRTokenKind as Kind

from ascsim.diagnostics import Site, UserError
from ascsim.frontends.ptoas.dialect import (
    OPERAND,
    Flag,
    Group,
    Instruction,
    Symbol,
    SyntaxAttr,
    instruction_class,
)
from ascsim.frontends.ptoas.types import (
    UNSTATED,
    PointerType,
    TileType,
    TypeTextError,
    ViewType,
    Word,
    WordAttr,
    is_register,
    is_scalar,
    read_type,
)

_DIALECTS = ("arith", "cf", "func", "memref", "scf")
_UNPREFIXED = {"return": "func.return", "module": "builtin.module", "call": "func.call"}
_LOCATION = re.compile(r"\bloc\s*(?=\()|^[ \t]*#loc\w*\s*=[^\n]*", re.MULTILINE)
_HASH_COMMENT = re.compile(r"^([ \t]*)#(?![A-Za-z_!])[^\n]*", re.MULTILINE)
_RESULT_LIST = re.compile(r"%[\w$.-]+(?::\d+)?\s*(?:,\s*%[\w$.-]+(?::\d+)?\s*)*=(?!=)")
_COMMENT_OR_BLANK = re.compile(r"(?:\s|//[^\n]*)*")
_WORD_GOES_ON = re.compile(r"\s*[(\[=:,]")
_EQUALS = re.compile(r" *=")
_SAME_LINE = frozenset(
    {Kind.BARE_IDENT, Kind.LESS, Kind.L_PAREN, Kind.L_SQUARE, Kind.L_BRACE, Kind.STRING_LIT, Kind.INTEGER_LIT,
     Kind.FLOAT_LIT, Kind.MINUS, Kind.HASH_IDENT, Kind.AT_IDENT}
)  # fmt: skip
_ANYWHERE = frozenset({Kind.L_PAREN, Kind.L_SQUARE, Kind.L_BRACE, Kind.COLON, Kind.ARROW, Kind.COMMA})


def parse_file(path: str | Path) -> ModuleOp:
    """Read a ``.pto`` file.

    Raises:
        UserError: the file cannot be read, or is not ``.pto`` text; says where and what is allowed.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as problem:
        raise UserError(f"cannot read {path}: {problem.strerror or problem}") from None
    except UnicodeDecodeError as problem:
        raise UserError(f"{path} is not UTF-8 text (byte {problem.start}); a .pto file is text") from None
    return parse_text(text, str(path))


def parse_text(text: str, path: str = "<text>") -> ModuleOp:
    """Read ``.pto`` text into a module of ``func.func`` operations.

    The result is in one form whatever the writing was: tile instructions have destinations (``ins``/``outs``), register
    instructions have results. A bare list of statements is one function, named after ``path``, whose arguments are the
    values that it uses and does not define, and the tiles that it computes and does not use.

    Raises:
        UserError: the text is wrong; the message has the place, the line with a caret, and what is allowed.
    """
    from ascsim.frontends.ptoas.normalize import normalize

    parser = PtoParser(text, path)
    try:
        module = parser.parse_file_body()
    except ParseError as problem:
        raise parser.user_error(problem.msg, problem.span.start, problem.span.end) from None
    normalize(module, parser)
    return module


def masked(text: str) -> str:
    """``text`` with the pieces that are not for the parser blanked out, every other character in its place.

    Those are comment lines that begin with ``#`` (a ``#`` before a letter begins an attribute alias and
    stays), and the ``loc(..)`` that MLIR prints behind operations, which speak of another file than the one
    at hand.
    """
    if "#" in text:
        text = _HASH_COMMENT.sub(lambda m: m[1] + " " * (len(m[0]) - len(m[1])), text)
    if "loc" not in text:
        return text
    pieces, at = [], 0
    for match in _LOCATION.finditer(text):
        if match.start() < at or "//" in text[text.rfind("\n", 0, match.start()) + 1 : match.start()]:
            continue
        end = match.end() if match[0].lstrip().startswith("#") else _closing(text, match.end())
        pieces += [text[at : match.start()], re.sub(r"[^\n]", " ", text[match.start() : end])]
        at = end
    return "".join([*pieces, text[at:]])


def _closing(text: str, at: int) -> int:
    """One past the parenthesis that closes the one at ``at``."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if not depth:
            return i + 1
    return len(text)


class PtoContext(Context):
    """The dialects of a ``.pto`` file, loaded when first used; any name of no dialect is an instruction of
    ours.
    """

    def __init__(self) -> None:
        super().__init__()
        self.load_dialect(Builtin)
        for name in _DIALECTS:
            self.register_dialect(name, partial(_dialect, name))

    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        """The class for an operation's name, with or without ``pto.``; None for an unknown name of a known
        dialect.
        """
        if name.startswith("pto."):
            return instruction_class(name[4:])
        found = self._get_known_op(_UNPREFIXED.get(name, name))
        if found is not None or name.partition(".")[0] in (*_DIALECTS, "builtin"):
            return found
        return instruction_class(name)


def _dialect(name: str) -> Dialect:
    """One of xDSL's dialects; ``arith`` with the operations of MLIR 19 that xDSL's lacks."""
    if name == "arith":
        from ascsim.frontends.ptoas.arith import Arith

        return Arith
    attribute = "MemRef" if name == "memref" else name.capitalize()
    return getattr(import_module(f"xdsl.dialects.{name}"), attribute)


@dataclass
class _Use:
    """An operand while its instruction is being read."""

    operand: UnresolvedOperand
    typed: bool
    """Its type is among those listed behind the colon (subscripts and ``addr = %a`` have none there)."""
    is_output: bool
    is_address: bool = False
    type: Attribute = field(default=UNSTATED)


class PtoParser(Parser):
    """xDSL's parser, with the ``pto`` dialect's free syntax, exact value names and a position on every
    operation.
    """

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        self._line_starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self._statements: list[int] = []
        self._bound_results: list[tuple[Span, int]] = []
        self._uses: list[_Use] = []
        self._settled = 0
        self.first_uses: dict[str, Span] = {}
        self.likely_types: dict[str, Attribute] = {}
        """What an undefined value is where no text says it: a subscript is ``index``, an address ``i64``."""
        self.statements: list[Operation] = []
        self._filename = StringAttr(path)
        try:
            super().__init__(PtoContext(), masked(text), path)
        except ParseError as problem:
            raise self.user_error(problem.msg, problem.span.start, problem.span.end) from None

    # Errors and positions

    def user_error(self, message: str, start: int, end: int | None = None) -> UserError:
        """A :class:`UserError` at a position, with the line and a caret under the piece to blame."""
        line = bisect_right(self._line_starts, start)
        begin = self._line_starts[line - 1]
        stop = self.text.find("\n", begin)
        shown = self.text[begin : stop if stop >= 0 else len(self.text)].rstrip("\r")
        width = max(1, min((end or start) - start, len(shown) - (start - begin)))
        pad = "".join("\t" if c == "\t" else " " for c in shown[: start - begin])
        caret = f"\n    {shown}\n    {pad}{'^' * width}" if shown.strip() else ""
        return UserError(f"{_reworded(message)}{caret}", Site(self.path, line, start - begin + 1))

    def error_at(self, message: str, op: Operation) -> UserError:
        """A :class:`UserError` at an operation."""
        location = op.location
        if not isinstance(location, FileLineColLoc):
            return UserError(message, Site(self.path))
        start = self._line_starts[location.line.data - 1] + location.column.data - 1
        word = re.compile(r'[\w."$]+').match(self.text, start)
        return self.user_error(message, start, word.end() if word else None)

    def location(self, position: int) -> FileLineColLoc:
        """The location attribute for a position of the text."""
        line = bisect_right(self._line_starts, position)
        return FileLineColLoc(self._filename, IntAttr(line), IntAttr(position - self._line_starts[line - 1] + 1))

    # Files and operations

    def parse_file_body(self) -> ModuleOp:
        """The whole file as one module; statements outside functions are left in ``self.statements``."""
        functions: list[Operation] = []
        while self._current_token.kind != Kind.EOF:
            if self._current_token.kind in (Kind.HASH_IDENT, Kind.EXCLAMATION_IDENT):
                self._parse_alias_def()
                continue
            op = self.parse_optional_operation()
            if op is None:
                self.raise_error(
                    f"'{self._current_token.text}' cannot begin a statement; a .pto file is a module, "
                    "functions (func.func @name(..) {..}) or a list of instructions"
                )
            (functions if op.name in ("func.func", "builtin.module") else self.statements).append(op)
        if not functions and not self.statements:
            self.raise_error("there is nothing in this file; write a module, a function or instructions", 0)
        if len(functions) == 1 and isinstance(functions[0], ModuleOp) and not self.statements:
            return functions[0]
        return ModuleOp(functions)

    def parse_operation(self) -> Operation:
        """Read one operation and note where its name stands."""
        self._statements.append(self._current_token.span.start)
        op = super().parse_operation()
        position = self._statements.pop()
        if isinstance(op.location, UnknownLoc):
            op.location = self.location(position)
        if isinstance(op, Instruction) and "syntax" not in op.properties:
            _syntax_of_generic_form(op)
        if op.name == "func.func" and not self.statements:
            self._refuse_undefined()
        return op

    def _refuse_undefined(self) -> None:
        for name in self.forward_ssa_references:
            close = difflib.get_close_matches(name, self.first_uses.keys() - {name}, 1)
            hint = f" Did you mean %{close[0]}?" if close else ""
            self.raise_error(
                f"%{name} is used but never defined in this function; a value is an argument of the function "
                f"or the result of an operation before its use.{hint}",
                self.first_uses.get(name),
            )

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        self._bound_results = super()._parse_op_result_list()
        return self._bound_results

    def _get_op_by_name(self, name: str) -> type[Operation]:
        self._statements[-1] = self._last_position(name)
        found = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if found is not None:
            return found
        dialect = name.partition(".")[0]
        known = sorted(n for n in self.ctx._loaded_ops if n.startswith(f"{dialect}."))
        close = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"
        start = self._statements[-1]
        self.raise_error(f"there is no operation {name}{hint}", start, start + len(name))

    def _last_position(self, word: str) -> int:
        return self.text.rfind(word, 0, self._current_token.span.start)

    # Values

    def resolve_operand(self, operand: UnresolvedOperand, type: Any) -> Any:
        """The value behind a name. A type that nobody has stated yet is settled by the first use that states
        one.
        """
        name = operand.operand_name
        values = self.ssa_values.get(name)
        if values is None:
            references = self.forward_ssa_references.setdefault(name, {})
            self.first_uses.setdefault(name, operand.span)
            value: SSAValue = references.setdefault(operand.index, ForwardDeclaredValue(type))
        elif operand.index >= len(values):
            self.raise_error(f"%{name} is {len(values)} value(s); #{operand.index} is beyond them", operand.span)
        else:
            value = values[operand.index]
        if type != value.type and type is not UNSTATED:
            if value.type is not UNSTATED:
                self.raise_error(f"%{name} is {value.type}, but its type is written as {type} here", operand.span)
            value._type = type
        return value

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        for index, reference in self.forward_ssa_references.get(name, {}).items():
            if index >= len(values):
                continue
            if reference.type is UNSTATED:
                reference._type = values[index].type
            elif values[index].type is UNSTATED:
                values[index]._type = reference.type
        super()._register_ssa_definition(name, values, span)
        self.first_uses.setdefault(name, span)
        if len(values) == 1:
            values[0]._name = name  # as written: the public setter would cut '_1' off

    # Types and attributes

    def _parse_extended_type_or_attribute(self, attr_or_dialect_name: str, is_type: bool) -> Any:
        """Types and attributes of our dialect, from their raw text; all others are xDSL's to read."""
        dialect, _, mnemonic = attr_or_dialect_name.partition(".")
        if dialect != "pto" or (not mnemonic and self._current_token.kind != Kind.LESS):
            return super()._parse_extended_type_or_attribute(attr_or_dialect_name, is_type)  # type: ignore
        start = self.pos
        body = self._parse_dialect_symbol_body() if self._current_token.kind == Kind.LESS else ""
        if not mnemonic:
            mnemonic, _, body = body.strip().partition(" ")
            body = body.strip().removeprefix("<").removesuffix(">")
        if not is_type:
            return WordAttr(Word(body.strip(), mnemonic))
        return self._read_type(mnemonic, body, start)

    def _read_type(self, mnemonic: str, body: str, start: int) -> TypeAttribute:
        try:
            return read_type(mnemonic, body)
        except TypeTextError as problem:
            at = self.text.find(problem.fragment, start) if problem.fragment else start
            end = at + len(problem.fragment) if problem.fragment else start + len(body) + 2
            self.raise_error(problem.message, at, end)

    def _parse_attribute_entry(self) -> tuple[str, Attribute]:
        """An entry of ``{..}``; a value may also be ``<word>`` or a bare word."""
        name = self.parse_optional_identifier_or_str_literal()
        if name is None:
            self.raise_error("the name of an attribute was expected here, as in {split = 1}")
        if self.parse_optional_punctuation("=") is None:
            return name, UnitAttr()
        return name, self._attribute_value()

    def _attribute_value(self) -> Attribute:
        if self._current_token.kind == Kind.LESS:
            return WordAttr(Word(self._parse_dialect_symbol_body().strip()))
        value = self.parse_optional_attribute()
        if value is None:
            word = self.parse_optional_identifier()
            if word is None:
                self.raise_error("the value of an attribute was expected here: a number, a string, a word")
            value = WordAttr(Word(word))
        return value

    # Instructions

    def parse_instruction(self, kind: type[Instruction]) -> Instruction:
        """An instruction after its name, in any writing."""
        outer = self._uses, self._settled
        self._uses, self._settled = [], 0
        bound = sum(size for _, size in self._bound_results)
        names = self._bound_results
        items: list[Any] = []
        listed: list[Attribute] | None = None
        results: list[Attribute] | None = None
        regions: list[Region] = []
        while True:
            token = self._current_token.kind
            if token == Kind.COMMA:
                self._consume_token()
                items.append(self._item(True))
                self._subscripts(items)
            elif token == Kind.COLON:
                self._consume_token()
                listed = self._types()
                if not kind.TYPES_ARE_RESULTS:
                    listed = self._settle(_for_operands(listed, items), bound)
            elif token == Kind.ARROW:
                self._consume_token()
                results = self._types()
            elif kind.HAS_REGION and token == Kind.L_BRACE and not regions:
                regions.append(self.parse_region())
                if not regions[0].blocks:
                    regions[0].add_block(Block())
            elif self._continues(not items):
                items.append(self._item(True))
                self._subscripts(items)
            else:
                break
        self._bound_results = names
        result_types = self._result_types(kind, bound, listed, results, items)
        op = self._make(kind, items, result_types, regions)
        self._uses, self._settled = outer
        return op

    def _make(
        self, kind: type[Instruction], items: list[Any], result_types: list[Attribute], regions: list[Any]
    ) -> Instruction:
        """Create the operation. Registers named in ``outs`` and not yet defined are its results."""
        defined = [use for use in self._uses if use.is_output]
        if not result_types and self._are_results(defined):
            result_types = [use.type for use in defined]
            items = _without_outputs(items)
            self._uses = [use for use in self._uses if use not in defined]
        else:
            defined = []
        operands = [self.resolve_operand(use.operand, use.type) for use in self._uses]
        for use in self._uses:
            if use.type is UNSTATED:
                likely = kind.likely_source(result_types) if use.typed else i64 if use.is_address else IndexType()
                if likely is not None:
                    self.likely_types.setdefault(use.operand.operand_name, likely)
        op = kind.create(
            operands=operands,
            result_types=result_types,
            properties={"syntax": SyntaxAttr(tuple(items))},
            regions=regions,
        )
        for use, result in zip(defined, op.results, strict=False):
            self._register_ssa_definition(use.operand.operand_name, (result,), use.operand.span)
        return op

    def _are_results(self, outputs: list[_Use]) -> bool:
        """Are these ``outs`` values that the instruction makes (registers, pointers), not storage that it
        fills?
        """
        return any(is_register(use.type) for use in outputs) and all(
            not isinstance(use.type, TileType | ViewType) and use.operand.operand_name not in self.ssa_values
            for use in outputs
        )

    def _continues(self, is_first: bool) -> bool:
        """Does the current token belong to the instruction being read, no comma having been written before
        it?

        Within a line it does. On a new line only what cannot begin a statement does, and a word with ``(``,
        ``[`` or ``=`` behind it that is set further in than the statement.
        """
        token = self._current_token
        line = self.text.rfind("\n", 0, token.span.start) + 1
        if self.text[line : token.span.start].strip():
            if token.kind == Kind.PERCENT_IDENT and not is_first:
                self.raise_error("a comma is missing before this operand")
            return token.kind in _SAME_LINE or token.kind == Kind.PERCENT_IDENT
        if token.kind in _ANYWHERE:
            return True
        statement = self._statements[-1]
        if token.span.start - line <= statement - (self.text.rfind("\n", 0, statement) + 1):
            return token.kind == Kind.BARE_IDENT and token.text in ("ins", "outs")
        if token.kind == Kind.PERCENT_IDENT:
            return is_first and _RESULT_LIST.match(self.text, token.span.start) is None
        if token.kind != Kind.BARE_IDENT or "." in token.text:
            return False
        return _WORD_GOES_ON.match(self.text, token.span.end) is not None

    def _subscripts(self, items: list[Any], typed: bool = False) -> None:
        """``[..]`` right behind an operand."""
        if items and items[-1] is OPERAND and self._current_token.kind == Kind.L_SQUARE:
            items.append(Group("", "at", self._closed("[", "]", typed)))

    def _item(self, typed: bool, is_output: bool = False) -> Any:
        """One item; ``typed`` says whether types behind the colon speak of operands in it."""
        token = self._current_token
        match token.kind:
            case Kind.PERCENT_IDENT:
                self._uses.append(_Use(self._operand_name(), typed, is_output))
                return OPERAND
            case Kind.STRING_LIT:
                return self.parse_str_literal()
            case Kind.INTEGER_LIT | Kind.FLOAT_LIT | Kind.MINUS:
                return self.parse_number()
            case Kind.LESS:
                return Word(self._parse_dialect_symbol_body().strip())
            case Kind.HASH_IDENT:
                return self._hash_item(token)
            case Kind.AT_IDENT:
                self._consume_token()
                if self._current_token.kind == Kind.L_PAREN:
                    return self._address()
                return Symbol(token.text[1:])
            case Kind.L_PAREN:
                return Group("", "()", self._closed("(", ")", True))
            case Kind.L_SQUARE:
                return Group("", "[]", self._closed("[", "]", typed))
            case Kind.L_BRACE:
                return DictionaryAttr(self.parse_optional_attr_dict())
            case Kind.BARE_IDENT:
                return self._word_item(token)
            case Kind.EXCLAMATION_IDENT:
                return self.parse_type()
        self.raise_error(
            "an operand (%name), a literal, a word or one of ins(..), outs(..), [..], {..} was expected here"
        )

    def _operand_name(self) -> UnresolvedOperand:
        """``%name`` or ``%name#1``; ``%name #word`` is a name and an attribute."""
        token = self._consume_token(Kind.PERCENT_IDENT)
        number = self._current_token
        index = 0
        is_next = number.kind == Kind.HASH_IDENT and number.span.start == token.span.end
        if is_next and number.text[1:].isdigit():
            self._consume_token()
            index = int(number.text[1:])
        return UnresolvedOperand(token.span, index)

    def _word_item(self, token: Token) -> Any:
        word = token.text
        if word in ("true", "false"):
            return self.parse_boolean()
        self._consume_token()
        match self._current_token.kind:
            case Kind.EQUAL:
                self._consume_token()
                if self._current_token.kind == Kind.L_SQUARE:
                    return Group(word, "=[]", self._closed("[", "]", False))
                value = [self._item(False)]
                if value == [OPERAND]:
                    self._uses[-1].is_address = word == "addr"
                self._subscripts(value)
                return Group(word, "=", tuple(value))
            case Kind.L_PAREN if word == "tile":
                return self._address()
            case Kind.L_PAREN:
                return Group(word, "()", self._closed("(", ")", True, word == "outs"))
            case Kind.L_SQUARE:
                return Group(word, "[]", self._closed("[", "]", False))
        return Flag(word)

    def _hash_item(self, token: Token) -> Any:
        """``#pto.pipe<PIPE_V>``, an alias, or the manual's ``#atomic=add``."""
        if _EQUALS.match(self.text, token.span.end):
            self._consume_token()
            self._consume_token()
            return DictionaryAttr({token.text[1:]: self._attribute_value()})
        attribute = self.parse_attribute()
        return attribute.data if isinstance(attribute, WordAttr) else attribute

    def _address(self) -> int:
        """``(0x1000)`` of ``@tile(0x1000)``."""
        self.parse_punctuation("(")
        value = self.parse_integer(allow_boolean=False, allow_negative=False, context_msg=" for the address of a tile")
        self.parse_punctuation(")")
        return value

    def _closed(self, open_: Any, close: Any, typed: bool, is_output: bool = False) -> tuple[Any, ...]:
        """The items between two brackets, with their types where ``: T`` stands among them."""
        self.parse_punctuation(open_)
        items: list[Any] = []
        outer, self._settled = self._settled, len(self._uses)
        states_types = False
        while self.parse_optional_punctuation(close) is None:
            if self.parse_optional_punctuation(":") is not None:
                self._settle(self._types())
                states_types = True
            elif self._current_token.kind == Kind.EOF:
                self.raise_error(f"the text ends inside '{open_}', a '{close}' is missing")
            else:
                if items and self._current_token.kind != Kind.L_BRACE:
                    self.parse_punctuation(",", f" or '{close}' after an operand")
                    if self._current_token.kind == Kind.R_PAREN:
                        self.raise_error("an operand was expected after the comma")
                items.append(self._item(typed, is_output))
                self._subscripts(items)
        if not states_types:
            self._settled = outer  # the list behind the instruction speaks of these operands too
        return tuple(items)

    def _types(self) -> list[Attribute]:
        """Types behind ``:`` or ``->``: one, several, or a parenthesised list."""
        if self._current_token.kind == Kind.L_PAREN:
            return self.parse_comma_separated_list(self.Delimiter.PAREN, self._type)
        types = [self._type()]
        while self._current_token.kind == Kind.COMMA and self._type_follows():
            self._consume_token()
            types.append(self._type())
        return types

    def _type(self) -> Attribute:
        if self._current_token.kind != Kind.LESS:
            return self.expect(
                self.parse_optional_type, "a type was expected here, as in !pto.tile_buf<..>, f32 or index"
            )
        start = self.pos  # MLIR lets '!pto.ptr' be left out where the operand has said it
        known = next((t for t in map(self._known, self._uses) if t is not None), None)
        if not isinstance(known, TileType | PointerType | ViewType):
            self.raise_error("a type begins with its name, as in !pto.tile_buf<..>")
        return self._read_type(known.name.removeprefix("pto."), self._parse_dialect_symbol_body(), start)

    def _known(self, use: _Use) -> Attribute | None:
        """The type of an operand that has been defined."""
        values = self.ssa_values.get(use.operand.operand_name)
        return values[use.operand.index].type if values and use.operand.index < len(values) else None

    def _type_follows(self) -> bool:
        """Is what stands behind the comma a type, not the next operand or ``word = ..``?"""
        gap = _COMMENT_OR_BLANK.match(self.text, self._current_token.span.end)
        rest = self.text[gap.end() if gap else 0 :][:80]
        return not re.match(r"%|[A-Za-z_]\w*\s*=", rest)

    def _settle(self, types: list[Attribute], bound: int = 0) -> list[Attribute]:
        """Give the operands read since the last list their types, and check those that are known.

        A list may name every operand, or leave subscripts and ``word = %x`` out, or be shorter: then the
        operands that are defined keep their own types. Lists in another order than the operands are in use
        and pass. Types beyond the operands are those of the ``bound`` results; they are returned.
        """
        pending = self._uses[self._settled :]
        self._settled = len(self._uses)
        if len(types) != len(pending):
            pending = [use for use in pending if use.typed]
        known = [self._known(use) for use in pending]
        beyond = len(types) - len(pending)
        if beyond == 0 and bound == 1 and len(types) == 1 and known[0] is not None and is_scalar(known[0]):
            beyond = int(types != known)  # the one type is the result's: '%t = tci %start : !pto.tile<..>'
        if beyond > 0:
            if beyond == bound or not pending:
                types, results = types[:-beyond], types[-beyond:]
                pending, known = pending[: len(types)], known[: len(types)]
            elif all(own in types for own in known):
                return []  # the types of literals are in the list too
            else:
                self.raise_error(f"{len(types)} types are written for {len(pending)} operand(s); write one for each")
        else:
            results = []
        if len(types) == len(pending) and sorted(map(str, types)) != sorted(map(str, known)):
            for use, type_, own in zip(pending, types, known, strict=True):
                if own is not None and own is not UNSTATED and type_ is not UNSTATED and own != type_:
                    self.raise_error(
                        f"%{use.operand.operand_name} is {own}, but its type is written as {type_} here",
                        use.operand.span,
                    )
        for i, use in enumerate(pending):
            own = known[i]
            use.type = own if own is not None and own is not UNSTATED else types[min(i, len(types) - 1)]
        return results

    def _result_types(
        self,
        kind: type[Instruction],
        bound: int,
        listed: list[Attribute] | None,
        results: list[Attribute] | None,
        items: list[Any],
    ) -> list[Attribute]:
        """The types of the results: stated behind ``->`` or ``:``, or those of the tiles and registers that
        go in.
        """
        if results is None and kind.TYPES_ARE_RESULTS:
            results = listed
        if results is not None:
            stated = list(results)
        elif not bound:
            return []
        else:
            operand_types = [self._known(use) or use.type for use in self._uses]
            if kind.RESULT_IS_IMPLIED:
                try:
                    stated = [kind.imply(operand_types, items)]
                except ValueError as problem:
                    self.raise_error(f"{kind.name} {problem}", self._statements[-1])
            else:
                data = [t for t in operand_types if isinstance(t, TileType) or is_register(t)]
                stated = list(listed) if listed else [data[0] if data else UNSTATED] * bound
        if bound and len(stated) != bound:
            self.raise_error(
                f"{bound} result(s) are named, but {len(stated)} type(s) are written for them",
                self._statements[-1],
            )
        for type_ in stated:
            if type_ is UNSTATED and results is not None:
                self.raise_error("the type of a result must be written out, '...' says nothing", self._statements[-1])
        return stated


def _for_operands(types: list[Attribute], items: list[Any]) -> list[Attribute]:
    """``types`` without those of literal numbers, where the list names these too: ``get_buf "PIPE_V", %id, 0
    : i64, i64``.
    """
    named = [item for item in items if item is OPERAND or isinstance(item, int | float)]
    if len(named) != len(types) or not any(item is OPERAND for item in named):
        return types
    return [type_ for type_, item in zip(types, named, strict=True) if item is OPERAND]


def _without_outputs(items: list[Any]) -> list[Any]:
    """The items of a register instruction in result form: its ``outs`` gone, what stood in ``ins`` directly
    behind it.
    """
    kept: list[Any] = []
    for item in items:
        if isinstance(item, Group) and item.keyword == "ins":
            kept.extend(item.items)
        elif not (isinstance(item, Group) and item.keyword == "outs"):
            kept.append(item)
    return kept


def _syntax_of_generic_form(op: Instruction) -> None:
    """``"pto.name"(%a, %b) <{..}> {..} : (..) -> ..``: operands in order, then the attributes."""
    written = {**op.properties, **op.attributes}
    op.attributes.clear()
    op.properties.clear()
    items = [OPERAND] * len(op.operands)
    op.properties["syntax"] = SyntaxAttr((*items, DictionaryAttr(written)) if written else tuple(items))


_REWORDED = (
    (re.compile(r"Expected '(.+?)'(.*)"), r"'\1' was expected here\2"),
    (re.compile(r"Could not parse entire input!"), "this cannot begin a statement"),
    (re.compile(r"'(.+?)' is not registered"), r"'\1' is not a type or attribute of a .pto file"),
    (
        re.compile(r"undefined symbol alias '(.+?)'"),
        r"the alias \1 is not defined; write its definition above",
    ),
    (re.compile(r"SSA value %(\S+) is already defined"), r"%\1 is defined twice; a value has one definition"),
    (re.compile(r"Expected region!"), "a '{' with the body behind it was expected here"),
)


def _reworded(message: str) -> str:
    """xDSL's message in this tool's words."""
    for pattern, words in _REWORDED:
        if pattern.match(message):
            return pattern.sub(words, message)
    return message
