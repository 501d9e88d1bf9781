#pragma once
// The tensors of a model that was never trained, drawn when they are read: linears, embedding and head from N(0,
// initializer_range), norms one, biases zero. The same for the same seed, however they are read.

#include <map>
#include <string>
#include <vector>

#include "formats/tensor_source.h"
#include "model/model_spec.h"
#include "model/parameters.h"

namespace snug {

class RandomWeights final : public TensorSource {
 public:
  // `dtype`: f32, bf16 or f16. `path`: what errors name.
  RandomWeights(const ModelSpec& spec, DType dtype, uint64_t seed, std::filesystem::path path);

  std::span<const TensorEntry> tensors() const override { return tensors_; }
  const TensorEntry* find(std::string_view name) const override;
  // Whole elements.
  void read(const TensorEntry& entry, int64_t begin, std::span<std::byte> out) const override;
  const std::filesystem::path& path() const override { return path_; }
  std::string label_of(const TensorEntry& entry) const override { return path_.string() + ": " + entry.name; }

 private:
  void add(const Parameter& parameter, int64_t layer, int64_t expert, DType dtype);

  const ModelSpec& spec_;
  uint64_t seed_;
  std::filesystem::path path_;
  std::vector<TensorEntry> tensors_;
  std::vector<ParameterKind> kinds_;                    // of tensors_
  std::map<std::string, size_t, std::less<>> by_name_;  // into tensors_; a tensor draws from the stream of its place
};

}  // namespace snug
