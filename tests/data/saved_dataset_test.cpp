#include "data/saved_dataset.h"

#include "data/support_rows.h"

namespace snug {
namespace {

namespace fs = std::filesystem;
using test::expect_mentions;
using test::refusal;
using Texts = std::vector<std::string>;

constexpr const char* kState =
    R"({"_data_files": [{"filename": "b.arrow"}, {"filename": "a.arrow"}], "_indices_data_files": [], "_split": "train"})";

// Files by their names below a directory; what they hold is not looked at where files are found.
class SavedDataset : public testing::Test {
 protected:
  void SetUp() override { ::setenv("HF_DATASETS_CACHE", directory_.file("cache").c_str(), 1); }
  void TearDown() override { ::unsetenv("HF_DATASETS_CACHE"); }

  void write(const std::string& name, const std::string& text = {}) const {
    fs::create_directories(directory_.file(name).parent_path());
    directory_.write(name, text);
  }
  Texts found(const fs::path& data) const {
    Texts names;
    for (const fs::path& file : find_data_files(data))
      names.push_back(file.lexically_relative(directory_.file("")).string());
    return names;
  }
  Texts found_in(const std::string& name) const { return found(directory_.file(name)); }
  std::string refused(const std::string& name) const {
    return refusal([&] { found(directory_.file(name)); });
  }

  test::TemporaryDirectory directory_;
};

TEST_F(SavedDataset, IsReadInTheOrderOfItsStateFile) {
  write("d/state.json", kState);
  write("d/dataset_info.json", "{}");
  write("d/cache-0123.arrow");
  EXPECT_EQ(found_in("d"), (Texts{"d/b.arrow", "d/a.arrow"}));
  write("d/state.json", R"({"_data_files": [{"filename": "../a.arrow"}]})");
  expect_mentions(refused("d"), {"state.json", "no file beside it"});
  write("d/state.json", R"({"_data_files": []})");
  expect_mentions(refused("d"), {"state.json", "lists no _data_files"});
  write("d/state.json", "{");
  expect_mentions(refused("d"), {"state.json", "not valid JSON"});
}

TEST_F(SavedDataset, WithAnIndicesMappingIsRefused) {
  write("d/state.json",
        R"({"_data_files": [{"filename": "a.arrow"}], "_indices_data_files": [{"filename": "indices.arrow"}]})");
  expect_mentions(refused("d"), {"indices mapping", "flatten_indices() before save_to_disk"});
  write("d/state.json", R"({"_data_files": [{"filename": "a.arrow"}], "_indices_files": null})");
  EXPECT_EQ(found_in("d"), Texts{"d/a.arrow"});
}

TEST_F(SavedDataset, OfSeveralSplitsMeansTheOneToTrainOn) {
  write("d/dataset_dict.json", R"({"splits": ["test", "train"]})");
  expect_mentions(refused("d"), {"d/train", "the split is not there"});
  write("d/train/state.json", kState);
  EXPECT_EQ(found_in("d"), (Texts{"d/train/b.arrow", "d/train/a.arrow"}));
  write("d/dataset_dict.json", R"({"splits": ["one"]})");
  write("d/one/state.json", kState);
  EXPECT_EQ(found_in("d"), (Texts{"d/one/b.arrow", "d/one/a.arrow"}));
  write("d/dataset_dict.json", R"({"splits": ["one", "two"]})");
  expect_mentions(refused("d"), {R"(holds the splits "one", "two" and none is called "train")", "d/one"});
  EXPECT_EQ(found_in("d/one"), (Texts{"d/one/b.arrow", "d/one/a.arrow"}));
}

TEST_F(SavedDataset, InTheCacheIsReadFromItsSplitToTrainOn) {
  for (const char* name : {"dataset_info.json", "my-set-train-00001-of-00002.arrow", "my-set-train-00000-of-00002.arrow",
                           "my-set-test.arrow", "cache-0123.arrow", "tmpabc.arrow"})
    write(std::string("c/") + name);
  EXPECT_EQ(found_in("c"), (Texts{"c/my-set-train-00000-of-00002.arrow", "c/my-set-train-00001-of-00002.arrow"}));
  EXPECT_EQ(found_in("c/*-test*.arrow"), Texts{"c/my-set-test.arrow"});
  fs::remove(directory_.file("c/my-set-train-00000-of-00002.arrow"));
  expect_mentions(refused("c"), {"part 0 of 2", "is missing"});
  fs::remove(directory_.file("c/my-set-train-00001-of-00002.arrow"));
  EXPECT_EQ(found_in("c"), Texts{"c/my-set-test.arrow"});
  write("c/my-set-validation.arrow");
  expect_mentions(refused("c"), {R"(the splits "test", "validation")", "*-test*.arrow"});
}

TEST_F(SavedDataset, IsFoundInTheCacheByItsName) {
  write("cache/owner___my_set_v2/default/0.0.0/abc/dataset_info.json");
  write("cache/owner___my_set_v2/default/0.0.0/abc/my_set_v2-train.arrow");
  write("cache/owner___my_set_v2/default/0.0.0/def.incomplete/dataset_info.json");
  EXPECT_EQ(found("owner/MySet_v2"), Texts{"cache/owner___my_set_v2/default/0.0.0/abc/my_set_v2-train.arrow"});
  write("cache/owner___my_set_v2/extra/0.0.0/abc/dataset_info.json");
  expect_mentions(refusal([&] { found("owner/MySet_v2"); }),
                  {"default/0.0.0/abc, extra/0.0.0/abc", "give the directory of one", "owner___my_set_v2/default"});
}

TEST_F(SavedDataset, ThatIsNotThereIsNotDownloaded) {
  expect_mentions(refusal([&] { found("owner/name"); }),
                  {"owner/name", "no data set of that name is in", "snug downloads nothing",
                   R"x(python -c "from datasets import load_dataset; load_dataset('owner/name')")x"});
  EXPECT_FALSE(is_dataset_name("data/train.jsonl"));
  EXPECT_FALSE(is_dataset_name("../name"));
  EXPECT_FALSE(is_dataset_name("name"));
  EXPECT_FALSE(is_dataset_name("a/b/c"));
}

TEST_F(SavedDataset, GivesMessagesWithoutTheFieldsThatAreNull) {
  const fs::path saved = fs::path(SNUG_SOURCE_DIR) / "tests/golden/data/arrow/saved";
  const std::vector<fs::path> files = find_data_files(saved);
  ASSERT_EQ(files.size(), 2U);
  const auto source = open_row_source(files.front());
  EXPECT_EQ(source->columns(), Texts{"messages"});
  SourceRow row;
  ASSERT_TRUE(source->next(row));
  EXPECT_TRUE(source->where().ends_with("data-00000-of-00002.arrow: row 1")) << source->where();
  // What JSON says is null was there.
  EXPECT_NE(test::json_of(row.fields).find(R"("arguments":{"a":1,"b":null})"), std::string::npos)
      << test::json_of(row.fields);
  const auto stream = open_row_source(saved.parent_path() / "pyarrow_stream.arrow");
  const Texts rows = test::rows_of(*stream);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[3], R"({"text":"owlowl3","messages":[{"role":"system","content":null}]})");
  EXPECT_TRUE(rows[0].ends_with(R"("messages":[{"content":"a \"quoted\" \\ line\u000abr"}]})")) << rows[0];
}

TEST_F(SavedDataset, LiesWhereItsLibraryPutsIt) {
  const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  EXPECT_EQ(datasets_cache(), directory_.file("cache"));
  ::unsetenv("HF_DATASETS_CACHE");
  ::unsetenv("HF_HOME");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(datasets_cache(), "/home/me/.cache/huggingface/datasets");
  ::setenv("XDG_CACHE_HOME", "/var/c", 1);
  EXPECT_EQ(datasets_cache(), "/var/c/huggingface/datasets");
  ::setenv("HF_HOME", "/data/hf", 1);
  EXPECT_EQ(datasets_cache(), "/data/hf/datasets");
  for (const char* name : {"XDG_CACHE_HOME", "HF_HOME"}) ::unsetenv(name);
  ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace snug
