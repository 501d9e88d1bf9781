#pragma once
// Writes one GGUF file, version 3, as a stream: keys and tensors are named beforehand, the tensors' bytes follow in order
// and nothing is held back in memory (ggml-org/ggml, docs/gguf.md). Knows the format, not what models need.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/file.h"

namespace snug {

// Numbers are ggml's.
enum class GgufType : uint32_t { f32 = 0, f16 = 1, q8_0 = 8, bf16 = 30 };

constexpr int64_t kQ8Block = 32;  // elements that share a scale

// Bytes of a row of `elements`; for q8_0 they must be whole blocks.
int64_t gguf_row_bytes(GgufType type, int64_t elements);

// Rounds to nearest as ggml's reference does; q8_0: blocks of 32 with the largest magnitude at 127.
void encode_gguf(std::span<const float> values, GgufType type, std::span<std::byte> out);

using GgufValue =
    std::variant<bool, uint32_t, float, std::string, std::vector<std::string>, std::vector<float>, std::vector<int32_t>>;
using GgufKeys = std::vector<std::pair<std::string, GgufValue>>;

struct GgufTensor {
  std::string name;
  GgufType type = GgufType::f32;
  std::vector<int64_t> shape;  // row-major, as everywhere here; the file says it backwards

  int64_t bytes() const;
};

class GgufWriter {
 public:
  // Creates `path` and writes everything before the tensors' data. Throws Error: two keys or tensors of one name, a size
  // out of range, or what the system says.
  GgufWriter(std::filesystem::path path, const GgufKeys& keys, std::vector<GgufTensor> tensors);

  // The next bytes of the next tensor; a chunk ends within a tensor or with it. Throws Error if there are too many.
  void write(std::span<const std::byte> bytes);

  // Flushes to the disk. Throws Error if bytes are missing.
  void finish();

  int64_t file_bytes() const { return file_bytes_; }

 private:
  void skip_finished();
  void pad(int64_t bytes);

  std::filesystem::path path_;
  UniqueFd fd_;
  std::vector<GgufTensor> tensors_;
  size_t current_ = 0;
  int64_t written_ = 0;  // of the current tensor
  int64_t file_bytes_ = 0;
};

}  // namespace snug
