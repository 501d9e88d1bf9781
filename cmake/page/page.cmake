# The page: the rooms that answer, as one WebAssembly module behind the C interface of the planner's library.
snug_room(report EXCEPT measure_report.cpp watch_view.cpp USES advise eager explain LIBRARIES nlohmann_json::nlohmann_json)
include(cmake/report_pages.cmake)
snug_room(ask USES report LIBRARIES nlohmann_json::nlohmann_json)

add_executable(snug_page src/library/ask.cpp)
target_include_directories(snug_page PRIVATE include)
target_link_libraries(snug_page PRIVATE snug_ask snug_settings cxx)
# Without a main: the page calls the interface. The stack lies first, so that a recursion without end is a trap and no damage.
target_link_options(snug_page PRIVATE -nostdlib++ -mexec-model=reactor -lwasi-emulated-getpid -Wl,--stack-first -Wl,-z,stack-size=4194304 -Wl,--strip-all
  -Wl,--export=malloc -Wl,--export=free -Wl,--export=snug_ask -Wl,--export=snug_exit_code -Wl,--export=snug_output -Wl,--export=snug_messages
  -Wl,--export=snug_free -Wl,--export=snug_version)

# The folder that is served: as it is, with nothing made at run time.
set(page ${PROJECT_BINARY_DIR}/page)
set(page_files web/common/page.css:common.css web/common/elements.js:elements.js web/plan/data.js:data.js)
foreach(file index.html page.css page.js answer.js desk.js files.js planner.js question.js system.js timeline.js worker.js)
  list(APPEND page_files web/ask/${file}:${file})
endforeach()
set(page_outputs "")
foreach(pair IN LISTS page_files)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 from)
  list(GET pair 1 to)
  add_custom_command(OUTPUT ${page}/${to} DEPENDS ${from} COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/${from} ${page}/${to} VERBATIM)
  list(APPEND page_outputs ${page}/${to})
endforeach()
add_custom_command(OUTPUT ${page}/snug.wasm DEPENDS snug_page
  COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:snug_page> ${page}/snug.wasm VERBATIM)

# What the licences of the parts ask of whoever passes them on.
set(licences ${sources}/llvm-toolchain-19/libcxx/LICENSE.TXT ${sources}/fmtlib/LICENSE.rst ${sources}/simdjson/LICENSE ${sources}/yaml-cpp/LICENSE
  ${sources}/utf8proc/LICENSE.md ${sources}/xxhash/LICENSE /usr/share/doc/wasi-libc/copyright /usr/share/doc/nlohmann-json3-dev/copyright
  /usr/share/doc/node-d3/copyright)
add_custom_command(OUTPUT ${page}/licences.txt DEPENDS LICENSE ${licences}
  COMMAND ${CMAKE_COMMAND} -E cat ${PROJECT_SOURCE_DIR}/LICENSE ${licences} > ${page}/licences.txt VERBATIM)
list(APPEND page_outputs ${page}/licences.txt)
add_custom_target(page ALL DEPENDS ${page_outputs} ${page}/snug.wasm)

enable_testing()
add_test(NAME page COMMAND ${PROJECT_SOURCE_DIR}/tests/page/check_page.py ${page})
set_tests_properties(page PROPERTIES LABELS browser SKIP_RETURN_CODE 77)
