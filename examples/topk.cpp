// Row-wise top-k with indices: sort blocks of 32, merge the sorted lists, part values from indices.
//
// Two kernels of one body: the 1000 largest of 1024 floats in each of 4800 rows, and, as a mixture-of-experts gate does, 8 of
// 256 half scores of each token. Equal values come in the order of their columns.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

#include "acl/acl.h"
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int kBlocks = 48;

// The largest `k` of each row of `cols`; `rows` at a time, with two buffers for what is loaded and what is stored.
template <typename T, int cols, int k, int rows>
AICORE void TopK(__gm__ T* outValues, __gm__ uint32_t* outIndices, __gm__ T* in, int rowsOfBlock)
{
    constexpr int perPair = 8 / sizeof(T);  // a pair is 8 bytes: value and index
    constexpr int rowBytes = cols * 8;      // of a row of pairs
    using Source = Tile<TileType::Vec, T, rows, cols>;
    using Indices = Tile<TileType::Vec, uint32_t, 1, cols>;
    using Sorted = Tile<TileType::Vec, T, rows, cols * perPair>;
    using Row = Tile<TileType::Vec, T, 1, cols * perPair, BLayout::RowMajor, 1, -1>;
    using TopRow = Tile<TileType::Vec, T, 1, k * perPair>;
    using Top = Tile<TileType::Vec, T, 1, rows * k * perPair>;
    using TopWords = Tile<TileType::Vec, uint32_t, 1, rows * k * 2>;
    using Values = Tile<TileType::Vec, T, 1, rows * k>;
    using Places = Tile<TileType::Vec, uint32_t, 1, rows * k>;

    // Addresses in UB, one after the other.
    constexpr int atIndices = 0;
    constexpr int atSorted = atIndices + cols * 4;
    constexpr int atOther = atSorted + rows * rowBytes;
    constexpr int atScratch = atOther + rowBytes;
    constexpr int atTop = atScratch + rowBytes;
    constexpr int atSource = atTop + rows * k * 8;
    constexpr int atValues = atSource + 2 * rows * cols * int(sizeof(T));
    constexpr int atPlaces = atValues + 2 * rows * k * int(sizeof(T));
    static_assert(atPlaces + 2 * rows * k * 4 <= 184 * 1024, "the tiles do not fit UB");

    Indices indices;
    Sorted sorted;
    Top top;
    TopWords topWords;
    TASSIGN(indices, atIndices);
    TASSIGN(sorted, atSorted);
    TASSIGN(top, atTop);
    TASSIGN(topWords, atTop);  // the same pairs, read as words

    using InView = GlobalTensor<T, Shape<1, 1, 1, rows, cols>, Stride<rows * cols, rows * cols, rows * cols, cols, 1>>;
    using ValuesView = GlobalTensor<T, Shape<1, 1, 1, 1, rows * k>, Stride<rows * k, rows * k, rows * k, rows * k, 1>>;
    using PlacesView =
        GlobalTensor<uint32_t, Shape<1, 1, 1, 1, rows * k>, Stride<rows * k, rows * k, rows * k, rows * k, 1>>;

    TCI<Indices, uint32_t, 0>(indices, 0);  // written by the scalar unit
    set_flag(PIPE_S, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_S, PIPE_V, EVENT_ID0);

    // Both buffers are free at first: of loads for MTE2, of stores for V.
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID1);

    const int firstRow = static_cast<int>(get_block_idx()) * rowsOfBlock;
    for (int done = 0; done < rowsOfBlock; done += rows) {
        const int buffer = done / rows % 2;
        const event_t event = buffer ? EVENT_ID1 : EVENT_ID0;
        const int row = firstRow + done;
        Source source;
        Values values;
        Places places;
        TASSIGN(source, atSource + buffer * rows * cols * int(sizeof(T)));
        TASSIGN(values, atValues + buffer * rows * k * int(sizeof(T)));
        TASSIGN(places, atPlaces + buffer * rows * k * 4);

        InView inView(in + row * cols);
        wait_flag(PIPE_V, PIPE_MTE2, event);
        TLOAD(source, inView);
        set_flag(PIPE_MTE2, PIPE_V, event);
        wait_flag(PIPE_MTE2, PIPE_V, event);
        TSORT32(sorted, source, indices);  // one row of indices serves all rows
        set_flag(PIPE_V, PIPE_MTE2, event);

        for (int r = 0; r < rows; ++r) {
            Row here(cols * perPair), there(cols * perPair);
            int atHere = atSorted + r * rowBytes, atThere = atOther;
            int length = 32;  // pairs of a sorted list
            for (; length * 4 <= cols; length *= 4) {
                TASSIGN(here, atHere);
                TASSIGN(there, atThere);
                pipe_barrier(PIPE_V);
                TMRGSORT(there, here, length * perPair);
                std::swap(atHere, atThere);
            }
            // Two lists are left. No more than k pairs of each can be among the largest.
            const int taken = length < k ? length : k;
            Row first(taken * perPair), second(taken * perPair);
            Row scratch(2 * taken * perPair);
            TopRow best;
            TASSIGN(first, atHere);
            TASSIGN(second, atHere + length * 8);
            TASSIGN(scratch, atScratch);
            TASSIGN(best, atTop + r * k * 8);
            MrgSortExecutedNumList executed;
            pipe_barrier(PIPE_V);
            TMRGSORT<TopRow, Row, Row, Row, false>(best, executed, scratch, first, second);
        }

        pipe_barrier(PIPE_V);
        wait_flag(PIPE_MTE3, PIPE_V, event);
        if constexpr (sizeof(T) == 4) {
            TGATHER<Values, Top, MaskPattern::P0101>(values, top);
        } else {
            TGATHER<Values, Top, MaskPattern::P0001>(values, top);
        }
        TGATHER<Places, TopWords, MaskPattern::P1010>(places, topWords);
        set_flag(PIPE_V, PIPE_MTE3, event);
        wait_flag(PIPE_V, PIPE_MTE3, event);
        ValuesView valuesView(outValues + row * k);
        PlacesView placesView(outIndices + row * k);
        TSTORE(valuesView, values);
        TSTORE(placesView, places);
        set_flag(PIPE_MTE3, PIPE_V, event);
    }

    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID1);
}

__global__ AICORE void TopKRows(__gm__ float* values, __gm__ uint32_t* indices, __gm__ float* in, int rowsOfBlock)
{
    TopK<float, 1024, 1000, 4>(values, indices, in, rowsOfBlock);
}

__global__ AICORE void Gate(__gm__ half* values, __gm__ uint32_t* indices, __gm__ half* in, int rowsOfBlock)
{
    TopK<half, 256, 8, 20>(values, indices, in, rowsOfBlock);
}

// One run on the device, compared with std::stable_sort to the last value and the last index.
template <typename T, typename Launch>
bool Check(const char* name, int rows, int cols, int k, Launch launch)
{
    std::vector<T> in(static_cast<std::size_t>(rows) * cols), values(static_cast<std::size_t>(rows) * k);
    std::vector<uint32_t> indices(values.size());
    uint32_t state = 1;
    for (T& value : in) {  // a few thousand different values: there are ties in every row
        state = state * 1664525u + 1013904223u;
        value = static_cast<T>((static_cast<int>(state >> 20) - 2048) / 4.0f);
    }

    void *inDevice = nullptr, *valuesDevice = nullptr, *indicesDevice = nullptr;
    aclrtMalloc(&inDevice, in.size() * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&valuesDevice, values.size() * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&indicesDevice, indices.size() * sizeof(uint32_t), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(inDevice, in.size() * sizeof(T), in.data(), in.size() * sizeof(T), ACL_MEMCPY_HOST_TO_DEVICE);
    launch(static_cast<T*>(valuesDevice), static_cast<uint32_t*>(indicesDevice), static_cast<T*>(inDevice));
    aclrtSynchronizeDevice();
    aclrtMemcpy(values.data(), values.size() * sizeof(T), valuesDevice, values.size() * sizeof(T),
                ACL_MEMCPY_DEVICE_TO_HOST);
    aclrtMemcpy(indices.data(), indices.size() * sizeof(uint32_t), indicesDevice, indices.size() * sizeof(uint32_t),
                ACL_MEMCPY_DEVICE_TO_HOST);
    aclrtFree(inDevice);
    aclrtFree(valuesDevice);
    aclrtFree(indicesDevice);

    std::vector<uint32_t> order(cols);
    std::vector<float> numbers(cols);
    for (int row = 0; row < rows; ++row) {
        for (int c = 0; c < cols; ++c) {
            numbers[c] = static_cast<float>(in[static_cast<std::size_t>(row) * cols + c]);
        }
        std::iota(order.begin(), order.end(), 0u);
        std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return numbers[a] > numbers[b]; });
        for (int n = 0; n < k; ++n) {
            const std::size_t at = static_cast<std::size_t>(row) * k + n;
            if (indices[at] != order[n] || static_cast<float>(values[at]) != numbers[order[n]]) {
                std::printf("[Failed] %s: row %d, place %d: got (%g, %u), wanted (%g, %u)\n", name, row, n,
                            static_cast<float>(values[at]), indices[at], numbers[order[n]], order[n]);
                return false;
            }
        }
    }
    std::printf("[Success] %s: %d of %d in %d rows, values and indices right\n", name, k, cols, rows);
    return true;
}

int main()
{
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);
    constexpr int rows = 4800, tokens = 1920;
    bool right = Check<float>("top-k", rows, 1024, 1000, [&](float* values, uint32_t* indices, float* in) {
        TopKRows<<<kBlocks, nullptr, stream>>>(values, indices, in, rows / kBlocks);
    });
    right &= Check<half>("gate", tokens, 256, 8, [&](half* values, uint32_t* indices, half* in) {
        Gate<<<kBlocks, nullptr, stream>>>(values, indices, in, tokens / kBlocks);
    });
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
    return right ? 0 : 1;
}
