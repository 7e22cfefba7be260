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
    """The rows. Of each form: ``kind`` (OTHER: passed over), ``pipe``, ``lane``, cycles ``busy`` and ``latency`` of one call,
    how many ``calls``, and of the first row of a folded loop how many rows its ``body`` has. By position in visiting order:
    its ``form``, and for a wait the position of its set, or -1. ``since`` is when the signal of a wait for other cores is
    complete."""

    kind: Any
    pipe: Any
    lane: Any
    busy: Any
    latency: Any
    calls: Any
    body: Any
    form: Any
    partner: Any
    since: Any


class Times(NamedTuple):
    """What the loop finds out, by position: when a row is issued, starts, and is complete (-1: never); ``by`` and
    ``issue_by`` the nodes that its start and its issue waited for (-1: none); ``idle`` how long its pipe was idle before
    it, after earlier work; ``held`` the position of the wait or barrier that kept it so, or -1: it was not issued yet.
    Of the turns of a loop, the first one's start and the last one's end count. Cycles are int32 where the run is short
    enough for that.
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
    it is free, by which node. By track: up to when it was ``reached`` by work on this core, and how many cycles it
    ``worked``. ``at`` is where the loop over a long trace goes on: the newest end of all and its node, the vector function
    that is open (or -1), from when it gives out, by which node, how many it gave out, and the
    end of its loop.
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
    reached: Any
    worked: Any
    at: Any


def new_times(n: int, cycles: type = np.int64) -> Times:
    """Nothing known of ``n`` positions; ``cycles`` is the type of what counts them."""
    nodes = {"by", "issue_by", "held"}
    times = Times._make([np.full(n, -1, np.int32 if name in nodes else cycles) for name in Times._fields])
    times.idle[:] = 0
    return times


def new_state(pipes: int, queue: int, ports: int, slots: int) -> State:
    """Room for what the loop keeps."""
    shapes = (*[pipes] * 7, (pipes, queue), (pipes, queue), (3, ports), *[3] * 5, slots, slots, *[pipes + 3] * 2, 7)
    state = State._make([np.zeros(shape, np.int64) for shape in shapes])
    state.at[:] = 0, -1, -1, 0, -1, 0, 0
    return state


def _begin(state: Any, at: int, node: int) -> None:
    """A core begins."""
    for table in (state.free, state.done, state.lane_start, state.newest, state.last):
        table[:] = at
    state.free_by[:] = node
    state.done_by[:] = node
    state.active[:] = -1
    state.held[:] = -1
    state.given[:] = 0
    state.reached[:] = -1


def _count(state: Any, track: int, start: int, end: int) -> None:
    """A track is at work from ``start`` to ``end``; it begins its work in order."""
    state.worked[track] += max(end - max(start, state.reached[track]), 0)
    state.reached[track] = max(state.reached[track], end)


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
    form = rows.form[position]
    lane = rows.lane[form]
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
    end = at + rows.busy[form] + rows.latency[form]
    state.port[lane, port] = at + rows.busy[form]
    state.lane_start[lane] = at
    state.newest[lane], state.newest_by[lane] = end, position
    if end >= state.last[lane]:
        state.last[lane], state.last_by[lane] = end, position
    _count(state, len(state.free) + lane, at, end)
    if times.start[position] < 0:
        times.start[position], times.by[position] = at, node
    times.end[position] = max(times.end[position], end)


def place(
    rules: Any, rows: Any, starts: Any, slot: Any, launch: Any, times: Any, state: Any, begin: int, until: int
) -> int:  # fmt: skip
    """Give the rows at positions from ``begin`` to ``until`` their times; all before have them.

    Returns the node that ends last so far.
    ``starts`` are the positions where each core begins, and the end; ``slot`` and ``launch`` say for each core where it
    runs and in which launch.
    """
    n = starts[len(starts) - 1]
    issue_cycles, depth, vector_start, dispatch = rules.chip[0], rules.chip[1], rules.chip[2], rules.chip[3]
    pipes = len(state.free)
    newest, newest_by = state.at[0], state.at[1]
    for core in range(len(starts) - 1):
        first, end_here = max(starts[core], begin), min(starts[core + 1], until)
        if first >= end_here:
            continue
        here = slot[core]
        function, floor, floor_by, told, behind_loop = (
            state.at[2], state.at[3], state.at[4], state.at[5], state.at[6],
        )  # fmt: skip
        if first == starts[core]:
            if core == 0 or launch[core] != launch[core - 1]:
                state.slot[:] = newest
                state.slot_by[:] = newest_by
            _begin(state, state.slot[here], state.slot_by[here])
            function, floor, floor_by, told, behind_loop = -1, 0, -1, 0, 0
        for position in range(first, end_here):
            form = rows.form[position]
            kind, pipe = rows.kind[form], rows.pipe[form]
            if kind == OTHER or position < behind_loop:
                continue
            if function >= 0 and (kind == MEM_BAR or (kind == INSTRUCTION and rows.lane[form] >= 0)):
                if kind == MEM_BAR:
                    for lane in range(3):
                        if state.last[lane] > floor:
                            floor, floor_by = state.last[lane], state.last_by[lane]
                    times.start[position], times.end[position], times.by[position] = floor, floor, floor_by
                    continue
                behind_loop = position + max(rows.body[form], 1)
                for turn in range(rows.calls[form]):
                    for inner in range(position, behind_loop):
                        if turn >= rows.calls[rows.form[inner]]:  # the last turn ended before it
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
                _count(state, _V, times.start[function], end)
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
            end = at + rows.busy[form]
            if is_everything:
                for other in range(pipes):
                    state.free[other], state.free_by[other] = end, position
                    state.done[other], state.done_by[other] = end, position
                    state.held[other] = position
            elif kind in (INSTRUCTION, VF_BEGIN):
                _work(state, times, pipe, position, at)
                held_until = end
                end += rows.latency[form]
                if rules.ordered[pipe]:
                    held_until = end
                state.free[pipe], state.free_by[pipe] = held_until, position
                state.active[pipe] = max(state.active[pipe], end)
                _complete(state, pipe, end, position)
                if kind == INSTRUCTION:
                    _count(state, pipe, at, end)
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
                end = at + rows.busy[form]
                state.free[pipe], state.free_by[pipe] = end, position
                _complete(state, pipe, end, position)
            times.start[position], times.end[position], times.by[position] = at, end, by
            if pipe != _S and not is_everything:
                state.queue[pipe, place_in_queue], state.queue_by[pipe, place_in_queue] = at, position
                state.given[pipe] += 1
        state.at[2], state.at[3], state.at[4], state.at[5] = function, floor, floor_by, told
        state.at[6] = behind_loop
        if end_here < starts[core + 1]:
            continue
        if function >= 0:  # it was not ended
            _count(state, _V, times.start[function], times.end[function])
        last, last_by = state.slot[here], state.slot_by[here]
        for pipe in range(pipes):
            if state.done[pipe] > last:
                last, last_by = state.done[pipe], state.done_by[pipe]
        if state.free[_S] > last:
            last, last_by = state.free[_S], state.free_by[_S]
        state.slot[here], state.slot_by[here] = last, last_by
        if last > newest:
            newest, newest_by = last, last_by
    state.at[0], state.at[1] = newest, newest_by
    return newest_by


def span(table: Any, rows: Any, times: Any, positions: Any, begin: int, until: int) -> None:
    """Give rows that have steps the times from their first step's start to their last one's end, of those on their own pipe.

    It goes over the rows of the ``table`` from ``until`` down to ``begin``: steps stand behind what they are steps of.
    ``positions`` are those of rows in visiting order, empty where they are the same.
    """
    for count in range(until - begin):
        row = until - 1 - count
        parent = table[row]["parent"]
        if parent < 0:
            continue
        at, of = row, parent
        if len(positions) > 0:
            at, of = positions[row], positions[parent]
        is_own = table[row]["pipe"] == table[parent]["pipe"] or rows.kind[rows.form[at]] == OTHER
        if times.start[at] < 0 or not is_own:
            continue
        if times.start[of] < 0 or times.start[at] < times.start[of]:
            times.start[of] = times.start[at]
        times.end[of] = max(times.end[of], times.end[at])


def walk_back(rows: Any, times: Any, node: int, end: int, nodes: Any, cuts: Any) -> int:
    """The critical path: fills ``nodes`` from behind, and ``cuts`` with when each begins to be what everything waits for and,
    one longer, the end. Returns how many there are; where ``nodes`` is empty, it only counts.

    Flags and barriers take no part of it: what they waited for does.
    """
    n, size, found = len(rows.form), len(nodes), 0
    if size > 0:
        cuts[size] = end
    while node >= 0:
        position = node - n if node >= n else node
        begin = times.issue[position] if node >= n else times.start[position]
        before = times.issue_by[position] if node >= n else times.by[position]
        kind = rows.kind[rows.form[position]]
        if before < 0:
            begin = 0
        elif node < n and kind != INSTRUCTION and kind != VF_BEGIN:
            begin = end
        begin = min(begin, end)
        found += 1
        if size > 0:
            nodes[size - found], cuts[size - found] = node, begin
        node, end = before, begin
    return found
