// PTO's tiles, views of global memory and events. The tile instructions are generated (see generate.py) into
// ascsim/pto_functions.hpp, the list of operations that events go between into ascsim/pto_ops.hpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ascsim/machine.hpp"
#include "ascsim/prelude.hpp"
#include "ascsim/builtins.hpp"
#include "ascsim/cache.hpp"
#include "ascsim/pto_ops.hpp"
#include "ascsim/runtime.hpp"
#include "ascsim/types.hpp"

#define AICORE
#define PTO_INLINE inline __attribute__((always_inline))
#define PTO_INST AICORE PTO_INLINE
#define PTO_INTERNAL AICORE PTO_INLINE
#define OP_NAME(name)
#define OP_TYPE(name)
#define EVENT_ID_MAX 8
// A number rounded up to a multiple, and a quotient rounded up. Programs define them too, in these words.
#ifndef PTO_CEIL
#define PTO_CEIL(x, y) ((((x) + (y) - 1) / (y)) * (y))
#endif
#ifndef PTO_DIV_ROUNDUP
#define PTO_DIV_ROUNDUP(x, y) (((x) + (y) - 1) / (y))
#endif

#define ASCSIM_SECOND_OF(first, second, name, ...) name
#define ASCSIM_ASSERT_1(condition) static_assert((condition), "PTO: " #condition)
#define ASCSIM_ASSERT_2(condition, message) static_assert((condition), "PTO: " message)
#define PTO_STATIC_ASSERT(...) ASCSIM_SECOND_OF(__VA_ARGS__, ASCSIM_ASSERT_2, ASCSIM_ASSERT_1)(__VA_ARGS__)
#define PTO_ASSERT(condition, message) ((void)0)
#define PTO_CPU_ASSERT(...) ((void)0)

typedef half float16_t;
typedef float float32_t;

namespace pto {

using int4b_t = ::int4x2_t;

constexpr int DYNAMIC = -1;

// Enumerations; the numbers are PTO's.

enum class TileType { Vec, Mat, Left, Right, Acc, Bias, Scaling, ScaleLeft, ScaleRight, Ctrl };
enum class BLayout { RowMajor = 0, ColMajor = 1 };
enum class SLayout { NoneBox = 0, RowMajor = 1, ColMajor = 2 };
enum class CompactMode { Null, Normal, RowPlusOne, RowAlignedPadding };
enum class PadValue : uint64_t { Null = 0, Zero = 1, Max = 2, Min = 3, CustomBase = 0x100000000ULL };
enum class Layout {
    ND, DN, NZ, SCALE, MX_A_ND, MX_A_DN, MX_A_ZZ, MX_B_ND, MX_B_DN, MX_B_NN, HIF4_A_ZZ, HIF4_B_NN, NC1HWC0, GNC1HWC0,
    NCHW, GNCHW, NHWC, NDC1HWC0, NCDHW, FRACTAL_Z, FRACTAL_Z_S16S8, FRACTAL_Z_3D, MAX,
};
enum class TileLayoutCustom : uint8_t { ND, DN, NZ, ZN, ZZ, NONE };
enum class RoundMode : uint8_t {
    CAST_NONE = 0, CAST_RINT = 1, CAST_ROUND = 2, CAST_FLOOR = 3, CAST_CEIL = 4, CAST_TRUNC = 5, CAST_ODD = 6,
};
enum class TFillPadMode : uint8_t { Normal = 0, InPlace = 1, Expand = 2 };
enum class SaturationMode : uint8_t { ON = 0, OFF = 1 };
enum class CmpMode : uint8_t { EQ = 0, NE = 1, LT = 2, LE = 3, GT = 4, GE = 5 };
enum class MaskPattern : uint8_t { P0101 = 1, P1010 = 2, P0001 = 3, P0010 = 4, P0100 = 5, P1000 = 6, P1111 = 7 };
enum class PrintFormat : uint8_t { Width8_Precision4 = 0, Width8_Precision2 = 1, Width10_Precision6 = 2 };
enum class QuantType { MXFP8 = 0, MXFP4_E2M1 = 1, INT8_SYM = 2, INT8_ASYM = 3 };
enum class QuantScaleAlg { OCP = 0, NV = 1 };
enum class MxQuantAlg { OcpMxFp8E4M3 = 0, NvMxFp8E4M3 = 1, OcpMxFp4E2M1 = 2, NvMxFp4E2M1 = 3, Hif4 = 4 };
enum class VecStoreMode { ND = 0, NZ = 1 };
enum class STPhase : uint8_t { Unspecified = 0, Partial = 2, Final = 3 };
enum class AccPhase : uint8_t { Unspecified = 0, Unknown = 0, Partial = 2, Final = 3 };
enum class AccToVecMode : uint8_t { SingleModeVec0 = 0, SingleModeVec1 = 1, DualModeSplitM = 2, DualModeSplitN = 3 };
enum class ReluPreMode : uint8_t { NoRelu = 0, NormalRelu = 1 };
enum class AtomicType : uint8_t { AtomicNone = 0, AtomicAdd = 1 };
enum class TCopyMode : uint8_t { SHALLOW_COPY = 0, DEEP_COPY = 1 };
enum class SyncCoreType : uint8_t { AIVOnly = 0, AICOnly = 1, Mix = 2 };
enum class SyncAllMode : uint8_t { Hard = 0, Soft = 1 };
enum class SetFmatrixMode { FMATRIX_A_AUTO, FMATRIX_B_AUTO, FMATRIX_A_MANUAL, FMATRIX_B_MANUAL };
enum class HistByte : uint8_t { BYTE_0 = 0, BYTE_1 = 1, BYTE_2 = 2, BYTE_3 = 3 };
enum class PowAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class DivAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class SqrtAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RsqrtAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RecipAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class ExpAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class LogAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class FmodAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class FmodSAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RemAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RemSAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class ScatterAxis : uint8_t { SCATTER_ROW = 0, SCATTER_COL = 1 };
enum class ScatterAtomicOp : uint8_t { None = 0, Add = 1, Max = 2, Min = 3 };
enum class ScatterOOB : uint8_t { Undefined = 0, Skip = 1, Clamp = 2, Wrap = 3 };
enum class ScatterConflict : uint8_t { Last = 0, Default = 1 };
enum class GatherAxis : uint8_t { GATHER_ROW = 0, GATHER_COL = 1 };
enum class GatherOOB : uint8_t { Undefined = 0, Clamp = 1, Wrap = 2, Zero = 3 };
enum class TInsertMode : uint8_t { SPLIT2 = 2, SPLIT4 = 3 };
enum class Coalesce : uint8_t { Row = 0, Elem = 1 };

namespace GlobalTensorDim {
constexpr int DIM_0 = 0, DIM_1 = 1, DIM_2 = 2, DIM_3 = 3, DIM_4 = 4, TOTAL_DIM = 5;
}
namespace TileConfig {
constexpr int alignedSize = 32, fixedRowSize = 16, fixedColSize = 16, fixedMxRowSize = 16, fixedMxColSize = 2;
constexpr int fractalABSize = 512, fractalCSize = 1024, fractalMxSize = 32;
}

#ifdef __CPU_SIM
// Programs for the public CPU simulator choose how much memory it simulates. Here the profile says it.
enum class NPUArch { A2A3, A5 };

class NPUMemoryModel {
public:
    static NPUMemoryModel& Instance()
    {
        static NPUMemoryModel only;
        return only;
    }
    static void SetDefaultArch(NPUArch) {}
    void Initialize(NPUArch) {}
    void Clear() {}
};
#define NPU_MEMORY_INIT(arch) pto::NPUMemoryModel::Instance().Initialize(arch)
#define NPU_MEMORY_CLEAR() pto::NPUMemoryModel::Instance().Clear()
#endif

// Figures of the machine that kernels use by name.
constexpr int REPEAT_BYTE = 256, REPEAT_MAX = 255, REPEAT_STRIDE_MAX = 255;
constexpr uint64_t BLOCK_MAX_PER_REPEAT = 8, MASK_LEN = 64;
constexpr int BLOCK_BYTE_SIZE = 32, BLOCK_LEN = 16, C0_SIZE_BYTE = 32, CUBE_BLOCK_SIZE = 512, FIXP_BURST_UNIT_LEN = 64;
constexpr int FRACTAL_NZ_ROW = 16, FRACTAL_ZZ_ROW = 16, ACC_C0_SIZE = 16;
constexpr uint32_t SHIFT_BLOCK_LEN = 4, SHIFT_BLOCK_BYTE = 5, SHIFT_FRACTAL_BYTE = 9, B4_C0_SIZE = 64;
constexpr uint32_t TMP_UB_SIZE = 8 * 1024, TMP_UB_OFFSET = 184 * 1024;
constexpr int MX_COL_LEN = 2, MX_ROW_LEN = 16, MX_BLOCK_SIZE = 32;
constexpr int HIF4_COL_LEN = 4, HIF4_ROW_LEN = 16, HIF4_BLOCK_SIZE = 64;
constexpr int NUM_1 = 1, NUM_4 = 4, NUM_8 = 8, NUM_12 = 12, NUM_16 = 16, NUM_32 = 32, NUM_64 = 64, NUM_77 = 77;
constexpr int NUM_96 = 96, NUM_128 = 128, NUM_256 = 256, NUM_512 = 512;
constexpr int PTO_RANDOM_KEY_SIZE = 2, PTO_RANDOM_COUNTER_SIZE = 4;
using TRandomKey = uint32_t[PTO_RANDOM_KEY_SIZE];
using TRandomCounter = uint32_t[PTO_RANDOM_COUNTER_SIZE];

struct MrgSortExecutedNumList {
    uint16_t mrgSortList0, mrgSortList1, mrgSortList2, mrgSortList3;
};

// Of how many elements a pattern picks one, and where the row is that it picks for row `i` of the result.
template <MaskPattern pattern>
constexpr int GetTimesByMask()
{
    if (pattern == MaskPattern::P1111) return 1;
    return pattern == MaskPattern::P0101 || pattern == MaskPattern::P1010 ? 2 : 4;
}
template <MaskPattern pattern, uint16_t RowStride>
constexpr int GetStrideByMask(int i)
{
    constexpr int first = pattern == MaskPattern::P1010 || pattern == MaskPattern::P0010 ? 1
                          : pattern == MaskPattern::P0100                                ? 2
                          : pattern == MaskPattern::P1000                                ? 3
                                                                                         : 0;
    return (GetTimesByMask<pattern>() * i + first) * RowStride;
}

// The columns of tmp that a merge of these tiles needs.
template <typename... Sources>
constexpr uint32_t GETMRGSORTTMPSIZE()
{
    static_assert(sizeof...(Sources) >= 2 && sizeof...(Sources) <= 4, "PTO: two, three or four tiles are merged");
    return (uint32_t{Sources::Cols} + ...);
}

// Custom pad values carry their bits in the low half.

constexpr bool isCustomPadValue(PadValue value)
{
    return static_cast<uint64_t>(value) >= static_cast<uint64_t>(PadValue::CustomBase);
}

constexpr uint32_t getCustomPadBits(PadValue value) { return static_cast<uint32_t>(static_cast<uint64_t>(value)); }

template <class Number>
constexpr PadValue PadValueCustom(Number value)
{
    uint64_t bits = 0;
    if constexpr (sizeof(Number) == 1) {
        bits = __builtin_bit_cast(uint8_t, value);
    } else if constexpr (sizeof(Number) == 2) {
        bits = __builtin_bit_cast(uint16_t, value);
    } else {
        static_assert(sizeof(Number) == 4, "a pad value has at most four bytes");
        bits = __builtin_bit_cast(uint32_t, value);
    }
    return static_cast<PadValue>(static_cast<uint64_t>(PadValue::CustomBase) | bits);
}

constexpr PadValue PadValueCustom16(uint16_t bits) { return PadValueCustom(bits); }

// Views of global memory

namespace detail {

constexpr int how_many_dynamic(const int64_t (&fixed)[5])
{
    int count = 0;
    for (int64_t extent : fixed) {
        count += extent == DYNAMIC;
    }
    return count;
}

// Five extents: the fixed ones, and given ones where they are dynamic.
template <int Count>
constexpr void fill(int64_t (&values)[5], const int64_t (&fixed)[5], const int64_t (&given)[Count])
{
    int next = 0;
    for (int i = 0; i < 5; ++i) {
        const bool is_dynamic = fixed[i] == DYNAMIC;
        values[i] = is_dynamic ? given[Count == 5 ? i : next] : fixed[i];
        next += is_dynamic;
    }
}

}  // namespace detail

// Shape and Stride are alike but for the names of their members. Constructors take all five extents, or just the dynamic
// ones in order; without arguments dynamic extents are 1.
#define ASCSIM_EXTENTS(Name, static_member, member)                                                                     \
    template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,                   \
              int64_t N5 = DYNAMIC>                                                                                     \
    struct Name {                                                                                                       \
        static constexpr int64_t static_member[5] = {N1, N2, N3, N4, N5};                                               \
        static constexpr int dynamic_extents = (N1 == DYNAMIC) + (N2 == DYNAMIC) + (N3 == DYNAMIC) + (N4 == DYNAMIC) +  \
                                               (N5 == DYNAMIC);                                                         \
        constexpr Name() { detail::fill<5>(member, static_member, {1, 1, 1, 1, 1}); }                                   \
        constexpr Name(int64_t n) { set<1>({n}); }                                                                      \
        constexpr Name(int64_t n1, int64_t n2) { set<2>({n1, n2}); }                                                    \
        constexpr Name(int64_t n1, int64_t n2, int64_t n3) { set<3>({n1, n2, n3}); }                                    \
        constexpr Name(int64_t n1, int64_t n2, int64_t n3, int64_t n4) { set<4>({n1, n2, n3, n4}); }                    \
        constexpr Name(int64_t n1, int64_t n2, int64_t n3, int64_t n4, int64_t n5)                                      \
        {                                                                                                               \
            detail::fill<5>(member, static_member, {n1, n2, n3, n4, n5});                                               \
        }                                                                                                               \
        int64_t member[5] = {};                                                                                         \
                                                                                                                        \
    private:                                                                                                            \
        template <int Count>                                                                                            \
        constexpr void set(const int64_t(&given)[Count])                                                                \
        {                                                                                                               \
            static_assert(Count == dynamic_extents, "PTO: " #Name " takes one number for each dynamic (-1) extent, or " \
                                                    "five");                                                            \
            detail::fill<Count>(member, static_member, given);                                                          \
        }                                                                                                               \
    };

ASCSIM_EXTENTS(Shape, staticShape, shape)
ASCSIM_EXTENTS(Stride, staticStride, stride)
#undef ASCSIM_EXTENTS

template <typename T>
using remove_gm_t = std::remove_cv_t<T>;

template <typename Element_, typename Shape_, typename Stride_, Layout Layout_ = Layout::ND>
struct GlobalTensor {
    using Shape = Shape_;
    using Stride = Stride_;
    using RawDType = remove_gm_t<Element_>;
    using DType = RawDType;
    static constexpr Layout layout = Layout_;
    static constexpr int64_t staticShape[5] = {Shape::staticShape[0], Shape::staticShape[1], Shape::staticShape[2],
                                               Shape::staticShape[3], Shape::staticShape[4]};
    static constexpr int64_t staticStride[5] = {Stride::staticStride[0], Stride::staticStride[1], Stride::staticStride[2],
                                                Stride::staticStride[3], Stride::staticStride[4]};

    GlobalTensor() = default;
    PTO_INTERNAL GlobalTensor(DType* data, const Shape& shape = Shape(), const Stride& stride = Stride())
        : data_(data), shape_(shape), stride_(stride)
    {
    }

    PTO_INTERNAL int64_t GetShape(int dim) const { return 0 <= dim && dim < 5 ? shape_.shape[dim] : -1; }
    PTO_INTERNAL int64_t GetStride(int dim) const { return 0 <= dim && dim < 5 ? stride_.stride[dim] : -1; }

    template <int dim>
    static constexpr int64_t GetShape()
    {
        check<dim>();
        static_assert(staticShape[dim] != DYNAMIC, "PTO: a dynamic dimension is asked for with GetShape(dim)");
        return staticShape[dim];
    }
    template <int dim>
    static constexpr int64_t GetStride()
    {
        check<dim>();
        static_assert(staticStride[dim] != DYNAMIC, "PTO: a dynamic stride is asked for with GetStride(dim)");
        return staticStride[dim];
    }

    template <int... dims, class... Extents>
    PTO_INTERNAL void SetShape(Extents... extents)
    {
        static_assert(sizeof...(dims) == sizeof...(extents), "PTO: SetShape<dims...> takes one number a dimension");
        (check<dims>(), ...);
        static_assert(((staticShape[dims] == DYNAMIC) && ...), "PTO: only a dynamic dimension can be set");
        ((shape_.shape[dims] = static_cast<int64_t>(extents)), ...);
    }
    template <int... dims, class... Extents>
    PTO_INTERNAL void SetStride(Extents... extents)
    {
        static_assert(sizeof...(dims) == sizeof...(extents), "PTO: SetStride<dims...> takes one number a dimension");
        (check<dims>(), ...);
        static_assert(((staticStride[dims] == DYNAMIC) && ...), "PTO: only a dynamic stride can be set");
        ((stride_.stride[dims] = static_cast<int64_t>(extents)), ...);
    }

    PTO_INTERNAL DType* data() const { return data_; }
    PTO_INTERNAL void SetAddr(DType* address) { data_ = address; }

private:
    template <int dim>
    static constexpr void check()
    {
        static_assert(0 <= dim && dim < 5, "PTO: a GlobalTensor has the dimensions 0 to 4");
    }

    DType* data_ = nullptr;
    Shape shape_;
    Stride stride_;
};

// The shape (TileShape2D) and the strides (BaseShape2D) of a matrix of `rows` by `cols` in global memory.

namespace detail {

constexpr int64_t quotient(int64_t extent, int64_t by) { return extent == DYNAMIC ? DYNAMIC : extent / by; }
constexpr int64_t product(int64_t a, int64_t b) { return a == DYNAMIC || b == DYNAMIC ? DYNAMIC : a * b; }

template <class T, int64_t rows, int64_t cols, Layout layout>
struct Matrix {
    static_assert(layout == Layout::ND || layout == Layout::DN || layout == Layout::NZ,
                  "ascsim L012: TileShape2D and BaseShape2D are not implemented for this layout");
    static constexpr bool is_nz = layout == Layout::NZ;
    static constexpr int64_t c0 = C0_SIZE_BYTE / sizeof(T), row0 = FRACTAL_NZ_ROW;
    static_assert(!is_nz || ((rows == DYNAMIC || rows % row0 == 0) && (cols == DYNAMIC || cols % c0 == 0)),
                  "PTO: in layout NZ rows are a multiple of 16, columns of 32 bytes");
    using ShapeType = std::conditional_t<is_nz, Shape<1, quotient(cols, c0), quotient(rows, row0), row0, c0>,
                                         Shape<1, 1, 1, rows, cols>>;
    static constexpr int64_t all = product(rows, cols);
    using StrideType = std::conditional_t<
        is_nz, Stride<all, product(rows, c0), row0 * c0, c0, 1>,
        std::conditional_t<layout == Layout::ND, Stride<all, all, all, cols, 1>, Stride<all, all, all, 1, rows>>>;
};

}  // namespace detail

template <typename T, int64_t rows = DYNAMIC, int64_t cols = DYNAMIC, Layout Layout_ = Layout::ND>
struct TileShape2D : detail::Matrix<T, rows, cols, Layout_>::ShapeType {
    using Of = detail::Matrix<T, rows, cols, Layout_>;
    using Parent = typename Of::ShapeType;
    using Parent::Parent;
    constexpr TileShape2D() = default;
    constexpr TileShape2D(int64_t r, int64_t c)
        : Parent(1, Of::is_nz ? c / Of::c0 : 1, Of::is_nz ? r / Of::row0 : 1, Of::is_nz ? Of::row0 : r, Of::is_nz ? Of::c0 : c)
    {
    }
};

template <typename T, int64_t rows = DYNAMIC, int64_t cols = DYNAMIC, Layout Layout_ = Layout::ND>
struct BaseShape2D : detail::Matrix<T, rows, cols, Layout_>::StrideType {
    using Of = detail::Matrix<T, rows, cols, Layout_>;
    using Parent = typename Of::StrideType;
    using Parent::Parent;
    constexpr BaseShape2D() = default;
    constexpr BaseShape2D(int64_t r, int64_t c)
        : Parent(r * c, Of::is_nz ? r * Of::c0 : r * c, Of::is_nz ? Of::row0 * Of::c0 : r * c,
                 Of::is_nz ? Of::c0 : Layout_ == Layout::ND ? c : 1, Layout_ == Layout::DN ? r : 1)
    {
    }
};

// Tiles

namespace detail {

constexpr ::ascsim::Space space_of(TileType type)
{
    using ::ascsim::Space;
    switch (type) {
        case TileType::Mat: return Space::L1;
        case TileType::Left:
        case TileType::ScaleLeft: return Space::L0A;
        case TileType::Right:
        case TileType::ScaleRight: return Space::L0B;
        case TileType::Acc: return Space::L0C;
        case TileType::Bias: return Space::BT;
        case TileType::Scaling: return Space::FB;
        case TileType::Vec:
        case TileType::Ctrl: break;
    }
    return Space::UB;
}

// A pointer into the core's memory for an address as TASSIGN takes it: an offset, or such a pointer already.
ASCSIM_QUIET inline void* place(::ascsim::Space space, uint64_t address)
{
    const unsigned number = static_cast<unsigned>(space);
    const uint64_t base = reinterpret_cast<uint64_t>(ascsim_core.memory[number]);
    const bool is_inside = address - base < ascsim_core.capacity[number] + ASCSIM_GUARD;
    return reinterpret_cast<void*>(is_inside ? address : base + address);
}

// The offset for a tile's data(): what place() made, or a small number that the user wrote there.
ASCSIM_QUIET inline uint64_t offset_of(::ascsim::Space space, const void* data)
{
    const uint64_t value = reinterpret_cast<uint64_t>(data);
    const uint64_t base = reinterpret_cast<uint64_t>(ascsim_core.memory[static_cast<unsigned>(space)]);
    return data == nullptr ? ~uint64_t{0} : value < uint64_t{1} << 32 ? value : value - base;
}

}  // namespace detail

template <TileType Loc_, typename Element_, const int Rows_, const int Cols_, const BLayout BFractal_ = BLayout::RowMajor,
          const int RowValid_ = Rows_, const int ColValid_ = Cols_, const SLayout SFractal_ = SLayout::NoneBox,
          const int SFractalSize_ = TileConfig::fractalABSize, auto PadVal_ = PadValue::Null,
          const CompactMode Compact_ = CompactMode::Null>
struct Tile {
    using DType = Element_;
    using TileDType = DType*;

    static constexpr TileType Loc = Loc_;
    static constexpr int Rows = Rows_;
    static constexpr int Cols = Cols_;
    static constexpr int ValidRow = RowValid_;
    static constexpr int ValidCol = ColValid_;
    static constexpr BLayout BFractal = BFractal_;
    static constexpr SLayout SFractal = SFractal_;
    static constexpr int SFractalSize = SFractalSize_;
    static constexpr auto PadVal = PadVal_;
    static constexpr CompactMode Compact = Compact_;
    static constexpr int Numel = Rows * Cols;
    static constexpr bool isRowMajor = BFractal_ == BLayout::RowMajor;
    static constexpr int RowStride = isRowMajor ? Cols : 1;
    static constexpr int ColStride = isRowMajor ? 1 : Rows;
    static constexpr bool isBoxedLayout = SFractal_ != SLayout::NoneBox;
    static constexpr bool isInnerRowMajor = SFractal_ == SLayout::RowMajor;
    static constexpr bool isInnerColMajor = SFractal_ == SLayout::ColMajor;

    static_assert(Rows > 0 && Cols > 0, "PTO: a tile has at least one row and one column");
    static_assert(ValidRow <= Rows && ValidCol <= Cols, "PTO: the valid shape of a tile lies within its shape");
    static_assert(SFractalSize == TileConfig::fractalABSize || SFractalSize == TileConfig::fractalCSize ||
                      SFractalSize == TileConfig::fractalMxSize,
                  "PTO: the fractal of a tile is 512, 1024 or 32 bytes");

    static constexpr int getInnerRow()
    {
        if (SFractalSize_ == TileConfig::fractalCSize) return TileConfig::fixedRowSize;
        if (SFractalSize_ == TileConfig::fractalMxSize) {
            return isInnerRowMajor ? TileConfig::fixedMxRowSize : TileConfig::fixedMxColSize;
        }
        if (!isBoxedLayout) return 1;
        return isInnerRowMajor ? TileConfig::fixedRowSize : static_cast<int>(TileConfig::alignedSize / sizeof(DType));
    }
    static constexpr int getInnerCol()
    {
        if (SFractalSize_ == TileConfig::fractalCSize) return TileConfig::fixedColSize;
        if (SFractalSize_ == TileConfig::fractalMxSize) {
            return isInnerRowMajor ? TileConfig::fixedMxColSize : TileConfig::fixedMxRowSize;
        }
        if (!isBoxedLayout) return 1;
        return isInnerRowMajor ? static_cast<int>(TileConfig::alignedSize / sizeof(DType)) : TileConfig::fixedColSize;
    }
    static constexpr int InnerRows = getInnerRow();
    static constexpr int InnerCols = getInnerCol();
    static constexpr int InnerNumel = InnerRows * InnerCols;

    static_assert(InnerRows != 0 && InnerCols != 0, "PTO: an element is larger than a box of the tile's layout");
    static_assert(Loc == TileType::Vec || SFractalSize == TileConfig::fractalMxSize || Rows == 1 || Rows % InnerRows == 0,
                  "PTO: the rows of a tile are a multiple of its box's rows");
    static_assert(Cols % InnerCols == 0, "PTO: the columns of a tile are a multiple of its box's columns");
    static_assert(isBoxedLayout || !isRowMajor || Cols * sizeof(DType) % TileConfig::alignedSize == 0,
                  "PTO: a row of a row-major tile without boxes is a multiple of 32 bytes");
    static_assert(isBoxedLayout || isRowMajor || Rows * sizeof(DType) % TileConfig::alignedSize == 0,
                  "PTO: a column of a column-major tile without boxes is a multiple of 32 bytes");

    unsigned RowMaskInternal = 0;
    unsigned ColMaskInternal = 0;

    // A dynamic (-1) valid shape is given to the constructor, or set later.
    ASCSIM_INLINE Tile() { begin(); }
    template <int R = ValidRow, int C = ValidCol>
    ASCSIM_INLINE Tile(std::enable_if_t<R == DYNAMIC && C == DYNAMIC, unsigned> rows, unsigned cols)
        : RowMaskInternal(rows), ColMaskInternal(cols)
    {
        begin();
    }
    template <int R = ValidRow, int C = ValidCol>
    ASCSIM_INLINE Tile(std::enable_if_t<R == DYNAMIC && C != DYNAMIC, unsigned> rows) : RowMaskInternal(rows)
    {
        begin();
    }
    template <int R = ValidRow, int C = ValidCol, int = 0>
    ASCSIM_INLINE Tile(std::enable_if_t<R != DYNAMIC && C == DYNAMIC, unsigned> cols) : ColMaskInternal(cols)
    {
        begin();
    }

#ifdef __PTO_AUTO__
    // The tool places the tile for as long as it is in scope; copies share the place.
    Tile(const Tile& other) : RowMaskInternal(other.RowMaskInternal), ColMaskInternal(other.ColMaskInternal), data_(other.data_) {}
    Tile& operator=(const Tile&) = delete;
    ASCSIM_INLINE ~Tile()
    {
#if ASCSIM_SIDE
        if (is_owner_) {
            ascsim_auto_tile_end(static_cast<uint8_t>(detail::space_of(Loc)), data_);
        }
#endif
    }
#endif

    AICORE TileDType& data() { return data_; }
    AICORE const TileDType& data() const { return data_; }

    template <int R = ValidRow>
    static constexpr std::enable_if_t<R != DYNAMIC, unsigned> GetValidRow()
    {
        return R;
    }
    template <int R = ValidRow>
    std::enable_if_t<R == DYNAMIC, unsigned> GetValidRow() const
    {
        return RowMaskInternal;
    }
    template <int C = ValidCol>
    static constexpr std::enable_if_t<C != DYNAMIC, unsigned> GetValidCol()
    {
        return C;
    }
    template <int C = ValidCol>
    std::enable_if_t<C == DYNAMIC, unsigned> GetValidCol() const
    {
        return ColMaskInternal;
    }
    void SetValidRow(unsigned rows)
    {
        static_assert(ValidRow == DYNAMIC, "PTO: only dynamic (-1) valid rows can be set");
        RowMaskInternal = rows;
    }
    void SetValidCol(unsigned cols)
    {
        static_assert(ValidCol == DYNAMIC, "PTO: only dynamic (-1) valid columns can be set");
        ColMaskInternal = cols;
    }
    void SetValidShape(unsigned rows, unsigned cols)
    {
        SetValidRow(rows);
        SetValidCol(cols);
    }

    // Scalar accesses, by element from the tile's start.
    void SetValue(const uint32_t offset, const DType value)
    {
        static_assert(Loc == TileType::Vec, "PTO: only the elements of a Vec tile can be set");
        data_[offset] = value;
    }
    DType GetValue(const uint32_t offset) const
    {
        static_assert(Loc == TileType::Vec, "PTO: only the elements of a Vec tile can be read");
        return data_[offset];
    }

    static constexpr std::size_t GetSizeInBytes() { return Numel * sizeof(DType); }
    DType GetElement(int64_t row, int64_t col) const { return data_[element(row, col)]; }
    void SetElement(int64_t row, int64_t col, const DType& value) { data_[element(row, col)] = value; }

    // Where an element lies, in elements from the tile's start.
    static constexpr std::size_t element(int64_t row, int64_t col)
    {
        const int64_t box_row = row / InnerRows, box_col = col / InnerCols;
        const int64_t box = isRowMajor ? box_row * (Cols / InnerCols) + box_col : box_col * (Rows / InnerRows) + box_row;
        const int64_t in_row = row % InnerRows, in_col = col % InnerCols;
        return static_cast<std::size_t>(box * InnerNumel +
                                        (isInnerColMajor ? in_col * InnerRows + in_row : in_row * InnerCols + in_col));
    }

    bool GetKAligned() const { return is_k_aligned_; }
    void SetKAligned(bool is_aligned) { is_k_aligned_ = is_aligned; }

    // The cube would multiply floats with fewer bits from here on.
    __attribute__((error("ascsim L012 SetMadTF32Mode: not implemented"))) void SetMadTF32Mode(RoundMode = RoundMode::CAST_ROUND);
    __attribute__((error("ascsim L012 ResetMadMode: not implemented"))) void ResetMadMode();

    void assignData(TileDType data) { data_ = data; }

    // From now on the tile is a view of bytes that belong to another one.
    ASCSIM_INLINE void assignView(TileDType data)
    {
#if defined(__PTO_AUTO__) && ASCSIM_SIDE
        if (is_owner_) {
            ascsim_auto_tile_end(static_cast<uint8_t>(detail::space_of(Loc)), data_);
            is_owner_ = false;
        }
#endif
        data_ = data;
    }

private:
    ASCSIM_INLINE void begin()
    {
#if defined(__PTO_AUTO__) && ASCSIM_SIDE
        constexpr auto space = detail::space_of(Loc);
        data_ = static_cast<TileDType>(ascsim_auto_tile(static_cast<uint8_t>(space), Numel * sizeof(DType),
                                                        ::ascsim::aligned_for(space, 32), ::ascsim::dtype_code<DType>));
        is_owner_ = true;
#endif
    }

    TileDType data_ = nullptr;
    bool is_k_aligned_ = false;
#ifdef __PTO_AUTO__
    bool is_owner_ = false;
#endif
};

template <int... Extents>
struct ConvTileShape {
    template <class... Given>
    ConvTileShape(Given...)
    {
    }
};
template <TileType Loc, typename Element, int BufferSize, Layout Layout_, typename Shape>
struct ConvTile {
    static_assert(BufferSize < 0, "ascsim L012: ConvTile is not implemented");
};

// Tiles of the cube core. The left operand's boxes are ordered by rows on A2/A3, by columns on A5.
#ifdef PTO_NPU_ARCH_A2A3
constexpr BLayout ASCSIM_LEFT_LAYOUT = BLayout::RowMajor;
#else
constexpr BLayout ASCSIM_LEFT_LAYOUT = BLayout::ColMajor;
#endif
#define ASCSIM_CUBE_TILE(Name, Type, BlockLayout, BoxLayout, Fractal)                                                        \
    template <typename Element, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>                                \
    using Name = Tile<TileType::Type, Element, Rows, Cols, BlockLayout, RowValid, ColValid, SLayout::BoxLayout,              \
                      TileConfig::Fractal>;                                                                                  \
    template <typename Element, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>                                \
    using Name##Compact = Tile<TileType::Type, Element, Rows, Cols, BlockLayout, RowValid, ColValid, SLayout::BoxLayout,     \
                               TileConfig::Fractal, PadValue::Null, CompactMode::Normal>;
ASCSIM_CUBE_TILE(TileLeft, Left, ASCSIM_LEFT_LAYOUT, RowMajor, fractalABSize)
ASCSIM_CUBE_TILE(TileRight, Right, BLayout::RowMajor, ColMajor, fractalABSize)
ASCSIM_CUBE_TILE(TileLeftScale, ScaleLeft, BLayout::RowMajor, RowMajor, fractalMxSize)
ASCSIM_CUBE_TILE(TileRightScale, ScaleRight, BLayout::ColMajor, ColMajor, fractalMxSize)
ASCSIM_CUBE_TILE(TileAcc, Acc, BLayout::ColMajor, RowMajor, fractalCSize)
#undef ASCSIM_CUBE_TILE

template <typename T>
struct is_global : std::false_type {};
template <typename Element, typename Shape, typename Stride, Layout Layout_>
struct is_global<GlobalTensor<Element, Shape, Stride, Layout_>> : std::true_type {};

template <typename T>
struct is_tile : std::false_type {
    static constexpr SLayout layout_enum = SLayout::NoneBox;
};
template <TileType L, typename E, int R, int C, BLayout B, int RV, int CV, SLayout S, int F, auto P, CompactMode M>
struct is_tile<Tile<L, E, R, C, B, RV, CV, S, F, P, M>> : std::true_type {
    static constexpr SLayout layout_enum = S;
};

template <typename T>
struct is_conv_tile : std::false_type {};

template <typename T>
constexpr bool is_tile_data_v = is_tile<T>::value;
template <typename T>
constexpr bool is_conv_tile_v = is_conv_tile<T>::value;
template <typename T>
constexpr bool is_global_data_v = is_global<T>::value;
template <typename T>
constexpr bool is_boxed_tile = is_tile<T>::value && is_tile<T>::layout_enum != SLayout::NoneBox;
template <typename T>
constexpr bool is_boxed_data_v = is_boxed_tile<T>;

template <typename T>
struct is_Nz_layout {
    static constexpr bool value = !T::isRowMajor && T::isBoxedLayout && T::isInnerRowMajor;
};
template <typename T>
struct is_Zn_layout {
    static constexpr bool value = T::isRowMajor && T::isBoxedLayout && T::isInnerColMajor;
};
template <typename T>
struct is_Zz_layout {
    static constexpr bool value = T::isRowMajor && T::isBoxedLayout && T::isInnerRowMajor;
};

template <typename TileData>
constexpr TileLayoutCustom GetTileLayoutCustom()
{
    if (!TileData::isBoxedLayout) return TileData::isRowMajor ? TileLayoutCustom::ND : TileLayoutCustom::DN;
    if (TileData::SFractalSize != TileConfig::fractalABSize) return TileLayoutCustom::NONE;
    if (is_Nz_layout<TileData>::value) return TileLayoutCustom::NZ;
    if (is_Zn_layout<TileData>::value) return TileLayoutCustom::ZN;
    if (is_Zz_layout<TileData>::value) return TileLayoutCustom::ZZ;
    return TileLayoutCustom::NONE;
}

template <typename TileData>
constexpr std::size_t GetTileOffset(int row, int col)
{
    return TileData::element(row, col);
}
template <typename TileData>
constexpr std::size_t GetTileElementOffset(int row, int col)
{
    return TileData::element(row, col);
}

// TASSIGN binds a tile to an address of its memory, a view to a pointer. In Auto mode the tool places tiles itself.

template <typename T, typename Address>
ASCSIM_INLINE void TASSIGN(T& object, Address address)
{
    if constexpr (is_tile_data_v<T>) {
        static_assert(std::is_integral_v<Address>, "PTO: a tile is assigned an integer address");
#if !defined(__PTO_AUTO__) && defined(ASCSIM_ACTS)
        object.assignData(static_cast<typename T::TileDType>(detail::place(detail::space_of(T::Loc), static_cast<uint64_t>(address))));
#endif
    } else {
        static_assert(is_global_data_v<T>, "PTO: TASSIGN takes a Tile or a GlobalTensor");
        static_assert(std::is_pointer_v<Address>, "PTO: a GlobalTensor is assigned a pointer");
        static_assert(std::is_same_v<std::remove_cv_t<std::remove_pointer_t<Address>>, typename T::DType>,
                      "PTO: a GlobalTensor is assigned a pointer to its own element type");
        object.SetAddr(address);
    }
}

template <std::size_t Address, typename T>
ASCSIM_INLINE std::enable_if_t<is_tile_data_v<T>> TASSIGN(T& tile)
{
#ifndef __CPU_SIM
    constexpr std::size_t capacity = ::ascsim::space_capacity[static_cast<unsigned>(detail::space_of(T::Loc))];
    constexpr std::size_t bytes = T::Numel * sizeof(typename T::DType);
    static_assert(bytes <= capacity, "PTO: the tile is larger than its memory");
    static_assert(bytes > capacity || Address + bytes <= capacity, "PTO: the tile ends outside its memory");
    static_assert(Address % 32 == 0, "PTO: the address of a tile is a multiple of 32");
#endif
    TASSIGN(tile, Address);
}

// Events: the end of one operation that another waits for. Same pipe: a barrier; two pipes: a flag.

struct RecordEvent {};
struct EventBaseTag {};

template <typename T>
struct is_event : std::is_base_of<EventBaseTag, T> {};
template <typename... Ts>
inline constexpr bool all_events_v = (is_event<Ts>::value && ...);

// Hands out the event ids of a pair of pipes in turn, for each core its own.
template <pipe_t SrcPipe, pipe_t DstPipe>
class EventIdCounter {
public:
    ASCSIM_QUIET static event_t GetNextId() { return static_cast<event_t>(next()++ % EVENT_ID_MAX); }
    ASCSIM_QUIET static event_t PeekNextId() { return static_cast<event_t>(next() % EVENT_ID_MAX); }
    ASCSIM_QUIET static void Reset() { next() = 0; }

private:
    ASCSIM_QUIET static uint8_t& next() { return ascsim_event_ids[SrcPipe][DstPipe][ascsim_core.core]; }
};

template <Op SrcOp, Op DstOp, bool AutoToken = true, event_t EventID = EVENT_ID0>
struct Event : EventBaseTag {
    static constexpr Op srcOp = SrcOp, dstOp = DstOp;
    static constexpr pipe_t srcPipe = detail::pipe_of(SrcOp), dstPipe = detail::pipe_of(DstOp);
    static constexpr bool isSamePipe = srcPipe == dstPipe;
    static_assert(!detail::crosses_cores(SrcOp, dstPipe), "ascsim L012: events between cores are not implemented");
    static_assert(srcPipe != PIPE_ALL && dstPipe != PIPE_ALL, "PTO: an event goes from an operation to an operation");

#ifdef __PTO_AUTO__
    Event() = default;
#else
    const event_t token = AutoToken ? EventIdCounter<srcPipe, dstPipe>::GetNextId() : EventID;
    ASCSIM_INLINE Event() {}
#endif
    ASCSIM_INLINE Event(RecordEvent) { Record(); }
    ASCSIM_INLINE Event& operator=(RecordEvent) { return Record(); }

    ASCSIM_INLINE Event& Record()
    {
#ifndef __PTO_AUTO__
        if constexpr (!isSamePipe) {
            set_flag(srcPipe, dstPipe, token);
        }
#endif
        return *this;
    }
    ASCSIM_INLINE Event& Init() { return Record(); }

    ASCSIM_INLINE Event& Wait()
    {
#ifndef __PTO_AUTO__
        if constexpr (!isSamePipe) {
            wait_flag(srcPipe, dstPipe, token);
        } else if constexpr (detail::has_barrier(srcPipe)) {
            pipe_barrier(srcPipe);
        }
#endif
        return *this;
    }
};

template <typename... WaitEvents>
ASCSIM_INLINE void WaitAllEvents(WaitEvents&... events)
{
    (events.Wait(), ...);
}

template <typename... WaitEvents, std::enable_if_t<all_events_v<WaitEvents...>, int> = 0>
ASCSIM_INLINE void TSYNC(WaitEvents&... events)
{
    (events.Wait(), ...);
}

template <Op OpCode>
ASCSIM_INLINE void TSYNC()
{
    static_assert(detail::has_barrier(detail::pipe_of(OpCode)), "PTO: this chip has no barrier for the pipe of this operation");
#ifndef __PTO_AUTO__
    pipe_barrier(detail::pipe_of(OpCode));
#endif
}

#ifndef ASCSIM_PROFILE_CPU

template <SyncCoreType CoreType = SyncCoreType::AIVOnly>
ASCSIM_INLINE void SYNCALL()
{
    ascsim_syncall(static_cast<int>(CoreType));
}

namespace detail {

// A barrier over so many cores, by a counter in global memory: each adds one, and waits until all of its round have.
ASCSIM_INLINE void meet_by_counter([[maybe_unused]] void* counter, [[maybe_unused]] int32_t cores)
{
#if ASCSIM_SIDE
    const int32_t before = ascsim_atomic_add(counter, 1);
    const int32_t target = (before / cores + 1) * cores;
    while (ascsim_atomic_add(counter, 0) < target) {
    }
#endif
}

}  // namespace detail

template <SyncAllMode Mode, SyncCoreType CoreType = SyncCoreType::AIVOnly, typename Workspace>
ASCSIM_INLINE void SYNCALL([[maybe_unused]] Workspace& workspace, [[maybe_unused]] int32_t cores = 0)
{
    if constexpr (Mode == SyncAllMode::Hard) {
        SYNCALL<CoreType>();
    } else {
#ifndef __PTO_AUTO__
        constexpr bool takes_part = CoreType == SyncCoreType::Mix || (CoreType == SyncCoreType::AIVOnly) == (ASCSIM_SIDE == 1);
        pipe_barrier(PIPE_ALL);
        if constexpr (takes_part) {
            const int64_t of_block = CoreType == SyncCoreType::Mix ? 1 + static_cast<int64_t>(ascsim_core.subblocks) : 1;
            const int64_t all = static_cast<int64_t>(ascsim_core.blocks) * of_block;
            detail::meet_by_counter(static_cast<void*>(workspace.data()), cores != 0 ? cores : static_cast<int32_t>(all));
        }
        pipe_barrier(PIPE_ALL);
#endif
    }
}
#endif

template <pipe_t SrcPipe, pipe_t DstPipe>
ASCSIM_INLINE void PtoSetWaitFlag([[maybe_unused]] event_t set = EVENT_ID0, [[maybe_unused]] event_t wait = EVENT_ID0)
{
#ifndef __PTO_AUTO__
    set_flag(SrcPipe, DstPipe, set);
    wait_flag(SrcPipe, DstPipe, wait);
#endif
}

// Operands of ascsim_issue

namespace detail {

// Whether a tile lies in one of these memories: by that the forms of an instruction are told apart.
template <class TileData, ::ascsim::Space... spaces>
constexpr bool lies_in()
{
    if constexpr (is_tile_data_v<TileData>) return ((space_of(TileData::Loc) == spaces) || ...);
    return false;
}

// Give a tile the address that an instruction has found for it.
template <class TileData>
ASCSIM_INLINE void bind([[maybe_unused]] TileData& tile, [[maybe_unused]] int64_t address)
{
#ifdef ASCSIM_ACTS
    tile.assignView(static_cast<typename TileData::TileDType>(place(space_of(TileData::Loc), static_cast<uint64_t>(address))));
#endif
}

template <class TileData>
ASCSIM_QUIET void set_operand(::ascsim::Operand& operand, const TileData& tile)
{
    constexpr auto space = space_of(TileData::Loc);
    constexpr bool is_custom_pad = static_cast<uint64_t>(TileData::PadVal) > 3;
    ::ascsim::set_bits(operand, ASCSIM_TILE, ::ascsim::dtype_code<typename TileData::DType>, static_cast<uint8_t>(space),
                       offset_of(space, tile.data()));
    operand.blayout = static_cast<uint8_t>(TileData::BFractal);
    operand.slayout = static_cast<uint8_t>(TileData::SFractal);
    operand.pad = is_custom_pad ? 255 : static_cast<uint8_t>(TileData::PadVal);
    operand.fractal = TileData::SFractalSize;
    operand.rows = TileData::Rows;
    operand.cols = TileData::Cols;
    operand.valid_rows = static_cast<int32_t>(tile.GetValidRow());
    operand.valid_cols = static_cast<int32_t>(tile.GetValidCol());
    operand.shape[0] = is_custom_pad ? static_cast<int64_t>(static_cast<uint32_t>(static_cast<uint64_t>(TileData::PadVal))) : 0;
    operand.shape[1] = static_cast<int64_t>(TileData::Compact);
    operand.shape[2] = tile.GetKAligned();
}

template <class Element, class Shape, class Stride, Layout Layout_>
ASCSIM_QUIET void set_operand(::ascsim::Operand& operand, const GlobalTensor<Element, Shape, Stride, Layout_>& view)
{
    using View = GlobalTensor<Element, Shape, Stride, Layout_>;
    ::ascsim::set_bits(operand, ASCSIM_GLOBAL, ::ascsim::dtype_code<typename View::DType>,
                       static_cast<uint8_t>(::ascsim::Space::GM), reinterpret_cast<uint64_t>(view.data()));
    operand.blayout = static_cast<uint8_t>(Layout_);
    for (int i = 0; i < 5; ++i) {
        operand.shape[i] = view.GetShape(i);
        operand.strides[i] = view.GetStride(i);
    }
}

}  // namespace detail

}  // namespace pto
