#include "explain/loops.h"

#include <algorithm>
#include <map>
#include <span>

namespace snug {

namespace {

// An allocation of the program's own thread; of neighbours with one stack the first.
struct Visit {
  uint32_t event = 0;
  StackId stack = 0;
};

std::vector<Visit> visits_of(const Snapshot& snapshot, int device, size_t moment, CallPaths& paths) {
  std::vector<Visit> visits;
  const size_t end = std::min(moment + 1, snapshot.event_count(device));  // the request that failed tells where it stood
  for (size_t i = 0; i < end; ++i) {
    const Event& event = snapshot.event(device, i);
    if (event.action != Action::alloc && event.action != Action::oom) continue;
    const CallPath& path = paths.of(event.stack);
    if (path.engine || path.frames.empty() || (!visits.empty() && visits.back().stack == event.stack)) continue;
    visits.push_back({static_cast<uint32_t>(i), event.stack});
  }
  return visits;
}

// What stands at one depth of the stacks, run by run.
struct Token {
  FrameId frame = 0;
  uint32_t first = 0;  // of the visits
};

// The line that stands for a round: it comes again and again. Of lines that come about as often the first; a line that comes
// at every second to third round, such as an optimizer's step after several micro-batches, stands for the larger round.
std::optional<FrameId> round_mark(const std::vector<Token>& tokens) {
  std::map<FrameId, size_t> counts;
  for (const Token& token : tokens) ++counts[token.frame];
  size_t most = 0;
  for (const auto& [frame, count] : counts) most = std::max(most, count);
  if (most < 2) return std::nullopt;
  const auto first_with = [&](size_t least, size_t below) -> std::optional<FrameId> {
    for (const Token& token : tokens)
      if (counts[token.frame] >= least && counts[token.frame] < below) return token.frame;
    return std::nullopt;
  };
  constexpr size_t kEnough = 6;
  if (most >= kEnough)
    if (const auto rare = first_with(std::max<size_t>(3, 3 * most / 10), 3 * most / 4)) return rare;
  return first_with(std::max<size_t>(2, 3 * most / 4), most + 1);
}

class LoopFinder {
 public:
  LoopFinder(const Snapshot& snapshot, CallPaths& paths, std::vector<Visit> visits)
      : snapshot_(snapshot), paths_(paths), visits_(std::move(visits)) {}

  std::vector<Loop> find() {
    if (visits_.empty()) return {};
    rest_ = visits_;
    for (size_t depth = 0; depth < reference().frames.size() && look_at(depth); ++depth) narrow(depth);
    return std::move(loops_);
  }

 private:
  const CallPath& reference() const { return path_of(visits_.back()); }
  const CallPath& path_of(const Visit& visit) const { return paths_.of(visit.stack); }

  std::vector<Token> tokens_at(size_t depth) const {
    std::vector<Token> tokens;
    for (size_t i = 0; i < rest_.size(); ++i) {
      const std::vector<FrameId>& frames = path_of(rest_[i]).frames;
      if (frames.size() > depth && (tokens.empty() || tokens.back().frame != frames[depth]))
        tokens.push_back({frames[depth], static_cast<uint32_t>(i)});
    }
    return tokens;
  }

  // False where deeper frames are parts of one pass.
  bool look_at(size_t depth) {
    const bool inside_module = depth > reference().module;
    if (inside_module && !loops_.empty()) return false;
    const std::vector<Token> tokens = tokens_at(depth);
    if (tokens.size() < 2) return true;
    const auto mark = round_mark(tokens);
    if (!mark) return !inside_module;
    if (inside_module && !is_pass(depth)) return false;
    take(*mark, tokens);
    return true;
  }

  // A module's forward that is called again from the same line: then its first line does not come again within one pass.
  bool is_pass(size_t depth) const { return depth <= reference().module + 8 && starts_once(); }

  // The first stack of all comes again only where the whole pass does.
  bool starts_once() const {
    size_t count = 0;
    for (const Visit& visit : rest_) count += visit.stack == rest_.front().stack ? 1 : 0;
    return count >= 2 && path_of(rest_.front()).frames.size() > reference().module + 4;
  }

  void take(FrameId mark, const std::vector<Token>& tokens) {
    Loop loop;
    const StackFrame& frame = snapshot_.stacks.frame(mark);
    loop.place = {std::string(snapshot_.texts[frame.file]), frame.line, std::string(snapshot_.texts[frame.function]), {}};
    size_t last = 0;
    for (const Token& token : tokens) {
      if (token.frame != mark) continue;
      loop.begins.push_back(rest_[token.first].event);
      last = token.first;
    }
    const auto earlier = [&](const Token& token) { return token.first < last && token.frame == tokens.back().frame; };
    loop.left = std::ranges::none_of(tokens, earlier);
    loop.computes = std::ranges::any_of(rest_, [&](const Visit& visit) { return path_of(visit).calls_module(); });
    loops_.push_back(std::move(loop));
    rest_ = rest_.subspan(last);
  }

  // To what was called from where the moment stands.
  void narrow(size_t depth) {
    size_t first = rest_.size() - 1;
    const FrameId here = reference().frames[depth];
    const auto stays = [&](const Visit& visit) {
      const std::vector<FrameId>& frames = path_of(visit).frames;
      return frames.size() > depth && frames[depth] == here;
    };
    while (first > 0 && stays(rest_[first - 1])) --first;
    rest_ = rest_.subspan(first);
  }

  const Snapshot& snapshot_;
  CallPaths& paths_;
  const std::vector<Visit> visits_;
  std::span<const Visit> rest_;
  std::vector<Loop> loops_;
};

}  // namespace

std::vector<Loop> loops_at(const Snapshot& snapshot, int device, size_t moment, CallPaths& paths) {
  return LoopFinder(snapshot, paths, visits_of(snapshot, device, moment, paths)).find();
}

}  // namespace snug
