// Multiply a matrix of 256 by 512 halves with one of 512 by 192, the sums in float: the cube's way.
//
// Each block makes 64 by 96 elements of the result. The inner dimension is taken in steps of 128, with two buffers for each
// operand: while the cube multiplies one pair (M), the next one moves from L1 to L0A and L0B (MTE1), and the one after that
// from global memory to L1 (MTE2). Sums stay in L0C until the last step; then FIX stores them. One kernel runs on all chips:
// TileLeft is ZZ on A2/A3 and NZ on the A5.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int kRows = 256, kInner = 512, kCols = 192;
constexpr int kM = 64, kK = 128, kN = 96;  // of a step
constexpr int kAcross = kCols / kN, kBlocks = kRows / kM * kAcross;

__global__ __cube__ void Multiply(__gm__ float* out, __gm__ half* lhs, __gm__ half* rhs)
{
    // In L1 matrices lie in boxes of 16 rows by 32 bytes, one column of boxes after the other (NZ): what TLOAD makes of ND.
    using LhsMat = Tile<TileType::Mat, half, kM, kK, BLayout::ColMajor, kM, kK, SLayout::RowMajor>;
    using RhsMat = Tile<TileType::Mat, half, kK, kN, BLayout::ColMajor, kK, kN, SLayout::RowMajor>;
    using Left = TileLeft<half, kM, kK>;
    using Right = TileRight<half, kK, kN>;
    using Acc = TileAcc<float, kM, kN>;
    using LhsView = GlobalTensor<half, Shape<1, 1, 1, kM, kK>, Stride<1, 1, 1, kInner, 1>>;
    using RhsView = GlobalTensor<half, Shape<1, 1, 1, kK, kN>, Stride<1, 1, 1, kCols, 1>>;
    using OutView = GlobalTensor<float, Shape<1, 1, 1, kM, kN>, Stride<1, 1, 1, kCols, 1>>;
    constexpr int lhsBytes = kM * kK * int(sizeof(half)), rhsBytes = kK * kN * int(sizeof(half));

    const int block = static_cast<int>(get_block_idx());
    const int row = block / kAcross * kM, col = block % kAcross * kN;
    Acc acc;
    TASSIGN(acc, 0);

    // All buffers are free at first: those in L1 for MTE2, those in L0A and L0B for MTE1.
    set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
    set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    set_flag(PIPE_M, PIPE_MTE1, EVENT_ID1);

    for (int inner = 0, buffer = 0; inner < kInner; inner += kK, buffer = 1 - buffer) {
        const event_t event = buffer ? EVENT_ID1 : EVENT_ID0;
        LhsMat lhsMat;
        RhsMat rhsMat;
        Left left;
        Right right;
        TASSIGN(lhsMat, buffer * lhsBytes);
        TASSIGN(rhsMat, 2 * lhsBytes + buffer * rhsBytes);
        TASSIGN(left, buffer * lhsBytes);
        TASSIGN(right, buffer * rhsBytes);

        LhsView lhsView(lhs + row * kInner + inner);
        RhsView rhsView(rhs + inner * kCols + col);
        wait_flag(PIPE_MTE1, PIPE_MTE2, event);
        TLOAD(lhsMat, lhsView);
        TLOAD(rhsMat, rhsView);
        set_flag(PIPE_MTE2, PIPE_MTE1, event);

        wait_flag(PIPE_MTE2, PIPE_MTE1, event);
        wait_flag(PIPE_M, PIPE_MTE1, event);
        TMOV(left, lhsMat);
        TMOV(right, rhsMat);
        set_flag(PIPE_MTE1, PIPE_MTE2, event);
        set_flag(PIPE_MTE1, PIPE_M, event);

        wait_flag(PIPE_MTE1, PIPE_M, event);
        if (inner == 0) {
            TMATMUL(acc, left, right);
        } else {
            TMATMUL_ACC(acc, acc, left, right);
        }
        set_flag(PIPE_M, PIPE_MTE1, event);
    }

    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    OutView outView(out + row * kCols + col);
    TSTORE(outView, acc);

    wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID1);
}

int main()
{
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);

    // Small whole numbers: whatever the order of the sums, they are exact.
    std::vector<half> lhs(std::size_t(kRows) * kInner), rhs(std::size_t(kInner) * kCols);
    std::vector<float> out(std::size_t(kRows) * kCols);
    for (std::size_t n = 0; n < lhs.size(); ++n) {
        lhs[n] = static_cast<half>(static_cast<float>(n * 7 % 11) - 5);
    }
    for (std::size_t n = 0; n < rhs.size(); ++n) {
        rhs[n] = static_cast<half>(static_cast<float>(n * 5 % 13) - 6);
    }
    const std::size_t lhsBytes = lhs.size() * sizeof(half), rhsBytes = rhs.size() * sizeof(half);
    const std::size_t outBytes = out.size() * sizeof(float);
    void *lhsDevice = nullptr, *rhsDevice = nullptr, *outDevice = nullptr;
    aclrtMalloc(&lhsDevice, lhsBytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&rhsDevice, rhsBytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&outDevice, outBytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(lhsDevice, lhsBytes, lhs.data(), lhsBytes, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpy(rhsDevice, rhsBytes, rhs.data(), rhsBytes, ACL_MEMCPY_HOST_TO_DEVICE);
    Multiply<<<kBlocks, nullptr, stream>>>(static_cast<float*>(outDevice), static_cast<half*>(lhsDevice),
                                           static_cast<half*>(rhsDevice));
    aclrtSynchronizeStream(stream);
    aclrtMemcpy(out.data(), outBytes, outDevice, outBytes, ACL_MEMCPY_DEVICE_TO_HOST);
    aclrtFree(lhsDevice);
    aclrtFree(rhsDevice);
    aclrtFree(outDevice);

    int wrong = 0;
    for (int row = 0; row < kRows; ++row) {
        for (int col = 0; col < kCols; ++col) {
            float wanted = 0;
            for (int inner = 0; inner < kInner; ++inner) {
                wanted += static_cast<float>(lhs[std::size_t(row) * kInner + inner]) *
                          static_cast<float>(rhs[std::size_t(inner) * kCols + col]);
            }
            const float got = out[std::size_t(row) * kCols + col];
            if (got != wanted && wrong++ == 0) {
                std::printf("[Failed] element (%d, %d): got %g, wanted %g\n", row, col, got, wanted);
            }
        }
    }
    if (wrong == 0) {
        std::printf("[Success] %d x %d times %d x %d\n", kRows, kInner, kInner, kCols);
    }
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
    return wrong == 0 ? 0 : 1;
}
