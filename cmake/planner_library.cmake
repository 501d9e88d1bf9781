# The planner as a library of its own, for other programs: find_package(snug CONFIG), snug::planner, <snug/planner.h> for C++ and <snug/ask.h> for any language. One shared
# object with the rooms inside and nothing else visible, so that what snug is made of cannot clash with the program's own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(snug_planner SHARED src/library/planner.cpp src/library/ask.cpp)
add_library(snug::planner ALIAS snug_planner)
target_include_directories(snug_planner PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(snug_planner PUBLIC cxx_std_20)
target_link_libraries(snug_planner PRIVATE snug_ask snug_settings)
target_link_options(snug_planner PRIVATE -Wl,--exclude-libs,ALL -Wl,--as-needed -Wl,--no-undefined)
set_target_properties(snug_planner PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} EXPORT_NAME planner
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/snug)
install(TARGETS snug_planner EXPORT snug LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/snug/planner.h include/snug/ask.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/snug)
install(EXPORT snug FILE snugConfig.cmake NAMESPACE snug:: DESTINATION ${package_dir})
write_basic_package_version_file(snugConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/snugConfigVersion.cmake DESTINATION ${package_dir})
