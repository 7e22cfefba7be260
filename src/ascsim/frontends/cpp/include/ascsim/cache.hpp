// The builtin behind the functions of the scalar unit's data cache.
#pragma once
#include "ascsim/builtins.hpp"
#include "ascsim/machine.hpp"

ASCSIM_INLINE void dcci(const volatile void* line, cache_line_t which, dcci_dst_t where = CACHELINE_ALL)
{
#if ASCSIM_NPU_ARCH
    if (which == SINGLE_CACHE_LINE) {
        ascsim_dcci_single(line);
    } else if (where == CACHELINE_ALL || where == CACHELINE_OUT) {
        ascsim_dcci_entire();
    }
#else
    static_cast<void>(line), static_cast<void>(which), static_cast<void>(where);
#endif
}
