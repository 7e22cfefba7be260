"""The language of legality rules.

A rule either *refuses* (what the chip's compiler or public library itself refuses: a type, a layout, a range) or makes a
*finding* (what they accept and should not). ``test(definition, call, profile)`` returns what is wrong, or None. A rule
depends on shapes, types and scalars only, never on addresses or data, so its verdict can be remembered. ``breaks`` makes a
call that violates the rule out of one that does not: from it comes the test that the rule works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ascsim.diagnostics import CATALOGUE, Severity
from ascsim.machine.dtypes import DTYPES, DType
from ascsim.machine.layout import box_shape
from ascsim.machine.operands import NO_ADDRESS, GlobalTensor, MReg, Pointer, Tile, UReg, VReg
from ascsim.machine.words import BLayout, SLayout, Space
from ascsim.profiles import Profile

if TYPE_CHECKING:
    from ascsim.isa.definition import Definition, Operand

Test = Callable[["Definition", SimpleNamespace, Profile], "str | None"]
Breaks = Callable[[SimpleNamespace, Profile], Iterator[SimpleNamespace]]

for _code, _title, _text in (
    ("L001", "Instruction not available on this chip",
     "The instruction does not exist on the chosen profile: its compiler has no such builtin.\n\n"
     "Choose another --npu-arch, or write the step with what this chip has. The message names the products that have the "
     "instruction; `ascsim check FILE` lists all such calls of a file.\n\n"
     "Example: asc_intlv works on vector registers, which the A5 has and the A2 and A3 have not."),
    ("L002", "Element type not taken",
     "The instruction does not take this element type on this profile; the chip's library refuses it with a static "
     "assertion.\n\n"
     "Convert first, or use another type. The message lists the types that are taken.\n\n"
     "Example: TSORT32 of int32_t runs on cpu; the chips sort half and float."),
    ("L003", "Element types must agree",
     "Two operands that must have one element type have two.\n\n"
     "Convert one of them (TCVT), or declare both with one type.\n\n"
     "Example: TADD(dst, a, b) with a of half and b of float."),
    ("L004", "Layout not taken",
     "The instruction works on tiles of another layout (usually row-major without boxes).\n\n"
     "Declare the tile row-major, or move it into such a tile first.\n\n"
     "Example: Tile<TileType::Vec, float, 16, 16, BLayout::ColMajor> in TSORT32."),
    ("L005", "Wrong memory",
     "An operand lies in a memory that this instruction cannot reach: a vector tile belongs to UB.\n\n"
     "Copy the data to the memory that the message names.\n\n"
     "Example: TADD of a tile in L1 (TileType::Mat)."),
    ("L006", "Value out of range",
     "A number is outside what the instruction's encoding holds or the chip defines.\n\n"
     "Keep to the range that the message gives; split the work into several calls where a count is too large.\n\n"
     "Example: set_flag(PIPE_MTE2, PIPE_V, 8): event ids are 0 to 7."),
    ("L007", "Shapes do not fit each other",
     "The valid rows or columns of the operands do not agree as this instruction needs.\n\n"
     "Set the valid regions as the message says.\n\n"
     "Example: TADD on cpu of a tile with 16 valid rows and one with 8."),
    ("L008", "The same register twice",
     "Two destinations of one instruction are one register, which the chip does not define.\n\n"
     "Use two variables.\n\n"
     "Example: asc_intlv(x, x, a, b)."),
    ("L009", "Wrong operands",
     "The instruction was given too few or too many operands, or one of another kind.\n\n"
     "`ascsim isa NAME` shows its forms.\n\n"
     "Example: ascsim.tadd(dst, 1.0, src): a number where a tile belongs; TADDS adds numbers."),
    ("L010", "Tile without an address",
     "A tile was used before TASSIGN (or pto.tassign, alloc_tile addr=) bound it to an address. In Auto mode the tool "
     "places tiles itself; in manual mode every tile needs an address.\n\n"
     "Bind it before its first use.\n\n"
     "Example:\n"
     "    TASSIGN(a, 0x0);       // without this line TLOAD has nowhere to write to\n"
     "    TLOAD(a, global);"),
    ("L012", "Not implemented",
     "ascsim does not have this instruction, or this form of it, yet. It is never approximated in silence.\n\n"
     "`ascsim check FILE` lists every such call of a file before a run, and `ascsim isa` what there is."),
    ("L013", "Tile shape not allowed",
     "The tile type itself is refused: rows (or, column-major, columns) that are not a multiple of 32 bytes, boxes that "
     "do not fill it, or more valid rows or columns than there are.\n\n"
     "Make the tile larger and its valid region smaller.\n\n"
     "Example: Tile<TileType::Vec, float, 16, 60> has rows of 240 bytes; 64 columns, of which 60 are valid, do."),
    ("L014", "A register instruction outside a vector function",
     "Vector, mask and unaligned registers live in a vector function alone: the functions on them may be called from a "
     "`__simd_vf__` function and from the `__simd_callee__` functions that it calls, and the chip's compiler refuses them "
     "elsewhere.\n\n"
     "Move the calls into a `__simd_vf__` function and call that with asc_vf_call.\n\n"
     "Example:\n"
     "    __simd_vf__ inline void Add(__ubuf__ float* x) { vector_float v; asc_loadalign(v, x); ... }\n"
     "    __global__ __vector__ void Kernel(...) { asc_vf_call<Add>(x); }"),
):  # fmt: skip
    CATALOGUE.add(_code, Severity.ERROR, _title, _text)


@dataclass(frozen=True)
class Rule:
    """One legality rule; see the module's text. ``sentence`` is how the reference page states it."""

    code: str
    sentence: str
    test: Test
    refuses: bool = True
    severity: Severity = Severity.ERROR
    why: str = ""
    mend: str = ""
    profiles: tuple[str, ...] = ()
    breaks: Breaks | None = None
    registers: tuple[str, ...] = ()
    """Destinations that must be different variables: only C++ can break this, so only its header checks it."""


def _tiles(call: SimpleNamespace, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for name in names:
        value = getattr(call, name)
        if value is not None:
            yield name, value


def changed(call: SimpleNamespace, name: str, **changes: Any) -> SimpleNamespace:
    """The call with one operand replaced by a changed one."""
    return SimpleNamespace(**{**vars(call), name: replace(getattr(call, name), **changes)})


def _listed(types: Sequence[DType]) -> str:
    return ", ".join(t.name for t in types)


def dtype(operand: str, **by_profile: Sequence[DType]) -> Rule:
    """``operand`` has one of these element types; ``dtype("src", a2a3=(f16, f32), cpu=(...))``."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        value, allowed = getattr(call, operand), by_profile.get(profile.name)
        if value is None or allowed is None or value.dtype in allowed:
            return None
        return f"operand {operand} has type {value.dtype.name}; {profile.name} takes {_listed(allowed)}"

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        if getattr(call, operand) is not None and profile.name in by_profile:
            for other in DTYPES.values():
                if other not in by_profile[profile.name]:
                    yield changed(call, operand, dtype=other)

    groups: dict[tuple[DType, ...], list[str]] = {}
    for name, types in by_profile.items():
        groups.setdefault(tuple(types), []).append(name)
    said = "; ".join(f"{_listed(types)} on {', '.join(names)}" for types, names in groups.items())
    return Rule("L002", f"{operand} is {said}", test, breaks=breaks, mend="Convert it first, or use another type.")


def same_dtype(*operands: str) -> Rule:
    """All these operands have one element type."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        (first, one), *rest = list(_tiles(call, operands))
        for name, value in rest:
            if value.dtype is not one.dtype:
                return f"operand {name} has type {value.dtype.name}, but {first} has {one.dtype.name}"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name, value in list(_tiles(call, operands))[1:]:
            other = next(d for d in DTYPES.values() if d is not value.dtype and d.size == value.dtype.size)
            yield changed(call, name, dtype=other)

    return Rule("L003", f"{', '.join(operands)} have one element type", test, breaks=breaks)


def row_major(*operands: str, profiles: tuple[str, ...] = ()) -> Rule:
    """These tiles are row-major without boxes (ND)."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        for name, tile in _tiles(call, operands):
            if not tile.is_row_major:
                return f"operand {name} is not row-major"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name, tile in _tiles(call, operands):
            yield changed(call, name, blayout=BLayout.COL_MAJOR, rows=max(tile.rows, 32))
            yield changed(call, name, slayout=SLayout.ROW_MAJOR)

    return Rule("L004", f"{', '.join(operands)} are row-major without boxes", test, profiles=profiles, breaks=breaks,
                mend="Declare the tile with BLayout::RowMajor and SLayout::NoneBox.")  # fmt: skip


def vector_tiles(*operands: str) -> Rule:
    """These are tiles in UB, row-major without boxes; other forms of the instruction are not implemented."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        for name, tile in _tiles(call, operands):
            if tile.space != Space.UB:
                return f"operand {name} lies in {Space(tile.space).name}; only vector tiles, in UB, are implemented"
            if not tile.is_row_major:
                return f"operand {name} is not row-major without boxes; only such tiles are implemented"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name, _ in _tiles(call, operands):
            yield changed(call, name, space=Space.L1)
            yield changed(call, name, blayout=BLayout.COL_MAJOR)

    said = f"{', '.join(operands)} lie in UB, row-major without boxes"
    return Rule("L012", said, test, breaks=breaks, mend="ascsim check FILE lists all such calls of a file.")


def plain_layout(*operands: str, profiles: tuple[str, ...] = ()) -> Rule:
    """These tiles have no boxes: row-major (ND) or column-major (DN)."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        for name, tile in _tiles(call, operands):
            if tile.slayout != SLayout.NONE_BOX:
                return f"operand {name} has boxes"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name, tile in _tiles(call, operands):
            yield changed(call, name, slayout=SLayout.ROW_MAJOR, cols=max(tile.cols, 32))

    return Rule("L012", f"{', '.join(operands)} have no boxes", test, profiles=profiles, breaks=breaks,
                mend="Declare the tile with SLayout::NoneBox.")  # fmt: skip


def same_size(*operands: str) -> Rule:
    """The elements of all these operands have as many bytes."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        (first, one), *rest = list(_tiles(call, operands))
        for name, value in rest:
            if value.dtype.size != one.dtype.size:
                return (
                    f"elements of {name} ({value.dtype.name}) have {value.dtype.size} bytes, "
                    f"those of {first} ({one.dtype.name}) {one.dtype.size}"
                )
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name, value in list(_tiles(call, operands))[1:]:
            other = next(d for d in DTYPES.values() if d.size == (2 if value.dtype.size == 1 else 1))
            yield changed(call, name, dtype=other)

    return Rule("L003", f"elements of {', '.join(operands)} have one size", test, breaks=breaks,
                mend="Declare the tiles with elements of one size.")  # fmt: skip


def in_space(space: Space, *operands: str) -> Rule:
    """These tiles lie in ``space``."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        for name, tile in _tiles(call, operands):
            if tile.space != space:
                return f"operand {name} lies in {Space(tile.space).name}, not in {space.name}"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name, _ in _tiles(call, operands):
            yield changed(call, name, space=Space.L1 if space != Space.L1 else Space.UB)

    return Rule("L005", f"{', '.join(operands)} lie in {space.name}", test, breaks=breaks)


def scalar_range(operand: str, low: int, high: int, profiles: tuple[str, ...] = ()) -> Rule:
    """``low`` <= operand <= ``high``."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        value = getattr(call, operand)
        return None if low <= int(value) <= high else f"{operand} is {value}; it must be {low} to {high}"

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for value in (low - 1, high + 1):
            yield SimpleNamespace(**{**vars(call), operand: value})

    return Rule("L006", f"{operand} is {low} to {high}", test, profiles=profiles, breaks=breaks)


def same_valid_shape(*operands: str, profiles: tuple[str, ...] = ()) -> Rule:
    """These tiles have the same valid rows and columns."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        (first, one), *rest = list(_tiles(call, operands))
        for name, tile in rest:
            if (tile.valid_rows, tile.valid_cols) != (one.valid_rows, one.valid_cols):
                return (
                    f"valid region of {name} is {tile.valid_rows}x{tile.valid_cols}, "
                    f"that of {first} {one.valid_rows}x{one.valid_cols}"
                )
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for name, tile in list(_tiles(call, operands))[1:]:
            yield changed(call, name, valid_rows=tile.valid_rows - 1)
            yield changed(call, name, valid_cols=tile.valid_cols - 1)

    return Rule("L007", f"{', '.join(operands)} have one valid shape", test, profiles=profiles, breaks=breaks)


def unchecked_valid_shape(code: str, *operands: str, why: str, profiles: tuple[str, ...]) -> Rule:
    """As :func:`same_valid_shape`, where the library checks it in debug builds only."""
    rule = same_valid_shape(*operands)
    return finding(code, rule.sentence, rule.test, why=why, profiles=profiles, breaks=rule.breaks,
                   mend="Give them the same valid region.")  # fmt: skip


def variant_types(pointers: Sequence[Operand], variants: Sequence[dict[str, DType]]) -> Rule:
    """The addresses have the element types of one variant; a ``void*`` operand (no type) takes any."""
    typed = [o for o in pointers if o.dtype is not None]

    def kinds(variant: dict[str, DType]) -> list[DType]:
        return [variant[o.dtype] if isinstance(o.dtype, str) else o.dtype for o in typed]  # type: ignore[misc]

    allowed = [kinds(variant) for variant in variants]

    def said(kinds: Sequence[DType | None]) -> str:
        return ", ".join(f"{o.name} {k.name if k else 'void'}" for o, k in zip(typed, kinds, strict=True))

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        present = [getattr(call, o.name) is not None for o in typed]
        given = [getattr(call, o.name).dtype if there else None for o, there in zip(typed, present, strict=True)]
        if any(all(g is a or not p for g, a, p in zip(given, kinds, present, strict=True)) for kinds in allowed):
            return None
        return f"its addresses are {said(given)}; it takes " + "; or ".join(said(a) for a in allowed)

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for number, operand in enumerate(typed):
            for other in DTYPES.values():
                if getattr(call, operand.name) and not any(a[number] is other for a in allowed):
                    pointer = getattr(call, operand.name)._replace(dtype=other)
                    yield SimpleNamespace(**{**vars(call), operand.name: pointer})

    said_of = ", ".join(o.name for o in typed)
    sentence = f"the element types of {said_of} are among those listed" if typed else "addresses of any type"
    return Rule("L002", sentence, test, breaks=breaks, mend="Cast the pointer, or use another element type.")


def pointer_spaces(pointers: Sequence[Operand]) -> Rule:
    """Each address points into the memory that its operand names."""

    def test(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
        for operand in pointers:
            pointer = getattr(call, operand.name)
            space = operand.space if pointer is None else pointer.space
            if space != operand.space:
                return f"operand {operand.name} points into {Space(space).name}, not into {operand.space.name}"
        return None

    def breaks(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
        for operand in pointers:
            pointer = getattr(call, operand.name)
            if pointer is not None:
                yield SimpleNamespace(**{**vars(call), operand.name: pointer._replace(space=Space.L1)})

    by_space: dict[str, list[str]] = {}
    for one in pointers:
        by_space.setdefault(one.space.name, []).append(one.name)
    said = "; ".join(f"{', '.join(names)} in {space}" for space, names in by_space.items())
    return Rule("L005", said, test, breaks=breaks, mend="Copy the data there first.")


def different_registers(*operands: str) -> Rule:
    """These destinations are different registers. In Python and ``.pto`` results are new values, so only C++ can break it."""
    said = f"{' and '.join(operands)} are different registers"
    return Rule("L008", said, lambda definition, call, profile: None, registers=operands)


def refuse(code: str, sentence: str, test: Test, *, mend: str = "", profiles: tuple[str, ...] = (),
           breaks: Breaks | None = None) -> Rule:  # fmt: skip
    """A refusal of the definition's own."""
    return Rule(code, sentence, test, mend=mend, profiles=profiles, breaks=breaks)


def finding(
    code: str, sentence: str, test: Test, *, why: str, mend: str, severity: Severity = Severity.ERROR,
    profiles: tuple[str, ...] = (), breaks: Breaks | None = None,
) -> Rule:  # fmt: skip
    """What the chip accepts and should not; the run goes on. The code is the instruction's own and is catalogued here."""
    if code not in CATALOGUE.codes:
        CATALOGUE.add(code, severity, f"Broken rule: {sentence}", f"{why}\n\n{mend}")
    return Rule(code, sentence, test, False, severity, why, mend, profiles, breaks)


# What holds for every instruction


def not_on_profile(definition: Definition, profile: Profile) -> str:
    """The sentence for an instruction that the profile lacks."""
    return f"{definition.title} is not available on {profile.name} ({profile.products})"


def wrong_count(definition: Definition, given: int) -> str:
    """The sentence for a wrong number of operands."""
    names = ", ".join(o.name + ("?" if o.optional else "") for o in definition.inputs)
    return f"{definition.title} was given {given} operands; it takes ({names})"


_EXPECTED: dict[str, tuple[type, ...]] = {
    "tile": (Tile,),
    "global": (GlobalTensor,),
    "vector register": (VReg,),
    "mask register": (MReg,),
    "unaligned register": (UReg,),
    "address": (Pointer,),
}


_NO_NUMBERS = (Tile, GlobalTensor, VReg, MReg, Pointer)


def wrong_sort(definition: Definition, operand: Operand, value: Any) -> str | None:
    """The sentence for an operand of another kind than the definition says."""
    expected = _EXPECTED.get(operand.sort.value)
    fits = isinstance(value, expected) if expected else not isinstance(value, _NO_NUMBERS)
    if fits or (value is None and operand.optional):
        return None
    wanted = operand.sort.value
    article = "an" if wanted[0] in "aeiu" else "a"
    return f"{definition.title}: operand {operand.name} is a {type(value).__name__}; it must be {article} {wanted}"


def _assigned(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    unused = {o.name for o in definition.operands if o.used_on and profile.name not in o.used_on}
    bound = unused | {operand.name for operand in definition.operands if operand.binds}
    for name, value in vars(call).items():
        if isinstance(value, Tile) and value.address < 0 and name not in bound:
            return f"tile {value.name or name} has no address"
    return None


def _well_formed(definition: Definition, call: SimpleNamespace, profile: Profile) -> str | None:
    scratch = {o.name for o in definition.inputs if o.role.value == "scratch"}  # nobody looks at its valid region
    for name, tile in vars(call).items():
        if not isinstance(tile, Tile):
            continue
        said, size = f"tile {tile.name or name}", tile.dtype.size
        whole = 0 <= tile.valid_rows <= tile.rows and 0 <= tile.valid_cols <= tile.cols
        if not (tile.rows and tile.cols and (whole or name in scratch)):
            return f"{said} is {tile.rows}x{tile.cols} with {tile.valid_rows}x{tile.valid_cols} valid"
        if tile.slayout != SLayout.NONE_BOX:
            box_rows, box_cols = box_shape(tile.slayout, tile.fractal, size)
            if tile.cols % box_cols or (tile.rows % box_rows and tile.rows > 1 and tile.space != Space.UB):
                return f"{said} is {tile.rows}x{tile.cols}, not a multiple of its {box_rows}x{box_cols} boxes"
        else:
            unit, count = ("row", tile.cols) if tile.blayout == BLayout.ROW_MAJOR else ("column", tile.rows)
            if count * size % 32:
                return f"a {unit} of {said} is {count * size} bytes, not a multiple of 32"
    return None


def _misshapen(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name, tile in vars(call).items():
        if isinstance(tile, Tile) and name != "tmp":
            yield changed(call, name, valid_rows=tile.rows + 1)
            yield changed(call, name, valid_cols=tile.cols + 1)
            if tile.is_row_major:
                yield changed(call, name, cols=tile.cols + 1)


def _unassigned(call: SimpleNamespace, profile: Profile) -> Iterator[SimpleNamespace]:
    for name, tile in vars(call).items():
        if isinstance(tile, Tile):
            yield changed(call, name, address=NO_ADDRESS)


STANDING: tuple[Rule, ...] = (
    Rule("L013", "every tile is well formed", _well_formed, breaks=_misshapen,
         mend="Round the tile up to whole 32-byte blocks (or boxes) and set its valid region."),
    Rule("L010", "every tile has an address", _assigned, breaks=_unassigned,
         mend="Bind it with TASSIGN (tassign, alloc_tile addr=) before its first use."),
)  # fmt: skip
