#include "train/random_weights.h"

#include <algorithm>
#include <cstring>

#include "base/bfloat16.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/float16.h"
#include "base/philox.h"
#include "formats/stored_type.h"

namespace snug {

RandomWeights::RandomWeights(const ModelSpec& spec, DType dtype, uint64_t seed, std::filesystem::path path)
    : spec_(spec), seed_(seed), path_(std::move(path)) {
  if (dtype != DType::f32 && !is_half(dtype)) throw Error("weights can be written as float32, bfloat16 or float16", "dtype");
  for (const Parameter& parameter : parameters_of(spec))
    for (int64_t layer = parameter.first_layer; layer < parameter.end_layer(spec.layers); ++layer)
      for (int64_t expert = 0; expert < std::max<int64_t>(1, parameter.experts); ++expert)
        add(parameter, layer, expert, dtype);
}

void RandomWeights::add(const Parameter& parameter, int64_t layer, int64_t expert, DType dtype) {
  const auto stacked = static_cast<int64_t>(parameter.experts > 0);
  TensorEntry entry{.name = parameter.instance(layer, expert),
                    .stored = find_stored_type(dtype == DType::f32   ? "F32"
                                               : dtype == DType::f16 ? "F16"
                                                                     : "BF16"),
                    .shape = {parameter.shape.begin() + stacked, parameter.shape.end()}};
  entry.offset = tensors_.empty() ? 0 : checked_add(tensors_.back().offset, tensors_.back().bytes);
  entry.bytes = bytes_of(dtype, entry.elements());
  by_name_.emplace(entry.name, tensors_.size());
  tensors_.push_back(std::move(entry));
  kinds_.push_back(parameter.kind);
}

const TensorEntry* RandomWeights::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void RandomWeights::read(const TensorEntry& entry, int64_t begin, std::span<std::byte> out) const {
  const size_t stream = by_name_.find(entry.name)->second;
  const DType dtype = entry.dtype();
  const int64_t size = size_of(dtype), first = begin / size, count = static_cast<int64_t>(out.size()) / size;
  const Philox random{seed_, stream};
  const ParameterKind kind = kinds_[stream];
  const bool fixed = kind == ParameterKind::norm || kind == ParameterKind::bias;
  const float start = kind == ParameterKind::norm && !spec_.norms_from_zero ? 1.0F : 0.0F;
  const auto range = static_cast<float>(spec_.initializer_range);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const float value = fixed ? start : range * random.normal(static_cast<uint64_t>(first + i));
    if (dtype == DType::f32) {
      std::memcpy(out.data() + i * 4, &value, 4);
    } else {
      const uint16_t rounded = dtype == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
      std::memcpy(out.data() + i * 2, &rounded, 2);
    }
  }
}

}  // namespace snug
