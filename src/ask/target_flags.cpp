#include "ask/target_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "ask/receipts.h"
#include "base/error.h"
#include "model/hub_cache.h"
#include "plan/accelerator_target.h"
#include "recipe/dialects/reading.h"
#include "report/units.h"

namespace snug {

namespace {

// As nodes of --gpus-per-node each, which reach each other by a network.
Target with_nodes(Target target, const Arguments& arguments) {
  constexpr int64_t kMost = 1024;
  if (!arguments.has("gpus-per-node")) return target;
  const std::string word = arguments.value("gpus-per-node");
  const int64_t count = dialects::count_of(word);
  if (count < 1 || count > kMost) throw UsageError("--gpus-per-node is a number of GPUs, not '" + word + "'");
  target.cost.ranks_per_node = count;
  if (target.cost.network.bytes == 0) target.cost.network = target.cost.rate(CostClass::between_ranks);
  return target;
}

// What a run that writes there may fill; none if the file system does not say.
std::optional<int64_t> free_bytes(std::filesystem::path directory) {
  std::error_code problem;
  directory = std::filesystem::absolute(directory, problem);
  while (directory.has_relative_path() && !std::filesystem::exists(directory, problem)) directory = directory.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(directory, problem);
  if (problem || space.available > static_cast<uintmax_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(space.available);
}

// What one of so many processes that train together on this machine has of it.
Target share_of_this_cpu(const Recipe& recipe, int64_t ranks) {
  Target target = this_cpu(recipe.threads);
  if (ranks == 1) return target;
  if (recipe.threads == 0) target = this_cpu(std::max<int64_t>(1, target.threads / ranks));
  target.memory_bytes /= ranks;
  return target;
}

Target this_machine(const Recipe& recipe, int64_t ranks) {
  Target target = share_of_this_cpu(recipe, ranks);
  if (recipe.memory_bytes == 0)
    target = with_disk(std::move(target), recipe);  // else of another machine, as far as is known
  const auto kept = kept_probe(target.threads);
  if (!kept) return target;
  target.cost = *kept;
  const std::string name = checkpoint_name(recipe.model);
  if (const auto correction = kept_correction(name, method_word(recipe), target.threads)) {
    target.cost.slow_down(correction->factor);
    target.cost.source +=
        fmt::format(", corrected by {} of this model (peak {:.0f} to {:.0f} % of plan)", counted(correction->runs, "run"),
                    100 * correction->least_peak, 100 * correction->most_peak);
  }
  return target;
}

Target machine_of(const Arguments& arguments, int64_t ranks_here) {
  if (!arguments.has("gpu")) return this_machine(arguments.recipe, ranks_here);
  const std::string name = arguments.value("gpu");
  const Accelerator* card = find_accelerator(name);
  if (card == nullptr)
    throw Error("there is no accelerator '" + name + "' in the catalogue", "--gpu",
                "did you mean " + nearest_accelerator(name) + "? snug gpus lists all; --memory plans for any size");
  return target_of(*card);
}

}  // namespace

Target with_disk(Target target, const Recipe& recipe) {
  target.room[static_cast<size_t>(Home::disk)] = free_bytes(recipe.output_dir);
  return target;
}

std::string method_word(const Recipe& recipe) {
  return recipe.method == Method::full ? "full" : recipe.quantize.any() ? "qlora" : "lora";
}

Target target_for(const Arguments& arguments) { return target_for(arguments, arguments.recipe.parallel.ranks); }

Target target_for(const Arguments& arguments, int64_t ranks_here) {
  return with_nodes(machine_of(arguments, ranks_here), arguments);
}

}  // namespace snug
