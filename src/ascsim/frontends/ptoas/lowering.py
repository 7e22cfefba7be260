"""From operations to closures: a function becomes a tree of Python functions over a frame of slots.

Every SSA value has a slot. Scalars are Python numbers in it; what instructions make (tiles, registers, views) is
whatever the :class:`Handler` returns. The handler binds each instruction once, when the function is lowered, and the
function it returns is called each time the instruction runs: no name is looked up and no text is read then.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ascsim.diagnostics import Site, UserError
from ascsim.frontends.ptoas import scalars
from ascsim.frontends.ptoas.dialect import Argument, Instruction, Section, site_of
from ascsim.frontends.ptoas.scalars import ScalarError

Frame = list[Any]
Step = Callable[[Frame], None]
MAX_DEPTH = 64
"""Calls within calls before a program is taken to recurse without end."""


@dataclass(frozen=True)
class Ref:
    """Stands for operand number ``position`` among a call's values."""

    position: int


@dataclass(frozen=True)
class Call:
    """An instruction as the handler sees it when it binds it: everything but the values.

    ``arguments`` are by keyword (``ins``, ``outs``, ``addr``, ``""``, ...); an operand among them is a :class:`Ref`.
    """

    name: str
    site: Site
    arguments: dict[str, list[Argument]]
    attributes: dict[str, Any]
    operand_types: tuple[Attribute, ...]
    operand_names: tuple[str, ...]
    result_types: tuple[Attribute, ...]
    result_names: tuple[str, ...]
    operation: Instruction = field(repr=False, compare=False)

    def given(self, keyword: str = "") -> list[Any]:
        """The values under a keyword: :class:`Ref` objects and literals, subscripts left out."""
        return [argument.value for argument in self.arguments.get(keyword, ())]


@dataclass(frozen=True)
class Bound:
    """A bound instruction: ``run(values)`` returns its result, a tuple of several, or None.

    Where ``rebinds`` names operand positions, ``run`` returns the new values of those operands behind the results:
    assigning an address to a tile changes what the tile's name stands for.
    """

    run: Callable[[tuple[Any, ...]], Any]
    rebinds: tuple[int, ...] = ()


class Handler(Protocol):
    """What gives instructions their meaning."""

    def bind(self, call: Call) -> Bound:
        """The instruction, ready to run. Raises UserError for one that cannot be run."""

    def enter(self, call: Call) -> Callable[[tuple[Any, ...]], bool]:
        """Called for a section; the function says each time whether the section's body runs on this core."""

    def leave(self, call: Call) -> Callable[[], None]:
        """Called for a section; the function runs behind its body."""


@dataclass(frozen=True)
class Parameter:
    """An argument of a function: its name without ``%``, and its type."""

    name: str
    type: Attribute


@dataclass
class Program:
    """A lowered function."""

    name: str
    site: Site
    parameters: tuple[Parameter, ...]
    slots: int = 0
    body: Callable[[Frame], list[int]] = field(default=lambda frame: [])
    depth: int = 0

    def run(self, *values: Any) -> tuple[Any, ...]:
        """Run it with a value for each parameter; returns what it returns.

        Raises:
            UserError: the number of values is wrong, or the program does what no machine can do.
        """
        if len(values) != len(self.parameters):
            names = ", ".join(p.name for p in self.parameters)
            raise UserError(f"{self.name} takes {len(self.parameters)} arguments ({names}), not {len(values)}")
        if self.depth == MAX_DEPTH:
            raise UserError(f"{self.name} calls itself more than {MAX_DEPTH} calls deep", self.site)
        frame = [None] * self.slots
        frame[: len(values)] = values
        self.depth += 1
        try:
            return tuple(frame[slot] for slot in self.body(frame))
        finally:
            self.depth -= 1


def functions_of(module: ModuleOp) -> dict[str, Operation]:
    """The functions of a module by name, those of modules inside it too."""
    return {op.properties["sym_name"].data: op for op in module.walk() if op.name == "func.func"}  # type: ignore


def entry_function(module: ModuleOp, name: str = "") -> Operation:
    """The function to launch: the one of that name, the one marked ``pto.entry``, or the only one nobody calls.

    Raises:
        UserError: there is none, or more than one.
    """
    functions = {key: op for key, op in functions_of(module).items() if op.regions[0].blocks}
    if name:
        if name in functions:
            return functions[name]
        raise UserError(f"there is no function @{name}; the functions are {', '.join(functions) or 'none'}")
    called = {_callee(op) for op in module.walk() if op.name == "func.call"}
    marked = [op for op in functions.values() if "pto.entry" in op.attributes]
    candidates = marked or [op for key, op in functions.items() if key not in called]
    if len(candidates) == 1:
        return candidates[0]
    names = ", ".join(f"@{_name(op)}" for op in candidates)
    if not candidates:
        raise UserError("there is no function to launch; a kernel is a func.func with a body")
    raise UserError(
        f"there are {len(candidates)} functions that could be launched: {names}; say which by name (--kernel)"
    )


def _name(op: Operation) -> str:
    return op.properties["sym_name"].data  # type: ignore[attr-defined]


def _callee(op: Operation) -> str:
    return op.properties["callee"].string_value()  # type: ignore[attr-defined]


def parameters_of(function: Operation) -> tuple[Parameter, ...]:
    """The arguments of a function, in order, by the names that the text gives them."""
    arguments = function.regions[0].blocks[0].args if function.regions[0].blocks else ()
    return tuple(Parameter(a._name or f"arg{a.index}", a.type) for a in arguments)


def not_implemented(module: ModuleOp, handler: Handler) -> list[UserError]:
    """What of a module cannot be run, one error each: operations that nothing here gives a meaning to."""
    errors: list[UserError] = []
    lowering = _Lowering(module, handler, errors)
    for name, op in functions_of(module).items():
        if op.regions[0].blocks:
            lowering.program(name)
    return errors


def lower(module: ModuleOp, handler: Handler, name: str = "") -> Program:
    """Lower a function (see :func:`entry_function`) and those it calls.

    Raises:
        UserError: there is no such function; or what it contains cannot be run: one paragraph that names all of it.
    """
    errors: list[UserError] = []
    program = _Lowering(module, handler, errors).program(_name(entry_function(module, name)))
    if len(errors) == 1:
        raise errors[0]
    if errors:
        listing = "\n".join(f"  {error}" for error in errors)
        raise UserError(f"{len(errors)} things in this file cannot be run:\n{listing}", errors[0].site)
    return program


class _Lowering:
    """Lowers the functions of one module."""

    def __init__(self, module: ModuleOp, handler: Handler, errors: list[UserError]) -> None:
        self.handler = handler
        self.errors = errors
        self._functions = functions_of(module)
        self._programs: dict[str, Program] = {}

    def program(self, name: str) -> Program:
        """The program of a function; a declaration without a body fails when it is called."""
        found = self._programs.get(name)
        if found is None:
            op = self._functions[name]
            found = self._programs[name] = Program(name, site_of(op), parameters_of(op))
            if op.regions[0].blocks:
                body = _Body(self, name)
                found.body = body.of_function(op)
                found.slots = body.count
            else:
                found.body = _without_body(name, found.site)
        return found


def _without_body(name: str, site: Site) -> Callable[[Frame], list[int]]:
    def fail(frame: Frame) -> list[int]:
        raise UserError(f"@{name} is declared without a body, so it cannot be called", site)

    return fail


class _Body:
    """Lowers the body of one function; hands out its slots."""

    def __init__(self, lowering: _Lowering, name: str) -> None:
        self.lowering = lowering
        self.name = name
        self.count = 0
        self._slots: dict[SSAValue, int] = {}

    def slot(self, value: SSAValue) -> int:
        """The slot of a value, new if it has none."""
        found = self._slots.get(value)
        if found is None:
            found = self._slots[value] = self.count
            self.count += 1
        return found

    def slots(self, values: Sequence[SSAValue]) -> list[int]:
        """Their slots."""
        return [self.slot(value) for value in values]

    def of_function(self, function: Operation) -> Callable[[Frame], list[int]]:
        """A function that runs the body on a frame and returns the slots of what it returns."""
        blocks = list(function.regions[0].blocks)
        self.slots(blocks[0].args)
        if len(blocks) == 1:
            steps = self.steps(blocks[0])
            last = blocks[0].last_op
            returned = self.slots(last.operands) if last is not None and last.name == "func.return" else []

            def run(frame: Frame) -> list[int]:
                for step in steps:
                    step(frame)
                return returned

            return run
        return self._of_graph(blocks)

    def _of_graph(self, blocks: list[Block]) -> Callable[[Frame], list[int]]:
        """A body of several blocks: run one, follow its terminator to the next."""
        number = {block: i for i, block in enumerate(blocks)}
        for block in blocks:
            self.slots(block.args)
        parts = [(self.steps(block), self._terminator(block, number)) for block in blocks]

        def run(frame: Frame) -> list[int]:
            following: int | list[int] = 0
            while not isinstance(following, list):
                steps, end = parts[following]
                for step in steps:
                    step(frame)
                following = end(frame)
            return following

        return run

    def _terminator(self, block: Block, number: dict[Block, int]) -> Callable[[Frame], int | list[int]]:
        op = block.last_op
        if op is not None and op.name == "func.return":
            returned = self.slots(op.operands)
            return lambda frame: returned
        if op is not None and op.name == "cf.br":
            target = op.successors[0]
            move, next_ = self._move(op.operands, target.args), number[target]

            def branch(frame: Frame) -> int:
                move(frame)
                return next_

            return branch
        if op is not None and op.name == "cf.cond_br":
            condition = self.slot(op.operands[0])
            then, other = op.successors
            split = 1 + len(then.args)
            move_then = self._move(op.operands[1:split], then.args)
            move_other = self._move(op.operands[split:], other.args)
            if_true, if_false = number[then], number[other]

            def choose(frame: Frame) -> int:
                if frame[condition]:
                    move_then(frame)
                    return if_true
                move_other(frame)
                return if_false

            return choose
        self._refuse(op or block.parent_op(), "ends a block in a way that is not implemented")
        return lambda frame: []

    def steps(self, block: Block) -> list[Step]:
        """The operations of a block but its terminator."""
        return [step for op in block.ops if (step := self._step(op)) is not None]

    def _step(self, op: Operation) -> Step | None:
        if op.name in _TERMINATORS:
            return None
        try:
            if isinstance(op, Section):
                return self._section(op)
            if isinstance(op, Instruction):
                return self._instruction(op)
            dialect, _, name = op.name.partition(".")
            if dialect == "arith":
                return self._arith(op, name)
            make = _CONTROL.get(op.name)
            if make is not None:
                return make(self, op)
        except TypeError as problem:
            return self._refuse(op, f"cannot be run: {problem}")
        except UserError as problem:
            problem.site = problem.site or site_of(op)
            self.lowering.errors.append(problem)
            return None
        return self._refuse(op, "is not implemented")

    def _refuse(self, op: Operation | None, why: str) -> Step | None:
        """Note that ``op`` cannot be run; there is no step for it."""
        name = op.name if op is not None else "an empty block"
        self.lowering.errors.append(UserError(f"{name} {why}", site_of(op) if op is not None else None))
        return None

    # Instructions

    def _call(self, op: Instruction) -> Call:
        arguments, attributes = op.written([Ref(i) for i in range(len(op.operands))])
        return Call(
            op.mnemonic,
            replace(site_of(op), function=self.name),
            arguments,
            attributes,
            tuple(v.type for v in op.operands),
            tuple(v._name or "" for v in op.operands),
            tuple(v.type for v in op.results),
            tuple(v._name or "" for v in op.results),
            op,
        )

    def _instruction(self, op: Instruction) -> Step:
        bound = self.lowering.handler.bind(self._call(op))
        values = self._values(op.operands)
        run = bound.run
        outputs = [*self.slots(op.results), *(self.slot(op.operands[i]) for i in bound.rebinds)]
        if not outputs:

            def step(frame: Frame) -> None:
                run(values(frame))

        elif len(outputs) == 1:
            output = outputs[0]

            def step(frame: Frame) -> None:
                frame[output] = run(values(frame))

        else:

            def step(frame: Frame) -> None:
                for slot, value in zip(outputs, run(values(frame)), strict=True):
                    frame[slot] = value

        return step

    def _values(self, operands: Sequence[SSAValue]) -> Callable[[Frame], tuple[Any, ...]]:
        """The function that reads several slots as a tuple."""
        slots = self.slots(operands)
        if len(slots) > 1:
            return operator.itemgetter(*slots)
        if not slots:
            return lambda frame: ()
        slot = slots[0]
        return lambda frame: (frame[slot],)

    def _section(self, op: Section) -> Step:
        call = self._call(op)
        handler = self.lowering.handler
        enter, leave = handler.enter(call), handler.leave(call)
        block = op.regions[0].blocks[0]
        values = self._values(op.operands)
        move = self._move(op.operands, block.args)
        steps = self.steps(block)

        def run(frame: Frame) -> None:
            if enter(values(frame)):
                move(frame)
                for step in steps:
                    step(frame)
                leave()

        return run

    # Scalars

    def _arith(self, op: Operation, name: str) -> Step | None:
        if name == "constant":
            return self._constant(op)
        result = self.slot(op.results[0])
        slots = self.slots(op.operands)
        if name == "select":
            condition, yes, no = slots

            def select(frame: Frame) -> None:
                frame[result] = frame[yes] if frame[condition] else frame[no]

            return select
        kind = op.operands[0].type
        if name in ("cmpi", "cmpf"):
            predicate = op.properties["predicate"].value.data  # type: ignore[attr-defined]
            two = scalars.compare(predicate, kind)
            return _pair(two, slots[0], slots[1], result)
        convert = scalars.cast(name, kind, op.results[0].type)
        if convert is not None:
            return _guarded(_single(convert, slots[0], result), op)
        compute = scalars.binary(name, kind)
        if compute is None:
            return self._refuse(op, "is not implemented")
        step = _pair(compute, slots[0], slots[1], result)
        return _guarded(step, op) if name in _MAY_FAIL else step

    def _constant(self, op: Operation) -> Step | None:
        attribute = op.properties["value"]
        kind = op.results[0].type
        if isinstance(attribute, IntegerAttr):
            value: Any = scalars.wrapper(kind)(attribute.value.data)
        elif isinstance(attribute, FloatAttr):
            value = scalars.rounder(kind)(attribute.value.data)
        else:
            return self._refuse(op, f"of type {kind} is not implemented; scalars are")
        slot = self.slot(op.results[0])

        def constant(frame: Frame) -> None:
            frame[slot] = value

        return constant

    # Control flow

    def _move(self, sources: Sequence[SSAValue], targets: Sequence[SSAValue]) -> Step:
        """Copy values all at once, so that a swap is one."""
        pairs = list(zip(self.slots(sources), self.slots(targets), strict=True))
        if not pairs:
            return _nothing
        if len(pairs) == 1:
            ((source, target),) = pairs

            def move_one(frame: Frame) -> None:
                frame[target] = frame[source]

            return move_one
        read = operator.itemgetter(*(s for s, _ in pairs))
        into = [t for _, t in pairs]

        def move(frame: Frame) -> None:
            for slot, value in zip(into, read(frame), strict=True):
                frame[slot] = value

        return move

    def _yielded(self, block: Block, targets: Sequence[SSAValue]) -> Step:
        last = block.last_op
        return self._move(last.operands, targets) if last is not None and last.name == "scf.yield" else _nothing

    def _for(self, op: Operation) -> Step:
        low, high, by = self.slots(op.operands[:3])
        block = op.regions[0].blocks[0]
        counter = self.slot(block.args[0])
        carried = block.args[1:]
        start = self._move(op.operands[3:], carried)
        steps = self.steps(block)
        again = self._yielded(block, carried)
        finish = self._move(carried, op.results)
        carries = bool(carried)
        site = site_of(op)

        def loop(frame: Frame) -> None:
            step = frame[by]
            if step <= 0:
                raise UserError(f"scf.for steps by {step}; a step is at least 1", site)
            start(frame)
            for value in range(frame[low], frame[high], step):
                frame[counter] = value
                for inner in steps:
                    inner(frame)
                if carries:
                    again(frame)
            finish(frame)

        return loop

    def _if(self, op: Operation) -> Step:
        condition = self.slot(op.operands[0])
        branches = []
        for region in op.regions:
            block = region.blocks[0] if region.blocks else None
            steps = self.steps(block) if block is not None else []
            branches.append([*steps, self._yielded(block, op.results)] if block is not None else [])
        then, other = branches

        def choose(frame: Frame) -> None:
            for step in then if frame[condition] else other:
                step(frame)

        return choose

    def _while(self, op: Operation) -> Step | None:
        before, after = (region.blocks[0] for region in op.regions)
        end = before.last_op
        if end is None or end.name != "scf.condition":
            return self._refuse(op, "has a condition block without scf.condition")
        start = self._move(op.operands, before.args)
        test = self.steps(before)
        condition = self.slot(end.operands[0])
        enter = self._move(end.operands[1:], after.args)
        finish = self._move(end.operands[1:], op.results)
        body = self.steps(after)
        again = self._yielded(after, before.args)

        def loop(frame: Frame) -> None:
            start(frame)
            while True:
                for step in test:
                    step(frame)
                if not frame[condition]:
                    break
                enter(frame)
                for step in body:
                    step(frame)
                again(frame)
            finish(frame)

        return loop

    def _switch(self, op: Operation) -> Step:
        index = self.slot(op.operands[0])
        keys = op.properties["cases"].get_values()  # type: ignore[attr-defined]
        default, *rest = ([*self.steps(r.blocks[0]), self._yielded(r.blocks[0], op.results)] for r in op.regions)
        cases = dict(zip(keys, rest, strict=True))

        def choose(frame: Frame) -> None:
            for step in cases.get(frame[index], default):
                step(frame)

        return choose

    def _region(self, op: Operation) -> Step | None:
        blocks = list(op.regions[0].blocks)
        if len(blocks) != 1:
            return self._refuse(op, "with several blocks is not implemented")
        steps = [*self.steps(blocks[0]), self._yielded(blocks[0], op.results)]

        def run(frame: Frame) -> None:
            for step in steps:
                step(frame)

        return run

    def _function_call(self, op: Operation) -> Step | None:
        name = _callee(op)
        if name not in self.lowering._functions:
            return self._refuse(op, f"calls @{name}, which is not in this file")
        program = self.lowering.program(name)
        values = self._values(op.operands)
        results = self.slots(op.results)

        def call(frame: Frame) -> None:
            for slot, value in zip(results, program.run(*values(frame)), strict=True):
                frame[slot] = value

        return call

    def _assert(self, op: Operation) -> Step:
        condition = self.slot(op.operands[0])
        message = op.properties["msg"].data  # type: ignore[attr-defined]
        site = site_of(op)

        def check(frame: Frame) -> None:
            if not frame[condition]:
                raise UserError(f"cf.assert failed: {message}", site)

        return check


_CONTROL: dict[str, Callable[[_Body, Operation], Step | None]] = {
    "scf.for": _Body._for,
    "scf.if": _Body._if,
    "scf.while": _Body._while,
    "scf.index_switch": _Body._switch,
    "scf.execute_region": _Body._region,
    "func.call": _Body._function_call,
    "cf.assert": _Body._assert,
}
_TERMINATORS = frozenset({"func.return", "scf.yield", "scf.condition", "cf.br", "cf.cond_br"})
_MAY_FAIL = frozenset({"divsi", "divui", "ceildivsi", "ceildivui", "floordivsi", "remsi", "remui", *scalars.SHIFTS})


def _nothing(frame: Frame) -> None:
    return


def _single(compute: Callable[[Any], Any], operand: int, result: int) -> Step:
    def step(frame: Frame) -> None:
        frame[result] = compute(frame[operand])

    return step


def _pair(compute: Callable[[Any, Any], Any], left: int, right: int, result: int) -> Step:
    def step(frame: Frame) -> None:
        frame[result] = compute(frame[left], frame[right])

    return step


def _guarded(step: Step, op: Operation) -> Step:
    """``step``, with a result that MLIR leaves undefined told as the user's error at the operation."""
    name, site = op.name, site_of(op)

    def guarded(frame: Frame) -> None:
        try:
            step(frame)
        except ScalarError as problem:
            raise UserError(f"{name} {problem}", site) from None

    return guarded
