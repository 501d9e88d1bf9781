#include "cli/deepspeed_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace snug::cli {

namespace {

using Json = nlohmann::ordered_json;

bool is_true(const Json& zero, const char* key, bool otherwise) {
  return zero.contains(key) && zero[key].is_boolean() ? zero[key].get<bool>() : otherwise;
}

bool offloads(const Json& zero, const char* key) {
  if (!zero.contains(key) || !zero[key].is_object()) return false;
  return zero[key].value("device", "cpu") != "none";
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
  if (zero.contains("reduce_bucket_size")) {
    const Json& size = zero["reduce_bucket_size"];
    config.bucket_is_auto = size == "auto";
    if (size.is_number() && size.get<double>() >= 1 && size.get<double>() < 1e15)
      config.bucket_elements = static_cast<int64_t>(size.get<double>());
    else if (!config.bucket_is_auto)
      throw Error("zero_optimization.reduce_bucket_size is a number of elements", path);
  }
  config.overlaps = is_true(zero, "overlap_comm", config.stage == 3);
  config.contiguous = is_true(zero, "contiguous_gradients", true);
  config.offloads = offloads(zero, "offload_optimizer") || offloads(zero, "offload_param");
  return config;
}

}  // namespace snug::cli
