"""Kernels compiled against ascsim's headers and a runtime that only records (stub_runtime.cpp)."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ascsim import profiles, scratch
from ascsim.frontends.cpp import generate
from ascsim.frontends.cpp.compilers import find_compiler
from ascsim.isa import REGISTRY
from ascsim.isa.definition import BoundRegisterInstruction, RegisterInstruction
from ascsim.machine.trace import ACCESS, ROW

STUB = Path(__file__).with_name("stub_runtime.cpp")
FLAGS = ("-std=c++17", "-O1", "-g", "-fPIC", "-Wall", "-Wextra", "-Werror", "-fno-trapping-math")
OPERAND = np.dtype(
    [
        ("sort", "u1"), ("dtype", "u1"), ("space", "u1"), ("blayout", "u1"), ("slayout", "u1"), ("pad", "u1"),
        ("fractal", "<u2"), ("rows", "<i4"), ("cols", "<i4"), ("valid_rows", "<i4"), ("valid_cols", "<i4"),
        ("address", "<u8"), ("shape", "<i8", 5), ("strides", "<i8", 5),
    ]
)  # fmt: skip
ISSUED = np.dtype([("definition", "<u4"), ("count", "<u4"), ("site", "<u8"), ("operands", OPERAND, 16)])
EVENT = np.dtype([("what", "S32"), ("values", "<u8", 4)])
UB = 1


def command(profile: str, *flags: str, side: int = 1) -> list[str]:
    """The compiler with what every file is compiled with."""
    directory = generate.headers(profiles.load(profile))
    compiler = find_compiler()
    own = () if compiler.kind == "gcc" else ("-Wno-unused-command-line-argument", "-Wno-unknown-warning-option")
    return [
        *compiler.command, *FLAGS, *own, f"-DASCSIM_SIDE={side}", f"-I{directory}", f"-I{generate.INCLUDE}",
        "-include", "ascsim/prelude.hpp", *flags,
    ]  # fmt: skip


def compile_errors(directory: Path, text: str, profile: str, *flags: str, side: int = 1) -> list[tuple[int, str]]:
    """(line of the text, or 0 in a header; message) of each error that the compiler finds."""
    source = directory / "user.cpp"
    source.write_text(text)
    whole = [*command(profile, *flags, side=side), "-c", str(source), "-o", str(directory / "user.o")]
    done = subprocess.run(whole, capture_output=True, text=True, check=False)
    found = []
    for row in done.stderr.splitlines():
        place, _, message = row.partition(" error: ")
        if message:
            path, line, *_ = place.split(":")
            found.append((int(line) if path == str(source) else 0, message))
    assert bool(found) == (done.returncode != 0), done.stderr
    return found


@cache
def _stub() -> Path:
    directory = scratch.make("stub")
    subprocess.run([*command("cpu"), "-c", str(STUB), "-o", str(directory / "stub.o")], check=True)
    return directory / "stub.o"


@dataclass
class Compiled:
    """A loaded library of kernels ``extern "C" void NAME(void** arguments)`` and what they did."""

    library: ctypes.CDLL
    path: Path

    def run(self, kernel: str, *arguments: int) -> bool:
        """Run a kernel; each argument is an int64 or an address. False if it was stopped."""
        cells = (ctypes.c_int64 * max(len(arguments), 1))(*arguments)
        entry = ctypes.cast(getattr(self.library, kernel), ctypes.c_void_p)
        return self.library.stub_run(entry, ctypes.byref(cells)) == 0

    @property
    def ub(self) -> np.ndarray:
        """The core's UB and its guard, as bytes."""
        memories = ctypes.c_uint64.in_dll(self.library, "ascsim_core")
        address = ctypes.c_uint64.from_address(ctypes.addressof(memories) + 16 + 8 * UB).value
        return np.ctypeslib.as_array((ctypes.c_uint8 * (196608 + 65536)).from_address(address))

    @property
    def ub_address(self) -> int:
        return self.ub.ctypes.data

    @property
    def issued(self) -> np.ndarray:
        """What went through ascsim_issue."""
        count = ctypes.c_uint32.in_dll(self.library, "n_issued").value
        return self._table("issued", ISSUED, count)

    @property
    def events(self) -> list[tuple[str, list[int]]]:
        """What else the headers asked of the runtime."""
        count = ctypes.c_uint32.in_dll(self.library, "n_events").value
        return [(row["what"].decode(), row["values"].tolist()) for row in self._table("events", EVENT, count)]

    @property
    def rows(self) -> np.ndarray:
        return self._trace(0, ROW, self.library.stub_rows())

    @property
    def accesses(self) -> np.ndarray:
        return self._trace(1, ACCESS, self.library.stub_accesses())

    @property
    def masks(self) -> np.ndarray:
        return self._trace(2, np.dtype("(32,)u1"), self.library.stub_masks())

    def _table(self, name: str, dtype: np.dtype, count: int) -> np.ndarray:
        data = (ctypes.c_uint8 * (count * dtype.itemsize)).in_dll(self.library, name)
        return np.frombuffer(bytes(data), dtype)

    def _trace(self, number: int, dtype: np.dtype, count: int) -> np.ndarray:
        pointers = (ctypes.c_uint64 * 3).in_dll(self.library, "ascsim_trace")
        return np.frombuffer(ctypes.string_at(pointers[number], count * dtype.itemsize), dtype)[:count].copy()


def compile_kernels(directory: Path, text: str, profile: str, *flags: str, side: int = 1) -> Compiled:
    """Compile kernels and load them; register instructions run their NumPy semantics."""
    source, target = directory / "kernels.cpp", directory / "kernels.so"
    source.write_text(text)
    subprocess.run(
        [*command(profile, *flags, side=side), "-shared", str(source), str(_stub()), "-o", str(target)], check=True
    )
    compiled = Compiled(ctypes.CDLL(str(target)), target)
    compiled.library.stub_rows.restype = ctypes.c_uint64
    compiled.library.stub_start(side)
    resolver = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)(_resolve)
    compiled.library.keep = resolver  # type: ignore[attr-defined]
    ctypes.c_void_p.in_dll(compiled.library, "resolver").value = ctypes.cast(resolver, ctypes.c_void_p).value
    return compiled


_functions: dict[tuple[int, int], Callable[..., None]] = {}


def _resolve(number: int, variant: int) -> int | None:
    """A C function of pointers that runs the NumPy form of a register instruction."""
    if (number, variant) not in _functions:
        definition = REGISTRY.definitions[number - 1]
        assert isinstance(definition, RegisterInstruction)
        _functions[number, variant] = _as_function(definition.bind(**definition.variants[variant]))
    return ctypes.cast(_functions[number, variant], ctypes.c_void_p).value  # type: ignore[arg-type]


def _as_function(bound: BoundRegisterInstruction) -> Callable[..., None]:
    from ascsim.isa.compile import buffer_bytes, parameters

    sizes = [buffer_bytes(bound, name) for name in parameters(bound)]

    def call(*pointers: int) -> None:
        arrays = [
            np.ctypeslib.as_array((ctypes.c_uint8 * n).from_address(p)) for p, n in zip(pointers, sizes, strict=True)
        ]
        outs = len(arrays) - len([n for n in parameters(bound) if n.startswith("in_")])
        bound.run(*[a.copy() if i >= outs else a for i, a in enumerate(arrays)])

    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(sizes))(call)


def lines_of(path: Path, addresses: Sequence[int]) -> list[int]:
    """The source line of each address, of the function that everything else was inlined into."""
    found = []
    for address in addresses:
        one = subprocess.run(
            ["addr2line", "-i", "-e", str(path), hex(address)], capture_output=True, text=True, check=True
        ).stdout
        found.append(int(one.strip().splitlines()[-1].rsplit(":", 1)[1].split()[0]))
    return found
