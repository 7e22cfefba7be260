"""Multiply complex numbers in vector registers (Ascend 950): take pairs apart, multiply, weave again."""

import numpy as np

import ascsim
from ascsim import Pipe

LANES = 64


@ascsim.kernel(arch="a5")
def complex_multiply(a, b, out):
    (count,) = out.shape  # floats: twice as many as there are complex numbers
    rounds = -(-count // (2 * LANES))
    a_ub, b_ub, out_ub = (ascsim.local("f32", rounds * 2 * LANES, name=name) for name in ("a", "b", "out"))
    zero = ascsim.vdups(0.0, ascsim.pset_b32(0), dtype="f32")
    for part in range(2 * rounds):  # what lies behind the last pair is read with it, and masked
        ascsim.vsts(a_ub, zero, ascsim.pset_b32(0), part * LANES)
        ascsim.vsts(b_ub, zero, ascsim.pset_b32(0), part * LANES)
    ascsim.set_flag(Pipe.V, Pipe.MTE2, 0)
    ascsim.wait_flag(Pipe.V, Pipe.MTE2, 0)
    ascsim.asc_copy_gm2ub_align(a_ub, a, 4 * count)
    ascsim.asc_copy_gm2ub_align(b_ub, b, 4 * count)
    ascsim.set_flag(Pipe.MTE2, Pipe.V, 0)
    ascsim.wait_flag(Pipe.MTE2, Pipe.V, 0)
    pairs, floats = count // 2, count
    for part in range(rounds):
        mask, pairs = ascsim.plt_b32(pairs)
        at = part * 2 * LANES
        a_real, a_imag = ascsim.vdintlv(ascsim.vlds(a_ub, at), ascsim.vlds(a_ub, at + LANES))
        b_real, b_imag = ascsim.vdintlv(ascsim.vlds(b_ub, at), ascsim.vlds(b_ub, at + LANES))
        real = ascsim.asc_sub(ascsim.asc_mul(a_real, b_real, mask), ascsim.asc_mul(a_imag, b_imag, mask), mask)
        imag = ascsim.asc_add(ascsim.asc_mul(a_real, b_imag, mask), ascsim.asc_mul(a_imag, b_real, mask), mask)
        for half, woven in enumerate(ascsim.vintlv(real, imag)):
            mask, floats = ascsim.plt_b32(floats)
            ascsim.vsts(out_ub, woven, mask, at + half * LANES)
    ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
    ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
    ascsim.asc_copy_ub2gm_align(out, out_ub, 4 * count)


def main() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(600).astype(np.float32) for _ in range(2))
    out = np.zeros(600, np.float32)
    complex_multiply[1](a, b, out)
    expected = a.view(np.complex64).astype(np.complex128) * b.view(np.complex64)
    assert np.allclose(out.view(np.complex64), expected, atol=1e-6)
    print("300 complex products are right")


if __name__ == "__main__":
    main()
