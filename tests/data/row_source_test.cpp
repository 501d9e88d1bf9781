#include "data/row_source.h"

#include <zlib.h>
#include <zstd.h>

#include "data/support_rows.h"

namespace snug {
namespace {

using test::expect_mentions;
using test::refusal;
using test::rows_of;
using Texts = std::vector<std::string>;

TEST(JsonRows, GivesTheWholeTree) {
  EXPECT_EQ(
      rows_of(std::string(R"({"b": [1, -2, 3.5, true, null, "caf\u00e9\n"], "a": {"x": {}}, "n": 18446744073709551615})")),
      Texts{R"({"b":[1,-2,3.5,true,null,"café\u000a"],"a":{"x":{}},"n":1.8446744073709552e+19})"});
}

TEST(JsonRows, AreTheSameInLinesAndInAnArray) {
  const Texts expected = {R"({"a":1})", R"({"a":2})"};
  EXPECT_EQ(rows_of(std::string("\n{\"a\":1}\r\n \n{\"a\":2}")), expected);
  EXPECT_EQ(rows_of(std::string("  [{\"a\":1},\n{\"a\":2}]")), expected);
  EXPECT_EQ(rows_of(std::string("[]")), Texts{});
  EXPECT_EQ(rows_of(std::string("\n \n")), Texts{});
}

TEST(JsonRows, SayWhatIsWrongAndGoOn) {
  struct Case {
    const char *row, *what;
  };
  const Case cases[] = {{R"({"text": "a")", "not valid JSON"},
                        {R"("text")", "not a JSON object"},
                        {"[1]", "not a JSON object"},
                        {R"({"text": "\ud800"})", "half a surrogate pair (\\ud800) at byte 10"},
                        {R"({"text": "\udc00x"})", "half a surrogate pair (\\udc00) at byte 10"},
                        {R"({"text": "\ud83d\ude00\ude00"})", "half a surrogate pair (\\ude00) at byte 22"},
                        {"{\"text\": \"ab\xFFz\"}", "not UTF-8 from byte 12"},
                        {"{\"text\": \"\xED\xA0\x80\"}", "not UTF-8 from byte 10"},
                        {R"({"a": 1, "a": 2})", "\"a\" stands twice"},
                        {R"({"a": 1e999})", "not valid JSON"}};
  for (const Case& c : cases) {
    const Texts rows = rows_of("{\"a\":1}\n" + std::string(c.row) + "\n{\"a\":2}\n");
    ASSERT_EQ(rows.size(), 3U) << c.row;
    expect_mentions(rows[1], {"bad: ", c.what});
    EXPECT_EQ(rows[2], R"({"a":2})");
  }
  std::string deep = R"({"a": )";
  for (int i = 0; i < 200; ++i) deep += '[';
  for (int i = 0; i < 200; ++i) deep += ']';
  expect_mentions(rows_of(deep + "}")[0], {"nested deeper than 100"});
}

TEST(JsonRows, ReadPairsOfSurrogatesAndEscapedBackslashes) {
  EXPECT_EQ(rows_of(std::string(R"({"a":"\ud83d\ude00 \\ud800"})")), Texts{"{\"a\":\"\xF0\x9F\x98\x80 \\\\ud800\"}"});
}

TEST(JsonRows, SayWhereTheyStand) {
  const auto source = json_row_source("{\"a\":1}\n\n{\"a\":}\n", "d.jsonl");
  SourceRow row;
  source->next(row);
  EXPECT_EQ(source->where(), "d.jsonl:1");
  source->next(row);
  EXPECT_EQ(source->where(), "d.jsonl:3 (from byte 9)");
}

TEST(JsonRows, GiveOnlyTheColumnsThatAreWanted) {
  const auto source = json_row_source(R"({"a":1,"b":2,"c":3,"b":4})", "d.jsonl");
  source->select({"c"}, {"a"});
  EXPECT_EQ(rows_of(*source), Texts{R"({"a":1,"c":3})"});
}

std::string gzipped(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 100, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstandard(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

TEST(RowSource, UnpacksGzipAndZstandardInSeveralPieces) {
  const test::TemporaryDirectory directory;
  std::string lines;
  Texts expected;
  for (int i = 0; i < 40'000; ++i) {
    expected.push_back("{\"n\":" + std::to_string(i * 7919 % 65'537) + "}");
    lines += expected.back() + "\n";
  }
  const std::string tail = "{\"n\":-1}\n";
  expected.emplace_back("{\"n\":-1}");
  const auto read = [](const std::filesystem::path& path) { return rows_of(*open_row_source(path)); };
  EXPECT_EQ(read(directory.write("a.jsonl.gz", gzipped(lines) + gzipped(tail))), expected);
  EXPECT_EQ(read(directory.write("a.jsonl.zst", zstandard(lines) + zstandard(tail))), expected);
  for (const std::string& packed : {gzipped(lines), zstandard(lines)}) {
    const auto cut = directory.write("cut", packed.substr(0, packed.size() / 2));
    expect_mentions(refusal([&] { read(cut); }), {"cut", "damaged or cut off"});
  }
}

TEST(RowSource, ReadsCsvByItsName) {
  const test::TemporaryDirectory directory;
  const auto read = [&](const std::string& name, const std::string& text) {
    return rows_of(*open_row_source(directory.write(name, text)));
  };
  const Texts expected = {R"({"prompt":"a","completion":"b, c"})", R"({"prompt":"","completion":"7"})"};
  EXPECT_EQ(read("a.csv", "prompt,completion\na,\"b, c\"\n,7\n"), expected);
  EXPECT_EQ(read("a.tsv", "prompt\tcompletion\r\na\tb, c\r\n\t7\r\n"), expected);
  EXPECT_EQ(read("a.csv.gz", gzipped("prompt,completion\na,\"b, c\"\n,7\n")), expected);
}

TEST(RowSource, RefusesOtherKindsByName) {
  const test::TemporaryDirectory directory;
  const auto refused = [&](const std::string& name, const std::string& text) {
    return refusal([&] { open_row_source(directory.write(name, text)); });
  };
  expect_mentions(refused("a.csv", "ORC"), {"a.csv", "ORC is not supported", ".jsonl", ".csv", ".parquet"});
  expect_mentions(refused("a.feather", "FEA1  "), {"Feather, version 1"});
  expect_mentions(refused("a.arrow", "ARROW1  "), {"the Arrow file is damaged"});
  expect_mentions(refused("a.jsonl", "PK\x03\x04zip"), {"ZIP"});
}

Texts names_of(const std::vector<std::filesystem::path>& files) {
  Texts names;
  for (const auto& file : files) names.push_back(file.filename().string());
  return names;
}

TEST(DataFiles, AreSeveralWhereCommasDivideThem) {
  const test::TemporaryDirectory directory;
  const std::string b = directory.write("b.jsonl", "").string(), a = directory.write("a.jsonl", "").string();
  const std::string odd = directory.write("x,y.jsonl", "").string();
  EXPECT_EQ(names_of(find_data_files(b + "," + a)), (Texts{"b.jsonl", "a.jsonl"}));
  EXPECT_EQ(names_of(find_data_files(b + ", " + directory.file("a*").string())), (Texts{"b.jsonl", "a.jsonl"}));
  EXPECT_EQ(names_of(find_data_files(odd)), Texts{"x,y.jsonl"});
  expect_mentions(refusal([&] { find_data_files(b + ",," + a); }), {"a name between commas is empty"});
  expect_mentions(refusal([&] { find_data_files(b + "," + b); }), {"b.jsonl", "twice"});
  const std::string csv = directory.write("c.csv", "").string();
  expect_mentions(refusal([&] { find_data_files(b + "," + csv); }), {"CSV files beside others"});
}

TEST(DataFiles, AreThoseOfADirectoryInTheOrderOfTheirNames) {
  const test::TemporaryDirectory directory;
  for (const char* name : {"train-00001-of-00002.parquet", "train-00000-of-00002.parquet", "README.md", "dataset_infos.json",
                           ".hidden.jsonl", "_metadata.json"})
    directory.write(name, "");
  EXPECT_EQ(names_of(find_data_files(directory.file(""))),
            (Texts{"train-00000-of-00002.parquet", "train-00001-of-00002.parquet"}));
  directory.write("test-00000-of-00001.parquet", "");
  expect_mentions(refusal([&] { find_data_files(directory.file("")); }), {"several splits", "test-00000", "train*"});
  EXPECT_EQ(names_of(find_data_files(directory.file("train*"))).size(), 2U);
  EXPECT_EQ(names_of(find_data_files(directory.file("t*t-*"))), Texts{"test-00000-of-00001.parquet"});
  std::filesystem::remove(directory.file("test-00000-of-00001.parquet"));
  std::filesystem::remove(directory.file("train-00000-of-00002.parquet"));
  expect_mentions(refusal([&] { find_data_files(directory.file("")); }), {"part 0 of 2 of \"train\" is missing"});
  directory.write("b.jsonl", "");
  expect_mentions(refusal([&] { find_data_files(directory.file("")); }), {"Parquet files beside others"});
  std::filesystem::rename(directory.file("train-00001-of-00002.parquet"), directory.file("c.arrow"));
  expect_mentions(refusal([&] { find_data_files(directory.file("")); }), {"Arrow files beside others", "*.arrow"});
  expect_mentions(refusal([&] { find_data_files(directory.file("none*")); }), {"no data file is there"});
  EXPECT_EQ(names_of(find_data_files(directory.file("not-there.jsonl"))), Texts{"not-there.jsonl"});
}

}  // namespace
}  // namespace snug
