// Rows scattered over a matrix: at[0 … choices) name those of one token; below 0 none.

// out = the sum over j of weights[j] * rows[at[j], :].
template <class Lanes, class X, class Y>
SNUG_ROW void weighted_sum_row(Lanes lanes, const X* rows, const int32_t* at, const float* weights, int64_t choices, Y* out,
                               int64_t cols) {
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    auto sum = lanes.set(0.0F);
    for (int64_t j = 0; j < choices; ++j)
      if (at[j] >= 0) sum = lanes.fma(lanes.set(weights[j]), lanes.load(rows + at[j] * cols, i, cols), sum);
    lanes.store(sum, out, i, cols);
  }
}

// out (+)= the sum over j of rows[at[j], :].
template <bool kAccumulate, class Lanes>
SNUG_ROW void sum_rows_row(Lanes lanes, const float* rows, const int32_t* at, int64_t choices, float* out, int64_t cols) {
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    auto sum = kAccumulate ? lanes.load(out, i, cols) : lanes.set(0.0F);
    for (int64_t j = 0; j < choices; ++j)
      if (at[j] >= 0) sum = lanes.add(sum, lanes.load(rows + at[j] * cols, i, cols));
    lanes.store(sum, out, i, cols);
  }
}

// out = weight * x.
template <class Lanes>
SNUG_ROW void scale_row(Lanes lanes, const float* x, float weight, float* out, int64_t cols) {
  for (int64_t i = 0; i < cols; i += lanes.width())
    lanes.store(lanes.mul(lanes.set(weight), lanes.load(x, i, cols)), out, i, cols);
}

template <class Lanes, class X>
SNUG_ROW float dot_row(Lanes lanes, const float* a, const X* b, int64_t cols) {
  auto sum = lanes.set(0.0F);
  for (int64_t i = 0; i < cols; i += lanes.width()) sum = lanes.fma(lanes.load(a, i, cols), lanes.load(b, i, cols), sum);
  return lanes.sum(sum);
}
