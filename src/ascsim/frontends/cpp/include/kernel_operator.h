// The umbrella header of Ascend C. Of its C++ API only what C API programs use beside it is here.
#pragma once
#include "c_api/asc_simd.h"

#define GM_ADDR __gm__ uint8_t*

namespace AscendC {

ASCSIM_INLINE int64_t GetBlockIdx() { return block_idx; }
ASCSIM_INLINE int64_t GetBlockNum() { return block_num; }

}  // namespace AscendC
