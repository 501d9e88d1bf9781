#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

struct Case {
  int64_t rows, cols;
  DType gate, up, out;
  int32_t threads;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  constexpr int64_t kShapes[][2] = {{1, 1}, {1, 15}, {3, 17}, {2, 64}, {7, 193}};
  for (const auto& [rows, cols] : kShapes)
    for (DType gate : kStorages)
      for (DType up : kStorages)
        for (DType out : kStorages)
          for (int32_t threads : {1, 2, 3}) all.push_back({rows, cols, gate, up, out, threads});
  return all;
}

TEST(SiluGate, EqualsTheFormula) {
  on_every_target([](const std::string& target) {
    for (const Case& c : cases()) {
      const int64_t n = c.rows * c.cols;
      const Operand gate(random_values(n, 1, 3.0), c.gate), up(random_values(n, 2), c.up);
      const auto run = [&] {
        Operand out(n, c.out);
        silu_gate({gate.in(), up.in(), out.out(), c.rows, c.cols, {.threads = c.threads}});
        return out;
      };
      const Operand out = run();
      ASSERT_NO_FATAL_FAILURE(
          expect_close(out.values(), silu_gate_reference(gate.values(), up.values()), tolerance_of(c.out), target));
      ASSERT_TRUE(out.intact() && out.same_bits(run()));
    }
  });
}

// d_gate and d_up apart, then over d_out's memory.
TEST(SiluGate, GradientsEqualCentralDifferences) {
  on_every_target([](const std::string& target) {
    for (const Case& c : cases()) {
      const int64_t n = c.rows * c.cols;
      const Operand gate(random_values(n, 1, 3.0), c.gate), up(random_values(n, 2), c.up);
      const Values g = gate.values(), u = up.values(), d = random_values(n, 3);
      const auto run = [&](int shared) {
        Operand d_out(d, DType::f32), d_gate(n, DType::f32), d_up(n, DType::f32);
        silu_gate_backward({.d_out = d_out.f32(),
                            .gate = gate.in(),
                            .up = up.in(),
                            .d_gate = shared == 1 ? d_out.f32() : d_gate.f32(),
                            .d_up = shared == 2 ? d_out.f32() : d_up.f32(),
                            .rows = c.rows,
                            .cols = c.cols,
                            .cut = {.threads = c.threads}});
        EXPECT_TRUE(d_out.intact() && d_gate.intact() && d_up.intact());
        return std::pair(shared == 1 ? d_out.values() : d_gate.values(), shared == 2 ? d_out.values() : d_up.values());
      };
      const auto [d_gate, d_up] = run(0);
      ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& v) { return dot(silu_gate_reference(v, u), d); }, g, d_gate,
                                              target + " d_gate"));
      ASSERT_NO_FATAL_FAILURE(
          expect_gradient([&](const Values& v) { return dot(silu_gate_reference(g, v), d); }, u, d_up, target + " d_up"));
      for (int shared : {0, 1, 2}) ASSERT_EQ(run(shared), std::pair(d_gate, d_up)) << target;
    }
  });
}

// exp is right wherever sigmoid needs it, saturating without NaN beyond; NaN stays NaN.
TEST(SiluGate, HoldsOverTheWholeRange) {
  on_every_target([](const std::string& target) {
    Values gates;
    for (double x = -86; x < 130; x += 0.01) gates.push_back(static_cast<float>(x));
    const Operand gate(gates, DType::f32), up(Values(gates.size(), 1.0), DType::f32);
    Operand out(gate.elements(), DType::f32);
    silu_gate({gate.in(), up.in(), out.out(), 1, gate.elements(), {}});
    const Values actual = out.values(), expected = silu_gate_reference(gates, up.values());
    for (size_t i = 0; i < gates.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], 3e-6 * std::abs(expected[i])) << target << " at " << gates[i];

    const Operand extremes({-1e30, -200, 1e30, NAN}, DType::f32), one(Values(4, 1.0), DType::f32);
    Operand result(4, DType::f32);
    silu_gate({extremes.in(), one.in(), result.out(), 1, 4, {}});
    const Values values = result.values();
    EXPECT_LE(std::abs(values[0]), 1e-7);
    EXPECT_LE(std::abs(values[1]), 1e-30);
    EXPECT_EQ(values[2], static_cast<double>(1e30F));
    EXPECT_TRUE(std::isnan(values[3]));
  });
}

TEST(Add, AddsInPlaceToo) {
  on_every_target([](const std::string& target) {
    for (int64_t n : {1, 31, 64, 1000}) {
      for (DType a_type : kStorages) {
        for (DType b_type : kStorages) {
          for (DType out_type : kStorages) {
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
