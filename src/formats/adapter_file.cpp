#include "formats/adapter_file.h"

#include <fmt/format.h>

#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "formats/elements.h"
#include "formats/file.h"
#include "model/json.h"

namespace snug {

namespace fs = std::filesystem;
namespace dom = simdjson::dom;

namespace {

constexpr std::string_view kPeftPrefix = "base_model.model.";

std::optional<dom::element> field(const dom::object& object, std::string_view name) {
  const auto found = object.at_key(name);
  return found.error() == simdjson::SUCCESS ? std::optional(found.value_unsafe()) : std::nullopt;
}

void transpose(std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> turned(values.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      turned[static_cast<size_t>(column * rows + row)] = values[static_cast<size_t>(row * columns + column)];
  values = std::move(turned);
}

fs::path weights_of(const fs::path& directory, bool mlx) {
  fs::path file = directory / (mlx ? "adapters.safetensors" : "adapter_model.safetensors");
  if (is_there(file)) return file;
  if (is_there(directory / "adapter_model.bin"))
    throw Error("holds adapter_model.bin, which is a pickle", directory.string(), "save it anew as safetensors");
  throw Error("there is no " + file.filename().string() + " here", directory.string(), "give the directory of an adapter");
}

}  // namespace

AdapterFile::AdapterFile(const fs::path& directory) : path_(directory) {
  const fs::path file = directory / "adapter_config.json";
  if (!is_there(file))
    throw Error("there is no adapter_config.json here", directory.string(), "give a directory that PEFT or snug saved");
  const std::string text = read_text_file(file, int64_t{16} << 20);
  const JsonDocument document(text, file.string());
  mlx_ = field(document.root_object(), "lora_parameters").has_value();
  if (mlx_) {
    read_mlx_config(text, file.string());
  } else {
    config_ = parse_adapter_config(text, file.string(), AdapterUse::merge);
    base_model_ = config_.base_model;
  }
  tensors_.emplace(weights_of(directory, mlx_));
  for (const TensorEntry& entry : tensors_->tensors()) mlx_ ? take_mlx(entry) : take(entry);
  check_pairs();
  if (modules_.empty() && replacements_.empty()) throw Error("the adapter is empty", directory.string());
}

void AdapterFile::read_mlx_config(const std::string& text, const std::string& where) {
  const JsonDocument document(text, where);
  const dom::object root = document.root_object();
  if (const auto type = field(root, "fine_tune_type"))
    if (const std::string word = json_string("fine_tune_type", *type, where); word != "lora")
      throw Error(fmt::format("fine_tune_type '{}' of mlx-lm is not supported", word), where, "supported: lora");
  const auto parameters = json_object("lora_parameters", *field(root, "lora_parameters"), where);
  const auto scale = field(parameters, "scale");
  if (!scale) throw Error("lora_parameters has no 'scale'", where, "this is not an adapter of mlx-lm");
  mlx_scale_ = static_cast<float>(json_number("scale", *scale, where));
  if (const auto model = field(root, "model"); model && !model->is_null()) base_model_ = json_string("model", *model, where);
}

void AdapterFile::refuse(const TensorEntry& entry, const std::string& why) const {
  throw Error(fmt::format("tensor '{}' {}", entry.name, why), tensors_->path().string());
}

void AdapterFile::take(const TensorEntry& entry) {
  const std::string_view full = entry.name;
  if (!full.starts_with(kPeftPrefix)) refuse(entry, "is not named as PEFT names an adapter's");
  std::string_view name = full.substr(kPeftPrefix.size());
  const auto cut = [&](std::string_view end) {
    if (!name.ends_with(end)) return false;
    name.remove_suffix(end.size());
    return true;
  };
  if (name.ends_with(".base_layer.weight") || name.ends_with(".base_layer.bias")) return;  // the base's own, frozen
  if (cut(".lora_A.weight")) {
    modules_[std::string(name)].a = &entry;
  } else if (cut(".lora_B.weight")) {
    modules_[std::string(name)].b = &entry;
  } else if (cut(".lora_embedding_A")) {
    modules_[std::string(name)].a = &entry;
    modules_[std::string(name)].embedding = true;
  } else if (cut(".lora_embedding_B")) {
    modules_[std::string(name)].b = &entry;
    modules_[std::string(name)].embedding = true;
  } else if (cut(".lora_magnitude_vector") || cut(".lora_magnitude_vector.weight")) {
    modules_[std::string(name)].magnitude = &entry;
  } else if (name.find(".lora_") != std::string_view::npos) {
    refuse(entry, "is of a kind of adapter that is not supported");
  } else {
    std::string plain(name);
    if (const size_t at = plain.find(".modules_to_save."); at != std::string::npos) plain.replace(at, 17, ".");
    replacements_[plain] = &entry;
  }
}

void AdapterFile::take_mlx(const TensorEntry& entry) {
  const std::string_view name = entry.name;
  if (name.ends_with(".lora_a")) {
    modules_[std::string(name.substr(0, name.size() - 7))].a = &entry;
  } else if (name.ends_with(".lora_b")) {
    modules_[std::string(name.substr(0, name.size() - 7))].b = &entry;
  } else {
    refuse(entry, "is of a kind of adapter that is not supported");
  }
}

void AdapterFile::check_pairs() const {
  for (const auto& [path, module] : modules_) {
    if (module.a == nullptr || module.b == nullptr)
      throw Error(fmt::format("half of the adapter of '{}' is missing", path), tensors_->path().string());
    for (const TensorEntry* entry : {module.a, module.b}) {
      if (entry->shape.size() != 2) refuse(*entry, "has not two dimensions");
      if (!is_floating(entry->dtype())) refuse(*entry, "is neither F32, F16 nor BF16");
    }
    const bool fits = mlx_ ? module.a->shape[1] == module.b->shape[0] : module.a->shape[0] == module.b->shape[1];
    if (!fits) refuse(*module.b, "has another rank than its partner");
    if (module.magnitude != nullptr && module.embedding) refuse(*module.magnitude, "adapts an embedding with DoRA");
    if (config_.use_dora != (module.magnitude != nullptr) && !module.embedding)
      throw Error(fmt::format("use_dora and the tensors of '{}' contradict each other", path), tensors_->path().string());
  }
}

std::vector<float> AdapterFile::read(const TensorEntry& entry, bool transposed) const {
  std::vector<float> values(static_cast<size_t>(entry.elements()));
  std::vector<std::byte> bytes(static_cast<size_t>(entry.bytes));
  tensors_->read(entry, 0, bytes);
  decode_elements(bytes, entry.dtype(), values);
  if (transposed) transpose(values, entry.shape[0], entry.shape[1]);
  return values;
}

LowRankChange AdapterFile::change_of(std::string_view module_path) const {
  const auto found = modules_.find(module_path);
  if (found == modules_.end()) throw Error(fmt::format("'{}' is not adapted", module_path), path_.string());
  const AdaptedModule& module = found->second;
  LowRankChange change;
  change.rank = module.a->shape[mlx_ ? 1 : 0];
  change.scale = mlx_ ? mlx_scale_ : static_cast<float>(config_.scale_of(module_path, std::max<int64_t>(1, change.rank)));
  // PEFT keeps A [R, in] and B [out, R] of a weight [out, in]; mlx-lm their transposes. A weight [in, out] (an embedding,
  // Conv1D) changes by the transposed product.
  const bool turned = module.embedding || config_.fan_in_fan_out;
  const TensorEntry& left = turned ? *module.a : *module.b;
  const TensorEntry& right = turned ? *module.b : *module.a;
  change.left = read(left, turned != mlx_);
  change.right = read(right, turned != mlx_);
  const bool swapped = turned != mlx_;
  change.rows = left.shape[swapped ? 1 : 0];
  change.columns = right.shape[swapped ? 0 : 1];
  if (module.magnitude != nullptr) {
    if (turned) refuse(*module.magnitude, "adapts a transposed weight with DoRA, which is not supported");
    if (module.magnitude->elements() != change.rows)
      refuse(*module.magnitude, "has another length than the weight has rows");
    change.magnitude = read(*module.magnitude, false);
  }
  return change;
}

std::vector<fs::path> adapter_list(const std::vector<std::string>& words) {
  std::vector<fs::path> list;
  for (const std::string& word : words)
    for (size_t begin = 0; begin <= word.size();) {
      const size_t end = std::min(word.find(',', begin), word.size());
      if (end > begin) list.emplace_back(word.substr(begin, end - begin));
      begin = end + 1;
    }
  return list;
}

}  // namespace snug
