"""The command line: what is taken, what is passed over, and where the rest goes."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.arguments import PASSED_OVER, VENDOR_LIBRARIES, Source, parse


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.asc", "b.cpp", "c.o", "libx.a", "d.c", "e.cce", "f.txt", "g.so.1"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)


def test_the_vendors_command_line() -> None:
    words = "a.asc b.cpp c.o libx.a -o main --npu-arch=dav-3510 -Iinc -DX=1 -O2 -std=c++17 -lgtest -lpthread -pthread"
    line = parse(shlex.split(words))
    assert line.mode == "link"
    assert line.output == Path("main")
    assert line.arch == "dav-3510"
    assert line.link == [
        Source(Path("a.asc"), "device"),
        Source(Path("b.cpp"), "c++"),
        "c.o",
        "libx.a",
        "-lgtest",
        "-lpthread",
    ]
    assert line.compile_flags == ["-Iinc", "-DX=1", "-std=c++17", "-pthread"]
    assert line.host_flags == ["-O2"]
    assert line.include_dirs == [Path("inc")]


def test_the_options_of_the_public_build_files_are_passed_over() -> None:
    words = (
        "-xcce a.asc -mllvm -cce-aicore-stack-size=0x8000 -mllvm -cce-aicore-addr-transform "
        "--cce-aicore-arch=dav-c220-vec "
        "--cce-fatobj-link --cce-enable-print --cce-aicore-only -fcce-vf-vl=256 --run-mode=sim -fPIC -s -flto "
        "--asc-aicore-lang -lascendcl -lruntime -lprofapi -l register -lstdc++fs -lmmpa -Xhost-start -Xhost-end -c"
    )
    line = parse(shlex.split(words))
    assert line.mode == "compile"
    assert line.arch == "dav-c220-vec"
    assert line.sides == ("aiv",)
    assert line.link == [Source(Path("a.asc"), "device")]
    flags = [*line.compile_flags, *line.host_flags, *line.device_flags, *line.link_flags, *line.text_flags]
    assert flags == []


def test_every_entry_of_the_tables_says_why() -> None:
    assert all(entry.reason for entry in PASSED_OVER)
    assert all(VENDOR_LIBRARIES.values())


@pytest.mark.parametrize(
    ("words", "arch", "sides"),
    [
        ("--cce-aicore-arch=dav-c310-cube", "dav-c310-cube", ("aic",)),
        ("--cce-aicore-arch=dav-c220", "dav-c220", None),
        ("--cce-aicore-arch dav-c220-vec --npu-arch=dav-2201", "dav-2201", ("aiv",)),
        ("--npu-arch dav-3510", "dav-3510", None),
        ("--npu-soc=Ascend910B1", "Ascend910B1", None),
        ("-D__CPU_SIM", "cpu", None),
        ("", None, None),
    ],
)
def test_the_chip_and_the_side(words: str, arch: str | None, sides: tuple[str, ...] | None) -> None:
    line = parse(["a.asc", *words.split()])
    assert (line.arch, line.sides) == (arch, sides)


def test_options_for_one_part_alone() -> None:
    words = "a.asc -Xhost-start -DH -O0 -Xhost-end -Xaicore-start -DD -I dev -Xaicore-end -DBOTH"
    line = parse(shlex.split(words))
    assert line.host_flags == ["-DH", "-O0"]
    assert line.device_flags == ["-DD", "-I", "dev"]
    assert line.compile_flags == ["-DBOTH"]
    assert line.include_dirs == [Path("dev")]


def test_linker_words_that_would_break_loading_are_dropped() -> None:
    words = "c.o -Wl,-z,relro -Wl,-z,now,-rpath,/x -Wl,-s -Xlinker --no-undefined -z defs -z lazy -rdynamic -u main"
    line = parse(shlex.split(words))
    assert line.link == ["c.o", "-Wl,-z,relro", "-Wl,-rpath,/x", "-Wl,-z,lazy", "-rdynamic", "-Wl,-u,main"]


def test_linker_words_keep_their_place_among_objects_and_libraries() -> None:
    line = parse(
        shlex.split("-L dir -Wl,--whole-archive libx.a -Wl,--no-whole-archive -Wl,-Bstatic -l y c.o -O2 -pthread")
    )
    assert line.link == [
        "-Ldir",
        "-Wl,--whole-archive",
        "libx.a",
        "-Wl,--no-whole-archive",
        "-Wl,-Bstatic",
        "-ly",
        "c.o",
    ]
    assert line.link_flags == ["-O2", "-pthread"]


def test_languages_and_their_order() -> None:
    line = parse(shlex.split("d.c -x asc d.c -xc++ f.txt -x none c.o -xc d.c -x none g.so.1 e.cce"))
    assert line.link == [
        Source(Path("d.c"), "c"),
        Source(Path("d.c"), "device"),
        Source(Path("f.txt"), "c++"),
        "c.o",
        Source(Path("d.c"), "c"),
        "g.so.1",
        Source(Path("e.cce"), "device"),
    ]


@pytest.mark.parametrize(
    ("word", "mode"),
    [("-c", "compile"), ("-dc", "compile"), ("-shared", "shared"), ("-lib", "archive"), ("-E", "text"), ("-S", "text")],
)
def test_modes(word: str, mode: str) -> None:
    assert parse(["a.asc", word]).mode == mode


def test_response_files_dependencies_and_auto_mode(tmp_path: Path) -> None:
    (tmp_path / "words.rsp").write_text('-c a.asc "-DS=a b" --cce-pto-auto-enable')
    line = parse(["@words.rsp", "-MD", "-MT", "t.o", "-MF", "t.d", "--keep", "kept"])
    assert line.mode == "compile"
    assert line.compile_flags == ["-DS=a b", "-D__PTO_AUTO__=1"]
    assert line.dependency_flags == ["-MD", "-MT", "t.o", "-MF", "t.d"]
    assert line.keep == Path("kept")


def test_automatic_synchronisation_is_noted() -> None:
    assert "not modelled" in parse(["a.asc", "--cce-auto-sync"]).notes[0]
    assert parse(["a.asc", "--cce-auto-sync=off"]).notes == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o"], "-o lacks its value"),
        (["a.asc", "-I"], "-I lacks its value"),
        (["a.asc", "-mllvm"], "-mllvm lacks its value"),
        (["nothing.cpp"], "no such file: nothing.cpp"),
        (["-x", "fortran"], "not a language"),
    ],
)
def test_faults_are_told(words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(words)
