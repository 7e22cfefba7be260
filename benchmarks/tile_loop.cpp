// Tile instructions in loops: `tile_loop NAME CALLS` prints what a call takes of the processor, in microseconds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "acl/acl.h"
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename T, int rows, int cols>
using Matrix = Tile<TileType::Vec, T, rows, cols>;
template <typename T, int rows, int cols>
using Global = GlobalTensor<T, Shape<1, 1, 1, rows, cols>, Stride<rows * cols, rows * cols, rows * cols, cols, 1>>;

// A tile at an address, full of what lies in global memory.
template <typename T, int rows, int cols>
AICORE void Fill(Matrix<T, rows, cols>& tile, uint64_t address, __gm__ void* data)
{
    TASSIGN(tile, address);
    Global<T, rows, cols> global(static_cast<__gm__ T*>(data));
    TLOAD(tile, global);
}

AICORE void WaitForLoads()
{
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
}

template <typename T, int rows, int cols>
__global__ AICORE void Add(__gm__ void* data, __gm__ void*, int32_t calls)
{
    Matrix<T, rows, cols> src0, src1, dst;
    constexpr uint64_t bytes = sizeof(T) * rows * cols;
    Fill(src0, 0, data);
    if constexpr (bytes <= 16384) {
        Fill(src1, bytes, data);
    } else {
        TASSIGN(src1, 0);
    }
    TASSIGN(dst, 0x10000);
    WaitForLoads();
    for (int32_t call = 0; call < calls; ++call) {
        TADD(dst, src0, src1);
        pipe_barrier(PIPE_V);
    }
}

template <typename T, int rows, int cols>
__global__ AICORE void Sort(__gm__ void* data, __gm__ void* numbers, int32_t calls)
{
    constexpr int parts = 8 / sizeof(T);
    Matrix<T, rows, cols> src;
    Matrix<uint32_t, rows, cols> idx;
    Matrix<T, rows, cols * parts> dst;
    Fill(src, 0, data);
    Fill(idx, 0x8000, numbers);
    TASSIGN(dst, 0x10000);
    WaitForLoads();
    for (int32_t call = 0; call < calls; ++call) {
        TSORT32(dst, src, idx);
        pipe_barrier(PIPE_V);
    }
}

template <typename T, int rows, int cols>
__global__ AICORE void Sum(__gm__ void* data, __gm__ void*, int32_t calls)
{
    Matrix<T, rows, cols> src, tmp;
    Tile<TileType::Vec, T, rows, 1, BLayout::ColMajor> dst;
    Fill(src, 0, data);
    TASSIGN(tmp, 0x8000);
    TASSIGN(dst, 0x10000);
    WaitForLoads();
    for (int32_t call = 0; call < calls; ++call) {
        TROWSUM(dst, src, tmp);
        pipe_barrier(PIPE_V);
    }
}

template <int rows, int cols>
__global__ AICORE void GatherByIndex(__gm__ void* data, __gm__ void* numbers, int32_t calls)
{
    Matrix<float, rows, cols> src, dst;
    Matrix<int32_t, rows, cols> idx, tmp;
    Fill(src, 0, data);
    Fill(idx, 0x8000, numbers);
    TASSIGN(dst, 0x10000);
    TASSIGN(tmp, 0x18000);
    WaitForLoads();
    for (int32_t call = 0; call < calls; ++call) {
        TGATHER(dst, src, idx, tmp);
        pipe_barrier(PIPE_V);
    }
}

template <int rows, int cols>
__global__ AICORE void GatherByPattern(__gm__ void* data, __gm__ void*, int32_t calls)
{
    using Half = Matrix<float, rows, cols / 2>;
    Matrix<float, rows, cols> src;
    Half dst;
    Fill(src, 0, data);
    TASSIGN(dst, 0x10000);
    WaitForLoads();
    for (int32_t call = 0; call < calls; ++call) {
        TGATHER<Half, Matrix<float, rows, cols>, MaskPattern::P0101>(dst, src);
        pipe_barrier(PIPE_V);
    }
}

using Launch = void (*)(void* data, void* numbers, int32_t calls);
#define LAUNCH(...) [](void* data, void* numbers, int32_t calls) { __VA_ARGS__<<<1, nullptr, nullptr>>>(data, numbers, calls); }

struct Case {
    const char* name;
    bool halves, permutes;
    Launch launch;
};

const Case kCases[] = {
    {"add_f32_64x64", false, false, LAUNCH(Add<float, 64, 64>)},
    {"add_f32_128x128", false, false, LAUNCH(Add<float, 128, 128>)},
    {"add_f16_64x64", true, false, LAUNCH(Add<half, 64, 64>)},
    {"sort_f32_1x32", false, false, LAUNCH(Sort<float, 1, 32>)},
    {"sort_f32_1x2048", false, false, LAUNCH(Sort<float, 1, 2048>)},
    {"sort_f32_4x2048", false, false, LAUNCH(Sort<float, 4, 2048>)},
    {"sort_f32_1x8192", false, false, LAUNCH(Sort<float, 1, 8192>)},
    {"sort_f16_1x32", true, false, LAUNCH(Sort<half, 1, 32>)},
    {"sort_f16_1x2048", true, false, LAUNCH(Sort<half, 1, 2048>)},
    {"sort_f16_4x2048", true, false, LAUNCH(Sort<half, 4, 2048>)},
    {"sort_f16_1x8192", true, false, LAUNCH(Sort<half, 1, 8192>)},
    {"rowsum_f32_64x128", false, false, LAUNCH(Sum<float, 64, 128>)},
    {"rowsum_f16_64x128", true, false, LAUNCH(Sum<half, 64, 128>)},
    {"gather_index_64x64", false, true, LAUNCH(GatherByIndex<64, 64>)},
    {"gather_mask_64x64", false, false, LAUNCH(GatherByPattern<64, 64>)},
};

double ProcessorSeconds()
{
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int main(int argc, char** argv)
{
    constexpr int kCount = 128 * 128;
    const char* name = argc > 1 ? argv[1] : kCases[0].name;
    const int calls = argc > 2 ? std::atoi(argv[2]) : 2000;
    void *data = nullptr, *numbers = nullptr;
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtMalloc(&data, kCount * 4, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&numbers, kCount * 4, ACL_MEM_MALLOC_HUGE_FIRST);
    for (const Case& one : kCases) {
        if (std::strcmp(one.name, name) != 0) {
            continue;
        }
        std::vector<uint32_t> order(kCount);
        std::vector<float> floats(kCount);
        std::vector<half> halves(2 * kCount);
        for (int i = 0; i < kCount; ++i) {
            order[i] = static_cast<uint32_t>(one.permutes ? i * 2731 : i) % 4096;
            floats[i] = static_cast<float>((i * 7919) % 4093 - 2046);
            halves[i] = static_cast<half>(static_cast<float>((i * 7919) % 2039 - 1019));
            halves[kCount + i] = halves[i];
        }
        const void* values = one.halves ? static_cast<const void*>(halves.data()) : floats.data();
        aclrtMemcpy(data, kCount * 4, values, kCount * 4, ACL_MEMCPY_HOST_TO_DEVICE);
        aclrtMemcpy(numbers, kCount * 4, order.data(), kCount * 4, ACL_MEMCPY_HOST_TO_DEVICE);
        one.launch(data, numbers, calls);  // plans are made, what is compiled is loaded
        aclrtSynchronizeDevice();
        const double start = ProcessorSeconds();
        one.launch(data, numbers, calls);
        aclrtSynchronizeDevice();
        std::printf("us_per_call %.3f\n", (ProcessorSeconds() - start) / calls * 1e6);
    }
    aclrtFree(data);
    aclrtFree(numbers);
    aclrtResetDevice(0);
    aclFinalize();
    return 0;
}
