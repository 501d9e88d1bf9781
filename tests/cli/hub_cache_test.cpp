// A model by its name on the Hub: trained, asked and merged from where Hugging Face's tools have put it.

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

// The workspace's model as a download leaves it: links to blobs.
fs::path cache_of(const Workspace& work) {
  const std::string commit(40, 'a');
  const fs::path repository = work / "hub" / "models--somebody--tiny", snapshot = repository / "snapshots" / commit;
  fs::create_directories(repository / "refs");
  fs::create_directories(repository / "blobs");
  fs::create_directories(snapshot);
  put(repository / "refs" / "main", commit);
  for (const auto& file : fs::directory_iterator(work.model())) {
    const fs::path name = file.path().filename();
    fs::copy_file(file.path(), repository / "blobs" / name);
    fs::create_symlink(fs::path("../../blobs") / name, snapshot / name);
  }
  return work / "hub";
}

TEST(HubName, is_trained_asked_and_merged_from_the_cache) {
  const Workspace work;
  const ProcessOptions options{.environment = {{"HF_HUB_CACHE", cache_of(work).string()}}};
  const auto train = [&](const std::string& model, const fs::path& output, const ProcessOptions& how) {
    return run_program({"train", model, "--data", work.data().string(), "--output-dir", output.string(), "--seq", "64",
                        "--max-steps", "2", "--save-steps", "0"},
                       how);
  };
  ASSERT_EQ(train("somebody/tiny", work / "by-name", options).exit_code, 0);
  ASSERT_EQ(train(work.model().string(), work / "by-path", {}).exit_code, 0);
  EXPECT_EQ(contents(work / "by-name" / "adapter_model.safetensors"),
            contents(work / "by-path" / "adapter_model.safetensors"));
  const ProcessResult answer = run_program(
      {"generate", "somebody/tiny", "--prompt", "a", "--max-new-tokens", "3", "--adapter", (work / "by-name").string()},
      options);
  EXPECT_EQ(answer.exit_code, 0) << answer.error;
  const ProcessResult merged = run_program(
      {"merge", (work / "by-name").string(), "--model", "somebody/tiny", "--output-dir", (work / "merged").string()},
      options);
  EXPECT_EQ(merged.exit_code, 0) << merged.error;
  EXPECT_TRUE(fs::exists(work / "merged" / "model.safetensors"));
}

TEST(HubName, that_is_not_in_the_cache_is_one_line_with_the_command_that_downloads_it) {
  const Workspace work;
  const ProcessOptions options{.environment = {{"HF_HUB_CACHE", (work / "nothing").string()}}};
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "HuggingFaceTB/SmolLM2-135M", "--data", work.data().string(), "--output-dir",
                                 (work / "out").string()},
        {"generate", "HuggingFaceTB/SmolLM2-135M", "--prompt", "a"},
        {"quantize", "HuggingFaceTB/SmolLM2-135M", "--output-dir", (work / "out").string()}}) {
    const ProcessResult run = run_program(words, options);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1) << run.error;
    EXPECT_NE(run.error.find("`hf download HuggingFaceTB/SmolLM2-135M`"), std::string::npos) << run.error;
    EXPECT_FALSE(fs::exists(work / "out"));
  }
}

}  // namespace

}  // namespace snug::cli_tests
