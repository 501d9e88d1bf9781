#pragma once
// A recipe that goes on from what another one of its project leaves: the one that writes that directory.

#include <optional>
#include <string>

namespace snug::dialects {

// What an earlier stage trains or merges, and the file that says so.
struct EarlierStage {
  std::string model, file;
};

// Of the files around `recipe` the one whose output is the directory `model`, by the last parts of its path, or the first of
// several that begin with the same model. None where there is none, or they begin with different ones.
std::optional<EarlierStage> stage_that_writes(const std::string& recipe, const std::string& model);

}  // namespace snug::dialects
