// Every instruction set updates as the others do, on lengths that fill no vector. What the update is, the train room's
// golden tests say.

#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

constexpr int64_t kRows = 5, kCols = 131, kElements = kRows * kCols;

// A parameter and its states between guards, after ten steps of `update`.
struct TenSteps {
  Operand parameter{random_values(kElements, 1), DType::f32}, rounded{random_values(kElements, 1), DType::bf16};
  Operand state{Values(kElements, 0.0), DType::f32}, rows{Values(kRows, 0.0), DType::f32},
      cols{Values(kCols, 0.0), DType::f32};
  Operand sums = workspace_of((kRows + 1) * 8);

  void update(const std::function<void(TenSteps&, const float* gradient, const double* scalars)>& step) {
    std::vector<double> scalars(kScalarCount, 0.0);
    scalars[static_cast<size_t>(Scalar::learning_rate)] = 1e-2;
    scalars[static_cast<size_t>(Scalar::clip_factor)] = 0.75;
    for (int i = 1; i <= 10; ++i) {
      scalars[static_cast<size_t>(Scalar::step)] = i;
      Operand gradient(random_values(kElements, 100 + static_cast<uint64_t>(i), 0.1), DType::f32);
      step(*this, gradient.f32(), scalars.data());
    }
    EXPECT_TRUE(parameter.intact() && rounded.intact() && state.intact() && rows.intact() && cols.intact() && sums.intact());
  }
};

void expect_alike_on_every_target(const std::function<void(TenSteps&, const float*, const double*)>& step) {
  Values first;
  on_every_target([&](const std::string& target) {
    TenSteps run;
    run.update(step);
    if (first.empty()) first = run.parameter.values();
    expect_close(run.parameter.values(), first, 1e-5, target);
    const Values masters = run.parameter.values(), rounded = run.rounded.values();
    for (size_t i = 0; i < masters.size(); ++i)
      ASSERT_EQ(rounded[i], bf16_to_f32(f32_to_bf16(static_cast<float>(masters[i])))) << target;
  });
}

TEST(Optimizers, sgd_is_alike_on_every_target) {
  expect_alike_on_every_target([](TenSteps& run, const float* gradient, const double* scalars) {
    sgd({.parameter = run.rounded.out(),
         .master = run.parameter.f32(),
         .gradient = gradient,
         .velocity = run.state.f32(),
         .elements = kElements,
         .momentum = 0.9,
         .weight_decay = 0.1,
         .scalars = scalars,
         .cut = {.threads = 2}});
  });
}

TEST(Optimizers, lion_is_alike_on_every_target) {
  expect_alike_on_every_target([](TenSteps& run, const float* gradient, const double* scalars) {
    lion({.parameter = run.rounded.out(),
          .master = run.parameter.f32(),
          .gradient = gradient,
          .first_moment = {run.state.data()},
          .elements = kElements,
          .beta1 = 0.9,
          .beta2 = 0.99,
          .weight_decay = 0.1,
          .scalars = scalars,
          .cut = {.threads = 2}});
  });
}

TEST(Optimizers, adafactor_is_alike_on_every_target) {
  expect_alike_on_every_target([](TenSteps& run, const float* gradient, const double* scalars) {
    adafactor({.parameter = run.rounded.out(),
               .master = run.parameter.f32(),
               .gradient = gradient,
               .row_factor = run.rows.f32(),
               .column_factor = run.cols.f32(),
               .rows = kRows,
               .cols = kCols,
               .weight_decay = 0.1,
               .scalars = scalars,
               .workspace = as_workspace(run.sums, (kRows + 1) * 8),
               .cut = {.threads = 2}});
  });
}

}  // namespace
}  // namespace snug::kernels::testing
