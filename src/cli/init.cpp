// snug init: a random-weight checkpoint of a given configuration.

#include <fmt/format.h>

#include "base/error.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "model/catalogue.h"
#include "model/families.h"
#include "model/parameters.h"
#include "recipe/keys.h"
#include "train/initialize.h"

namespace snug::cli {

int init_command(std::span<char* const> words) {
  const Arguments arguments = parse_arguments(words, {"tokenizer="});
  if (arguments.recipe.model.empty())
    throw UsageError("which model? snug init MODEL --output-dir DIRECTORY [--bf16|--fp16] [--tokenizer DIRECTORY]");
  const ModelSpec spec = resolve_model(arguments.recipe.model);
  refuse_plan_only(spec, "trained");
  validate(arguments.recipe);
  const DType dtype = arguments.recipe.bf16 ? DType::bf16 : arguments.recipe.fp16 ? DType::f16 : DType::f32;
  initialize_checkpoint(spec, dtype, arguments.recipe.seed, arguments.recipe.output_dir, arguments.value("tokenizer"));
  fmt::print("{}: {} random parameters\n", arguments.recipe.output_dir, total_parameters(spec));
  return 0;
}

}  // namespace snug::cli
