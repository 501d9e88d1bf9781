// The gradient of a row of rms_norm: with u = x * rstd and g = d_out * (offset + weight), d_x = rstd * (g - u * mean(g *
// u)), added to d_x if ACCUMULATE; d_weight += d_out * u where it is not null. d_x may be d_out's memory.
template <bool ACCUMULATE, class Lanes, class X, class Weight>
// NOLINTNEXTLINE(readability-function-size): a row and what belongs to it
SNUG_ROW void rms_norm_backward_row(Lanes lanes, const float* d_out, const X* x, const Weight* weight, float rstd,
                                    float offset, float* d_x, float* d_weight, int64_t cols) {
  const auto factor = lanes.set(rstd);
  const auto base = lanes.set(offset);
  auto products = lanes.set(0.0F);
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    const auto g = lanes.mul(lanes.load(d_out, i, cols), lanes.add(base, lanes.load(weight, i, cols)));
    products = lanes.fma(g, lanes.mul(lanes.load(x, i, cols), factor), products);
  }
  const auto mean = lanes.set(lanes.sum(products) / static_cast<float>(cols));
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    const auto d = lanes.load(d_out, i, cols);
    const auto u = lanes.mul(lanes.load(x, i, cols), factor);
    if (d_weight != nullptr) lanes.store(lanes.fma(d, u, lanes.load(d_weight, i, cols)), d_weight, i, cols);
    const auto g = lanes.mul(d, lanes.add(base, lanes.load(weight, i, cols)));
    auto result = lanes.mul(factor, lanes.sub(g, lanes.mul(u, mean)));
    if constexpr (ACCUMULATE) result = lanes.add(lanes.load(d_x, i, cols), result);
    lanes.store(result, d_x, i, cols);
  }
}
