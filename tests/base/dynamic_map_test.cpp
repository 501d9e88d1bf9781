#include "base/dynamic_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "formats/checkpoint.h"

namespace snug {
namespace {

std::vector<float> golden(const char* name) {
  const Checkpoint file(std::filesystem::path(SNUG_SOURCE_DIR) / "tests/golden/quantize/dynamic_maps.safetensors");
  std::vector<float> values(256);
  file.read(file.at(name), 0, std::as_writable_bytes(std::span(values)));
  return values;
}

// The binary search of bitsandbytes' CUDA quantizer, in its own words (csrc/kernels.cu, quantize_2D).
int searched(const DynamicMap& map, bool is_signed, float x) {
  int pivot = 127, upper_pivot = 255, lower_pivot = 0;
  float lower = is_signed ? -1.0F : 0.0F, upper = 1.0F, value = map[127];
  for (int i = 64; i > 0; i >>= 1) {
    if (x > value) {
      lower_pivot = pivot;
      lower = value;
      pivot += i;
    } else {
      upper_pivot = pivot;
      upper = value;
      pivot -= i;
    }
    value = map[static_cast<uint8_t>(pivot)];
  }
  if (x > value) return x > (upper + value) * 0.5F ? upper_pivot : pivot;
  return x < (lower + value) * 0.5F ? lower_pivot : pivot;
}

void expect_equal_bits(const DynamicMap& map, const std::vector<float>& expected) {
  for (size_t code = 0; code < 256; ++code)
    EXPECT_EQ(std::bit_cast<uint32_t>(map.values()[code]), std::bit_cast<uint32_t>(expected[code])) << "code " << code;
}

void expect_same_codes(const DynamicMap& map, bool is_signed) {
  int64_t wrong = 0;
  const auto check = [&](float x) {
    if (map.nearest(x) != searched(map, is_signed, x)) ++wrong;
    int below = 0;
    for (const float threshold : map.thresholds()) below += x > threshold ? 1 : 0;
    if (map.nearest(x) != below) ++wrong;
  };
  for (uint32_t high = 0; high < 0x10000; ++high) {  // every bfloat16, and something between it and the next
    const uint32_t low = high * 40503U & 0xffffU;
    if ((high & 0x7fffU) >= 0x7f80U) continue;
    check(std::bit_cast<float>(high << 16));
    check(std::bit_cast<float>((high << 16) | low));
  }
  for (size_t code = 0; code < 255; ++code) {  // every midpoint and its neighbours
    const float middle = (map.values()[code] + map.values()[code + 1]) * 0.5F;
    for (const float x : {std::nextafter(middle, -2.0F), middle, std::nextafter(middle, 2.0F)}) check(x);
  }
  const float infinity = std::numeric_limits<float>::infinity();
  check(infinity);
  check(-infinity);
  EXPECT_EQ(wrong, 0);
}

TEST(DynamicMap, the_signed_map_is_that_of_bitsandbytes) { expect_equal_bits(DynamicMap::of_signed(), golden("signed")); }

TEST(DynamicMap, the_unsigned_map_is_that_of_bitsandbytes) {
  expect_equal_bits(DynamicMap::of_unsigned(), golden("unsigned"));
}

TEST(DynamicMap, codes_are_those_of_the_cuda_quantizers_search) {
  expect_same_codes(DynamicMap::of_signed(), true);
  expect_same_codes(DynamicMap::of_unsigned(), false);
}

TEST(DynamicMap, a_code_s_own_value_is_nearest_to_itself) {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<uint8_t>(code);
    EXPECT_EQ(DynamicMap::of_signed().nearest(DynamicMap::of_signed()[byte]), code);
    EXPECT_EQ(DynamicMap::of_unsigned().nearest(DynamicMap::of_unsigned()[byte]), code);
  }
}

}  // namespace
}  // namespace snug
