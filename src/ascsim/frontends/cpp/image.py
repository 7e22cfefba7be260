"""What a linked program carries for the runtime: the device images and a description, behind the ELF file's end.

Two formats meet here. A *frame* wraps what one compilation made for a device inside a host object (section
``.ascsim.device``); linkers concatenate frames. The *trailer* of a linked file holds the device images that were
linked from the frames, then a JSON description, its length and a magic word.

Numbers of instructions are compiled into device code, so both say which headers it was compiled with
(:func:`ascsim.frontends.cpp.generate.headers_hash`): code of another ascsim is refused, at link and at run.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascsim.cache import cache_directory, prune, write_atomically
from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.elf import ElfFile
from ascsim.frontends.cpp.generate import headers_hash

if TYPE_CHECKING:
    from ascsim.frontends.cpp.symbols import SymbolTable

SECTION = ".ascsim.device"
FRAME_MAGIC = b"ASCSIMDV"
TRAILER_MAGIC = b"ASCSIMEX"
FORMAT = 2

_FRAME = struct.Struct("<8sIQ")
_TRAILER = struct.Struct("<Q8s")


@dataclass(frozen=True)
class Frame:
    """What a compilation made: ``header`` (``side``, ``source``, ``profile``, ...) and an object file, or nothing."""

    header: dict[str, Any]
    payload: bytes

    def pack(self) -> bytes:
        """The bytes to put into a host object."""
        header = json.dumps(self.header, sort_keys=True).encode()
        return _FRAME.pack(FRAME_MAGIC, len(header), len(self.payload)) + header + self.payload


def unpack_frames(data: bytes) -> Iterator[Frame]:
    """All frames of a section in their order.

    Raises:
        UserError: the section is damaged (for example by a tool that pads it).
    """
    at = 0
    while at < len(data):
        if len(data) - at < _FRAME.size or data[at : at + 8] != FRAME_MAGIC:
            raise UserError(
                f"the section {SECTION} is damaged; build the objects again with `ascsim c++` of this version"
            )
        _, header_size, payload_size = _FRAME.unpack_from(data, at)
        at += _FRAME.size
        header = json.loads(data[at : at + header_size])
        at += header_size
        yield Frame(header, data[at : at + payload_size])
        at += payload_size


class StaleError(UserError):
    """Device code was built by another ascsim, whose instructions have other numbers."""

    def __init__(self, what: str | Path) -> None:
        super().__init__(
            f"{what} was built by another ascsim, in which instructions have other numbers. Build it again with "
            "`ascsim c++`."
        )


@dataclass(frozen=True)
class DeviceImage:
    """One device image inside a linked file: its side (``aiv`` or ``aic``), place and SHA-256."""

    side: str
    offset: int
    size: int
    sha256: str


@dataclass(frozen=True)
class Image:
    """A linked program or library and what it carries.

    ``profile`` is empty when neither it nor a library that it needs was compiled for a device. ``kernels`` are the
    descriptions of :class:`ascsim.frontends.cpp.rewrite.Kernel` as dictionaries, each with its ``source``.
    ``libraries`` are the names, as the loader knows them, of the shared libraries that it needs and that carry images
    themselves. ``headers`` is the hash of the headers that device code was compiled with.
    ``scalar_trace`` is whether all device code reports what it reads and writes through pointers.
    """

    path: Path
    profile: str
    sources: tuple[str, ...]
    kernels: tuple[dict[str, Any], ...]
    devices: tuple[DeviceImage, ...]
    libraries: tuple[str, ...]
    has_main: bool
    version: str
    headers: str
    key: str
    scalar_trace: bool = True

    def check_is_current(self) -> None:
        """Refuse device code that another ascsim compiled.

        Raises:
            StaleError: it did.
        """
        if self.devices and self.headers != headers_hash():
            raise StaleError(self.path)

    def device(self, side: str) -> DeviceImage | None:
        """The image of that side, if the program has code for it."""
        return next((device for device in self.devices if device.side == side), None)

    def read(self, side: str) -> bytes:
        """The bytes of a device image.

        Raises:
            KeyError: the program has no code for that side.
        """
        device = self.device(side)
        if device is None:
            raise KeyError(side)
        with self.path.open("rb") as file:
            file.seek(device.offset)
            return file.read(device.size)

    def extract(self, side: str, directory: Path | None = None) -> Path:
        """Write a device image where it can be loaded; equal images share one file."""
        device = self.device(side)
        if device is None:
            raise KeyError(side)
        directory = cache_directory() / "images" if directory is None else directory
        target = directory / f"{device.sha256[:32]}-{side}.so"
        if not target.exists():
            prune(directory)
            write_atomically(target, self.read(side))
        return target

    @cached_property
    def host_symbols(self) -> SymbolTable:
        """The host file's functions."""
        return ElfFile.read(self.path).symbols

    def device_symbols(self, side: str) -> SymbolTable:
        """A device image's functions."""
        return ElfFile(self.read(side), f"{self.path} ({side})").symbols


def load_image(path: str | Path) -> Image:
    """Read what a file that ``ascsim c++`` linked carries.

    Raises:
        StaleError: it was linked by another ascsim.
        UserError: there is no such file, or it was not linked by ascsim.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(size - _TRAILER.size, 0))
            tail = file.read()
            length, magic = _TRAILER.unpack(tail) if len(tail) == _TRAILER.size else (0, b"")
            if magic != TRAILER_MAGIC or length > size - _TRAILER.size:
                raise UserError(
                    f"{path} was not linked by ascsim (or was stripped afterwards): build it with `ascsim c++`. Sources "
                    "end in .asc, .cpp and the like, .pto or .py"
                )
            file.seek(size - _TRAILER.size - length)
            data = json.loads(file.read(length))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    if data["format"] != FORMAT:
        raise StaleError(path)
    return Image(
        path=path,
        profile=data["profile"],
        sources=tuple(data["sources"]),
        kernels=tuple(data["kernels"]),
        devices=tuple(DeviceImage(**device) for device in data["devices"]),
        libraries=tuple(data["libraries"]),
        has_main=data["has_main"],
        version=data["version"],
        headers=data["headers"],
        key=data["key"],
        scalar_trace=data.get("scalar_trace", True),
    )


def loaded_libraries(image: Image) -> tuple[tuple[Image, int], ...]:
    """The libraries with images that this process has loaded for a program, each with the address it was loaded at.

    Theirs too: a library may need another. To be called once the program is loaded.
    """
    loader = ctypes.CDLL(None)
    loader.dlopen.restype = ctypes.c_void_p
    found: dict[str, tuple[Image, int]] = {}
    names = list(image.libraries)
    while names:
        name = names.pop()
        handle = None if name in found else loader.dlopen(os.fsencode(name), os.RTLD_NOLOAD | os.RTLD_LAZY)
        if handle:
            link_map = _LinkMap.from_address(handle)
            library = load_image(os.fsdecode(link_map.name))
            library.check_is_current()
            found[name] = (library, link_map.address or 0)
            names += library.libraries
    return tuple(found.values())


class _LinkMap(ctypes.Structure):
    """The public head of glibc's and musl's ``struct link_map``, which a handle of ``dlopen`` points to."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def append_images(path: Path, images: dict[str, bytes], description: dict[str, Any]) -> None:
    """Write device images and the description behind a linked file's end."""
    with path.open("ab") as file:
        devices = []
        for side, image in images.items():
            file.write(bytes(-file.tell() % 16))
            digest = hashlib.sha256(image).hexdigest()
            devices.append({"side": side, "offset": file.tell(), "size": len(image), "sha256": digest})
            file.write(image)
        data = json.dumps({"format": FORMAT, **description, "devices": devices}).encode()
        file.write(data + _TRAILER.pack(len(data), TRAILER_MAGIC))
