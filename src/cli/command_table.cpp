#include "cli/command_table.h"

#include <algorithm>

#include "ask/answers.h"
#include "cli/commands.h"

namespace snug::cli {

namespace {

std::vector<Command> make_table() {
  constexpr bool kKeys = true;
  return {{"plan", plan_command, Names::model, plan_flags(), kKeys},
          {"fit", fit_command, Names::model, fit_flags(), kKeys},
          {"explain", explain_command, Names::file, explain_flags(), kKeys},
          {"watch", watch_command, Names::process, {"json", "interval=", "count="}},
          {"data", data_command, Names::file, {"rows=", "ids"}, kKeys},
          {"train", train_command, Names::model, {"trace=", "max-memory="}, kKeys},
          {"generate",
           generate_command,
           Names::model,
           {"json", "prompt=", "chat=", "max-new-tokens=", "temperature=", "top-p=", "top-k=", "stop=", "adapter="},
           kKeys},
          {"merge",
           merge_command,
           Names::directory,
           {"model=", "adapter=", "output-dir=", "max-shard-size=", "overwrite-output-dir"}},
          {"quantize",
           quantize_command,
           Names::directory,
           {"output-dir=", "bnb-4bit-quant-type=", "bnb-4bit-use-double-quant=", "load-in-8bit",
            "max-shard-size=", "overwrite-output-dir"}},
          {"export", export_command, Names::directory, {"gguf=", "model=", "adapter=", "outtype=", "pretokenizer="}},
          {"init", init_command, Names::model, {"tokenizer="}, kKeys},
          {"models", models_command, Names::model, catalogue_flags()},
          {"gpus", gpus_command, Names::accelerator, catalogue_flags()},
          {"measure",
           measure_command,
           Names::nothing,
           {"gpu=", "memory=", "gpus=", "synthetic", "steps=", "json=", "snapshot="}},
          {"probe", probe_command, Names::nothing, {"threads="}},
          {"completion", completion_command, Names::shell},
          {"help", help_command, Names::command}};
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> table = make_table();
  return table;
}

const Command* find_command(std::string_view name) {
  const auto found = std::ranges::find(commands(), name, &Command::name);
  return found == commands().end() ? nullptr : &*found;
}

const std::vector<std::string>& own_flags(std::string_view command) { return find_command(command)->flags; }

}  // namespace snug::cli
