// The lanes' conversions between bf16 and fp32, seen through an embedding, which does nothing else.

#include <numeric>

#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

// Copies `in` to `out` by way of an embedding of one row.
void convert(const Operand& in, Operand& out) {
  const int32_t id = 0;
  embedding({.table = in.in(), .ids = &id, .out = out.out(), .rows = 1, .cols = in.elements(), .vocabulary = 1, .cut = {}});
}

TEST(Bfloat16, EveryValueWidensExactly) {
  on_every_target([](const std::string& name) {
    Operand narrow(1 << 16, DType::bf16), wide(1 << 16, DType::f32);
    auto* const bits = static_cast<uint16_t*>(narrow.data());
    std::iota(bits, bits + (1 << 16), uint16_t{0});
    convert(narrow, wide);
    for (uint32_t i = 0; i < 1 << 16; ++i) {
      uint32_t word = 0;
      std::memcpy(&word, wide.f32() + i, 4);
      ASSERT_EQ(word, i << 16) << name;
    }
  });
}

// Every upper half with the lower halves around a tie, the ends, and random ones: NaN, infinities and denormals are among
// them.
TEST(Bfloat16, EveryRoundingEqualsTheScalarOne) {
  on_every_target([](const std::string& name) {
    const Philox philox{.seed = 3};
    for (uint32_t lower : {0x0U, 0x1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU, 0x10000U}) {
      Operand wide(1 << 16, DType::f32), narrow(1 << 16, DType::bf16);
      std::vector<uint32_t> words(1 << 16);
      for (uint32_t i = 0; i < 1 << 16; ++i)
        words[i] = (i << 16) | (lower == 0x10000U ? philox.words(i)[0] & 0xffffU : lower);
      std::memcpy(wide.data(), words.data(), words.size() * 4);
      convert(wide, narrow);
      for (uint32_t i = 0; i < 1 << 16; ++i) {
        float value = 0;
        std::memcpy(&value, &words[i], 4);
        ASSERT_EQ(static_cast<uint16_t*>(narrow.data())[i], f32_to_bf16(value)) << name << std::hex << " 0x" << words[i];
      }
    }
  });
}

TEST(Bfloat16, TailsOfEveryLengthAreWrittenExactly) {
  on_every_target([](const std::string& name) {
    for (int64_t n = 1; n <= 70; ++n) {
      for (DType dtype : kStorages) {
        const Operand in(random_values(n, 1), DType::f32);
        Operand out(n, dtype);
        convert(in, out);
        ASSERT_EQ(out.values(), in.values()) << name << " " << n;
        ASSERT_TRUE(out.intact()) << name << " " << n;
      }
    }
  });
}

}  // namespace
}  // namespace snug::kernels::testing
