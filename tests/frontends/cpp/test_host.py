"""Launches, operands and on-chip memory of compiled kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ascsim.frontends.cpp import session
from ascsim.machine.fill import POISON
from ascsim.machine.trace import ACCESS, SITE_PC, Kind, Mode
from ascsim.machine.words import Pipe, Space
from frontends.cpp.programs import build, count_common_as_own, line_of

MAIN = r"""
namespace {
struct Shape { int64_t scale; char name[8]; };

__global__ void copy_kernel(int32_t* out, int32_t* in, int count)
{
    int block = (int)block_index();
    copy(GM2UB, 1, 64, 0, in + block * count, count * 4);
    flag(SET_FLAG, 4, 5, 0);
    flag(WAIT_FLAG, 4, 5, 0);
    copy(UB2GM, 0, out + block * count, 1, ascsim_core.memory[1] + 64, count * 4);
}
__global__ void by_value(int32_t* out, Shape shape, float f, int32_t shift)
{
    out[0] = (int32_t)(shape.scale * f) + shift;
    out[1] = shape.name[1];
    shift = 99;  // a copy: the next block sees the caller's value
    out[2 + ascsim_core.block] = shift;
}
__global__ void event_kernel(int event, int32_t* out)
{
    if (ascsim_core.block == 1) flag(SET_FLAG, 4, 1, event);  // MARK refused
    out[ascsim_core.block] = 1;
}
__global__ void look(uint8_t* out)
{
    out[0] = ascsim_core.memory[1][0];
    out[1] = ascsim_core.memory[1][ascsim_core.capacity[1] - 1];
    ascsim_core.memory[1][0] = 7;
    out[2] = ascsim_core.side;
    out[3] = (uint8_t)ascsim_core.dynamic_ub;
    out[4] = (uint8_t)(ascsim_core.capacity[1] >> 16);
}
__global__ void arrays(uint64_t* out)
{
    static char declared[3];
#pragma GCC unroll 2
    for (int round = 0; round < 2; ++round) {
        auto* first = (char*)ascsim_local_array(1, 100, 32, 3, "first", declared);
        auto* second = (char*)ascsim_local_array(1, 64, 64, 1, "second", declared + 1);
        auto* elsewhere = (char*)ascsim_local_array(2, 64, 32, 1, "elsewhere", declared + 2);
        out[0] = first - (char*)ascsim_core.memory[1];
        out[1] = second - (char*)ascsim_core.memory[1];
        out[2] = elsewhere - (char*)ascsim_core.memory[2];
        copy(GM2UB, 1, second, 0, out, 32);
    }
}
__global__ void too_many(int32_t* out)
{
    static char declared[2];
    ascsim_local_array(1, 200 * 1024, 32, 1, "big", declared);
    ascsim_local_array(1, 100 * 1024, 32, 1, "too_big", declared + 1);
    out[0] = 1;
}
__global__ void tiles(uint64_t* out)
{
    char* base = (char*)ascsim_core.memory[1];
    auto* a = (char*)ascsim_auto_tile(1, 100, 32, 1);
    auto* b = (char*)ascsim_auto_tile(1, 64, 32, 1);
    ascsim_auto_tile_end(1, a);
    auto* c = (char*)ascsim_auto_tile(1, 96, 32, 1);
    auto* d = (char*)ascsim_auto_tile(1, 200, 32, 1);
    out[0] = a - base; out[1] = b - base; out[2] = c - base; out[3] = d - base;
    copy(GM2UB, 1, c, 0, out, 32);
    copy(UB2GM, 0, out + 8, 1, c, 32);
}
__global__ void thrower(int32_t*) { throw std::runtime_error("no such thing"); }
__global__ void stray(int which, int32_t* host)
{
    if (which == 0) copy(GM2UB, 1, 0, 0, host, 32);
    if (which == 1) copy(GM2UB, 1, 0, 0, (char*)nullptr, 32);
    if (which == 2) copy(GM2UB, 1, 0x90000, 0, host, 32);
    if (which == 3) copy(GM2UB, 1, host, 0, host, 32);
}
__global__ void far_away() { ascsim_fault_access(GM2UB, 1, 0x123456, 256); }
__global__ void add_tiles(float* out)
{
    AscsimOperand tile = operand(ASCSIM_TILE, 1, 1, 0);
    tile.rows = tile.valid_rows = 2;
    tile.cols = tile.valid_cols = 16;
    tile.fractal = 512;
    AscsimOperand operands[3] = {tile, tile, tile};
    operands[1].address = (uint64_t)ascsim_core.memory[1] + 4096;
    operands[2].address = 8192;
    float* a = (float*)(ascsim_core.memory[1] + 4096);
    float* b = (float*)(ascsim_core.memory[1] + 8192);
    for (int i = 0; i < 32; ++i) { a[i] = i; b[i] = 100; }
    issue(TADD, 3, operands);
    std::memcpy(out, ascsim_core.memory[1], 128);
}
template <class T> __global__ void typed(T* out) { out[0] = (T)sizeof(T); }
__global__ __cube__ void only_cube(int32_t* out) { out[0] = ascsim_core.side; }
__global__ __mix__(1, 2) void mixed(int32_t* out)
{
    int at = 3 * ascsim_core.block + (ascsim_core.side == 2 ? 0 : 1 + ascsim_core.subblock);
    out[at] = 100 * ascsim_core.core + 10 * ascsim_core.side + ascsim_core.subblocks;
}
}  // namespace
int other_unit(int32_t* out);

int main(int argc, char** argv)
{
    std::string what = arg(argc, argv, 1);
    aclInit(nullptr);
    aclrtSetDevice(0);
    auto* out = device<int32_t>(256);
    aclrtMemset(out, 1024, 0, 1024);
    aclError code = 0;
    if (what == "copy") {
        int blocks = std::atoi(argv[2]);
        std::vector<int32_t> in(64);
        for (int i = 0; i < 64; ++i) in[i] = 1000 + i;
        auto* from = device<int32_t>(64);
        aclrtMemcpy(from, 256, in.data(), 256, ACL_MEMCPY_HOST_TO_DEVICE);
        copy_kernel<<<blocks, 0>>>(out, from, 16);
    } else if (what == "value") {
        by_value<<<2, nullptr, nullptr>>>(out, Shape{20, "abc"}, 1.5f, 7);
    } else if (what == "refused") {
        event_kernel<<<3>>>(8, out);  // MARK launch
        code = aclrtSynchronizeDevice();
        std::printf("%s\n", aclGetRecentErrMsg());
    } else if (what == "look") {
        look<<<2, 48>>>((uint8_t*)out);
    } else if (what == "arrays") {
        arrays<<<2>>>((uint64_t*)out);
    } else if (what == "too_many") {
        too_many<<<1>>>(out);
    } else if (what == "tiles") {
        tiles<<<1>>>((uint64_t*)out);
    } else if (what == "throw") {
        thrower<<<1>>>(out);
    } else if (what == "stray") {
        int32_t host[8] = {};
        for (int which = 0; which < 4; ++which) stray<<<1>>>(which, which > 1 ? out : host);
    } else if (what == "far") {
        far_away<<<1>>>();
    } else if (what == "add") {
        add_tiles<<<1>>>((float*)out);
    } else if (what == "blocks") {
        typed<<<0>>>(out);
        typed<<<65536>>>(out);
        code = aclrtSynchronizeDevice();
        typed<<<65535>>>(out);
    } else if (what == "units") {
        typed<int32_t><<<1>>>(out);
        typed<int64_t><<<1>>>((int64_t*)(out + 2));
        other_unit(out + 4);
    } else if (what == "sides") {
        only_cube<<<1>>>(out);
        mixed<<<2>>>(out + 1);
    } else if (what == "outside") {
        flag(SET_FLAG, 4, 1, 0);
        std::printf("alive\n");
    }
    if (code == 0) code = aclrtSynchronizeDevice();
    std::vector<int32_t> got(256);
    aclrtMemcpy(got.data(), 1024, out, 1024, ACL_MEMCPY_DEVICE_TO_HOST);
    std::printf("code %d:", code);
    for (int i = 0; i < 48; ++i) std::printf(" %d", got[i]);
    std::printf("\n");
    aclrtResetDevice(0);
    aclFinalize();
    return 0;
}
"""
# A second unit with a kernel of the same name in its own anonymous namespace.
OTHER = r"""
namespace {
template <class T> __global__ void typed(T* out) { out[0] = 77; }
}
int other_unit(int32_t* out)
{
    typed<int32_t><<<1>>>(out);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("host"), {"main.asc": MAIN, "other.asc": OTHER})


@pytest.fixture
def run(program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Runs a scenario: its outcome, the code of the synchronisation, the numbers it printed."""
    count_common_as_own(program, monkeypatch)

    def runs(*words: str) -> tuple[session.Outcome, int, list[int]]:
        outcome = session.run(program, words, trace_directory=tmp_path / "trace", timeout=60)
        printed = capfd.readouterr()
        outcome.printed = printed.out + printed.err  # type: ignore[attr-defined]
        assert (outcome.status, outcome.error) == (0, None), outcome.printed  # type: ignore[attr-defined]
        last = printed.out.splitlines()[-1]
        code, numbers = last.removeprefix("code ").split(":")
        return outcome, int(code), [int(word) for word in numbers.split()]

    return runs


@pytest.mark.parametrize("blocks", [1, 3])
def test_blocks_run_in_order_and_leave_their_rows(run, blocks):
    outcome, code, numbers = run("copy", str(blocks))
    assert code == 0
    wanted = [1000 + i for i in range(16 * blocks)]
    assert numbers == wanted[:48] + [0] * (48 - 16 * blocks)
    rows = outcome.trace.rows
    kinds = [Kind.LAUNCH_BEGIN, 0, 0, Kind.SET_FLAG, Kind.WAIT_FLAG, 0, Kind.LAUNCH_END]
    assert rows["kind"].tolist() == kinds * blocks
    assert rows["core"].tolist() == [block for block in range(blocks) for _ in kinds]
    assert (rows["flags"] == SITE_PC).all()
    note = outcome.trace.noted("launch")[0]
    assert (note["number"], note["kernel"], note["blocks"], note["side"]) == (1, "copy_kernel", blocks, "aiv")
    assert note["line"] == line_of(MAIN, "copy_kernel<<<blocks")
    names = [outcome.trace.mnemonics[m] for m in rows["mnemonic"][rows["kind"] == Kind.SET_FLAG].tolist()]
    assert names == ["set_flag"] * blocks


def test_accesses_name_the_bytes_and_pointers_of_either_kind(run):
    outcome, _, _ = run("copy", "1")
    accesses = outcome.trace.accesses
    assert accesses.dtype == ACCESS
    block = outcome.trace.noted("allocation")[1]
    read, write = (accesses[accesses["mode"] == mode] for mode in (Mode.READ, Mode.WRITE))
    assert read["start"].tolist() == [block["start"], 64]  # from GM by pointer, from UB by pointer
    assert write["start"].tolist() == [64, outcome.trace.noted("allocation")[0]["start"]]  # to UB by offset
    assert read["space"].tolist() == [Space.GM, Space.UB]
    assert set(accesses["length"].tolist()) == {64}
    assert outcome.trace.rows["pipe"][2] == Pipe.MTE2


def test_arguments_are_packed_by_value(run):
    _, code, numbers = run("value")
    assert code == 0
    assert numbers[:4] == [37, ord("b"), 99, 99]


def test_a_refusal_stops_the_kernel_but_not_the_program(run):
    outcome, code, numbers = run("refused")
    assert code == 507035
    assert numbers[:3] == [1, 0, 0]  # block 0 ran, block 1 stopped, block 2 never began
    assert "event id 8" in outcome.printed
    (stop,) = outcome.stops()
    assert stop.code == "L006" and "event id 8 is out of range" in stop.headline
    assert stop.places[0].site.line == line_of(MAIN, "MARK refused")
    assert stop.places[0].site.path.endswith("main.asc")
    (note,) = outcome.trace.noted("refused")
    assert (note["block"], note["launch"]) == (1, 1)
    kinds = outcome.trace.rows["kind"].tolist()
    assert kinds == [Kind.LAUNCH_BEGIN, Kind.LAUNCH_END] * 2  # a refused instruction leaves no row


def test_every_block_finds_fresh_memory(run):
    outcome, _, numbers = run("look")
    found = np.array(numbers, np.int32).view(np.uint8)[:5].tolist()
    assert found == [POISON, POISON, 1, 48, 4]  # of the second block: the first one wrote 7
    assert outcome.trace.noted("fill")[0]["with"] == "poison"


def test_local_arrays_have_one_address_each(run):
    outcome, code, numbers = run("arrays")
    assert code == 0
    assert np.array(numbers[:6], np.int32).view(np.int64).tolist() == [0, 128, 0]
    notes = [(n["name"], n["space"], n["start"], n["size"], n["dtype"]) for n in outcome.trace.noted("local_array")]
    assert notes == [("first", 1, 0, 100, "bf16"), ("second", 1, 128, 64, "f32"), ("elsewhere", 2, 0, 64, "f32")]
    assert outcome.trace.objects[0]["name"] == "second"  # the operand that points into it


def test_arrays_beyond_the_memory_stop_the_kernel(run):
    outcome, code, numbers = run("too_many")
    assert (code, numbers[0]) == (507035, 0)
    (stop,) = outcome.stops()
    assert stop.code == "H007" and "too_big of 102400 bytes does not fit UB" in stop.headline


def test_auto_tiles_share_memory_and_are_synchronised(run):
    outcome, _, numbers = run("tiles")
    assert np.array(numbers[:8], np.int32).view(np.int64).tolist() == [0, 128, 0, 192]
    assert [note["sync"] for note in outcome.trace.noted("launch")] == ["auto"]
    kinds = outcome.trace.rows["kind"].tolist()
    assert kinds == [Kind.LAUNCH_BEGIN, 0, Kind.SET_FLAG, Kind.WAIT_FLAG, 0, Kind.LAUNCH_END]


def test_an_exception_in_a_kernel_is_told(run):
    outcome, code, _ = run("throw")
    assert code == 507035
    (stop,) = outcome.stops()
    assert stop.code == "H008" and "no such thing" in stop.headline


def test_stray_pointers_are_explained(run):
    outcome, code, _ = run("stray")
    assert code == 507035
    host, null, large, other = outcome.stops()
    assert {stop.code for stop in (host, null, large, other)} == {"H006"}
    assert "pointer to host memory" in host.notes[0]
    assert "null pointer" in null.notes[0] and "src is no address in GM" in null.headline
    assert "dst is no address in UB" in large.headline
    assert "It is 0x90000." in large.notes[0] and "too large" in large.notes[0]
    assert "is in GM" in other.notes[0]


def test_a_register_access_far_outside_is_a_fault(run):
    outcome, code, _ = run("far")
    assert code == 507035
    (stop,) = outcome.stops()
    assert stop.code == "M001" and "256 bytes at 0x123456" in stop.headline


def test_tiles_are_decoded(run):
    outcome, code, numbers = run("add")
    assert code == 0
    assert np.array(numbers[:32], np.int32).view(np.float32).tolist() == [100.0 + i for i in range(32)]
    objects = outcome.trace.objects
    assert [(o["type"], o["address"], o["rows"], o["cols"]) for o in objects] == [
        ("tile", 0, 2, 16), ("tile", 4096, 2, 16), ("tile", 8192, 2, 16),
    ]  # fmt: skip


def test_impossible_numbers_of_blocks_are_findings(run):
    outcome, code, numbers = run("blocks")
    assert code == 107000
    findings = outcome.trace.noted("finding")
    assert [f["code"] for f in findings] == ["H004", "H004"]
    assert len(outcome.trace.noted("not_run")) == 2
    assert "typed<<<65536, ...>>>" in findings[1]["headline"]
    assert outcome.sites(findings[0]["site"], SITE_PC).line == line_of(MAIN, "typed<<<0>>>")
    assert numbers[0] == 4
    assert np.count_nonzero(outcome.trace.rows["kind"] == Kind.LAUNCH_END) == 65535


def test_kernels_of_one_name_in_two_units_stay_apart(run):
    _, _, numbers = run("units")
    assert numbers[:5] == [4, 0, 8, 0, 77]


def test_the_kernel_says_which_cores_run_it(run):
    outcome, code, numbers = run("sides")
    assert code == 0
    assert numbers[0] == 2
    assert numbers[1:7] == [22, 112, 212, 322, 412, 512]
    cube, mixed = outcome.trace.noted("launch")
    assert (cube["side"], cube["cores"]) == ("aic", [["aic", 0]])
    assert (mixed["side"], mixed["cores"]) == ("mix", [["aic", 0], ["aiv", 0], ["aiv", 1]])


def test_an_instruction_in_host_code_does_nothing(run):
    outcome, _, _ = run("outside")
    (finding,) = outcome.trace.noted("finding")
    assert finding["code"] == "H002" and "host code" in finding["headline"]
    assert "alive" in outcome.printed
    assert len(outcome.trace.rows) == 0
