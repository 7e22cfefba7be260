"""Finding a compiler: the order of preference, and what is said when there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp import compilers
from ascsim.frontends.cpp.compilers import Compiler, find_compiler


def fake(directory: Path, name: str, says: str, status: int = 0) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def without_zig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: None)


def found(*directories: Path, **environ: str) -> Compiler:
    return find_compiler({"PATH": ":".join(map(str, directories)), **environ})


def test_gcc_comes_before_clang(tmp_path: Path) -> None:
    gcc = fake(tmp_path, "g++", "g++ (Debian 12.2.0) 12.2.0")
    fake(tmp_path, "clang++", "Debian clang version 14.0.6")
    assert found(tmp_path) == Compiler("gcc", (str(gcc),), "g++ (Debian 12.2.0) 12.2.0")


def test_the_newest_versioned_name_stands_in(tmp_path: Path) -> None:
    fake(tmp_path / "a", "g++-9", "g++ 9")
    newest = fake(tmp_path / "b", "g++-13", "g++ 13")
    fake(tmp_path / "b", "g++-12", "g++ 12")
    fake(tmp_path / "b", "clang++", "clang version 18")
    assert found(tmp_path / "a", tmp_path / "b").command == (str(newest),)


def test_a_compiler_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    fake(tmp_path, "g++", "broken", status=1)
    clang = fake(tmp_path, "clang++", "Debian clang version 14.0.6")
    assert found(tmp_path) == Compiler("clang", (str(clang),), "Debian clang version 14.0.6")


def test_the_environment_names_a_command_with_arguments(tmp_path: Path) -> None:
    wrapper = fake(tmp_path, "ccache", "g++ (GCC) 14.1")
    compiler = found(tmp_path, ASCSIM_CXX=f"{wrapper} g++")
    assert compiler.command == (str(wrapper), "g++")
    assert compiler.kind == "gcc"
    assert compiler.archiver == ("ar",)


def test_a_wrong_name_in_the_environment_is_told(tmp_path: Path) -> None:
    fake(tmp_path, "g++", "g++ 12")
    with pytest.raises(UserError, match="'no-such-compiler' that ASCSIM_CXX names does not run"):
        found(tmp_path, ASCSIM_CXX="no-such-compiler")


def test_without_a_compiler_the_message_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"apt install g\+\+.*ascsim\[zig\]"):
        found(tmp_path)


def test_the_zig_package_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: object())
    python = fake(tmp_path, "python", "clang version 19.1.0")
    monkeypatch.setattr(sys, "executable", str(python))
    compiler = found(tmp_path / "empty")
    assert compiler.kind == "zig"
    assert compiler.command == (str(python), "-m", "ziglang", "c++")
    assert compiler.archiver == (str(python), "-m", "ziglang", "ar")
