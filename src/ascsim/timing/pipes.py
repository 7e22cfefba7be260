"""The loop that puts instructions on a core's pipes.

The model. The scalar unit takes the instructions of a core in program order and issues each to its pipe, whose queue has
room for so many. A pipe starts its instructions in order. An instruction holds its pipe while it works; the rest of its
latency the next one may overlap, unless the pipe keeps its own order (``ordered``), where the next one waits for the end.

========================  ================================================================================
set_flag(P -> Q)          takes effect when all that P was given before is complete; P goes on
wait_flag on Q            holds Q until its set has taken effect; on S it holds the issue
unlock on P, lock on Q    are like a set and its wait: a lock belongs to the newest unlock of its mutex
signals between cores     an arrival is like a set; a wait holds its pipe until all arrivals that make its signal are
pipe_barrier(P)           holds P until all that P was given before is complete
pipe_barrier(PIPE_ALL)    holds every pipe, and the issue, until all pipes are
a vector function         is one instruction of V; inside, instructions are given out in order, so many a cycle, to
                          the lanes: an execution waits for the newest load before it, a store for the newest load
                          and execution, and a memory barrier for everything
the blocks of a launch    begin together, as many as there are cores; the others when a core is free
launches                  follow each other
========================  ================================================================================

Registers are not in the trace: chains of operations on one register overlap here as if they were independent.

Each time has its reason, so that the critical path can be walked back: a node is a position in visiting order (the row
started) or that plus the number of positions (the row was issued).

Everything here is plain Python over sequences, in the part that Numba compiles (:mod:`ascsim.machine.native`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

INSTRUCTION, SET_FLAG, WAIT_FLAG, BARRIER, VF_BEGIN, VF_END, MEM_BAR, AWAIT, OTHER = 0, 1, 2, 3, 6, 7, 8, 12, 255
_S, _V, _ALL = 0, 1, 6
_LOAD, _EXECUTE, _STORE = 0, 1, 2


class Rules(NamedTuple):
    """What a chip does (int64 arrays): ``ordered`` by pipe, ``ports`` by lane, and the numbers of ``chip``: issue, queue,
    vector start, dispatch."""

    ordered: Any
    ports: Any
    chip: Any


class Rows(NamedTuple):
    """The rows in visiting order: ``kind`` (OTHER: passed over), ``pipe``, ``lane``, cycles ``busy`` and ``latency`` of one
    call, how many ``calls``, of the first row of a folded loop how many rows its ``body`` has, and for a wait the position of
    its set, or -1. ``since`` is when the signal of a wait for other cores is complete."""

    kind: Any
    pipe: Any
    lane: Any
    busy: Any
    latency: Any
    calls: Any
    body: Any
    partner: Any
    since: Any


class Times(NamedTuple):
    """What the loop finds out, by position: when a row is issued, starts, and is complete (-1: never); ``by`` and
    ``issue_by`` the nodes that its start and its issue waited for (-1: none); ``idle`` how long its pipe was idle before
    it, after earlier work; ``held`` the position of the wait or barrier that kept it so, or -1: it was not issued yet.
    ``alone`` is, of an instruction of a vector function, in how many cycles its lane works on none before it. Of the turns of a
    loop, the first one's start and the last one's end count.
    """

    issue: Any
    start: Any
    end: Any
    by: Any
    issue_by: Any
    idle: Any
    held: Any
    alone: Any


class State(NamedTuple):
    """What the loop keeps, by pipe: ``free`` (when it takes the next), ``done`` (when all before is complete), their
    nodes, when it was last at work, the wait that holds it, how many it was given, and the queue of starts and their
    nodes; by lane: ports, the newest start, and the newest and the last completion with their nodes; by core slot: when
    it is free, by which node.
    """

    free: Any
    free_by: Any
    done: Any
    done_by: Any
    active: Any
    held: Any
    given: Any
    queue: Any
    queue_by: Any
    port: Any
    lane_start: Any
    newest: Any
    newest_by: Any
    last: Any
    last_by: Any
    slot: Any
    slot_by: Any


def new_times(n: int) -> Times:
    """Nothing known of ``n`` positions."""
    times = Times._make([np.full(n, -1, np.int64) for _ in Times._fields])
    times.idle[:] = times.alone[:] = 0
    return times


def new_state(pipes: int, queue: int, ports: int, slots: int) -> State:
    """Room for what the loop keeps."""
    shapes = (*[pipes] * 7, (pipes, queue), (pipes, queue), (3, ports), *[3] * 5, slots, slots)
    return State._make([np.zeros(shape, np.int64) for shape in shapes])


def _begin(state: Any, at: int, node: int) -> None:
    """A core begins."""
    for table in (state.free, state.done, state.lane_start, state.newest, state.last):
        table[:] = at
    state.free_by[:] = node
    state.done_by[:] = node
    state.active[:] = -1
    state.held[:] = -1
    state.given[:] = 0


def _complete(state: Any, pipe: int, at: int, node: int) -> None:
    if at >= state.done[pipe]:
        state.done[pipe], state.done_by[pipe] = at, node


def _work(state: Any, times: Any, pipe: int, position: int, at: int) -> None:
    """A pipe begins to work: how long it was idle, and why."""
    if 0 <= state.active[pipe] < at:
        times.idle[position] = at - state.active[pipe]
        if state.free[pipe] >= at:
            times.held[position] = state.held[pipe]
    state.held[pipe] = -1


def _in_lane(rules: Any, rows: Any, times: Any, state: Any, position: int, at: int, node: int) -> None:
    """An instruction of a vector function, which its lane may have from ``at`` on."""
    lane = rows.lane[position]
    port = 0
    for other in range(1, rules.ports[lane]):
        if state.port[lane, other] < state.port[lane, port]:
            port = other
    if state.port[lane, port] > at:
        at, node = state.port[lane, port], state.newest_by[lane]
    at = max(at, state.lane_start[lane])
    for source in range(lane):  # executions wait for loads, stores for loads and executions
        if state.newest[source] > at:
            at, node = state.newest[source], state.newest_by[source]
    end = at + rows.busy[position] + rows.latency[position]
    state.port[lane, port] = at + rows.busy[position]
    state.lane_start[lane] = at
    state.newest[lane], state.newest_by[lane] = end, position
    times.alone[position] += max(end - max(at, state.last[lane]), 0)
    if end >= state.last[lane]:
        state.last[lane], state.last_by[lane] = end, position
    if times.start[position] < 0:
        times.start[position], times.by[position] = at, node
    times.end[position] = max(times.end[position], end)


def place(
    rules: Any, rows: Any, starts: Any, slot: Any, launch: Any, times: Any, state: Any
) -> int:  # fmt: skip
    """Give every row its times; returns the node that ends last.

    ``starts`` are the positions where each core begins, and the end; ``slot`` and ``launch`` say for each core where it
    runs and in which launch.
    """
    n = starts[len(starts) - 1]
    issue_cycles, depth, vector_start, dispatch = rules.chip[0], rules.chip[1], rules.chip[2], rules.chip[3]
    pipes = len(state.free)
    newest, newest_by = 0, -1
    for core in range(len(starts) - 1):
        if core == 0 or launch[core] != launch[core - 1]:
            state.slot[:] = newest
            state.slot_by[:] = newest_by
        here = slot[core]
        _begin(state, state.slot[here], state.slot_by[here])
        function, floor, floor_by, told, behind_loop = -1, 0, -1, 0, 0
        for position in range(starts[core], starts[core + 1]):
            kind, pipe = rows.kind[position], rows.pipe[position]
            if kind == OTHER or position < behind_loop:
                continue
            if function >= 0 and (kind == MEM_BAR or (kind == INSTRUCTION and rows.lane[position] >= 0)):
                if kind == MEM_BAR:
                    for lane in range(3):
                        if state.last[lane] > floor:
                            floor, floor_by = state.last[lane], state.last_by[lane]
                    times.start[position], times.end[position], times.by[position] = floor, floor, floor_by
                    continue
                behind_loop = position + max(rows.body[position], 1)
                for turn in range(rows.calls[position]):
                    for inner in range(position, behind_loop):
                        if turn >= rows.calls[inner]:  # the last turn ended before it
                            break
                        given_out = times.start[function] + vector_start + told // dispatch
                        told += 1
                        if given_out >= floor:
                            _in_lane(rules, rows, times, state, inner, given_out, function)
                        else:
                            _in_lane(rules, rows, times, state, inner, floor, floor_by)
                continue
            if function >= 0 and kind == VF_END:
                end, by = times.start[function] + vector_start, function
                for lane in range(3):
                    if state.last[lane] > end:
                        end, by = state.last[lane], state.last_by[lane]
                times.start[position], times.end[position], times.by[position] = end, end, by
                times.end[function] = end
                state.free[_V], state.free_by[_V], state.active[_V] = end, position, end
                _complete(state, _V, end, position)
                function = -1
                continue
            # Issue
            at, by = state.free[_S], state.free_by[_S]
            is_everything = kind == BARRIER and pipe == _ALL
            place_in_queue = 0
            if pipe != _S and not is_everything:
                place_in_queue = state.given[pipe] % depth
                if state.given[pipe] >= depth and state.queue[pipe, place_in_queue] > at:
                    at, by = state.queue[pipe, place_in_queue], state.queue_by[pipe, place_in_queue]
                times.issue[position], times.issue_by[position] = at, by
                at, by = at + issue_cycles, n + position
                state.free[_S], state.free_by[_S] = at, by
                if state.free[pipe] > at:
                    at, by = state.free[pipe], state.free_by[pipe]
            elif is_everything:
                for other in range(pipes):
                    if state.free[other] > at:
                        at, by = state.free[other], state.free_by[other]
                    if state.done[other] > at:
                        at, by = state.done[other], state.done_by[other]
            # Work
            end = at + rows.busy[position]
            if is_everything:
                for other in range(pipes):
                    state.free[other], state.free_by[other] = end, position
                    state.done[other], state.done_by[other] = end, position
                    state.held[other] = position
            elif kind in (INSTRUCTION, VF_BEGIN):
                _work(state, times, pipe, position, at)
                held_until = end
                end += rows.latency[position]
                if rules.ordered[pipe]:
                    held_until = end
                state.free[pipe], state.free_by[pipe] = held_until, position
                state.active[pipe] = max(state.active[pipe], end)
                _complete(state, pipe, end, position)
                if kind == VF_BEGIN:
                    function, told, floor, floor_by = position, 0, 0, position
                    state.port[:] = at
                    for table in (state.lane_start, state.newest, state.last):
                        table[:] = at
                    state.newest_by[:] = position
                    state.last_by[:] = position
            elif kind == SET_FLAG:
                state.free[pipe], state.free_by[pipe] = end, by
                if state.done[pipe] > end:
                    end, by = state.done[pipe], state.done_by[pipe]
            elif kind == WAIT_FLAG:
                match = rows.partner[position]
                if 0 <= match < position and times.end[match] > end:
                    end, by = times.end[match], match
                    state.held[pipe] = position
                state.free[pipe], state.free_by[pipe] = end, position
                _complete(state, pipe, end, position)
            elif kind == AWAIT:
                if rows.since[position] > end:
                    end, by = rows.since[position], rows.partner[position]
                    state.held[pipe] = position
                state.free[pipe], state.free_by[pipe] = end, position
                _complete(state, pipe, end, position)
            else:  # a barrier
                if state.done[pipe] > at:
                    at, by = state.done[pipe], state.done_by[pipe]
                    state.held[pipe] = position
                end = at + rows.busy[position]
                state.free[pipe], state.free_by[pipe] = end, position
                _complete(state, pipe, end, position)
            times.start[position], times.end[position], times.by[position] = at, end, by
            if pipe != _S and not is_everything:
                state.queue[pipe, place_in_queue], state.queue_by[pipe, place_in_queue] = at, position
                state.given[pipe] += 1
        last, last_by = state.slot[here], state.slot_by[here]
        for pipe in range(pipes):
            if state.done[pipe] > last:
                last, last_by = state.done[pipe], state.done_by[pipe]
        if state.free[_S] > last:
            last, last_by = state.free[_S], state.free_by[_S]
        state.slot[here], state.slot_by[here] = last, last_by
        if last > newest:
            newest, newest_by = last, last_by
    return newest_by


def walk_back(kind: Any, times: Any, node: int, end: int, path: Any, begins: Any, ends: Any) -> int:
    """The critical path, last first: nodes, and from when to when each is what everything waits for. Returns how many.

    Flags and barriers take no part of it: what they waited for does.
    """
    n = len(kind)
    found = 0
    while node >= 0:
        position = node - n if node >= n else node
        begin = times.issue[position] if node >= n else times.start[position]
        before = times.issue_by[position] if node >= n else times.by[position]
        if before < 0:
            begin = 0
        elif node < n and kind[position] != INSTRUCTION and kind[position] != VF_BEGIN:
            begin = end
        begin = min(begin, end)
        path[found], begins[found], ends[found] = node, begin, end
        found += 1
        node, end = before, begin
    return found
