// Sort each 32-element block of a matrix, largest first, and carry the column numbers along.
//
// Two kernels: rows of 64 columns need no scratch; rows of 80 columns have a tail of 16, which the four-operand form pads in
// `tmp`. Each value becomes an 8-byte pair (value, index), so a row of C floats becomes 2C floats.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "acl/acl.h"
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int kRows = 4;

// View `rows` by `cols` elements in global memory, one row after the other.
template <typename T, int rows, int cols>
using Matrix = GlobalTensor<T, Shape<1, 1, 1, rows, cols>, Stride<rows * cols, rows * cols, rows * cols, cols, 1>>;

template <int cols>
AICORE void SortRows(__gm__ float* out, __gm__ float* values, __gm__ uint32_t* indices)
{
    constexpr int padded = (cols + 31) / 32 * 32;
    using Values = Tile<TileType::Vec, float, kRows, padded, BLayout::RowMajor, kRows, cols>;
    using Indices = Tile<TileType::Vec, uint32_t, kRows, padded, BLayout::RowMajor, kRows, cols>;
    using Pairs = Tile<TileType::Vec, float, kRows, 2 * padded, BLayout::RowMajor, kRows, 2 * cols>;
    // One block more than the row: the Ascend 950 loads a whole register from where the tail begins.
    using Scratch = Tile<TileType::Vec, float, 1, padded + 32>;

    Values src;
    Indices idx;
    Pairs dst;
    Scratch tmp;
    TASSIGN(src, 0x0);
    TASSIGN(idx, 0x4000);
    TASSIGN(dst, 0x8000);
    TASSIGN(tmp, 0xC000);

    Matrix<float, kRows, cols> srcGlobal(values);
    Matrix<uint32_t, kRows, cols> idxGlobal(indices);
    Matrix<float, kRows, 2 * cols> dstGlobal(out);

    TLOAD(src, srcGlobal);
    TLOAD(idx, idxGlobal);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    if constexpr (cols % 32 == 0) {
        TSORT32(dst, src, idx);
    } else {
        TSORT32(dst, src, idx, tmp);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(dstGlobal, dst);
}

__global__ AICORE void SortWholeBlocks(__gm__ float* out, __gm__ float* values, __gm__ uint32_t* indices)
{
    SortRows<64>(out, values, indices);
}

__global__ AICORE void SortWithTail(__gm__ float* out, __gm__ float* values, __gm__ uint32_t* indices)
{
    SortRows<80>(out, values, indices);
}

// One run: data in, kernel, data out, compared with std::stable_sort block by block, indices as integers.
template <typename Launch>
bool Check(int cols, Launch launch)
{
    const int count = kRows * cols;
    std::vector<float> values(count), sorted(2 * count);
    std::vector<uint32_t> indices(count);
    for (int i = 0; i < count; ++i) {
        values[i] = static_cast<float>((i * 37 + 11) % 101) - 50.0f;
        indices[i] = static_cast<uint32_t>(i % cols);
    }

    void *valuesDevice = nullptr, *indicesDevice = nullptr, *sortedDevice = nullptr;
    aclrtMalloc(&valuesDevice, count * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&indicesDevice, count * sizeof(uint32_t), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&sortedDevice, 2 * count * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(valuesDevice, count * sizeof(float), values.data(), count * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpy(
        indicesDevice, count * sizeof(uint32_t), indices.data(), count * sizeof(uint32_t), ACL_MEMCPY_HOST_TO_DEVICE);
    launch(static_cast<float*>(sortedDevice), static_cast<float*>(valuesDevice), static_cast<uint32_t*>(indicesDevice));
    aclrtSynchronizeDevice();
    aclrtMemcpy(
        sorted.data(), 2 * count * sizeof(float), sortedDevice, 2 * count * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST);
    aclrtFree(valuesDevice);
    aclrtFree(indicesDevice);
    aclrtFree(sortedDevice);

    for (int row = 0; row < kRows; ++row) {
        for (int begin = 0; begin < cols; begin += 32) {
            const int size = std::min(32, cols - begin);
            std::vector<int> order(size);
            for (int k = 0; k < size; ++k) {
                order[k] = row * cols + begin + k;
            }
            std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return values[a] > values[b]; });
            for (int k = 0; k < size; ++k) {
                const int pair = 2 * (row * cols + begin + k);
                uint32_t index = 0;
                std::memcpy(&index, &sorted[pair + 1], sizeof(index));
                if (sorted[pair] != values[order[k]] || index != indices[order[k]]) {
                    std::printf("row %d, pair %d: got (%g, %u)\n", row, begin + k, sorted[pair], index);
                    return false;
                }
            }
        }
    }
    return true;
}

int main()
{
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);
    const bool whole = Check(64, [&](float* out, float* values, uint32_t* indices) {
        SortWholeBlocks<<<1, nullptr, stream>>>(out, values, indices);
    });
    const bool tail = Check(80, [&](float* out, float* values, uint32_t* indices) {
        SortWithTail<<<1, nullptr, stream>>>(out, values, indices);
    });
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
    std::printf("%s sort_rows: 64 columns %s, 80 columns %s\n", whole && tail ? "[Success]" : "[Failed]",
                whole ? "right" : "wrong", tail ? "right" : "wrong");
    return whole && tail ? 0 : 1;
}
