#include "data/arrow/dictionary.h"

#include "data/arrow/damaged.h"

namespace snug::arrow {

void Dictionary::append(Array values) {
  for (int64_t i = 0; i < values.length(); ++i) {
    const bool null = values.is_null(i);
    const Array::Range range = null ? Array::Range{0, 0} : values.range(i);
    bytes_ += sizeof(std::optional<std::string>) + static_cast<size_t>(range.end - range.begin);
    if (bytes_ > kMostBytes) unsupported("a dictionary of more than 256 MiB");
    if (null) {
      values_.emplace_back();
    } else {
      values_.emplace_back(values.text(range));
    }
  }
}

const std::optional<std::string>& Dictionary::at(int64_t index) const {
  if (index < 0 || index >= static_cast<int64_t>(values_.size()))
    damaged("a column names a value that its dictionary lacks");
  return values_[static_cast<size_t>(index)];
}

}  // namespace snug::arrow
