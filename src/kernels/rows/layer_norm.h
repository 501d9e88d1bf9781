// out = (x - mean) * rstd * weight + bias over a row of `cols` numbers, rstd = 1 / sqrt(variance + eps) (Ba et al., "Layer
// Normalization", 2016). Stores mean and rstd.
template <class Lanes, class X, class Weight, class Bias, class Y>
// NOLINTNEXTLINE(readability-function-size): a row and what belongs to it
SNUG_ROW void layer_norm_row(Lanes lanes, const X* x, const Weight* weight, const Bias* bias, Y* out, float* mean,
                             float* rstd, int64_t cols, float eps) {
  auto sums = lanes.set(0.0F);
  for (int64_t i = 0; i < cols; i += lanes.width()) sums = lanes.add(sums, lanes.load(x, i, cols));
  const float middle = lanes.sum(sums) / static_cast<float>(cols);
  const auto shift = lanes.set(middle);
  auto squares = lanes.set(0.0F);
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    const auto v = lanes.mul(lanes.sub(lanes.load(x, i, cols), shift), lanes.inside(i, cols));
    squares = lanes.fma(v, v, squares);
  }
  const float scale = 1.0F / sqrtf(lanes.sum(squares) / static_cast<float>(cols) + eps);
  const auto factor = lanes.set(scale);
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    const auto u = lanes.mul(lanes.sub(lanes.load(x, i, cols), shift), factor);
    lanes.store(lanes.fma(u, lanes.load(weight, i, cols), lanes.load(bias, i, cols)), out, i, cols);
  }
  *mean = middle;
  *rstd = scale;
}

// With u = (x - mean) * rstd and g = d_out * weight: d_x = rstd * (g - mean(g) - u * mean(g * u)), added to d_x if
// ACCUMULATE; d_weight += d_out * u and d_bias += d_out where they are not null (together). d_x may be d_out's memory.
template <bool ACCUMULATE, class Lanes, class X, class Weight>
// NOLINTNEXTLINE(readability-function-size): a row and what belongs to it
SNUG_ROW void layer_norm_backward_row(Lanes lanes, const float* d_out, const X* x, const Weight* weight, float mean,
                                      float rstd, float* d_x, float* d_weight, float* d_bias, int64_t cols) {
  const auto factor = lanes.set(rstd);
  const auto shift = lanes.set(mean);
  auto gradients = lanes.set(0.0F);
  auto products = lanes.set(0.0F);
  for (int64_t i = 0; i < cols; i += lanes.width()) {  // past the end d_out is 0, and so are both terms
    const auto g = lanes.mul(lanes.load(d_out, i, cols), lanes.load(weight, i, cols));
    gradients = lanes.add(gradients, g);
    products = lanes.fma(g, lanes.mul(lanes.sub(lanes.load(x, i, cols), shift), factor), products);
  }
  const auto mean_gradient = lanes.set(lanes.sum(gradients) / static_cast<float>(cols));
  const auto mean_product = lanes.set(lanes.sum(products) / static_cast<float>(cols));
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    const auto d = lanes.load(d_out, i, cols);
    const auto u = lanes.mul(lanes.sub(lanes.load(x, i, cols), shift), factor);
    if (d_weight != nullptr) {
      lanes.store(lanes.fma(d, u, lanes.load(d_weight, i, cols)), d_weight, i, cols);
      lanes.store(lanes.add(d, lanes.load(d_bias, i, cols)), d_bias, i, cols);
    }
    const auto g = lanes.sub(lanes.mul(d, lanes.load(weight, i, cols)), mean_gradient);
    auto result = lanes.mul(factor, lanes.sub(g, lanes.mul(u, mean_product)));
    if constexpr (ACCUMULATE) result = lanes.add(lanes.load(d_x, i, cols), result);
    lanes.store(result, d_x, i, cols);
  }
}
