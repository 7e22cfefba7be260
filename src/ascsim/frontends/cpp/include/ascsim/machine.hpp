// How C++ code reaches the machine: operands for ascsim_issue, register instructions that run compiled semantics in place,
// local arrays, and the vector function's scope. ascsim/words.hpp is generated (see generate.py).
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ascsim/abi.h"
#include "ascsim/types.hpp"
#include "ascsim/words.hpp"

// A function of the headers that stands between the user's line and the machine. It is always inlined, so that the return
// address of the call below it, or here(), lies in the user's line, and it touches no memory: that is left to QUIET ones.
#define ASCSIM_INLINE inline __attribute__((always_inline))
// One form of an instruction. As a template it costs nothing until it is called.
#define ASCSIM_FORM template <int = 0> ASCSIM_INLINE
// Copies of the headers' own are __builtin_memcpy: the C library's are the user's, which are traced.
// A function that works on the trace and the operands. Device code is compiled with -fsanitize=thread, to see the user's
// scalar accesses; ours are not among them.
#define ASCSIM_QUIET __attribute__((noinline, no_sanitize("thread")))

namespace ascsim {

// What a call of an instruction that cannot be used here yields: anything, since it does not compile.
struct Absent {
    template <class Type>
    operator Type() const;
};

// Matches any argument, worse than a real parameter does.
struct Any {
    Any() = default;
    template <class Type>
    Any(Type&&)
    {
    }
};

// A value of an enumeration, or an integer that stands for one.
struct Choice {
    template <class Value, std::enable_if_t<std::is_enum_v<Value> || std::is_integral_v<Value>, int> = 0>
    constexpr Choice(Value chosen) : value(static_cast<int64_t>(chosen))
    {
    }
    int64_t value;
};

// Operands of ascsim_issue

template <class Value>
constexpr uint64_t bits_of(Value value)
{
    static_assert(sizeof(Value) <= sizeof(uint64_t), "a scalar operand has at most eight bytes");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(Value));
    return bits;
}

struct Operand : AscsimOperand {
    Operand() = default;  // all bytes are set by one of the functions below
};

ASCSIM_QUIET inline void set_absent(Operand& operand)
{
    __builtin_memset(static_cast<void*>(&operand), 0, sizeof operand);
}

ASCSIM_QUIET inline void set_bits(Operand& operand, uint8_t sort, uint8_t dtype, uint8_t space, uint64_t bits)
{
    set_absent(operand);
    operand.sort = sort;
    operand.dtype = dtype;
    operand.space = space;
    operand.address = bits;
}

template <class Value>
ASCSIM_INLINE void set_scalar(Operand& operand, Value value)
{
    set_bits(operand, ASCSIM_SCALAR, dtype_code<Value>, 0, bits_of(value));
}

ASCSIM_INLINE void set_choice(Operand& operand, Choice choice)
{
    set_bits(operand, ASCSIM_ENUM, 0, 0, static_cast<uint64_t>(choice.value));
}

template <class Value>
ASCSIM_INLINE void set_pointer(Operand& operand, Space space, Value* pointer)
{
    set_bits(operand, ASCSIM_POINTER, dtype_code<std::remove_cv_t<Value>>, static_cast<uint8_t>(space),
             reinterpret_cast<uint64_t>(pointer));
}

// An element of an array of addresses, which is there if a bit of `given` says so: the array may be shorter.
template <class Value>
ASCSIM_INLINE void set_element(Operand& operand, Space space, Value* const* array, unsigned number, uint64_t given,
                               unsigned bit)
{
    if ((given >> bit & 1) != 0) {
        set_pointer(operand, space, array[number]);
    } else {
        set_absent(operand);
    }
}

// Four counts that a call yields as one number, into what holds them; a call may leave them as they are.
template <class Counts>
ASCSIM_INLINE void set_counts(Counts* counts, int64_t yielded)
{
    if (yielded >= 0) {
        __builtin_memcpy(counts, &yielded, sizeof yielded);
    }
}

// What a call yields, 32 bits each, into the variables that receive it.
template <class... Values>
ASCSIM_INLINE void set_references(int64_t yielded, Values&... values)
{
    unsigned place = 0;
    const auto take = [&](auto& value) {
        const uint32_t word = static_cast<uint32_t>(yielded >> (32 * place++));
        __builtin_memcpy(&value, &word, sizeof value);
    };
    (take(values), ...);
}

template <unsigned Count>
struct Operands {
    Operand list[Count];
    Operand& operator[](unsigned number) { return list[number]; }
};

// One instruction. The empty asm keeps the compiler from making the call a jump, which would lose the return address.
// The host's copy of a kernel runs only where the source pass saw no launch; the runtime says so.
ASCSIM_INLINE int64_t issue(uint32_t definition, uint32_t count, const AscsimOperand* operands)
{
    int64_t result = ascsim_issue(definition, count, operands);
    __asm__ volatile("" : "+r"(result));
    return result;
}

// The trace

// An address inside the user's line, after inlining.
ASCSIM_INLINE uint64_t here()
{
    uint64_t address;
#if defined(__x86_64__)
    __asm__ volatile("lea 0(%%rip), %0" : "=r"(address));
#elif defined(__aarch64__)
    __asm__ volatile("adr %0, ." : "=r"(address));
#else
#error "ascsim's C++ headers know x86-64 and AArch64"
#endif
    return address;
}

// A record of the trace is written in words of eight bytes. Put together from fields and then copied it takes three times as
// long: what was just written in small pieces cannot be read in large ones before it has reached the cache.
template <class... Word>
ASCSIM_INLINE void append_record(uint8_t* table, uint64_t& count, Word... words)
{
    static_assert((std::is_same_v<Word, uint64_t> && ...));
    uint8_t* to = table + count * sizeof...(words) * 8;
    ((__builtin_memcpy(to, &words, 8), to += 8), ...);
    __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
}

// ROW of machine/trace.py.
ASCSIM_INLINE void append_row(uint8_t kind, unsigned mnemonic, uint8_t accesses, uint64_t site, uint64_t dtype = 0)
{
    if (kind == kind::instruction && __builtin_expect(!ascsim_core.in_vector_function, 0)) {
        ascsim_refuse(mnemonic, "L014", "it is a register instruction and stands outside every vector function", site);
    }
    uint64_t& count = *ascsim_trace.n_rows;
    if (__builtin_expect(count >= ascsim_trace.row_capacity, 0)) {
        ascsim_trace_grow();
    }
    constexpr uint64_t pipe = PIPE_V, no_parent = 0xffffffff, work = 1, flags = site_is_pc;
    const uint64_t what = pipe << 16 | uint64_t{kind} << 24 | uint64_t{mnemonic} << 32 | uint64_t{accesses} << 48;
    append_record(ascsim_trace.rows, count, ascsim_core.core | what, no_parent, site, work | flags << 32 | dtype << 48);
}

// ACCESS of machine/trace.py: one burst. `tail` is its length, and above it its register.
ASCSIM_INLINE void append_access_words(uint64_t what, uint64_t start, uint64_t tail)
{
    constexpr uint64_t low = 0xffffffff;
    uint64_t& count = *ascsim_trace.n_accesses;
    if (__builtin_expect(count >= ascsim_trace.access_capacity, 0)) {
        ascsim_trace_grow();
    }
    append_record(ascsim_trace.accesses, count, what, start, tail & low, tail & ~low);
}

ASCSIM_INLINE void append_access_of(unsigned space, uint8_t mode, uint8_t operand, uint8_t align, uint32_t mask,
                                    uint64_t start, uint32_t length, uint32_t stream)
{
    const uint64_t what = space | uint64_t{mode} << 8 | uint64_t{operand} << 16 | uint64_t{align} << 24 | uint64_t{mask} << 32;
    append_access_words(what, start, length | uint64_t{stream} << 32);
}

ASCSIM_INLINE void append_access(uint8_t mode, uint8_t operand, uint8_t align, uint32_t mask, int64_t start, uint32_t length,
                                 uint32_t vector = 0)
{
    constexpr unsigned ub = static_cast<unsigned>(Space::UB);
    append_access_of(ub, mode, operand, align, mask, static_cast<uint64_t>(start), length, vector);
}

// The row of a register instruction with one access, or none (`access` is 0): another turn of a row that stands for those of
// a loop, or a row of its own.
template <class Instruction, bool HasAccess>
ASCSIM_INLINE void record(uint64_t site, uint64_t access, uint64_t start, uint64_t tail)
{
    const uint64_t what = ascsim_core.core | uint64_t{PIPE_V} << 16 | uint64_t{kind::instruction} << 24 |
                          uint64_t{Instruction::number} << 32 | uint64_t{HasAccess} << 48 | uint64_t{Instruction::dtype} << 56;
    if (*ascsim_trace.n_rows == ascsim_turns.rows) {
        AscsimFolded& row = ascsim_turns.folded[ascsim_turns.at];
        if (row.site == site && row.what == what &&
            (!HasAccess || (row.access == access && row.tail == tail && row.start == start))) {
            ++*row.calls;
            if constexpr (HasAccess) {
                ++*row.bursts;
                row.start += static_cast<uint64_t>(row.stride);
            }
            if (++ascsim_turns.at == ascsim_turns.period) {
                ascsim_turns.at = 0;
                if (--ascsim_turns.left == 0) {
                    ascsim_turns.rows = ~uint64_t{0};
                }
            }
            return;
        }
    }
    if constexpr (HasAccess) {
        append_access_words(access, start, tail);
    }
    append_row(kind::instruction, Instruction::number, HasAccess, site, Instruction::dtype);
    ascsim_follow(site, what, access, start, tail);
}

template <class Instruction, class Where>
ASCSIM_INLINE void record_access(uint64_t site, uint8_t mode, uint64_t start, uint32_t length, uint32_t vector)
{
    constexpr unsigned ub = static_cast<unsigned>(Space::UB);
    const uint64_t access = ub | uint64_t{mode} << 8 | uint64_t{Where::operand} << 16 | uint64_t{Where::align} << 24;
    record<Instruction, true>(site, access, start, length | uint64_t{vector} << 32);
}

// What an instruction that is nothing but its row was last called with, and that row.
template <unsigned Number, unsigned Count>
struct Last {
    static inline bool is_known = false;
    static inline Operand operands[Count];
    static inline uint64_t row[4], rows_before;
};

template <unsigned Number, unsigned Count>
ASCSIM_QUIET bool repeat_row(uint64_t site, const Operand* operands)
{
    using Known = Last<Number, Count>;
    uint64_t& count = *ascsim_trace.n_rows;
    if (!Known::is_known || ascsim_core.issues_all || std::memcmp(operands, Known::operands, sizeof Known::operands) != 0) {
        Known::rows_before = count;
        return false;
    }
    if (__builtin_expect(count >= ascsim_trace.row_capacity, 0)) {
        ascsim_trace_grow();
    }
    const uint64_t what = (Known::row[0] & ~uint64_t{0xffff}) | ascsim_core.core;
    append_record(ascsim_trace.rows, count, what, Known::row[1], site, Known::row[3]);
    return true;
}

template <unsigned Number, unsigned Count>
ASCSIM_QUIET void remember_row(const Operand* operands)
{
    using Known = Last<Number, Count>;
    Known::is_known = *ascsim_trace.n_rows == Known::rows_before + 1;  // where it does nothing there is none
    if (Known::is_known) {
        __builtin_memcpy(static_cast<void*>(Known::operands), operands, sizeof Known::operands);
        __builtin_memcpy(Known::row, ascsim_trace.rows + Known::rows_before * sizeof Known::row, sizeof Known::row);
    }
}

// One instruction that is nothing but its row. An equal call after it leaves the same row, of its own core and line.
template <unsigned Number, unsigned Count>
ASCSIM_INLINE void issue_or_repeat(const Operand* operands)
{
#if ASCSIM_SIDE
    if (!repeat_row<Number, Count>(here(), operands)) {
        issue(Number, Count, operands);
        remember_row<Number, Count>(operands);
    }
#else
    issue(Number, Count, operands);
#endif
}

// Register instructions: arguments in the order of the compiled wrapper's parameters (isa/compile.py)

// A number as the wrapper wants it: eight bytes.
struct Cell {
    uint64_t bits;
};

template <class Value>
ASCSIM_INLINE Cell cell(Value value)
{
    return {bits_of(value)};
}

ASCSIM_INLINE Cell cell(Choice choice)
{
    return {static_cast<uint64_t>(choice.value)};
}

// An address as the user gave it: an offset in UB, or a pointer into the core's UB.
struct Address {
    uint64_t value;
};

template <class Value>
ASCSIM_INLINE Address address(Value* pointer, int64_t bytes_further = 0)
{
    return {reinterpret_cast<uint64_t>(pointer) + static_cast<uint64_t>(bytes_further)};
}

template <class Value>
ASCSIM_INLINE void advance(Value*& pointer, int64_t bytes)
{
    pointer = reinterpret_cast<Value*>(reinterpret_cast<uint64_t>(pointer) + static_cast<uint64_t>(bytes));
}

// A register or a number that is written, as its address.
template <class Value>
ASCSIM_INLINE void* reg(const Value& value)
{
    return const_cast<Value*>(&value);
}

// A word that the core keeps, by its number: to be read, to be written. Only functions that are QUIET look it up.
struct KeptIn {
    unsigned number;
};

struct KeptOut {
    unsigned number;
};

// What a register instruction is, for the templates below: its numbers, how many registers it writes, its element type.
template <unsigned Number, unsigned Variant, unsigned Outs = 0, unsigned Dtype = 0>
struct Register {
    static constexpr unsigned number = Number, variant = Variant, outs = Outs, dtype = Dtype;
    static inline void* compiled = nullptr;
};

// The memory side of a load or store: operand number, bytes, log2 of the alignment.
template <unsigned Operand_, unsigned Bytes, unsigned Align>
struct Memory {
    static constexpr unsigned operand = Operand_, bytes = Bytes, align = Align;
};

// The loops that the vector function is in, outermost first, and the round that each is in: what address registers count.
struct Loops {
    static constexpr unsigned deepest = 64;
    static inline unsigned depth = 0;
    static inline uint64_t round[deepest];
};

// A loop of a vector function of a file with address registers: the source pass writes one around it, and next() into it.
class Loop {
public:
    ASCSIM_QUIET Loop()
    {
        if (Loops::depth < Loops::deepest) {
            Loops::round[Loops::depth] = ~uint64_t{0};
        }
        ++Loops::depth;
    }
    ASCSIM_QUIET ~Loop() { --Loops::depth; }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;
    ASCSIM_QUIET void next()
    {
        if (Loops::depth <= Loops::deepest) {
            ++Loops::round[Loops::depth - 1];
        }
    }
};

// Only a vector core has registers: elsewhere a register instruction does nothing.
#if ASCSIM_SIDE == 1

template <class Instruction, class... Pointer>
ASCSIM_INLINE void call_compiled(Pointer... pointer)
{
    if (__builtin_expect(Instruction::compiled == nullptr, 0)) {
        Instruction::compiled = ascsim_resolve(Instruction::number, Instruction::variant);
    }
    reinterpret_cast<void (*)(Pointer...)>(Instruction::compiled)(pointer...);
}

struct alignas(32) RegisterCopy {
    unsigned char bytes[256];
};

// The arguments as pointers. An input that is also written is copied first: the wrapper may write before it has read all.
template <unsigned Outs, unsigned Count>
struct Arguments {
    void* pointers[Count];
    RegisterCopy copies[Count - Outs + 1];

    template <unsigned Index>
    ASCSIM_INLINE void set(void* pointer)
    {
        pointers[Index] = pointer;
        if constexpr (Index >= Outs) {
            for (unsigned out = 0; out < Outs; ++out) {
                if (pointer == pointers[out]) {
                    pointers[Index] = __builtin_memcpy(copies[Index - Outs].bytes, pointer, sizeof(RegisterCopy));
                }
            }
        }
    }
    template <unsigned Index>
    ASCSIM_INLINE void set(const Cell& number)
    {
        pointers[Index] = const_cast<uint64_t*>(&number.bits);
    }
    template <unsigned Index>
    ASCSIM_INLINE void set(KeptOut word)
    {
        pointers[Index] = &ascsim_core.kept[word.number];
    }
    template <unsigned Index>
    ASCSIM_INLINE void set(KeptIn word)
    {
        pointers[Index] = __builtin_memcpy(copies[Index - Outs].bytes, &ascsim_core.kept[word.number], sizeof(uint64_t));
    }
};

// The bytes of UB that an address means. Ends the run if they leave UB and its guard.
template <class Instruction, class Where>
ASCSIM_INLINE uint64_t offset_in_ub(Address address)
{
    constexpr unsigned ub = static_cast<unsigned>(Space::UB);
    const uint64_t limit = ascsim_core.capacity[ub] + ASCSIM_GUARD - Where::bytes;
    const uint64_t inside = address.value - reinterpret_cast<uint64_t>(ascsim_core.memory[ub]);
    const uint64_t offset = inside <= limit ? inside : address.value;
    if (__builtin_expect(offset > limit, 0)) {
        ascsim_fault_access(Instruction::number, ub, address.value, Where::bytes);
    }
    return offset;
}

ASCSIM_INLINE unsigned char* in_ub(uint64_t offset)
{
    return ascsim_core.memory[static_cast<unsigned>(Space::UB)] + offset;
}

template <class Instruction, unsigned... Index, class... Given>
ASCSIM_INLINE void run_compute(std::integer_sequence<unsigned, Index...>, const Given&... given)
{
    Arguments<Instruction::outs, sizeof...(Given)> arguments;
    (arguments.template set<Index>(given), ...);
    call_compiled<Instruction>(arguments.pointers[Index]...);
}

template <class Instruction, class... Given>
ASCSIM_QUIET void compute(uint64_t site, Given... given)
{
    record<Instruction, false>(site, 0, 0, 0);
    run_compute<Instruction>(std::make_integer_sequence<unsigned, sizeof...(Given)>(), given...);
}

ASCSIM_INLINE void* loaded_from(void* pointer, unsigned char*) { return pointer; }
ASCSIM_INLINE const Cell& loaded_from(const Cell& number, unsigned char*) { return number; }
ASCSIM_INLINE void* loaded_from(Address, unsigned char* bytes) { return bytes; }

// The number of a register in the trace, the same for the same variable; not 0 or 1, which mean other things there.
ASCSIM_INLINE uint32_t number_of(const void* vector) { return static_cast<uint32_t>(reinterpret_cast<uint64_t>(vector)) | 2; }
ASCSIM_INLINE uint32_t number_of(const Cell&) { return 0; }
ASCSIM_INLINE uint32_t number_of(Address) { return 0; }

template <class First, class... Given>
ASCSIM_INLINE uint32_t vector_among(const First& first, const Given&... given)
{
    if constexpr (std::is_convertible_v<First, const void*> || sizeof...(Given) == 0) {
        return number_of(first);
    } else {
        return vector_among(given...);
    }
}

ASCSIM_INLINE uint64_t address_among(void*) { return 0; }
ASCSIM_INLINE uint64_t address_among(const Cell&) { return 0; }
ASCSIM_INLINE uint64_t address_among(Address address) { return address.value; }

template <class Instruction, class Where, class... Given>
ASCSIM_QUIET void load(uint64_t site, Given... given)
{
    const uint64_t offset = offset_in_ub<Instruction, Where>({(address_among(given) | ...)});
    record_access<Instruction, Where>(site, mode_read, offset, Where::bytes, vector_among(given...));
    run_compute<Instruction>(std::make_integer_sequence<unsigned, sizeof...(Given)>(), loaded_from(given, in_ub(offset))...);
}

// Which of up to 512 bytes a store writes, from one flag (0 or 1) a byte.
struct Written {
    unsigned char bits[64];
    uint32_t length;  // up to the last one written
    bool is_prefix;   // all before it are written too
};

ASCSIM_INLINE Written written_bytes(const unsigned char* flags, unsigned bytes)
{
    Written found{};
    for (unsigned word = 0; word < bytes / 8; ++word) {
        uint64_t eight;
        __builtin_memcpy(&eight, flags + 8 * word, 8);
        found.bits[word] = static_cast<unsigned char>(eight * 0x0102040810204080 >> 56);
    }
    for (unsigned i = bytes / 8 * 8; i < bytes; ++i) {
        found.bits[i / 8] = static_cast<unsigned char>(found.bits[i / 8] | flags[i] << i % 8);
    }
    unsigned last = (bytes + 7) / 8;
    while (last && !found.bits[last - 1]) {
        --last;
    }
    if (last) {
        const unsigned top = found.bits[last - 1];
        found.length = 8 * last - static_cast<unsigned>(__builtin_clz(top) - 24);
        found.is_prefix = (top & (top + 1)) == 0;
        for (unsigned i = 0; i + 1 < last; ++i) {
            found.is_prefix = found.is_prefix && found.bits[i] == 0xff;
        }
    }
    return found;
}

ASCSIM_INLINE uint32_t append_mask(const unsigned char* bits)
{
    uint64_t& count = *ascsim_trace.n_masks;
    if (__builtin_expect(count >= ascsim_trace.mask_capacity, 0)) {
        ascsim_trace_grow();
    }
    __builtin_memcpy(ascsim_trace.masks + count * 32, bits, 32);
    return static_cast<uint32_t>(++count);
}

// Whether all flags are 1: `flags` are aligned to 32 bytes. Four sums at once, for each waits for the one before it.
template <unsigned Bytes>
ASCSIM_INLINE bool are_all_set(const unsigned char* flags)
{
    using Wide = uint64_t __attribute__((vector_size(16), may_alias));
    constexpr uint64_t one = 0x0101010101010101;
    constexpr unsigned wide = Bytes / 64 * 64;
    Wide a{one, one}, b = a, c = a, d = a;
    for (unsigned at = 0; at < wide; at += 64) {
        const Wide* four = reinterpret_cast<const Wide*>(flags + at);
        a &= four[0], b &= four[1], c &= four[2], d &= four[3];
    }
    a &= b & c & d;
    uint64_t all = a[0] & a[1];
    for (unsigned at = wide; at < Bytes; ++at) {
        all &= flags[at] * one;
    }
    return all == one;
}

template <class Instruction, class Where>
ASCSIM_QUIET void store_some(uint64_t site, uint64_t offset, const unsigned char* data, const unsigned char* flags,
                             uint32_t vector)
{
    const Written written = written_bytes(flags, Where::bytes);
    if (written.length == 0) {
        record<Instruction, false>(site, 0, 0, 0);
    } else if (written.is_prefix) {
        record_access<Instruction, Where>(site, mode_write, offset, written.length, vector);
    } else {
        const uint32_t mask = append_mask(written.bits);
        append_access(mode_write, Where::operand, Where::align, mask, static_cast<int64_t>(offset), written.length, vector);
        append_row(kind::instruction, Instruction::number, 1, site, Instruction::dtype);
    }
    unsigned char* memory = in_ub(offset);
    unsigned i = 0;
    for (; i + 8 <= written.length; i += 8) {
        uint64_t old, eight, flag;
        __builtin_memcpy(&old, memory + i, 8);
        __builtin_memcpy(&eight, data + i, 8);
        __builtin_memcpy(&flag, flags + i, 8);
        flag *= 0xff;
        old = (old & ~flag) | (eight & flag);
        __builtin_memcpy(memory + i, &old, 8);
    }
    for (; i < written.length; ++i) {
        if (flags[i]) {
            memory[i] = data[i];
        }
    }
}

template <class Instruction, class Where, class... Given>
ASCSIM_QUIET void store(uint64_t site, Address address, Given... given)
{
    alignas(32) unsigned char data[Where::bytes], flags[Where::bytes];
    const uint64_t offset = offset_in_ub<Instruction, Where>(address);
    run_compute<Instruction>(std::make_integer_sequence<unsigned, sizeof...(Given) + 2>(), static_cast<void*>(data),
                             static_cast<void*>(flags), given...);
    if (__builtin_expect(!are_all_set<Where::bytes>(flags), 0)) {
        store_some<Instruction, Where>(site, offset, data, flags, vector_among(given...));
        return;
    }
    record_access<Instruction, Where>(site, mode_write, offset, Where::bytes, vector_among(given...));
    __builtin_memcpy(in_ub(offset), data, Where::bytes);
}

// An access in parts that lie apart (Parts of isa/definition.py). A `lane` of 0: they lie `stride` apart.
template <unsigned Bytes, unsigned Count, unsigned Scale, unsigned Lane, unsigned Span, unsigned Step, unsigned Asked,
          unsigned Align>
struct Parts {
    static constexpr unsigned bytes = Bytes, count = Count, align = Align;

    static ASCSIM_INLINE bool takes_part(unsigned part, const unsigned char* mask)
    {
        unsigned char any = mask == nullptr;
        for (unsigned i = 0; i < Asked && mask; ++i) {
            any |= mask[part * Span + i * Step];
        }
        return any;
    }
    static ASCSIM_INLINE uint64_t distance(unsigned part, const void* index, uint64_t stride)
    {
        if constexpr (Lane == 0) {
            return part * stride * Scale;
        } else {
            std::conditional_t<Lane == 4, uint32_t, uint16_t> lane;
            __builtin_memcpy(&lane, static_cast<const unsigned char*>(index) + part * Lane, Lane);
            return uint64_t{lane} * Scale;
        }
    }
};

// What says where the parts lie and which take part.
struct Places {
    const void* index;
    uint64_t stride;
    const void* mask;
};

// A run of bytes: where among the bytes of the access, and where in UB.
struct Run {
    unsigned place, length;
    uint64_t offset;
};

template <class Instruction, class Part>
ASCSIM_INLINE unsigned runs_of(Run* runs, Address address, const Places& places)
{
    unsigned count = 0;
    for (unsigned part = 0; part < Part::count; ++part) {
        if (!Part::takes_part(part, static_cast<const unsigned char*>(places.mask))) {
            continue;
        }
        const uint64_t distance = Part::distance(part, places.index, places.stride), place = part * Part::bytes;
        const uint64_t offset = offset_in_ub<Instruction, Part>({address.value + distance});
        Run* last = count ? runs + count - 1 : nullptr;
        if (Part::align == 0 && last && last->place + last->length == place && last->offset + last->length == offset) {
            last->length += Part::bytes;
        } else {
            runs[count++] = {static_cast<unsigned>(place), Part::bytes, offset};
        }
    }
    return count;
}

struct NoBytes {
    static constexpr unsigned bytes = 0;
};

// Where the address itself is misaligned the trace says so in an access of no bytes, for the parts may not tell.
template <class Instruction, class Where>
ASCSIM_INLINE unsigned append_misaligned(uint8_t mode, Address address)
{
    const uint64_t offset = offset_in_ub<Instruction, NoBytes>(address);
    if (__builtin_expect((offset & ((1u << Where::align) - 1)) == 0, 1)) {
        return 0;
    }
    append_access(mode, Where::operand, Where::align, 0, static_cast<int64_t>(offset), 0);
    return 1;
}

template <class Instruction, class Where, class Part, class... Given>
ASCSIM_QUIET void load_parts(uint64_t site, Places places, Given... given)
{
    alignas(32) unsigned char bytes[Where::bytes] = {};
    Run runs[Part::count];
    const Address address{(address_among(given) | ...)};
    const unsigned count = runs_of<Instruction, Part>(runs, address, places);
    unsigned accesses = append_misaligned<Instruction, Where>(mode_read, address);
    for (const Run* run = runs; run < runs + count; ++run, ++accesses) {
        append_access(mode_read, Where::operand, Part::align, 0, static_cast<int64_t>(run->offset), run->length);
        __builtin_memcpy(bytes + run->place, in_ub(run->offset), run->length);
    }
    append_row(kind::instruction, Instruction::number, static_cast<uint8_t>(accesses), site, Instruction::dtype);
    run_compute<Instruction>(std::make_integer_sequence<unsigned, sizeof...(Given)>(), loaded_from(given, bytes)...);
}

// Of two parts in one place the first stays.
template <class Instruction, class Where, class Part, class... Given>
ASCSIM_QUIET void store_parts(uint64_t site, Places places, Address address, Given... given)
{
    alignas(32) unsigned char data[Where::bytes], flags[Where::bytes];
    Run runs[Part::count];
    const unsigned count = runs_of<Instruction, Part>(runs, address, places);
    run_compute<Instruction>(std::make_integer_sequence<unsigned, sizeof...(Given) + 2>(), static_cast<void*>(data),
                             static_cast<void*>(flags), given...);
    unsigned accesses = append_misaligned<Instruction, Where>(mode_write, address);
    for (const Run* run = runs; run < runs + count; ++run) {
        const Written written = written_bytes(flags + run->place, run->length);
        if (written.length) {
            const uint32_t mask = written.is_prefix ? 0 : append_mask(written.bits);
            append_access(mode_write, Where::operand, Part::align, mask, static_cast<int64_t>(run->offset), written.length);
            ++accesses;
        }
    }
    append_row(kind::instruction, Instruction::number, static_cast<uint8_t>(accesses), site, Instruction::dtype);
    for (const Run* run = runs + count; run-- > runs;) {
        for (unsigned i = 0; i < run->length; ++i) {
            if (flags[run->place + i]) {
                in_ub(run->offset)[i] = data[run->place + i];
            }
        }
    }
}

// Unaligned loads and stores: isa/streams.py has the words for them.

template <unsigned Bytes>
struct SomeBytes {
    static constexpr unsigned bytes = Bytes;
};

// What a stream instruction is: its numbers, those of its operands, log2 of the element's size.
template <unsigned Number, unsigned Dtype, unsigned Operand_, unsigned State, unsigned Align>
struct Stream {
    static constexpr unsigned number = Number, dtype = Dtype, operand = Operand_, state = State, align = Align;
};

ASCSIM_QUIET inline uint32_t next_stream() { return static_cast<uint32_t>(++ascsim_core.streams); }

template <class Instruction>
ASCSIM_INLINE void append_bytes(uint8_t mode, uint64_t low, uint64_t high)
{
    append_access(mode, Instruction::operand, Instruction::align, 0, static_cast<int64_t>(low), static_cast<uint32_t>(high - low));
}

template <class Instruction>
ASCSIM_INLINE void append_state(uint8_t mode, const Unaligned& align, uint64_t low, uint64_t high)
{
    const uint32_t stream = align.number ? align.number : stream_of_loads;
    append_access_of(space_state, mode, Instruction::state, 0, 0, low, static_cast<uint32_t>(high - low), stream);
}

// The block that an address lies in; what of it lies outside of memory and guard is left as it is.
ASCSIM_INLINE void fill_block(Unaligned& align, uint64_t at)
{
    align.low = at / 32 * 32;
    align.high = align.low + 32;
    if (align.high <= ascsim_core.capacity[static_cast<unsigned>(Space::UB)] + ASCSIM_GUARD) {
        __builtin_memcpy(align.bytes, in_ub(align.low), 32);
    }
}

template <class Instruction>
ASCSIM_QUIET void prime_stream(uint64_t site, Unaligned& align, Address from)
{
    const uint64_t at = offset_in_ub<Instruction, NoBytes>(from);
    fill_block(align, at);
    align.number = next_stream() | stream_of_loads;
    append_bytes<Instruction>(mode_read, at, align.high);
    append_row(kind::instruction, Instruction::number, 1, site, Instruction::dtype);
}

template <class Instruction>
ASCSIM_QUIET void load_stream(uint64_t site, void* value, Unaligned& align, Address from, int64_t further)
{
    const uint64_t at = offset_in_ub<Instruction, SomeBytes<256>>(from), block = at / 32 * 32, head = block + 32 - at;
    const bool is_primed = align.high && align.low == block;
    auto* lanes = static_cast<unsigned char*>(value);
    __builtin_memcpy(lanes, align.bytes + (at - block), head);
    __builtin_memcpy(lanes + head, in_ub(block + 32), 256 - head);
    append_bytes<Instruction>(mode_read, at, at + 256);
    if (!is_primed) {
        append_state<Instruction>(mode_read, align, at, at);
    }
    append_row(kind::instruction, Instruction::number, is_primed ? 1 : 2, site, Instruction::dtype);
    fill_block(align, at + static_cast<uint64_t>(further));
}

template <class Instruction>
ASCSIM_QUIET void store_stream(uint64_t site, Address to, Unaligned& align, const void* value, uint64_t bytes)
{
    bytes = bytes < 256 ? bytes : 256;
    const uint64_t at = offset_in_ub<Instruction, SomeBytes<256>>(to), end = at + bytes, cut = end / 32 * 32;
    const bool goes_on = align.high > align.low && align.high == at;
    const uint64_t first = goes_on ? align.low : at, rest = first > cut ? first : cut;
    unsigned char joined[256 + 32];
    __builtin_memcpy(joined, align.bytes + first % 32, at - first);
    __builtin_memcpy(joined + (at - first), value, bytes);
    uint8_t accesses = 0;
    if (goes_on) {
        append_state<Instruction>(mode_read, align, first, at), ++accesses;
    }
    if (cut > first) {
        __builtin_memcpy(in_ub(first), joined, cut - first);
        append_bytes<Instruction>(mode_write, first, cut), ++accesses;
    }
    __builtin_memcpy(align.bytes + rest % 32, joined + (rest - first), end - rest);
    align.low = rest;
    align.high = end;
    align.number = align.number ? align.number : next_stream();
    if (end > rest) {
        append_state<Instruction>(mode_write, align, rest, end), ++accesses;
    }
    append_row(kind::instruction, Instruction::number, accesses, site, Instruction::dtype);
}

// A mask register, the first entry of each lane of so many bytes a bit.
template <class Instruction, unsigned Lane>
ASCSIM_QUIET void store_mask(uint64_t site, Address to, Unaligned& align, const void* mask)
{
    unsigned char bytes[32 / Lane] = {};
    for (unsigned lane = 0; lane < 256 / Lane; ++lane) {
        const unsigned bit = static_cast<const unsigned char*>(mask)[lane * Lane];
        bytes[lane / 8] = static_cast<unsigned char>(bytes[lane / 8] | bit << lane % 8);
    }
    store_stream<Instruction>(site, to, align, bytes, sizeof bytes);
}

// The data end at `to`. A copy of the register may be given: the variable it was copied from is not known then.
template <class Instruction>
ASCSIM_QUIET void flush_stream(uint64_t site, Address to, const Unaligned& from)
{
    Unaligned& align = const_cast<Unaligned&>(from);
    const uint64_t at = offset_in_ub<Instruction, NoBytes>(to);
    uint8_t accesses = 0;
    if (align.high > align.low) {
        const bool fits = align.high == at;
        uint64_t low = fits ? align.low : at / 32 * 32 + align.low % 32, high = at;
        if (!fits && high > low + (align.high - align.low)) {
            high = low + (align.high - align.low);
        }
        append_state<Instruction>(mode_read, align, fits ? low : at, at), ++accesses;
        if (high > low) {
            __builtin_memcpy(in_ub(low), align.bytes + align.low % 32, high - low);
            append_bytes<Instruction>(mode_write, low, high), ++accesses;
        }
    }
    align.low = align.high = 0;
    append_row(kind::instruction, Instruction::number, accesses, site, Instruction::dtype);
}

template <class Instruction>
ASCSIM_QUIET void store_whole(uint64_t site, Address to, const void* value, uint64_t bytes)
{
    bytes = bytes < 256 ? bytes : 256;
    const uint64_t at = offset_in_ub<Instruction, SomeBytes<256>>(to);
    __builtin_memcpy(in_ub(at), value, bytes);
    if (bytes) {
        append_bytes<Instruction>(mode_write, at, at + bytes);
    }
    append_row(kind::instruction, Instruction::number, bytes != 0, site, Instruction::dtype);
}

// What squeezes have kept and unaligned stores have not taken yet: where it goes and how much it is.
struct Squeezed {
    uint64_t taken, bytes;
};

ASCSIM_QUIET inline Squeezed take_squeezed()
{
    const uint64_t kept = ascsim_core.kept[kept_squeezed];
    uint64_t& stored = ascsim_core.kept[kept_stored];
    const uint64_t taken = stored < kept ? stored : kept;
    stored = kept;
    return {taken, kept - taken};
}

template <class Instruction>
ASCSIM_INLINE void store_squeezed(uint64_t site, Address to, Unaligned& align, const void* value)
{
    const Squeezed squeezed = take_squeezed();
    store_stream<Instruction>(site, {to.value + squeezed.taken}, align, value, squeezed.bytes);
}

template <class Instruction>
ASCSIM_QUIET void flush_squeezed(uint64_t site, Address to, const Unaligned& align)
{
    flush_stream<Instruction>(site, {to.value + ascsim_core.kept[kept_squeezed]}, align);
}

// The offset of an address register; the first stride is that of the outermost of so many loops around it.
template <unsigned Number, unsigned Bytes, class... Stride>
ASCSIM_QUIET addr_reg address_register(uint64_t site, Stride... stride)
{
    constexpr unsigned count = sizeof...(Stride);
    const uint64_t strides[] = {stride...};
    if (Loops::depth < count) {
        ascsim_refuse(Number, "L006", "it has more strides than there are loops around it", site);
    }
    uint64_t elements = 0;
    for (unsigned i = 0; i < count; ++i) {
        elements += Loops::round[Loops::depth - count + i] * strides[i];
    }
    append_row(kind::instruction, Number, 0, site);
    return {elements * Bytes};
}

#else

template <class Instruction, class... Given>
ASCSIM_INLINE void compute(uint64_t, Given...)
{
}
template <class Instruction, class Where, class... Given>
ASCSIM_INLINE void load(uint64_t, Given...)
{
}
template <class Instruction, class Where, class... Given>
ASCSIM_INLINE void store(uint64_t, Given...)
{
}
template <class Instruction, class Where, class Part, class... Given>
ASCSIM_INLINE void load_parts(uint64_t, Given...)
{
}
template <class Instruction, class Where, class Part, class... Given>
ASCSIM_INLINE void store_parts(uint64_t, Given...)
{
}
template <unsigned...>
struct Parts {
};
template <unsigned...>
struct Stream {
};
template <unsigned, unsigned, class... Given>
ASCSIM_INLINE addr_reg address_register(uint64_t, Given...)
{
    return {};
}
template <class Instruction, class... Given>
ASCSIM_INLINE void prime_stream(Given&&...)
{
}
template <class Instruction, class... Given>
ASCSIM_INLINE void load_stream(Given&&...)
{
}
template <class Instruction, class... Given>
ASCSIM_INLINE void store_stream(Given&&...)
{
}
template <class Instruction, class... Given>
ASCSIM_INLINE void flush_stream(Given&&...)
{
}
template <class Instruction, class... Given>
ASCSIM_INLINE void store_whole(Given&&...)
{
}
template <class Instruction, class... Given>
ASCSIM_INLINE void store_squeezed(Given&&...)
{
}
template <class Instruction, unsigned, class... Given>
ASCSIM_INLINE void store_mask(Given&&...)
{
}
template <class Instruction, class... Given>
ASCSIM_INLINE void flush_squeezed(Given&&...)
{
}
struct Places {
    const void* index;
    uint64_t stride;
    const void* mask;
};

#endif

// The scope of a __simd_vf__ function, which the vector core runs as one.
class VfScope {
public:
    ASCSIM_INLINE explicit VfScope(const char* = nullptr)
    {
#if ASCSIM_SIDE == 1
        begin(here());
#endif
    }
    ASCSIM_INLINE ~VfScope()
    {
#if ASCSIM_SIDE == 1
        end(here());
#endif
    }
    VfScope(const VfScope&) = delete;
    VfScope& operator=(const VfScope&) = delete;

private:
    ASCSIM_QUIET static void begin(uint64_t site)
    {
        append_row(kind::vf_begin, 0, 0, site);
        ascsim_core.in_vector_function = 1;
    }
    ASCSIM_QUIET static void end(uint64_t site)
    {
        append_row(kind::vf_end, 0, 0, site);
        ascsim_core.in_vector_function = 0;
    }
};

// The alignment that a memory asks of a base address, or the user's where that is more.
constexpr uint64_t aligned_for(Space space, uint64_t asked)
{
    const uint64_t base = space_alignment[static_cast<unsigned>(space)];
    return asked > base ? asked : base;
}

// Something of which each declaration has its own, however often the compiler copies the code (loops, inlining). `Name` is
// the type of the lambda that gives the declared name: each lambda has a type of its own, in each instance of a template.
template <class Name>
inline char declaration_of;

// What `__ubuf__ T x[N];` becomes: a reference to an array in the core's memory.
template <class Array, class Name>
ASCSIM_INLINE Array& local_array(Space space, Name name, uint64_t alignment = 1)
{
    void* place = ascsim_local_array(static_cast<uint8_t>(space), sizeof(Array), aligned_for(space, alignment),
                                     dtype_code<std::remove_all_extents_t<Array>>, name(), &declaration_of<Name>);
    __asm__ volatile("" : "+r"(place));
    return *static_cast<Array*>(place);
}

// What `extern __ubuf__ T x[];` becomes: all that the launch's second argument asked for.
template <class Array, class Name>
ASCSIM_INLINE auto& dynamic_array(Space space, Name name, uint64_t alignment = 1)
{
    using Element = std::remove_extent_t<Array>;
    void* place = ascsim_local_array(static_cast<uint8_t>(space), ascsim_core.dynamic_ub, aligned_for(space, alignment),
                                     dtype_code<std::remove_all_extents_t<Array>>, name(), &declaration_of<Name>);
    __asm__ volatile("" : "+r"(place));
    return *static_cast<Element(*)[]>(place);
}

// The built-in variables of a kernel.
struct BlockIndex {
    operator int64_t() const { return ascsim_core.block; }
};
struct BlockCount {
    operator int64_t() const { return ascsim_core.blocks; }
};

}  // namespace ascsim

static constexpr ascsim::BlockIndex block_idx;
static constexpr ascsim::BlockCount block_num;

// Padding of dimensions 1 to 4 of asc_ndim_copy_gm2ub, which takes it as one word.
union asc_ndim_pad_count_config {
    uint64_t config = 0;
    struct {
        uint8_t loop1_lp_count, loop1_rp_count, loop2_lp_count, loop2_rp_count;
        uint8_t loop3_lp_count, loop3_rp_count, loop4_lp_count, loop4_rp_count;
    };
    operator uint64_t() const { return config; }
};

enum mem_dsb_t { DSB_ALL = 0, DSB_DDR = 1, DSB_UB = 2, DSB_SEQ = 3 };
enum cache_line_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1 };
enum dcci_dst_t { CACHELINE_ALL = 0, CACHELINE_UB = 1, CACHELINE_OUT = 2, CACHELINE_ATOMIC = 3 };

// A vector function called by the scope's own word: __VEC_SCOPE__ { ... }
#define __VEC_SCOPE__ if (::ascsim::VfScope ascsim_vf_scope(__func__); true)
