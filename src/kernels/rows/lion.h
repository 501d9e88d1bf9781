// What Lion does to every element alike in one step.
struct LionStep {
  float gradient_factor;  // clip_factor
  float decay;            // 1 - learning rate * weight decay
  float beta1, beta2;     // shares of the moment: in the update, and kept
  float fresh1, fresh2;   // 1 - beta
  float learning_rate;
};

// One pass over n elements. p and `rounded` as in adamw_row.
template <class Lanes, class P, class Rounded>
SNUG_ROW void lion_row(Lanes lanes, LionStep step, P* p, Rounded* rounded, const float* gradient, float* first_moment,
                       int64_t n) {
  const auto factor = lanes.set(step.gradient_factor);
  const auto decay = lanes.set(step.decay);
  const auto beta1 = lanes.set(step.beta1), fresh1 = lanes.set(step.fresh1);
  const auto beta2 = lanes.set(step.beta2), fresh2 = lanes.set(step.fresh2);
  const auto rate = lanes.set(step.learning_rate);
  for (int64_t i = 0; i < n; i += lanes.width()) {
    const auto g = lanes.mul(lanes.load(gradient, i, n), factor);
    const auto m = lanes.load(first_moment, i, n);
    const auto direction = lanes.sign(lanes.fma(beta1, m, lanes.mul(fresh1, g)));
    lanes.store(lanes.fma(beta2, m, lanes.mul(fresh2, g)), first_moment, i, n);
    const auto result = lanes.sub(lanes.mul(lanes.load(p, i, n), decay), lanes.mul(rate, direction));
    lanes.store(result, p, i, n);
    if (static_cast<const void*>(rounded) != static_cast<const void*>(p)) lanes.store(result, rounded, i, n);
  }
}
