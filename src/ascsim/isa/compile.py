"""Register semantics on raw buffers: for Python and ``.pto`` kernels by NumPy, for C++ kernels as machine code.

Both forms are functions of buffers in the order of :func:`parameters`: written ones first, then inputs. Vector and mask
registers are 256 bytes, scalars 8, loaded and stored bytes as many as the definition says. A written buffer is no input
at the same time; callers copy where a register is both.

The NumPy form calls the semantics on views of the buffers. The compiled form is made from the same semantics, in the
way that the definition's ``native`` names: recorded and written as loops over lanes (isa/loops.py), loops that move
data (isa/moves.py), a table of all results, or the array function itself. What Numba makes of it is kept on disk
(ascsim/compiled.py) under a hash of everything that it depends on: Numba's own cache does not notice that a function
which a cached function was made from has changed.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ascsim.cache import generation
from ascsim.compiled import find, make, tools
from ascsim.isa import definition as d
from ascsim.isa import moves
from ascsim.isa.loops import Program, affine
from ascsim.isa.semantics import convert
from ascsim.machine.operands import REGISTER_BYTES

CACHE_VERSION = "4"
SCALAR_BYTES = 8
_NUMBERS = (d.Sort.SCALAR, d.Sort.STATE)


# What goes in and out


def parameters(bound: d.BoundRegisterInstruction) -> list[str]:
    """Names of the buffers in order: ``out_NAME`` of what is written, then ``in_NAME`` of the inputs.

    A store writes ``out_data`` and ``out_written`` instead of memory and has no pointer among its inputs; a load has
    the bytes it reads. An operand that is read and written is in both. The offset of a load or store is its caller's
    affair.
    """
    return [*_written_names(bound), *(f"in_{o.name}" for o in _inputs(bound))]


def buffer_bytes(bound: d.BoundRegisterInstruction, name: str) -> int:
    """The size of the buffer of that name."""
    if name in ("out_data", "out_written"):
        assert bound.memory is not None
        return bound.memory.nbytes
    operand = _operand(bound, name)
    if operand.sort is d.Sort.POINTER:
        assert bound.memory is not None
        return bound.memory.nbytes
    return REGISTER_BYTES if operand.sort in (d.Sort.VREG, d.Sort.MREG) else SCALAR_BYTES


def _stores(bound: d.BoundRegisterInstruction) -> bool:
    return isinstance(bound.memory, d.Store)


def _written_names(bound: d.BoundRegisterInstruction) -> list[str]:
    return ["out_data", "out_written"] if _stores(bound) else [f"out_{o.name}" for o in bound.written]


def _inputs(bound: d.BoundRegisterInstruction) -> list[d.Operand]:
    elsewhere = (bound.memory.offset, *bound.memory.apart) if bound.memory else ()
    return [
        o
        for o in bound.definition.read
        if o.name not in elsewhere and not (_stores(bound) and o.sort is d.Sort.POINTER)
    ]


def _governing(bound: d.BoundRegisterInstruction) -> d.Operand | None:
    """The lane mask that the wrapper applies for the semantics."""
    if bound.definition.masking == "none":
        return None
    return [o for o in bound.definition.inputs if o.lane_mask][-1]


def _semantic_inputs(bound: d.BoundRegisterInstruction) -> list[d.Operand]:
    """The inputs that the semantics take: not the governing mask, nor a destination that is only merged into."""
    governing, merges = _governing(bound), bound.definition.masking == "merge"
    return [o for o in _inputs(bound) if o is not governing and not (merges and o.role is d.Role.INOUT)]


def _operand(bound: d.BoundRegisterInstruction, name: str) -> d.Operand:
    bare = name.split("_", 1)[1]
    return next(o for o in bound.definition.operands if o.name == bare)


def _raw(bound: d.BoundRegisterInstruction, operand: d.Operand) -> np.dtype:
    """The type that an operand's buffer is viewed as; narrow floats as bits."""
    if operand.sort is d.Sort.MREG or operand.dtype in bound.definition.pointer_types:
        return np.dtype(np.uint8)
    if operand.sort is d.Sort.ENUM:
        return np.dtype(np.int64)
    kind = bound.dtype_of(operand)
    assert kind is not None
    bits = bound.definition.values == "bits" or operand.sort is d.Sort.POINTER or kind.is_narrow_float
    return kind.bits_dtype if bits else kind.numpy


def _widened(bound: d.BoundRegisterInstruction, operand: d.Operand) -> str:
    """``f16`` or ``bf16`` if the semantics see this operand widened to float32, else nothing."""
    kind = bound.dtype_of(operand) if operand.sort in (d.Sort.VREG, d.Sort.SCALAR) else None
    widens = bound.definition.values == "widen" and kind is not None and kind.name in ("f16", "bf16")
    return kind.name if kind is not None and widens else ""


def _size(bound: d.BoundRegisterInstruction, operand: d.Operand) -> int:
    """Bytes of a lane of a register or lane mask."""
    return bound.types[operand.lane_mask].size if operand.lane_mask else _raw(bound, operand).itemsize


def _widest(bound: d.BoundRegisterInstruction) -> int:
    registers = [o for o in bound.definition.operands if o.sort is d.Sort.VREG or o.lane_mask]
    return max((_size(bound, o) for o in registers), default=1)


def _lanes(bound: d.BoundRegisterInstruction, operand: d.Operand) -> int:
    """How many lanes of a register or mask take part: with a part, as many as the widest operand has."""
    return REGISTER_BYTES // (_size(bound, operand) if bound.definition.part is None else _widest(bound))


def _stride(bound: d.BoundRegisterInstruction, operand: d.Operand) -> tuple[int, int]:
    """(first, step) of the lanes that take part."""
    if bound.definition.part is None or _size(bound, operand) == _widest(bound):
        return 0, 1
    return bound.definition.part, _widest(bound) // _size(bound, operand)


def _core_text(bound: d.BoundRegisterInstruction) -> str:
    """``core``: the semantics on raw lanes; narrow floats go in widened and come out rounded."""
    names = [f"in_{o.name}" for o in _semantic_inputs(bound)]
    widened = [_widened(bound, o) for o in _semantic_inputs(bound)]
    arguments = [f"widen_{w}({n})" if w else n for n, w in zip(names, widened, strict=True)]
    call = f"semantics({', '.join([*arguments, *map(repr, bound.constants)])})"
    narrowed = [""] * 2 if _stores(bound) else [_widened(bound, o) for o in bound.written]
    results = [f"r{i}" for i in range(len(narrowed))]
    returned = [f"narrow_{w}({r})" if w else r for r, w in zip(results, narrowed, strict=True)]
    return (
        f"def core({', '.join(names)}):\n"
        f"    {', '.join(results)} = {call}\n"
        f"    return {', '.join(returned)}{',' if len(returned) == 1 else ''}\n"
    )


# By NumPy


def _input_text(bound: d.BoundRegisterInstruction, operand: d.Operand) -> str:
    name, raw = f"in_{operand.name}", _raw(bound, operand)
    if operand.sort is d.Sort.ENUM:
        return f"int({name}.view(np.int64)[0])"
    if operand.sort in _NUMBERS:
        return f"{name}[:{raw.itemsize}].view(np.{raw.name})"
    if operand.sort is d.Sort.MREG and not operand.lane_mask:
        return name
    first, step = _stride(bound, operand)
    if operand.lane_mask:
        size = _size(bound, operand)
        return f"{name}[{first * size}::{step * size}]"
    lanes = f"{name}.view(np.{raw.name})"
    return lanes if step == 1 else f"{lanes}[{first}::{step}]"


def _output_text(bound: d.BoundRegisterInstruction, operand: d.Operand, value: str) -> list[str]:
    name, raw, masking = f"out_{operand.name}", _raw(bound, operand), bound.definition.masking
    governing = _governing(bound)
    active = f"({_input_text(bound, governing)} != 0)" if governing else ""
    if operand.sort in _NUMBERS:
        return [f"{name}[:{raw.itemsize}].view(np.{raw.name})[0] = {value}[0]"]
    if operand.sort is d.Sort.MREG:
        if not operand.lane_mask:
            return [f"{name}[:] = {value}"]
        lanes = f"{value} & {active}" if active else value
        return [f"{name}[:] = 0", f"{name}[::{_size(bound, operand)}] = {lanes}"]
    first, step = _stride(bound, operand)
    lanes = f"{name}.view(np.{raw.name})[{first}::{step}]"
    cleared = [f"{name}[:] = 0"] if step > 1 else []
    if not active:
        return [*cleared, f"{lanes}[:] = {value}"]
    return [*cleared, f"{lanes}[:] = np.where({active}, {value}, {lanes if masking == 'merge' else '0'})"]


def _wrapper_text(bound: d.BoundRegisterInstruction) -> str:
    names = _written_names(bound)
    results = [f"r{i}" for i in range(len(names))]
    arguments = ", ".join(_input_text(bound, o) for o in _semantic_inputs(bound))
    lines = [f"def wrapper({', '.join(parameters(bound))}):", f"    {', '.join(results)}, = core({arguments})"]
    if _stores(bound):
        lines += [f"    {name}[:] = {r}" for name, r in zip(names, results, strict=True)]
    else:
        for operand, r in zip(bound.written, results, strict=True):
            lines += [f"    {line}" for line in _output_text(bound, operand, r)]
    return "\n".join(lines) + "\n"


def _numpy_namespace(bound: d.BoundRegisterInstruction) -> dict[str, Any]:
    return {
        "np": np, "semantics": bound.semantics, "widen_f16": convert.f16_bits_to_f32,
        "widen_bf16": convert.bf16_bits_to_f32, "narrow_f16": convert.narrow_f16, "narrow_bf16": convert.narrow_bf16,
    }  # fmt: skip


def register_wrapper(bound: d.BoundRegisterInstruction) -> Callable[..., None]:
    """The instruction on buffers (uint8 arrays), by NumPy."""
    namespace = _numpy_namespace(bound)
    exec(compile(_core_text(bound) + _wrapper_text(bound), f"<{bound.name}>", "exec"), namespace)
    run = namespace["wrapper"]

    def wrapper(*buffers: np.ndarray) -> None:
        with np.errstate(all="ignore"):
            run(*buffers)

    return wrapper


def _numpy_core(bound: d.BoundRegisterInstruction) -> Callable[..., tuple[Any, ...]]:
    namespace = _numpy_namespace(bound)
    exec(compile(_core_text(bound), f"<{bound.name}>", "exec"), namespace)
    return namespace["core"]


# As machine code: the module that Numba compiles

_HEADER = """\
import numba
import numpy as np
from numba import carray, types

from ascsim.isa import compile as _compile

"""


def native_text(bound: d.BoundRegisterInstruction) -> str:
    """The source of a module with ``entry``, a C function of pointers only."""
    before, body = _FORMS[bound.definition.native](bound)
    names = ", ".join(parameters(bound))
    signature = f"types.void({', '.join(['types.voidptr'] * len(parameters(bound)))})"
    return (
        _HEADER
        + "".join(f"{line}\n" for line in before)
        + f"\n@numba.cfunc({signature}, error_model='numpy')\ndef entry({names}):\n"
        + "".join(f"    {line}\n" for line in body)
    )


def _array(name: str, of: str, dtype: np.dtype, nbytes: int) -> str:
    return f"{name} = carray({of}, ({nbytes // dtype.itemsize},), np.{dtype.name})"


def constant(name: str, value: np.ndarray | np.generic) -> str:
    """A module-level constant. Floats go by their bits: text has no NaN."""
    dtype = value.dtype
    bits = np.asarray(value).view(f"u{dtype.itemsize}")
    text = f"np.array({bits.tolist()}, np.uint{8 * dtype.itemsize}).view(np.{dtype.name})"
    return f"{name} = {text}" if bits.ndim else f"{name} = {text}[()]"


def _loops(bound: d.BoundRegisterInstruction) -> tuple[list[str], list[str]]:
    """The semantics as loops over lanes; see isa/loops.py."""
    program = Program()
    taken: list[Any] = []
    for operand in _semantic_inputs(bound):
        if operand.sort is d.Sort.ENUM:
            raise TypeError(f"{bound}: an enumeration is a table's input")
        if operand.sort in _NUMBERS:
            taken.append(program.input(f"a_in_{operand.name}", _raw(bound, operand), 1))
        else:
            first, step = _place(bound, operand)
            lanes = _lanes(bound, operand)
            taken.append(program.input(f"a_in_{operand.name}", _raw(bound, operand), lanes, first, step))
    results = program.record(_numpy_core(bound), taken)
    for operand, result in zip(bound.written, results, strict=True):
        if operand.sort in _NUMBERS:
            program.put([f"a_out_{operand.name}[0] = {program.text(result, _raw(bound, operand))}"])
        else:
            kind = np.dtype(bool) if operand.lane_mask else _raw(bound, operand)
            program.put(_lane_put(bound, operand, program.text(result, kind)), _lanes(bound, operand))
    lines = program.lines()
    arrays = [_array(f"a_{n}", n, _raw(bound, _operand(bound, n)), buffer_bytes(bound, n)) for n in parameters(bound)]
    buffers = [
        _array(name, f"stack({count * kind.itemsize})", kind, count * kind.itemsize)
        for name, kind, count in program.buffers()
    ]
    constants = [constant(n, v) for n, v in program.constants.items()]
    return ["bitcast, stack = _compile.bitcast(), _compile.stack()", *constants], [*arrays, *buffers, *lines]


def _place(bound: d.BoundRegisterInstruction, operand: d.Operand) -> tuple[int, int]:
    """(first, step) of the lanes that take part, in units of the buffer's view."""
    first, step = _stride(bound, operand)
    unit = _size(bound, operand) if operand.lane_mask else 1
    return first * unit, step * unit


def _index(bound: d.BoundRegisterInstruction, operand: d.Operand) -> str:
    first, step = _place(bound, operand)
    return affine(step, first)


def _lane_put(bound: d.BoundRegisterInstruction, operand: d.Operand, value: str) -> list[str]:
    out, index = f"a_out_{operand.name}", _index(bound, operand)
    governing = _governing(bound)
    active = f"a_in_{governing.name}[{_index(bound, governing)}] != 0" if governing else ""
    zero = f"np.{_raw(bound, operand).name}(0)"
    if operand.lane_mask:
        value = f"np.uint8({value})"
    if active:
        value = f"{value} if {active} else {f'{out}[{index}]' if bound.definition.masking == 'merge' else zero}"
    first, step = _stride(bound, operand)
    span = _size(bound, operand) if operand.lane_mask else step
    others = [f"{out}[{span} * i + {j}] = {zero}" for j in range(span) if j != (0 if operand.lane_mask else first)]
    return [*others, f"{out}[{index}] = {value}"]


def _moves(bound: d.BoundRegisterInstruction) -> tuple[list[str], list[str]]:
    """Loops that move data; then the governing mask, over the lanes of the results."""
    operands = _semantic_inputs(bound)
    names = [f"in_{o.name}" for o in operands]
    arguments = [
        moves.Argument(buffer_bytes(bound, n), 1 if o.sort is d.Sort.MREG else 8)
        for n, o in zip(names, operands, strict=True)
    ]
    before: list[str] = []
    body: list[str] = []
    arrays: dict[str, str] = {}

    def seen_as(name: str, unit: int) -> str:
        alias = f"{name}_{8 * unit}"
        arrays.setdefault(alias, _array(alias, name, np.dtype(f"u{unit}"), buffer_bytes(bound, name)))
        return alias

    for out, table in zip(_written_names(bound), moves.sources(_raw_core(bound), arguments), strict=True):
        by_bytes = moves.byte_table(table, arguments)
        if by_bytes is None:
            constants, lines = _bit_loop(seen_as(out, 1), seen_as(names[0], 1), table, arguments[0].live)
            before += constants
            body += lines
            continue
        flags = moves.spread(by_bytes, arguments)
        if flags is not None:
            body.append(f"for i in range({flags.repeats}):")
            kind, ones = f"np.uint{8 * flags.unit}", sum(1 << 8 * byte for byte in range(flags.unit))
            for place, stride, source, start, step in flags.moves:
                assert source is not None
                flag = f"{seen_as(names[source], flags.unit)}[{affine(step, start)}]"
                where = f"{seen_as(out, flags.unit)}[{affine(stride, place)}]"
                body.append(f"    {where} = ({flag} & {kind}(255)) * {kind}({ones})")
            continue
        loop = moves.loop(by_bytes, arguments)
        body.append(f"for i in range({loop.repeats}):")
        for place, stride, source, start, step in loop.moves:
            where = f"{seen_as(out, loop.unit)}[{affine(stride, place)}]"
            if source is None:
                body.append(f"    {where} = np.uint{8 * loop.unit}({start})")
            else:
                body.append(f"    {where} = {seen_as(names[source], loop.unit)}[{affine(step, start)}]")
    governing = _governing(bound)
    for operand in bound.written if governing else ():
        assert governing is not None
        lanes, size = seen_as(f"out_{operand.name}", _size(bound, operand)), _size(bound, operand)
        mask = f"{seen_as(f'in_{governing.name}', 1)}[{_index(bound, governing)}]"
        body.append(f"for i in range({REGISTER_BYTES // size}):")
        body.append(f"    {lanes}[i] = {lanes}[i] if {mask} != 0 else np.uint{8 * size}(0)")
    return before, [*arrays.values(), *body]


def _raw_core(bound: d.BoundRegisterInstruction) -> Callable[..., tuple[Any, ...]]:
    """The semantics as a function of the inputs' buffers."""
    operands = _semantic_inputs(bound)
    namespace: dict[str, Any] = {"np": np, "core": _numpy_core(bound)}
    names = ", ".join(f"in_{o.name}" for o in operands)
    views = ", ".join(_input_text(bound, o) for o in operands)
    exec(f"def function({names}):\n    return core({views})\n", namespace)
    return namespace["function"]


def _bit_loop(out: str, source: str, table: np.ndarray, live: int) -> tuple[list[str], list[str]]:
    """A loop over bytes whose bits are gathered; each bit that is not always 0 has a table of its source."""
    before, terms = [], []
    for bit in range(8):
        numbers = table[:, bit]
        if (numbers == moves.ZERO).all():
            continue
        assert (numbers >= 0).all()
        byte, shift = f"{out}_byte_{bit}", f"{out}_shift_{bit}"
        before += [constant(byte, numbers // live), constant(shift, (numbers % live).astype(np.uint8))]
        terms.append(f"(({source}[{byte}[i]] >> {shift}[i]) & 1) << {bit}")
    return before, [f"for i in range({len(table)}):", f"    {out}[i] = {' | '.join(terms)}"]


def _table(bound: d.BoundRegisterInstruction) -> tuple[list[str], list[str]]:
    """All results of one enumeration, in a table."""
    (choice,) = _semantic_inputs(bound)
    (out,) = _written_names(bound)
    assert bound.definition.masking == "none"
    core = _numpy_core(bound)
    members = {code: core(code)[0] for code in _members(choice)}
    rows = [members.get(code, np.zeros(REGISTER_BYTES, np.uint8)) for code in range(max(members) + 1)]
    name = f"in_{choice.name}"
    return [constant("K", np.array(rows, np.uint8))], [
        _array("code", name, np.dtype(np.int64), SCALAR_BYTES),
        _array("out", out, np.dtype(np.uint8), REGISTER_BYTES),
        "row = code[0]",
        f"for i in range({REGISTER_BYTES}):",
        f"    out[i] = K[row, i] if 0 <= row < {len(rows)} else 0",
    ]


def _members(operand: d.Operand) -> list[int]:
    values: Any = operand.enum or ()
    return [int(value) for value in values]


_FORMS = {"loops": _loops, "moves": _moves, "table": _table}


@cache
def bitcast() -> Any:
    """``bitcast(value, like)`` for compiled code: a number's bits as a number of the type of ``like``, as wide."""
    from numba.extending import intrinsic

    @intrinsic
    def cast(typingctx: Any, value: Any, like: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(like))

        return like(value, like), codegen

    return cast


@cache
def halves() -> tuple[Any, Any]:
    """``widen(bits)`` and ``narrow(number)`` for compiled code: half as float32, and float32 rounded to the nearest half.

    A NaN becomes quiet, both ways. Only where :func:`~ascsim.compiled.converts_halves`.
    """
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic
    def widen(typingctx: Any, bits: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

        return types.float32(types.uint16), codegen

    @intrinsic
    def narrow(typingctx: Any, number: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

        return types.uint16(types.float32), codegen

    return widen, narrow


@cache
def stack() -> Any:
    """``stack(nbytes)`` for compiled code: the address of so many bytes that are there until the function returns."""
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    @intrinsic(prefer_literal=True)
    def allocate(typingctx: Any, nbytes: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            block = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(8), nbytes.literal_value))
            block.align = 32
            return builder.bitcast(block, context.get_value_type(types.voidptr))

        return types.voidptr(nbytes), codegen

    return allocate


# Kept on disk


@cache
def tools_hash() -> str:
    """A hash of what all compiled code depends on: the semantics, the tools that write them, those that compile them."""
    root = Path(__file__).parent
    digest = hashlib.sha256(f"{CACHE_VERSION} {tools()}".encode())
    writers = [root / f"{name}.py" for name in ("compile", "loops", "moves", "lanewise")]
    for path in (*writers, *sorted((root / "semantics").glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _module_text(function: Callable[..., Any]) -> bytes:
    """The file a function stands in, whose other functions it may call."""
    return Path(inspect.getsourcefile(function) or __file__).read_bytes()


def _own_hash(bound: d.BoundRegisterInstruction) -> str:
    """A hash of what the compiled form of this instruction depends on beside that."""
    code = bound.semantics.__code__
    record = bound.definition
    parts = (
        _core_text(bound), _wrapper_text(bound), record.native, record.part, code.co_code, code.co_consts,
        code.co_names, [_members(o) for o in record.inputs if o.enum], _module_text(bound.semantics),
    )  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


def prepare() -> None:
    """Import Numba, which takes long, where nothing was ever compiled: so it is likely to be needed."""
    if not any(generation("semantics", tools_hash()).iterdir()):
        import numba  # noqa: F401


_loaded: dict[tuple[int, int], int] = {}


def native_pointer(bound: d.BoundRegisterInstruction) -> int:
    """The address of the compiled form, a C function of pointers; compiled on first use and cached on disk."""
    key = (bound.definition.number, bound.index)
    address = _loaded.get(key)
    if address is None:
        name = "_".join([bound.name, *(t.name for t in bound.types.values()), _own_hash(bound)])
        place = generation("semantics", tools_hash()) / name
        address = find(place)
        if address is None:
            namespace: dict[str, Any] = {}
            exec(compile(native_text(bound), "<semantics>", "exec"), namespace)
            address = make(place, namespace["entry"])
        _loaded[key] = address
    return address
