#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

std::vector<Scalars> scalars(double step, double micro_batch) {
  std::vector<Scalars> values(kScalarCount, 0.0);
  values[static_cast<size_t>(Scalar::step)] = step;
  values[static_cast<size_t>(Scalar::micro_batch)] = micro_batch;
  return values;
}

struct Draw {
  double step = 5, micro_batch = 2;
  uint64_t seed = 42, stream = 3;
  int64_t layer = 7;
};

// As the kernel's header says it, one element at a time.
Values factors(const Draw& draw, int64_t elements, double p, bool complement) {
  const Philox random{draw.seed ^ 0x64726f706f757400,
                      draw.stream << 48 | static_cast<uint64_t>(draw.layer) << 32 | static_cast<uint64_t>(draw.step)};
  Values result;
  for (int64_t i = 0; i < elements; ++i) {
    const auto index = static_cast<uint64_t>(i);
    const uint32_t word = random.words(static_cast<uint64_t>(draw.micro_batch) << 40 | index / 4)[index % 4];
    const double kept = static_cast<double>(word) < p * 0x1p32 ? 0.0 : 1.0 / (1.0 - p);
    result.push_back(complement ? 1.0 - kept : kept);
  }
  return result;
}

Dropout op_of(const Operand& x, Operand& out, const Draw& draw, const std::vector<Scalars>& values, double p) {
  return {.x = x.in(),
          .out = out.out(),
          .elements = x.elements(),
          .probability = p,
          .seed = draw.seed,
          .stream = draw.stream,
          .layer = draw.layer,
          .scalars = values.data()};
}

TEST(DropoutKernel, EveryInstructionSetAndNumberOfThreadsDrawsTheSameMask) {
  const Draw draw;
  const auto values = scalars(draw.step, draw.micro_batch);
  on_every_target([&](const std::string& target) {
    for (const int64_t elements : {1, 5, 64, 191, 1000})
      for (const DType storage : kStorages)
        for (const bool complement : {false, true})
          for (const int32_t threads : {1, 2, 3}) {
            const Values input = random_values(elements, 1), before = random_values(elements, 2);
            const Operand x(input, storage);
            Operand out(elements, storage), sum(before, DType::f32);
            Dropout op = op_of(x, out, draw, values, 0.3);
            op.complement = complement;
            op.cut.threads = threads;
            dropout(op);
            op.out = sum.out();
            op.accumulate = true;
            dropout(op);
            Values expected = factors(draw, elements, 0.3, complement), added = before;
            for (size_t i = 0; i < expected.size(); ++i) added[i] += expected[i] *= input[i];
            ASSERT_NO_FATAL_FAILURE(expect_close(out.values(), expected, tolerance_of(storage), target));
            ASSERT_NO_FATAL_FAILURE(expect_close(sum.values(), added, 5e-6, target));
            ASSERT_TRUE(out.intact() && sum.intact());
            Operand in_place(input, storage);
            op = op_of(in_place, in_place, draw, values, 0.3);
            op.complement = complement;
            dropout(op);
            ASSERT_TRUE(in_place.same_bits(out));
          }
  });
}

TEST(DropoutKernel, LeavesOutItsShareAndKeepsTheMean) {
  constexpr int64_t kElements = 1 << 20;
  const Operand x(Values(kElements, 1.0), DType::f32);
  for (const double p : {0.01, 0.1, 0.5, 0.9}) {
    Operand out(kElements, DType::f32);
    const Draw draw;
    const auto values = scalars(draw.step, draw.micro_batch);
    dropout(op_of(x, out, draw, values, p));
    double left = 0, sum = 0, pairs = 0, last = 1;
    for (const double value : out.values()) {
      const double gone = value == 0 ? 1.0 : 0.0;
      ASSERT_TRUE(gone == 1 || std::abs(value - 1 / (1 - p)) < 1e-5) << value;
      left += gone, sum += value, pairs += gone * last;
      last = gone;
    }
    const double deviation = 5 * std::sqrt(p * (1 - p) * kElements);  // five sigma
    EXPECT_NEAR(left, p * kElements, deviation);
    EXPECT_NEAR(sum, kElements, deviation / (1 - p) + 1);
    EXPECT_NEAR(pairs, p * p * kElements, 5 * std::sqrt(p * p * kElements) + 1) << "neighbours are independent";
  }
}

TEST(DropoutKernel, AnotherStepMicroBatchLayerStreamOrSeedIsAnotherMask) {
  const Operand x(Values(256, 1.0), DType::f32);
  std::vector<Values> seen;
  for (const Draw& draw :
       {Draw{}, Draw{.step = 6}, Draw{.micro_batch = 3}, Draw{.seed = 43}, Draw{.stream = 4}, Draw{.layer = 8}}) {
    Operand out(256, DType::f32);
    const auto values = scalars(draw.step, draw.micro_batch);
    dropout(op_of(x, out, draw, values, 0.5));
    for (const Values& other : seen) EXPECT_NE(out.values(), other);
    seen.push_back(out.values());
  }
}

}  // namespace
}  // namespace snug::kernels::testing
