"""Columns of numbers in the page."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascsim.report.page.columns import packed, unpacked


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_back_and_forth(values: list[int]) -> None:
    data = packed(np.array(values, np.int64), "i4")
    assert data["length"] == len(values) and unpacked(data).tolist() == values


@pytest.mark.parametrize(("kind", "most"), [("u1", 255), ("u2", 65535), ("i4", 2**31 - 1)])
def test_what_does_not_fit_is_cut(kind: str, most: int) -> None:
    assert unpacked(packed(np.array([1 << 40]), kind)).tolist() == [most]
