"""A source and its headers: which files get a rewritten copy, and how they find each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.sources import Prepared, prepare

KERNEL = "__global__ void k(int* p) { use(p); }\n"


def prepared(directory: Path, **options) -> Prepared:
    return prepare(directory / "main.asc", [directory / "inc"], directory / "overlay", **options)


def put(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def included(unit: Prepared) -> list[str]:
    """The names in the include lines of the device text."""
    return [line.split(maxsplit=1)[1].strip('"<>') for line in unit.device_text.splitlines() if "#include" in line]


def test_the_text_begins_with_the_users_file(tmp_path: Path) -> None:
    put(tmp_path, {"main.asc": KERNEL})
    unit = prepared(tmp_path)
    assert unit.device.read_text() == unit.device_text
    assert unit.device_text.splitlines()[0] == f'#line 1 "{tmp_path}/main.asc"'
    assert unit.device_text.splitlines()[1] == KERNEL.strip()
    assert "__builtin_trap" in unit.host.read_text()


def test_only_headers_that_change_are_copied(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "main.asc": '#include "plain.h"\n#include "kernel.h"\n#include <over.h>\n#include <inc.h>\n'
            '#include <vector>\n#include "absent.h"\n',
            "plain.h": "int plain();\n",
            "kernel.h": KERNEL,
            "inc/over.h": '#include "../kernel.h"\n',
            "inc/inc.h": "int inc();\n",
        },
    )
    unit = prepared(tmp_path)
    plain, kernel, over, inc, vector, absent = included(unit)
    assert plain == str(tmp_path / "plain.h"), "found beside the source, which the copy is not"
    assert unit.originals[kernel] == tmp_path / "kernel.h"
    assert unit.originals[over] == tmp_path / "inc" / "over.h", "it includes a copy"
    assert (inc, vector, absent) == ("inc.h", "vector", "absent.h"), "the compiler finds these as before"
    assert kernel in Path(over).read_text()
    assert unit.has_device_code and not unit.rewritten.has_device_code
    assert [(path.name, kernel.name) for path, kernel in unit.kernels] == [("kernel.h", "k")]


def test_headers_that_include_each_other_end(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "main.asc": '#include "a.h"\n',
            "a.h": '#pragma once\n#include "b.h"\n',
            "b.h": f'#pragma once\n#include "a.h"\n{KERNEL}',
        },
    )
    unit = prepared(tmp_path)
    assert sorted(path.name for path in set(unit.originals.values())) == ["a.h", "b.h", "main.asc"]


def test_names_of_headers_are_known(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "main.asc": '#include "kernel.h"\nvoid f(int* p) { k(p); }\nMINE int g(int* p) { k(p); return 0; }\n',
            "kernel.h": KERNEL + "#define MINE __aicore__ inline\n",
        },
    )
    unit = prepared(tmp_path)
    assert unit.device_text.count("::ascsim::Launch") == 1
    assert [launch.line for launch in unit.rewritten.launches] == [2]


def test_our_own_headers_are_left_alone_and_come_first(tmp_path: Path) -> None:
    put(tmp_path, {"main.asc": "#include <lib/x.h>\n" + KERNEL, "inc/lib/x.h": KERNEL, "own/lib/x.h": KERNEL})
    assert included(prepared(tmp_path, own_headers=[tmp_path / "own"])) == ["lib/x.h"]
    assert included(prepared(tmp_path)) != ["lib/x.h"]


def test_another_content_is_another_copy(tmp_path: Path) -> None:
    body = "inline __global__ void h() { int %s; }\n"
    put(tmp_path, {"main.asc": '#include "h.h"\n' + KERNEL, "h.h": body % "one"})
    first = prepared(tmp_path)
    assert prepared(tmp_path).device == first.device
    put(tmp_path, {"h.h": body % "two"})
    second = prepared(tmp_path)
    assert second.device != first.device
    assert second.host == first.host, "which sees no bodies of kernels"


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        prepared(tmp_path)


def test_the_first_includes_end_with_the_first_thing_that_is_not_the_librarys(tmp_path: Path) -> None:
    above = '// licence\n#include <vector> // here\n/* and\nhere */\n#include "own/lib.h"\n'
    put(tmp_path, {"mine.h": "", "lib/own/lib.h": "", "inc/theirs.h": ""})
    for line in ('#include "mine.h"', "#include <theirs.h>", "#define N 1", "int n;", "#ifdef N", "#include NAME"):
        put(tmp_path, {"main.asc": f"{above}{line}\n#include <map>\n{KERNEL}"})
        unit = prepared(tmp_path, own_headers=[tmp_path / "lib"])
        assert unit.first_includes == ("#include <vector>", '#include "own/lib.h"'), line
