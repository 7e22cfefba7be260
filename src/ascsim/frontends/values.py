"""What Python kernels hold: arrays in global memory, tiles, local buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ascsim.diagnostics import UserError
from ascsim.machine.dtypes import DType
from ascsim.machine.operands import GlobalTensor, Pointer
from ascsim.machine.words import Space


@dataclass(frozen=True)
class GlobalArray:
    """A NumPy array of the caller's, as the kernel sees it: a strided view of global memory.

    Slicing gives a view; ``shape`` and ``strides`` count elements.
    """

    dtype: DType
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    name: str

    def __getitem__(self, index: Any) -> GlobalArray:
        """A view, by integers and slices with a positive step, like NumPy's.

        Raises:
            UserError: the index leaves the array, or is of another kind.
        """
        picks = index if isinstance(index, tuple) else (index,)
        if len(picks) > len(self.shape):
            raise UserError(f"{self.name} has {len(self.shape)} dimensions; it was indexed with {len(picks)}")
        address, shape, strides = self.address, [], []
        for axis, (size, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            pick = picks[axis] if axis < len(picks) else slice(None)
            if isinstance(pick, (int, np.integer)):
                at = int(pick) + size if pick < 0 else int(pick)
                if not 0 <= at < size:
                    raise UserError(f"index {int(pick)} is outside axis {axis} of {self.name}, which has {size}")
                address += at * stride * self.dtype.size
            elif isinstance(pick, slice):
                start, stop, step = pick.indices(size)
                if step < 1:
                    raise UserError(f"{self.name} was sliced with step {step}; steps are positive")
                address += start * stride * self.dtype.size
                shape.append(max(0, (stop - start + step - 1) // step))
                strides.append(stride * step)
            else:
                raise UserError(f"{self.name} was indexed with {pick!r}; use integers and slices")
        return GlobalArray(self.dtype, address, tuple(shape), tuple(strides), self.name)

    def reshape(self, *shape: int) -> GlobalArray:
        """The same contiguous elements in another shape.

        Raises:
            UserError: the view is not contiguous, or the sizes differ.
        """
        if int(np.prod(shape)) != int(np.prod(self.shape)) or self.strides != _dense(self.shape):
            raise UserError(f"{self.name} of shape {self.shape} cannot be viewed as {shape}")
        return GlobalArray(self.dtype, self.address, tuple(shape), _dense(shape), self.name)

    def as_tensor(self) -> GlobalTensor:
        """As the five-dimensional operand of tile instructions, leading dimensions filled with 1."""
        fill = 5 - len(self.shape)
        if fill < 0:
            raise UserError(f"{self.name} has {len(self.shape)} dimensions; tile instructions take up to five")
        shape, strides = (1,) * fill + self.shape, (1,) * fill + self.strides
        return GlobalTensor(self.dtype, self.address, shape, strides, name=self.name)  # type: ignore[arg-type]

    def as_pointer(self) -> Pointer:
        """As the address operand of copies."""
        return Pointer(Space.GM, self.address, self.dtype, self.name)


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def global_array(array: np.ndarray, kind: DType, address: int, name: str) -> GlobalArray:
    """A C-contiguous array placed at ``address``."""
    return GlobalArray(kind, address, array.shape, _dense(array.shape), name)
