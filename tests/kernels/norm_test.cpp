#include "base/error.h"
#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

struct Case {
  int64_t rows, cols;
  DType x, weight, out;
  int32_t threads;
  float offset = 0;
};

std::string name_of(const Case& c) {
  return std::to_string(c.rows) + "x" + std::to_string(c.cols) + " " + std::string(snug::name_of(c.x)) + " " +
         std::string(snug::name_of(c.weight)) + " threads " + std::to_string(c.threads);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  constexpr int64_t kShapes[][2] = {{1, 1}, {1, 7}, {3, 16}, {5, 33}, {2, 576}, {17, 100}, {64, 257}};
  for (const auto& [rows, cols] : kShapes)
    for (DType x : kStorages)
      for (DType weight : kStorages) {
        if (!may_meet({x, weight})) continue;
        for (int32_t threads : {1, 2, 5})
          for (float offset : {0.0F, 1.0F}) all.push_back({rows, cols, x, weight, x, threads, offset});
      }
  return all;
}

struct Forward {
  Operand x, weight, out, rstd;
  Forward(const Case& c)
      : x(random_values(c.rows * c.cols, 1), c.x),
        weight(random_values(c.cols, 2), c.weight),
        out(c.rows * c.cols, c.out),
        rstd(c.rows, DType::f32) {
    rms_norm({.x = x.in(),
              .weight = weight.in(),
              .out = out.out(),
              .rstd = rstd.f32(),
              .rows = c.rows,
              .cols = c.cols,
              .eps = 1e-5F,
              .weight_offset = c.offset,
              .cut = {.threads = c.threads}});
  }
};

TEST(RmsNorm, EqualsTheFormula) {
  on_every_target([](const std::string& target) {
    for (const Case& c : cases()) {
      const Forward run(c), again(c);
      const NormReference reference{c.rows, c.cols, 1e-5F, c.offset};
      ASSERT_NO_FATAL_FAILURE(expect_close(run.out.values(), reference(run.x.values(), run.weight.values()),
                                           tolerance_of(c.out), target + name_of(c)));
      ASSERT_TRUE(run.out.intact() && run.rstd.intact());
      ASSERT_TRUE(run.out.same_bits(again.out) && run.rstd.same_bits(again.rstd));
    }
  });
}

struct Backward {
  Operand d_out, d_x, d_weight;
  Backward(const Case& c, const Forward& forward, bool accumulate, bool weight_wanted)
      : d_out(random_values(c.rows * c.cols, 3), DType::f32),
        d_x(c.rows * c.cols, DType::f32),
        d_weight(random_values(c.cols, 5), DType::f32) {
    if (accumulate) d_x.set(random_values(c.rows * c.cols, 4));
    const int64_t bytes = weight_wanted ? c.threads * c.cols * 4 : 0;
    Operand workspace = workspace_of(bytes);
    Operand rstd(forward.rstd.values(), DType::f32);
    rms_norm_backward({.d_out = d_out.f32(),
                       .x = forward.x.in(),
                       .weight = forward.weight.in(),
                       .rstd = rstd.f32(),
                       .d_x = d_x.f32(),
                       .d_weight = weight_wanted ? d_weight.f32() : nullptr,
                       .rows = c.rows,
                       .cols = c.cols,
                       .accumulate = accumulate,
                       .weight_offset = c.offset,
                       .workspace = as_workspace(workspace, bytes),
                       .cut = {.threads = c.threads}});
    EXPECT_TRUE(workspace.intact() && d_x.intact() && d_weight.intact());
  }
};

Values minus(Values a, const Values& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

TEST(RmsNorm, GradientsEqualCentralDifferences) {
  on_every_target([](const std::string& target) {
    for (const Case& c : cases()) {
      if (c.cols == 1) continue;  // out is the sign of x: no slope to measure but eps's
      const Forward forward(c);
      const NormReference reference{c.rows, c.cols, 1e-5F, c.offset};
      const Values x = forward.x.values(), weight = forward.weight.values();
      for (bool accumulate : {false, true}) {
        const Backward run(c, forward, accumulate, true), again(c, forward, accumulate, true),
            frozen(c, forward, accumulate, false);
        const Values d_out = run.d_out.values();
        Values d_x = run.d_x.values();
        if (accumulate) d_x = minus(d_x, random_values(c.rows * c.cols, 4));
        const std::string name = target + " " + name_of(c);
        ASSERT_NO_FATAL_FAILURE(
            expect_gradient([&](const Values& v) { return dot(reference(v, weight), d_out); }, x, d_x, name + " d_x"));
        ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& v) { return dot(reference(x, v), d_out); }, weight,
                                                minus(run.d_weight.values(), random_values(c.cols, 5)), name + " d_weight"));
        ASSERT_TRUE(run.d_x.same_bits(again.d_x) && run.d_weight.same_bits(again.d_weight) && run.d_x.same_bits(frozen.d_x));
      }
    }
  });
}

TEST(RmsNorm, RefusesAWorkspaceThatIsTooSmall) {
  float d_weight = 0;
  RmsNormBackward op;
  op.d_weight = &d_weight;
  op.cols = 8;
  EXPECT_THROW(rms_norm_backward(op), Error);
}

// Rows whose mean is far larger than their spread, too.
TEST(LayerNorm, EqualsTheFormulaAndGradientsEqualCentralDifferences) {
  on_every_target([](const std::string& target) {
    for (const Case& c : cases()) {
      if (c.offset != 0 || c.cols == 1) continue;
      Values raw = random_values(c.rows * c.cols, 1);
      for (double& value : raw) value += 8.0;
      const Operand x(raw, c.x), weight(random_values(c.cols, 2), c.weight), bias(random_values(c.cols, 3), c.weight);
      Operand out(c.rows * c.cols, c.out), mean(c.rows, DType::f32), rstd(c.rows, DType::f32);
      layer_norm({.x = x.in(),
                  .weight = weight.in(),
                  .bias = bias.in(),
                  .out = out.out(),
                  .mean = mean.f32(),
                  .rstd = rstd.f32(),
                  .rows = c.rows,
                  .cols = c.cols,
                  .eps = 1e-5F,
                  .cut = {.threads = c.threads}});
      const LayerNormReference f{c.rows, c.cols, 1e-5};
      const Values vx = x.values(), vw = weight.values(), vb = bias.values();
      const std::string name = target + " " + name_of(c);
      const double rounding = is_half(c.out) ? tolerance_of(c.out) : 3e-5;  // of a mean of 8 beside a spread of 1
      ASSERT_NO_FATAL_FAILURE(expect_close(out.values(), f(vx, vw, vb), rounding, name));
      for (bool accumulate : {false, true}) {
        Operand d_out(random_values(c.rows * c.cols, 4), DType::f32), d_x(c.rows * c.cols, DType::f32);
        Operand d_weight(random_values(c.cols, 5), DType::f32), d_bias(random_values(c.cols, 6), DType::f32);
        if (accumulate) d_x.set(random_values(c.rows * c.cols, 7));
        const int64_t bytes = 2 * c.threads * c.cols * 4;
        Operand workspace = workspace_of(bytes);
        layer_norm_backward({.d_out = d_out.f32(),
                             .x = x.in(),
                             .weight = weight.in(),
                             .mean = mean.f32(),
                             .rstd = rstd.f32(),
                             .d_x = d_x.f32(),
                             .d_weight = d_weight.f32(),
                             .d_bias = d_bias.f32(),
                             .rows = c.rows,
                             .cols = c.cols,
                             .accumulate = accumulate,
                             .workspace = as_workspace(workspace, bytes),
                             .cut = {.threads = c.threads}});
        ASSERT_TRUE(workspace.intact() && d_x.intact() && d_weight.intact() && d_bias.intact());
        const Values d = d_out.values();
        Values slope = d_x.values();
        if (accumulate) slope = minus(slope, random_values(c.rows * c.cols, 7));
        ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& v) { return dot(f(v, vw, vb), d); }, vx, slope, name));
        ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& v) { return dot(f(vx, v, vb), d); }, vw,
                                                minus(d_weight.values(), random_values(c.cols, 5)), name + " d_weight"));
        ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& v) { return dot(f(vx, vw, v), d); }, vb,
                                                minus(d_bias.values(), random_values(c.cols, 6)), name + " d_bias"));
      }
    }
  });
}

}  // namespace
}  // namespace snug::kernels::testing
