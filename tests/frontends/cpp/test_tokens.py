"""Text as tokens: masks keep every offset, brackets match, names are read backwards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascsim.frontends.cpp.tokens import (
    blank,
    callee_start,
    closing_of,
    find_at_depth_0,
    last_name,
    mask,
    opening_of,
    split_arguments,
)


@pytest.mark.parametrize(
    ("source", "masked"),
    [
        (b"a // b\nc", b"a     \nc"),
        (b"a // b \\\n still\nc", b"a       \n      \nc"),
        (b"a /* b\n */ c", b"a     \n    c"),
        (b"/* open", b"       "),
        (b'"x // y" z', b'"      " z'),
        (b"'\"' x", b"' ' x"),
        (b'R"d(a )" b)d" z', b'R           " z'),
        (b"1'000 'a'", b"1'000 ' '"),
        (b"0x1'ffp+3", b"0x1'ffp+3"),
        (b'"a\\"b" c', b'"    " c'),
    ],
)
def test_what_is_no_code_is_blanked(source: bytes, masked: bytes) -> None:
    assert mask(source, strings=True) == masked


@given(st.text("ab\"'/*\\\nR() ", max_size=40).map(str.encode), st.booleans())
def test_masks_keep_lengths_and_lines(source: bytes, strings: bool) -> None:
    masked = mask(source, strings=strings)
    assert len(masked) == len(source)
    assert [at for at, byte in enumerate(masked) if byte == 10] == [at for at, byte in enumerate(source) if byte == 10]
    assert blank(source).count(b"\n") == source.count(b"\n")


def test_brackets_match() -> None:
    text = b"f(a[1], {b}) (]"
    assert closing_of(text, 1) == 11
    assert opening_of(text, 11) == 1
    assert closing_of(text, 13) == len(text)
    assert opening_of(b"a)", 1) == -1
    assert split_arguments(text, 1, 11) == [(2, 6), (7, 11)]
    assert split_arguments(b"( )", 0, 2) == []
    assert find_at_depth_0(b"f(>>>) >>>", 0, b">>>") == 7
    assert find_at_depth_0(b"a; >>>", 0, b">>>") is None


@pytest.mark.parametrize(
    ("before", "name", "last"),
    [
        ("x = ", "k", "k"),
        ("return ", "ns::k<A<B>, (C > D), f(x->y)>", "k"),
        ("{ ", "::a::b", "b"),
        (";", "C<T>::template k<N>", "k"),
        ("else ", "NAME(run, X)<half>", ""),
        ("return ", "(k)", ""),
        ("a + ", "table[i]", ""),
    ],
)
def test_names_are_read_backwards(before: str, name: str, last: str) -> None:
    text = (before + name).encode()
    assert text[callee_start(text, len(text)) :].decode() == name
    assert not last or last_name(name.encode()) == last
