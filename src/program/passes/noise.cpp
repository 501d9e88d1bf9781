// Noise on the embeddings of tokens in training (NEFTune; Jain et al., 2023): each number of a row of L tokens of C numbers
// gets one that is drawn evenly between -alpha / sqrt(L C) and its opposite. L counts padding, as in transformers.

#include <cmath>

#include "program/find_op.h"
#include "program/passes/list.h"

namespace snug {

void passes::noise(Program& program, const StepRequest& request) {
  const double alpha = request.recipe.neftune_noise_alpha;
  if (alpha == 0) return;
  Region& forward = program.region(Section::forward);
  for (const OpId lookup : program.token_lookups) {
    const OpPlace place = find_op(forward, lookup);
    const TensorId rows = place.op().find(Slot::out);
    const auto numbers = static_cast<double>(program.seq_len * program.tensor(rows).dim(1));
    Op op{OpKind::noise};
    op.attributes.scale = alpha / std::sqrt(numbers);
    op.attributes.noise_seed = request.recipe.seed;
    op.updates(Slot::x, rows).reads(Slot::scalars, program.interface.scalars);
    insert_after(place, {std::move(op)});
  }
}

}  // namespace snug
