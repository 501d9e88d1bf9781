// Fuzz target: recipes of other trainers. The first byte chooses YAML, JSON, shell, Python or a notebook. Whatever comes in,
// the answer is a reading in which every key has its place, or an Error; what is changed in it reads back, or is refused.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "recipe/dialects/changes.h"
#include "recipe/keys.h"

namespace {

std::string file_name(uint8_t byte) {
  switch (byte) {
    case 'j': return "fuzz.json";
    case 's': return "fuzz.sh";
    case 'p': return "fuzz.py";
    case 'n': return "fuzz.ipynb";
    default: return "fuzz.yaml";
  }
}

void change(std::string_view text, const std::string& where) {
  const std::vector<snug::RecipeChange> changes = {{"per_device_train_batch_size", "3"},
                                                   {"gradient_accumulation_steps", "24"},
                                                   {"gradient_checkpointing", "true"},
                                                   {"optim", "paged_adamw_8bit"},
                                                   {"load_in_4bit", "true"},
                                                   {"max_length", "768"}};
  const snug::RecipePatch patch = snug::change_foreign_recipe(text, where, changes);
  if (patch.diff.empty() != (patch.text == text)) std::abort();
  const auto said = [&](std::string_view key) {
    return std::none_of(patch.unsaid.begin(), patch.unsaid.end(), [&](const snug::RecipeChange& c) { return c.key == key; });
  };
  const auto read = snug::read_foreign_recipe(patch.text, where);
  if (!read) std::abort();
  if (said("per_device_train_batch_size") && read->recipe.batch != 3) std::abort();
  if (said("gradient_accumulation_steps") && read->recipe.accumulation != 24) std::abort();
  if (said("gradient_checkpointing") && !read->recipe.gradient_checkpointing) std::abort();
  if (said("load_in_4bit") && !read->recipe.quantize.in_4bit) std::abort();
  if (said("max_length") && read->recipe.seq_len != 768) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string where = file_name(data[0]);
  try {
    const auto read = snug::read_foreign_recipe(text, where);
    if (!read) {
      static_cast<void>(snug::what_else(snug::dialects::read_document(text, where)));
      return 0;
    }
    static_cast<void>(snug::describe(*read));
    static_cast<void>(read->refusals(true));
    for (const snug::ForeignKey& key : read->keys)
      if (key.name.empty() || (key.fate == snug::KeyFate::touches_memory && key.refusal.empty())) std::abort();
    change(text, where);
    snug::validate(read->recipe);
  } catch (const snug::Error&) {
  }
  return 0;
}
