# What cmake --install puts where, and the Debian packages that CPack makes of it. The manual page and what shells complete are printed
# by the program that was just built, so that they tell of no other.
include(GNUInstallDirs)
set(printed ${CMAKE_BINARY_DIR}/printed)
set(prints "")

# snug_print(FILE WORDS…): what the program prints for the words, as a file.
function(snug_print file)
  list(JOIN ARGN " " words)
  set(pack "")
  if(file MATCHES "\\.gz$")
    set(pack "| gzip -9n")
  endif()
  add_custom_command(OUTPUT ${printed}/${file} DEPENDS snug VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${printed}
    COMMAND sh -c "\"$0\" ${words} ${pack} > \"$1\"" $<TARGET_FILE:snug> ${printed}/${file})
  set(prints ${prints} ${printed}/${file} PARENT_SCOPE)
endfunction()

snug_print(snug.1.gz help man)
snug_print(snug.bash completion bash)
snug_print(_snug completion zsh)
snug_print(snug.fish completion fish)

# Debian asks for its own form of the changes, which points to ours; dated as the last commit, so that a build can be repeated.
execute_process(COMMAND git log -1 --format=%aD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE SNUG_DATE
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
configure_file(cmake/changelog.in ${CMAKE_BINARY_DIR}/changelog)
add_custom_command(OUTPUT ${printed}/changelog.gz DEPENDS ${CMAKE_BINARY_DIR}/changelog VERBATIM
  COMMAND ${CMAKE_COMMAND} -E make_directory ${printed}
  COMMAND sh -c "gzip -9nc \"$0\" > \"$1\"" ${CMAKE_BINARY_DIR}/changelog ${printed}/changelog.gz)
add_custom_target(shipped ALL DEPENDS ${prints} ${printed}/changelog.gz)

# The target builds what is installed and nothing else, tests and benchmarks included.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(program COMPONENT program)
install(TARGETS snug RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ${program})
install(FILES ${printed}/snug.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 ${program})
install(FILES ${printed}/snug.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME snug ${program})
install(CODE "  # Debian's packages have a folder of their own, which zsh looks for in /usr alone
  set(folder site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    set(folder vendor-completions)
  endif()
  file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/share/zsh/\${folder}\" TYPE FILE FILES \"${printed}/_snug\")" ${program})
install(FILES ${printed}/snug.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d ${program})
install(DIRECTORY docs/schema/ DESTINATION ${CMAKE_INSTALL_DATADIR}/snug/schema ${program} FILES_MATCHING PATTERN "*.json")
install(FILES LICENSE README.md CHANGELOG.md cmake/copyright ${printed}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/snug ${program})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/snug ${program} FILES_MATCHING PATTERN "*.md" PATTERN schema EXCLUDE PATTERN images EXCLUDE)
if(TARGET snug_mpi)  # found beside the program's bin, whatever the architecture
  install(TARGETS snug_mpi LIBRARY DESTINATION lib/snug COMPONENT mpi)
  install(FILES cmake/copyright ${printed}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/snug-mpi COMPONENT mpi)
  add_dependencies(shipped snug_mpi)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME snug)
set(CPACK_PACKAGE_VENDOR "snug")
set(CPACK_PACKAGE_CONTACT "${SNUG_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME snug)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS snug-mpi)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "fine-tunes language models in the memory you have
One native program, without Python: it compiles the fine-tuning step of a
model of the Hugging Face world into a fixed program, lays out every byte
before it starts, tells the peak of memory to the byte, and trains in it.
.
It also plans for GPUs that you do not have, searches the best recipe for a
memory, and explains why a run on PyTorch ran out of it.")
if(TARGET snug_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME snug-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "snug (= ${PROJECT_VERSION}), openmpi-bin")
  set(CPACK_DEBIAN_MPI_DESCRIPTION "ranks of snug on several machines
The module by which processes of snug on several machines train together,
over Open MPI.")
endif()
include(CPack)
