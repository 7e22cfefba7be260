// Types and error codes of the acl host interface.
// The numbers are those of the public CANN runtime headers, so that a program which prints them prints the same.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus) && defined(__CPU_SIM)
#include "ascsim/types.hpp"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))

typedef int aclError;
// Portable programs are one side: their host code computes with the kernel's half.
#if defined(__cplusplus) && defined(__CPU_SIM)
typedef half aclFloat16;
#else
typedef uint16_t aclFloat16;
#endif
typedef void* aclrtStream;
typedef void* aclrtEvent;
typedef void* aclrtContext;

// Every error code once: its name, its number, and what aclGetRecentErrMsg says when nothing better is known.
#define ASCSIM_ACL_ERRORS(X)                                                                    \
    X(ACL_ERROR_INVALID_PARAM, 100000, "an argument is not valid")                              \
    X(ACL_ERROR_UNINITIALIZE, 100001, "aclInit has not been called")                            \
    X(ACL_ERROR_REPEAT_INITIALIZE, 100002, "aclInit has already been called")                   \
    X(ACL_ERROR_INVALID_FILE, 100003, "the file is not valid")                                  \
    X(ACL_ERROR_REPEAT_FINALIZE, 100037, "aclFinalize has already been called")                 \
    X(ACL_ERROR_BAD_ALLOC, 200000, "no host memory is left")                                    \
    X(ACL_ERROR_API_NOT_SUPPORT, 200001, "the function is not supported")                       \
    X(ACL_ERROR_INVALID_DEVICE, 200002, "there is no such device")                              \
    X(ACL_ERROR_MEMORY_ADDRESS_UNALIGNED, 200003, "the address is not aligned")                 \
    X(ACL_ERROR_RESOURCE_NOT_MATCH, 200004, "the resources do not belong together")             \
    X(ACL_ERROR_INVALID_RESOURCE_HANDLE, 200005, "the handle is not valid")                     \
    X(ACL_ERROR_FEATURE_UNSUPPORTED, 200006, "the feature is not supported")                    \
    X(ACL_ERROR_STORAGE_OVER_LIMIT, 300000, "no device memory is left")                         \
    X(ACL_ERROR_INTERNAL_ERROR, 500000, "internal error")                                       \
    X(ACL_ERROR_FAILURE, 500001, "the call failed")                                             \
    X(ACL_ERROR_RT_FAILURE, 500003, "the runtime failed")                                       \
    X(ACL_ERROR_RT_PARAM_INVALID, 107000, "an argument is not valid")                           \
    X(ACL_ERROR_RT_INVALID_DEVICEID, 107001, "there is no such device")                         \
    X(ACL_ERROR_RT_CONTEXT_NULL, 107002, "no device has been set")                              \
    X(ACL_ERROR_RT_STREAM_CONTEXT, 107003, "the stream does not exist")                         \
    X(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, 107006, "the event has not been recorded")          \
    X(ACL_ERROR_RT_ADDR_UNALIGNED, 107008, "the address is not aligned")                        \
    X(ACL_ERROR_RT_INVALID_MEMORY_TYPE, 107016, "the memory is of another kind")                \
    X(ACL_ERROR_RT_INVALID_HANDLE, 107017, "the handle is not valid")                           \
    X(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, 207000, "the feature is not supported")                 \
    X(ACL_ERROR_RT_MEMORY_ALLOCATION, 207001, "no device memory is left")                       \
    X(ACL_ERROR_RT_MEMORY_FREE, 207002, "the memory cannot be freed")                           \
    X(ACL_ERROR_RT_INTERNAL_ERROR, 507000, "internal error")                                    \
    X(ACL_ERROR_RT_AICORE_TIMEOUT, 507014, "a kernel did not end in time")                      \
    X(ACL_ERROR_RT_AICORE_EXCEPTION, 507015, "a kernel stopped on a cube core")                 \
    X(ACL_ERROR_RT_VECTOR_CORE_TIMEOUT, 507034, "a kernel did not end in time")                 \
    X(ACL_ERROR_RT_VECTOR_CORE_EXCEPTION, 507035, "a kernel stopped on a vector core")

static const int ACL_ERROR_NONE = 0;
static const int ACL_SUCCESS = 0;
#define ASCSIM_DECLARE_ERROR(name, code, text) static const int name = code;
ASCSIM_ACL_ERRORS(ASCSIM_DECLARE_ERROR)
#undef ASCSIM_DECLARE_ERROR

typedef enum {
    ACL_DT_UNDEFINED = -1,
    ACL_FLOAT = 0,
    ACL_FLOAT16 = 1,
    ACL_INT8 = 2,
    ACL_INT32 = 3,
    ACL_UINT8 = 4,
    ACL_INT16 = 6,
    ACL_UINT16 = 7,
    ACL_UINT32 = 8,
    ACL_INT64 = 9,
    ACL_UINT64 = 10,
    ACL_DOUBLE = 11,
    ACL_BOOL = 12,
    ACL_STRING = 13,
    ACL_COMPLEX64 = 16,
    ACL_COMPLEX128 = 17,
    ACL_BF16 = 27,
    ACL_INT4 = 29,
    ACL_UINT1 = 30,
    ACL_COMPLEX32 = 33,
    ACL_HIFLOAT8 = 34,
    ACL_FLOAT8_E5M2 = 35,
    ACL_FLOAT8_E4M3FN = 36,
    ACL_FLOAT8_E8M0 = 37,
    ACL_FLOAT6_E3M2 = 38,
    ACL_FLOAT6_E2M3 = 39,
    ACL_FLOAT4_E2M1 = 40,
    ACL_FLOAT4_E1M2 = 41
} aclDataType;

typedef enum {
    ACL_FORMAT_UNDEFINED = -1,
    ACL_FORMAT_NCHW = 0,
    ACL_FORMAT_NHWC = 1,
    ACL_FORMAT_ND = 2,
    ACL_FORMAT_NC1HWC0 = 3,
    ACL_FORMAT_FRACTAL_Z = 4,
    ACL_FORMAT_FRACTAL_NZ = 29
} aclFormat;

// Bytes of one element; 0 for types that are no whole bytes wide.
size_t aclDataTypeSize(aclDataType dataType);

#if !defined(__cplusplus) || !defined(__CPU_SIM)
// Finite numbers only: infinities and NaN come out as the number that their bits would be with one more exponent.
float aclFloat16ToFloat(aclFloat16 value);
// Saturating, to nearest even: what is too large, infinite or NaN becomes 65504 with the sign of the value.
aclFloat16 aclFloatToFloat16(float value);
#else
static inline float aclFloat16ToFloat(aclFloat16 value) { return static_cast<float>(value); }
static inline aclFloat16 aclFloatToFloat16(float value) { return static_cast<aclFloat16>(value); }
#endif

// The product that the program was compiled for; nullptr for the portable profile.
const char* aclrtGetSocName(void);

#ifdef __cplusplus
}
#endif
