"""Text as tokens: comments and strings blanked, brackets matched, names read backwards.

All functions take and return byte offsets. A *view* is the text with everything that is no code blanked, so that
offsets in it are offsets in the text.
"""

from __future__ import annotations

import re

TOKEN = re.compile(
    rb"""(?P<raw>R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")
       | (?P<comment>//(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z))
       | (?P<string>"(?:[^"\\\n]|\\.)*")
       | (?P<number>\b\d(?:[eEpP][+-]|['.\w])*)
       | (?P<char>'(?:[^'\\\n]|\\.)+')""",
    re.DOTALL | re.VERBOSE,
)
DIRECTIVE = re.compile(rb"^[ \t]*\#(?:\\\r?\n|[^\n])*", re.MULTILINE)
CONDITION = re.compile(rb"[ \t]*\#[ \t]*(if\w*|el\w+|endif)\b")
DEFINE = re.compile(rb"[ \t]*\#[ \t]*define[ \t]+(\w+)(\([^)]*\))?")
WORD = re.compile(rb"[A-Za-z_]\w*")


def blank(text: bytes | bytearray) -> bytes:
    """The text with everything but its newlines replaced by blanks."""
    return re.sub(rb"[^\r\n]", b" ", bytes(text))


def mask(source: bytes, *, strings: bool) -> bytes:
    """The text with comments, and with the insides of strings if asked, replaced by blanks; newlines stay."""

    def replaced(match: re.Match[bytes]) -> bytes:
        text = match.group()
        if match.lastgroup == "comment":
            return blank(text)
        if strings and match.lastgroup in ("raw", "string", "char", "delimiter"):
            return text[:1] + blank(text[1:-1]) + text[-1:]
        return text

    return TOKEN.sub(replaced, source)


_PAIRS = {ord("("): ord(")"), ord("["): ord("]"), ord("{"): ord("}")}
_CLOSERS = {closer: opener for opener, closer in _PAIRS.items()}
_STATEMENT_WORDS = frozenset({b"return", b"else", b"do", b"throw", b"co_return"})
_LESS, _GREATER, _COMMA = ord("<"), ord(">"), ord(",")


def skip_blanks(view: bytes, at: int) -> int:
    """The next offset from ``at`` on that holds no white space."""
    while at < len(view) and view[at] in b" \t\r\n\f\v":
        at += 1
    return at


def skip_blanks_back(view: bytes, at: int) -> int:
    """The offset behind the last byte before ``at`` that is no white space."""
    while at > 0 and view[at - 1] in b" \t\r\n\f\v":
        at -= 1
    return at


def closing_of(view: bytes, opening: int) -> int:
    """Where the bracket at ``opening`` closes; the end of the text if nowhere."""
    expected: list[int] = []
    for at in range(opening, len(view)):
        if view[at] in _PAIRS:
            expected.append(_PAIRS[view[at]])
        elif view[at] in _CLOSERS:
            if view[at] != expected.pop():
                break
            if not expected:
                return at
    return len(view)


def opening_of(view: bytes, closing: int) -> int:
    """Where the bracket that closes at ``closing`` opens; -1 if nowhere."""
    depth = 0
    for at in range(closing, -1, -1):
        if view[at] in _CLOSERS:
            depth += 1
        elif view[at] in _PAIRS:
            depth -= 1
            if depth == 0:
                return at
    return -1


def find_at_depth_0(view: bytes, start: int, wanted: bytes) -> int | None:
    """Where ``wanted`` stands outside of brackets; None before the statement or the bracket around it ends."""
    at = start
    while at < len(view):
        if view.startswith(wanted, at):
            return at
        if view[at] in _PAIRS:
            at = closing_of(view, at)
        elif view[at] in _CLOSERS or view[at] == ord(";"):
            return None
        at += 1
    return None


def split_arguments(view: bytes, opening: int, closing: int) -> list[tuple[int, int]]:
    """The ranges of the arguments between two parentheses; none if there is nothing but blanks."""
    if not view[opening + 1 : closing].strip():
        return []
    ranges, start, at = [], opening + 1, opening + 1
    while at < closing:
        if view[at] in _PAIRS:
            at = closing_of(view, at)
        elif view[at] == _COMMA:
            ranges.append((start, at))
            start = at + 1
        at += 1
    return [*ranges, (start, closing)]


def callee_start(view: bytes, end: int) -> int:
    """Where the name that ends at ``end`` begins: ``ns::C<A, (B > 0)>::template kernel<T>``, ``NAME(run, X)<T>``."""
    start = end
    while True:
        at = skip_blanks_back(view, start)
        if at > 0 and view[at - 1] == _GREATER:
            at = skip_blanks_back(view, angle_opening(view, at - 1))
        if at > 0 and view[at - 1] in b")]":
            opening = opening_of(view, at - 1)
            before = skip_blanks_back(view, max(opening, 0))
            if opening < 0:
                return start
            name = view[word_start(view, before) : before]
            at = before if name and name not in _STATEMENT_WORDS else opening
        word = word_start(view, at)
        if word == at and not (at < start and view[at : at + 1] == b"("):
            return start
        start = word
        before = skip_blanks_back(view, start)
        if view[word_start(view, before) : before] == b"template":
            before = skip_blanks_back(view, before - len(b"template"))
        if view[max(before - 2, 0) : before] != b"::":
            return start
        start = before - 2


def angle_opening(view: bytes, closing: int) -> int:
    """Where the template argument list that ends at ``closing`` begins; the offset behind it if nowhere."""
    depth, at = 0, closing
    while at >= 0:
        byte = view[at]
        if byte == _GREATER and view[max(at - 1, 0) : at] != b"-":
            depth += 1
        elif byte == _LESS:
            depth -= 1
            if depth == 0:
                return at
        elif byte in _CLOSERS:
            at = opening_of(view, at)
        elif byte in b";{":
            break
        at -= 1
    return closing + 1


def word_start(view: bytes, end: int) -> int:
    """Where the word that ends at ``end`` begins."""
    at = end
    while at > 0 and (view[at - 1 : at].isalnum() or view[at - 1] in b"_$" or view[at - 1] >= 0x80):
        at -= 1
    return at


def last_name(text: bytes) -> str:
    """``kernel`` of ``ns::kernel<T, N>``."""
    end = len(text.rstrip())
    if end and text[end - 1] == _GREATER:
        end = skip_blanks_back(text, angle_opening(text, end - 1))
    return text[word_start(text, end) : end].decode(errors="replace")
