#pragma once
// Named tensors whose bytes are read piece by piece: those of a checkpoint, or drawn at random. Knows nothing of what they
// mean.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "formats/safetensors_header.h"

namespace snug {

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // In the order in which reading one after another reads forward.
  virtual std::span<const TensorEntry> tensors() const = 0;
  // Null if there is no such tensor.
  virtual const TensorEntry* find(std::string_view name) const = 0;
  const TensorEntry& at(std::string_view name) const;  // throws Error naming the tensor and the source

  // Fills `out` with the tensor's bytes from byte `begin` of it on. Throws Error.
  virtual void read(const TensorEntry& entry, int64_t begin, std::span<std::byte> out) const = 0;
  // Tells that these bytes of the tensor will not be read again.
  virtual void drop_behind(const TensorEntry& /*entry*/, int64_t /*begin*/, int64_t /*bytes*/) const {}

  // What errors name: the source, and a tensor of it with its file.
  virtual const std::filesystem::path& path() const = 0;
  virtual std::string label_of(const TensorEntry& entry) const = 0;
};

}  // namespace snug
