#pragma once
// The tensors of a Hugging Face checkpoint: one safetensors file, or a directory with `model.safetensors` or with
// `model.safetensors.index.json` and its shards. Only headers are read and kept; data is read on request with pread into
// memory that the caller owns, never mapped. Knows nothing of what the tensors mean.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/file.h"
#include "formats/tensor_source.h"

namespace snug {

class Checkpoint final : public TensorSource {
 public:
  // `path`: a safetensors file, an index, or a directory. Checks every header and the index against the shards. Throws
  // Error.
  explicit Checkpoint(const std::filesystem::path& path);

  // In the order of shards and offsets, so that reading one after another reads forward. `offset` counts from the file's
  // start.
  std::span<const TensorEntry> tensors() const override { return tensors_; }
  const TensorEntry* find(std::string_view name) const override;
  void read(const TensorEntry& entry, int64_t begin, std::span<std::byte> out) const override;
  // Tells the kernel, so that they stop filling the page cache.
  void drop_behind(const TensorEntry& entry, int64_t begin, int64_t bytes) const override;

  int64_t data_bytes() const;  // of all tensors
  const std::filesystem::path& path() const override { return path_; }
  std::string label_of(const TensorEntry& entry) const override;
  std::span<const std::filesystem::path> files() const { return paths_; }

 private:
  void open_shard(const std::filesystem::path& file);
  void open_index(const std::filesystem::path& index);
  void index_names();

  std::filesystem::path path_;
  std::vector<std::filesystem::path> paths_;  // one for each shard
  std::vector<UniqueFd> fds_;                 // likewise
  std::vector<TensorEntry> tensors_;
  std::vector<size_t> by_name_;  // indices into tensors_, sorted by name
};

}  // namespace snug
