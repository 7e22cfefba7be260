"""Frames and trailers: what goes in comes out, and damage is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.image import (
    Frame,
    append_images,
    cache_directory,
    load_image,
    prune,
    unpack_frames,
    write_atomically,
)

FRAMES = st.lists(
    st.builds(
        Frame, st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3), st.binary()
    ),
    max_size=4,
)
DESCRIPTION = {
    "version": "1",
    "profile": "a5",
    "python": "python3",
    "sources": ["k.asc"],
    "kernels": [{"name": "k"}],
    "libraries": ["libk.so"],
    "has_main": True,
    "key": "1234",
}


@settings(deadline=None)
@given(FRAMES)
def test_frames_come_back_in_order(frames: list[Frame]) -> None:
    assert list(unpack_frames(b"".join(frame.pack() for frame in frames))) == frames


def test_a_damaged_section_is_told() -> None:
    data = Frame({"side": "aiv"}, b"object").pack()
    for damaged in (data + b"\0" * 8, b"?" + data[1:], data + data[:10]):
        with pytest.raises(UserError, match="is damaged"):
            list(unpack_frames(damaged))


def test_images_behind_a_file(tmp_path: Path) -> None:
    program = tmp_path / "main"
    program.write_bytes(b"ELF and so on")
    append_images(program, {"aiv": b"vector", "aic": b"cube" * 100}, DESCRIPTION)
    image = load_image(program)
    assert (image.profile, image.sources, image.kernels) == ("a5", ("k.asc",), ({"name": "k"},))
    assert (image.has_main, image.key, image.version) == (True, "1234", "1")
    assert image.read("aiv") == b"vector"
    assert image.extract("aic", tmp_path / "images").read_bytes() == b"cube" * 100
    assert image.device("aic") is not None and image.device("host") is None
    assert all(device.offset % 16 == 0 for device in image.devices)
    assert program.read_bytes().startswith(b"ELF and so on")


def test_equal_images_share_a_file(tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"")
        append_images(tmp_path / name, {"aiv": b"same"}, DESCRIPTION)
        paths.append(load_image(tmp_path / name).extract("aiv", tmp_path / "images"))
    assert paths[0] == paths[1]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 100, b"\xff" * 8 + b"ASCSIMEX"])
def test_other_files_are_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(UserError, match="was not linked by ascsim"):
        load_image(tmp_path / "other")


def test_the_cache_directory_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ASCSIM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "ascsim"
    monkeypatch.setenv("ASCSIM_CACHE", str(tmp_path / "mine"))
    assert cache_directory() == tmp_path / "mine"


def test_files_are_written_whole(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "file"
    write_atomically(place, b"one")
    write_atomically(place, b"two")
    assert place.read_bytes() == b"two"
    assert [entry.name for entry in place.parent.iterdir()] == ["file"]


def test_a_full_cache_forgets_what_was_used_longest_ago(tmp_path: Path) -> None:
    for age in range(9):
        place = tmp_path / f"{age}"
        if age % 2:
            place.mkdir()
            (place / "file").write_text("")
        else:
            place.write_text("")
        os.utime(place, (1000 - age, 1000 - age))
    prune(tmp_path, keep=5)
    assert len(list(tmp_path.iterdir())) == 9, "not full yet"
    prune(tmp_path, keep=4)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["0", "1", "2", "3"]
    prune(tmp_path / "absent")
