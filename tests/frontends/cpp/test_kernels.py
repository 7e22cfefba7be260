"""C++ kernels without a host program, called from Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp import kernels
from ascsim.frontends.cpp.kernels import KernelLibrary, _argument
from ascsim.frontends.python import KernelError
from frontends.cpp.programs import build

SOURCE = r"""
namespace maths {
__global__ void scale(float* out, const float* in, int count, float factor, uint8_t shift)
{
    int block = ascsim_core.block;
    for (int i = block * count; i < (block + 1) * count; ++i) out[i] = in[i] * factor + shift;
}
}
__global__ void refused(int32_t* out, int64_t event) { out[0] = 1; flag(SET_FLAG, 4, 1, (int)event); out[0] = 2; }
__global__ void never() { for (;;) asm volatile(""); }
template <class T> __global__ void generic(T* out) { out[0] = 1; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    program = build(tmp_path_factory.mktemp("kernels"), {"k.asc": SOURCE}, shared=True)
    return KernelLibrary(kernels.load_image(program))


def test_a_kernel_computes_in_place(library):
    x = np.arange(24, dtype=np.float32)
    out = np.zeros((3, 8), np.float32)
    run = library.scale[3](out, x, 8, 2.5, 3)
    assert run.ok and run.kernel == "scale"
    assert np.array_equal(out.ravel(), x * np.float32(2.5) + 3)
    blocks = run.trace.noted("allocation")
    assert [(b["name"], b["size"]) for b in blocks] == [("out", 96), ("in", 96)]
    assert run.trace.noted("launch")[0]["blocks"] == 3


def test_strided_and_read_only_arrays(library):
    x = np.arange(16, dtype=np.float32)
    x.flags.writeable = False
    wide = np.zeros((8, 2), np.float32)
    library.scale(wide[:, 1], x[::2], 8, 1, 0)
    assert wide[:, 1].tolist() == list(range(0, 16, 2)) and not wide[:, 0].any()


def test_a_refusal_raises_with_the_run(library):
    out = np.zeros(1, np.int32)
    with pytest.raises(KernelError, match="event id 8") as caught:
        library.refused(out, 8)
    assert out[0] == 1
    assert not caught.value.run.ok
    assert library.refused.options(raise_on_error=False)(out, 8).diagnostics[0].code == "L006"
    assert not library.refused.options(raise_on_error=False)(out, 7).trace.noted("refused")
    assert out[0] == 2


def test_time_limits_hold(library):
    run = library.never.options(timeout=1, raise_on_error=False)()
    assert [d.code for d in run.diagnostics] == ["H011"]


def test_names_are_explained(library):
    with pytest.raises(AttributeError, match="they define never, refused, scale"):
        _ = library.generic
    assert "scale" in dir(library)
    with pytest.raises(UserError, match=r"takes 5 arguments \(out, in, count, factor, shift\), not 1"):
        library.scale(np.zeros(1, np.float32))
    with pytest.raises(UserError, match="1 to 65535 blocks"):
        library.scale[0]()
    with pytest.raises(UserError, match="no file"):
        kernels.load("nowhere.cpp")


@pytest.mark.parametrize(("kind", "value", "message"), [
    ("float*", 3, "give a NumPy array"),
    ("float*", np.zeros(3, np.float16), "elements have 4 bytes"),
    ("int", 1 << 31, "does not fit"),
    ("uint8_t", -129, "does not fit"),
    ("int", 1.5, "does not fit"),
    ("int", np.zeros(1), "give a number"),
    ("Shape", 1, "pointers and numbers"),
])  # fmt: skip
def test_wrong_arguments_are_refused(kind, value, message):
    with pytest.raises(UserError, match=message):
        _argument("k", kind, "x", value)


@pytest.mark.parametrize(("kind", "value", "packed"), [
    ("int", -2, b"\xfe\xff\xff\xff"),
    ("uint32_t", 4294967295, b"\xff\xff\xff\xff"),
    ("const std::uint16_t", 258, b"\x02\x01"),
    ("half", 1.0, b"\x00\x3c"),
    ("bool", True, b"\x01"),
    ("double", 1, b"\0\0\0\0\0\0\xf0\x3f"),
])  # fmt: skip
def test_scalars_are_packed(kind, value, packed):
    assert _argument("k", kind, "x", value) == packed


def test_bytes_go_into_any_pointer():
    array = np.zeros(3, np.float16)
    assert _argument("k", "GM_ADDR", "x", array) is array
    assert _argument("k", "uint8_t*", "x", array) is array


def test_an_empty_library_has_no_kernels(library):
    image = replace(library._image, kernels=())
    with pytest.raises(AttributeError, match="they define none"):
        _ = KernelLibrary(image).anything
