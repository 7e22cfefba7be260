"""Values on the command line: ``name=value`` pairs for kernel arguments, outputs and golden files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ascsim.diagnostics import UserError
from ascsim.machine.dtypes import DType, dtype

FILLS = ("iota", "zeros", "random")
FORMS = "a .npy file, a raw file (x.bin, or with type and shape x.bin:f16:4x64), iota, zeros or random"


def pairs(given: tuple[str, ...], option: str) -> dict[str, str]:
    """``("a=1", "b=x.npy")`` as a dict.

    Raises:
        UserError: a pair has no ``=``, or a name comes twice.
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UserError(f"{option} {text!r} is not NAME=VALUE; for example {option} src=in.npy")
        if name in found:
            raise UserError(f"{option} gives {name!r} twice")
        found[name] = value
    return found


def parse_shape(text: str) -> tuple[int, ...]:
    """``4x64`` as (4, 64).

    Raises:
        UserError: it is not a shape.
    """
    try:
        shape = tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 0:
        raise UserError(f"{text!r} is not a shape; write for example 4x64")
    return shape


def _parse_type(text: str) -> DType:
    try:
        return dtype(text)
    except ValueError as error:
        raise UserError(str(error)) from None


def array(name: str, value: str, kind: DType | None, shape: tuple[int, ...] | None, seed: int = 0) -> np.ndarray:
    """The array that ``name=value`` means; ``kind`` and ``shape`` are what the kernel declares, where it does.

    Raises:
        UserError: the value has another type, size or form than the argument.
    """
    head, *rest = value.split(":")
    said_kind = _parse_type(rest[0]) if rest else None
    said_shape = parse_shape(rest[1]) if len(rest) > 1 else None
    if head in FILLS:
        made = _filled(name, head, said_kind or kind, said_shape or shape, seed)
    elif rest or (kind is not None and Path(head).suffix != ".npy"):
        made = _raw(name, Path(head), said_kind or kind, said_shape)
    else:
        made = _npy(name, Path(head))
    if kind is not None and made.dtype != kind.numpy:
        if made.dtype.itemsize == kind.size and _is_bits_of(made.dtype, kind):
            made = np.ascontiguousarray(made).view(kind.numpy)
        else:
            raise UserError(f"argument {name} has type {kind.name}; {value} holds {made.dtype}")
    if shape is not None and made.size != int(np.prod(shape)):
        wanted = "x".join(map(str, shape))
        raise UserError(f"argument {name} has {int(np.prod(shape))} elements ({wanted}); {value} holds {made.size}")
    return np.array(made.reshape(shape) if shape is not None else made, order="C")


def _is_bits_of(given: np.dtype, kind: DType) -> bool:
    """May elements of the same size stand for those of ``kind``? A .npy file has no bf16, so it holds their bits."""
    return given.kind == "V" or (given.kind in "iu" and (kind.kind in "iu" or kind.numpy.kind == "V"))


def _filled(name: str, how: str, kind: DType | None, shape: tuple[int, ...] | None, seed: int) -> np.ndarray:
    if kind is None or shape is None:
        raise UserError(
            f"the kernel does not tell the type and shape of {name}; write them: --arg {name}={how}:f32:4x64"
        )
    size = int(np.prod(shape))
    if how == "zeros":
        return np.zeros(shape, kind.numpy)
    if how == "iota":
        return np.arange(size).reshape(shape).astype(kind.numpy)
    generator = np.random.default_rng([seed, *name.encode()])
    if kind.kind == "f":
        return generator.standard_normal(shape).astype(np.float32).astype(kind.numpy)
    info = np.iinfo(kind.numpy)
    return generator.integers(info.min, info.max, shape, kind.numpy, endpoint=True)


def _must_exist(name: str, path: Path) -> None:
    if not path.is_file():
        raise UserError(f"argument {name} is an array, and there is no file {path}; its value is {FORMS}")


def _npy(name: str, path: Path) -> np.ndarray:
    _must_exist(name, path)
    try:
        return np.load(path, allow_pickle=False)
    except ValueError:
        raise UserError(
            f"argument {name}: {path} is not a .npy file; for raw bytes give type and shape: {path}:f16:4x64"
        ) from None


def _raw(name: str, path: Path, kind: DType | None, shape: tuple[int, ...] | None) -> np.ndarray:
    _must_exist(name, path)
    if kind is None:
        raise UserError(f"argument {name}: give the type of {path}: {path}:f16:4x64")
    data = path.read_bytes()
    needed = int(np.prod(shape)) * kind.size if shape else len(data)
    if needed != len(data) or len(data) % kind.size:
        asked = "x".join(map(str, shape or ()))
        said = f"{asked} of {kind.name} are {needed}" if shape else f"an {kind.name} takes {kind.size}"
        raise UserError(f"argument {name}: {path} has {len(data)} bytes; {said}")
    made = np.frombuffer(data, kind.numpy)
    return made.reshape(shape) if shape else made


def number(name: str, value: str, kind: DType) -> int | float:
    """A scalar argument.

    Raises:
        UserError: it is not a number of that kind.
    """
    try:
        made = float(value) if kind.kind == "f" else int(value, 0)
    except ValueError:
        raise UserError(f"argument {name} is a scalar of type {kind.name}; {value!r} is not one") from None
    if kind.kind != "f":
        limits = np.iinfo(kind.numpy)
        if not limits.min <= made <= limits.max:
            raise UserError(f"argument {name} is {kind.name}, {limits.min} to {limits.max}; {value} is outside")
    return made


def save(path: Path, result: np.ndarray) -> None:
    """Write an output: ``.npy``, or raw bytes for any other ending.

    Raises:
        UserError: it cannot be written.
    """
    try:
        _write(path, result)
    except OSError as problem:
        raise UserError(f"cannot write {path}: {problem.strerror or problem}") from None


def _write(path: Path, result: np.ndarray) -> None:
    if path.suffix == ".npy":
        np.save(path, result if result.dtype.kind != "V" else result.view(f"u{result.dtype.itemsize}"))
    else:
        path.write_bytes(result.tobytes())


def shortened(values: np.ndarray) -> str:
    """An output in one line."""
    shown = np.array2string(
        values.ravel()[:8] if values.dtype.kind != "V" else values.ravel()[:8].astype(np.float32),
        separator=", ", max_line_width=200,
    )  # fmt: skip
    return shown if values.size <= 8 else f"{shown[:-1]}, ...]"
