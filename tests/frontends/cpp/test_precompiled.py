"""Precompiled headers: made the second time, used while fresh, never in the way."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ascsim.frontends.cpp import driver, generate
from ascsim.frontends.cpp import precompiled as module
from ascsim.frontends.cpp.driver import BuildOptions, CompileError, build
from ascsim.frontends.cpp.precompiled import KEPT, Precompiled, make, precompiled

GXX = shutil.which("g++")
SOURCE = '#include <cstddef>\n#include "own.h"\n__global__ __vector__ void k(int* p)\n{\n    p[0] = %s;\n}\n'

needs_gcc = pytest.mark.skipif(GXX is None, reason="precompiled headers are gcc's")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have started in the background."""
    commands: list[list[str]] = []
    monkeypatch.setattr(module, "_start", commands.append)
    return commands


def header(root: Path, line: str = "#include <cstddef>") -> Precompiled:
    found = precompiled(root, "1.0", ["g++"], [line])
    found.ask_for(["g++"], [line])
    return found


def made(found: Precompiled) -> bool:
    time.sleep(0.02)  # the clock of a file system is a little behind
    return make(found.directory, [str(GXX)])


def test_it_is_asked_for_the_second_time(tmp_path: Path, asked: list[list[str]]) -> None:
    found = header(tmp_path)
    assert not asked and not found.is_ready()
    header(tmp_path)
    assert asked[0][-2:] == [str(found.directory), "g++"]


def test_another_compiler_command_or_start_is_another_header(tmp_path: Path) -> None:
    variants = [
        ("1.0", ["g++"], ["a"]),
        ("1.1", ["g++"], ["a"]),
        ("1.0", ["g++", "-O2"], ["a"]),
        ("1.0", ["g++"], ["b"]),
    ]
    assert len({precompiled(tmp_path, *variant).directory for variant in variants}) == 4
    assert precompiled(tmp_path, "1", ["a", "b"], ["c"]) != precompiled(tmp_path, "1", ["a"], ["b", "c"])


@needs_gcc
def test_it_is_ready_until_a_file_of_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "mine.h"
    file.write_text("int one;\n")
    found = header(tmp_path, f'#include "{file}"')
    assert made(found) and found.is_ready()
    before = file.stat()
    time.sleep(0.02)
    file.write_text("int two;\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not found.is_ready()
    assert made(found) and found.is_ready()
    file.unlink()
    assert not found.is_ready()


@needs_gcc
def test_what_does_not_compile_is_tried_once(tmp_path: Path, asked: list[list[str]]) -> None:
    found = header(tmp_path, "#include <no/such/header>")
    assert not made(found) and not found.is_ready()
    header(tmp_path, "#include <no/such/header>")
    assert not asked


@needs_gcc
def test_few_are_kept(tmp_path: Path) -> None:
    headers = [header(tmp_path, f"int n{number};") for number in range(KEPT + 2)]
    assert all(made(found) for found in headers)
    assert [found.is_ready() for found in headers] == [False] * 2 + [True] * KEPT


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "own.h").write_text("inline int mine() { return 1; }\n")
    return tmp_path / "k.asc"


def built(source: Path, options: BuildOptions, value: str, *flags: str) -> tuple[str, ...]:
    """The compiler's commands of a build in which only the kernel's body is new."""
    source.write_text(SOURCE % value)
    return build(["-c", str(source), "-o", str(source.with_suffix(".o")), "--npu-arch=a5", *flags], options).commands


@needs_gcc
def test_a_build_uses_it(source: Path, options: BuildOptions, tmp_path: Path, asked: list[list[str]]) -> None:
    options = replace(options, cache=tmp_path / "cache")
    built(source, options, "1")
    assert not asked
    plain = built(source, options, "2")
    device = next(command for command in asked if "-DASCSIM_SIDE=1" in command)
    assert "#include <cstddef>" in Path(device[4], "first.hpp").read_text().splitlines()
    assert "own.h" not in Path(device[4], "first.hpp").read_text()  # the user's own headers change
    time.sleep(0.02)
    assert make(Path(device[4]), device[5:])
    fast = built(source, options, "3")
    assert any("first.hpp" in command for command in fast) and not any("first.hpp" in command for command in plain)
    assert len(built(source, options, "3")) == 0, "the object came from the cache"
    assert not any("first.hpp" in command for command in built(source, options, "4", "-DOTHER=1"))
    shutil.rmtree(tmp_path / "cache" / "precompiled")
    assert len(built(source, options, "3")) == 0, "and stays there without the header"
    with pytest.raises(CompileError, match=r"k\.asc:5:12: error"):
        built(source, options, "nothing_of_that_name")


@needs_gcc
def test_errors_are_those_of_the_text(
    source: Path, options: BuildOptions, tmp_path: Path, asked: list[list[str]]
) -> None:
    options = replace(options, cache=tmp_path / "cache")
    for value in "12":
        built(source, options, value)
    time.sleep(0.02)
    for command in asked:
        assert make(Path(command[4]), command[5:])
    with pytest.raises(CompileError, match=r"k\.asc:5:12: error"):
        built(source, options, "nothing_of_that_name")


def test_our_headers_do_not_know_the_unit() -> None:
    """gcc leaves a precompiled header alone in which a macro of the command line occurs, in another macro even."""
    files = [path for path in driver.HEADERS.rglob("*") if path.suffix in (".h", ".hpp")]
    assert files
    for path in [*files, Path(generate.__file__)]:
        assert b"ASCSIM_TU" not in path.read_bytes(), path
