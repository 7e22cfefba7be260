"""C++ kernels as Python functions: ``ascsim.load("kernel.cpp", arch="a5").MyKernel[8](x, out)``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ascsim import profiles
from ascsim.diagnostics import UserError
from ascsim.frontends.cpp import driver, session
from ascsim.frontends.cpp.exports import export_name
from ascsim.frontends.cpp.image import Image, load_image
from ascsim.frontends.cpp.run import judge
from ascsim.frontends.launch import Run
from ascsim.frontends.python import KernelError
from ascsim.machine.dtypes import DType, dtype

# C++ spellings of scalar types that no element type has as its own.
_SPELLINGS = {
    "bool": "u8", "char": "i8", "signed char": "i8", "unsigned char": "u8", "short": "i16", "unsigned short": "u16",
    "int": "i32", "unsigned": "u32", "unsigned int": "u32", "long": "i64", "unsigned long": "u64", "size_t": "u64",
    "long long": "i64", "unsigned long long": "u64",
}  # fmt: skip
_ANY_POINTER = ("void", "uint8_t", "int8_t", "char", "unsigned char")


def load(
    source: str | Path | Sequence[str | Path], arch: str = "a2a3", *, flags: Sequence[str] = ()
) -> KernelLibrary:
    """Build C++ sources that have kernels but no host program.

    Args:
        source: a file, or several.
        arch: the profile's name or an alias.
        flags: further compiler flags (``-I``, ``-D``, ...).

    Raises:
        UserError: a file is missing, or does not compile.
    """
    sources = [source] if isinstance(source, (str, Path)) else list(source)
    for path in sources:
        if not Path(path).exists():
            raise UserError(f"there is no file {path}")
    options = driver.BuildOptions(export_kernels=True)
    return KernelLibrary(
        load_image(driver.compile_program(sources, arch, flags=flags, shared=True, options=options))
    )


class KernelLibrary:
    """The kernels of compiled sources, as attributes."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._kernels = {
            k["name"]: k for k in image.kernels if k["is_defined"] and not k["is_template"]
        }

    def __getattr__(self, name: str) -> CppKernel:
        """The kernel of that name.

        Raises:
            AttributeError: the sources define none.
        """
        found = self.__dict__.get("_kernels", {}).get(name)
        if found is None:
            listed = ", ".join(sorted(self.__dict__.get("_kernels", {}))) or "none"
            raise AttributeError(f"the sources define no kernel {name} that is no template; they define {listed}")
        return CppKernel(self._image, found)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._kernels]


@dataclass(frozen=True)
class CppKernel:
    """A C++ kernel and how it is launched. Index with the number of blocks, then call with arrays and scalars."""

    image: Image
    description: dict[str, Any]
    timeout: float | None = None
    raise_on_error: bool = True

    def options(self, **changes: Any) -> CppKernel:
        """The kernel with ``timeout`` (seconds) or ``raise_on_error`` changed."""
        return replace(self, **changes)

    def __getitem__(self, blocks: int) -> Callable[..., Run]:
        """The launch of so many blocks."""
        return lambda *args: self._launch(blocks, args)

    def __call__(self, *args: Any) -> Run:
        """A launch of one block."""
        return self._launch(1, args)

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.description["name"]

    def _launch(self, blocks: int, args: Sequence[Any]) -> Run:
        started = time.perf_counter()
        profile = profiles.load(self.image.profile)
        if not 1 <= blocks <= profile.max_blocks:
            raise UserError(f"a launch has 1 to {profile.max_blocks} blocks, not {blocks}")
        parameters = self.description["parameters"]
        if len(parameters) != len(args):
            names = ", ".join(p["name"] for p in parameters)
            raise UserError(f"kernel {self.name} takes {len(parameters)} arguments ({names}), not {len(args)}")
        given = [_argument(self.name, p["type"], p["name"], a) for p, a in zip(parameters, args, strict=True)]
        copies = [np.ascontiguousarray(g) if isinstance(g, np.ndarray) else g for g in given]
        named = tuple((p["name"], copy) for p, copy in zip(parameters, copies, strict=True))
        call = session.Call(self.name, export_name(self.name), blocks, named)
        outcome = session.run(self.image.path, profile=profile, timeout=self.timeout, call=call)
        try:
            run = judge(outcome, self.name, started)
        finally:
            outcome.close()
        for array, copy in zip(given, copies, strict=True):
            if isinstance(array, np.ndarray) and array is not copy and array.flags.writeable:
                array[...] = copy
        if self.raise_on_error and not run.ok:
            raise KernelError(run)
        return run


def _argument(kernel: str, kind: str, name: str, value: Any) -> np.ndarray | bytes:
    """What the child gets for a parameter of that C++ type: an array, or a scalar's bytes.

    Raises:
        UserError: the value does not fit the type.
    """
    words = kind.replace("const ", "").replace(" const", "").strip()
    is_pointer = words.endswith("*") or words == "GM_ADDR"
    pointee = words.removesuffix("*").strip()
    if is_pointer:
        if not isinstance(value, np.ndarray):
            raise UserError(f"{kernel}: {name} is {kind}: give a NumPy array, not {type(value).__name__}")
        wanted = None if words == "GM_ADDR" or pointee in _ANY_POINTER else _element(pointee)
        if wanted is not None and dtype(value.dtype).size != wanted.size:
            raise UserError(f"{kernel}: {name} is {kind}, whose elements have {wanted.size} bytes; the array has "
                            f"{value.dtype} ({value.dtype.itemsize})")  # fmt: skip
        return value
    scalar = _element(words)
    if scalar is None:
        raise UserError(f"{kernel}: {name} is {kind}; from Python, kernels take pointers and numbers")
    if isinstance(value, np.ndarray) or not isinstance(value, (int, float, np.number, bool)):
        raise UserError(f"{kernel}: {name} is {kind}: give a number, not {type(value).__name__}")
    try:
        return np.array([value]).astype(scalar.numpy).tobytes() if scalar.kind == "f" else _whole(value, scalar)
    except (OverflowError, ValueError) as error:
        raise UserError(f"{kernel}: {value!r} does not fit {name}, which is {kind}") from error


def _whole(value: Any, kind: DType) -> bytes:
    if value != int(value):
        raise ValueError(value)
    return int(value).to_bytes(kind.size, "little", signed=kind.kind == "i" or value < 0)


def _element(spelling: str) -> DType | None:
    """The element type of a C++ spelling, or None for other types."""
    bare = spelling.removeprefix("std::")
    try:
        return dtype(_SPELLINGS.get(bare, bare))
    except ValueError:
        return None
