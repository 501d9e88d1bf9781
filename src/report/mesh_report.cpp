#include "report/mesh_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>

#include "recipe/bytes.h"
#include "recipe/keys.h"
#include "report/units.h"

namespace snug {

namespace {

// "tp 8, pp 4, 32 batches, ZeRO 1 in 4 copies, blocks recomputed"
std::string mesh_words(const Recipe& recipe) {
  const Parallel& parallel = recipe.parallel;
  const RankMesh mesh = parallel.mesh();
  std::string words;
  const auto add = [&](const std::string& word) { words += (words.empty() ? "" : ", ") + word; };
  const auto split = [&](const char* name, int64_t ways) {
    if (ways > 1) add(fmt::format("{} {}", name, ways));
  };
  split("tp", mesh.tensor);
  split(parallel.context_comm == ContextComm::p2p ? "cp p2p" : "cp", mesh.context);
  split("pp", mesh.pipeline);
  split("vpp", mesh.chunks);
  split("ep", mesh.expert);
  split("dp", mesh.batches());
  if (parallel.zero_stage > 0) add(fmt::format("ZeRO {}", parallel.zero_stage));
  if (parallel.replicas > 1) words += fmt::format(" in {} copies", parallel.replicas);
  if (recipe.gradient_checkpointing) add("blocks recomputed");
  return words;
}

// All that is not as usual: keys with their values.
std::vector<std::pair<std::string, std::string>> settings_of(const Recipe& recipe) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const Key& key : recipe_keys()) {
    const bool elsewhere =
        key.name == "model_name_or_path" || key.name == "num_processes" || key.name == "memory" || key.name == "threads";
    if (!elsewhere && key.get && key.get(recipe) != key.default_text()) settings.emplace_back(key.name, key.get(recipe));
  }
  return settings;
}

// How such a run is started.
std::string launch_of(const ModelSpec& model, const Target& target, const Recipe& recipe) {
  const int64_t ranks = recipe.parallel.ranks, node = target.cost.ranks_per_node;
  std::string run = "snug train " + model.name;
  for (const auto& [key, value] : settings_of(recipe)) {
    std::string flag = key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    run += fmt::format(" --{} {}", flag, value);
  }
  if (node == 0 || ranks <= node) return fmt::format("{} --num-processes {}", run, ranks);
  return fmt::format("srun --nodes {} --ntasks-per-node {} {}", (ranks + node - 1) / node, node, run);
}

nlohmann::ordered_json json_of(const ModelSpec& model, const Target& target, const MeshChoice& choice) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  for (const auto& [key, value] : settings_of(choice.recipe)) settings[key] = value;
  return {{"mesh", mesh_words(choice.recipe)},
          {"settings", std::move(settings)},
          {"peak_bytes", choice.peak_bytes},
          {"step_seconds", choice.step_seconds},
          {"launch", launch_of(model, target, choice.recipe)}};
}

std::string row(const MeshChoice& choice) {
  return fmt::format("  {:<52} {:>10} {:>12} {:>12}\n", mesh_words(choice.recipe), format_bytes(choice.peak_bytes),
                     seconds_text(choice.step_seconds), format_bytes(choice.sent_bytes));
}

}  // namespace

std::string mesh_text(const ModelSpec& model, const Target& target, int64_t budget_bytes, const MeshAnswer& answer) {
  const std::string tried = fmt::format("{} ways to share it tried in {:.1f} s", answer.tried, answer.seconds);
  if (answer.fastest.empty() && !answer.least)
    return fmt::format("does not fit: weights and gradients alone are more than {} on every rank; {}\n",
                       format_bytes(budget_bytes), tried);
  if (answer.fastest.empty())
    return fmt::format("does not fit: {} at least of {}; {}\n  {}\n", format_bytes(answer.least->peak_bytes),
                       format_bytes(budget_bytes), tried, mesh_words(answer.least->recipe));
  const MeshChoice& best = answer.fastest.front();
  std::string text = fmt::format("fits: {} of {}, {} a step of {} sequences: {}\n{}; of snug's own engine, by {}\n\n",
                                 format_bytes(best.peak_bytes), format_bytes(budget_bytes), seconds_text(best.step_seconds),
                                 answer.step_rows, mesh_words(best.recipe), tried, target.cost.source);
  text += fmt::format("  {:<52} {:>10} {:>12} {:>12}\n", "the fastest", "a rank", "a step", "sent");
  for (const MeshChoice& choice : answer.fastest) text += row(choice);
  text += "\nlaunch it";
  if (target.kind != TargetKind::cpu) text += " (on CPUs so far: snug has no kernels for GPUs that train yet)";
  return text + fmt::format("\n  {}\n", launch_of(model, target, best.recipe));
}

std::string mesh_json(const ModelSpec& model, const Target& target, int64_t budget_bytes, const MeshAnswer& answer) {
  nlohmann::ordered_json json = {
      {"schema", 1},
      {"model", {{"name", model.name}, {"layers", model.layers}}},
      {"device", {{"name", target.name}, {"memory_bytes", target.memory_bytes}}},
      {"budget_bytes", budget_bytes},
      {"fits", !answer.fastest.empty()},
      {"processes_per_node", target.cost.ranks_per_node},
      {"step_sequences", answer.step_rows},
      {"meshes", nlohmann::ordered_json::array()},
      {"least", answer.least && answer.fastest.empty() ? json_of(model, target, *answer.least) : nlohmann::ordered_json()},
      {"tried", answer.tried},
      {"seconds", answer.seconds}};
  for (const MeshChoice& choice : answer.fastest) {
    json["meshes"].push_back(json_of(model, target, choice));
    json["meshes"].back()["sent_bytes"] = choice.sent_bytes;
  }
  return json.dump(2);
}

}  // namespace snug
