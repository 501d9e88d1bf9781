#pragma once
// What tests of row sources share: trees as text, and all rows of a source.

#include <string>
#include <vector>

#include "data/row_source.h"
#include "tokenizer/support.h"

namespace snug::test {

// A tree as compact JSON; floating point with all digits that matter.
std::string json_of(const JsonValue& value);

// What a source gives, one line a row: its JSON, or "bad: " and the problem.
std::vector<std::string> rows_of(RowSource& source);
std::vector<std::string> rows_of(const std::string& json_text);

}  // namespace snug::test
