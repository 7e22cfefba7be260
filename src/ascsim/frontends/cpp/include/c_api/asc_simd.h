// Ascend C's C API. All headers below c_api/ lead here.
#pragma once
#include "ascsim/c_api.hpp"
#include "ascsim/c_api_functions.hpp"
