#include "ask/plan_megatron.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ask/pytorch_ranks.h"
#include "base/error.h"
#include "base/file.h"
#include "eager/megatron.h"
#include "recipe/values.h"
#include "report/units.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostText = int64_t{1} << 20;

// Stages that hold alike are one line.
struct Stages {
  int64_t first = 0, last = 0;
  eager::MegatronParameters parameters;
  eager::MegatronBytes bytes;
};

std::vector<Stages> distinct_stages(const MegatronRun& run) {
  std::vector<Stages> all;
  for (int64_t stage = 0; stage < run.pipeline; ++stage) {
    const eager::MegatronBytes bytes = eager::megatron_bytes(run, stage);
    if (!all.empty() && all.back().bytes.total() == bytes.total()) {
      all.back().last = stage;
    } else {
      all.push_back({stage, stage, eager::megatron_parameters(run, stage), bytes});
    }
  }
  return all;
}

std::string text_of(const MegatronRun& run, const std::vector<Stages>& all) {
  std::string text = fmt::format("{} ranks: tensor {}, pipeline {}, context {}, expert {}, data {}{}\n\n", run.ranks,
                                 run.tensor, run.pipeline, run.context, run.expert, run.data(),
                                 run.distributed_optimizer ? ", optimizer states shared out" : "");
  text += fmt::format("{:<12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "each rank of", "parameters", "weights",
                      "gradients", "optimizer", "inputs", "together");
  for (const Stages& stages : all) {
    const std::string name = stages.first == stages.last ? fmt::format("stage {}", stages.first)
                                                         : fmt::format("stages {}-{}", stages.first, stages.last);
    text += fmt::format("{:<12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", name,
                        count_text(stages.parameters.dense + stages.parameters.experts), format_bytes(stages.bytes.weights),
                        format_bytes(stages.bytes.gradients), format_bytes(stages.bytes.optimizer),
                        format_bytes(stages.bytes.inputs), format_bytes(stages.bytes.total()));
  }
  return text +
         "\ninputs: what each chunk of layers was last given, and its gradient\n"
         "between steps PyTorch counts 20 to 320 MiB more (351 of 352 recorded runs); activations are not in it\n";
}

Json json_of(const MegatronRun& run, const std::vector<Stages>& all) {
  Json json{{"schema", 1}, {"ranks", Json::array()}};
  for (const Stages& stages : all)
    json["ranks"].push_back({{"count", run.ranks / run.pipeline * (stages.last - stages.first + 1)},
                             {"stages", {stages.first, stages.last}},
                             {"parameters", stages.parameters.dense + stages.parameters.experts},
                             {"weights", stages.bytes.weights},
                             {"gradients", stages.bytes.gradients},
                             {"optimizer", stages.bytes.optimizer},
                             {"inputs", stages.bytes.inputs},
                             {"steady_bytes", stages.bytes.total()}});
  return json;
}

}  // namespace

std::vector<std::string> megatron_plan_flags() { return {"megatron=", "vocab-size="}; }

int plan_megatron(const Arguments& arguments, Asker& asker) {
  const std::string file = arguments.value("megatron");
  const int64_t ranks = gpus_asked(arguments);
  if (ranks == 0) throw UsageError("on how many GPUs? --megatron FILE --gpus 8");
  const int64_t vocab =
      arguments.has("vocab-size") ? parse_integer("--vocab-size", arguments.value("vocab-size"), 1, int64_t{1} << 32) : 0;
  const std::string text = read_text(file, kMostText, 0, "give a script with Megatron-LM's flags");
  const MegatronRun run = read_megatron(megatron_flags(text, file), ranks, vocab, file);
  const std::vector<Stages> all = distinct_stages(run);
  const std::string answer = arguments.has("json") ? json_of(run, all).dump(2) + "\n" : text_of(run, all);
  asker.print(answer);
  return 0;
}

}  // namespace snug
