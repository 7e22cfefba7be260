"""The types of the dialect: one meaning from every spelling."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascsim.frontends.ptoas import types
from ascsim.frontends.ptoas.types import DYNAMIC, Tile, TypeTextError, read_type
from ascsim.machine.dtypes import DTYPES, f16, f32, u32

TILE_16x32 = Tile(f32, 16, 32, 16, 32)


@pytest.mark.parametrize(
    ("mnemonic", "body"),
    [
        ("tile", "16x32xf32"),
        ("tile", "f32, 16, 32"),
        ("tile", "loc=vec, f32, 16, 32, RowMajor, NoneBox, None, Null"),
        ("tile", "vec, f32, 16, 32, row_major, none_box, 512, 0"),
        ("tile_buf", "vec, 16x32xf32"),
        ("tile_buf", "vec, 16x32xf32, valid=16x32, fractal=512, pad=0, compact=0"),
        ("tile_buf", "16x32xf32, #pto.address_space<vec>"),
        ("tile_buf", "16x32xf32, strided<[32, 1], offset: [?, ?]>, #pto.address_space<vec>"),
        (
            "tile_buf",
            "loc=vec, dtype=f32, rows=16, cols=32, v_row=16, v_col=32,\n  blayout=row_major, slayout=none_box, "
            "fractal=512, pad=0",
        ),
        ("tile_buf", "dtype=f32, loc=vec, cols=32, rows=16"),
    ],
)
def test_every_spelling_of_a_tile_is_one_type(mnemonic: str, body: str) -> None:
    assert read_type(mnemonic, body).data == TILE_16x32


def test_a_tile_type_keeps_what_it_says() -> None:
    tile = read_type(
        "tile_buf",
        "loc=mat, dtype=ui32, rows=8, cols=4, v_row=?, v_col=3, blayout=col_major, slayout=row_major, fractal=1024, "
        "pad=3, compact=2",
    ).data
    assert tile == Tile(u32, 8, 4, DYNAMIC, 3, "mat", "col_major", "row_major", 1024, 3, 2)


def test_the_compact_spelling_has_valid_and_words_of_any_case() -> None:
    tile = read_type("tile_buf", "left, 16x32xf16, valid=?x8, slayout=RowMajor, pad=Max").data
    assert tile == Tile(f16, 16, 32, DYNAMIC, 8, "left", "row_major", "row_major", 512, 2)


tiles = st.builds(
    Tile,
    dtype=st.sampled_from(list(DTYPES.values())),
    rows=st.just(16),
    cols=st.just(64),
    valid_rows=st.sampled_from([DYNAMIC, 1, 16]),
    valid_cols=st.integers(1, 64),
    location=st.sampled_from(list(types.LOCATIONS)),
    blayout=st.sampled_from(types.BLAYOUTS),
    slayout=st.sampled_from(types.SLAYOUTS),
    fractal=st.sampled_from([32, 512, 1024]),
    pad=st.integers(0, 3),
    compact=st.integers(0, 2),
)


@given(tiles)
@settings(deadline=None)
def test_a_printed_tile_type_reads_back(tile: Tile) -> None:
    text = str(tile)
    assert text.startswith("!pto.tile_buf<loc=")
    assert read_type("tile_buf", text[len("!pto.tile_buf<") : -1]).data == tile


@pytest.mark.parametrize(
    ("mnemonic", "body", "text"),
    [
        ("ptr", "f32", "!pto.ptr<f32>"),
        ("ptr", "f32, gm", "!pto.ptr<f32>"),
        ("ptr", "ui8, ub", "!pto.ptr<ui8, ub>"),
        ("ptr", "f32, #pto.address_space<vec>", "!pto.ptr<f32, ub>"),
        ("ptr", "f16, l0c", "!pto.ptr<f16, l0c>"),
        ("tensor_view", "?x16xbf16", "!pto.tensor_view<?x16xbf16>"),
        ("partition_tensor_view", "1x1x4xi8", "!pto.partition_tensor_view<1x1x4xi8>"),
        ("tile_view", "32x32xf32", "!pto.partition_tensor_view<32x32xf32>"),
        ("vreg", "64xf32", "!pto.vreg<64xf32>"),
        ("mask", "", "!pto.mask"),
        ("mask", "b16", "!pto.mask<b16>"),
        ("align", "", "!pto.align"),
        ("eventid_array", "4", "!pto.eventid_array<4>"),
    ],
)
def test_other_types_print_in_one_spelling(mnemonic: str, body: str, text: str) -> None:
    kind = read_type(mnemonic, body)
    assert str(kind.data) == text  # type: ignore[attr-defined]
    inside = text.partition("<")[2].removesuffix(">")
    assert read_type(text.removeprefix("!pto.").partition("<")[0], inside) == kind


@pytest.mark.parametrize(
    ("mnemonic", "body", "fragment", "words"),
    [
        ("tile_buf", "vec, 16x32xf31", "f31", "element types are f32"),
        ("tile_buf", "vex, 16x32xf32", "vex", "allowed are vec, mat"),
        ("tile_buf", "loc=vex, dtype=f32, rows=1, cols=2", "vex", "allowed are vec, mat"),
        ("tile_buf", "loc=vec, dtype=f32, rows=1, cols=2, depth=3", "depth", "its words are loc"),
        ("tile_buf", "loc=vec, dtype=f32, rows=1", "", "cols"),
        ("tile_buf", "vec, 16x32xf32, valid=4", "4", "valid takes rows x columns"),
        ("tile_buf", "vec, 16x32xf32, valid=4x33", "", "does not fit"),
        ("tile_buf", "vec, 16x32xf32, pad=4", "4", "null, zero, max, min"),
        ("tile_buf", "vec, 16x32xf32, fractal=big", "big", "number"),
        ("tile_buf", "vec, 0x32xf32", "", "at least one row"),
        ("tile_buf", "loc=vec, loc=vec, 1x1xf32", "loc=vec", "twice"),
        ("tile_buf", "vec, f32, 1, 2, row_major, none_box, 512, 0, 7", "7", "more words"),
        ("tile_buf", "vec, 16x32xf32, blayout=diagonal", "diagonal", "row_major, col_major"),
        ("ptr", "f32, moon", "moon", "gm, ub"),
        ("ptr", "f32, ub, 3", "f32, ub, 3", "element type and perhaps a space"),
        ("vreg", "f32", "f32", "lanes x element type"),
        ("mask", "b64", "b64", "b8, b16, b32"),
        ("tensor_view", "4x", "4x", "element type"),
    ],
)
def test_a_wrong_type_names_the_piece_and_what_is_allowed(mnemonic: str, body: str, fragment: str, words: str) -> None:
    with pytest.raises(TypeTextError) as caught:
        read_type(mnemonic, body)
    assert words in caught.value.message
    assert fragment in body and fragment in (caught.value.fragment or body)


def test_an_elided_type_is_unstated() -> None:
    assert read_type("tile", "...") is types.UNSTATED
