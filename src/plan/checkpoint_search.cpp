#include "plan/checkpoint_search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "plan/workspaces.h"
#include "program/compile.h"

namespace snug {

namespace {

// What a layer is handed by the one before it.
int64_t input_bytes(const Program& program, const Region& loop) {
  int64_t bytes = 0;
  for (const Carry& carry : loop.carries) bytes += program.storage(program.tensor(carry.in).storage).bytes;
  return bytes;
}

void choose(SavedChoice& choice, int64_t layer, const BlockOption& option) {
  const auto set = [layer](SavedByLayer& saved, const std::set<StorageId>& storages) {
    if (storages.empty()) {
      saved.erase(layer);
    } else {
      saved[layer] = storages;
    }
  };
  set(choice.released, option.released);
  set(choice.away, option.away);
}

}  // namespace

CheckpointSearch::CheckpointSearch(const ModelSpec& model, const Recipe& recipe, const Target& target, size_t most_choices)
    : model_(model), recipe_(recipe), target_(target) {
  find_ways(most_choices);
}

void CheckpointSearch::find_ways(size_t most_choices) {
  const SavedChoice none{.of_ops_alone = true};
  Recipe whole = recipe_;
  whole.tiled_mlp = false;  // options are of blocks of ops alone
  Program program = compile(model_, whole, &none);
  fit_to_target(program, target_);
  const CostModel cost = target_.cost.known() ? target_.cost : nominal_cpu_rates(target_.threads);
  for (const auto& [away, inputs_away] : {std::pair(true, false), std::pair(true, true), std::pair(false, false)}) {
    if (away && !recipe_.offload_activations) continue;
    Way way{.inputs_away = inputs_away};
    for (int32_t i = 0; i < static_cast<int32_t>(program.blocks.size()); ++i) {
      const Region& loop = program.region(Section::blocks, i);
      std::optional<FarHome> far;
      if (away) far = FarHome{.home = target_.paged, .input_bytes = inputs_away ? input_bytes(program, loop) : 0};
      Run& run = way.runs.emplace_back(Run{loop.first, loop.count, block_options(program, i, cost, far, most_choices), {}});
      run.hull = lower_hull(run.options);
    }
    ways_.push_back(way_of(way, program.layers));
    ways_.push_back(way_of(way, program.layers - 1));
    if (inputs_away) ways_.push_back(way_of(all_to_disk(way, program), program.layers));
  }
}

// Of the same runs: layers whose saved tensors are all kept or all on disk, which pays where copies hide behind other things
// than block_options reckons with.
CheckpointSearch::Way CheckpointSearch::all_to_disk(const Way& runs, const Program& program) {
  Way way = runs;
  for (size_t i = 0; i < way.runs.size(); ++i) {
    Run& run = way.runs[i];
    if (run.options.size() < 2) continue;
    const std::vector<StorageId>& saved = program.blocks[i].saved;
    run.options = {run.options.front(), run.options.back()};
    run.options.back().released.clear();
    run.options.back().away = {saved.begin(), saved.end()};
    run.hull = {0, 1};
  }
  return way;
}

// The way of so many layers, the first.
CheckpointSearch::Way CheckpointSearch::way_of(const Way& runs, int64_t layers) {
  struct Edge {
    size_t run;
    double price;  // seconds a byte
  };
  Way way = runs;
  std::vector<Edge> edges;
  for (size_t r = 0; r < way.runs.size(); ++r) {
    const Run& run = way.runs[r];
    way.layers.push_back(std::min(run.count, layers - run.first));
    for (size_t i = 0; i + 1 < run.hull.size(); ++i) {
      const BlockOption &from = run.options[run.hull[i]], &to = run.options[run.hull[i + 1]];
      edges.push_back({r, (to.seconds - from.seconds) / static_cast<double>(from.kept_bytes - to.kept_bytes)});
    }
  }
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.price < b.price; });
  for (const Edge& edge : edges) way.steps.insert(way.steps.end(), static_cast<size_t>(way.layers[edge.run]), edge.run);
  return way;
}

// Steps of each run.
std::vector<int64_t> CheckpointSearch::taken(const Place& place) {
  std::vector<int64_t> taken(place.way->runs.size());
  for (size_t i = 0; i < place.steps; ++i) ++taken[place.way->steps[i]];
  return taken;
}

// The first layers of a run are a step further than the others.
template <class Visit>
void CheckpointSearch::for_each_layer(const Place& place, const Visit& visit) {
  const std::vector<int64_t> steps = taken(place);
  for (size_t r = 0; r < steps.size(); ++r) {
    const Run& run = place.way->runs[r];
    const int64_t layers = place.way->layers[r];
    for (int64_t i = 0; i < layers; ++i) {
      const int64_t on_hull = steps[r] / layers + (i < steps[r] % layers ? 1 : 0);
      visit(run.first + i, run.options[run.hull[static_cast<size_t>(on_hull)]]);
    }
  }
}

SavedChoice CheckpointSearch::choice_at(const Place& place) {
  SavedChoice choice{.inputs_away = place.way->inputs_away};
  for_each_layer(place, [&](int64_t layer, const BlockOption& option) { choose(choice, layer, option); });
  return choice;
}

Estimate CheckpointSearch::needed(const SavedChoice& choice) const {
  return target_.cost.known() ? estimate(model_, recipe_, target_, choice)
                              : estimate_bytes(model_, recipe_, target_, choice);
}

const Estimate& CheckpointSearch::needed_at(const Place& place) {
  const auto [found, is_new] = needed_at_.try_emplace({place.way, place.steps});
  if (is_new) found->second = needed(choice_at(place));
  return found->second;
}

// Of the step, by the target's rates; where nothing is known of it what the place adds, at nominal ones.
double CheckpointSearch::seconds_of(const Estimate& needed, const Place& place) const {
  if (target_.cost.known()) return needed.step_time.seconds;
  double seconds = 0;
  for_each_layer(place, [&](int64_t /*layer*/, const BlockOption& option) { seconds += option.seconds; });
  return seconds;
}

bool CheckpointSearch::fits(const Estimate& needed) const {
  return needed.peak_bytes <= budget_of(recipe_, target_) && !needed.overfull_home;
}

std::optional<CheckpointSearch::Place> CheckpointSearch::first_that_fits(const Way& way) {
  size_t low = 0, high = way.steps.size();
  if (!fits(needed_at({&way, high}))) return std::nullopt;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (fits(needed_at({&way, middle}))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return Place{&way, low};
}

// The last step's block takes the fastest option that fits of those between where the step came from and where it went.
CheckpointSearch::Candidate CheckpointSearch::filled_up(const Place& place) {
  Candidate best = at(place);
  if (place.steps == 0) return best;
  const size_t r = place.way->steps[place.steps - 1];
  const Run& run = place.way->runs[r];
  const int64_t before = taken(place)[r] - 1, layers = place.way->layers[r];
  const int64_t layer = run.first + before % layers;
  size_t low = run.hull[static_cast<size_t>(before / layers)] + 1, high = run.hull[static_cast<size_t>(before / layers) + 1];
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    SavedChoice tried = best.found.choice;
    choose(tried, layer, run.options[middle]);
    const Estimate needed_then = needed(tried);
    if (fits(needed_then)) {
      high = middle;
      best.found.choice = std::move(tried);
      best.found.needed = needed_then;
    } else {
      low = middle + 1;
    }
  }
  return best;
}

// From the next way on, until one is about as fast as keeping everything.
void CheckpointSearch::try_ways() {
  constexpr double kNear = 1.05;  // to what is left of the budget may buy less
  constexpr double kAsGood = 1.001;
  const double kept = seconds_of(needed({}), {&ways_.front(), 0});
  std::vector<std::pair<double, Place>> places;
  double least = std::numeric_limits<double>::infinity();
  while (next_way_ < ways_.size() && least > kAsGood * kept) {
    const std::optional<Place> place = first_that_fits(ways_[next_way_++]);
    if (!place) continue;
    places.emplace_back(seconds_of(needed_at(*place), *place), *place);
    least = std::min(least, places.back().first);
  }
  for (const auto& [seconds, place] : places) add(seconds <= kNear * least ? filled_up(place) : at(place));
}

// The end of the way that leads to the least bytes.
CheckpointSearch::Place CheckpointSearch::smallest() {
  const auto bytes_at_end = [&](const Way& way) { return needed_at({&way, way.steps.size()}).peak_bytes; };
  const Way& way = *std::ranges::min_element(ways_, {}, bytes_at_end);
  return {&way, way.steps.size()};
}

void CheckpointSearch::add(Candidate candidate) {
  const double seconds = seconds_of(candidate.found.needed, candidate.place);
  candidates_.emplace(seconds, std::move(candidate));
}

std::optional<CheckpointSearch::Found> CheckpointSearch::next() {
  if (last_ && last_->steps < last_->way->steps.size()) add(at({last_->way, last_->steps + 1}));
  if (candidates_.empty()) try_ways();
  if (candidates_.empty() && !last_) add(at(smallest()));
  if (candidates_.empty()) return std::nullopt;
  Candidate candidate = std::move(candidates_.begin()->second);
  candidates_.erase(candidates_.begin());
  last_ = candidate.place;
  return std::move(candidate.found);
}

}  // namespace snug
