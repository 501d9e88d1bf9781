#pragma once
// Rows that cannot be used: counted all, told of up to a bound, and judged at the end.

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"

namespace snug {

class BadRows {
 public:
  static constexpr int64_t kMostShown = 20;

  explicit BadRows(std::function<void(const std::string&)> complain) : complain_(std::move(complain)) {}

  // The first is told of when a second comes, or by `tell_first`: alone it is an Error, said once.
  void add(const Error& row) {
    if (count_ == 1) tell_first();
    if (count_ == 0) first_ = row;
    if (++count_ > 1 && count_ <= kMostShown && complain_) complain_(row.what());
  }
  void tell_first() const {
    if (count_ > 0 && complain_) complain_(first_->what());
  }

  int64_t count() const { return count_; }

  // Throws the Error of the only bad row, or one that says how many there are among `rows`, good and bad.
  void judge(int64_t rows, const std::string& file) const {
    if (count_ == 0) return;
    if (count_ == 1) throw Error(*first_);
    // Where every row is bad the fault is not the rows'.
    const bool all = count_ == rows && !first_->mend().empty();
    throw Error(std::to_string(count_) + " of " + std::to_string(rows) + " rows are bad; the first is " + first_->where() +
                    ": " + first_->problem(),
                file, all ? first_->mend() : "mend them, or leave them out with skip_bad_rows: true");
  }

 private:
  std::function<void(const std::string&)> complain_;
  std::optional<Error> first_;
  int64_t count_ = 0;
};

}  // namespace snug
