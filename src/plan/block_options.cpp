#include "plan/block_options.h"

#include <algorithm>
#include <numeric>

#include "program/passes/made_again.h"

namespace snug {

namespace {

// What is kept or let go as one.
struct Choice {
  std::vector<StorageId> storages;
  MadeAgain::Set set;
  int64_t bytes = 0;
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

// A subset of the choices, as bits: what it lets go of.
struct Subset {
  uint32_t released = 0;
  int64_t kept_bytes = 0;
  double seconds = 0;
};

std::vector<Subset> subsets_of(const std::vector<Choice>& choices, const MadeAgain& again, const MadeAgain::Set& always_lost,
                               const std::vector<double>& seconds) {
  std::vector<Subset> subsets(size_t{1} << choices.size());
  for (size_t bits = 0; bits < subsets.size(); ++bits) {
    Subset& subset = subsets[bits];
    subset.released = static_cast<uint32_t>(bits);
    MadeAgain::Set lost = always_lost;
    for (size_t i = 0; i < choices.size(); ++i) {
      if ((bits >> i & 1) != 0) {
        lost |= choices[i].set;
      } else {
        subset.kept_bytes += choices[i].bytes;
      }
    }
    if (bits == 0) continue;
    for (size_t op : again.ops(lost)) subset.seconds += seconds[op];
  }
  return subsets;
}

// From the least kept to all: what is no faster than one that keeps less is beaten.
std::vector<Subset> unbeaten(std::vector<Subset> subsets) {
  std::sort(subsets.begin(), subsets.end(), [](const Subset& a, const Subset& b) {
    if (a.kept_bytes != b.kept_bytes) return a.kept_bytes < b.kept_bytes;
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.released < b.released;
  });
  std::vector<Subset> front;
  for (const Subset& subset : subsets)
    if (front.empty() || subset.seconds < front.back().seconds) front.push_back(subset);
  return front;
}

}  // namespace

std::vector<BlockOption> block_options(const Program& program, int32_t block, const CostModel& cost, size_t most_choices) {
  const Region& forward = program.region(Section::blocks, block);
  const MadeAgain again(program, forward, program.region(Section::blocks_backward, block));
  const BlockRun& run = program.blocks[static_cast<size_t>(block)];
  const std::vector<Choice> choices = choices_of(program, run, again, most_choices);
  MadeAgain::Set always_lost = again.set_of(made_by(program, forward));
  for (const Choice& choice : choices) always_lost &= ~choice.set;
  std::vector<double> seconds;
  for (const Item& item : forward.items) seconds.push_back(seconds_of(cost, program, *item.op()));

  std::vector<BlockOption> options;
  const std::vector<Subset> front = unbeaten(subsets_of(choices, again, always_lost, seconds));
  for (auto subset = front.rbegin(); subset != front.rend(); ++subset) {
    BlockOption& option = options.emplace_back();
    option.kept_bytes = subset->kept_bytes;
    option.seconds = subset->seconds;
    for (size_t i = 0; i < choices.size(); ++i)
      if ((subset->released >> i & 1) != 0) option.released.insert(choices[i].storages.begin(), choices[i].storages.end());
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
