#include "data/arrow/arrow_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "data/support_rows.h"

namespace snug::arrow {
namespace {

using test::expect_mentions;
using test::refusal;
using Texts = std::vector<std::string>;

std::filesystem::path golden_arrow() { return std::filesystem::path(SNUG_SOURCE_DIR) / "tests/golden/data/arrow"; }

Texts read_rows(const std::filesystem::path& file, const Texts& columns = {}) {
  ArrowReader reader(file);
  return test::rows_of_columns(reader, columns);
}

// Every FILE.arrow of a directory, and every data set that is a directory in it, says what the file of the same name and
// .jsonl says, which pyarrow or `datasets` has read from it.
int64_t compare_all(const std::filesystem::path& directory) {
  int64_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::filesystem::path expected = entry.path();
    expected.replace_extension(".jsonl");
    if (entry.path() == expected || !std::filesystem::exists(expected)) continue;
    Texts rows;
    const std::string refused = refusal([&] {
      for (const auto& file : find_data_files(entry.path())) std::ranges::copy(read_rows(file), std::back_inserter(rows));
    });
    EXPECT_EQ(refused, "") << entry.path();
    const Texts wanted = test::rows_of(*open_row_source(expected));
    test::expect_same_rows(rows, wanted, entry.path());
    ++compared;
  }
  return compared;
}

TEST(ArrowMatrix, ReadsWhatPyarrowReadsInTheGoldenFiles) { EXPECT_EQ(compare_all(golden_arrow()), 6); }

// By hand: tests/oracle/data_arrow.py DIRECTORY --all
TEST(ArrowMatrix, ReadsWhatPyarrowReadsInAllFiles) {
  const char* directory = std::getenv("SNUG_ARROW_MATRIX");
  if (directory == nullptr) GTEST_SKIP() << "SNUG_ARROW_MATRIX names no directory";
  EXPECT_GE(compare_all(directory), 150);
}

TEST(ArrowReader, GivesOnlyTheColumnsThatAreWantedInTheirOrder) {
  const auto file = golden_arrow() / "pyarrow_types.arrow";
  ArrowReader reader(file);
  expect_mentions(refusal([&] { reader.select({"prompt"}); }), {"pyarrow_types.arrow", "column \"prompt\" is missing"});
  EXPECT_EQ(read_rows(file, {"u8", "i8"})[0], "{\"u8\":0,\"i8\":-128}");
}

TEST(ArrowReader, RefusesValuesThatRowsCannotHaveOnlyWhereTheyStand) {
  const auto file = golden_arrow() / "refused/values.arrow";
  EXPECT_EQ(read_rows(file, {"text"}), (Texts{"{\"text\":\"a\"}", "{\"text\":\"b\"}"}));
  ArrowReader reader(file);
  reader.select({"text", "bytes", "at"});
  JsonValue row;
  std::string problem;
  ASSERT_TRUE(reader.next(row, problem));  // its values are null
  EXPECT_EQ(test::json_of(row), "{\"text\":\"a\",\"bytes\":null,\"at\":null}");
  expect_mentions(refusal([&] { reader.next(row, problem); }),
                  {"values.arrow", "column \"bytes\" of type binary", "to_json"});
  expect_mentions(refusal([&] { read_rows(file, {"at"}); }), {"column \"at\" of type timestamp is not supported"});
  expect_mentions(refusal([&] { read_rows(file, {"nested"}); }), {"column \"nested.day\" of type date"});
  expect_mentions(refusal([&] { read_rows(file, {"codes"}); }), {"column \"codes\" of type dictionary of int"});
}

TEST(ArrowReader, RefusesWhatItDoesNotReadByName) {
  const test::TemporaryDirectory directory;
  expect_mentions(refusal([&] { read_rows(golden_arrow() / "refused/lz4.arrow"); }), {"compression LZ4 is not supported"});
  expect_mentions(refusal([&] { read_rows(golden_arrow() / "refused/view.arrow"); }), {"\"view\" of type string_view"});
  // A message whose Schema says nothing but that numbers are big-endian.
  const std::string big_endian(
      "\xFF\xFF\xFF\xFF\x30\0\0\0"
      "\x10\0\0\0\x0A\0\x0C\0\x04\0\x06\0\x08\0\0\0"
      "\x0C\0\0\0\x04\0\x01\0\x0C\0\0\0"
      "\x06\0\x06\0\x04\0\0\0\x08\0\0\0\x01\0\0\0\0\0\0\0",
      56);
  expect_mentions(refusal([&] { read_rows(directory.write("big.arrow", big_endian)); }), {"a big-endian file"});
  expect_mentions(refusal([&] { read_rows(directory.write("text.arrow", "{\"text\": \"a\"}\n")); }),
                  {"text.arrow", "damaged"});
  expect_mentions(refusal([&] { read_rows(directory.write("none.arrow", "")); }), {"none.arrow", "damaged"});
}

std::string bytes_in(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A file that lies in memory and is written anew thousands of times.
class MemoryFile {
 public:
  std::filesystem::path with(const std::string& bytes) const {
    if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      throw Error("no memory for a file");
    return "/proc/self/fd/" + std::to_string(file_);
  }
  MemoryFile() = default;
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(file_); }

 private:
  int file_ = ::memfd_create("test.arrow", 0);
};

// Of each fixture, whole.
std::vector<std::string> good_files() {
  std::vector<std::string> files;
  for (const char* name : {"pyarrow_stream.arrow", "pyarrow_zstd.arrow", "pyarrow_types.arrow", "pyarrow_legacy.arrow",
                           "pyarrow_dictionary.arrow", "saved/data-00000-of-00002.arrow"})
    files.push_back(bytes_in(golden_arrow() / name));
  return files;
}

TEST(ArrowReader, RefusesFilesThatAreCutOffAnywhere) {
  const MemoryFile file;
  for (const std::string& good : good_files()) {
    for (size_t size = 0; size < good.size(); ++size) {
      const auto cut = file.with(good.substr(0, size));
      EXPECT_NE(refusal([&] { read_rows(cut); }), "") << size;
    }
  }
}

// Every byte of a file changed in turn: rows or a refusal, never more.
TEST(ArrowReader, SurvivesChangedBytes) {
  const MemoryFile file;
  for (const std::string& good : good_files()) {
    for (size_t i = 0; i < good.size(); ++i) {
      constexpr char kChanges[] = {'\x01', '\x80', '\xFF', '\x10'};
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ kChanges[i % std::size(kChanges)]);
      const auto path = file.with(bad);
      refusal([&] { read_rows(path); });
    }
  }
}

TEST(ArrowReader, SaysWhichTextIsBadAndGoesOn) {
  const MemoryFile file;
  const std::string good = bytes_in(golden_arrow() / "saved/data-00000-of-00002.arrow");
  const auto rows_with = [&](char bad) {
    std::string bytes = good;
    const size_t at = bytes.find("\"user\"");
    EXPECT_NE(at, std::string::npos);
    bytes[at + 1] = bad;
    return read_rows(file.with(bytes));
  };
  for (const Texts& rows : {rows_with('\xFF'), rows_with('"')}) {
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[1], read_rows(golden_arrow() / "saved/data-00000-of-00002.arrow")[1]);
  }
  EXPECT_EQ(rows_with('\xFF')[0], "bad: column \"messages.item\" is not UTF-8");
  EXPECT_TRUE(rows_with('"')[0].starts_with("bad: column \"messages.item\": not valid JSON"));
}

}  // namespace
}  // namespace snug::arrow
