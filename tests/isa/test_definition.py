"""The record of an instruction: names, defaults, numbers in and out of semantics, register types."""

import contextlib
import gc
import weakref

import numpy as np
import pytest

from ascsim import profiles
from ascsim.diagnostics import Refused
from ascsim.isa import REGISTRY
from ascsim.isa.definition import lanes_in, scalar_cell, scalar_of, store_lanes
from ascsim.machine.dtypes import DTYPES, bf16, f16, f32
from harness import Bench


@pytest.mark.parametrize("name", ["TSORT32", "tsort32", "pto.tsort32"])
def test_a_definition_is_found_by_any_of_its_names(name):
    assert REGISTRY.find(name)[0].title == "TSORT32"


def test_one_c_name_can_be_two_instructions_by_chip():
    for profile in ("a2a3", "a5"):
        chip = profiles.load(profile)
        assert profile in REGISTRY.find("asc_copy_gm2ub", chip)[0].profiles


def test_numbers_are_the_registration_order_and_unique():
    numbers = [d.number for d in REGISTRY.definitions]
    assert numbers == list(range(1, len(numbers) + 1))


def test_optional_operands_take_their_default():
    definition = REGISTRY.find("TSORT32")[0]
    bench = Bench("a2a3")
    tile = bench.tile("f32", 1, 32)
    assert definition.call((tile, tile, tile)).tmp is None


def test_widened_arithmetic_rounds_once():
    a = np.array([1.0, 2048.0], np.float16)
    wide = lanes_in(a, "widen", f16)
    assert wide.dtype == np.float32
    out = np.zeros(2, np.float16)
    store_lanes(out, wide + np.float32(1.0009765625), "widen", f16)
    assert out.tolist() == [2.0, 2050.0]


def test_bits_are_the_same_memory():
    a = np.array([1.5], np.float32)
    lanes_in(a, "bits", f32)[0] |= np.uint32(1 << 31)
    assert a[0] == -1.5


@pytest.mark.parametrize(
    ("kind", "value"), [("f32", 1.5), ("f16", -2.0), ("i32", -7), ("u8", 255), ("i64", -(2**63)), ("bf16", 3.0)]
)
def test_a_scalar_crosses_to_compiled_code_as_its_bits(kind, value):
    cell = scalar_cell(value, DTYPES[kind])
    assert cell.nbytes == 8
    assert scalar_of(cell, DTYPES[kind]) == value


def test_register_types_are_inferred_and_must_agree():
    bench = Bench("a5")
    add = bench.definition("vadd")
    one, other = bench.vreg("f32", np.zeros(64)), bench.vreg("i32", np.zeros(64))
    mask = bench.mask(np.ones(64), 4)
    assert add.infer((one, one, mask)).types == {"T": f32}
    with pytest.raises(Refused) as refusal:
        add.infer((one, other, mask))
    assert refusal.value.diagnostic.code == "L003"


def test_a_type_that_an_instruction_lacks_is_refused_with_those_it_has():
    with pytest.raises(Refused) as refusal:
        REGISTRY.find("asc_intlv")[0].bind(T=DTYPES["i64"])
    assert refusal.value.diagnostic.code == "L002"
    assert "bf16" in refusal.value.diagnostic.mend
    assert REGISTRY.find("asc_intlv")[0].bind(T=bf16).types == {"T": bf16}


def test_a_refusal_that_is_remembered_holds_nothing_of_the_run():
    bench = Bench("a5")
    tile = bench.tile("f32", 1, 32)
    for _ in range(2):
        with contextlib.suppress(Refused):
            bench.issue("tadd", tile, tile, bench.tile("f16", 1, 32))
    found = weakref.ref(bench)
    del bench
    gc.collect()
    assert found() is None
