"""The cache of objects: what counts as unchanged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascsim.frontends.cpp.objects import ObjectCache, digest_of


@pytest.fixture
def header(tmp_path: Path) -> Path:
    path = tmp_path / "h.h"
    path.write_text("one")
    return path


def test_an_object_is_found_again(tmp_path: Path, header: Path) -> None:
    cache = ObjectCache(tmp_path)
    assert cache.find("key") is None
    whole = cache.keep("key", b"object", "warned", [header])
    found = cache.find("key")
    assert found is not None
    assert (found.object, found.printed, found.key, found.files) == (b"object", "warned", whole, (header,))
    assert cache.find("other") is None


def test_a_file_with_another_content_makes_it_stale(tmp_path: Path, header: Path) -> None:
    cache = ObjectCache(tmp_path)
    first = cache.keep("key", b"object", "", [header])
    os.utime(header, (1, 1))
    assert cache.find("key") is not None, "another time alone is no change"
    header.write_text("two")
    assert cache.find("key") is None
    assert cache.keep("key", b"object", "", [header]) != first
    header.unlink()
    assert cache.find("key") is None


def test_damage_is_a_miss(tmp_path: Path, header: Path) -> None:
    cache = ObjectCache(tmp_path)
    cache.keep("key", b"object", "", [header])
    (tmp_path / "objects" / "key.json").write_text("{")
    assert cache.find("key") is None


def test_without_a_place_nothing_is_kept(header: Path) -> None:
    cache = ObjectCache(None)
    assert len(cache.keep("key", b"object", "", [header])) == 32
    assert cache.find("key") is None


def test_digests_know_where_parts_end() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert digest_of("ab") == digest_of(b"ab")
