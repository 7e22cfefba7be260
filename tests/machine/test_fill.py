"""What memory holds that nothing has written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import ascsim
from ascsim.machine import fill


@pytest.fixture
def choice() -> Iterator[None]:
    yield
    fill.choose("poison")


def test_nan_is_a_nan_in_every_float_type_and_minus_one_in_integers() -> None:
    data = np.zeros(16, np.uint8)
    fill.fill(data, "nan")
    for kind in (np.float16, np.float32, np.float64):
        assert np.isnan(data.view(kind)).all()
    assert (data.view(np.int32) == -1).all()


def test_random_is_the_same_each_time_and_not_one_value() -> None:
    first, second = np.zeros(200_000, np.uint8), np.zeros(200_000, np.uint8)
    fill.fill(first, "random")
    fill.fill(second, "random")
    assert np.array_equal(first, second)
    assert len(np.unique(first)) == 256


def test_other_names_are_refused() -> None:
    with pytest.raises(ValueError, match="poison, nan, zero, random, not ones"):
        fill.choose("ones")


@pytest.mark.usefixtures("choice")
@pytest.mark.parametrize("name", fill.FILLS)
def test_a_kernel_finds_what_was_chosen(name: str) -> None:
    @ascsim.kernel(arch="a5", raise_on_error=False)
    def store(out):
        ascsim.tstore(out, ascsim.tile("f32", 4, 64))

    fill.choose(name)
    out = np.ones((4, 64), np.float32)
    run = store[1](out)
    wanted = np.zeros(1024, np.uint8)
    fill.fill(wanted, name)
    assert out.tobytes() == wanted.tobytes()
    assert [d.code for d in run.diagnostics] == ["I001"], "whatever it holds"
