// The runtime library of compiled kernels: it joins a program's host code, its device images and the Python host.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <ctime>
#include <mutex>
#include <string>

#include "ascsim/runtime.hpp"
#include "host.hpp"

#define RETURN_ADDRESS reinterpret_cast<uint64_t>(__builtin_return_address(0))

extern "C" {
AscsimHost ascsim_host;
AscsimCall ascsim_call;
AscsimTrace ascsim_trace;
AscsimCore ascsim_core;
int32_t ascsim_awaited;
uint8_t ascsim_event_ids[ASCSIM_PIPES][ASCSIM_PIPES][1 << 16];
char ascsim_soc_name[64];
}

// What Python mirrors with ctypes and struct.
static_assert(sizeof(AscsimOperand) == 112 && sizeof(AscsimCore) == 200 && sizeof(AscsimTrace) == 72);
static_assert(sizeof(AscsimCall) == 16 + ASCSIM_MAX_OPERANDS * sizeof(AscsimOperand) && sizeof(AscsimModule) == 1048);

namespace ascsim {
uint64_t memories_start, memories_size;
bool is_ahead;
Shapes shapes;
}  // namespace ascsim

namespace {

constexpr int UNFIT = 3;  // of machine/ahead.py

std::string trace_directory;
std::string start_error;
thread_local jmp_buf block_end;
std::recursive_mutex everything;

// The trace -----------------------------------------------------------------------------------------------------------

// What was counted and is not in a table's file yet lies in its window: memory that is shared with the file tail.bin, so
// that it is there however this process ends. A full window goes to the table's file in one piece: that costs a third of
// what fresh pages of a mapped file do.
constexpr uint64_t MIB = 1ull << 20;
constexpr uint64_t WINDOW = MIB / 4;
constexpr int TABLES = 4;

// The first page of tail.bin, before the windows. `before` records are in the files of the process that this one is a copy of.
struct Tail {
    uint64_t counted[TABLES], written[TABLES], window, before[TABLES];
};
constexpr uint64_t TAIL_PAGE = 4096;

Tail* tail = nullptr;

struct Table {
    const char* name;
    uint64_t record;
    uint8_t** start;
    uint64_t* capacity;
    int file = -1;
};

Table tables[TABLES] = {
    {"rows.bin", 32, &ascsim_trace.rows, &ascsim_trace.row_capacity},
    {"accesses.bin", 32, &ascsim_trace.accesses, &ascsim_trace.access_capacity},
    {"masks.bin", 32, &ascsim_trace.masks, &ascsim_trace.mask_capacity},
    {"shapes.bin", 40, &ascsim::shapes.start, &ascsim::shapes.capacity},
};

std::string system_error(const std::string& what)
{
    return what + ": " + std::strerror(errno);
}

int open_in_trace(const char* name)
{
    return open((trace_directory + "/" + name).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

uint8_t* window_of(int number)
{
    return reinterpret_cast<uint8_t*>(tail) + TAIL_PAGE + static_cast<uint64_t>(number) * WINDOW;
}

// Where a record lies follows from its number, so the table's start moves back as the window moves on.
void place(int number)
{
    const Table& table = tables[number];
    const uint64_t before = tail->written[number] * table.record;
    *table.start = reinterpret_cast<uint8_t*>(reinterpret_cast<uint64_t>(window_of(number)) - before);
    *table.capacity = tail->written[number] + WINDOW / table.record;
}

bool empty_window(int number)
{
    const Table& table = tables[number];
    const uint64_t count = tail->counted[number];
    uint64_t at = tail->written[number] * table.record;
    const uint8_t* from = window_of(number);
    for (uint64_t left = count * table.record - at; left != 0;) {
        const ssize_t size = pwrite(table.file, from, left, static_cast<off_t>(at - tail->before[number] * table.record));
        if (size < 0 && errno != EINTR) {
            return false;
        }
        const auto done = static_cast<uint64_t>(std::max<ssize_t>(size, 0));
        from += done, at += done, left -= done;
    }
    tail->written[number] = count;
    return true;
}

// `before` are the numbers that the first records have.
bool open_tables(const uint64_t (&before)[TABLES])
{
    constexpr uint64_t SIZE = TAIL_PAGE + TABLES * WINDOW;
    int file = open_in_trace("tail.bin");
    if (file < 0 || (errno = posix_fallocate(file, 0, SIZE)) != 0) {
        return false;
    }
    void* mapped = mmap(nullptr, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) {
        return false;
    }
    tail = static_cast<Tail*>(mapped);
    tail->window = WINDOW;
    for (int number = 0; number < TABLES; ++number) {
        tail->counted[number] = tail->written[number] = tail->before[number] = before[number];
    }
    ascsim_trace.n_rows = &tail->counted[0];
    ascsim_trace.n_accesses = &tail->counted[1];
    ascsim_trace.n_masks = &tail->counted[2];
    ascsim::shapes.count = &tail->counted[3];
    for (int number = 0; number < TABLES; ++number) {
        tables[number].file = open_in_trace(tables[number].name);
        if (tables[number].file < 0) {
            return false;
        }
        place(number);
    }
    return true;
}

// Crashes -------------------------------------------------------------------------------------------------------------

constexpr int CRASH_SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGQUIT};

struct Crash {
    uint64_t signal, pc, address, rows, frame_count;
    void* frames[59];
};
static_assert(sizeof(Crash) == 512);

int crash_file = -1;
int crash_maps = -1;
alignas(16) char signal_stack[256 * 1024];

uint64_t interrupted_pc(const void* context)
{
    const auto* machine = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
    return static_cast<uint64_t>(machine->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return machine->uc_mcontext.pc;
#else
    (void)machine;
    return 0;
#endif
}

// Which file lies where, for the parent to find the frames' lines.
void save_maps()
{
    static char buffer[4096];
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t size; maps >= 0 && (size = read(maps, buffer, sizeof(buffer))) > 0;) {
        ssize_t ignored = write(crash_maps, buffer, static_cast<size_t>(size));
        (void)ignored;
    }
}

// Blocks run in a copy of the process that this one waits for: it is that copy that takes too long, and says where it is.
bool end_awaited()
{
    constexpr timespec MOMENT{0, 10'000'000};
    kill(ascsim_awaited, SIGQUIT);
    for (int moments = 0; moments < 150; ++moments) {
        if (waitpid(ascsim_awaited, nullptr, WNOHANG) != 0) {
            return true;
        }
        nanosleep(&MOMENT, nullptr);
    }
    return false;
}

// Leaves what is known in crash.bin, then dies of the same signal. The frames come second: walking a broken stack may
// crash again, which ends the process with the first record written. (SIGQUIT is how the parent ends a run that takes too
// long.)
void on_crash(int number, siginfo_t* info, void* context)
{
    static Crash crash;
    if (ascsim::is_ahead && number != SIGQUIT) {
        raise(number);  // its span is run again
        return;
    }
    if (number == SIGQUIT && ascsim_awaited > 0 && end_awaited()) {
        raise(number);
        return;
    }
    bool has_address = number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL;
    crash.signal = static_cast<uint64_t>(number);
    crash.pc = interrupted_pc(context);
    crash.address = has_address ? reinterpret_cast<uint64_t>(info->si_addr) : 0;
    crash.rows = *ascsim_trace.n_rows;
    if (pwrite(crash_file, &crash, sizeof(crash), 0) == static_cast<ssize_t>(sizeof(crash))) {
        save_maps();
        crash.frame_count = static_cast<uint64_t>(backtrace(crash.frames, 59));
        ssize_t ignored = pwrite(crash_file, &crash, sizeof(crash), 0);
        (void)ignored;
    }
    raise(number);
}

bool handle_crashes()
{
    crash_file = open_in_trace("crash.bin");
    crash_maps = open_in_trace("crash.maps");
    if (crash_file < 0 || crash_maps < 0) {
        return false;
    }
    void* frames[2];
    backtrace(frames, 2);  // loads what it needs, which a signal handler must not
    stack_t stack{};
    stack.ss_sp = signal_stack;
    stack.ss_size = sizeof(signal_stack);
    sigaltstack(&stack, nullptr);
    struct sigaction action{};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (int number : CRASH_SIGNALS) {
        sigaction(number, &action, nullptr);
    }
    // Python catches or ignores these; the user's program expects their defaults.
    for (int number : {SIGINT, SIGPIPE, SIGXFSZ}) {
        signal(number, SIG_DFL);
    }
    return true;
}

// Memories ------------------------------------------------------------------------------------------------------------

// Fixed addresses, so that two runs print the same pointers. Each core memory has a gigabyte of its own.
constexpr uint64_t GLOBAL_ADDRESS = 0x100000000000;
constexpr uint64_t CORE_ADDRESS = 0x0f0000000000;
constexpr uint64_t CORE_STRIDE = 1ull << 30;
constexpr uint64_t SMALLEST_GLOBAL = 256 * MIB;

uint8_t* map_at(uint64_t address, uint64_t bytes)
{
    constexpr int FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* mapped = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE, FLAGS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == MAP_FAILED) {
        mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
    }
    return mapped == MAP_FAILED ? nullptr : static_cast<uint8_t*>(mapped);
}

struct ModuleSearch {
    uint64_t base, end;
};

int find_module_end(dl_phdr_info* info, size_t /* size */, void* data)
{
    auto* search = static_cast<ModuleSearch*>(data);
    if (info->dlpi_addr != search->base) {
        return 0;
    }
    for (int index = 0; index < info->dlpi_phnum; ++index) {
        const auto& segment = info->dlpi_phdr[index];
        if (segment.p_type == PT_LOAD) {
            search->end = std::max<uint64_t>(search->end, info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
        }
    }
    return 1;
}

void locate(AscsimModule* module)
{
    link_map* map = nullptr;
    if (module->handle == nullptr || dlinfo(module->handle, RTLD_DI_LINKMAP, &map) != 0) {
        return;
    }
    ModuleSearch search{map->l_addr, 0};
    dl_iterate_phdr(find_module_end, &search);
    module->base = search.base;
    module->size = search.end > search.base ? search.end - search.base : 0;
}

}  // namespace

namespace ascsim {

void fatal(const char* message)
{
    int file = open_in_trace("fatal.txt");
    ssize_t ignored = file < 0 ? 0 : write(file, message, std::strlen(message));
    (void)ignored;
    _exit(70);
}

void end_block() { longjmp(block_end, 1); }

void unfit() { _exit(UNFIT); }

Lock::Lock() { everything.lock(); }
Lock::~Lock() { everything.unlock(); }

}  // namespace ascsim

extern "C" {

static std::terminate_handler terminate_before = nullptr;

// An instruction of a portable program's host code was refused, which is noted, and nobody catches that: the end.
static void end_stopped_program()
{
    if (std::current_exception() != nullptr) {
        try {
            throw;
        } catch (const ascsim::Stop&) {
            std::fflush(nullptr);
            _exit(1);
        } catch (...) {
        }
    }
    terminate_before();
}

const char* ascsim_runtime_start(const char* directory, const AscsimHost* host)
{
    trace_directory = directory;
    ascsim_host = *host;
    if (!open_tables({}) || !handle_crashes()) {
        start_error = system_error("the trace in " + trace_directory + " cannot be opened");
        return start_error.c_str();
    }
    terminate_before = std::set_terminate(end_stopped_program);
    std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);  // what was printed before a crash is seen
    return nullptr;
}

const char* ascsim_map_memories(uint64_t global_bytes, const uint64_t* capacities)
{
    for (; ascsim_core.memory[0] == nullptr && global_bytes >= SMALLEST_GLOBAL; global_bytes /= 2) {
        ascsim_core.memory[0] = map_at(GLOBAL_ADDRESS, global_bytes);
        ascsim_core.capacity[0] = global_bytes;
    }
    bool is_mapped = ascsim_core.memory[0] != nullptr;
    for (uint64_t space = 1; space < 8 && is_mapped; ++space) {
        if (capacities[space] != 0) {
            ascsim_core.memory[space] = map_at(CORE_ADDRESS + space * CORE_STRIDE, capacities[space] + ASCSIM_GUARD);
            ascsim_core.capacity[space] = capacities[space];
            is_mapped = ascsim_core.memory[space] != nullptr;
        }
    }
    if (!is_mapped) {
        start_error = system_error("the memories of the simulated chip cannot be mapped");
        return start_error.c_str();
    }
    uint64_t low = ~uint64_t{0}, high = 0;
    for (uint64_t space = 0; space < 8; ++space) {
        if (ascsim_core.memory[space] != nullptr) {
            const auto start = reinterpret_cast<uint64_t>(ascsim_core.memory[space]);
            low = std::min(low, start);
            high = std::max(high, start + ascsim_core.capacity[space] + ASCSIM_GUARD);
        }
    }
    ascsim::memories_start = low;
    ascsim::memories_size = high - low;
    return nullptr;
}

void ascsim_load(const char* path, int32_t is_program, AscsimModule* module)
{
    // A device image may name host functions that it never calls; what the program lacks is better known at once.
    module->handle = dlopen(path, is_program ? RTLD_NOW | RTLD_GLOBAL : RTLD_LAZY | RTLD_LOCAL);
    if (module->handle == nullptr) {
        std::snprintf(module->error, sizeof(module->error), "%s", dlerror());
    }
    locate(module);
}

int32_t ascsim_run_block(void* entry, void* arguments, char* message, uint64_t message_size)
{
    if (setjmp(block_end) != 0) {
        return 1;
    }
    try {
        reinterpret_cast<void (*)(void*)>(entry)(arguments);
        return 0;
    } catch (const ascsim::Stop&) {
        return 1;
    } catch (const std::exception& error) {
        std::snprintf(message, message_size, "%s", error.what());
    } catch (...) {
        std::snprintf(message, message_size, "an object that is no std::exception");
    }
    return 2;
}

__attribute__((noinline)) int64_t ascsim_issue(uint32_t definition, uint32_t count, const AscsimOperand* operands)
{
    const uint64_t pc = RETURN_ADDRESS;
    count = std::min<uint32_t>(count, ASCSIM_MAX_OPERANDS);
    if (ascsim::run_again(definition, count, operands, pc)) {
        return -1;
    }
    ascsim_call.pc = pc;
    ascsim_call.result = 0;
    std::memcpy(ascsim_call.operands, operands, count * sizeof(AscsimOperand));
    if (ascsim_host.issue(definition, count) != 0) {
        throw ascsim::Stop{};
    }
    return ascsim_call.result;
}

__attribute__((noinline)) void* ascsim_resolve(uint32_t definition, uint32_t variant)
{
    void* function = ascsim_host.resolve(definition, variant, RETURN_ADDRESS);
    if (function == nullptr) {
        throw ascsim::Stop{};
    }
    return function;
}

__attribute__((noinline)) void ascsim_fault_access(uint32_t definition, uint8_t space, uint64_t value, uint64_t bytes)
{
    ascsim_host.fault_access(definition, space, value, bytes, RETURN_ADDRESS);
    throw ascsim::Stop{};
}

void ascsim_refuse(uint32_t definition, const char* code, const char* problem, uint64_t site)
{
    ascsim_host.refuse(definition, code, problem, site);
    throw ascsim::Stop{};
}

int32_t ascsim_trace_divert(const char* directory, uint64_t rows, uint64_t masks, uint64_t shapes)
{
    trace_directory = directory;
    return open_tables({rows, 0, masks, shapes}) ? 0 : -1;
}

void ascsim_trace_settle(void)
{
    for (int number = 0; number < TABLES; ++number) {
        place(number);
        if (!empty_window(number)) {
            ascsim::fatal(system_error("the trace in " + trace_directory + " cannot grow").c_str());
        }
        place(number);
    }
}

void ascsim_trace_begin(void)
{
    ascsim_trace_settle();
    ascsim::begin_scalar();
    ascsim::begin_turns();
}

void ascsim_flush(void)
{
    std::cout.flush();
    std::clog.flush();
}

void ascsim_run_ahead(void)
{
    // Of accesses to memory below the stack one hears that are to no memory of the chip: what another block could see.
    constexpr uint64_t STACK = 64 * MIB;
    ascsim::is_ahead = true;
    ascsim::memories_start = 0;
    ascsim::memories_size = reinterpret_cast<uint64_t>(__builtin_frame_address(0)) - STACK;
}

void ascsim_trace_grow(void)
{
    ascsim_turns.rows = ~uint64_t{0};  // its records may go
    for (int number = 0; number < TABLES; ++number) {
        place(number);  // a process that was forked off may have emptied the window
        if (*tables[number].capacity - tail->counted[number] < ASCSIM_TRACE_ROOM) {
            if (!empty_window(number)) {
                ascsim::fatal(system_error("the trace in " + trace_directory + " cannot grow").c_str());
            }
            place(number);
        }
    }
}

__attribute__((noinline)) void* ascsim_local_array(uint8_t space, uint64_t bytes, uint64_t alignment, uint8_t dtype,
                                                   const char* name, const void* declaration)
{
    auto key = reinterpret_cast<uint64_t>(declaration);
    void* address = ascsim_host.local_array(space, bytes, alignment, dtype, name, key, RETURN_ADDRESS);
    if (address == nullptr) {
        throw ascsim::Stop{};
    }
    return address;
}

__attribute__((noinline)) void* ascsim_auto_tile(uint8_t space, uint64_t bytes, uint64_t alignment, uint8_t /* dtype */)
{
    void* address = ascsim_host.auto_tile(space, bytes, alignment, RETURN_ADDRESS);
    if (address == nullptr) {
        throw ascsim::Stop{};
    }
    return address;
}

void ascsim_auto_tile_end(uint8_t space, void* address)
{
    ascsim_host.auto_tile_end(space, reinterpret_cast<uint64_t>(address));
}

__attribute__((noinline)) void ascsim_launch(const char* kernel, const char* file, uint32_t line, int64_t blocks,
                                             uint64_t dynamic_ub, void* host_entry, void* arguments)
{
    uint64_t pc = RETURN_ADDRESS;
    ascsim::Lock lock;
    int32_t code = ascsim_host.launch(kernel, file, line, blocks, dynamic_ub, host_entry, arguments, pc);
    if (code != 0) {
        ascsim_set_device_error(code);
    }
}
}
