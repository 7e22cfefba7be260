// What device code reads and writes through raw pointers. It is compiled with -fsanitize=thread, which calls a function
// before each such access; these here leave rows of the scalar pipe for those that lie in a memory of the chip.
//
// Accesses of one place in the code at a constant distance are one row, which grows as they come: a loop over a thousand
// elements is no thousand rows. A row grows only while the trace ends with rows of this sort, and while that changes the
// order of no two accesses to one byte.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include <pthread.h>

#include "host.hpp"
#include "records.hpp"

#define RETURN_ADDRESS reinterpret_cast<uint64_t>(__builtin_return_address(0))

extern "C" {
uint16_t ascsim_scalar_mnemonic;
}

namespace {

using namespace ascsim::records;

constexpr uint8_t PIPE_S = 0, PIPE_V = 1;        // Pipe of machine/words.py
constexpr uint8_t UB = 1, GM = 0, LAST_SPACE = 7;
constexpr unsigned MOST_RUNS = 16;
constexpr uint32_t POLLS = 64;  // so many reads of one place in global memory, with nothing in between, are waiting

// A row that may grow: all its accesses so far lie from `low` to `high`, the newest at `last`.
struct Run {
    uint64_t site, last, low, high, row, access;
    int64_t stride;
    uint32_t size, count, same, shape;
    uint8_t mode;

    bool meets(uint64_t address, uint64_t bytes) const { return address < high && low < address + bytes; }
};

Run runs[MOST_RUNS];
unsigned n_runs = 0;
uint64_t rows_then = 0;
uint16_t core_then = 0;

// Room for a record more in each table.
void make_room()
{
    const AscsimTrace& trace = ascsim_trace;
    if (*trace.n_rows >= trace.row_capacity || *trace.n_accesses + 1 >= trace.access_capacity ||
        *ascsim::shapes.count >= ascsim::shapes.capacity) {
        ascsim_trace_grow();
        n_runs = 0;  // their records may have gone
    }
}

// The space of an address and the offset in it; false if it is in none.
bool find_space(uint64_t address, uint8_t& space, int64_t& offset)
{
    for (unsigned number = 0; number <= LAST_SPACE; ++number) {
        const uint64_t at = address - reinterpret_cast<uint64_t>(ascsim_core.memory[number]);
        const uint64_t guard = number == GM ? 0 : ASCSIM_GUARD;
        if (ascsim_core.memory[number] != nullptr && at < ascsim_core.capacity[number] + guard) {
            space = static_cast<uint8_t>(number);
            offset = static_cast<int64_t>(at);
            return true;
        }
    }
    return false;
}

// Whether an address lies in the stack of this thread: cores that wait for each other have threads of their own.
bool is_in_stack(uint64_t address)
{
    thread_local uint64_t start = 0, size = 0;
    if (size == 0) {
        pthread_attr_t attributes;
        void* low = nullptr;
        size_t bytes = 1;
        if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
            pthread_attr_getstack(&attributes, &low, &bytes);
            pthread_attr_destroy(&attributes);
        }
        start = reinterpret_cast<uint64_t>(low);
        size = bytes;
    }
    return address - start < size;
}

// What is written to memory that is in no memory of the chip, a static variable, say, the next block could read.
void refuse_if_ahead(uint64_t address, uint8_t mode)
{
    if (ascsim::is_ahead && mode == WRITE && !is_in_stack(address)) {
        ascsim::unfit();
    }
}

uint64_t append_access(uint8_t space, uint8_t mode, int64_t offset, uint64_t size)
{
    const uint64_t number = *ascsim_trace.n_accesses;
    record<Access>(ascsim_trace.accesses, number) = {space, mode, 0, 0, 0, offset, static_cast<uint32_t>(size), 0, 0, 0};
    __atomic_store_n(ascsim_trace.n_accesses, number + 1, __ATOMIC_RELEASE);
    return number;
}

uint64_t append_row(uint8_t accesses, uint64_t site, uint16_t flags)
{
    const uint64_t number = *ascsim_trace.n_rows;
    const uint8_t pipe = ascsim_core.in_vector_function ? PIPE_V : PIPE_S;
    record<Row>(ascsim_trace.rows, number) = {
        ascsim_core.core, pipe, 0, ascsim_scalar_mnemonic, accesses, 0, -1, 0, site, 1, flags, 0, 0};
    __atomic_store_n(ascsim_trace.n_rows, number + 1, __ATOMIC_RELEASE);
    rows_then = number + 1;
    core_then = ascsim_core.core;
    return number;
}

// Let a row grow by an access; false if it must have a row of its own.
bool grow(Run& run, uint64_t address)
{
    const int64_t step = static_cast<int64_t>(address - run.last), size = run.size;
    if (step != 0 && (run.count == 1 ? std::abs(step) < size : step != run.stride)) {
        return false;
    }
    for (const Run* other = runs; other < runs + n_runs; ++other) {
        if (other->row > run.row && (other->mode | run.mode) & WRITE && other->meets(address, run.size)) {
            return false;
        }
    }
    run.same = step == 0 ? run.same + 1 : 0;
    ++record<Row>(ascsim_trace.rows, run.row).work;
    if (step == 0) {
        return true;
    }
    Access& access = record<Access>(ascsim_trace.accesses, run.access);
    run.stride = step;
    run.last = address;
    run.low = std::min(run.low, address);
    run.high = std::max(run.high, address + run.size);
    ++run.count;
    if (std::abs(step) == size) {
        access.start -= step < 0 ? size : 0;
        access.length += run.size;
        return true;
    }
    if (run.shape == 0) {
        run.shape = static_cast<uint32_t>(++*ascsim::shapes.count);
    }
    record<Shape>(ascsim::shapes.start, run.shape - 1) = {run.count, 1, 1, 0, step, 0, 0};
    access.shape = run.shape;
    return true;
}

__attribute__((noinline)) void note(uint64_t address, uint64_t size, uint8_t mode, uint64_t site)
{
    uint8_t space = 0;
    int64_t offset = 0;
    if (ascsim_core.side == 0 || size == 0) {
        return;
    }
    if (!find_space(address, space, offset)) {
        refuse_if_ahead(address, mode);
        return;
    }
    if (*ascsim_trace.n_rows != rows_then || ascsim_core.core != core_then) {
        n_runs = 0;
    }
    make_room();
    for (Run* run = runs; run < runs + n_runs; ++run) {
        if (run->site != site || run->mode != mode || run->size != size) {
            continue;
        }
        if (!grow(*run, address)) {
            n_runs = 0;
        } else if (run->same < POLLS || space != GM || mode != READ) {
            return;
        } else if (ascsim_host.give_way() == 0) {
            n_runs = 0;  // what it reads now may be new: a row of its own, behind those of other cores
            make_room();
        } else {
            ascsim::end_block();  // the compiler takes these functions for ones that never throw
        }
        break;
    }
    if (n_runs == MOST_RUNS) {
        n_runs = 0;
    }
    const uint64_t access = append_access(space, mode, offset, size), row = append_row(1, site, SITE_PC | CACHED);
    runs[n_runs++] = {site, address, address, address + size, row, access, 0, static_cast<uint32_t>(size), 1, 0, 0, mode};
}

// Most accesses are to the host's stack: they cost a comparison.
inline void touch(const volatile void* pointer, uint64_t size, uint8_t mode, uint64_t site)
{
    const auto address = reinterpret_cast<uint64_t>(pointer);
    if (__builtin_expect(address - ascsim::memories_start < ascsim::memories_size, 0)) {
        note(address, size, mode, site);
    }
}

// The newest exchange, and the row behind it.
uint64_t exchanged = 0, row_behind = 0;

// A row of its own, which reads and writes. Twice in a row at one place in global memory it is taken to wait for others.
void exchange(const volatile void* pointer, uint64_t size, uint64_t site)
{
    const auto address = reinterpret_cast<uint64_t>(pointer);
    uint8_t space = 0;
    int64_t offset = 0;
    if (ascsim_core.side == 0) {
        return;
    }
    if (!find_space(address, space, offset)) {
        refuse_if_ahead(address, WRITE);
        return;
    }
    const bool again = address == exchanged && *ascsim_trace.n_rows == row_behind && ascsim_core.core == core_then;
    if (again && space == GM && ascsim_host.give_way() != 0) {
        ascsim::end_block();
    }
    make_room();
    append_access(space, READ, offset, size);
    append_access(space, WRITE, offset, size);
    row_behind = append_row(2, site, SITE_PC | ATOMIC) + 1;
    exchanged = address;
    n_runs = 0;
}

}  // namespace

namespace ascsim {

void begin_scalar() { n_runs = 0, exchanged = 0; }

}  // namespace ascsim

// The names that g++ and clang++ call. Functions of one macro differ in the size alone.
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}
void __tsan_vptr_read(void** pointer) { touch(pointer, sizeof(void*), READ, RETURN_ADDRESS); }
void __tsan_vptr_update(void** pointer, void*) { touch(pointer, sizeof(void*), WRITE, RETURN_ADDRESS); }
void __tsan_read_range(void* pointer, unsigned long size) { touch(pointer, size, READ, RETURN_ADDRESS); }
void __tsan_write_range(void* pointer, unsigned long size) { touch(pointer, size, WRITE, RETURN_ADDRESS); }

void* __tsan_memcpy(void* to, const void* from, unsigned long size)
{
    touch(from, size, READ, RETURN_ADDRESS);
    touch(to, size, WRITE, RETURN_ADDRESS);
    return std::memcpy(to, from, size);
}

void* __tsan_memmove(void* to, const void* from, unsigned long size)
{
    touch(from, size, READ, RETURN_ADDRESS);
    touch(to, size, WRITE, RETURN_ADDRESS);
    return std::memmove(to, from, size);
}

void* __tsan_memset(void* to, int value, unsigned long size)
{
    touch(to, size, WRITE, RETURN_ADDRESS);
    return std::memset(to, value, size);
}

// What device code calls under the C library's names: its link gives them these (driver.py).
void* __wrap_memcpy(void*, const void*, unsigned long) __attribute__((alias("__tsan_memcpy")));
void* __wrap_memmove(void*, const void*, unsigned long) __attribute__((alias("__tsan_memmove")));
void* __wrap_memset(void*, int, unsigned long) __attribute__((alias("__tsan_memset")));

#define ACCESS_FUNCTIONS(prefix, size)                                                                          \
    void __tsan_##prefix##read##size(void* pointer) { touch(pointer, size, READ, RETURN_ADDRESS); }             \
    void __tsan_##prefix##write##size(void* pointer) { touch(pointer, size, WRITE, RETURN_ADDRESS); }

#define COMPOUND_FUNCTIONS(prefix, size)                        \
    void __tsan_##prefix##read_write##size(void* pointer)       \
    {                                                           \
        touch(pointer, size, READ, RETURN_ADDRESS);             \
        touch(pointer, size, WRITE, RETURN_ADDRESS + 1);        \
    }

#define FUNCTIONS_OF_SIZE(size)                  \
    ACCESS_FUNCTIONS(, size)                     \
    ACCESS_FUNCTIONS(volatile_, size)            \
    ACCESS_FUNCTIONS(unaligned_, size)           \
    ACCESS_FUNCTIONS(unaligned_volatile_, size)  \
    COMPOUND_FUNCTIONS(, size)                   \
    COMPOUND_FUNCTIONS(unaligned_, size)

FUNCTIONS_OF_SIZE(1)
FUNCTIONS_OF_SIZE(2)
FUNCTIONS_OF_SIZE(4)
FUNCTIONS_OF_SIZE(8)
FUNCTIONS_OF_SIZE(16)

int32_t ascsim_atomic_add(void* number, int32_t value)
{
    exchange(number, sizeof value, RETURN_ADDRESS);
    return __atomic_fetch_add(static_cast<int32_t*>(number), value, __ATOMIC_SEQ_CST);
}

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

#define ATOMIC_UPDATE(bits, name)                                                                   \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t* pointer, uint##bits##_t value, int) \
    {                                                                                               \
        exchange(pointer, bits / 8, RETURN_ADDRESS);                                                \
        return __atomic_##name(pointer, value, __ATOMIC_SEQ_CST);                                   \
    }

#define ATOMIC_COMPARE(bits, strength, is_weak)                                                                     \
    int __tsan_atomic##bits##_compare_exchange_##strength(volatile uint##bits##_t* pointer, uint##bits##_t* expected, \
                                                          uint##bits##_t value, int, int)                           \
    {                                                                                                               \
        exchange(pointer, bits / 8, RETURN_ADDRESS);                                                                \
        return __atomic_compare_exchange_n(pointer, expected, value, is_weak, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
    }

#define ATOMIC_FUNCTIONS(bits)                                                                                       \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* pointer, int)                           \
    {                                                                                                                \
        touch(pointer, bits / 8, READ, RETURN_ADDRESS);                                                              \
        return __atomic_load_n(pointer, __ATOMIC_SEQ_CST);                                                           \
    }                                                                                                                \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t* pointer, uint##bits##_t value, int)                    \
    {                                                                                                                \
        touch(pointer, bits / 8, WRITE, RETURN_ADDRESS);                                                             \
        __atomic_store_n(pointer, value, __ATOMIC_SEQ_CST);                                                          \
    }                                                                                                                \
    uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t* pointer, uint##bits##_t value, int)       \
    {                                                                                                                \
        exchange(pointer, bits / 8, RETURN_ADDRESS);                                                                 \
        return __atomic_exchange_n(pointer, value, __ATOMIC_SEQ_CST);                                                \
    }                                                                                                                \
    ATOMIC_UPDATE(bits, fetch_add)                                                                                   \
    ATOMIC_UPDATE(bits, fetch_sub)                                                                                   \
    ATOMIC_UPDATE(bits, fetch_and)                                                                                   \
    ATOMIC_UPDATE(bits, fetch_or)                                                                                    \
    ATOMIC_UPDATE(bits, fetch_xor)                                                                                   \
    ATOMIC_UPDATE(bits, fetch_nand)                                                                                  \
    ATOMIC_COMPARE(bits, strong, false)                                                                              \
    ATOMIC_COMPARE(bits, weak, true)                                                                                 \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile uint##bits##_t* pointer,                      \
                                                              uint##bits##_t expected, uint##bits##_t value, int, int) \
    {                                                                                                                \
        exchange(pointer, bits / 8, RETURN_ADDRESS);                                                                 \
        __atomic_compare_exchange_n(pointer, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);           \
        return expected;                                                                                             \
    }

ATOMIC_FUNCTIONS(8)
ATOMIC_FUNCTIONS(16)
ATOMIC_FUNCTIONS(32)
ATOMIC_FUNCTIONS(64)
}
