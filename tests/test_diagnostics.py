"""Diagnostics as data."""

import pytest

from ascsim.diagnostics import Catalogue, Diagnostic, Place, Severity, Site, UserError, fold_equal

ONE = Diagnostic("X001", Severity.ERROR, "one", (Place("here", Site("a.cpp", 3, 4)),), ("note",), "mend")
TWO = Diagnostic("X002", Severity.NOTE, "two")


def test_data_and_back():
    assert Diagnostic.from_dict(ONE.as_dict()) == ONE
    assert Diagnostic.from_dict(TWO.as_dict()) == TWO


def test_equal_findings_are_counted_in_the_order_of_their_first():
    assert fold_equal([ONE, TWO, ONE, ONE.counted(1)]) == [ONE.counted(3), TWO]


@pytest.mark.parametrize(("site", "text"), [(Site("a"), "a"), (Site("a", 3), "a:3"), (Site("a", 3, 4), "a:3:4")])
def test_sites_read_like_a_compilers(site, text):
    assert str(site) == text


def test_user_error_names_its_place():
    assert str(UserError("wrong", Site("k.pto", 2, 1))) == "k.pto:2:1: wrong"


def test_a_code_is_registered_once():
    catalogue = Catalogue()
    catalogue.add("X001", Severity.ERROR, "title", "text")
    with pytest.raises(ValueError, match="registered twice"):
        catalogue.add("X001", Severity.ERROR, "other", "text")
