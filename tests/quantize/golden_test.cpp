// Every way to quantize, against what bitsandbytes made of the same tensors: codes, scales and the numbers they stand for,
// equal to the bit.

#include <gtest/gtest.h>

#include <cmath>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "quantize/double_quantization.h"
#include "quantize/eight_bit.h"
#include "quantize/four_bit.h"
#include "quantize/int8_rows.h"
#include "quantize/support_golden.h"

namespace snug {
namespace {

struct Case {
  std::string name, input, kind;
  int64_t block;
  bool nested;
};

class Golden : public ::testing::Test {
 protected:
  // Calls `check` for every case of one of these kinds. The number of them.
  template <class Check>
  int for_cases(std::initializer_list<const char*> kinds, Check check) {
    int cases = 0;
    for (const auto& json : golden.cases)
      for (const char* kind : kinds) {
        if (json["kind"] != kind) continue;
        SCOPED_TRACE(json.dump());
        check(Case{json["name"], json["input"], kind, json["block"], json.value("nested", false)});
        ++cases;
      }
    return cases;
  }

  // Numbers of the input's dtype, bit by bit, but for the sign of 0.
  void expect_values(const Case& one, const std::vector<std::byte>& bytes) {
    const DType dtype = golden.dtype(one.input + "/input");
    const auto expected = golden.read<std::byte>(one.name + "/values");
    ASSERT_EQ(bytes.size(), expected.size());
    std::vector<float> ours(std::min<size_t>(bytes.size() / size_of(dtype), kPiece)), theirs(ours.size());
    for (size_t begin = 0; begin < bytes.size() / size_of(dtype); begin += ours.size()) {
      const size_t count = std::min(ours.size(), bytes.size() / size_of(dtype) - begin);
      widen({bytes, dtype}, static_cast<int64_t>(begin), std::span(ours).first(count));
      widen({expected, dtype}, static_cast<int64_t>(begin), std::span(theirs).first(count));
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(ours[i], theirs[i]) << "element " << begin + i;
    }
  }

  std::vector<std::byte> input(const Case& one) { return golden.read<std::byte>(one.input + "/input"); }
  DType dtype(const Case& one) { return golden.dtype(one.input + "/input"); }

  GoldenQuantized golden;
};

TEST_F(Golden, four_bit_codes_and_values_are_those_of_bitsandbytes) {
  const int cases = for_cases({"nf4", "fp4"}, [&](const Case& one) {
    const FourBitFormat format{one.kind == "nf4" ? FourBit::nf4 : FourBit::fp4, one.block};
    const auto bytes = input(one);
    const Values values{bytes, dtype(one), 0, one.name};
    std::vector<uint8_t> codes(static_cast<size_t>(packed_bytes(values.count())));
    std::vector<float> absmax(static_cast<size_t>(block_count(values.count(), one.block)));
    quantize_4bit(format, values, codes, absmax);
    EXPECT_EQ(differing(codes, golden.read<uint8_t>(one.name + "/codes")), 0);
    EXPECT_EQ(differing(absmax, golden.read<float>(one.name + "/absmax")), 0);

    if (one.nested) absmax = golden.read<float>(one.name + "/absmax_values");
    std::vector<std::byte> out(bytes.size());
    dequantize_4bit(format, codes, absmax, {out, values.dtype});
    if (golden.has(one.name + "/values")) expect_values(one, out);
  });
  EXPECT_GE(cases, 28);
}

TEST_F(Golden, absmax_is_quantized_as_bitsandbytes_does) {
  const int cases = for_cases({"nf4", "fp4"}, [&](const Case& one) {
    if (!one.nested) return;
    const auto absmax = golden.read<float>(one.name + "/absmax");
    const float offset = golden.read<float>(one.name + "/offset")[0];
    EXPECT_NEAR(nested_offset(absmax), offset, 4e-7 * offset);
    std::vector<uint8_t> codes(absmax.size());
    std::vector<float> nested(static_cast<size_t>(block_count(static_cast<int64_t>(absmax.size()), kNestedBlockSize)));
    quantize_absmax(absmax, offset, codes, nested);
    EXPECT_EQ(differing(codes, golden.read<uint8_t>(one.name + "/absmax_codes")), 0);
    EXPECT_EQ(differing(nested, golden.read<float>(one.name + "/nested_absmax")), 0);

    std::vector<float> back(absmax.size());
    dequantize_absmax(DynamicMap::of_signed().values(), kNestedBlockSize, codes, nested, offset, back);
    EXPECT_EQ(differing(back, golden.read<float>(one.name + "/absmax_values")), 0);
  });
  EXPECT_GE(cases, 10);
}

TEST_F(Golden, eight_bit_codes_and_values_are_those_of_bitsandbytes) {
  const int cases = for_cases({"signed", "unsigned"}, [&](const Case& one) {
    const DynamicMap& map = one.kind == "signed" ? DynamicMap::of_signed() : DynamicMap::of_unsigned();
    const auto bytes = input(one);
    const Values values{bytes, dtype(one), 0, one.name};
    std::vector<uint8_t> codes(static_cast<size_t>(values.count()));
    std::vector<float> absmax(static_cast<size_t>(block_count(values.count(), one.block)));
    quantize_8bit(map, one.block, values, codes, absmax);
    EXPECT_EQ(differing(codes, golden.read<uint8_t>(one.name + "/codes")), 0);
    EXPECT_EQ(differing(absmax, golden.read<float>(one.name + "/absmax")), 0);
    std::vector<std::byte> out(bytes.size());
    dequantize_8bit(map.values(), one.block, codes, absmax, {out, values.dtype});
    expect_values(one, out);
  });
  EXPECT_GE(cases, 10);
}

TEST_F(Golden, int8_rows_are_those_of_llm_int8) {
  const int cases = for_cases({"int8"}, [&](const Case& one) {
    const auto bytes = input(one);
    const Values values{bytes, dtype(one), 0, one.name};
    std::vector<int8_t> codes(static_cast<size_t>(values.count()));
    std::vector<float> absmax(static_cast<size_t>(values.count() / one.block));
    quantize_int8_rows(values, one.block, codes, absmax);
    EXPECT_EQ(differing(codes, golden.read<int8_t>(one.name + "/codes")), 0);
    EXPECT_EQ(differing(absmax, golden.read<float>(one.name + "/absmax")), 0);
    std::vector<std::byte> out(bytes.size());
    dequantize_int8_rows(codes, one.block, absmax, {out, values.dtype});
    expect_values(one, out);
  });
  EXPECT_GE(cases, 8);
}

}  // namespace
}  // namespace snug
