// snug quantize: a checkpoint of numbers as one of bitsandbytes' codes.

#include <fmt/format.h>

#include <cstdio>

#include "ask/options.h"
#include "cli/command_table.h"
#include "cli/commands.h"
#include "formats/quantize_checkpoint.h"
#include "model/hub_cache.h"
#include "recipe/bytes.h"

namespace snug::cli {

namespace {

DType code_type_named(const std::string& name) {
  if (name == "nf4") return DType::nf4;
  if (name == "fp4") return DType::fp4;
  throw UsageError("--bnb-4bit-quant-type is nf4 or fp4, not '" + name + "'");
}

bool truth(const std::string& flag, const std::string& word) {
  if (word == "true" || word == "false") return word == "true";
  throw UsageError("--" + flag + " is true or false, not '" + word + "'");
}

}  // namespace

int quantize_command(std::span<char* const> words) {
  const Options options = parse_options(words, own_flags("quantize"));
  if (options.positional.size() != 1) throw UsageError("which model? snug quantize MODEL --output-dir DIRECTORY");
  if (options.value("output-dir").empty()) throw UsageError("where to? add --output-dir DIRECTORY");
  QuantizeRequest request{.model = local_checkpoint(options.positional.front(), "quantizing"),
                          .output = options.value("output-dir"),
                          .type = code_type_named(options.value("bnb-4bit-quant-type", "nf4")),
                          .overwrite = options.has("overwrite-output-dir")};
  const char* const nested = "bnb-4bit-use-double-quant";
  request.double_quant = truth(nested, options.value(nested, "true"));
  if (options.has("load-in-8bit")) {
    if (options.has("bnb-4bit-quant-type") || options.has(nested))
      throw UsageError("--load-in-8bit makes 8 bits, the flags of bnb-4bit 4: choose one");
    request.type = DType::i8;
  }
  if (options.has("max-shard-size")) request.shard_bytes = parse_bytes(options.value("max-shard-size"));
  const QuantizeSummary summary = quantize_checkpoint(request);
  fmt::print("{}: {} of {} tensors quantized to {}; {} of {} in {} file{}\n", request.output.string(), summary.quantized,
             summary.tensors, request.type == DType::i8 ? "int8" : name_of(request.type), format_bytes(summary.bytes),
             format_bytes(summary.bytes_before), summary.files, summary.files == 1 ? "" : "s");
  return 0;
}

}  // namespace snug::cli
