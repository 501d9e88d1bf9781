#include "data/dataset.h"

#include <cctype>
#include <cstring>
#include <set>

#include "base/file.h"
#include "data/dataset_files.h"
#include "data/loader.h"
#include "data/support_batch.h"
#include "tokenizer/support.h"

namespace snug {
namespace {

using test::expect_mentions;
using test::refusal;

// The tokens of a directory, label bits included.
std::vector<uint32_t> tokens_in(const std::filesystem::path& directory) {
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
  EXPECT_EQ(tokens_in(p.request.directory),
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

TEST(Dataset, IsMadeOfWhatTheDatasetsLibrarySaved) {
  const test::TemporaryDirectory directory;
  const auto golden = std::filesystem::path(SNUG_SOURCE_DIR) / "tests/golden/data/arrow/pyarrow_dictionary.arrow";
  for (const char* name : {"data-00000-of-00002.arrow", "data-00001-of-00002.arrow"})
    std::filesystem::copy_file(golden, directory.file(name));
  directory.write("state.json", R"({"_data_files": [{"filename": "data-00000-of-00002.arrow"},
                                   {"filename": "data-00001-of-00002.arrow"}]})");
  DatasetRequest request = wanting(8);
  request.data = directory.file("");
  request.directory = directory.file("out");
  request.eos_id = 1;
  const DatasetSummary summary = prepare_dataset(request, test::byte_tokenizer());
  EXPECT_EQ(summary.source_rows, 24);
  EXPECT_EQ(summary.tokens, 24 * 3);  // "t0" to "t5", each with its end
  request.columns.text = "kind";
  request.complain = [](const std::string&) {};
  expect_mentions(refusal([&] { prepare_dataset(request, test::byte_tokenizer()); }), {"rows are bad"});
}

TEST(Dataset, MasksThePromptUnlessToldOtherwise) {
  const std::string jsonl = "{\"prompt\":\"p</s>\",\"completion\":\"c\"}\n";
  const Prepared masked(jsonl, wanting(8));
  EXPECT_EQ(tokens_in(masked.request.directory), (std::vector{plain('p' + 2), plain(1), label('c' + 2), label(1)}));
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

TEST(Dataset, ListsBadRowsAndCountsThemAll) {
  const test::TemporaryDirectory directory;
  std::string jsonl;
  for (int i = 0; i < 60; ++i) jsonl += i % 2 == 0 ? "{\"text\":\"ab\"}\n" : i % 4 == 1 ? "{\"text\":3}\n" : "{\"text\":\n";
  DatasetRequest request = wanting(8);
  request.data = directory.write("d.jsonl", jsonl);
  request.directory = directory.file("out");
  request.eos_id = 1;
  std::vector<std::string> lines;
  request.complain = [&](const std::string& line) { lines.push_back(line); };
  for (const int threads : {1, 3}) {
    request.threads = threads;
    request.skip_bad_rows = false;
    lines.clear();
    expect_mentions(refusal([&] { prepare_dataset(request, test::byte_tokenizer()); }),
                    {"d.jsonl: 30 of 60 rows are bad", "the first is", "d.jsonl:2", "skip_bad_rows"});
    ASSERT_EQ(lines.size(), 20U);
    expect_mentions(lines[0], {"d.jsonl:2: \"text\" is a number"});
    expect_mentions(lines[1], {"d.jsonl:4 (from byte", "not valid JSON"});
    expect_mentions(lines[19], {"d.jsonl:40"});
    EXPECT_TRUE(std::filesystem::is_empty(request.directory));
    request.skip_bad_rows = true;
    const DatasetSummary summary = prepare_dataset(request, test::byte_tokenizer());
    EXPECT_EQ(summary.source_rows, 30);
    EXPECT_EQ(summary.bad_rows, 30);
    expect_mentions(describe(summary), {"30 bad rows left out"});
    std::filesystem::remove_all(request.directory);
  }
  request.data = directory.write("d.jsonl", "{\n[\n");
  expect_mentions(refusal([&] { prepare_dataset(request, test::byte_tokenizer()); }), {"all rows are bad"});
}

std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(Dataset, IsTheSameOnAnyNumberOfThreads) {
  std::string jsonl;
  for (int i = 0; i < 1500; ++i)
    jsonl += "{\"text\":\"" + std::string(static_cast<size_t>(i * 37 % 90 + 1), static_cast<char>('a' + i % 26)) + "\"}\n";
  DatasetRequest request = wanting(32, true);
  const Prepared one(jsonl, request);
  request.threads = 3;
  const Prepared three(jsonl, request);
  for (const char* name : {"tokens.bin", "rows.bin"})
    EXPECT_EQ(file_bytes(one.request.directory / name), file_bytes(three.request.directory / name));
}

TEST(Dataset, ReadsAllFilesOfADirectoryInOrder) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory.file("in"));
  directory.write("in/b.json", "[{\"text\":\"c\"},\n{\"text\":\"d\"}]");
  directory.write("in/a.jsonl", "{\"text\":\"a\"}\n");
  DatasetRequest request = wanting(8);
  request.data = directory.file("in");
  request.directory = directory.file("out");
  request.eos_id = 1;
  prepare_dataset(request, test::byte_tokenizer());
  EXPECT_EQ(tokens_in(request.directory),
            (std::vector{label('a' + 2), label(1), label('c' + 2), label(1), label('d' + 2), label(1)}));
}

TEST(Dataset, HoldsOutExactlySoManyRowsBySeed) {
  std::string jsonl;
  for (int i = 0; i < 200; ++i)
    jsonl += "{\"text\":\"" + std::to_string(1000 + i) + "abcdefgh\"}\n";  // cut into two documents
  const auto held_out = [&](int64_t rows, double share, uint64_t seed) {
    const test::TemporaryDirectory directory;
    DatasetRequest request = wanting(8);
    request.data = directory.write("d.jsonl", jsonl);
    request.directory = directory.file("train");
    request.eos_id = 1;
    request.held_out = {directory.file("eval"), rows, share, seed};
    const DatasetSummary train = prepare_dataset(request, test::byte_tokenizer());
    const DatasetSummary eval = read_dataset_summary(directory.file("eval"));
    EXPECT_EQ(train.held_out, eval.source_rows);
    EXPECT_EQ(train.documents + eval.documents, 400);
    EXPECT_EQ(eval.documents, 2 * train.held_out);
    EXPECT_EQ(train.tokens + eval.tokens, 200 * 13);
    EXPECT_EQ(train.label_tokens + eval.label_tokens, 200 * 13);
    // Which rows those are: the four digits with which the documents of more than five tokens begin.
    std::set<int> rows_seen;
    LoaderOptions options;
    options.shuffle = false;
    Loader loader(directory.file("eval"), options);
    test::HeldBatch batch(8, 8);
    const std::vector<int32_t>& tokens = batch.of(BatchPart::tokens);
    for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
      if (loader.fill(loader.window(step), 0, batch).tokens != 8) continue;
      rows_seen.insert((tokens[1] - 50) * 100 + (tokens[2] - 50) * 10 + tokens[3] - 50);
    }
    EXPECT_EQ(static_cast<int64_t>(rows_seen.size()), train.held_out);
    return rows_seen;
  };
  EXPECT_EQ(held_out(17, 0.0, 42).size(), 17U);
  EXPECT_EQ(held_out(0, 0.051, 42).size(), 11U);  // 10.2, rounded up
  EXPECT_EQ(held_out(17, 0.0, 42), held_out(17, 0.0, 42));
  EXPECT_NE(held_out(17, 0.0, 42), held_out(17, 0.0, 43));
  const test::TemporaryDirectory directory;
  DatasetRequest request = wanting(8);
  request.data = directory.write("d.jsonl", jsonl);
  request.directory = directory.file("train");
  request.eos_id = 1;
  request.held_out = {directory.file("eval"), 200};
  expect_mentions(refusal([&] { prepare_dataset(request, test::byte_tokenizer()); }), {"200 of 200 rows leaves nothing"});
}

// "USER: …\nBOT: …\n" for each message; what the assistant says ends with its line end.
RenderedChat render(const Chat& chat) {
  RenderedChat rendered;
  const JsonValue::List& messages = *chat.messages.list();
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = *messages[i].find("role")->string();
    if (role == "bad") throw Error("the template refuses this", "template", "mend it");
    rendered.text += role == "assistant" ? "B:" : "U:";
    const auto begin = static_cast<int64_t>(rendered.text.size());
    rendered.text += *messages[i].find("content")->string() + "\n";
    if (role == "assistant")
      rendered.assistant.push_back({begin, static_cast<int64_t>(rendered.text.size()), static_cast<int64_t>(i)});
  }
  return rendered;
}

// Tokens as letters, labels in upper case.
std::string marked(const std::filesystem::path& directory) {
  std::string text;
  for (const uint32_t word : tokens_in(directory)) {
    const auto c = static_cast<char>((word & ~kLabelBit) - 2);
    text += (word & kLabelBit) == 0 ? c : c == '\n' ? '/' : static_cast<char>(std::toupper(c));
  }
  return text;
}

TEST(Dataset, LearnsWhatTheAssistantSays) {
  const test::TemporaryDirectory directory;
  DatasetRequest request = wanting(24);
  request.directory = directory.file("out");
  request.eos_id = 1;
  const auto prepared = [&](const std::string& jsonl) {
    request.data = directory.write("d.jsonl", jsonl);
    return prepare_dataset(request, test::byte_tokenizer(), render);
  };
  const std::string chat =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bc", "weight": 0},)"
      R"( {"role": "user", "content": "d"}, {"role": "assistant", "content": "ef"}]})";
  EXPECT_EQ(prepared(chat).label_tokens, 3);
  EXPECT_EQ(marked(request.directory), "U:a\nB:bc\nU:d\nB:EF/");
  request.assistant_only_loss = false;
  EXPECT_EQ(prepared(chat).label_tokens, 18);
  request.assistant_only_loss = true;
  EXPECT_EQ(prepared(R"({"prompt": [{"role": "assistant", "content": "x"}, {"role": "user", "content": "a"}],)"
                     R"( "completion": [{"role": "assistant", "content": "b"}]})")
                .label_tokens,
            2);
  EXPECT_EQ(marked(request.directory), "B:x\nU:a\nB:B/");
  // Too long: cut at the end, dropped where nothing to learn is left.
  request.seq_len = 14;
  const DatasetSummary cut =
      prepared(chat.substr(0, chat.size() - 2) + "]}\n" +
               R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bcdefghijklmn"}]})");
  EXPECT_EQ(cut.dropped, 1);
  EXPECT_EQ(cut.truncated, 1);
  EXPECT_EQ(marked(request.directory), "U:a\nB:BCDEFGHI");
  expect_mentions(describe(cut), {"2 rows, messages, 14 tokens", "1 row lost the end, 1 all there was to learn"});
  expect_mentions(
      refusal([&] { prepared(R"({"messages": [{"role": "bad", "content": ""}, {"role": "assistant", "content": ""}]})"); }),
      {"d.jsonl:1", "template: the template refuses this"});
  request.data = directory.write("d.jsonl", chat);
  expect_mentions(refusal([&] { prepare_dataset(request, test::byte_tokenizer()); }), {"no chat template", "chatml"});
}

TEST(Dataset, ReadsGsm8kAsItIsPublished) {
  const std::filesystem::path file = test::shared_tokenizers().parent_path() / "gsm8k" / "train.jsonl";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  const test::TemporaryDirectory directory;
  DatasetRequest request = wanting(2048, false);
  request.data = file;
  request.directory = directory.file("out");
  request.eos_id = 1;
  request.most_buckets = 4;
  const DatasetSummary summary = prepare_dataset(request, test::byte_tokenizer());
  EXPECT_EQ(summary.source_rows, 7473);
  EXPECT_EQ(summary.buckets, 4);
  EXPECT_EQ(summary.truncated + summary.dropped, 0);
  expect_mentions(describe(summary), {"7,473 rows, question/answer, ", " M tokens", "sequences padded to "});
}

TEST(Dataset, RemembersHowLongRowsWere) {
  const Prepared p("{\"text\":\"abcdefgh\"}\n{\"text\":\"a\"}\n{\"text\":\"ab\"}\n", wanting(4));  // 9, 2 and 3 tokens
  EXPECT_EQ(p.summary.lengths[1], 2);
  EXPECT_EQ(p.summary.lengths[3], 1);
  expect_mentions(describe(p.summary),
                  {"3 rows, text, 14 tokens (100.0 % learned), longest 9; 5 sequences of 4, 30.0 % padding",
                   "1 row longer than 4 tokens, cut into several"});
}

}  // namespace
}  // namespace snug
