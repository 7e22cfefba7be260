"""Multiply two matrices, tile by tile, the inner dimension in steps: from Python, on both chips and portably."""

import numpy as np

import ascsim
from ascsim import BLayout, Pipe, SLayout, Space

M, K, N = 64, 128, 96
NZ = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.ROW_MAJOR}
ZN = {"blayout": BLayout.ROW_MAJOR, "slayout": SLayout.COL_MAJOR}


@ascsim.kernel(core="aic")
def multiply(out, lhs, rhs, left_boxes):
    """Each block makes M by N elements of the result."""
    kind, sums = lhs.dtype, out.dtype
    across = rhs.shape[1] // N
    row, col = ascsim.get_block_idx() // across * M, ascsim.get_block_idx() % across * N
    lhs_mat = ascsim.tile(kind, M, K, space=Space.L1, **NZ)
    rhs_mat = ascsim.tile(kind, K, N, space=Space.L1, **NZ)
    left = ascsim.tile(kind, M, K, space=Space.L0A, **left_boxes)
    right = ascsim.tile(kind, K, N, space=Space.L0B, **ZN)
    acc = ascsim.tile(sums, M, N, space=Space.L0C, fractal=1024, **NZ)
    for inner in range(0, lhs.shape[1], K):
        ascsim.tload(lhs_mat, lhs[row : row + M, inner : inner + K])
        ascsim.tload(rhs_mat, rhs[inner : inner + K, col : col + N])
        ascsim.set_flag(Pipe.MTE2, Pipe.MTE1, 0)
        ascsim.wait_flag(Pipe.MTE2, Pipe.MTE1, 0)
        ascsim.tmov(left, lhs_mat)
        ascsim.tmov(right, rhs_mat)
        ascsim.set_flag(Pipe.MTE1, Pipe.M, 0)
        ascsim.wait_flag(Pipe.MTE1, Pipe.M, 0)
        if inner == 0:
            ascsim.tmatmul(acc, left, right)
        else:
            ascsim.tmatmul_acc(acc, acc, left, right)
        ascsim.pipe_barrier(Pipe.ALL)
    ascsim.tstore(out[row : row + M, col : col + N], acc)


def check(arch: str, kind: type = np.float16, sums: type = np.float32) -> None:
    """Run it once, against NumPy, on whole numbers, of which all sums are exact."""
    random = np.random.default_rng(1)
    lhs, rhs = (random.integers(-8, 9, shape).astype(kind) for shape in ((256, 512), (512, 192)))
    out = np.zeros((256, 192), sums)
    boxes = NZ if arch == "a5" else {**NZ, "blayout": BLayout.ROW_MAJOR}
    multiply.on(arch)[256 // M * (192 // N)](out, lhs, rhs, boxes)
    assert np.array_equal(out, lhs.astype(np.int64) @ rhs.astype(np.int64))
    print(f"256 x 512 times 512 x 192 {np.dtype(kind).name} on {arch}")


def main() -> None:
    for arch in ("a3", "a5", "cpu"):
        check(arch)
        check(arch, np.float32)
        check(arch, np.int8, np.int32)


if __name__ == "__main__":
    main()
