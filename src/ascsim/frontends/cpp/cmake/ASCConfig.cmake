# find_package(ASC), then project(... LANGUAGES ASC CXX), for .asc files. It is called before project(), and so before the
# toolchain file is read: cmake -DASC_DIR=$(dirname $(ascsim cmake-toolchain)) ...
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
set(ASC_FOUND TRUE)
