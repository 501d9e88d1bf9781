#include "base/dynamic_map.h"

#include <cmath>
#include <limits>

namespace snug {

namespace {

// torch.linspace(0.1, 1, count) in float32: from both ends to the middle, each value rounded once. The sums are exact in
// double, so that compilers may contract them as they like.
float linspace(int i, int count) {
  const float first = 0.1F;
  const double step = (1.0F - first) / static_cast<float>(count - 1);
  return static_cast<float>(i < count / 2 ? first + step * i : 1.0 - step * (count - 1 - i));
}

// One decade after the other, the middles of ever more intervals; then 0 and 1.
std::array<float, 256> dynamic_values(bool is_signed) {
  constexpr std::array<float, 7> kDecades = {1e-6F, 1e-5F, 1e-4F, 1e-3F, 1e-2F, 1e-1F, 1.0F};
  std::array<float, 256> values{};
  size_t used = 0;
  for (int decade = 0; decade < 7; ++decade) {
    const int intervals = 1 << (is_signed ? decade : decade + 1);
    for (int i = 0; i < intervals; ++i) {
      const float middle = (linspace(i, intervals + 1) + linspace(i + 1, intervals + 1)) / 2.0F;
      const float value = kDecades[static_cast<size_t>(decade)] * middle;
      values[used++] = value;
      if (is_signed) values[used++] = -value;
    }
  }
  values[used++] = 0.0F;
  values[used] = 1.0F;
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

DynamicMap::DynamicMap(bool is_signed) : values_(dynamic_values(is_signed)), thresholds_{}, least_{} {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (size_t code = 0; code < 255; ++code) {
    const float middle = (values_[code + 1] + values_[code]) * 0.5F;
    thresholds_[code] = code % 2 == 0 ? middle : std::nextafter(middle, -kInfinity);  // a tie belongs to the even code
  }
  thresholds_[255] = kInfinity;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    const auto low = static_cast<uint32_t>(bucket + kFirst) << 16;
    const float least = bucket == 0 ? 0.0F : std::bit_cast<float>(low);
    const float most = bucket == kBuckets - 1 ? kInfinity : std::bit_cast<float>(low | 0xffffU);
    const auto code_of = [this](float value) {
      return static_cast<uint8_t>(std::lower_bound(thresholds_.begin(), thresholds_.end(), value) - thresholds_.begin());
    };
    least_[static_cast<size_t>(bucket)] = code_of(least);
    least_[static_cast<size_t>(bucket) + size_t{kBuckets}] = code_of(-most);
  }
}

const DynamicMap& DynamicMap::of_signed() {
  static const DynamicMap map(true);
  return map;
}

const DynamicMap& DynamicMap::of_unsigned() {
  static const DynamicMap map(false);
  return map;
}

}  // namespace snug
