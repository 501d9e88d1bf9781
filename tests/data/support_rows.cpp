#include "data/support_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace snug::test {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

std::string json_of(const JsonValue& value) {
  if (value.boolean() != nullptr) return *value.boolean() ? "true" : "false";
  if (value.integer() != nullptr) return std::to_string(*value.integer());
  if (value.number() != nullptr) return fmt::format("{:.17g}", *value.number());
  if (value.string() != nullptr) return quoted(*value.string());
  if (value.list() != nullptr) {
    std::string out = "[";
    for (const JsonValue& item : *value.list()) out += (out.size() > 1 ? "," : "") + json_of(item);
    return out + "]";
  }
  if (value.object() != nullptr) {
    std::string out = "{";
    for (const JsonMember& member : *value.object())
      out += (out.size() > 1 ? "," : "") + quoted(member.name) + ":" + json_of(member.value);
    return out + "}";
  }
  return "null";
}

std::vector<std::string> rows_of(RowSource& source) {
  std::vector<std::string> rows;
  SourceRow row;
  while (source.next(row)) rows.push_back(row.problem.empty() ? json_of(row.fields) : "bad: " + row.problem);
  return rows;
}

std::vector<std::string> rows_of(const std::string& json_text) { return rows_of(*json_row_source(json_text, "d.jsonl")); }

void expect_same_rows(const std::vector<std::string>& rows, const std::vector<std::string>& wanted,
                      const std::filesystem::path& where) {
  constexpr size_t kShown = 900;
  EXPECT_EQ(rows.size(), wanted.size()) << where;
  for (size_t i = 0; i < std::min(rows.size(), wanted.size()); ++i) {
    if (rows[i] == wanted[i]) continue;
    ADD_FAILURE() << where << ", row " << i + 1 << "\n  " << rows[i].substr(0, kShown) << "\n  "
                  << wanted[i].substr(0, kShown);
    return;
  }
}

}  // namespace snug::test
