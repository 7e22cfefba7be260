"""The compiled form of register instructions against the NumPy form, and how it is kept on disk."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascsim.isa import compile
from ascsim.isa.definition import BoundRegisterInstruction, RegisterInstruction, Sort
from ascsim.machine.dtypes import DTYPES
from registers import buffers, register_instructions

ALL = [d.bind(**v) for d in register_instructions() for v in d.variants]

SAMPLE = (
    ("vintlv", "u8"), ("vdintlv", "f32"), ("pintlv_b16", ""), ("pdintlv_b32", ""), ("pset_b16", ""), ("plt_b32", "u32"),
    ("vlds", "f16"), ("vlds_brc", "i16"), ("vlds_e2b", "f32"), ("vlds_unpk", "u8"), ("vlds_dintlv", "bf16"),
    ("plds_us", "u32"), ("vsts", "f32"), ("vsts_onept", "u8"), ("vsts_pk", "i64"), ("psts_pk", "u8"), ("vdup", "f16"),
    ("vdups", "f8e4m3"), ("vci", "f16"), ("vci_descend", "i8"), ("vadd", "u8"), ("vadd", "f16"), ("vadd", "bf16"),
    ("vaddc", "u32"), ("vmax", "f32"), ("vmax", "f16"), ("vcmp_lt", "bf16"), ("vcmp_ne", "f32"), ("vsel", "hif8"),
    ("psel", ""), ("vcmax", "f16"), ("vcvt_f16_f32_v2", "f32"), ("vcvt_f32_f16_rz_sat", "f16"),
    ("vsqz", "bf16"), ("vsqz_stored", "u8"), ("sprclr", ""), ("vusqz", "i8"), ("vpack_high", "u8"), ("ppack_low", ""),
    ("vsunpack_upper", "i32"), ("punpack_lower", ""), ("dhistv2_n1", "u16"), ("chistv2_n1", "u16"), ("vnot", "f16"),
    ("pxor", ""), ("vshl", "i8"), ("vshrs", "i32"), ("vcmps_ne", "f16"), ("vcgmin", "f16"), ("vcgadd", "i32"),
    ("vcadd", "f16"), ("vcpadd", "f32"), ("movp_b16", ""),
    ("vdiv", "f32"), ("vdiv", "i16"), ("vexp", "f16"), ("vln", "f32"), ("vmadd", "f16"), ("vaxpy", "f32"), ("vmull", "i32"),
    ("vsubcs", "u32"), ("vprelu", "f16"), ("vexpdif_v2", "f32"), ("vmulscvt", "f16"),
    ("vcvt_f32_i64_rd_sat", "i64"), ("vcvt_f16_i4x2_rna_v2", "i4x2"), ("vcvt_i4x2_bf16_v3", "bf16"), ("vtrc_ceil", "bf16"),
    ("vcvt_i32_u8_sat_v4", "u8"), ("vcvt_f32_f8e4m3_rn_v2", "f8e4m3"), ("vcvt_hif8_f16", "f16"), ("vcvt_i64_f32_rz", "f32"),
)  # fmt: skip


def bound_of(name: str, first: str = "") -> BoundRegisterInstruction:
    definition: Any = next(d for d in register_instructions() if d.name == name)
    variant = next(v for v in definition.variants if not first or next(iter(v.values())) is DTYPES[first])
    return definition.bind(**variant)


def run_compiled(bound: BoundRegisterInstruction, arguments: list[np.ndarray]) -> None:
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arguments))(compile.native_pointer(bound))
    entry(*(a.ctypes.data for a in arguments))


def assert_both_forms_agree(bound: BoundRegisterInstruction, rounds: int = 8) -> None:
    rng = np.random.default_rng(sum(map(ord, repr(bound))))
    for _ in range(rounds):
        plain = buffers(bound, rng)
        compiled = [a.copy() for a in plain]
        inputs = [a.copy() for a in plain]
        bound.run(*plain)
        run_compiled(bound, compiled)
        for name, ours, theirs, before in zip(compile.parameters(bound), compiled, plain, inputs, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=f"{bound}: {name}")
            if name.startswith("in_"):
                np.testing.assert_array_equal(ours, before, err_msg=f"{bound} changed {name}")


@pytest.mark.parametrize(("name", "first"), SAMPLE)
def test_both_forms_give_the_same_bytes(name: str, first: str) -> None:
    assert_both_forms_agree(bound_of(name, first))


@pytest.mark.slow
@pytest.mark.parametrize("bound", ALL, ids=repr)
def test_both_forms_of_every_variant_give_the_same_bytes(bound: BoundRegisterInstruction) -> None:
    assert_both_forms_agree(bound, 30)


def test_names_and_types_tell_every_variant_apart() -> None:
    assert len({(b.name, *(t.name for t in b.types.values())) for b in ALL}) == len(ALL)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vintlv", {"out_dst0": 256, "out_dst1": 256, "in_src0": 256, "in_src1": 256}),
        ("vlds_ds", {"out_dst": 256, "in_src": 512}),
        ("vlds_dintlv_post", {"out_dst0": 256, "out_dst1": 256, "in_src": 512}),
        ("vsts_pk", {"out_data": 128, "out_written": 128, "in_src": 256, "in_mask": 256}),
        ("plt_b16", {"out_mask": 256, "out_value": 8, "in_value": 8}),
        ("pset_b8", {"out_mask": 256, "in_pattern": 8}),
        ("vdups", {"out_dst": 256, "in_value": 8, "in_mask": 256}),
    ],
)
def test_parameters_are_written_buffers_then_inputs(name: str, expected: dict[str, int]) -> None:
    bound = bound_of(name)
    assert {n: compile.buffer_bytes(bound, n) for n in compile.parameters(bound)} == expected
    assert compile.parameters(bound) == list(expected)


def test_a_store_has_no_pointer_and_nothing_has_its_offset() -> None:
    for bound in ALL:
        names = compile.parameters(bound)
        assert "in_offset" not in names
        pointers = [o for o in bound.definition.operands if o.sort is Sort.POINTER and f"in_{o.name}" in names]
        assert bool(pointers) == (names[0] != "out_data" and bound.memory is not None)


@pytest.mark.parametrize("form", ("loops", "moves", "table"))
def test_loops_need_no_whole_arrays(form: str) -> None:
    bounds = {b.name: b for b in ALL if b.definition.native == form}
    assert bounds
    for bound in bounds.values():
        text = compile.native_text(bound)
        assert "for i in range(" in text or all(o.kept is not None for o in bound.definition.operands)


def merging(name: str) -> BoundRegisterInstruction:
    """An instruction whose inactive lanes stay; made here, and not registered."""
    from ascsim.isa.definition import In, InOut, LaneMask, types_of
    from ascsim.isa.semantics.arithmetic import add

    definition = RegisterInstruction(
        name, semantics=add, variants=types_of("i16"), values="widen", masking="merge", profiles=("a5",),
        operands=(InOut("dst", Sort.VREG, "T"), In("a", Sort.VREG, "T"), In("b", Sort.VREG, "T"), LaneMask()), doc="",
    )  # fmt: skip
    definition.number = 60000
    return definition.bind(T=DTYPES["i16"])


def test_a_merging_instruction_keeps_inactive_lanes() -> None:
    bound = merging("merge_add")
    assert compile.parameters(bound) == ["out_dst", "in_dst", "in_a", "in_b", "in_mask"]
    old = np.arange(128, dtype=np.int16)
    mask = np.zeros(256, np.uint8)
    mask[:128:2] = 1
    one, two = np.full(128, 1000, np.int16), np.full(128, 24, np.int16)
    for run in (lambda *b: bound.run(*b), lambda *b: run_compiled(bound, list(b))):
        out = old.copy().view(np.uint8)
        run(out, old.view(np.uint8).copy(), one.view(np.uint8), two.view(np.uint8), mask)
        np.testing.assert_array_equal(out.view(np.int16)[:64], 1024)
        np.testing.assert_array_equal(out.view(np.int16)[64:], old[64:])


# On disk

LOAD = """
import sys
from ascsim.isa import REGISTRY, compile
from ascsim.isa.definition import RegisterInstruction
from ascsim.machine.dtypes import DTYPES
for name, types in (("vintlv", {"T": "u16"}), ("vcmp_lt", {"T": "f32"}), ("pset_b8", {})):
    found = next(d for d in REGISTRY.by_name[name] if isinstance(d, RegisterInstruction))
    bound = found.bind(**{k: DTYPES[v] for k, v in types.items()})
    assert compile.native_pointer(bound)
print("compiled" if "numba" in sys.modules else "loaded")
"""


def python(code: str, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ASCSIM_CACHE": str(cache)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)


def test_what_was_compiled_is_loaded_by_the_next_process(tmp_path: Path) -> None:
    first = python(LOAD, tmp_path)
    assert first.stdout == "compiled\n", first.stderr
    second = python(LOAD, tmp_path)
    assert second.stdout == "loaded\n", second.stderr
    elsewhere = python(LOAD, tmp_path / "empty")
    assert elsewhere.stdout == "compiled\n", elsewhere.stderr


def test_a_changed_semantics_has_another_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = bound_of("vadd", "f32")
    before = compile._own_hash(bound)
    assert compile._own_hash(bound_of("vadd", "u8")) != before
    monkeypatch.setattr(bound.definition, "semantics", lambda a, b: a - b)
    assert compile._own_hash(bound) != before


def test_importing_instructions_loads_no_numba(tmp_path: Path) -> None:
    loaded = "'numba' in sys.modules, 'llvmlite' in sys.modules"
    program = f"import ascsim.isa, sys; ascsim.isa.REGISTRY.definitions; print({loaded})"
    done = python(program, tmp_path)
    assert done.stdout == "False False\n", done.stderr
