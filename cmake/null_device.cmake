# The null device: a library of its own, preloaded under other people's programs, and so without any dependency but libc. It answers for
# libcuda.so.1 and libnvidia-ml.so.1, which are opened by name. The folder ${SNUG_NULL_DEVICE_DIR} is what `snug measure` carries.
set(SNUG_NULL_DEVICE_DIR ${PROJECT_BINARY_DIR}/null_device)
file(GLOB null_device_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/measure/null_device/*.cpp)
add_library(snug_null_device SHARED ${null_device_sources} ${PROJECT_SOURCE_DIR}/src/base/driver_addresses.cpp)
target_compile_options(snug_null_device PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-sign-conversion -Werror)
target_include_directories(snug_null_device PRIVATE ${PROJECT_SOURCE_DIR}/src)
set_target_properties(snug_null_device PROPERTIES NO_SONAME ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  UNITY_BUILD ${SNUG_UNITY} UNITY_BUILD_BATCH_SIZE 8 LIBRARY_OUTPUT_DIRECTORY ${SNUG_NULL_DEVICE_DIR})
target_link_options(snug_null_device PRIVATE -Wl,-soname,libcuda.so.1 -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,-s)
foreach(name libcuda.so.1 libcuda.so libnvidia-ml.so.1)
  add_custom_command(TARGET snug_null_device POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink libsnug_null_device.so ${SNUG_NULL_DEVICE_DIR}/${name} VERBATIM)
endforeach()

# snug_carry_null_device(ROOM): the library and the Python side go into the room, whose carried.cpp writes them out for a run.
function(snug_carry_null_device room)
  set(python src/measure/python)
  foreach(file kMeasureSite=sitecustomize.py kMeasurePackage=snug_measure/__init__.py kMeasureDevice=snug_measure/device.py
      kMeasureValues=snug_measure/values.py kMeasurePhases=snug_measure/phases.py kMeasureProcesses=snug_measure/processes.py
      kMeasureWeights=snug_measure/weights.py kMeasureSynthetic=snug_measure/synthetic.py kMeasureChanges=snug_measure/changes.py
      kFlashPackage=flash/flash_attn/__init__.py kFlashPadding=flash/flash_attn/bert_padding.py
      kFlashMetadata=flash/flash_attn-2.8.3.dist-info/METADATA kFlashTopLevel=flash/flash_attn-2.8.3.dist-info/top_level.txt)
    string(REGEX MATCH "([^=]+)=(.*)" matched "${file}")
    snug_embed(${room} ${CMAKE_MATCH_1} ${python}/${CMAKE_MATCH_2})
  endforeach()
  set(library ${SNUG_NULL_DEVICE_DIR}/libsnug_null_device.so)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/measure/run/carried.cpp PROPERTIES OBJECT_DEPENDS ${library}
    COMPILE_DEFINITIONS SNUG_NULL_DEVICE_FILE="${library}")
  add_dependencies(snug_${room} snug_null_device)
endfunction()
