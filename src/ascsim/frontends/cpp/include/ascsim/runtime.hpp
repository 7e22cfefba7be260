// What C++ code sees of the runtime library beside its C functions.
#pragma once
#include <cstdio>

#include "ascsim/abi.h"

namespace ascsim {

// Thrown through a kernel to end it: the machine refused an instruction, or the run cannot go on. What happened is already
// noted; it carries nothing. A kernel must not catch it.
struct Stop {};

}  // namespace ascsim

// Kernels print with the names that the vendor's libraries give to printf. The text goes to the program's standard output.
namespace cce {
using ::printf;
}
namespace AscendC {
using ::printf;
}
