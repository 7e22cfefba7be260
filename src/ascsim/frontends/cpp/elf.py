"""A small reader (and mender) of ELF64 files: what the compiler driver and the runtime need, no more."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascsim.frontends.cpp.symbols import SymbolTable

MAGIC = b"\x7fELF"

# Section types, symbol kinds and dynamic tags of the ELF specification (System V gABI, chapter 4 and 5).
SHT_PROGBITS, SHT_SYMTAB, SHT_DYNAMIC, SHT_NOBITS = 1, 2, 6, 8
STT_FUNC, STT_IFUNC = 2, 10
SHN_UNDEF, SHN_LORESERVE, SHN_XINDEX = 0, 0xFF00, 0xFFFF
ET_REL, ET_DYN = 1, 3
DT_NULL, DT_NEEDED, DT_SONAME, DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ, DT_PREINIT_ARRAYSZ = 0, 1, 14, 27, 28, 33

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC = struct.Struct("<qQ")
_SYMBOL = struct.Struct("<IBBHQQ")


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
        from ascsim.frontends.cpp.symbols import SymbolTable

        return SymbolTable(*self._symbol_table)

    def defines(self, name: str) -> bool:
        """Whether ``.symtab`` has a function of that (mangled) name."""
        entries, names = self._symbol_table
        wanted = set(occurrences(names, name))
        return any(
            offset in wanted and info & 0xF in (STT_FUNC, STT_IFUNC) and section != SHN_UNDEF
            for offset, info, _, section, _, _ in _SYMBOL.iter_unpack(entries)
        )

    @property
    def _symbol_table(self) -> tuple[bytes, bytes]:
        """The bytes of ``.symtab`` and of its names."""
        table = next((section for section in self.sections if section.type == SHT_SYMTAB), None)
        return (b"", b"\0") if table is None else (self.content(table), self.content(self.sections[table.link]))

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


def occurrences(names: bytes, name: str) -> list[int]:
    """Offsets of a name in a table of names. Linkers share tails ("bar" lies within "foobar"): there may be several."""
    wanted = name.encode() + b"\0"
    found, at = [], names.find(wanted)
    while at >= 0:
        found.append(at)
        at = names.find(wanted, at + 1)
    return found


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
