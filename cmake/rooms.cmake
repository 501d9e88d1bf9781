# snug_room(NAME [SOURCES SUBFOLDER] [EXCEPT sources…] [USES rooms…] [LIBRARIES targets…]): the library snug_NAME of every source below
# src/NAME (or of src/NAME/*.cpp and src/NAME/SUBFOLDER alone, for a room with alternatives).
#
# Sources of a room are compiled many at a time (SNUG_UNITY): most of a source's time goes into headers that all share, so that the
# program takes two fifths of the time. Sources with options of their own are left out, and those that are compiled once for each
# instruction set (vector_units.cmake).
function(snug_room name)
  cmake_parse_arguments(ROOM "" "SOURCES" "EXCEPT;USES;LIBRARIES" ${ARGN})
  if(ROOM_SOURCES)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp ${PROJECT_SOURCE_DIR}/src/${name}/${ROOM_SOURCES}/*.cpp)
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  endif()
  list(TRANSFORM ROOM_EXCEPT PREPEND ${PROJECT_SOURCE_DIR}/src/${name}/)
  list(REMOVE_ITEM sources ${ROOM_EXCEPT})
  set(scope PUBLIC)
  if(sources)
    add_library(snug_${name} STATIC ${sources})
    target_link_libraries(snug_${name} PRIVATE snug_settings)
    list(LENGTH sources count)
    if(count GREATER 3)
      set_target_properties(snug_${name} PROPERTIES UNITY_BUILD ${SNUG_UNITY} UNITY_BUILD_BATCH_SIZE 25)
    endif()
  else()
    add_library(snug_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  list(TRANSFORM ROOM_USES PREPEND snug_)
  target_link_libraries(snug_${name} ${scope} ${ROOM_USES} ${ROOM_LIBRARIES})
endfunction()

# snug_closure(RESULT TARGET): the rooms that a target is linked with, each once, those that use before those that are used.
function(snug_closure result target)
  set(found)
  get_target_property(linked ${target} LINK_LIBRARIES)
  if(NOT linked)
    get_target_property(linked ${target} INTERFACE_LINK_LIBRARIES)
  endif()
  foreach(library IN LISTS linked)
    if(NOT library MATCHES "^snug_" OR library STREQUAL snug_settings OR NOT TARGET ${library})
      continue()
    endif()
    get_target_property(type ${library} TYPE)
    if(NOT type STREQUAL "SHARED_LIBRARY")  # which has its rooms inside
      snug_closure(below ${library})
      list(APPEND found ${library} ${below})
    endif()
  endforeach()
  list(REVERSE found)
  list(REMOVE_DUPLICATES found)
  list(REVERSE found)
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# snug_link_fast_rooms_first(TARGET SLOW_ROOMS…): a template or an inline function that several objects hold is taken from the first
# that is linked. Those of the rooms come before the target's own objects and before rooms that are compiled without optimization:
# else the strings, maps and sorts of a search would be the ones of a test at -O0 (a quarter of the tests' time).
function(snug_link_fast_rooms_first target)
  snug_closure(rooms ${target})
  list(TRANSFORM ARGN PREPEND snug_ OUTPUT_VARIABLE slow)
  set(files)
  foreach(room IN LISTS rooms)
    get_target_property(type ${room} TYPE)
    if(type STREQUAL "STATIC_LIBRARY" AND NOT room IN_LIST slow)
      list(APPEND files $<TARGET_FILE:${room}>)
    endif()
  endforeach()
  if(files)
    target_link_options(${target} PRIVATE LINKER:--whole-archive ${files} LINKER:--no-whole-archive)
  endif()
endfunction()

# snug_compile_with_clang(TARGET): under sanitizers, where clang is installed. Of code that is not optimized it makes what GCC makes in
# half the time.
find_program(SNUG_CLANG clang++)
set(SNUG_FUZZED OFF)
if(SNUG_SANITIZE MATCHES address AND SNUG_CLANG AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(SNUG_FUZZED ON)
elseif(SNUG_SANITIZE STREQUAL thread AND SNUG_CLANG AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/clang_in_place.sh)  # all of it
endif()
function(snug_compile_with_clang target)
  if(SNUG_FUZZED)
    set(launchers ${PROJECT_SOURCE_DIR}/cmake/clang_in_place.sh ${CMAKE_CXX_COMPILER_LAUNCHER})
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${launchers}")
  endif()
endfunction()

# snug_watch_for_fuzzing(TARGET): compiled with clang, which counts what is run, as libFuzzer asks, and looks before each access, so that
# the tests under sanitizers and the fuzz targets are linked from the same objects. What is compared is not told to libFuzzer: tests
# took up to three times as long, and in the same seconds as much is found without.
function(snug_watch_for_fuzzing target)
  if(SNUG_FUZZED)
    snug_compile_with_clang(${target})
    target_compile_options(${target} PRIVATE -O1 -fsanitize=null,object-size -fsanitize-coverage=inline-8bit-counters,pc-table)
  endif()
endfunction()

# snug_leave_scopes_unwatched(TARGET): where GCC's address sanitizer marks every variable of an inner scope, no struct of them stays in
# a register, and code that is optimized compiles and runs in up to twice the time. What reads outside bytes is watched by it, and what
# is not optimized.
function(snug_leave_scopes_unwatched target)
  if(SNUG_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -fno-sanitize-address-use-after-scope)
  endif()
endfunction()
