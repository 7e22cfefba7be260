"""Rows of a vector function, told to the runtime one by one, and what becomes of them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

import numpy as np

from ascsim import scratch
from ascsim.frontends.cpp.library import HERE
from ascsim.machine.trace import FOLDED, SHAPE, Kind, Mode, Trace
from compiled_headers import Compiled, compile_kernels

ALIGN = 32
_TEXT = """
#include "ascsim/machine.hpp"
#include "ascsim/runtime.hpp"
#include "turns.cpp"

namespace ascsim { Shapes shapes; }

namespace {
using namespace ascsim;
constexpr uint64_t ROOM = 1 << 16;
uint8_t table[ROOM * 40];
uint64_t n_shapes;
using Where = Memory<1, 256, 5>;
}

extern "C" {
void begin()
{
    shapes = {table, &n_shapes, ROOM};
    n_shapes = 0;
    begin_turns();
    append_row(kind::vf_begin, 0, 0, 1);
}

uint64_t count_shapes() { return n_shapes; }
const uint8_t* table_of_shapes() { return table; }

// what: 0 nothing but a row, 1 load, 2 store, 3 store with a mask, 4 memory barrier
void feed(const uint64_t (*rows)[5], uint64_t count)
{
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t what = rows[i][0], site = rows[i][1], start = rows[i][2];
        const uint32_t length = static_cast<uint32_t>(rows[i][3]), vector = static_cast<uint32_t>(rows[i][4]);
        const unsigned char bits[32] = {0x0f};
        if (what == 0) {
            record<Register<3, 0>, false>(site, 0, 0, 0);
        } else if (what == 1) {
            record_access<Register<1, 0>, Where>(site, mode_read, start, length, vector);
        } else if (what == 2) {
            record_access<Register<2, 0>, Where>(site, mode_write, start, length, vector);
        } else if (what == 3) {
            append_access(mode_write, 1, 5, append_mask(bits), static_cast<int64_t>(start), length, vector);
            append_row(kind::instruction, 2, 1, site);
        } else {
            append_row(kind::mem_bar, 0, 0, site);
        }
    }
}
}
"""


@dataclass(frozen=True)
class Call:
    """One call in a vector function, in the order of the C function's columns."""

    what: int
    site: int
    start: int = 0
    length: int = 0
    vector: int = 0

    def columns(self) -> tuple[int, ...]:
        """What ``feed`` takes."""
        return self.what, self.site, self.start, self.length, self.vector


def compute(site: int) -> Call:
    """A call without memory."""
    return Call(0, site)


def load(site: int, start: int, vector: int = 2, length: int = 256) -> Call:
    """A load into a register."""
    return Call(1, site, start, length, vector)


def store(site: int, start: int, vector: int = 2, length: int = 256) -> Call:
    """A store of a register."""
    return Call(2, site, start, length, vector)


def masked(site: int, start: int, vector: int = 2) -> Call:
    """A store that leaves bytes out."""
    return Call(3, site, start, 256, vector)


def barrier(site: int) -> Call:
    """A memory barrier."""
    return Call(4, site)


@cache
def _library() -> Compiled:
    directory = scratch.make("turns")
    runtime = HERE / "runtime"
    compiled = compile_kernels(directory, _TEXT, "a5", f"-I{runtime}")
    compiled.library.count_shapes.restype = ctypes.c_uint64
    compiled.library.table_of_shapes.restype = ctypes.c_void_p
    return compiled


def record(calls: list[Call]) -> Trace:
    """The trace of a vector function of these calls."""
    compiled = _library()
    library = compiled.library
    library.stub_start(1)
    library.begin()
    columns = np.array([call.columns() for call in calls], np.uint64).reshape(-1, 5)
    library.feed(columns.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(len(calls)))
    size = library.count_shapes() * SHAPE.itemsize
    shapes = np.frombuffer(ctypes.string_at(library.table_of_shapes(), size), SHAPE)
    shapes = np.concatenate((np.array([(1, 1, 1, 0, 0, 0, 0)], SHAPE), shapes))
    names = [("mnemonic", {"id": n, "name": name}) for n, name in enumerate(("load", "store", "add"), start=1)]
    return Trace(compiled.rows, compiled.accesses, compiled.masks, names, shapes)


def unfolded(trace: Trace) -> Trace:
    """The same run with a row for each call."""
    rows, accesses = [], []
    at = 0
    while at < len(trace.rows):
        body = max(int(trace.rows["body"][at]), 1)
        for turn in range(int(trace.calls[at])):
            for row in range(at, at + body):
                if turn >= trace.calls[row]:
                    break
                one = trace.rows[row].copy()
                if one["flags"] & FOLDED:
                    one["arg"], one["body"], one["flags"] = 0, 0, one["flags"] ^ FOLDED
                rows.append(one)
                for number in range(trace.first_access[row], trace.first_access[row + 1]):
                    access = trace.accesses[number].copy()
                    access["start"] += turn * trace.shapes["s1"][access["shape"]]
                    access["shape"] = 0
                    accesses.append(access)
        at += body
    return Trace(
        np.array(rows, trace.rows.dtype), np.array(accesses, trace.accesses.dtype), trace.masks, list(trace.notes)
    )


def calls_of(trace: Trace) -> list[Call]:
    """The calls behind a trace with a row for each."""
    found = []
    for row in range(1, len(trace.rows)):
        record, numbers = trace.rows[row], range(trace.first_access[row], trace.first_access[row + 1])
        site = int(record["site"])
        if record["kind"] == Kind.MEM_BAR:
            found.append(barrier(site))
        elif not numbers:
            found.append(compute(site))
        else:
            access = trace.accesses[numbers[0]]
            what = 3 if access["mask"] else 2 if access["mode"] == Mode.WRITE else 1
            found.append(Call(what, site, int(access["start"]), int(access["length"]), int(access["unused"])))
    return found
