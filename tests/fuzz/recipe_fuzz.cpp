// Fuzz target: recipes. Whatever comes in, the answer is a Recipe that writes and reads back, or an Error.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"
#include "recipe/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    static_cast<void>(snug::format_bytes(snug::parse_bytes(text)));
  } catch (const snug::Error&) {
  }
  snug::Recipe recipe;
  try {
    recipe = snug::parse_recipe_yaml(text, "fuzz").recipe;
    snug::validate(recipe);
  } catch (const snug::Error&) {
    return 0;
  }
  const std::string written = snug::write_recipe_yaml(recipe);
  if (snug::write_recipe_yaml(snug::parse_recipe_yaml(written, "written").recipe) != written) std::abort();
  return 0;
}
