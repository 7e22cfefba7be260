"""The command line of the vendor's compiler: what each argument means here.

Everything a C++ compiler knows goes on to the host's compiler. What only the vendor's compiler knows stands in the
tables below, each with the reason why it can be passed over.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ascsim.diagnostics import UserError

Mode = Literal["link", "shared", "compile", "archive", "text"]
Language = Literal["device", "c++", "c"]

LANGUAGES: dict[str, Language] = {
    ".asc": "device",
    ".cce": "device",
    ".cpp": "c++",
    ".cc": "c++",
    ".cxx": "c++",
    ".c++": "c++",
    ".cp": "c++",
    ".C": "c++",
    ".c": "c",
}
LANGUAGE_NAMES: dict[str, Language] = {"cce": "device", "asc": "device", "c++": "c++", "c": "c"}


@dataclass(frozen=True)
class PassedOver:
    """Arguments that mean nothing here: a pattern, how many values follow, and why."""

    pattern: str
    values: int
    reason: str


PASSED_OVER = (
    PassedOver(r"-mllvm", 1, "tunes the code generator of the vendor's compiler"),
    PassedOver(r"-cce-.*", 0, "tunes the code generator of the vendor's compiler"),
    PassedOver(r"-fcce-.*", 0, "tunes the code generator of the vendor's compiler"),
    PassedOver(r"--cce-fatobj-link", 0, "ascsim always links the device objects that host objects carry"),
    PassedOver(r"--cce-.*", 0, "an option of the vendor's device compiler"),
    PassedOver(r"--(cce|asc)-aicore-lang", 0, "says that the file holds device code, which ascsim sees for itself"),
    PassedOver(r"--aicore-only", 0, "device code comes with its host part, which carries it"),
    PassedOver(r"--run-mode=.*", 0, "ascsim is the run mode"),
    PassedOver(r"--sanitizer", 0, "the checks are always on"),
    PassedOver(r"--enable-simt", 0, "has no effect on SIMD code; SIMT code is not implemented"),
    PassedOver(r"--target=.*|-target", 0, "the program runs on this machine"),
    PassedOver(r"-f(no-)?(pic|PIC|pie|PIE)|-pie|-no-pie|-static|-static-pie", 0, "the program is loaded by ascsim"),
    PassedOver(r"-flto.*|-fno-lto|-ffat-lto-objects", 0, "an object must keep its sections: they carry device code"),
    PassedOver(r"-s", 0, "kernels are found by their symbols"),
    PassedOver(r"-dc|-rdc.*", 0, "device code is always linked across files"),
    PassedOver(r"-ferror-limit=.*|-f(no-)?color-diagnostics|-Qunused-arguments|-Weverything", 0, "a clang spelling"),
)

# Arguments of the vendor's compiler that say more than nothing, but nothing that ascsim does.
NOTED = {
    "--cce-auto-sync": "--cce-auto-sync is not modelled: the waits it would add are missing here and are reported",
    "--cce-auto-sync=on": "--cce-auto-sync is not modelled: the waits it would add are missing here and are reported",
}

# Libraries of the vendor's toolkit. ascsim's runtime library stands for those that programs call.
VENDOR_LIBRARIES = {
    "ascendcl": "the acl runtime is ascsim's own",
    "acl_rt": "the acl runtime is ascsim's own",
    "acl_rt_compile": "run-time compilation is not implemented",
    "runtime": "the driver runtime is ascsim's own",
    "runtime_camodel": "the vendor's cycle model is not used",
    "npu_drv_camodel": "the vendor's cycle model is not used",
    "npu_drv": "there is no driver",
    "ascend_hal": "there is no driver",
    "ascendc_runtime": "launches go through ascsim's headers",
    "ascendc_acl_stub": "belongs to the vendor's CPU debugging mode",
    "cpudebug": "belongs to the vendor's CPU debugging mode",
    "cpudebug_cceprint": "belongs to the vendor's CPU debugging mode",
    "cpudebug_npuchk": "belongs to the vendor's CPU debugging mode",
    "cpudebug_stubreg": "belongs to the vendor's CPU debugging mode",
    "pem_davinci": "the vendor's instruction model is not used",
    "_pvmodel": "the vendor's instruction model is not used",
    "tikicpulib": "the vendor's instruction model is not used",
    "register": "operator registration has no meaning outside a graph engine",
    "profapi": "profiling is ascsim's report",
    "profapi_share": "profiling is ascsim's report",
    "mmpa": "the vendor's operating system layer",
    "platform": "platform data is ascsim's profiles",
    "tiling_api": "host-side tiling of the operator library is not part of ascsim",
    "graph_base": "the graph engine is not part of ascsim",
    "ge_common_base": "the graph engine is not part of ascsim",
    "nnopbase": "the operator library is not part of ascsim",
    "opapi": "the operator library is not part of ascsim",
    "unified_dlog": "logging of the vendor's toolkit",
    "ascendalog": "logging of the vendor's toolkit",
    "alog": "logging of the vendor's toolkit",
    "error_manager": "logging of the vendor's toolkit",
    "ascend_dump": "dumps of the vendor's toolkit",
    "c_sec": "the bounds-checked C functions come with ascsim's headers",
    "stdc++fs": "std::filesystem is part of the C++ library",
}

# -Wl, words that would break the way the program is loaded.
LINKER_WORDS_DROPPED = frozenset({"-s", "--strip-all", "-S", "--strip-debug", "--no-undefined", "-pie", "-no-pie"})
LINKER_Z_DROPPED = frozenset({"now", "defs", "text"})

# Options whose value is the next argument.
_COMPILE_WITH_VALUE = frozenset(
    {"-I", "-D", "-U", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "--param", "-isysroot", "-Xclang"}
)
_LINK_WITH_VALUE = frozenset({"-L", "-l", "-u", "-T", "-z", "-Xlinker", "-rpath", "--rpath", "-soname"})
_DEPENDENCY_WITH_VALUE = frozenset({"-MF", "-MT", "-MQ"})
_QUERIES = re.compile(r"--version|-v|-dump\w+|-print-.*|--print-.*|--help(=.*)?|-help|-###")
# Options that are for the host's part alone: device code has its own optimisation, debug and warning options.
_HOST_ONLY = re.compile(
    r"-O.*|-g.*|-W.*|-w|-pedantic.*|-fvisibility.*|-fsanitize.*|-fprofile.*|--coverage|-pg|-fstack-protector.*"
    r"|-D_FORTIFY_SOURCE.*|-U_FORTIFY_SOURCE"
)
_LINK_ONLY = re.compile(
    r"-Wl,.*|-L.+|-l.+|-rdynamic|-nostdlib|-nodefaultlibs|-nostartfiles|-static-lib.*|-fuse-ld=.*|-B.+|-u.+|-z.+"
)
_BOTH_STAGES = re.compile(r"-pthread|-fopenmp.*|-fsanitize.*|--coverage|-pg|-m.*|-stdlib=.*|--sysroot=.*|-O.*|-g.*")
_ENDING_OF_INPUT = re.compile(r".*\.(o|a|so(\.\d+)*|lo|obj)")


@dataclass(frozen=True)
class Source:
    """A file to compile; ``device`` is C++ that may hold device code whatever it mentions."""

    path: Path
    language: Language


@dataclass
class CommandLine:
    """A command line, sorted by what its parts are for.

    ``link`` has sources, objects, libraries and the linker's options in their order; ``link_flags`` are those compiler
    options that linking needs too. ``scalar_trace``: device code tells what it reads and writes through pointers.
    """

    mode: Mode = "link"
    output: Path | None = None
    arch: str | None = None
    sides: tuple[str, ...] | None = None
    link: list[Source | str] = field(default_factory=list)
    compile_flags: list[str] = field(default_factory=list)
    host_flags: list[str] = field(default_factory=list)
    device_flags: list[str] = field(default_factory=list)
    link_flags: list[str] = field(default_factory=list)
    text_flags: list[str] = field(default_factory=list)
    dependency_flags: list[str] = field(default_factory=list)
    host_only: bool = False
    scalar_trace: bool = True
    keep: Path | None = None
    notes: list[str] = field(default_factory=list)
    query: bool = False
    verbose: bool = False

    @property
    def sources(self) -> list[Source]:
        """The files to compile."""
        return [item for item in self.link if isinstance(item, Source)]

    @property
    def has_inputs(self) -> bool:
        """Whether there is anything to compile or link."""
        return any(isinstance(item, Source) or not item.startswith("-") or item.startswith("-l") for item in self.link)

    @property
    def include_dirs(self) -> list[Path]:
        """The user's directories of ``-I`` and ``-iquote``, in order."""
        found, flags = [], iter([*self.compile_flags, *self.device_flags])
        for flag in flags:
            if flag in ("-I", "-iquote"):
                found.append(Path(next(flags, ".")))
            elif flag.startswith("-I"):
                found.append(Path(flag[2:]))
        return found


def parse(arguments: list[str]) -> CommandLine:
    """Sort a command line.

    Raises:
        UserError: an option lacks its value, a language is unknown, an input does not exist.
    """
    return _Parser(arguments).run()


class _Parser:
    def __init__(self, arguments: list[str]) -> None:
        self.words = _expanded(arguments)
        self.line = CommandLine()
        self.language: Language | None = None
        self.section: Literal["", "host", "device"] = ""
        self.arch_of_aicore: str | None = None
        self.soc: str | None = None

    def run(self) -> CommandLine:
        for word in self.words:
            self._take(word)
        line = self.line
        if self.arch_of_aicore is not None:
            name = self.arch_of_aicore
            line.sides = ("aiv",) if name.endswith("-vec") else ("aic",) if name.endswith("-cube") else None
        portable = "cpu" if any(flag.startswith("-D__CPU_SIM") for flag in line.compile_flags) else None
        line.arch = line.arch or self.arch_of_aicore or self.soc or portable
        return line

    def _take(self, word: str) -> None:
        line = self.line
        if word in ("-Xhost-start", "-Xaicore-start"):
            self.section = "host" if word == "-Xhost-start" else "device"
        elif word in ("-Xhost-end", "-Xaicore-end"):
            self.section = ""
        elif self.section:
            (line.host_flags if self.section == "host" else line.device_flags).append(word)
        elif not word.startswith("-") or word == "-":
            self._take_input(word)
        else:
            self._take_option(word)

    def _take_input(self, word: str) -> None:
        path = Path(word)
        if not path.exists():
            raise UserError(f"no such file: {word}")
        language = self.language or LANGUAGES.get(path.suffix)
        if language is not None and (self.language or not _ENDING_OF_INPUT.fullmatch(word)):
            self.line.link.append(Source(path, language))
        else:
            self.line.link.append(word)

    def _take_option(self, word: str) -> None:
        line = self.line
        name, _, value = word.partition("=")
        if word == "-o":
            line.output = Path(self._value(word))
        elif word.startswith("-o") and not word.startswith("-op"):
            line.output = Path(word[2:])
        elif name == "--npu-arch":
            line.arch = value or self._value(word)
        elif name == "--npu-soc":
            self.soc = value or self._value(word)
        elif name == "--cce-aicore-arch":
            self.arch_of_aicore = value or self._value(word)
        elif name == "--keep":
            line.keep = Path(value or self._value(word))
        elif word.startswith("-x"):
            self._take_language(word[2:] or self._value(word))
        elif word in ("-c", "-dc"):
            line.mode = "compile"
        elif word in ("-shared", "--shared"):
            line.mode = "shared"
        elif word in ("-lib", "--cce-build-static-lib"):
            line.mode = "archive"
        elif word in ("-E", "-S", "-M", "-MM"):
            line.mode = "text"
            line.text_flags.append(word)
        elif word == "--cce-host-only":
            line.host_only = True
        elif word == "--no-scalar-trace":
            line.scalar_trace = False
        elif word == "--cce-pto-auto-enable":
            line.compile_flags.append("-D__PTO_AUTO__=1")
        elif word in ("-MD", "-MMD", "-MP"):
            line.dependency_flags.append(word)
        elif word in _DEPENDENCY_WITH_VALUE:
            line.dependency_flags += [word, self._value(word)]
        elif self._is_passed_over(word):
            pass
        elif word.startswith("-l") or word in _LINK_WITH_VALUE or _LINK_ONLY.fullmatch(word):
            self._take_link_option(word)
        elif word in _COMPILE_WITH_VALUE:
            line.compile_flags += [word, self._value(word)]
        elif _QUERIES.fullmatch(word):
            line.query = True
            line.verbose |= word == "-v"
        else:
            self._take_compile_option(word)

    def _take_language(self, name: str) -> None:
        if name == "none":
            self.language = None
        elif name in LANGUAGE_NAMES:
            self.language = LANGUAGE_NAMES[name]
        else:
            raise UserError(f"-x {name}: not a language that ascsim compiles; known are {', '.join(LANGUAGE_NAMES)}")

    def _is_passed_over(self, word: str) -> bool:
        if word in NOTED:
            self.line.notes.append(NOTED[word])
            return True
        for entry in PASSED_OVER:
            if re.fullmatch(entry.pattern, word):
                for _ in range(entry.values):
                    self._value(word)
                return True
        return False

    def _take_link_option(self, word: str) -> None:
        """Options for the linker keep their place among objects and libraries; the order has a meaning there."""
        link = self.line.link
        if word.startswith("-l"):
            name = word[2:] or self._value(word)
            link += [] if name in VENDOR_LIBRARIES else [f"-l{name}"]
        elif word == "-L":
            link.append(f"-L{self._value(word)}")
        elif word.startswith("-Wl,"):
            link += _linker_words(word.split(",")[1:])
        elif word == "-Xlinker":
            link += _linker_words([self._value(word)])
        elif word in _LINK_WITH_VALUE:
            link += _linker_words([word, self._value(word)])
        else:
            link.append(word)

    def _take_compile_option(self, word: str) -> None:
        line = self.line
        (line.host_flags if _HOST_ONLY.fullmatch(word) else line.compile_flags).append(word)
        if _BOTH_STAGES.fullmatch(word):
            line.link_flags.append(word)

    def _value(self, option: str) -> str:
        value = next(self.words, None)
        if value is None:
            raise UserError(f"{option} lacks its value")
        return value


def _expanded(arguments: list[str]) -> Iterator[str]:
    """The arguments with response files (``@file``) read in."""
    for word in arguments:
        if word.startswith("@") and Path(word[1:]).is_file():
            yield from _expanded(shlex.split(Path(word[1:]).read_text(encoding="utf-8")))
        else:
            yield word


def _linker_words(words: list[str]) -> list[str]:
    """One ``-Wl,`` for those that can stay; nothing if none can."""
    kept, rest = [], iter(words)
    for word in rest:
        if word == "-z":
            value = next(rest, "")
            if value not in LINKER_Z_DROPPED:
                kept += [word, value]
        elif word not in LINKER_WORDS_DROPPED:
            kept.append(word)
    return ["-Wl," + ",".join(kept)] if kept else []
