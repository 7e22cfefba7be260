"""A ``.pto`` file as something to launch: its kernels, their arguments by name, and the run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from ascsim.diagnostics import Diagnostic, Place, Severity, UserError
from ascsim.frontends.launch import Launch, Run, current_launch, launch
from ascsim.frontends.ptoas import scalars
from ascsim.frontends.ptoas.dialect import (
    AllocTile,
    AssignTile,
    Instruction,
    MakeTensorView,
    plain,
    site_of,
)
from ascsim.frontends.ptoas.execution import (
    VIEWS,
    Executor,
    constant_of,
    copy_in,
    copy_out,
    global_tensor,
    is_assigned,
    tile_of,
)
from ascsim.frontends.ptoas.lowering import entry_function, functions_of, lower, not_implemented, parameters_of
from ascsim.frontends.ptoas.parser import parse_file, parse_text
from ascsim.frontends.ptoas.types import DYNAMIC, PointerType, TileType, ViewType, Word, is_scalar
from ascsim.frontends.values import GlobalArray
from ascsim.isa import REGISTRY
from ascsim.isa.definition import PlainInstruction, Registry, Role, Sort
from ascsim.machine.dtypes import DType, dtype
from ascsim.machine.operands import Tile
from ascsim.profiles import Profile


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel.

    ``is_pointer`` says that an array is given for it, of ``shape`` where the kernel's text says how large; else it is a
    number of type ``dtype``.
    """

    name: str
    is_pointer: bool
    dtype: DType
    shape: tuple[int, ...] | None


class ProgramFile:
    """A ``.pto`` file that has been read."""

    def __init__(self, module: ModuleOp, registry: Registry = REGISTRY) -> None:
        self.module = module
        self.registry = registry

    @property
    def arch(self) -> str | None:
        """The chip that the module's attributes name, if they do (``pto.target_arch``, ``pto.device-spec``)."""
        for key in ("pto.target_arch", "pto.device-spec"):
            value = self.module.attributes.get(key)
            if value is not None:
                said = plain(value)
                return said.text if isinstance(said, Word) else str(said)
        return None

    @property
    def names(self) -> list[str]:
        """The functions that have a body."""
        return [name for name, op in functions_of(self.module).items() if op.regions[0].blocks]

    def kernel(self, name: str | None = None) -> Kernel:
        """The kernel of that name; without one the marked, or the only one.

        Raises:
            UserError: there is none, or several.
        """
        return Kernel(self, entry_function(self.module, name or ""))

    def not_implemented(self, profile: Profile) -> list[UserError]:
        """What of the file cannot be run on the profile, one error each, in the order of the text."""
        return not_implemented(self.module, Executor(profile, self.registry))

    def survey(self, profile: Profile) -> list[Diagnostic]:
        """What of the file cannot be run on the profile (L012), or the chip refuses, in the order of the text."""
        executor = Executor(profile, self.registry)
        absent = [
            Diagnostic("L012", Severity.ERROR, error.message, (Place("here", error.site),))
            for error in not_implemented(self.module, executor)
        ]
        return sorted([*absent, *executor.refusals], key=_line)


def _line(diagnostic: Diagnostic) -> tuple[int, int]:
    site = diagnostic.places[0].site
    return (site.line, site.column) if site else (0, 0)


def load(path: str | Path) -> ProgramFile:
    """Read a ``.pto`` file.

    Raises:
        UserError: it cannot be read, or is no ``.pto`` text.
    """
    return ProgramFile(parse_file(path))


def loads(text: str, path: str = "<text>", registry: Registry = REGISTRY) -> ProgramFile:
    """Read ``.pto`` text; ``path`` is what reports call it."""
    return ProgramFile(parse_text(text, path), registry)


class Kernel:
    """One function of a file, ready to be launched."""

    def __init__(self, file: ProgramFile, function: Operation) -> None:
        self.file = file
        self.function = function
        self.name: str = function.properties["sym_name"].data  # type: ignore[attr-defined]

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments in order, by the names of the text."""
        block = self.function.regions[0].blocks[0]
        return tuple(
            _argument(parameter.name, parameter.type, value, self)
            for parameter, value in zip(parameters_of(self.function), block.args, strict=True)
        )

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The arguments that the kernel writes, as far as the text tells: those that reach an ``outs``."""
        found = {
            _root(argument.value)
            for op in self._instructions()
            for argument in op.arguments_of("outs") + _destinations(op, self.file.registry)
            if isinstance(argument.value, SSAValue)
        }
        parameters = parameters_of(self.function)
        block = self.function.regions[0].blocks[0]
        return tuple(p.name for p, v in zip(parameters, block.args, strict=True) if v in found)

    @property
    def is_manual(self) -> bool:
        """True where the text assigns an address or has a flag or barrier: the kernel synchronises its pipes itself."""
        return any(
            isinstance(op, AssignTile)
            or (isinstance(op, AllocTile) and op.arguments_of("addr"))
            or _is_sync(op, self.file.registry)
            for op in self._instructions()
        )

    def _instructions(self) -> list[Instruction]:
        return [op for op in self.function.walk() if isinstance(op, Instruction)]

    def run(self, profile: Profile, blocks: int, values: dict[str, Any], sync: str | None = None) -> Run:
        """Launch ``blocks`` blocks with a value for each argument (arrays are updated in place) and check the trace.

        Raises:
            UserError: the file has what is not implemented, a value is missing or of the wrong kind.
        """
        if not 1 <= blocks <= profile.max_blocks:
            raise UserError(f"a launch has 1 to {profile.max_blocks} blocks, not {blocks}")
        self._check_values(values)
        executor = Executor(profile, self.file.registry)
        self._reserve(executor)
        program = lower(self.file.module, executor, self.name)
        parameters = program.parameters
        prepare = [_preparer(a, p.type, self._value(p.name)) for a, p in zip(self.arguments, parameters, strict=True)]
        placed = {p.name: executor.placement.place(tile_of(p.type.data, p.name)) for p in parameters
                  if isinstance(p.type, TileType) and not is_assigned(self._value(p.name))}  # fmt: skip

        def function(**given: Any) -> None:
            running = current_launch()
            executor.begin(running)
            tiles: dict[str, Tile] = dict(placed)
            ready = []
            for name, make in zip((p.name for p in parameters), prepare, strict=True):
                ready.append(make(given[name], executor, running, tiles))
            program.run(*ready)
            for name in self.written:
                if name in tiles:
                    _leave(tiles[name], given[name], running)

        mode = sync or ("manual" if self.is_manual else "auto")
        ordered = {argument.name: values[argument.name] for argument in self.arguments}
        takes_tiles = any(
            isinstance(parameter.type, TileType) for parameter in parameters
        )  # all blocks fill and leave them
        return launch(self.name, function, profile, blocks, ordered, mode, "ptoas", not takes_tiles, self.side)

    @property
    def side(self) -> str:
        """The core that it runs on: as it says, else ``aic`` where it has an instruction that only the cube core has."""
        kind = self.function.attributes.get("pto.kernel_kind")
        if kind is not None:
            return "aic" if plain(kind) == Word("cube", "kernel_kind") else "aiv"
        named = (self.file.registry.by_asm.get(op.mnemonic, ()) for op in self._instructions())
        return "aic" if any(forms and all(d.core == "aic" for d in forms) for forms in named) else "aiv"

    def _value(self, name: str) -> SSAValue:
        block = self.function.regions[0].blocks[0]
        return next(v for p, v in zip(parameters_of(self.function), block.args, strict=True) if p.name == name)

    def _reserve(self, executor: Executor) -> None:
        """Keep automatic placement clear of the constant addresses in the text."""
        for op in self.file.module.walk():
            if isinstance(op, AllocTile):
                for where in op.arguments_of("addr"):
                    _reserve_at(executor, op.results[0].type, constant_of(where.value))
            elif isinstance(op, AssignTile) and len(op.operands) == 2:
                _reserve_at(executor, op.operands[0].type, constant_of(op.operands[1]))

    def _check_values(self, values: dict[str, Any]) -> None:
        names = [a.name for a in self.arguments]
        unknown = [n for n in values if n not in names]
        missing = [n for n in names if n not in values]
        if unknown or missing:
            listing = ", ".join(names) or "none"
            what = f"no argument '{unknown[0]}'" if unknown else f"no value for '{missing[0]}'"
            raise UserError(f"{self.name} has {what}; its arguments are {listing}")
        for argument in self.arguments:
            value = values[argument.name]
            if argument.is_pointer != isinstance(value, np.ndarray):
                wanted = "an array" if argument.is_pointer else "a number"
                raise UserError(f"argument {argument.name} of {self.name} is {wanted}, not {type(value).__name__}")
            if argument.is_pointer and dtype(value.dtype) is not argument.dtype:
                raise UserError(
                    f"argument {argument.name} of {self.name} has elements of {argument.dtype.name}; "
                    f"the array holds {value.dtype}"
                )


def _reserve_at(executor: Executor, kind: Attribute, address: int | None) -> None:
    if address is not None and isinstance(kind, TileType):
        executor.placement.reserve(tile_of(kind.data).at(address))


# Arguments


def _argument(name: str, kind: Attribute, value: SSAValue, kernel: Kernel) -> Argument:
    if isinstance(kind, PointerType):
        return Argument(name, True, kind.data.dtype, _shape_of_pointer(value))
    if isinstance(kind, ViewType):
        shape = kind.data.shape
        return Argument(name, True, kind.data.dtype, None if DYNAMIC in shape else shape)
    if isinstance(kind, TileType):
        tile = tile_of(kind.data)
        return Argument(name, True, kind.data.dtype, (tile.valid_rows, tile.valid_cols))
    if isinstance(kind, MemRefType):
        shape = tuple(kind.get_shape())
        return Argument(name, True, dtype(str(kind.element_type)), None if -1 in shape else shape)
    if is_scalar(kind):
        text = str(kind)
        return Argument(name, False, dtype({"index": "i64", "i1": "u8"}.get(text, text)), None)
    raise UserError(
        f"argument {name} of {kernel.name} is {kind}, which cannot be given from outside; "
        "a kernel takes pointers, views, tiles and numbers",
        site_of(kernel.function),
    )


def _shape_of_pointer(value: SSAValue) -> tuple[int, ...] | None:
    """The shape that the views of a pointer tell, where all of them are constant; a flat length where they differ."""
    shapes = set()
    for use in value.uses:
        op = use.operation
        if not isinstance(op, MakeTensorView):
            return None
        shape = [constant_of(a.value) for a in op.arguments_of("shape")]
        strides = [constant_of(a.value) for a in op.arguments_of("strides")]
        if None in shape or None in strides or not shape or 0 in shape or len(shape) != len(strides):
            return None
        sizes = [n for n in shape if n is not None]
        steps = [n for n in strides if n is not None]
        dense = all(
            n == 1 or step == int(np.prod(sizes[i + 1 :])) for i, (n, step) in enumerate(zip(sizes, steps, strict=True))
        )
        extent = 1 + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))
        shapes.add(tuple(sizes) if dense else (extent,))
    if len(shapes) == 1:
        return shapes.pop()
    return (max(int(np.prod(s)) for s in shapes),) if shapes else None


def _preparer(argument: Argument, kind: Attribute, value: SSAValue) -> Any:
    """How the value of an argument becomes what the kernel holds, at the start of a block."""

    def pointer(given: GlobalArray, executor: Executor, running: Launch, tiles: dict[str, Tile]) -> Any:
        return given.as_pointer()._replace(dtype=argument.dtype)

    def view(given: GlobalArray, executor: Executor, running: Launch, tiles: dict[str, Tile]) -> Any:
        return global_tensor(given.as_pointer(), argument.dtype, given.shape, given.strides, 0)

    def tile(given: GlobalArray, executor: Executor, running: Launch, tiles: dict[str, Tile]) -> Any:
        def fill(where: Tile) -> None:
            tiles[argument.name] = where
            copy_in(where, _array(given, running), running)

        made = tiles.get(argument.name)
        if made is None:
            executor.pending[argument.name] = fill
            return tile_of(kind.data, argument.name)  # type: ignore[attr-defined]
        fill(made)
        return made

    if isinstance(kind, PointerType):
        return pointer
    if isinstance(kind, TileType):
        return tile
    if not is_scalar(kind):
        return view
    number = scalars.wrapper(kind) if argument.dtype.kind != "f" else scalars.rounder(kind)
    return lambda given, executor, running, tiles: number(given)


def _array(given: GlobalArray, running: Launch) -> np.ndarray:
    """An argument's elements in global memory."""
    size = int(np.prod(given.shape)) * given.dtype.size
    return running.machine.gm.data[given.address : given.address + size].view(given.dtype.numpy)


def _leave(tile: Tile, given: GlobalArray, running: Launch) -> None:
    """Bring a tile argument's result back to global memory, from where the launch copies it to the caller."""
    copy_out(tile, _array(given, running), running)


# What the text tells of a kernel


def _root(value: SSAValue) -> SSAValue:
    """The value that a chain of views and pointers begins with."""
    while isinstance(value.owner, Instruction) and value.owner.mnemonic in VIEWS and value.owner.operands:
        value = value.owner.operands[0]
    return value


def _destinations(op: Instruction, registry: Registry) -> list[Any]:
    """The arguments under no keyword that an instruction writes, where its definition says so."""
    positional = op.arguments_of()
    found = []
    for definition in registry.by_asm.get(op.mnemonic, ())[:1]:
        writes = [o for o in definition.inputs if o.role in (Role.OUT, Role.INOUT)]
        sorts = {Sort.TILE: TileType, Sort.GLOBAL: ViewType, Sort.POINTER: PointerType}
        for operand in writes:
            kind = sorts.get(operand.sort)
            match = [a for a in positional if isinstance(a.value, SSAValue) and kind and isinstance(a.value.type, kind)]
            found += match[:1]
    return found


def _is_sync(op: Instruction, registry: Registry) -> bool:
    """Is it a flag or a barrier?"""
    return any(isinstance(d, PlainInstruction) and d.level == "sync" for d in registry.by_asm.get(op.mnemonic, ()))
