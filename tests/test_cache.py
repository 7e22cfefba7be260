"""The cache directory: which one it is, how files get there, what is forgotten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascsim.cache import cache_directory, generation, prune, write_atomically


def test_the_cache_directory_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ASCSIM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "ascsim"
    monkeypatch.setenv("ASCSIM_CACHE", str(tmp_path / "mine"))
    assert cache_directory() == tmp_path / "mine"
    assert (tmp_path / "mine").is_dir()


def test_a_place_that_cannot_be_written_to_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASCSIM_CACHE", str(tmp_path / "file" / "below"))
    spare = cache_directory()
    assert spare.name == f"ascsim-{os.getuid()}"
    assert os.access(spare, os.W_OK)


def test_of_older_generations_the_newest_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASCSIM_CACHE", str(tmp_path))
    for age in range(1, 5):
        place = generation("kind", f"{age}")
        (place / "file").write_text("")
        os.utime(place, (1000 + age, 1000 + age))
        generation("other", "1")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["kind-3", "kind-4", "other-1"]
    assert (generation("kind", "3") / "file").exists(), "an old one that is still there is no new one"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["kind-3", "kind-4", "other-1"]


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
