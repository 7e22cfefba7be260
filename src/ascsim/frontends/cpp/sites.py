"""From program counters to source lines, by the debug information of the modules that a run loaded.

``addr2line`` (or one of LLVM's twins) is asked once for a module, with all its counters. A counter is a return address
inside a chain of inlined header functions: the first frame that is neither in a header of ascsim's own nor in one of
the system's is the user's line.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ascsim.cache import cache_directory
from ascsim.diagnostics import Site
from ascsim.machine.trace import SITE_PC, Trace

OWN_HEADERS = (Path(__file__).parent / "include",)


@dataclass(frozen=True)
class Module:
    """A file loaded at ``base``, ``size`` bytes long; ``side`` is ``host``, ``aiv``, ``aic`` or ``runtime``."""

    path: str
    base: int
    size: int
    side: str = ""


def modules(trace: Trace) -> list[Module]:
    """The modules that a run noted."""
    return [Module(note["path"], note["base"], note["size"], note["side"]) for note in trace.noted("module")]


def resolve(trace: Trace, numbers: Iterable[int]) -> dict[int, Site]:
    """The source sites behind site numbers of a trace: program counters (return addresses), or noted sites from 1.

    Numbers that nothing is known of are left out. Where there is no debug information (or no program that reads it), a
    site names the module and the offset in it.
    """
    noted = trace.noted("site")
    wanted = set(numbers)
    found = {n: Site(**noted[n - 1]) for n in wanted if 0 < n <= len(noted)}
    counters = wanted - found.keys() - {0}
    return found | resolve_counters(modules(trace), {counter: counter - 1 for counter in counters})


def resolve_counters(loaded: Iterable[Module], counters: dict[int, int]) -> dict[int, Site]:
    """Sites by key of ``counters``, whose values are the addresses to look up (of the call, not its return address)."""
    found: dict[int, Site] = {}
    for module in loaded:
        offsets = {key: pc - module.base for key, pc in counters.items() if 0 <= pc - module.base < module.size}
        if not offsets:
            continue
        lines = _lines(module.path, sorted(set(offsets.values())))
        for key, offset in offsets.items():
            site = lines.get(offset)
            found[key] = site or Site(f"{Path(module.path).name}+{offset:#x}")
    return found


def resolver(trace: Trace) -> Callable[[int, int], Site | None]:
    """A function of (site number, row flags) for the checks; all sites of the trace are looked up at its first call."""
    known: dict[int, Site] = {}
    is_resolved = False

    def site_of(number: int, flags: int = SITE_PC) -> Site | None:
        nonlocal is_resolved
        if not is_resolved:
            is_resolved = True
            known.update(resolve(trace, _all_numbers(trace)))
        return known.get(number)

    return site_of


def _all_numbers(trace: Trace) -> set[int]:
    import numpy as np

    numbers = {int(number) for number in np.unique(trace.rows["site"])}
    for _, data in trace.notes:
        for place in (data, *data.get("places", ())):
            site = place.get("site")
            if isinstance(site, int):
                numbers.add(site)
    return numbers


# --------------------------------------------------------------------------------------------------------------------
# The program that reads debug information


@cache
def symbolizer() -> tuple[str, ...] | None:
    """The command that turns addresses on its input into lines, or None if the machine has none."""
    for name, *more in (("addr2line",), ("llvm-addr2line",), ("llvm-symbolizer", "--output-style=GNU")):
        path = shutil.which(name)
        if path:
            return (path, *more)
    return None


def _lines(path: str, offsets: list[int]) -> dict[int, Site]:
    """The user's line at each offset of a module, as far as it is known."""
    command = symbolizer()
    if command is None or not Path(path).exists():
        return {}
    words = [*command, "-a", "-i", "-f", "-C", "-e", path]
    done = subprocess.run(
        words, input="".join(f"{offset:#x}\n" for offset in offsets), capture_output=True, text=True, errors="replace",
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        return {}
    return dict(_parse(done.stdout))


def _parse(printed: str) -> Iterable[tuple[int, Site]]:
    """(offset, user's site) of an answer: an address line, then pairs of lines, function and place, innermost first."""
    rows = printed.splitlines()
    at = 0
    while at < len(rows):
        offset = int(rows[at], 16)
        at += 1
        frames: list[Site] = []
        while at + 1 < len(rows) and not rows[at].startswith("0x"):
            frame = _frame(rows[at], rows[at + 1])
            if frame is not None:
                frames.append(frame)
            at += 2
        outer = [frame for frame in frames if not _is_own(frame.path)]
        if outer:
            yield offset, next((frame for frame in outer if not is_system(frame.path)), outer[0])


def _frame(function: str, place: str) -> Site | None:
    path, _, rest = place.partition(" (discriminator")[0].rpartition(":")
    if not path or path == "??":
        return None
    return Site(path, int(rest) if rest.isdigit() else 0, 0, "" if function == "??" else function)


def is_system(path: str) -> bool:
    """Whether a file is a header of the system's, such as the C++ library's: the user's line lies further out."""
    return path.startswith("/usr/") and not path.startswith("/usr/local/")


@cache
def _is_own(path: str) -> bool:
    """Whether a file is a header of ascsim's, written or generated."""
    absolute = Path(path).absolute()
    return any(absolute.is_relative_to(own.absolute()) for own in (*OWN_HEADERS, cache_directory()))
