// What SGD does to every element alike in one step.
struct SgdStep {
  float gradient_factor;  // clip_factor
  float weight_decay;     // added to the gradient, times the parameter
  float momentum;         // kept share of the velocity
  float learning_rate;
};

// One pass over n elements; `velocity` may be null. p and `rounded` as in adamw_row.
template <class Lanes, class P, class Rounded>
SNUG_ROW void sgd_row(Lanes lanes, SgdStep step, P* p, Rounded* rounded, const float* gradient, float* velocity, int64_t n) {
  const auto factor = lanes.set(step.gradient_factor);
  const auto decay = lanes.set(step.weight_decay);
  const auto momentum = lanes.set(step.momentum);
  const auto rate = lanes.set(step.learning_rate);
  for (int64_t i = 0; i < n; i += lanes.width()) {
    const auto before = lanes.load(p, i, n);
    auto g = lanes.fma(decay, before, lanes.mul(lanes.load(gradient, i, n), factor));
    if (velocity != nullptr) {
      g = lanes.fma(momentum, lanes.load(velocity, i, n), g);
      lanes.store(g, velocity, i, n);
    }
    const auto result = lanes.sub(before, lanes.mul(rate, g));
    lanes.store(result, p, i, n);
    if (static_cast<const void*>(rounded) != static_cast<const void*>(p)) lanes.store(result, rounded, i, n);
  }
}
