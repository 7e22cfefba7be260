"""One table: what was measured, the baseline of the same run, the ratio. ``make bench`` runs it.

Figures are medians; a ratio says more than a time, for machines differ. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from ascsim.blas import import_numpy

import_numpy()  # with one thread, as in the processes that run programs

import numpy as np  # noqa: E402

if TYPE_CHECKING:
    from ascsim.machine.trace import Trace

ROOT = Path(__file__).parent.parent
ASCSIM = [sys.executable, "-m", "ascsim.cli"]


def median_seconds(work: Callable[[], object], runs: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """The median time of ``work`` after one warm-up: wall time, or, of what runs in this process, that of its own."""
    work()
    times = []
    for _ in range(runs):
        start = clock()
        work()
        times.append(clock() - start)
    return statistics.median(times)


def medians_in_turns(work: Callable[[], object], base: Callable[[], object], runs: int = 7) -> tuple[float, float]:
    """The median wall times of two works that take turns, so that what else the machine does meets both."""
    times: tuple[list[float], list[float]] = [], []
    for _ in range(runs):
        for each, into in zip((work, base), times, strict=True):
            start = time.perf_counter()
            each()
            into.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def median_own_seconds(work: Callable[[], object], runs: int = 9) -> float:
    """The median processor time of ``work``, in this process: others that use the machine are not in it."""
    return median_seconds(work, runs, time.process_time)


def spent_by_processes(work: Callable[[], object]) -> float:
    """The processor time of the processes that ``work`` waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def repeat(times: int, work: Callable[..., object], *arguments: object) -> None:
    """Call ``work`` so many times."""
    for _ in range(times):
        work(*arguments)


def process(command: list[str]) -> Callable[[], object]:
    """A whole process, its output thrown away; it has to succeed."""
    return lambda: subprocess.run(command, check=True, capture_output=True)


class Results:
    """The rows of the table."""

    def __init__(self) -> None:
        self.table = Table("what", "figure", "baseline", "its figure", "ratio")

    def add(self, what: str, figure: float, baseline: str, base: float, show: Callable[[float], str]) -> None:
        """One row; ``figure`` and ``base`` are of one unit that ``show`` prints."""
        self.table.add_row(what, show(figure), baseline, show(base), f"{figure / base:.2f}")


def nanoseconds(seconds: float) -> str:
    """``1.2 ns``."""
    return f"{seconds * 1e9:.1f} ns"


def milliseconds(seconds: float) -> str:
    """``12.3 ms``."""
    return f"{seconds * 1e3:.1f} ms"


def microseconds(seconds: float) -> str:
    """``12.3 us``."""
    return f"{seconds * 1e6:.2f} us"


def rate(elements_per_second: float) -> str:
    """``61 M/s``."""
    return f"{elements_per_second / 1e6:.1f} M/s"


def start_up(results: Results) -> None:
    """The command line and the import."""
    bare = median_seconds(process([sys.executable, "-c", "pass"]))
    results.add("ascsim --help", median_seconds(process([*ASCSIM, "--help"])), "python -c pass", bare, milliseconds)
    imported = median_seconds(process([sys.executable, "-c", "import ascsim"]))
    results.add("import ascsim", imported, "python -c pass", bare, milliseconds)


def edited(text: str, word: str, number: int) -> str:
    """A source with another statement in the first function behind a word."""
    before, found, behind = text.partition(word)
    return before + found + behind.replace("\n{", f"\n{{ (void){number};", 1)


def edit_to_verdict(results: Results) -> None:
    """From an edited C++ source to its verdict, beside the bare compilation of the rewritten file."""
    from ascsim.frontends.cpp.compilers import find_compiler as find
    from ascsim.frontends.cpp.driver import include_flags

    cases = (
        ("interleave.asc", "dav-3510", "kernel", "__global__"),
        ("interleave.asc", "dav-3510", "host program", "int main("),
        ("sort_rows.cpp", "dav-2201", "kernel", "__global__"),
    )
    numbers = itertools.count()
    for name, arch, part, word in cases:
        with tempfile.TemporaryDirectory() as scratch:
            source, kept = Path(scratch) / name, Path(scratch) / "kept"
            text = (ROOT / "examples" / name).read_text()
            run = [*ASCSIM, "run", str(source), f"--npu-arch={arch}"]

            def edit_and_run(source: Path = source, text: str = text, word: str = word, run: list[str] = run) -> None:
                source.write_text(edited(text, word, next(numbers)))
                subprocess.run(run, check=True, capture_output=True)

            source.write_text(text)
            subprocess.run([*run, f"--keep={kept}"], check=True, capture_output=True)
            rewritten = next(kept.glob("*host*.cpp"))
            bare = [*find().command, "-O1", "-c", str(rewritten), *include_flags(arch), "-o", str(kept / "bare.o")]
            for _ in range(3):  # what it includes first is precompiled in the background meanwhile
                edit_and_run()
                time.sleep(2)
            figure, base = medians_in_turns(edit_and_run, process(bare))
            results.add(f"{name}: {part} edited to verdict", figure, "g++ -O1 -c", base, milliseconds)


def sorting(results: Results) -> None:
    """TSORT32 in a Python kernel, expansion, trace and checks included, beside NumPy's sort of the same keys."""
    import ascsim
    from ascsim.isa.semantics import network

    calls = 500

    @ascsim.kernel(arch="a2a3")
    def sort(values, indices, kind):
        rows, cols = values.shape
        size = 2 if kind == "f16" else 4
        src = ascsim.tile(kind, rows, cols)
        idx = ascsim.tile("u32", 1, cols)
        dst = ascsim.tile(kind, rows, cols * 8 // size)
        ascsim.tload(src, values)
        ascsim.tload(idx, indices)
        ascsim.set_flag(ascsim.Pipe.MTE2, ascsim.Pipe.V, 0)
        ascsim.wait_flag(ascsim.Pipe.MTE2, ascsim.Pipe.V, 0)
        for _ in range(calls):
            ascsim.tsort32(dst, src, idx)

    warm = np.zeros((4, 2048), np.float32), np.arange(2048, dtype=np.uint32).reshape(1, -1)
    for _ in range(1 + network.WORTH_MAKING // (calls * warm[0].size)):  # as in a process that has sorted for a while
        sort[1](*warm, "f32")
    for kind in ("f32", "f16"):
        for rows, cols in ((1, 32), (4, 2048), (1, 8192)):
            values = np.random.default_rng(0).standard_normal((rows, cols)).astype(ascsim.__getattr__(kind).numpy)
            indices = np.arange(cols, dtype=np.uint32).reshape(1, cols)
            seconds = median_own_seconds(lambda v=values, i=indices, k=kind: sort[1](v, i, k)) / calls
            keys = values.astype(np.float32).view(np.uint32).astype(np.uint64).reshape(-1, 32)
            base = median_own_seconds(lambda k=keys: repeat(calls, np.sort, k)) / calls
            elements = rows * cols
            results.add(
                f"TSORT32 {kind} ({rows},{cols})", elements / seconds, "np.sort of u64 blocks", elements / base, rate
            )


def tile_overhead(results: Results) -> None:
    """TADD on a 64 by 64 tile beside the addition alone."""
    import ascsim
    from ascsim import profiles
    from ascsim.frontends.ptoas.kernel import load

    calls = 500

    @ascsim.kernel(arch="a5")
    def add(x):
        a, b, c = (ascsim.tile("f32", 64, 64) for _ in range(3))
        ascsim.tload(a, x)
        ascsim.tload(b, x)
        ascsim.set_flag(ascsim.Pipe.MTE2, ascsim.Pipe.V, 0)
        ascsim.wait_flag(ascsim.Pipe.MTE2, ascsim.Pipe.V, 0)
        for _ in range(calls):
            ascsim.tadd(c, a, b)

    x = a = np.zeros((64, 64), np.float32)
    text = load(Path(__file__).parent / "tile_loop.pto").kernel("add")
    chip = profiles.load("a5")
    for _ in range(10):  # as in a process that has launched for a while
        add[1](x)
    seconds = median_own_seconds(lambda: add[1](x), 25) / calls
    bare = median_own_seconds(lambda: repeat(calls, np.add, a, a, a)) / calls
    results.add("TADD f32 64x64, Python, with checks", seconds, "np.add", bare, microseconds)
    seconds = median_own_seconds(lambda: text.run(chip, 1, {"x": x}), 25) / calls
    results.add("TADD f32 64x64, .pto loop, with checks", seconds, "np.add", bare, microseconds)


PUBLIC_SIMULATOR = {
    "add_f32_64x64": 0.60, "add_f32_128x128": 42, "add_f16_64x64": 0.63,
    "sort_f32_1x32": 0.67, "sort_f32_1x2048": 48, "sort_f32_4x2048": 245, "sort_f32_1x8192": 247,
    "sort_f16_1x32": 0.84, "sort_f16_1x2048": 58, "sort_f16_4x2048": 301, "sort_f16_1x8192": 301,
    "rowsum_f32_64x128": 0.48, "rowsum_f16_64x128": 0.96, "gather_index_64x64": 2.2, "gather_mask_64x64": 0.83,
}  # fmt: skip
"""Microseconds a call in the public C++ PTO simulator (pto-isa, include/pto/cpu; no trace, no checks): the best of its
default build and one with -march=native, measured on another machine, with 2 cores and AVX2."""


def make_machine_code() -> None:
    """Leave on disk what a process makes that spends a second in such calls."""
    import ascsim
    from ascsim.isa import lanewise
    from ascsim.machine.words import BLayout

    lanewise.WORTH_LOADING = lanewise.WORTH_MAKING = 0

    @ascsim.kernel
    def call(x, kind):
        src, tmp, out = (ascsim.tile(kind, 64, 128) for _ in range(3))
        ascsim.tload(src, x)
        dst = ascsim.tile(kind, 64, 1, blayout=BLayout.COL_MAJOR)
        for _ in range(2):
            ascsim.tadd(out, src, src)
            ascsim.trowsum(dst, src, tmp)

    for profile in ("a2a3", "cpu"):
        for kind, dtype in (("f32", np.float32), ("f16", np.float16)):
            call.on(profile).options(raise_on_error=False)(np.zeros((64, 128), dtype), kind)


def tiles_from_cpp(results: Results) -> None:
    """Tile instructions of a C++ kernel, a barrier after each, with checks, beside the public simulator."""
    from ascsim import checks
    from ascsim.frontends.cpp import session

    make_machine_code()
    with tempfile.TemporaryDirectory() as scratch:
        program, printed = Path(scratch) / "loop", Path(scratch) / "printed"
        for arch, profile in (("dav-2201", "a2a3"), ("cpu", "cpu")):
            source = Path(__file__).parent / "tile_loop.cpp"
            build = [*ASCSIM, "c++", str(source), "-O2", "-o", str(program), f"--npu-arch={arch}"]
            subprocess.run(build, check=True, capture_output=True)
            few, many = (
                statistics.median(
                    spent_by_processes(process([str(program), "add_f32_64x64", str(n)])) for _ in range(3)
                )
                for n in (1_000, 201_000)
            )
            bare = np.zeros((64, 64), np.float32)
            base = median_own_seconds(lambda a=bare: repeat(1000, np.add, a, a, a)) / 1000
            what = f"TADD f32 64x64, C++ on {profile}, a run with checks"
            results.add(what, (many - few) / 400_000, "np.add", base, microseconds)  # each runs twice as many
            for name, public in PUBLIC_SIMULATOR.items():
                calls = (
                    20_000 if public < 1 and "gather" not in name else 2_000
                )  # the checks have a part that is once a run
                with printed.open("w") as file:
                    outcome = session.run(program, [name, str(calls)], stdout=file)
                checked = median_own_seconds(lambda o=outcome: checks.run(o.trace, o.profile, o.sites), 1)
                outcome.close()
                ran = float(printed.read_text().split()[1]) * 1e-6
                what = f"{name.replace('_', ' ')}, C++ on {profile}"
                results.add(what, ran + checked / (2 * calls), "public simulator", public * 1e-6, microseconds)


def products(results: Results) -> None:
    """TMATMUL of 128 by 128 by 128, with checks, beside the public simulator's best figure."""
    import ascsim
    from ascsim import BLayout, Pipe, SLayout, Space

    calls, side = 100, 128
    nz = {"blayout": BLayout.COL_MAJOR, "slayout": SLayout.ROW_MAJOR}
    zn = {"blayout": BLayout.ROW_MAJOR, "slayout": SLayout.COL_MAJOR}

    @ascsim.kernel(arch="a5", core="aic")
    def multiply(x, sums, multiplications):
        mat = ascsim.tile(x.dtype, side, side, space=Space.L1, **nz)
        left = ascsim.tile(x.dtype, side, side, space=Space.L0A, **nz)
        right = ascsim.tile(x.dtype, side, side, space=Space.L0B, **zn)
        acc = ascsim.tile(sums, side, side, space=Space.L0C, fractal=1024, **nz)
        ascsim.tload(mat, x)
        ascsim.set_flag(Pipe.MTE2, Pipe.MTE1, 0)
        ascsim.wait_flag(Pipe.MTE2, Pipe.MTE1, 0)
        ascsim.tmov(left, mat)
        ascsim.tmov(right, mat)
        ascsim.set_flag(Pipe.MTE1, Pipe.M, 0)
        ascsim.wait_flag(Pipe.MTE1, Pipe.M, 0)
        for _ in range(multiplications):
            ascsim.tmatmul(acc, left, right)

    for kind, sums in (("float16", "f32"), ("float32", "f32"), ("int8", "i32")):
        x = np.random.default_rng(0).integers(-9, 10, (side, side)).astype(kind)
        few, many = (median_own_seconds(lambda x=x, s=sums, n=n: multiply[1](x, s, n), 5) for n in (calls, 2 * calls))
        what = f"TMATMUL {kind} 128x128x128, Python, with checks"
        results.add(what, (many - few) / calls, "public simulator", 1900e-6, microseconds)


LOOPS = {"load, load, interleave, store, store": 5, "load, load, add, store": 4, "load, load, compare, select, store": 5,
         "load, reduce, store": 3}  # fmt: skip
"""The bodies of ``register_loop.asc`` in its order, and how many instructions each has."""


def register_loop(results: Results) -> None:
    """A C++ kernel's loops over vector registers, all checks on, beside the same in plain C++: time of an instruction."""
    source = Path(__file__).parent / "register_loop.asc"
    few, many = 1_000, 2_001_000
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "loop"
        build = [*ASCSIM, "c++", str(source), "-O2", "-o", str(program), "--npu-arch=dav-3510"]
        subprocess.run(build, check=True, capture_output=True)
        for which, (body, instructions) in enumerate(LOOPS.items()):

            def seconds(turns: int, which: int = which) -> float:
                return median_seconds(process([str(program), str(turns), str(which)]), 3)

            figure = (seconds(many) - seconds(few)) / (many - few) / instructions
            told = [
                subprocess.run([str(program), "1", str(which)], check=True, capture_output=True, text=True).stdout
                for _ in range(3)
            ]
            plain = statistics.median(float(text.split()[text.split().index("plain_ns") + 1]) for text in told) * 1e-9
            results.add(f"{body}: a C++ kernel, all checks", figure, "plain C++ -O2", plain, nanoseconds)


def blocks_ahead(results: Results) -> None:
    """A launch of 8 blocks on two processors and on one, without checks: the wall says what is gained if both are free,
    the processor time of all its processes what that costs."""
    from ascsim.frontends.cpp import session
    from ascsim.machine import jobs

    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "blocks"
        build = [*ASCSIM, "c++", str(ROOT / "benchmarks/blocks.asc"), "-O2", "-o", str(program), "--npu-arch=dav-3510"]
        subprocess.run(build, check=True, capture_output=True)

        def measured(processors: int) -> tuple[float, float]:
            jobs.choose(processors)
            wall, own = [], []
            for _ in range(3):
                before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                session.run(program, ["8", "10000"]).close()
                wall.append(time.perf_counter() - began)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                own.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            return statistics.median(wall), statistics.median(own)

        two, one = measured(2), measured(1)
        jobs.choose(None)
    for what, figure, base in zip(("wall", "processor time"), two, one, strict=True):
        results.add(f"8 blocks of a C++ kernel, 2 jobs, {what}", figure, "1 job", base, milliseconds)


def cost_of_checks(results: Results) -> None:
    """Runs with all checks beside the same runs without any: a tile kernel, an expanded one, a long register loop."""
    import ascsim
    from ascsim import checks
    from ascsim.frontends.cpp import session

    calls = 500

    @ascsim.kernel(arch="a5")
    def add(x):
        a, c = ascsim.tile("f32", 64, 64), ascsim.tile("f32", 64, 64)
        ascsim.tload(a, x)
        ascsim.set_flag(ascsim.Pipe.MTE2, ascsim.Pipe.V, 0)
        ascsim.wait_flag(ascsim.Pipe.MTE2, ascsim.Pipe.V, 0)
        for _ in range(calls):
            ascsim.tadd(c, a, a)

    @ascsim.kernel(arch="a2a3")
    def sort(values, indices):
        src, idx = ascsim.tile("f32", 4, 512), ascsim.tile("u32", 1, 512)
        dst = ascsim.tile("f32", 4, 1024)
        ascsim.tload(src, values)
        ascsim.tload(idx, indices)
        ascsim.set_flag(ascsim.Pipe.MTE2, ascsim.Pipe.V, 0)
        ascsim.wait_flag(ascsim.Pipe.MTE2, ascsim.Pipe.V, 0)
        for _ in range(calls):
            ascsim.tsort32(dst, src, idx)
            ascsim.pipe_barrier(ascsim.Pipe.V)

    values = np.random.default_rng(0).standard_normal((4, 512)).astype(np.float32)
    indices = np.arange(512, dtype=np.uint32).reshape(1, 512)
    run_checks = checks.run
    for what, work in (
        ("TADD, Python", lambda: add[1](values.reshape(-1)[:4096].reshape(-1, 64)[:32].repeat(2, axis=0))),
        ("TSORT32, Python", lambda: sort[1](values, indices)),
    ):
        with_checks = median_seconds(work, 3)
        checks.run = lambda *_, **__: []
        without = median_seconds(work, 3)
        checks.run = run_checks
        results.add(f"{what}, all checks", with_checks, "no checks", without, milliseconds)

    source = Path(__file__).parent / "register_loop.asc"
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "loop"
        build = [*ASCSIM, "c++", str(source), "-O2", "-o", str(program), "--npu-arch=dav-3510"]
        subprocess.run(build, check=True, capture_output=True)
        outcome = session.run(program, ["400000"], stdout=subprocess.DEVNULL)
        checked = median_seconds(lambda: checks.run(outcome.trace, outcome.profile, outcome.sites), 3)
        outcome.close()

        def run() -> None:
            session.run(program, ["400000"], stdout=subprocess.DEVNULL).close()

        without = median_seconds(run, 3)
    results.add("register loop, C++, all checks", without + checked, "no checks", without, milliseconds)


def long_trace(instructions: int = 1_000_000) -> Trace:
    """Vector functions of two loads, two operations and a store a turn, a thousand rows each."""
    from ascsim.machine.trace import ACCESS, ROW, Kind, Trace

    rows = np.zeros(instructions, ROW)
    rows["pipe"], rows["parent"], rows["work"], rows["dtype"] = 1, -1, 1, 5
    turn = np.arange(instructions) % 5
    rows["mnemonic"], rows["n_access"] = turn + 1, np.isin(turn, (0, 1, 4))
    for edge, kind in ((0, Kind.VF_BEGIN), (999, Kind.VF_END)):
        rows["kind"][edge::1000], rows["n_access"][edge::1000] = kind, 0
    accesses = np.zeros(int(rows["n_access"].sum()), ACCESS)
    owner = np.repeat(turn, rows["n_access"])
    accesses["space"], accesses["length"], accesses["mode"] = 1, 256, np.where(owner == 4, 2, 1)
    accesses["start"] = np.arange(len(accesses)) * 256 % 131072
    names = [
        ("mnemonic", {"id": n, "name": name}) for n, name in enumerate(("vlds", "vlds", "vadd", "vmul", "vsts"), 1)
    ]
    return Trace(rows, accesses, np.zeros((0, 32), np.uint8), names)


def long_runs(results: Results) -> None:
    """Ten million instructions of a C++ kernel, run and checked, and timed: the largest of the processes."""
    commands = {"run and checked": "run", "timed": "time"}
    with tempfile.TemporaryDirectory() as scratch:
        program = str(Path(scratch) / "long_run")
        source = str(Path(__file__).parent / "long_run.asc")
        build = [*ASCSIM, "c++", source, "-O2", "-o", program, "--npu-arch=dav-3510"]
        subprocess.run(build, check=True, capture_output=True)
        for what, word in commands.items():
            command = [*ASCSIM, word, program, "--"]
            subprocess.run([*command, "10000"], check=True, capture_output=True)
            peak = peak_memory([*command, "2500000"])
            results.add(f"10 million instructions, {what}: peak memory", peak, "1 GiB", 1 << 30, gibibytes)


def peak_memory(command: list[str]) -> int:
    """The bytes of the largest process of a command, which has to succeed."""
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    assert started.returncode == 0, command
    return used.ru_maxrss * 1024


def gibibytes(count: float) -> str:
    """``0.53 GiB``."""
    return f"{count / (1 << 30):.2f} GiB"


def timing(results: Results) -> None:
    """The schedule of a million instructions and what it comes to, beside the checks of the same trace."""
    from ascsim import checks, profiles
    from ascsim.timing import schedule
    from ascsim.timing.summary import summarize

    chip, trace = profiles.load("a5"), long_trace()

    def sites(number: int, flags: int) -> None:
        return None

    base = median_seconds(lambda: checks.run(trace, chip), 3)
    figure = median_seconds(lambda: summarize(schedule(trace, chip), sites), 3)
    results.add("time of 1,000,000 instructions", figure, "checking them", base, milliseconds)


def report_page(results: Results) -> None:
    """The report page of 100,000 instructions of one core: written, and zoomed in a browser, if there is one.

    All bars are in view as the zoom begins. It should take no more than 100 ms, so that it feels immediate.
    """
    sys.path.insert(0, str(ROOT / "tests"))
    from ascsim import profiles
    from ascsim.report import page
    from ascsim.timing import schedule
    from report.page.browser import ask, executable

    chip, trace = profiles.load("a5"), long_trace(100_000)
    shown = page.Shown("kernel", chip, trace, [], "manual", lambda number, flags: None, schedule(trace, chip))
    text = page.html([shown], "kernel")
    scheduled = median_seconds(lambda: schedule(trace, chip), 3)
    written = median_seconds(lambda: page.html([shown], "kernel"), 3)
    results.add(
        f"page of 100,000 instructions ({len(text) / 1e6:.1f} MB)", written, "their schedule", scheduled, milliseconds
    )
    if executable() is None:
        return
    script = """
        const times = [], {view, timeline, memory} = ascsim;
        for (let n = 0; n < 40; n++) {
          const begin = performance.now();
          n % 20 ? view.zoom(n < 20 ? 0.7 : 1 / 0.7) : view.fit();
          ascsim.drawNow();
          for (const part of [timeline, memory]) part.canvas.getContext("2d").getImageData(0, 0, 1, 1); // until it is drawn
          times.push(performance.now() - begin);
        }
        return times;"""
    with tempfile.TemporaryDirectory() as scratch:
        times, _ = ask(Path(scratch), text, script)
    for what, figure in (
        ("a zoom of that page, median", statistics.median(times)),
        ("a zoom of that page, worst", max(times)),
    ):
        results.add(what, figure / 1e3, "immediate", 0.1, milliseconds)


GROUPS = {
    "start": start_up, "edit": edit_to_verdict, "sort": sorting, "tile": tile_overhead, "tiles": tiles_from_cpp,
    "cube": products,
    "register": register_loop, "long": long_runs, "blocks": blocks_ahead,
    "checks": cost_of_checks,
    "time": timing, "page": report_page,
}  # fmt: skip


def main() -> None:
    """Run all groups, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", help=f"which of {', '.join(GROUPS)} (default: all)")
    chosen = parser.parse_args().groups or list(GROUPS)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # with it every start parses what a user has compiled
    results, console = Results(), Console(width=120)
    for name in chosen:
        with console.status(name):
            GROUPS[name](results)
    console.print(results.table)


if __name__ == "__main__":
    main()
