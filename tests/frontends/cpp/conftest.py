"""Small programs for the tests of the C++ front end: headers and a runtime of a few lines instead of ascsim's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.compilers import Compiler, find_compiler
from ascsim.frontends.cpp.driver import BuildOptions

PRELUDE = """
#pragma once
#define __gm__
#define __ubuf__
#define __global__
#define __vector__
#define __cube__
#define __aicore__
#define __simd_vf__
"""

LAUNCH = r"""
#pragma once
#include <tuple>
extern "C" void fake_launch(const char* kernel, int line, int blocks, void* entry, void* arguments);
extern "C" void fake_scope(const char* name);
extern "C" void* fake_array(int space, unsigned long bytes, const char* name);
namespace ascsim {
enum class Space { UB, L1 };
template <unsigned long long Unit, class F, class T> __attribute__((used, noinline)) void entry(void* p)
{
    F* f = nullptr;
    std::apply(*f, *static_cast<T*>(p));
}
template <class Kernel> struct Call;
template <class... P> struct Call<void (*)(P...)> { using Arguments = std::tuple<P...>; };
template <unsigned long long Unit, auto Kernel> __attribute__((used, noinline)) void kernel_entry(void* p)
{
    std::apply(Kernel, *static_cast<typename Call<decltype(Kernel)>::Arguments*>(p));
}
struct Config { int blocks; };
template <class B, class... A> Config launch_config(B blocks, A...) { return {int(blocks)}; }
struct Launch {
    const char* kernel;
    int line;
    Config config;
    template <unsigned long long Unit, auto Kernel = nullptr, class F, class... A> void run(F, A... a) const
    {
        if constexpr (std::is_same_v<decltype(Kernel), std::nullptr_t>) {
            std::tuple<A...> packed(a...);
            auto* address = reinterpret_cast<void*>(&entry<Unit, F, std::tuple<A...>>);
            fake_launch(kernel, line, config.blocks, address, &packed);
        } else {
            typename Call<decltype(Kernel)>::Arguments packed(a...);
            auto* address = reinterpret_cast<void*>(&kernel_entry<Unit, Kernel>);
            fake_launch(kernel, line, config.blocks, address, &packed);
        }
    }
};
template <class T, class Name> T& local_array(Space space, Name name, unsigned = 32)
{
    return *static_cast<T*>(fake_array(int(space), sizeof(T), name()));
}
#define ASCSIM_LAUNCHED(unit, kernel) \
    __attribute__((used)) static void (*const entry_of_##kernel)(void*) = &::ascsim::kernel_entry<unit, &kernel>;
struct VfScope { explicit VfScope(const char* name) { fake_scope(name); } };
template <class T> void must_be_float(T)
{
    static_assert(sizeof(T) == 4, "only float here");
}
}
"""

EXPORTS = """
#pragma once
#define ASCSIM_EXPORT_KERNEL(name, kernel) extern "C" void ascsim_kernel_##name(void**) {}
"""

# The runtime's part, played in C: a launch looks the device function up with what Python filled in.
RUNTIME = r"""
#include <stdio.h>
void* (*fake_lookup)(void* host_entry);
static char memory[4096];
void fake_scope(const char* name) { printf("scope %s\n", name); }
void* fake_array(int space, unsigned long bytes, const char* name)
{
    printf("array %d %lu %s\n", space, bytes, name);
    return memory;
}
void fake_launch(const char* kernel, int line, int blocks, void* entry, void* arguments)
{
    printf("launch %s line %d blocks %d\n", kernel, line, blocks);
    void (*device)(void*) = (void (*)(void*))fake_lookup(entry);
    for (int block = 0; block < blocks; ++block) device(arguments);
}
"""

FIRST_OF_LIBRARY = """
#include <stdio.h>
template <class T> __attribute__((used)) T twice(T x) { return x + x; }
namespace { __attribute__((used, noinline)) int hidden(int x) { return x + 1; } }
static __attribute__((used, noinline)) int shared_name(int x) { return x + 10; }
struct Loud { Loud() { puts("first init"); } ~Loud() { puts("first fini"); } } loud;
extern "C" int plain(int x) { return twice(x) + hidden(x) + shared_name(x); }
extern "C" int bar(int x) { return x; }
extern "C" int foobar(int x) { return x; }
"""
SECOND_OF_LIBRARY = "static __attribute__((used, noinline)) int shared_name(int x) { return x + 20; }\n"

# Loads a program as the runtime does and calls its main.
RUNNER = r"""
import ctypes, os, sys
from ascsim.frontends.cpp.image import load_image

runtime = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
dl = ctypes.CDLL(None)
dl.dlopen.restype = ctypes.c_void_p
dl.dlsym.restype = ctypes.c_void_p
dl.dlsym.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
dl.dlerror.restype = ctypes.c_char_p

class Info(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)
    ]

def opened(path, mode):
    handle = dl.dlopen(os.fsencode(path), mode | os.RTLD_LAZY)
    if not handle:
        sys.exit(dl.dlerror().decode())
    return handle

images = {}

def lookup(host_entry):
    info = Info()
    assert dl.dladdr(ctypes.c_void_p(host_entry), ctypes.byref(info))
    path = os.path.realpath(info.file.decode())
    if path not in images:
        image = load_image(path)
        device = image.extract("aiv")
        handle = opened(device, os.RTLD_LOCAL)
        symbols = image.device_symbols("aiv")
        # The link map's first word is where the image lies.
        images[path] = image.host_symbols, symbols, ctypes.cast(handle, ctypes.POINTER(ctypes.c_void_p))[0] or 0
    host, device, base = images[path]
    symbol = host.name_at(host_entry - info.base)
    address = device.address_of(symbol.name)
    assert address is not None, symbol
    return base + address

callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lookup)
ctypes.c_void_p.in_dll(runtime, "fake_lookup").value = ctypes.cast(callback, ctypes.c_void_p).value
program = opened(os.path.abspath(sys.argv[2]), os.RTLD_GLOBAL)
main = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))(dl.dlsym(program, b"main"))
words = [os.fsencode(word) for word in sys.argv[2:]]
status = main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None))
dl.fflush(None)
os._exit(status)
"""


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    try:
        return find_compiler()
    except UserError as error:
        pytest.skip(error.message)


@pytest.fixture(scope="session")
def toolbox(compiler: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers, the runtime library and the runner; built once."""
    place = tmp_path_factory.mktemp("toolbox")
    (place / "include" / "ascsim").mkdir(parents=True)
    (place / "include" / "ascsim" / "prelude.hpp").write_text(PRELUDE)
    (place / "include" / "ascsim" / "launch.hpp").write_text(LAUNCH)
    (place / "include" / "ascsim" / "exports.hpp").write_text(EXPORTS)
    (place / "runtime.c").write_text(RUNTIME)
    (place / "runner.py").write_text(RUNNER)
    command = [
        *compiler.command,
        "-x",
        "c",
        "-shared",
        "-fPIC",
        "-o",
        str(place / "libfake.so"),
        str(place / "runtime.c"),
    ]
    subprocess.run(command, check=True)
    return place


@pytest.fixture
def options(compiler: Compiler, toolbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildOptions:
    """Options for a build in ``tmp_path``, which becomes the current directory. Objects are shared between tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASCSIM_CACHE", str(toolbox / "cache"))
    return BuildOptions(compiler=compiler, headers=(toolbox / "include",), cache=toolbox / "cache", scalar_trace=False)


@pytest.fixture(scope="session")
def library(compiler: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared library of two files, with functions of every kind."""
    place = tmp_path_factory.mktemp("elf")
    (place / "first.cpp").write_text(FIRST_OF_LIBRARY)
    (place / "second.cpp").write_text(SECOND_OF_LIBRARY)
    for name in ("first", "second"):
        command = [*compiler.command, "-O1", "-fPIC", "-c", f"{name}.cpp", "-o", f"{name}.o"]
        subprocess.run(command, check=True, cwd=place)
    command = [*compiler.command, "-shared", "first.o", "second.o", "-o", "lib.so", "-Wl,-soname,libfunctions.so"]
    subprocess.run(command, check=True, cwd=place)
    return place / "lib.so"
