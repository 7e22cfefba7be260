"""The acl functions: what programs get back, and what is found when they are used wrongly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ascsim.frontends.cpp import session
from ascsim.machine.fill import POISON
from ascsim.machine.trace import SITE_PC
from frontends.cpp.programs import build, line_of

MAIN = r"""
#include <map>
static void say(const char* what, long value) { std::printf("%s=%ld\n", what, value); }

static void memory()
{
    std::vector<unsigned char> host(64, 1);
    unsigned char* block = nullptr;
    say("malloc", aclrtMalloc((void**)&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    say("fresh", block[63]);
    say("aligned", (unsigned long)block % 512);
    say("set", aclrtMemset(block, 64, 0x11, 32));
    say("there", aclrtMemcpy(host.data(), 64, block, 64, ACL_MEMCPY_DEVICE_TO_HOST));
    say("low", host[31]);
    say("high", host[32]);
    unsigned char* other = nullptr;
    aclrtMalloc((void**)&other, 4096, ACL_MEM_MALLOC_NORMAL_ONLY);
    say("between", other - block);
    say("across", aclrtMemcpy(other, 4096, block, 64, ACL_MEMCPY_DEVICE_TO_DEVICE));
    say("guess", aclrtMemcpy(other + 64, 4032, host.data(), 64, ACL_MEMCPY_DEFAULT));
    unsigned char image[6] = {1, 2, 3, 4, 5, 6};
    say("rows", aclrtMemcpy2d(other, 8, image, 3, 2, 2, ACL_MEMCPY_HOST_TO_DEVICE));
    say("row1", other[8] * 100 + other[9] * 10 + (other[10] == 0x11));
    void* pinned = nullptr;
    say("pinned", aclrtMallocHost(&pinned, 100));
    say("zero", *(char*)pinned);
    say("pinned_set", aclrtMemset(pinned, 100, 5, 100));
    say("pinned_free", aclrtFreeHost(pinned));
    size_t free = 0, total = 0;
    aclrtGetMemInfo(ACL_HBM_MEM, &free, &total);
    say("used", total - free);
    say("free", aclrtFree(block));
    aclrtFree(other);
    aclrtGetMemInfo(ACL_HBM_MEM, &free, &total);
    say("used_after", total - free);
    void* again = nullptr;
    aclrtMalloc(&again, 64, ACL_MEM_MALLOC_HUGE_FIRST);
    say("reused", again == block);
    void* large = nullptr;
    say("too_large", aclrtMalloc(&large, 1ul << 40, ACL_MEM_MALLOC_HUGE_FIRST));
    std::printf("message %s\n", aclGetRecentErrMsg());
}

static void wrong()
{
    char host[256];
    char* block = device<char>(128);
    say("h2d_host", aclrtMemcpy(host, 128, host + 128, 128, ACL_MEMCPY_HOST_TO_DEVICE));      // MARK h2d_host
    say("d2h_swapped", aclrtMemcpy(block, 128, host, 128, ACL_MEMCPY_DEVICE_TO_HOST));        // MARK d2h_swapped
    say("over_block", aclrtMemcpy(block + 64, 128, host, 65, ACL_MEMCPY_HOST_TO_DEVICE));     // MARK over_block
    say("over_max", aclrtMemcpy(block, 64, host, 65, ACL_MEMCPY_HOST_TO_DEVICE));             // MARK over_max
    say("null", aclrtMemcpy(nullptr, 64, block, 64, ACL_MEMCPY_DEVICE_TO_HOST));              // MARK null
    say("kind", aclrtMemcpy(host, 64, block, 64, (aclrtMemcpyKind)77));                       // MARK kind
    say("red_zone", aclrtMemset(block + 128, 8, 0, 8));                                       // MARK red_zone
    void* pinned = nullptr;
    aclrtMallocHost(&pinned, 32);
    say("over_pinned", aclrtMemcpy(pinned, 64, block, 64, ACL_MEMCPY_DEVICE_TO_HOST));        // MARK over_pinned
    say("size_zero", aclrtMalloc((void**)&pinned, 0, ACL_MEM_MALLOC_HUGE_FIRST));             // MARK size_zero
    say("free_inside", aclrtFree(block + 1));                                                 // MARK free_inside
    say("free_host", aclrtFree(host));                                                        // MARK free_host
    say("free", aclrtFree(block));                                                            // MARK first_free
    say("free_twice", aclrtFree(block));                                                      // MARK free_twice
    say("after_free", aclrtMemset(block, 8, 0, 8));                                           // MARK after_free
    say("free_null", aclrtFree(nullptr));
    say("host_twice", aclrtFreeHost(host));                                                   // MARK host_twice
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);
    aclrtDestroyStream(stream);
    say("dead_stream", aclrtSynchronizeStream(stream));                                       // MARK dead_stream
    say("no_event", aclrtRecordEvent(host, nullptr));                                         // MARK no_event
    say("device", aclrtSetDevice(3));                                                         // MARK device
    aclrtResetDevice(0);
    say("no_device", aclrtMalloc((void**)&block, 8, ACL_MEM_MALLOC_HUGE_FIRST));              // MARK no_device
    std::printf("message %s\n", aclGetRecentErrMsg());
    say("last", aclrtGetLastError(ACL_RT_THREAD_LEVEL));
    say("last_again", aclrtGetLastError(ACL_RT_THREAD_LEVEL));
}

static void handles()
{
    aclrtStream stream = nullptr;
    aclrtEvent begin = nullptr, end = nullptr;
    say("stream", aclrtCreateStream(&stream));
    say("event", aclrtCreateEvent(&begin) + aclrtCreateEventExWithFlag(&end, ACL_EVENT_SYNC));
    float elapsed = -1;
    say("unrecorded", aclrtEventElapsedTime(&elapsed, begin, end));
    say("record", aclrtRecordEvent(begin, stream) + aclrtRecordEvent(end, stream) + aclrtStreamWaitEvent(stream, end));
    say("elapsed", aclrtEventElapsedTime(&elapsed, begin, end));
    say("not_negative", elapsed >= 0);
    aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    aclrtQueryEventStatus(end, &recorded);
    say("recorded", recorded);
    say("wait", aclrtSynchronizeEvent(end) + aclrtSynchronizeStream(stream) + aclrtSynchronizeStream(nullptr));
    say("destroy", aclrtDestroyEvent(begin) + aclrtDestroyEvent(end) + aclrtDestroyStream(stream));
    aclrtContext context = nullptr;
    say("context", aclrtCreateContext(&context, 0) + aclrtSetCurrentContext(context) + aclrtDestroyContext(context));
    uint32_t count = 0;
    int32_t number = 7;
    int64_t cores = 0, arch = 0, unknown = 0;
    aclrtGetDeviceCount(&count);
    aclrtGetDevice(&number);
    aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &cores);
    aclrtGetDeviceInfo(0, ACL_DEV_ATTR_NPU_ARCH, &arch);
    say("devices", count * 10 + number);
    say("cores", cores);
    say("arch", arch);
    say("unknown", aclrtGetDeviceInfo(0, (aclrtDevAttr)9999, &unknown));
    std::printf("soc %s\n", aclrtGetSocName());
    say("repeat", aclInit(nullptr));
    say("finalize", aclFinalize());
    say("finalize_again", aclFinalize());
    say("again", aclInit(nullptr));
    say("size", aclDataTypeSize(ACL_FLOAT16) * 10 + aclDataTypeSize(ACL_INT64));
}

static void halves()
{
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        float value = aclFloat16ToFloat((aclFloat16)bits);
        std::fwrite(&value, 4, 1, stdout);
    }
    float value;
    while (std::fread(&value, 4, 1, stdin) == 1) {
        aclFloat16 half = aclFloatToFloat16(value);
        std::fwrite(&half, 2, 1, stdout);
    }
}

int main(int argc, char** argv)
{
    std::string what = arg(argc, argv, 1);
    if (what == "halves") {
        halves();
        return 0;
    }
    aclInit(nullptr);
    aclrtSetDevice(0);
    if (what == "memory") memory();
    if (what == "wrong") wrong();
    if (what == "handles") handles();
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("acl"), {"main.cpp": MAIN})


@pytest.fixture
def run(program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """Runs a scenario: its outcome and what it printed, by name."""

    def runs(*words: str) -> tuple[session.Outcome, dict[str, int], str]:
        outcome = session.run(program, words, trace_directory=tmp_path / "trace", timeout=60)
        printed = capfd.readouterr().out
        assert (outcome.status, outcome.error) == (0, None), printed
        pairs = [row.split("=") for row in printed.splitlines() if "=" in row and " " not in row]
        return outcome, {name: int(value) for name, value in pairs}, printed

    return runs


def test_memory_is_allocated_copied_and_freed(run):
    outcome, got, printed = run("memory")
    assert got == {
        "malloc": 0, "fresh": POISON, "aligned": 0, "set": 0, "there": 0, "low": 0x11, "high": POISON, "between": 1024,
        "across": 0, "guess": 0, "rows": 0, "row1": 451, "pinned": 0, "zero": 0, "pinned_set": 0, "pinned_free": 0,
        "used": 4160, "free": 0, "used_after": 0, "reused": 0, "too_large": 207001,
    }  # fmt: skip
    assert "1099511627776 bytes of device memory are not left" in printed
    blocks = outcome.trace.noted("allocation")
    assert [(b["start"], b["size"]) for b in blocks] == [(512, 64), (1536, 4096), (6144, 64)]
    assert [f["start"] for f in outcome.trace.noted("free")] == [512, 1536]
    assert outcome.sites(blocks[1]["site"], SITE_PC).line == line_of(MAIN, "aclrtMalloc((void**)&other")
    assert not outcome.trace.noted("finding")


def test_wrong_calls_return_codes_and_are_found_at_their_lines(run):
    outcome, got, printed = run("wrong")
    assert got == {
        "h2d_host": 107016, "d2h_swapped": 107016, "over_block": 100000, "over_max": 100000, "null": 100000,
        "kind": 100000, "red_zone": 100000, "over_pinned": 100000, "size_zero": 100000, "free_inside": 207002,
        "free_host": 100000, "free": 0, "free_twice": 207002, "after_free": 100000, "free_null": 100000,
        "host_twice": 100000, "dead_stream": 107003, "no_event": 107017, "device": 107001, "no_device": 107002,
        "last": 107002, "last_again": 0,
    }  # fmt: skip
    assert "message aclrtMalloc: no device has been set" in printed
    findings = outcome.trace.noted("finding")
    at = {}
    for finding in findings:
        line = outcome.sites(finding["site"], SITE_PC).line
        at[MAIN.splitlines()[line - 1].split("MARK ")[1]] = finding
    assert len(at) == len(findings) == 18
    assert {name: finding["code"] for name, finding in at.items()} == {
        **dict.fromkeys(("h2d_host", "d2h_swapped", "over_block", "null", "red_zone"), "H001"),
        **dict.fromkeys(("over_pinned", "after_free"), "H001"),
        **dict.fromkeys(("over_max", "kind", "size_zero", "host_twice", "dead_stream", "no_event"), "H002"),
        **dict.fromkeys(("device", "no_device"), "H002"),
        **dict.fromkeys(("free_inside", "free_host", "free_twice"), "H003"),
    }
    assert "is host memory, but ACL_MEMCPY_HOST_TO_DEVICE" in at["h2d_host"]["headline"]
    assert "the destination" in at["d2h_swapped"]["headline"] and "is device memory" in at["d2h_swapped"]["headline"]
    assert "has 64 bytes left in its block, not 65" in at["over_block"]["headline"]
    assert "is byte 64 of the block of 128 bytes" in at["over_block"]["notes"][0]
    assert "65 bytes do not fit the destination's 64" in at["over_max"]["headline"]
    assert "0 bytes behind the block of 128 bytes" in at["red_zone"]["notes"][0]
    assert "has 32 bytes left in its aclrtMallocHost block" in at["over_pinned"]["headline"]
    assert at["free_host"]["severity"] == "warning"
    assert {at[name]["severity"] for name in at if name != "free_host"} == {"error"}
    (place,) = at["free_twice"]["places"]
    assert outcome.sites(place["site"], SITE_PC).line == line_of(MAIN, "MARK first_free")
    assert "is freed" in at["after_free"]["notes"][0]


def test_handles_and_queries(run):
    outcome, got, printed = run("handles")
    assert got == {
        "stream": 0, "event": 0, "unrecorded": 107006, "record": 0, "elapsed": 0, "not_negative": 1, "recorded": 1,
        "wait": 0, "destroy": 0, "context": 0, "devices": 10, "cores": 64, "arch": 3510, "unknown": 100000,
        "repeat": 100002, "finalize": 0, "finalize_again": 100037, "again": 0, "size": 28,
    }  # fmt: skip
    assert "soc Ascend950PR" in printed
    assert not outcome.trace.noted("finding")


def test_half_precision_conversions(program: Path, tmp_path: Path):
    """Against NumPy where both are finite; saturation elsewhere, as the public header says."""
    random = np.random.default_rng(5)
    values = np.concatenate(
        [
            np.arange(65536, dtype=np.uint32).astype(np.uint16).view(np.float16).astype(np.float32),
            (random.integers(0, 1 << 32, 20000, dtype=np.uint64).astype(np.uint32)).view(np.float32),
            (random.standard_normal(20000) * 10.0 ** random.uniform(-9, 5, 20000)).astype(np.float32),
            np.float32([65503.9, 65504, 65519, 65520, 1e9, np.inf, -np.inf, 2**-25, 3 * 2**-26, -(2**-25)]),
        ]
    )
    script = (
        "import sys; from pathlib import Path; from ascsim.frontends.cpp import session\n"
        "session.run(Path(sys.argv[1]), ['halves'], trace_directory=Path(sys.argv[2]))"
    )
    words = [sys.executable, "-c", script, str(program), str(tmp_path / "trace")]
    done = subprocess.run(words, input=values.tobytes(), capture_output=True, check=True)
    floats = np.frombuffer(done.stdout[: 4 * 65536], np.float32)
    halves = np.frombuffer(done.stdout[4 * 65536 :], np.uint16)
    bits = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    exact = bits.view(np.float16).astype(np.float32)
    finite = np.isfinite(exact)
    assert np.array_equal(floats[finite].view(np.uint32), exact[finite].view(np.uint32))
    assert floats[0x7C00] == 65536 and floats[0xFC00] == -65536 and floats[0x7E00] == 98304
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = values.astype(np.float16)
    inside = np.isfinite(rounded)
    assert np.array_equal(halves[inside], rounded[inside].view(np.uint16))
    saturated = np.where(np.signbit(values), 0xFBFF, 0x7BFF)
    assert np.array_equal(halves[~inside], saturated[~inside])
