#include "ask/given_adapter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "formats/adapter.h"
#include "recipe/keys.h"

namespace snug {

namespace {

struct KeyOfAdapter {
  const char* name;
  bool must_agree;  // targets may be said in other words, which loading compares; dropout is of the training to come
  void (*take)(Lora& lora, const Lora& given);
};

constexpr KeyOfAdapter kKeys[] = {
    {"lora_r", true, [](Lora& lora, const Lora& given) { lora.r = given.r; }},
    {"lora_alpha", true, [](Lora& lora, const Lora& given) { lora.alpha = given.alpha; }},
    {"use_rslora", true, [](Lora& lora, const Lora& given) { lora.use_rslora = given.use_rslora; }},
    {"use_dora", true, [](Lora& lora, const Lora& given) { lora.use_dora = given.use_dora; }},
    {"rank_pattern", true, [](Lora& lora, const Lora& given) { lora.rank_pattern = given.rank_pattern; }},
    {"alpha_pattern", true, [](Lora& lora, const Lora& given) { lora.alpha_pattern = given.alpha_pattern; }},
    {"lora_dropout", false, [](Lora& lora, const Lora& given) { lora.dropout = given.dropout; }},
    {"lora_target_modules", false, [](Lora& lora, const Lora& given) { lora.target_modules = given.target_modules; }},
    {"lora_modules_to_save", false, [](Lora& lora, const Lora& given) { lora.modules_to_save = given.modules_to_save; }}};

Lora lora_of(const AdapterConfig& config) {
  return {.r = config.r,
          .alpha = config.lora_alpha,
          .dropout = config.lora_dropout,
          .target_modules = config.target_modules,
          .modules_to_save = config.modules_to_save,
          .use_rslora = config.use_rslora,
          .use_dora = config.use_dora,
          .rank_pattern = config.rank_pattern,
          .alpha_pattern = config.alpha_pattern};
}

}  // namespace

void take_given_adapter(Arguments& arguments) {
  Recipe& recipe = arguments.recipe;
  if (recipe.adapter.empty()) return;
  if (recipe.method == Method::full)
    throw Error("an adapter is given, and method: full trains none", recipe.adapter,
                "remove adapter_name_or_path, or merge it first: snug merge");
  Recipe given = recipe;
  given.lora = lora_of(read_adapter_config(recipe.adapter));
  for (const KeyOfAdapter& of : kKeys) {
    const Key& key = *find_key(of.name);
    if (std::ranges::find(arguments.keys_set, of.name) == arguments.keys_set.end()) {
      of.take(recipe.lora, given.lora);
      arguments.keys_set.emplace_back(of.name);
    } else if (of.must_agree && key.get(recipe) != key.get(given)) {
      throw Error(fmt::format("{} is {}, and the adapter has {}", of.name, key.get(recipe), key.get(given)), recipe.adapter,
                  fmt::format("remove {}: what an adapter is does not change", of.name));
    }
  }
}

}  // namespace snug
