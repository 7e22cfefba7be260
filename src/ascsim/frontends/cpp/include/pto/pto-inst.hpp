// PTO tile instructions. All headers below pto/ lead here.
#pragma once
#include "ascsim/pto.hpp"
#include "ascsim/pto_functions.hpp"

// Portable programs expect the host's runtime functions from here too.
#ifdef __CPU_SIM
#include "acl/acl.h"
#endif
