"""TCMP, TCMPS, TSEL, TSELS: every type and comparison, where bits lie, what is written beside them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa import REGISTRY
from ascsim.isa.tile.compare import CmpMode, row_bytes_written
from ascsim.machine.dtypes import dtype
from ascsim.machine.operands import Tile
from ascsim.machine.trace import Mode
from harness import Bench

PROFILES = ("a2a3", "a5", "cpu")
COMPARED = {
    "a2a3": ("f32", "f16", "i32"),
    "a5": ("f32", "f16", "bf16", "i32", "u32", "i16", "u16", "i8", "u8", "i64", "u64"),
}
COMPARED["cpu"] = COMPARED["a5"]
CASES = [(profile, kind) for profile, kinds in COMPARED.items() for kind in kinds]
OPERATORS = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


def noise(bench: Bench, seed: int = 0) -> np.ndarray:
    bench.memory()[:] = np.random.default_rng(seed).integers(0, 256, bench.memory().size, np.uint8)
    return bench.memory().copy()


def close_numbers(kind: str, rows: int, cols: int, seed: int) -> np.ndarray:
    """Few different values, so that some are equal; NaN, infinities and both zeros among floats."""
    values: list[Any] = [0, 1, 2, 3]
    if dtype(kind).kind == "f":
        values += [-0.0, -1.0, np.inf, -np.inf, np.nan]
    elif dtype(kind).kind == "i":
        values += [-1, np.iinfo(dtype(kind).numpy).min, np.iinfo(dtype(kind).numpy).max]
    drawn = np.random.default_rng(seed).choice(np.array(values, object), (rows, cols))
    return drawn.astype(np.float64 if dtype(kind).kind == "f" else object).astype(dtype(kind).numpy)


def bits_of(bench: Bench, mask: Tile, rows: int, cols: int) -> np.ndarray:
    lines = np.array([bench.memory()[mask.address + r * mask.row_bytes :][: -(-cols // 8)] for r in range(rows)])
    return np.unpackbits(lines, axis=1, bitorder="little")[:, :cols].astype(bool)


def tiles(bench: Bench, definition: Any, *args: Any) -> None:
    bench.machine.issue(bench.core, definition, args, 0)


@pytest.mark.parametrize(("profile", "kind"), CASES)
@given(
    rows=st.integers(1, 5), cols=st.integers(1, 64), mode=st.sampled_from(sorted(OPERATORS)), seed=st.integers(0, 99)
)
@settings(max_examples=12, deadline=None)
def test_two_tiles_a_number_and_a_first_element(
    profile: str, kind: str, rows: int, cols: int, mode: str, seed: int
) -> None:
    bench = Bench(profile)
    noise(bench, seed)
    a, b = close_numbers(kind, rows, cols, seed), close_numbers(kind, rows, cols, seed + 1)
    src0, src1 = (bench.tile(kind, rows, 256, x, valid=(rows, cols)) for x in (a, b))
    mask = bench.tile("u8", rows, 64, valid=(rows, 32))  # as wide as a row of bits of the source
    if dtype(kind).kind == "f":
        a, b = a.astype(np.float64), b.astype(np.float64)
    compare = OPERATORS[mode]
    if profile == "a2a3" and kind == "i32" and mode not in ("EQ", "NE"):
        compare = operator.eq
    bench.issue("TCMP", mask, src0, src1, CmpMode[mode])
    assert np.array_equal(bits_of(bench, mask, rows, cols), compare(a, b))
    number = b[0, 0]
    of_number, of_tile = (d for d in REGISTRY.find("TCMPS"))
    if "scalar" not in [o.name for o in of_number.inputs]:
        of_number, of_tile = of_tile, of_number
    tiles(bench, of_number, mask, src0, number.item() if dtype(kind).kind != "f" else float(number), CmpMode[mode])
    assert np.array_equal(bits_of(bench, mask, rows, cols), compare(a, number))
    tiles(bench, of_tile, mask, src0, src1, CmpMode[mode])
    want = compare(a, b) if profile == "a5" and dtype(kind).size == 8 else compare(a, number)
    assert np.array_equal(bits_of(bench, mask, rows, cols), want)
    assert not set(bench.findings()) - {"TCMP-3", "TCMPS-3", "TCMPS-6"}


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_written_of_the_mask(profile: str) -> None:
    for kind, columns, a2a3, a5 in (
        ("f32", 65, 16, 16),
        ("f16", 129, 32, 32),
        ("f32", 129, 24, 32),
        ("f16", 20, 16, 16),
    ):
        bench = Bench(profile)
        before = noise(bench)
        src = bench.tile(kind, 3, 256, np.zeros((3, columns)), valid=(3, columns))
        mask = bench.tile("u8", 3, 96, valid=(3, 32))
        before[src.address : src.address + src.nbytes] = bench.memory()[src.address : src.address + src.nbytes]
        bench.issue("TCMP", mask, src, src, CmpMode.EQ)
        written = bench.traced(Mode.WRITE)
        each = {"a2a3": a2a3, "a5": a5, "cpu": 96}[profile]
        assert written.sum() == 3 * each
        assert np.array_equal(bench.memory()[~written], before[~written])
        assert bits_of(bench, mask, 3, columns).all()
        if profile != "a2a3":
            assert not bits_of(bench, mask, 3, 8 * each)[:, columns:].any()


@pytest.mark.parametrize("mask_type", ["u8", "u32"])
def test_the_portable_comparison_with_a_number_packs_a_stream(mask_type: str) -> None:
    """As the public simulator: a byte an element, through the valid region of dst, whatever its width."""
    bench = Bench("cpu")
    data = np.random.default_rng(3).integers(0, 5, (4, 30))
    src = bench.tile("i32", 5, 32, data, valid=(4, 30))
    mask = bench.tile(mask_type, 5, 32, np.full((5, 32), 7), valid=(4, 5))
    bits = np.zeros((5, 32), bool)
    bits[:4, :30] = data > 2
    stream = np.packbits(bits, bitorder="little")
    bench.issue("TCMPS", mask, src, 2, CmpMode.GT)
    expected = np.zeros((5, 32), np.uint8)
    expected[:4, :5] = stream.reshape(-1)[:20].reshape(4, 5)
    assert np.array_equal(bench.read(mask, 5, 32), expected)


def test_the_a5_writes_whole_registers_of_narrow_and_wide_elements() -> None:
    for kind, columns, each in (("u8", 257, 64), ("i64", 3, 32)):
        assert row_bytes_written(dtype(kind), columns, Bench("a5").profile) == each
        bench = Bench("a5")
        src, mask = bench.tile(kind, 2, 512, valid=(2, columns)), bench.tile("u32", 2, 64, valid=(2, 32))
        bench.issue("TCMP", mask, src, src, CmpMode.EQ)
        assert bench.traced(Mode.WRITE).sum() == 2 * each
        assert bits_of(bench, mask, 2, 8 * each).sum() == 2 * columns


def test_bits_beyond_the_valid_columns_come_of_what_lies_there_on_the_a2a3() -> None:
    bench = Bench("a2a3")
    whole = np.arange(64)[None] % 2 * 1.0
    src, zeros = (
        bench.tile("f32", 1, 64, whole, valid=(1, 5)),
        bench.tile("f32", 1, 64, np.zeros((1, 64)), valid=(1, 5)),
    )
    mask = bench.tile("u8", 1, 32)
    bench.issue("TCMP", mask, src, zeros, CmpMode.GT)
    assert np.array_equal(bits_of(bench, mask, 1, 64), whole.astype(bool))


def test_unequal_on_the_a2a3_turns_all_bits_of_the_rows() -> None:
    bench = Bench("a2a3")
    src = bench.tile("f32", 2, 64, np.ones((2, 64)))
    mask = bench.tile("u8", 2, 32, np.zeros((2, 32)), valid=(2, 8))
    bench.issue("TCMP", mask, src, src, CmpMode.NE)
    lines = bench.read(mask, 2, 32)
    assert not lines[:, :8].any() and (lines[:, 8:] == 255).all()
    bench.issue("TCMP", mask, src, src, CmpMode.NE)
    assert not bench.read(mask, 2, 32).any()


def test_rows_of_the_mask_that_are_too_short_run_over() -> None:
    bench = Bench("a2a3")
    a = close_numbers("f32", 2, 512, 1)
    src0, src1 = bench.tile("f32", 2, 512, a), bench.tile("f32", 2, 512, np.zeros((2, 512)))
    mask = bench.tile("u8", 2, 32)
    bench.issue("TCMP", mask, src0, src1, CmpMode.GE)
    assert bench.findings() == ["TCMP-2"]
    assert np.array_equal(bits_of(bench, mask, 1, 256)[0], a[0, :256] >= 0)
    assert np.array_equal(bits_of(bench, mask, 2, 512)[1], a[1] >= 0)


def test_16_bit_integers_are_compared_as_half_on_the_a2a3() -> None:
    bench = Bench("a2a3")
    src, mask = bench.tile("i16", 1, 128, np.arange(-64, 64)), bench.tile("u8", 1, 32)
    bench.issue("TCMPS", mask, src, -32768, CmpMode.EQ)
    assert bits_of(bench, mask, 1, 128)[0].tolist() == [n == 0 for n in range(-64, 64)]  # -0 equals +0
    assert bench.findings() == ["TCMPS-5"]


def test_strides_that_the_a5_mixes_up() -> None:
    bench = Bench("a5")
    a, b = np.arange(512).reshape(2, 256), np.arange(256).reshape(2, 128)
    src0, src1 = bench.tile("i32", 2, 256, a, valid=(2, 128)), bench.tile("i32", 2, 128, b)
    mask = bench.tile("u8", 2, 32)
    bench.issue("TCMP", mask, src0, src1, CmpMode.EQ)
    flat0, flat1 = a.ravel(), bench.core.view(src1.region(4, 128)).ravel()
    odd = np.arange(128) // 64 == 1
    want = np.where(odd, flat0[128:256] == flat1[128:256], flat0[256:384] == flat1[256:384])
    assert np.array_equal(bits_of(bench, mask, 2, 128)[1], want)
    assert bench.findings() == ["TCMP-6"]


def test_modes_have_names_in_both_spellings_and_others_are_refused() -> None:
    assert CmpMode.LESS_THAN is CmpMode.LT and CmpMode.GREATER_EQUAL is CmpMode.GE
    bench = Bench("a5")
    src, mask = bench.tile("f32", 1, 64), bench.tile("u8", 1, 32)
    with pytest.raises(Refused, match="cmpMode is 9"):
        bench.issue("TCMP", mask, src, src, 9)
    bench.issue("TCMP", mask, src, src)
    assert bits_of(bench, mask, 1, 64).all()


# Selection

SELECTED = {
    "a2a3": ("f32", "i32", "f16", "bf16", "u16"),
    "a5": ("f32", "f16", "u8", "i64"),
    "cpu": ("f32", "u8", "i64"),
}


@pytest.mark.parametrize(("profile", "kind"), [(p, k) for p, kinds in SELECTED.items() for k in kinds])
@given(rows=st.integers(1, 5), cols=st.integers(1, 200), seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_selection_by_bits(profile: str, kind: str, rows: int, cols: int, seed: int) -> None:
    cols = min(cols, 64) if kind == "i64" else cols
    bench = Bench(profile)
    before = noise(bench, seed)
    nbytes = -(-cols // 8)
    src0, src1, dst = (bench.tile(kind, rows, 256, valid=(rows, cols)) for _ in range(3))
    mask, tmp = bench.tile("u8", rows, 32, valid=(rows, nbytes)), bench.tile("u32", 1, 8)
    a, b = (bench.read(t).view(dtype(kind).bits_dtype) for t in (src0, src1))
    chosen = bits_of(bench, mask, rows, cols)
    if profile == "cpu":
        stream = np.unpackbits(bench.read(mask), bitorder="little")
        chosen = np.resize(stream, rows * cols).reshape(rows, cols).astype(bool)
    bench.issue("TSEL", dst, mask, src0, src1, tmp)
    assert np.array_equal(bench.read(dst).view(a.dtype), np.where(chosen, a, b))
    written = bench.traced(Mode.WRITE)
    assert np.array_equal(bench.memory()[~written], before[~written])
    if profile == "a2a3":
        words = bench.read(tmp)[0, : 4 if dtype(kind).size == 2 else 2]
        assert set(words.tolist()) == {mask.address + (rows - 1) * 32}
    if kind != "bf16" or profile != "a5":
        bench.issue("TSELS", dst, mask, src0, tmp, 2)
        two = np.array(2).astype(dtype(kind).numpy).view(a.dtype)
        assert np.array_equal(bench.read(dst).view(a.dtype), np.where(bits_of(bench, mask, rows, cols), a, two))
    assert bench.findings() == []


@pytest.mark.parametrize("profile", PROFILES)
def test_the_larger_of_two_by_comparison_and_selection(profile: str) -> None:
    bench = Bench(profile)
    a, b = np.random.default_rng(1).standard_normal((2, 4, 256)).astype(np.float32)
    src0, src1, dst = bench.tile("f32", 4, 256, a), bench.tile("f32", 4, 256, b), bench.tile("f32", 4, 256)
    mask, tmp = bench.tile("u8", 4, 32), bench.tile("u32", 1, 8)
    bench.issue("TCMP", mask, src0, src1, CmpMode.GT)
    bench.issue("TSEL", dst, mask, src0, src1, tmp)
    assert np.array_equal(bench.read(dst), np.maximum(a, b))
    assert bench.findings() == []


def test_masks_that_the_a5_reads_wrongly() -> None:
    bench = Bench("a5")
    ones, zeros = bench.tile("f32", 2, 64, np.ones((2, 64))), bench.tile("f32", 2, 64, np.zeros((2, 64)))
    dst, tmp = bench.tile("f32", 2, 64), bench.tile("u8", 1, 32)
    mask = bench.tile("u32", 2, 8, [[0xFFFFFFFF] * 8, [0] * 8])
    bench.issue("TSEL", dst, mask, ones, zeros, tmp)
    assert bench.read(dst)[1].all()  # row 1 of the mask is found 8 bytes on, in row 0
    narrow = [bench.tile("u8", 1, 512, np.full((1, 512), n)) for n in (1, 0, 7)]
    bits = bench.tile("u8", 1, 64, np.r_[np.full(16, 255), np.zeros(48)][None])
    bench.issue("TSEL", narrow[2], bits, narrow[0], narrow[1], tmp)
    got = bench.read(narrow[2])[0]
    assert got[:128].all() and not got[128:].any()
    bits = bench.tile("u8", 1, 64, np.r_[np.zeros(16), np.full(16, 255), np.zeros(32)][None])
    bench.issue("TSEL", narrow[2], bits, narrow[0], narrow[1], tmp)
    assert bench.read(narrow[2])[0, 256:384].all()  # bytes 16 to 31 count twice
    assert bench.findings() == ["TSEL-2", "TSEL-3", "TSEL-3"]


def test_selections_of_two_types_are_refused() -> None:
    bench = Bench("a2a3")
    a, b, mask = bench.tile("f32", 2, 64), bench.tile("f32", 4, 64, valid=(2, 64)), bench.tile("u8", 2, 32)
    with pytest.raises(Refused, match="dst, src0 and src1 have one type"):
        bench.issue("TSEL", a, mask, a, b, mask)
    with pytest.raises(Refused, match="a2a3 takes"):
        bench.issue("TSEL", *[bench.tile("u8", 2, 64)] * 5)
