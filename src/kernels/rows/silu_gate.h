// 1 / (1 + exp(-x)).
template <class Lanes, class Vec>
SNUG_ROW Vec sigmoid(Lanes lanes, Vec x) {
  const auto one = lanes.set(1.0F);
  return lanes.div(one, lanes.add(one, lanes.exp(lanes.sub(lanes.set(0.0F), x))));
}

// out = silu(gate) * up.
template <class Lanes, class Gate, class Up, class Y>
SNUG_ROW void silu_gate_row(Lanes lanes, const Gate* gate, const Up* up, Y* out, int64_t cols) {
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    const auto g = lanes.load(gate, i, cols);
    lanes.store(lanes.mul(lanes.mul(g, sigmoid(lanes, g)), lanes.load(up, i, cols)), out, i, cols);
  }
}

// With s = sigmoid(gate): d_gate = d_out * up * s * (1 + gate * (1 - s)), d_up = d_out * gate * s. Either may be d_out's
// memory.
template <class Lanes, class Gate, class Up>
SNUG_ROW void silu_gate_backward_row(Lanes lanes, const float* d_out, const Gate* gate, const Up* up, float* d_gate,
                                     float* d_up, int64_t cols) {
  const auto one = lanes.set(1.0F);
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    const auto d = lanes.load(d_out, i, cols);
    const auto g = lanes.load(gate, i, cols);
    const auto s = sigmoid(lanes, g);
    const auto slope = lanes.mul(s, lanes.fma(g, lanes.sub(one, s), one));
    const auto for_gate = lanes.mul(lanes.mul(d, lanes.load(up, i, cols)), slope);
    lanes.store(lanes.mul(d, lanes.mul(g, s)), d_up, i, cols);
    lanes.store(for_gate, d_gate, i, cols);
  }
}
