#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

struct Case {
  int64_t rows, cols;
  DType gate, up, out;
  int32_t threads;
  Activation kind = Activation::silu;
};

constexpr Activation kKinds[] = {Activation::silu, Activation::gelu_tanh};

std::vector<Case> cases() {
  std::vector<Case> all;
  constexpr int64_t kShapes[][2] = {{1, 1}, {1, 15}, {3, 17}, {2, 64}, {7, 193}};
  for (const auto& [rows, cols] : kShapes)
    for (DType gate : kStorages)
      for (DType up : kStorages)
        for (DType out : kStorages) {
          if (!may_meet({gate, up, out})) continue;
          for (int32_t threads : {1, 2, 3})
            for (Activation kind : kKinds) all.push_back({rows, cols, gate, up, out, threads, kind});
        }
  return all;
}

TEST(Activation, EqualsTheFormula) {
  on_every_target([](const std::string& target) {
    for (const Case& c : cases()) {
      const int64_t n = c.rows * c.cols;
      const Operand gate(random_values(n, 1, 3.0), c.gate), up(random_values(n, 2), c.up);
      const auto run = [&] {
        Operand out(n, c.out);
        activation({gate.in(), up.in(), out.out(), c.rows, c.cols, c.kind, {.threads = c.threads}});
        return out;
      };
      const Operand out = run();
      ASSERT_NO_FATAL_FAILURE(
          expect_close(out.values(), activation_reference(c.kind, gate.values(), up.values()), tolerance_of(c.out), target));
      ASSERT_TRUE(out.intact() && out.same_bits(run()));
    }
  });
}

// d_gate and d_up apart, then over d_out's memory.
TEST(Activation, GradientsEqualCentralDifferences) {
  on_every_target([](const std::string& target) {
    for (const Case& c : cases()) {
      const int64_t n = c.rows * c.cols;
      const Operand gate(random_values(n, 1, 3.0), c.gate), up(random_values(n, 2), c.up);
      const Values g = gate.values(), u = up.values(), d = random_values(n, 3);
      const auto run = [&](int shared) {
        Operand d_out(d, DType::f32), d_gate(n, DType::f32), d_up(n, DType::f32);
        activation_backward({.d_out = d_out.f32(),
                             .gate = gate.in(),
                             .up = up.in(),
                             .d_gate = shared == 1 ? d_out.f32() : d_gate.f32(),
                             .d_up = shared == 2 ? d_out.f32() : d_up.f32(),
                             .rows = c.rows,
                             .cols = c.cols,
                             .kind = c.kind,
                             .cut = {.threads = c.threads}});
        EXPECT_TRUE(d_out.intact() && d_gate.intact() && d_up.intact());
        return std::pair(shared == 1 ? d_out.values() : d_gate.values(), shared == 2 ? d_out.values() : d_up.values());
      };
      const auto [d_gate, d_up] = run(0);
      ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& v) { return dot(activation_reference(c.kind, v, u), d); }, g,
                                              d_gate, target + " d_gate"));
      ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& v) { return dot(activation_reference(c.kind, g, v), d); }, u,
                                              d_up, target + " d_up"));
      for (int shared : {0, 1, 2}) ASSERT_EQ(run(shared), std::pair(d_gate, d_up)) << target;
    }
  });
}

// An MLP without a gate: GPT-2's. The gradient may replace d_out.
TEST(Activation, StandsAloneToo) {
  on_every_target([](const std::string& target) {
    for (const Case& c : cases()) {
      const int64_t n = c.rows * c.cols;
      const Operand gate(random_values(n, 1, 3.0), c.gate);
      Operand out(n, c.out);
      activation({.gate = gate.in(), .out = out.out(), .rows = c.rows, .cols = c.cols, .kind = c.kind});
      ASSERT_NO_FATAL_FAILURE(
          expect_close(out.values(), activation_reference(c.kind, gate.values(), {}), tolerance_of(c.out), target));
      const Values d = random_values(n, 3);
      Operand d_out(d, DType::f32);
      activation_backward({.d_out = d_out.f32(),
                           .gate = gate.in(),
                           .d_gate = d_out.f32(),
                           .rows = c.rows,
                           .cols = c.cols,
                           .kind = c.kind,
                           .cut = {.threads = c.threads}});
      ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& v) { return dot(activation_reference(c.kind, v, {}), d); },
                                              gate.values(), d_out.values(), target));
      ASSERT_TRUE(out.intact() && d_out.intact());
    }
  });
}

// exp is right wherever sigmoid needs it, saturating without NaN beyond; NaN stays NaN.
TEST(Activation, HoldsOverTheWholeRange) {
  on_every_target([](const std::string& target) {
    for (Activation kind : kKinds) {
      Values gates;
      const double lowest = kind == Activation::silu ? -86 : -9;  // where fp32 has the result's digits
      for (double x = lowest; x < 130; x += 0.01) gates.push_back(static_cast<float>(x));
      const Operand gate(gates, DType::f32);
      Operand out(gate.elements(), DType::f32);
      activation({.gate = gate.in(), .out = out.out(), .rows = 1, .cols = gate.elements(), .kind = kind});
      const Values actual = out.values(), expected = activation_reference(Activation::silu, gates, {});
      for (size_t i = 0; i < gates.size(); ++i) {
        // tanh loses what it is 1 less of, so the truth is the same function written with a sigmoid, in fp64
        const double z = 1.5957691216057308 * (gates[i] + 0.044715 * gates[i] * gates[i] * gates[i]);
        const double truth = kind == Activation::silu ? expected[i] : gates[i] / (1.0 + std::exp(-z));
        const double tolerance = kind == Activation::silu ? 3e-6 : 3e-6 + std::abs(z) * 0x1p-22;  // z is rounded four times
        ASSERT_NEAR(actual[i], truth, tolerance * std::abs(truth) + 1e-37) << target << " at " << gates[i];
      }
      const Operand extremes({-1e30, -200, 1e30, NAN}, DType::f32);
      Operand result(4, DType::f32);
      activation({.gate = extremes.in(), .out = result.out(), .rows = 1, .cols = 4, .kind = kind});
      const Values values = result.values();
      EXPECT_LE(std::abs(values[0]), 1e-7);
      EXPECT_LE(std::abs(values[1]), 1e-30);
      EXPECT_EQ(values[2], static_cast<double>(1e30F));
      EXPECT_TRUE(std::isnan(values[3]));
    }
  });
}

TEST(Add, AddsInPlaceToo) {
  on_every_target([](const std::string& target) {
    for (int64_t n : {1, 31, 64, 1000}) {
      for (DType a_type : kStorages) {
        for (DType b_type : kStorages) {
          for (DType out_type : kStorages) {
            if (!may_meet({a_type, b_type, out_type})) continue;
            Operand a(random_values(n, 1), a_type), b(random_values(n, 2), b_type), out(n, out_type);
            Values expected = a.values();
            for (size_t i = 0; i < expected.size(); ++i) expected[i] += b.values()[i];
            add({a.in(), b.in(), out.out(), n, {.threads = 2}});
            ASSERT_NO_FATAL_FAILURE(expect_close(out.values(), expected, tolerance_of(out_type), target));
            add({a.in(), b.in(), a.out(), n, {.threads = 2}});
            ASSERT_NO_FATAL_FAILURE(expect_close(a.values(), expected, tolerance_of(a_type), target));
            ASSERT_TRUE(out.intact() && a.intact());
          }
        }
      }
    }
  });
}

TEST(Zero, ClearsExactlyItsElements) {
  for (int64_t n : {1, 63, 64, 1000}) {
    Operand data(n, DType::f32);
    zero({data.f32(), n, {.threads = 3}});
    EXPECT_EQ(data.values(), Values(static_cast<size_t>(n), 0.0));
    EXPECT_TRUE(data.intact());
  }
}

}  // namespace
}  // namespace snug::kernels::testing
