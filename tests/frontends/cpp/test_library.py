"""The runtime library is built once for each compiler and each state of its sources."""

from __future__ import annotations

import threading

import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp import library
from ascsim.frontends.cpp.compilers import Compiler
from ascsim.frontends.cpp.library import build_ahead, runtime_library


def test_the_library_is_built_once(tmp_path, monkeypatch):
    built = []
    monkeypatch.setenv("ASCSIM_CACHE", str(tmp_path))

    def build(compiler: Compiler, place):
        place.touch()
        built.append(place)

    monkeypatch.setattr(library, "_build", build)
    compiler = Compiler("gcc", ("g++",), "g++ 1.0")
    first, second = runtime_library(compiler), runtime_library(compiler)
    assert first == second == built[0] and len(built) == 1
    monkeypatch.setattr(library, "FLAGS", (*library.FLAGS, "-O3"))
    assert runtime_library(compiler) != first
    assert runtime_library(Compiler("gcc", ("g++",), "g++ 2.0")).parent != first.parent


def test_a_compiler_that_cannot_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("ASCSIM_CACHE", str(tmp_path))
    with pytest.raises(UserError, match="does not compile with false"):
        runtime_library(Compiler("gcc", ("false",), "broken"))
    assert not list(tmp_path.rglob("*.so"))


def test_a_library_that_is_being_built_is_waited_for(tmp_path, monkeypatch):
    built, begun, go_on = [], threading.Event(), threading.Event()
    monkeypatch.setenv("ASCSIM_CACHE", str(tmp_path))
    monkeypatch.setattr(library, "find_compiler", lambda: Compiler("gcc", ("g++",), "g++ 1.0"))

    def build(compiler: Compiler, place):
        begun.set()
        assert go_on.wait(10)
        place.touch()
        built.append(place)

    monkeypatch.setattr(library, "_build", build)
    build_ahead()
    assert begun.wait(10)
    threading.Timer(0.05, go_on.set).start()
    assert runtime_library() == built[0]
    build_ahead()
    assert len(built) == 1, "not on a machine that has one"
