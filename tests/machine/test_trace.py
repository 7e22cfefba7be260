"""The trace's records and files."""

import errno
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import UserError
from ascsim.machine.trace import (
    ACCESS,
    ROW,
    SHAPE,
    SINGLE,
    Kind,
    MemorySink,
    Mode,
    Trace,
    _map_of,
    all_bursts,
    pack_access,
    pack_row,
    pack_shape,
)
from ascsim.progress import watched
from checks.builder import Builder, V
from checks.programs import accesses
from checks.reference import Access


def a_row(n_access=1, parent=-1):
    return pack_row(3, 1, Kind.INSTRUCTION, 17, n_access, 0, parent, 5, 9, 2, 0, 0, 0)


def an_access(start):
    return pack_access(1, Mode.WRITE, 2, 5, 0, start, 64, 7, 1, 0)


def test_packed_records_read_back_field_by_field():
    row = np.frombuffer(a_row(), ROW)[0]
    assert (row["core"], row["pipe"], row["mnemonic"], row["parent"], row["arg"], row["site"]) == (3, 1, 17, -1, 5, 9)
    access = np.frombuffer(an_access(-4), ACCESS)[0]
    assert (access["start"], access["length"], access["shape"], access["object"]) == (-4, 64, 7, 1)
    shape = np.frombuffer(pack_shape(2, 128, 3, 256, 4, -512), SHAPE)[0]
    assert (shape["n1"], shape["s1"], shape["n2"], shape["s2"], shape["n3"], shape["s3"]) == (2, 128, 3, 256, 4, -512)


def test_accesses_belong_to_their_rows_in_order():
    sink = MemorySink()
    sink.append(a_row(2), an_access(1) + an_access(2))
    sink.append(a_row(0), b"")
    sink.append(a_row(1), an_access(3))
    trace = sink.trace()
    assert trace.first_access.tolist() == [0, 2, 2, 3]
    assert trace.rows_of(np.arange(3)).tolist() == [0, 0, 2]
    assert trace.rows_of(2) == 2


def test_columns_do_not_depend_on_how_many_rows_are_looked_at_together(monkeypatch):
    cores, counts = [0, 0, 1, 1, 1, 0, 2], [1, 0, 2, 0, 0, 3, 1]
    sink = MemorySink()
    for core, count in zip(cores, counts, strict=True):
        sink.append(pack_row(core, 1, core, 17, count, 0, -1, 5, 9, 2, 0, 0, 0), an_access(1) * count)
    for size in (1, 2, 3, 100):
        monkeypatch.setattr("ascsim.machine.trace._CHUNK", size)
        trace = sink.trace()
        assert trace.kind.tolist() == cores
        assert trace.first_access.tolist() == [0, 1, 1, 3, 3, 3, 6, 7]
        assert trace.turns.tolist() == [2, 5, 6]
        assert trace.marks.tolist() == [2, 3, 4, 6]


def test_a_saved_trace_loads_the_same(tmp_path):
    sink = MemorySink()
    sink.note("launch", {"number": 0, "kernel": "k"})
    sink.append(a_row(), an_access(7))
    assert sink.mask(bytes(32)) == 1
    assert [sink.shape(pack_shape(n, 64)) for n in (2, 3, 2)] == [1, 2, 1]
    sink.save(tmp_path)
    trace = Trace.load(tmp_path)
    assert trace.accesses["start"].tolist() == [7]
    assert trace.noted("launch") == [{"number": 0, "kernel": "k"}]
    assert trace.masks.shape == (1, 32)
    assert trace.shapes["n1"].tolist() == [1, 2, 3]
    trace.save(tmp_path / "again")
    again = Trace.load(tmp_path / "again")
    assert again.rows.tobytes() == trace.rows.tobytes()
    assert again.shapes.tobytes() == trace.shapes.tobytes()


def test_a_trace_is_saved_over_the_files_it_was_loaded_from(tmp_path):
    sink = MemorySink()
    sink.append(a_row(), an_access(7))
    sink.save(tmp_path)
    trace = Trace.load(tmp_path)
    trace.notes.append(("dialect", {"name": "c_api"}))
    trace.save(tmp_path)
    again = Trace.load(tmp_path)
    assert again.rows.tobytes() == trace.rows.tobytes() == a_row()
    assert again.dialect == "c_api"
    assert {path.suffix for path in tmp_path.iterdir()} == {".bin", ".jsonl"}


def test_a_trace_of_single_bursts_has_one_shape(tmp_path):
    sink = MemorySink()
    sink.append(a_row(), an_access(1))
    sink.save(tmp_path)
    for trace in (sink.trace(), Trace.load(tmp_path)):
        assert trace.shapes.tolist() == SINGLE.tolist()


def test_records_cut_short_by_a_crash_are_dropped(tmp_path):
    (tmp_path / "rows.bin").write_bytes(a_row() + a_row()[:10])
    (tmp_path / "accesses.bin").write_bytes(an_access(1) + an_access(2)[:30])
    (tmp_path / "notes.jsonl").write_text(json.dumps({"kind": "site", "line": 1}) + '\n{"kind": "si')
    trace = Trace.load(tmp_path)
    assert (len(trace.rows), len(trace.accesses), len(trace.noted("site"))) == (1, 1, 1)


@pytest.mark.parametrize(("accesses", "left"), [(0, (1, 0)), (1, (1, 0)), (2, (3, 2)), (4, (4, 4)), (6, (4, 4))])
def test_rows_and_accesses_that_a_crash_parted_are_dropped(tmp_path, accesses, left):
    (tmp_path / "rows.bin").write_bytes(b"".join(a_row(count) for count in (0, 2, 0, 2)))
    (tmp_path / "accesses.bin").write_bytes(an_access(1) * accesses)
    trace = Trace.load(tmp_path)
    assert (len(trace.rows), len(trace.accesses)) == left


def test_root_climbs_to_what_the_user_wrote():
    sink = MemorySink()
    sink.append(a_row(0), b"")
    sink.append(a_row(0, parent=0), b"")
    sink.append(a_row(0, parent=1), b"")
    assert sink.trace().root(2) == 0


@pytest.mark.parametrize(("dialect", "title"), [("", "TADD"), ("pto", "TADD"), ("ptoas", "pto.tadd")])
def test_an_instruction_is_called_as_the_kernel_s_language_does(dialect: str, title: str) -> None:
    sink = MemorySink()
    if dialect:
        sink.note("dialect", {"name": dialect})
    sink.note("mnemonic", {"id": 1, "name": "tadd", "title": "TADD", "asm": "pto.tadd"})
    sink.note("mnemonic", {"id": 2, "name": "inner", "title": "Inner", "asm": ""})
    assert sink.trace().titles == {1: title, 2: "Inner"}


@pytest.fixture
def small_windows(monkeypatch):
    """A trace that goes to files after two rows, of which nothing stays in memory between passes of three rows."""
    for name, size in (("_WINDOW", 64), ("_STRETCH", 3), ("_KEPT", 0)):
        monkeypatch.setattr(f"ascsim.machine.trace.{name}", size)


def test_a_long_trace_in_files_is_that_in_memory(small_windows, tmp_path):
    sink, rows, accesses = MemorySink(), b"", b""
    for number in range(11):
        row, touched = a_row(number % 3), b"".join(an_access(number + turn) for turn in range(number % 3))
        assert sink.append(row, touched) == number
        rows, accesses = rows + row, accesses + touched
        if number in (4, 9):  # it can be looked at, and go on
            assert sink.trace().rows.tobytes() == rows
    trace = sink.trace()
    trace.save(tmp_path)
    for same in (trace, Trace.load(tmp_path)):
        assert (same.rows.tobytes(), same.accesses.tobytes()) == (rows, accesses)
        assert same.first_access.tolist() == np.cumsum([0, *(number % 3 for number in range(11))]).tolist()
        same.release()
        assert same.rows.tobytes() == rows
    assert sink.n_rows == 11


def test_a_long_pass_is_told_in_parts_of_all_rows(small_windows):
    told = []

    class Watcher:
        def begin(self, text, total, detail):
            told.append((text, total))

        def advance(self):
            told.append("part")

        def end(self):
            told.append("end")

    sink = MemorySink()
    for _ in range(7):
        sink.append(a_row(0), b"")
    with watched(Watcher()):
        assert list(sink.trace().stretches("passing", 7)) == [(0, 3), (3, 6), (6, 7)]
        assert told == [("passing", 3), "part", "part", "part", "end"]
        assert list(sink.trace().stretches("passing", 2)) == [(0, 2)]  # what is short says nothing
    assert len(told) == 5


def test_no_room_for_a_long_trace_is_said_in_a_sentence(small_windows, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    sink = MemorySink()
    sink.append(a_row(0), b"")
    with pytest.raises(UserError, match=r"No space left on device.*TMPDIR"):
        sink.append(a_row(0), b"")


def test_a_mapped_table_is_known_by_its_file(small_windows):
    sink = MemorySink()
    for _ in range(7):
        sink.append(a_row(0), b"")
    trace = sink.trace()
    assert _map_of(trace.rows[2:5]) is _map_of(trace.rows) is not None
    assert _map_of(trace.kind) is None


@settings(max_examples=100, deadline=None)
@given(some=st.lists(accesses(), min_size=1, max_size=4))
def test_all_bursts(some: list[Access]) -> None:
    unmasked = [Access(tuple((k, v) for k, v in a.fields if k != "mask"), True) for a in some]
    builder = Builder()
    builder.op(V, "op", [dict(a.fields) for a in unmasked])
    trace = builder.trace()
    owner, starts = all_bursts(trace.accesses, trace.shapes[trace.accesses["shape"]])
    for number, access in enumerate(unmasked):
        length = int(trace.accesses["length"][number])
        mine = [(int(s), int(s) + length) for s in starts[owner == number]]
        assert {byte for low, high in mine for byte in range(low, high)} == {byte for _, byte in access.bytes}
