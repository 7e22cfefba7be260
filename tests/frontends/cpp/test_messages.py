"""The compiler's messages in the user's terms."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascsim.frontends.cpp.messages import original_column, parse_messages, render

GCC = """\
In file included from /ours/pto/tile.hpp:3,
                 from user.cpp:1:
/ours/pto/tile.hpp: In instantiation of 'void TADD(A&) [with A = int]':
user.cpp:2:9:   required from 'void f(T) [with T = int]'
user.cpp:9:1:   required from here
/ours/pto/tile.hpp:20:5: error: static assertion failed: TADD takes tiles
   20 |     static_assert(is_tile<A>);
      |     ^~~~~~~~~~~~~
/ours/pto/tile.hpp:20:5: note: 'false' evaluates to false
user.cpp: In function 'int main()':
user.cpp:1:5: warning: unused variable 'x' [-Wunused-variable]
user.cpp:3:3: error: 'y' was not declared in this scope; did you mean 'x'?
user.cpp:1:1: note: 'x' declared here
user.cpp:3:3: error: 'y' was not declared in this scope; did you mean 'x'?
"""

CLANG = """\
In file included from user.cpp:1:
/ours/pto/tile.hpp:20:5: error: static assertion failed: TADD takes tiles
    static_assert(is_tile<A>);
    ^
user.cpp:2:9: note: in instantiation of function template specialization 'TADD<int>' requested here
2 errors generated.
"""


def user_file(directory: Path) -> Path:
    path = directory / "user.cpp"
    path.write_text("int\tx;\n    TADD(a);\n  y = 1;\n")
    return path


def told(text: str, directory: Path) -> str:
    path = user_file(directory)
    return render(parse_messages(text.replace("user.cpp", str(path)), [Path("/ours")])).replace(f"{directory}/", "")


def test_gcc(tmp_path: Path) -> None:
    assert told(GCC, tmp_path).splitlines() == [
        "user.cpp:2:9: error: static assertion failed: TADD takes tiles",
        "      2 |     TADD(a);",
        "        |         ^",
        "user.cpp:1:5: warning: unused variable 'x' [-Wunused-variable]",
        "      1 | int\tx;",
        "        |    \t^",
        "user.cpp:3:3: error: 'y' was not declared in this scope; did you mean 'x'?",
        "      3 |   y = 1;",
        "        |   ^",
        "user.cpp:1:1: note: 'x' declared here",
        "      1 | int\tx;",
        "        | ^",
    ]


def test_clang(tmp_path: Path) -> None:
    assert told(CLANG, tmp_path).splitlines()[0] == "user.cpp:2:9: error: static assertion failed: TADD takes tiles"
    assert told(CLANG, tmp_path).count("note:") == 0


def test_an_error_in_a_template_of_the_user_says_who_asked(tmp_path: Path) -> None:
    printed = (
        "user.cpp: In instantiation of 'void f(T)':\n/usr/include/c++/12/tuple:9:1:   required from 'x'\n"
        "user.cpp:3:1:   required from here\nuser.cpp:1:5: error: no\n/usr/include/c++/12/tuple:9:1: note: noise\n"
    )
    assert [row for row in told(printed, tmp_path).splitlines() if row.startswith("user")] == [
        "user.cpp:1:5: error: no",
        "user.cpp:3:1: note: required from here",
    ]


def test_a_message_that_no_line_of_the_user_led_to_stays() -> None:
    found = parse_messages("/ours/x.hpp:7:1: fatal error: gone.h: No such file or directory\n", [Path("/ours")])
    assert [(m.kind, m.path, m.line, m.is_error) for m in found] == [("fatal error", "/ours/x.hpp", 7, True)]
    assert render(found) == "/ours/x.hpp:7:1: fatal error: gone.h: No such file or directory"


@pytest.mark.parametrize("wording", ["declared with attribute error", "declared with 'error' attribute"])
def test_an_instruction_that_the_chip_lacks_is_told_with_its_code(wording: str) -> None:
    printed = (
        "In function 'void f()',\n    inlined from 'void k()' at user.cpp:9:6:\n"
        f"user.cpp:4:8: error: call to 'asc_x' {wording}: ascsim L001 asc_x: not on a2a3; it exists on A5\n"
    )
    (message,) = parse_messages(printed)
    assert (message.code, message.line, message.text) == ("L001", 4, "asc_x: not on a2a3; it exists on A5")
    assert message.notes == (), "the line of the call says it all"
    assert render([message]).splitlines()[0] == "user.cpp:4:8: error: asc_x: not on a2a3; it exists on A5 [L001]"


def test_warnings_in_our_headers_are_not_the_users() -> None:
    assert parse_messages("/ours/x.hpp:7:1: warning: odd\n/usr/include/y.h:7:1: warning: odd\n", [Path("/ours")]) == []


def test_what_is_not_a_message_is_no_message() -> None:
    assert parse_messages("collect2: error: ld returned 1 exit status\nuser.cpp:1: stuff\n") == []


def test_columns_of_a_rewritten_line() -> None:
    original, rewritten = "    k<<<1>>>(&i, missing);", "    (::ascsim::Launch{...}).run([]{ k(); }, &i, missing);"
    at = rewritten.index("missing") + 1
    assert original_column(original, rewritten, at) == original.index("missing") + 1
    assert original_column(original, rewritten, 3) == 3
    assert original_column(original, rewritten, rewritten.index("run")) == original.index("k<<<") + 1
    assert original_column(original, original, 7) == 7
    assert original_column(original, rewritten, 0) == 0


@given(st.text("ab", max_size=5), st.text("cd", max_size=5), st.text("ef", max_size=5), st.text("gh", max_size=5))
def test_columns_before_and_behind_the_change_are_exact(front: str, old: str, new: str, back: str) -> None:
    original, rewritten = front + old + back, front + new + back
    for column in range(1, len(front) + 1):
        assert original_column(original, rewritten, column) == column
    for distance in range(len(back)):
        assert original_column(original, rewritten, len(rewritten) - distance) == len(original) - distance
