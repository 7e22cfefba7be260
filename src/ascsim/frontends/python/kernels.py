"""``@ascsim.kernel``: Python functions as kernels.

A kernel runs eagerly: each instruction function issues one instruction to the core that is running, with the caller's
line as its site. NumPy arrays go in and out::

    @ascsim.kernel
    def add(x, y, out):
        a, b, c = (ascsim.tile("f32", 16, 64) for _ in range(3))
        ascsim.tload(a, x)
        ascsim.tload(b, y)
        ...

    add[1](x, y, out)                  # on a2a3
    add.on("a5")[1](x, y, out)
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ascsim import profiles
from ascsim.diagnostics import Fault, Place, Refused, Site, UserError
from ascsim.frontends.launch import Run, conclude, current_launch, launch, script
from ascsim.frontends.values import GlobalArray
from ascsim.isa import REGISTRY
from ascsim.isa.definition import Definition, RegisterInstruction, Sort
from ascsim.isa.rules import wrong_sort
from ascsim.machine.dtypes import DType, dtype
from ascsim.machine.operands import NO_ADDRESS, Pointer, Tile
from ascsim.machine.words import BLayout, PadValue, SLayout, Space


@dataclass(frozen=True)
class Kernel:
    """A Python kernel and how it is launched: on ``arch`` (default a2a3), with ``sync`` manual (default) or auto, each block
    on a vector core (``core`` is ``aiv``) or on a cube core (``aic``).

    Index with the number of blocks, then call with arrays and scalars.
    """

    function: Callable[..., None]
    arch: str | profiles.Profile | None = None
    sync: str | None = None
    raise_on_error: bool = True
    core: str = "aiv"

    def on(self, arch: str | profiles.Profile) -> Kernel:
        """The kernel on another profile."""
        return replace(self, arch=arch)

    def options(self, **changes: Any) -> Kernel:
        """The kernel with ``sync`` ("manual", "auto"), ``core`` ("aiv", "aic") or ``raise_on_error`` changed."""
        return replace(self, **changes)

    def __getitem__(self, blocks: int) -> Callable[..., Run]:
        """The launch of so many blocks."""
        return functools.partial(self._launch, blocks)

    def __call__(self, *args: Any) -> Run:
        """A launch of one block."""
        return self._launch(1, *args)

    def _launch(self, blocks: int, *args: Any) -> Run:
        profile = profiles.find(self.arch or script.arch or "a2a3")
        blocks = script.blocks or blocks
        if not 1 <= blocks <= profile.max_blocks:
            raise UserError(f"a launch has 1 to {profile.max_blocks} blocks, not {blocks}")
        if self.core not in ("aiv", "aic"):
            raise UserError(f"a kernel runs on core 'aiv' (vector) or 'aic' (cube), not {self.core!r}")
        names = list(inspect.signature(self.function).parameters)
        if len(names) != len(args):
            raise UserError(f"kernel {self.name} takes {len(names)} arguments ({', '.join(names)}), not {len(args)}")
        run = launch(self.name, self.function, profile, blocks, dict(zip(names, args, strict=True)),
                     self.sync or script.sync or "manual", side=self.core)  # fmt: skip
        return conclude(run, self.raise_on_error)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__


def kernel(function: Callable[..., None] | None = None, **options: Any) -> Any:
    """Decorator: make a function a :class:`Kernel`; ``@kernel`` or ``@kernel(arch="a5", sync="auto")``."""
    if function is None:
        return functools.partial(kernel, **options)
    return Kernel(function, **options)


# What kernels call


def tile(
    kind: str | DType, rows: int, cols: int, *, at: int | None = None, valid: tuple[int, int] | None = None,
    space: Space = Space.UB, blayout: BLayout = BLayout.ROW_MAJOR, slayout: SLayout = SLayout.NONE_BOX,
    fractal: int = 512, pad: PadValue = PadValue.NULL, name: str = "",
) -> Tile:  # fmt: skip
    """A tile of ``rows`` by ``cols`` elements, of which ``valid`` count; ``at`` is its byte offset in ``space``.

    Without ``at`` the tile is placed after those placed before it, aligned as the space needs.

    Raises:
        Refused: it does not fit.
    """
    made = Tile(
        dtype(kind), rows, cols, *(valid or (rows, cols)), NO_ADDRESS, space, blayout, slayout, fractal, pad, name
    )
    if at is not None:
        return made.at(at)
    frame = sys._getframe(1)
    while frame.f_code is local.__code__ and frame.f_back is not None:
        frame = frame.f_back
    return current_launch().placement.place(made, Site(frame.f_code.co_filename, frame.f_lineno))


def local(kind: str | DType, elements: int, *, at: int | None = None, name: str = "") -> Pointer:
    """A buffer of so many elements in UB, for memory-form and register instructions."""
    made = tile(kind, 1, elements, at=at, name=name)
    if at is None:  # buffers at chosen addresses may lie in each other
        note = {"space": int(made.space), "start": made.address, "size": made.nbytes, "dtype": made.dtype.name}
        current_launch().machine.sink.note("local_array", note | {"name": name or "a buffer", "launch": 0})
    return Pointer(Space.UB, made.address, made.dtype, name)


def tassign(made: Tile, address: int) -> Tile:
    """The tile bound to an address (PTO's TASSIGN)."""
    return made.at(address)


def _are_plain(args: Sequence[Any]) -> bool:
    """Whether arguments are operands as they are: tiles that have their names."""
    for value in args:  # noqa: SIM110 - a generator takes as long as the rest of a call
        if type(value) is not Tile or not value.name:
            return False
    return True


def _operands(definition: Definition, args: Sequence[Any], frame: Any) -> tuple:
    """Arguments as operands: tiles named, arrays as what is asked for."""
    inputs = definition.inputs
    asked = (_operand(o.sort, _named(a, frame)) for o, a in zip(inputs, args, strict=False))
    return (*asked, *args[len(inputs) :])


def _operand(sort: Sort, value: Any) -> Any:
    if isinstance(value, GlobalArray):
        return value.as_tensor() if sort is Sort.GLOBAL else value.as_pointer()
    return value


def _choose(candidates: Sequence[Definition], args: Sequence[Any]) -> Definition:
    """The overload whose operands fit, by what they are and then by their types; the first if none does, so that its
    refusal says why.
    """
    fitting: list[Definition] = []
    for candidate in candidates:
        needed = sum(not o.optional for o in candidate.inputs)
        operands = [_operand(o.sort, a) for o, a in zip(candidate.inputs, args, strict=False)]
        if needed <= len(args) <= len(candidate.inputs) and not any(
            wrong_sort(candidate, o, a) for o, a in zip(candidate.inputs, operands, strict=False)
        ):
            if candidate.takes(operands):
                return candidate
            fitting.append(candidate)
    return (fitting or candidates)[0]


class Function:
    """An instruction as a Python function; its docstring is the definition's."""

    def __init__(self, name: str, definitions: list[Definition]) -> None:
        self.__name__ = name
        self.__doc__ = definitions[0].doc
        self._definitions = definitions
        self._by_profile: dict[str, list[Definition]] = {}

    def __repr__(self) -> str:
        return f"<ascsim instruction {self.__name__}>"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Issue the instruction to the running core; ``dtype=`` gives a result type that the operands leave open."""
        running = current_launch()
        machine = running.machine
        candidates = self._by_profile.get(machine.profile.name)
        if candidates is None:
            here = [d for d in self._definitions if machine.profile.name in d.profiles]
            candidates = self._by_profile[machine.profile.name] = here or self._definitions
        definition: Any = candidates[0] if len(candidates) == 1 else _choose(candidates, args)
        result = keywords.pop("dtype", None)
        if keywords:
            args = _with_keywords(definition, args, keywords)
        frame = sys._getframe(1)
        operands = args if _are_plain(args) else _operands(definition, args, frame)
        site = machine.site(frame.f_code.co_filename, frame.f_lineno)
        try:
            if isinstance(definition, RegisterInstruction):
                definition = definition.infer(operands, dtype(result) if result is not None else None)
            return machine.issue(running.core, definition, operands, site)
        except (Refused, Fault) as stop:
            place = Place(definition.name, machine.site_of(site))
            stop.diagnostic = replace(stop.diagnostic, places=(place,))
            raise


def _with_keywords(definition: Definition, args: Sequence[Any], keywords: dict[str, Any]) -> tuple:
    names = [o.name for o in definition.inputs]
    unknown = [k for k in keywords if k not in names]
    if unknown:
        raise UserError(f"{definition.name} has no operand {unknown[0]!r}; it takes {', '.join(names)}")
    filled = list(args)
    for operand in definition.inputs[len(args) :]:
        filled.append(keywords.get(operand.name, operand.default))
    while filled and filled[-1] is None:
        filled.pop()
    return tuple(filled)


def _named(value: Any, frame: Any) -> Any:
    """A tile takes the name of the variable that holds it, for the reports."""
    if isinstance(value, Tile) and not value.name:
        for name, held in frame.f_locals.items():
            if held is value:
                object.__setattr__(value, "name", name)
                break
    return value


@functools.cache
def function(name: str) -> Function | None:
    """The instruction function of that name, or None."""
    found = REGISTRY.find(name)
    return Function(name, found) if found else None
