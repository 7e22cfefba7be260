"""Recorded functions: their loops, run as Python, against the functions themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.isa.loops import NotRecorded, Program, affine
from ascsim.isa.semantics import arithmetic, convert, reduce
from ascsim.machine.dtypes import DTYPES
from registers import register_bytes

INTEGERS = ("u8", "i8", "u16", "i16", "u32", "i32")


def bitcast(value: Any, like: Any) -> Any:
    return np.asarray(value).view(type(like))[()]


def written(
    function: Any, arrays: list[np.ndarray], constants: tuple[Any, ...] = ()
) -> tuple[Program, list[str], list[Any]]:
    program = Program()
    taken = [program.input(f"in_{n}", a.dtype, a.size) for n, a in enumerate(arrays)]
    results = program.record(function, [*taken, *constants])
    for number, result in enumerate(results):
        where = "i" if result.size > 1 else "0"
        program.put([f"out_{number}[{where}] = {program.text(result, result.dtype)}"], result.size)
    return program, program.lines(), results


def by_loops(function: Any, arrays: list[np.ndarray], *constants: Any) -> list[np.ndarray]:
    """Run the loops in Python."""
    program, lines, results = written(function, arrays, constants)
    outs = [np.zeros(r.size, r.dtype) for r in results]
    scope: dict[str, Any] = {"np": np, "bitcast": bitcast, **program.constants}
    scope |= {f"in_{n}": a.copy() for n, a in enumerate(arrays)} | {f"out_{n}": o for n, o in enumerate(outs)}
    scope |= {name: np.full(count, 77).astype(kind) for name, kind, count in program.buffers()}
    with np.errstate(all="ignore"):
        exec(compile("\n".join(lines), "<loops>", "exec"), scope)
    for number, array in enumerate(arrays):
        np.testing.assert_array_equal(scope[f"in_{number}"].view(np.uint8), array.view(np.uint8))
    return outs


def assert_same(function: Any, arrays: list[np.ndarray], *constants: Any) -> None:
    with np.errstate(all="ignore"):
        expected = function(*arrays, *constants)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for ours, theirs in zip(by_loops(function, arrays, *constants), expected, strict=True):
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
        assert by_loops(function, [lowest])[0][0] == lowest[0]


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
    (counted,) = by_loops(lambda x, n: x + np.arange(n) * 0, [np.array([7, 8, 9])], 3)
    np.testing.assert_array_equal(counted, [7, 8, 9])


def test_several_results_and_results_that_are_constants() -> None:
    def function(x: np.ndarray) -> tuple[Any, ...]:
        return x, np.where(x > 3, x, 0), np.full_like(x, 9), np.int16(4)

    same, chosen, filled, constant = by_loops(function, [np.array([1, 5], np.int32)])
    np.testing.assert_array_equal(same, [1, 5])
    np.testing.assert_array_equal(chosen, [0, 5])
    np.testing.assert_array_equal(filled, [9, 9])
    np.testing.assert_array_equal(constant, [4])
    assert (chosen.dtype, constant.dtype) == (np.int32, np.int16)


def test_types_are_those_numpy_gives() -> None:
    eight, sixteen = np.array([200, 100], np.uint8), np.array([-1, 300], np.int16)
    assert_same(lambda a, b: a + b, [eight, sixteen])
    assert_same(lambda a, b: (a + b, a > 7, b * 2, ~a, ~(b > 0), b & True), [eight, sixteen])
    assert_same(lambda a: a.astype(np.float32) * np.float32(0.1), [eight])


def test_running_sums_counts_and_lanes_by_number() -> None:
    lanes, numbers = lanes_of("u16", 3), np.random.default_rng(4).permutation(128)
    table = np.arange(1000, 1256, dtype=np.float32)

    def scattered(x: np.ndarray, where: np.ndarray) -> tuple[np.ndarray, ...]:
        made = np.zeros_like(x)
        made[where] = x + np.uint16(1)
        made[:4] = x[4:8]
        made[-1] = x[0]
        return made, x[where], x[np.arange(128) // 2]

    assert_same(scattered, [lanes, numbers])
    assert_same(lambda x: np.cumsum((x > 9).astype(np.int64)), [lanes])
    assert_same(lambda x: np.bincount(x.astype(np.int64) & 31, None, 40), [lanes])
    assert_same(lambda x: np.take_along_axis(table, x, 0), [lanes_of("u8", 5)])
    assert_same(lambda x: np.cumsum(x)[-1] - np.cumsum(x), [numbers])


def assert_refused(function: Any) -> None:
    program = Program()
    with pytest.raises(NotRecorded):
        program.record(function, [program.input("x", np.dtype(np.float32), 64)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x > 0 else -x,
        lambda x: x + np.sum(x),
        lambda x: np.maximum.accumulate(x),
        lambda x: x.view(np.uint8),
        lambda x: np.sort(x),
        lambda x: np.sin(x),
        lambda x: x.view(np.uint32) > -1,
        lambda x: x + x[::2],
        lambda x: x[x > 0],
        lambda x: np.remainder(x, 3.0),
        lambda x: x[64:],
        lambda x: np.add(x, x, out=x),
    ],
    ids=[
        "branch", "sum", "accumulate", "narrow view", "sort", "unknown ufunc", "constant that does not fit",
        "sizes that differ", "mask", "remainder", "nothing", "out",
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused(function: Any) -> None:
    assert_refused(function)


def test_arguments_are_not_written_to() -> None:
    def function(x: Any) -> Any:
        x[0] = 1
        return x

    assert_refused(function)


def test_an_array_made_of_the_data_is_refused() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        made = np.zeros(64, np.float32)
        made[:] = x
        return made

    assert_refused(function)


# More than one loop


def test_one_loop_where_lanes_stay_in_place() -> None:
    _, lines, _ = written(arithmetic.float_maximum, [lanes_of("f32", 1), lanes_of("f32", 2)])
    assert sum(line.startswith("for ") for line in lines) == 1


@pytest.mark.parametrize("kind", ("u32", "i32", "f32"))
def test_a_tree_of_sums_is_a_loop_a_level(kind: str) -> None:
    lanes, active = lanes_of(kind, 9), (lanes_of("u32", 4) & 1).astype(np.uint8)
    assert_same(reduce.reduce_sum, [lanes, active])
    _, lines, _ = written(reduce.reduce_sum, [lanes, active])
    assert sum(line.startswith("for ") for line in lines) == 7  # 64, 32, 16, 8, 4, 2 lanes, and the result


@pytest.mark.parametrize("function", (reduce.reduce_max, reduce.reduce_min))
@pytest.mark.parametrize(("kind", "order"), [("u16", 0), ("u32", 1), ("u32", 2), ("u16", 3)])
def test_reductions(function: Any, kind: str, order: int) -> None:
    lanes = lanes_of(kind, 9)
    for active in (np.ones(lanes.size, np.uint8), lanes.astype(np.uint8) & 1, np.zeros(lanes.size, np.uint8)):
        assert_same(function, [lanes, active], order)


def test_what_is_set_is_seen_by_what_comes_later_only() -> None:
    def function(x: np.ndarray) -> tuple[Any, ...]:
        made = np.zeros_like(x)
        before = made + x
        made[1] = x[3]
        middle = made + x
        made[1] = made[1] + 1
        made[-1] = 9
        return before, middle, made, made[1]

    assert_same(function, [np.arange(8, dtype=np.int32) * 10])


def test_slices_forwards_backwards_and_of_slices() -> None:
    def function(x: np.ndarray) -> tuple[Any, ...]:
        even = x[::2]
        return x[::-1], even[1::2] + even[::2], x[3:7], (x + 1)[-4:], even.copy()

    assert_same(function, [np.arange(16, dtype=np.uint16)])


def test_scalars_are_worked_out_outside_the_loops() -> None:
    def function(x: np.ndarray, n: np.ndarray) -> tuple[Any, ...]:
        return x + n, (n + 1) * 2, x * ((n + 1) * 2)

    arrays = [np.arange(8, dtype=np.int32), np.array([5], np.int32)]
    assert_same(function, arrays)
    _, lines, _ = written(function, arrays)
    assert sum(line.startswith("for ") for line in lines) == 1


OPERATIONS = ("add", "where", "even", "odd", "turn", "argmax", "set", "scalar")


operations = st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 99), st.integers(0, 99))


@settings(deadline=None, max_examples=150)
@given(st.lists(operations, min_size=1, max_size=14))
def test_any_order_of_operations_gives_what_numpy_gives(plan: list[tuple[str, int, int]]) -> None:
    def function(a: Any, b: Any) -> tuple[Any, ...]:
        made: list[Any] = [a, b]
        scalars: list[Any] = [a[0]]

        def alike(first: int, second: int) -> tuple[Any, Any]:
            one = made[first % len(made)]
            same = [m for m in made if m.size == one.size]
            return one, same[second % len(same)]

        for operation, first, second in plan:
            x, y = alike(first, second)
            match operation:
                case "add":
                    made.append(x + y)
                case "where":
                    made.append(np.where(x > y, x, scalars[second % len(scalars)]))
                case "even" | "odd" if x.size > 2:
                    made.append(x[(operation == "odd") :: 2])
                case "turn":
                    made.append(x[::-1])
                case "argmax":
                    scalars.append(y[np.argmax(x)])
                case "set":
                    made.append(np.full_like(x, 3))
                    made[-1][first % x.size] = scalars[second % len(scalars)]
                    if second % 2:
                        made[-1][second % x.size] = 5
                case "scalar":
                    scalars.append(scalars[first % len(scalars)] + x[second % x.size])
        return *made, *scalars

    rng = np.random.default_rng(len(plan))
    arrays = [rng.integers(-9, 9, 16).astype(np.int32) for _ in range(2)]
    assert_same(function, arrays)


def test_affine() -> None:
    assert [affine(*x) for x in ((1, 0), (2, 0), (1, 3), (4, 1), (0, 5), (0, 0), (2, 3, "j"), (2, 3, "4"))] == [
        "i", "2 * i", "i + 3", "4 * i + 1", "5", "0", "2 * j + 3", "11",
    ]  # fmt: skip
