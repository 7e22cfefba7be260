// The agreement between compiled kernels, the runtime library and the Python host.
//
// Everything that crosses is a C function or a plain struct. The runtime library (runtime/runtime.cpp) defines the functions;
// a kernel's shared object leaves them undefined. Numbers of spaces, pipes and element types are those of
// machine/words.py and machine/dtypes.py, trace records those of machine/trace.py.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum AscsimSort { ASCSIM_ABSENT = 0, ASCSIM_TILE = 1, ASCSIM_GLOBAL = 2, ASCSIM_POINTER = 3, ASCSIM_SCALAR = 4, ASCSIM_ENUM = 5 };

// One operand of an instruction that goes through machine.issue. `address` is a tile's address as the user gave it (an
// offset, or a pointer into the space's buffer; ~0 when unassigned), a pointer, or a scalar's bits. A tile has in `shape` the
// bits of its own pad value, its compact mode, and whether it is k-aligned.
#define ASCSIM_MAX_OPERANDS 16
typedef struct AscsimOperand {
    uint8_t sort, dtype, space, blayout, slayout, pad;
    uint16_t fractal;
    int32_t rows, cols, valid_rows, valid_cols;
    uint64_t address;
    int64_t shape[5], strides[5];
} AscsimOperand;  // 112 bytes

// Issue one instruction of the ISA. Operands stand in the order of the definition's inputs; an optional one that was not
// given has sort ASCSIM_ABSENT, and trailing ones may be left out. Throws ascsim::Stop when the machine says stop. Returns
// the instruction's scalar result.
// The source site is this call's return address: keep the chain of header functions above it always_inline.
int64_t ascsim_issue(uint32_t definition, uint32_t count, const AscsimOperand* operands);

// A register instruction would touch `bytes` at `value` (as the user gave it), outside the space and its guard: end the run
// (throws ascsim::Stop).
void ascsim_fault_access(uint32_t definition, uint8_t space, uint64_t value, uint64_t bytes) __attribute__((noreturn));

// A rule that only C++ can break (one variable for two destinations): end the run with a diagnostic of that code at that
// address of the kernel (throws ascsim::Stop).
void ascsim_refuse(uint32_t definition, const char* code, const char* problem, uint64_t site) __attribute__((noreturn));

// The compiled semantics of a register instruction's variant: a function of pointers only (see isa/compile.py). Throws
// ascsim::Stop where the profile lacks the instruction.
void* ascsim_resolve(uint32_t definition, uint32_t variant);

// The trace's two tables and the masks. Record k of a table lies at its start + k * size, as long as k is not below what has
// gone to the file; the counters and what is not in the files yet are in memory that outlives the process. Whoever is about
// to append more records than the capacity allows calls ascsim_trace_grow, which moves starts and capacities on;
// ASCSIM_TRACE_ROOM records fit into each table then. Write a row's accesses before the row, and count last: what is not
// counted was never written.
#define ASCSIM_TRACE_ROOM 256
typedef struct AscsimTrace {
    uint8_t *rows, *accesses, *masks;
    uint64_t *n_rows, *n_accesses, *n_masks;
    uint64_t row_capacity, access_capacity, mask_capacity;
} AscsimTrace;
extern AscsimTrace ascsim_trace;
void ascsim_trace_grow(void);

// The turns of a loop in a vector function. Rows that come again in the same order, each access at a constant distance, are
// not appended again: the first ones stand for all turns (FOLDED of machine/trace.py). Which rows those are, and what the
// next turn of each must look like, is found by ascsim_follow (runtime/turns.cpp), which is told of every row of a register
// instruction that was appended. `rows` is the number of rows there are as long as turns are folded, else no number of rows.
#define ASCSIM_MOST_FOLDED 64
typedef struct AscsimFolded {
    // of the row: its site, its first word with the element type in place of the highest byte
    uint64_t site, what;
    // of its access, if it has one: the first word, the last two without the shape; where it starts next
    uint64_t access, tail, start;
    int64_t stride;
    uint32_t *calls, *bursts;
} AscsimFolded;
typedef struct AscsimTurns {
    uint64_t rows, left;
    uint32_t period, at;
    AscsimFolded folded[ASCSIM_MOST_FOLDED];
} AscsimTurns;
extern AscsimTurns ascsim_turns;
void ascsim_follow(uint64_t site, uint64_t what, uint64_t access, uint64_t start, uint64_t tail);

// The core that is running; `side` is 0 host, 1 AIV, 2 AIC. `subblock` counts the AIV cores of one AIC core (mixed kernels);
// `dynamic_ub` is the launch's second argument, bytes. Buffers are `capacity` bytes and a guard of ASCSIM_GUARD.
// With `issues_all` set, an instruction that is nothing but its row is issued each time. `kept` are the words that instructions share, by the numbers of Kept (machine/words.py).
#define ASCSIM_GUARD 65536
#define ASCSIM_KEPT 4
typedef struct AscsimCore {
    uint16_t core;
    uint8_t side, in_vector_function;
    uint32_t block, blocks, issues_all;
    uint8_t* memory[8];
    uint64_t capacity[8];
    uint32_t subblock, subblocks;
    uint64_t dynamic_ub;
    uint64_t kept[ASCSIM_KEPT];
    uint64_t streams;  // unaligned registers so far
} AscsimCore;
extern AscsimCore ascsim_core;

// How many event ids each core has been given for a pair of pipes: they go on from launch to launch.
#define ASCSIM_PIPES 11
extern uint8_t ascsim_event_ids[ASCSIM_PIPES][ASCSIM_PIPES][1 << 16];

// Add to a 32-bit number in global memory, past the data cache; returns what it was. A core that does so twice in a row
// waits for others: they go on first.
int32_t ascsim_atomic_add(void* number, int32_t value);

// Local arrays: `__ubuf__ T x[N];`. `declaration` is an address that no other declaration has: the same one gets the same
// address again in a launch. Addresses start at 0 in each space. Throws ascsim::Stop when the space is full.
void* ascsim_local_array(uint8_t space, uint64_t bytes, uint64_t alignment, uint8_t dtype, const char* name,
                         const void* declaration);

// Auto mode (kernels compiled with __PTO_AUTO__): where a tile lies while it is in scope. The first call in a launch also
// tells the machine to insert synchronisation.
void* ascsim_auto_tile(uint8_t space, uint64_t bytes, uint64_t alignment, uint8_t dtype);
void ascsim_auto_tile_end(uint8_t space, void* address);

// Launch `blocks` blocks of the kernel whose entry (host copy) is `host_entry`, with a pointer to its packed arguments.
// `kernel` is the called name as written. Returns when all blocks are done; errors show at the next acl synchronisation.
void ascsim_launch(const char* kernel, const char* file, uint32_t line, int64_t blocks, uint64_t dynamic_ub,
                   void* host_entry, void* arguments);

#ifdef __cplusplus
}
#endif
