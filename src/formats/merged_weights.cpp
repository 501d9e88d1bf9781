#include "formats/merged_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "formats/elements.h"

namespace snug {

namespace {

constexpr int64_t kReadAtOnce = int64_t{4} << 20;  // bytes
constexpr std::string_view kHead = "lm_head.weight";

// Names that an adapter's path may have in the checkpoint: GPT-2's files leave "transformer." out, other models' "model.".
std::vector<std::string> spellings(const std::string& name) {
  std::vector<std::string> list = {name, "model." + name, "transformer." + name};
  for (const std::string_view prefix : {"model.", "transformer."})
    if (name.starts_with(prefix)) list.push_back(name.substr(prefix.size()));
  return list;
}

bool is_embedding(std::string_view name) {
  return name == "embed_tokens.weight" || name.ends_with(".embed_tokens.weight") || name == "wte.weight" ||
         name.ends_with(".wte.weight");
}

// row_out [columns] = the sum over rank of left * right, in the order of rank.
void product_row(const LowRankChange& change, int64_t row, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0F);
  const size_t columns = out.size();
  for (int64_t k = 0; k < change.rank; ++k) {
    const float factor = change.left[static_cast<size_t>(row * change.rank + k)];
    const float* right = change.right.data() + static_cast<size_t>(k) * columns;
    for (size_t i = 0; i < columns; ++i) out[i] += factor * right[i];
  }
}

}  // namespace

int64_t MergedTensor::row_elements() const {
  int64_t count = 1;
  for (size_t i = 1; i < shape.size(); ++i) count = checked_mul(count, shape[i]);
  return count;
}

int64_t MergedTensor::row_bytes() const { return checked_mul(row_elements(), size_of(dtype)); }
int64_t MergedTensor::bytes() const { return checked_mul(rows(), row_bytes()); }

MergedWeights::MergedWeights(const Checkpoint& base, std::span<const AdapterFile> adapters, bool tied)
    : base_(base), tied_(tied) {
  const TensorEntry* head = base.find(kHead);
  for (const TensorEntry& entry : base.tensors()) {
    if (tied && &entry == head) continue;  // a copy that loaders pass over
    tensors_.push_back({entry.name, entry.dtype(), entry.shape, &base, &entry, {}});
  }
  for (const AdapterFile& adapter : adapters) apply(adapter);
  for (const MergedTensor& tensor : tensors_) {
    changed_ += tensor.changes.empty() ? 0 : 1;
    replaced_ += tensor.file == &base_ ? 0 : 1;
  }
}

const MergedTensor* MergedWeights::find(std::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const MergedTensor& t) { return t.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

// The head becomes a tensor of its own, for the moment equal to the embedding.
void MergedWeights::untie() {
  if (!tied_ || untied_) return;
  const auto embedding =
      std::find_if(tensors_.begin(), tensors_.end(), [](const MergedTensor& t) { return is_embedding(t.name); });
  if (embedding == tensors_.end()) return;
  MergedTensor head = *embedding;
  head.name = kHead;
  tensors_.insert(embedding + 1, std::move(head));
  untied_ = true;
}

size_t MergedWeights::place_of(const std::string& name, const AdapterFile& adapter) {
  if (name == kHead || is_embedding(name)) untie();
  for (const std::string& spelling : spellings(name))
    if (const MergedTensor* tensor = find(spelling)) return static_cast<size_t>(tensor - tensors_.data());
  throw Error(fmt::format("the adapter changes '{}', which the model does not have", name), adapter.path().string(),
              "give the model that it was trained on");
}

void MergedWeights::apply(const AdapterFile& adapter) {
  for (const auto& [name, entry] : adapter.replacements()) {
    MergedTensor& tensor = tensors_[place_of(name, adapter)];
    const bool resized = (is_embedding(tensor.name) || tensor.name == kHead) && entry->shape.size() == 2 &&
                         tensor.shape.size() == 2 && entry->shape[1] == tensor.shape[1];
    if (entry->shape != tensor.shape && !resized)
      throw Error(fmt::format("tensor '{}' has another shape than the model's", entry->name), adapter.path().string(),
                  "give the model that it was trained on");
    if (!is_floating(entry->dtype()) || !is_floating(tensor.dtype))
      throw Error(fmt::format("tensor '{}' is neither F32, F16 nor BF16", name), adapter.path().string());
    tensor.file = &adapter.tensors();
    tensor.entry = entry;
    tensor.shape = entry->shape;
    tensor.changes.clear();
  }
  for (const auto& [path, module] : adapter.modules()) {
    MergedTensor& tensor = tensors_[place_of(path + ".weight", adapter)];
    const bool turned = module.embedding || adapter.config().fan_in_fan_out, mlx = adapter.is_mlx();
    const std::vector<int64_t> in = {module.a->shape[mlx ? 0 : 1]}, out = {module.b->shape[mlx ? 1 : 0]};
    const std::vector<int64_t> shape = turned ? std::vector{in[0], out[0]} : std::vector{out[0], in[0]};
    if (tensor.shape != shape)
      throw Error(fmt::format("the adapter of '{}' is for a weight [{}], the model's is [{}]", path, fmt::join(shape, ", "),
                              fmt::join(tensor.shape, ", ")),
                  adapter.path().string(), "give the model that it was trained on");
    if (!is_floating(tensor.dtype))
      throw Error(fmt::format("weight '{}' is {}, not F32, F16 or BF16", tensor.name, name_of(tensor.dtype)),
                  base_.path().string(), "merge into the model before it was quantized");
    tensor.changes.push_back({&adapter, path});
  }
}

MergedReader::MergedReader(const MergedTensor& tensor) : tensor_(tensor) {
  for (const MergedTensor::Change& change : tensor.changes) changes_.push_back(change.adapter->change_of(change.module));
}

void MergedReader::read(int64_t row, std::span<std::byte> out) {
  const DType stored = tensor_.entry->dtype();
  if (changes_.empty() && stored == tensor_.dtype) {
    tensor_.file->read(*tensor_.entry, row * tensor_.row_bytes(), out);
    tensor_.file->drop_behind(*tensor_.entry, row * tensor_.row_bytes(), static_cast<int64_t>(out.size()));
    return;
  }
  const size_t elements = out.size() / static_cast<size_t>(size_of(tensor_.dtype));
  const auto bytes = static_cast<int64_t>(elements) * size_of(stored);
  const int64_t begin = row * tensor_.row_elements() * size_of(stored);
  std::vector<std::byte> raw(static_cast<size_t>(bytes));
  tensor_.file->read(*tensor_.entry, begin, raw);
  tensor_.file->drop_behind(*tensor_.entry, begin, bytes);
  values_.resize(elements);
  decode_elements(raw, stored, values_);
  change(row, values_);
  encode_elements(values_, tensor_.dtype, out);
}

void MergedReader::change(int64_t row, std::span<float> values) const {
  const auto columns = static_cast<size_t>(tensor_.row_elements());
  if (columns == 0) return;
  std::vector<float> product(columns);
  for (size_t begin = 0; begin < values.size(); begin += columns) {
    const int64_t at = row + static_cast<int64_t>(begin / columns);
    const std::span<float> weight = values.subspan(begin, columns);
    for (const LowRankChange& change : changes_) {
      product_row(change, at, product);
      for (size_t i = 0; i < columns; ++i) weight[i] += change.scale * product[i];
      if (change.magnitude.empty()) continue;
      double square = 0;
      for (const float value : weight) square += static_cast<double>(value) * static_cast<double>(value);
      const auto factor =
          static_cast<float>(static_cast<double>(change.magnitude[static_cast<size_t>(at)]) / std::sqrt(square));
      for (float& value : weight) value *= factor;
    }
  }
}

int64_t rows_at_once(const MergedTensor& tensor) {
  return std::clamp<int64_t>(kReadAtOnce / std::max<int64_t>(1, tensor.row_bytes()), 1, std::max<int64_t>(1, tensor.rows()));
}

}  // namespace snug
