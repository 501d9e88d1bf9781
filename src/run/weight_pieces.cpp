#include "run/weight_pieces.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/float16.h"
#include "run/in_place.h"

namespace snug {

std::string former_name(const WeightPiece& piece) {
  return piece.former_end == nullptr ? "" : piece.name.substr(0, piece.name.rfind('.') + 1) + piece.former_end;
}

Tensor tensor_of(const Executor& executor, const WeightPart& part) {
  Tensor tensor = executor.program().tensor(part.tensor);
  if (part.expert != kAll) tensor.shape.erase(tensor.shape.begin());
  return tensor;
}

namespace {

bool splits_experts(const WeightPart& part) { return part.slice != nullptr && part.slice->group == RankGroup::expert; }

// Of this rank's experts, which.
int64_t own_expert(const Executor& executor, const WeightPart& part) {
  if (!splits_experts(part)) return part.expert;
  const int64_t here = executor.program().tensor(part.tensor).dim(0);
  return part.expert - here * executor.program().mesh.index(RankGroup::expert, executor.transfer().rank());
}

}  // namespace

bool is_here(const Executor& executor, const WeightPart& part) {
  if (!splits_experts(part)) return true;
  const int64_t own = own_expert(executor, part);
  return own >= 0 && own < executor.program().tensor(part.tensor).dim(0);
}

std::span<std::byte> bytes_of(const Executor& executor, const WeightPart& part) {
  const std::span<std::byte> all = InPlace::elements(executor, part.tensor, part.layer);
  if (part.expert == kAll || all.empty()) return all;
  const auto bytes = static_cast<size_t>(tensor_of(executor, part).bytes());
  return all.subspan(static_cast<size_t>(own_expert(executor, part)) * bytes, bytes);
}

int64_t begin_of(const Executor& executor, const WeightPart& part) {
  return part.expert == kAll ? 0 : own_expert(executor, part) * tensor_of(executor, part).bytes();
}

std::vector<int64_t> file_shape(const Executor& executor, const WeightPart& part) {
  std::vector<int64_t> shape;
  for (const Extent& extent : tensor_of(executor, part).shape) shape.push_back(extent.bound);
  if (part.slice != nullptr && !splits_experts(part))
    shape[part.slice->axis] = std::accumulate(part.slice->segments.begin(), part.slice->segments.end(), int64_t{0});
  return shape;
}

TensorEntry own_cut(const Executor& executor, const WeightPart& part, const TensorEntry& entry, const std::string& where) {
  if (part.slice == nullptr || splits_experts(part)) return entry;
  const auto& [group, axis, segments] = *part.slice;
  if (entry.shape != file_shape(executor, part))
    throw Error("tensor '" + entry.name + "' has another shape than the model's configuration says", where,
                "use the config.json that belongs to these weights");
  const RankMesh& mesh = executor.program().mesh;
  const int64_t ways = mesh.size(group), place = mesh.index(group, executor.transfer().rank());
  int64_t along = size_of(entry.dtype());  // bytes of one step along the axis
  for (size_t i = axis + 1; i < entry.shape.size(); ++i) along *= entry.shape[i];
  TensorEntry own = entry;
  own.shape[axis] /= ways;
  own.bytes /= ways;
  TensorCut cut{.row_bytes = along * entry.shape[axis]};
  int64_t begin = 0;
  for (const int64_t segment : segments) {
    const int64_t bytes = segment / ways * along;
    cut.stretches.push_back({begin + place * bytes, bytes});
    begin += segment * along;
  }
  own.cut = std::make_shared<const TensorCut>(std::move(cut));
  return own;
}

int64_t end_layer(const Executor& executor, const Weight& weight) {
  return weight.parameter.end_layer(executor.program().layers);
}

float element_as_float(const std::byte* bytes, DType dtype, size_t index) {
  if (dtype == DType::f32) {
    float value;
    std::memcpy(&value, bytes + index * 4, 4);
    return value;
  }
  uint16_t value;
  std::memcpy(&value, bytes + index * 2, 2);
  return dtype == DType::bf16 ? bf16_to_f32(value) : f16_to_f32(value);
}

void store_float(std::byte* bytes, DType dtype, size_t index, float value) {
  if (dtype == DType::f32) {
    std::memcpy(bytes + index * 4, &value, 4);
    return;
  }
  const uint16_t rounded = dtype == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
  std::memcpy(bytes + index * 2, &rounded, 2);
}

const Slice* slice_of(const Weight& weight) { return weight.slice ? &*weight.slice : nullptr; }

std::string file_name_of(const Weight& weight, int64_t layer, int64_t expert, Naming naming) {
  const std::string name = weight.parameter.instance(layer, expert);
  return naming == Naming::adapter ? "base_model.model." + name : name;
}

std::vector<WeightPiece> trained_pieces(const Executor& executor, Naming naming) {
  std::vector<WeightPiece> pieces;
  for (const Weight& weight : executor.program().weights) {
    if (!weight.trainable) continue;
    for_each_part(executor, weight, [&](int64_t layer, int64_t expert) {
      pieces.push_back(
          {file_name_of(weight, layer, expert, naming), {weight.tensor, layer, expert, slice_of(weight)}, weight.repeats});
    });
  }
  return pieces;
}

std::vector<WeightPiece> state_pieces(const Executor& executor) {
  std::vector<WeightPiece> pieces;
  for (const Weight& weight : executor.program().weights) {
    if (!weight.trainable) continue;
    for_each_part(executor, weight, [&](int64_t layer, int64_t expert) {
      const std::string name = weight.parameter.instance(layer, expert) + ".";
      for (const OptimizerState& state : weight.states)
        pieces.push_back(
            {name + state.name, {state.tensor, layer, expert, slice_of(weight)}, weight.repeats, name_of(state.slot)});
    });
  }
  return pieces;
}

bool is_adapter(const Executor& executor) {
  return std::any_of(executor.program().weights.begin(), executor.program().weights.end(),
                     [](const Weight& w) { return w.adapter; });
}

}  // namespace snug
