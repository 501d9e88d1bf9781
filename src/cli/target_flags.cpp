#include "cli/target_flags.h"

#include "base/error.h"
#include "plan/accelerator_target.h"

namespace snug::cli {

Target target_for(const Arguments& arguments) {
  const auto gpu = arguments.flags.find("gpu");
  if (gpu == arguments.flags.end()) return this_cpu(arguments.recipe.threads);
  const Accelerator* card = find_accelerator(gpu->second);
  if (card == nullptr)
    throw Error("there is no accelerator '" + gpu->second + "' in the catalogue", "--gpu",
                "did you mean " + nearest_accelerator(gpu->second) + "? snug gpus lists all; --memory plans for any size");
  return target_of(*card);
}

}  // namespace snug::cli
