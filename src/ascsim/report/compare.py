"""A result beside what it should be: tolerance, how many differ, and where first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Comparison:
    """``differ`` of ``total`` elements are outside the tolerance; ``first`` lists (coordinates, got, wanted)."""

    name: str
    total: int
    differ: int
    rtol: float
    atol: float
    worst: float
    first: tuple[tuple[tuple[int, ...], object, object], ...]
    problem: str = ""

    @property
    def ok(self) -> bool:
        """True when nothing differs."""
        return not self.differ and not self.problem

    def lines(self) -> list[str]:
        """The verdict for people."""
        rule = "bit for bit" if not (self.rtol or self.atol) else f"rtol {self.rtol:g}, atol {self.atol:g}"
        if self.problem:
            return [f"golden {self.name}: {self.problem}"]
        if self.ok:
            return [f"golden {self.name}: all {self.total} elements agree ({rule})"]
        head = f"golden {self.name}: {self.differ} of {self.total} elements differ ({rule}; largest difference {self.worst:g})"
        return [
            head,
            *(f"  [{', '.join(map(str, at))}] is {got!s}, should be {want!s}" for at, got, want in self.first),
        ]


def compare(
    name: str, got: np.ndarray, wanted: np.ndarray, rtol: float = 0.0, atol: float = 0.0, show: int = 8
) -> Comparison:
    """Compare element by element. Without tolerance the bits must agree, except that NaNs of any payload are equal.

    Integers are compared as integers whatever the tolerance.
    """

    def refused(why: str) -> Comparison:
        return Comparison(name, got.size, 0, rtol, atol, 0.0, (), why)

    if got.size != wanted.size:
        return refused(f"has {got.size} elements, the golden file {wanted.size} {wanted.shape}")
    if got.dtype != wanted.dtype:
        return refused(f"has type {got.dtype}, the golden file {wanted.dtype}")
    wanted = wanted.reshape(got.shape)
    if got.dtype.kind in "iub":
        wrong = got != wanted
        distance = np.abs(got.astype(np.float64) - wanted.astype(np.float64))
    else:
        a, b = got.astype(np.float64), wanted.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.abs(a - b)
            close = (a == b) | (distance <= atol + rtol * np.abs(b))
        if not (rtol or atol):
            bits = np.dtype(f"u{got.dtype.itemsize}")
            close = np.ascontiguousarray(got).view(bits) == np.ascontiguousarray(wanted).view(bits)
        wrong = ~(close | (np.isnan(a) & np.isnan(b)))
    places = np.argwhere(wrong)
    first = tuple((tuple(int(i) for i in at), got[tuple(at)], wanted[tuple(at)]) for at in places[:show])
    differing = distance[wrong]
    finite = differing[np.isfinite(differing)]
    return Comparison(name, got.size, len(places), rtol, atol, float(finite.max()) if finite.size else 0.0, first)
