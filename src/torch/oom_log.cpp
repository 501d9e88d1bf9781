#include "torch/oom_log.h"

#include <algorithm>

#include "torch/words.h"

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

// "Out of memory: Killed process 12 (python) … anon-rss:31451456kB" behind the kernel's other lines.
bool is_kernels_sum(const OomMessage& last, const OomMessage& next) {
  return next.source == OomSource::killed && next.process_bytes && !last.process_bytes;
}

// PyTorch always gives figures: its words alone, with no exception's name in front, may be somebody's prose or advice.
Surety without_figures(const OomMessage& message, Surety surety, std::string_view before) {
  const bool prose = message.source == OomSource::torch_cuda && !message.tried_bytes && !before.ends_with("Error: ") &&
                     !contains(message.text, "EB memory");
  return prose ? Surety::hint : surety;
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
  starts_.push_back({text_.size(), line.number, line.rank, line.by_vllm});
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
    message.by_vllm = start.by_vllm;
    told_ = std::max(behind, from + found->end);
    keep(std::move(message), found->surety, at);
    from = told_;
  }
}

// True for a message with figures where the one taken for the cause is of the same allocator and has none.
bool OomLogReader::tells_more(const OomMessage& message) const {
  return log_.first && !log_.cause().tried_bytes && log_.cause().source == message.source && message.has_figures() &&
         !contains(log_.cause().text, "EB memory");
}

void OomLogReader::keep(OomMessage message, Surety surety, size_t at) {
  const bool again = !log_.messages.empty() && repeats(log_.messages.back(), message);
  if (again && (!surety_ || surety <= *surety_) && !is_kernels_sum(log_.messages.back(), message)) return;
  if (!again) ++log_.count;
  surety = without_figures(message, surety, std::string_view(text_).substr(0, at));
  const bool first = !surety_ || surety > *surety_ || tells_more(message) || again;
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

// "RuntimeError: CUDA out o": the text ends within the words.
void OomLogReader::scan_cut_end() {
  constexpr std::string_view kWords = "Error: CUDA out of memory";
  constexpr size_t kLeast = 15;  // "Error: CUDA out"
  if (log_.first || starts_.empty()) return;
  std::string_view text = text_;
  while (text.ends_with('\n')) text.remove_suffix(1);
  for (size_t length = kWords.size() - 1; length >= kLeast; --length) {
    if (!text.ends_with(kWords.substr(0, length))) continue;
    OomMessage message;
    message.text = text.substr(text.size() - length + std::string_view("Error: ").size());
    message.line = starts_.back().number;
    message.rank = starts_.back().rank;
    keep(std::move(message), Surety::hint, text.size() - length + std::string_view("Error: ").size());
    return;
  }
}

OomLog OomLogReader::finish() {
  lines_.finish();
  scan(true);
  scan_cut_end();
  return std::move(log_);
}

OomLog read_oom_log(std::string_view text) {
  OomLogReader reader;
  reader.feed(text);
  return reader.finish();
}

}  // namespace snug
