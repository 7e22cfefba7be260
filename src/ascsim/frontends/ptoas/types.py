"""The types of the ``pto`` dialect, and how their many spellings are read.

One meaning has one class: ``!pto.tile<16x32xf32>``, ``!pto.tile_buf<vec, 16x32xf32>`` and the long
``!pto.tile_buf<loc=vec, dtype=f32, ...>`` all become one :class:`TileType`. The text between the angle
brackets is read from the raw source and remembered by spelling, because a file repeats the same few long
types on every line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.ir import Attribute, BuiltinAttribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ascsim.machine.dtypes import DTYPES, DType, dtype
from ascsim.machine.words import Space

DYNAMIC = -1
"""The extent that text writes as ``?``."""

LOCATIONS = {
    "vec": Space.UB, "mat": Space.L1, "left": Space.L0A, "right": Space.L0B, "acc": Space.L0C, "bias": Space.BT,
    "scaling": Space.FB,
}  # fmt: skip
"""The memory behind each place of a tile."""
BLAYOUTS = ("row_major", "col_major")
SLAYOUTS = ("none_box", "row_major", "col_major")
PADS = ("null", "zero", "max", "min")
SPACES = ("gm", "ub", "l1", "l0a", "l0b", "l0c", "bt", "fb")

_SPACE_ALIASES = {
    "vec": "ub", "ubuf": "ub", "mat": "l1", "left": "l0a", "right": "l0b", "acc": "l0c", "bias": "bt",
    "scaling": "fb",
}  # fmt: skip


class TypeTextError(Exception):
    """A type that cannot be read; ``fragment`` is the piece of text to blame."""

    def __init__(self, message: str, fragment: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fragment = fragment


@dataclass(frozen=True)
class _TextData(Data):
    """An attribute whose text is exactly ``str(data)`` in our own spelling, prefix included."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> object:
        raise NotImplementedError("the types of the pto dialect are read by read_type()")

    def print_parameter(self, printer: Printer) -> None:
        raise NotImplementedError("the types of the pto dialect are printed by print_builtin()")

    def print_builtin(self, printer: Printer) -> None:
        """Print the type, its ``!`` or ``#`` included."""
        printer.print_string(str(self.data))


@dataclass(frozen=True)
class Tile:
    """What a tile type says; ``valid_rows`` and ``valid_cols`` are :data:`DYNAMIC` where it says ``?``."""

    dtype: DType
    rows: int
    cols: int
    valid_rows: int
    valid_cols: int
    location: str = "vec"
    blayout: str = "row_major"
    slayout: str = "none_box"
    fractal: int = 512
    pad: int = 0
    compact: int = 0

    def __str__(self) -> str:
        compact = f", compact={self.compact}" if self.compact else ""
        return (
            f"!pto.tile_buf<loc={self.location}, dtype={_element(self.dtype)}, rows={self.rows}, "
            f"cols={self.cols}, v_row={_extent(self.valid_rows)}, v_col={_extent(self.valid_cols)}, "
            f"blayout={self.blayout}, slayout={self.slayout}, fractal={self.fractal}, pad={self.pad}{compact}>"
        )


@dataclass(frozen=True)
class Pointer:
    """What a pointer type says; ``space`` is one of :data:`SPACES`. ``!pto.ptr<f32>`` is one to GM."""

    dtype: DType
    space: str = "gm"

    def __str__(self) -> str:
        space = "" if self.space == "gm" else f", {self.space}"
        return f"!pto.ptr<{_element(self.dtype)}{space}>"


@dataclass(frozen=True)
class View:
    """What a view of global memory says: ``mnemonic`` is ``tensor_view`` or ``partition_tensor_view``."""

    mnemonic: str
    shape: tuple[int, ...]
    dtype: DType

    def __str__(self) -> str:
        dims = "".join(f"{_extent(n)}x" for n in self.shape)
        return f"!pto.{self.mnemonic}<{dims}{_element(self.dtype)}>"


@dataclass(frozen=True)
class VectorRegister:
    """A 256-byte vector register seen as ``lanes`` elements."""

    lanes: int
    dtype: DType

    def __str__(self) -> str:
        return f"!pto.vreg<{self.lanes}x{_element(self.dtype)}>"


@dataclass(frozen=True)
class Mask:
    """A mask register; ``bits`` is the lane width it is meant for (8, 16, 32), 0 where nothing says it."""

    bits: int = 0

    def __str__(self) -> str:
        return f"!pto.mask<b{self.bits}>" if self.bits else "!pto.mask"


@dataclass(frozen=True)
class Opaque:
    """A type with no structure that the simulator needs (``!pto.pipe``, ``!pto.align``,
    ``!pto.eventid_array<4>``).
    """

    mnemonic: str
    body: str = ""

    def __str__(self) -> str:
        return f"!pto.{self.mnemonic}<{self.body}>" if self.body else f"!pto.{self.mnemonic}"


@dataclass(frozen=True)
class Word:
    """A word of the dialect's vocabulary: ``#pto.pipe<PIPE_V>`` is ``Word("PIPE_V", "pipe")``, ``<PIPE_V>``
    has no family.
    """

    text: str
    family: str = ""

    def __str__(self) -> str:
        return f"#pto.{self.family}<{self.text}>" if self.family else f"<{self.text}>"


@irdl_attr_definition
class TileType(TypeAttribute, _TextData, BuiltinAttribute, Data[Tile]):
    """A tile. See :class:`Tile`."""

    name = "pto.tile_buf"


@irdl_attr_definition
class PointerType(TypeAttribute, _TextData, BuiltinAttribute, Data[Pointer]):
    """A pointer into GM or UB. See :class:`Pointer`."""

    name = "pto.ptr"


@irdl_attr_definition
class ViewType(TypeAttribute, _TextData, BuiltinAttribute, Data[View]):
    """A view of global memory. See :class:`View`."""

    name = "pto.tensor_view"


@irdl_attr_definition
class VectorRegisterType(TypeAttribute, _TextData, BuiltinAttribute, Data[VectorRegister]):
    """A vector register. See :class:`VectorRegister`."""

    name = "pto.vreg"


@irdl_attr_definition
class MaskType(TypeAttribute, _TextData, BuiltinAttribute, Data[Mask]):
    """A mask register. See :class:`Mask`."""

    name = "pto.mask"


@irdl_attr_definition
class OpaqueType(TypeAttribute, _TextData, BuiltinAttribute, Data[Opaque]):
    """Any other type. See :class:`Opaque`."""

    name = "pto.opaque"


@irdl_attr_definition
class UnstatedType(TypeAttribute, _TextData, BuiltinAttribute, Data[str]):
    """The type of a value whose text has not said it yet; the first use that states a type settles it."""

    name = "pto.unstated"


@irdl_attr_definition
class WordAttr(_TextData, BuiltinAttribute, Data[Word]):
    """A word of the vocabulary as an attribute. See :class:`Word`."""

    name = "pto.word"


UNSTATED = UnstatedType("!pto.unstated")

_SHAPED = re.compile(r"((?:(?:\d+|\?)\s*x\s*)*)(.+)", re.DOTALL)
_KEYS = {
    "loc": "location",
    "dtype": "dtype",
    "rows": "rows",
    "cols": "cols",
    "v_row": "valid_rows",
    "v_col": "valid_cols",
    "valid": "valid",
    "blayout": "blayout",
    "slayout": "slayout",
    "fractal": "fractal",
    "pad": "pad",
    "compact": "compact",
}


@lru_cache(maxsize=4096)
def read_type(mnemonic: str, body: str) -> TypeAttribute:
    """The type ``!pto.<mnemonic><<body>>``, from the raw text between its angle brackets (``""`` without
    them).

    Raises:
        TypeTextError: the text is not a type of the dialect; says what is allowed.
    """
    if body.strip() == "..." or mnemonic == "unstated":
        return UNSTATED
    match mnemonic:
        case "tile" | "tile_buf":
            return TileType(_tile(body))
        case "ptr":
            return PointerType(_pointer(body))
        case "tensor_view" | "global":
            return ViewType(View("tensor_view", *_shaped(body)))
        case "partition_tensor_view" | "partition_view" | "tile_view":
            return ViewType(View("partition_tensor_view", *_shaped(body)))
        case "vreg":
            return VectorRegisterType(_vector_register(body))
        case "mask":
            return MaskType(_mask(body))
        case _:
            return OpaqueType(Opaque(mnemonic, " ".join(body.split())))


def element_type(name: str) -> DType:
    """The element type that assembly text calls ``name``.

    Raises:
        TypeTextError: there is none.
    """
    plain = name.strip().removeprefix("!pto.")
    try:
        return dtype(plain)
    except (ValueError, TypeError):
        allowed = ", ".join(d.asm_names[0] for d in DTYPES.values())
        raise TypeTextError(f"'{plain}' is not an element type; the element types are {allowed}", plain) from None


def _element(kind: DType) -> str:
    return kind.asm_names[0]


def _extent(value: int) -> str:
    return "?" if value == DYNAMIC else str(value)


def _split(body: str) -> list[str]:
    """The parts of ``body`` between its outermost commas."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(body):
        if c in "<([{":
            depth += 1
        elif c in ">)]}":
            depth -= 1
        elif c == "," and not depth:
            parts.append(body[start:i].strip())
            start = i + 1
    parts.append(body[start:].strip())
    return parts


def _dims(text: str) -> tuple[int, ...]:
    return tuple(DYNAMIC if d.strip() == "?" else int(d) for d in text.split("x") if d.strip())


def _shaped(text: str) -> tuple[tuple[int, ...], DType]:
    """The shape and element type in ``4x?xf32``."""
    match = _SHAPED.fullmatch(text.strip())
    if match is None:
        raise TypeTextError("a shape and an element type were expected here, as in 16x32xf32", text)
    return _dims(match[1]), element_type(match[2])


def _choose(word: str, allowed: tuple[str, ...], what: str) -> str:
    """The member of ``allowed`` that ``word`` means; ``RowMajor``, ``ROW_MAJOR`` and ``row_major`` are one
    word.
    """
    plain = word.replace("_", "").lower()
    for choice in allowed:
        if choice.replace("_", "") == plain:
            return choice
    raise TypeTextError(f"'{word}' is not a {what}; allowed are {', '.join(allowed)}", word)


def _integer(word: str, what: str) -> int:
    if word == "?":
        return DYNAMIC
    try:
        return int(word, 0)
    except ValueError:
        raise TypeTextError(f"'{word}' is not a number, but {what} must be one", word) from None


def _pad(word: str) -> int:
    if word.isdigit() and int(word) < len(PADS):
        return int(word)
    return PADS.index(_choose(word, PADS, "pad value (or its number 0, 1, 2, 3)"))


def _tile(body: str) -> Tile:
    """Read the inside of a tile type in any spelling: words by key, by place, or by a shape such as
    ``16x32xf32``.
    """
    found: dict[str, str] = {}
    places: list[str] = []
    for part in _split(body):
        key, equals, value = part.partition("=")
        if equals and "<" not in key:
            field = _KEYS.get(key.strip())
            if field is None:
                raise TypeTextError(
                    f"a tile type has no '{key.strip()}'; its words are {', '.join(_KEYS)}", key.strip()
                )
            if field in found:
                raise TypeTextError(f"'{key.strip()}' is given twice in this tile type", part)
            found[field] = value.strip().strip('"')
        else:
            places.append(part)
    _take_places(places, found)
    return _tile_of(found)


_PLACES = ("dtype", "rows", "cols", "blayout", "slayout", "fractal", "pad")
_SHAPE = re.compile(r"(\d+)\s*x\s*(\d+)\s*x\s*(\S+)")


def _take_places(places: list[str], found: dict[str, str]) -> None:
    """Give the words without a key their fields: by what they look like, then by their order."""
    left = []
    has_shape = any(_SHAPE.fullmatch(part) for part in places)
    for number, part in enumerate(places):
        shape = _SHAPE.fullmatch(part)
        if shape:
            found["rows"], found["cols"], found["dtype"] = shape.groups()
        elif part.startswith("#pto.address_space<"):
            found["location"] = part[part.index("<") + 1 : -1].strip()
        elif "location" not in found and (part in LOCATIONS or (has_shape and number == 0)):
            found["location"] = part
        elif not part.startswith("strided<"):  # a lowered buffer's strides follow from the shape and layout
            left.append(part)
    fields = [field for field in _PLACES if field not in found]
    if len(left) > len(fields):
        raise TypeTextError("this tile type has more words than a tile has properties", left[len(fields)])
    for field, part in zip(fields, left, strict=False):
        found[field] = "512" if field == "fractal" and part.lower() == "none" else part


def _tile_of(found: dict[str, str]) -> Tile:
    missing = [key for key in ("dtype", "rows", "cols") if key not in found]
    if missing:
        raise TypeTextError(
            f"this tile type does not say its {' and '.join(missing)}; write for example "
            "!pto.tile_buf<vec, 16x32xf32> or !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=32, ...>"
        )
    rows, cols = _integer(found["rows"], "rows"), _integer(found["cols"], "cols")
    if rows < 1 or cols < 1:
        raise TypeTextError(
            "a tile has at least one row and one column, and both are known; this one is "
            f"{found['rows']}x{found['cols']}"
        )
    valid = found.get("valid", "").split("x") if "valid" in found else []
    if valid and len(valid) != 2:
        raise TypeTextError("valid takes rows x columns, as in valid=1x? or valid=16x32", found["valid"])
    valid_rows = _integer(found.get("valid_rows", valid[0] if valid else str(rows)).strip(), "v_row")
    valid_cols = _integer(found.get("valid_cols", valid[1] if valid else str(cols)).strip(), "v_col")
    if valid_rows > rows or valid_cols > cols:
        raise TypeTextError(
            f"the valid part {_extent(valid_rows)}x{_extent(valid_cols)} does not fit in the tile's {rows}x{cols}"
        )
    return Tile(
        dtype=element_type(found["dtype"]),
        rows=rows,
        cols=cols,
        valid_rows=valid_rows,
        valid_cols=valid_cols,
        location=_choose(found.get("location", "vec"), tuple(LOCATIONS), "place for a tile"),
        blayout=_choose(found.get("blayout", "row_major"), BLAYOUTS, "blayout"),
        slayout=_choose(found.get("slayout", "none_box"), SLAYOUTS, "slayout"),
        fractal=_integer(found.get("fractal", "512"), "fractal"),
        pad=_pad(found.get("pad", "0")),
        compact=_integer(found.get("compact", "0"), "compact"),
    )


def _pointer(body: str) -> Pointer:
    parts = _split(body)
    if len(parts) > 2:
        raise TypeTextError("a pointer type has an element type and perhaps a space, as in !pto.ptr<f32, ub>", body)
    space = "gm"
    if len(parts) == 2:
        word = parts[1]
        if word.startswith("#pto.address_space<"):
            word = word[word.index("<") + 1 : -1].strip()
        space = _choose(_SPACE_ALIASES.get(word, word), SPACES, "space for a pointer")
    return Pointer(element_type(parts[0]), space)


def _vector_register(body: str) -> VectorRegister:
    shape, kind = _shaped(body)
    if len(shape) != 1 or shape[0] < 1:
        raise TypeTextError("a vector register type is lanes x element type, as in !pto.vreg<64xf32>", body)
    return VectorRegister(shape[0], kind)


def _mask(body: str) -> Mask:
    word = body.strip()
    if not word or word == "G":
        return Mask()
    if word not in ("b8", "b16", "b32"):
        raise TypeTextError(f"'{word}' is not a lane width of a mask; allowed are b8, b16, b32", word)
    return Mask(int(word[1:]))


def is_scalar(kind: Attribute) -> bool:
    """True for the numbers that the scalar unit computes with: integers, floats, ``index``."""
    return isinstance(kind, IntegerType | IndexType | AnyFloat)


def is_register(kind: Attribute) -> bool:
    """True for what an instruction yields as a value: vector and mask registers, alignment state, scalars."""
    if isinstance(kind, OpaqueType):
        return kind.data.mnemonic == "align"
    return isinstance(kind, VectorRegisterType | MaskType) or is_scalar(kind)
