// The acl host interface, as far as programs that launch kernels use it. A function that is not here is not simulated:
// the link names it.
#pragma once
#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

aclError aclInit(const char* configPath);
aclError aclFinalize(void);
// What the last failed call of this thread complained of; never nullptr.
const char* aclGetRecentErrMsg(void);

#ifdef __cplusplus
}
#endif
