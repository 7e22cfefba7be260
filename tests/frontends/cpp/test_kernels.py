"""C++ kernels without a host program, called from Python with arrays."""

from __future__ import annotations

import ctypes
import io
from contextlib import redirect_stdout
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import ascsim
from ascsim.diagnostics import UserError
from ascsim.frontends import launch
from ascsim.frontends.cpp import kernels
from ascsim.frontends.cpp.driver import CompileError
from ascsim.frontends.cpp.kernels import Library, load
from frontends.cpp.programs import line_of

ADD = r"""
#include <pto/pto-inst.hpp>
using namespace pto;

// One block adds 16 rows of 64.
__global__ AICORE void add(__gm__ float* out, __gm__ float* x, __gm__ float* y)
{
    using Data = Tile<TileType::Vec, float, 16, 64>;
    using Global = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1024, 1024, 1024, 64, 1>>;
    const int first = 1024 * get_block_idx();
    Data a, b, c;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x1000);
    TASSIGN(c, 0x2000);
    Global xs(x + first), ys(y + first), outs(out + first);
    TLOAD(a, xs);
    TLOAD(b, ys);
#ifndef FORGET
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
#endif
    TADD(c, a, b);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(outs, c);
}
"""

MANY = r"""
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include "kernel_operator.h"
#include "many.hpp"

struct Tiling { int32_t rows; double scale; };
enum Mode : int16_t { PLAIN, FANCY };
using Element = half;

extern "C" __global__ __aicore__ void scalars(__gm__ double* out, bool b, int8_t i8, uint16_t u16, int i,
                                              unsigned long long u64, float f, double d, half h, const bfloat16_t bf,
                                              Mode mode, Tiling tiling)
{
    const double values[] = {
        double(b), double(i8), double(u16), double(i), double(u64 >> 60), double(f), d, double(h), double(float(bf)),
        double(mode), tiling.rows * tiling.scale};
    for (int k = 0; k < 11; ++k) out[k] = values[k];
}
namespace maths {
__global__ __aicore__ void twice(__gm__ Element* out, __gm__ const Element* in, uint32_t count)
{
    for (uint32_t k = 0; k < count; ++k) out[k] = Element(2 * float(in[k]));
}
}
namespace {
__global__ __vector__ void step(__gm__ int32_t* out, __gm__ int32_t* in)
{
    out[0] = in ? in[0] + 1 : -1;
    out[1] = out == in;
}
__global__ __aicore__ void bytes(GM_ADDR out, __gm__ void* in, __gm__ Tiling* tiling)
{
    out[0] = static_cast<__gm__ uint8_t*>(in)[1];
    tiling->rows += 1;
}
}
__global__ __vector__ void past(__gm__ uint8_t* source, __gm__ uint8_t* target)
{
    asc_init();
    __ubuf__ uint8_t local[64];
    asc_copy_gm2ub_align(local, source + 32, 64);
    asc_sync_notify(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    asc_sync_wait(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    asc_copy_ub2gm_align(target, local, 64);
}
__global__ __aicore__ void crash(__gm__ int* out)
{
    out[0] = 7;
    *(volatile int*)8 = 1;  // MARK crash
}
__global__ __aicore__ void leave(__gm__ int* out)
{
    out[0] = 7;
    std::exit(0);
}
__global__ __aicore__ void refused(__gm__ int* out, int event)
{
    out[0] = 1;
    set_flag(PIPE_MTE2, PIPE_V, (event_t)event);
    out[0] = 2;
}
__global__ __aicore__ void never() { for (;;) asm volatile(""); }
__global__ __aicore__ void thrower() { throw std::runtime_error("lost"); }
__global__ __aicore__ void speak(int number) { printf("block %d says %d\n", (int)get_block_idx(), number); }
__global__ __aicore__ void dynamic(__gm__ uint64_t* out) { out[0] = ascsim_core.dynamic_ub; }
template <class T> __global__ __aicore__ void generic(__gm__ T* out) { out[0] = 1; }
namespace one { __global__ __aicore__ void twin(__gm__ int* out) { out[0] = 1; } }
namespace two { __global__ __aicore__ void twin(__gm__ int* out) { out[0] = 2; } }
#if defined(FORGOTTEN)
__global__ __aicore__ void conditional() {}
#endif
"""
HEADER = r"""
#pragma once
__global__ __aicore__ inline void in_header(__gm__ int* out) { out[0] = 3; }
"""

X = np.arange(2048, dtype=np.float32).reshape(32, 64)
I32 = np.zeros(1, np.int32)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Library:
    place = tmp_path_factory.mktemp("kernels")
    (place / "many.hpp").write_text(HEADER)
    (place / "other.cpp").write_text(
        '#include "many.hpp"\n__global__ __aicore__ void other(__gm__ int* p) { p[0] = 4; }\n'
    )
    (place / "many.cpp").write_text(MANY)
    return built([place / "many.cpp", place / "other.cpp"], "a5")


def built(*args, **keywords) -> Library:
    """A library; skips the test without a compiler."""
    try:
        return load(*args, **keywords)
    except UserError as error:
        if "no C++ compiler" in str(error):
            pytest.skip("needs a C++ compiler")
        raise


@pytest.mark.parametrize("arch", ["a2a3", "a5", "cpu"])
def test_a_tile_kernel_adds_in_two_blocks(tmp_path, arch):
    source = tmp_path / "add.cpp"
    source.write_text(ADD)
    out = np.zeros_like(X)
    run = built(str(source), arch=arch).add[2](out, X, X[::-1])
    assert np.array_equal(out, X + X[::-1])
    assert (run.ok, run.kernel, run.profile.name, run.sync) == (True, "add", arch, "manual")
    assert run.trace.noted("launch")[0]["blocks"] == 2
    assert [(note["name"], note["size"]) for note in run.trace.noted("allocation")] == [
        ("out", 8192), ("x", 8192), ("y", 8192),
    ]  # fmt: skip


def test_a_finding_raises_and_the_results_are_there(tmp_path):
    source = tmp_path / "add.cpp"
    source.write_text(ADD)
    kernel = built(source, "a5", ["-DFORGET"]).add
    out = np.zeros_like(X)
    with pytest.raises(ascsim.KernelError, match=r"add\.cpp") as caught:
        kernel(out[:16], X[:16], X[:16])
    assert np.array_equal(out[:16], 2 * X[:16]) and not out[16:].any()
    codes = {found.code for found in caught.value.run.diagnostics}
    assert codes and not caught.value.run.ok
    run = kernel.options(raise_on_error=False)(out[:16], X[:16], X[:16])
    assert {found.code for found in run.diagnostics} == codes


def test_in_auto_mode_the_tool_places_and_synchronises(tmp_path):
    source = tmp_path / "add.cpp"
    left_out = ("TASSIGN", "set_flag", "wait_flag")
    source.write_text("\n".join(row for row in ADD.splitlines() if not row.strip().startswith(left_out)))
    out = np.zeros_like(X)
    run = built(source, "a5", sync="auto").add[2](out, X, X)
    assert np.array_equal(out, 2 * X) and run.sync == "auto"


def test_scalars_of_each_kind(many):
    out = np.zeros(11)
    tiling = np.array((6, 0.25), np.dtype([("rows", "i4"), ("scale", "f8")], align=True))
    assert many.scalars(out, True, -128, 65535, np.int64(-7), 2**64 - 1, 1.1, 0.1, 0.333, 3.14159, 1, tiling[()]).ok
    want = [1, -128, 65535, -7, 15, np.float32(1.1), 0.1, np.float16(0.333), ml_dtypes.bfloat16(3.14159), 1, 1.5]
    assert out.tolist() == [float(value) for value in want]

    class Tiling(ctypes.Structure):
        _fields_ = (("rows", ctypes.c_int32), ("scale", ctypes.c_double))

    for other in (Tiling(3, 0.5), bytes(Tiling(3, 0.5))):
        many.scalars(out, np.False_, 0, 0, True, 0, 1, np.float16(2), 3, np.inf, -1, other)
        assert out.tolist() == [0, 0, 0, 1, 0, 1, 2, 3, np.inf, -1, 1.5]


def test_element_types_are_known_behind_typedefs(many):
    x = np.arange(8, dtype=np.float16)
    out = np.zeros((2, 4), np.float16)
    many.twice(out, x, 8)
    assert np.array_equal(out.ravel(), 2 * x)
    with pytest.raises(UserError, match=r"in takes an array of float16, not of float32; convert it with .astype"):
        many.twice(out, x.astype(np.float32), 8)


def test_arrays_of_any_shape_are_updated_if_writeable(many):
    frozen = np.array([5], np.int32)
    frozen.flags.writeable = False
    columns = np.zeros((2, 3), np.int32)
    many.step(columns[:, 1], frozen)
    assert columns.tolist() == [[0, 6, 0], [0, 0, 0]]
    many.past.options(raise_on_error=False)(frozen, np.zeros(64, np.uint8))
    many.step(frozen.repeat(2), np.array(5, np.int32))
    still = np.array([1, 2], np.int32)
    still.flags.writeable = False
    many.step(still, frozen)
    assert still.tolist() == [1, 2] and frozen.tolist() == [5]


def test_one_array_for_two_parameters_is_one_block(many):
    both = np.array([5, 0], np.int32)
    run = many.step(both, both)
    assert both.tolist() == [6, 1]
    assert len(run.trace.noted("allocation")) == 1


def test_an_untouched_array_does_not_undo_one_that_it_overlaps(many):
    whole = np.array([5, 0, 0, 8], np.int32)
    many.step(whole[:2], whole)
    assert whole.tolist() == [6, 0, 0, 8]


def test_null_pointers_and_empty_arrays(many):
    out = np.zeros(2, np.int32)
    many.step(out, None)
    assert out.tolist() == [-1, 0]
    assert many.twice(np.zeros(0, np.float16), np.zeros((3, 0), np.float16), 0).ok


def test_pointers_to_bytes_take_every_array_and_structs_take_records(many):
    out, records = np.zeros(4, np.complex64), np.zeros(2, np.dtype([("rows", "i4"), ("scale", "f8")], align=True))
    many.bytes(out, np.array([0x0102], np.int16), records)
    assert out.view(np.uint8)[0] == 1
    assert records["rows"].tolist() == [1, 0]
    with pytest.raises(UserError, match="tiling points to items of 16 bytes"):
        many.bytes(out, out, np.zeros(4, np.int32))


@pytest.mark.parametrize(("position", "value", "message"), [
    (0, 3, "out is a pointer and takes a NumPy array (or None), not 3"),
    (0, [1.0], "not list"),
    (0, np.zeros(11, object), "not of Python objects"),
    (0, np.zeros(11, ">f8"), "takes an array of float64, not of >f8"),
    (1, 2, "b is a bool and takes True or False, not 2"),
    (2, 128, "i8 is int8_t and takes a whole number from -128 to 127, not 128"),
    (3, -1, "from 0 to 65535, not -1"),
    (4, 1.0, "i is int32_t and takes a whole number from -2147483648 to 2147483647, not 1.0"),
    (4, np.zeros(1, np.int32), "not an array of int32"),
    (5, None, "not None"),
    (6, "1", "f is float and takes a number, not str"),
    (6, 1e39, "f is float, which does not reach to 1e+39"),
    (8, 65520, "h is half, which does not reach to 65520"),
    (11, b"short", "takes 16 bytes (bytes, a ctypes structure, a NumPy record), not 5 bytes"),
    (11, np.zeros(2), "not an array of float64"),
])  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(many, position, value, message):
    args = [np.zeros(11), False, 0, 0, 0, 0, 0, 0, 0, 0, 0, bytes(16)]
    args[position] = value
    with pytest.raises(UserError) as caught:
        many.scalars(*args)
    assert message in str(caught.value)
    assert "void scalars(double* out, bool b, int8_t i8," in str(caught.value)


def test_wrong_counts_and_blocks_are_refused(many):
    with pytest.raises(
        UserError, match=r"step takes 2 arguments, not 1\. The kernel is void step\(int32_t\* out, int32_t"
    ):
        many.step(I32)
    with pytest.raises(UserError, match="never takes 0 arguments, not 1"):
        many.never(I32)
    with pytest.raises(UserError, match="1 to 65535 blocks, not 0"):
        many.step[0](I32, I32)
    with pytest.raises(UserError, match="the number of blocks, not str"):
        many.step["2"](I32, I32)
    with pytest.raises(UserError, match="not sync"):
        many.step.options(sync="auto")


def test_the_library_lists_its_kernels(many):
    assert {"scalars", "twice", "other", "in_header"} <= set(dir(many))
    assert not {"generic", "twin", "conditional"} & set(dir(many))
    assert repr(many.step) == "<kernel void step(int32_t* out, int32_t* in)>"
    assert "many.cpp, other.cpp for a5: scalars, twice, step" in repr(many)
    assert not hasattr(many, "nothing") and hasattr(many, "step")


@pytest.mark.parametrize(("name", "message"), [
    ("nothing", r"many.cpp, other.cpp defines no kernel nothing. It can call scalars, twice, step"),
    ("generic", r"generic \(.*many.cpp:\d+\) is a template"),
    ("twin", r"twin is the name of several kernels \(.*many.cpp:\d+, .*many.cpp:\d+\)"),
    ("conditional", r"conditional \(.*many.cpp:\d+\) has no code in this library: an #if leaves it out for a5"),
])  # fmt: skip
def test_names_that_cannot_be_called_are_explained(many, name, message):
    with pytest.raises(UserError, match=message):
        getattr(many, name)


def test_kernels_of_headers_and_of_several_sources(many):
    out = np.zeros(1, np.int32)
    many.in_header(out)
    assert out[0] == 3
    many.other(out)
    assert out[0] == 4


def test_a_crash_is_an_error_of_the_launch(many):
    out = np.zeros(1, np.int32)
    run = many.crash.options(raise_on_error=False)(out)
    found = run.diagnostics[0]
    assert (found.code, out[0]) == ("H010", 0)
    assert found.places[0].site.line == line_of(MANY, "MARK crash")
    assert found.notes == ("It was in the kernel crash, on core 0.",)
    with pytest.raises(ascsim.KernelError, match="SIGSEGV"):
        many.crash(out)


def test_a_kernel_that_ends_the_process(many):
    out = np.zeros(1, np.int32)
    run = many.leave.options(raise_on_error=False)(out)
    assert (run.diagnostics[0].code, out[0]) == ("H013", 0)
    assert run.diagnostics[0].places[0].site.path == __file__


def test_a_refusal_stops_the_kernel_where_it_is(many):
    out = np.zeros(1, np.int32)
    with pytest.raises(ascsim.KernelError, match="event"):
        many.refused(out, 8)
    assert out[0] == 1
    run = many.refused.options(raise_on_error=False)(out, 0)
    assert out[0] == 2 and not run.trace.noted("refused")


def test_bounds_name_the_parameter(many):
    source, target = np.arange(64, dtype=np.uint8), np.zeros(64, np.uint8)
    with pytest.raises(ascsim.KernelError) as caught:
        many.past(source, target)
    found = next(found for found in caught.value.run.diagnostics if found.code == "B004")
    assert any("source of 64 bytes" in note for note in found.notes)
    assert np.array_equal(target[:32], source[32:])


def test_time_limits_hold(many):
    run = many.never.options(timeout=1, raise_on_error=False)()
    assert [found.code for found in run.diagnostics] == ["H011"]


def test_findings_of_the_launch_stand_at_the_line_of_the_caller(many):
    run = many.thrower.options(raise_on_error=False)()
    assert run.diagnostics[0].code == "H008" and "lost" in run.diagnostics[0].headline
    site = run.diagnostics[0].places[0].site
    assert site.path == __file__
    assert "many.thrower" in Path(__file__).read_text().splitlines()[site.line - 1]


def test_kernels_print_to_standard_output(many, capfd):
    many.speak[2](42)
    assert capfd.readouterr().out == "block 0 says 42\nblock 1 says 42\n"
    with redirect_stdout(io.StringIO()) as text:
        many.speak(43)
    assert text.getvalue() == "block 0 says 43\n"


def test_dynamic_memory_is_an_option(many):
    out = np.zeros(1, np.uint64)
    many.dynamic.options(dynamic_ub=96)(out)
    assert out[0] == 96


def test_an_observer_sees_the_launches_and_sets_the_defaults(tmp_path):
    source = tmp_path / "k.cpp"
    source.write_text("__global__ __aicore__ void k(__gm__ int* out) { out[0] = 1; }\n")
    seen: list[launch.Run] = []
    launch.observe(seen.append, "a5")
    try:
        run = built(source).k(np.zeros(1, np.int32))
    finally:
        launch.observe(None)
    assert seen == [run] and run.profile.name == "a5"


def test_a_changed_source_is_compiled_again_and_old_libraries_stay(tmp_path):
    source = tmp_path / "k.cpp"
    out = np.zeros(1, np.int32)
    libraries = []
    for text in ("void k(__gm__ int* out) { out[0] = 1; }", "void k(__gm__ int* out, int more) { out[0] = more; }"):
        source.write_text(f"__global__ __aicore__ {text}\n")
        libraries.append(built(source))
    libraries[1].k(out, 5)
    assert out[0] == 5
    libraries[0].k(out)
    assert out[0] == 1


def test_sources_that_cannot_be_loaded(tmp_path):
    with pytest.raises(UserError, match=r"there is no file nowhere.cpp"):
        load("nowhere.cpp")
    with pytest.raises(UserError, match="no source"):
        load([])
    source = tmp_path / "k.cpp"
    source.write_text("int k;\n__global__ __aicore__ void broken() { nothing(); }\n")
    with pytest.raises(UserError, match="sync is"):
        load(source, sync="never")
    with pytest.raises(CompileError, match=r"k\.cpp:2:.*nothing"):
        built(source, "a5")
    source.write_text("int k;\n")
    with pytest.raises(UserError, match=r"k\.cpp defines no kernels: a kernel is"):
        _ = built(source, "a5").k


def test_the_package_offers_load_before_and_after_its_first_use():
    assert ascsim.load is kernels.load
    assert ascsim.load is kernels.load
