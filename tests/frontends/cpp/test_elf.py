"""The ELF reader against files that the compiler of this machine makes."""

from __future__ import annotations

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


def test_sections_and_needed_libraries(library: Path) -> None:
    file = ElfFile.read(library)
    text = file.section(".text")
    assert text is not None and text.size > 0 and text.index > 0
    assert len(file.content(text)) == text.size
    assert file.section(".absent") is None
    assert any(name.startswith("libc.so") for name in file.needed)
    assert file.soname == "libfunctions.so"
    assert file.content(next(section for section in file.sections if section.name == ".bss")) == b""


def test_defined_functions_are_known_by_name(library: Path) -> None:
    file = ElfFile.read(library)
    assert file.defines("plain") and file.defines("bar") and file.defines("_ZL11shared_namei")
    assert not file.defines("absent") and not file.defines("ar")
    assert not file.defines("puts"), "only used"
    assert not file.defines("loud"), "no function"


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
