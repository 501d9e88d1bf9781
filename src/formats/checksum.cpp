#include "formats/checksum.h"

#define XXH_STATIC_LINKING_ONLY  // the state's size, so that it needs no malloc of the library's own
#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "formats/file.h"

namespace snug {

struct Checksum::State {
  XXH3_state_t xxh3;  // 64-byte aligned by its declaration
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
  if (XXH3_64bits_reset(&state_->xxh3) != XXH_OK) throw Error("the checksum cannot be started");
}
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;
Checksum::~Checksum() = default;

void Checksum::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->xxh3); }

FileSum checksum_file(const std::filesystem::path& path) {
  constexpr int64_t kBuffer = int64_t{1} << 20;
  const UniqueFd fd = open_to_read(path);
  const int64_t bytes = file_bytes(fd.get(), path);
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(bytes, kBuffer)));
  Checksum checksum;
  for (int64_t offset = 0; offset < bytes;) {
    const auto part = std::span(buffer).first(static_cast<size_t>(std::min(kBuffer, bytes - offset)));
    read_at(fd.get(), offset, part, path);
    checksum.update(part);
    offset += static_cast<int64_t>(part.size());
  }
  return {bytes, checksum.value()};
}

}  // namespace snug
