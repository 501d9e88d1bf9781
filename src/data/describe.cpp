// What a summary says to people.

#include <fmt/format.h>

#include "data/dataset.h"

namespace snug {
namespace {

// 7473 as "7,473".
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

// 1234567 as "1.2 M"; exact below ten thousand.
std::string rounded(int64_t number) {
  const auto value = static_cast<double>(number);
  if (number < 10'000) return grouped(number);
  if (value < 999'500) return fmt::format("{:.0f} K", value / 1e3);
  if (value < 999.95e6) return fmt::format("{:.1f} M", value / 1e6);
  return fmt::format("{:.2f} G", value / 1e9);
}

std::string counted(int64_t number, const char* one, const char* many) {
  return fmt::format("{} {}", grouped(number), number == 1 ? one : many);
}

std::string sequences(const DatasetSummary& s) {
  if (s.buckets <= 1) return fmt::format("{} of {}", counted(s.rows, "sequence", "sequences"), grouped(s.bucket_length[0]));
  std::string text = counted(s.rows, "sequence", "sequences") + " padded to";
  for (size_t i = 0; i < static_cast<size_t>(s.buckets); ++i)
    text += fmt::format("{} {} ({})", i == 0 ? "" : ",", grouped(s.bucket_length[i]), grouped(s.bucket_rows[i]));
  return text;
}

}  // namespace

std::string describe(const DatasetSummary& s) {
  const double learned = s.tokens == 0 ? 0.0 : 100.0 * static_cast<double>(s.label_tokens) / static_cast<double>(s.tokens);
  std::string text =
      fmt::format("{}, {}, {} tokens ({:.1f} % learned), longest {}; {}, {:.1f} % padding",
                  counted(s.source_rows, "row", "rows"), name_of(static_cast<RowFormat>(s.format)), rounded(s.tokens),
                  learned, grouped(s.longest_document), sequences(s), 100.0 * s.padding_share);
  if (s.held_out > 0) text += fmt::format("\n  {} of them held out for evaluation", grouped(s.held_out));
  if (s.bad_rows > 0) text += fmt::format("\n  {} left out", counted(s.bad_rows, "bad row", "bad rows"));
  if (s.cut > 0)
    text += fmt::format("\n  {} longer than {} tokens, cut into several", counted(s.cut, "row", "rows"), grouped(s.seq_len));
  if (s.truncated + s.dropped > 0) {
    text += fmt::format("\n  {} lost the end, {} all there was to learn: raise max_length above {} to keep them",
                        counted(s.truncated, "row", "rows"), grouped(s.dropped), grouped(s.seq_len));
  }
  return text;
}

std::string describe_lengths(const DatasetSummary& s) {
  int64_t rows = 0;
  for (const int64_t count : s.lengths) rows += count;
  std::string text;
  for (size_t i = 0; i < s.lengths.size(); ++i) {
    if (s.lengths[i] == 0) continue;
    const double share = 100.0 * static_cast<double>(s.lengths[i]) / static_cast<double>(rows);
    text += fmt::format("{} {}–{}: {:.{}f} %", text.empty() ? "lengths" : ",", grouped(int64_t{1} << i),
                        grouped((int64_t{2} << i) - 1), share, share < 9.95 ? 1 : 0);
  }
  return text;
}

}  // namespace snug
