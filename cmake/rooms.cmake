# snug_room(NAME [SOURCES SUBFOLDER] [APART folders…] [EXCEPT sources…] [USES rooms…] [LIBRARIES targets…]): the library snug_NAME of every source below
# src/NAME (or of src/NAME/*.cpp and src/NAME/SUBFOLDER alone, for a room with alternatives).
#
# Sources of a room are compiled many at a time (SNUG_UNITY): most of a source's time goes into headers that all share, so that the
# program takes two fifths of the time. What a room names in APART is compiled file by file: sources that are compiled once for each
# instruction set (kernels).
function(snug_room name)
  cmake_parse_arguments(ROOM "" "SOURCES" "APART;EXCEPT;USES;LIBRARIES" ${ARGN})
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
    foreach(folder IN LISTS ROOM_APART)
      file(GLOB apart CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/${folder}/*.cpp)
      set_source_files_properties(${apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endforeach()
  else()
    add_library(snug_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  list(TRANSFORM ROOM_USES PREPEND snug_)
  target_link_libraries(snug_${name} ${scope} ${ROOM_USES} ${ROOM_LIBRARIES})
endfunction()
