// Several devices: what a launcher, DeepSpeed and FSDP say.

#include <fmt/format.h>

#include <algorithm>

#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "zero3.json", "ds_z2_config.json", "zero3_offload", "examples/deepspeed/ds_z3_offload_config.json".
void read_zero(Reading& reading, std::string_view name) {
  const std::string text = lower(name.substr(name.rfind('/') + 1));
  ForeignRecipe& result = reading.result();
  const auto stage = [&](char digit) {
    for (const char* form : {"zero", "zero_", "zero-", "stage", "stage_", "stage-", "_z", "ds_z", "z"})
      if (contains(text, std::string(form) + digit)) return true;
    return false;
  };
  result.sharding = stage('3')   ? Sharding::zero3
                    : stage('2') ? Sharding::zero2
                    : stage('1') ? Sharding::zero1
                                 : result.sharding;
  if (contains(text, "offload")) result.offloads = true;
}

std::string_view word_of(Sharding sharding) {
  constexpr std::string_view kWords[] = {"", "ZeRO-1", "ZeRO-2", "ZeRO-3", "FSDP"};
  return kWords[static_cast<size_t>(sharding)];
}

// A word of `fsdp`, of sharding_strategy or of reshard_after_forward: "full_shard", "auto_wrap", "SHARD_GRAD_OP", "1".
void read_strategy(FsdpWords& fsdp, std::string_view word) {
  const std::string text = lower(word);
  if (text == "shard_grad_op" || text == "2") fsdp.keeps_gathered = true;
  if (text == "no_shard" || text == "3" || contains(text, "hybrid")) fsdp.other = text;
}

// A key of fsdp_config, its prefix taken off.
void read_fsdp_key(FsdpWords& fsdp, std::string_view key, const Entry& entry) {
  const std::string text = entry.values.empty() ? "" : lower(entry.text());
  const bool on = !entry.values.empty() && !means_off(entry.text());
  if (key == "version") fsdp.version = count_of(entry.text());
  if (key == "sharding_strategy" || key == "reshard_after_forward") read_strategy(fsdp, text);
  if (key == "reshard_after_forward" && !on) fsdp.keeps_gathered = true;
  if (key == "use_orig_params") fsdp.flattens = !on;
  if (key == "backward_prefetch" || key == "backward_prefetch_policy") fsdp.gathers_ahead = text == "backward_pre";
  if (key.starts_with("backward_prefetch") && text == "backward_post") fsdp.other = text;
  if (key == "forward_prefetch" && on) fsdp.other = "forward_prefetch";
  if (key == "auto_wrap_policy" && text != "transformer_based_wrap") fsdp.other = text;
}

}  // namespace

void take_deepspeed(Reading& reading, const Entry& entry) {
  for (const Entry& inside : reading.document().entries)
    if (inside.path.starts_with(entry.path + ".") && inside.path.ends_with("zero_optimization.stage"))
      read_zero(reading, "zero" + inside.text());
  if (!entry.values.empty()) read_zero(reading, entry.values[0]);
  if (entry.kind == EntryKind::scalar && means_off(entry.text())) return reading.ignore(entry);
  const std::string_view word = word_of(reading.result().sharding);
  reading.touches(entry, fmt::format("{} over several devices: the plan is for one device that holds all of it",
                                     word.empty() ? "DeepSpeed" : word));
}

// "zero2", "multi_gpu", "configs/fsdp.yaml"
void take_accelerate(Reading& reading, const Entry& entry) {
  if (contains(lower(entry.text()), "fsdp")) reading.result().sharding = Sharding::fsdp;
  read_zero(reading, entry.text());
  const std::string_view word = word_of(reading.result().sharding);
  if (word.empty()) return reading.ignore(entry);
  reading.touches(entry, fmt::format("{} over several devices: the plan is for one device that holds all of it", word));
}

void take_fsdp(Reading& reading, const Entry& entry) {
  bool shards = false, words = false;
  FsdpWords& fsdp = reading.result().fsdp;
  for (const std::string& value : entry.values)
    for (size_t begin = 0; begin < value.size();) {  // one word or, in one text, several
      const size_t end = std::min(value.find_first_of(" ,", begin), value.size());
      const std::string word = value.substr(begin, end - begin);
      begin = end + 1;
      if (word.empty()) continue;
      shards = shards || !means_off(word);
      if (contains(lower(word), "offload")) reading.result().offloads = true;
      read_strategy(fsdp, word);
      if (lower(word) == "full_shard" || lower(word) == "shard_grad_op") words = true;
    }
  if (words) fsdp.wraps_blocks = std::ranges::any_of(entry.values, [](const auto& v) { return contains(v, "auto_wrap"); });
  if (!shards) return reading.ignore(entry);
  reading.result().sharding = Sharding::fsdp;
  reading.touches(entry, "FSDP over several devices: the plan is for one device that holds all of it");
}

// Its parts that say something about one device are read; the others belong to `fsdp`.
void take_fsdp_config(Reading& reading, const Entry& entry) {
  bool any = entry.kind == EntryKind::scalar && !means_off(entry.text());
  for (const Entry& inside : reading.document().entries) {
    if (!inside.path.starts_with(entry.path + ".")) continue;
    std::string_view leaf = inside.leaf();
    if (leaf.starts_with("fsdp_")) leaf.remove_prefix(5);
    const bool on = !inside.values.empty() && !means_off(inside.text());
    if (contains(leaf, "activation_checkpointing") && on) reading.decide("gradient_checkpointing", "true");
    if ((contains(leaf, "offload_params") || contains(leaf, "cpu_offload")) && on) reading.result().offloads = true;
    read_fsdp_key(reading.result().fsdp, leaf, inside);
    any = true;
  }
  if (!any) return reading.ignore(entry);
  reading.result().sharding = Sharding::fsdp;
  reading.touches(entry, "FSDP over several devices: the plan is for one device that holds all of it");
}

namespace {

// Keys of accelerate's settings that stand below others, "launch.fsdp_config.fsdp_offload_params"; their prefixes taken off.
void read_launched_sharding(Reading& reading, const Entry& entry, std::string_view name) {
  ForeignRecipe& result = reading.result();
  const std::string value = entry.values.empty() ? "" : lower(entry.values[0]);
  const bool below = entry.path.find("fsdp_config.") != std::string::npos;
  if (name.starts_with("fsdp_")) name.remove_prefix(5);
  if (entry.path == "launch.distributed_type") {
    if (value == "fsdp") result.sharding = Sharding::fsdp;
  } else if (below) {
    if (contains(name, "activation_checkpointing") && !means_off(value)) reading.decide("gradient_checkpointing", "true");
    if ((contains(name, "offload_params") || contains(name, "cpu_offload")) && !means_off(value)) result.offloads = true;
    read_fsdp_key(result.fsdp, name, entry);
  } else if (name == "offload_optimizer_device" || name == "offload_param_device") {
    if (!means_off(value)) result.offloads = true;
  } else if (name == "use_fsdp") {
    result.sharding = Sharding::fsdp;
  } else if (name == "zero_stage") {
    read_zero(reading, "zero" + value);
  }
}

// "0,1,2,3"; 0 for "all".
int64_t count_of_ids(std::string_view ids) {
  const bool named = !ids.empty() && ids.find_first_of("$@") == std::string_view::npos && ids != "all";
  return named ? 1 + std::count(ids.begin(), ids.end(), ',') : 0;
}

}  // namespace

void read_launcher(Reading& reading) {
  ForeignRecipe& result = reading.result();
  int64_t nodes = 1;
  for (const Entry& entry : reading.document().entries) {
    const bool launch = entry.path.starts_with("launch.");
    if (!launch && !entry.path.starts_with("env.")) continue;
    const std::string name = lower(entry.leaf());
    const std::string value = entry.values.empty() ? "" : entry.values[0];
    constexpr int64_t kMost = 1'000'000;  // of GPUs, of machines: more is no count of them
    const int64_t count = count_of(value) <= kMost ? count_of(value) : -1;
    if (name == "nproc_per_node" || name == "num_processes" || name == "num_gpus" || name == "gpus_per_node" ||
        name == "num_gpu") {
      if (count > 0) result.gpus = count;
      if (name == "num_processes" && count > 0) nodes = 0;  // it counts those of all machines
    } else if ((name == "nnodes" || name == "num_machines" || name == "num_nodes") && count > 0 && nodes != 0) {
      nodes = count;
    } else if (launch && name == "mixed_precision" && (value == "bf16" || value == "fp16")) {
      if (!reading.has("bf16") && !reading.has("fp16")) reading.decide(value, "true");
    } else if (launch && name == "include" && result.gpus == 0) {  // DeepSpeed's "localhost:0,1,2,3"
      if (value.find(':') != std::string::npos) result.gpus = count_of_ids(value);
    } else if ((name == "cuda_visible_devices" || (launch && name == "gpu_ids")) && result.gpus == 0) {
      result.gpus = count_of_ids(value);
    } else if (launch && (name == "config_file" || name == "accelerate_config" || name == "deepspeed_config_file")) {
      if (contains(lower(value), "fsdp")) result.sharding = Sharding::fsdp;
      read_zero(reading, value);
    } else if (launch) {
      read_launched_sharding(reading, entry, name);
    }
  }
  if (result.gpus > 0 && nodes > 1) result.gpus *= nodes;
  if (result.gpus > 1)
    reading.note(
        fmt::format("{} devices{}: the plan is for each one, with nothing shared out", result.gpus,
                    result.sharding == Sharding::none ? std::string() : fmt::format(" with {}", word_of(result.sharding))));
}

}  // namespace snug::dialects
