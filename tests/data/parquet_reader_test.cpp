#include "data/parquet/parquet_reader.h"

#include <algorithm>
#include <cstdlib>

#include "data/support_rows.h"

namespace snug {
namespace {

using parquet::ParquetReader;
using test::expect_mentions;
using test::refusal;
using Texts = std::vector<std::string>;

std::filesystem::path golden_parquet() { return std::filesystem::path(SNUG_SOURCE_DIR) / "tests/golden/data/parquet"; }

Texts read_rows(const std::filesystem::path& file, const Texts& columns = {}, int64_t most_page_bytes = int64_t{64} << 20) {
  ParquetReader reader(file, most_page_bytes);
  return test::rows_of_columns(reader, columns);
}

// Every FILE.parquet of a directory says what FILE.jsonl, which pyarrow has read from it, says.
int64_t compare_all(const std::filesystem::path& directory) {
  int64_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".parquet") continue;
    std::filesystem::path expected = entry.path();
    Texts rows;
    const std::string refused = refusal([&] { rows = read_rows(entry.path()); });
    EXPECT_EQ(refused, "") << entry.path();
    const Texts wanted = test::rows_of(*open_row_source(expected.replace_extension(".jsonl")));
    test::expect_same_rows(rows, wanted, entry.path());
    ++files;
  }
  return files;
}

TEST(ParquetMatrix, ReadsWhatPyarrowReadsInTheGoldenFiles) { EXPECT_EQ(compare_all(golden_parquet()), 7); }

// By hand: tests/oracle/data_parquet.py DIRECTORY --all
TEST(ParquetMatrix, ReadsWhatPyarrowReadsInAllFiles) {
  const char* directory = std::getenv("SNUG_PARQUET_MATRIX");
  if (directory == nullptr) GTEST_SKIP() << "SNUG_PARQUET_MATRIX names no directory";
  EXPECT_GE(compare_all(directory), 200);
}

TEST(ParquetReader, GivesOnlyTheColumnsThatAreWantedInTheirOrder) {
  const auto file = golden_parquet() / "pyarrow_snappy.parquet";
  ParquetReader reader(file);
  expect_mentions(refusal([&] { reader.select({"prompt"}); }), {"pyarrow_snappy.parquet", "column \"prompt\" is missing"});
  const Texts rows = read_rows(file, {"kind", "flag"});
  ASSERT_EQ(rows.size(), 12U);
  EXPECT_TRUE(rows[0].starts_with("{\"kind\":")) << rows[0];
}

std::string bytes_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ParquetReader, RefusesFilesThatAreCutOff) {
  const test::TemporaryDirectory directory;
  const std::string good = bytes_of_file(golden_parquet() / "pyarrow_v2_zstd.parquet");
  for (const size_t size : {size_t{4}, size_t{11}, size_t{12}, good.size() / 2, good.size() - 1}) {
    const auto cut = directory.write("cut.parquet", good.substr(0, size));
    expect_mentions(refusal([&] { read_rows(cut); }), {"cut.parquet", "damaged"});
  }
}

// Every 23rd byte of a file changed in turn: rows or a refusal, never more. The checksums find every change in a page.
TEST(ParquetReader, SurvivesChangedBytes) {
  const test::TemporaryDirectory directory;
  for (const char* name : {"pyarrow_v2_zstd.parquet", "pyarrow_legacy_list.parquet", "duckdb.parquet"}) {
    const std::string good = bytes_of_file(golden_parquet() / name);
    for (size_t i = 0; i < good.size(); i += 23) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (i % 2 == 0 ? '\x01' : '\x80'));
      const auto file = directory.write("bad.parquet", bad);
      refusal([&] { read_rows(file, {}, int64_t{1} << 20); });
    }
  }
}

TEST(ParquetReader, FindsAPageThatItsChecksumDoesNotFit) {
  const test::TemporaryDirectory directory;
  std::string bad = bytes_of_file(golden_parquet() / "pyarrow_v2_zstd.parquet");
  const size_t frame = bad.find("\x28\xB5\x2F\xFD");
  ASSERT_NE(frame, std::string::npos);
  bad[frame + 12] = static_cast<char>(bad[frame + 12] ^ 1);
  const auto file = directory.write("bad.parquet", bad);
  expect_mentions(refusal([&] { read_rows(file); }), {"bad.parquet", "checksum", "column \"text\""});
}

}  // namespace
}  // namespace snug
