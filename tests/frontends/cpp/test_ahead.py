"""Blocks of C++ kernels that run ahead in processes of their own: the same trace, output and ending as one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascsim import checks
from ascsim.diagnostics import UserError
from ascsim.frontends.cpp import driver, session
from ascsim.frontends.cpp.compilers import find_compiler
from ascsim.machine import fill, jobs, late
from ascsim.machine.trace import FOLDED, Kind
from ascsim.machine.words import Pipe

BLOCKS = 6
MAIN = r"""
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>
#include <unistd.h>
#include "acl/acl.h"
#include "c_api/asc_simd.h"
constexpr int kRow = 64;

__aicore__ inline void flags(pipe_t from, pipe_t to)
{
    asc_sync_notify(from, to, EVENT_ID0);
    asc_sync_wait(from, to, EVENT_ID0);
}

__simd_vf__ inline void Twice(__ubuf__ float* at)
{
    vector_float value;
    vector_bool all = asc_create_mask_b32(PAT_ALL), some = asc_create_mask_b32(PAT_M4);
    asc_loadalign(value, at);
    asc_add(value, value, value, all);
    asc_storealign(at, value, some);
}

// Row `from` of x, doubled in part, to row `to` of out.
__aicore__ inline void Move(__gm__ float* out, __gm__ float* x, int from, int to)
{
    __ubuf__ float row[kRow];
    asc_copy_gm2ub_align(row, x + from * kRow, kRow * 4);
    flags(PIPE_MTE2, PIPE_V);
    asc_vf_call<Twice>(row);
    flags(PIPE_V, PIPE_MTE3);
    asc_copy_ub2gm_align(out + to * kRow, row, kRow * 4);
    flags(PIPE_MTE3, PIPE_MTE2);
}

__global__ __vector__ void Own(__gm__ float* out, __gm__ float* x)
{
    int block = asc_get_block_idx();
    Move(out, x, block, block);
    for (int i = 0; i < 8; ++i) out[(8 + block) * kRow + 2 * i] = i;
    AscendC::printf("block %d ", block);
    if (block % 2) AscendC::printf("odd\n");
}

__global__ __vector__ void Streams(__gm__ float* out)
{
    out[asc_get_block_idx()] = 1;
    std::cout << "block " << asc_get_block_idx() << " ";
}

// Loops whose rows grow and turns that are folded, more of both than a window of the trace holds.
__simd_vf__ inline void Turns(__ubuf__ float* at, int turns)
{
    vector_float value;
    vector_bool all = asc_create_mask_b32(PAT_ALL);
    for (int i = 0; i < turns; ++i) {
        asc_loadalign(value, at + i % 7 * 64);
        if (i % 3) asc_add(value, value, value, all);
        asc_storealign(at + i % 5 * 64, value, all);
    }
    for (int i = 0; i < 16; ++i) {
        asc_loadalign(value, at + i * 64);
        asc_storealign(at + 1024 + i * 64, value, all);
    }
}

__global__ __vector__ void Long(__gm__ float* out)
{
    __ubuf__ float at[4096];
    int block = asc_get_block_idx();
    for (int i = 0; i < 4096; ++i) at[i] = block + i;
    for (int turn = 0; turn < 3 + block; ++turn) {
        for (int i = 0; i < 500 * turn; ++i) at[(i * 3 + i / 100) % 4096] = i;
        flags(PIPE_S, PIPE_V);
        asc_vf_call<Turns>(at, 1000 + 100 * block);
        flags(PIPE_V, PIPE_S);
    }
    for (int i = 0; i < kRow; ++i) out[block * kRow + i] = at[i];
}

// Leaves what fresh memory holds, because nothing waits for the load where it is held back.
__global__ __vector__ void Fresh(__gm__ float* out, __gm__ float* x)
{
    __ubuf__ float row[2 * kRow];
    asc_copy_gm2ub_align(row + kRow, x, kRow * 4);
    asc_copy_ub2gm_align(out + asc_get_block_idx() * kRow, row, kRow * 4);
}

// A store that leaves no trace.
__global__ __vector__ void Untold(__gm__ int* out)
{
    __gm__ int* mine = out + asc_get_block_idx();
    int value = 7 + asc_get_block_idx();
#if defined(__x86_64__)
    asm volatile("movl %1, (%0)" : : "r"(mine), "r"(value) : "memory");
#else
    asm volatile("str %w1, [%0]" : : "r"(mine), "r"(value) : "memory");
#endif
    out[64 + asc_get_block_idx()] = value;
}

__global__ __vector__ void Same(__gm__ float* out, __gm__ float* x) { Move(out, x, asc_get_block_idx(), 0); }

__global__ __vector__ void Chain(__gm__ float* out, __gm__ float* x)
{
    int block = asc_get_block_idx();
    Move(out, block ? out : x, block ? block - 1 : 0, block);
}

__global__ __vector__ void Sum(__gm__ int* out)
{
    for (int i = 0; i <= asc_get_block_idx(); ++i) {
        __atomic_fetch_add(out + i % 2, asc_get_block_idx() + 1, __ATOMIC_SEQ_CST);
    }
    out[8 + asc_get_block_idx()] = out[0];
}

__global__ __vector__ void Counted(__gm__ int* out)
{
    static int count = 0;
    out[asc_get_block_idx()] = ++count;
}

__global__ __vector__ void ToHost(__gm__ int* out, int* host)
{
    host[asc_get_block_idx()] = 7;
    out[asc_get_block_idx()] = host[0];
}

__global__ __vector__ void Polls(__gm__ volatile int* out)
{
    int block = asc_get_block_idx();
    if (block == 4) while (out[3] == 0) {}
    out[block] = block + 1;
}

// Looks by copies, which nobody takes for polling.
__global__ __vector__ void Looks(__gm__ float* out)
{
    __ubuf__ float row[kRow];
    int block = asc_get_block_idx();
    if (block == 4) {
        do {
            asc_copy_gm2ub_align(row, out + 3 * kRow, kRow * 4);
            flags(PIPE_MTE2, PIPE_S);
        } while (row[0] == 0);
    }
    for (int i = 0; i < kRow; ++i) row[i] = 1 + block;
    flags(PIPE_S, PIPE_MTE3);
    asc_copy_ub2gm_align(out + block * kRow, row, kRow * 4);
}

__global__ __vector__ void Meet(__gm__ float* out, __gm__ float* x)
{
    int block = asc_get_block_idx();
    Move(out, x, block, block);
    asc_sync_inter_arrive(PIPE_MTE3, 0);
    asc_sync_inter_wait(PIPE_S, 0);
    Move(out, out, (block + 1) % asc_get_block_num(), 8 + block);
}

// The cores of a block signal each other; of block 2 once too often, or (`how` 1) too seldom.
__global__ __mix__(1, 2) void Pairs(__gm__ float* out, __gm__ float* x, int how)
{
    int block = asc_get_block_idx();
#ifdef __DAV_VEC__
    int me = 2 * block + asc_get_sub_block_id(), local[8];
    for (int i = 0; i < 8; ++i) local[i] = me + i;
    Move(out, x, me, me);
    if (how != 1 || me != 5) asc_sync_intra_arrive(PIPE_MTE3, 1);
    asc_sync_intra_wait(PIPE_S, 2);
    Move(out, out, me ^ 1, 8 + local[block] - block);  // too early for the next line
    out[(8 + me) * kRow + 63] = local[7];
    if (how == 3) ((__gm__ int*)out)[(8 + me) * kRow + 62] = getpid();
#else
    asc_sync_intra_wait(PIPE_S, 1);
    asc_sync_intra_wait(PIPE_S, 17);
    asc_sync_intra_arrive(PIPE_S, 2);
    asc_sync_intra_arrive(PIPE_S, 18);
    if (how == 2 && block == 2) asc_sync_intra_arrive(PIPE_S, 2);
#endif
}

__global__ __vector__ void Declares(__gm__ float* out, __gm__ float* x)
{
    int block = asc_get_block_idx();
    if (block == 3) {
        __ubuf__ float first[128];
        asc_copy_gm2ub_align(first, x, 64);
    }
    if (block >= 2) {
        __ubuf__ float second[64];
        asc_copy_gm2ub_align(second, x, 64);
    }
    Move(out, x, block, block);
}

__global__ __vector__ void Stops(__gm__ float* out, __gm__ float* x, int how)
{
    int block = asc_get_block_idx();
    Move(out, x, block, block);
    AscendC::printf("block %d\n", block);
    if (block != 3) return;
    if (how == 0) asc_sync_notify(PIPE_MTE2, PIPE_V, static_cast<event_t>(99));
    if (how == 1) *(volatile int*)8 = 1;
    if (how == 2) throw std::runtime_error("no such thing");
    if (how == 3) exit(5);
    if (how == 4) for (volatile int i = 0;; i = i + 1) {}
}

__global__ __vector__ void Who(__gm__ int* out) { out[asc_get_block_idx()] = getpid(); }

int main(int argc, char** argv)
{
    std::string what = argv[1];
    aclInit(nullptr);
    aclrtSetDevice(0);
    const int blocks = argc > 2 ? std::atoi(argv[2]) : 6;
    const size_t bytes = 16 * kRow * 4;
    void *in, *out;
    std::vector<float> data(16 * kRow), got(16 * kRow);
    for (size_t i = 0; i < data.size(); ++i) data[i] = i / 3.0f;
    aclrtMalloc(&in, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&out, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(in, bytes, data.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemset(out, bytes, 0, bytes);
    float *x = (float*)in, *y = (float*)out;
    static int host[16];
    std::printf("begin ");
    if (what == "own") { Own<<<blocks>>>(y, x); Own<<<blocks>>>(y, x); }
    if (what == "streams") {
        std::ios::sync_with_stdio(false);
        std::cout << "and ";
        Streams<<<blocks>>>(y);
    }
    if (what == "long") Long<<<blocks>>>(y);
    if (what == "fresh") Fresh<<<blocks>>>(y, x);
    if (what == "untold") Untold<<<blocks>>>((int*)y);
    if (what == "same") Same<<<blocks>>>(y, x);
    if (what == "chain") Chain<<<blocks>>>(y, x);
    if (what == "sum") Sum<<<blocks>>>((int*)y);
    if (what == "counted") Counted<<<blocks>>>((int*)y);
    if (what == "host") ToHost<<<blocks>>>((int*)y, host);
    if (what == "polls") Polls<<<blocks>>>((int*)y);
    if (what == "looks") Looks<<<blocks>>>(y);
    if (what == "meet") Meet<<<blocks>>>(y, x);
    if (what == "pairs") Pairs<<<4>>>(y, x, blocks);
    if (what == "declares") Declares<<<blocks>>>(y, x);
    if (what == "refused") Stops<<<blocks>>>(y, x, 0);
    if (what == "crashes") Stops<<<blocks>>>(y, x, 1);
    if (what == "throws") Stops<<<blocks>>>(y, x, 2);
    if (what == "exits") Stops<<<blocks>>>(y, x, 3);
    if (what == "hangs") Stops<<<blocks>>>(y, x, 4);
    if (what == "who") Who<<<blocks>>>((int*)y);
    int code = aclrtSynchronizeDevice();
    aclrtMemcpy(got.data(), bytes, out, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    std::printf("code %d host %d:", code, host[5]);
    for (size_t i = 0; i < got.size(); ++i) {
        int bits;
        std::memcpy(&bits, &got[i], 4);
        std::printf(" %d", bits);
    }
    std::printf("\n");
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        find_compiler()
    except UserError:
        pytest.skip("needs a C++ compiler")
    place = tmp_path_factory.mktemp("ahead")
    (place / "main.asc").write_text(MAIN)
    return driver.compile_program([place / "main.asc"], "a5", output=place / "program", flags=("-O1", "-g"))


@pytest.fixture(autouse=True)
def all_processors_afterwards() -> Iterator[None]:
    yield
    jobs.choose(None)


Runs = Callable[..., dict[str, Any]]


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Runs:
    """Runs a scenario with so many processors, from the first block on: all that is known of it afterwards."""

    def runs(processors: int, *words: str, timeout: float = 60) -> dict[str, Any]:
        jobs.choose(processors, after=0)
        directory = tmp_path / f"trace{processors}"
        with (tmp_path / "output").open("wb") as file:
            outcome = session.run(
                program, words, trace_directory=directory, timeout=timeout, stdout=file, keep_results=True
            )
        assert not list(directory.glob("ahead-*"))
        return {
            "output": (tmp_path / "output").read_bytes(), "status": outcome.status, "signal": outcome.signal,
            "rows": placed(outcome.trace.rows, modules := bases(outcome.trace.notes)),
            "accesses": renamed(outcome.trace), "masks": outcome.trace.masks, "shapes": outcome.trace.shapes,
            "notes": [(kind, relative(data, modules)) for kind, data in outcome.trace.notes],
            "findings": [(d.code, d.headline, d.places) for d in checks.run(outcome.trace, outcome.profile, outcome.sites)],
            "stops": outcome.stops(), "error": outcome.error,
            "results": [array.tobytes() for array in outcome.results().values()],
        }  # fmt: skip

    return runs


def bases(notes: list[tuple[str, dict[str, Any]]]) -> list[tuple[int, int]]:
    return [(data["base"], data["size"]) for kind, data in notes if kind == "module"]


def placed(rows: np.ndarray, modules: list[tuple[int, int]]) -> np.ndarray:
    """Rows with program counters relative to where their module lies, which differs from run to run."""
    rows = rows.copy()
    for base, size in modules:
        inside = (rows["site"] >= base) & (rows["site"] < base + size)
        rows["site"][inside] -= base
    return rows


def renamed(trace: Any) -> np.ndarray:
    """Accesses with vector registers numbered as they come in each block: the numbers are addresses of variables."""
    accesses = trace.accesses.copy()
    blocks = np.cumsum(trace.kind == Kind.LAUNCH_BEGIN)[trace.rows_of(np.arange(len(accesses)))]
    known: dict[tuple[int, int], int] = {}
    for at, number in enumerate(accesses["unused"].tolist()):
        if number > 1:
            accesses["unused"][at] = known.setdefault((int(blocks[at]), number), len(known) + 2)
    return accesses


def relative(data: dict[str, Any], modules: list[tuple[int, int]]) -> dict[str, Any]:
    data = {key: value for key, value in data.items() if key not in ("base", "path", "directory")}
    site = data.get("site", 0)
    for base, size in modules:
        if base <= site < base + size:
            data["site"] = site - base
    return data


def same(run: Runs, *words: str, **options: Any) -> dict[str, Any]:
    """A run, which is asserted to be the same with other numbers of processors."""
    first = run(1, *words, **options)
    for processors in (2, 3, 7) if words[0] == "own" else (2, 7):
        other = run(processors, *words, **options)
        for name, expected in first.items():
            found = other[name]
            if isinstance(expected, np.ndarray):
                assert np.array_equal(found, expected), (processors, name)
            else:
                assert found == expected, (processors, name)
    return first


def numbers(run: dict[str, Any], kind: type = np.float32) -> np.ndarray:
    words = run["output"].decode().rsplit(":", 1)[1].split()
    return np.array([int(word) for word in words], np.int32).view(kind).reshape(16, 64)


def test_blocks_run_in_other_processes(run: Runs) -> None:
    processes = [set(numbers(run(n, "who"), np.int32).ravel()[:BLOCKS].tolist()) for n in (1, 2)]
    assert [len(found) for found in processes] == [1, BLOCKS]


def test_clean_blocks_and_what_they_print(run: Runs) -> None:
    found = same(run, "own")
    blocks = "".join(f"block {n} " + ("odd\n" if n % 2 else "") for n in range(BLOCKS))
    assert found["output"].decode().startswith(f"begin {blocks}{blocks}code 0")
    assert numbers(found)[1, :5].tolist() == pytest.approx([64 * 2 / 3, 65 / 3, 66 / 3, 67 / 3, 68 * 2 / 3])
    assert len(found["masks"]) and found["findings"] == []


def test_bytes_that_change_without_a_word_in_the_trace(run: Runs) -> None:
    found = same(run, "untold")
    assert numbers(found, np.int32)[:2, :BLOCKS].tolist() == [list(range(7, 7 + BLOCKS))] * 2


def test_what_a_stream_of_its_own_holds_is_printed_once(run: Runs) -> None:
    said = "begin and " + "".join(f"block {n} " for n in range(BLOCKS))
    for processors in (2, 7):
        assert run(processors, "streams")["output"].decode().startswith(said + "code 0")


def test_long_loops(run: Runs) -> None:
    found = same(run, "long")
    assert len(found["rows"]) > 40_000 and (found["rows"]["flags"] & FOLDED).any()


def test_blocks_that_race(run: Runs) -> None:
    found = same(run, "same")
    assert {code for code, *_ in found["findings"]} == {"R101"}


def test_blocks_that_read_what_an_earlier_one_wrote(run: Runs) -> None:
    found = same(run, "chain")
    assert numbers(found)[5, 0] == 0 and numbers(found)[5, 4] == pytest.approx(4 / 3 * 64)


def test_sums_by_atomics(run: Runs) -> None:
    found = numbers(same(run, "sum"), np.int32)
    assert found[0, 8:14].tolist() == [1, 3, 9, 17, 32, 50]


@pytest.mark.parametrize("what", ["counted", "host"])
def test_what_blocks_leave_outside_the_chip_is_seen_by_others(run: Runs, what: str) -> None:
    found = same(run, what)
    assert numbers(found, np.int32)[0, :BLOCKS].tolist() == ([1, 2, 3, 4, 5, 6] if what == "counted" else [7] * 6)


@pytest.mark.parametrize("what", ["random fill", "late order"])
def test_what_a_run_chooses_holds_in_every_process(run: Runs, what: str) -> None:
    if what == "random fill":
        fill.choose("random")
    else:
        late.choose(Pipe.MTE2)
    try:
        found = same(run, "fresh")
    finally:
        fill.choose("poison")
        late.choose(None)
    late_rows = [data for kind, data in found["notes"] if kind == "held"]
    assert len(late_rows) == (0 if what == "random fill" else BLOCKS)
    assert len({row.tobytes() for row in numbers(found)[:BLOCKS]}) == 1
    assert numbers(found)[0].any()


@pytest.mark.parametrize("what", ["polls", "looks", "meet"])
def test_blocks_that_wait_for_others(run: Runs, what: str) -> None:
    same(run, what)


@pytest.mark.parametrize(("how", "codes"), [("0", {"R003"}), ("1", {"R003", "S201"}), ("2", {"R003", "S202"})])
def test_cores_of_a_block_that_signal_each_other(run: Runs, how: str, codes: set[str]) -> None:
    found = same(run, "pairs", how)
    assert {code for code, *_ in found["findings"]} == codes
    if how == "0":
        assert numbers(found)[15, 63] == 14 and numbers(found)[15, 5] == pytest.approx(64 * 6 / 3 + 5 / 3)
        processes = [set(numbers(run(n, "pairs", "3"), np.int32)[8:, 62].tolist()) for n in (1, 2)]
        assert [len(each) for each in processes] == [1, 4]


def test_arrays_that_only_some_blocks_declare(run: Runs) -> None:
    found = same(run, "declares")
    arrays = [data["name"] for kind, data in found["notes"] if kind == "local_array"]
    assert arrays == ["row", "second", "first"]


@pytest.mark.parametrize(
    ("what", "code"), [("refused", "L006"), ("throws", "H008"), ("crashes", "H010"), ("exits", None)]
)
def test_a_block_that_ends_the_launch_or_the_program(run: Runs, what: str, code: str | None) -> None:
    found = same(run, what)
    codes = [d.code for d in [*found["stops"], *([found["error"]] if found["error"] else [])]]
    assert codes == ([code] if code else [])
    assert found["output"].decode().startswith("begin " + "".join(f"block {n}\n" for n in range(4)))
    assert set(found["rows"]["core"].tolist()) == {0, 1, 2, 3}


def test_a_block_that_never_ends_is_named(run: Runs) -> None:
    for processors in (1, 3):
        error = run(processors, "hangs", timeout=3)["error"]
        assert error.code == "H011"
        assert error.places[0].site.path.endswith("main.asc") and "for (volatile" in line(error.places[0].site.line)
        assert "on core 3" in error.notes[0] and "core 3" in error.places[1].what


def line(number: int) -> str:
    return MAIN.splitlines()[number - 1]


PORTABLE = r"""
#include <cstdio>
#include "acl/acl.h"
#include "pto/pto-inst.hpp"
using namespace pto;
using Line = Tile<TileType::Vec, float, 1, 64>;
using Row = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 64, 1>>;
template <typename T> using Loaded = Event<Op::TLOAD, Op::TADDS>;

__global__ AICORE void AddOne(__gm__ float* x)
{
    Line line;
    TASSIGN(line, 0x0);
    Row row(x + get_block_idx() * 64);
    Event<Op::TLOAD, Op::TADDS> loaded;
    Event<Op::TADDS, Op::TSTORE_VEC> added;
    loaded = TLOAD(line, row);
    added = TADDS(line, line, 1.0f, loaded);
    TSTORE(row, line, added);
}

int main()
{
    float host[6 * 64] = {}, *x;
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtMalloc((void**)&x, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(x, sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE);
    for (int launch = 0; launch < 3; ++launch) AddOne<<<6, nullptr, nullptr>>>(x);
    aclrtSynchronizeDevice();
    aclrtMemcpy(host, sizeof host, x, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST);
#ifdef ON_HOST
    Line line;
    TASSIGN(line, 0x0);
    std::printf("left %g, ", line.data()[1]);  // what the last block left there
#endif
    std::printf("%g %g\n", host[0], host[5 * 64 + 63]);
    return 0;
}
"""


@pytest.mark.parametrize(("arch", "flags", "said"), [("a2a3", (), "3 3\n"), ("cpu", ("-DON_HOST",), "left 3, 3 3\n")])
def test_launches_go_on_where_the_last_one_ended(tmp_path: Path, arch: str, flags: tuple[str, ...], said: str) -> None:
    try:
        find_compiler()
    except UserError:
        pytest.skip("needs a C++ compiler")
    (tmp_path / "main.cpp").write_text(PORTABLE)
    program = driver.compile_program([tmp_path / "main.cpp"], arch, output=tmp_path / "program", flags=flags)
    runs = []
    for processors in (1, 3):
        jobs.choose(processors, after=0)
        with (tmp_path / "output").open("wb") as file:
            outcome = session.run(program, trace_directory=tmp_path / f"trace{processors}", stdout=file, timeout=60)
        assert (tmp_path / "output").read_text() == said
        rows = placed(outcome.trace.rows, bases(outcome.trace.notes))
        runs.append((rows.tobytes(), outcome.trace.accesses.tobytes()))
    assert runs[0] == runs[1]
