# Build with ascsim as the compiler: cmake -DCMAKE_TOOLCHAIN_FILE=$(ascsim cmake-toolchain) ...
#
# The rules name ascsim themselves rather than through CMAKE_CXX_COMPILER, because the build files of kernel libraries
# set that variable to the vendor's compiler after project().
set(_ascsim "${CMAKE_CURRENT_LIST_DIR}/ascsim-c++")
set(CMAKE_C_COMPILER "${_ascsim}")
set(CMAKE_CXX_COMPILER "${_ascsim}")

# Such build files also stop without the toolkit's home. Nothing is read from it.
if(NOT DEFINED ENV{ASCEND_HOME_PATH})
  set(ENV{ASCEND_HOME_PATH} "${CMAKE_CURRENT_LIST_DIR}")
endif()

foreach(_language C CXX)
  set(CMAKE_${_language}_COMPILE_OBJECT "\"${_ascsim}\" <DEFINES> <INCLUDES> <FLAGS> -o <OBJECT> -c <SOURCE>")
  set(CMAKE_${_language}_LINK_EXECUTABLE
      "\"${_ascsim}\" <FLAGS> <CMAKE_${_language}_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>")
  set(CMAKE_${_language}_CREATE_SHARED_LIBRARY
      "\"${_ascsim}\" -shared <LANGUAGE_COMPILE_FLAGS> <LINK_FLAGS> <SONAME_FLAG><TARGET_SONAME> -o <TARGET> <OBJECTS> <LINK_LIBRARIES>")
  set(CMAKE_${_language}_CREATE_SHARED_MODULE
      "\"${_ascsim}\" -shared <LANGUAGE_COMPILE_FLAGS> <LINK_FLAGS> -o <TARGET> <OBJECTS> <LINK_LIBRARIES>")
endforeach()
unset(_language)
unset(_ascsim)

# enable_language(ASC) looks for its modules here.
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
