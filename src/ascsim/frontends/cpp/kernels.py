"""C++ kernels without a host program, called from Python with NumPy arrays.

::

    kernels = ascsim.load("kernel.cpp", arch="a5")
    kernels.add[8](out, x, y, len(x))
"""

from __future__ import annotations

import contextlib
import inspect
import operator
import shlex
import shutil
import sys
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from ascsim import profiles, scratch
from ascsim.diagnostics import CATALOGUE, Diagnostic, Place, Severity, Site, UserError
from ascsim.frontends import launch
from ascsim.frontends.cpp import driver, session
from ascsim.frontends.cpp.elf import ElfFile
from ascsim.frontends.cpp.exports import ExportedKernel, ParameterKind, ParameterType, exported_kernels
from ascsim.frontends.cpp.image import Image, load_image
from ascsim.frontends.cpp.run import AUTO_FLAGS, judge
from ascsim.frontends.launch import Run
from ascsim.machine.dtypes import DType, u8
from ascsim.machine.trace import Kind

CATALOGUE.add(
    "H013", Severity.ERROR, "The kernel ended the process",
    "A kernel that was called from Python called exit() or the like. A kernel cannot end the program that launched it; "
    "the arrays are as they were before the call.\n\n"
    "Let the kernel return instead.",
)  # fmt: skip


class NoSuchKernel(UserError, AttributeError):
    """A library has no kernel of that name that can be called."""


def load(
    source: str | Path | Sequence[str | Path],
    arch: str | None = None,
    flags: str | Sequence[str] = (),
    sync: str | None = None,
    timeout: float | None = None,
) -> Library:
    """Compile C++ sources with kernels, to call them from Python.

    Args:
        source: a file (``.cpp``, ``.asc``, ...), or several that belong together. A host program in it is not run.
        arch: the profile's name or an alias; by default a2a3.
        flags: further words of the compiler's command line (``-I``, ``-D``, ``-O2``, ``-l``, ...).
        sync: ``auto`` compiles for Auto mode, in which the tool places tiles and synchronises pipes; by default what
            the source says (``__PTO_AUTO__``), which is else ``manual``.
        timeout: seconds after which a launch is ended.

    Returns:
        The library: its attributes are the kernels. It holds what was compiled; after a change of the source load
        again, which compiles only what has changed.

    Raises:
        UserError: a file is missing, or does not compile.

    Example, with ``scale.cpp``::

        #include "c_api/asc_simd.h"
        __global__ __vector__ void scale(__gm__ float* out, __gm__ float* in, uint32_t count, float factor) { ... }

    in Python::

        kernels = ascsim.load("scale.cpp", arch="a5", flags=["-DTILE=256"])
        x = np.arange(1024, dtype=np.float32)
        out = np.empty_like(x)
        run = kernels.scale[2](out, x, 512, 0.5)     # two blocks; out is filled in
        print(run.report())
    """
    sources = [source] if isinstance(source, (str, Path)) else list(source)
    if not sources:
        raise UserError("load was given no source: name a .cpp or .asc file")
    for path in sources:
        if not Path(path).is_file():
            raise UserError(f"there is no file {path}")
    sync = sync or launch.script.sync or "manual"
    if sync not in ("manual", "auto"):
        raise UserError(f'sync is "manual" or "auto", not {sync!r}')
    words = [*(shlex.split(flags) if isinstance(flags, str) else flags), *(AUTO_FLAGS if sync == "auto" else ())]
    chip = profiles.find(arch or launch.script.arch or "a2a3").name
    options = driver.BuildOptions(export_kernels=True)
    built = driver.compile_program(sources, chip, flags=words, shared=True, options=options)
    return Library(built, sources, timeout)


class Library:
    """The kernels of compiled sources, as attributes: ``library.NAME[blocks](arguments...)``."""

    def __init__(self, built: Path, sources: Sequence[str | Path], timeout: float | None = None) -> None:
        """``built`` is what ``sources`` were compiled to, with exported kernels. Later changes of it do no harm."""
        directory = scratch.make("library")
        weakref.finalize(self, scratch.remove, directory)
        self._image = load_image(shutil.copy(built, directory))
        self._files = ", ".join(Path(source).name for source in sources)
        self._timeout = timeout
        self._declared: dict[str, list[dict[str, Any]]] = {}
        for kernel in self._image.kernels:
            self._declared.setdefault(kernel["name"], []).append(kernel)
        self._kernels = {name: self._kernel(found) for name, found in _callable(self._image).items()}

    def __getattr__(self, name: str) -> Kernel:
        """The kernel of that name.

        Raises:
            NoSuchKernel: there is none that can be called; a :class:`UserError` that lists those that can.
        """
        if name.startswith("__") or "_kernels" not in self.__dict__:
            raise AttributeError(name)
        found = self._kernels.get(name)
        if found is None:
            raise NoSuchKernel(self._why_not(name))
        return found

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._kernels})

    def __repr__(self) -> str:
        names = ", ".join(self._kernels) or "no kernels"
        return f"<library of {self._files} for {self._image.profile}: {names}>"

    def _kernel(self, exported: ExportedKernel) -> Kernel:
        """The kernel with its parameters' names and spelling, which stand in the source."""
        count = len(exported.parameters)
        declared = [d for d in self._declared.get(exported.name, ()) if len(d["parameters"]) == count]
        written = next((d for d in declared if d["is_defined"]), declared[0] if declared else None)
        spelled = written["parameters"] if written else [{"type": "?", "name": ""}] * count
        parameters = tuple(
            Parameter(text["name"], text["type"], kind) for text, kind in zip(spelled, exported.parameters, strict=True)
        )
        return Kernel(self, exported.name, parameters, timeout=self._timeout)

    def _why_not(self, name: str) -> str:
        """Why a name cannot be called, in a sentence."""
        callable_ = ", ".join(self._kernels)
        listed = f" It can call {callable_}." if callable_ else ""
        found = [d for d in self._declared.get(name, ()) if d["is_defined"]]
        places = sorted({f"{d['source']}:{d['line']}" for d in found})
        if any(d["is_template"] for d in found):
            return (
                f"{name} ({places[0]}) is a template, which has no code until a program launches it with types, so it "
                "cannot be called by name. Move its body into an AICORE function template, and write a kernel for each "
                f"type that calls it.{listed}"
            )
        if len(places) > 1:
            return (
                f"{name} is the name of several kernels ({', '.join(places)}), so it does not say which one is meant. "
                f"Give each a name of its own.{listed}"
            )
        if places:
            return (
                f"{name} ({places[0]}) has no code in this library: an #if leaves it out for "
                f"{self._image.profile}.{listed}"
            )
        if not listed:
            return f"{self._files} defines no kernels: a kernel is a function with the word __global__."
        return f"{self._files} defines no kernel {name}.{listed}"


def _callable(image: Image) -> dict[str, ExportedKernel]:
    """The kernels that can be called by name, in the source's order; a name that two kernels share is none."""
    found: dict[str, ExportedKernel] = {}
    definitions = {(k["name"], k["source"], k["line"]) for k in image.kernels if k["is_defined"]}
    defined = Counter(name for name, _, _ in definitions)
    for device in image.devices:
        exported = list(exported_kernels(ElfFile(image.read(device.side), str(image.path))))
        times = Counter(kernel.name for kernel in exported)
        for kernel in exported:
            if times[kernel.name] == 1 or defined[kernel.name] == 1:
                found.setdefault(kernel.name, kernel)
    return {name: found[name] for name in dict.fromkeys(k["name"] for k in image.kernels) if name in found}


@dataclass(frozen=True)
class Parameter:
    """A kernel's parameter: its name and type as written, and as the compiler sees it."""

    name: str
    spelling: str
    type: ParameterType

    def __str__(self) -> str:
        return f"{self.spelling} {self.name}".strip()


@dataclass(frozen=True, repr=False)
class Kernel:
    """A compiled kernel and how it is launched. Index with the number of blocks, then call with arrays and scalars.

    A pointer takes a NumPy array of its element type, of any shape and strides, or None (a null pointer); ``void*`` and
    ``uint8_t*`` (``GM_ADDR``) take arrays of every type. The kernel gets a copy in a block of global memory that holds
    the elements one after the other; afterwards the array has what the kernel wrote, if it is writeable. One array for
    two parameters is one block. A number takes a number that fits it, a struct anything of its size that has bytes
    (``bytes``, a ctypes structure, a NumPy record).

    The kernel runs in a process of its own: if it crashes, the launch has an error, and the arrays are as before.
    """

    library: Library
    name: str
    parameters: tuple[Parameter, ...]
    raise_on_error: bool = True
    timeout: float | None = None
    dynamic_ub: int = 0

    def options(self, **changes: Any) -> Kernel:
        """The kernel with ``raise_on_error``, ``timeout`` (seconds) or ``dynamic_ub`` (bytes) changed."""
        unknown = changes.keys() - {"raise_on_error", "timeout", "dynamic_ub"}
        if unknown:
            raise UserError(f"a kernel has the options raise_on_error, timeout and dynamic_ub, not {min(unknown)}")
        return replace(self, **changes)

    def __getitem__(self, blocks: int) -> Callable[..., Run]:
        """The launch of so many blocks."""
        return lambda *args: self._launch(blocks, args)

    def __call__(self, *args: Any) -> Run:
        """A launch of one block."""
        return self._launch(1, args)

    @property
    def prototype(self) -> str:
        """The declaration, without the vendor's words."""
        return f"void {self.name}({', '.join(map(str, self.parameters))})"

    def __repr__(self) -> str:
        return f"<kernel {self.prototype}>"

    def _launch(self, blocks: int, args: Sequence[Any]) -> Run:
        started = time.perf_counter()
        image = self.library._image
        profile = profiles.load(image.profile)
        blocks = _blocks(blocks, profile.max_blocks)
        arguments = self._arguments(args)
        call = session.Call(self.name, blocks, tuple(arguments.named), self.dynamic_ub, _caller())
        with _standard_output() as stdout:
            outcome = session.run(image.path, profile=profile, timeout=self.timeout, stdout=stdout, call=call)
        try:
            outcome.sites(0, 0)  # looked up while the modules are there
            run = judge(outcome, self.name, started)
        finally:
            outcome.close()
        if outcome.error is None and _is_inside_kernel(outcome):
            headline = f"the kernel {self.name} ended the process, with status {outcome.status}"
            places = (Place("called here", call.caller),)
            mend = "Return from the kernel instead; a kernel has no process to end."
            run.diagnostics.insert(0, Diagnostic("H013", Severity.ERROR, headline, places, (), mend))
        arguments.write_back()
        return launch.conclude(run, self.raise_on_error)

    def _arguments(self, args: Sequence[Any]) -> _Arguments:
        """The arguments as the child process gets them.

        Raises:
            UserError: they do not fit the parameters.
        """
        if len(args) != len(self.parameters):
            count = f"{len(self.parameters)} argument{'s' * (len(self.parameters) != 1)}"
            raise UserError(f"{self.name} takes {count}, not {len(args)}. The kernel is {self.prototype}.")
        made = _Arguments([], {})
        for number, (parameter, value) in enumerate(zip(self.parameters, args, strict=True), start=1):
            name = parameter.name or f"argument {number}"
            try:
                packed = _pack(parameter.type, value)
            except _Misfit as misfit:
                raise UserError(f"{self.name}: {name} {misfit}. The kernel is {self.prototype}.") from None
            made.add(name, packed)
        return made


@dataclass(frozen=True)
class _Arguments:
    """A launch's arguments by name, and of each array the caller's and the copy that goes to the child process."""

    named: list[tuple[str, np.ndarray | bytes]]
    copies: dict[tuple[Any, ...], tuple[np.ndarray, np.ndarray]]

    def add(self, name: str, value: np.ndarray | bytes) -> None:
        """Add an argument. The same elements of the same array again are the same copy."""
        if isinstance(value, np.ndarray):
            key = (value.__array_interface__["data"][0], value.shape, value.strides, value.dtype)
            if key not in self.copies:
                self.copies[key] = value, np.array(value, order="C", copy=True, subok=False)
            value = self.copies[key][1]
        self.named.append((name, value))

    def write_back(self) -> None:
        """Give the caller's arrays what the kernel wrote.

        Arrays that it did not change are left alone: they may overlap others that it did.
        """
        changed = []
        for array, copy in self.copies.values():
            before = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            if array.flags.writeable and not np.array_equal(before, copy.reshape(-1).view(np.uint8)):
                changed.append((array, copy))
        for array, copy in changed:
            array[...] = copy


def _blocks(blocks: Any, limit: int) -> int:
    try:
        count = operator.index(blocks)
    except TypeError:
        raise UserError(f"kernel[blocks] takes the number of blocks, not {type(blocks).__name__}") from None
    if not 1 <= count <= limit:
        raise UserError(f"a launch has 1 to {limit} blocks, not {count}")
    return count


def _caller() -> Site:
    """The line that launches."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno) if frame is not None else Site("")


def _is_inside_kernel(outcome: session.Outcome) -> bool:
    """Whether a block began and did not end."""
    kinds = outcome.trace.rows["kind"]
    begun, ended = (np.count_nonzero(kinds == kind) for kind in (Kind.LAUNCH_BEGIN, Kind.LAUNCH_END))
    return bool(begun > ended)


@contextlib.contextmanager
def _standard_output() -> Iterator[IO[Any] | int]:
    """Where kernels print: to ``sys.stdout``, also where that is no file (in a notebook, under a redirection)."""
    sys.stdout.flush()
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, OSError):
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            sys.stdout.write(file.read().decode(errors="replace"))
        return
    yield descriptor


# --------------------------------------------------------------------------------------------------------------------
# From Python values to arguments


class _Misfit(Exception):
    """Why a value does not fit a parameter; goes on after the parameter's name."""


def _pack(kind: ParameterType, value: Any) -> np.ndarray | bytes:
    """An array for a pointer, else the argument's bytes.

    Raises:
        _Misfit: the value does not fit.
    """
    if kind.kind is ParameterKind.POINTER:
        return _pack_array(kind, value)
    if kind.kind is ParameterKind.BOOL:
        return _pack_bool(value)
    if kind.kind is ParameterKind.OBJECT:
        return _pack_object(kind.size, value)
    assert kind.dtype is not None
    return _pack_float(kind.dtype, value) if kind.dtype.kind == "f" else _pack_integer(kind.dtype, value)


def _pack_array(kind: ParameterType, value: Any) -> np.ndarray | bytes:
    if value is None:
        return bytes(8)
    if not isinstance(value, np.ndarray):
        raise _Misfit(f"is a pointer and takes a NumPy array (or None), not {_described(value)}")
    if value.dtype.hasobject:
        raise _Misfit("takes an array of numbers, not of Python objects")
    takes_anything = kind.dtype is u8 or (kind.dtype is None and kind.size == 0)
    if takes_anything:
        return value
    if kind.dtype is None:
        if value.dtype == np.uint8 or (value.dtype.kind == "V" and value.dtype.itemsize == kind.size):
            return value
        raise _Misfit(
            f"points to items of {kind.size} bytes and takes a structured array of such items, or their bytes as "
            f"uint8, not an array of {value.dtype}"
        )
    if value.dtype != kind.dtype.numpy:
        wanted = kind.dtype.numpy.name
        raise _Misfit(f"takes an array of {wanted}, not of {value.dtype}; convert it with .astype({wanted!r})")
    return value


def _pack_bool(value: Any) -> bytes:
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
        return bytes([bool(value)])
    raise _Misfit(f"is a bool and takes True or False, not {_described(value)}")


def _pack_integer(kind: DType, value: Any) -> bytes:
    limits = np.iinfo(kind.numpy)
    try:
        if isinstance(value, np.ndarray):
            raise TypeError
        number = int(value) if isinstance(value, np.bool_) else operator.index(value)
        if limits.min <= number <= limits.max:
            return number.to_bytes(kind.size, "little", signed=kind.kind == "i")
    except TypeError:
        pass
    allowed = f"{limits.min} to {limits.max}"
    raise _Misfit(f"is {kind.c_names[0]} and takes a whole number from {allowed}, not {_described(value)}")


def _pack_float(kind: DType, value: Any) -> bytes:
    try:
        if isinstance(value, (np.ndarray, str, bytes)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise _Misfit(f"is {kind.c_names[0]} and takes a number, not {_described(value)}") from None
    with np.errstate(over="ignore"):
        rounded = np.array(number).astype(kind.numpy)
    if np.isfinite(number) and not np.isfinite(rounded.astype(np.float64)):
        raise _Misfit(f"is {kind.c_names[0]}, which does not reach to {number:g}")
    return rounded.tobytes()


def _pack_object(size: int, value: Any) -> bytes:
    try:
        packed = memoryview(value).tobytes()
    except TypeError:
        packed = b""
    if len(packed) != size or (isinstance(value, np.ndarray) and value.ndim):
        kinds = "bytes, a ctypes structure, a NumPy record"
        raise _Misfit(f"is passed by value and takes {size} bytes ({kinds}), not {_described(value)}")
    return packed


def _described(value: Any) -> str:
    """A value that does not fit, in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    if isinstance(value, (bool, int, float, np.number)):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} bytes"
    return "None" if value is None else type(value).__name__
