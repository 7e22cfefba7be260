// A kernel with a mistake: it doubles a tile, but the addition does not wait for the load.
//
// On a chip the vector pipe may read the tile before the data has arrived; on many runs it happens to work. The tool gives the
// numbers of the program's order and says what is missing, and where.
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int kRows = 16, kCols = 64, kCount = kRows * kCols;

__global__ AICORE void Double(__gm__ float* out, __gm__ float* in)
{
    using Data = Tile<TileType::Vec, float, kRows, kCols>;
    using Global = GlobalTensor<float, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
    Data src, dst;
    TASSIGN(src, 0x0);
    TASSIGN(dst, 0x1000);
    Global srcGlobal(in), dstGlobal(out);

    TLOAD(src, srcGlobal);
    // set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0) belong here
    TADD(dst, src, src);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(dstGlobal, dst);
}

int main()
{
    std::vector<float> in(kCount, 1.5f), out(kCount);
    void *inDevice = nullptr, *outDevice = nullptr;
    const size_t bytes = kCount * sizeof(float);
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtMalloc(&inDevice, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&outDevice, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(inDevice, bytes, in.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    Double<<<1, nullptr, nullptr>>>(static_cast<float*>(outDevice), static_cast<float*>(inDevice));
    aclrtSynchronizeDevice();
    aclrtMemcpy(out.data(), bytes, outDevice, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    aclrtFree(inDevice);
    aclrtFree(outDevice);
    aclrtResetDevice(0);
    aclFinalize();
    std::printf("out[0] = %g\n", out[0]);
    return 0;
}
