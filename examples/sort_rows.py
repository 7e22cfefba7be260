"""Sort each 32-element block of a matrix, largest first, with its column indices: the Python way in."""

import numpy as np

import ascsim
from ascsim import Pipe


@ascsim.kernel
def sort_rows(values, indices, out):
    rows, cols = values.shape
    src = ascsim.tile("f32", rows, cols, at=0x0)
    idx = ascsim.tile("u32", rows, cols, at=0x4000)
    dst = ascsim.tile("f32", rows, 2 * cols, at=0x8000)
    ascsim.tload(src, values)
    ascsim.tload(idx, indices)
    ascsim.set_flag(Pipe.MTE2, Pipe.V, 0)
    ascsim.wait_flag(Pipe.MTE2, Pipe.V, 0)
    ascsim.tsort32(dst, src, idx)
    ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
    ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
    ascsim.tstore(out, dst)


def main() -> None:
    rows, cols = 4, 64
    values = np.random.default_rng(1).standard_normal((rows, cols)).astype(np.float32)
    indices = np.tile(np.arange(cols, dtype=np.uint32), (rows, 1))
    for arch in ("a3", "a5", "cpu"):
        out = np.zeros((rows, 2 * cols), np.float32)
        sort_rows.on(arch)[1](values, indices, out)
        pairs = out.view(np.uint32).reshape(rows, cols // 32, 32, 2)
        order = np.argsort(-values.reshape(rows, -1, 32), axis=-1, kind="stable")
        base = np.arange(cols // 32)[None, :, None] * 32
        assert np.array_equal(pairs[..., 1], order + base), "indices"
        assert np.array_equal(
            pairs[..., 0].view(np.float32), np.take_along_axis(values.reshape(rows, -1, 32), order, -1)
        )
        print(f"{arch}: sorted, indices right")


if __name__ == "__main__":
    main()
