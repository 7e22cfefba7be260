"""The enumerations: names and numbers of the public headers, and the rule that holds calls to them."""

from __future__ import annotations

import pytest

from ascsim.diagnostics import Refused
from ascsim.isa.register_form.words import MemoryBarrier, Pattern
from harness import Bench

BARRIERS = (
    "VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST", "SV_ALL", "ST_VLD", "LD_VST",
    "ST_VST", "SS_ALL", "ST_LD", "LD_ST", "ST_ST",
)  # fmt: skip
PATTERNS = ("ALL", "VL1", "VL2", "VL3", "VL4", "VL8", "VL16", "VL32", "VL64", "VL128", "M3", "M4", "H", "Q")


def test_barriers_are_numbered_as_the_header_lists_them() -> None:
    assert [(m.name, m.value) for m in MemoryBarrier] == list(zip(BARRIERS, range(16), strict=True))


def test_patterns_are_numbered_as_the_header_lists_them() -> None:
    expected = [(f"PAT_{name}", code) for code, name in enumerate(PATTERNS)]
    assert [(m.name, m.value) for m in Pattern] == [*expected, ("PAT_ALLF", 15)]


@pytest.mark.parametrize("code", (-1, 14, 16, 1000))
def test_a_pattern_that_is_none_is_refused(code: int) -> None:
    with pytest.raises(Refused) as refusal:
        Bench("a5").issue("asc_create_mask_b8", code)
    assert refusal.value.diagnostic.code == "L006"
    assert f"pattern {code}" in refusal.value.diagnostic.headline
    assert "PAT_VL128" in refusal.value.diagnostic.mend
