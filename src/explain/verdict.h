#pragma once
// Why memory ran out, held against what would have happened otherwise: with perfect packing, without what grew, with a batch
// like those before, without one kind of content. A cause is what the run would have gone on without.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/cause.h"
#include "explain/contents.h"
#include "explain/course.h"
#include "explain/expected.h"
#include "explain/filler.h"
#include "explain/growth.h"
#include "explain/stack_reading.h"
#include "torch/replay.h"

namespace snug {

// "Without …, the run would have needed peak_bytes of limit_bytes."
struct Counterfactual {
  std::string without;
  int64_t peak_bytes = 0;  // active, at most, from the moment to the end of the round
  bool passes = false;
};

// Who tells what the rest of the step would still have taken.
enum class NeedTold : uint8_t { nobody, rounds, recipe, weights, layers };

// "earlier steps", "recipe", "weights", "layers", "".
std::string_view name_of(NeedTold told);

struct Verdict {
  Cause cause = Cause::unknown;
  std::optional<Cause> or_cause;  // where too little is known to decide between two
  Filler filler = Filler::none;
  int64_t limit_bytes = 0;                // what PyTorch could have: reserved, and free on the device
  int64_t needed_bytes = 0;               // active, at most, from the moment to the end of the round
  NeedTold need_told = NeedTold::nobody;  // by nobody: it needed so much at least
  std::string recipe_engine;              // whose model told
  Contents contents;                      // held
  Contents asked;                         // the request that failed, in the same terms
  std::vector<Counterfactual> tried;

  bool whole() const { return need_told != NeedTold::nobody; }
};

// Of a replay that stands at an event where memory ran out.
struct Failure {
  MomentOfFailure moment;
  TorchStage stage = TorchStage::unknown;
  std::optional<int64_t> free_bytes;  // of the device
  const Course& course;
  const Growth& growth;
  const Expected* expected = nullptr;  // of the recipe, where it is known
  bool own_loop = false;               // no trainer of a library runs
  bool in_ddp = false;                 // DistributedDataParallel calls the model
  bool merges = false;                 // adapters are merged
};

Verdict judge(const Failure& failure);

}  // namespace snug
