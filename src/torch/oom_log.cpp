#include "torch/oom_log.h"

#include <algorithm>

namespace snug {

namespace {

constexpr size_t kBefore = size_t{512} << 10;
constexpr size_t kBehind = size_t{96} << 10;
constexpr size_t kScanEvery = size_t{1} << 20;
constexpr size_t kHead = size_t{1} << 20;
constexpr size_t kMostMessages = 256;
constexpr size_t kWrapped = 64;  // bytes of the line before, in which a wording may begin

// THC printed a line of its own before the exception that tells the same; "CUDA error: out of memory" is followed by lines
// that repeat it in other words.
bool repeats(const OomMessage& last, const OomMessage& next) {
  return last.source == next.source && !next.tried_bytes && next.line - last.line <= 64 && last.rank == next.rank &&
         (next.source == OomSource::thc || next.source == OomSource::killed || next.source == OomSource::caffe2);
}

}  // namespace

std::vector<int> OomLog::ranks() const {
  std::vector<int> ranks;
  for (const OomMessage& message : messages)
    if (message.rank) ranks.push_back(*message.rank);
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void OomLogReader::add(const LogLine& line) {
  starts_.push_back({text_.size(), line.number, line.rank});
  text_ += line.text;
  text_ += '\n';
  ++log_.lines;
  if (log_.head.size() < kHead) {
    log_.head += line.text;
    log_.head += '\n';
  }
  if (text_.size() >= kBefore + kBehind + 2 * kScanEvery) {
    scan(false);
    forget();
  }
}

void OomLogReader::scan(bool to_the_end) {
  while (next_ < starts_.size() && (to_the_end || starts_[next_].begin + kBehind + kLongestLine < text_.size()))
    scan_line(next_++);
}

void OomLogReader::scan_line(size_t index) {
  const Line& start = starts_[index];
  const size_t end = index + 1 < starts_.size() ? starts_[index + 1].begin : text_.size();
  const std::string_view text = text_;
  const size_t before =
      index > 0 ? std::max(starts_[index - 1].begin, start.begin - std::min(start.begin, kWrapped)) : start.begin;
  size_t from = std::max(before, told_);
  while (from < end) {
    const std::string_view window = text.substr(from, end - from);
    const auto found = find_wording(window, start.begin > from ? start.begin - from : 0);
    if (!found) return;
    const size_t at = from + found->begin;
    size_t behind = at;
    OomMessage message = read_oom_message(text, at, found->source, behind);
    message.line = start.number;
    message.rank = start.rank;
    told_ = std::max(behind, from + found->end);
    keep(std::move(message), found->surety, at);
    from = told_;
  }
}

void OomLogReader::keep(OomMessage message, Surety surety, size_t at) {
  if (!log_.messages.empty() && repeats(log_.messages.back(), message)) return;
  ++log_.count;
  const bool first = !surety_ || surety > *surety_;
  if (log_.messages.size() < kMostMessages) {
    log_.messages.push_back(std::move(message));
  } else if (first) {
    log_.messages.back() = std::move(message);
  }
  if (!first) return;
  surety_ = surety;
  log_.first = log_.messages.size() - 1;
  const size_t begin = at - std::min(at, kBefore);
  log_.around = text_.substr(begin, at - begin + kBehind);
  log_.at = at - begin;
}

// Lines that were looked at and are too far back to be of use.
void OomLogReader::forget() {
  const size_t looked_at = next_ < starts_.size() ? starts_[next_].begin : text_.size();
  if (looked_at <= kBefore) return;
  const auto keep = std::ranges::find_if(starts_, [&](const Line& line) { return line.begin + kBefore >= looked_at; });
  const size_t cut = keep->begin;
  next_ -= static_cast<size_t>(keep - starts_.begin());
  starts_.erase(starts_.begin(), keep);
  for (Line& line : starts_) line.begin -= cut;
  text_.erase(0, cut);
  told_ -= std::min(told_, cut);
}

OomLog OomLogReader::finish() {
  lines_.finish();
  scan(true);
  return std::move(log_);
}

OomLog read_oom_log(std::string_view text) {
  OomLogReader reader;
  reader.feed(text);
  return reader.finish();
}

}  // namespace snug
