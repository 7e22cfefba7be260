// Calls that come again: what the machine made of a call (rows of the trace, and machine code that does the work), so that
// the same call on the same core needs no Python. host.py says which calls these are, and when they are no longer.
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "host.hpp"
#include "records.hpp"

namespace {

using ascsim::records::Access, ascsim::records::Row;

struct Call {
    uint32_t definition;
    std::vector<AscsimOperand> operands;
    std::vector<Row> rows;
    std::vector<Access> accesses;
    std::vector<AscsimWork> work;
};

std::unordered_multimap<uint64_t, Call> calls;

uint64_t key_of(uint32_t definition, uint32_t count, const AscsimOperand* operands)
{
    uint64_t key = definition;
    for (uint32_t number = 0; number < count; ++number) {
        key = (key ^ operands[number].address) * 0x9e3779b97f4a7c15u;
    }
    return key ^ key >> 32;
}

bool is_same(const Call& call, uint32_t definition, uint32_t count, const AscsimOperand* operands)
{
    return call.definition == definition && call.operands.size() == count && std::memcmp(call.operands.data(), operands, count * sizeof *operands) == 0;
}

// False where some code declines: only what writes nothing, or comes first of what does, may.
bool work(const Call& call)
{
    for (const AscsimWork& part : call.work) {
        reinterpret_cast<void (*)(uint64_t)>(part.entry)(part.place);
        if (part.result != 0 && *reinterpret_cast<const int64_t*>(part.result) != 0) {
            return false;
        }
    }
    return true;
}

void append(const Call& call, uint64_t site)
{
    AscsimTrace& trace = ascsim_trace;
    const uint64_t accesses = call.accesses.size();
    if (*trace.n_rows + call.rows.size() > trace.row_capacity || *trace.n_accesses + accesses > trace.access_capacity) {
        ascsim_trace_grow();
    }
    std::memcpy(trace.accesses + *trace.n_accesses * sizeof(Access), call.accesses.data(), accesses * sizeof(Access));
    __atomic_store_n(trace.n_accesses, *trace.n_accesses + accesses, __ATOMIC_RELEASE);
    const uint64_t first = *trace.n_rows;
    uint8_t* to = trace.rows + first * sizeof(Row);
    for (Row row : call.rows) {
        row.core = ascsim_core.core;
        row.site = site;
        row.parent = row.parent < 0 ? row.parent : static_cast<int32_t>(first);
        std::memcpy(to, &row, sizeof row);
        to += sizeof row;
    }
    __atomic_store_n(trace.n_rows, first + call.rows.size(), __ATOMIC_RELEASE);
}

}  // namespace

namespace ascsim {

bool run_again(uint32_t definition, uint32_t count, const AscsimOperand* operands, uint64_t site)
{
    if (calls.empty()) {
        return false;
    }
    const auto [begin, end] = calls.equal_range(key_of(definition, count, operands));
    for (auto one = begin; one != end; ++one) {
        if (is_same(one->second, definition, count, operands)) {
            if (!work(one->second)) {
                return false;
            }
            append(one->second, site);
            return true;
        }
    }
    return false;
}

}  // namespace ascsim

extern "C" {

void ascsim_remember(uint32_t definition, uint32_t count, const void* rows, uint64_t n_rows, const void* accesses,
                     uint64_t n_accesses, const AscsimWork* work, uint64_t n_work)
{
    const AscsimOperand* operands = ascsim_call.operands;
    const auto* first_row = static_cast<const Row*>(rows);
    const auto* first_access = static_cast<const Access*>(accesses);
    calls.emplace(key_of(definition, count, operands),
                  Call{definition, {operands, operands + count},
                       {first_row, first_row + n_rows},
                       {first_access, first_access + n_accesses},
                       {work, work + n_work}});
}

void ascsim_forget(void) { calls.clear(); }
}
