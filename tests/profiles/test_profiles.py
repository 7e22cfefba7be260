"""Profiles and the names people type for them."""

import pytest

from ascsim import profiles
from ascsim.diagnostics import UserError


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("a2", "a2a3"), ("a3", "a2a3"), ("dav-2201", "a2a3"), ("Ascend910B", "a2a3"), ("dav-c220-vec", "a2a3"),
        ("dav-3510", "a5"), ("Ascend950", "a5"), ("ascend950pr", "a5"), ("A5", "a5"), ("cpu", "cpu"),
    ],
)  # fmt: skip
def test_aliases(name, profile):
    assert profiles.find(name).name == profile


def test_unknown_name_lists_what_is_known_and_the_nearest():
    with pytest.raises(UserError, match=r"unknown NPU architecture 'dav-3511'.*Did you mean dav-3510\?.*a2a3"):
        profiles.find("dav-3511")


@pytest.mark.parametrize(
    ("profile", "space", "capacity"),
    [
        ("a2a3", "UB", 192 * 1024), ("a5", "UB", 256 * 1024), ("a2a3", "L1", 512 * 1024), ("a5", "L0C", 256 * 1024),
        ("a2a3", "L0C", 128 * 1024), ("a2a3", "BT", 1024), ("a5", "FB", 4096),
    ],
)  # fmt: skip
def test_capacities(profile, space, capacity):
    assert profiles.load(profile).spaces[space].capacity == capacity


def test_vector_order_is_the_a5s_own():
    assert "V" in profiles.load("a5").ordered_pipes
    assert "V" not in profiles.load("a2a3").ordered_pipes


def test_no_alias_means_two_profiles():
    names = [alias for p in profiles.profiles() for alias in (p.name, *p.aliases)]
    assert len(names) == len(set(names))


def test_larger_ub_for_wide_tests():
    assert profiles.load("a2a3").with_ub(1 << 20).spaces["UB"].capacity == 1 << 20
