"""The ELF reader against files that the compiler of this machine makes."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from ascsim.frontends.cpp.compilers import Compiler
from ascsim.frontends.cpp.elf import (
    DT_FINI_ARRAYSZ,
    DT_INIT_ARRAYSZ,
    ElfError,
    ElfFile,
    add_section,
    silence_initialisers,
)

FIRST = """
#include <stdio.h>
template <class T> __attribute__((used)) T twice(T x) { return x + x; }
namespace { __attribute__((used, noinline)) int hidden(int x) { return x + 1; } }
static __attribute__((used, noinline)) int shared_name(int x) { return x + 10; }
struct Loud { Loud() { puts("first init"); } ~Loud() { puts("first fini"); } } loud;
extern "C" int plain(int x) { return twice(x) + hidden(x) + shared_name(x); }
extern "C" int bar(int x) { return x; }
extern "C" int foobar(int x) { return x; }
"""
SECOND = "static __attribute__((used, noinline)) int shared_name(int x) { return x + 20; }\n"


@pytest.fixture(scope="module")
def library(compiler: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("elf")
    (place / "first.cpp").write_text(FIRST)
    (place / "second.cpp").write_text(SECOND)
    for name in ("first", "second"):
        command = [*compiler.command, "-O1", "-fPIC", "-c", f"{name}.cpp", "-o", f"{name}.o"]
        subprocess.run(command, check=True, cwd=place)
    subprocess.run([*compiler.command, "-shared", "first.o", "second.o", "-o", "lib.so"], check=True, cwd=place)
    return place / "lib.so"


def test_functions_by_name_and_address(library: Path) -> None:
    symbols = ElfFile.read(library).symbols
    for name in ("plain", "_Z5twiceIiET_S0_", "_ZN12_GLOBAL__N_16hiddenEi"):
        address = symbols.address_of(name)
        assert address is not None, name
        found = symbols.name_at(address)
        assert found is not None
        assert found.name == name
        assert found.size > 0
        assert symbols.name_at(address + found.size - 1) == found
    assert symbols.address_of("absent") is None
    assert symbols.address_of("puts") is None, "only defined functions count"
    assert symbols.name_at(0) is None


def test_names_that_share_a_tail_are_told_apart(library: Path) -> None:
    symbols = ElfFile.read(library).symbols
    bar, foobar = symbols.address_of("bar"), symbols.address_of("foobar")
    assert bar is not None and foobar is not None and bar != foobar
    assert [symbol.name for symbol in (symbols.name_at(bar), symbols.name_at(foobar)) if symbol] == ["bar", "foobar"]


def test_local_functions_of_one_name_are_told_apart_by_file(library: Path, tmp_path: Path) -> None:
    symbols = ElfFile.read(library).symbols
    name = "_ZL11shared_namei"
    first, second = (symbols.address_of(name, file=f"{stem}.cpp") for stem in ("first", "second"))
    assert first is not None and second is not None and first != second
    assert symbols.address_of(name, file="third.cpp") is None
    silent = tmp_path / "silent.so"
    silent.write_bytes(library.read_bytes())
    silence_initialisers(silent)
    loaded = ctypes.CDLL(str(silent))
    base = ctypes.cast(loaded._handle, ctypes.POINTER(ctypes.c_void_p))[0] or 0
    results = [ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(base + address)(1) for address in (first, second)]
    assert results == [11, 21]
    found = symbols.name_at(first)
    assert found is not None and found.is_local and found.file == "first.cpp"
    plain = symbols.name_at(symbols.address_of("plain") or 0)
    assert plain is not None and not plain.is_local and plain.file == ""


def test_sections_and_needed_libraries(library: Path) -> None:
    file = ElfFile.read(library)
    text = file.section(".text")
    assert text is not None and text.size > 0 and text.index > 0
    assert len(file.content(text)) == text.size
    assert file.section(".absent") is None
    assert any(name.startswith("libc.so") for name in file.needed)
    assert file.content(next(section for section in file.sections if section.name == ".bss")) == b""


def test_initialisers_can_be_silenced(library: Path, tmp_path: Path) -> None:
    silent = tmp_path / "silent.so"
    silent.write_bytes(library.read_bytes())
    silence_initialisers(silent)
    before, after = ({tag: value for tag, value, _ in ElfFile.read(p).dynamic} for p in (library, silent))
    assert before[DT_INIT_ARRAYSZ] > 0 and after[DT_INIT_ARRAYSZ] == after[DT_FINI_ARRAYSZ] == 0
    assert {tag: value for tag, value in before.items() if tag not in (DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ)} == {
        tag: value for tag, value in after.items() if tag not in (DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ)
    }
    program = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).plain(3), flush=True)"
    said = [
        subprocess.run(["python3", "-c", program, str(path)], capture_output=True, text=True, check=True).stdout.split(
            "\n"
        )
        for path in (library, silent)
    ]
    assert sorted(said[0]) == ["", "23", "first fini", "first init"]
    assert said[1] == ["23", ""]


def test_a_section_is_added_and_linked_byte_by_byte(compiler: Compiler, library: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.o").write_bytes((library.parent / f"{name}.o").read_bytes())
        add_section(tmp_path / f"{name}.o", ".extra", f"<{name}>".encode())
        section = ElfFile.read(tmp_path / f"{name}.o").section(".extra")
        assert section is not None and section.alignment == 1 and section.flags == 0
    subprocess.run([*compiler.command, "-shared", "first.o", "second.o", "-o", "lib.so"], check=True, cwd=tmp_path)
    file = ElfFile.read(tmp_path / "lib.so")
    section = file.section(".extra")
    assert section is not None
    assert file.content(section) == b"<first><second>"
    assert file.symbols.address_of("plain") is not None
    with pytest.raises(ElfError, match="not a relocatable object"):
        add_section(tmp_path / "lib.so", ".extra", b"")


def test_what_is_not_elf_is_told(tmp_path: Path) -> None:
    with pytest.raises(ElfError, match="not a 64-bit little-endian ELF file"):
        ElfFile(b"#!/bin/sh\n" * 20)
    with pytest.raises(ElfError, match="cut short"):
        _ = ElfFile(Path("/proc/self/exe").read_bytes()[:4096]).sections
