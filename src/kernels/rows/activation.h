// 1 / (1 + exp(-x)).
template <class Lanes, class Vec>
SNUG_ROW Vec sigmoid(Lanes lanes, Vec x) {
  const auto one = lanes.set(1.0F);
  return lanes.div(one, lanes.add(one, lanes.exp(lanes.sub(lanes.set(0.0F), x))));
}

// Both activations are x sigmoid(z(x)): silu with z = x, gelu_tanh with z = 2 sqrt(2/pi) (x + 0.044715 x^3).
template <Activation KIND, class Lanes, class Vec>
SNUG_ROW Vec inside_sigmoid(Lanes lanes, Vec x) {
  if constexpr (KIND == Activation::silu) return x;
  const auto square = lanes.mul(x, x);
  return lanes.mul(x, lanes.fma(square, lanes.set(0.0713548162726F), lanes.set(1.59576912161F)));
}

// dz/dx.
template <Activation KIND, class Lanes, class Vec>
SNUG_ROW Vec slope_inside(Lanes lanes, Vec x) {
  if constexpr (KIND == Activation::silu) return lanes.set(1.0F);
  return lanes.fma(lanes.mul(x, x), lanes.set(0.214064448818F), lanes.set(1.59576912161F));
}

// out = activation(gate) * up, or activation(gate) where up is null.
template <Activation KIND, class Lanes, class Gate, class Up, class Y>
SNUG_ROW void activation_row(Lanes lanes, const Gate* gate, const Up* up, Y* out, int64_t cols) {
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    const auto g = lanes.load(gate, i, cols);
    auto value = lanes.mul(g, sigmoid(lanes, inside_sigmoid<KIND>(lanes, g)));
    if (up != nullptr) value = lanes.mul(value, lanes.load(up, i, cols));
    lanes.store(value, out, i, cols);
  }
}

// With s = sigmoid(z(gate)): d_gate = d_out * up * s * (1 + gate * (1 - s) * z'(gate)), d_up = d_out * gate * s. Either may
// be d_out's memory. up and d_up are null together.
template <Activation KIND, class Lanes, class Gate, class Up>
SNUG_ROW void activation_backward_row(Lanes lanes, const float* d_out, const Gate* gate, const Up* up, float* d_gate,
                                      float* d_up, int64_t cols) {
  const auto one = lanes.set(1.0F);
  for (int64_t i = 0; i < cols; i += lanes.width()) {
    const auto d = lanes.load(d_out, i, cols);
    const auto g = lanes.load(gate, i, cols);
    const auto s = sigmoid(lanes, inside_sigmoid<KIND>(lanes, g));
    const auto rest = lanes.mul(lanes.mul(g, lanes.sub(one, s)), slope_inside<KIND>(lanes, g));
    const auto slope = lanes.mul(s, lanes.add(rest, one));
    if (up == nullptr) {
      lanes.store(lanes.mul(d, slope), d_gate, i, cols);
      continue;
    }
    const auto for_gate = lanes.mul(lanes.mul(d, lanes.load(up, i, cols)), slope);
    lanes.store(lanes.mul(d, lanes.mul(g, s)), d_up, i, cols);
    lanes.store(for_gate, d_gate, i, cols);
  }
}
