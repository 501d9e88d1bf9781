#include "plan/file_tensors.h"

#include <algorithm>

namespace snug {

int64_t most_file_tensors(const ModelSpec& model, const Program& program) {
  constexpr int64_t kOfQuantized = 6;  // codes, absmax, its own absmax, two tables of values, a description (bitsandbytes)
  int64_t base = 0, trained = 0, states = 0;
  for (const Weight& weight : program.weights) {
    const int64_t parts = weight.parameter.instances(program.layers) * std::max<int64_t>(1, weight.parameter.experts);
    if (weight.origin == Origin::checkpoint)
      base += weight.quantization && model.quantization ? kOfQuantized * parts : parts;
    if (!weight.trainable) continue;
    trained += parts;
    states += parts * static_cast<int64_t>(weight.states.size());
  }
  return std::max({base, trained, states});
}

}  // namespace snug
