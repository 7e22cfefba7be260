"""Random programs of one core for property tests, and how they become traces."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from ascsim.machine.words import Pipe, Space
from checks.builder import Builder
from checks.reference import BARRIER, INSTRUCTION, LOCK, SET, UNLOCK, WAIT, Access, Op, Reference

PIPES = (Pipe.S, Pipe.V, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.M, Pipe.FIX)


@st.composite
def accesses(draw: st.DrawFn) -> Access:
    """An operand in a small part of one space, so that many share bytes or just miss."""
    fields = {
        "space": draw(st.sampled_from((Space.UB, Space.UB, Space.GM, Space.L1))),
        "start": draw(st.integers(0, 400)) + 1024,
        "length": draw(st.sampled_from((1, 4, 16, 32, 48, 64))),
    }
    shape = draw(st.sampled_from(("plain", "rows", "box", "mask")))
    if shape == "rows":
        fields |= {"n1": draw(st.integers(2, 4)), "s1": draw(st.integers(-100, 160))}
    elif shape == "box":
        fields |= {
            "n1": draw(st.integers(1, 3)), "s1": draw(st.integers(-64, 96)), "n2": draw(st.integers(1, 3)),
            "s2": draw(st.integers(-96, 200)), "n3": draw(st.integers(1, 2)), "s3": draw(st.integers(-200, 200)),
        }  # fmt: skip
    elif shape == "mask":
        seed = draw(st.integers(1, (1 << 16) - 1))
        fields["mask"] = tuple((seed >> (byte // 4 % 16)) & 1 for byte in range(256))
    return Access(tuple(fields.items()), draw(st.booleans()))


@st.composite
def instructions(draw: st.DrawFn) -> Op:
    """An instruction with a few operands, or with none in memory; many on V, so that it often has several in a row."""
    pipe = draw(st.sampled_from((*PIPES, Pipe.V, Pipe.V, Pipe.V, Pipe.V)))
    return Op(INSTRUCTION, pipe, accesses=tuple(draw(st.lists(accesses(), min_size=0, max_size=3))))


@st.composite
def programs(draw: st.DrawFn, size: int = 16) -> list[Op]:
    """Instructions and barriers, flags that are set and waited for in turn, mutexes that are locked and unlocked."""
    ops: list[Op] = []
    pending: list[tuple[int, int, int]] = []
    held: dict[int, int] = {}
    for _ in range(draw(st.integers(2, size))):
        what = draw(st.sampled_from((INSTRUCTION, INSTRUCTION, INSTRUCTION, SET, SET, WAIT, WAIT, BARRIER, LOCK, LOCK)))
        if what == INSTRUCTION:
            ops.append(draw(instructions()))
        elif what == BARRIER:
            on = draw(st.sampled_from((*PIPES, Pipe.ALL)))
            ops.append(Op(BARRIER, on, event=draw(st.integers(0, 1)) if on == Pipe.S else 0))
        elif what == LOCK:
            mutex = draw(st.integers(0, 1))
            if mutex in held:
                ops.append(Op(UNLOCK, held.pop(mutex), event=mutex))
            else:
                held[mutex] = draw(st.sampled_from(PIPES))
                ops.append(Op(LOCK, held[mutex], event=mutex))
        elif what == SET:
            source, target = draw(st.permutations(PIPES))[:2]
            flag = (source, target, draw(st.integers(0, 1)))
            if flag not in pending:
                pending.append(flag)
                ops.append(Op(SET, *flag))
        elif pending:
            flag = pending.pop(draw(st.integers(0, len(pending) - 1)))
            ops.append(Op(WAIT, *flag))
    unlocks = (Op(UNLOCK, pipe, event=mutex) for mutex, pipe in held.items())
    return [*ops, *unlocks, *(Op(WAIT, *flag) for flag in pending)]


@st.composite
def crowded(draw: st.DrawFn, size: int = 24) -> list[Op]:
    """Two pipes and a barrier now and then, all in one block of UB: what conflicts is often not what came last."""
    words = st.integers(0, 3).map(lambda n: (("space", Space.UB), ("start", 1024 + 8 * n), ("length", 8)))
    touches = st.lists(st.builds(Access, words, st.booleans()), max_size=1).map(tuple)
    pipes = st.sampled_from((Pipe.V, Pipe.V, Pipe.MTE2))
    instruction = st.builds(lambda pipe, accesses: Op(INSTRUCTION, pipe, accesses=accesses), pipes, touches)
    barrier = st.just(Op(BARRIER, Pipe.MTE2))
    return draw(st.lists(st.one_of(*[instruction] * 5, barrier), min_size=2, max_size=size))


def synchronised(ops: list[Op], ordered: frozenset[str]) -> list[Op]:
    """The program with a flag or a barrier wherever one is missing."""
    safe: list[Op] = []
    for op in ops:
        safe.append(op)
        while op.kind == INSTRUCTION:
            races = Reference(safe, ordered).races()
            late = max((earlier for _, later, earlier in races if later == len(safe) - 1), default=None)
            if late is None:
                break
            source = safe[late].pipe
            if source == op.pipe:
                safe.insert(-1, Op(BARRIER, op.pipe))
            else:  # event 7 is nobody else's, and no set of it is ever pending here
                safe[-1:-1] = [Op(SET, source, op.pipe, 7), Op(WAIT, source, op.pipe, 7)]
    return safe


def build(ops: list[Op], builder: Builder | None = None) -> Builder:
    """The trace of a program: row i is line i + 1."""
    builder = builder or Builder()
    for line, op in enumerate(ops, start=1):
        if op.kind == INSTRUCTION:
            reads = [dict(a.fields) for a in op.accesses if not a.write]
            writes = [dict(a.fields) for a in op.accesses if a.write]
            builder.op(op.pipe, f"op{line}", reads, writes, line)
        elif op.kind == SET:
            builder.set(op.pipe, op.pipe2, op.event, line)
        elif op.kind == WAIT:
            builder.wait(op.pipe, op.pipe2, op.event, line)
        elif op.kind == LOCK:
            builder.lock(op.pipe, op.event, line)
        elif op.kind == UNLOCK:
            builder.unlock(op.pipe, op.event, line)
        else:
            builder.barrier(op.pipe, line, arg=op.event)
    return builder


# Programs with loops and branches, on two cores


@dataclass(frozen=True)
class Statement:
    """An instruction of the source: ``line`` is its own."""

    line: int
    op: Op


@dataclass(frozen=True)
class Block:
    """Statements and blocks that ``cores`` run ``turns`` times: a loop, or a branch that not every core takes."""

    turns: int
    cores: tuple[int, ...]
    body: tuple[Statement | Block, ...]


Edge = tuple[int, int]
"""(line, source pipe): before the statement of that line its pipe waits for the source pipe."""
CORES = (0, 1)


@st.composite
def blocks(draw: st.DrawFn, size: int = 6) -> Block:
    """A kernel of a few statements, with a loop, and a branch that one core takes."""
    statements = [Statement(10 * (i + 1), draw(instructions())) for i in range(draw(st.integers(2, size)))]
    low = draw(st.integers(0, len(statements) - 1))
    high = draw(st.integers(low + 1, len(statements)))
    middle = draw(st.integers(low, high))
    branch = Block(1, draw(st.sampled_from(((0,), (1,), CORES))), tuple(statements[low:middle]))
    loop = Block(draw(st.integers(1, 3)), CORES, (branch, *statements[middle:high]))
    return Block(1, CORES, (*statements[:low], loop, *statements[high:]))


def unrolled(block: Block, core: int, edges: frozenset[Edge]) -> list[tuple[Op, int]]:
    """What a core carries out, with the lines."""
    done: list[tuple[Op, int]] = []
    for _ in range(block.turns if core in block.cores else 0):
        for part in block.body:
            if isinstance(part, Block):
                done += unrolled(part, core, edges)
                continue
            pipe = part.op.pipe
            for line, source in sorted(edges):
                if line == part.line and source == pipe:
                    done.append((Op(BARRIER, pipe), line - 1))
                elif line == part.line:
                    done += [(Op(SET, source, pipe), line - 3), (Op(WAIT, source, pipe), line - 2)]
            done.append((part.op, part.line))
    return done


def block_races(block: Block, edges: frozenset[Edge], ordered: frozenset[str]) -> set[tuple[str, Edge]]:
    """(kind, the edge that would order it) of every race of the kernel on any core."""
    found = set()
    for core in CORES:
        done = unrolled(block, core, edges)
        races = Reference([op for op, _ in done], ordered).races()
        found |= {(kind, (done[later][1], int(done[earlier][0].pipe))) for kind, later, earlier in races}
    return found


def needed_edges(block: Block, ordered: frozenset[str]) -> frozenset[Edge]:
    """A sufficient synchronisation of which nothing can be left out."""
    edges = frozenset(edge for _, edge in block_races(block, frozenset(), ordered))
    for edge in sorted(edges):
        if not block_races(block, edges - {edge}, ordered):
            edges -= {edge}
    return edges


def build_block(block: Block, edges: frozenset[Edge]) -> Builder:
    """The trace of a kernel on its cores, each with a part of GM of its own."""
    builder = Builder()
    for core in CORES:
        builder.core = core
        builder.launch(1, blocks=len(CORES))
        for op, line in unrolled(block, core, edges):
            if op.kind == INSTRUCTION:
                operands = [(a.write, dict(a.fields)) for a in op.accesses]
                for _, fields in operands:
                    fields["start"] += 4096 * core if fields["space"] == Space.GM else 0
                reads, writes = ([fields for write, fields in operands if write == mode] for mode in (False, True))
                builder.op(op.pipe, f"op{line}", reads, writes, line)
            elif op.kind == BARRIER:
                builder.barrier(op.pipe, line)
            else:
                (builder.set if op.kind == SET else builder.wait)(op.pipe, op.pipe2, op.event, line)
        builder.end(1)
    return builder
