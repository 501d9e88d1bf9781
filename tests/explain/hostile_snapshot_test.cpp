// Snapshots that nobody would write, made of real ones by changing bytes: whatever comes in, the answer is an explanation or
// an Error. The readers below have a fuzz target of their own; under the sanitizers this holds what is made of what they
// read.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/error.h"
#include "explain/snapshot_explanation.h"

namespace snug::explain_tests {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(SNUG_SOURCE_DIR "/tests/fuzz/corpus/snapshot"))
    paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    files.push_back(text.str());
  }
  return files;
}

bool explains(const std::string& file) {
  try {
    const SnapshotExplanation e = explain_snapshot(read_snapshot(std::as_bytes(std::span(file)), "hostile"));
    EXPECT_FALSE(e.diagnosis.answer.empty());
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(HostileSnapshot, is_explained_or_refused) {
  constexpr int kChanges = 400;
  std::mt19937_64 random(20261123);
  int explained = 0;
  for (const std::string& seed : seeds()) {
    explained += explains(seed) ? 1 : 0;
    for (int i = 0; i < kChanges && !seed.empty(); ++i) {
      std::string file = seed;
      for (uint64_t k = 0, many = 1 + random() % 6; k < many; ++k)
        file[random() % file.size()] = static_cast<char>(random());
      explained += explains(file) ? 1 : 0;
    }
  }
  EXPECT_GT(explained, 100) << "too few of them came as far as an explanation";
}

}  // namespace
}  // namespace snug::explain_tests
