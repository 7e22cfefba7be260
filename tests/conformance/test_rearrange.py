"""PTO C++ kernels that move data about, with dynamic valid shapes, on every profile and in Auto mode."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.kernels import Library, load

KERNELS = r"""
#include <pto/pto-inst.hpp>
using namespace pto;

#ifdef __PTO_AUTO__
#define PLACE(tile, address)
#define ORDER(from, to)
#else
#define PLACE(tile, address) TASSIGN(tile, address)
#define ORDER(from, to) set_flag(from, to, EVENT_ID0); wait_flag(from, to, EVENT_ID0)
#endif

template <int rows, int cols>
using Matrix = GlobalTensor<float, Shape<1, 1, 1, rows, cols>, Stride<rows * cols, rows * cols, rows * cols, cols, 1>>;

// 20x24 of 32x32, filled with 1.5 all around, turned; out is the lower right quarter as one row.
__global__ AICORE void turn(__gm__ float* out, __gm__ float* in, int rows, int cols)
{
    using Part = Tile<TileType::Vec, float, 32, 32, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
    using Whole = Tile<TileType::Vec, float, 32, 32, BLayout::RowMajor, 32, 32, SLayout::NoneBox, 512, PadValueCustom(1.5f)>;
    using Quarter = Tile<TileType::Vec, float, 32, 32, BLayout::RowMajor, 16, 16>;
    Part part(rows, cols);
    Whole whole;
    Tile<TileType::Vec, float, 32, 32> turned, tmp;
    Quarter quarter;
    Tile<TileType::Vec, float, 1, 1024> row;
    PLACE(part, 0x0);
    PLACE(whole, 0x1000);
    PLACE(turned, 0x2000);
    PLACE(tmp, 0x3000);
    GlobalTensor<float, Shape<1, 1, 1, DYNAMIC, DYNAMIC>, Stride<480, 480, 480, 24, 1>> from(in, {rows, cols});
    TLOAD(part, from);
    ORDER(PIPE_MTE2, PIPE_V);
    TFILLPAD(whole, part);
#if !defined(__PTO_AUTO__) && defined(PTO_NPU_ARCH_A2A3)
    pipe_barrier(PIPE_V);
#endif
    TTRANS_IMPL(turned, whole, tmp);
    TSUBVIEW(quarter, turned, 16, 16);
    TRESHAPE(row, turned);
    ORDER(PIPE_V, PIPE_MTE3);
    Matrix<16, 16> corner(out);
    TSTORE(corner, quarter);
    Matrix<1, 1024> all(out + 256);
    TSTORE(all, row);
}
"""


def built(directory: Path, arch: str, sync: str = "manual") -> Library:
    source = directory / "kernels.cpp"
    source.write_text(KERNELS)
    try:
        return load(str(source), arch=arch, sync=sync)
    except UserError as error:
        if "no C++ compiler" in str(error):
            pytest.skip("needs a C++ compiler")
        raise


@pytest.mark.parametrize(("arch", "sync"), [("a2a3", "manual"), ("a5", "manual"), ("cpu", "manual"), ("a2a3", "auto")])
def test_fill_turn_and_look_at_parts(tmp_path, arch, sync):
    library = built(tmp_path, arch, sync)
    data = np.arange(480, dtype=np.float32).reshape(20, 24)
    out = np.zeros(256 + 1024, np.float32)
    assert library.turn(out, data, 20, 24).ok
    whole = np.full((32, 32), 1.5, np.float32)
    whole[:20, :24] = data
    assert np.array_equal(out[256:].reshape(32, 32), whole.T)
    assert np.array_equal(out[:256].reshape(16, 16), whole.T[16:, 16:])
