"""Histogram and stream compaction in vector registers (Ascend 950), on data that are no whole number of registers."""

import numpy as np

import ascsim
from ascsim import Pipe


@ascsim.kernel(arch="a5")
def compaction(bytes_, values, bins, out, counts):
    (count,) = values.shape
    bytes_ub = ascsim.local("u8", 1024, name="bytes")
    values_ub = ascsim.local("f32", 1024, name="values")
    bins_ub = ascsim.local("u16", 256, name="bins")
    out_ub = ascsim.local("f32", 1024, name="out")
    count_ub = ascsim.local("u32", 64, name="count")

    all8, all16, all32 = ascsim.pset_b8(0), ascsim.pset_b16(0), ascsim.pset_b32(0)
    for at in range(0, 1024, 256):  # what lies behind the last element is read with it, and masked
        ascsim.vsts(bytes_ub, ascsim.vdups(0, all8, dtype="u8"), all8, at)
    for at in range(0, 1024, 64):
        ascsim.vsts(values_ub, ascsim.vdups(0.0, all32, dtype="f32"), all32, at)
    ascsim.set_flag(Pipe.V, Pipe.MTE2, 0)
    ascsim.wait_flag(Pipe.V, Pipe.MTE2, 0)
    ascsim.asc_copy_gm2ub_align(bytes_ub, bytes_, 1, count, 0, 0, 0, 0, 0, 0)
    ascsim.asc_copy_gm2ub_align(values_ub, values, 4 * count)
    ascsim.set_flag(Pipe.MTE2, Pipe.V, 0)
    ascsim.wait_flag(Pipe.MTE2, Pipe.V, 0)

    low = high = ascsim.vdups(0, all16, dtype="u16")
    left = count
    for at in range(0, count, 256):
        mask, left = ascsim.plt_b8(left)
        value = ascsim.vlds(bytes_ub, at)
        low = ascsim.asc_frequency_histogram_bin0(low, value, mask)
        high = ascsim.asc_frequency_histogram_bin1(high, value, mask)
    ascsim.vsts(bins_ub, low, all16)
    ascsim.vsts(bins_ub, high, all16, 128)

    # Stores go on where the one before ended: unaligned, with the bytes that were kept counted by the AR register.
    ascsim.asc_clear_ar_spr()
    align, left = ascsim.init_align(), count
    for at in range(0, count, 64):
        mask, left = ascsim.plt_b32(left)
        value = ascsim.vlds(values_ub, at)
        kept = ascsim.asc_squeeze_with_status(value, ascsim.vcmps_gt(value, 0.0, mask))
        align = ascsim.vstur(out_ub, align, kept)
    ascsim.vstar(out_ub, align)
    kept_bytes = ascsim.asc_get_squeeze_status()
    ascsim.vsts(count_ub, ascsim.vdups(kept_bytes // 4, all32, dtype="u32"), all32)

    ascsim.set_flag(Pipe.V, Pipe.MTE3, 0)
    ascsim.wait_flag(Pipe.V, Pipe.MTE3, 0)
    ascsim.asc_copy_ub2gm_align(bins, bins_ub, 512)
    ascsim.asc_copy_ub2gm_align(out, out_ub, 1, kept_bytes, 0, 0, 0)
    ascsim.asc_copy_ub2gm_align(counts, count_ub, 1, 4, 0, 0, 0)


def main() -> None:
    rng = np.random.default_rng(1)
    bytes_ = rng.integers(0, 256, 1000, np.uint8)
    values = rng.standard_normal(1000).astype(np.float32)
    bins, out, counts = np.zeros(256, np.uint16), np.zeros(1000, np.float32), np.zeros(1, np.uint32)
    compaction[1](bytes_, values, bins, out, counts)
    positive = values[values > 0]
    assert np.array_equal(bins, np.bincount(bytes_, minlength=256))
    assert counts[0] == positive.size
    assert np.array_equal(out[: positive.size], positive)
    print(f"{positive.size} of 1000 values are positive; the histogram is right")


if __name__ == "__main__":
    main()
