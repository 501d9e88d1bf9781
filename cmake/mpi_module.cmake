# Ranks on several machines: a module over Open MPI that is opened at run time, where it is installed.
pkg_check_modules(MPI IMPORTED_TARGET ompi-c)
if(TARGET PkgConfig::MPI)
  add_library(snug_mpi MODULE src/comm/mpi/module.cpp)
  target_link_libraries(snug_mpi PRIVATE snug_settings PkgConfig::MPI)
  target_compile_definitions(snug_mpi PRIVATE OMPI_SKIP_MPICXX)  # MPI's C interface alone
  target_link_options(snug_mpi PRIVATE -Wl,--no-undefined)
  set_target_properties(snug_mpi PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/modules)
else()
  message(STATUS "no Open MPI: ranks of several machines are left out")
endif()
