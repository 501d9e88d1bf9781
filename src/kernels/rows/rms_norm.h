// out = x * rstd * (offset + weight) over a row of `cols` numbers, rstd = 1 / sqrt(mean(x^2) + eps). Returns rstd.
template <class Lanes, class X, class Weight, class Y>
SNUG_ROW float rms_norm_row(Lanes lanes, const X* x, const Weight* weight, Y* out, int64_t cols, float eps, float offset) {
  auto squares = lanes.set(0.0F);
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    const auto v = lanes.load(x, i, cols);
    squares = lanes.fma(v, v, squares);
  }
  const float rstd = 1.0F / sqrtf(lanes.sum(squares) / static_cast<float>(cols) + eps);
  const auto factor = lanes.set(rstd);
  const auto base = lanes.set(offset);
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    const auto gain = lanes.add(base, lanes.load(weight, i, cols));
    lanes.store(lanes.mul(lanes.mul(lanes.load(x, i, cols), factor), gain), out, i, cols);
  }
  return rstd;
}
