"""The source pass: what is not C++ in a user's source becomes C++, and no line moves.

The vendor's dialect adds launches (``kernel<<<blocks, ...>>>(...)``), address spaces and function qualifiers to C++.
Most of the qualifiers are empty macros in ascsim's headers; this pass does only what a macro cannot:

- a launch, written with ``<<<>>>`` or as a plain call of a ``__global__`` function from host code, becomes
  ``(::ascsim::Launch{"K", __LINE__, ::ascsim::launch_config(...)}).run<ASCSIM_TU>([](auto... a) { K(a...); }, arguments)``;
- ``__ubuf__ T x[N];`` (an object *in* UB, not a pointer into it) becomes a reference into the core's own memory,
  ``auto& x = ::ascsim::local_array<T[(N)]>(::ascsim::Space::UB, [] { return "x"; });`` (the lambda's type is the
  declaration's own);
- a ``__simd_vf__`` function gets an ``::ascsim::VfScope`` after its opening brace;
- in a file with address registers the loops of such functions (and of ``__simd_callee__`` ones) count their rounds;
- the attribute ``[aicore]`` becomes blanks;
- in the text for the host compiler the bodies of device functions are left out, as the vendor's host pass does;
- in the text for the device compilers host functions are left out where no launch needs them there: a kernel that is
  defined once, and is no template, is launched by its name (``.run<ASCSIM_TU, K>(...)``), and its own text brings what a
  device image needs for that, ``ASCSIM_LAUNCHED(ASCSIM_TU, K)``.

Launches are found by their tokens, which works in macro bodies and across ``#ifdef`` lines too; declarations, function
definitions and calls by tree-sitter, on a copy in which the vendor's words are blanked with spaces of the same length
(with them in place every file has ERROR nodes). All edits are byte ranges of the original text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import tree_sitter
import tree_sitter_cuda

from ascsim.diagnostics import Site, UserError
from ascsim.frontends.cpp.tokens import (
    CONDITION,
    DEFINE,
    DIRECTIVE,
    WORD,
    blank,
    callee_start,
    closing_of,
    find_at_depth_0,
    last_name,
    mask,
    skip_blanks,
    skip_blanks_back,
    split_arguments,
)

# Words that make a function a device function.
DEVICE_QUALIFIERS = frozenset(
    {
        "__aicore__",
        "AICORE",
        "__host_aicore__",
        "__simd_vf__",
        "__simd_callee__",
        "__simt_vf__",
        "__simt_callee__",
        "__callee__",
        "__aicpu__",
        "PTO_INTERNAL",
        "PTO_INST",
    }
)
# An object declared with one of these lives in that memory of the core.
SPACES = {
    "__ubuf__": "UB",
    "__cbuf__": "L1",
    "__ca__": "L0A",
    "__cb__": "L0B",
    "__cc__": "L0C",
    "__biasbuf__": "BT",
    "__fbuf__": "FB",
}
# The core that a kernel runs on; __mix__ carries its ratio.
CORES = {"__vector__": "vector", "__cube__": "cube", "__mix__": "mix"}
# Other words that a C++ grammar does not know. None of them changes how a declaration is read.
_OTHER_WORDS = frozenset(
    {
        "__gm__",
        "__ub__",
        "__ssbuf__",
        "__global__",
        "__host__",
        "__in__",
        "__out__",
        "__inout__",
        "__tf__",
        "__VEC_SCOPE__",
        "__sync_noalias__",
        "__check_sync_alias__",
        "__kfc_workspace__",
        "__workgroup__",
        "__BLOCK_LOCAL__",
        "__blk_local__",
        "PTO_INLINE",
    }
)
# Words that take an argument in parentheses and stand where a qualifier stands.
_WORDS_WITH_ARGUMENT = frozenset(
    {
        "__mix__",
        "__schedmode__",
        "__launch_bounds__",
        "LAUNCH_BOUND",
        "__in_pipe__",
        "__out_pipe__",
        "__inout_pipe__",
    }
)
_BLANKED = DEVICE_QUALIFIERS | SPACES.keys() | CORES.keys() | _OTHER_WORDS | _WORDS_WITH_ARGUMENT

# The rule that asks for a compilation for the cube core: the text mentions one of these.
_USES_AIC = re.compile(
    rb"\b__cube__\b|\b__mix__\b|\b__DAV(?:_C\d+)?_CUBE__\b|\bASC(?:END)?_IS_AIC\b|\bTile(?:Type\s*::\s*)?(?:Left|Right|Acc)\b"
)
# What makes a text worth a compilation for a device at all.
_DEVICE_CODE = re.compile(
    "|".join(
        [r"<<<", r"\[\s*aicore\s*\]", *(rf"\b{word}\b" for word in sorted({*DEVICE_QUALIFIERS, "__global__"}))]
    ).encode()
)
_VENDOR_WORD = re.compile("|".join(["<<<", "aicore", *sorted(_BLANKED)]).encode())
# How an instruction's name looks in C++ (the names themselves stand in the ISA alone).
INSTRUCTION_NAME = re.compile(
    r"asc_[a-z0-9_]+|[TM][A-Z][A-Z0-9_]+|v[a-z][a-z0-9_]*|p(?:lt|set|ge|ack|unpack|and|or|xor|not|sel|ds|us)[a-z0-9_]*"
    r"|(?:set|wait|get|pipe|copy|load|store|create|ffts)_[a-z0-9_]+"
)


class RewriteError(UserError):
    """The source has a launch or a declaration that cannot be understood."""

    def __init__(self, message: str, path: str, line: int, column: int) -> None:
        super().__init__(message, Site(path, line, column))


@dataclass(frozen=True)
class Parameter:
    """A kernel's parameter as written, without the vendor's words: ``float*`` and ``x``."""

    type: str
    name: str

    @property
    def is_pointer(self) -> bool:
        """Whether it takes an address (``GM_ADDR`` is the vendor's name of ``__gm__ uint8_t*``)."""
        return self.type.endswith("*") or self.type == "GM_ADDR"


@dataclass(frozen=True)
class Kernel:
    """A ``__global__`` function: where it stands and how it is called.

    ``core`` is ``vector``, ``cube``, ``mix(c, v)`` or empty (not said). ``qualified`` has the enclosing namespaces.
    """

    name: str
    qualified: str
    line: int
    column: int
    core: str
    is_template: bool
    is_defined: bool
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Launch:
    """A launch; ``is_implicit`` if it was written as a plain call."""

    kernel: str
    line: int
    column: int
    is_implicit: bool


@dataclass(frozen=True)
class Call:
    """A called name that looks like an instruction; ``is_conditional`` inside ``#if``."""

    name: str
    line: int
    column: int
    is_conditional: bool


@dataclass(frozen=True)
class _Edit:
    """Bytes ``start`` to ``end`` of the original become ``text``."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True)
class Names:
    """What a file declares that matters in the files that include it."""

    kernels: frozenset[str] = frozenset()
    qualifiers: frozenset[str] = frozenset()
    has_launches: bool = False

    def __or__(self, other: Names) -> Names:
        return Names(
            self.kernels | other.kernels, self.qualifiers | other.qualifiers, self.has_launches or other.has_launches
        )


@dataclass(frozen=True)
class Rewritten:
    """A source after the pass: ``text`` for device compilations, ``host_text`` for the host's; no line has moved.

    ``names`` are the kernels and qualifiers known in this file and in the files that include it.
    """

    text: str
    host_text: str
    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]
    uses_aic: bool
    has_device_code: bool
    instructions_called: tuple[Call, ...]
    names: Names
    is_changed: bool


_NAMESPACES = frozenset(("namespace_definition", "declaration_list", "translation_unit"))
"""Where functions that are no members stand."""
_PLAIN_NAME = re.compile(rb"(::)?\w+(::\w+)*")
_OF_HOST = re.compile(rb"\bacl[A-Zr]\w+\b|<<<")


def rewrite(
    source: bytes,
    path: str = "<source>",
    known: Names = Names(),
    *,
    device_calls_are_launches: bool = False,
    export_kernels: bool = False,
    elsewhere: Callable[[], frozenset[str]] | None = None,
) -> Rewritten:
    """Rewrite one file.

    Args:
        source: the file's bytes (UTF-8; other bytes in comments and strings are carried along).
        path: its name for messages.
        known: kernels and qualifiers that included headers declare.
        device_calls_are_launches: a host function that calls an ``__aicore__`` function with ``__gm__`` parameters
            launches one block, as portable (``cpu``) programs mean it.
        export_kernels: export each kernel that is no template (include/ascsim/exports.hpp), for callers that have no
            host program.
        elsewhere: for the source itself: what tells the words of the user's files that it includes. Of those, nothing
            is left out.

    Raises:
        RewriteError: a ``<<<`` is not part of a launch, or an on-chip array has an initialiser.
    """
    if not _has_vendor_words(source, known):
        text = source.decode("utf-8", "surrogateescape")
        return Rewritten(text, text, (), (), False, False, (), known, False)
    return _Pass(source, path, known, device_calls_are_launches, export_kernels, elsewhere).run()


def _has_vendor_words(source: bytes, known: Names) -> bool:
    """Whether there can be anything to do; most headers of other libraries need no second look."""
    names = [name.encode() for name in (*known.kernels, *known.qualifiers)]
    return bool(_VENDOR_WORD.search(source)) or any(name in source for name in names)


@dataclass(frozen=True)
class _Function:
    """A function definition or declaration with what its prefix says."""

    node: tree_sitter.Node
    declarator: tree_sitter.Node
    name: str
    words: frozenset[str]
    prefix: tuple[int, int]
    view: bytes

    @property
    def is_kernel(self) -> bool:
        return "__global__" in self.words

    @property
    def body(self) -> tree_sitter.Node | None:
        body = self.node.child_by_field_name("body")
        return body if body is not None and body.type == "compound_statement" else None


_VALUE_PLACES = frozenset(
    ("initializer_list", "init_declarator", "assignment_expression", "argument_list", "return_statement",
     "pointer_expression", "conditional_expression", "initializer_pair", "cast_expression")
)  # fmt: skip
"""Where the name of a kernel stands for its address."""


class _Pass:
    """One run over one file."""

    def __init__(
        self, source: bytes, path: str, known: Names, device_calls_are_launches: bool, export_kernels: bool,
        elsewhere: Callable[[], frozenset[str]] | None,
    ) -> None:  # fmt: skip
        self.source = source
        self.path = path
        self.device_calls_are_launches = device_calls_are_launches
        self.export_kernels = export_kernels
        self.no_comments = mask(source, strings=False)
        self.code = mask(source, strings=True)
        self.directives = list(DIRECTIVE.finditer(self.code))
        self.view, self.macro_view = self._views()
        self.own_qualifiers = self._qualifier_macros(known.qualifiers)
        self.device_words = DEVICE_QUALIFIERS | known.qualifiers | self.own_qualifiers
        self.known = known
        self.line_starts = [0, *(match.end() for match in re.finditer(rb"\n", source))]
        self.edits: list[_Edit] = []
        self.device_edits: list[_Edit] = []
        self.launches: list[Launch] = []
        self.launched: set[int] = set()
        self.launch_gaps: list[tuple[int, int]] = []
        self.ambiguous: frozenset[str] = frozenset()
        self.elsewhere = elsewhere
        self.named: frozenset[str] = frozenset()
        self.launched_by_name: set[str] = set()
        self.entries: list[_Edit] = []
        self.are_all_named = True

    def run(self) -> Rewritten:
        explicit = [*self._find_launches(self.view, False), *self._find_launches(self.macro_view, True)]
        root = self._parsed()
        functions = self._functions(root)
        kernels = tuple(self._kernel(function) for function in functions.values() if function.is_kernel)
        by_name = {kernel.name: kernel for kernel in sorted(kernels, key=lambda kernel: kernel.is_defined)}
        self.named = self._named(functions)
        for launch in explicit:
            self._rewrite_launch(launch, by_name)
        calls = self._visit_calls(root, functions, by_name)
        self._visit_macros(by_name)
        for node in _nodes(root, "declaration"):
            self._rewrite_local_objects(node)
        self._rewrite_attributes()
        self.ambiguous = self._ambiguous(functions) if self.export_kernels else frozenset()
        for function in functions.values():
            self._rewrite_function(function, by_name)
        self._refuse_what_was_missed()
        host_edits = self._host_edits(functions)
        edits = [*self.edits, *self.device_edits]
        return Rewritten(
            text=self._device_text(root, functions),
            host_text=self._apply(host_edits),
            kernels=kernels,
            launches=tuple(sorted(self.launches, key=lambda launch: (launch.line, launch.column))),
            uses_aic=bool(_USES_AIC.search(self.code)),
            has_device_code=any(_DEVICE_CODE.search(view) for view in (self.view, self.macro_view)),
            instructions_called=calls,
            names=Names(
                self.known.kernels | by_name.keys(),
                self.known.qualifiers | self.own_qualifiers,
                self.known.has_launches or bool(self.launches),
            ),
            is_changed=bool(edits or host_edits),
        )

    # -- views of the text -------------------------------------------------------------------------------------------

    def _views(self) -> tuple[bytes, bytes]:
        """The code without its directives, and the bodies of ``#define`` alone."""
        view, macros = bytearray(self.code), bytearray(blank(self.code))
        for directive in self.directives:
            view[directive.start() : directive.end()] = blank(directive.group())
            define = DEFINE.match(directive.group())
            if define:
                start = directive.start() + define.end()
                body = re.sub(rb"\\(\r?\n)", rb" \1", self.code[start : directive.end()])
                macros[start : directive.end()] = body.replace(b"##", b"__")
        return bytes(view), bytes(macros)

    def _qualifier_macros(self, known: frozenset[str]) -> frozenset[str]:
        """Macros of the file that stand for a device qualifier (``#define FN __aicore__ inline``)."""
        bodies = {}
        for directive in self.directives:
            define = DEFINE.match(directive.group())
            if define and define[2] is None:
                body = directive.group()[define.end() :]
                bodies[define[1].decode()] = {word.decode() for word in WORD.findall(body)}
        found: set[str] = set()
        while True:
            more = {name for name, words in bodies.items() if words & (DEVICE_QUALIFIERS | known | found)} - found
            more |= {name for name, words in bodies.items() if "aicore" in words} - found
            if not more:
                return frozenset(found) - DEVICE_QUALIFIERS
            found |= more

    def _parsed(self) -> tree_sitter.Node:
        """The tree of the file.

        The grammar wants whole statements between ``#if`` and ``#endif``; where they are not, the tree of the text with
        both branches of every condition has fewer errors.
        """
        copy = bytearray(self._parse_copy())
        root = _parser().parse(bytes(copy)).root_node
        if not root.has_error:
            return root
        for directive in self.directives:
            if CONDITION.match(directive.group()):
                copy[directive.start() : directive.end()] = blank(directive.group())
        other = _parser().parse(bytes(copy)).root_node
        return min(root, other, key=lambda tree: sum(1 for _ in _nodes(tree, "ERROR")))

    def _conditional_ranges(self) -> list[tuple[int, int]]:
        """Where ``#if`` sections begin and end, include guards aside."""
        ranges, opened = [], []
        for directive in self.directives:
            match = CONDITION.match(directive.group())
            if match is None:
                continue
            if match[1].startswith(b"if"):
                opened.append(directive.start())
            elif match[1] == b"endif" and opened:
                ranges.append((opened.pop(), directive.end()))
        return [(start, end) for start, end in ranges if self.view[:start].strip() or self.view[end:].strip()]

    def _parse_copy(self) -> bytes:
        """The text for tree-sitter: the vendor's words, the launch configurations and comments are blanked."""
        copy = bytearray(self._blanked(self.view, self.no_comments))
        # `if ASC_IS_AIV {`: the macro brings its own parentheses.
        for match in re.finditer(rb"\bif\s+([A-Z][A-Z0-9_]{2,})(?=\s*\{)", self.view):
            copy[match.start(1) : match.end(1)] = b"(1)".ljust(len(match[1]))
        for start, end in self.launch_gaps:
            copy[start:end] = blank(copy[start:end])
        return bytes(copy)

    def _blanked(self, view: bytes, text: bytes) -> bytes:
        """``text`` without the vendor's words that stand in a view of it."""
        copy = bytearray(text)
        blanked = _BLANKED | self.device_words
        for match in WORD.finditer(view):
            word = match.group().decode()
            if word not in blanked:
                continue
            end = match.end()
            if word in _WORDS_WITH_ARGUMENT:
                opening = skip_blanks(view, end)
                if view[opening : opening + 1] == b"(":
                    end = closing_of(view, opening) + 1
            copy[match.start() : end] = blank(copy[match.start() : end])
        for match in _ATTRIBUTE.finditer(view):
            copy[match.start() : match.end()] = blank(match.group())
        return bytes(copy)

    # -- launches ----------------------------------------------------------------------------------------------------

    def _find_launches(self, view: bytes, in_macro: bool) -> list[_LaunchTokens]:
        """Every ``K<<<...>>>(...)`` of a view.

        Raises:
            RewriteError: ``<<<`` without a kernel before it, ``>>>`` or arguments behind it.
        """
        found = []
        for match in re.finditer(rb"<<<", view):
            end = find_at_depth_0(view, match.end(), b">>>")
            if end is None:
                raise self._error(match.start(), "this launch has no closing `>>>`")
            opening = skip_blanks(view, end + 3)
            if view[opening : opening + 1] != b"(":
                raise self._error(match.start(), "this launch has no argument list: write kernel<<<...>>>(arguments)")
            callee_end = skip_blanks_back(view, match.start())
            callee = callee_start(view, callee_end)
            if callee == callee_end:
                raise self._error(match.start(), "there is no kernel's name before this `<<<`")
            closing = closing_of(view, opening)
            if closing >= len(view):
                raise self._error(opening, "the argument list of this launch has no closing `)`")
            found.append(_LaunchTokens(callee, callee_end, match.start(), end, opening, closing, in_macro))
            self.launched.add(callee)
            if not in_macro:
                self.launch_gaps.append((callee_end, opening))
        return found

    def _rewrite_launch(self, tokens: _LaunchTokens, kernels: dict[str, Kernel]) -> None:
        place = (tokens.callee, tokens.callee_end, tokens.opening, tokens.closing)
        self._emit_launch(*place, kernels, tokens, tokens.in_macro)

    def _emit_launch(
        self,
        callee: int,
        callee_end: int,
        opening: int,
        closing: int,
        kernels: dict[str, Kernel],
        tokens: _LaunchTokens | None,
        in_macro: bool = False,
    ) -> None:
        """The edits of one launch; without ``tokens`` (a plain call) it has one block."""
        view = self.macro_view if in_macro else self.view
        raw = self.no_comments[callee:callee_end]
        newlines = raw.count(b"\n")
        text = b" ".join(raw.replace(b"\\\n", b" ").replace(b"\\\r\n", b" ").split())
        shown = re.sub(rb"(?<=\w<) | (?=>$)", b"", text).replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        # A macro's parameters may be part of the name.
        shown = b"ASCSIM_TEXT(%s)" % text if in_macro else b'"%s"' % shown
        config = b"" if tokens else b"1"
        head = b"(::ascsim::Launch{%s, __LINE__, ::ascsim::launch_config(%s" % (shown, config)
        self.edits.append(_Edit(callee, callee_end, head + (b"\\\n" if in_macro else b"\n") * newlines))
        if tokens:
            self.edits.append(_Edit(tokens.open, tokens.open + 3, b""))
            self.edits.append(_Edit(tokens.close, tokens.close + 3, b""))
        arguments = split_arguments(view, opening, closing)
        comma = b", " if arguments else b""
        name = last_name(text)
        is_named = not in_macro and name in self.named and bool(_PLAIN_NAME.fullmatch(text))
        if is_named:
            self.launched_by_name.add(name)
        self.are_all_named &= is_named
        by_name = b", " + text if is_named else b""
        run = b")}).run<ASCSIM_TU%s>([](auto... ascsim_a) { %s(ascsim_a...); }%s" % (by_name, text, comma)
        self.edits.append(_Edit(opening, opening + 1, run))
        self._rewrite_null_arguments(view, arguments, kernels.get(name))
        line, column = self._position(callee)
        self.launches.append(Launch(text.decode(errors="replace"), line, column, tokens is None))

    def _rewrite_null_arguments(self, view: bytes, arguments: list[tuple[int, int]], kernel: Kernel | None) -> None:
        """A literal 0 loses its pointer-ness in ``auto...``; where the kernel takes a pointer, say ``nullptr``."""
        if kernel is None or kernel.is_template:
            return
        for (start, end), parameter in zip(arguments, kernel.parameters, strict=False):
            text = view[start:end]
            if parameter.is_pointer and text.strip() in (b"0", b"NULL"):
                first = start + len(text) - len(text.lstrip())
                self.edits.append(_Edit(first, first + len(text.strip()), b"nullptr"))

    # -- functions ---------------------------------------------------------------------------------------------------

    def _functions(self, root: tree_sitter.Node, view: bytes | None = None) -> dict[int, _Function]:
        """Functions by the id of their node, in a tree of this view."""
        view = self.view if view is None else view
        found = {}
        for node in _nodes(root, "function_definition", "declaration"):
            declarator = _function_declarator(node)
            if declarator is None:
                continue
            start = max(view.rfind(mark, 0, declarator.start_byte) for mark in (b";", b"{", b"}")) + 1
            words = frozenset(word.decode() for word in WORD.findall(view[start : declarator.start_byte]))
            name = _declared_name(declarator)
            found[node.id] = _Function(node, declarator, name, words, (start, declarator.start_byte), view)
        return found

    def _is_device(self, function: _Function) -> bool:
        return (
            function.is_kernel
            or bool(function.words & self.device_words)
            or bool(_ATTRIBUTE.search(function.view, *function.prefix))
        )

    def _kernel(self, function: _Function) -> Kernel:
        name_node = function.declarator.child_by_field_name("declarator") or function.declarator
        line, column = self._position(name_node.start_byte)
        prefix = self.view[slice(*function.prefix)]
        core = next((core for word, core in CORES.items() if word in function.words), "")
        ratio = re.search(rb"__mix__\s*\(([^)]*)\)", prefix)
        if ratio:
            core = "mix(" + ", ".join(part.strip().decode() for part in ratio[1].split(b",")) + ")"
        spaces = [
            _text(ancestor.child_by_field_name("name"))
            for ancestor in _ancestors(function.node)
            if ancestor.type == "namespace_definition" and ancestor.child_by_field_name("name") is not None
        ]
        return Kernel(
            name=function.name.rsplit("::", 1)[-1],
            qualified="::".join([*reversed(spaces), function.name]),
            line=line,
            column=column,
            core=core,
            is_template="template" in function.words
            or any(ancestor.type == "template_declaration" for ancestor in _ancestors(function.node)),
            is_defined=function.body is not None,
            parameters=_parameters(function.declarator),
        )

    def _rewrite_function(self, function: _Function, kernels: dict[str, Kernel]) -> None:
        body = function.body
        if body is None:
            return
        if "__simd_vf__" in function.words:
            at = body.start_byte + 1
            self.device_edits.append(_Edit(at, at, b" ::ascsim::VfScope ascsim_vf_scope(__func__);"))
        if _ON_VECTORS & function.words and _ADDRESS_REGISTER.search(self.code):
            self._count_loops(body)
        name = function.name.rsplit("::", 1)[-1]
        kernel = kernels.get(name) if function.is_kernel else None
        if self.export_kernels and kernel is not None and not kernel.is_template and name not in self.ambiguous:
            export = f" ASCSIM_EXPORT_KERNEL({name}, {function.name})".encode()
            self.device_edits.append(_Edit(body.end_byte, body.end_byte, export))
        if kernel is not None and name in self.launched_by_name:
            self.entries.append(_Edit(body.end_byte, body.end_byte, f" ASCSIM_LAUNCHED(ASCSIM_TU, {name})".encode()))

    def _count_loops(self, body: tree_sitter.Node) -> None:
        """Let each loop tell its rounds: address registers count them."""
        for loop in _nodes(body, "for_statement"):
            inner = loop.child_by_field_name("body")
            if inner is None:
                continue
            at = inner.start_byte
            braced = inner.type == "compound_statement"
            self.device_edits.append(_Edit(loop.start_byte, loop.start_byte, b"{ ::ascsim::Loop ascsim_loop; "))
            counts = (
                _Edit(at + 1, at + 1, b" ascsim_loop.next();") if braced else _Edit(at, at, b"{ ascsim_loop.next(); ")
            )
            self.device_edits.append(counts)
            self.device_edits.append(_Edit(loop.end_byte, loop.end_byte, b" }" if braced else b" } }"))

    def _ambiguous(self, functions: dict[int, _Function]) -> frozenset[str]:
        """Names that several kernels share: in two namespaces, or overloaded. Twins under ``#if`` are one kernel."""
        conditional = self._conditional_ranges()
        found = Counter(
            function.name.rsplit("::", 1)[-1]
            for function in functions.values()
            if function.is_kernel
            and function.body is not None
            and not any(start <= function.node.start_byte < end for start, end in conditional)
        )
        return frozenset(name for name, count in found.items() if count > 1)

    def _host_edits(self, functions: dict[int, _Function]) -> list[_Edit]:
        """The host compiler sees device functions without their bodies; it could not compile them and runs none.

        Constant expressions may need a ``constexpr`` body, a deduced return type needs its ``return``. Portable
        programs have no second side: their device functions stay whole.
        """
        if self.device_calls_are_launches:
            return [*self.edits, *self.device_edits]
        bodies = []
        for function in functions.values():
            body = function.body
            if body is None or not self._is_device(function):
                continue
            if function.words & {"constexpr", "consteval", "auto", "decltype", "__host__", "__host_aicore__"}:
                continue
            inside = self.source[body.start_byte + 1 : body.end_byte - 1]
            if len(re.findall(rb"^\s*#\s*if", inside, re.M)) != len(re.findall(rb"^\s*#\s*endif", inside, re.M)):
                continue
            left = b" __builtin_trap(); " + b"\n" * inside.count(b"\n")
            bodies.append(_Edit(body.start_byte + 1, body.end_byte - 1, left))
        edits = [*self.edits, *self.device_edits]
        return [*(edit for edit in edits if not any(body.start <= edit.start <= body.end for body in bodies)), *bodies]

    # -- host functions in device text -------------------------------------------------------------------------------

    def _named(self, functions: dict[int, _Function]) -> frozenset[str]:
        """The kernels that a launch may name: defined once, in a namespace, and no other function has the name.

        Default arguments are no part of a function's type.
        """
        if self.elsewhere is None or self.device_calls_are_launches:
            return frozenset()
        found: dict[str, list[_Function]] = {}
        for function in functions.values():
            if function.body is not None or _is_in(function.node, _NAMESPACES | {"linkage_specification"}):
                found.setdefault(function.name, []).append(function)

        def can_be_named(function: _Function) -> bool:
            return (
                function.is_kernel
                and function.name.isidentifier()
                and "template" not in function.words
                and "=" not in _text(function.declarator)
                and _is_in(function.node, _NAMESPACES | {"linkage_specification"})
            )

        names = {
            name
            for name, same in found.items()
            if all(map(can_be_named, same)) and sum(function.body is not None for function in same) == 1
        }
        return frozenset(names - self.elsewhere()) if names else frozenset()

    def _device_text(self, root: tree_sitter.Node, functions: dict[int, _Function]) -> str:
        """The text for devices, without the host functions that it can do without.

        Device code may call any function, whatever its qualifiers. One that it can do without calls acl or launches, or is
        ``main``, or is called by such functions; and its name stands nowhere else. Directives within it stay, and so do
        the lines; what follows the last line of code goes, so that an edit of host code at a file's end leaves the text.
        """
        edits = [*self.edits, *self.device_edits, *self.entries]
        if self.elsewhere is None or not self.launched_by_name or not self.are_all_named or root.has_error:
            return self._apply(edits)
        if self.known.has_launches:
            return self._apply(edits)
        spans = [_span(function) for function in self._of_host_alone(functions, self.elsewhere())]
        kept = [edit for edit in edits if not any(start <= edit.start < end for start, end in spans)]
        rest = bytearray(self.code)
        for start, end in spans:
            rest[start:end] = blank(rest[start:end])
        for directive in self.directives:
            rest[directive.start() : directive.end()] = directive.group()
        end_of_code = max([len(rest.rstrip()), *(end for start, end in spans if start < len(rest.rstrip()))])
        left_out = [_Edit(start, end, self._emptied(start, end)) for start, end in spans if start < end_of_code]
        return self._apply([*kept, *left_out, _Edit(end_of_code, len(self.source), b"\n")])

    def _emptied(self, start: int, end: int) -> bytes:
        """What stays of a part of the text that is left out: its directives, and its lines."""
        pieces, at = [], start
        for directive in self.directives:
            if start <= directive.start() and directive.end() <= end:
                pieces += [b"\n" * self.source.count(b"\n", at, directive.start())]
                pieces += [self.source[directive.start() : directive.end()]]
                at = directive.end()
        return b"".join(pieces) + b"\n" * self.source.count(b"\n", at, end)

    def _of_host_alone(self, functions: dict[int, _Function], elsewhere: frozenset[str]) -> list[_Function]:
        """The host functions that are named by each other alone, as far as they are sure to be for the host."""
        places = _NAMESPACES | {"template_declaration"}
        free = [f for f in functions.values() if _is_in(f.node, places) and not self._is_device(f)]
        defined = [
            f
            for f in free
            if f.body is not None and f.name.isidentifier() and not f.words & {"constexpr", "consteval", "extern"}
        ]
        words_of = {f.name: Counter[str]() for f in defined}
        for function in defined:
            words_of[function.name] += Counter(_words(self.code[slice(*_span(function))]))
        every = Counter(_words(self.code))
        for function in free:
            if function.body is None:
                every[function.name] -= 1  # to declare is not to use
        names = {f.name for f in defined if f.name == "main" or _OF_HOST.search(self.code, *_span(f))}
        while more := {name for name in words_of if any(name in words_of[host] for host in names)} - names:
            names |= more
        names -= elsewhere
        while used := {name for name in names if (every - sum((words_of[n] for n in names), Counter()))[name] > 0}:
            names -= used
        return [function for function in defined if function.name in names]

    # -- calls -------------------------------------------------------------------------------------------------------

    def _visit_calls(
        self, root: tree_sitter.Node, functions: dict[int, _Function], kernels: dict[str, Kernel]
    ) -> tuple[Call, ...]:
        """Turn plain calls of kernels in host functions into launches; collect names that look like instructions."""
        kernel_names = kernels.keys() | self.known.kernels
        entries = self._device_entries(functions) if self.device_calls_are_launches else frozenset()
        defined = {function.name for function in functions.values()} | {
            define[1].decode() for directive in self.directives if (define := DEFINE.match(directive.group()))
        }
        calls, conditional = [], self._conditional_ranges()
        for node in _nodes(root, "call_expression"):
            callee = node.child_by_field_name("function")
            arguments = node.child_by_field_name("arguments")
            if callee is None or arguments is None or arguments.type != "argument_list":
                continue
            name = last_name(_text(callee).encode())
            if callee.start_byte not in self.launched and (name in kernel_names or name in entries):
                host = self._enclosing_function(node, functions)
                if host is not None and not self._is_device(host):
                    self._emit_launch(
                        callee.start_byte, callee.end_byte, arguments.start_byte, arguments.end_byte - 1, kernels, None
                    )
                    continue
            plain = callee.type == "identifier" or (
                callee.type == "template_function" and _type_of(callee.child_by_field_name("name")) == "identifier"
            )
            if plain and name not in defined and INSTRUCTION_NAME.fullmatch(name):
                function = self._enclosing_function(node, functions)
                on_device = function is not None and self._is_device(function)
                if on_device or (self.device_calls_are_launches and function is not None):
                    line, column = self._position(callee.start_byte)
                    is_conditional = any(start <= callee.start_byte < end for start, end in conditional)
                    calls.append(Call(name, line, column, is_conditional))
        if self.device_calls_are_launches:
            self._visit_pointers(root, functions, kernels)
        return tuple(calls)

    def _visit_macros(self, kernels: dict[str, Kernel]) -> None:
        """Plain calls of kernels in functions that a macro defines whole: each macro is a file of its own."""
        for directive in self.directives:
            body = self.macro_view[directive.start() : directive.end()]
            if not self.device_words.union(("__global__",)).intersection(w.decode() for w in WORD.findall(body)):
                continue
            view = blank(self.macro_view[: directive.start()]) + body
            functions = self._functions(root := _parser().parse(self._blanked(view, view)).root_node, view)
            entries = self._device_entries(functions) if self.device_calls_are_launches else frozenset()
            entries |= {function.name for function in functions.values() if function.is_kernel}
            entries |= kernels.keys() | self.known.kernels
            for node in _nodes(root, "call_expression"):
                callee, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
                host = self._enclosing_function(node, functions)
                if callee is None or arguments is None or host is None or self._is_device(host):
                    continue
                if callee.start_byte not in self.launched and last_name(_text(callee).encode()) in entries:
                    place = (callee.start_byte, callee.end_byte, arguments.start_byte, arguments.end_byte - 1)
                    self._emit_launch(*place, kernels, None, in_macro=True)

    def _visit_pointers(
        self, root: tree_sitter.Node, functions: dict[int, _Function], kernels: dict[str, Kernel]
    ) -> None:
        """In portable programs a pointer to a kernel is one to a function that launches it: calls go through tables."""
        for node in _nodes(root, "identifier"):
            kernel, parent = kernels.get(_text(node)), node.parent
            if kernel is None or kernel.is_template or parent is None or parent.type not in _VALUE_PLACES:
                continue
            if parent.type in ("init_declarator", "assignment_expression") and parent.children[0] == node:
                continue
            host = self._enclosing_function(node, functions)
            if host is not None and self._is_device(host):
                continue
            if parent.type == "pointer_expression":
                if _text(parent).lstrip()[:1] != "&":
                    continue
                node = parent
            name = kernel.name.encode()
            self.edits.append(
                _Edit(node.start_byte, node.end_byte, b"(&::ascsim::Launching<ASCSIM_TU, &%s>::call)" % name)
            )

    def _device_entries(self, functions: dict[int, _Function]) -> frozenset[str]:
        """Device functions that take addresses in GM and no references: what a host can only mean to launch."""
        found = set()
        for function in functions.values():
            parameters = function.declarator.child_by_field_name("parameters")
            if function.is_kernel or not self._is_device(function) or parameters is None:
                continue
            text = function.view[parameters.start_byte : parameters.end_byte]
            if b"__gm__" in text and b"&" not in text and "void" in function.words:
                found.add(function.name)
        return frozenset(found)

    def _enclosing_function(self, node: tree_sitter.Node, functions: dict[int, _Function]) -> _Function | None:
        for ancestor in _ancestors(node):
            if ancestor.type == "function_definition" and ancestor.id in functions:
                return functions[ancestor.id]
        return None

    # -- declarations of objects on the chip ---------------------------------------------------------------------------

    def _rewrite_local_objects(self, node: tree_sitter.Node) -> None:
        """``__ubuf__ T x[N];`` inside a function; pointers and everything at namespace scope stay."""
        declarators = node.children_by_field_name("declarator")
        if not declarators or all(ancestor.type != "compound_statement" for ancestor in _ancestors(node)):
            return
        keyword = self._space_keyword(node, declarators[0].start_byte)
        if keyword is None:
            return
        shapes = [self._object_shape(declarator) for declarator in declarators]
        if not any(shapes):
            return
        start = min(node.start_byte, keyword.start())
        space = SPACES[keyword.group().decode()]
        type_text, alignment, storage = self._specifiers(node, start, declarators[0].start_byte)
        parts, at = [], start
        for declarator, shape in zip(declarators, shapes, strict=True):
            lines = b"\n" * self.source.count(b"\n", at, declarator.end_byte)
            at = declarator.end_byte
            if shape is None:
                original = b" ".join(self.no_comments[start : declarators[0].start_byte].split())
                text = self.no_comments[declarator.start_byte : declarator.end_byte].replace(b"\n", b" ")
                parts.append(b"%s%s %s;" % (lines, original, text))
                continue
            name, extents = shape
            function = b"local_array"
            if b"extern" in storage and not extents.replace(b"[()]", b""):
                function, extents = b"dynamic_array", b"[]"
            call = b"::ascsim::%s<%s%s>" % (function, type_text, extents)
            arguments = b'::ascsim::Space::%s, [] { return "%s"; }%s' % (space.encode(), name, alignment)
            parts.append(b"%sauto& %s = %s(%s);" % (lines, name, call, arguments))
        tail = b"\n" * self.source.count(b"\n", at, node.end_byte)
        self.device_edits.append(_Edit(start, node.end_byte, b" ".join(parts) + tail))

    def _space_keyword(self, node: tree_sitter.Node, before: int) -> re.Match[bytes] | None:
        """The address-space word that qualifies the declared object itself, not one within a type's arguments."""
        begin = max(self.view.rfind(mark, 0, before) for mark in (b";", b"{", b"}")) + 1
        for match in _SPACE_WORD.finditer(self.view, begin, before):
            inside = any(child.start_byte <= match.start() < child.end_byte for child in node.children)
            adjoins = match.start() >= node.start_byte or not self.view[match.end() : node.start_byte].strip()
            if adjoins and not inside:
                return match
        return None

    def _object_shape(self, declarator: tree_sitter.Node) -> tuple[bytes, bytes] | None:
        """Name and extents (``[(N)][(M)]``) of an object; None for a pointer."""
        if declarator.type == "init_declarator":
            inner = declarator.child_by_field_name("declarator")
            if inner is not None and inner.type == "array_declarator" and self._object_shape(inner):
                raise self._error(
                    declarator.start_byte, "an array in on-chip memory cannot have an initialiser; assign its elements"
                )
            return None
        extents = b""
        while declarator.type == "array_declarator":
            size = declarator.child_by_field_name("size")
            inner = declarator.child_by_field_name("declarator")
            if inner is None:
                return None
            text = b"" if size is None else b" ".join(self.no_comments[size.start_byte : size.end_byte].split())
            extents = b"[(%s)]" % text + extents
            declarator = inner
        if declarator.type != "identifier":
            return None
        return self.source[declarator.start_byte : declarator.end_byte], extents

    def _specifiers(self, node: tree_sitter.Node, start: int, end: int) -> tuple[bytes, bytes, frozenset[bytes]]:
        """The bare type, the alignment as a further argument, and the storage words of a declaration."""
        text = bytearray(self.no_comments[start:end])
        alignment, storage = b"", set()
        for child in node.children:
            is_alignment = child.type in ("alignas_qualifier", "attribute_specifier") or (
                child.type == "type_qualifier" and _text(child).startswith("alignas")
            )
            if is_alignment:
                found = re.search(rb"(?:alignas|aligned(?:__)?)\s*\((.*?)\)+$", _text(child).encode(), re.S)
                alignment = b", " + found[1].strip() if found else alignment
            elif child.type == "storage_class_specifier" or _text(child) == "constexpr":
                storage.add(_text(child).encode())
            else:
                continue
            if child.end_byte <= end:
                text[child.start_byte - start : child.end_byte - start] = b" " * (child.end_byte - child.start_byte)
        words = _SPACE_WORD.sub(b" ", bytes(text))
        return b" ".join(words.split()), alignment, frozenset(storage)

    def _refuse_what_was_missed(self) -> None:
        """Left alone, an on-chip array would be an array on the host's stack and a vector function plain code."""
        touched = [(edit.start, edit.end) for edit in self.device_edits]
        for view, where in ((self.view, ""), (self.macro_view, " in a macro")):
            for match in _OBJECT_ON_CHIP.finditer(view):
                if not any(start <= match.start() < end for start, end in touched):
                    raise self._error(
                        match.start(),
                        f"ascsim cannot give this array{where} its place in on-chip memory: declare it inside a "
                        "function, in a statement of its own",
                    )
            for match in _VECTOR_FUNCTION.finditer(view):
                if not any(start == match.end() for start, _ in touched):
                    raise self._error(match.start(), f"ascsim cannot read this vector function{where}")

    # -- the rest ----------------------------------------------------------------------------------------------------

    def _rewrite_attributes(self) -> None:
        """``[aicore]`` is an attribute of the vendor's compiler; in C++ it would begin a lambda."""
        for match in _ATTRIBUTE.finditer(self.code):
            self.edits.append(_Edit(match.start(), match.end(), blank(match.group())))

    def _ordered(self, edits: list[_Edit]) -> list[_Edit]:
        ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
        for before, after in pairwise(ordered):
            if after.start < before.end:
                raise self._error(after.start, "this launch stands inside another construct that ascsim rewrites")
        return ordered

    def _apply(self, edits: list[_Edit]) -> str:
        pieces, at = [], 0
        for edit in self._ordered(edits):
            pieces += [self.source[at : edit.start], edit.text]
            at = edit.end
        pieces.append(self.source[at:])
        return b"".join(pieces).decode("utf-8", "surrogateescape")

    def _position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.line_starts, offset)
        prefix = self.source[self.line_starts[line - 1] : offset]
        return line, len(prefix.decode("utf-8", "replace")) + 1

    def _error(self, offset: int, message: str) -> RewriteError:
        return RewriteError(message, self.path, *self._position(offset))


@dataclass(frozen=True)
class _LaunchTokens:
    """Byte offsets of the parts of ``callee <<<open config close>>> (opening arguments closing)``."""

    callee: int
    callee_end: int
    open: int
    close: int
    opening: int
    closing: int
    in_macro: bool


# --------------------------------------------------------------------------------------------------------------------
# The vendor's constructs, as far as words go

_ATTRIBUTE = re.compile(rb"\[\s*(?:host\s*,\s*)?aicore(?:\s*,\s*host)?\s*\](?!\s*[({])")
_SPACE_WORD = re.compile(rb"\b(?:" + b"|".join(word.encode() for word in SPACES) + rb")\b")
# An array or object declared in on-chip memory, and a vector function's head, as far as words go.
_OBJECT_ON_CHIP = re.compile(
    rb"(?:" + _SPACE_WORD.pattern + rb")(?:\s+(?:const|static|volatile|unsigned|typename|alignas\(\w+\)))*"
    rb"\s+[\w:]+(?:\s*<[^;(){}*&]*>)?\s+\w+\s*\[[^;{}]*\]\s*[;,]"
)
_ON_VECTORS = frozenset({"__simd_vf__", "__simd_callee__"})
_ADDRESS_REGISTER = re.compile(rb"(addr|iter)_reg")
_VECTOR_FUNCTION = re.compile(rb"\b__simd_vf__\b[^;{}]*\{")
# --------------------------------------------------------------------------------------------------------------------
# Trees


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def _nodes(root: tree_sitter.Node, *types: str) -> Iterator[tree_sitter.Node]:
    """All nodes of these types, in the order of the text."""
    wanted, stack = set(types), [root]
    while stack:
        node = stack.pop()
        if node.type in wanted:
            yield node
        stack.extend(reversed(node.children))


def _ancestors(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _is_in(node: tree_sitter.Node, places: frozenset[str]) -> bool:
    """Whether there is nothing around a node but such places, and conditions."""
    return all(ancestor.type in places or ancestor.type.startswith("preproc_") for ancestor in _ancestors(node))


def _span(function: _Function) -> tuple[int, int]:
    """Where a function's definition begins, with its template parameters, and ends."""
    node, parent = function.node, function.node.parent
    node = parent if parent is not None and parent.type == "template_declaration" else node
    return node.start_byte, node.end_byte


def _words(text: bytes) -> list[str]:
    return [word.decode() for word in WORD.findall(text)]


def _text(node: tree_sitter.Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode(errors="replace")


def _type_of(node: tree_sitter.Node | None) -> str:
    return "" if node is None else node.type


def _function_declarator(node: tree_sitter.Node) -> tree_sitter.Node | None:
    """The function declarator of a definition or declaration, behind pointers and references."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
        inner = declarator.child_by_field_name("declarator")
        declarator = inner if inner is not None else declarator.children[-1]
    return declarator if declarator is not None and declarator.type == "function_declarator" else None


def _declared_name(declarator: tree_sitter.Node) -> str:
    return _text(declarator.child_by_field_name("declarator")).split("<", 1)[0].strip()


def _parameters(declarator: tree_sitter.Node) -> tuple[Parameter, ...]:
    found = []
    parameters = declarator.child_by_field_name("parameters")
    for node in parameters.children if parameters is not None else ():
        if node.type not in ("parameter_declaration", "optional_parameter_declaration"):
            continue
        inner = node.child_by_field_name("declarator")
        name = next(_nodes(inner, "identifier"), None) if inner is not None else None
        default = node.child_by_field_name("default_value")
        text = _text(node)
        if default is not None:
            text = text[: text.rindex("=")]
        if name is not None:
            at = name.start_byte - node.start_byte
            raw = text.encode()
            text = (raw[:at] + raw[at + len(_text(name).encode()) :]).decode(errors="replace")
        cleaned = " ".join(text.replace("*", " * ").split()).replace(" *", "*")
        if cleaned != "void":
            found.append(Parameter(cleaned, _text(name)))
    return tuple(found)
