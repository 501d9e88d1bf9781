// out += factor * x over n numbers.
template <class Lanes>
SNUG_ROW void add_scaled(Lanes lanes, float factor, const float* x, float* out, int64_t n) {
  const auto f = lanes.set(factor);
  for (int64_t i = 0; i < n; i += lanes.width())
    lanes.store(lanes.fma(f, lanes.load(x, i, n), lanes.load(out, i, n)), out, i, n);
}

// The sum of squares of n numbers.
template <class Lanes>
SNUG_ROW float square_sum_row(Lanes lanes, const float* x, int64_t n) {
  auto squares = lanes.set(0.0F);
  for (int64_t i = 0; i < n; i += lanes.width()) {
    const auto v = lanes.load(x, i, n);
    squares = lanes.fma(v, v, squares);
  }
  return lanes.sum(squares);
}

// sums += x^2, each for itself; `lost` is what rounding has taken from each sum so far (Kahan's summation).
template <class Lanes>
SNUG_ROW void add_squares(Lanes lanes, const float* x, float* sums, float* lost, int64_t n) {
  for (int64_t i = 0; i < n; i += lanes.width()) {
    const auto v = lanes.load(x, i, n), before = lanes.load(sums, i, n);
    const auto term = lanes.sub(lanes.mul(v, v), lanes.load(lost, i, n));
    const auto after = lanes.add(before, term);
    lanes.store(lanes.sub(lanes.sub(after, before), term), lost, i, n);
    lanes.store(after, sums, i, n);
  }
}

// out = x * gains.
template <class Lanes, class X, class Y>
SNUG_ROW void multiply_row(Lanes lanes, const X* x, const float* gains, Y* out, int64_t n) {
  for (int64_t i = 0; i < n; i += lanes.width())
    lanes.store(lanes.mul(lanes.load(x, i, n), lanes.load(gains, i, n)), out, i, n);
}

// sums += d_out * x, then d_x = d_out * gains; d_x may be d_out.
template <class Lanes, class X>
SNUG_ROW void scale_backward_row(Lanes lanes, const float* d_out, const X* x, const float* gains, float* d_x, float* sums,
                                 int64_t n) {
  for (int64_t i = 0; i < n; i += lanes.width()) {
    const auto d = lanes.load(d_out, i, n);
    lanes.store(lanes.fma(d, lanes.load(x, i, n), lanes.load(sums, i, n)), sums, i, n);
    lanes.store(lanes.mul(d, lanes.load(gains, i, n)), d_x, i, n);
  }
}
