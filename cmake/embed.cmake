# snug_embed(ROOM SYMBOL FILE…): the bytes of the files, joined, as `extern const std::string_view SYMBOL` in namespace snug, so that
# the program carries its data with it. Names are relative to the repository. The same file is the script that writes the source.
if(CMAKE_SCRIPT_MODE_FILE)
  set(all "")
  string(REPLACE "," ";" files "${FILES}")
  foreach(file IN LISTS files)
    file(READ "${file}" hex HEX)
    string(APPEND all "${hex}")
  endforeach()
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${all}")
  file(WRITE "${OUTPUT}" "#include <string_view>

namespace snug {
extern const std::string_view ${SYMBOL};
static constexpr char kBytes[] = {${bytes} 0};
const std::string_view ${SYMBOL}(kBytes, sizeof kBytes - 1);
}  // namespace snug
")
  return()
endif()

function(snug_embed room symbol)
  set(output ${PROJECT_BINARY_DIR}/embedded/${symbol}.cpp)
  set(files "")
  foreach(file IN LISTS ARGN)
    get_filename_component(file "${file}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    list(APPEND files "${file}")
  endforeach()
  list(JOIN files "," joined)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${joined}" -DSYMBOL=${symbol} -DOUTPUT=${output} -P ${script}
    DEPENDS ${files} ${script} VERBATIM)
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # each names its bytes alike
  target_sources(snug_${room} PRIVATE ${output})
endfunction()
