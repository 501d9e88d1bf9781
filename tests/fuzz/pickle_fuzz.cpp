// Fuzz target: pickles, from memory and from a file. Whatever comes in, the answer is a value or an Error, and both ways
// agree.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "../formats/support_pickle.h"
#include "base/error.h"

namespace {

// The kind of the value, or the problem.
template <class Read>
std::string outcome(Read read) {
  snug::KeepingBuilder builder;
  try {
    return std::to_string(static_cast<int>(read(builder).kind()));
  } catch (const snug::Error& error) {
    return error.problem();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = ::memfd_create("fuzz.pickle", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::string from_memory =
      outcome([&](snug::PickleBuilder& builder) { return snug::read_pickle(bytes, "fuzz", builder); });
  const std::string from_file =
      outcome([&](snug::PickleBuilder& builder) { return snug::read_pickle(std::filesystem::path(path), builder); });
  if (from_memory != from_file) std::abort();
  return 0;
}
