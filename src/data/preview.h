#pragma once
// The first rows of a dataset as training sees them: tokens, and which of them are learned.

#include <string>
#include <vector>

#include "data/dataset.h"

namespace snug {

struct PreviewedRow {
  std::string where;            // its place in the file
  std::vector<int32_t> tokens;  // of all its documents, cut as in training
  std::vector<bool> learned;
  int64_t length = 0;    // tokens before cutting
  bool dropped = false;  // nothing is left to learn
};

struct Preview {
  RowFormat format = RowFormat::text;
  std::vector<PreviewedRow> rows;
};

// At most so many. Throws Error as prepare_dataset does; of bad rows the first.
Preview preview(const DatasetRequest& request, const Tokenizer& tokenizer, int64_t rows);

}  // namespace snug
