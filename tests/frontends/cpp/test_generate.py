"""The generated headers: complete, made once, driven by the records alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ascsim import profiles
from ascsim.frontends.cpp import generate
from ascsim.isa import REGISTRY
from ascsim.isa.definition import Definition, Sort
from ascsim.machine.dtypes import DTYPES
from ascsim.machine.trace import Kind
from ascsim.machine.words import Pipe, Space, VectorAddress
from compiled_headers import command, compile_errors

PROFILES = profiles.NAMES


def _cpp_names(definition: Definition) -> list[str]:
    return [n for n in (definition.cpp, *definition.aliases) if n and n not in generate.WRITTEN_BY_HAND]


def test_headers_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCSIM_CACHE", str(tmp_path))
    directory = generate.headers(profiles.load("a5"))
    assert directory.parent.name == f"headers-{generate.headers_hash()}"
    written = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.hpp")}
    assert directory / "ascsim" / "words.hpp" in written
    assert generate.headers(profiles.load("a5")) == directory
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.hpp")} == written
    assert generate.headers(profiles.load("a2a3")).parent == directory.parent
    assert not list(tmp_path.glob("*/*.*"))  # nothing half-written


@pytest.mark.parametrize("profile", PROFILES)
def test_every_instruction_of_the_profile_has_its_functions(profile: str) -> None:
    text = "\n".join(generate.texts(profiles.load(profile)).values())
    missing = [
        name
        for definition in REGISTRY.definitions
        if profile in definition.profiles
        for name in _cpp_names(definition)
        if not re.search(
            rf"^(?:template <.*> )?ASCSIM_(?:INLINE|FORM) [\w:]+ {name}\(.*\b{definition.number}\b", text, re.M
        )
    ]
    assert not missing


@pytest.mark.parametrize("profile", PROFILES)
def test_names_are_either_there_or_said_not_to_be(profile: str) -> None:
    there = {n for x in REGISTRY.definitions if profile in x.profiles for n in _cpp_names(x)}
    absent = generate.unavailable(profiles.load(profile))
    public = generate.public_names()
    known = {*public["pto"], *public["c_api"], *public["builtins"]}
    elsewhere = {n for x in REGISTRY.definitions for n in _cpp_names(x)}
    assert not there & absent.keys()
    assert known | elsewhere <= there | absent.keys() | generate.WRITTEN_BY_HAND
    texts = "\n".join(generate.texts(profiles.load(profile)).values())
    for name, (code, message) in absent.items():
        assert code in ("L001", "L012")
        assert f'"{generate.error_text(code, name, message)}"' in texts


def test_what_is_said_of_a_name() -> None:
    on_a2a3 = generate.unavailable(profiles.load("a2a3"))
    assert on_a2a3["asc_intlv"] == ("L001", "not on a2a3; it exists on Ascend 950PR / Ascend 950DT")
    assert on_a2a3["TINTERLEAVE"][0] == "L001"
    assert on_a2a3["asc_mmad"] == ("L012", "not implemented")
    assert on_a2a3["vlds"][0] == "L001"
    on_a5 = generate.unavailable(profiles.load("a5"))
    assert "asc_intlv" not in on_a5
    on_cpu = generate.unavailable(profiles.load("cpu"))
    code, message = on_cpu["asc_intlv"]
    assert code == "L001" and "Ascend 950PR" in message
    assert not generate.WRITTEN_BY_HAND & on_cpu.keys()


@pytest.mark.parametrize("path", ["pto/common/pto_tile.hpp", "pto/npu/a5/TSort32.hpp", "c_api/reg_compute/reg_load.h"])
def test_paths_of_the_public_libraries_lead_to_the_umbrella(path: str) -> None:
    text = generate.texts(profiles.load("a5"))[path]
    assert f'#include "{"pto/pto-inst.hpp" if path.startswith("pto") else "c_api/asc_simd.h"}"' in text
    assert all((generate.INCLUDE / umbrella).exists() for umbrella in ("pto/pto-inst.hpp", "c_api/asc_simd.h"))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("side", [0, 1, 2])
def test_all_headers_compile_without_a_warning(tmp_path: Path, profile: str, side: int) -> None:
    umbrellas = ["pto/pto-inst.hpp", "c_api/asc_simd.h", "kernel_operator.h"]
    text = "".join(f'#include "{name}"\n' for name in umbrellas)
    assert not compile_errors(tmp_path, text, profile, "-Wshadow", side=side)


def test_a_host_program_may_include_them_without_the_prelude(tmp_path: Path) -> None:
    source = tmp_path / "host.cpp"
    source.write_text('#include "pto/pto-inst.hpp"\n#include "c_api/asc_simd.h"\nhalf value = 1.0f;\nint main() {}\n')
    added = ("-DASCSIM_SIDE=1", "-include", "ascsim/prelude.hpp")
    kept = [flag for flag in command("a2a3") if flag not in added]
    whole = [*kept, "-c", str(source), "-o", str(tmp_path / "host.o")]
    done = subprocess.run(whole, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_numbers_are_those_of_the_machine(tmp_path: Path) -> None:
    lines = ['#include "c_api/asc_simd.h"', '#include "pto/pto-inst.hpp"']
    lines += [f"static_assert(ascsim::dtype_code<{t.c_names[0]}> == {t.code});" for t in DTYPES.values()]
    lines += [f"static_assert(sizeof(vector_{t.c_names[0]}) == 256);" for t in DTYPES.values()]
    lines += [f"static_assert(PIPE_{p.name} == {p.value});" for p in Pipe]
    lines += [f"static_assert(int(ascsim::Space::{s.name}) == {s.value});" for s in Space if s is not Space.STATE]
    lines += [f"static_assert(ascsim::kind::{k.name.lower()} == {k.value});" for k in Kind]
    limits = profiles.load("a5").spaces
    lines += [f"static_assert(ascsim::space_capacity[{Space[n].value}] == {x.capacity});" for n, x in limits.items()]
    unsigned, wide = DTYPES["u8"].code, DTYPES["i64"].code
    lines += [f"static_assert(ascsim::dtype_code<bool> == {unsigned} && ascsim::dtype_code<long long> == {wide});"]
    lines += ["static_assert(ascsim::dtype_code<void> == 0 && ascsim::dtype_code<pipe_t> == 0);"]
    assert not compile_errors(tmp_path, "\n".join(lines) + "\n", "a5")


def _enumerations() -> dict[str, int]:
    """``Type::NAME`` and ``NAME`` to the value, of the enumerations in the hand-written headers."""
    found: dict[str, int] = {}
    for name in ("pto.hpp", "c_api.hpp"):
        text = re.sub(r"//[^\n]*", "", (generate.INCLUDE / "ascsim" / name).read_text())
        for match in re.finditer(r"\benum (?:class )?(\w+)[^{;]*\{(.*?)\}", text, re.S):
            value = -1
            for entry in filter(None, (part.strip() for part in match[2].split(","))):
                word, _, said = (part.strip() for part in entry.partition("="))
                value = int(said.rstrip("UL"), 0) if said else value + 1
                found[f"{match[1]}::{word}"] = value
    return found


def test_enumerations_have_the_numbers_of_the_instructions_operands() -> None:
    declared = _enumerations()
    names = {key.split("::")[1] for key in declared}
    checked = 0
    enums = {
        o.enum
        for x in REGISTRY.definitions
        for o in x.operands
        if o.sort is Sort.ENUM and o.enum not in (int, bool, Pipe, VectorAddress)
    }
    for enum in enums:
        assert enum is not None
        members = {m.name: int(m) for m in enum}  # type: ignore[attr-defined, var-annotated]
        same = [key for key in declared if key.split("::")[0] == enum.__name__]
        if same:
            assert set(members.values()) <= {declared[key] for key in same}, enum
        else:
            assert members.keys() <= names, enum
            values = {word: {v for k, v in declared.items() if k.endswith(f"::{word}")} for word in members}
            assert all(value in values[word] for word, value in members.items()), enum
        checked += 1
    assert checked >= 4


def test_a_precision_may_be_a_value_of_any_enumeration(tmp_path: Path) -> None:
    text = """#include "pto/pto-inst.hpp"
using namespace pto;
AICORE void f(Tile<TileType::Vec, float, 8, 64>& a, Tile<TileType::Vec, float, 8, 64>& b)
{
    TRECIP<DivAlgorithm::HIGH_PRECISION>(a, b);
    TRECIP<RecipAlgorithm::DEFAULT>(a, b);
    TDIV<DivAlgorithm::HIGH_PRECISION>(a, b, b);
}
"""
    assert not compile_errors(tmp_path, text, "a5")


def test_no_instruction_is_known_by_name() -> None:
    aliases = {"ascsim_syncall", "ascsim_dcci_single", "ascsim_dcci_entire"}
    structural = {"set_flag", "wait_flag", "pipe_barrier"} | aliases | generate.WRITTEN_BY_HAND
    names = {n for x in REGISTRY.definitions for n in (x.name, *_cpp_names(x))} - structural
    files = [
        Path(generate.__file__),
        *sorted(generate.INCLUDE.rglob("*.hpp")),
        *sorted(generate.INCLUDE.glob("c_api/*.h")),
    ]
    own = [f for f in files if f.name not in ("launch.hpp", "runtime.hpp")]
    assert len(own) >= 7
    for file in own:
        words = set(re.findall(r"\w+", re.sub(r'//[^\n]*|""".*?"""', "", file.read_text(), flags=re.S)))
        assert not words & names, file
