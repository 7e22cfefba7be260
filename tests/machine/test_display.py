"""Operands in a notebook."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np

from ascsim.machine.dtypes import f16, f32
from ascsim.machine.operands import MReg, Tile, VReg


def cells(text: str, tag: str = "td") -> list[str]:
    """The texts of a table's cells; the text must be well-formed."""
    return [cell.text or "" for cell in ElementTree.fromstring(text).iter(tag)]


def test_a_tile_tells_its_place_and_shape() -> None:
    text = Tile(f32, 4, 64, 3, 60, 0x1000, name="a<b")._repr_html_()
    assert cells(text)[:5] == ["f32", "4 x 64", "3 x 60", "UB 0x1000 to 0x13ff", "1,024"]
    assert "a&lt;b" in text
    valid, whole = ElementTree.fromstring(text).iter("rect")
    assert float(valid.attrib["width"]) / float(whole.attrib["width"]) == 60 / 64
    assert "no address yet" in Tile(f32, 4, 64, 4, 64)._repr_html_()


def test_a_register_shows_its_lanes() -> None:
    register = VReg(f16)
    register.lanes[:] = np.arange(128)
    text = register._repr_html_()
    assert cells(text) == [str(n) for n in range(128)]
    assert cells(text, "th") == [str(n) for n in range(0, 128, 16)]
    assert "128 lanes of f16" in text


def test_a_mask_counts_its_lanes() -> None:
    mask = MReg()
    mask.data[:8] = 1
    text = mask._repr_html_()
    assert "8 of 256 b8, 4 of 128 b16, 2 of 64 b32" in text
    assert cells(text)[:9] == ["1"] * 8 + ["0"]
