#include "run/inverse_frequency.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace snug {

namespace {

// Short wavelengths are kept, long ones divided by the factor, those between interpolated.
double scale_llama3(const Rope& rope, double frequency) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const auto context = static_cast<double>(rope.original_max_position);
  if (wavelength < context / rope.high_freq_factor) return frequency;
  if (wavelength > context / rope.low_freq_factor) return frequency / rope.factor;
  const double smooth = (context / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
}

// YaRN: frequencies that turn often within the original context are kept, slow ones divided, a ramp between.
class YarnRamp {
 public:
  YarnRamp(const Rope& rope, double half) : factor_(rope.factor) {
    const auto dimension = [&](double turns) {
      const double length = static_cast<double>(rope.original_max_position) / (turns * 2.0 * std::numbers::pi);
      return 2.0 * half * std::log(length) / (2.0 * std::log(rope.theta));
    };
    low_ = dimension(rope.beta_fast);
    double high = dimension(rope.beta_slow);
    if (rope.truncate) low_ = std::floor(low_), high = std::ceil(high);
    low_ = std::max(low_, 0.0);
    high = std::min(high, 2.0 * half - 1.0);
    width_ = high == low_ ? 0.001 : high - low_;
  }

  double scale(double i, double frequency) const {
    const double ramp = std::clamp((i - low_) / width_, 0.0, 1.0);
    return frequency / factor_ * ramp + frequency * (1.0 - ramp);
  }

 private:
  double factor_, low_ = 0, width_ = 1;
};

}  // namespace

void inverse_frequencies(const Rope& rope, int64_t seq_len, std::span<float> out) {
  const auto half = static_cast<double>(out.size());
  const YarnRamp yarn(rope, half);
  const std::vector<double>& divisors = seq_len > rope.original_max_position ? rope.long_factors : rope.short_factors;
  for (size_t i = 0; i < out.size(); ++i) {
    const auto index = static_cast<double>(i);
    double frequency = std::pow(rope.theta, -index / half);
    switch (rope.scaling) {
      case RopeScaling::none: break;
      case RopeScaling::linear: frequency /= rope.factor; break;
      case RopeScaling::llama3: frequency = scale_llama3(rope, frequency); break;
      case RopeScaling::yarn: frequency = yarn.scale(index, frequency); break;
      case RopeScaling::longrope: frequency /= divisors[i]; break;
    }
    out[i] = static_cast<float>(frequency);
  }
}

void fill_inverse_frequencies(const ModelSpec& model, Executor& executor, int64_t seq_len) {
  const Program& program = executor.program();
  if (seq_len == 0) seq_len = program.seq_len;
  const auto fill = [&](TensorId table, const Rope& rope) {
    if (table == kNone) return;
    std::vector<float> made(static_cast<size_t>(program.tensor(table).elements()));
    inverse_frequencies(rope, seq_len, made);
    executor.transfer().write(table, 0, std::span<const float>(made));
  };
  fill(program.interface.inverse_frequency, model.rope);
  fill(program.interface.local_inverse_frequency, {.theta = model.local_rope_theta});
}

}  // namespace snug
