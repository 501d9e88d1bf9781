#include "plan/block_options.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "program/passes/made_again.h"

namespace snug {

namespace {

// What is kept, let go or moved as one.
struct Choice {
  std::vector<StorageId> storages;
  MadeAgain::Set set;
  int64_t bytes = 0;
  double late_seconds = 0;  // that a backward waits for it where it is away and read at once
};

// What a block's passes take, and what its copies take beside them.
class BlockClock {
 public:
  BlockClock(const CostModel& cost, const Program& program, int32_t block, const std::optional<FarHome>& far)
      : beside_(cost.copies_beside), forward_(seconds_of_body(cost, program, program.region(Section::blocks, block))) {
    for (const Item& item : program.region(Section::blocks_backward, block).items) {
      const Op* op = item.op();
      if (op == nullptr) continue;
      backward_ += seconds_of(cost, program, *op);
      for (const Operand& operand : op->operands) last_use_[program.tensor(operand.tensor).storage] = backward_;
    }
    if (!far) return;
    sent_ = seconds_a_byte(cost.rate(link_to(far->home)));
    fetched_ = seconds_a_byte(cost.rate(link_from(far->home)));
    input_bytes_ = static_cast<double>(far->input_bytes);
  }

  // More than what a block takes that keeps everything, its input too. A copy that nobody waits for counts for a little, so
  // that none is made for nothing. `late`: seconds that what is away is awaited to make other things again.
  double more(double again, int64_t away_bytes, double late) const {
    constexpr double kForNothing = 1e-6;
    return seconds(again + late, static_cast<double>(away_bytes)) - forward_ - backward_ +
           kForNothing * static_cast<double>(away_bytes) * (sent_ + fetched_);
  }

  // What is read at a backward's begin is fetched while the backward before ends, from the op on that is the last to see its
  // window. Seconds that are left to wait.
  double late_seconds(const Choice& choice) const {
    double last = 0;
    for (StorageId id : choice.storages)
      if (const auto found = last_use_.find(id); found != last_use_.end()) last = std::max(last, found->second);
    return std::max(0.0, static_cast<double>(choice.bytes) * fetched_ - (backward_ - last));
  }

 private:
  static double seconds_of_body(const CostModel& cost, const Program& program, const Region& body) {
    double sum = 0;
    for (const Item& item : body.items)
      if (const Op* op = item.op()) sum += seconds_of(cost, program, *op);
    return sum;
  }

  static double seconds_a_byte(const CostRate& rate) { return rate.bytes > 0 ? 1 / rate.bytes : 0; }

  double seconds(double again, double away_bytes) const {
    const double sent = sent_ * (away_bytes + input_bytes_), fetched = fetched_ * (away_bytes + input_bytes_);
    if (!beside_) return forward_ + sent + backward_ + again + fetched;
    return std::max(forward_, sent) + std::max(backward_ + again, fetched);
  }

  bool beside_;
  double forward_ = 0, backward_ = 0;
  double sent_ = 0, fetched_ = 0;  // a byte
  double input_bytes_ = 0;
  std::map<StorageId, double> last_use_;  // seconds from a backward's begin
};

std::vector<Choice> choices_of(const Program& program, const BlockRun& block, const MadeAgain& again, size_t most_choices) {
  std::vector<Choice> choices;
  for (StorageId id : block.saved)
    choices.push_back({{id}, again.set_of({id}), align_up(program.storage(id).bytes, kAlignment)});
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) { return a.bytes > b.bytes; });
  while (choices.size() > most_choices) {
    const Choice smallest = std::move(choices.back());
    choices.pop_back();
    Choice& next = choices.back();
    next.storages.insert(next.storages.end(), smallest.storages.begin(), smallest.storages.end());
    next.set |= smallest.set;
    next.bytes += smallest.bytes;
  }
  return choices;
}

// Two subsets of the choices, as bits: what is let go of, what is moved.
struct Subset {
  uint32_t released = 0, away = 0;
  int64_t kept_bytes = 0;
  double seconds = 0;
};

// What making again takes and which choices it reads.
struct Again {
  double seconds = 0;
  uint32_t reads = 0;
};

// By what is let go of, as bits.
std::vector<Again> again_by(const std::vector<Choice>& choices, const MadeAgain& again, const MadeAgain::Set& always_lost,
                            const std::vector<double>& seconds) {
  std::vector<Again> all(size_t{1} << choices.size());
  for (size_t bits = 1; bits < all.size(); ++bits) {
    MadeAgain::Set lost = always_lost, read;
    for (size_t i = 0; i < choices.size(); ++i)
      if ((bits >> i & 1) != 0) lost |= choices[i].set;
    for (size_t op : again.ops(lost)) {
      all[bits].seconds += seconds[op];
      read |= again.reads_of(op);
    }
    for (size_t i = 0; i < choices.size(); ++i)
      if ((read & choices[i].set).any()) all[bits].reads |= uint32_t{1} << i;
  }
  return all;
}

// `layers`: those that share a window for what waits on disk; 0: nothing does.
std::vector<Subset> subsets_of(const std::vector<Choice>& choices, const std::vector<Again>& again, const BlockClock& clock,
                               int64_t layers) {
  const uint32_t all = (uint32_t{1} << choices.size()) - 1;
  std::vector<int64_t> bytes(size_t{all} + 1);
  std::vector<double> late(bytes.size());
  for (uint32_t bits = 0; bits <= all; ++bits)
    for (size_t i = 0; i < choices.size(); ++i)
      if ((bits >> i & 1) != 0) bytes[bits] += choices[i].bytes, late[bits] += choices[i].late_seconds;
  std::vector<Subset> subsets;
  for (uint32_t released = 0; released <= all; ++released) {
    const uint32_t rest = all & ~released;
    uint32_t away = layers > 0 ? rest : 0;
    while (true) {  // every subset of the rest
      const Again& made = again[released];
      const double seconds = clock.more(made.seconds, bytes[away], late[away & made.reads]);
      const int64_t window = away == 0 ? 0 : bytes[away] / layers;
      subsets.push_back({released, away, bytes[rest & ~away] + window, seconds});
      if (away == 0) break;
      away = (away - 1) & rest;
    }
  }
  return subsets;
}

// From the least kept to all: what is no faster than one that keeps less is beaten.
std::vector<Subset> unbeaten(std::vector<Subset> subsets) {
  std::sort(subsets.begin(), subsets.end(), [](const Subset& a, const Subset& b) {
    return std::tie(a.kept_bytes, a.seconds, a.released, a.away) < std::tie(b.kept_bytes, b.seconds, b.released, b.away);
  });
  std::vector<Subset> front;
  for (const Subset& subset : subsets)
    if (front.empty() || subset.seconds < front.back().seconds) front.push_back(subset);
  return front;
}

}  // namespace

std::vector<BlockOption> block_options(const Program& program, int32_t block, const CostModel& cost,
                                       const std::optional<FarHome>& far, size_t most_choices) {
  constexpr size_t kMostOfTwo = 12, kMostOfThree = 8;  // 4,096 ways and 6,561
  if (most_choices == 0) most_choices = far ? kMostOfThree : kMostOfTwo;
  const Region& forward = program.region(Section::blocks, block);
  const MadeAgain again(program, forward, program.region(Section::blocks_backward, block));
  const BlockRun& run = program.blocks[static_cast<size_t>(block)];
  const BlockClock clock(cost, program, block, far);
  std::vector<Choice> choices = choices_of(program, run, again, most_choices);
  for (Choice& choice : choices) choice.late_seconds = clock.late_seconds(choice);
  MadeAgain::Set always_lost = again.set_of(made_by(program, forward));
  for (const Choice& choice : choices) always_lost &= ~choice.set;
  std::vector<double> seconds;
  for (const Item& item : forward.items) seconds.push_back(seconds_of(cost, program, *item.op()));

  std::vector<BlockOption> options;
  const std::vector<Again> made = again_by(choices, again, always_lost, seconds);
  const int64_t layers = program.region(Section::blocks, block).count;
  const std::vector<Subset> front = unbeaten(subsets_of(choices, made, clock, far ? layers : 0));
  for (auto subset = front.rbegin(); subset != front.rend(); ++subset) {
    BlockOption& option = options.emplace_back();
    option.kept_bytes = subset->kept_bytes;
    option.seconds = subset->seconds;
    for (size_t i = 0; i < choices.size(); ++i) {
      const std::vector<StorageId>& storages = choices[i].storages;
      if ((subset->released >> i & 1) != 0) option.released.insert(storages.begin(), storages.end());
      if ((subset->away >> i & 1) != 0) option.away.insert(storages.begin(), storages.end());
    }
  }
  return options;
}

std::vector<size_t> lower_hull(const std::vector<BlockOption>& options) {
  // Seconds for each byte that the way from `a` to `b` saves.
  const auto price = [&](size_t a, size_t b) {
    return (options[b].seconds - options[a].seconds) / static_cast<double>(options[a].kept_bytes - options[b].kept_bytes);
  };
  std::vector<size_t> hull;
  for (size_t i = 0; i < options.size(); ++i) {
    while (hull.size() > 1 && price(hull[hull.size() - 2], hull.back()) >= price(hull.back(), i)) hull.pop_back();
    hull.push_back(i);
  }
  return hull;
}

}  // namespace snug
