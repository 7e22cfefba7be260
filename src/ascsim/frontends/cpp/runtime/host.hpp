// Between the runtime library and the Python host: the callbacks, and what Python reads and writes directly.
//
// host.py mirrors these structs with ctypes. A callback never lets a Python exception through: those that can stop a kernel
// return a status or a null pointer, and the C++ side throws.
#pragma once
#include <cstdint>

#include "ascsim/abi.h"

extern "C" {

struct AscsimHost {
    // 0: go on. The operands lie in ascsim_call, where the result is left too.
    int32_t (*issue)(uint32_t definition, uint32_t count);
    void* (*resolve)(uint32_t definition, uint32_t variant, uint64_t pc);
    void (*fault_access)(uint32_t definition, uint32_t space, uint64_t value, uint64_t bytes, uint64_t pc);
    void (*refuse)(uint32_t definition, const char* code, const char* problem, uint64_t pc);
    void* (*local_array)(uint32_t space, uint64_t bytes, uint64_t alignment, uint32_t dtype, const char* name,
                         uint64_t declaration, uint64_t pc);
    void* (*auto_tile)(uint32_t space, uint64_t bytes, uint64_t alignment, uint64_t pc);
    void (*auto_tile_end)(uint32_t space, uint64_t address);
    // acl error codes; 0 is success.
    int32_t (*launch)(const char* kernel, const char* file, uint32_t line, int64_t blocks, uint64_t dynamic_ub,
                      void* entry, void* arguments, uint64_t pc);
    void* (*allocate)(const char* function, uint64_t bytes, uint64_t pc);
    int32_t (*release)(const char* function, void* address, uint64_t host_bytes, uint64_t pc);
    // Whether `bytes` at `address`, the source (role 0) or the destination (role 1) of a call, are memory of the expected
    // kind. `direction` is the copy's kind as written, or empty; `host_bytes` what is left of an aclrtMallocHost block.
    int32_t (*check)(const char* function, const char* direction, uint32_t role, const void* address, uint64_t bytes,
                     uint32_t expected, uint64_t host_bytes, uint64_t pc);
    void (*misuse)(const char* function, const char* what, const char* mend, uint64_t pc);
    int64_t (*device_info)(uint32_t attribute);  // -1: not known
    int32_t (*give_way)(void);                   // the core waits for memory that others write; 0: go on
};

enum AscsimExpected { ASCSIM_HOST_MEMORY = 0, ASCSIM_DEVICE_MEMORY = 1, ASCSIM_ANY_MEMORY = 2 };

// The call that is in progress.
struct AscsimCall {
    uint64_t pc;
    int64_t result;
    AscsimOperand operands[ASCSIM_MAX_OPERANDS];
};

// Machine code of a call that comes again: `entry(place)`; where there is a `result` and it is not 0, Python has to do it.
struct AscsimWork {
    uint64_t entry, place, result;
};

struct AscsimModule {
    void* handle;
    uint64_t base, size;
    char error[1024];
};

extern AscsimHost ascsim_host;
extern AscsimCall ascsim_call;
extern char ascsim_soc_name[64];
// What the rows of scalar accesses are called by (scalar.cpp).
extern uint16_t ascsim_scalar_mnemonic;

// Trace files and crash handlers; nothing of the program may have run before. Returns an error text or nullptr.
const char* ascsim_runtime_start(const char* trace_directory, const AscsimHost* host);
// Reserve global memory and the buffers of a core, each `capacities[space]` bytes (0: absent) and a guard.
const char* ascsim_map_memories(uint64_t global_bytes, const uint64_t* capacities);
// dlopen, and where the module lies.
void ascsim_load(const char* path, int32_t is_program, AscsimModule* module);
// Run one block: 0 done, 1 stopped (already noted), 2 a C++ exception, whose text is in `message`.
int32_t ascsim_run_block(void* entry, void* arguments, char* message, uint64_t message_size);
// A core begins its block, with empty windows: its part of the trace does not depend on what was before.
void ascsim_trace_begin(void);
// In a copy of the process that runs blocks ahead (machine/ahead.py): append to tables in another directory, where so many
// records come before (the windows are shared with the process that this is a copy of, which goes on); 0 is success.
int32_t ascsim_trace_divert(const char* directory, uint64_t rows, uint64_t masks, uint64_t shapes);
// What the blocks may not do ends the process from now on.
void ascsim_run_ahead(void);
// Write out what C++ streams still hold of standard output and error.
void ascsim_flush(void);
// The copy of the process that this one waits for; 0: none.
extern int32_t ascsim_awaited;
// Write the windows to the tables' files.
void ascsim_trace_settle(void);
// The call that is in progress may run again without Python, until all are forgotten: its rows (their core and site apart;
// the parent of a step is 0), their accesses, its work. Only work that writes nothing, or the first that writes, may decline.
void ascsim_remember(uint32_t definition, uint32_t count, const void* rows, uint64_t n_rows, const void* accesses,
                     uint64_t n_accesses, const AscsimWork* work, uint64_t n_work);
void ascsim_forget(void);
// The text that aclGetRecentErrMsg returns.
void ascsim_set_error(const char* text);
// Every synchronisation returns this code from now on, until the device is reset; the last error text is its reason.
void ascsim_set_device_error(int32_t code);
}

namespace ascsim {

// Ends the process with a message that the parent shows: the tool itself cannot go on.
[[noreturn]] void fatal(const char* message);

// All memories of the chip lie in this range, among others.
extern uint64_t memories_start, memories_size;

// Whether this process runs blocks ahead; where they do what they may not, it ends.
extern bool is_ahead;
[[noreturn]] void unfit();

// The trace's table of shapes, which kernels do not see; otherwise like those of AscsimTrace.
struct Shapes {
    uint8_t* start;
    uint64_t* count;
    uint64_t capacity;
};
extern Shapes shapes;

// A core begins its block: which rows grow and which turns are folded does not depend on what was before.
void begin_scalar();
void begin_turns();

// Run a call that is remembered; false where it is not, or its work declines: then nothing has happened.
bool run_again(uint32_t definition, uint32_t count, const AscsimOperand* operands, uint64_t site);

// End the block that runs, from where no exception may be thrown: destructors between are left out.
[[noreturn]] void end_block();

// The lock of all that may be called from several threads of the user's program.
struct Lock {
    Lock();
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
};

}  // namespace ascsim
