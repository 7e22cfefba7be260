"""Traced functions: the statements of one lane against the array function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascsim.isa.lanewise import NotLanewise, trace
from ascsim.isa.semantics import arithmetic, convert
from ascsim.machine.dtypes import DTYPES
from registers import register_bytes

INTEGERS = ("u8", "i8", "u16", "i16", "u32", "i32")


def bitcast(value: Any, like: Any) -> Any:
    return np.asarray(value).view(type(like))[()]


def by_lanes(function: Any, arrays: list[np.ndarray], *constants: Any) -> list[np.ndarray]:
    """Run the traced statements in Python, lane by lane."""
    inputs = [(f"x{i}", a.dtype) for i, a in enumerate(arrays)]
    recorded, results = trace(function, [*inputs, *constants])
    code = compile("\n".join(recorded.lines), "<trace>", "exec")
    lanes = []
    for i in range(max(a.size for a in arrays)):
        names = {f"x{n}": a[i if a.size > 1 else 0] for n, a in enumerate(arrays)}
        scope = {"np": np, "bitcast": bitcast, "i": i, **recorded.constants, **names}
        with np.errstate(all="ignore"):
            exec(code, scope)
        lanes.append([scope[r.name] for r in results])
    return [np.array([lane[n] for lane in lanes], r.dtype) for n, r in enumerate(results)]


def assert_same(function: Any, arrays: list[np.ndarray], *constants: Any) -> None:
    with np.errstate(all="ignore"):
        expected = function(*arrays, *constants)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for ours, theirs in zip(by_lanes(function, arrays, *constants), expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours.view(f"u{ours.itemsize}"), theirs.view(f"u{theirs.itemsize}"))


def lanes_of(kind: str, seed: int) -> np.ndarray:
    return register_bytes(DTYPES[kind], np.random.default_rng(seed)).view(DTYPES[kind].numpy)


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize(
    "function",
    [arithmetic.add, arithmetic.subtract, arithmetic.multiply, arithmetic.maximum, arithmetic.minimum, arithmetic.less,
     arithmetic.greater_equal, arithmetic.not_equal],
)  # fmt: skip
def test_integers_wrap_and_compare_as_in_numpy(function: Any, kind: str) -> None:
    assert_same(function, [lanes_of(kind, 1), lanes_of(kind, 2)])


@pytest.mark.parametrize("kind", ("i8", "i16", "i32"))
def test_the_most_negative_integer_stays(kind: str) -> None:
    lowest = np.array([np.iinfo(DTYPES[kind].numpy).min, -1, 5], DTYPES[kind].numpy)
    for function in (arithmetic.negate, arithmetic.absolute):
        assert_same(function, [lowest])
        assert by_lanes(function, [lowest])[0][0] == lowest[0]


@pytest.mark.parametrize("function", [arithmetic.float_maximum, arithmetic.float_minimum, arithmetic.equal])
def test_floats_keep_their_zeros_and_nans(function: Any) -> None:
    a, b = lanes_of("f32", 3), lanes_of("f32", 4)
    assert np.isnan(a).any() and (a == 0).any()
    assert_same(function, [a, b])


def test_bits_move_between_types() -> None:
    assert_same(convert.f16_bits_to_f32, [lanes_of("f16", 5).view(np.uint16)])
    for mode in (convert.RINT, convert.ROUND, convert.FLOOR, convert.CEIL, convert.TRUNC, convert.ODD):
        for saturate in (False, True):
            assert_same(convert.f32_to_f16_bits, [lanes_of("f32", 6)], mode, saturate)


def test_constant_arrays_are_tables_by_lane() -> None:
    assert_same(lambda x: x + np.arange(64, dtype=np.uint32), [lanes_of("u32", 7)])
    (counted,) = by_lanes(lambda x, n: x + np.arange(n) * 0, [np.array([7, 8, 9])], 3)
    np.testing.assert_array_equal(counted, [7, 8, 9])


def test_several_results_and_results_that_are_constants() -> None:
    def function(x: np.ndarray) -> tuple[Any, ...]:
        return x, np.where(x > 3, x, 0), np.full_like(x, 9), np.int16(4)

    same, chosen, filled, constant = by_lanes(function, [np.array([1, 5], np.int32)])
    np.testing.assert_array_equal(same, [1, 5])
    np.testing.assert_array_equal(chosen, [0, 5])
    np.testing.assert_array_equal(filled, [9, 9])
    np.testing.assert_array_equal(constant, [4, 4])
    assert (chosen.dtype, constant.dtype) == (np.int32, np.int16)


def test_types_are_those_numpy_gives() -> None:
    eight, sixteen = np.array([200, 100], np.uint8), np.array([-1, 300], np.int16)
    assert_same(lambda a, b: a + b, [eight, sixteen])
    assert_same(lambda a, b: (a + b, a > 7, b * 2, ~a, ~(b > 0), b & True), [eight, sixteen])
    assert_same(lambda a: a.astype(np.float32) * np.float32(0.1), [eight])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x > 0 else -x,
        lambda x: x + np.sum(x),
        lambda x: x[::2],
        lambda x: np.maximum.accumulate(x),
        lambda x: x.view(np.uint8),
        lambda x: np.sort(x),
        lambda x: np.sin(x),
        lambda x: x.view(np.uint32) > -1,
    ],
    ids=["branch", "sum", "slice", "accumulate", "narrow view", "sort", "unknown ufunc", "constant that does not fit"],
)
def test_what_is_no_function_of_lanes_is_refused(function: Any) -> None:
    with pytest.raises(NotLanewise):
        trace(function, [("x", np.dtype(np.float32))])


def test_an_array_made_of_the_data_is_refused() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        made = np.zeros(4, np.float32)
        made[:] = x
        return made

    with pytest.raises((NotLanewise, ValueError, TypeError)):
        trace(function, [("x", np.dtype(np.float32))])
