"""TSORT32: the libraries' steps byte for byte, what its public descriptions say of it, and where they are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim import profiles
from ascsim.diagnostics import Refused
from ascsim.isa.semantics import network
from ascsim.machine import groups
from ascsim.machine.operands import Tile
from ascsim.machine.trace import Kind, Mode
from ascsim.machine.words import BLayout, Pipe, Space
from harness import Bench
from isa.tile.sort_library import NEGATIVE_NAN, Library, sorted_block

CHIPS = ("a2a3", "a5")
FLOATS = ("f32", "f16")
SIZE = {"f32": 4, "f16": 2}
START = 1024
"""Where tiles begin: what a broken width writes before dst must be in UB."""


def up(columns: int, unit: int = 32) -> int:
    return -(-columns // unit) * unit


class Sort:
    """One call with its tiles side by side in a UB of noise."""

    def __init__(
        self, profile: Any, kind: str, rows: int, columns: int, *, tmp: int | None = None, tmp_rows: int = 1,
        idx_rows: int | None = None, src_cols: int | None = None, dst_cols: int | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        self.bench = Bench(profile)
        self.chip = self.bench.profile.name
        self.size, coef = {"f16": (2, 4), "bf16": (2, 4), "i16": (2, 4)}.get(kind, (4, 2))
        rng = np.random.default_rng(seed)
        self.bench.memory()[:] = rng.integers(0, 256, self.bench.memory().size, np.uint8)
        wide = src_cols or up(columns)
        self.at = START
        self.src = self._tile(kind, rows, wide, (rows, columns))
        self.idx = self._tile("u32", rows, max(wide, up(columns, 8)), (rows if idx_rows is None else idx_rows, columns))
        pairs = dst_cols or coef * up(columns)
        self.dst = self._tile(kind, rows, pairs, (rows, min(pairs, coef * columns)))
        self.tmp = self._tile(kind, tmp_rows, tmp, (tmp_rows, tmp)) if tmp else None
        self.set_values(rng.normal(size=(rows, columns)).round(1))
        self.set_indices(np.broadcast_to(np.arange(columns), (self.idx.valid_rows, columns)))

    def _tile(self, kind: str, rows: int, columns: int, valid: tuple[int, int]) -> Tile:
        made = self.bench.tile(kind, max(rows, 1), columns, valid=valid, at=self.at)
        self.at += up(made.nbytes) + 64
        return made

    def set_values(self, values: Any) -> None:
        view = self.bench.core.view(self.src.region())
        view[...] = np.asarray(values).astype(view.dtype).reshape(view.shape)

    def set_bits(self, bits: Any) -> None:
        self.bench.core.view(self.src.region(dtype=np.dtype(f"u{self.size}")))[...] = bits

    def set_indices(self, indices: Any) -> None:
        self.bench.core.view(self.idx.region())[...] = indices

    @property
    def args(self) -> tuple[Any, ...]:
        return (self.dst, self.src, self.idx) + ((self.tmp,) if self.tmp is not None else ())

    def issue(self) -> Sort:
        self.bench.issue("TSORT32", *self.args)
        return self

    def expected(self) -> np.ndarray:
        """UB as the chip's library would leave it."""
        return Library(self.chip, self.bench.memory().copy(), self.dst, self.src, self.idx, self.tmp).run()

    def pairs(self, row: int = 0) -> np.ndarray:
        """(pairs, 2): raw values and indices of a row of dst."""
        start = self.dst.address + row * self.dst.row_bytes
        return self.bench.memory()[start : start + self.dst.row_bytes].view(np.uint32).reshape(-1, 2)

    def codes(self) -> list[str]:
        return [c for c in self.bench.findings() if not c.startswith("SORT-")]

    def equals_library(self) -> Sort:
        want = self.expected()
        self.issue()
        got = self.bench.memory()
        assert np.array_equal(got, want), np.flatnonzero(got != want)[:4] - self.dst.address
        return self


def roomy(chip: str) -> profiles.Profile:
    """A chip with a UB for rows of 16,320 columns."""
    return profiles.load(chip).with_ub(1 << 20)


# By hand


@pytest.mark.parametrize("profile", (*CHIPS, "cpu"))
def test_by_hand(profile: str) -> None:
    sort = Sort(profile, "f32", 1, 32)
    sort.set_values([3.0, -2.0, 7.0, 7.0] + [-100.0] * 28)
    sort.issue()
    assert sort.pairs()[:4, 0].view(np.float32).tolist() == [7.0, 7.0, 3.0, -2.0]
    assert sort.pairs()[:, 1].tolist() == [2, 3, 0, 1, *range(4, 32)]
    assert sort.bench.findings() == []


@pytest.mark.parametrize("profile", (*CHIPS, "cpu"))
def test_by_hand_in_half(profile: str) -> None:
    sort = Sort(profile, "f16", 1, 32)
    sort.set_values(np.arange(32))
    sort.issue()
    first = sort.bench.memory()[sort.dst.address : sort.dst.address + 8].tolist()
    assert first == [0xC0, 0x4F, 0, 0, 31, 0, 0, 0]


# The libraries, byte for byte


BITS = {
    kind: st.integers(0, (1 << (8 * size)) - 1) | st.sampled_from([0, 1 << (8 * size - 1), NEGATIVE_NAN[size]])
    for kind, size in SIZE.items()
}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kind", FLOATS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_ub_afterwards_is_the_librarys(chip: str, kind: str, data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(0, 4)), data.draw(st.integers(1, 140))
    sort = Sort(
        chip, kind, rows, columns,
        tmp=data.draw(st.sampled_from([None, up(columns), up(columns) + 128])),
        idx_rows=data.draw(st.sampled_from([1, rows])),
        src_cols=up(columns) + data.draw(st.sampled_from([0, 32])),
        dst_cols=data.draw(st.sampled_from([None, 1024])),
        seed=data.draw(st.integers(0, 100)),
    )  # fmt: skip
    if rows:
        sort.set_bits(np.array(data.draw(st.lists(BITS[kind], min_size=columns, max_size=columns))))
    sort.equals_library()


WIDTHS = (2040, 2041, 4079, 4081, 8128, 8159, 8160, 8161, 16288, 16300, 16319, 16320, 16321, 16352, 24479, 24480)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("columns", WIDTHS)
def test_wide_rows_are_the_librarys_too(chip: str, kind: str, columns: int) -> None:
    for tmp in (None, up(columns)):
        Sort(roomy(chip), kind, 2, columns, tmp=tmp, seed=columns).equals_library()


@pytest.mark.slow
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kind", FLOATS)
def test_every_width_is_the_librarys(chip: str, kind: str) -> None:
    for columns in range(1, 16_353):
        Sort(roomy(chip), kind, 1, columns, tmp=up(columns), seed=columns).equals_library()
        if columns % 32 == 0:
            Sort(roomy(chip), kind, 1, columns, seed=columns).equals_library()


@pytest.mark.parametrize("chip", CHIPS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_rows_at_once_equal_row_after_row(chip: str, data: st.DataObject) -> None:
    """Tiles anywhere, over each other too: the machine may not tell rows apart where the chip would."""
    kind, columns = data.draw(st.sampled_from(FLOATS)), data.draw(st.integers(1, 80))
    sorts = []
    seed, shift = data.draw(st.integers(0, 50)), data.draw(st.tuples(*[st.integers(0, 40)] * 4))
    rows, idx_rows = data.draw(st.integers(2, 5)), data.draw(st.sampled_from([1, None]))
    with_tmp = data.draw(st.booleans())
    for _ in range(2):
        sort = Sort(chip, kind, rows, columns, tmp=up(columns) if with_tmp else None, idx_rows=idx_rows, seed=seed)
        tiles = [replace(t, address=START + 64 * s) for t, s in zip(sort.args, shift, strict=False)]
        sort.dst, sort.src, sort.idx = tiles[:3]
        sort.tmp = tiles[3] if with_tmp else None
        sorts.append(sort)
    at_once, one_by_one = sorts
    at_once.issue()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "rows_are_independent", lambda *_: False)
        one_by_one.issue()
    assert np.array_equal(at_once.bench.memory(), one_by_one.bench.memory())
    states = [dict(vars(sort.bench.core.state)) for sort in sorts]
    assert np.array_equal(*(state.pop("words") for state in states))
    assert states[0] == states[1]
    assert np.array_equal(at_once.bench.traced(Mode.WRITE), one_by_one.bench.traced(Mode.WRITE))
    assert np.array_equal(at_once.bench.traced(Mode.READ), one_by_one.bench.traced(Mode.READ))


def test_rows_apart_are_run_at_once() -> None:
    sort = Sort("a2a3", "f32", 8, 40, tmp=64).issue()
    steps = sort.bench.trace().rows[1:]
    assert len(steps) < 16  # not eight times each of six steps


# Trace


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("columns", "tmp"), [(64, None), (40, 64), (8192, None), (8190, 8192)])
def test_the_trace_says_which_bytes_change(chip: str, columns: int, tmp: int | None) -> None:
    sort = Sort(roomy(chip), "f32", 2, columns, tmp=tmp, dst_cols=2 * up(columns) + 64)
    before = sort.bench.memory().copy()
    sort.issue()
    written = sort.bench.traced(Mode.WRITE)
    assert not (before != sort.bench.memory())[~written].any()
    assert written[sort.dst.address] and not written[sort.src.address : sort.src.address + sort.src.nbytes].any()


def steps(sort: Sort) -> list[tuple[str, int]]:
    trace = sort.bench.trace()
    return [(trace.mnemonics[r["mnemonic"]], int(r["pipe"])) for r in trace.rows if r["parent"] == 0]


def test_a2a3_waits_after_each_step_and_sets_the_mask() -> None:
    sort = Sort("a2a3", "f32", 1, 40, tmp=64).issue()
    barrier = ("pipe_barrier", Pipe.V)
    assert steps(sort) == [
        ("set_mask_norm", Pipe.S), ("set_vector_mask", Pipe.S), ("copy_ubuf_to_ubuf", Pipe.V), barrier,
        ("vector_dup", Pipe.V), barrier, ("vbitsort", Pipe.V), barrier, ("set_vector_mask", Pipe.S),
    ]  # fmt: skip
    kinds = sort.bench.trace().rows["kind"]
    assert (kinds == Kind.BARRIER).sum() == 3


def test_a2a3_leaves_a_full_mask_where_it_pads() -> None:
    for tmp, columns, mask in ((None, 32, (1, 2)), (64, 40, ((1 << 64) - 1,) * 2)):
        sort = Sort("a2a3", "f32", 1, columns, tmp=tmp)
        sort.bench.issue("set_vector_mask", 1, 2)
        sort.issue()
        assert sort.bench.core.state.mask == mask


def test_a5_has_no_barriers() -> None:
    assert steps(Sort("a5", "f32", 1, 40, tmp=64).issue()) == [
        ("copy_ubuf_to_ubuf", Pipe.V), ("vlds_vdup_vsts", Pipe.V), ("vbitsort", Pipe.V),
    ]  # fmt: skip


@pytest.mark.parametrize("columns", (1, 31, 33, 60))
@pytest.mark.parametrize("kind", FLOATS)
def test_a5_padding_reads_256_bytes_from_the_last_block(kind: str, columns: int) -> None:
    sort = Sort("a5", kind, 1, columns, tmp=256).issue()
    assert sort.tmp is not None
    first = columns // 32 * 32 * SIZE[kind]
    read = sort.bench.traced(Mode.READ)
    assert read[sort.tmp.address : sort.tmp.address + first + 256].all()
    assert not read[sort.tmp.address + first + 256 : sort.tmp.address + sort.tmp.nbytes].any()
    written = sort.bench.traced(Mode.WRITE)[sort.tmp.address : sort.tmp.address + sort.tmp.nbytes]
    assert np.flatnonzero(written)[-1] == first + 32 * SIZE[kind] - 1


# The document, on cpu


CPU_TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32, "i16": np.int16}


@pytest.mark.parametrize("kind", CPU_TYPES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_cpu_sorts_each_block_and_the_tail_of_every_type(kind: str, data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 100))
    sort = Sort("cpu", kind, rows, columns, idx_rows=data.draw(st.sampled_from([1, rows])))
    sort.dst = replace(sort.dst, valid_rows=data.draw(st.integers(0, rows)))  # the rows are those of src
    values = data.draw(st.lists(st.integers(-20, 20), min_size=rows * columns, max_size=rows * columns))
    values = np.array(values).astype(CPU_TYPES[kind]).reshape(rows, columns)
    sort.set_values(values)
    before = sort.bench.memory().copy()
    sort.issue()
    for row in range(rows):
        for start in range(0, columns, 32):
            block = values[row, start : start + 32]
            order = sorted(range(len(block)), key=lambda k: (-float(block[k]), k))
            got = sort.pairs(row)[start : start + len(block)]
            assert got[:, 1].tolist() == [start + k for k in order]
            assert got[:, 0].tolist() == [int(v) for v in block[order].view(f"u{block.itemsize}")]
        rest = slice(sort.dst.address + row * sort.dst.row_bytes + 8 * columns, None)
        upto = sort.dst.row_bytes - 8 * columns
        assert np.array_equal(sort.bench.memory()[rest][:upto], before[rest][:upto])
    assert sort.codes() == []


def test_cpu_leaves_tmp_alone() -> None:
    sort = Sort("cpu", "f32", 1, 40, tmp=64)
    assert sort.tmp is not None
    before = sort.bench.read(sort.tmp)
    sort.issue()
    assert np.array_equal(before, sort.bench.read(sort.tmp))


# What an article on the instruction says (the numbers of its sections are ours)


@pytest.mark.parametrize("profile", (*CHIPS, "cpu"))
def test_said_idx_is_an_input_and_dst_holds_pairs(profile: str) -> None:
    sort = Sort(profile, "f32", 1, 32)
    sort.set_indices(1000 + np.arange(32))
    before = sort.bench.read(sort.idx)
    sort.issue()
    assert np.array_equal(before, sort.bench.read(sort.idx))
    assert sorted(sort.pairs()[:, 1].tolist()) == list(range(1000, 1032))


@pytest.mark.parametrize("profile", (*CHIPS, "cpu"))
def test_said_smaller_index_first_where_values_are_equal_but_disputed(profile: str) -> None:
    sort = Sort(profile, "f32", 1, 32)
    sort.set_values(np.ones(32))
    sort.set_indices(np.arange(32)[::-1])
    sort.issue()
    assert sort.pairs()[:, 1].tolist() == list(range(32))
    assert sort.bench.findings() == ["SORT-TIE"]


@pytest.mark.parametrize("profile", (*CHIPS, "cpu"))
def test_no_tie_is_seen_where_indices_ascend_or_blocks_differ(profile: str) -> None:
    sort = Sort(profile, "f32", 2, 64)
    sort.set_values(np.ones((2, 64)))
    sort.set_indices(np.concatenate([np.arange(32) + 32, np.arange(32)]))
    assert sort.issue().bench.findings() == []


def test_said_it_runs_on_a_unit_of_its_own_but_the_pipe_is_v() -> None:
    for chip in CHIPS:
        rows = Sort(chip, "f32", 1, 32).issue().bench.trace().rows
        assert all(r["pipe"] == Pipe.V for r in rows if r["kind"] == Kind.INSTRUCTION)


@pytest.mark.parametrize("chip", CHIPS)
def test_said_rows_of_more_than_255_blocks_take_several_calls(chip: str) -> None:
    sort = Sort(roomy(chip), "f32", 1, 8192).equals_library()
    trace = sort.bench.trace()
    work = [int(r["work"]) for r in trace.rows if trace.mnemonics[r["mnemonic"]] == "vbitsort"]
    assert work == [255, 1]
    assert sort.codes() == []


@pytest.mark.parametrize("chip", CHIPS)
def test_erratum_the_last_255_blocks_of_a_multiple_are_never_sorted(chip: str) -> None:
    sort = Sort(roomy(chip), "f32", 1, 16320)
    before = sort.pairs().copy()
    sort.equals_library()
    assert sort.codes()[0] == "E-TSORT32-510"
    assert np.array_equal(sort.pairs()[8160:], before[8160:])
    assert np.array_equal(np.sort(sort.pairs()[:8160, 1]), np.arange(8160))
    assert ("E-TSORT32-ZERO" in sort.codes()) == (chip == "a5")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("columns", (16289, 16300, 16319))
def test_erratum_tails_of_510_blocks_are_not_padded(chip: str, columns: int) -> None:
    sort = Sort(roomy(chip), "f32", 1, columns, tmp=64)
    beyond = sort.src.address + columns * 4
    sort.bench.memory()[beyond : beyond + 124].view(np.float32)[:] = 1e30
    sort.equals_library()
    assert sort.codes() == ["E-TSORT32-TAIL"] or sort.codes() == ["E-TSORT32-TAIL", "E-TSORT32-READ"]
    last = sort.pairs()[16320 - 32 : 16320, 0].view(np.float32)
    assert (last[: 16320 - columns] == 1e30).all()  # what lies beyond src comes first


@pytest.mark.parametrize("columns", (8129, 8145, 8159))
@pytest.mark.parametrize("kind", FLOATS)
def test_erratum_a5_writes_before_dst_at_255_blocks(kind: str, columns: int) -> None:
    sort = Sort(roomy("a5"), kind, 1, columns, tmp=128)
    before = sort.bench.memory().copy()
    sort.equals_library()
    assert "E-TSORT32-TAIL" in sort.codes()
    changed = np.flatnonzero(before != sort.bench.memory())
    assert (changed < sort.dst.address).any() and changed[0] >= min(sort.dst.address - 256, sort.tmp.address)  # type: ignore[union-attr]
    fine = Sort(roomy("a2a3"), kind, 1, columns, tmp=8192).equals_library()
    assert fine.codes() == []


def test_said_no_events_are_waited_for() -> None:
    from ascsim.isa import REGISTRY

    (definition,) = REGISTRY.by_cpp["TSORT32"]
    assert not definition.wait_events  # type: ignore[attr-defined]


@pytest.mark.parametrize("chip", CHIPS)
def test_said_three_operands_need_whole_blocks_and_nothing_checks_it(chip: str) -> None:
    sort = Sort(chip, "f32", 1, 40)
    before = sort.pairs().copy()
    sort.equals_library()
    assert sort.codes() == ["TSORT32-3"]
    assert np.array_equal(sort.pairs()[32:], before[32:])


@pytest.mark.parametrize("chip", CHIPS)
def test_said_types_layout_and_memory_are_checked(chip: str) -> None:
    sort = Sort(chip, "f32", 32, 32)
    column = {"blayout": BLayout.COL_MAJOR}
    for broken, code in (
        ((sort.dst, replace(sort.src, dtype=Bench().tile("f16", 1, 32).dtype), sort.idx), "L003"),
        ((replace(sort.dst, dtype=sort.idx.dtype), sort.src, sort.idx), "L002"),
        ((sort.dst, sort.src, sort.src), "L002"),
        ((replace(sort.dst, **column), sort.src, sort.idx), "L004"),
        ((sort.dst, sort.src, replace(sort.idx, **column)), "L004"),
        ((sort.dst, replace(sort.src, space=Space.L1), sort.idx), "L005"),
    ):
        with pytest.raises(Refused) as refusal:
            sort.bench.issue("TSORT32", *broken)
        assert refusal.value.diagnostic.code == code
    for kind in ("i32", "i16", "bf16"):
        with pytest.raises(Refused, match=f"{chip} takes f16, f32"):
            Sort(chip, kind, 1, 32).issue()


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("kind", "coef"), [("f32", 2), ("f16", 4)])
def test_said_dst_has_2c_or_4c_columns_but_a_tail_needs_whole_blocks(chip: str, kind: str, coef: int) -> None:
    for columns, codes in ((64, []), (40, ["TSORT32-1"])):
        sort = Sort(chip, kind, 1, columns, tmp=256, dst_cols=coef * columns)
        sort.equals_library()
        assert sort.codes() == codes
    message = [d["headline"] for k, d in sort.bench.sink.notes if k == "finding" and d["code"] == "TSORT32-1"]
    assert message == [
        f"TSORT32: each row writes 64 pairs, {64 * coef} columns of {kind}, but dst has {40 * coef}: "
        "the last 192 bytes of a row fall beyond dst"
    ]


@pytest.mark.parametrize("chip", CHIPS)
def test_said_one_row_of_idx_serves_all(chip: str) -> None:
    sort = Sort(chip, "f32", 4, 64, idx_rows=1).equals_library()
    assert sort.codes() == []
    assert all(sorted(sort.pairs(r)[:, 1].tolist()) == list(range(64)) for r in range(4))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kind", FLOATS)
def test_said_the_padding_is_minus_infinity_but_it_is_negative_nan(chip: str, kind: str) -> None:
    sort = Sort(chip, kind, 1, 30, tmp=256)
    sort.set_values([-np.inf] * 30)
    sort.equals_library()
    assert sort.pairs()[30:, 0].tolist() == [NEGATIVE_NAN[SIZE[kind]]] * 2
    assert sort.codes() == []
    assert "SORT-NAN" not in sort.bench.findings()  # the padding is the library's own


def test_nans_of_the_program_are_reported() -> None:
    for profile in (*CHIPS, "cpu"):
        sort = Sort(profile, "f32", 1, 32)
        sort.set_values([np.nan] * 3 + [1.0] * 29)
        assert sort.issue().bench.findings() == ["SORT-NAN"]


def test_a_nan_below_the_padding_is_the_one_case_where_the_padding_does_not_end_up_last() -> None:
    sort = Sort("a2a3", "f32", 1, 31, tmp=32)
    bits = np.full(31, 0x3F800000, np.uint32)
    bits[4] = 0xFFFFFFFF
    sort.set_bits(bits)
    sort.equals_library()
    assert sort.pairs()[30:, 0].tolist() == [NEGATIVE_NAN[4], 0xFFFFFFFF]


@pytest.mark.parametrize(("chip", "kind", "limit"), [
    ("a2a3", "f32", 8160), ("a2a3", "f16", 8160), ("a5", "f32", 2040), ("a5", "f16", 4080),
])  # fmt: skip
def test_said_where_only_the_tail_is_copied_from_on(chip: str, kind: str, limit: int) -> None:
    size = SIZE[kind]
    below = limit - 1 if limit % 32 == 0 else limit
    for columns, copied in ((below, up(below * size)), (limit + 1 + (limit + 1) % 32 // 32, None)):
        sort = Sort(roomy(chip), kind, 1, columns, tmp=up(columns)).equals_library()
        assert sort.tmp is not None
        written = np.flatnonzero(sort.bench.traced(Mode.WRITE)[sort.tmp.address : sort.tmp.address + sort.tmp.nbytes])
        assert written[-1] + 1 == (up(columns) * size if copied else 32 * size)


@pytest.mark.parametrize("chip", CHIPS)
def test_said_tmp_needs_the_columns_rounded_up_or_one_block(chip: str) -> None:
    for columns, enough, codes in ((40, 64, []), (40, 56, ["TSORT32-2"]), (16400, 32, []), (16400, 24, ["TSORT32-2"])):
        sort = Sort(roomy(chip), "f32", 1, columns, tmp=enough).equals_library()
        assert [c for c in sort.codes() if c != "E-TSORT32-READ"] == codes
    message = next(d["headline"] for k, d in sort.bench.sink.notes if k == "finding" and d["code"] == "TSORT32-2")
    assert message == "TSORT32: tmp has 96 bytes and 128 are written: the last 32 fall beyond it"


def test_said_tmp_bytes_are_c_times_size_rounded_up_but_that_is_too_few() -> None:
    sort = Sort("a2a3", "f32", 1, 100, tmp=104).equals_library()  # 416 bytes; 512 are written
    assert sort.codes() == ["TSORT32-2"]


def test_said_a5_rounds_strides_to_32_bytes_which_tiles_have_anyway() -> None:
    with pytest.raises(Refused, match="a row of tile dst is 400 bytes") as refusal:
        Bench("a5").issue("TSORT32", *(Tile(t.dtype, 1, 100, 1, 100, 0) for t in Sort("a5", "f32", 1, 32).args))
    assert refusal.value.diagnostic.code == "L013"


def test_said_a_program_with_half_tiles_of_100_columns_but_it_does_not_compile() -> None:
    sort = Sort("a2a3", "f16", 1, 96)
    narrow = replace(sort.src, cols=100, valid_cols=100)
    with pytest.raises(Refused) as refusal:
        sort.bench.issue("TSORT32", sort.dst, narrow, sort.idx)
    assert refusal.value.diagnostic.code == "L013"


# The public test cases, and what they hide


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("kind", "rows", "columns"), [("f32", 2, 32), ("f16", 4, 64), ("f32", 1, 8192)],
)  # fmt: skip
def test_public_cases(chip: str, kind: str, rows: int, columns: int) -> None:
    sort = Sort(roomy(chip), kind, rows, columns, tmp=columns).equals_library()
    assert sort.codes() == []


@pytest.mark.parametrize("chip", CHIPS)
def test_the_public_case_with_a_tail_has_a_small_dst_and_a_small_tmp(chip: str) -> None:
    sort = Sort(chip, "f32", 2, 13, tmp=16, src_cols=16, dst_cols=32).equals_library()
    assert [c for c in sort.codes() if c != "E-TSORT32-READ"] == ["TSORT32-1", "TSORT32-2"]
    # The first row writes 32 pairs into a row for 16; the second row overwrites the last 16 of them.
    assert (sort.pairs(1)[13:, 0] == NEGATIVE_NAN[4]).all()


# Rows and other shapes


@pytest.mark.parametrize("chip", CHIPS)
def test_other_numbers_of_rows_are_reported(chip: str) -> None:
    sort = Sort(chip, "f32", 3, 32)
    sort.src = replace(sort.src, valid_rows=2)
    assert sort.equals_library().codes() == ["TSORT32-5"]
    sort = Sort(chip, "f32", 3, 32)
    sort.idx = replace(sort.idx, valid_rows=2)
    assert sort.equals_library().codes() == ["TSORT32-4"]
    sort = Sort(chip, "f32", 3, 32)
    sort.idx = replace(sort.idx, valid_cols=31)
    assert sort.equals_library().codes() == ["TSORT32-4"]


@pytest.mark.parametrize("chip", CHIPS)
def test_no_rows_do_nothing(chip: str) -> None:
    sort = Sort(chip, "f32", 2, 32)
    for name in ("dst", "src", "idx"):
        setattr(sort, name, replace(getattr(sort, name), valid_rows=0))
    assert sort.equals_library().bench.trace().rows.size == 1


def test_the_reference_sorts_as_told() -> None:
    values = np.array([1.0, -np.inf, np.inf, 0.0, -0.0], np.float32).view(np.uint32)
    got = sorted_block(values, np.array([5, 4, 3, 2, 1], np.uint32))
    assert got[:, 1].tolist() == [3, 5, 1, 2, 4]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("profile", [*CHIPS, "cpu"])
def test_machine_code_gives_what_numpy_gives_and_warns_of_as_much(
    profile: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, bits = np.random.default_rng(5), f"u{SIZE[kind]}"
    told = []
    for is_worth_it in (True, False):
        monkeypatch.setattr(network, "is_worth_it", lambda elements, answer=is_worth_it: answer)
        bench, findings = Bench(profile), []
        shapes = {(1, 32): 1, (3, 96): 1, (3, 64): 3, (20, 32): 20}
        calls = []
        for (rows, columns), idx_rows in shapes.items():
            src, idx = bench.tile(kind, rows, columns), bench.tile("u32", idx_rows, columns)
            calls.append((bench.tile(kind, rows, columns * 8 // SIZE[kind]), src, idx))
        random = np.random.default_rng(5)
        for turn in range(6):
            for dst, src, idx in calls:
                values = random.integers(-9, 9, (src.rows, src.cols)).astype(src.dtype.numpy)
                if turn == 3:
                    values[0, 4:9] = -0.0
                if turn == 4:
                    values[-1, -1] = np.nan
                bench.core.view(src.region())[...] = values
                order = np.arange(idx.cols) if turn != 5 else np.arange(idx.cols)[::-1]
                bench.core.view(idx.region())[...] = order
                bench.issue("tsort32", dst, src, idx)
                findings.append((list(bench.findings()), bench.read(dst).view(bits)))
        told.append(findings)
    for (by_code, code), (by_numpy, numpy) in zip(*told, strict=True):
        assert by_code == by_numpy
        assert np.array_equal(code, numpy)
    assert {*told[0][-1][0]} == {"SORT-NAN", "SORT-TIE"}
