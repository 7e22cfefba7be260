"""The three ways in give the same bits: one shared set of cases, each written in Python, ``.pto`` and C++.

A case is a tile program: inputs are loaded, one instruction runs, the output is stored, with flags between. The texts
are made from one description, so a difference is a front end's and not the case's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import ascsim
from ascsim import Pipe, profiles
from ascsim.frontends import ptoas
from ascsim.machine.dtypes import DType, dtype

RNG = np.random.default_rng(20261201)


@dataclass(frozen=True)
class TileSpec:
    """A tile of the program; ``valid`` columns of ``cols``."""

    name: str
    kind: str
    rows: int
    cols: int
    address: int
    valid: int = 0

    @property
    def dtype(self) -> DType:
        return dtype(self.kind)

    @property
    def valid_cols(self) -> int:
        return self.valid or self.cols


@dataclass(frozen=True)
class Case:
    """One instruction on tiles: operands in the order of each way in (``cpp`` may differ), and what comes out."""

    name: str
    archs: tuple[str, ...]
    inputs: tuple[TileSpec, ...]
    outputs: tuple[TileSpec, ...]
    python: Callable[[dict[str, Any]], None]
    pto: str
    cpp: str
    scratch: tuple[TileSpec, ...] = ()
    data: dict[str, np.ndarray] = field(default_factory=dict)
    want: Callable[..., Any] | None = None

    @property
    def tiles(self) -> tuple[TileSpec, ...]:
        return (*self.inputs, *self.outputs, *self.scratch)

    def arrays(self) -> dict[str, np.ndarray]:
        """Fresh arguments by name."""
        made = {t.name: self.data[t.name].astype(t.dtype.numpy) for t in self.inputs}
        return made | {t.name: np.zeros((t.rows, t.valid_cols), t.dtype.numpy) for t in self.outputs}


def run_python(case: Case, arch: str) -> dict[str, np.ndarray]:
    def body(**arguments: Any) -> None:
        tiles = {
            t.name: ascsim.tile(t.kind, t.rows, t.cols, at=t.address, valid=(t.rows, t.valid_cols), name=t.name)
            for t in case.tiles
        }
        for spec in case.inputs:
            ascsim.tload(tiles[spec.name], arguments[spec.name])
        ascsim.set_flag(Pipe.MTE2, Pipe.V, 0)
        ascsim.wait_flag(Pipe.MTE2, Pipe.V, 0)
        case.python(tiles)
        ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
        for spec in case.outputs:
            ascsim.tstore(arguments[spec.name], tiles[spec.name])

    from ascsim.frontends.launch import launch

    arrays = case.arrays()
    run = launch(case.name, body, profiles.find(arch), 1, arrays)
    assert run.diagnostics == [], run.report()
    return arrays


def pto_text(case: Case) -> str:
    def tile_type(t: TileSpec) -> str:
        return (
            f"!pto.tile_buf<loc=vec, dtype={t.dtype.asm_names[0]}, rows={t.rows}, cols={t.cols}, v_row={t.rows}, "
            f"v_col={t.valid_cols}, blayout=row_major, slayout=none_box, fractal=512, pad=0>"
        )

    used = sorted({0, 1} | {n for t in case.tiles for n in (t.rows, t.valid_cols)})
    lines = [f"    %c{n} = arith.constant {n} : index" for n in used]
    named = (*case.inputs, *case.outputs)
    for t in named:
        shape, element = f"{t.rows}x{t.valid_cols}", t.dtype.asm_names[0]
        view, part = f"!pto.tensor_view<{shape}x{element}>", f"!pto.partition_tensor_view<{shape}x{element}>"
        extent = f"[%c{t.rows}, %c{t.valid_cols}]"
        lines.append(
            f"    %{t.name}_v = pto.make_tensor_view %{t.name}, shape = {extent}, strides = [%c{t.valid_cols}, %c1] : {view}"
        )
        lines.append(
            f"    %{t.name}_p = pto.partition_view %{t.name}_v, offsets = [%c0, %c0], sizes = {extent} : {view} -> {part}"
        )
    for t in case.tiles:
        lines.append(f"    %{t.name}_a = arith.constant {t.address} : i64")
        lines.append(f"    %{t.name}_t = pto.alloc_tile addr = %{t.name}_a : {tile_type(t)}")

    def part_type(t: TileSpec) -> str:
        return f"!pto.partition_tensor_view<{t.rows}x{t.valid_cols}x{t.dtype.asm_names[0]}>"

    for t in case.inputs:
        lines.append(f"    pto.tload ins(%{t.name}_p : {part_type(t)}) outs(%{t.name}_t : {tile_type(t)})")
    lines += [
        "    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
        "    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
    ]
    types = {f"T_{t.name}": tile_type(t) for t in case.tiles}
    lines.append("    " + case.pto.format(**types, **{t.name: f"%{t.name}_t" for t in case.tiles}))
    lines += [
        "    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]",
        "    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]",
    ]
    for t in case.outputs:
        lines.append(f"    pto.tstore ins(%{t.name}_t : {tile_type(t)}) outs(%{t.name}_p : {part_type(t)})")
    arguments = ", ".join(f"%{t.name}: !pto.ptr<{t.dtype.asm_names[0]}>" for t in named)
    body = "\n".join(lines)
    return f"module {{\n  func.func @kernel({arguments}) {{\n{body}\n    return\n  }}\n}}\n"


def run_pto(case: Case, arch: str) -> dict[str, np.ndarray]:
    from ascsim.frontends.ptoas.kernel import loads

    arrays = case.arrays()
    run = loads(pto_text(case), f"{case.name}.pto").kernel().run(profiles.find(arch), 1, arrays)
    assert run.diagnostics == [], run.report()
    assert run.sync == "manual"
    return arrays


def cpp_text(cases: list[Case]) -> str:
    functions = []
    for case in cases:
        lines = []
        named = (*case.inputs, *case.outputs)
        for t in case.tiles:
            c_type = t.dtype.c_names[0]
            lines.append(
                f"    Tile<TileType::Vec, {c_type}, {t.rows}, {t.cols}, BLayout::RowMajor, {t.rows}, {t.valid_cols}> {t.name};"
            )
            lines.append(f"    TASSIGN({t.name}, {t.address:#x});")
        for t in named:
            size = t.rows * t.valid_cols
            shape = f"Shape<1, 1, 1, {t.rows}, {t.valid_cols}>, Stride<{size}, {size}, {size}, {t.valid_cols}, 1>"
            lines.append(f"    GlobalTensor<{t.dtype.c_names[0]}, {shape}> {t.name}_g(gm_{t.name});")
        lines += [f"    TLOAD({t.name}, {t.name}_g);" for t in case.inputs]
        lines += ["    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);", "    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);"]
        lines.append(f"    {case.cpp};")
        lines += ["    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);", "    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);"]
        lines += [f"    TSTORE({t.name}_g, {t.name});" for t in case.outputs]
        arguments = ", ".join(f"__gm__ {t.dtype.c_names[0]}* gm_{t.name}" for t in named)
        body = "\n".join(lines)
        functions.append(f"__global__ AICORE void {case.name}({arguments})\n{{\n{body}\n}}\n")
    return "#include <pto/pto-inst.hpp>\nusing namespace pto;\n\n" + "\n".join(functions)


def run_cpp(library: Any, case: Case) -> dict[str, np.ndarray]:
    arrays = case.arrays()
    run = getattr(library, case.name)[1](*arrays.values())
    assert run.diagnostics == [], run.report()
    return arrays


def floats(rows: int, cols: int, kind: str = "f32") -> np.ndarray:
    return RNG.standard_normal((rows, cols)).astype(np.float32).astype(dtype(kind).numpy)


def column_numbers(rows: int, cols: int) -> np.ndarray:
    return np.tile(np.arange(cols, dtype=np.uint32), (rows, 1))


def sorted_pairs(values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    rows, cols = values.shape
    out = np.zeros((rows, cols, 2), np.uint32)
    for row in range(rows):
        for begin in range(0, cols, 32):
            block = slice(begin, min(begin + 32, cols))
            order = np.argsort(-values[row, block].astype(np.float64), kind="stable")
            bits = values[row, block][order].view(f"u{values.dtype.itemsize}")
            out[row, block, 0], out[row, block, 1] = bits, indices[row, block][order]
    return out.reshape(rows, 2 * cols).view(values.dtype)


ALL = ("a2a3", "a5", "cpu")
CASES = [
    Case(
        "add_half", ALL,
        (TileSpec("a", "f16", 4, 64, 0, 50), TileSpec("b", "f16", 4, 64, 0x1000, 50)),
        (TileSpec("c", "f16", 4, 64, 0x2000, 50),),
        lambda t: ascsim.tadd(t["c"], t["a"], t["b"]),
        "pto.tadd ins({a}, {b} : {T_a}, {T_b}) outs({c} : {T_c})", "TADD(c, a, b)",
        data={"a": floats(4, 50, "f16"), "b": floats(4, 50, "f16")},
        want=lambda a, b: (a.astype(np.float32) + b.astype(np.float32)).astype(np.float16),
    ),
    Case(
        "add_scalar", ALL, (TileSpec("a", "i32", 3, 40, 0),), (TileSpec("c", "i32", 3, 40, 0x1000),),
        lambda t: ascsim.tadds(t["c"], t["a"], 7),
        "%seven = arith.constant 7 : i32\n    pto.tadds ins({a}, %seven : {T_a}, i32) outs({c} : {T_c})", "TADDS(c, a, 7)",
        data={"a": RNG.integers(-(2**31), 2**31 - 8, (3, 40))},
        want=lambda a: a + np.int32(7),
    ),
    Case(
        "sort_blocks", ALL,
        (TileSpec("a", "f32", 4, 64, 0), TileSpec("i", "u32", 4, 64, 0x1000)), (TileSpec("c", "f32", 4, 128, 0x2000),),
        lambda t: ascsim.tsort32(t["c"], t["a"], t["i"]),
        "pto.tsort32 ins({a}, {i} : {T_a}, {T_i}) outs({c} : {T_c})", "TSORT32(c, a, i)",
        data={"a": floats(4, 64), "i": column_numbers(4, 64)},
        want=sorted_pairs,
    ),
    Case(
        "sort_half", ALL,
        (TileSpec("a", "f16", 2, 96, 0), TileSpec("i", "u32", 2, 96, 0x1000)), (TileSpec("c", "f16", 2, 384, 0x2000),),
        lambda t: ascsim.tsort32(t["c"], t["a"], t["i"]),
        "pto.tsort32 ins({a}, {i} : {T_a}, {T_i}) outs({c} : {T_c})", "TSORT32(c, a, i)",
        data={"a": floats(2, 96, "f16"), "i": column_numbers(2, 96)},
        want=sorted_pairs,
    ),
    Case(
        "sort_tail", ALL,
        (TileSpec("a", "f32", 3, 96, 0, 80), TileSpec("i", "u32", 3, 96, 0x1000, 80)),
        (TileSpec("c", "f32", 3, 192, 0x2000, 160),),
        lambda t: ascsim.tsort32(t["c"], t["a"], t["i"], t["w"]),
        "pto.tsort32 ins({a}, {i}, {w} : {T_a}, {T_i}, {T_w}) outs({c} : {T_c})", "TSORT32(c, a, i, w)",
        scratch=(TileSpec("w", "f32", 1, 128, 0x4000),),
        data={"a": floats(3, 80), "i": column_numbers(3, 80)},
        want=sorted_pairs,
    ),
    Case(
        "round_to_half", ALL, (TileSpec("a", "f32", 4, 64, 0),), (TileSpec("c", "f16", 4, 64, 0x1000),),
        lambda t: ascsim.tcvt(t["c"], t["a"], ascsim.RoundMode.RINT),
        "pto.tcvt ins({a} {{rmode = #pto<round_mode CAST_RINT>}} : {T_a}) outs({c} : {T_c})",
        "TCVT(c, a, RoundMode::CAST_RINT)",
        data={"a": floats(4, 64) * 100},
        want=lambda a: a.astype(np.float16),
    ),
    Case(
        "row_max", ALL, (TileSpec("a", "f32", 8, 64, 0),), (TileSpec("c", "f32", 8, 8, 0x1000, 1),),
        lambda t: ascsim.trowmax(t["c"], t["a"], t["w"]),
        "pto.trowmax ins({a}, {w} : {T_a}, {T_w}) outs({c} : {T_c})", "TROWMAX(c, a, w)",
        scratch=(TileSpec("w", "f32", 8, 64, 0x2000),),
        data={"a": floats(8, 64)},
        want=lambda a: a.max(axis=1, keepdims=True),
    ),
    Case(
        "weave", ("a5", "cpu"),
        (TileSpec("a", "f32", 2, 64, 0), TileSpec("b", "f32", 2, 64, 0x1000)),
        (TileSpec("low", "f32", 2, 64, 0x2000), TileSpec("high", "f32", 2, 64, 0x3000)),
        lambda t: ascsim.tinterleave(t["low"], t["high"], t["a"], t["b"]),
        "pto.tinterleave ins({a}, {b} : {T_a}, {T_b}) outs({low}, {high} : {T_low}, {T_high})",
        "TINTERLEAVE(high, low, b, a)",
        data={"a": floats(2, 64), "b": floats(2, 64)},
        want=lambda a, b: tuple(np.stack([a, b], -1).reshape(2, 2, 64).transpose(1, 0, 2)),
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """The C++ kernels of all cases, built once a profile."""
    built: dict[str, Any] = {}

    def of(arch: str) -> Any:
        if arch not in built:
            source = tmp_path_factory.mktemp("cpp") / f"cases_{arch}.cpp"
            source.write_text(cpp_text([c for c in CASES if arch in c.archs]))
            built[arch] = ascsim.load(source, arch=arch)
        return built[arch]

    return of


@pytest.mark.parametrize(
    ("case", "arch"), [pytest.param(c, a, id=f"{c.name}-{a}") for a in ALL for c in CASES if a in c.archs]
)
def test_three_ways_give_the_same_bits(case, arch, libraries):
    python, pto, cpp = run_python(case, arch), run_pto(case, arch), run_cpp(libraries(arch), case)
    wanted = case.want(*(case.arrays()[t.name] for t in case.inputs))
    for spec, want in zip(case.outputs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        for way in (python, pto, cpp):
            assert way[spec.name].tobytes() == np.ascontiguousarray(want).tobytes()


def test_pto_text_is_what_the_parser_prints():
    from ascsim.frontends.ptoas.parser import parse_text
    from ascsim.frontends.ptoas.printer import to_text

    for case in CASES:
        printed = to_text(parse_text(pto_text(case), "x.pto"))
        assert to_text(parse_text(printed, "x.pto")) == printed


def test_ptoas_loads_a_file(tmp_path):
    path = tmp_path / "k.pto"
    path.write_text(pto_text(CASES[0]))
    assert [a.name for a in ptoas.load(path).kernel().arguments] == ["a", "b", "c"]
