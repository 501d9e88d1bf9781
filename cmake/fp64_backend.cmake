# The backend of plain fp64 loops (src/kernels/fp64), a module that is opened at run time: tests hold the others against it. It carries
# its own copy of the few sources that it needs, so that nothing of it can clash with the program's.
file(GLOB fp64_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/fp64/*.cpp ${PROJECT_SOURCE_DIR}/src/op/*.cpp)
add_library(snug_fp64 MODULE ${fp64_sources} src/base/dynamic_map.cpp src/quantize/four_bit.cpp
  src/quantize/values.cpp)
target_link_libraries(snug_fp64 PRIVATE snug_settings)
if(NOT SNUG_SANITIZE)  # whose symbols come with the program
  target_link_options(snug_fp64 PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(snug_fp64 PROPERTIES PREFIX "" UNITY_BUILD ${SNUG_UNITY} CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/backends)
