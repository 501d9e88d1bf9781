#pragma once
// What `snug models` and `snug gpus` are asked for: all rows or one, for people or for programs.

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

#include "ask/answers.h"
#include "ask/options.h"

namespace snug {

struct CatalogueRequest {
  std::string name;  // empty: all
  bool json = false;
};

// [NAME] [--json]; NAME may be several words ("RTX 4090"). Throws UsageError for any other flag.
inline CatalogueRequest parse_catalogue_request(std::string_view command, std::span<char* const> words) {
  const Options options = parse_options(words, catalogue_flags());
  CatalogueRequest request{.json = options.has("json")};
  for (const std::string& word : options.positional) {
    if (word.starts_with('-'))
      throw UsageError(fmt::format("snug {} has no flag {}; it takes a NAME and --json", command, word));
    request.name += (request.name.empty() ? "" : " ") + word;
  }
  return request;
}

}  // namespace snug
