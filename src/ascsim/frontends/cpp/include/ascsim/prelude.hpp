// What a kernel's compiler knows before the first #include: the vendor's words, and types that are built in there.
// The driver includes this file ahead of every C++ source.
#pragma once
#ifdef __cplusplus

// 0: the host's compilation; 1: the vector core's (AIV); 2: the cube core's (AIC).
#ifndef ASCSIM_SIDE
#define ASCSIM_SIDE 0
#endif
// Whether instructions of this compilation do anything. Portable programs use tiles in host code too.
#if ASCSIM_SIDE || defined(ASCSIM_PROFILE_CPU)
#define ASCSIM_ACTS
#endif

// Where an object lives, what a function is and how a parameter is used: none of it changes the C++ that the host compiler
// sees. The source pass (rewrite.py) has read what matters.
#define __gm__
#define __ubuf__
#define __ub__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __biasbuf__
#define __fbuf__
#define __ssbuf__
#define __blk_local__
#define __BLOCK_LOCAL__
#define __workgroup__
#define __kfc_workspace__
#define __global__
#define __host__
#define __host_aicore__
#define __aicore__
#define __aicpu__
#define __vector__
#define __cube__
#define __mix__(...)
#define __schedmode__(...)
#define __launch_bounds__(...)
#define __simd_vf__
#define __simd_callee__
#define __simt_vf__
#define __simt_callee__
#define __callee__
#define __tf__
#define __in__
#define __out__
#define __inout__
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __inout_pipe__(...)
#define __sync_noalias__
#define __check_sync_alias__
#define __cce_get_tile_ptr(tile) (tile)

#include "ascsim/machine.hpp"
#include "ascsim/types.hpp"

// What g++ puts in the place of one of these, in the C++ library too (std::copy, std::fill), its sanitizer does not see. The
// driver makes it leave the calls alone that have the C library's names.
#if ASCSIM_SIDE && !defined(__clang__)
#define __builtin_memcpy memcpy
#define __builtin_memmove memmove
#define __builtin_memset memset
#endif

#endif
