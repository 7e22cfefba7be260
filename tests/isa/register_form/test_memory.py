"""Aligned loads and stores: what each mode moves, where, and what the trace says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Fault, Refused
from ascsim.isa import REGISTRY
from ascsim.isa.definition import RegisterInstruction
from ascsim.machine.dtypes import DTYPES
from ascsim.machine.trace import Mode
from ascsim.machine.words import Space
from harness import Bench, MReg, Pointer, VReg

B8 = ("i8", "u8", "f4e2m1x2", "f4e1m2x2", "i4x2", "f8e8m0", "f8e5m2", "f8e4m3", "hif8")
B16 = ("i16", "u16", "f16", "bf16")
B32 = ("i32", "u32", "f32")
B64 = ("i64", "u64")
PLAIN = ("i8", "u8", *B16, *B32)
NAN_FREE = st.integers(0, 255)


class LoadMode(NamedTuple):
    """What the pages say of a load: types, bytes read and alignment by lane size, lane i of the result(s)."""

    types: tuple[str, ...]
    nbytes: Callable[[int], int]
    align: Callable[[int], int]
    lane: Callable[[np.ndarray, int, int], Any]
    results: int = 1


def _at(lanes: np.ndarray, i: int, n: int) -> Any:
    return lanes[i]


LOADS = {
    "": LoadMode((*B8, *B16, *B32, *B64), lambda s: 256, lambda s: 32, _at),
    "_brc_elem": LoadMode((*B8, *B16, *B32), lambda s: s, lambda s: s, lambda m, i, n: m[0]),
    "_brc_datablock": LoadMode((*B8, *B16, *B32), lambda s: 32, lambda s: 32, lambda m, i, n: m[i % m.size]),
    "_brc_elem2datablock": LoadMode(
        (*B16, *B32), lambda s: 8 * s, lambda s: 8 * s, lambda m, i, n: m[i * m.itemsize // 32]
    ),
    "_upsample": LoadMode((*B8, *B16), lambda s: 128, lambda s: 32, lambda m, i, n: m[i // 2]),
    "_downsample": LoadMode((*B8, *B16), lambda s: 512, lambda s: 32, lambda m, i, n: m[2 * i]),
    "_unpack": LoadMode((*B8, *B16, *B32), lambda s: 128, lambda s: 32, lambda m, i, n: 0 if i % 2 else m[i // 2]),
    "_unpack4": LoadMode(B8, lambda s: 64, lambda s: 32, lambda m, i, n: 0 if i % 4 else m[i // 4]),
    "_deintlv": LoadMode((*B8, *B16, *B32), lambda s: 512, lambda s: 32, lambda m, i, n: m[2 * i + n], 2),
}
STORES = {
    "": ((*B8, *B16, *B32), PLAIN), "_1st": ((*B8, *B16, *B32), PLAIN), "_intlv": ((*B8, *B16, *B32), None),
    "_pack": ((*B16, *B32, *B64), (*B16, *B32, *B64)), "_pack_quarter": (B32, B32),
}  # fmt: skip
LOAD_CASES = [(suffix, kind) for suffix, mode in LOADS.items() for kind in mode.types]
STORE_CASES = [(suffix, kind) for suffix, (types, _) in STORES.items() for kind in types]


def vector_form(cpp: str) -> RegisterInstruction:
    return next(d for d in REGISTRY.by_cpp[cpp] if "T" in d.variants[0])  # type: ignore[attr-defined, return-value]


def random_bytes(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, count).astype(np.uint8)


class Ub(Bench):
    """A bench whose UB is full of rubbish, and that issues one definition of a name."""

    def __init__(self) -> None:
        super().__init__("a5")
        self.memory()[:] = random_bytes(self.memory().size, 99)
        self.before = self.memory().copy()

    def run(self, definition: RegisterInstruction, *args: Any) -> Any:
        return self.machine.issue(self.core, definition.infer(args), args, self.machine.site("test.py", 1))

    def accesses(self) -> list[tuple[int, int, int, int]]:
        """(mode, start, length, align in bytes) of every access so far; all are one run of bytes in UB."""
        table = self.trace().accesses
        assert (table["space"] == Space.UB).all()
        assert (table["shape"] == 0).all()
        return [(int(a["mode"]), int(a["start"]), int(a["length"]), 1 << int(a["align"])) for a in table]

    def touched(self) -> np.ndarray:
        """The bytes that the trace says were written: starts, lengths and masks."""
        trace = self.trace()
        flags = np.zeros(self.memory().size, bool)
        for access in trace.accesses[trace.accesses["mode"] == Mode.WRITE]:
            start, length = int(access["start"]), int(access["length"])
            bits = np.ones(length, np.uint8)
            if access["mask"]:
                bits = np.unpackbits(trace.masks[access["mask"] - 1], bitorder="little")[:length]
            flags[start : start + length] |= bits.astype(bool)
        return flags


# Loads


@pytest.mark.parametrize(("suffix", "kind"), LOAD_CASES)
def test_a_load_puts_the_right_element_into_each_lane(suffix: str, kind: str) -> None:
    bench, mode, dtype = Ub(), LOADS[suffix], DTYPES[kind]
    nbytes, lane = mode.nbytes(dtype.size), dtype.bits_dtype
    at = 4096 + mode.align(dtype.size)
    result = bench.run(vector_form(f"asc_loadalign{suffix}"), Pointer(Space.UB, at, dtype))
    results = result if isinstance(result, tuple) else (result,)
    assert len(results) == mode.results
    memory = bench.before[at : at + nbytes].view(lane)
    for number, register in enumerate(results):
        assert register.dtype is dtype
        expected = np.array([mode.lane(memory, i, number) for i in range(256 // dtype.size)], lane)
        np.testing.assert_array_equal(register.data.view(lane), expected)
    assert bench.accesses() == [(Mode.READ, at, nbytes, mode.align(dtype.size))]
    np.testing.assert_array_equal(bench.memory(), bench.before)


@pytest.mark.parametrize("suffix", LOADS)
def test_a_load_exists_for_the_types_of_its_page(suffix: str) -> None:
    for end in ("", "_postupdate"):
        variants = vector_form(f"asc_loadalign{suffix}{end}").variants
        assert {v["T"].name for v in variants} == set(LOADS[suffix].types)


@pytest.mark.parametrize(
    ("suffix", "kind"), [("", "f32"), ("_downsample", "i16"), ("_unpack4", "u8"), ("_deintlv", "f16")]
)
@pytest.mark.parametrize("offset", (0, 64, -32, 1024))
def test_an_offset_counts_elements(suffix: str, kind: str, offset: int) -> None:
    bench, dtype, definition = Ub(), DTYPES[kind], vector_form(f"asc_loadalign{suffix}")
    near = bench.run(definition, Pointer(Space.UB, 8192 + offset * dtype.size, dtype))
    far = bench.run(definition, Pointer(Space.UB, 8192, dtype), offset)
    for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (near, far)), strict=True):
        np.testing.assert_array_equal(one.data, other.data)
    assert bench.accesses()[0] == bench.accesses()[1]


@pytest.mark.parametrize(("suffix", "kind"), [(s, m.types[-1]) for s, m in LOADS.items()])
def test_post_update_loads_at_the_pointer_and_then_moves_it(suffix: str, kind: str) -> None:
    bench, dtype = Ub(), DTYPES[kind]
    pointer = Pointer(Space.UB, 8192, dtype)
    plain = bench.run(vector_form(f"asc_loadalign{suffix}"), pointer)
    *loaded, moved = bench.run(vector_form(f"asc_loadalign{suffix}_postupdate"), pointer, 48)
    for one, other in zip(loaded, plain if isinstance(plain, tuple) else (plain,), strict=True):
        np.testing.assert_array_equal(one.data, other.data)
    assert moved == pointer + 48
    assert bench.accesses()[0] == bench.accesses()[1]


def test_deprecated_names_are_the_new_ones() -> None:
    pairs = {
        "asc_loadalign_brc": "brc_elem", "asc_loadalign_brc_v2": "brc_datablock",
        "asc_loadalign_brc_v3": "brc_elem2datablock", "asc_loadalign_unpack_v2": "unpack4",
    }  # fmt: skip
    for old, new in pairs.items():
        for end in ("", "_postupdate"):
            name = old.replace("_v", f"{end}_v") if "_v" in old else old + end
            assert REGISTRY.by_cpp[name] == REGISTRY.by_cpp[f"asc_loadalign_{new}{end}"]
    store = "asc_storealign_pack"
    assert REGISTRY.by_cpp[f"{store}_v2"] == REGISTRY.by_cpp[f"{store}_quarter"]
    assert REGISTRY.by_cpp[f"{store}_postupdate_v2"] == REGISTRY.by_cpp[f"{store}_quarter_postupdate"]


# Stores


def expected_store(suffix: str, data: list[np.ndarray], active: np.ndarray, size: int) -> dict[int, int]:
    """{byte after the pointer: its value} as the pages say."""
    stored: dict[int, int] = {}
    if suffix == "_1st":
        return {k: int(data[0][k]) for k in range(size)}
    if suffix == "_intlv":
        for i in range(256 // size):
            for number in range(2):
                for k in range(size):
                    stored[(2 * i + number) * size + k] = int(data[number][i * size + k])
        return stored
    kept = {"": size, "_pack": size // 2, "_pack_quarter": size // 4}[suffix]
    for i in range(256 // size):
        for k in range(kept if active[i] else 0):
            stored[i * kept + k] = int(data[0][i * size + k])
    return stored


def store_arguments(
    suffix: str, kind: str, at: int, lanes: np.ndarray, seed: int
) -> tuple[tuple[Any, ...], dict[int, int]]:
    dtype = DTYPES[kind]
    data = [random_bytes(256, seed + k) for k in range(2 if suffix == "_intlv" else 1)]
    mask = MReg()
    mask.data[:: dtype.size] = lanes[: 256 // dtype.size]
    masks = () if suffix in ("_1st", "_intlv") else (mask,)
    args = (Pointer(Space.UB, at, dtype), *(VReg(dtype, d) for d in data), *masks)
    return args, expected_store(suffix, data, lanes, dtype.size)


def assert_stored(bench: Ub, at: int, expected: dict[int, int]) -> None:
    wanted, flags = bench.before.copy(), np.zeros(bench.before.size, bool)
    for offset, value in expected.items():
        wanted[at + offset] = value
        flags[at + offset] = True
    np.testing.assert_array_equal(bench.memory(), wanted)
    np.testing.assert_array_equal(bench.touched(), flags)


@pytest.mark.parametrize(("suffix", "kind"), STORE_CASES)
@pytest.mark.parametrize("lanes", ("all", "some"))
def test_a_store_writes_its_lanes_and_no_other_byte(suffix: str, kind: str, lanes: str) -> None:
    bench, size = Ub(), DTYPES[kind].size
    at = 4096 + (size if suffix == "_1st" else 32)
    active = np.ones(256, np.uint8) if lanes == "all" else random_bytes(256, 5) & 1
    args, expected = store_arguments(suffix, kind, at, active, 11)
    assert bench.run(vector_form(f"asc_storealign{suffix}"), *args) is None
    assert_stored(bench, at, expected)
    ((mode, start, length, align),) = bench.accesses()
    assert (mode, start, length) == (Mode.WRITE, at, max(expected) + 1)
    assert align == (size if suffix == "_1st" else 32)


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([c for c in STORE_CASES if c[0] in ("", "_pack", "_pack_quarter")]),
    st.binary(min_size=32, max_size=32), st.integers(0, 1000),
)  # fmt: skip
def test_any_mask_leaves_a_trace_of_exactly_the_bytes(case: tuple[str, str], bits: bytes, seed: int) -> None:
    bench = Ub()
    active = np.unpackbits(np.frombuffer(bits, np.uint8))
    args, expected = store_arguments(*case, 2048, active, seed)
    bench.run(vector_form(f"asc_storealign{case[0]}"), *args)
    assert_stored(bench, 2048, expected)


def test_a_store_of_no_lane_touches_nothing() -> None:
    bench = Ub()
    args, _ = store_arguments("", "f32", 0, np.zeros(256, np.uint8), 1)
    bench.run(vector_form("asc_storealign"), *args)
    assert bench.accesses() == []
    assert len(bench.trace().rows) == 1
    np.testing.assert_array_equal(bench.memory(), bench.before)


def test_only_the_first_mask_bit_of_a_lane_counts() -> None:
    bench = Ub()
    mask = MReg(np.ones(256, np.uint8))
    mask.data[::4] = 0
    bench.run(vector_form("asc_storealign"), Pointer(Space.UB, 0, DTYPES["f32"]), VReg(DTYPES["f32"]), mask)
    assert bench.accesses() == []


def test_whole_registers_need_no_mask_in_the_trace() -> None:
    bench = Ub()
    args, _ = store_arguments("", "u8", 256, np.ones(256, np.uint8), 1)
    bench.run(vector_form("asc_storealign"), *args)
    assert bench.trace().accesses["mask"].tolist() == [0]


@pytest.mark.parametrize("suffix", STORES)
def test_a_store_exists_for_the_types_of_its_page(suffix: str) -> None:
    types, post = STORES[suffix]
    definition = vector_form(f"asc_storealign{suffix}")
    assert {v["T"].name for v in definition.variants} == set(types)
    lacking = [v["T"].name for v in definition.cpp_lacks]
    assert lacking == (["f32"] if suffix == "_intlv" else [])
    name = f"asc_storealign{suffix}_postupdate"
    if post is None:
        assert name not in REGISTRY.by_cpp
    else:
        assert {v["T"].name for v in vector_form(name).variants} == set(post)


def test_the_c_order_has_the_offset_before_the_mask() -> None:
    assert vector_form("asc_storealign").cpp_order == ("dst", "src", "offset", "mask")
    assert vector_form("asc_storealign_intlv").cpp_order == ("dst", "src0", "src1", "offset")
    assert vector_form("asc_loadalign_deintlv").cpp_order == ("dst0", "dst1", "src", "offset")


@pytest.mark.parametrize("suffix", [s for s, (_, post) in STORES.items() if post])
def test_post_update_stores_at_the_pointer_and_then_moves_it(suffix: str) -> None:
    bench, active = Ub(), random_bytes(256, 3) & 1
    args, expected = store_arguments(suffix, "i32", 1024, active, 4)
    assert bench.run(vector_form(f"asc_storealign{suffix}_postupdate"), *args, 64) == args[0] + 64
    assert_stored(bench, 1024, expected)


def test_a_stores_offset_counts_elements() -> None:
    bench = Ub()
    args, expected = store_arguments("", "i16", 1024, np.ones(256, np.uint8), 4)
    bench.run(vector_form("asc_storealign"), *args, 128)
    assert_stored(bench, 1024 + 256, expected)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from((*B8, *B16, *B32)), st.integers(0, 2**32 - 1))
def test_load_and_store_pairs_undo_each_other(kind: str, seed: int) -> None:
    bench, dtype = Ub(), DTYPES[kind]
    at, away = Pointer(Space.UB, 0, dtype), Pointer(Space.UB, 16384, dtype)
    bench.memory()[:512] = random_bytes(512, seed)
    even, odd = bench.run(vector_form("asc_loadalign_deintlv"), at)
    bench.run(vector_form("asc_storealign_intlv"), away, even, odd)
    np.testing.assert_array_equal(bench.memory()[16384 : 16384 + 512], bench.memory()[:512])


@pytest.mark.parametrize("kind", (*B16, *B32))
def test_pack_undoes_unpack_where_the_types_meet(kind: str) -> None:
    bench, half = Ub(), f"u{4 * DTYPES[kind].size}"
    wide = bench.run(vector_form("asc_loadalign_unpack"), Pointer(Space.UB, 0, DTYPES[half]))
    mask, source = MReg(np.ones(256, np.uint8)), VReg(DTYPES[kind], wide.data)
    bench.run(vector_form("asc_storealign_pack"), Pointer(Space.UB, 8192, DTYPES[kind]), source, mask)
    np.testing.assert_array_equal(bench.memory()[8192 : 8192 + 128], bench.before[:128])


# Mask registers


def mask_form(cpp: str) -> RegisterInstruction:
    return next(d for d in REGISTRY.by_cpp[cpp] if "P" in d.variants[0])  # type: ignore[attr-defined, return-value]


@pytest.mark.parametrize(
    ("suffix", "nbytes", "bit"),
    [("", 32, lambda i: i), ("_upsample", 16, lambda i: i // 2), ("_downsample", 64, lambda i: 2 * i)],
)
def test_a_mask_load_reads_one_bit_an_entry(suffix: str, nbytes: int, bit: Callable[[int], int]) -> None:
    bench = Ub()
    mask = bench.run(mask_form(f"asc_loadalign{suffix}"), Pointer(Space.UB, 4096, DTYPES["u32"]))
    memory = int.from_bytes(bench.before[4096 : 4096 + nbytes].tobytes(), "little")
    np.testing.assert_array_equal(mask.data, [memory >> bit(i) & 1 for i in range(256)])
    assert bench.accesses() == [(Mode.READ, 4096, nbytes, min(nbytes, 32))]


@pytest.mark.parametrize(("suffix", "nbytes", "step"), [("", 32, 1), ("_pack", 16, 2)])
@pytest.mark.parametrize("kind", ("u32", "u16", "u8"))
def test_a_mask_store_writes_one_bit_an_entry(suffix: str, nbytes: int, step: int, kind: str) -> None:
    bench, entries = Ub(), random_bytes(256, 8) & 1
    bench.run(mask_form(f"asc_storealign{suffix}"), Pointer(Space.UB, 4096, DTYPES[kind]), MReg(entries))
    bits = "".join(str(b) for b in entries[::step][::-1])
    assert_stored(bench, 4096, dict(enumerate(int(bits, 2).to_bytes(nbytes, "little"))))
    assert bench.accesses() == [(Mode.WRITE, 4096, nbytes, nbytes)]


@pytest.mark.parametrize("name", ("asc_loadalign", "asc_loadalign_upsample", "asc_loadalign_downsample"))
def test_a_mask_loads_offset_counts_bytes(name: str) -> None:
    bench = Ub()
    mask, moved = bench.run(mask_form(f"{name}_postupdate"), Pointer(Space.UB, 4096, DTYPES["u32"]), 64)
    assert moved.offset == 4096 + 64
    same = bench.run(mask_form(name), Pointer(Space.UB, 4032, DTYPES["u32"]), 64)
    np.testing.assert_array_equal(mask.data, same.data)


def test_mask_stores_move_their_pointer_by_bytes() -> None:
    bench = Ub()
    for name in ("asc_storealign_postupdate", "asc_storealign_pack_postupdate"):
        assert bench.run(mask_form(name), Pointer(Space.UB, 512, DTYPES["u16"]), MReg(), 32).offset == 544


def test_a_mask_comes_back_and_up_and_down_sampling_undo_each_other() -> None:
    bench, entries = Ub(), random_bytes(256, 12) & 1
    at = Pointer(Space.UB, 0, DTYPES["u32"])
    bench.run(mask_form("asc_storealign"), at, MReg(entries))
    np.testing.assert_array_equal(bench.run(mask_form("asc_loadalign"), at).data, entries)
    wide = bench.run(mask_form("asc_loadalign_upsample"), at)
    np.testing.assert_array_equal(wide.data, np.repeat(entries[:128], 2))
    bench.run(mask_form("asc_storealign_pack"), at, wide)
    np.testing.assert_array_equal(bench.run(mask_form("asc_loadalign"), at).data[:128], entries[:128])


def test_pto_text_may_point_to_any_type_for_a_mask() -> None:
    bench = Ub()
    mask = bench.run(mask_form("asc_loadalign"), Pointer(Space.UB, 64, DTYPES["i64"]))
    assert isinstance(mask, MReg)


# Bounds


def test_a_load_beyond_ub_is_recorded_and_one_far_beyond_ends_the_run() -> None:
    bench = Ub()
    capacity = bench.core.memory(Space.UB).capacity
    bench.run(vector_form("asc_loadalign"), Pointer(Space.UB, capacity - 128, DTYPES["u8"]))
    assert bench.accesses() == [(Mode.READ, capacity - 128, 256, 32)]
    with pytest.raises(Fault) as fault:
        bench.run(vector_form("asc_loadalign"), Pointer(Space.UB, 1 << 30, DTYPES["u8"]))
    assert fault.value.diagnostic.code == "M001"


@pytest.mark.parametrize("space", (Space.GM, Space.L1))
def test_a_pointer_elsewhere_is_refused(space: Space) -> None:
    with pytest.raises(Refused) as refusal:
        Ub().run(vector_form("asc_loadalign"), Pointer(space, 0, DTYPES["u8"]))
    assert refusal.value.diagnostic.code == "L005"
    assert space.name in refusal.value.diagnostic.headline


def test_register_and_pointer_have_one_type() -> None:
    with pytest.raises(Refused) as refusal:
        Ub().run(vector_form("asc_storealign"), Pointer(Space.UB, 0, DTYPES["f16"]), VReg(DTYPES["f32"]), MReg())
    assert refusal.value.diagnostic.code == "L003"
