// A runtime library for tests of the headers: it records what kernels ask for and runs nothing.
#include <cstdlib>
#include <cstring>

#include "ascsim/runtime.hpp"

namespace {
constexpr unsigned SPACES = 8, CAPACITY = 196608, ROOM = 1 << 16;
alignas(512) uint8_t memories[SPACES][CAPACITY + ASCSIM_GUARD];
uint8_t rows[ROOM * 32], accesses[ROOM * 32], masks[ROOM * 32];
uint64_t n_rows, n_accesses, n_masks;
uint64_t next_array[SPACES];
}  // namespace

extern "C" {

AscsimTrace ascsim_trace;
AscsimCore ascsim_core;
uint8_t ascsim_event_ids[ASCSIM_PIPES][ASCSIM_PIPES][1 << 16];
// A test of what is behind these brings its own.
__attribute__((weak)) AscsimTurns ascsim_turns = {~uint64_t{0}, 0, 0, 0, {}};

struct Issued {
    uint32_t definition, count;
    uint64_t site;
    AscsimOperand operands[ASCSIM_MAX_OPERANDS];
} issued[256];
uint32_t n_issued;
int64_t issue_result;
uint32_t issue_rows;  // how many rows a call leaves

struct Event {
    char what[32];
    uint64_t values[4];
} events[256];
uint32_t n_events;

void* (*resolver)(uint32_t, uint32_t);

static void note(const char* what, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0)
{
    Event& event = events[n_events++ % 256];
    std::strncpy(event.what, what, sizeof event.what - 1);
    event.values[0] = a, event.values[1] = b, event.values[2] = c, event.values[3] = d;
}

void stub_start(uint8_t side)
{
    ascsim_trace = {rows, accesses, masks, &n_rows, &n_accesses, &n_masks, ROOM, ROOM, ROOM};
    ascsim_core = {};
    ascsim_core.side = side;
    ascsim_core.in_vector_function = 1;  // kernels of tests are vector functions, as far as registers go
    for (unsigned i = 0; i < SPACES; ++i) {
        ascsim_core.memory[i] = memories[i];
        ascsim_core.capacity[i] = CAPACITY;
        next_array[i] = 0;
    }
    n_rows = n_accesses = n_masks = n_issued = n_events = 0;
}

uint64_t stub_rows() { return n_rows; }
uint64_t stub_accesses() { return n_accesses; }
uint64_t stub_masks() { return n_masks; }
void stub_clear() { n_rows = n_accesses = n_masks = 0; }

int64_t ascsim_issue(uint32_t definition, uint32_t count, const AscsimOperand* operands)
{
    Issued& now = issued[n_issued++ % 256];
    now.definition = definition;
    now.count = count;
    now.site = reinterpret_cast<uint64_t>(__builtin_return_address(0));
    std::memcpy(now.operands, operands, count * sizeof *operands);
    for (uint32_t row = 0; row < issue_rows; ++row) {
        const uint64_t words[] = {ascsim_core.core | 9u << 16 | uint64_t{definition} << 32, operands->address << 32, now.site, 3};
        std::memcpy(rows + 32 * n_rows++, words, sizeof words);
    }
    return issue_result;
}

void* ascsim_resolve(uint32_t definition, uint32_t variant) { return resolver(definition, variant); }
__attribute__((weak)) void ascsim_follow(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) {}
void ascsim_trace_grow(void) { n_rows = n_accesses = n_masks = 0; }

void ascsim_fault_access(uint32_t definition, uint8_t space, uint64_t value, uint64_t bytes)
{
    note("fault", definition, space, value, bytes);
    throw ascsim::Stop{};
}

void ascsim_refuse(uint32_t definition, const char* code, const char*, uint64_t)
{
    note(code, definition);
    throw ascsim::Stop{};
}

void* ascsim_local_array(uint8_t space, uint64_t bytes, uint64_t alignment, uint8_t dtype, const char* name,
                         const void*)
{
    note(name, space, bytes, alignment, dtype);
    const uint64_t start = (next_array[space] + alignment - 1) / alignment * alignment;
    next_array[space] = start + bytes;
    return memories[space] + start;
}

void* ascsim_auto_tile(uint8_t space, uint64_t bytes, uint64_t alignment, uint8_t dtype)
{
    void* place = ascsim_local_array(space, bytes, alignment, dtype, "auto tile", nullptr);
    return place;
}

void ascsim_auto_tile_end(uint8_t space, void* address)
{
    note("auto tile end", space, static_cast<uint64_t>(static_cast<uint8_t*>(address) - memories[space]));
}

// Run a kernel; 1 if the machine stopped it.
int stub_run(void (*kernel)(void**), void** arguments)
{
    try {
        kernel(arguments);
    } catch (ascsim::Stop) {
        return 1;
    }
    return 0;
}
}
