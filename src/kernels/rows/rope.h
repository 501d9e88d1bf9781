// Rotates the first 2 * half numbers of a head in place: (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin), halves split.
// `sign` is 1, or -1 to turn back.
template <class Lanes, class X>
SNUG_ROW void rope_head(Lanes lanes, X* x, const float* cosine, const float* sine, float sign, int64_t half) {
  const auto direction = lanes.set(sign);
  for (int64_t i = 0; i < half; i += lanes.width()) {
    const auto c = lanes.load(cosine, i, half);
    const auto s = lanes.mul(lanes.load(sine, i, half), direction);
    const auto x1 = lanes.load(x, i, half);
    const auto x2 = lanes.load(x + half, i, half);
    lanes.store(lanes.sub(lanes.mul(x1, c), lanes.mul(x2, s)), x, i, half);
    lanes.store(lanes.fma(x2, c, lanes.mul(x1, s)), x + half, i, half);
  }
}
