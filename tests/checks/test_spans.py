"""The bytes of accesses."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.checks.spans import clusters, common, extent, merged, touched
from checks.builder import Builder, V
from checks.programs import accesses
from checks.reference import Access

intervals = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 10)).map(lambda p: (p[0], p[0] + p[1])), max_size=6)


def bytes_of(spans: list[tuple[int, int]]) -> set[int]:
    """The bytes of intervals."""
    return {byte for low, high in spans for byte in range(low, high)}


@settings(max_examples=200, deadline=None)
@given(access=accesses())
def test_touched_and_extent(access: Access) -> None:
    builder = Builder()
    builder.op(V, "op", [dict(access.fields)])
    trace = builder.trace()
    wanted = {byte for _, byte in access.bytes}
    found = touched(trace, 0)
    assert bytes_of(found) == wanted
    assert all(a[1] < b[0] for a, b in pairwise(found))
    low, high = extent(trace.accesses, trace.shapes)
    assert all(low[0] <= byte < high[0] for byte in wanted)
    if not dict(access.fields).get("mask"):
        assert (int(low[0]), int(high[0])) == (min(wanted), max(wanted) + 1)


@settings(max_examples=200, deadline=None)
@given(a=intervals, b=intervals)
def test_merged_and_common(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    assert bytes_of(merged(a)) == bytes_of(a)
    assert bytes_of(common(merged(a), merged(b))) == bytes_of(a) & bytes_of(b)


@settings(max_examples=200, deadline=None)
@given(spans=st.lists(st.tuples(st.integers(0, 2), st.integers(-30, 60), st.integers(1, 12)), min_size=1, max_size=12))
def test_clusters(spans: list[tuple[int, int, int]]) -> None:
    key = np.array([s[0] for s in spans])
    low = np.array([s[1] for s in spans], np.int64)
    high = low + [s[2] for s in spans]
    found = clusters(key, low, high)
    group = list(range(len(spans)))  # naive: join until nothing changes
    for _ in spans:
        for i in range(len(spans)):
            for j in range(len(spans)):
                if key[i] == key[j] and low[i] < high[j] and low[j] < high[i]:
                    group[i] = group[j] = min(group[i], group[j])
    assert [[found[i] == found[j] for j in range(len(spans))] for i in range(len(spans))] == [
        [group[i] == group[j] for j in range(len(spans))] for i in range(len(spans))
    ]
