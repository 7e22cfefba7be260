"""The cache directory: which one it is, how files get there, what is forgotten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascsim import cache
from ascsim.cache import cache_directory, content_hash, files_below, generation, prune, write_atomically


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


def test_files_below_are_the_sources_in_order(tmp_path: Path) -> None:
    for name in ("b.py", "a/z.toml", "a/__pycache__/b.pyc", "a/b.hpp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [str(path.relative_to(tmp_path)) for path in files_below(tmp_path / "a", tmp_path)]
    assert found == ["a/b.hpp", "a/z.toml", "b.py", "a/b.hpp", "a/z.toml"]


def test_the_hash_of_contents_follows_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASCSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_SETTLED", 0)
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("1")
    two.write_text("2")
    first = content_hash([one, two])
    assert len(first) == 16 and content_hash([two, one]) != first
    notes = list((tmp_path / "cache" / "contents").iterdir())
    assert len(notes) == 2, "read once"
    two.write_text("3")
    os.utime(two, ns=(0, 0))
    changed = content_hash([one, two])
    assert changed != first
    two.write_text("2")
    assert content_hash([one, two]) == first
    notes[0].write_text("")
    assert {content_hash([one, two]), content_hash([two, one])} >= {first}


def test_what_has_just_changed_is_not_noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASCSIM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "one.py").write_text("1")
    content_hash([tmp_path / "one.py"])
    assert not (tmp_path / "cache" / "contents").exists(), "a second change might not show in its time"
