"""The compiler driver: the vendor's command line, carried out with the host's own compiler.

A source is compiled up to three times: for the host, for AIV and for AIC. The device objects travel inside the host
object (section ``.ascsim.device``), so that object files, static libraries and build systems work as ever. Linking
makes one file that is three things: a shared object that the runtime loads, a program that starts the runtime when it
is executed (``stub.c``), and a carrier of the device images, which stand behind its end (:mod:`.image`).
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import ascsim
from ascsim import profiles, scratch
from ascsim.cache import cache_directory, prune, write_atomically
from ascsim.diagnostics import UserError
from ascsim.frontends.cpp.arguments import CommandLine, Source, parse
from ascsim.frontends.cpp.compilers import Compiler, find_compiler
from ascsim.frontends.cpp.elf import ElfFile, add_section, silence_initialisers
from ascsim.frontends.cpp.generate import headers, headers_hash
from ascsim.frontends.cpp.image import (
    SECTION,
    Frame,
    Image,
    StaleError,
    append_images,
    load_image,
    unpack_frames,
)
from ascsim.frontends.cpp.messages import Message, original_column, parse_messages, render
from ascsim.frontends.cpp.objects import ObjectCache, digest_of
from ascsim.frontends.cpp.precompiled import Precompiled, dependencies, precompiled
from ascsim.frontends.cpp.sources import Prepared, prepare
from ascsim.profiles import Profile

__all__ = [
    "BuildOptions",
    "BuildResult",
    "CompileError",
    "LinkError",
    "build",
    "compile_program",
    "load_image",
    "macros",
    "survey",
]

HERE = Path(__file__).parent
HEADERS = HERE / "include"
PRELUDE = ("ascsim/prelude.hpp", "ascsim/launch.hpp")
EXPORTS = ("ascsim/exports.hpp",)
SIDES = {"host": 0, "aiv": 1, "aic": 2}

# What each compilation defines, beside ASCSIM_SIDE and ASCSIM_TU. The chips' own words are those of the vendor's
# compiler: on the host it defines neither __CCE_AICORE__ nor __NPU_ARCH__. MEMORY_BASE and REGISTER_BASE are what
# the build files of the PTO library pass. A portable program has one side, which is both cores.
_ALL_PASSES: dict[str, dict[str, str]] = {
    "a2a3": {"ASCSIM_PROFILE_A2A3": "1", "ASCSIM_NPU_ARCH": "2201", "MEMORY_BASE": "1"},
    "a5": {"ASCSIM_PROFILE_A5": "1", "ASCSIM_NPU_ARCH": "3510", "REGISTER_BASE": "1"},
    "cpu": {"ASCSIM_PROFILE_CPU": "1", "ASCSIM_NPU_ARCH": "0", "__CPU_SIM": "1"},
}
_DEVICE_PASSES: dict[tuple[str, str], dict[str, str]] = {
    ("a2a3", "aiv"): {"__DAV_VEC__": "1", "__DAV_C220_VEC__": "1", "__CCE_AICORE__": "220", "__NPU_ARCH__": "2201"},
    ("a2a3", "aic"): {"__DAV_CUBE__": "1", "__DAV_C220_CUBE__": "1", "__CCE_AICORE__": "220", "__NPU_ARCH__": "2201"},
    ("a5", "aiv"): {"__DAV_VEC__": "1", "__DAV_C310_VEC__": "1", "__CCE_AICORE__": "310", "__NPU_ARCH__": "3510"},
    ("a5", "aic"): {"__DAV_CUBE__": "1", "__DAV_C310_CUBE__": "1", "__CCE_AICORE__": "310", "__NPU_ARCH__": "3510"},
    ("cpu", "aiv"): {"__DAV_VEC__": "1", "__DAV_CUBE__": "1"},
    ("cpu", "host"): {"__DAV_VEC__": "1", "__DAV_CUBE__": "1"},
}
_MARKS_OF_DEVICE_PASS = {"__CCE_IS_AICORE__": "1"}

# Kernels are found by address and name: no two may be merged, none may be shared between images.
_POSITION = ("-fPIC", "-fno-semantic-interposition")
_OF_GCC = ("-fno-gnu-unique", "-fno-ipa-icf")
_OF_ZIG = ("-fno-sanitize=undefined",)
# Line tables of DWARF 4: some releases of binutils take the wrong file from those of DWARF 5 after a #line.
_LINES = ("-g1", "-gdwarf-4")
_OF_DEVICE = ("-O1", *_LINES, "-fno-strict-aliasing", "-w")
# Where variables are at each instruction, which nobody asks, takes a sixth of the time.
_OF_GCC_FOR_DEVICE = ("-fno-var-tracking",)
# The host sees device functions without their bodies.
_OF_BLANKED_HOST = ("-Wno-unused-parameter", "-Wno-unused-function", "-Wno-unused-const-variable")
# The sanitizer sees calls of the C library's copies, but not what g++ puts in the place of one.
_COPIES = ("memcpy", "memmove", "memset")
_SCALAR_TRACE = {
    "gcc": (
        "-fsanitize=thread",
        "--param=tsan-instrument-func-entry-exit=0",
        *(f"-fno-builtin-{name}" for name in _COPIES),
    ),
    "clang": ("-fsanitize=thread", "-mllvm", "-tsan-instrument-func-entry-exit=0"),
    "zig": ("-fsanitize=thread", "-mllvm", "-tsan-instrument-func-entry-exit=0"),
}
# The C++ library is there when an image is loaded, and to read its names takes longer than all else in linking one.
_LIBRARIES_OF_DEVICE = {"gcc": ("-nodefaultlibs", "-lgcc", "-lm", "-lc"), "clang": (), "zig": ()}
# Libraries that cannot be where a program's main function comes from.
_SYSTEM_LIBRARIES = ("libstdc++.", "libc++", "libm.", "libgcc_s.", "libc.", "libdl.", "libpthread.", "librt.", "ld-")


class CompileError(UserError):
    """The host compiler refused the user's source.

    ``text`` is its word in the user's terms, ``messages`` the same as data, ``raw`` all that it printed.
    """

    def __init__(self, text: str, raw: str, messages: Sequence[Message], sources: Sequence[Path]) -> None:
        count = len({(message.path, message.line, message.text) for message in messages})
        errors = f": {count} error{'s' * (count > 1)}" if count else ""
        verb = "does" if len(sources) == 1 else "do"
        super().__init__(f"{', '.join(map(str, sources))} {verb} not compile{errors}\n{text}", status=1)
        self.text = text
        self.raw = raw
        self.messages = tuple(messages)


class LinkError(UserError):
    """The linker refused; ``raw`` is all it printed."""

    def __init__(self, text: str, raw: str = "") -> None:
        super().__init__(text, status=1)
        self.raw = raw


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """How to build, beyond the command line.

    Attributes:
        npu_arch: the profile's name or alias where the command line names none.
        keep: a directory that gets the rewritten files and the commands.
        export_kernels: make kernels callable by name (:mod:`.exports`), for callers without a host program.
        scalar_trace: let device code call the runtime library before it reads or writes through a pointer.
        headers: directories of ascsim's headers; by default those written by hand and those made for the profile.
        prelude: the headers that every file with device code includes first.
        runtime_library: a library that defines what programs need of the runtime. With it a name that nobody
            defines is an error of the linker's; without it one of the loader's.
        cache: where objects are kept, None for nowhere.
        compiler: the host compiler; found when None.
        python: the interpreter that a linked program starts.
        meanwhile: called with the names of called instructions, as far as the source pass sees them, once the compilers
            are at work, or it is known that they are not needed.
    """

    npu_arch: str | None = None
    keep: Path | None = None
    export_kernels: bool = False
    scalar_trace: bool = True
    headers: tuple[Path, ...] | None = None
    prelude: tuple[str, ...] = PRELUDE
    runtime_library: Path | None = None
    cache: Path | None = field(default_factory=cache_directory)
    compiler: Compiler | None = None
    python: str = sys.executable
    meanwhile: Callable[[frozenset[str]], object] = lambda names: None


@dataclass(frozen=True)
class BuildResult:
    """What was built. ``messages`` are the compiler's warnings, ``notes`` what ascsim has to say of the options."""

    outputs: tuple[Path, ...]
    commands: tuple[str, ...]
    messages: str
    notes: tuple[str, ...]


def macros(profile: str, side: str) -> dict[str, str]:
    """The macros that a compilation of ``side`` (``host``, ``aiv``, ``aic``) defines for a profile.

    ``profile`` may be empty: a host file that was compiled without an architecture.
    """
    found = {"__ASCSIM__": "1", "ASCSIM_SIDE": str(SIDES[side]), **_ALL_PASSES.get(profile, {})}
    found |= _DEVICE_PASSES.get((profile, side), {})
    if side != "host" and profile != "cpu":
        found |= _MARKS_OF_DEVICE_PASS
    return found


def include_flags(npu_arch: str) -> list[str]:
    """What a bare compiler needs besides a rewritten host file that ``keep`` left: macros, directories, headers."""
    profile = profiles.find(npu_arch)
    defined = macros(profile.name, "host") | {"ASCSIM_TU": "0"}
    return [*_include_flags(defined, _own_headers(profile)), *_prelude_flags(PRELUDE)]


def _include_flags(defined: dict[str, str], directories: Sequence[Path]) -> list[str]:
    return [
        *(f"-D{name}={value}" for name, value in defined.items()),
        *(f"-I{directory}" for directory in directories),
    ]


def _prelude_flags(prelude: Sequence[str]) -> list[str]:
    return [word for header in prelude for word in ("-include", header)]


def build(arguments: Sequence[str], options: BuildOptions | None = None) -> BuildResult:
    """Carry out a command line of the vendor's compiler: ``a.asc b.cpp c.o -o main --npu-arch=dav-3510 -Iinc -O2``.

    Raises:
        UserError: an argument is wrong, or device code is compiled without an architecture.
        CompileError: the source has errors.
        LinkError: the program cannot be linked.
    """
    return _Build(parse(list(arguments)), options or BuildOptions()).run(list(arguments))


def survey(arguments: Sequence[str], options: BuildOptions | None = None) -> tuple[Prepared, ...]:
    """What the source pass finds in the sources of a command line: kernels, launches and the instructions called.

    Nothing is compiled, so no compiler is needed.

    Raises:
        UserError: an argument is wrong, a file cannot be read, or the source pass refuses it.
    """
    return _Build(parse(list(arguments)), options or BuildOptions()).survey()


def compile_program(
    sources: Sequence[str | Path],
    npu_arch: str,
    *,
    flags: Sequence[str] = (),
    output: Path | None = None,
    shared: bool = False,
    options: BuildOptions | None = None,
) -> Path:
    """Build sources into a program (or a library of kernels, ``shared``) and return its path.

    Without ``output`` the program stands in the cache directory, at a place of its own for these sources and flags, and
    is linked again only when something changed.
    """
    options = options or BuildOptions()
    if output is None:
        names = [str(Path(source).absolute()) for source in sources]
        what = repr((names, npu_arch, tuple(flags), shared, options.export_kernels))
        place = hashlib.sha256(what.encode()).hexdigest()[:16]
        output = cache_directory() / "programs" / place / Path(sources[0]).stem
        output.parent.mkdir(parents=True, exist_ok=True)
    mode = ["-shared"] if shared else []
    words = [*map(str, sources), *mode, *flags, "-o", str(output), f"--npu-arch={npu_arch}"]
    return build(words, options).outputs[0]


@dataclass(frozen=True)
class _Job:
    """One call of the compiler: a side of a unit.

    ``start`` is the compiler with what is of this unit alone, ``flags`` what other units may be compiled with too. The
    ``prelude`` is included before the text; a precompiled header has it together with the text's first includes, the
    ``lines``. Without ``lines`` there is none.
    """

    side: str
    start: tuple[str, ...]
    flags: tuple[str, ...]
    text: Path
    language: str = "c++"
    prelude: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    def command(self, first: Sequence[str] | None = None) -> tuple[str, ...]:
        """The command; ``first`` are flags that include the prelude, by default header by header."""
        prelude = _prelude_flags(self.prelude) if first is None else first
        return (*self.start, *prelude, *self.flags, "-x", self.language, str(self.text))


@dataclass(frozen=True)
class _Compiled:
    """What a call left: the object (empty after an error), what was printed, the files it read, the cache key."""

    side: str
    object: bytes
    printed: str
    failed: bool
    key: str
    files: tuple[Path, ...]


@dataclass(frozen=True)
class _Object:
    """A source's host object, its device frames, a key that changes with any input, and the files it read."""

    source: Source
    host: bytes
    frames: tuple[Frame, ...]
    key: str
    files: tuple[Path, ...]


class _Build:
    """One build: the command line, the compiler, and a directory for what is in between."""

    def __init__(self, line: CommandLine, options: BuildOptions) -> None:
        self.line = line
        self.options = options
        self.commands: list[str] = []
        self.warnings: list[Message] = []
        self.keep = line.keep or options.keep
        self.scalar_trace = line.scalar_trace and options.scalar_trace
        name = line.arch or options.npu_arch
        self.profile: Profile | None = profiles.find(name) if name else None
        self.headers = _own_headers(self.profile) if options.headers is None else options.headers
        self.work = Path()
        self.pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
        self.finding: Future[Compiler]
        self.begun = threading.Semaphore(0)

    @cached_property
    def compiler(self) -> Compiler:
        """The host compiler."""
        return self.options.compiler or self.finding.result()

    def survey(self) -> tuple[Prepared, ...]:
        """Every source after the source pass."""
        with scratch.directory("build") as self.work:
            return tuple(self._pass_over(source) for source in self.line.sources)

    def run(self, arguments: list[str]) -> BuildResult:
        if self.line.query and not self.line.has_inputs:
            return self._pass_through(arguments)
        if not self.line.has_inputs:
            raise UserError("there is nothing to build: name a source (.asc, .cpp, ...) or an object file")
        with scratch.directory("build") as self.work, self.pool:
            if self.options.compiler is None:  # it is asked for its version while the source pass is at work
                self.finding = self.pool.submit(find_compiler)
            outputs = self._outputs()
        if self.keep is not None:
            write_atomically(self.keep / "commands.txt", "".join(f"{command}\n" for command in self.commands).encode())
        return BuildResult(tuple(outputs), tuple(self.commands), render(self.warnings), tuple(self.line.notes))

    def _outputs(self) -> list[Path]:
        line = self.line
        if line.mode == "text":
            return self._texts()
        if line.mode == "compile" and line.output is not None and len(line.sources) > 1:
            raise UserError("-c with -o takes one source: give one, or leave out -o")
        compiled = self._compile_all(line.sources)
        if line.mode == "compile":
            return [self._write_object(entry) for entry in compiled]
        if line.mode == "archive":
            return [self._archive([self._framed(entry) for entry in compiled])]
        return [self._link(compiled)]

    def _pass_through(self, arguments: list[str]) -> BuildResult:
        """A question to the compiler (``--version``) is answered by the compiler."""
        printed = self._run([*self.compiler.command, *arguments])
        return BuildResult((), tuple(self.commands), printed.stdout + printed.stderr, ())

    # -- compiling ---------------------------------------------------------------------------------------------------

    def _compile_all(self, sources: list[Source]) -> list[_Object]:
        """All sources: the source pass first, then every call of the compiler side by side."""
        plans = [(source, *self._plan(source)) for source in sources]
        calls = [[self.pool.submit(self._run_job, job) for job in jobs] for _, _, jobs in plans]
        for _ in range(min(sum(map(len, calls)), os.cpu_count() or 1)):
            self.begun.acquire()
        self.options.meanwhile(frozenset(call.name for _, unit, _ in plans if unit for _, call in unit.calls))
        compiled = [[call.result() for call in of_source] for of_source in calls]
        self._report([(source, unit) for source, unit, _ in plans], compiled)
        return [self._object(source, unit, done) for (source, unit, _), done in zip(plans, compiled, strict=True)]

    def _plan(self, source: Source) -> tuple[Prepared | None, list[_Job]]:
        """The unit after the source pass, and the calls that it needs."""
        unit = self._prepare(source)
        if unit is None:
            return None, [self._plain_c_job(source)]
        return unit, [self._job(unit, source, side) for side in self._sides(unit)]

    def _object(self, source: Source, unit: Prepared | None, compiled: list[_Compiled]) -> _Object:
        files = tuple(unit.originals.get(str(file), file) if unit else file for file in compiled[0].files)
        key = "-".join(entry.key for entry in compiled)
        frames = self._frames(unit, source, compiled) if unit is not None else []
        return _Object(source, compiled[0].object, tuple(frames), key, files)

    def _framed(self, entry: _Object) -> Path:
        """A file with the host object that carries its device frames."""
        place = self._host_object(entry)
        if entry.frames:
            add_section(place, SECTION, b"".join(frame.pack() for frame in entry.frames))
        return place

    def _host_object(self, entry: _Object) -> Path:
        """A file with the host object alone."""
        place = Path(tempfile.mkdtemp(dir=self.work), f"{entry.source.path.stem}.o")
        place.write_bytes(entry.host)
        return place

    def _write_object(self, entry: _Object) -> Path:
        output = self.line.output or Path(entry.source.path.stem + ".o")
        write_atomically(output.absolute(), self._framed(entry).read_bytes())
        self._write_dependencies(output, entry.files)
        return output

    def _prepare(self, source: Source) -> Prepared | None:
        """The unit after the source pass; None for C, which has no launches and no templates to make them of.

        A ``.c`` file is C unless it holds device code (or ``-x`` says otherwise): then it is C++, like any other.
        """
        unit = self._pass_over(source)
        if self.keep is not None:
            for side, text in (("host", unit.host_text), ("device", unit.device_text)):
                name = f"{source.path.stem}.{side}.cpp"
                write_atomically(self.keep / name, text.encode("utf-8", "surrogateescape"))
        return None if source.language == "c" and not unit.has_device_code else unit

    def _pass_over(self, source: Source) -> Prepared:
        return prepare(
            source.path,
            self.line.include_dirs,
            self._overlay(),
            own_headers=self.headers,
            device_calls_are_launches=self.profile is not None and not self.profile.is_chip,
            export_kernels=self.options.export_kernels,
        )

    def _overlay(self) -> Path:
        place = (self.options.cache or self.work) / "overlay"
        prune(place)
        return place

    def _sides(self, unit: Prepared) -> list[str]:
        """The compilations that a unit needs.

        Without a chip a file that merely includes device code (a test of the vendor's that includes the library's
        headers) is host code.
        """
        if self.profile is None:
            if unit.rewritten.has_device_code and not self.line.host_only:
                raise UserError(
                    f"{unit.path} has device code: name the chip that it is for, for example --npu-arch=dav-3510"
                )
            return ["host"]
        if self.line.host_only or not unit.has_device_code:
            return ["host"]
        if not self.profile.is_chip:
            return ["host", "aiv"]
        if self.line.sides is not None:
            return ["host", *self.line.sides]
        return ["host", "aiv", "aic"] if unit.uses_aic else ["host", "aiv"]

    def _job(self, unit: Prepared, source: Source, side: str) -> _Job:
        line, kind = self.line, self.compiler.kind
        text = unit.host if side == "host" else unit.device
        defined = macros(self.profile.name if self.profile else "", side)
        has_words = self.profile is not None and (unit.has_device_code or source.language == "device")
        prelude = self.options.prelude if has_words else ()
        if has_words and self.options.export_kernels:
            prelude = (*prelude, *EXPORTS)
        path = source.path.absolute()
        start = (*self.compiler.command, f"-DASCSIM_TU={self._unit_hash(source)}", "-iquote", str(path.parent))
        has_standard = any(flag.startswith("-std=") for flag in line.compile_flags)
        # ascsim's headers stand before the user's -I, where a build file may name the vendor's headers of those names.
        flags = [
            *_POSITION,
            *(_OF_GCC if kind == "gcc" else ()),
            *(_OF_ZIG if kind == "zig" else ()),
            *(() if has_standard else ("-std=c++17",)),
            *_include_flags(defined, self.headers),
            *line.compile_flags,
        ]
        if side == "host":
            flags += ["-v"] if line.verbose else []
            flags += [*_LINES, *line.host_flags, *(_OF_BLANKED_HOST if unit.has_device_code else ())]
        else:
            flags += [*line.device_flags, *_OF_DEVICE, *(_OF_GCC_FOR_DEVICE if kind == "gcc" else ())]
            flags += _SCALAR_TRACE[kind] if self.scalar_trace else ()
        lines = (*(f'#include "{header}"' for header in prelude), *unit.first_includes) if prelude else ()
        return _Job(side, start, tuple(flags), text, prelude=prelude, lines=lines if self._may_precompile() else ())

    def _may_precompile(self) -> bool:
        """Whether a precompiled header means the same as its text; what is included by option comes before the text."""
        line = self.line
        flags = {*line.compile_flags, *line.device_flags, *line.host_flags}
        return self.compiler.kind == "gcc" and not line.verbose and not flags & {"-include", "-imacros"}

    def _plain_c_job(self, source: Source) -> _Job:
        kept = [flag for flag in self.line.compile_flags if not flag.startswith("-std=c++") and flag != "-std=gnu++17"]
        own = [f"-I{directory}" for directory in self.headers]
        path = source.path.absolute()
        verbose = ("-v",) if self.line.verbose else ()
        flags = (*verbose, "-fPIC", *own, *kept, *self.line.host_flags)
        return _Job("host", self.compiler.command, flags, path, "c")

    def _unit_hash(self, source: Source) -> str:
        """The same in all compilations of a unit, different in two units: equal lambdas of two files stay apart."""
        what = repr((str(source.path.absolute()), self.line.compile_flags))
        return f"0x{hashlib.sha256(what.encode()).hexdigest()[:16]}ULL"

    def _run_job(self, job: _Job) -> _Compiled:
        """Compile, or take the object from the cache."""
        under_way = threading.Event()

        def begin() -> None:
            if not under_way.is_set():
                under_way.set()
                self.begun.release()

        try:
            return self._compile_or_find(job, begin)
        finally:
            begin()

    def _compile_or_find(self, job: _Job, begin: Callable[[], object]) -> _Compiled:
        key = digest_of(self.compiler.version, *job.command(), job.text.read_bytes())
        cache = ObjectCache(self.options.cache)
        cached = cache.find(key) if not self.line.verbose else None
        if cached is not None:
            if self.keep is not None:  # which has the commands of all files, compiled now or before
                self.commands.append(shlex.join([*job.command(), "-c"]))
            return _Compiled(job.side, cached.object, cached.printed, False, cached.key, cached.files)
        with tempfile.TemporaryDirectory(dir=self.work) as directory:
            place, listed = Path(directory, "unit.o"), Path(directory, "unit.d")
            done = self._compile(job, ["-c", "-o", str(place), "-MD", "-MF", str(listed)], begin)
            if done.returncode != 0:
                return _Compiled(job.side, b"", done.stderr, True, key, ())
            files = dependencies(listed)
            if self.options.cache is not None:  # the objects stay what they are without the precompiled header
                files = tuple(file for file in files if not file.is_relative_to(self.options.cache / "precompiled"))
            content = place.read_bytes()
        return _Compiled(job.side, content, done.stderr, False, cache.keep(key, content, done.stderr, files), files)

    def _compile(self, job: _Job, what: Sequence[str], begin: Callable[[], object]) -> subprocess.CompletedProcess[str]:
        """Call the compiler with a precompiled header where there is one, with the text where there is none.

        A source with errors is compiled with the text as well, whose messages are the ones to show.
        """
        header = self._precompiled(job)
        if header is not None and header.is_ready():
            done = self._run([*job.command(header.flags), *what], begin)
            if done.returncode == 0:
                return done
        elif header is not None:
            header.ask_for([*self.compiler.command, *job.flags], job.lines)
        return self._run([*job.command(), *what], begin)

    def _precompiled(self, job: _Job) -> Precompiled | None:
        if self.options.cache is None or not job.lines:
            return None
        return precompiled(self.options.cache, self.compiler.version, [*self.compiler.command, *job.flags], job.lines)

    def _frames(self, unit: Prepared, source: Source, compiled: list[_Compiled]) -> list[Frame]:
        if not unit.has_device_code or self.profile is None:
            return []
        common = {
            "source": str(source.path.absolute()),
            "profile": self.profile.name,
            "headers": headers_hash(),
            "scalar_trace": self.scalar_trace,
        }
        kernels = [asdict(kernel) | {"source": str(path)} for path, kernel in unit.kernels]
        described = Frame({**common, "side": "host", "kernels": kernels}, b"")
        return [described, *(Frame({**common, "side": c.side}, c.object) for c in compiled if c.side != "host")]

    def _report(self, units: list[tuple[Source, Prepared | None]], compiled: list[list[_Compiled]]) -> None:
        """Keep warnings, raise errors, both in the user's terms."""
        errors: list[Message] = []
        for (_, unit), of_source in zip(units, compiled, strict=True):
            for entry in of_source:
                found = parse_messages(entry.printed, self.headers)
                if unit is not None:
                    text = unit.host_text if entry.side == "host" else unit.device_text
                    found = _without_consequences(found, [_with_user_column(message, unit, text) for message in found])
                if entry.failed:
                    errors += [message for message in found if message.is_error]
                self.warnings += [message for message in found if message.kind == "warning"]
        failed = [
            source.path for (source, _), calls in zip(units, compiled, strict=True) if any(c.failed for c in calls)
        ]
        if failed:
            raw = "".join(entry.printed for of_source in compiled for entry in of_source if entry.failed)
            raise CompileError(render(errors) or raw.strip(), raw, errors, failed)

    def _write_dependencies(self, output: Path, files: Iterable[Path]) -> None:
        """The dependency file that a build system asked for; it names the user's files, not the rewritten copies."""
        words = self.line.dependency_flags
        if not any(word in ("-MD", "-MMD") for word in words):
            return
        values = dict(pairwise(words))
        target = values.get("-MT") or values.get("-MQ") or str(output)
        rows = " \\\n ".join(name.replace(" ", "\\ ") for name in dict.fromkeys(map(str, files)))
        place = Path(values.get("-MF") or output.with_suffix(".d"))
        write_atomically(place.absolute(), f"{target}: {rows}\n".encode())

    def _texts(self) -> list[Path]:
        """``-E``, ``-S``, ``-M``: the host compilation's answer."""
        outputs, printed = [], ""
        for source in self.line.sources:
            unit = self._prepare(source)
            job = self._job(unit, source, "host") if unit is not None else self._plain_c_job(source)
            to = ["-o", str(self.line.output)] if self.line.output is not None else []
            done = self._run([*job.command(), *self.line.text_flags, *to])
            if done.returncode != 0:
                raise CompileError(done.stderr.strip(), done.stderr, (), [source.path])
            printed += done.stdout
            outputs += [self.line.output] if self.line.output is not None else []
        sys.stdout.write(printed)
        return outputs

    # -- linking -----------------------------------------------------------------------------------------------------

    def _archive(self, objects: list[Path]) -> Path:
        output = self.line.output or Path("a.a")
        output.unlink(missing_ok=True)
        done = self._run([*self.compiler.archiver, "rcs", str(output), *map(str, objects)])
        if done.returncode != 0:
            raise LinkError(f"the static library {output} could not be made: {done.stderr.strip()}", done.stderr)
        return output

    def _link(self, compiled: list[_Object]) -> Path:
        line, options = self.line, self.options
        is_program = line.mode == "link"
        output = (line.output or Path("a.out")).absolute()
        inputs = (*(entry.key for entry in compiled), *line.link_flags)
        key = digest_of(*inputs, options.python, ascsim.__version__, headers_hash())
        has_sources_only = len(compiled) == len(line.link)
        if has_sources_only and not line.link_flags and _is_up_to_date(output, key):
            return line.output or output
        command = [*self.compiler.command, "-shared", "-Wl,-Bsymbolic", "-Wl,-z,lazy"]
        if is_program:
            command += ["-Wl,-e,ascsim_start", "-Wl,-u,main"]
        stub = [self._stub()] if is_program else []
        more = [*line.link_flags, *(["-v"] if line.verbose else [])]
        if options.runtime_library is not None:
            more += [str(options.runtime_library), "-Wl,-z,defs"]
        linked = self.work / "linked"
        # What device code there is shows in the linked file: an archive gives some of its members. Without archives it
        # is known before: both are linked at once, and what an edit has not changed need not be linked again.
        if has_sources_only:
            frames = [frame for entry in compiled for frame in entry.frames]
            linking = self.pool.submit(self._link_devices, frames)
            objects = [*stub, *map(self._host_object, compiled)]
            done = self._link_kept(command, objects, more, linked, is_kept=not more)
        else:
            files = {entry.source: self._framed(entry) for entry in compiled}
            items = [str(files[item]) if isinstance(item, Source) else item for item in line.link]
            done = self._run([*command, *map(str, stub), *items, *more, "-o", str(linked)])
        if done.returncode != 0:
            raise LinkError(_linker_message(done.stderr), done.stderr)
        file = ElfFile.read(linked)
        if not has_sources_only:
            section = file.section(SECTION)
            frames = list(unpack_frames(file.content(section))) if section is not None else []
            for frame in frames:
                if frame.header.get("headers") != headers_hash():
                    raise StaleError(f"the object file of {Path(frame.header['source']).name}")
        has_main = file.defines("main")
        if is_program and not has_main and all(name.startswith(_SYSTEM_LIBRARIES) for name in file.needed):
            raise LinkError(
                "the program has no main function. Add the file or library that defines it, or build a library with "
                "-shared (or objects with -c)"
            )
        images = linking.result() if has_sources_only else self._link_devices(frames)
        append_images(linked, images, self._description(frames, self._libraries(file), has_main, key))
        linked.chmod(0o755)
        staged = output.with_name(f".{output.name}.{os.getpid()}.tmp")
        shutil.copy(linked, staged)
        os.replace(staged, output)
        return line.output or output

    def _link_kept(
        self, command: Sequence[str], objects: Sequence[Path], more: Sequence[str], output: Path, *, is_kept: bool
    ) -> subprocess.CompletedProcess[str]:
        """Link objects into ``output``, or take from the cache what was made of the same ones."""
        words = [*command, *map(str, objects), *more, "-o", str(output)]
        key = digest_of("link", self.compiler.version, *command, *more, *(path.read_bytes() for path in objects))
        cache = ObjectCache(self.options.cache if is_kept else None)
        cached = cache.find(key)
        if cached is not None:
            if self.keep is not None:  # which has all commands, carried out now or before
                self.commands.append(shlex.join(words))
            output.write_bytes(cached.object)
            return subprocess.CompletedProcess(words, 0, "", "")
        done = self._run(words)
        if done.returncode == 0:
            cache.keep(key, output.read_bytes(), "", ())
        return done

    def _link_devices(self, frames: list[Frame]) -> dict[str, bytes]:
        """One image a side. What only the host has stays undefined in it; its initialisers are silenced."""
        by_side: dict[str, list[Path]] = {}
        for index, frame in enumerate(frames):
            if frame.payload:
                place = self.work / f"device-{index}.o"
                place.write_bytes(frame.payload)
                by_side.setdefault(frame.header["side"], []).append(place)
        return {side: self._link_device(side, objects) for side, objects in by_side.items()}

    def _link_device(self, side: str, objects: list[Path]) -> bytes:
        image = self.work / f"{side}.so"
        command = [*self.compiler.command, "-shared", "-Wl,-Bsymbolic", "-Wl,-z,lazy"]
        if self.scalar_trace:  # g++ leaves these calls to the sanitizer's own library
            command += [f"-Wl,--wrap={name}" for name in _COPIES]
        done = self._link_kept(command, objects, _LIBRARIES_OF_DEVICE[self.compiler.kind], image, is_kept=True)
        if done.returncode != 0:
            raise LinkError(f"linking the device code ({side}) failed: {_linker_message(done.stderr)}", done.stderr)
        silence_initialisers(image)
        return image.read_bytes()

    def _libraries(self, file: ElfFile) -> dict[str, Image]:
        """The shared libraries that the program needs and that carry images, by the name that the loader knows."""
        words = [item for item in self.line.link if isinstance(item, str)]
        directories = [Path(word[2:]) for word in words if word.startswith("-L")]
        named = [f"lib{word[2:]}.so" for word in words if word.startswith("-l")]
        candidates = [Path(word) for word in words if not word.startswith("-")]
        candidates += [directory / name for name in (*named, *file.needed) for directory in directories]
        found: dict[str, Image] = {}
        for path in candidates:
            try:
                image = load_image(path)
            except StaleError:
                raise
            except UserError:  # not a library of ascsim's
                continue
            # Without a name of its own a library is asked for by the path that it was linked by, or by its file's name.
            name = ElfFile.read(path).soname
            for known in (name,) if name else (str(path), path.name):
                if known in file.needed:
                    image.check_is_current()
                    found.setdefault(known, image)
        return found

    def _description(
        self, frames: list[Frame], libraries: dict[str, Image], has_main: bool, key: str
    ) -> dict[str, Any]:
        where = {frame.header["profile"]: Path(frame.header["source"]).name for frame in frames}
        where |= {library.profile: name for name, library in libraries.items() if library.profile}
        if len(where) > 1:
            files = ", ".join(f"{name} for {profile}" for profile, name in sorted(where.items(), key=lambda e: e[1]))
            raise LinkError(f"these were compiled for different chips: {files}. Compile all for one --npu-arch")
        profile = next(iter(where), self.profile.name if self.profile else "")
        return {
            "version": ascsim.__version__,
            "headers": headers_hash(),
            "profile": profile,
            "python": self.options.python,
            "sources": list(dict.fromkeys(frame.header["source"] for frame in frames)),
            "libraries": list(libraries),
            "kernels": [kernel for frame in frames for kernel in frame.header.get("kernels", ())],
            "has_main": has_main,
            "key": key,
            "scalar_trace": all(frame.header.get("scalar_trace", True) for frame in frames),
        }

    def _stub(self) -> Path:
        """The object that makes a linked file start the runtime when it is executed."""
        source = HERE / "stub.c"
        path = self.options.python.replace("\\", "\\\\").replace('"', '\\"')
        flags = ("-O1", "-fPIC", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-fvisibility=hidden", "-w")
        start = (*self.compiler.command, f'-DASCSIM_PYTHON_PATH="{path}"')
        compiled = self._run_job(_Job("stub", start, flags, source, "c"))
        if compiled.failed:
            raise LinkError(f"the program's entry cannot be compiled: {compiled.printed.strip()}", compiled.printed)
        place = self.work / "stub.o"
        place.write_bytes(compiled.object)
        return place

    def _run(
        self, command: Sequence[str], begin: Callable[[], object] = lambda: None
    ) -> subprocess.CompletedProcess[str]:
        """Carry out a command; ``begin`` is called as soon as its process is there."""
        self.commands.append(shlex.join(command))
        environment = {**os.environ, "LC_ALL": "C"}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdout=pipe, stderr=pipe, text=True, errors="replace", env=environment
        ) as process:
            begin()
            printed, complaints = process.communicate()
        if self.line.verbose:  # build systems read the compiler's directories from it
            sys.stderr.write(complaints)
        return subprocess.CompletedProcess(command, process.returncode, printed, complaints)


def _own_headers(profile: Profile | None) -> tuple[Path, ...]:
    if profile is None:
        return (HEADERS,)
    return (headers(profile), HEADERS)


def _with_user_column(message: Message, unit: Prepared, text: str) -> Message:
    """The message with columns of the user's line, where the source pass changed that line."""
    if os.path.abspath(message.path) != str(unit.path.absolute()):
        return message
    rewritten = text.splitlines()
    original = _original_lines(unit.path)
    line = message.line
    if not (1 <= line <= len(original) and line < len(rewritten)):
        return message
    column = original_column(original[line - 1], rewritten[line], message.column)
    notes = tuple(_with_user_column(note, unit, text) for note in message.notes)
    return replace(message, column=column, notes=notes)


def _without_consequences(printed: list[Message], found: list[Message]) -> list[Message]:
    """Messages at their place in the user's line, without the errors that follow from another.

    What stands in one place of the user's line may be rewritten to much, and what is wrong with it is then said of each
    part: the first one is the user's. A kernel that does not compile has no entry.
    """
    entries = {(note.path, note.line) for message in found for note in message.notes if "ASCSIM_LAUNCHED" in note.text}
    kept, places = [], set()
    for before, message in zip(printed, found, strict=True):
        place = message.path, message.line, message.column
        is_of_entry = any("ASCSIM_LAUNCHED" in note.text for note in message.notes)
        if before.column != message.column and message.is_error:
            is_of_entry |= place[:2] in entries
            if place in places:
                continue
            places.add(place)
        if not is_of_entry:
            kept.append(message)
    return kept if any(message.is_error for message in kept) else found


def _original_lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "surrogateescape").splitlines()


def _linker_message(printed: str) -> str:
    """What the linker complained of, with what it means for a program that ascsim loads."""
    rows = [row for row in printed.splitlines() if row.strip() and "collect2:" not in row]
    shown = "\n".join(rows[:20])
    if "recompile with -fPIC" in printed:
        shown += "\nAn object or library above was not compiled as position-independent code: compile it with -fPIC."
    return shown or "the linker failed without a message"


def _is_up_to_date(output: Path, key: str) -> bool:
    try:
        return load_image(output).key == key
    except UserError:
        return False
