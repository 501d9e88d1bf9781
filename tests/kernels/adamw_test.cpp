#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

constexpr float kBeta1 = 0.9F, kBeta2 = 0.999F, kEpsilon = 1e-8F, kDecay = 0.01F;
constexpr double kLearningRate = 1e-2, kClip = 0.75;

// torch.optim.AdamW in fp64.
struct Reference {
  Values p, m, v;
  explicit Reference(const Values& start) : p(start), m(start.size(), 0.0), v(start.size(), 0.0) {}
  void step(const Values& gradient, double step) {
    for (size_t i = 0; i < p.size(); ++i) {
      const double g = gradient[i] * kClip;
      p[i] *= 1 - kLearningRate * kDecay;
      m[i] = kBeta1 * m[i] + (1.0 - kBeta1) * g;
      v[i] = kBeta2 * v[i] + (1.0 - kBeta2) * g * g;
      const double denominator = std::sqrt(v[i]) / std::sqrt(1 - std::pow(double{kBeta2}, step)) + kEpsilon;
      p[i] -= kLearningRate / (1 - std::pow(double{kBeta1}, step)) * m[i] / denominator;
    }
  }
};

// The state of one run of the kernel.
struct State {
  Operand parameter, master, first, second;
  bool with_master;
  int32_t threads;
  State(const Values& start, DType dtype, bool with_master_copy, int32_t thread_count)
      : parameter(start, dtype),
        master(start, DType::f32),
        first(Values(start.size(), 0.0), DType::f32),
        second(Values(start.size(), 0.0), DType::f32),
        with_master(with_master_copy),
        threads(thread_count) {}
  void step(const Values& gradient, double step) {
    Operand g(gradient, DType::f32);
    std::vector<double> scalars(kScalarCount, 0.0);
    scalars[static_cast<size_t>(Scalar::learning_rate)] = kLearningRate;
    scalars[static_cast<size_t>(Scalar::step)] = step;
    scalars[static_cast<size_t>(Scalar::clip_factor)] = kClip;
    adamw({.parameter = parameter.out(),
           .master = with_master ? master.f32() : nullptr,
           .gradient = g.f32(),
           .first_moment = {first.data()},
           .second_moment = {second.data()},
           .elements = parameter.elements(),
           .beta1 = kBeta1,
           .beta2 = kBeta2,
           .epsilon = kEpsilon,
           .weight_decay = kDecay,
           .scalars = scalars.data(),
           .cut = {.threads = threads}});
    EXPECT_TRUE(parameter.intact() && master.intact() && first.intact() && second.intact());
  }
  bool same_bits(const State& other) const {
    return parameter.same_bits(other.parameter) && master.same_bits(other.master) && first.same_bits(other.first) &&
           second.same_bits(other.second);
  }
};

void expect_within(const Values& actual, const Values& expected, double tolerance, const std::string& what) {
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << what << " at " << i;
}

TEST(AdamW, FollowsTheFormulaOverTwentySteps) {
  on_every_target([](const std::string& target) {
    for (int64_t n : {1, 17, 64, 1001}) {
      for (int32_t threads : {1, 2, 3}) {
        const Values start = random_values(n, 1);
        Reference reference(start);
        State plain(start, DType::f32, false, threads), again(start, DType::f32, false, 1),
            master(start, DType::bf16, true, threads), half(start, DType::f16, true, threads);
        for (int step = 1; step <= 20; ++step) {
          const Values gradient = random_values(n, 100 + static_cast<uint64_t>(step), 0.1);
          reference.step(gradient, step);
          plain.step(gradient, step);
          again.step(gradient, step);
          master.step(gradient, step);
          half.step(gradient, step);
          ASSERT_NO_FATAL_FAILURE(expect_within(plain.parameter.values(), reference.p, 1e-6, target));
          ASSERT_NO_FATAL_FAILURE(expect_within(master.master.values(), reference.p, 1e-6, target + " master"));
        }
        ASSERT_NO_FATAL_FAILURE(expect_close(plain.first.values(), reference.m, 1e-6, target + " first moment"));
        ASSERT_NO_FATAL_FAILURE(expect_close(plain.second.values(), reference.v, 1e-6, target + " second moment"));
        ASSERT_TRUE(plain.same_bits(again));
        // The parameter in two bytes is the rounding of its master.
        ASSERT_EQ(half.master.values(), master.master.values());
        const Values halves = half.parameter.values();
        const Values masters = master.master.values(), rounded = master.parameter.values();
        for (size_t i = 0; i < masters.size(); ++i)
          ASSERT_EQ(rounded[i], bf16_to_f32(f32_to_bf16(static_cast<float>(masters[i])))) << target;
        for (size_t i = 0; i < masters.size(); ++i)
          ASSERT_EQ(halves[i], f16_to_f32(f32_to_f16(static_cast<float>(masters[i])))) << target;
      }
    }
  });
}

TEST(AdamW, UpdatesABf16ParameterWithoutAMaster) {
  const Values start = random_values(100, 1);
  Reference reference(start);
  State run(start, DType::bf16, false, 2);
  const Values gradient = random_values(100, 2);
  reference.step(gradient, 1);
  run.step(gradient, 1);
  expect_close(run.parameter.values(), reference.p, 0x1p-8, "parameter");
}

}  // namespace
}  // namespace snug::kernels::testing
