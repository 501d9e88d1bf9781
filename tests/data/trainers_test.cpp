// Rows as other trainers' own preprocessing has them, token for token and label for label (tests/oracle/data_trainers.py).

#include <gtest/gtest.h>
#include <simdjson.h>

#include "base/file.h"
#include "data/dataset_files.h"
#include "temporary_directory.h"
#include "tokenizer/support.h"

namespace snug {
namespace {

namespace dom = simdjson::dom;

std::vector<uint32_t> made_of(const DatasetRequest& request, const Tokenizer& tokenizer) {
  prepare_dataset(request, tokenizer);
  const InputFile file(token_file(request.directory), "");
  std::vector<uint32_t> tokens((static_cast<size_t>(file.size()) - sizeof(TokenHeader)) / sizeof(uint32_t));
  file.read_at(std::as_writable_bytes(std::span(tokens)), sizeof(TokenHeader));
  return tokens;
}

std::vector<uint32_t> theirs(dom::element one) {
  std::vector<uint32_t> tokens;
  for (const int64_t id : dom::array(one["ids"])) tokens.push_back(static_cast<uint32_t>(id));
  std::vector<size_t> ends;
  for (const uint64_t end : dom::array(one["learned"])) ends.push_back(end);
  for (size_t run = 0; run + 1 < ends.size(); run += 2)
    for (size_t i = ends[run]; i < ends[run + 1]; ++i) tokens[i] |= kLabelBit;
  return tokens;
}

TEST(RowsOfTrainers, HaveTheirTokensAndLabels) {
  const std::filesystem::path model = test::shared_tokenizers() / "qwen2.5";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "no published tokenizer at " << model;
  const Tokenizer tokenizer = Tokenizer::load(model);
  dom::parser parser;
  const dom::element root =
      parser.load((std::filesystem::path(SNUG_SOURCE_DIR) / "tests/golden/data/trainers.json").string());
  int cases = 0;
  for (const dom::element one : dom::array(root["cases"])) {
    const test::TemporaryDirectory directory;
    DatasetRequest request;
    request.data = directory.write("d.jsonl", simdjson::to_string(dom::element(one["row"])));
    request.directory = directory.file("out");
    request.model = model;
    request.seq_len = 4096;
    request.packing = false;
    EXPECT_EQ(made_of(request, tokenizer), theirs(one))
        << std::string_view(one["trainer"]) << ": " << simdjson::to_string(dom::element(one["row"]));
    ++cases;
  }
  EXPECT_EQ(cases, 120);
}

}  // namespace
}  // namespace snug
