// snug merge: adapters into their base model.

#include "formats/merge.h"

#include <fmt/format.h>

#include <cstdio>

#include "ask/options.h"
#include "cli/command_table.h"
#include "cli/commands.h"
#include "model/hub_cache.h"
#include "recipe/bytes.h"

namespace snug::cli {

int merge_command(std::span<char* const> words) {
  const Options options = parse_options(words, own_flags("merge"));
  std::vector<std::string> named = options.positional;
  for (const std::string& adapter : options.values("adapter")) named.push_back(adapter);
  MergeRequest request{.adapters = adapter_list(named),
                       .output = options.value("output-dir"),
                       .overwrite = options.has("overwrite-output-dir")};
  if (request.adapters.empty())
    throw UsageError("which adapter? snug merge ADAPTER [--model DIRECTORY] --output-dir DIRECTORY");
  if (request.output.empty()) throw UsageError("where to? add --output-dir DIRECTORY");
  if (options.has("max-shard-size")) request.shard_bytes = parse_bytes(options.value("max-shard-size"));
  request.base = options.has("model") ? local_checkpoint(options.value("model"), "merging")
                                      : base_of(AdapterFile(request.adapters.front()));
  const MergeSummary summary = merge_adapters(request);
  if (summary.untied)
    fmt::print(stderr, "the head was tied to the embedding; the adapter changes one of them, so they are two tensors now\n");
  if (summary.adapter_tokenizer) fmt::print(stderr, "the tokenizer is the one in {}\n", request.adapters.back().string());
  fmt::print("{}: {} of {} tensors changed, {} replaced; {} in {} file{}\n", request.output.string(), summary.changed,
             summary.tensors, summary.replaced, format_bytes(summary.bytes), summary.files, summary.files == 1 ? "" : "s");
  return 0;
}

}  // namespace snug::cli
