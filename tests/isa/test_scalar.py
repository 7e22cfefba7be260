"""Instructions of the scalar unit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.diagnostics import Refused
from harness import Bench

WORDS = st.integers(0, (1 << 64) - 1)


@given(word=WORDS)
@settings(max_examples=40, deadline=None)
def test_bits_of_a_word(word: int) -> None:
    bench = Bench("a2a3")
    digits = f"{word:064b}"
    assert bench.issue("asc_clz", word) == 64 - len(digits.lstrip("0"))
    assert bench.issue("asc_popc", word) == digits.count("1")
    assert bench.issue("asc_zero_bits_cnt", word) == digits.count("0")
    assert bench.issue("asc_ffs", word) == (63 - digits.rindex("1") if "1" in digits else -1)
    assert bench.issue("asc_ffz", word) == (63 - digits.rindex("0") if "0" in digits else -1)
    same = digits[1:].lstrip(digits[0])
    assert bench.issue("asc_sflbits", word - (1 << 64) if word >> 63 else word) == 63 - len(same)


def test_the_examples_of_the_pages() -> None:
    bench = Bench("a2a3")
    assert bench.issue("asc_clz", 0x0FFFFFFFFFFFFFFF) == 4
    assert bench.issue("asc_ffz", 33) == 1
    assert bench.issue("asc_popc", 33) == 2
    assert bench.issue("asc_sflbits", 0x000F00FF0FF0FFFF) == 11


@given(word=WORDS, place=st.integers(0, 63))
@settings(max_examples=40, deadline=None)
def test_one_bit(word: int, place: int) -> None:
    bench = Bench("a5")
    assert bench.issue("asc_set_nthbit", word, place) == word | 1 << place
    assert bench.issue("asc_clear_nthbit", word, place) == word & ~(1 << place)


def test_a_bit_beyond_the_word_is_refused() -> None:
    with pytest.raises(Refused, match="idx is 64"):
        Bench("a2a3").issue("asc_set_nthbit", 0, 64)


@pytest.mark.parametrize(("name", "want"), [("r", 2), ("a", 3), ("f", 2), ("c", 3)])
def test_floats_to_integers(name: str, want: int) -> None:
    bench = Bench("a5")
    assert bench.issue(f"conv_f322s32{name}", 2.5) == want
    assert bench.issue(f"conv_f322s32{name}", 1e10) == np.iinfo(np.int32).max
