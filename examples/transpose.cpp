// Transpose a matrix of 500 by 300 floats, tile by tile, with tails on both sides.
//
// TTRANS goes through both chips' ways: on A2/A3 scatter_vnchwconv puts 16-row sub-tiles together in `tmp`, and a copy takes
// them to the destination; the A5 gathers or scatters with registers, and leaves `tmp` alone. The kernel is one and the same.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int kRows = 500, kCols = 300;
constexpr int kSide = 64;  // of a tile
constexpr int kBlocks = 8;

// Each block takes every kBlocks-th band of kSide rows, with two buffers for what is loaded and what is stored.
__global__ AICORE void Transpose(__gm__ float* out, __gm__ float* in)
{
    using Part = Tile<TileType::Vec, float, kSide, kSide, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
    using Whole = Tile<TileType::Vec, float, kSide, kSide>;
    using InView = GlobalTensor<float, Shape<1, 1, 1, DYNAMIC, DYNAMIC>, Stride<1, 1, 1, kCols, 1>>;
    using OutView = GlobalTensor<float, Shape<1, 1, 1, DYNAMIC, DYNAMIC>, Stride<1, 1, 1, kRows, 1>>;
    constexpr int bytes = kSide * kSide * int(sizeof(float));

    Whole tmp;
    TASSIGN(tmp, 0);

    // Both buffers are free at first: of loads for MTE2, of stores for V.
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID1);

    int buffer = 0;
    for (int row = static_cast<int>(get_block_idx()) * kSide; row < kRows; row += kBlocks * kSide) {
        const int rows = kRows - row < kSide ? kRows - row : kSide;
        for (int col = 0; col < kCols; col += kSide, buffer = 1 - buffer) {
            const int cols = kCols - col < kSide ? kCols - col : kSide;
            const event_t event = buffer ? EVENT_ID1 : EVENT_ID0;
            Part source(rows, cols), turned(cols, rows);
            TASSIGN(source, (1 + buffer) * bytes);
            TASSIGN(turned, (3 + buffer) * bytes);

            InView inView(in + row * kCols + col, {rows, cols});
            wait_flag(PIPE_V, PIPE_MTE2, event);
            TLOAD(source, inView);
            set_flag(PIPE_MTE2, PIPE_V, event);
            wait_flag(PIPE_MTE2, PIPE_V, event);
            wait_flag(PIPE_MTE3, PIPE_V, event);
            pipe_barrier(PIPE_V);  // tmp is read and written by each TTRANS
            TTRANS(turned, source, tmp);
            set_flag(PIPE_V, PIPE_MTE2, event);
            set_flag(PIPE_V, PIPE_MTE3, event);
            wait_flag(PIPE_V, PIPE_MTE3, event);
            OutView outView(out + col * kRows + row, {cols, rows});
            TSTORE(outView, turned);
            set_flag(PIPE_MTE3, PIPE_V, event);
        }
    }

    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID1);
}

int main()
{
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);

    constexpr std::size_t bytes = std::size_t(kRows) * kCols * sizeof(float);
    std::vector<float> in(std::size_t(kRows) * kCols), out(in.size());
    for (std::size_t n = 0; n < in.size(); ++n) {
        in[n] = static_cast<float>(n);
    }
    void *inDevice = nullptr, *outDevice = nullptr;
    aclrtMalloc(&inDevice, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&outDevice, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(inDevice, bytes, in.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    Transpose<<<kBlocks, nullptr, stream>>>(static_cast<float*>(outDevice), static_cast<float*>(inDevice));
    aclrtSynchronizeStream(stream);
    aclrtMemcpy(out.data(), bytes, outDevice, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    aclrtFree(inDevice);
    aclrtFree(outDevice);

    int wrong = 0;
    for (int row = 0; row < kRows; ++row) {
        for (int col = 0; col < kCols; ++col) {
            const float got = out[std::size_t(col) * kRows + row], wanted = in[std::size_t(row) * kCols + col];
            if (got != wanted && wrong++ == 0) {
                std::printf("[Failed] element (%d, %d): got %g, wanted %g\n", col, row, got, wanted);
            }
        }
    }
    if (wrong == 0) {
        std::printf("[Success] %d x %d turned to %d x %d\n", kRows, kCols, kCols, kRows);
    }
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
    return wrong == 0 ? 0 : 1;
}
