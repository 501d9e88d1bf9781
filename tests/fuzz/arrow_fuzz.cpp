// Fuzzes the Arrow reader: the input is a whole file. Nothing but snug::Error may come out.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/error.h"
#include "data/arrow/arrow_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = ::memfd_create("fuzz.arrow", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  try {
    snug::arrow::ArrowReader reader(path);
    reader.select(reader.columns());
    snug::JsonValue row;
    std::string problem;
    for (int rows = 0; rows < 1000 && reader.next(row, problem) && problem.empty(); ++rows) {
    }
  } catch (const snug::Error&) {
  }
  return 0;
}
