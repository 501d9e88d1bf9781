# CMake 3.25 does not know the system: static libraries as everywhere, programs that end in .wasm.
set(WASI 1)
set(CMAKE_EXECUTABLE_SUFFIX .wasm)
