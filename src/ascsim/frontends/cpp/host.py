"""The machine behind a compiled program: what C++ calls, in Python.

A :class:`Host` lives in the child process (:mod:`.child`). It gives the runtime library its callbacks: an instruction
comes as raw operands, is decoded and issued; a launch looks the kernel up in the device images and runs its blocks one
after the other; the acl functions ask whether a pointer is what it should be.

No exception leaves a callback. A kernel that the machine stops gets a status back, the C++ side unwinds it, and the
host program goes on, as it would beside a real chip: the next synchronisation reports the error.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from ascsim.diagnostics import CATALOGUE, Diagnostic, Fault, Place, Refused, Severity, Site
from ascsim.frontends.cpp.allocations import FILLED, Allocation, DeviceMemory
from ascsim.frontends.cpp.elf import ElfFile
from ascsim.frontends.cpp.exports import export_name
from ascsim.frontends.cpp.image import Image, loaded_libraries
from ascsim.frontends.cpp.session import RESULT_FILE
from ascsim.frontends.cpp.sink import NativeSink, view_of
from ascsim.frontends.cpp.symbols import SymbolTable
from ascsim.isa import REGISTRY
from ascsim.isa.definition import Definition, Operand, RegisterInstruction
from ascsim.isa.steps import SCALAR_ACCESS
from ascsim.machine.ahead import flush, unfit
from ascsim.machine.autosync import AutoSync
from ascsim.machine.baton import Halted
from ascsim.machine.core import GUARD, Core, Machine, Memory, Plan
from ascsim.machine.dtypes import BY_CODE, DType
from ascsim.machine.fill import chosen, fill
from ascsim.machine.operands import CUSTOM_PAD, NO_ADDRESS, GlobalTensor, Pointer, Tile
from ascsim.machine.signals import CoreId, Cores
from ascsim.machine.trace import ACCESS, ROW, SITE_PC, Kind, pack_row
from ascsim.machine.words import BLayout, CompactMode, Kept, Pipe, SLayout, Space
from ascsim.profiles import Profile

for _code, _severity, _title, _text in (
    ("H001", Severity.ERROR, "acl call with the wrong memory",
     "A copy or fill was given a pointer that is not what the call takes it for: host memory where device memory is "
     "meant or the other way round, memory that was freed, or more bytes than the block has. On a chip the call "
     "returns an error code or overwrites other data.\n\n"
     "The pointer, the block it points to and the bytes are named: compare them with the call's order (destination "
     "first) and with what was allocated.\n\n"
     "Example:\n"
     "    aclrtMemcpy(host, size, device, size, ACL_MEMCPY_HOST_TO_DEVICE);   // must be DEVICE_TO_HOST"),
    ("H002", Severity.ERROR, "acl call with a wrong argument",
     "An acl function was given an argument that it refuses: a size of 0, a stream that does not exist, no device set. "
     "It returned an error code.\n\n"
     "Correct the argument, and check the codes that your program gets."),
    ("H003", Severity.ERROR, "Wrong memory freed",
     "aclrtFree was given a pointer that aclrtMalloc did not return, or that is freed already.\n\n"
     "Free each block once, by the pointer that aclrtMalloc gave."),
    ("H004", Severity.ERROR, "Launch with an impossible number of blocks",
     "A launch has from 1 to 65535 blocks. The kernel did not run.\n\n"
     "Look at how the number in <<<...>>> is computed: rows divided by rows a block is 0 for few rows."),
    ("H005", Severity.ERROR, "Kernel without device code",
     "The program has no device code for the launched kernel: it was linked without it, stripped, or compiled for "
     "another core.\n\n"
     "Build it with `ascsim c++`, sources and link alike."),
    ("H006", Severity.ERROR, "Address that is in no memory of the chip",
     "An instruction was given a pointer that points neither into the memory that it works on nor is an offset in it: "
     "a host pointer handed to a kernel, a null pointer, an address of another memory.\n\n"
     "Device memory comes from aclrtMalloc; copy the data there and give the kernel that pointer."),
    ("H007", Severity.ERROR, "On-chip memory is full",
     "The arrays that a kernel declares in an on-chip memory, or the tiles that are in scope in Auto mode, are "
     "together larger than that memory.\n\n"
     "Make them smaller, work in several passes, or let arrays that are not in use together share one."),
    ("H008", Severity.ERROR, "Kernel ended by a C++ exception",
     "A kernel threw a C++ exception. Device code cannot throw; the remaining blocks did not run.\n\n"
     "Leave out what throws (containers, `at()`, `new`)."),
    ("H099", Severity.ERROR, "Error inside ascsim",
     "ascsim met a case that it does not handle.\n\n"
     "Please report it, with the program if you can."),
):  # fmt: skip
    CATALOGUE.add(_code, _severity, _title, _text)

# Codes of include/acl/acl_base.h that decisions made here return.
INVALID_PARAM = 100000
RT_PARAM_INVALID = 107000
INVALID_MEMORY_TYPE = 107016
MEMORY_FREE = 207002
AICORE_EXCEPTION = 507015
VECTOR_CORE_EXCEPTION = 507035

MAX_OPERANDS = 16
N_SPACES = 8
GLOBAL_BYTES = 1 << 36
DECODED_CALLS = 50_000
ASKED_FROM = 4
"""After so many calls with the same operands it is asked whether they can do without Python, and again after twice as many."""

# What programs ask of the device. Cores: Atlas A2 (910B3) has 20 AI cores, each one cube and two vector cores; the
# figure of the Ascend 950 is assumed. SoC names are those of the public build files.
_CUBE_CORES = {"2201": 20, "3510": 32}
_SOC_NAMES = {"2201": "Ascend910B3", "3510": "Ascend950PR_9599"}

# AscsimExpected of runtime/host.hpp
_HOST_MEMORY, _DEVICE_MEMORY = 0, 1


class NativeCore(ctypes.Structure):
    """``AscsimCore`` of abi.h."""

    _fields_ = (
        ("core", ctypes.c_uint16),
        ("side", ctypes.c_uint8),
        ("in_vector_function", ctypes.c_uint8),
        ("block", ctypes.c_uint32),
        ("blocks", ctypes.c_uint32),
        ("issues_all", ctypes.c_uint32),
        ("memory", ctypes.c_void_p * N_SPACES),
        ("capacity", ctypes.c_uint64 * N_SPACES),
        ("subblock", ctypes.c_uint32),
        ("subblocks", ctypes.c_uint32),
        ("dynamic_ub", ctypes.c_uint64),
        ("kept", ctypes.c_uint64 * len(Kept)),
        ("streams", ctypes.c_uint64),
    )


OPERAND = struct.Struct("<6BH4iQ10q")
"""``AscsimOperand`` of abi.h: sort, dtype, space, blayout, slayout, pad, fractal, rows, cols, valid_rows, valid_cols,
address, shape[5], strides[5]."""
OPERAND_BYTES = OPERAND.size
assert OPERAND_BYTES == 112


class NativeCall(ctypes.Structure):
    """``AscsimCall`` of runtime/host.hpp."""

    _fields_ = (
        ("pc", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("operands", ctypes.c_ubyte * (MAX_OPERANDS * OPERAND_BYTES)),
    )


class NativeModule(ctypes.Structure):
    """``AscsimModule`` of runtime/host.hpp."""

    _fields_ = (
        ("handle", ctypes.c_void_p),
        ("base", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("error", ctypes.c_char * 1024),
    )


for _kind, _size in ((NativeCore, 200), (NativeCall, 1808), (NativeModule, 1048)):
    assert ctypes.sizeof(_kind) == _size, "as runtime.cpp asserts"

_U32, _U64, _I32, _I64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32, ctypes.c_int64
_TEXT, _ADDRESS = ctypes.c_char_p, ctypes.c_void_p
_CALLBACKS: tuple[tuple[str, Any], ...] = (
    ("issue", ctypes.CFUNCTYPE(_I32, _U32, _U32)),
    ("resolve", ctypes.CFUNCTYPE(_ADDRESS, _U32, _U32, _U64)),
    ("fault_access", ctypes.CFUNCTYPE(None, _U32, _U32, _U64, _U64, _U64)),
    ("refuse", ctypes.CFUNCTYPE(None, _U32, _TEXT, _TEXT, _U64)),
    ("local_array", ctypes.CFUNCTYPE(_ADDRESS, _U32, _U64, _U64, _U32, _TEXT, _U64, _U64)),
    ("auto_tile", ctypes.CFUNCTYPE(_ADDRESS, _U32, _U64, _U64, _U64)),
    ("auto_tile_end", ctypes.CFUNCTYPE(None, _U32, _U64)),
    ("launch", ctypes.CFUNCTYPE(_I32, _TEXT, _TEXT, _U32, _I64, _U64, _ADDRESS, _ADDRESS, _U64)),
    ("allocate", ctypes.CFUNCTYPE(_ADDRESS, _TEXT, _U64, _U64)),
    ("release", ctypes.CFUNCTYPE(_I32, _TEXT, _ADDRESS, _U64, _U64)),
    ("check", ctypes.CFUNCTYPE(_I32, _TEXT, _TEXT, _U32, _ADDRESS, _U64, _U32, _U64, _U64)),
    ("misuse", ctypes.CFUNCTYPE(None, _TEXT, _TEXT, _TEXT, _U64)),
    ("device_info", ctypes.CFUNCTYPE(_I64, _U32)),
    ("give_way", ctypes.CFUNCTYPE(_I32)),
)


# What a callback returns after an error of its own: a status that stops the kernel, a null pointer, an unknown figure.
_FAILURES = {_I32: 1, _I64: -1}


class NativeHost(ctypes.Structure):
    """``AscsimHost`` of runtime/host.hpp: the callbacks, in its order."""

    _fields_ = _CALLBACKS


@dataclass(frozen=True)
class Code:
    """A loaded file: ``symbols`` have link-time addresses, to which ``base`` is added; it is ``size`` bytes long."""

    base: int
    size: int
    symbols: SymbolTable

    def address_of(self, symbol: str) -> int | None:
        """The address of a function in this process."""
        found = self.symbols.address_of(symbol)
        return None if found is None else self.base + found


@dataclass(frozen=True)
class Unit:
    """The program, or a shared library of it with kernels: its host code, and its device images by side."""

    host: Code
    devices: dict[str, Code]

    def entries(self, symbol: str) -> dict[str, int]:
        """The addresses of a device function, by side."""
        found = {side: code.address_of(symbol) for side, code in self.devices.items()}
        return {side: address for side, address in found.items() if address is not None}


@dataclass(frozen=True)
class Range:
    """Bytes of an on-chip memory that an array or a tile in scope occupies."""

    space: int
    start: int
    end: int
    name: str = ""


@dataclass
class _Decoded:
    """A call by its operands, and what it comes to, where these alone decide that."""

    args: list[Any]
    plan: Plan | None = None
    calls: int = 0


@dataclass(frozen=True)
class _Left:
    """A core while another runs: what the two share on this side."""

    core: BlockCore
    native: bytes
    memories: dict[int, np.ndarray]
    tiles: list[Range]
    stopped: bool


class BlockCore(Core):
    """A core of a launch on the runtime library's buffers, which every block finds filled anew unless they are kept."""

    def __init__(
        self, machine: Machine, index: int, block: int, side: str, subblock: int, buffers: dict[int, Memory],
        is_kept: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(machine, index, block, side, subblock)
        self._buffers = buffers
        self._is_kept = is_kept
        self.memory(Space.UB)  # compiled code reads and writes it without asking

    def memory(self, space: int) -> Memory:
        """The memory of that space, filled on first use in the block."""
        found = self.memories.get(space)
        if found is None:
            found = self.memories[space] = self._buffers[space]
            if not self._is_kept:
                fill(found.data, chosen())
        return found


@dataclass
class _Front:
    """What blocks of a launch that run ahead share beside the machine (:class:`ascsim.machine.ahead.Front`)."""

    host: Host
    name: str
    count: int
    directory: Path | None

    def may_run_ahead(self) -> bool:
        """Where scalar accesses are not followed nobody knows what blocks read; more cores than numbers share event ids."""
        return self.host.follows_scalars and self.count <= 1 << 16

    def shared(self) -> Any:
        return self.host.declared

    def flush(self) -> None:
        self.host.library.ascsim_flush()
        flush()

    def begin(self) -> None:
        self.host.run_ahead()

    def end(self, cores: Sequence[CoreId], is_last: bool) -> Any:
        return self.host.left_by(cores, is_last)

    def take(self, told: Any) -> None:
        self.host.take(told)

    def done(self, cores: int) -> None: ...

    def await_process(self, process: int) -> None:
        self.host.awaited.value = process


class Host:
    """One program's machine. All public methods may be called before ``main``: static initialisers call acl."""

    def __init__(
        self, library_path: Path, profile: Profile, directory: Path, keep_results: bool = False, blocks: int = 0
    ) -> None:  # fmt: skip
        self.profile = profile
        self.directory = directory
        self.keep_results = keep_results
        self.blocks = blocks
        """Blocks of every launch, instead of what the program says; 0: what it says."""
        self.library = ctypes.CDLL(str(library_path), ctypes.RTLD_GLOBAL)
        self._kernel_library = ctypes.PyDLL(str(library_path))  # calls that keep the interpreter's lock
        self._kernels: list[dict[str, Any]] = []
        self._units: list[Unit] = []
        self._entries: dict[int, dict[str, int]] = {}
        self._launches = 0
        self._core: BlockCore | None = None
        self._is_host_code = False
        self._core_count = 1
        self._stopped = False
        self._arrays: dict[int, Range] = {}
        self._tiles: list[Range] = []
        self._decoded: dict[tuple[int, bytes], _Decoded] = {}
        self._kept: dict[tuple[int, bytes], tuple[Any, ...]] = {}
        """Calls that run without Python, and what they use."""
        self._left: dict[int, _Left] = {}
        self.follows_scalars = True
        """Whether all device code tells of its scalar accesses."""
        self._start()
        self.sink = NativeSink(self.library, directory)
        self.memory = self._map_memories()
        self.machine = Machine(profile, self.sink, self.memory.memory)
        self.machine.site_flags = SITE_PC
        self._native.issues_all = int(self.machine.late is not None)
        self.machine.resolve_site = lambda number: None  # the parent process reads debug information, once
        self.sink.note("fill", {"with": chosen(), "bytes": FILLED})
        self.sink.note(
            "mnemonic", {"id": SCALAR_ACCESS.number, "name": SCALAR_ACCESS.name, "title": SCALAR_ACCESS.title}
        )
        ctypes.c_uint16.in_dll(self.library, "ascsim_scalar_mnemonic").value = SCALAR_ACCESS.number
        self._open(library_path, "runtime")
        if profile.npu_arch in _SOC_NAMES:
            name = _SOC_NAMES[profile.npu_arch].encode()
            (ctypes.c_char * 64).in_dll(self.library, "ascsim_soc_name").value = name

    # -- starting ------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        library = self.library
        library.ascsim_runtime_start.restype = _TEXT
        library.ascsim_map_memories.restype = _TEXT
        library.ascsim_trace_grow.restype = None
        library.ascsim_load.restype = None
        for name in ("run_ahead", "trace_settle", "trace_begin", "flush"):
            getattr(library, f"ascsim_{name}").restype = None
        self._callbacks = NativeHost(*[
            kind(_guarded(getattr(self, f"_{name}"), self, _FAILURES.get(kind._restype_)))
            for name, kind in _CALLBACKS
        ])  # fmt: skip
        problem = library.ascsim_runtime_start(os.fsencode(self.directory), ctypes.byref(self._callbacks))
        if problem:
            raise OSError(problem.decode(errors="replace"))
        call = NativeCall.in_dll(library, "ascsim_call")
        self._call = call
        address = ctypes.addressof(call)
        self._pc = view_of(address + NativeCall.pc.offset, 8).cast("Q")
        self._result = view_of(address + NativeCall.result.offset, 8).cast("q")
        self._operands = view_of(address + NativeCall.operands.offset, MAX_OPERANDS * OPERAND_BYTES)
        self._native = NativeCore.in_dll(library, "ascsim_core")
        self.awaited = ctypes.c_int32.in_dll(library, "ascsim_awaited")
        ids = ctypes.addressof(ctypes.c_uint8.in_dll(library, "ascsim_event_ids"))
        pipes = len(Pipe)
        whole = view_of(ids, pipes * pipes << 16)
        self._event_ids = np.frombuffer(whole, np.uint8).reshape(pipes, pipes, 1 << 16)

    def _map_memories(self) -> DeviceMemory:
        capacities = (ctypes.c_uint64 * N_SPACES)()
        for name, limits in self.profile.spaces.items():
            capacities[Space[name]] = limits.capacity
        problem = self.library.ascsim_map_memories(ctypes.c_uint64(GLOBAL_BYTES), capacities)
        if problem:
            raise OSError(problem.decode(errors="replace"))
        self._bases = [self._native.memory[space] or 0 for space in range(N_SPACES)]
        self._buffers: dict[int, Memory] = {}
        for space in range(1, N_SPACES):
            if capacities[space]:
                whole = view_of(self._bases[space], capacities[space] + GUARD)
                self._buffers[space] = Memory(capacities[space], np.frombuffer(whole, np.uint8))
                if not self.profile.is_chip:
                    fill(self._buffers[space].data, chosen())  # host code may use it
        return DeviceMemory(self._bases[Space.GM], self._native.capacity[Space.GM])

    def load(self, image: Image) -> int:
        """Load the program, whose initialisers run, and its device images; returns its ``dlopen`` handle.

        Raises:
            OSError: the loader refuses; the message is its own.
        """
        program = self._open(image.path, "host")
        self._add(image, program)
        for library, _ in loaded_libraries(image):
            self._add(library, self._open(library.path, "library"))
        return program.handle or 0

    def _add(self, image: Image, module: NativeModule) -> None:
        self._kernels += image.kernels
        if image.devices and not image.scalar_trace:
            self.follows_scalars = False
            self.sink.note("untraced", {"what": "scalar"})
        devices = {}
        for device in image.devices:
            path = image.extract(device.side, self.directory)
            devices[device.side] = _loaded_code(self._open(path, device.side), ElfFile.read(path))
        self._units.append(Unit(_loaded_code(module, ElfFile.read(image.path)), devices))

    def _open(self, path: Path, side: str) -> NativeModule:
        """``dlopen`` a file and note where it lies."""
        module = NativeModule()
        self.library.ascsim_load(os.fsencode(path), int(side == "host"), ctypes.byref(module))
        if not module.handle:
            raise OSError(module.error.decode(errors="replace"))
        self.sink.note("module", {"path": str(path), "base": module.base, "size": module.size, "side": side})
        return module

    # -- instructions --------------------------------------------------------------------------------------------------

    def _issue(self, number: int, count: int) -> int:
        pc = self._pc[0]
        core = self._core
        definition = REGISTRY.numbered(number)
        if core is None and self.profile.is_chip:
            return self._outside_kernel(definition, pc)
        core = core or self._begin_host_code(pc)
        key = (number, bytes(self._operands[: count * OPERAND_BYTES]))
        known = self._decoded.get(key)
        try:
            if known is None:
                known = self._decode(definition, key)
            plan = known.plan
            if plan is None or not self.machine.still_holds(core, plan):
                plan = self.machine.plan(core, definition, known.args)
                if plan.is_decided:
                    known.plan = plan
            result = self.machine.carry_out(core, plan, known.args, pc)
            known.calls += 1
            if (
                known.calls >= ASKED_FROM
                and not known.calls & known.calls - 1
                and result is None
                and definition.is_static
            ):
                self._remember(core, key, plan)
        except (Refused, Fault) as stop:
            return self._stop(stop, pc)
        except Halted:
            self._stopped = True
            self._set_error("the cores of the launch wait for each other")
            return 1
        self._result[0] = -1 if result is None else _as_int64(result)
        return 0

    def _remember(self, core: BlockCore, key: tuple[int, bytes], plan: Plan) -> None:
        """Let a call that has come before run without Python, if it can."""
        found = self.machine.repetition(core, plan) if key not in self._kept else None
        if found is None:
            return
        work = (ctypes.c_uint64 * (3 * len(found.work)))(*(number for code in found.work for number in code))
        self.library.ascsim_remember(
            key[0], len(key[1]) // OPERAND_BYTES, found.rows, ctypes.c_uint64(len(found.rows) // ROW.itemsize),
            found.accesses, ctypes.c_uint64(len(found.accesses) // ACCESS.itemsize), work,
            ctypes.c_uint64(len(found.work)),
        )  # fmt: skip
        self._kept[key] = plan.prepared, plan.observer, plan.again

    def _forget(self) -> None:
        """Calls come to something else from now on, or run on another core."""
        if self._kept:
            self.library.ascsim_forget()
            self._kept.clear()

    def _give_way(self) -> int:
        """The core reads one place of global memory again and again: others may have to write it first."""
        core = self._core
        assert core is not None
        try:
            self.machine.give_way(core)
        except Halted:
            self._stopped = True
            return 1
        return 0

    def _decode(self, definition: Definition, key: tuple[int, bytes]) -> _Decoded:
        """The operands as the machine's objects; remembered by their bytes."""
        inputs = definition.inputs
        args: list[Any] = []
        for index, fields in enumerate(OPERAND.iter_unpack(key[1])):
            args.append(self._operand(definition, inputs[min(index, len(inputs) - 1)], fields))
        while args and args[-1] is None:
            args.pop()
        if len(self._decoded) >= DECODED_CALLS:
            self._decoded.clear()
        known = self._decoded[key] = _Decoded(args)
        return known

    def _operand(self, definition: Definition, operand: Operand, fields: tuple[int, ...]) -> Any:
        sort, code, space, blayout, slayout, pad, fractal, rows, cols, valid_rows, valid_cols, value = fields[:12]
        if sort == 1:
            address = NO_ADDRESS if value == _UNASSIGNED else self._offset(definition, operand, space, value)
            if pad == _CUSTOM_PAD:
                pad = CUSTOM_PAD | fields[12] & 0xFFFFFFFF
            return Tile(
                BY_CODE[code], rows, cols, valid_rows, valid_cols, address, Space(space), BLayout(blayout),
                SLayout(slayout), fractal, pad, self._name_at(space, address), CompactMode(fields[13]), bool(fields[14]),
            )  # fmt: skip
        if sort == 2:
            offset = self._offset(definition, operand, Space.GM, value)
            return GlobalTensor(BY_CODE[code], offset, fields[12:17], fields[17:22], blayout)  # type: ignore[arg-type]
        if sort == 3:
            offset = self._offset(definition, operand, space, value)
            return Pointer(space, offset, BY_CODE.get(code), self._name_at(space, offset))
        if sort == 4:
            return _scalar(value, BY_CODE.get(code))
        if sort == 5:
            return _choice(value, operand.enum)
        return None

    def _offset(self, definition: Definition, operand: Operand, space: int, value: int) -> int:
        """The offset in a space that an operand's address means: an offset, or a host pointer into the space.

        Raises:
            Fault: it is neither.
        """
        if space == Space.GM:
            offset = self.memory.offset(value)
            if offset is not None:
                return offset
        elif space in self._buffers:
            memory = self._buffers[space]
            limit = memory.data.size
            if value < limit:
                return value
            if 0 <= value - self._bases[space] < limit:
                return value - self._bases[space]
        raise Fault(
            Diagnostic(
                "H006", Severity.ERROR, f"{definition.title}: {operand.name} is no address in {Space(space).name}",
                (Place(definition.title),), (f"It is {value:#x}. {self._what_is(value)}",),
                "Give device memory (aclrtMalloc) to kernels, and to each operand an address of its own memory.",
            )
        )  # fmt: skip

    def _what_is(self, value: int) -> str:
        """What a stray pointer points to, for people."""
        if value == 0:
            return "It is a null pointer."
        if self.memory.offset(value) is not None:
            return f"{self.memory.describe(value)}, which is in GM."
        for space, memory in self._buffers.items():
            if 0 <= value - self._bases[space] < memory.data.size:
                return f"It is byte {value - self._bases[space]:#x} of {Space(space).name}."
        if value < 1 << 32:
            return "It is too large for an offset in that memory, and too small for a pointer."
        return "It is a pointer to host memory: the kernel was given an address that aclrtMalloc did not return."

    def _name_at(self, space: int, offset: int) -> str:
        """The name of the declared array that contains an offset."""
        for array in self._arrays.values():
            if array.space == space and array.start <= offset < array.end:
                return array.name
        return ""

    def _resolve(self, number: int, variant: int, pc: int) -> int | None:
        from ascsim.isa.compile import native_pointer

        definition = REGISTRY.numbered(number)
        assert isinstance(definition, RegisterInstruction)
        if self.profile.name not in definition.profiles:
            try:
                definition.check(self.profile, ())
            except Refused as stop:
                self._stop(stop, pc)
                return None
        address = native_pointer(definition.bind(**definition.variants[variant]))
        for turn, told in enumerate(definition.told):
            self.machine.note_once(
                f"told {number} {turn}", "finding",
                _finding_note(told.code, told.headline, told.notes, told.mend, self.sink.last_site, (), told.severity),
            )  # fmt: skip
        self.machine.note_once(number, "mnemonic", {"id": number, "name": definition.name, "title": definition.title})
        return address

    def _fault_access(self, number: int, space: int, value: int, size: int, pc: int) -> None:
        definition = REGISTRY.numbered(number)
        memory = self._buffers[space]
        fault = Diagnostic(
            "M001", Severity.ERROR,
            f"{definition.title} touches bytes far outside the memory: {size} bytes at {value:#x}",
            (Place(definition.title),), (self._what_is(value), f"{Space(space).name} has {memory.capacity} bytes."),
            "Check the address and the loop that computes it.",
        )  # fmt: skip
        self._stop(Fault(fault), pc)

    def _refuse(self, number: int, code: bytes, problem: bytes, pc: int) -> None:
        definition = REGISTRY.numbered(number)
        said, title = code.decode(), definition.title
        headline, mend = f"{title}: {problem.decode()}", CATALOGUE.codes[said].mend
        self._stop(Refused(Diagnostic(said, Severity.ERROR, headline, (Place(title),), (), mend)), pc)

    def _outside_kernel(self, definition: Definition, pc: int) -> int:
        headline = f"{definition.title} is called in host code; it did nothing"
        mend = "Launch a kernel, kernel<<<blocks, ...>>>(arguments); instructions run inside it."
        self._finding("H002", headline, (), mend, pc)
        return 0

    def _stop(self, stop: Refused | Fault, pc: int) -> int:
        """Note why the kernel ends; the C++ side unwinds it."""
        if self.machine.is_ahead:
            unfit()
        self._stopped = True
        core = self._core
        self.sink.note(
            "refused" if isinstance(stop, Refused) else "fault",
            {
                "row": self.sink.n_rows, "site": pc, "launch": self._launches, "block": core.block if core else 0,
                "diagnostic": stop.diagnostic.as_dict(),
            },
        )  # fmt: skip
        self._set_error(stop.diagnostic.headline)
        return 1

    # -- on-chip arrays ------------------------------------------------------------------------------------------------

    def _local_array(
        self, space: int, size: int, alignment: int, code: int, name: bytes | None, declaration: int, pc: int
    ) -> int | None:
        array = self._arrays.get(declaration)
        if array is None:
            start = max((a.end for a in self._arrays.values() if a.space == space), default=0)
            array = self._occupy(space, start, size, alignment, (name or b"").decode(errors="replace"), pc)
            if array is None:
                return None
            self._arrays[declaration] = array
            self._decoded.clear()  # pointers into it have a name from now on
            self._forget()
            kind = BY_CODE.get(code)
            self.sink.note(
                "local_array",
                {
                    "space": space, "start": array.start, "size": size, "dtype": kind.name if kind else "void",
                    "name": array.name, "site": pc, "launch": self._launches,
                },
            )  # fmt: skip
        self._touch(space)
        return self._bases[space] + array.start

    def _auto_tile(self, space: int, size: int, alignment: int, pc: int) -> int | None:
        self._forget()
        if self.machine.auto_sync is None:
            self.machine.auto_sync = AutoSync()
            self.sink.note("sync", {"launch": self._launches, "sync": "auto"})
        taken = sorted((r for r in (*self._arrays.values(), *self._tiles) if r.space == space), key=lambda r: r.start)
        start = 0
        for other in taken:
            if _aligned(start, alignment) + size <= other.start:
                break
            start = max(start, other.end)
        tile = self._occupy(space, start, size, alignment, "", pc)
        if tile is None:
            return None
        self._tiles.append(tile)
        self._touch(space)
        return self._bases[space] + tile.start

    def _auto_tile_end(self, space: int, address: int) -> None:
        start = address - self._bases[space]
        self._tiles = [tile for tile in self._tiles if (tile.space, tile.start) != (space, start)]

    def _occupy(self, space: int, start: int, size: int, alignment: int, name: str, pc: int) -> Range | None:
        """A range from ``start`` on; None, and the kernel stops, where the memory ends before it."""
        memory = self._buffers.get(space)
        start = _aligned(start, alignment)
        if memory is not None and start + size <= memory.capacity:
            return Range(space, start, start + size, name)
        what = f"the array {name}" if name else "a tile"
        capacity = memory.capacity if memory is not None else 0
        self._stop(
            Fault(
                Diagnostic(
                    "H007", Severity.ERROR, f"{what} of {size} bytes does not fit {Space(space).name}",
                    (Place("declared here"),), (f"{start} of its {capacity} bytes are taken.",),
                    "Make the arrays and tiles that are in use at once smaller.",
                )
            ),
            pc,
        )  # fmt: skip
        return None

    def _touch(self, space: int) -> None:
        """Compiled code is about to use the memory: it must hold the block's fresh content."""
        if self._core is not None:
            self._core.memory(space)

    # -- launches ------------------------------------------------------------------------------------------------------

    def _launch(
        self, kernel: bytes, file: bytes, line: int, blocks: int, dynamic_ub: int, entry: int, arguments: int, pc: int
    ) -> int:
        """Run all blocks; returns the error code that synchronisations report, or 0."""
        self.end_host_code(pc)
        name, path = kernel.decode(errors="replace"), os.fsdecode(file)
        return self._run_kernel(name, path, line, blocks, dynamic_ub, self._entries_of(entry), arguments, pc)

    def call(
        self, kernel: str, blocks: int, arguments: Sequence[tuple[str, np.ndarray | bytes]], dynamic_ub: int,
        caller: Site,
    ) -> None:  # fmt: skip
        """Launch a kernel by its name, without a host program.

        ``arguments`` are named, in the kernel's order: arrays of bytes, which go into device memory and are updated in
        place (the same array twice is one block), and anything else as its bytes.
        """
        placed: dict[int, tuple[Allocation, np.ndarray]] = {}
        cells = []
        for name, value in arguments:
            if isinstance(value, np.ndarray):
                if id(value) not in placed:
                    block = self._place(name, value.size, 0)
                    assert block is not None, "an array that fits this computer fits the arena"
                    placed[id(value)] = block, value
                    self.memory.memory.data[block.start : block.end] = value
                block, _ = placed[id(value)]
                value = (self.memory.base + block.start).to_bytes(8, "little")
            cells.append(ctypes.create_string_buffer(value, max(len(value), 1)))
        pointers = (ctypes.c_void_p * len(cells))(*(ctypes.addressof(cell) for cell in cells))
        entries = self._units[0].entries(export_name(kernel))
        self.sink.note("site", asdict(caller))
        run = _guarded(self._run_kernel, self, None)
        run(kernel, caller.path, caller.line, blocks, dynamic_ub, entries, ctypes.addressof(pointers), _CALLER)
        for block, value in placed.values():
            value[:] = self.memory.memory.data[block.start : block.end]

    def _run_kernel(
        self, name: str, file: str, line: int, blocks: int, dynamic_ub: int, entries: dict[str, int], arguments: int,
        pc: int,
    ) -> int:  # fmt: skip
        blocks = self.blocks or blocks
        if not 1 <= blocks <= self.profile.max_blocks:
            self._finding(
                "H004", f"{name}<<<{blocks}, ...>>>: a launch has 1 to {self.profile.max_blocks} blocks",
                ("The kernel did not run.",), "Launch fewer blocks, each with more work.", pc,
            )  # fmt: skip
            self.sink.note("not_run", {"kernel": name})
            return RT_PARAM_INVALID
        cores = self._cores_of(name, entries)
        if not cores:
            sides = ", ".join(sorted({side for unit in self._units for side in unit.devices})) or "no device images"
            self._finding(
                "H005", f"the kernel {name} has no device code in this program (it has: {sides})",
                ("The kernel did not run.",), "Build the file that defines the kernel with `ascsim c++`.", pc,
            )  # fmt: skip
            self.sink.note("not_run", {"kernel": name})
            return RT_PARAM_INVALID
        self._launches += 1
        number = self._launches
        self.sink.note(
            "launch",
            {
                "number": number, "kernel": name, "file": file, "line": line, "site": pc, "blocks": blocks,
                "dynamic_ub": dynamic_ub, "cores": [list(core) for core in cores],
                "side": cores[0][0] if len({side for side, _ in cores}) == 1 else "mix", "sync": "manual",
            },
        )  # fmt: skip
        self._begin_launch(blocks, cores, dynamic_ub)
        ids, worst = Cores(blocks, cores), 0

        def run(core: CoreId) -> bool:
            nonlocal worst
            status = self._run_block(core, entries[core.side], arguments, pc)
            worst = max(worst, status)
            return not status

        try:
            self.machine.run_cores(
                ids, run, self._leave_core, self._enter_core, _Front(self, name, len(ids), self.directory)
            )
        finally:
            self._end_launch()
            if self.keep_results:
                self._leave_results(number)
        return worst

    # Blocks that run ahead: see _Front

    @property
    def declared(self) -> tuple[dict[int, Range], bool]:
        """Where declared arrays lie, and whether the tool synchronises."""
        return self._arrays, self.machine.auto_sync is not None

    def run_ahead(self) -> None:
        """This is the process of some blocks from now on."""
        self.library.ascsim_run_ahead()

    def left_by(self, cores: Sequence[CoreId], with_memories: bool) -> tuple[Any, ...]:
        """What cores that ran ahead leave: what is declared, event ids, and what host code may find in on-chip memories."""
        ids = self._event_ids[:, :, [core.number for core in cores]]
        memories = {} if self.profile.is_chip or not with_memories else {n: m.data for n, m in self._buffers.items()}
        return (*self.declared, cores, ids, memories)

    def take(self, left: tuple[Any, ...]) -> None:
        """Take over what :meth:`left_by` says."""
        arrays, is_synchronised, cores, ids, memories = left
        if arrays != self._arrays:
            self._arrays = arrays
            self._decoded.clear()
        self._forget()
        if is_synchronised and self.machine.auto_sync is None:
            self.machine.auto_sync = AutoSync()
        self._event_ids[:, :, [core.number for core in cores]] = ids
        for space, content in memories.items():
            self._buffers[space].data[:] = content

    def _leave_core(self, place: int) -> None:
        """Another core takes over in the middle of this one: what they share is kept for its return."""
        assert self._core is not None
        memories = {space: memory.data.copy() for space, memory in self._core.memories.items() if space != Space.GM}
        self._forget()
        self._left[place] = _Left(self._core, bytes(self._native), memories, self._tiles, self._stopped)
        self._tiles = []

    def _enter_core(self, place: int) -> None:
        self._forget()
        left = self._left.pop(place)
        self._core, self._tiles, self._stopped = left.core, left.tiles, left.stopped
        ctypes.memmove(ctypes.addressof(self._native), left.native, len(left.native))
        for space, content in left.memories.items():
            self._buffers[space].data[:] = content

    def _leave_results(self, launch: int) -> None:
        """What device memory holds after a launch: a file a block, which the parent process reads."""
        for ordinal, block in enumerate(self.memory.blocks):
            if not block.freed_at:
                file = self.directory / RESULT_FILE.format(launch=launch, block=ordinal)
                self.memory.memory.data[block.start : block.end].tofile(file)
                self.sink.note("result", {"launch": launch, "block": ordinal, "start": block.start, "file": file.name})

    def _begin_launch(self, blocks: int, cores: list[tuple[str, int]], dynamic_ub: int) -> None:
        self._arrays.clear()
        self._decoded.clear()
        self.machine.blocks = blocks
        self.machine.auto_sync = None
        native = self._native
        native.blocks, native.dynamic_ub = blocks, dynamic_ub
        native.subblocks = max(sum(side == "aiv" for side, _ in cores), 1)

    def _end_launch(self) -> None:
        self._forget()
        self._native.side = 0
        self._core = None

    def _run_block(self, core: CoreId, entry: int, arguments: int, pc: int) -> int:
        """One core of a block; returns 0, or the code of the exception that ended it."""
        self._enter_block(core, pc)
        message = ctypes.create_string_buffer(512)
        status = self._kernel_library.ascsim_run_block(
            ctypes.c_void_p(entry), ctypes.c_void_p(arguments), message, ctypes.c_uint64(512)
        )
        if not status and not self._stopped:
            self._finish_core(pc)
        self._append_mark(Kind.LAUNCH_END, core.number, pc)
        if status == 2:
            text = message.value.decode(errors="replace")
            thrown = Diagnostic(
                "H008", Severity.ERROR, f"the kernel ended with a C++ exception: {text}", (Place("launched here"),), (),
                "Device code cannot throw.",
            )  # fmt: skip
            self._stop(Fault(thrown), pc)
        if status or self._stopped:
            return VECTOR_CORE_EXCEPTION if core.side == "aiv" else AICORE_EXCEPTION
        return 0

    def _enter_block(self, core: CoreId, pc: int, is_kept: bool = False) -> None:
        """A core begins its block of the launch."""
        self._forget()
        native = self._native
        index, block, side, subblock = core
        self._tiles.clear()
        self._stopped = False
        self._core = BlockCore(self.machine, index, block, side, subblock, self._buffers, is_kept)
        self._core.state.share(np.ctypeslib.as_array(native.kept))
        native.core, native.block, native.subblock, native.streams = index, block, subblock, 0
        native.in_vector_function = 0
        native.side = 1 if side == "aiv" else 2
        self.library.ascsim_trace_begin()
        self._append_mark(Kind.LAUNCH_BEGIN, index, pc)

    def _finish_core(self, pc: int) -> None:
        assert self._core is not None
        try:
            self._core.finish()
        except Fault as stop:
            self._stop(stop, pc)

    def _append_mark(self, kind: Kind, core: int, pc: int) -> None:
        self.sink.append(pack_row(core, 0, kind, 0, 0, 0, -1, self._launches, pc, 0, SITE_PC, 0, 0), b"")

    def _begin_host_code(self, pc: int) -> BlockCore:
        """Portable programs use tiles in host code too: a launch of one block, until the next launch or call of acl.

        What host code leaves in the on-chip memories stays there.
        """
        self._launches += 1
        note = {
            "number": self._launches, "kernel": "host code", "file": "", "line": 0, "site": pc, "blocks": 1,
            "dynamic_ub": 0, "cores": [["aiv", 0]], "side": "aiv", "sync": "manual", "is_host_code": True,
        }  # fmt: skip
        self.sink.note("launch", note)
        self._begin_launch(1, [("aiv", 0)], 0)
        self.machine.run_cores([CoreId(0, 0, "aiv")], lambda core: True)
        self._is_host_code = True
        self._enter_block(CoreId(0, 0, "aiv"), pc, is_kept=True)
        assert self._core is not None
        return self._core

    def end_host_code(self, pc: int = 0) -> None:
        """The launch that host code is, if one is on, has ended. No kernel calls the functions that need to know."""
        if self.machine.is_ahead:
            unfit()
        if self._is_host_code:
            self._is_host_code = False
            self._finish_core(pc)
            self._append_mark(Kind.LAUNCH_END, 0, pc)
            self._end_launch()

    def _entries_of(self, host_entry: int) -> dict[str, int]:
        """The device functions, by side, that stand for a host function: those of the same symbol."""
        found = self._entries.get(host_entry)
        if found is None:
            found = {}
            for unit in self._units:
                if 0 <= host_entry - unit.host.base < unit.host.size:
                    symbol = unit.host.symbols.name_at(host_entry - unit.host.base)
                    found = unit.entries(symbol.name) if symbol is not None else {}
            self._entries[host_entry] = found
        return found

    def _cores_of(self, kernel: str, entries: dict[str, int]) -> list[tuple[str, int]]:
        """(side, subblock) of the cores that run each block, in the order in which they run.

        A kernel says which by its qualifier; one that does not say runs on the vector core if it can.
        """
        name = kernel.split("<", 1)[0].rsplit("::", 1)[-1].strip()
        said = next((k["core"] for k in self._kernels if k["name"] == name and k["core"]), "")
        if said == "cube":
            wanted = [("aic", 0)]
        elif said.startswith("mix"):
            cube, vector = _ratio(said)
            wanted = [*[("aic", 0)] * cube, *[("aiv", n) for n in range(vector)]]
        else:
            wanted = [("aiv", 0)]
        present = [core for core in wanted if core[0] in entries]
        return present or [(side, 0) for side in list(entries)[:1]]

    # -- acl -----------------------------------------------------------------------------------------------------------

    def _allocate(self, function: bytes, size: int, pc: int) -> int | None:
        self.end_host_code(pc)
        block = self._place("", size, pc, fresh=True)
        if block is None:
            self._set_error(f"{function.decode()}: {size} bytes of device memory are not left")
            return None
        return self.memory.base + block.start

    def _place(self, name: str, size: int, pc: int, fresh: bool = False) -> Allocation | None:
        """A noted block of device memory; ``fresh`` where it holds nothing yet."""
        block = self.memory.allocate(size, pc)
        if block is not None:
            self.sink.note(
                "allocation",
                {
                    "name": name, "start": block.start, "size": size, "site": pc, "row": self.sink.n_rows,
                    "address": self.memory.base + block.start, "fresh": fresh,
                },
            )  # fmt: skip
        return block

    def _release(self, function: bytes, address: int | None, host_bytes: int, pc: int) -> int:
        self.end_host_code(pc)
        if not address:
            return INVALID_PARAM
        offset = self.memory.offset(address)
        mend = "Free device memory once, with the pointer that aclrtMalloc gave; host memory with aclrtFreeHost."
        if offset is None:
            # The block stays allocated, which harms nothing: a warning.
            kind = "memory of aclrtMallocHost" if host_bytes else "host memory"
            headline = f"{function.decode()}: the pointer is {kind}"
            self._finding("H003", headline, (f"The pointer is {address:#x}.",), mend, pc, severity=Severity.WARNING)
            return INVALID_PARAM
        block = self.memory.find(offset)
        notes = (self.memory.describe(address),)
        if block is None or block.start != offset:
            headline = f"{function.decode()}: the pointer is not the start of a block"
            self._finding("H003", headline, notes, mend, pc)
            return MEMORY_FREE
        if block.freed_at:
            places = [("freed here before", block.freed_at)]
            self._finding("H003", f"{function.decode()}: the block is freed already", notes, mend, pc, places)
            return MEMORY_FREE
        self.memory.free(block, pc)
        self.sink.note("free", {"start": block.start, "size": block.size, "site": pc, "row": self.sink.n_rows})
        return 0

    def _check(
        self, function: bytes, direction: bytes, role: int, address: int | None, size: int, expected: int,
        host_bytes: int, pc: int,
    ) -> int:  # fmt: skip
        self.end_host_code(pc)
        if size == 0:
            return 0
        problem = self._problem_with(address or 0, size, expected, host_bytes, direction.decode())
        if problem is None:
            offset = self.memory.offset(address or 0)
            if offset is not None:
                kind = ("host_read", "host_write")[role]
                self.sink.note(kind, {"start": offset, "size": size, "site": pc, "row": self.sink.n_rows})
            return 0
        code, headline, notes, places = problem
        end = ("source", "destination")[role]
        self._finding("H001", f"{function.decode()}: the {end} {headline}", notes, _MENDS[code], pc, places)
        return code

    def _problem_with(
        self, address: int, size: int, expected: int, host_bytes: int, direction: str
    ) -> tuple[int, str, tuple[str, ...], list[tuple[str, int]]] | None:
        """(code, rest of the headline, notes, further places) where ``size`` bytes at ``address`` are wrong."""
        if not address:
            return INVALID_PARAM, "is a null pointer", (), []
        offset = self.memory.offset(address)
        if offset is None:
            notes: tuple[str, ...] = (f"The pointer is {address:#x}.",)
            if expected == _DEVICE_MEMORY:
                return INVALID_MEMORY_TYPE, f"is host memory, but {direction} takes it for device memory", notes, []
            if host_bytes and size > host_bytes:
                return INVALID_PARAM, f"has {host_bytes} bytes left in its aclrtMallocHost block, not {size}", notes, []
            return None
        notes = (self.memory.describe(address),)
        if expected == _HOST_MEMORY:
            return INVALID_MEMORY_TYPE, f"is device memory, but {direction} takes it for host memory", notes, []
        block = self.memory.find(offset)
        if block is None or offset >= block.end:
            return INVALID_PARAM, "is in no allocated block", notes, []
        places = [("allocated here", block.allocated_at)]
        if block.freed_at:
            return INVALID_PARAM, "is in a freed block", notes, [*places, ("freed here", block.freed_at)]
        left = block.end - offset
        if size > left:
            return INVALID_PARAM, f"has {left} bytes left in its block, not {size}", notes, places
        return None

    def _misuse(self, function: bytes, what: bytes, mend: bytes, pc: int) -> None:
        self._finding("H002", f"{function.decode()}: {what.decode(errors='replace')}", (), mend.decode(), pc)

    def _device_info(self, attribute: int) -> int:
        """A device attribute by its public number; -1 where it is not known, 0 asks for the free device memory."""
        cube = _CUBE_CORES.get(self.profile.npu_arch, 1)
        known = {
            0: self.memory.free_bytes,
            101: cube,
            102: cube,
            201: 2 * cube,
            204: self.profile.spaces["UB"].capacity,
            301: self.memory.capacity,
        }
        if self.profile.npu_arch.isdigit():
            known[601] = int(self.profile.npu_arch)
        return known.get(attribute, -1)

    # -- notes ---------------------------------------------------------------------------------------------------------

    def _finding(
        self, code: str, headline: str, notes: Sequence[str], mend: str, pc: int,
        places: Sequence[tuple[str, int]] = (), severity: Severity = Severity.ERROR,
    ) -> None:  # fmt: skip
        """A finding of the host program: at a call site, in no row."""
        if self.machine.is_ahead:
            unfit()
        self.sink.note("finding", _finding_note(code, headline, notes, mend, pc, places, severity))
        self._set_error(headline)

    def _set_error(self, text: str) -> None:
        self.library.ascsim_set_error(text.encode())

    def internal_error(self, error: BaseException) -> None:
        """Note an error of ascsim's own, and end the kernel that met it."""
        if os.environ.get("ASCSIM_DEBUG"):
            traceback.print_exc()
        where = traceback.extract_tb(error.__traceback__)[-1]
        diagnostic = Diagnostic(
            "H099", Severity.ERROR, f"ascsim failed: {type(error).__name__}: {error}", (),
            (f"in {where.name}, {Path(where.filename).name}:{where.lineno}",),
            "Please report this. With ASCSIM_DEBUG=1 in the environment the Python traceback is shown.",
        )  # fmt: skip
        self._stop(Fault(diagnostic), self._pc[0])


def _finding_note(
    code: str, headline: str, notes: Sequence[str], mend: str, pc: int, places: Sequence[tuple[str, int]],
    severity: Severity,
) -> dict[str, Any]:  # fmt: skip
    return {
        "row": -1, "site": pc, "code": code, "severity": str(severity), "headline": headline,
        "notes": list(notes), "mend": mend, "places": [{"what": what, "site": site} for what, site in places],
    }  # fmt: skip


def _loaded_code(module: NativeModule, elf: ElfFile) -> Code:
    return Code(module.base, module.size, elf.symbols)


_CUSTOM_PAD = 255
"""``pad`` of a tile with a pad value of its own; the bits are in ``shape[0]``."""
_UNASSIGNED = (1 << 64) - 1
_CALLER = 1
"""The first noted site, which is no program counter."""
_MENDS = {
    INVALID_PARAM: "Pass a pointer to memory that is allocated and large enough.",
    INVALID_MEMORY_TYPE: "Use the ACL_MEMCPY_ kind that says where both pointers point, and check the argument order.",
}


def _guarded(function: Callable[..., Any], host: Host, failure: Any) -> Callable[..., Any]:
    """The callback with a last resort: an exception of ascsim's own becomes a note, never a lost one."""

    @functools.wraps(function)
    def callback(*args: Any) -> Any:
        try:
            return function(*args)
        except BaseException as error:
            host.internal_error(error)
            return failure

    return callback


def _scalar(bits: int, kind: DType | None) -> int | float:
    """A scalar operand's value."""
    if kind is None:
        return bits - (1 << 64) if bits >> 63 else bits
    value = np.frombuffer(bits.to_bytes(8, "little")[: kind.size], kind.numpy)[0]
    return float(value) if kind.kind == "f" else int(value)


def _choice(bits: int, enum: type | None) -> Any:
    """An enumerator, or the integer where the enumeration has no such value (the rules say so)."""
    value = bits - (1 << 64) if bits >> 63 else bits
    if enum is None or not issubclass(enum, Enum):
        return value
    try:
        return enum(value)
    except ValueError:
        return value


def _as_int64(value: Any) -> int:
    """A number, an address, or counts of 16 bits each side by side, as C++ receives it."""
    if isinstance(value, Tile):
        value = value.address
    number = sum(count << (16 * place) for place, count in enumerate(value)) if isinstance(value, tuple) else int(value)
    return number - (1 << 64) if number >= 1 << 63 else number


def _aligned(offset: int, alignment: int) -> int:
    alignment = max(alignment, 1)
    return (offset + alignment - 1) // alignment * alignment


def _ratio(mix: str) -> tuple[int, int]:
    """AIC and AIV cores a block of a kernel ``mix(1, 2)``; a bare ``mix`` is 1:2."""
    numbers = [int(word) for word in mix.removeprefix("mix").strip("() ").split(",") if word.strip().isdigit()]
    return (min(numbers[0], 1), numbers[1]) if len(numbers) == 2 else (1, 2)
