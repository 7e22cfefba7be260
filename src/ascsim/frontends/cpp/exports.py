"""Kernels that can be called by name: what ``include/ascsim/exports.hpp`` leaves in a device image.

Each kernel of a library that was built with ``export_kernels`` has a function ``ascsim_kernel_NAME(void**)``, which
takes pointers to the arguments, and a description of its parameters in the section ``.ascsim.kernels``: their types as
the compiler sees them, behind every typedef and macro.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from ascsim.frontends.cpp.elf import ElfFile
from ascsim.machine.dtypes import BY_CODE, DType

SECTION = ".ascsim.kernels"

_HEAD = struct.Struct("<IHH")
_PARAMETER = struct.Struct("<BBHI")


class ParameterKind(IntEnum):
    """How an argument is passed."""

    POINTER = 1
    NUMBER = 2
    BOOL = 3
    OBJECT = 4


@dataclass(frozen=True)
class ParameterType:
    """A parameter's type: of a pointer, ``dtype`` and ``size`` are those of what it points to.

    ``dtype`` is None where it is no element type; ``size`` (bytes) is 0 for void and for types that are only declared.
    """

    kind: ParameterKind
    dtype: DType | None
    size: int


@dataclass(frozen=True)
class ExportedKernel:
    """A kernel that can be called by name."""

    name: str
    parameters: tuple[ParameterType, ...]


def export_name(kernel: str) -> str:
    """The name of the function that calls a kernel with pointers to its arguments."""
    return f"ascsim_kernel_{kernel}"


def exported_kernels(image: ElfFile) -> Iterator[ExportedKernel]:
    """The kernels that a device image describes; one of a header that several sources include comes several times."""
    section = image.section(SECTION)
    data = image.content(section) if section is not None else b""
    at = 0
    while at + _HEAD.size <= len(data):
        size, count, length = _HEAD.unpack_from(data, at)
        if not size:  # the compiler's or the linker's padding
            at += _HEAD.size
            continue
        first, name = at + _HEAD.size, at + _HEAD.size + (count + 1) * _PARAMETER.size
        parameters = [_PARAMETER.unpack_from(data, first + index * _PARAMETER.size) for index in range(count)]
        types = tuple(ParameterType(ParameterKind(kind), BY_CODE.get(code), n) for kind, code, _, n in parameters)
        yield ExportedKernel(data[name : name + length].decode(), types)
        at += size
