"""What is said of a run that ended in one way or another, from what it left in its directory."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from ascsim.diagnostics import Diagnostic, Fault, Place, Severity, Site
from ascsim.frontends.cpp.endings import CRASH, error_of, read_trace, stops
from ascsim.frontends.cpp.session import FATAL
from ascsim.machine.trace import SITE_PC, Kind, MemorySink, Trace, pack_row

FAULT = Fault(Diagnostic("M001", Severity.ERROR, "too far", (Place("TADD"),)))


def row(kind: int, core: int = 0, mnemonic: int = 0) -> bytes:
    return pack_row(core, 0, kind, mnemonic, 0, 0, -1, 1, 0, 0, 0, 0, 0)


@pytest.fixture
def sink() -> MemorySink:
    made = MemorySink()
    made.note("mnemonic", {"id": 7, "name": "tadd"})
    made.note("launch", {"number": 1, "kernel": "add", "sync": "manual"})
    made.append(row(Kind.LAUNCH_BEGIN, core=2), b"")
    made.append(row(Kind.INSTRUCTION, core=2, mnemonic=7), b"")
    return made


def saved(sink: MemorySink, directory: Path) -> Path:
    sink.trace().save(directory)
    return directory


def error(directory: Path, status: int, timeout: float | None = None) -> Diagnostic | None:
    return error_of(Path("main"), directory, Trace.load(directory), status, timeout)


def test_a_run_that_ended_by_itself_has_no_error(sink: MemorySink, tmp_path: Path) -> None:
    saved(sink, tmp_path)
    assert error(tmp_path, 0) is None
    assert error(tmp_path, 3) is None


def test_a_signal_without_a_record(sink: MemorySink, tmp_path: Path) -> None:
    found = error(saved(sink, tmp_path), -signal.SIGKILL)
    assert found is not None
    assert (found.code, found.headline.split(":")[0]) == ("H010", "main crashed with SIGKILL")
    assert [place.what for place in found.places] == ["the last instruction was tadd, on core 2"]
    assert found.notes == ("It was in the kernel add, on core 2.",)


def test_a_record_says_where_and_at_which_address(sink: MemorySink, tmp_path: Path) -> None:
    sink.append(row(Kind.LAUNCH_END, core=2), b"")
    saved(sink, tmp_path)
    record = np.zeros((), CRASH)
    record["address"], record["pc"] = 0x30, 0x55550010
    record.tofile(tmp_path / "crash.bin")
    (tmp_path / "crash.maps").write_text(
        f"55550000-55551000 r-xp 00000000 00:00 1 {tmp_path}/absent program\n7000-8000 rw-p 00000000 00:00 0\n"
    )
    found = error(tmp_path, -signal.SIGSEGV)
    assert found is not None
    assert "(address 0x30)" in found.headline
    assert found.places[0] == Place("the program was here", Site("absent program+0x10"))
    assert found.notes == ("It was in host code; no kernel was running.",)


def test_a_record_that_is_cut_short_says_nothing(sink: MemorySink, tmp_path: Path) -> None:
    (saved(sink, tmp_path) / "crash.bin").write_bytes(b"\0" * 100)
    found = error(tmp_path, -signal.SIGABRT)
    assert found is not None and len(found.places) == 1


def test_what_took_too_long_and_what_could_not_start(sink: MemorySink, tmp_path: Path) -> None:
    found = error(saved(sink, tmp_path), -signal.SIGQUIT, timeout=1.5)
    assert found is not None
    assert (found.code, found.headline) == ("H011", "main did not end within 1.5 s")
    (tmp_path / FATAL).write_text("main cannot be loaded")
    lost = error(tmp_path, 70)
    assert lost is not None and (lost.code, lost.headline) == ("H012", "main cannot be loaded")


def test_a_launch_learns_how_it_was_synchronised(sink: MemorySink, tmp_path: Path) -> None:
    sink.note("sync", {"launch": 1, "sync": "auto"})
    assert read_trace(saved(sink, tmp_path)).noted("launch")[0]["sync"] == "auto"


def test_stops_stand_at_the_line_of_their_instruction(sink: MemorySink) -> None:
    sink.note("fault", {"site": 5, "diagnostic": FAULT.diagnostic.as_dict()})
    sink.note("refused", {"site": 6, "diagnostic": Diagnostic("L001", Severity.ERROR, "no").as_dict()})
    known = {5: Site("k.asc", 3), 6: Site("k.asc", 4)}
    found = stops(sink.trace(), lambda number, flags: known[number] if flags == SITE_PC else None)
    assert [(d.code, d.places) for d in found] == [
        ("M001", (Place("TADD", Site("k.asc", 3)),)),
        ("L001", (Place("here", Site("k.asc", 4)),)),
    ]
