"""A product of matrices in C++, ``.pto`` and Python: the same bits, and the order of pipe M that all checks rest on."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascsim
from ascsim import Pipe, Space, profiles
from ascsim.frontends.launch import KernelError
from ascsim.frontends.ptoas.kernel import load
from cube import NZ, ZN, ZZ

EXAMPLES = Path(__file__).parents[2] / "examples"
ARCHS = ("a2a3", "a5", "cpu")
M, K, N = 256, 512, 192


@ascsim.kernel(core="aic")
def multiply(out, lhs, rhs, left_boxes, products, barriers):
    """One block's product, added up several times."""
    m, k, n = lhs.shape[0], lhs.shape[1], rhs.shape[1]
    lhs_mat = ascsim.tile(lhs.dtype, m, k, space=Space.L1, **NZ)
    rhs_mat = ascsim.tile(rhs.dtype, k, n, space=Space.L1, **NZ)
    left = ascsim.tile(lhs.dtype, m, k, space=Space.L0A, **left_boxes)
    right = ascsim.tile(rhs.dtype, k, n, space=Space.L0B, **ZN)
    acc = ascsim.tile("f32", m, n, space=Space.L0C, fractal=1024, **NZ)
    ascsim.tload(lhs_mat, lhs)
    ascsim.tload(rhs_mat, rhs)
    ascsim.set_flag(Pipe.MTE2, Pipe.MTE1, 0)
    ascsim.wait_flag(Pipe.MTE2, Pipe.MTE1, 0)
    ascsim.tmov(left, lhs_mat)
    ascsim.tmov(right, rhs_mat)
    ascsim.set_flag(Pipe.MTE1, Pipe.M, 0)
    ascsim.wait_flag(Pipe.MTE1, Pipe.M, 0)
    ascsim.tmatmul(acc, left, right)
    for _ in range(products - 1):
        if barriers:
            ascsim.pipe_barrier(Pipe.M)
        ascsim.tmatmul_acc(acc, acc, left, right)
    ascsim.set_flag(Pipe.M, Pipe.FIX, 0)
    ascsim.wait_flag(Pipe.M, Pipe.FIX, 0)
    ascsim.tstore(out, acc)


def boxes(arch: str) -> dict[str, Any]:
    return ZZ if arch == "a2a3" else NZ


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + shape[0]).normal(size=shape).astype(np.float16)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """lhs, rhs, and their product in double precision."""
    lhs, rhs = random(M, K), random(K, N)
    return lhs, rhs, lhs.astype(np.float64) @ rhs.astype(np.float64)


@pytest.mark.parametrize("arch", ARCHS)
def test_all_ways_give_the_same_bits(arch: str, data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    lhs, rhs, exact = data
    outs = {way: np.zeros((M, N), np.float32) for way in ("cpp", "pto", "python")}
    ascsim.load(EXAMPLES / "matmul.cpp", arch=arch).Multiply[8](outs["cpp"], lhs, rhs)
    text = load(EXAMPLES / "matmul.pto").kernel("multiply")
    run = text.run(profiles.find(arch), 8, {"out": outs["pto"], "lhs": lhs, "rhs": rhs})
    assert not run.diagnostics
    runpy.run_path(str(EXAMPLES / "matmul.py"))["multiply"].on(arch)[8](outs["python"], lhs, rhs, boxes(arch))
    bound = K * 2.0**-24 * (np.abs(lhs).astype(np.float64) @ np.abs(rhs).astype(np.float64))
    for out in outs.values():
        assert np.array_equal(out, outs["cpp"])
        assert (np.abs(out - exact) <= bound).all()


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize(("side", "barriers", "is_race"), [(32, False, True), (32, True, False), (64, False, False)])
def test_small_products_need_a_barrier(arch: str, side: int, barriers: bool, is_race: bool) -> None:
    lhs, rhs, out = random(side, 64), random(64, side), np.zeros((side, side), np.float32)
    if not is_race:
        multiply.on(arch)[1](out, lhs, rhs, boxes(arch), 3, barriers)
        return
    with pytest.raises(KernelError) as error:
        multiply.on(arch)[1](out, lhs, rhs, boxes(arch), 3, barriers)
    assert {finding.code for finding in error.value.run.diagnostics} == {"R001"}
    assert "pipe_barrier(Pipe.M)" in str(error.value)
