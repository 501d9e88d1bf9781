#pragma once
// The header of a safetensors file: which tensors it holds, and where. Every rule of the format is checked, so that what
// comes out can be trusted with offsets (huggingface/safetensors, README and tensor.rs). Knows text, not files.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "formats/stored_type.h"
#include "formats/tensor_cut.h"

namespace snug {

struct TensorEntry {
  std::string name;
  const StoredType* stored = nullptr;  // never null once parsed
  std::vector<int64_t> shape;          // empty: one element
  int file = 0;                        // index of the shard
  int64_t offset = 0;                  // from the start of the data in a header, from the start of the file in a Checkpoint
  int64_t bytes = 0;
  std::shared_ptr<const TensorCut> cut = {};  // of a part of the file's tensor, whose shape and bytes these are; null: whole

  int64_t elements() const;
  DType dtype() const;  // throws Error for a type that can be listed but not used
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their offsets
  std::map<std::string, std::string> metadata;
};

constexpr int64_t kLargestSafetensorsHeader = 100'000'000;  // bytes

// `json`: the header's text; `data_bytes`: size of the data that follows it. Throws Error: not JSON, duplicate names,
// unknown dtype, shape × dtype ≠ bytes, holes, overlaps, data left over or missing.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes, const std::string& where);

// The header's text (padded with spaces so that the data starts at a multiple of 8) for tensors that follow one another in
// this order. Offsets are taken from `bytes`.
std::string format_safetensors_header(const std::vector<TensorEntry>& tensors,
                                      const std::map<std::string, std::string>& metadata);

}  // namespace snug
