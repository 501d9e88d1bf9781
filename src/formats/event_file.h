#pragma once
// TensorBoard's event file: records framed as TFRecord (length, masked CRC32C, bytes, masked CRC32C), each an Event in the
// protobuf encoding (tensorflow/core/util/event.proto, framework/summary.proto). Records are written whole and at once,
// without allocating.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "formats/file.h"

namespace snug {

struct EventScalar {
  std::string_view tag;  // "train/loss"
  double value = 0;      // kept as float32; NaN and infinity too
};

// CRC32C (Castagnoli) of `bytes`, not masked.
uint32_t crc32c(std::span<const std::byte> bytes);

class EventFile {
 public:
  // Creates a file with a name of its own in `directory`. Whoever reads the directory forgets what earlier files hold from
  // `first_step` on: those steps were lost, and are done again. Throws Error.
  EventFile(const std::filesystem::path& directory, int64_t first_step);

  // One event with all scalars, at most 16 of them. Throws Error.
  void write(int64_t step, std::span<const EventScalar> scalars);

  const std::filesystem::path& path() const { return path_; }

 private:
  void record(std::span<const std::byte> event);

  std::filesystem::path path_;
  UniqueFd fd_;
};

}  // namespace snug
