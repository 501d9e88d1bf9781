// The running means' update of one step: mean = kept * mean + fresh * (mean of this step's squares + kLeastSquare).
struct AdafactorStep {
  float gradient_factor;  // clip_factor
  float kept, fresh;      // beta2 of this step, and 1 - it
};

constexpr float kLeastSquare = 1e-30F;

// The sum of (factor * gradient)^2 / divisor over a row; without divisors: of the squares. Blocks of lanes are summed apart.
template <class Lanes>
SNUG_ROW float adafactor_squares(Lanes lanes, float factor, const float* gradient, const float* divisor, int64_t n) {
  constexpr int64_t kBlock = 4096;
  const auto scale = lanes.set(factor);
  auto sum = lanes.set(0.0F);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    auto part = lanes.set(0.0F);
    const int64_t end = begin + kBlock < n ? begin + kBlock : n;
    for (int64_t i = begin; i < end; i += lanes.width()) {
      const auto g = lanes.mul(lanes.load(gradient, i, end), scale);
      auto square = lanes.mul(g, g);
      if (divisor != nullptr) {
        // Past the end both are 0; the divisor becomes 1 there.
        const auto outside = lanes.sub(lanes.set(1.0F), lanes.inside(i, end));
        square = lanes.div(square, lanes.add(lanes.load(divisor, i, end), outside));
      }
      part = lanes.add(part, square);
    }
    sum = lanes.add(sum, part);
  }
  return lanes.sum(sum);
}

// Updates the means of n columns of a matrix of `rows` rows, `stride` elements apart. Rows are summed in groups.
template <class Lanes>
SNUG_ROW void adafactor_columns(Lanes lanes, AdafactorStep step, const float* gradient, int64_t rows, int64_t stride,
                                float* mean, int64_t n) {
  constexpr int64_t kGroup = 256;
  const auto factor = lanes.set(step.gradient_factor);
  const auto share = lanes.set(1.0F / static_cast<float>(rows));
  for (int64_t i = 0; i < n; i += lanes.width()) {
    auto sum = lanes.set(0.0F);
    for (int64_t begin = 0; begin < rows; begin += kGroup) {
      auto part = lanes.set(0.0F);
      for (int64_t row = begin; row < rows && row < begin + kGroup; ++row) {
        const auto g = lanes.mul(lanes.load(gradient + row * stride, i, n), factor);
        part = lanes.fma(g, g, part);
      }
      sum = lanes.add(sum, part);
    }
    const auto now = lanes.fma(sum, share, lanes.set(kLeastSquare));
    lanes.store(lanes.fma(lanes.set(step.kept), lanes.load(mean, i, n), lanes.mul(lanes.set(step.fresh), now)), mean, i, n);
  }
}

// p = p * decay - scale * gradient / sqrt(column mean). p and `rounded` as in adamw_row.
template <class Lanes, class P, class Rounded>
SNUG_ROW void adafactor_update(Lanes lanes, float decay, float scale, P* p, Rounded* rounded, const float* gradient,
                               const float* column, int64_t n) {
  for (int64_t i = 0; i < n; i += lanes.width()) {
    const auto outside = lanes.sub(lanes.set(1.0F), lanes.inside(i, n));
    const auto root = lanes.sqrt(lanes.add(lanes.load(column, i, n), outside));
    const auto moved = lanes.div(lanes.mul(lanes.set(scale), lanes.load(gradient, i, n)), root);
    const auto result = lanes.sub(lanes.mul(lanes.load(p, i, n), lanes.set(decay)), moved);
    lanes.store(result, p, i, n);
    if (static_cast<const void*>(rounded) != static_cast<const void*>(p)) lanes.store(result, rounded, i, n);
  }
}
