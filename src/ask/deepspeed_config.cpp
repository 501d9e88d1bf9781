#include "ask/deepspeed_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

bool is_true(const Json& zero, const char* key, bool otherwise) {
  return zero.contains(key) && zero[key].is_boolean() ? zero[key].get<bool>() : otherwise;
}

DeepSpeedSize size_of(const Json& zero, const std::string& key, const std::string& path) {
  DeepSpeedSize size;
  if (!zero.contains(key)) return size;
  const Json& value = zero[key];
  size.is_auto = value == "auto";
  if (value.is_number() && value.get<double>() >= 0 && value.get<double>() < 1e15)
    size.elements = static_cast<int64_t>(value.get<double>());
  else if (!size.is_auto)
    throw Error("zero_optimization." + key + " is a number of elements", path);
  return size;
}

bool offloads(const Json& zero, const char* key) {
  if (!zero.contains(key) || !zero[key].is_object()) return false;
  return zero[key].value("device", "cpu") != "none";
}

// engine.py _configure_basic_optimizer: FusedAdam, unless PyTorch's own is asked for
std::optional<bool> own_adam(const Json& whole) {
  if (!whole.contains("optimizer") || !whole["optimizer"].is_object()) return std::nullopt;
  const Json& optimizer = whole["optimizer"];
  const bool adam = optimizer.contains("type") && (optimizer["type"] == "AdamW" || optimizer["type"] == "Adam");
  const bool of_torch =
      optimizer.contains("params") && optimizer["params"].is_object() && is_true(optimizer["params"], "torch_adam", false);
  return adam ? std::optional(!of_torch) : std::nullopt;
}

}  // namespace

DeepSpeedConfig read_deepspeed_config(const std::string& path) {
  const Json whole = Json::parse(read_text(path, int64_t{1} << 20, 0, "a DeepSpeed configuration is small"), nullptr, false);
  if (whole.is_discarded() || !whole.is_object() || !whole.contains("zero_optimization") ||
      !whole["zero_optimization"].is_object())
    throw Error("this is no DeepSpeed configuration", path, "one with zero_optimization, such as {\"stage\": 2}");
  const Json& zero = whole["zero_optimization"];
  DeepSpeedConfig config;
  if (zero.contains("stage") && zero["stage"].is_number_integer()) config.stage = zero["stage"].get<int64_t>();
  if (config.stage < 0 || config.stage > 3) throw Error("zero_optimization.stage is 0, 1, 2 or 3", path);
  config.bucket = size_of(zero, "reduce_bucket_size", path);
  config.prefetch = size_of(zero, "stage3_prefetch_bucket_size", path);
  config.persistent = size_of(zero, "stage3_param_persistence_threshold", path);
  config.most_live = size_of(zero, "stage3_max_live_parameters", path);
  config.reuse = size_of(zero, "stage3_max_reuse_distance", path);
  config.sub_group = size_of(zero, "sub_group_size", path);
  config.overlaps = is_true(zero, "overlap_comm", config.stage == 3);
  config.contiguous = is_true(zero, "contiguous_gradients", true);
  config.own_adam = own_adam(whole);
  config.offloads = offloads(zero, "offload_optimizer") || offloads(zero, "offload_param");
  return config;
}

}  // namespace snug
