"""Functions by name and address, against files that the compiler of this machine makes."""

from __future__ import annotations

import ctypes
from pathlib import Path

from ascsim.frontends.cpp.elf import ElfFile, silence_initialisers


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
