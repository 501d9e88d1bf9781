#include "data/dataset.h"

#include <cstring>

#include "base/file.h"
#include "data/dataset_files.h"
#include "tokenizer/support.h"

namespace snug {
namespace {

using test::expect_mentions;
using test::refusal;

// The tokens of a directory, label bits included.
std::vector<uint32_t> tokens_of(const std::filesystem::path& directory) {
  const InputFile file(token_file(directory), "");
  std::vector<uint32_t> tokens((static_cast<size_t>(file.size()) - sizeof(TokenHeader)) / sizeof(uint32_t));
  file.read_at(std::as_writable_bytes(std::span(tokens)), sizeof(TokenHeader));
  return tokens;
}

struct Prepared {
  explicit Prepared(const std::string& jsonl, const DatasetRequest& wanted) : request(wanted) {
    request.data = directory.write("d.jsonl", jsonl);
    request.directory = directory.file("out");
    request.eos_id = 1;
    summary = prepare_dataset(request, test::byte_tokenizer());
  }
  test::TemporaryDirectory directory;
  DatasetRequest request;
  DatasetSummary summary;
};

DatasetRequest wanting(int64_t seq_len, bool packing = false, bool completion_only_loss = true) {
  DatasetRequest request;
  request.seq_len = seq_len;
  request.packing = packing;
  request.completion_only_loss = completion_only_loss;
  return request;
}

uint32_t label(int token) { return static_cast<uint32_t>(token) | kLabelBit; }
uint32_t plain(int token) { return static_cast<uint32_t>(token); }

TEST(Dataset, EndsEveryTextWithEosOnceAndMakesEveryTokenALabel) {
  const Prepared p("{\"text\":\"ab\"}\n\n{\"text\":\"c</s>\"}\n", wanting(8));
  EXPECT_EQ(tokens_of(p.request.directory),
            (std::vector{label('a' + 2), label('b' + 2), label(1), label('c' + 2), label(1)}));
  EXPECT_EQ(p.summary.source_rows, 2);
  EXPECT_EQ(p.summary.documents, 2);
  EXPECT_EQ(p.summary.tokens, 5);
  EXPECT_EQ(p.summary.label_tokens, 5);
  EXPECT_EQ(p.summary.target_tokens, 3);
  EXPECT_EQ(p.summary.longest_document, 3);
  EXPECT_EQ(p.summary.rows, 2);
  EXPECT_DOUBLE_EQ(p.summary.padding_share, 1.0 - 5.0 / 16.0);
}

TEST(Dataset, MasksThePromptUnlessToldOtherwise) {
  const std::string jsonl = "{\"prompt\":\"p</s>\",\"completion\":\"c\"}\n";
  const Prepared masked(jsonl, wanting(8));
  EXPECT_EQ(tokens_of(masked.request.directory), (std::vector{plain('p' + 2), plain(1), label('c' + 2), label(1)}));
  EXPECT_EQ(masked.summary.label_tokens, 2);
  EXPECT_EQ(masked.summary.target_tokens, 2);
  const Prepared whole(jsonl, wanting(8, false, false));
  EXPECT_EQ(whole.summary.label_tokens, 4);
  EXPECT_EQ(whole.summary.target_tokens, 3);
}

TEST(Dataset, CutsLongTextsWithoutLosingATokenAndTruncatesCompletions) {
  const Prepared texts("{\"text\":\"abcdefgh\"}\n{\"text\":\"abc\"}\n", wanting(4));
  EXPECT_EQ(texts.summary.documents, 4);  // 4 + 4 + 1, 4
  EXPECT_EQ(texts.summary.tokens, 13);
  EXPECT_EQ(texts.summary.cut, 1);
  EXPECT_EQ(texts.summary.longest_document, 9);
  EXPECT_EQ(texts.summary.target_tokens, 9);

  const Prepared pairs(R"({"prompt":"ab","completion":"cdef"}
{"prompt":"abcd","completion":"e"}
{"prompt":"abc","completion":"d"}
{"prompt":"a","completion":"b"}
)",
                       wanting(4));
  EXPECT_EQ(pairs.summary.source_rows, 4);
  EXPECT_EQ(pairs.summary.documents, 3);
  EXPECT_EQ(pairs.summary.truncated, 2);  // the third keeps its completion and loses eos
  EXPECT_EQ(pairs.summary.dropped, 1);
  EXPECT_EQ(pairs.summary.tokens, 4 + 4 + 3);
  EXPECT_EQ(pairs.summary.label_tokens, 2 + 1 + 2);
}

TEST(Dataset, SaysTheSameInTheFileAsInTheAnswer) {
  const Prepared p("{\"text\":\"ab\"}\n{\"text\":\"c\"}\n", wanting(8, true));
  const DatasetSummary read = read_dataset_summary(p.request.directory);
  EXPECT_EQ(std::memcmp(&read, &p.summary, sizeof read), 0);
  EXPECT_EQ(read.rows, 1);
  EXPECT_EQ(read.packing, 1);
}

TEST(Dataset, WritesTheSameBytesTwice) {
  std::string jsonl;
  for (int i = 0; i < 300; ++i) jsonl += "{\"text\":\"" + std::string(static_cast<size_t>(i * 37 % 50 + 1), 'x') + "\"}\n";
  const Prepared first(jsonl, wanting(32, true));
  const Prepared second(jsonl, wanting(32, true));
  const auto bytes = [](const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  for (const char* name : {"tokens.bin", "rows.bin"})
    EXPECT_EQ(bytes(first.request.directory / name), bytes(second.request.directory / name));
}

TEST(Dataset, LeavesNothingBehindWhenARowIsBad) {
  const test::TemporaryDirectory directory;
  DatasetRequest request = wanting(8);
  request.data = directory.write("d.jsonl", "{\"text\":\"ab\"}\n{\"text\":3}\n");
  request.directory = directory.file("out");
  request.eos_id = 1;
  expect_mentions(refusal([&] { prepare_dataset(request, test::byte_tokenizer()); }), {"d.jsonl:2", "not a string"});
  EXPECT_TRUE(std::filesystem::is_empty(request.directory));
}

TEST(Dataset, RefusesWhatCannotBeTrainedOn) {
  const auto prepare = [](const std::string& jsonl, DatasetRequest request) {
    const test::TemporaryDirectory directory;
    request.data = directory.write("d.jsonl", jsonl);
    request.directory = directory.file("out");
    return refusal([&] { prepare_dataset(request, test::byte_tokenizer()); });
  };
  DatasetRequest request = wanting(4);
  expect_mentions(prepare("{\"text\":\"a\"}", request), {"end-of-text", "eos_token"});
  request.eos_id = 1;
  EXPECT_EQ(prepare("{\"text\":\"a\"}", request), "");
  expect_mentions(prepare("", request), {"d.jsonl", "holds no rows"});
  expect_mentions(prepare("\n \n", request), {"holds no rows"});
  expect_mentions(prepare(R"({"prompt":"abcd","completion":"a"})", request), {"no completion is left", "max_length"});
  request.vocab_size = 50;
  expect_mentions(prepare("{\"text\":\"a\"}", request), {"d.jsonl:1", "token id 99", "vocabulary of 50", "tokenizer"});
  request.seq_len = 1;
  expect_mentions(prepare("{\"text\":\"a\"}", request), {"max_length is 1"});
}

}  // namespace
}  // namespace snug
