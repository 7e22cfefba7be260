"""Frames and trailers: what goes in comes out, and damage is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import UserError
from ascsim.frontends.cpp import image as image_module
from ascsim.frontends.cpp.generate import headers_hash
from ascsim.frontends.cpp.image import (
    Frame,
    StaleError,
    append_images,
    load_image,
    unpack_frames,
)

FRAMES = st.lists(
    st.builds(
        Frame, st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3), st.binary()
    ),
    max_size=4,
)
DESCRIPTION = {
    "version": "1",
    "headers": "0123",
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


def test_code_of_another_ascsim_is_refused(tmp_path: Path) -> None:
    for name, headers, devices in (
        ("old", "0123", {"aiv": b""}),
        ("host only", "0123", {}),
        ("new", None, {"aiv": b""}),
    ):
        (tmp_path / name).write_bytes(b"")
        append_images(tmp_path / name, devices, DESCRIPTION | {"headers": headers or headers_hash()})
    with pytest.raises(StaleError, match=r"old was built by another ascsim.*Build it again"):
        load_image(tmp_path / "old").check_is_current()
    load_image(tmp_path / "host only").check_is_current()
    load_image(tmp_path / "new").check_is_current()


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old").write_bytes(b"")
    with monkeypatch.context() as other:
        other.setattr(image_module, "FORMAT", image_module.FORMAT - 1)
        append_images(tmp_path / "old", {}, DESCRIPTION)
    with pytest.raises(StaleError, match="built by another ascsim"):
        load_image(tmp_path / "old")


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
