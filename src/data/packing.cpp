#include "data/packing.h"

#include <limits>
#include <numeric>
#include <set>

#include "base/error.h"

namespace snug {
namespace {

using Indices = std::vector<int32_t>;

// Documents from the longest to the shortest, equals in their order.
Indices longest_first(std::span<const int32_t> lengths, int64_t seq_len) {
  std::vector<int64_t> next(static_cast<size_t>(seq_len) + 2, 0);  // by seq_len - length: where the next one goes
  for (const int32_t length : lengths) {
    if (length < 1 || length > seq_len) throw Error("a document of " + std::to_string(length) + " tokens cannot be packed");
    ++next[static_cast<size_t>(seq_len - length) + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  Indices order(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) {
    order[static_cast<size_t>(next[static_cast<size_t>(seq_len - lengths[i])]++)] = static_cast<int32_t>(i);
  }
  return order;
}

// Open rows by the room that is left in them: one stack for each amount of room.
class OpenRows {
 public:
  explicit OpenRows(int64_t seq_len) : top_(static_cast<size_t>(seq_len), -1) {}

  // Takes out the row with the least room that is at least `length`; -1 if there is none.
  int32_t take(int32_t length, int32_t& room) {
    const auto fitting = rooms_.lower_bound(length);
    if (fitting == rooms_.end()) return -1;
    room = *fitting;
    int32_t& top = top_[static_cast<size_t>(room)];
    const int32_t row = top;
    top = below_[static_cast<size_t>(row)];
    if (top < 0) rooms_.erase(fitting);
    return row;
  }

  void put(int32_t row, int32_t room) {
    if (room == 0) return;
    if (static_cast<size_t>(row) >= below_.size()) below_.resize(static_cast<size_t>(row) + 1, -1);
    int32_t& top = top_[static_cast<size_t>(room)];
    if (top < 0) rooms_.insert(room);
    below_[static_cast<size_t>(row)] = top;
    top = row;
  }

 private:
  Indices top_;    // by room
  Indices below_;  // by row: the row under it in its stack
  std::set<int32_t> rooms_;
};

}  // namespace

PackedRows pack(std::span<const int32_t> lengths, int64_t seq_len) {
  if (seq_len < 1 || seq_len >= std::numeric_limits<int32_t>::max()) throw Error("seq_len is out of range");
  if (lengths.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) throw Error("too many documents to pack");
  Indices row_of(lengths.size());
  int32_t rows = 0;
  OpenRows open(seq_len);
  for (const int32_t document : longest_first(lengths, seq_len)) {
    const int32_t length = lengths[static_cast<size_t>(document)];
    auto room = static_cast<int32_t>(seq_len);
    int32_t row = open.take(length, room);
    if (row < 0) row = rows++;
    open.put(row, room - length);
    row_of[static_cast<size_t>(document)] = row;
  }
  // Rows get the order of their first documents.
  Indices place(static_cast<size_t>(rows), -1);
  PackedRows packed;
  packed.first.assign(static_cast<size_t>(rows) + 1, 0);
  int32_t seen = 0;
  for (int32_t& row : row_of) {
    int32_t& at = place[static_cast<size_t>(row)];
    if (at < 0) at = seen++;
    row = at;
    ++packed.first[static_cast<size_t>(row) + 1];
  }
  std::partial_sum(packed.first.begin(), packed.first.end(), packed.first.begin());
  std::vector<int64_t> next(packed.first.begin(), packed.first.end() - 1);
  packed.documents.resize(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) {
    packed.documents[static_cast<size_t>(next[static_cast<size_t>(row_of[i])]++)] = static_cast<int32_t>(i);
  }
  return packed;
}

PackedRows one_each(int64_t documents) {
  if (documents >= std::numeric_limits<int32_t>::max()) throw Error("too many documents");
  PackedRows rows;
  rows.first.resize(static_cast<size_t>(documents) + 1);
  rows.documents.resize(static_cast<size_t>(documents));
  std::iota(rows.first.begin(), rows.first.end(), int64_t{0});
  std::iota(rows.documents.begin(), rows.documents.end(), 0);
  return rows;
}

}  // namespace snug
