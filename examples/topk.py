"""Row-wise top-k with indices, from Python: sort blocks of 32, merge the sorted lists, part values from indices.

The 1000 largest of 1024 floats in each of 4800 rows, and 8 of 256 half scores of each token as a mixture-of-experts gate
does, both on 48 blocks and exact against NumPy, ties included. With a directory as argument it leaves the inputs and
results there, for topk.pto.
"""

import sys
from pathlib import Path

import numpy as np

import ascsim
from ascsim import MaskPattern, Pipe

BLOCKS = 48


@ascsim.kernel
def topk(scores, values, indices, k, rows):
    """The k largest of each row, ``rows`` rows at a time; each block has its part of the rows."""
    per_block, cols = scores.shape[0] // ascsim.get_block_num(), scores.shape[1]
    size = scores.dtype.size
    kind, per_pair = scores.dtype, 8 // size
    row_bytes = cols * 8  # of a row of pairs

    column = ascsim.tile("u32", 1, cols)
    source = ascsim.tile(kind, rows, cols)
    sorted_ = ascsim.tile(kind, rows, cols * per_pair)
    other = ascsim.tile(kind, 1, cols * per_pair)
    scratch = ascsim.tile(kind, 1, cols * per_pair)
    top = ascsim.tile(kind, 1, rows * k * per_pair)
    words = ascsim.tile("u32", 1, rows * k * 2, at=top.address)  # the same pairs, read as words
    best_values = ascsim.tile(kind, 1, rows * k)
    best_indices = ascsim.tile("u32", 1, rows * k)

    def row_of(at, pairs):
        return ascsim.tile(kind, 1, cols * per_pair, at=at, valid=(1, pairs * per_pair))

    ascsim.tci(column, 0)  # written by the scalar unit
    ascsim.set_flag(Pipe.S, Pipe.V, 0)
    ascsim.wait_flag(Pipe.S, Pipe.V, 0)
    first_row = ascsim.get_block_idx() * per_block
    for row in range(first_row, first_row + per_block, rows):
        ascsim.tload(source, scores[row : row + rows])
        ascsim.set_flag(Pipe.MTE2, Pipe.V, 0)
        ascsim.wait_flag(Pipe.MTE2, Pipe.V, 0)
        ascsim.tsort32(sorted_, source, column)  # one row of indices serves all rows
        for r in range(rows):
            here, there = sorted_.address + r * row_bytes, other.address
            length = 32  # pairs of a sorted list
            while length * 4 <= cols:
                ascsim.pipe_barrier(Pipe.V)
                ascsim.tmrgsort(row_of(there, cols), row_of(here, cols), length * per_pair)
                here, there, length = there, here, length * 4
            # Two lists are left. No more than k pairs of each can be among the largest.
            taken = min(length, k)
            best = ascsim.tile(kind, 1, k * per_pair, at=top.address + r * k * 8)
            ascsim.pipe_barrier(Pipe.V)
            ascsim.tmrgsort(best, scratch, row_of(here, taken), row_of(here + length * 8, taken))
        ascsim.pipe_barrier(Pipe.V)
        ascsim.tgather(best_values, top, MaskPattern.P0101 if size == 4 else MaskPattern.P0001)
        ascsim.tgather(best_indices, words, MaskPattern.P1010)
        ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
        ascsim.tstore(values[row : row + rows].reshape(1, rows * k), best_values)
        ascsim.tstore(indices[row : row + rows].reshape(1, rows * k), best_indices)
        ascsim.pipe_barrier(Pipe.ALL)


def check(name: str, shape: tuple[int, int], kind: type, k: int, rows: int, arch: str) -> tuple[np.ndarray, ...]:
    """Run it once; returns scores, values and indices."""
    generator = np.random.default_rng(7)
    scores = (generator.integers(-2048, 2048, shape) / 4).astype(kind)  # there are ties in every row
    values, indices = np.zeros((shape[0], k), kind), np.zeros((shape[0], k), np.uint32)
    topk.on(arch)[BLOCKS](scores, values, indices, k, rows)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    assert np.array_equal(indices, order), "indices"
    assert np.array_equal(values, np.take_along_axis(scores, order, 1)), "values"
    print(f"{name} on {arch}: {k} of {shape[1]} in {shape[0]} rows, values and indices right")
    return scores, values, indices


def main() -> None:
    for arch in ("a3", "a5"):
        results = check("top-k", (4800, 1024), np.float32, 1000, 4, arch)
        check("gate", (1920, 256), np.float16, 8, 20, arch)
    for directory in sys.argv[1:]:
        for name, array in zip(("scores", "values", "indices"), results, strict=True):
            np.save(Path(directory) / f"{name}.npy", array)


if __name__ == "__main__":
    main()
