// CSV beside Python's csv module (tests/oracle/data_csv.py), and what is no CSV.

#include "data/csv_reader.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/support_rows.h"

namespace snug {

namespace {

using Rows = std::vector<std::vector<std::string>>;

const std::filesystem::path kGolden = std::filesystem::path(SNUG_SOURCE_DIR) / "tests/golden/data/csv";

// The columns, then all records; a problem stands for a record's fields.
Rows rows_of(CsvReader& reader) {
  Rows rows = {reader.columns()};
  std::vector<std::string> fields;
  for (std::string problem; reader.next(fields, problem);)
    rows.push_back(problem.empty() ? fields : std::vector<std::string>{"! " + problem});
  return rows;
}

Rows rows_of(std::string_view text) {
  CsvReader reader(stream_of(text), "a.csv", ',');
  return rows_of(reader);
}

TEST(Csv, IsReadAsPythonReadsIt) {
  std::ifstream file(kGolden / "expected.json");
  size_t compared = 0;
  const auto expected = nlohmann::json::parse(file);
  for (const auto& [name, rows] : expected.items()) {
    const bool tabs = name.ends_with(".tsv");
    CsvReader reader(open_byte_stream(kGolden / name), name, tabs ? '\t' : ',');
    const Rows ours = rows_of(reader);
    ASSERT_EQ(ours.size(), rows.size()) << name;
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<std::string> theirs = rows[i];
      if (theirs.size() != reader.columns().size())  // Python writes a bare CR where lines end in LF, and reads it as an end
        theirs = {fmt::format("! has {} fields, and there are {} columns", theirs.size(), reader.columns().size())};
      EXPECT_EQ(ours[i], theirs) << name << " " << i;
    }
    compared += rows.size();
  }
  EXPECT_GT(compared, 750U);
}

TEST(Csv, SaysWhatIsWrongWithALineAndGoesOn) {
  EXPECT_EQ(rows_of("a,b\n1\n1,2,3\n\xFF,2\n1,2\n1,\"2"), (Rows{{"a", "b"},
                                                                {"! has 1 fields, and there are 2 columns"},
                                                                {"! has 3 fields, and there are 2 columns"},
                                                                {"! is not UTF-8"},
                                                                {"1", "2"},
                                                                {"! has a quotation mark that nothing closes"}}));
}

TEST(Csv, TellsTheLineOnWhichARecordBegins) {
  const std::string text = "a,b\r\n\"x\r\ny\",1\r\n\r\nz,2\r\n";
  CsvReader reader(stream_of(text), "a.csv", ',');
  std::vector<std::string> fields;
  std::string problem;
  std::vector<int64_t> lines;
  while (reader.next(fields, problem)) lines.push_back(reader.line_number());
  EXPECT_EQ(lines, (std::vector<int64_t>{2, 5}));
}

TEST(Csv, NeedsNamesOfItsColumns) {
  const auto refused = [](std::string_view text) { return test::refusal([&] { rows_of(text); }); };
  test::expect_mentions(refused(""), {"a.csv", "holds no line", "names the columns"});
  test::expect_mentions(refused("\n\r\n"), {"holds no line"});
  test::expect_mentions(refused("a,,b\n"), {"a column has no name"});
  test::expect_mentions(refused("a,b,a\n"), {"names \"a\" twice"});
  test::expect_mentions(refused("\"a\n"), {"quotation mark that nothing closes"});
}

}  // namespace

}  // namespace snug
