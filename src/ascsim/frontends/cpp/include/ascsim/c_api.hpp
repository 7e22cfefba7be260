// What the functions of Ascend C's C API stand on: patterns, modes. The functions themselves are generated (see
// generate.py).
#pragma once
#include <cstdint>
#include <utility>

#include "ascsim/builtins.hpp"
#include "ascsim/cache.hpp"
#include "ascsim/machine.hpp"
#include "ascsim/prelude.hpp"
#include "ascsim/runtime.hpp"
#include "ascsim/types.hpp"

enum Pat {
    PAT_ALL = 0,
    PAT_VL1,
    PAT_VL2,
    PAT_VL3,
    PAT_VL4,
    PAT_VL8,
    PAT_VL16,
    PAT_VL32,
    PAT_VL64,
    PAT_VL128,
    PAT_M3,
    PAT_M4,
    PAT_H,
    PAT_Q,
    PAT_ALLF = 15,
};

// What a barrier inside a vector function orders: the source's accesses before the target's. V and S are the vector and
// the scalar unit, ST and LD stores and loads.
enum MEM_TYPE {
    VV_ALL = 0,
    VST_VLD,
    VLD_VST,
    VST_VST,
    VS_ALL,
    VST_LD,
    VLD_ST,
    VST_ST,
    SV_ALL,
    ST_VLD,
    LD_VST,
    ST_VST,
    SS_ALL,
    ST_LD,
    LD_ST,
    ST_ST,
};

enum class asc_load_l2_cache_mode : uint8_t {
    NORMAL_FIRST_VICTIM = 0,
    NORMAL_LAST_VICTIM = 1,
    NORMAL_PERSISTENT = 2,
    NOTALLOC_KEEP = 4,
    NOTALLOC_CLEAN = 5,
    NOTALLOC_DROP = 6,
};

enum class asc_store_l2_cache_mode : uint8_t {
    NORMAL_FIRST_VICTIM = 0,
    NORMAL_LAST_VICTIM = 1,
    NORMAL_PERSISTENT = 2,
    NOTALLOC_CLEAN = 4,
};

enum ascMutexExecuteMode { ASC_LOCK_BLOCK = 0, ASC_LOCK_NON_BLOCK = 1 };

// `if ASC_IS_AIV { ... }`: the macro brings its parentheses.
#define ASC_IS_AIV constexpr (ASCSIM_SIDE == 1)
#define ASC_IS_AIC constexpr (ASCSIM_SIDE == 2)
#define ASCEND_IS_AIV ASC_IS_AIV
#define ASCEND_IS_AIC ASC_IS_AIC

// Bytes of a vector register.
constexpr int64_t asc_get_vf_len() { return 256; }

// Call a vector function by its name as a template argument.
template <auto Function, class... Given>
ASCSIM_INLINE void asc_vf_call(Given&&... given)
{
    Function(std::forward<Given>(given)...);
}
