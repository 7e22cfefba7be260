set(CMAKE_ASC_COMPILER "${CMAKE_CURRENT_LIST_DIR}/ascsim-c++")
set(CMAKE_ASC_COMPILER_ENV_VAR ASC)
configure_file(
  "${CMAKE_CURRENT_LIST_DIR}/CMakeASCCompiler.cmake.in" "${CMAKE_PLATFORM_INFO_DIR}/CMakeASCCompiler.cmake" @ONLY)
