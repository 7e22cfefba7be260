"""The headers that kernels include: types, tiles, events, registers and what they leave in the trace."""

from __future__ import annotations

import ctypes
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ascsim.isa import REGISTRY
from ascsim.machine.dtypes import DTYPES, dtype
from ascsim.machine.trace import SITE_PC, Kind, Mode
from ascsim.machine.words import Pipe, Space
from compiled_headers import Compiled, compile_errors, compile_kernels, lines_of
from frontends.cpp.programs import line_of

# ---------------------------------------------------------------------------------------------------------------------
# half and bfloat16_t

NUMBERS = """
#include <cstring>
template <class T> T of(uint16_t bits) { T value; std::memcpy(&value, &bits, 2); return value; }
template <class T> uint16_t bits(T value) { uint16_t out; std::memcpy(&out, &value, 2); return out; }

template <class T> void operate(const uint16_t* a, const uint16_t* b, uint16_t* out, long n)
{
    for (long i = 0; i < n; ++i) {
        const T x = of<T>(a[i]), y = of<T>(b[i]);
        out[i] = bits(T(x + y));
        out[n + i] = bits(T(x - y));
        out[2 * n + i] = bits(T(x * y));
        out[3 * n + i] = bits(T(x / y));
        out[4 * n + i] = bits(T(-x));
        out[5 * n + i] = x < y;
        out[6 * n + i] = x == y;
    }
}
template <class T> void from_float(const float* in, uint16_t* out, long n) { while (n--) out[n] = bits(T(in[n])); }
template <class T> void to_float(const uint16_t* in, float* out, long n) { while (n--) out[n] = float(of<T>(in[n])); }

using Fallback = ascsim::Float16<5, 10>;
extern "C" {
void operate_half(const uint16_t* a, const uint16_t* b, uint16_t* out, long n) { operate<half>(a, b, out, n); }
void operate_fallback(const uint16_t* a, const uint16_t* b, uint16_t* out, long n) { operate<Fallback>(a, b, out, n); }
void operate_bf16(const uint16_t* a, const uint16_t* b, uint16_t* out, long n) { operate<bfloat16_t>(a, b, out, n); }
void from_float_half(const float* in, uint16_t* out, long n) { from_float<half>(in, out, n); }
void from_float_fallback(const float* in, uint16_t* out, long n) { from_float<Fallback>(in, out, n); }
void from_float_bf16(const float* in, uint16_t* out, long n) { from_float<bfloat16_t>(in, out, n); }
void to_float_half(const uint16_t* in, float* out, long n) { to_float<half>(in, out, n); }
void to_float_fallback(const uint16_t* in, float* out, long n) { to_float<Fallback>(in, out, n); }
void to_float_bf16(const uint16_t* in, float* out, long n) { to_float<bfloat16_t>(in, out, n); }
uint16_t minus_nan() { half value = -(0.0 / 0.0); return bits(value); }
}

template <class T> constexpr bool limits()
{
    using L = std::numeric_limits<T>;
    static_assert(L::is_specialized && L::has_infinity && L::radix == 2);
    return float(L::max()) == -float(L::lowest()) && float(L::infinity()) > float(L::max()) &&
           L::quiet_NaN() != L::quiet_NaN();
}
static_assert(limits<half>() && limits<bfloat16_t>());
static_assert(std::is_same_v<__fp16, half>);
using OfHalf = std::numeric_limits<half>;
static_assert(float(OfHalf::max()) == 65504 && float(OfHalf::epsilon()) == 0x1p-10f);
static_assert(float(OfHalf::min()) == 0x1p-14f && float(OfHalf::denorm_min()) == 0x1p-24f);
static_assert(float(std::numeric_limits<bfloat16_t>::epsilon()) == 0x1p-7f);
static_assert(float(std::numeric_limits<bfloat16_t>::min()) == 0x1p-126f);
static_assert(std::numeric_limits<half>::max_exponent == 16 && std::numeric_limits<bfloat16_t>::digits == 8);

// Constants, conversions and mixed arithmetic as with a built-in type.
constexpr half one = 1, quarter{0.25f};
constexpr bfloat16_t two = 2.0, three = one + 2.0f;
static_assert(std::is_same_v<decltype(one + quarter), half> && std::is_same_v<decltype(two * two), bfloat16_t>);
static_assert(std::is_same_v<decltype(two * 1.0f), float> && std::is_same_v<decltype(one * 1.0f), float>);
static_assert(two + 1 == 3 && three > two && -two < 0 && static_cast<int>(three) == 3 && static_cast<half>(7) == 7.0f);
static_assert(sizeof(half) == 2 && sizeof(bfloat16_t) == 2 && sizeof(hifloat8_t) == 1 && sizeof(fp4x2_e2m1_t) == 1);
static_assert(std::is_trivially_copyable_v<bfloat16_t> && std::is_trivially_default_constructible_v<bfloat16_t>);
static_assert(std::is_same_v<fp8_e4m3fn_t, float8_e4m3_t> && !std::is_same_v<fp8_e4m3fn_t, fp8_e5m2_t>);
"""
FORMATS = {"half": np.float16, "fallback": np.float16, "bf16": ml_dtypes.bfloat16}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_kernels(tmp_path_factory.mktemp("numbers"), NUMBERS, "a5").library


def _call(function: object, *arrays: np.ndarray) -> None:
    function(*[ctypes.c_void_p(a.ctypes.data) for a in arrays], ctypes.c_long(arrays[0].size))  # type: ignore[operator]


@pytest.mark.parametrize("name", FORMATS)
def test_every_value_widens_exactly(numbers: ctypes.CDLL, name: str) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    widened = np.empty(65536, np.float32)
    _call(getattr(numbers, f"to_float_{name}"), bits, widened)
    expected = bits.view(FORMATS[name]).astype(np.float32)
    np.testing.assert_array_equal(widened, expected)
    assert (np.signbit(widened) == np.signbit(expected)).all()


@pytest.mark.parametrize("name", FORMATS)
def test_floats_narrow_to_nearest_even(numbers: ctypes.CDLL, name: str) -> None:
    kind = np.dtype(FORMATS[name])
    with np.errstate(invalid="ignore"):
        values = np.arange(65536, dtype=np.uint16).view(kind).astype(np.float32)
    values = values[np.isfinite(values)]
    middles = ((values[:-1].astype(np.float64) + values[1:]) / 2).astype(np.float32)
    near = np.concatenate([np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(-np.inf))])
    random = np.random.default_rng(1).integers(0, 1 << 32, 100_000, np.uint64).astype(np.uint32).view(np.float32)
    ends = np.array([65504, 65519.996, 65520, 3.3895314e38, 3.4e38, 1e-8, 5.9604645e-8, 2.98e-8, 0.0, -0.0], np.float32)
    floats = np.concatenate([values, middles, near, random, ends, np.array([np.inf, -np.inf], np.float32)])
    narrowed = np.empty(floats.size, np.uint16)
    _call(getattr(numbers, f"from_float_{name}"), floats, narrowed)
    with np.errstate(all="ignore"):
        expected = floats.astype(kind).view(np.uint16)
    number = ~np.isnan(floats)
    np.testing.assert_array_equal(narrowed[number], expected[number])
    assert np.isnan(narrowed.view(kind)[~number].astype(np.float32)).all()


@pytest.mark.parametrize("name", FORMATS)
def test_arithmetic_rounds_once(numbers: ctypes.CDLL, name: str) -> None:
    kind = np.dtype(FORMATS[name])
    generator = np.random.default_rng(2)
    a, b = generator.integers(0, 65536, (2, 50_000)).astype(np.uint16)
    x, y = a.view(kind), b.view(kind)
    out = np.empty((7, a.size), np.uint16)
    _call(getattr(numbers, f"operate_{name}"), a, b, out.reshape(-1)[: a.size])
    with np.errstate(all="ignore"):
        results = [x + y, x - y, x * y, x / y, -x]
        less, equal = x < y, x == y
    for got, wanted in zip(out, results, strict=False):
        is_nan = np.isnan(wanted.astype(np.float32))
        np.testing.assert_array_equal(got[~is_nan], wanted.view(np.uint16)[~is_nan])
        assert np.isnan(got.view(kind)[is_nan].astype(np.float32)).all()
    np.testing.assert_array_equal(out[5], less)
    np.testing.assert_array_equal(out[6], equal)


def test_the_padding_of_sorts_is_minus_nan(numbers: ctypes.CDLL) -> None:
    assert numbers.minus_nan() & 0xFFFF == 0xFE00


# ---------------------------------------------------------------------------------------------------------------------
# Tiles and views

PTO_TYPES = """
#include <pto/pto-inst.hpp>
#include <pto/common/pto_tile.hpp>
#include <pto/common/constants.hpp>
#include <pto/npu/a2a3/TLoad.hpp>
using namespace pto;
static_assert(sizeof(AscsimOperand) == 112);

using Nd = Tile<TileType::Vec, float, 4, 64>;
static_assert(Nd::Rows == 4 && Nd::Cols == 64 && Nd::Numel == 256 && Nd::RowStride == 64 && Nd::ColStride == 1);
static_assert(Nd::ValidRow == 4 && Nd::ValidCol == 64 && Nd::GetValidRow() == 4 && Nd::GetValidCol() == 64);
static_assert(Nd::isRowMajor && !Nd::isBoxedLayout && Nd::InnerRows == 1 && Nd::InnerCols == 1);
static_assert(Nd::Loc == TileType::Vec && Nd::PadVal == PadValue::Null && std::is_same_v<Nd::DType, float>);
using Dn = Tile<TileType::Vec, half, 16, 3, BLayout::ColMajor>;
static_assert(Dn::RowStride == 1 && Dn::ColStride == 16 && !Dn::isRowMajor);
using Nz = Tile<TileType::Mat, half, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor>;
static_assert(Nz::InnerRows == 16 && Nz::InnerCols == 16 && Nz::isInnerRowMajor && is_Nz_layout<Nz>::value);
static_assert(GetTileOffset<Nz>(0, 16) == 512 && GetTileOffset<Nz>(17, 1) == 256 + 16 + 1);
static_assert(GetTileLayoutCustom<Nz>() == TileLayoutCustom::NZ && GetTileLayoutCustom<Dn>() == TileLayoutCustom::DN);
static_assert(std::is_same_v<TileLeft<half, 16, 16>, Tile<TileType::Left, half, 16, 16, BLayout::RowMajor, 16, 16,
                                                          SLayout::RowMajor, 512>>);
static_assert(TileAcc<float, 16, 16>::InnerRows == 16 && TileRight<int8_t, 32, 16>::InnerRows == 32);
static_assert(is_tile_data_v<Nd> && !is_tile_data_v<float> && is_boxed_tile<Nz> && !is_boxed_tile<Nd>);
static_assert(PadValueCustom(-1.0f) == static_cast<PadValue>(0x1BF800000));
static_assert(getCustomPadBits(PadValueCustom16(7)) == 7);

using View = GlobalTensor<half, Shape<1, 1, 2, 3, 16>, pto::Stride<96, 96, 48, 16, 1>, Layout::ND>;
static_assert(View::GetShape<3>() == 3 && View::GetStride<2>() == 48 && View::layout == Layout::ND);
static_assert(is_global_data_v<View> && std::is_same_v<View::DType, half>);
static_assert(Shape<1, -1, 2, -1, 5>(7, 9).shape[3] == 9 && Shape<1, -1, 2, -1, 5>(7, 9).shape[4] == 5);
static_assert(Shape<>(1, 2, 3, 4, 5).shape[2] == 3 && pto::Stride<-1, 1, 1, 1, 1>(8).stride[0] == 8);
static_assert(TileShape2D<float>(4, 64).shape[3] == 4 && BaseShape2D<float>(4, 64).stride[2] == 256);
static_assert(TileShape2D<half, 32, 64, Layout::NZ>::staticShape[1] == 4);
static_assert(TileShape2D<half, -1, -1, Layout::NZ>(32, 64).shape[2] == 2);
static_assert(BaseShape2D<half, 32, 64, Layout::NZ>::staticStride[1] == 512);
static_assert(BaseShape2D<float, 8, 4, Layout::DN>::staticStride[4] == 8);
static_assert(Event<Op::TLOAD, Op::TADD>::srcPipe == PIPE_MTE2);
static_assert(Event<Op::TADD, Op::TSTORE_VEC>::dstPipe == PIPE_MTE3);
static_assert(REPEAT_MAX == 255 && BLOCK_BYTE_SIZE == 32 && DYNAMIC == -1);
"""

REFUSED_TYPES = {
    "multiple of 32 bytes": "Tile<TileType::Vec, float, 1, 7> t;",
    "column of a column-major": "Tile<TileType::Vec, half, 7, 16, BLayout::ColMajor> t;",
    "valid shape of a tile lies": "Tile<TileType::Vec, float, 2, 8, BLayout::RowMajor, 3, 8> t;",
    "rows of a tile are a multiple": "TileLeft<half, 24, 16> t;",
    "fractal of a tile": "Tile<TileType::Vec, half, 1, 16, BLayout::RowMajor, 1, 16, SLayout::NoneBox, 64> t;",
    "outside its memory": "Tile<TileType::Vec, float, 64, 512> t; TASSIGN<0x20000>(t);",
    "address of a tile is a multiple of 32": "Tile<TileType::Vec, float, 1, 8> t; TASSIGN<8>(t);",
    "is assigned an integer": "Tile<TileType::Vec, float, 1, 8> t; TASSIGN(t, 1.0);",
    "pointer to its own element type": "GlobalTensor<float, Shape<>, Stride<>> g; TASSIGN(g, (int*)0);",
    "only dynamic (-1) valid rows": "Tile<TileType::Vec, float, 2, 8> t; t.SetValidRow(1);",
    "only a dynamic dimension": "GlobalTensor<float, Shape<1,1,1,1,8>, Stride<>> g; g.SetShape<4>(7);",
    "one number for each dynamic": "Shape<1, 1, 1, -1, -1> s(3);",
    "events between cores are not implemented": "Event<Op::TMOV_A2V, Op::TADD> e;",
}


def test_members_of_tiles_and_views(tmp_path: Path) -> None:
    assert not compile_errors(tmp_path, PTO_TYPES, "a2a3")


@pytest.mark.parametrize("said", REFUSED_TYPES)
def test_what_the_library_asserts_is_asserted(tmp_path: Path, said: str) -> None:
    text = f"#include <pto/pto-inst.hpp>\nusing namespace pto;\nvoid kernel() {{\n    {REFUSED_TYPES[said]}\n}}\n"
    errors = compile_errors(tmp_path, text, "a2a3", "-Wno-unused-variable", "-Wno-unused-but-set-variable")
    assert any("static assertion failed" in message and said in message for _, message in errors), errors


PTO_KERNELS = """
#include <pto/pto-inst.hpp>
using namespace pto;
using Src = Tile<TileType::Vec, half, 4, 64, BLayout::RowMajor, -1, -1>;
using Dst = Tile<TileType::Vec, half, 4, 256, BLayout::RowMajor, -1, 256, SLayout::NoneBox, 512, PadValue::Zero>;
using Idx = Tile<TileType::Vec, uint32_t, 1, 64>;
using View = GlobalTensor<half, Shape<1, 1, 1, -1, 64>, pto::Stride<1, 1, -1, 64, 1>>;

extern "C" void sort(void** a)
{
    View view(static_cast<half*>(a[0]), Shape<1, 1, 1, -1, 64>(3), pto::Stride<1, 1, -1, 64, 1>(192));
    Src src(3, 60), tmp(1, 64);
    Dst dst(3);
    Idx idx;
    TASSIGN(src, 0x400);
    TASSIGN<0x8000>(idx);
    TASSIGN(dst, reinterpret_cast<uint64_t>(src.data()) + 0x1000);
    TLOAD(src, view);                       // line 18
    TSORT32(dst, src, idx);                 // line 19
    TSORT32(dst, src, idx, tmp);            // line 20
    src.SetValidShape(2, 64);
    view.SetShape<3>(2);
    TSTORE(view, src);                      // line 23
    TSTORE<Src, View, AtomicType::AtomicAdd>(view, src);
    TSTORE<STPhase::Final>(view, src);
}

extern "C" void with_events(void** a)
{
    View view(static_cast<half*>(a[0]));
    Src src(1, 64);
    Event<Op::TLOAD, Op::TADD> first, second = TLOAD(src, view);
    Event<Op::TADD, Op::TSTORE_VEC> third;
    first = TLOAD(src, view);
    third = TADD(src, src, src, first, second);
    TSTORE(view, src, third);
    Event<Op::TADD, Op::TADD> same = TADD(src, src, src);
    TSYNC(same);
    TSYNC<Op::TADD>();
}

extern "C" void scalars(void** a)
{
    Idx idx;
    TASSIGN(idx, 0x200);
    idx.SetValue(3, 77);
    a[0] = reinterpret_cast<void*>(static_cast<uintptr_t>(idx.GetValue(3) + idx.GetElement(0, 3)));
    *reinterpret_cast<uint64_t*>(ascsim_core.memory[1]) = reinterpret_cast<uint64_t>(a[0]);
}

extern "C" void placed(void** a)
{
    View view(static_cast<half*>(a[0]));
    Src src(1, 64);
    TASSIGN(src, 0x4000);
    {
        Idx idx;
        Idx copy = idx;
        TLOAD(src, view);
    }
    Dst dst(1);
    TLOAD(dst, view);
}
"""


@pytest.fixture(scope="module")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_kernels(
        tmp_path_factory.mktemp("tiles"), PTO_KERNELS, "a2a3", "-Wno-unused-variable", "-Wno-unused-but-set-variable"
    )


def _name(issued: np.ndarray) -> str:
    return REGISTRY.definitions[issued["definition"] - 1].title


def test_operands_of_tile_instructions(tiles: Compiled) -> None:
    tiles.library.stub_start(1)
    assert tiles.run("sort", 0x7000)
    load, sort3, sort4, store, atomic, phase = tiles.issued
    assert [_name(i) for i in (load, sort3, store)] == ["TLOAD", "TSORT32", "TSTORE"]
    f16, u32 = DTYPES["f16"].code, DTYPES["u32"].code

    src, view = load["operands"][:2]
    assert (src["sort"], src["dtype"], src["space"], src["address"]) == (1, f16, Space.UB, 0x400)
    assert (src["rows"], src["cols"], src["valid_rows"], src["valid_cols"]) == (4, 64, 3, 60)
    assert (src["blayout"], src["slayout"], src["fractal"], src["pad"]) == (0, 0, 512, 0)
    assert (view["sort"], view["dtype"], view["space"], view["address"]) == (2, f16, Space.GM, 0x7000)
    assert view["shape"].tolist() == [1, 1, 1, 3, 64]
    assert view["strides"].tolist() == [1, 1, 192, 64, 1]

    dst, _, idx = sort3["operands"][:3]
    assert (dst["address"], dst["pad"], dst["valid_rows"], dst["valid_cols"]) == (0x1400, 1, 3, 256)
    assert (idx["address"], idx["dtype"], idx["valid_rows"]) == (0x8000, u32, 1)
    assert (sort3["count"], sort4["count"]) == (3, 4)
    assert sort4["operands"][3]["address"] == 0xFFFFFFFFFFFFFFFF  # tmp was never assigned

    out, stored = store["operands"][:2]
    assert out["shape"].tolist() == [1, 1, 1, 2, 64]
    assert (stored["valid_rows"], stored["valid_cols"]) == (2, 64)
    assert store["count"] == 2
    enums = [[int(o["address"]) for o in i["operands"][: i["count"]] if o["sort"] == 5] for i in (atomic, phase)]
    assert enums[0][-1] == 1 and 3 in enums[1]


def test_the_site_is_the_users_line(tiles: Compiled) -> None:
    tiles.library.stub_start(1)
    tiles.run("sort", 0x7000)
    base = _load_address(tiles)
    sites = [int(i["site"]) - base - 1 for i in tiles.issued[[0, 1, 2, 3]]]
    assert lines_of(tiles.path, sites) == [18, 19, 20, 23]


def _load_address(compiled: Compiled) -> int:
    name = compiled.path.name
    with open("/proc/self/maps") as maps:
        return min(int(row.split("-")[0], 16) for row in maps if row.rstrip().endswith(name))


def test_events_set_and_wait_flags(tiles: Compiled) -> None:
    tiles.library.stub_start(1)
    assert tiles.run("with_events", 0)
    steps = [
        (_name(i), *(int(o["address"]) for o in i["operands"][: i["count"]] if o["sort"] == 5)) for i in tiles.issued
    ]
    mte2, v, mte3 = Pipe.MTE2, Pipe.V, Pipe.MTE3
    flags = [step for step in steps if step[0] in ("set_flag", "wait_flag", "pipe_barrier")]
    first, second = flags[1][3], flags[0][3]
    assert first != second
    assert flags == [
        ("set_flag", mte2, v, second), ("set_flag", mte2, v, first), ("wait_flag", mte2, v, first),
        ("wait_flag", mte2, v, second), ("set_flag", v, mte3, 0), ("wait_flag", v, mte3, 0), ("pipe_barrier", v),
        ("pipe_barrier", v),
    ]  # fmt: skip
    names = [step[0] for step in steps]
    assert names.index("wait_flag") < names.index("TADD") < names.index("TSTORE")


def test_scalar_accesses_of_a_tile(tiles: Compiled) -> None:
    tiles.library.stub_start(1)
    assert tiles.run("scalars", 0)
    assert tiles.ub[0x200 + 12 : 0x200 + 16].view(np.uint32)[0] == 77
    assert tiles.ub[:8].view(np.uint64)[0] == 154


def test_auto_mode_places_tiles_for_their_scope(tmp_path: Path) -> None:
    auto = compile_kernels(
        tmp_path, PTO_KERNELS, "a2a3", "-D__PTO_AUTO__", "-Wno-unused-variable", "-Wno-unused-but-set-variable"
    )
    assert auto.run("placed", 0)
    placed = [values for what, values in auto.events if what == "auto tile"]
    ended = [values for what, values in auto.events if what == "auto tile end"]
    assert [p[1] for p in placed] == [512, 256, 2048]  # bytes; a copy is not placed again
    assert len(ended) == 3
    assert [e[1] for e in ended] == [512, 768, 0]  # idx, then dst before src
    assert [int(i["operands"][0]["address"]) for i in auto.issued] == [0, 768]


def test_the_host_copy_asks_the_runtime_too(tmp_path: Path) -> None:
    """Where the source pass saw no launch: the runtime says that nothing was done."""
    host = compile_kernels(
        tmp_path, PTO_KERNELS, "a2a3", "-Wno-unused-variable", "-Wno-unused-but-set-variable", side=0
    )
    assert host.run("sort", 0x7000)
    assert [_name(i) for i in host.issued][:2] == ["TLOAD", "TSORT32"]


NARROW = {
    "hifloat8_t": "hif8", "fp8_e4m3fn_t": "f8e4m3", "fp8_e5m2_t": "f8e5m2", "fp8_e8m0_t": "f8e8m0",
    "fp4x2_e2m1_t": "f4e2m1", "fp4x2_e1m2_t": "f4e1m2",
}  # fmt: skip
NARROW_TEXT = (
    """
#include "pto/pto-inst.hpp"
template <class T> void value(const uint8_t* in, double* out, long n) { while (n--) out[n] = T::FromRaw(in[n]); }
template <class T> void code(const double* in, uint8_t* out, long n) { while (n--) out[n] = T(in[n]).RawData(); }
extern "C" {
"""
    + "".join(
        f"void value_{t}(const uint8_t* in, double* out, long n) {{ value<{t}>(in, out, n); }}\n"
        f"void code_{t}(const double* in, uint8_t* out, long n) {{ code<{t}>(in, out, n); }}\n"
        for t in NARROW
    )
    + """}
template <class T> using L = std::numeric_limits<T>;
static_assert(L<hifloat8_t>::has_infinity && L<fp8_e5m2_t>::has_infinity && !L<fp8_e4m3fn_t>::has_infinity);
static_assert(IsTwinType<float4_e2m1x2_t>() && !IsTwinType<fp8_e5m2_t>() && std::is_trivially_copyable_v<hifloat8_t>);
static_assert(sizeof(hifloat8_t) == 1 && sizeof(fp4x2_e2m1_t) == 1);
extern "C" int halves()
{
    fp4x2_e2m1_t two[1] = {};
    SetProperDataPart(two, 0, fp4x2_e2m1_t(1.5));
    SetProperDataPart(two, 1, fp4x2_e2m1_t(-6));
    return two[0].RawData() == 0xf3 && double(GetProperDataPart(two, 1)) == -6 && two[0] + 1.0f == 2.5;
}
"""
)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_kernels(tmp_path_factory.mktemp("narrow"), NARROW_TEXT, "cpu", "-D__CPU_SIM").library


@pytest.mark.parametrize("name", NARROW)
def test_narrow_types_are_numbers_in_portable_programs(narrow: ctypes.CDLL, name: str) -> None:
    count = 16 if NARROW[name].startswith("f4") else 256
    codes = np.arange(count, dtype=np.uint8)
    values = np.empty(count, np.float64)
    _call(getattr(narrow, f"value_{name}"), codes, values)
    if name == "fp4x2_e1m2_t":
        expected = np.concatenate([np.arange(8) / 4, -np.arange(8) / 4])
    else:
        kind = ml_dtypes.float4_e2m1fn if count == 16 else dtype(NARROW[name]).numpy
        expected = codes.view(kind).astype(np.float64)
    np.testing.assert_array_equal(values, expected)
    again = np.empty(count, np.uint8)
    _call(getattr(narrow, f"code_{name}"), values, again)
    number = ~np.isnan(values) & ~(np.signbit(values) & (values == 0))
    np.testing.assert_array_equal(again[number], codes[number])


@pytest.mark.parametrize("name", ["hifloat8_t", "fp8_e4m3fn_t", "fp8_e5m2_t"])
def test_numbers_become_the_nearest_narrow_one(narrow: ctypes.CDLL, name: str) -> None:
    kind = dtype(NARROW[name]).numpy
    largest = float(
        np.nanmax(np.where(np.isfinite(v := np.arange(256, dtype=np.uint8).view(kind).astype(float)), v, 0))
    )
    rng = np.random.default_rng(5)
    values = np.exp(rng.uniform(np.log(1e-4), np.log(largest), 4000)) * rng.choice([-1, 1], 4000)
    values = np.concatenate([values, [largest, -largest, 1.0625, 1.1875, 2.5]]).astype(np.float32).astype(np.float64)
    codes = np.empty(values.size, np.uint8)
    _call(getattr(narrow, f"code_{name}"), values, codes)
    np.testing.assert_array_equal(codes, values.astype(np.float32).astype(kind).view(np.uint8))


def test_two_elements_share_a_byte(narrow: ctypes.CDLL) -> None:
    assert narrow.halves() == 1


# ---------------------------------------------------------------------------------------------------------------------
# Registers

REGISTER_KERNELS = """
#include "c_api/asc_simd.h"
#include "c_api/reg_compute/reg_vector.h"
#include "c_api/reg_compute/compute/reg_permute_sel.h"

static_assert(sizeof(vector_half) == 256 && alignof(vector_half) == 32 && sizeof(vector_bool) == 256);
static_assert(asc_get_vf_len() == 256 && PAT_ALLF == 15 && ST_ST == 15);

__simd_vf__ inline void weave(uint8_t* out0, uint8_t* out1, uint8_t* in0, uint8_t* in1)
{
    ascsim::VfScope scope(__func__);
    vector_uint8_t low, high;
    vector_bool mask = asc_create_mask_b8(PAT_ALL);
    asc_loadalign(low, in0);                 // line 14
    asc_loadalign(high, in1);                // line 15
    asc_intlv(low, high, low, high);         // line 16: in place
    asc_storealign(out0, low, mask);         // line 17
    asc_storealign(out1, high, mask);        // line 18
}
extern "C" void weave_kernel(void** a)
{
    asc_vf_call<weave>((uint8_t*)a[0], (uint8_t*)a[1], (uint8_t*)a[2], (uint8_t*)a[3]);
}

extern "C" void masks(void** a)
{
    uint8_t* out = (uint8_t*)a[0];
    vector_float value;
    uint32_t count = 70;
    asc_loadalign(value, (float*)a[1]);
    vector_bool full = asc_update_mask_b32(count);
    vector_bool tail = asc_update_mask_b32(count);
    asc_storealign((float*)out, value, tail);
    asc_storealign((float*)(out + 256), value, asc_create_mask_b32(PAT_M4));
    asc_storealign((float*)(out + 512), value, asc_create_mask_b32(PAT_ALLF));
    asc_storealign((float*)(out + 768), value, full);
    *(uint64_t*)(ascsim_core.memory[1] + 0x2400) = count;
}

extern "C" void moving(void** a)
{
    float* source = (float*)a[0];
    vector_float value;
    asc_loadalign_postupdate(value, source, 64);
    asc_loadalign_postupdate(value, source, 16);
    asc_storealign((float*)0x4000, value, asc_create_mask_b32(PAT_ALL));
    *(uint64_t*)(ascsim_core.memory[1] + 0x5000) = (uint64_t)source - a[0];
}

extern "C" void scalar(void** a)
{
    vector_half value;
    asc_duplicate_scalar(value, static_cast<half>(-1.5f), asc_create_mask_b16(PAT_ALL));
    asc_storealign((half*)a[0], value, asc_create_mask_b16(PAT_ALL));
}

extern "C" void same(void** a)
{
    vector_uint8_t x, y;
    asc_loadalign(y, (uint8_t*)a[0]);
    asc_intlv(x, x, y, y);
}
extern "C" void unscoped(void** a)
{
    ascsim_core.in_vector_function = 0;
    vector_uint8_t x;
    asc_loadalign(x, (uint8_t*)a[0]);
}
extern "C" void outside(void** a) { vector_uint8_t x; asc_loadalign(x, (uint8_t*)a[0]); }
extern "C" void copies(void** a)
{
    __ubuf__ auto& local = ascsim::local_array<float[64]>(ascsim::Space::UB, [] { return "local"; });
    asc_init();
    asc_copy_gm2ub_align(local, (float*)a[0], 256u);
    asc_sync_notify(PIPE_MTE2, PIPE_V, EVENT_ID3);
    *(int64_t*)ascsim_core.memory[1] = asc_get_block_idx() + block_idx;
}
extern "C" void barriers(void**)
{
    for (int i = 0; i < 3; ++i) {
        asc_mem_bar(VST_VLD);  // MARK first
    }
    ascsim_core.core = 5;
    asc_mem_bar(VST_VLD);  // MARK second
    asc_mem_bar(VLD_VST);
    asc_mem_bar(VST_VLD);
    ascsim_core.core = 0;
}
"""


@pytest.fixture(scope="module")
def registers(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    text = REGISTER_KERNELS.replace("(uint64_t)source - a[0]", "(uint64_t)source - (uint64_t)a[0]")
    return compile_kernels(
        tmp_path_factory.mktemp("registers"), text, "a5", "-Wno-unused-variable", "-Wno-unused-but-set-variable"
    )


def _start(compiled: Compiled) -> None:
    compiled.library.stub_start(1)
    compiled.library.stub_clear()
    compiled.ub[:] = np.arange(compiled.ub.size) * 7 % 251


def test_registers_run_in_place_and_leave_their_trace(registers: Compiled) -> None:
    _start(registers)
    a, b = registers.ub[0:256].copy(), registers.ub[256:512].copy()
    base = registers.ub_address
    assert registers.run("weave_kernel", 0x1000, base + 0x1100, 0, base + 256)  # offsets and pointers alike
    woven = np.stack([a, b], 1).reshape(-1)
    np.testing.assert_array_equal(registers.ub[0x1000:0x1200], woven)

    rows, accesses = registers.rows, registers.accesses
    assert rows["kind"].tolist() == [Kind.VF_BEGIN, *[Kind.INSTRUCTION] * 6, Kind.VF_END]
    assert [REGISTRY.definitions[n - 1].title for n in rows["mnemonic"][1:-1]] == [
        "asc_create_mask_b8", "asc_loadalign", "asc_loadalign", "asc_intlv", "asc_storealign", "asc_storealign",
    ]  # fmt: skip
    assert (rows["pipe"] == Pipe.V).all() and (rows["parent"] == -1).all() and (rows["flags"] == SITE_PC).all()
    assert rows["n_access"].tolist() == [0, 0, 1, 1, 0, 1, 1, 0]
    assert accesses["start"].tolist() == [0, 256, 0x1000, 0x1100]
    assert accesses["mode"].tolist() == [Mode.READ, Mode.READ, Mode.WRITE, Mode.WRITE]
    assert (accesses["length"] == 256).all() and (accesses["space"] == Space.UB).all() and (accesses["mask"] == 0).all()
    assert (accesses["align"] == 5).all() and (accesses["shape"] == 0).all()
    sites = [int(pc) - _load_address(registers) for pc in rows["site"]]
    assert lines_of(registers.path, sites[2:7]) == [14, 15, 16, 17, 18]


def test_masked_stores_record_the_bytes_they_write(registers: Compiled) -> None:
    _start(registers)
    before = registers.ub.copy()
    assert registers.run("masks", 0x2000, 0)
    value = before[:256]
    np.testing.assert_array_equal(registers.ub[0x2000 : 0x2000 + 24], value[:24])  # six lanes were left
    np.testing.assert_array_equal(registers.ub[0x2018:0x2100], before[0x2018:0x2100])
    every_fourth = np.tile(np.repeat([True, False, False, False], 4), 16)
    expected = np.where(every_fourth, value, before[0x2100:0x2200])
    np.testing.assert_array_equal(registers.ub[0x2100:0x2200], expected)
    np.testing.assert_array_equal(registers.ub[0x2200:0x2300], before[0x2200:0x2300])
    np.testing.assert_array_equal(registers.ub[0x2300:0x2400], value)
    assert registers.ub[0x2400:0x2408].view(np.uint64)[0] == 0

    stores = registers.accesses[registers.accesses["mode"] == Mode.WRITE]
    assert stores["length"].tolist() == [24, 244, 256]  # nothing at all for the empty mask
    assert stores["mask"].tolist() == [0, 1, 0]
    bits = np.unpackbits(registers.masks[0], bitorder="little").astype(bool)
    np.testing.assert_array_equal(bits, every_fourth & (np.arange(256) < 244))


def test_post_update_moves_the_pointer(registers: Compiled) -> None:
    _start(registers)
    before = registers.ub.copy()
    assert registers.run("moving", 0x100)
    np.testing.assert_array_equal(registers.ub[0x4000:0x4100], before[0x200:0x300])
    assert registers.ub[0x5000:0x5008].view(np.uint64)[0] == (64 + 16) * 4
    assert registers.accesses["start"][:2].tolist() == [0x100, 0x200]


def test_scalars_reach_the_semantics_as_their_bits(registers: Compiled) -> None:
    _start(registers)
    assert registers.run("scalar", 0x3000)
    assert (registers.ub[0x3000:0x3100].view(np.float16) == -1.5).all()


def test_one_register_for_two_results_is_refused(registers: Compiled) -> None:
    _start(registers)
    assert not registers.run("same", 0)
    assert [what for what, _ in registers.events] == ["L008"]


def test_registers_are_refused_outside_vector_functions(registers: Compiled) -> None:
    _start(registers)
    assert not registers.run("unscoped", 0)
    assert [what for what, _ in registers.events] == ["L014"]
    assert len(registers.rows) == 0


@pytest.mark.parametrize("address", [196608 + 65536 - 255, 1 << 40, -32])
def test_an_access_far_outside_ends_the_run(registers: Compiled, address: int) -> None:
    _start(registers)
    assert not registers.run("outside", address)
    what, (_, space, value, size) = registers.events[-1]
    assert (what, space, value, size) == ("fault", Space.UB, address % (1 << 64), 256)
    assert len(registers.rows) == 0


def test_an_overrun_within_the_guard_goes_on(registers: Compiled) -> None:
    _start(registers)
    assert registers.run("outside", 196608 - 32)
    assert registers.accesses["start"].tolist() == [196608 - 32]


def test_an_instruction_that_is_its_row_alone_asks_the_machine_once(registers: Compiled) -> None:
    rows_of_a_call = ctypes.c_uint32.in_dll(registers.library, "issue_rows")
    for count, calls in ((0, 6), (2, 6), (1, 3)):  # one row, no more and no less, can be written again
        _start(registers)
        rows_of_a_call.value = count
        assert registers.run("barriers")
        assert len(registers.issued) == calls
    rows_of_a_call.value = 0
    assert registers.issued["operands"]["address"][:, 0].tolist() == [1, 2, 1]
    rows = registers.rows
    assert rows["arg"].tolist() == [1, 1, 1, 1, 2, 1]
    assert rows["core"].tolist() == [0, 0, 0, 5, 5, 5]
    assert set(rows["pipe"].tolist()) == {9} and set(rows["work"].tolist()) == {3}
    sites = [int(pc) - _load_address(registers) for pc in rows["site"]]
    first, second = (line_of(REGISTER_KERNELS, mark) for mark in ("MARK first", "MARK second"))
    assert lines_of(registers.path, sites[:4]) == [first, first, first, second]


def test_copies_and_flags_go_through_the_machine(registers: Compiled) -> None:
    _start(registers)
    ctypes.c_int64.in_dll(registers.library, "issue_result").value = 5
    assert registers.run("copies", 0x1234)
    assert registers.events[0][0] == "local"
    assert registers.events[0][1] == [Space.UB, 256, 32, DTYPES["f32"].code]
    init, copy, flag, index = registers.issued
    assert [_name(i) for i in (init, flag)] == ["asc_init", "set_flag"] and _name(copy) == "asc_copy_gm2ub_align"
    assert _name(index) == "get_block_idx"
    target, source, size = copy["operands"][:3]
    assert (target["sort"], target["space"], target["dtype"]) == (3, Space.UB, DTYPES["f32"].code)
    assert int(target["address"]) == registers.ub_address
    assert (source["space"], source["address"], size["sort"], size["address"]) == (Space.GM, 0x1234, 4, 256)
    assert [int(o["address"]) for o in flag["operands"][:3]] == [Pipe.MTE2, Pipe.V, 3]
    assert registers.ub[:8].view(np.int64)[0] == 5  # the machine's answer, and block_idx is 0


@pytest.mark.parametrize("side", [0, 2])
def test_registers_do_nothing_off_the_vector_core(tmp_path: Path, side: int) -> None:
    text = """#include "c_api/asc_simd.h"
extern "C" void k(void**) {
    vector_half a, b, c, d;
    asc_intlv(a, b, c, d);
}
"""
    other = compile_kernels(tmp_path, text, "a5", "-Wno-uninitialized", "-Wno-maybe-uninitialized", side=side)
    assert other.run("k")
    assert len(other.rows) == 0


# ---------------------------------------------------------------------------------------------------------------------
# Names that are not there


ABSENT = """#include "c_api/asc_simd.h"
template <class T> void inner(T x) {
    asc_intlv(x, x, x, x);
}
void unused() {
    asc_intlv(1);
}
#if 0
void never() { asc_intlv(2); }
#endif
extern "C" void kernel(void**) {
    vector_half h{};
    inner(h);
    asc_atomic_stuff_that_nobody_has
    vector_bool m = asc_create_mask_b8(PAT_ALL);
    (void)m;
}
"""


def test_the_compiler_names_the_line_of_an_instruction_of_another_chip(tmp_path: Path) -> None:
    text = ABSENT.replace("    asc_atomic_stuff_that_nobody_has\n", "\n").replace(
        "void unused()", "static inline void unused()"
    )
    errors = compile_errors(tmp_path, text, "a2a3", "-Wno-unused-function")
    said = "ascsim L001 asc_intlv: not on a2a3; it exists on Ascend 950PR / Ascend 950DT"
    assert [line for line, message in errors if said in message] == [3]
    assert [line for line, message in errors if "ascsim L001 asc_create_mask_b8" in message] == [15]
    assert len(errors) == 2


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_it_does_so_at_every_level_of_optimisation(tmp_path: Path, level: str) -> None:
    text = """#include <pto/pto-inst.hpp>
using namespace pto;
void kernel() {
    Tile<TileType::Vec, half, 1, 64> a, b, c, d;
    TINTERLEAVE(a, b, c, d);
}
"""
    errors = compile_errors(tmp_path, text, "a2a3", level, "-Wno-unused-variable", "-Wno-unused-but-set-variable")
    assert [line for line, message in errors if "ascsim L001 TINTERLEAVE: not on a2a3" in message] == [5]


def test_a_name_that_is_not_implemented_says_so_in_all_its_forms(tmp_path: Path) -> None:
    text = """#include <pto/pto-inst.hpp>
using namespace pto;
void kernel() {
    Tile<TileType::Vec, half, 1, 64> a, b, c;
    TQUANT<QuantType::INT8_SYM>(a, b, c);
    auto event = TPOW(a, b, c);
    uint64_t control = get_ctrl();
    (void)control;
}
"""
    errors = compile_errors(tmp_path, text, "a5", "-Wno-unused-variable", "-Wno-unused-but-set-variable")
    assert [line for line, message in errors if "ascsim L012" in message and "not implemented" in message] == [5, 6, 7]


def test_operands_that_no_form_takes(tmp_path: Path) -> None:
    text = '#include "c_api/asc_simd.h"\nvoid kernel() {\n    vector_int64_t a{}, b{};\n    asc_intlv(a, b, a, b);\n}\n'
    errors = compile_errors(tmp_path, text, "a5")
    ((line, message),) = errors
    assert line == 4 and "ascsim L009 asc_intlv: no form that ascsim has on a5 takes these operands" in message
