#pragma once
// Which snug this is: CMakeLists.txt says it once, for the program, what it writes, the library and the packages.

namespace snug {

extern const char* const kVersion;  // "MAJOR.MINOR.PATCH"

}  // namespace snug
