"""The trace's records and files."""

import json

import numpy as np

from ascsim.machine.trace import ACCESS, ROW, FileSink, Kind, MemorySink, Mode, Trace, pack_access, pack_row


def a_row(n_access=1, parent=-1):
    return pack_row(3, 1, Kind.INSTRUCTION, 17, n_access, 0, parent, 5, 9, 2, 0, 0, 0)


def an_access(start):
    return pack_access(1, Mode.WRITE, 2, 5, 0, start, 64, 2, 128, 3, 4, 256, 512, 1, 0)


def test_packed_records_read_back_field_by_field():
    row = np.frombuffer(a_row(), ROW)[0]
    assert (row["core"], row["pipe"], row["mnemonic"], row["parent"], row["arg"], row["site"]) == (3, 1, 17, -1, 5, 9)
    access = np.frombuffer(an_access(-4), ACCESS)[0]
    assert (access["start"], access["length"], access["n1"], access["s1"]) == (-4, 64, 2, 128)
    assert (access["n2"], access["s2"], access["n3"], access["s3"], access["object"]) == (3, 256, 4, 512, 1)


def test_accesses_belong_to_their_rows_in_order():
    sink = MemorySink()
    sink.append(a_row(2), an_access(1) + an_access(2))
    sink.append(a_row(0), b"")
    sink.append(a_row(1), an_access(3))
    trace = sink.trace()
    assert trace.first_access.tolist() == [0, 2, 2, 3]
    assert trace.row_of_access.tolist() == [0, 0, 2]


def test_a_saved_trace_loads_the_same(tmp_path):
    sink = FileSink(tmp_path)
    sink.note("launch", {"number": 0, "kernel": "k"})
    sink.append(a_row(), an_access(7))
    assert sink.mask(bytes(32)) == 1
    sink.close()
    trace = Trace.load(tmp_path)
    assert trace.accesses["start"].tolist() == [7]
    assert trace.noted("launch") == [{"number": 0, "kernel": "k"}]
    assert trace.masks.shape == (1, 32)
    trace.save(tmp_path / "again")
    assert Trace.load(tmp_path / "again").rows.tobytes() == trace.rows.tobytes()


def test_records_cut_short_by_a_crash_are_dropped(tmp_path):
    (tmp_path / "rows.bin").write_bytes(a_row() + a_row()[:10])
    (tmp_path / "accesses.bin").write_bytes(an_access(1)[:30])
    (tmp_path / "notes.jsonl").write_text(json.dumps({"kind": "site", "line": 1}) + '\n{"kind": "si')
    trace = Trace.load(tmp_path)
    assert (len(trace.rows), len(trace.accesses), len(trace.noted("site"))) == (1, 0, 1)


def test_root_climbs_to_what_the_user_wrote():
    sink = MemorySink()
    sink.append(a_row(0), b"")
    sink.append(a_row(0, parent=0), b"")
    sink.append(a_row(0, parent=1), b"")
    assert sink.trace().root(2) == 0
