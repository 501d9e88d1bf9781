// Which modules get an adapter, where the recipe leaves it open or names them all.

#include <algorithm>

#include "program/passes/lora.h"

namespace snug {

namespace {

// Latent attention, for which PEFT has no targets of its own: where queries, and keys with values, are projected up.
std::vector<std::string> latent_targets(const Program& program) {
  std::vector<std::string> targets;
  bool latent = false;
  for (const Weight& weight : program.weights) {
    latent = latent || weight.parameter.part == "key_value";
    if (weight.parameter.part == "query" || weight.parameter.part == "key_value") targets.push_back(weight.parameter.module);
  }
  return latent ? targets : std::vector<std::string>();
}

}  // namespace

std::vector<std::string> lora_targets(const Program& program, const Lora& lora) {
  if (lora.target_modules.empty()) {  // as PEFT, which adapts a fused projection whole
    for (const Weight& weight : program.weights)
      if (weight.parameter.part == "query_key_value") return {weight.parameter.module};
    if (std::vector<std::string> latent = latent_targets(program); !latent.empty()) return latent;
    return {"q_proj", "v_proj"};
  }
  if (!asks_for_all_linears(lora)) return lora.target_modules;
  std::vector<std::string> targets;
  for (const Weight& weight : program.weights)
    if (weight.parameter.kind == ParameterKind::linear && !weight.adapter &&
        std::find(targets.begin(), targets.end(), weight.parameter.module) == targets.end())
      targets.push_back(weight.parameter.module);
  return targets;
}

bool asks_for_all_linears(const Lora& lora) { return lora.target_modules == std::vector<std::string>{"all-linear"}; }

}  // namespace snug
