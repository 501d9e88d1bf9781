// snug init: a random-weight checkpoint of a given configuration.

#include <fmt/format.h>

#include "ask/arguments.h"
#include "base/error.h"
#include "cli/command_table.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/catalogue.h"
#include "model/families.h"
#include "model/parameters.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"
#include "train/initialize.h"

namespace snug::cli {

int init_command(std::span<char* const> words) {
  Terminal terminal;
  const Arguments arguments = parse_arguments(words, own_flags("init"), terminal);
  if (arguments.recipe.model.empty())
    throw UsageError(
        "which model? snug init MODEL --output-dir DIRECTORY [--bf16|--fp16] [--load-in-4bit] [--tokenizer DIRECTORY]");
  const ModelSpec spec = resolve_model(arguments.recipe.model);
  refuse_plan_only(spec, "trained");
  validate(arguments.recipe);
  const DType dtype = arguments.recipe.bf16 ? DType::bf16 : arguments.recipe.fp16 ? DType::f16 : DType::f32;
  const Recipe& recipe = arguments.recipe;
  std::string how;
  if (recipe.quantize.any()) {
    QuantizeRequest request{.model = {}, .output = recipe.output_dir, .overwrite = recipe.overwrite_output_dir};
    request.type = recipe.quantize.in_8bit ? DType::i8 : recipe.quantize.type_4bit;
    request.double_quant = recipe.quantize.double_quant;
    const QuantizeSummary made = initialize_quantized(spec, dtype, recipe.seed, request, arguments.value("tokenizer"));
    how = fmt::format(", {} tensors in {}: {}", made.quantized, request.type == DType::i8 ? "int8" : name_of(request.type),
                      format_bytes(made.bytes));
  } else {
    initialize_checkpoint(spec, dtype, recipe.seed, recipe.output_dir, arguments.value("tokenizer"));
  }
  fmt::print("{}: {} random parameters{}\n", recipe.output_dir, total_parameters(spec), how);
  return 0;
}

}  // namespace snug::cli
