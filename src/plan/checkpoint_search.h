#pragma once
// Gradient checkpointing to a budget: what each layer keeps of its saved tensors, makes again, or sends to disk where the
// recipe allows it, so that the step fits and takes the least time. Between equal blocks order does not matter, only how
// many take which option, and a block's options lie on a hull (`block_options.h`). So there is one way from "all kept" to
// the least, a block an option further at each step, the cheapest byte first. The first place on it whose exact peak fits is
// within one step of one block of the best (with disk mostly: copies of the first and last blocks hide behind nothing, which
// options do not know); what is left of the budget then buys that block the best option between the two.

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "plan/block_options.h"
#include "plan/plan.h"

namespace snug {

class CheckpointSearch {
 public:
  // `recipe` asks for gradient_checkpointing: auto. `most_choices`: as block_options takes it. Throws Error as compile()
  // does.
  CheckpointSearch(const ModelSpec& model, const Recipe& recipe, const Target& target, size_t most_choices = 0);

  CheckpointSearch(const CheckpointSearch&) = delete;  // places point into it
  CheckpointSearch& operator=(const CheckpointSearch&) = delete;

  struct Found {
    SavedChoice choice;
    Estimate needed;  // with the time where the target's cost is known
  };
  // The fastest whose live bytes fit the recipe's budget; then, for layouts that have holes, slower ones; where none fits
  // the one that keeps least. None when there are no more.
  std::optional<Found> next();

 private:
  struct Run {
    int64_t first = 0, count = 0;  // layers
    std::vector<BlockOption> options;
    std::vector<size_t> hull;
  };
  struct Way {
    std::vector<Run> runs;
    bool inputs_away = false;
    std::vector<int64_t> layers;  // by run, of those that may keep less than all
    std::vector<size_t> steps;    // the run that each step is of
  };
  struct Place {
    const Way* way = nullptr;
    size_t steps = 0;
  };

  void find_ways(size_t most_choices);
  static Way all_to_disk(const Way& runs, const Program& program);
  static Way way_of(const Way& runs, int64_t layers);
  static std::vector<int64_t> taken(const Place& place);
  // Calls visit(layer, option) for each layer that may keep less than all.
  template <class Visit>
  static void for_each_layer(const Place& place, const Visit& visit);
  static SavedChoice choice_at(const Place& place);
  struct Candidate {
    Found found;
    Place place;
  };
  Estimate needed(const SavedChoice& choice) const;
  const Estimate& needed_at(const Place& place);
  double seconds_of(const Estimate& needed, const Place& place) const;
  bool fits(const Estimate& needed) const;
  std::optional<Place> first_that_fits(const Way& way);
  Candidate at(const Place& place) { return {{choice_at(place), needed_at(place)}, place}; }
  Candidate filled_up(const Place& place);
  void try_ways();
  Place smallest();
  void add(Candidate candidate);

  const ModelSpec& model_;
  const Recipe& recipe_;
  const Target& target_;
  // The last layer, whose backward comes first, may keep everything: nothing else is kept beside it. Where things may wait
  // on disk the inputs of blocks may, too.
  std::vector<Way> ways_;
  size_t next_way_ = 0;                                          // to be tried
  std::map<std::pair<const Way*, size_t>, Estimate> needed_at_;  // of places that were compiled
  std::multimap<double, Candidate> candidates_;                  // by seconds: what next() may give
  std::optional<Place> last_;                                    // of what it gave
};

}  // namespace snug
