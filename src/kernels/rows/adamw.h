// What AdamW does to every element alike in one step.
struct AdamWStep {
  float gradient_factor;     // clip_factor
  float decay;               // 1 - learning rate * weight decay, before the step
  float beta1, beta2;        // kept shares of the moments
  float fresh1, fresh2;      // 1 - beta
  float inverse_root_bias2;  // 1 / sqrt(1 - beta2^step)
  float epsilon;
  float step_size;    // learning rate / (1 - beta1^step)
  float decay_after;  // likewise, after the step; one of the two is 1
};

// One pass over n elements: p is where the update happens (fp32 master, or the parameter itself); where `rounded` is another
// memory it receives p's rounding.
template <class Lanes, class P, class Rounded>
SNUG_ROW void adamw_row(Lanes lanes, AdamWStep step, P* p, Rounded* rounded, const float* gradient, float* first_moment,
                        float* second_moment, int64_t n) {
  const auto factor = lanes.set(step.gradient_factor);
  const auto decay = lanes.set(step.decay);
  const auto beta1 = lanes.set(step.beta1), fresh1 = lanes.set(step.fresh1);
  const auto beta2 = lanes.set(step.beta2), fresh2 = lanes.set(step.fresh2);
  const auto root_bias = lanes.set(step.inverse_root_bias2);
  const auto epsilon = lanes.set(step.epsilon);
  const auto step_size = lanes.set(step.step_size);
  const auto decay_after = lanes.set(step.decay_after);
  for (int64_t i = 0; i < n; i += lanes.width()) {
    const auto g = lanes.mul(lanes.load(gradient, i, n), factor);
    const auto m = lanes.fma(beta1, lanes.load(first_moment, i, n), lanes.mul(fresh1, g));
    const auto v = lanes.fma(beta2, lanes.load(second_moment, i, n), lanes.mul(lanes.mul(fresh2, g), g));
    lanes.store(m, first_moment, i, n);
    lanes.store(v, second_moment, i, n);
    const auto denominator = lanes.fma(lanes.sqrt(v), root_bias, epsilon);
    const auto moved = lanes.div(lanes.mul(step_size, m), denominator);
    const auto result = lanes.mul(lanes.sub(lanes.mul(lanes.load(p, i, n), decay), moved), decay_after);
    lanes.store(result, p, i, n);
    if (static_cast<const void*>(rounded) != static_cast<const void*>(p)) lanes.store(result, rounded, i, n);
  }
}
