"""Interleave and deinterleave: each statement of the asc_intlv page, hand-worked values, references, properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from ascsim.isa import REGISTRY
from ascsim.isa.definition import RegisterInstruction
from ascsim.machine.dtypes import DTYPES
from ascsim.profiles import NAMES
from harness import Bench, MReg, VReg

TYPES = ("i8", "u8", "hif8", "f8e8m0", "f8e5m2", "f8e4m3", "i16", "u16", "f16", "bf16", "i32", "u32", "f32")
PAIRS = ("asc_intlv", "asc_deintlv")
GROUPS = {8: 1, 16: 2, 32: 4}
NAMES_OF_ALL = [f"{name}{end}" for name in PAIRS for end in ("", "_b8", "_b16", "_b32")]

registers = st.binary(min_size=256, max_size=256).map(lambda b: np.frombuffer(b, np.uint8).copy())
masks = st.binary(min_size=32, max_size=32).map(
    lambda b: np.unpackbits(np.frombuffer(b, np.uint8), bitorder="little")
)  # fmt: skip
kinds = st.sampled_from(TYPES)


def definition(name: str) -> RegisterInstruction:
    found = REGISTRY.by_cpp[name][0]
    assert isinstance(found, RegisterInstruction)
    return found


def woven(a: np.ndarray, b: np.ndarray, unit: int) -> tuple[np.ndarray, np.ndarray]:
    """The page's figure, element by element: lane i of src0 to place 2i of the stream, of src1 to place 2i + 1."""
    stream = bytearray()
    for i in range(0, a.size, unit):
        stream += bytes(a[i : i + unit]) + bytes(b[i : i + unit])
    both = np.frombuffer(bytes(stream), np.uint8)
    return both[: a.size], both[a.size :]


def vectors(name: str, kind: str, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    made = Bench("a5").issue(name, VReg(DTYPES[kind], a), VReg(DTYPES[kind], b))
    assert all(r.dtype is DTYPES[kind] for r in made)
    return made[0].data, made[1].data


def mask_pair(name: str, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = Bench("a5").issue(name, MReg(a), MReg(b))
    return low.data, high.data


# The page, statement by statement


@pytest.mark.parametrize("name", NAMES_OF_ALL)
def test_only_the_950_has_it(name: str) -> None:
    made = definition(name).bind(**definition(name).variants[0])
    for profile in set(NAMES) - {"a5"}:
        bench = Bench(profile)
        args = (MReg(), MReg()) if "_b" in name else (VReg(DTYPES["i8"]), VReg(DTYPES["i8"]))
        with pytest.raises(Refused) as refusal:
            bench.machine.issue(bench.core, made, args, 0)
        diagnostic = refusal.value.diagnostic
        assert diagnostic.code == "L001"
        assert name in diagnostic.headline
        assert "a5" in diagnostic.mend
        assert "950" in diagnostic.mend


def test_the_first_halves_go_alternately_to_dst0_and_the_second_to_dst1() -> None:
    a, b = np.arange(64, dtype=np.float32), np.arange(64, dtype=np.float32) + 100
    dst0, dst1 = vectors("asc_intlv", "f32", a.view(np.uint8), b.view(np.uint8))
    np.testing.assert_array_equal(dst0.view(np.float32)[:6], [0, 100, 1, 101, 2, 102])
    np.testing.assert_array_equal(dst0.view(np.float32)[-2:], [31, 131])
    np.testing.assert_array_equal(dst1.view(np.float32)[:4], [32, 132, 33, 133])
    np.testing.assert_array_equal(dst1.view(np.float32)[-2:], [63, 163])


@pytest.mark.parametrize(("suffix", "group"), GROUPS.items())
def test_mask_forms_weave_groups_of_1_2_and_4_bits(suffix: int, group: int) -> None:
    a, b = np.zeros(256, np.uint8), np.zeros(256, np.uint8)
    a[group : 2 * group] = 1  # the second group of the first half
    b[128 + group : 128 + 2 * group] = 1
    dst0, dst1 = mask_pair(f"asc_intlv_b{suffix}", a, b)
    np.testing.assert_array_equal(np.flatnonzero(dst0), np.arange(2 * group, 3 * group))
    np.testing.assert_array_equal(np.flatnonzero(dst1), np.arange(3 * group, 4 * group))


def test_it_takes_effect_on_vector_cores_only() -> None:
    assert {definition(name).core for name in NAMES_OF_ALL} == {"aiv"}


@pytest.mark.parametrize("name", PAIRS)
def test_thirteen_element_types(name: str) -> None:
    assert {v["T"].name for v in definition(name).variants} == set(TYPES)


@pytest.mark.parametrize("name", NAMES_OF_ALL)
def test_the_prototype_has_two_destinations_then_two_sources_and_returns_nothing(name: str) -> None:
    assert definition(name).cpp_order == ("dst0", "dst1", "src0", "src1")
    assert definition(name).returns == ""


@pytest.mark.parametrize("name", PAIRS)
def test_the_sources_have_one_type(name: str) -> None:
    bench = Bench("a5")
    with pytest.raises(Refused) as refusal:
        bench.issue(name, bench.vreg("i8", np.zeros(256)), bench.vreg("u8", np.zeros(256)))
    assert refusal.value.diagnostic.code == "L003"
    assert "src1" in refusal.value.diagnostic.headline


@pytest.mark.parametrize("kind", ("i64", "u64", "f4e2m1x2", "i4x2"))
def test_other_types_are_refused(kind: str) -> None:
    with pytest.raises(Refused) as refusal:
        Bench("a5").issue("asc_intlv", VReg(DTYPES[kind]), VReg(DTYPES[kind]))
    assert refusal.value.diagnostic.code == "L002"


@settings(deadline=None, max_examples=20)
@given(kinds, registers)
def test_both_sources_may_be_one_register(kind: str, a: np.ndarray) -> None:
    source = VReg(DTYPES[kind], a)
    dst0, dst1 = Bench("a5").issue("asc_intlv", source, source)
    for dst, half in ((dst0, a[:128]), (dst1, a[128:])):
        lanes = half.view(DTYPES[kind].bits_dtype)
        np.testing.assert_array_equal(dst.data.view(DTYPES[kind].bits_dtype), np.repeat(lanes, 2))


@pytest.mark.parametrize("name", NAMES_OF_ALL)
def test_the_destinations_must_be_two_registers(name: str) -> None:
    rules = [r for r in definition(name).rules if r.registers]
    assert [(r.code, r.registers) for r in rules] == [("L008", ("dst0", "dst1"))]


def test_the_sources_stay_as_they_were() -> None:
    a, b = np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8)[::-1].copy()
    vectors("asc_intlv", "u8", a, b)
    np.testing.assert_array_equal(a, np.arange(256))
    np.testing.assert_array_equal(b, np.arange(256)[::-1])


def test_the_pages_program_gives_what_it_checks() -> None:
    bench = Bench("a5")
    input0 = bench.pointer("u8", np.arange(256))
    input1 = bench.pointer("u8", 255 - np.arange(256))
    output0, output1 = bench.pointer("u8", count=256), bench.pointer("u8", count=256)
    mask = bench.issue("asc_create_mask_b8", 0)
    src0, src1 = bench.issue("asc_loadalign", input0), bench.issue("asc_loadalign", input1)
    dst0, dst1 = bench.issue("asc_intlv", src0, src1)
    bench.issue("asc_storealign", output0, dst0, mask)
    bench.issue("asc_storealign", output1, dst1, mask)
    got0, got1 = bench.load(output0, 256), bench.load(output1, 256)
    for i in range(128):
        assert (got0[2 * i], got0[2 * i + 1]) == (i, 255 - i)
        assert (got1[2 * i], got1[2 * i + 1]) == (i + 128, 255 - (i + 128))


# References and properties


@settings(deadline=None, max_examples=40)
@given(kinds, registers, registers)
def test_interleaving_is_the_stream_cut_in_two(kind: str, a: np.ndarray, b: np.ndarray) -> None:
    for ours, theirs in zip(vectors("asc_intlv", kind, a, b), woven(a, b, DTYPES[kind].size), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@settings(deadline=None, max_examples=40)
@given(kinds, registers, registers)
def test_deinterleaving_is_the_inverse_both_ways(kind: str, a: np.ndarray, b: np.ndarray) -> None:
    for first, second in (PAIRS, PAIRS[::-1]):
        for ours, theirs in zip(vectors(second, kind, *vectors(first, kind, a, b)), (a, b), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", TYPES)
def test_deinterleaving_takes_even_lanes_then_odd(kind: str) -> None:
    lane = DTYPES[kind].bits_dtype
    a, b = (np.arange(256 // lane.itemsize).astype(lane) + k for k in (0, 7))
    even, odd = vectors("asc_deintlv", kind, a.view(np.uint8), b.view(np.uint8))
    np.testing.assert_array_equal(even.view(lane), np.concatenate([a[::2], b[::2]]))
    np.testing.assert_array_equal(odd.view(lane), np.concatenate([a[1::2], b[1::2]]))


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(sorted(GROUPS)), masks, masks)
def test_mask_forms_weave_and_unweave_all_bits(suffix: int, a: np.ndarray, b: np.ndarray) -> None:
    made = mask_pair(f"asc_intlv_b{suffix}", a, b)
    for ours, theirs in zip(made, woven(a, b, GROUPS[suffix]), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(mask_pair(f"asc_deintlv_b{suffix}", *made), (a, b), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(("u8", "f16", "f32")), masks, masks, registers, registers)
def test_woven_masks_govern_woven_lanes(
    kind: str, mask_a: np.ndarray, mask_b: np.ndarray, a: np.ndarray, b: np.ndarray
) -> None:
    bench, size = Bench("a5"), DTYPES[kind].size
    zero = VReg(DTYPES[kind])

    def kept(mask: np.ndarray, data: np.ndarray) -> VReg:
        return bench.issue("asc_select", VReg(DTYPES[kind], data), zero, MReg(mask))

    first = vectors("asc_intlv", kind, kept(mask_a, a).data, kept(mask_b, b).data)
    woven_masks = mask_pair(f"asc_intlv_b{8 * size}", mask_a, mask_b)
    woven_data = vectors("asc_intlv", kind, a, b)
    for result, mask, data in zip(first, woven_masks, woven_data, strict=True):
        np.testing.assert_array_equal(result, kept(mask, data).data)
