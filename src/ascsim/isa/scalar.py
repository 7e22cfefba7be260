"""The scalar unit's own instructions: bits of a word, floats to integers.

Sources: asc-devkit C-API scalar_compute and the code behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from ascsim.isa.definition import A5, CHIPS, Operand, Scalar, plain_instruction
from ascsim.isa.rules import Rule, scalar_range
from ascsim.isa.semantics import convert
from ascsim.machine.core import Core
from ascsim.machine.dtypes import f32, i64, u64
from ascsim.machine.words import Pipe

_WORD = (1 << 64) - 1
_PAGES = "asc-devkit C-API scalar_compute/"


def leading_zeros(word: int) -> int:
    """Zeros above the highest 1 of 64 bits."""
    return 64 - word.bit_length()


def first_one(word: int) -> int:
    """The place of the lowest 1; -1 if there is none."""
    return (word & -word).bit_length() - 1


def first_zero(word: int) -> int:
    """The place of the lowest 0 of 64 bits; -1 if there is none."""
    return first_one(~word & _WORD)


def sign_bits(word: int) -> int:
    """How many bits below the sign are as the sign."""
    return leading_zeros(word ^ _WORD if word >> 63 else word) - 1


_VALUE = (Scalar("value", u64, doc="the word"),)
_BIT = (Scalar("bits", u64, doc="the word"), Scalar("idx", i64, doc="the bit, 0 to 63"))
_PLACE = (scalar_range("idx", 0, 63),)
_WORDS: tuple[tuple[str, str, Sequence[Operand], Sequence[Rule], str, str, Callable[..., int]], ...] = (
    ("asc_clz", "clz", _VALUE, (), "int64_t", "How many zeros lead a word of 64 bits.", leading_zeros),
    ("asc_ffs", "sff1", _VALUE, (), "int64_t", "The place of the lowest 1 of a word; -1 of 0.", first_one),
    ("asc_ffz", "sff0", _VALUE, (), "int64_t", "The place of the lowest 0 of a word; -1 of all ones.", first_zero),
    ("asc_popc", "bcnt1", _VALUE, (), "int64_t", "How many ones a word has.", int.bit_count),
    ("asc_zero_bits_cnt", "bcnt0", _VALUE, (), "int64_t", "How many zeros a word has.", lambda w: 64 - w.bit_count()),
    ("asc_sflbits", "sflbits", (Scalar("value", i64, doc="the word"),), (), "int64_t",
     "How many bits below the sign are as the sign.", sign_bits),
    ("asc_set_nthbit", "sbitset1", _BIT, _PLACE, "uint64_t", "The word with a bit set.", lambda w, n: w | 1 << n),
    ("asc_clear_nthbit", "sbitset0", _BIT, _PLACE, "uint64_t", "The word with a bit cleared.", lambda w, n: w & ~(1 << n)),
)  # fmt: skip


def _register(
    cpp: str, builtin: str, operands: Sequence[Operand], rules: Sequence[Rule], result: str, doc: str,
    function: Callable[..., int],
) -> None:  # fmt: skip
    @plain_instruction(
        builtin, cpp=cpp, aliases=(builtin,), asm=(), profiles=CHIPS, operands=operands, pipe=Pipe.S, rules=rules,
        result=result, level="system", core="any", doc=doc, sources=(f"{_PAGES}{cpp}",),
    )  # fmt: skip
    def compute(core: Core, call: SimpleNamespace) -> int:
        word, *rest = (int(getattr(call, o.name)) for o in operands)
        return function(word & _WORD, *rest)


for _row in _WORDS:
    _register(*_row)

_ROUNDINGS = (
    ("_rn", "r", convert.RINT, "to nearest, halves to even"),
    ("_rna", "a", convert.ROUND, "to nearest, halves away from zero"),
    ("_rd", "f", convert.FLOOR, "down"),
    ("_ru", "c", convert.CEIL, "up"),
)


def _rounding(cpp: str, builtin: str, mode: int, said: str) -> None:
    @plain_instruction(
        builtin, cpp=cpp, aliases=(builtin,), asm=(), profiles=A5, operands=(Scalar("value", f32, doc="the number"),),
        pipe=Pipe.S, result="int32_t", level="system", core="any", doc=f"A float rounded {said} to an integer.",
        assumed=("What does not fit stops at the limit of its side; NaN gives 0.",), sources=(f"{_PAGES}{cpp}",),
    )  # fmt: skip
    def compute(core: Core, call: SimpleNamespace) -> int:
        value = np.array([call.value], np.float32)
        return int(convert.float_to_int(value, mode, True, -(1 << 31), (1 << 31) - 1)[0])


for _ending, _letter, _mode, _said in _ROUNDINGS:
    _rounding(f"asc_float2int32{_ending}", f"conv_f322s32{_letter}", _mode, _said)
