// snug export: a model, or an adapter by itself, as a GGUF file.

#include <fmt/format.h>

#include <cstdio>

#include "ask/options.h"
#include "base/error.h"
#include "cli/command_table.h"
#include "cli/commands.h"
#include "formats/gguf_export.h"
#include "formats/merge.h"
#include "recipe/bytes.h"

namespace snug::cli {

namespace {

GgufType gguf_type_named(const std::string& name) {
  const auto type = find_gguf_type(name);
  if (!type) throw UsageError("--outtype is f32, f16, bf16 or q8_0, not '" + name + "'");
  return *type;
}

GgufSummary export_adapter(const std::filesystem::path& adapter, const Options& options) {
  const auto model = options.has("model") ? std::filesystem::path(options.value("model")) : base_of(AdapterFile(adapter));
  return export_gguf_adapter(adapter, model, options.value("gguf"), gguf_type_named(options.value("outtype", "f32")));
}

GgufSummary export_model(const std::filesystem::path& model, const Options& options) {
  GgufRequest request{.model = model,
                      .adapters = adapter_list(options.values("adapter")),
                      .file = options.value("gguf"),
                      .pretokenizer = options.value("pretokenizer")};
  if (options.has("outtype")) request.type = gguf_type_named(options.value("outtype"));
  return export_gguf(request);
}

}  // namespace

int export_command(std::span<char* const> words) {
  const Options options = parse_options(words, own_flags("export"));
  if (options.positional.size() != 1) throw UsageError("what? snug export MODEL | ADAPTER --gguf FILE");
  if (options.value("gguf").empty()) throw UsageError("where to? add --gguf FILE");
  const std::filesystem::path source = options.positional.front();
  const bool adapter = std::filesystem::exists(source / "adapter_config.json");
  if (adapter && options.has("adapter"))
    throw UsageError("give the model first: snug export MODEL --adapter ADAPTER --gguf FILE");
  if (!adapter && options.has("model")) throw UsageError("--model is for adapters; " + source.string() + " is a model");
  const GgufSummary summary = adapter ? export_adapter(source, options) : export_model(source, options);
  for (const std::string& note : summary.notes) fmt::print(stderr, "{}\n", note);
  if (!adapter && !summary.tokenizer)
    fmt::print(stderr, "there is no tokenizer in {}: the file has none\n", source.string());
  fmt::print("{}: {} '{}', {} tensors, {}\n", options.value("gguf"), adapter ? "adapter for" : "model of",
             summary.architecture, summary.tensors, format_bytes(summary.bytes));
  return 0;
}

}  // namespace snug::cli
