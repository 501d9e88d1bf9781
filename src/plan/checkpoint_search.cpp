#include "plan/checkpoint_search.h"

#include <algorithm>

#include "plan/workspaces.h"
#include "program/compile.h"

namespace snug {

CheckpointSearch::CheckpointSearch(const ModelSpec& model, const Recipe& recipe, const Target& target, size_t most_choices)
    : model_(model), recipe_(recipe), target_(target) {
  find_runs(most_choices);
  whole_ = way_of(false);
  sparing_ = way_of(true);
}

void CheckpointSearch::find_runs(size_t most_choices) {
  const Released none;
  Recipe whole = recipe_;
  whole.tiled_mlp = false;  // options are of blocks of ops alone
  Program program = compile(model_, whole, &none);
  fit_to_target(program, target_);
  const CostModel cost = target_.cost.known() ? target_.cost : nominal_cpu_rates(target_.threads);
  layers_ = program.layers;
  for (int32_t i = 0; i < static_cast<int32_t>(program.blocks.size()); ++i) {
    const Region& loop = program.region(Section::blocks, i);
    Run& run = runs_.emplace_back(Run{loop.first, loop.count, block_options(program, i, cost, most_choices), {}});
    run.hull = lower_hull(run.options);
  }
}

CheckpointSearch::Way CheckpointSearch::way_of(bool spares_last) const {
  struct Edge {
    size_t run;
    double price;  // seconds a byte
  };
  Way way;
  std::vector<Edge> edges;
  for (size_t r = 0; r < runs_.size(); ++r) {
    const Run& run = runs_[r];
    way.layers.push_back(run.count - (spares_last && run.first + run.count == layers_ ? 1 : 0));
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
std::vector<int64_t> CheckpointSearch::taken(const Place& place) const {
  std::vector<int64_t> taken(runs_.size());
  for (size_t i = 0; i < place.steps; ++i) ++taken[place.way->steps[i]];
  return taken;
}

// The first layers of a run are a step further than the others.
template <class Visit>
void CheckpointSearch::for_each_layer(const Place& place, const Visit& visit) const {
  const std::vector<int64_t> steps = taken(place);
  for (size_t r = 0; r < runs_.size(); ++r) {
    const Run& run = runs_[r];
    const int64_t layers = place.way->layers[r];
    for (int64_t i = 0; i < layers; ++i) {
      const int64_t on_hull = steps[r] / layers + (i < steps[r] % layers ? 1 : 0);
      visit(run.first + i, run.options[run.hull[static_cast<size_t>(on_hull)]]);
    }
  }
}

Released CheckpointSearch::released_at(const Place& place) const {
  Released released;
  for_each_layer(place, [&](int64_t layer, const BlockOption& option) {
    if (!option.released.empty()) released[layer] = option.released;
  });
  return released;
}

double CheckpointSearch::seconds_at(const Place& place) const {
  double seconds = 0;
  for_each_layer(place, [&](int64_t /*layer*/, const BlockOption& option) { seconds += option.seconds; });
  return seconds;
}

bool CheckpointSearch::fits(const Released& released) const {
  const Estimate needed = estimate(model_, recipe_, target_, released);
  return needed.peak_bytes <= budget_of(recipe_, target_) && !needed.overfull_home;
}

std::optional<CheckpointSearch::Place> CheckpointSearch::first_that_fits(const Way& way) const {
  size_t low = 0, high = way.steps.size();
  if (!fits(released_at({&way, high}))) return std::nullopt;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (fits(released_at({&way, middle}))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return Place{&way, low};
}

// The last step's block takes the fastest option that fits of those between where the step came from and where it went.
Released CheckpointSearch::filled_up(const Place& place) const {
  Released released = released_at(place);
  if (place.steps == 0) return released;
  const size_t r = place.way->steps[place.steps - 1];
  const Run& run = runs_[r];
  const int64_t before = taken(place)[r] - 1, layers = place.way->layers[r];
  const int64_t layer = run.first + before % layers;
  size_t low = run.hull[static_cast<size_t>(before / layers)] + 1, high = run.hull[static_cast<size_t>(before / layers) + 1];
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    Released tried = released;
    tried[layer] = run.options[middle].released;
    if (fits(tried)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  released[layer] = run.options[high].released;
  return released;
}

std::optional<Released> CheckpointSearch::next() {
  if (!place_) {
    const std::optional<Place> whole = first_that_fits(whole_), sparing = first_that_fits(sparing_);
    place_ = whole.value_or(Place{&whole_, whole_.steps.size()});
    if (sparing && (!whole || seconds_at(*sparing) < seconds_at(*whole))) place_ = sparing;
    return filled_up(*place_);
  }
  if (place_->steps == place_->way->steps.size()) {
    if (place_->way == &whole_) return std::nullopt;
    place_ = Place{&whole_, whole_.steps.size()};
  } else {
    ++place_->steps;
  }
  return released_at(*place_);
}

}  // namespace snug
