#pragma once
// Gradient checkpointing to a budget: what each layer keeps of its saved tensors so that the step fits and takes the least
// time. Between equal blocks order does not matter, only how many take which option, and a block's options lie on a hull
// (`block_options.h`). So there is one way from "all kept" to "all made again", a block an option further at each step, the
// cheapest byte first. The first place on it whose exact peak fits is within one step of one block of the best; what is left
// of the budget then buys that block the best option between the two.

#include <optional>
#include <vector>

#include "plan/block_options.h"
#include "plan/plan.h"

namespace snug {

class CheckpointSearch {
 public:
  // `recipe` asks for gradient_checkpointing: auto. Throws Error as compile() does.
  CheckpointSearch(const ModelSpec& model, const Recipe& recipe, const Target& target, size_t most_choices = kMostChoices);

  CheckpointSearch(const CheckpointSearch&) = delete;  // places point into it
  CheckpointSearch& operator=(const CheckpointSearch&) = delete;

  // The fastest whose live bytes fit the recipe's budget; then, for layouts that have holes, slower and smaller ones; the
  // last makes everything again. None when there are no more.
  std::optional<Released> next();

 private:
  struct Run {
    int64_t first = 0, count = 0;  // layers
    std::vector<BlockOption> options;
    std::vector<size_t> hull;
  };
  struct Way {
    std::vector<int64_t> layers;  // by run, of those that let go of something at all
    std::vector<size_t> steps;    // the run that each step is of
  };
  struct Place {
    const Way* way = nullptr;
    size_t steps = 0;
  };

  void find_runs(size_t most_choices);
  Way way_of(bool spares_last) const;
  std::vector<int64_t> taken(const Place& place) const;
  // Calls visit(layer, option) for each layer that lets go of something at all, or may.
  template <class Visit>
  void for_each_layer(const Place& place, const Visit& visit) const;
  Released released_at(const Place& place) const;
  double seconds_at(const Place& place) const;
  bool fits(const Released& released) const;
  std::optional<Place> first_that_fits(const Way& way) const;
  Released filled_up(const Place& place) const;

  const ModelSpec& model_;
  const Recipe& recipe_;
  const Target& target_;
  int64_t layers_ = 0;
  std::vector<Run> runs_;
  Way whole_, sparing_;  // the last layer, whose backward comes first, may keep everything: nothing else is kept beside it
  std::optional<Place> place_;
};

}  // namespace snug
