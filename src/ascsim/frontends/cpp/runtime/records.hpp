// The records of the trace's tables, field by field: ROW, ACCESS and SHAPE of machine/trace.py.
#pragma once
#include <cstdint>

#include "host.hpp"

namespace ascsim::records {

struct Row {
    uint16_t core;
    uint8_t pipe, kind;
    uint16_t mnemonic;
    uint8_t n_access, pipe2;
    int32_t parent;
    uint32_t arg;
    uint64_t site;
    uint32_t work;
    uint16_t flags;
    uint8_t dtype, body;
};

struct Access {
    uint8_t space, mode, operand, align;
    uint32_t mask;
    int64_t start;
    uint32_t length, shape, object, unused;
};

struct Shape {
    uint32_t n1, n2, n3, turns;
    int64_t s1, s2, s3;
};

static_assert(sizeof(Row) == 32 && sizeof(Access) == 32 && sizeof(Shape) == 40);

constexpr uint8_t READ = 1, WRITE = 2;                               // Mode
constexpr uint16_t SITE_PC = 1, CACHED = 2, ATOMIC = 4, FOLDED = 8;  // flags of a row

template <class Record>
Record& record(uint8_t* table, uint64_t number)
{
    return *reinterpret_cast<Record*>(table + number * sizeof(Record));
}

}  // namespace ascsim::records
