"""Distribution modes of loads and stores."""

from __future__ import annotations

import numpy as np
import pytest

from ascsim.isa.semantics.distribute import DISTRIBUTIONS, distribution

RAMP = np.arange(512).astype(np.uint8)
"""Bytes 0, 1, .. 255, 0, 1, .. in memory."""


def ids(row):
    return f"{row.kind}-{row.token}-{row.lane_size}"


def rows(*kinds):
    return [pytest.param(row, id=ids(row)) for row in DISTRIBUTIONS if row.kind in kinds]


def random_bytes(seed, count):
    return np.random.default_rng(seed).integers(0, 256, count).astype(np.uint8)


def load(row, memory):
    """Registers as bytes."""
    result = row.function(memory.view(f"u{row.lane_size}"))
    registers = result if isinstance(result, tuple) else (result,)
    assert len(registers) == row.registers
    assert all(r.nbytes == 256 and r.dtype.itemsize == row.lane_size for r in registers)
    return [r.view(np.uint8) for r in registers]


def expected_load(row, memory):
    """Byte by byte: register byte -> memory byte, None for zero."""
    stem = row.token.split("_")[0]
    k = row.lane_size
    result = []
    for number in range(row.registers):
        for byte in range(256):
            lane, within = divmod(byte, k)
            source = {
                "NORM": byte,
                "BRC": within,
                "BLK": byte % 32,
                "E2B": byte // 32 * k + within,
                "US": lane // 2 * k + within,
                "DS": 2 * lane * k + within,
                "UNPK": None if lane % 2 else lane // 2 * k + within,
                "UNPK4": None if lane % 4 else lane // 4 * k + within,
                "DINTLV": (2 * lane + number) * k + within,
            }[stem]
            result.append(0 if source is None else int(memory[source]))
    return result


@pytest.mark.parametrize("row", rows("load"))
def test_loads_byte_by_byte(row):
    memory = random_bytes(1, row.nbytes)
    got = load(row, memory)
    assert [int(b) for r in got for b in r] == expected_load(row, memory)


def test_loads_of_the_documentation():
    """The examples of the page on LoadAlign, 256-byte registers."""
    (unpacked,) = load(distribution("load", "UNPK_B8"), RAMP[:128])
    assert unpacked[:6].tolist() == [0, 0, 1, 0, 2, 0] and unpacked[-2:].tolist() == [0x7F, 0]
    words = np.arange(64, dtype=np.uint16)
    assert distribution("load", "UNPK_B16").function(words).view(np.uint32).tolist() == list(range(64))
    assert distribution("load", "UNPK_B32").function(np.arange(32, dtype=np.uint32)).view(np.uint64).tolist() == list(
        range(32)
    )
    assert distribution("load", "UNPK4_B8").function(RAMP[:64]).view(np.uint32).tolist() == list(range(64))
    even, odd = distribution("load", "DINTLV_B32").function(np.arange(128, dtype=np.uint32))
    assert even.tolist() == list(range(0, 128, 2)) and odd.tolist() == list(range(1, 128, 2))


def registers_for(row, seed=3):
    data = random_bytes(seed, 256 * row.registers).reshape(row.registers, 256)
    return [r.copy().view(f"u{row.lane_size}") for r in data]


def store(row, registers, active):
    data, written = row.function(*registers, *([active] if row.masked else []))
    assert data.dtype == written.dtype == np.uint8 and data.size == written.size == row.nbytes
    assert set(written.tolist()) <= {0, 1}
    return data, written


@pytest.mark.parametrize("row", rows("store"))
@pytest.mark.parametrize("density", [0.0, 0.5, 1.0])
def test_stores_byte_by_byte(row, density):
    registers = registers_for(row)
    lanes = 256 // row.lane_size
    active = (np.random.default_rng(4).random(lanes) < density).astype(np.uint8)
    data, written = store(row, registers, active)
    stem = row.token.split("_")[0]
    memory = {}
    for lane in range(lanes):
        for number, register in enumerate(registers):
            raw = register[lane : lane + 1].tobytes()
            kept, place = {
                "NORM": (raw, lane * row.lane_size),
                "ONEPT": (raw if lane == 0 else b"", 0),
                "INTLV": (raw, (2 * lane + number) * row.lane_size),
                "PK": (raw[: row.lane_size // 2], lane * row.lane_size // 2),
                "PK4": (raw[: row.lane_size // 4], lane * row.lane_size // 4),
            }[stem]
            if not row.masked or active[lane]:
                memory.update({place + i: b for i, b in enumerate(kept)})
    assert {int(i): int(data[i]) for i in np.flatnonzero(written)} == memory


def test_stores_of_the_documentation():
    """The examples of the page on StoreAlign."""
    register = np.zeros(128, np.uint16)
    register[:4] = [0x3210, 0x7654, 0xBA98, 0xFEDC]
    data, _ = distribution("store", "PK_B16").function(register, np.ones(128, np.uint8))
    assert data.view(np.uint16)[:2].tolist() == [0x5410, 0xDC98]
    even, odd = np.arange(0, 512, 2).astype(np.uint8), np.arange(1, 512, 2).astype(np.uint8)
    data, written = distribution("store", "INTLV_B8").function(even, odd)
    assert data.tolist() == RAMP.tolist() and written.all()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_interleaved_store_and_load_are_inverse(size):
    row = distribution("store", f"INTLV_B{8 * size}")
    registers = registers_for(row)
    data, _ = store(row, registers, None)
    back = load(distribution("load", f"DINTLV_B{8 * size}"), data)
    assert [b.tobytes() for b in back] == [r.tobytes() for r in registers]


@pytest.mark.parametrize("size", [1, 2])
def test_pack_undoes_unpack(size):
    memory = random_bytes(5, 128)
    register = distribution("load", f"UNPK_B{8 * size}").function(memory.view(f"u{size}"))
    data, written = distribution("store", f"PK_B{16 * size}").function(
        register.view(f"u{2 * size}"), np.ones(256 // size // 2, np.uint8)
    )
    assert data.tolist() == memory.tolist() and written.all()


def mask_bits(memory):
    return [memory[i // 8] >> (i % 8) & 1 for i in range(8 * memory.size)]


def test_mask_loads():
    for seed in range(5):
        memory = random_bytes(seed, 64)
        bits = [int(b) for b in mask_bits(memory)]
        assert distribution("mask_load", "NORM").function(memory[:32]).tolist() == bits[:256]
        assert distribution("mask_load", "US").function(memory[:16]).tolist() == [b for b in bits[:128] for _ in "ab"]
        assert distribution("mask_load", "DS").function(memory).tolist() == bits[::2]


def test_mask_of_the_public_example():
    """Bytes 1 and 32 of memory hold 1: entries 1 and 249 are set (counted from one)."""
    memory = np.zeros(32, np.uint8)
    memory[[0, 31]] = 1
    mask = distribution("mask_load", "NORM").function(memory)
    assert (np.flatnonzero(mask) + 1).tolist() == [1, 249]


def test_mask_stores():
    mask = np.random.default_rng(6).integers(0, 2, 256).astype(np.uint8)
    data, written = distribution("mask_store", "NORM").function(mask)
    assert mask_bits(data) == mask.tolist() and written.tolist() == [1] * 32
    data, written = distribution("mask_store", "PK").function(mask)
    assert mask_bits(data) == mask[::2].tolist() and written.tolist() == [1] * 16
    assert distribution("mask_store", "NORM").function(np.ones(256, np.uint8))[0].tolist() == [255] * 32


def test_the_table():
    assert len({ids(row) for row in DISTRIBUTIONS}) == len(DISTRIBUTIONS)
    figures = {(r.kind, r.token): (r.nbytes, r.alignment, r.registers, r.masked) for r in DISTRIBUTIONS}
    assert figures["load", "NORM"] == (256, 32, 1, False)
    assert figures["load", "BRC_B16"] == (2, 2, 1, False)
    assert figures["load", "BLK"] == (32, 32, 1, False)
    assert figures["load", "E2B_B16"] == (16, 16, 1, False)
    assert figures["load", "E2B_B32"] == (32, 32, 1, False)
    assert figures["load", "US_B16"] == (128, 32, 1, False)
    assert figures["load", "DS_B8"] == (512, 32, 1, False)
    assert figures["load", "UNPK4_B8"] == (64, 32, 1, False)
    assert figures["load", "DINTLV_B8"] == (512, 32, 2, False)
    assert figures["store", "NORM_B32"] == (256, 32, 1, True)
    assert figures["store", "ONEPT_B16"] == (2, 2, 1, False)
    assert figures["store", "PK_B64"] == (128, 32, 1, True)
    assert figures["store", "PK4_B32"] == (64, 32, 1, True)
    assert figures["mask_load", "US"] == (16, 16, 1, False)
    assert figures["mask_load", "DS"] == (64, 32, 1, False)
    assert figures["mask_store", "PK"] == (16, 16, 1, False)


def test_lookup():
    assert distribution("load", "NORM", 4).lane_size == 4
    assert distribution("load", "BLK", 2).lane_size == 2
    assert distribution("store", "PK_B32").lane_size == 4
    with pytest.raises(KeyError, match="no load distribution E2B_B8"):
        distribution("load", "E2B_B8")


def one_width_quickly():
    """Every row; those whose function comes in another width before them are slow."""
    seen = set()
    for row in DISTRIBUTIONS:
        yield pytest.param(row, id=ids(row), marks=[pytest.mark.slow] if row.function in seen else [])
        seen.add(row.function)


@pytest.mark.parametrize("row", list(one_width_quickly()))
def test_compiled(row, agrees):
    if row.kind.endswith("load"):
        agrees(row.function, random_bytes(7, row.nbytes).view(f"u{row.lane_size}"))
    elif row.kind == "mask_store":
        agrees(row.function, random_bytes(8, 256) & np.uint8(1))
    else:
        active = [random_bytes(9, 256 // row.lane_size) & np.uint8(1)] if row.masked else []
        agrees(row.function, *registers_for(row), *active)
