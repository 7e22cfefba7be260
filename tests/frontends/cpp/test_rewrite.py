"""The source pass: what it makes of each construct, and that it leaves the rest and every line alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.frontends.cpp.compilers import Compiler
from ascsim.frontends.cpp.rewrite import Names, RewriteError, rewrite


def rewritten(source: str, **options) -> str:
    return rewrite(source.encode(), "k.asc", **options).text


def host(source: str) -> str:
    return rewrite(source.encode(), "k.asc").host_text


def launch(kernel: str, config: str, arguments: str) -> str:
    """The rewritten form of a launch, as the headers' author reads it."""
    comma = ", " if arguments else ""
    return (
        f'(::ascsim::Launch{{"{kernel}", __LINE__, ::ascsim::launch_config({config})}})'
        f".run<ASCSIM_TU>([](auto... ascsim_a) {{ {kernel}(ascsim_a...); }}{comma}{arguments})"
    )


@pytest.mark.parametrize(
    ("kernel", "config", "arguments"),
    [
        ("k", "1, 0", "a, b"),
        ("k", "8", ""),
        ("ns::k", "1, nullptr, stream", "x"),
        ("::ns::k", "1, nullptr, stream", "x"),
        ("k<float, 3>", "blocks, nullptr, s", "(float*)out"),
        ("k<A<B, (C > D)>, -1>", "n", "f(a, b)"),
        ("Maker<T>::template k<N>", "n, 0, s", "x"),
        ("k", "dim(a, b), size<int>(), s", "x"),
        ("NAME(run, CASE)<half, 2>", "1", "x"),
        ("table[i]", "1", "x"),
    ],
)
def test_a_launch_becomes_a_call(kernel: str, config: str, arguments: str) -> None:
    source = f"void f() {{ {kernel}<<<{config}>>>({arguments}); }}"
    assert rewritten(source) == f"void f() {{ {launch(kernel, config, arguments)}; }}"


def test_a_launch_in_if_constexpr_and_templates() -> None:
    source = "template <int N> void f(void* s) { if constexpr (N == 1) k1<<<1, nullptr, s>>>(); else k2<N><<<2>>>(s); }"
    text = rewritten(source)
    assert launch("k1", "1, nullptr, s", "") in text
    assert launch("k2<N>", "2", "s") in text


def test_a_launch_over_lines_keeps_each_part_on_its_line() -> None:
    source = (
        "void f()\n{\n    run<\n        float,\n        4><<<\n        1, s>>>(\n"
        "        a, // first\n        b);\n    g();\n}\n"
    )
    text = rewritten(source)
    lines = text.split("\n")
    assert len(lines) == len(source.split("\n"))
    assert lines[2].strip().startswith('(::ascsim::Launch{"run<float, 4>", __LINE__')
    assert "1, s" in lines[5]
    assert "// first" in lines[6]
    assert lines[8] == "    g();"


def test_a_launch_whose_configuration_is_conditional() -> None:
    source = "void f() {\n  k<T>\n#ifndef __CPU_SIM\n  <<<1, nullptr, s>>>\n#endif\n  (a);\n}\n"
    lines = rewritten(source).split("\n")
    assert lines[2] == "#ifndef __CPU_SIM" and lines[4] == "#endif"
    assert lines[1].endswith("::ascsim::launch_config(")
    assert lines[3].strip() == "1, nullptr, s"
    assert lines[5].strip().startswith(")}).run<ASCSIM_TU>(")


def test_a_launch_in_a_macro_keeps_its_continued_lines() -> None:
    source = (
        "#define GO(NAME) \\\n    do { \\\n        run_##NAME< \\\n            int><<<1, nullptr, s>>>(x); \\\n"
        "    } while (0)\nvoid f() { GO(a); }\n"
    )
    text = rewritten(source)
    assert text.count("\n") == source.count("\n")
    assert "run_##NAME< int>(ascsim_a...);" in text
    assert all(line.endswith("\\") for line in text.split("\n")[:4])
    assert [entry.kernel for entry in rewrite(source.encode()).launches] == ["run_##NAME< int>"]


def test_comments_and_strings_are_not_launches() -> None:
    source = (
        'const char* s = "k<<<1>>>(x)"; // k<<<1>>>(x)\n/* k<<<1>>>(x) */ const char* r = R"(k<<<)"; char c = \'"\';\n'
    )
    result = rewrite(source.encode())
    assert result.text == source
    assert result.launches == ()
    assert not result.has_device_code


@pytest.mark.parametrize(
    ("source", "message", "line", "column"),
    [
        ("void f()\n{\n  k<<<1, 2;\n}\n", "no closing `>>>`", 3, 4),
        ("void f()\n{\n  k<<<1>>>;\n}\n", "no argument list", 3, 4),
        ("void f() { <<<1>>>(x); }", "no kernel's name", 1, 12),
        ("void f() { k<<<1>>>(x; }", "no closing `)`", 1, 20),
    ],
)
def test_a_broken_launch_is_an_error_at_its_place(source: str, message: str, line: int, column: int) -> None:
    with pytest.raises(RewriteError, match=re.escape(message)) as caught:
        rewrite(source.encode(), "k.asc")
    site = caught.value.site
    assert site is not None
    assert (site.path, site.line, site.column) == ("k.asc", line, column)


KERNEL = "__global__ AICORE void k(__gm__ float* p, int n) { use(p, n); }\n"


def test_kernels_that_a_macro_makes_are_launched_by_the_functions_that_it_makes() -> None:
    source = (
        '#define MAKE(NAME, T) \\\n    extern "C" __global__ AICORE void run_##NAME(__gm__ T* p) { use(p); } \\\n'
        "    void go_##NAME(T* p) \\\n    { \\\n        run_##NAME(p); \\\n        other(p); \\\n    }\nMAKE(a, float)\n"
    )
    text = rewritten(source)
    assert text.count("\n") == source.count("\n")
    assert "ascsim::Launch{ASCSIM_TEXT(run_##NAME), __LINE__, ::ascsim::launch_config(1)}" in text
    assert "{ run_##NAME(ascsim_a...); }, p)" in text
    assert text.count("Launch{") == 1, "neither other() nor the call within the kernel"


def test_calls_between_device_functions_of_a_macro_stay() -> None:
    source = "#define MAKE(N) __global__ void k_##N(int* p) {} AICORE void f_##N(int* p) { k_##N(p); }\nMAKE(1)\n"
    assert rewritten(source) == source


@pytest.mark.parametrize("portable", [False, True])
def test_a_macros_device_function_is_launched_in_portable_programs(portable: bool) -> None:
    source = "#define MAKE(N) AICORE void f_##N(__gm__ int* p) {} void go_##N(int* p) { f_##N(p); }\nMAKE(1)\n"
    assert ("Launch{" in rewrite(source.encode(), device_calls_are_launches=portable).text) is portable


def test_a_kernel_called_from_a_host_function_is_launched() -> None:
    source = KERNEL + "template <typename T> void go(T* p) { k(p, 4); }\n"
    assert launch("k", "1", "p, 4") in rewritten(source)
    assert [entry.is_implicit for entry in rewrite(source.encode()).launches] == [True]


def test_a_kernel_called_from_device_code_is_a_call() -> None:
    for qualifier in ("__global__", "AICORE", "__aicore__ inline", "[aicore]", "MINE"):
        source = f"#define MINE __aicore__ inline\n{KERNEL}{qualifier} void outer(__gm__ float* p) {{ k(p, 4); }}\n"
        assert "Launch" not in rewritten(source), qualifier


def test_a_kernel_called_in_a_statement_that_a_condition_cuts() -> None:
    source = KERNEL + "void go(float* p) {\n  if (a)\n    k(p, 1);\n#ifdef X\n  else if (b)\n    k(p, 2);\n#endif\n}\n"
    assert [entry.line for entry in rewrite(source.encode()).launches] == [4, 7]


def test_a_kernel_of_a_header_is_known_by_name() -> None:
    source = "void go(float* p) { ns::k(p); other(p); }"
    known = Names(kernels=frozenset({"k"}))
    assert (
        rewrite(source.encode(), known=known).text == f"void go(float* p) {{ {launch('ns::k', '1', 'p')}; other(p); }}"
    )
    assert rewritten(source) == source


def test_a_null_argument_stays_a_pointer() -> None:
    source = KERNEL + "void go(float* p) { k<<<1>>>(0, 0); k<<<1>>>( NULL , 0); unknown<<<1>>>(0); }"
    text = rewritten(source)
    assert "}, nullptr, 0)" in text
    assert "},  nullptr , 0)" in text
    assert "}, 0)" in text


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        (
            "__ubuf__ float x[N];",
            'auto& x = ::ascsim::local_array<float[(N)]>(::ascsim::Space::UB, [] { return "x"; });',
        ),
        (
            "__ubuf__ half x[N >> 1][4];",
            'auto& x = ::ascsim::local_array<half[(N >> 1)][(4)]>(::ascsim::Space::UB, [] { return "x"; });',
        ),
        (
            "static __cbuf__ T x[2];",
            'auto& x = ::ascsim::local_array<T[(2)]>(::ascsim::Space::L1, [] { return "x"; });',
        ),
        (
            "__ca__ int8_t x[2];",
            'auto& x = ::ascsim::local_array<int8_t[(2)]>(::ascsim::Space::L0A, [] { return "x"; });',
        ),
        (
            "__ubuf__ alignas(64) float x[3];",
            'auto& x = ::ascsim::local_array<float[(3)]>(::ascsim::Space::UB, [] { return "x"; }, 64);',
        ),
        (
            "__attribute__((aligned(512))) __ubuf__ float x[3];",
            'auto& x = ::ascsim::local_array<float[(3)]>(::ascsim::Space::UB, [] { return "x"; }, 512);',
        ),
        (
            "__ubuf__ uint32_t last;",
            'auto& last = ::ascsim::local_array<uint32_t>(::ascsim::Space::UB, [] { return "last"; });',
        ),
        (
            "extern __ubuf__ float dyn[];",
            'auto& dyn = ::ascsim::dynamic_array<float[]>(::ascsim::Space::UB, [] { return "dyn"; });',
        ),
        (
            "__ubuf__ const unsigned int x[2], y[3];",
            'auto& x = ::ascsim::local_array<const unsigned int[(2)]>(::ascsim::Space::UB, [] { return "x"; }); '
            'auto& y = ::ascsim::local_array<const unsigned int[(3)]>(::ascsim::Space::UB, [] { return "y"; });',
        ),
        (
            "__ubuf__ float x[2], *p;",
            'auto& x = ::ascsim::local_array<float[(2)]>(::ascsim::Space::UB, [] { return "x"; }); __ubuf__ float *p;',
        ),
    ],
)
def test_an_object_on_the_chip_becomes_a_reference(declaration: str, expected: str) -> None:
    source = f"AICORE void f() {{ {declaration} use(x); }}"
    assert rewritten(source) == f"AICORE void f() {{ {expected} use(x); }}"


@pytest.mark.parametrize(
    "code",
    [
        "AICORE void f() { __ubuf__ float* x[4]; }",
        "AICORE void f() { __ubuf__ float* x = p; }",
        "AICORE void f() { Tensor<__ubuf__ float> x[4]; }",
        "AICORE void f() { __gm__ float* x[4]; float y[4]; }",
        "AICORE void f(__ubuf__ float x[4]);",
        "AICORE void f() { (__ubuf__ float*)0; g((__ubuf__ T*)p); }",
        "struct S { __ubuf__ float* p; };",
    ],
)
def test_pointers_parameters_and_casts_stay(code: str) -> None:
    assert rewritten(code) == code


def test_an_array_over_lines_keeps_the_lines() -> None:
    source = "AICORE void f() {\n    __ubuf__\n    float x[N], // first\n        y[M];\n    g();\n}\n"
    lines = rewritten(source).split("\n")
    assert lines[4] == "    g();"
    assert "auto& x" in lines[2] and "auto& y" in lines[3]


def test_an_initialised_array_is_refused() -> None:
    with pytest.raises(RewriteError, match="cannot have an initialiser"):
        rewrite(b"AICORE void f() { __ubuf__ float x[2] = {1, 2}; }")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("__ubuf__ float x[2];", "declare it inside a function"),
        ("struct S { __ubuf__ half x[N]; };", "declare it inside a function"),
        ("#define D(n) __ubuf__ float n[4];\nAICORE void f() { D(x) }", "array in a macro"),
        ("#define F(n) __simd_vf__ void n() { }\nF(x)", "vector function in a macro"),
        ("AICORE void f() { if (x { ) __ubuf__ float y[2]; }", "declare it inside a function"),
    ],
)
def test_what_cannot_be_rewritten_is_refused_rather_than_left(source: str, message: str) -> None:
    with pytest.raises(RewriteError, match=message):
        rewrite(source.encode())


def test_a_vector_function_opens_a_scope() -> None:
    source = (
        "__simd_vf__ inline void f(__ubuf__ T* p)\n{\n    g(p);\n}\n__simd_vf__ void declared();\nvoid other() { }\n"
    )
    text = rewritten(source)
    assert text.split("\n")[1] == "{ ::ascsim::VfScope ascsim_vf_scope(__func__);"
    assert text.count("VfScope") == 1


def test_the_attribute_becomes_blanks_of_the_same_length() -> None:
    source = (
        '#define MINE [aicore]\nextern "C" [aicore] void f();\n[ host, aicore ] int g();\nint h = x[aicore_count];\n'
    )
    text = rewritten(source)
    assert text == source.replace("[aicore]", " " * 8).replace("[ host, aicore ]", " " * 16)
    assert rewritten("void f() { auto g = [aicore](int i) { return i; }; AICORE; }").count("[aicore]") == 1


def test_device_bodies_are_left_out_for_the_host() -> None:
    source = (
        "__global__ AICORE void k(float* p)\n{\n#ifdef __CCE_AICORE__\n    OnlyHere<float> t;\n#endif\n}\n"
        "AICORE constexpr int size() { return 4; }\n"
        "AICORE auto deduced() { return 4; }\n"
        "int main() { k<<<1>>>(nullptr); return size(); }\n"
    )
    text = host(source)
    assert text.split("\n")[1:7] == [
        "{ __builtin_trap(); ",
        "",
        "",
        "",
        "}",
        "AICORE constexpr int size() { return 4; }",
    ]
    assert "deduced() { return 4; }" in text
    assert launch("k", "1", "nullptr") in text
    assert "OnlyHere" in rewritten(source)


def test_kernels_are_described() -> None:
    source = (
        "namespace a { namespace {\n"
        'extern "C" __global__ __mix__(1, 2) void k(__gm__ half* x, GM_ADDR y, const uint32_t n = 3, Tiling t = {});\n'
        "} }\n"
        "template <typename T> __global__ __vector__ void t() {}\n"
        "__global__ __launch_bounds__(4) __attribute__((aic)) __cube__ void c(void) {}\n"
    )
    mix, templated, cube = rewrite(source.encode()).kernels
    assert (mix.name, mix.qualified, mix.line, mix.core) == ("k", "a::k", 2, "mix(1, 2)")
    assert [(p.type, p.name) for p in mix.parameters] == [
        ("half*", "x"),
        ("GM_ADDR", "y"),
        ("const uint32_t", "n"),
        ("Tiling", "t"),
    ]
    assert [p.is_pointer for p in mix.parameters] == [True, True, False, False]
    assert (mix.is_defined, mix.is_template) == (False, False)
    assert (templated.name, templated.core, templated.is_template, templated.is_defined) == ("t", "vector", True, True)
    assert (cube.name, cube.core, cube.parameters) == ("c", "cube", ())


def test_an_include_guard_is_no_condition() -> None:
    source = "#ifndef H\n#define H\nAICORE void f() { TADD(a); }\n#endif\n"
    (call,) = rewrite(source.encode()).instructions_called
    assert not call.is_conditional


def test_instructions_called_in_device_functions_are_listed() -> None:
    source = (
        "AICORE void f(T& t) {\n"
        "  TSORT32(t, t);\n"
        "  asc_intlv(a, b, c, d);\n"
        "#if X\n  vadd(a);\n#endif\n"
        "  MINE(a); TMINE(a); obj.TADD(a); ns::TADD(a); helper(a);\n"
        "}\n"
        "void TMINE(int);\n#define MINE(x) x\n"
        "int main() { TADD(); verify(); }\n"
    )
    calls = rewrite(source.encode()).instructions_called
    assert [(c.name, c.line, c.column, c.is_conditional) for c in calls] == [
        ("TSORT32", 2, 3, False),
        ("asc_intlv", 3, 3, False),
        ("vadd", 5, 3, True),
    ]


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("__global__ __cube__ void k();", True),
        ("__global__ __mix__(1, 2) void k();", True),
        ("#if defined(__DAV_CUBE__)\n#endif", True),
        ("#ifdef __DAV_C220_CUBE__\n#endif\nAICORE", True),
        ("AICORE void f() { Tile<TileType::Left, half> t; }", True),
        ("__global__ void k() { Tile<TileType::Vec, half> t; }", False),
        ("__global__ void k() { } // __cube__", False),
    ],
)
def test_which_texts_need_a_cube_compilation(text: str, uses: bool) -> None:
    source = text + "\nAICORE void other();\n"
    assert rewrite(source.encode()).uses_aic is uses


def test_portable_programs_launch_device_functions_that_hosts_call() -> None:
    source = (
        "AICORE void run(__gm__ float* p) { helper(t); }\n"
        "AICORE void helper(Tile& t) { }\n"
        "void go(float* p) { run(p); helper(t); }\n"
    )
    text = rewritten(source, device_calls_are_launches=True)
    assert f"void go(float* p) {{ {launch('run', '1', 'p')}; helper(t); }}" in text
    assert rewritten(source) == source


def test_pointers_to_kernels_launch_in_portable_programs() -> None:
    source = (
        "__global__ void k(float* p) { }\n"
        "using F = void (*)(float*);\n"
        "F table[] = {k};\n"
        "F find() { F f = &k; return n ? f : k; }\n"
        "void go(float* p) { k(p); }\n"
    )
    text = rewritten(source, device_calls_are_launches=True)
    pointer = "(&::ascsim::Launching<ASCSIM_TU, &k>::call)"
    assert f"F table[] = {{{pointer}}};" in text
    assert f"F find() {{ F f = {pointer}; return n ? f : {pointer}; }}" in text
    assert f"void go(float* p) {{ {launch('k', '1', 'p')}; }}" in text
    assert "Launching" not in rewritten(source)


def test_exported_kernels_can_be_called_by_name() -> None:
    source = "namespace n {\n__global__ void k(float* p) { }\ntemplate <class T> __global__ void t() { }\n}\n"
    text = rewritten(source, export_kernels=True)
    assert text.split("\n")[1] == "__global__ void k(float* p) { } ASCSIM_EXPORT_KERNEL(k, k)"
    assert text.count("ASCSIM_EXPORT_KERNEL") == 1


def test_kernels_that_share_a_name_are_not_exported() -> None:
    twins = "namespace a {\n__global__ void k() { }\n}\nnamespace b {\n__global__ void k() { }\n}\n"
    assert "ASCSIM_EXPORT_KERNEL" not in rewritten(twins, export_kernels=True)
    overloads = "__global__ void k(int* p) { }\n__global__ void k(float* p) { }\n__global__ void j() { }\n"
    assert rewritten(overloads, export_kernels=True).count("ASCSIM_EXPORT_KERNEL") == 1
    either = "int x;\n#if X\n__global__ void k(int* p) { }\n#else\n__global__ void k() { }\n#endif\n"
    assert rewritten(either, export_kernels=True).count("ASCSIM_EXPORT_KERNEL(k, k)") == 2


def test_plain_files_are_left_alone() -> None:
    source = "#include <vector>\nint main() { return f<1>(2) << 3 >> 1; }\n"
    result = rewrite(source.encode())
    assert (result.text, result.host_text, result.is_changed) == (source, source, False)
    assert not result.has_device_code


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("void f() { k<<<1>>>(); }", True),
        ("AICORE inline int f();", True),
        ("#define GO k<<<1>>>()", True),
        ("#define MINE __aicore__\nMINE void f() {}", True),
        ("#ifndef AICORE\n#define AICORE\n#endif\n#ifdef __global__\n#endif\n", False),
        ("#define __gm__\nint main() {}", False),
    ],
)
def test_which_texts_have_device_code(text: str, has: bool) -> None:
    assert rewrite(text.encode()).has_device_code is has


def test_bytes_that_are_not_utf8_are_carried_along() -> None:
    source = b"// \xb2\xe2\nvoid f() { k<<<1>>>(x); }\n"
    text = rewrite(source).text
    assert text.encode("utf-8", "surrogateescape").startswith(b"// \xb2\xe2\nvoid f() { (::ascsim::Launch")


PIECES = [
    "k<<<1, nullptr, s>>>(a, b);",
    "ns::k<int,\n  (A > B)><<<\n2>>>(\n);",
    "__ubuf__ float x[3],\n  y[N];",
    "__ubuf__ T* p[4];",
    "#if X\n int a;\n#endif\n",
    "/* <<< \n */",
    "// it's \"k<<<\n",
    'f("a\\"<<<");',
    "if (a < b) { c = d >> 2; }",
    "auto g = [](auto x) { return x; };",
    "for (int i = 0; i < 3; ++i)\n  h(i);",
]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(PIECES), max_size=8), st.sampled_from(["__global__ AICORE", "", "__simd_vf__ inline"]))
def test_no_line_moves(pieces: list[str], qualifier: str) -> None:
    source = f"{qualifier} void f()\n{{\n" + "\n".join(pieces) + "\nEND;\n}\n"
    result = rewrite(source.encode())
    place = source.split("\n").index("END;")
    assert result.text.split("\n")[place] == "END;"
    assert result.text.count("\n") == result.host_text.count("\n") == source.count("\n")
    assert "<<<" not in re.sub(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\]|\\.)*"', "", result.text, flags=re.S)


def test_the_rewritten_forms_compile(compiler: Compiler, tmp_path: Path) -> None:
    """The forms against the smallest headers that they can do with, in the places where C++ is difficult."""
    header = """
namespace ascsim {
enum class Space { UB, L1 };
struct Config { int blocks; };
template <class... A> Config launch_config(A...) { return {1}; }
struct Launch {
    const char* name; int line; Config config;
    template <unsigned long long, class F, class... A> void run(F f, A... a) const { f(a...); }
};
template <class T, class N> T& local_array(Space, N, unsigned = 32) { static T x; return x; }
struct VfScope { explicit VfScope(const char*) {} };
}
#define __global__
#define AICORE
#define __gm__
#define __ubuf__
#define __simd_vf__
#define ASCSIM_TEXT(...) #__VA_ARGS__
"""
    source = """
#define CHECK(expression) expression
#define GO(NAME) run_##NAME<<<1, nullptr, s>>>(p)
constexpr int N = 4;
template <typename T, int R> __global__ AICORE void run(__gm__ T* p, int n) {
    __ubuf__ T x[R][N / 2], y[(R > 2) ? 1 : 2];
    static_assert(sizeof(x) == R * N / 2 * sizeof(T));
    for (auto& row : x) row[0] = T(n);
    p[0] = x[0][0] + y[0];
}
namespace { __global__ void run_a(__gm__ float* p) { *p = 1; } }
__simd_vf__ inline int vf(__ubuf__ int* p) { return *p; }
template <typename T> struct Host {
    template <int R> void go(T* p, void* s) {
        constexpr int rows = R + 1;
        if constexpr (R == 1) run<T, rows><<<1, nullptr, s>>>(p, 3);
        else run<T, rows>(p, 3);
        auto later = [&] { run<T, rows><<<1>>>(p, 2); };
        later();
        CHECK(run_a<<<1>>>(nullptr ? p : 0));
        GO(a);
    }
};
int main() { float f; Host<float>().go<1>(&f, nullptr); Host<float>().go<2>(&f, nullptr); int i = 0; return vf(&i); }
"""
    place = tmp_path / "k.cpp"
    place.write_text(header + rewritten(source))
    command = [*compiler.command, "-std=c++17", "-Wall", "-DASCSIM_TU=0", "-c", str(place), "-o", str(tmp_path / "k.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_loops_count_their_rounds_where_address_registers_do() -> None:
    source = (
        "__simd_vf__ inline void f(int n)\n{\n    addr_reg r;\n    if (n) for (int i = 0; i < n; ++i)\n"
        "        for (int k = 0; k < n; ++k) { g(); }\n    else h();\n}\nvoid other(int n) { for (;;) { } }\n"
    )
    text = rewritten(source)
    assert text.count("\n") == source.count("\n")
    assert "if (n) { ::ascsim::Loop ascsim_loop; for (int i" in text
    assert (
        "{ ascsim_loop.next(); { ::ascsim::Loop ascsim_loop; for (int k = 0; k < n; ++k) { ascsim_loop.next(); g(); } } } }"
        in text
    )
    assert "void other(int n) { for (;;) { } }" in text
    assert "Loop" not in rewritten(source.replace("addr_reg", "long"))


# Host functions in device text

NO_WORDS: frozenset[str] = frozenset()


def device(source: str, elsewhere: frozenset[str] = NO_WORDS, **options) -> str:
    """The device text of a source of its own."""
    return rewrite(source.encode(), "k.asc", elsewhere=lambda: elsewhere, **options).text


HOST = """\
#include <vector>
namespace {
template <int N> __aicore__ void work(int* p) { p[0] = helper(N); }
int helper(int x) { return x + 1; }
__global__ __vector__ void one(int* p)
{
    work<1>(p);
}
}
extern "C" __global__ void two(float x) { }
static int shown(int x) { return x; }
template <typename F>
bool check(int n, F launch)
{
#define KEPT 1
    aclInit(nullptr);
    return launch(n + shown(helper(n)));
}
bool check_again();
bool check_again() { return check(1, [](int) { return true; }); }
constexpr int kSize = KEPT;
int main()
{
    check(1, [&](int n) { one<<<n>>>(nullptr); return true; });
    two<<<1>>>(3);
    return !check_again();
}
// The end.
"""


def test_what_devices_can_do_without_is_left_out() -> None:
    text = device(HOST)
    lines = text.splitlines()
    assert lines[7] == "} ASCSIM_LAUNCHED(ASCSIM_TU, one)"
    assert lines[9] == 'extern "C" __global__ void two(float x) { } ASCSIM_LAUNCHED(ASCSIM_TU, two)'
    assert "shown" not in text and "check(" not in text and "main" not in text and "Launch{" not in text
    assert "int helper(int x) { return x + 1; }" in text, "device code calls it"
    assert lines[14] == "#define KEPT 1", "on its line"
    assert lines[-1] == "constexpr int kSize = KEPT;" and len(lines) == HOST[: HOST.index("int main")].count("\n")
    assert "bool check_again();" in text, "a declaration asks for nothing"


def test_an_edit_of_host_code_at_the_end_leaves_the_device_text() -> None:
    assert device(HOST) == device(HOST.replace("return !check", "\n    puts(__func__);\n    return !check"))
    assert device(HOST) != device(HOST.replace("x + 1", "x + 2"))
    before = rewrite(HOST.encode(), elsewhere=lambda: NO_WORDS).host_text
    assert before == rewrite(HOST.replace("work<1>(p)", "work<2>(p)").encode(), elsewhere=lambda: NO_WORDS).host_text


def test_a_launch_names_the_kernel() -> None:
    text = rewrite(HOST.encode(), elsewhere=lambda: NO_WORDS).host_text
    assert ".run<ASCSIM_TU, one>([](auto... ascsim_a) { one(ascsim_a...); }, nullptr)" in text
    assert ".run<ASCSIM_TU, two>(" in text


@pytest.mark.parametrize(
    "addition",
    [
        "template <int N> __global__ void many(int* p) { }\nvoid f() { many<3><<<1>>>(nullptr); }",
        "template <class K> void f(K k) { k<<<1>>>(nullptr); }",
        "__global__ void given(int x = 3) { }\nvoid f() { given<<<1>>>(); }",
        "__global__ void same(int x) { }\nvoid same(float x) { }\nvoid f() { same<<<1>>>(3); }",
        "struct S { static __global__ void in(int x) { } };\nvoid f() { S::in<<<1>>>(3); }",
        "__global__ void elsewhere(int x);\nvoid f() { elsewhere<<<1>>>(3); }",
        "#ifdef A\n__global__ void twin(int x) { }\n#else\n__global__ void twin(float x) { }\n#endif\n"
        "void f() { twin<<<1>>>(3); }",
        "#define RUN(k) k<<<1>>>(nullptr)",
    ],
)
def test_a_launch_without_such_a_name_needs_the_host_code(addition: str) -> None:
    text = device(f"{addition}\n{HOST}")
    assert "int main()" in text and "bool check(int n" in text
    assert ".run<ASCSIM_TU, one>(" in text and "ASCSIM_LAUNCHED(ASCSIM_TU, one)" in text


@pytest.mark.parametrize(
    "use",
    [
        "static Registrar registered(check_again);",
        "auto* pointer = &check_again;",
        "#define CALL check_again()",
        "__aicore__ bool on_device() { return check_again(); }",
        "struct Member { bool f() { return check_again(); } };",
        "bool unsure() { return check_again(); }",
    ],
)
def test_a_host_function_that_is_named_elsewhere_stays(use: str) -> None:
    text = device(HOST + use + "\n")
    assert "{ return check(1," in text and "bool check(int n" in text and "shown(int x)" in text
    assert "main" not in text


def test_what_an_included_file_names_or_launches_stays() -> None:
    text = device(HOST, frozenset({"check"}))
    assert "bool check(int n" in text and "check_again() {" not in text and "main" not in text
    assert "ASCSIM_LAUNCHED(ASCSIM_TU, one)" not in device(HOST, frozenset({"one"})), "it may be overloaded"
    assert "int main()" in device(HOST, known=Names(has_launches=True))


def test_an_included_file_and_a_portable_program_are_whole() -> None:
    assert "int main()" in rewritten(HOST) and "ASCSIM_LAUNCHED" not in rewritten(HOST)
    assert "int main()" in device(HOST, device_calls_are_launches=True)


def test_host_functions_that_a_condition_cuts_stay() -> None:
    cut = HOST.replace("int main()\n{", "#ifdef A\nint main(int) {\n#else\nint main()\n{\n#endif")
    text = device(cut)
    assert text.count("#ifdef A") == text.count("#endif")
    assert ("int main()" in text) == ("return !check_again" in text)
