"""Register semantics as machine code.

The wrapper of a bound register instruction is a small function, written here as text, that turns raw buffers into what
the semantics want and back. NumPy runs it for Python and ``.pto`` kernels; Numba compiles the same text to a C function
pointer for C++ kernels. Every argument is a pointer: vector and mask registers are 256 bytes, scalars 8.

Compiled code is cached on disk under a hash of all semantics, because Numba's own cache does not notice that a function
which a cached function calls has changed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ascsim.isa import definition as d
from ascsim.isa.semantics import convert
from ascsim.machine.dtypes import DType

CACHE_VERSION = "1"


def cache_directory() -> Path:
    """Where compiled semantics, generated headers and compiled kernels are kept (``ASCSIM_CACHE`` overrides)."""
    chosen = os.environ.get("ASCSIM_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ascsim"


def parameters(bound: d.BoundRegisterInstruction) -> list[str]:
    """Names of the wrapper's parameters in order: written buffers, then inputs (an INOUT operand is in both)."""
    definition = bound.definition
    if isinstance(bound.memory, d.Store):
        outs = ["out_data", "out_written"]
    else:
        registers = [o for o in definition.operands if o.role is d.Role.OUT and o.sort in (d.Sort.VREG, d.Sort.MREG)]
        merged = [o for o in definition.operands if o.role is d.Role.INOUT and o.sort is d.Sort.VREG]
        cells = [o for o in definition.operands if o.role is d.Role.INOUT and o.sort is d.Sort.SCALAR]
        outs = [f"out_{o.name}" for o in (*registers, *merged, *cells)]
    stores = isinstance(bound.memory, d.Store)
    ins = [f"in_{o.name}" for o in definition.inputs if not (stores and o.sort is d.Sort.POINTER)]
    return outs + ins


def _scalar_text(operand: d.Operand, dtype: DType | None) -> str:
    name = f"in_{operand.name}"
    if dtype is None:
        return f"{name}.view(np.int64)[0]"
    if dtype.name in ("f16", "bf16"):
        return f"widen_{dtype.name}({name}[:2].view(np.uint16))[0]"
    return f"{name}.view(np.{_numpy_name(dtype)})[0]"


def _numpy_name(dtype: DType) -> str:
    if dtype.numpy.name in np.sctypeDict:
        return dtype.numpy.name
    return dtype.bits_dtype.name


def _input_text(operand: d.Operand, bound: d.BoundRegisterInstruction) -> str:
    name, dtype, values = f"in_{operand.name}", bound.dtype_of(operand), bound.definition.values
    if operand.sort is d.Sort.MREG:
        if operand.lane_mask:
            return f"{name}[::{bound.types[operand.lane_mask].size}]"
        return name
    if operand.sort is d.Sort.POINTER:
        return name
    if operand.sort in (d.Sort.SCALAR, d.Sort.ENUM):
        return _scalar_text(operand, dtype if operand.sort is d.Sort.SCALAR else None)
    assert dtype is not None
    if values == "bits":
        return f"{name}.view(np.{dtype.bits_dtype.name})"
    if values == "widen" and dtype.name in ("f16", "bf16"):
        return f"widen_{dtype.name}({name}.view(np.uint16))"
    return f"{name}.view(np.{_numpy_name(dtype)})"


def _output_text(operand: d.Operand, value: str, bound: d.BoundRegisterInstruction) -> list[str]:
    out, dtype, values = f"out_{operand.name}", bound.dtype_of(operand), bound.definition.values
    if operand.sort is d.Sort.MREG:
        if operand.lane_mask:
            return [f"{out}[:] = 0", f"{out}[::{bound.types[operand.lane_mask].size}] = {value}"]
        return [f"{out}[:] = {value}"]
    if operand.sort is d.Sort.SCALAR:
        assert dtype is not None
        return [f"{out}.view(np.{_numpy_name(dtype)})[0] = {value}"]
    assert dtype is not None
    if values == "bits":
        lanes = f"{out}.view(np.{dtype.bits_dtype.name})"
    elif values == "widen" and dtype.name in ("f16", "bf16"):
        lanes, value = f"{out}.view(np.uint16)", f"narrow_{dtype.name}({value})"
    else:
        lanes = f"{out}.view(np.{_numpy_name(dtype)})"
    masking = bound.definition.masking
    mask = next((o for o in bound.definition.inputs if o.lane_mask), None)
    if masking == "none" or mask is None:
        return [f"{lanes}[:] = {value}"]
    active = f"in_{mask.name}[::{dtype.size}] != 0"
    if masking == "zero":
        return [f"{lanes}[:] = np.where({active}, {value}, {lanes}.dtype.type(0))"]
    return [f"{lanes}[:] = np.where({active}, {value}, {lanes})"]


def wrapper_text(bound: d.BoundRegisterInstruction) -> str:
    """The wrapper's source."""
    definition = bound.definition
    lines = [f"def wrapper({', '.join(parameters(bound))}):"]
    governed = definition.masking != "none"
    inputs = [
        _input_text(o, bound)
        for o in definition.inputs
        if not (isinstance(bound.memory, d.Store) and o.sort is d.Sort.POINTER)
        and not (governed and o.lane_mask)
    ]
    call = f"semantics({', '.join(inputs)})"
    if isinstance(bound.memory, d.Store):
        lines += [f"    data, written = {call}", "    out_data[:] = data", "    out_written[:] = written"]
        return "\n".join(lines) + "\n"
    outs = [
        *(o for o in definition.operands if o.role is d.Role.OUT and o.sort in (d.Sort.VREG, d.Sort.MREG)),
        *(o for o in definition.operands if o.role is d.Role.INOUT and o.sort in (d.Sort.VREG, d.Sort.SCALAR)),
    ]
    names = [f"r{i}" for i in range(len(outs))]
    lines.append(f"    {', '.join(names)} = {call}")
    for operand, name in zip(outs, names, strict=True):
        lines += [f"    {line}" for line in _output_text(operand, name, bound)]
    return "\n".join(lines) + "\n"


def register_wrapper(bound: d.BoundRegisterInstruction) -> Callable[..., None]:
    """The wrapper for NumPy."""
    namespace: dict[str, Any] = {
        "np": np, "semantics": bound.definition.semantics, "widen_f16": convert.f16_bits_to_f32,
        "widen_bf16": convert.bf16_bits_to_f32, "narrow_f16": convert.narrow_f16, "narrow_bf16": convert.narrow_bf16,
    }  # fmt: skip
    exec(compile(wrapper_text(bound), f"<{bound.name}>", "exec"), namespace)
    return namespace["wrapper"]


# Numba


@cache
def semantics_hash() -> str:
    """A hash of every semantics module, this module, and the versions that compiled code depends on."""
    import numba

    root = Path(__file__).parent
    digest = hashlib.sha256(f"{CACHE_VERSION} {numba.__version__} {np.__version__} {sys.version}".encode())
    for path in sorted([*root.rglob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def jitted(function: FunctionType) -> Any:
    """The function compiled by Numba, with the functions of ``ascsim.isa.semantics`` that it calls compiled too."""
    import numba

    names = {name for code in _codes(function.__code__) for name in code.co_names}
    replaced: dict[str, Any] = {}
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, FunctionType) and value is not function and value.__module__.startswith("ascsim.isa"):
            replaced[name] = jitted(value)
        elif isinstance(value, ModuleType) and value.__name__.startswith("ascsim.isa.semantics"):
            raise TypeError(f"{function.__name__}: import functions, not the module {value.__name__}, for Numba")
    copy = FunctionType(
        function.__code__, {**function.__globals__, **replaced}, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    return numba.njit(copy, error_model="numpy")


def _codes(code: Any) -> list[Any]:
    return [code, *(inner for const in code.co_consts if inspect.iscode(const) for inner in _codes(const))]


_NATIVE_HEADER = """\
import numba
import numpy as np
from numba import carray, types

from ascsim.isa import compile as _compile
from ascsim.isa.semantics import convert as _convert

widen_f16, widen_bf16 = _compile.jitted(_convert.f16_bits_to_f32), _compile.jitted(_convert.bf16_bits_to_f32)
narrow_f16, narrow_bf16 = _compile.jitted(_convert.narrow_f16), _compile.jitted(_convert.narrow_bf16)
semantics = _compile.semantics_of({name!r}, {cpp!r})


@numba.njit(error_model="numpy")
"""


def semantics_of(name: str, cpp: str) -> Any:
    """The compiled semantics of a registered register instruction: what a cached wrapper module calls."""
    found = next(x for x in d.REGISTRY.by_name[name] if x.level == "register" and x.cpp == cpp)
    assert isinstance(found, d.RegisterInstruction)
    return jitted(found.semantics)  # type: ignore[arg-type]


def native_text(bound: d.BoundRegisterInstruction) -> str:
    """The module that Numba compiles: the wrapper, and a C entry point of pointers only."""
    names = parameters(bound)
    sizes = [_buffer_bytes(name, bound) for name in names]
    arrays = ", ".join(f"carray({n}, ({size},), np.uint8)" for n, size in zip(names, sizes, strict=True))
    signature = f"types.void({', '.join(['types.voidptr'] * len(names))})"
    return (
        _NATIVE_HEADER.format(name=bound.name, cpp=bound.definition.cpp)
        + wrapper_text(bound)
        + f"\n\n@numba.cfunc({signature}, cache=True, error_model='numpy')\ndef entry({', '.join(names)}):\n"
        f"    wrapper({arrays})\n"
    )


def _buffer_bytes(name: str, bound: d.BoundRegisterInstruction) -> int:
    if name in ("out_data", "out_written"):
        assert isinstance(bound.memory, d.Store)
        return bound.memory.nbytes
    operand = next(o for o in bound.definition.operands if o.name == name.split("_", 1)[1])
    if operand.sort is d.Sort.POINTER:
        assert isinstance(bound.memory, d.Load)
        return bound.memory.nbytes
    return REGISTER if operand.sort in (d.Sort.VREG, d.Sort.MREG) else 8


REGISTER = 256
_loaded: dict[tuple[int, int], Any] = {}


def native_pointer(bound: d.BoundRegisterInstruction) -> int:
    """The address of the compiled wrapper; compiled on first use and cached on disk."""
    key = (bound.definition.number, bound.index)
    entry = _loaded.get(key)
    if entry is None:
        directory = cache_directory() / f"semantics-{semantics_hash()}"
        directory.mkdir(parents=True, exist_ok=True)
        module_name = f"r_{bound.name}_{bound.definition.cpp}_{'_'.join(t.name for t in bound.types.values())}"
        path = directory / f"{module_name}.py"
        if not path.exists():
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_text(native_text(bound))
            partial.replace(path)
        spec = importlib.util.spec_from_file_location(f"_ascsim_native.{module_name}", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        entry = _loaded[key] = module.entry
    return entry.address
