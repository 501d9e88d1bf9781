# The libraries of the page, from the sources that sources.sh fetched: C++'s own, with exceptions and file systems, and the small
# ones that the rooms use. Each as the target by which settings.cmake finds it elsewhere.
enable_language(C)
set(sources ${PROJECT_BINARY_DIR}/sources)
if(NOT EXISTS ${sources}/llvm-toolchain-19/libcxx)
  message(FATAL_ERROR "no sources in ${sources}: run cmake/page/sources.sh, or make page")
endif()
set(llvm ${sources}/llvm-toolchain-19)
set(headers ${PROJECT_BINARY_DIR}/include)

# What CMake configures libc++ with for a machine without threads, whose C library is musl's kin.
file(WRITE ${headers}/c++/__config_site "#pragma once
#define _LIBCPP_ABI_VERSION 1
#define _LIBCPP_ABI_NAMESPACE __1
#define _LIBCPP_HAS_NO_THREADS
#define _LIBCPP_HAS_MUSL_LIBC
#define _LIBCPP_HAS_NO_VENDOR_AVAILABILITY_ANNOTATIONS
#define _LIBCPP_HAS_NO_TIME_ZONE_DATABASE
#define _LIBCPP_PSTL_BACKEND_SERIAL
#define _LIBCPP_HARDENING_MODE_DEFAULT 2
")
configure_file(${llvm}/libcxx/vendor/llvm/default_assertion_handler.in ${headers}/c++/__assertion_handler COPYONLY)
include_directories(SYSTEM ${headers}/c++ ${llvm}/libcxx/include ${llvm}/libcxxabi/include)

set(cxx_sources algorithm any bind call_once charconv chrono error_category exception expected functional hash ios ios.instantiations iostream
  locale memory memory_resource new_handler new_helpers optional ostream random regex stdexcept string system_error typeinfo
  valarray variant vector verbose_abort fstream filesystem/directory_entry filesystem/directory_iterator
  filesystem/filesystem_clock filesystem/filesystem_error filesystem/int128_builtins filesystem/operations filesystem/path ryu/d2fixed
  ryu/d2s ryu/f2s new)
list(TRANSFORM cxx_sources PREPEND ${llvm}/libcxx/src/)
set(abi_sources abort_message cxa_aux_runtime cxa_default_handlers cxa_demangle cxa_exception cxa_exception_storage cxa_guard
  cxa_handlers cxa_personality cxa_vector cxa_virtual fallback_malloc private_typeinfo stdlib_exception stdlib_stdexcept stdlib_typeinfo)
list(TRANSFORM abi_sources PREPEND ${llvm}/libcxxabi/src/)
list(TRANSFORM cxx_sources APPEND .cpp)
list(TRANSFORM abi_sources APPEND .cpp)
add_library(cxx STATIC ${cxx_sources} ${abi_sources} ${llvm}/libunwind/src/Unwind-wasm.c cmake/page/missing.cpp)
target_include_directories(cxx PRIVATE ${llvm}/libcxx/src ${llvm}/libunwind/include cmake/page/include)
target_compile_features(cxx PRIVATE cxx_std_23)
target_compile_definitions(cxx PRIVATE _LIBCPP_BUILDING_LIBRARY LIBCXX_BUILDING_LIBCXXABI _LIBCXXABI_BUILDING_LIBRARY _LIBCXXABI_HAS_NO_THREADS
  _LIBUNWIND_HIDE_SYMBOLS)
target_compile_options(cxx PRIVATE -w $<$<COMPILE_LANGUAGE:CXX>:-include${PROJECT_SOURCE_DIR}/cmake/page/include/wasi_missing.h>)

add_library(fmt ${sources}/fmtlib/src/format.cc)
add_library(simdjson ${sources}/simdjson/singleheader/simdjson.cpp)
file(GLOB yaml_sources ${sources}/yaml-cpp/src/*.cpp)
add_library(yaml-cpp ${yaml_sources})
add_library(utf8proc ${sources}/utf8proc/utf8proc.c)
add_library(xxhash ${sources}/xxhash/xxhash.c)
target_include_directories(fmt SYSTEM PUBLIC ${sources}/fmtlib/include)
target_include_directories(simdjson SYSTEM PUBLIC ${sources}/simdjson/singleheader)
target_include_directories(yaml-cpp SYSTEM PUBLIC ${sources}/yaml-cpp/include)
target_include_directories(utf8proc SYSTEM PUBLIC ${sources}/utf8proc)
target_include_directories(xxhash SYSTEM PUBLIC ${sources}/xxhash)
target_compile_definitions(utf8proc PUBLIC UTF8PROC_STATIC)
target_compile_definitions(yaml-cpp PUBLIC YAML_CPP_STATIC_DEFINE)
foreach(library fmt simdjson yaml-cpp utf8proc xxhash)
  target_compile_options(${library} PRIVATE -w)
endforeach()
add_library(fmt::fmt ALIAS fmt)
add_library(simdjson::simdjson ALIAS simdjson)
add_library(PkgConfig::UTF8PROC ALIAS utf8proc)

file(MAKE_DIRECTORY ${headers}/json)
file(CREATE_LINK /usr/include/nlohmann ${headers}/json/nlohmann SYMBOLIC)  # headers alone: the package's serve
add_library(nlohmann_json INTERFACE)
target_include_directories(nlohmann_json SYSTEM INTERFACE ${headers}/json)
add_library(nlohmann_json::nlohmann_json ALIAS nlohmann_json)

# Sources of the room formats that nothing in a page asks for, and that ask the system for what a page has not.
set(SNUG_NOT_IN_PAGE atomic_directory.cpp event_file.cpp)
