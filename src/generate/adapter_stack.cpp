#include "generate/adapter_stack.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "run/weight_files.h"

namespace snug {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kBaseLayer = ".base_layer.weight";  // the frozen matrix that PEFT may store below an adapted head
constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight";

std::string module_of(const std::string& path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

AdapterStack::AdapterStack(const std::vector<fs::path>& directories) {
  std::set<std::string> saved;
  for (const fs::path& directory : directories) {
    AdapterConfig config = read_adapter_config(directory, AdapterUse::merge);
    if (config.use_dora)
      throw Error("DoRA is not supported here", directory.string(), "merge the adapter into the model first: snug merge");
    for (const std::string& module : config.modules_to_save)
      if (!saved.insert(module).second)
        throw Error("two adapters save the module '" + module + "' in full", directory.string(), "give one of them");
    Adapter adapter{std::move(config), Checkpoint(directory / "adapter_model.safetensors"), ranks_, 0};
    for (const TensorEntry& entry : adapter.file.tensors()) {
      const auto tensor = parse_adapter_tensor_name(entry.name);
      if (tensor && (tensor->part == AdapterPart::embedding_a || tensor->part == AdapterPart::embedding_b))
        throw Error("LoRA on embeddings is not supported here ('" + entry.name + "')", adapter.file.path().string(),
                    "merge the adapter into the model first: snug merge");
      if (tensor && tensor->part == AdapterPart::lora_a && entry.shape.size() == 2)
        adapter.ranks = std::max(adapter.ranks, entry.shape[0]);
    }
    ranks_ += adapter.ranks;
    adapters_.push_back(std::move(adapter));
  }
}

Lora AdapterStack::lora() const {
  std::set<std::string> targets, saved;
  for (const Adapter& adapter : adapters_) {
    saved.insert(adapter.config.modules_to_save.begin(), adapter.config.modules_to_save.end());
    for (const TensorEntry& entry : adapter.file.tensors())
      if (const auto tensor = parse_adapter_tensor_name(entry.name); tensor && tensor->part == AdapterPart::lora_a)
        targets.insert(module_of(tensor->module_path));
  }
  Lora lora{.r = std::max<int64_t>(1, ranks_)};  // without any: modules that are saved whole
  lora.alpha = static_cast<double>(lora.r);
  lora.target_modules.assign(targets.begin(), targets.end());
  lora.modules_to_save.assign(saved.begin(), saved.end());
  return lora;
}

// One layer's instance of a weight of the stack; false if the adapter has nothing for it.
bool AdapterStack::load_tensor(Executor& executor, const Adapter& adapter, const Weight& weight, int64_t layer,
                               const std::string& name, std::span<std::byte> staging) const {
  const TensorEntry* entry = adapter.file.find(name);
  if (entry == nullptr || entry->shape.empty()) return false;
  ElementWriter<float> out(executor.transfer(), weight.tensor, layer);
  const std::vector<int64_t>& shape = weight.parameter.shape;
  if (name.ends_with(kA)) {
    const int64_t cols = shape[1], r = std::min(entry->shape.front(), adapter.ranks);
    read_numbers(adapter.file, *entry, {r, cols}, staging,
                 [&](int64_t i, float value) { out.put(adapter.first * cols + i, value); });
  } else if (name.ends_with(kB)) {
    const int64_t cols = shape[1], r = std::min(entry->shape.back(), adapter.ranks);
    const auto scale = static_cast<float>(adapter.config.scale_of(parse_adapter_tensor_name(name)->module_path, r));
    read_numbers(adapter.file, *entry, {shape[0], r}, staging,
                 [&](int64_t i, float value) { out.put(i / r * cols + adapter.first + i % r, scale * value); });
  } else {
    read_numbers(adapter.file, *entry, shape, staging, [&](int64_t i, float value) { out.put(i, value); });
  }
  out.flush();
  return true;
}

void AdapterStack::load(Executor& executor, std::span<std::byte> staging) const {
  const Program& program = executor.program();
  for (const Adapter& adapter : adapters_) {
    std::set<std::string> used;
    for (const Weight& weight : program.weights) {
      if (!weight.adapter) continue;
      for (int64_t layer = weight.parameter.first_layer; layer < weight.parameter.end_layer(program.layers); ++layer) {
        const std::string name = "base_model.model." + weight.parameter.instance(layer);
        if (load_tensor(executor, adapter, weight, layer, name, staging)) used.insert(name);
      }
    }
    const std::string where = adapter.file.path().string();
    for (const std::string& name : used) {
      const std::string half = name.substr(0, name.size() - kA.size());
      if ((name.ends_with(kA) && !used.contains(half + std::string(kB))) ||
          (name.ends_with(kB) && !used.contains(half + std::string(kA))))
        throw Error("'" + name + "' lacks its other half", where, "the adapter's file is not complete");
    }
    for (const TensorEntry& entry : adapter.file.tensors())
      if (!used.contains(entry.name) && !entry.name.ends_with(kBaseLayer))
        throw Error("tensor '" + entry.name + "' has no place in this model", where, "give the model that it was made for");
    if (used.empty()) throw Error("the adapter has no tensors", where);
  }
}

}  // namespace snug
