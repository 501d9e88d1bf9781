# The null device: a library of its own, preloaded under other people's programs, and so without any dependency but libc. It answers for
# libcuda.so.1 and libnvidia-ml.so.1, which are opened by name. The folder ${SNUG_NULL_DEVICE_DIR} is what `snug measure` carries.
set(SNUG_NULL_DEVICE_DIR ${PROJECT_BINARY_DIR}/null_device)
file(GLOB null_device_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/measure/null_device/*.cpp)
add_library(snug_null_device SHARED ${null_device_sources})
target_compile_options(snug_null_device PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-sign-conversion -Werror)
target_include_directories(snug_null_device PRIVATE ${PROJECT_SOURCE_DIR}/src)
set_target_properties(snug_null_device PROPERTIES NO_SONAME ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  LIBRARY_OUTPUT_DIRECTORY ${SNUG_NULL_DEVICE_DIR})
target_link_options(snug_null_device PRIVATE -Wl,-soname,libcuda.so.1 -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,-s)
foreach(name libcuda.so.1 libcuda.so libnvidia-ml.so.1)
  add_custom_command(TARGET snug_null_device POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink libsnug_null_device.so ${SNUG_NULL_DEVICE_DIR}/${name} VERBATIM)
endforeach()
