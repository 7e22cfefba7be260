"""Transpose a matrix of 500 by 300 floats, tile by tile, with tails on both sides: from Python, on both chips."""

import numpy as np

import ascsim
from ascsim import Pipe

BLOCKS, SIDE = 8, 64


@ascsim.kernel
def transpose(out, matrix):
    """Each block takes every BLOCKS-th band of SIDE rows."""
    all_rows, all_cols = matrix.shape
    kind = matrix.dtype
    at_source, at_turned, at_tmp = (ascsim.tile(kind, SIDE, SIDE).address for _ in range(3))
    tmp = ascsim.tile(kind, SIDE, SIDE, at=at_tmp)
    for row in range(ascsim.get_block_idx() * SIDE, all_rows, ascsim.get_block_num() * SIDE):
        rows = min(SIDE, all_rows - row)
        for col in range(0, all_cols, SIDE):
            cols = min(SIDE, all_cols - col)
            source = ascsim.tile(kind, SIDE, SIDE, at=at_source, valid=(rows, cols))
            turned = ascsim.tile(kind, SIDE, SIDE, at=at_turned, valid=(cols, rows))
            ascsim.tload(source, matrix[row : row + rows, col : col + cols])
            ascsim.set_flag(Pipe.MTE2, Pipe.V, 0)
            ascsim.wait_flag(Pipe.MTE2, Pipe.V, 0)
            ascsim.ttrans(turned, source, tmp)
            ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
            ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
            ascsim.tstore(out[col : col + cols, row : row + rows], turned)
            ascsim.pipe_barrier(Pipe.ALL)


def check(arch: str, kind: type = np.float32, shape: tuple[int, int] = (500, 300)) -> None:
    """Run it once, against NumPy."""
    matrix = np.arange(shape[0] * shape[1]).reshape(shape).astype(kind)
    out = np.zeros(shape[::-1], kind)
    transpose.on(arch)[BLOCKS](out, matrix)
    assert np.array_equal(out, matrix.T)
    print(f"{shape[0]} x {shape[1]} {np.dtype(kind).name} turned on {arch}")


def main() -> None:
    for arch in ("a3", "a5"):
        check(arch)
        check(arch, np.float16, (130, 70))


if __name__ == "__main__":
    main()
