"""What a device image says of its kernels' parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascsim.frontends.cpp.elf import ElfFile
from ascsim.frontends.cpp.exports import ExportedKernel, ParameterKind, ParameterType, export_name, exported_kernels
from ascsim.frontends.cpp.image import load_image
from ascsim.machine.dtypes import dtype
from frontends.cpp.programs import build

SOURCE = r"""
struct Sized { int32_t words[3]; };
struct Declared;
enum class Wide : uint64_t { ONE };
typedef const uint16_t* Table;
#define LENGTH unsigned int
__global__ void none() {}
__global__ void numbers(bool a, char b, LENGTH c, const long long d, float e, half f, bfloat16_t g, fp8_e5m2_t h,
                        Wide i) {}
__global__ void pointers(float* a, const half* b, Table c, void* d, Declared* e, Sized* f, float** g, bool* h) {}
__global__ void objects(Sized a, vector_bool b) {}
"""


def pointer(kind: str | None, size: int) -> ParameterType:
    return ParameterType(ParameterKind.POINTER, dtype(kind) if kind else None, size)


def number(kind: str) -> ParameterType:
    return ParameterType(ParameterKind.NUMBER, dtype(kind), dtype(kind).size)


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> ElfFile:
    sources = {"k.asc": SOURCE, "again.asc": "__global__ void again(int8_t a) {}\n"}
    return ElfFile(load_image(build(tmp_path_factory.mktemp("exports"), sources, shared=True)).read("aiv"))


def test_parameters_are_described_as_the_compiler_sees_them(device: ElfFile) -> None:
    found = {kernel.name: kernel.parameters for kernel in exported_kernels(device)}
    assert found == {
        "none": (),
        "numbers": (
            ParameterType(ParameterKind.BOOL, None, 1),
            *map(number, ("i8", "u32", "i64", "f32", "f16", "bf16", "f8e5m2", "u64")),
        ),
        "pointers": (
            pointer("f32", 4), pointer("f16", 2), pointer("u16", 2), pointer(None, 0), pointer(None, 0),
            pointer(None, 12), pointer(None, 8), pointer("u8", 1),
        ),
        "objects": (ParameterType(ParameterKind.OBJECT, None, 12), ParameterType(ParameterKind.OBJECT, None, 256)),
        "again": (number("i8"),),
    }  # fmt: skip


def test_each_described_kernel_has_its_function(device: ElfFile) -> None:
    kernels = list(exported_kernels(device))
    assert len(kernels) == 5
    assert all(device.symbols.address_of(export_name(kernel.name)) for kernel in kernels)


def test_an_image_without_descriptions_has_none(tmp_path: Path) -> None:
    program = build(tmp_path, {"k.asc": "__global__ void k() {}\nint main() { return 0; }\n"})
    assert list(exported_kernels(ElfFile(load_image(program).read("aiv")))) == []


def test_padding_between_descriptions_is_passed_over() -> None:
    class Image:
        def section(self, name: str) -> str:
            return name

        def content(self, name: str) -> bytes:
            record = b"\x18\0\0\0" + b"\0\0" + b"\x01\0" + bytes(8) + b"k" + bytes(7)
            return bytes(16) + record + bytes(8) + record

    assert list(exported_kernels(Image())) == [ExportedKernel("k", ())] * 2  # type: ignore[arg-type]
