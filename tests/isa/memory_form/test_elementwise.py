"""Lane-wise arithmetic, logic and shifts on UB: values, and the bytes that masks and strides choose."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.machine.dtypes import dtype
from ascsim.machine.trace import Mode
from harness import Bench

RNG = np.random.default_rng(7)


def numbers(kind: str, count: int) -> np.ndarray:
    made = RNG.integers(-100, 100, count) if dtype(kind).kind == "i" else RNG.normal(0, 3, count)
    return made.astype(dtype(kind).numpy)


def of_count(name: str, kinds: tuple[str, ...], count: int, *scalars: float) -> tuple[list[np.ndarray], np.ndarray]:
    """(what the operands held, dst afterwards) of a form with a count on A2/A3; dst is the first operand."""
    bench = Bench("a2a3")
    held = [numbers(kind, count + 40) for kind in kinds]
    pointers = [bench.pointer(kind, data) for kind, data in zip(kinds, held, strict=True)]
    bench.issue(name, *pointers, *scalars, count)
    found = bench.load(pointers[0], count + 40)
    assert np.array_equal(found[count:], held[0][count:])
    assert not bench.findings()
    return held, found[:count]


BINARY: dict[str, Callable[..., np.ndarray]] = {
    "asc_add": np.add,
    "asc_sub": np.subtract,
    "asc_mul": np.multiply,
    "asc_max": np.maximum,
    "asc_min": np.minimum,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("kind", ("f16", "f32", "i16", "i32"))
def test_two_vectors(name: str, kind: str) -> None:
    for count in (1, 200):
        (_, a, b), found = of_count(name, (kind,) * 3, count)
        assert np.array_equal(found, BINARY[name](a, b)[:count])


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("kind", ("f16", "f32", "i16", "i32"))
def test_a_vector_and_a_number(name: str, kind: str) -> None:
    (_, a), found = of_count(f"{name}_scalar", (kind,) * 2, 70, 3)
    assert np.array_equal(found, BINARY[name](a, np.array(3, a.dtype))[:70])


@pytest.mark.parametrize("kind", ("f16", "f32"))
def test_products_that_are_added(kind: str) -> None:
    def once(value: np.ndarray) -> np.ndarray:
        return value.astype(dtype(kind).numpy)

    (d, a, b), found = of_count("asc_fma", (kind,) * 3, 90)
    assert np.array_equal(found, once((a.astype(float) * b + d).astype(np.float32))[:90])
    (d, a, b), found = of_count("asc_mul_add", (kind,) * 3, 90)
    assert np.array_equal(found, once((a.astype(float) * d + b).astype(np.float32))[:90])
    (d, a, b), found = of_count("asc_mul_add_relu", (kind,) * 3, 90)
    assert np.array_equal(found, np.maximum(once((a.astype(float) * d + b).astype(np.float32)), 0)[:90])
    (d, a), found = of_count("asc_axpy", (kind,) * 2, 90, 1.5)
    assert np.array_equal(found, once((a.astype(float) * 1.5 + d).astype(np.float32))[:90])


def test_a_product_of_halves_is_added_to_floats() -> None:
    (d, a, b), found = of_count("asc_fma", ("f32", "f16", "f16"), 100)
    assert np.array_equal(found, (a.astype(float) * b + d).astype(np.float32)[:100])
    (d, a), found = of_count("asc_axpy", ("f32", "f16"), 100, 0.25)
    assert np.array_equal(found, (a.astype(float) * 0.25 + d).astype(np.float32)[:100])


UNARY = {
    "asc_abs": np.abs,
    "asc_exp": np.exp,
    "asc_relu": lambda x: np.maximum(x, 0),
    "asc_rcp": lambda x: 1 / x,
    "asc_sqrt": lambda x: np.sqrt(np.abs(x)),
    "asc_log": lambda x: np.log(np.abs(x)),
    "asc_rsqrt": lambda x: 1 / np.sqrt(np.abs(x)),
}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("kind", ("f16", "f32"))
def test_one_vector(name: str, kind: str) -> None:
    bench = Bench("a2a3")
    data = np.abs(numbers(kind, 100)) if name in ("asc_sqrt", "asc_log", "asc_rsqrt") else numbers(kind, 100)
    src, dst = bench.pointer(kind, data), bench.pointer(kind, count=100)
    bench.issue(name, dst, src, 100)
    want = UNARY[name](data.astype(np.float64)).astype(np.float32).astype(data.dtype)
    assert np.array_equal(bench.load(dst, 100), want)


def test_bits_and_shifts() -> None:
    (_, a, b), found = of_count("asc_and", ("i16",) * 3, 33)
    assert np.array_equal(found, (a & b)[:33])
    (_, a, b), found = of_count("asc_or", ("i16",) * 3, 33)
    assert np.array_equal(found, (a | b)[:33])
    (_, a), found = of_count("asc_not", ("i16",) * 2, 33)
    assert np.array_equal(found, ~a[:33])
    (_, a), found = of_count("asc_shiftleft", ("i32",) * 2, 33, 5)
    assert np.array_equal(found, a[:33] << 5)
    (_, a), found = of_count("asc_shiftright", ("i16",) * 2, 33, 2)
    assert np.array_equal(found, a[:33] >> 2)
    (_, a), found = of_count("asc_shiftright_round", ("i16",) * 2, 33, 2)
    assert np.array_equal(found, (a[:33].astype(int) + 2) >> 2)
    with pytest.raises(Refused, match="distance is 17"):
        of_count("asc_shiftleft", ("i16",) * 2, 33, 17)


def test_unsigned_lanes_shift_zeros_in() -> None:
    bench = Bench("a2a3")
    src, dst = bench.pointer("u16", [0x8000, 0xFFFF] * 16), bench.pointer("u16", count=32)
    bench.issue("vshr_unsigned", dst, src, 15, 1, 1, 1, 8, 8)
    assert (bench.load(dst, 32) == 1).all()


def test_narrowing_sums_round_and_stop_at_their_limits() -> None:
    bench = Bench("a2a3")
    a, b = bench.pointer("f16", [100, 100, 0.5, -7, 1.25]), bench.pointer("f16", [100, 0.5, 1, 1, 1.25])
    dst = bench.pointer("i8", count=32)
    bench.issue("vaddreluconv_f162s8", dst, a, b, 1, 1, 1, 1, 4, 8, 8)
    assert bench.load(dst, 5).tolist() == [127, 100, 2, 0, 2]
    bench.issue("vmulconv_f162s8", dst, a, b, 1, 1, 1, 1, 4, 8, 8)
    assert bench.load(dst, 5).tolist() == [127, 50, 0, -7, 2]
    bench.issue("vmulconv_f162u8", bench.pointer("u8", at=dst.offset), a, b, 1, 1, 1, 1, 4, 8, 8)
    assert bench.load(dst, 5).view(np.uint8).tolist() == [255, 50, 0, 0, 2]


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_masks_and_strides_choose_the_bytes(data: st.DataObject) -> None:
    """Against a loop over repeats, blocks and lanes; the trace has the very bytes that are read and written."""
    kind = data.draw(st.sampled_from(("f32", "i16")))
    size, repeat = dtype(kind).size, data.draw(st.integers(0, 4))
    blocks = [data.draw(st.integers(0 if n else 1, 3)) for n in range(3)]
    repeats = [data.draw(st.integers(0 if n else 24, 30)) for n in range(3)]
    high, low = data.draw(st.integers(0, (1 << 64) - 1)), data.draw(st.integers(0, (1 << 64) - 1))
    bench = Bench("a2a3")
    operands = [bench.pointer(kind, RNG.integers(0, 99, 12000 // size), at=n * 16384) for n in range(3)]
    before = bench.memory().copy()
    bench.issue("set_vector_mask", high, low)
    bench.issue("vadd", *operands, repeat, *blocks, *repeats)
    want, touched = before.copy(), {Mode.READ: np.zeros(before.size, bool), Mode.WRITE: np.zeros(before.size, bool)}
    view = want.view(dtype(kind).numpy)
    for r in range(repeat):
        for lane in range(256 // size):
            if not (high << 64 | low) >> lane & 1:
                continue
            at = [
                p.offset + 32 * (r * repeats[n] + lane * size // 32 * blocks[n]) + lane * size % 32
                for n, p in enumerate(operands)
            ]
            view[at[0] // size] = view[at[1] // size] + view[at[2] // size]
            for n, byte in enumerate(at):
                touched[Mode.READ if n else Mode.WRITE][byte : byte + size] = True
    assert np.array_equal(bench.memory(), want)
    for mode, bytes_ in touched.items():
        assert np.array_equal(bench.traced(mode), bytes_)


def test_a_repeat_stride_of_0_adds_up() -> None:
    bench = Bench("a2a3")
    data = numbers("i32", 64 * 5)
    src, total = bench.pointer("i32", data), bench.pointer("i32", count=64)
    bench.issue("vadd", total, src, total, 5, 1, 1, 1, 0, 8, 0)
    assert np.array_equal(bench.load(total, 64), data.reshape(5, 64).sum(0))
    assert not bench.findings()


def test_partial_overlap_is_told() -> None:
    bench = Bench("a2a3")
    src = bench.pointer("f32", numbers("f32", 256))
    bench.issue("vadds", src + 8, src, 1.0, 1, 1, 1, 8, 8)
    assert bench.findings() == ["VECTOR-1"]
    bench.issue("asc_add_scalar", src, src, 1.0, 200)
    bench.issue("asc_add_scalar", src + 8, src, 1.0, 200)
    bench.issue("asc_add_scalar_sync", src, src + 64, 1.0, 64)
    assert bench.findings() == ["VECTOR-1"] * 2


def test_a_count_leaves_the_mask_behind_in_normal_mode() -> None:
    bench = Bench("a2a3")
    src = bench.pointer("f32", numbers("f32", 300))
    bench.issue("asc_abs", src, src, 300)
    assert bench.core.state.mask == (0, 300)
    assert not bench.core.state.counter_mode
    trace = bench.trace()
    assert [int(row["parent"]) for row in trace.rows] == [-1, 0, 0, 0, 0]


def test_the_sync_form_ends_with_a_barrier_on_all_pipes() -> None:
    bench = Bench("a2a3")
    src = bench.pointer("f32", numbers("f32", 300))
    bench.issue("asc_exp_sync", src, src, 300)
    assert bench.trace().rows["pipe"].tolist()[-1] == 6
