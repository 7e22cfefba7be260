// PTO tile instructions. All headers below pto/ lead here.
#pragma once
#include "ascsim/pto.hpp"
#include "ascsim/pto_functions.hpp"

// Portable programs expect the host's runtime functions from here too, and some of the standard library.
#ifdef __CPU_SIM
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "acl/acl.h"
#endif
