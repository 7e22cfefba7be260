// The kernel of sort_rows.cpp in Auto mode: no addresses and no flags; tiles are placed and pipes are synchronised by the tool.
// (In the vendor's tool chain that is the compiler's work; `__PTO_AUTO__` says that a source is meant for it.)
#define __PTO_AUTO__
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "acl/acl.h"
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int kRows = 8, kCols = 128, kCount = kRows * kCols;

template <typename T, int cols>
using Matrix =
    GlobalTensor<T, Shape<1, 1, 1, kRows, cols>, Stride<kRows * cols, kRows * cols, kRows * cols, cols, 1>>;

__global__ AICORE void SortRows(__gm__ float* out, __gm__ float* values, __gm__ uint32_t* indices)
{
    Tile<TileType::Vec, float, kRows, kCols> src;
    Tile<TileType::Vec, uint32_t, kRows, kCols> idx;
    Tile<TileType::Vec, float, kRows, 2 * kCols> dst;
    Matrix<float, kCols> srcGlobal(values);
    Matrix<uint32_t, kCols> idxGlobal(indices);
    Matrix<float, 2 * kCols> dstGlobal(out);

    TLOAD(src, srcGlobal);
    TLOAD(idx, idxGlobal);
    TSORT32(dst, src, idx);
    TSTORE(dstGlobal, dst);
}

int main()
{
    std::vector<float> values(kCount), sorted(2 * kCount);
    std::vector<uint32_t> indices(kCount);
    for (int i = 0; i < kCount; ++i) {
        values[i] = static_cast<float>((i * 193 + 71) % 1009);
        indices[i] = static_cast<uint32_t>(i % kCols);
    }
    const size_t bytes = kCount * sizeof(float);
    void *valuesDevice = nullptr, *indicesDevice = nullptr, *sortedDevice = nullptr;
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtMalloc(&valuesDevice, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&indicesDevice, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&sortedDevice, 2 * bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(valuesDevice, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpy(indicesDevice, bytes, indices.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    SortRows<<<1, nullptr, nullptr>>>(
        static_cast<float*>(sortedDevice), static_cast<float*>(valuesDevice), static_cast<uint32_t*>(indicesDevice));
    aclrtSynchronizeDevice();
    aclrtMemcpy(sorted.data(), 2 * bytes, sortedDevice, 2 * bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    aclrtFree(valuesDevice);
    aclrtFree(indicesDevice);
    aclrtFree(sortedDevice);
    aclrtResetDevice(0);
    aclFinalize();

    bool right = true;
    for (int begin = 0; begin < kCount; begin += 32) {
        std::vector<int> order(32);
        for (int k = 0; k < 32; ++k) {
            order[k] = begin + k;
        }
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return values[a] > values[b]; });
        for (int k = 0; k < 32; ++k) {
            uint32_t index = 0;
            std::memcpy(&index, &sorted[2 * (begin + k) + 1], sizeof(index));
            right = right && sorted[2 * (begin + k)] == values[order[k]] && index == indices[order[k]];
        }
    }
    std::printf("%s sort_rows_auto\n", right ? "[Success]" : "[Failed]");
    return right ? 0 : 1;
}
