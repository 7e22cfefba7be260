"""The functions of an ELF file, by address and by name.

The runtime finds a kernel by the *name* of the function that the host program hands over: address to name in the
host file, name to address in the device image. Both come from ``.symtab``, local symbols included, because a kernel
in an anonymous namespace has no other trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ascsim.frontends.cpp.elf import SHN_UNDEF, STT_FUNC, STT_IFUNC, occurrences

STT_FILE = 4
STB_LOCAL = 0
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)


@dataclass(frozen=True)
class Symbol:
    """A function: its mangled name, link-time address, size in bytes, the source file it came from and its binding."""

    name: str
    address: int
    size: int
    file: str
    is_local: bool


class SymbolTable:
    """The functions that a file defines, by address and by name.

    Addresses are link-time addresses: the loader's base (``dli_fbase`` of ``dladdr``) is added to get a pointer.
    """

    def __init__(self, table: bytes, names: bytes) -> None:
        entries = np.frombuffer(table, _SYMBOL)
        self._names = names
        kinds = entries["info"] & 0xF
        is_file = kinds == STT_FILE
        # Local symbols follow the STT_FILE entry of their translation unit; global ones come after all of them.
        position = np.where(is_file, np.arange(len(entries)), -1)
        file_of = np.maximum.accumulate(position) if len(entries) else position
        is_local = (entries["info"] >> 4) == STB_LOCAL
        file_of = np.where(is_local, file_of, -1)
        functions = np.isin(kinds, (STT_FUNC, STT_IFUNC)) & (entries["section"] != SHN_UNDEF)
        chosen = entries[functions]
        order = np.argsort(chosen["value"], kind="stable")
        self._addresses = np.ascontiguousarray(chosen["value"][order])
        self._sizes = np.ascontiguousarray(chosen["size"][order])
        self._name_offsets = np.ascontiguousarray(chosen["name"][order])
        self._is_local = is_local[functions][order]
        files = file_of[functions][order]
        self._file_offsets = np.where(files >= 0, entries["name"][files], 0)

    def __len__(self) -> int:
        return len(self._addresses)

    def __iter__(self) -> Iterator[Symbol]:
        return (self._symbol(index) for index in range(len(self)))

    def name_at(self, address: int) -> Symbol | None:
        """The function that contains ``address``; None between functions."""
        index = int(np.searchsorted(self._addresses, np.uint64(address), side="right")) - 1
        while index >= 0:
            start, size = int(self._addresses[index]), int(self._sizes[index])
            if start <= address < start + max(size, 1):
                first = int(np.searchsorted(self._addresses, np.uint64(start), side="left"))
                return self._symbol(first)
            if size:
                return None
            index -= 1  # a symbol without a size says nothing of what lies behind it
        return None

    def address_of(self, name: str, file: str | None = None) -> int | None:
        """The address of the function of that (mangled) name; None if there is none.

        ``file`` (a source file's name as in :attr:`Symbol.file`) chooses between local functions of one name.
        """
        found = [self._symbol(int(index)) for index in self._named(name)]
        if file is not None:
            found = [symbol for symbol in found if symbol.file == file]
        return found[0].address if found else None

    def _named(self, name: str) -> np.ndarray:
        offsets = occurrences(self._names, name)
        return np.flatnonzero(np.isin(self._name_offsets, np.array(offsets, dtype=np.uint32)))

    def _symbol(self, index: int) -> Symbol:
        return Symbol(
            name=self._text(int(self._name_offsets[index])),
            address=int(self._addresses[index]),
            size=int(self._sizes[index]),
            file=self._text(int(self._file_offsets[index])),
            is_local=bool(self._is_local[index]),
        )

    def _text(self, offset: int) -> str:
        return self._names[offset : self._names.index(b"\0", offset)].decode(errors="replace")
