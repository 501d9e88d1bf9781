// Where Hugging Face's tools keep checkpoints, laid out as huggingface_hub lays it out.

#include "model/hub_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "model/catalogue.h"
#include "model/config.h"
#include "temporary_directory.h"

namespace snug::testing {

namespace {

namespace fs = std::filesystem;

constexpr const char* kCommit = "12fd25f77366fa6b3b4b768ec3050bf629380bac";

class HubCache : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("HF_HUB_CACHE", root_.c_str(), 1); }
  void TearDown() override { ::unsetenv("HF_HUB_CACHE"); }

  static void put(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  // A snapshot of links to blobs, as downloads leave it.
  fs::path add(const std::string& folder, const std::string& commit = kCommit) {
    const fs::path directory = root_ / folder, snapshot = directory / "snapshots" / commit;
    put(directory / "refs" / "main", commit);
    put(directory / "blobs" / "a1",
        R"({"model_type": "llama", "hidden_size": 96, "intermediate_size": 200, "num_hidden_layers": 3,
      "num_attention_heads": 4, "vocab_size": 500, "max_position_embeddings": 64})");
    fs::create_directories(snapshot);
    fs::create_symlink("../../blobs/a1", snapshot / "config.json");
    return snapshot;
  }

  const test::TemporaryDirectory scratch_;
  const fs::path& root_ = scratch_.path();
};

TEST_F(HubCache, a_repository_s_main_branch_is_found_and_planned_under_its_name) {
  const fs::path snapshot = add("models--nobody--a-tiny.one");
  EXPECT_EQ(cached_snapshot("nobody/a-tiny.one"), snapshot);
  EXPECT_EQ(local_checkpoint("nobody/a-tiny.one", "training"), snapshot);
  const ModelSpec spec = resolve_model("nobody/a-tiny.one");
  EXPECT_EQ(spec.name, "a-tiny.one");
  EXPECT_EQ(spec.hidden_size, 96);
  EXPECT_EQ(read_config(snapshot).name, "a-tiny.one");
  add("models--gpt9");
  EXPECT_EQ(resolve_model("gpt9").name, "gpt9");  // as old repositories are called
  EXPECT_EQ(checkpoint_name("/home/me/llama"), "llama");
}

TEST_F(HubCache, what_is_not_whole_is_not_there) {
  fs::create_directories(root_ / "models--a--no-refs" / "snapshots" / kCommit);
  EXPECT_FALSE(cached_snapshot("a/no-refs"));
  put(root_ / "models--a--no-files" / "refs" / "main", kCommit);
  EXPECT_FALSE(cached_snapshot("a/no-files"));
  add("models--a--bad-ref");
  put(root_ / "models--a--bad-ref" / "refs" / "main", std::string("../snapshots/") + kCommit);
  EXPECT_FALSE(cached_snapshot("a/bad-ref"));
  for (const char* name : {"", "/", "a/", "/a", "../a", "a/..", "a/b/c", "a/.hidden", "a b", "a\\b"})
    EXPECT_FALSE(cached_snapshot(name)) << name;
}

TEST_F(HubCache, where_it_is_not_the_command_that_downloads_it_is_told) {
  try {
    local_checkpoint("HuggingFaceTB/SmolLM2-135M", "training");
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("hf download HuggingFaceTB/SmolLM2-135M"), std::string::npos) << text;
    EXPECT_NE(text.find(root_.string()), std::string::npos) << text;
  }
  EXPECT_THROW(local_checkpoint("no such model", "training"), Error);
}

TEST_F(HubCache, its_place_is_that_of_hugging_face_s_tools) {
  ::unsetenv("HF_HUB_CACHE");
  const char* const old_home = std::getenv("HOME");
  const std::string home = old_home == nullptr ? "" : old_home;
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(hub_cache(), "/home/me/.cache/huggingface/hub");
  ::setenv("XDG_CACHE_HOME", "/var/c", 1);
  EXPECT_EQ(hub_cache(), "/var/c/huggingface/hub");
  ::setenv("HF_HOME", "/data/hf", 1);
  EXPECT_EQ(hub_cache(), "/data/hf/hub");
  ::setenv("HUGGINGFACE_HUB_CACHE", "/data/old", 1);
  EXPECT_EQ(hub_cache(), "/data/old");
  for (const char* name : {"XDG_CACHE_HOME", "HF_HOME", "HUGGINGFACE_HUB_CACHE"}) ::unsetenv(name);
  ::setenv("HOME", home.c_str(), 1);
}

}  // namespace

}  // namespace snug::testing
