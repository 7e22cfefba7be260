"""A small reader (and mender) of ELF64 files: what the compiler driver and the runtime need, no more.

The runtime finds a kernel by the *name* of the function that the host program hands over: address to name in the
host file, name to address in the device image. Both come from ``.symtab``, local symbols included, because a kernel
in an anonymous namespace has no other trace.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

MAGIC = b"\x7fELF"

# Section types, symbol kinds and dynamic tags of the ELF specification (System V gABI, chapter 4 and 5).
SHT_PROGBITS, SHT_SYMTAB, SHT_DYNAMIC, SHT_NOBITS = 1, 2, 6, 8
STT_FUNC, STT_FILE, STT_IFUNC = 2, 4, 10
STB_LOCAL = 0
SHN_UNDEF, SHN_LORESERVE, SHN_XINDEX = 0, 0xFF00, 0xFFFF
ET_REL, ET_DYN = 1, 3
DT_NULL, DT_NEEDED, DT_SONAME, DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ, DT_PREINIT_ARRAYSZ = 0, 1, 14, 27, 28, 33

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC = struct.Struct("<qQ")
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)


class ElfError(ValueError):
    """The file is not an ELF64 little-endian file, or is cut short."""


@dataclass(frozen=True)
class Section:
    """One section header; ``offset`` and ``size`` are bytes in the file."""

    index: int
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


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

    def __init__(self, entries: np.ndarray, names: bytes) -> None:
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
        wanted = name.encode() + b"\0"
        # Linkers share tails ("bar" lies within "foobar"), so every occurrence of the name is a candidate.
        offsets, at = [], self._names.find(wanted)
        while at >= 0:
            offsets.append(at)
            at = self._names.find(wanted, at + 1)
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


class ElfFile:
    """An ELF64 little-endian file held in memory."""

    def __init__(self, data: bytes | bytearray, path: str = "") -> None:
        self.data = data
        self.path = path
        if len(data) < _HEADER.size or bytes(data[:4]) != MAGIC or data[4] != 2 or data[5] != 1:
            raise ElfError(f"{path or 'this'} is not a 64-bit little-endian ELF file")
        fields = _HEADER.unpack_from(data)
        self.type, self.machine, self.entry = fields[1], fields[2], fields[4]
        self._section_offset, self._section_count, self._names_index = fields[6], fields[12], fields[13]

    @classmethod
    def read(cls, path: str | Path) -> ElfFile:
        """Read a file whole.

        Raises:
            ElfError: it is not an ELF64 file.
        """
        return cls(Path(path).read_bytes(), str(path))

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All sections in the order of their headers."""
        if not self._section_offset:
            return ()
        count, names_index = self._section_count, self._names_index
        first = self.raw_section(0)
        if count == 0:  # more sections than 16 bits hold: the first header carries the numbers
            count = first[5]
        if names_index == SHN_XINDEX:
            names_index = first[6]
        raw = [self.raw_section(index) for index in range(count)]
        names = raw[names_index]
        return tuple(Section(index, self._string(names[4], fields[0]), *fields[1:]) for index, fields in enumerate(raw))

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def content(self, section: Section) -> bytes:
        """The bytes of a section."""
        if section.type == SHT_NOBITS:
            return b""
        return bytes(self.data[section.offset : section.offset + section.size])

    @cached_property
    def symbols(self) -> SymbolTable:
        """The functions of ``.symtab``; empty if the file was stripped."""
        table = next((section for section in self.sections if section.type == SHT_SYMTAB), None)
        if table is None:
            return SymbolTable(np.empty(0, _SYMBOL), b"\0")
        entries = np.frombuffer(self.content(table), dtype=_SYMBOL)
        return SymbolTable(entries, self.content(self.sections[table.link]))

    @cached_property
    def dynamic(self) -> tuple[tuple[int, int, int], ...]:
        """The dynamic section as (tag, value, offset of the value in the file)."""
        section = next((section for section in self.sections if section.type == SHT_DYNAMIC), None)
        if section is None:
            return ()
        found = []
        for offset in range(section.offset, section.offset + section.size, _DYNAMIC.size):
            tag, value = _DYNAMIC.unpack_from(self.data, offset)
            if tag == DT_NULL:
                break
            found.append((tag, value, offset + 8))
        return tuple(found)

    @property
    def needed(self) -> tuple[str, ...]:
        """The shared libraries that the file asks the loader for (``DT_NEEDED``)."""
        return self._dynamic_strings(DT_NEEDED)

    @property
    def soname(self) -> str:
        """The name that a shared library gives itself (``DT_SONAME``), or nothing."""
        return next(iter(self._dynamic_strings(DT_SONAME)), "")

    def _dynamic_strings(self, wanted: int) -> tuple[str, ...]:
        section = next((section for section in self.sections if section.type == SHT_DYNAMIC), None)
        if section is None:
            return ()
        names = self.sections[section.link].offset
        return tuple(self._string(names, value) for tag, value, _ in self.dynamic if tag == wanted)

    def raw_section(self, index: int) -> tuple[int, ...]:
        """The ten fields of a section header as they stand in the file."""
        offset = self._section_offset + index * _SECTION.size
        if offset + _SECTION.size > len(self.data):
            raise ElfError(f"{self.path or 'the ELF file'} is cut short: its section headers lie beyond its end")
        return _SECTION.unpack_from(self.data, offset)

    def _string(self, table: int, offset: int) -> str:
        start = table + offset
        return bytes(self.data[start : self.data.index(b"\0", start)]).decode(errors="replace")


def silence_initialisers(path: str | Path) -> None:
    """Make a shared object run nothing when it is loaded or unloaded.

    A device image holds the user's host code too, static objects included; their constructors belong to the host
    image alone. The sizes of the initialiser and finaliser arrays become 0; nothing moves.
    """
    data = bytearray(Path(path).read_bytes())
    arrays = (DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ, DT_PREINIT_ARRAYSZ)
    for tag, _, offset in ElfFile(data, str(path)).dynamic:
        if tag in arrays:
            data[offset : offset + 8] = bytes(8)
    Path(path).write_bytes(data)


def add_section(path: str | Path, name: str, content: bytes) -> None:
    """Add a section that is not loaded (no flags, alignment 1) to a relocatable object.

    Linkers concatenate such sections byte by byte, from archive members too, which is how device code travels inside
    host objects.
    """
    data = bytearray(Path(path).read_bytes())
    file = ElfFile(data, str(path))
    if file.type != ET_REL:
        raise ElfError(f"{path} is not a relocatable object")
    headers = [list(file.raw_section(index)) for index in range(len(file.sections))]
    names_index = _HEADER.unpack_from(data)[13]
    if names_index == SHN_XINDEX:
        names_index = headers[0][6]
    names = file.content(file.sections[names_index]) + name.encode() + b"\0"
    name_offset = len(names) - len(name.encode()) - 1
    headers.append([name_offset, SHT_PROGBITS, 0, 0, len(data), len(content), 0, 0, 1, 0])
    data += content
    headers[names_index][4:6] = [len(data), len(names)]
    data += names
    data += bytes(-len(data) % 8)
    section_offset, count = len(data), len(headers)
    if count >= SHN_LORESERVE:
        headers[0][5] = count
    for header in headers:
        data += _SECTION.pack(*header)
    fields = list(_HEADER.unpack_from(data))
    fields[6], fields[12] = section_offset, count if count < SHN_LORESERVE else 0
    _HEADER.pack_into(data, 0, *fields)
    Path(path).write_bytes(data)
