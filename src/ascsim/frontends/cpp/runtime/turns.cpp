// Loops of vector functions: the rows of two turns that look alike become the rows of one that stand for both, and those grow
// with every further turn (record() of machine.hpp). So a loop of a million turns leaves as many rows as its body has.
//
// Folded, all turns of a row stand where its first one does. That must change nothing for whoever reads the trace:
//   - of two accesses to one byte, one of them a write, the earlier stays the earlier. Only a later turn of a row can meet an
//     earlier turn of one behind it in the body; `turns_without_meeting` says from which turn on it does.
//   - an access that is aligned is so in every turn, and none has a mask, which belongs to one place.
//   - a load holds the stores behind it back (checks/clocks.py), so none may move behind one: the body begins with its loads,
//     or another turn of it does, which is tried next.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "host.hpp"
#include "records.hpp"

extern "C" {
AscsimTurns ascsim_turns = {~uint64_t{0}, 0, 0, 0, {}};
}

namespace {

namespace records = ascsim::records;

constexpr unsigned KEPT = 2 * ASCSIM_MOST_FOLDED;  // rows that are looked back on
constexpr unsigned SITES = 1024;  // below a page: where a module lies must not matter
constexpr uint64_t FEWEST_TURNS = 4;   // less is not worth the work
constexpr uint64_t MOST_TURNS = 1u << 30;
constexpr uint64_t LONGEST_PAUSE = 1 << 14;

// A row of a register instruction as it was appended.
struct Row {
    uint64_t site, what, access, start, tail, number, access_number;

    bool is_alike(const Row& other) const
    {
        return site == other.site && what == other.what && access == other.access && tail == other.tail;
    }
    bool is_store() const { return (access >> 8 & 0xff) == records::WRITE; }
    uint64_t align() const { return uint64_t{1} << (access >> 24 & 0xff); }
    int64_t length() const { return static_cast<int64_t>(tail & 0xffffffff); }
};

Row rows[KEPT];
uint64_t count = 0;        // of rows that were told one after the other
uint64_t rows_then = 0;    // how many there were after the newest
const uint8_t *table_then = nullptr, *accesses_then = nullptr;
uint64_t newest[SITES];    // by site: the newest of its rows, counted from 1
uint64_t period = 0, alike = 0;
uint64_t pause = 0, next_pause = 16;  // rows for which nothing is tried, after something was tried in vain

Row& kept(uint64_t number) { return rows[number % KEPT]; }

uint64_t& newest_of(uint64_t site) { return newest[site % SITES]; }

void forget()
{
    count = period = alike = 0;
}

// How many turns of `first` and `second`, behind it in the body, may be folded: before a later turn of the first meets an
// earlier one of the second. `step` is what either moves by.
uint64_t turns_without_meeting(const Row& first, int64_t step, const Row& second, int64_t second_step)
{
    if (first.access == 0 || second.access == 0 || !(first.is_store() || second.is_store())) {
        return MOST_TURNS;
    }
    int64_t low = static_cast<int64_t>(first.start), other = static_cast<int64_t>(second.start);
    const int64_t length = first.length(), other_length = second.length();
    if (step == second_step) {
        // From `lag` turns on: low + lag * step < other + other_length and other < low + lag * step + length.
        int64_t distance = other - low, near = length, far = other_length;
        if (step < 0) {  // as in a mirror
            distance = -distance, step = -step;
            std::swap(near, far);
        }
        if (step == 0) {
            return distance < near && distance > -far ? 1 : MOST_TURNS;
        }
        const int64_t above = distance - near, below = distance + far;
        const int64_t lag = above < 0 ? 1 : above / step + 1;
        return lag * step < below ? static_cast<uint64_t>(lag) : MOST_TURNS;
    }
    // As long as all that either has touched lies apart.
    int64_t end = low + length, moves = step, other_moves = second_step;
    if (low >= other + other_length) {
        end = other + other_length, other = low;
        std::swap(moves, other_moves);
    } else if (end > other) {
        return 1;
    }
    const int64_t speed = std::max<int64_t>(moves, 0) - std::min<int64_t>(other_moves, 0);
    return speed == 0 ? MOST_TURNS : static_cast<uint64_t>((other - end) / speed + 1);
}

// How many turns of the body that begins at a row may be folded.
uint64_t turns_of(uint64_t begin)
{
    uint64_t most = MOST_TURNS;
    bool has_load = false, has_store = false;
    for (uint64_t i = begin; i < begin + period; ++i) {
        const Row& row = kept(i);
        const auto step = static_cast<int64_t>(kept(i + period).start - row.start);
        if (row.access == 0) {
            continue;
        }
        if (row.access >> 32 != 0 || (static_cast<uint64_t>(step) & (row.align() - 1)) != 0) {
            return 1;
        }
        if (!row.is_store() && has_store && !has_load) {
            return 1;
        }
        (row.is_store() ? has_store : has_load) = true;
        for (uint64_t k = begin; k < i && most >= FEWEST_TURNS; ++k) {
            const auto before = static_cast<int64_t>(kept(k + period).start - kept(k).start);
            most = std::min(most, turns_without_meeting(kept(k), before, row, step));
        }
    }
    return most;
}

// Shapes of turns: most loops of a kernel have the same few.

struct Known {
    uint32_t turns, number;
    int64_t step;
};
constexpr unsigned KNOWN = 251;
Known known[KNOWN];

// The shapes that were made for the loop that was folded last, and the accesses that have them.
uint64_t first_made = 0, made = 0;
records::Access* made_for[ASCSIM_MOST_FOLDED];

records::Shape& shape_of(uint64_t number) { return records::record<records::Shape>(ascsim::shapes.start, number - 1); }

// The loop is over: of its shapes only those stay that no loop before it had.
void settle()
{
    if (made != 0 && accesses_then == ascsim_trace.accesses && *ascsim::shapes.count == first_made + made - 1) {
        uint64_t next = first_made;
        for (uint64_t i = 0; i < made; ++i) {
            const records::Shape shape = shape_of(first_made + i);
            Known& entry = known[(shape.n1 * uint64_t{31} + static_cast<uint64_t>(shape.s1)) % KNOWN];
            if (entry.number == 0 || entry.turns != shape.n1 || entry.step != shape.s1) {
                entry = {shape.n1, static_cast<uint32_t>(next), shape.s1};
                shape_of(next++) = shape;
            }
            made_for[i]->shape = entry.number;
        }
        *ascsim::shapes.count = next - 1;
    }
    made = 0;
}

// The rows of the newest turn go; those of the one before it stand for both.
void fold(uint64_t begin, uint64_t turns)
{
    AscsimTurns& state = ascsim_turns;
    static uint32_t nothing;
    first_made = *ascsim::shapes.count + 1;
    const Row& second = kept(begin + period);
    *ascsim_trace.n_rows = second.number;
    *ascsim_trace.n_accesses = second.access_number;
    for (unsigned i = 0; i < period; ++i) {
        const Row &row = kept(begin + i), &next = kept(begin + period + i);
        AscsimFolded& folded = state.folded[i];
        const auto step = static_cast<int64_t>(next.start - row.start);
        auto& record = records::record<records::Row>(ascsim_trace.rows, row.number);
        record.arg = 2;
        record.flags |= records::FOLDED;
        record.body = static_cast<uint8_t>(i == 0 ? period : 0);
        folded = {row.site, row.what, row.access, row.tail, next.start + static_cast<uint64_t>(step), step,
                  &record.arg, &nothing};
        if (row.access != 0 && step != 0) {
            const uint64_t number = ++*ascsim::shapes.count;
            shape_of(number) = {2, 1, 1, 1, step, 0, 0};
            folded.bursts = &shape_of(number).n1;
            auto& access = records::record<records::Access>(ascsim_trace.accesses, row.access_number);
            access.shape = static_cast<uint32_t>(number);
            made_for[made++] = &access;
        }
    }
    state.period = static_cast<uint32_t>(period);
    state.at = 0;
    state.left = turns - 2;
    state.rows = *ascsim_trace.n_rows;
    forget();
}

void rest()
{
    pause = next_pause;
    next_pause = std::min(2 * next_pause, LONGEST_PAUSE);
}

}  // namespace

namespace ascsim {

void begin_turns()
{
    ascsim_turns.rows = ~uint64_t{0};
    forget();
    std::fill_n(newest, SITES, 0);
    std::fill_n(known, KNOWN, Known{});
    made = 0;
    pause = 0;
    next_pause = 16;
    rows_then = 0;
    table_then = accesses_then = nullptr;
}

}  // namespace ascsim

extern "C" {

void ascsim_follow(uint64_t site, uint64_t what, uint64_t access, uint64_t start, uint64_t tail)
{
    const uint64_t n_rows = *ascsim_trace.n_rows;
    ascsim_turns.rows = ~uint64_t{0};
    settle();
    if (n_rows != rows_then + 1 || table_then != ascsim_trace.rows || accesses_then != ascsim_trace.accesses) {
        forget();  // other rows came between, or what was kept has gone to a table's file
        table_then = ascsim_trace.rows;
        accesses_then = ascsim_trace.accesses;
    }
    rows_then = n_rows;
    if (pause != 0) {
        --pause;
        forget();
        return;
    }
    Row& row = kept(count);
    row = {site, what, access, start, tail, n_rows - 1, *ascsim_trace.n_accesses - (access != 0)};
    if (period != 0 && row.is_alike(kept(count - period))) {
        ++alike;
    } else {
        const uint64_t last = newest_of(site);  // counted from 1
        period = alike = 0;
        if (last != 0 && last <= count && count + 1 - last <= ASCSIM_MOST_FOLDED && row.is_alike(kept(last - 1))) {
            period = count + 1 - last;
            alike = 1;
        }
    }
    newest_of(site) = ++count;
    if (period == 0 || alike < period) {
        return;
    }
    const uint64_t begin = count - 2 * period, turns = turns_of(begin);
    if (*ascsim::shapes.count + period > ascsim::shapes.capacity) {
        ascsim_trace_grow();
        forget();
    } else if (turns >= FEWEST_TURNS) {
        fold(begin, turns);
        next_pause = 16;
    } else {
        // Another turn of the body may do; when all have been tried, loops are left alone for a while.
        if (++alike >= 2 * period) {
            forget();
            rest();
        }
    }
}
}
