#pragma once
// How attention carves the part of its workspace that belongs to one thread. Offsets are in floats, every piece starts on a
// cache line. Queries come in panels: a block of queries transposed, [panels, D, panel width], so that a vector holds one
// number of neighbouring queries; `rows` is padded to whole panels.

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace snug::kernels {

constexpr int64_t kQueryPadding = 32;  // the widest panel (two AVX-512 vectors)
constexpr int64_t kHeadPadding = 16;   // the widest vector

class AttentionCarver {
 public:
  int64_t take(int64_t floats) {
    const int64_t at = next_;
    next_ += (floats + 15) / 16 * 16;
    return at;
  }
  int64_t floats() const { return next_; }

 private:
  int64_t next_ = 0;
};

inline int64_t padded_to(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Where a block of queries stands: the sequence, the head, its first query.
struct QueriesAt {
  int64_t b, h, first;
};

// One of the threads that work together on a unit of the backward pass.
struct TeamMember {
  int64_t index, team;
};

// The keys, of those that are here, that queries before `end` see from `first` on: in whole blocks.
struct KeyRange {
  int64_t begin, end;

  template <class Op>
  KeyRange(const Op& op, int64_t first, int64_t last)
      : begin(op.first_key + std::max<int64_t>(first - op.first_key, 0) / op.cut.cols * op.cut.cols),
        end(std::min(last, op.first_key + op.keys)) {}
};

struct ForwardParts {
  int64_t rows;                   // queries a block, padded
  int64_t queries, out;           // panels
  int64_t keys, values;           // [cols, D]
  int64_t scores;                 // [cols, panel]
  int64_t highest, total, start;  // [rows]: running maximum and sum; first visible key (int32)
  int64_t floats;

  ForwardParts(int64_t block_rows, int64_t cols, int64_t head_size) : rows(padded_to(block_rows, kQueryPadding)) {
    AttentionCarver carver;
    queries = carver.take(rows * head_size);
    out = carver.take(rows * head_size);
    keys = carver.take(cols * head_size);
    values = carver.take(cols * head_size);
    scores = carver.take(cols * kQueryPadding);
    highest = carver.take(rows);
    total = carver.take(rows);
    start = carver.take(rows);
    floats = carver.floats();
  }
};

// Threads that work on one (sequence, key/value head) of the backward pass. Many such units balance by themselves; few are
// shared by teams that divide both the threads and the units.
inline int64_t backward_team(int64_t units, int64_t threads) {
  return units >= 8 * threads ? 1 : threads / std::gcd(units, threads);
}

// Blocks of queries that a team goes through between two meetings.
inline int64_t backward_round(int64_t rows, int64_t seq_len, int64_t team) {
  constexpr int64_t kRoundQueries = 1024;
  return team == 1 ? 1 : std::clamp<int64_t>((seq_len + rows - 1) / rows, 1, std::max<int64_t>(kRoundQueries / rows, 1));
}

struct BackwardParts {
  int64_t rows, head;              // padded
  int64_t queries, d_out;          // panels
  int64_t d_queries;               // panels of every block of a round
  int64_t query_rows, d_out_rows;  // [rows, head]
  int64_t keys, values;            // [cols, D]
  int64_t scores, d_scores;        // [cols, rows]
  int64_t lse, delta, start;       // [rows]
  int64_t floats;

  BackwardParts(int64_t block_rows, int64_t cols, int64_t head_size, int64_t round)
      : rows(padded_to(block_rows, kQueryPadding)), head(padded_to(head_size, kHeadPadding)) {
    AttentionCarver carver;
    queries = carver.take(rows * head_size);
    d_out = carver.take(rows * head_size);
    d_queries = carver.take(round * rows * head_size);
    query_rows = carver.take(rows * head);
    d_out_rows = carver.take(rows * head);
    keys = carver.take(cols * head_size);
    values = carver.take(cols * head_size);
    scores = carver.take(cols * rows);
    d_scores = carver.take(cols * rows);
    lse = carver.take(rows);
    delta = carver.take(rows);
    start = carver.take(rows);
    floats = carver.floats();
  }
};

// In bf16 tiles: a bf16 number takes half a float, keys are padded to tiles too.
struct ForwardPartsInBf16 {
  int64_t queries, out;           // panels: pairs along D; sums [D, panel]
  int64_t keys, values;           // [cols, D], [D, cols]
  int64_t scores, shares;         // [cols, panel], in pairs of keys
  int64_t turned;                 // [panel, D]
  int64_t highest, total, start;  // [rows]
  int64_t floats;

  ForwardPartsInBf16(int64_t block_rows, int64_t block_cols, int64_t head_size) {
    AttentionCarver carver;
    const int64_t rows = padded_to(block_rows, kQueryPadding), cols = padded_to(block_cols, kQueryPadding);
    queries = carver.take(rows * head_size / 2);
    out = carver.take(rows * head_size);
    keys = carver.take(cols * head_size / 2);
    values = carver.take(cols * head_size / 2);
    scores = carver.take(cols * kQueryPadding);
    shares = carver.take(cols * kQueryPadding / 2);
    turned = carver.take(kQueryPadding * head_size);
    highest = carver.take(rows);
    total = carver.take(rows);
    start = carver.take(rows);
    floats = carver.floats();
  }
};

struct BackwardPartsInBf16 {
  int64_t rows;                       // padded
  int64_t queries, d_out;             // panels: pairs along D
  int64_t d_queries;                  // sums [D, panel] of every block of a round
  int64_t query_pairs, d_out_pairs;   // [D / 32, rows / 2, 32, 2]
  int64_t keys, values, turned_keys;  // [cols, D], [cols, D], [D, cols]
  int64_t scores, d_scores;           // [cols, panel]
  int64_t share_rows, d_score_rows;   // [cols, rows]
  int64_t d_score_pairs;              // [cols / 2, panel, 2]
  int64_t tile;                       // [32, 32]
  int64_t lse, delta, start;          // [rows]
  int64_t floats;

  BackwardPartsInBf16(int64_t block_rows, int64_t block_cols, int64_t head_size, int64_t round)
      : rows(padded_to(block_rows, kQueryPadding)) {
    AttentionCarver carver;
    const int64_t cols = padded_to(block_cols, kQueryPadding);
    queries = carver.take(rows * head_size / 2);
    d_out = carver.take(rows * head_size / 2);
    d_queries = carver.take(round * rows * head_size);
    query_pairs = carver.take(rows * head_size / 2);
    d_out_pairs = carver.take(rows * head_size / 2);
    keys = carver.take(cols * head_size / 2);
    values = carver.take(cols * head_size / 2);
    turned_keys = carver.take(cols * head_size / 2);
    scores = carver.take(cols * kQueryPadding);
    d_scores = carver.take(cols * kQueryPadding);
    share_rows = carver.take(cols * rows / 2);
    d_score_rows = carver.take(cols * rows / 2);
    d_score_pairs = carver.take(cols * kQueryPadding / 2);
    tile = carver.take(kQueryPadding * kQueryPadding);
    lse = carver.take(rows);
    delta = carver.take(rows);
    start = carver.take(rows);
    floats = carver.floats();
  }
};

}  // namespace snug::kernels
