#include "train/inverse_frequency.h"

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

}  // namespace

void inverse_frequencies(const Rope& rope, std::span<float> out) {
  const auto half = static_cast<double>(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    double frequency = std::pow(rope.theta, -static_cast<double>(i) / half);
    if (rope.scaling == RopeScaling::linear) frequency /= rope.factor;
    if (rope.scaling == RopeScaling::llama3) frequency = scale_llama3(rope, frequency);
    out[i] = static_cast<float>(frequency);
  }
}

}  // namespace snug
