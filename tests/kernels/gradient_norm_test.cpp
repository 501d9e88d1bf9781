#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

double& at(std::vector<double>& scalars, Scalar which) { return scalars[static_cast<size_t>(which)]; }

double squares(const Operand& data, int32_t threads, double before) {
  std::vector<double> scalars(kScalarCount, 0.0);
  at(scalars, Scalar::square_sum) = before;
  const int64_t bytes = (data.elements() + kSquareSumBlock - 1) / kSquareSumBlock * 8;
  Operand workspace = workspace_of(bytes);
  square_sum({static_cast<const float*>(data.data()),
              data.elements(),
              scalars.data(),
              as_workspace(workspace, bytes),
              {.threads = threads}});
  EXPECT_TRUE(workspace.intact());
  return at(scalars, Scalar::square_sum);
}

TEST(SquareSum, IsExactAndTheSameForAnyThreadsAndInstructionSet) {
  for (int64_t n :
       {int64_t{1}, int64_t{17}, kSquareSumBlock - 1, kSquareSumBlock, kSquareSumBlock + 1, 3 * kSquareSumBlock + 5}) {
    const Operand data(random_values(n, 1), DType::f32);
    const double expected = 2.5 + dot(data.values(), data.values());
    const double first = squares(data, 1, 2.5);
    EXPECT_NEAR(first, expected, 1e-13 * expected);
    on_every_target([&](const std::string& target) {
      for (int32_t threads : {1, 2, 3}) ASSERT_EQ(squares(data, threads, 2.5), first) << target;
    });
  }
}

TEST(ClipFactor, TakesTheScaleOff) {
  for (const double scale : {0.25, 1.0, 65536.0})
    for (const float max_norm : {0.0F, 1.0F, 100.0F}) {
      std::vector<double> scalars(kScalarCount, 0.0);
      at(scalars, Scalar::square_sum) = 9 * scale * scale;
      at(scalars, Scalar::loss_scale) = scale;
      clip_factor({scalars.data(), max_norm});
      EXPECT_EQ(at(scalars, Scalar::gradient_norm), 3);
      EXPECT_NEAR(scale * at(scalars, Scalar::clip_factor), max_norm == 1.0F ? 1 / (3 + 1e-6) : 1.0, 1e-15);
    }
}

TEST(ClipFactor, IsTorchs) {
  struct Case {
    double square_sum;
    float max_norm;
    double factor, skip;
  };
  const Case cases[] = {{0.25, 1, 1, 0}, {4, 1, 1 / (2 + 1e-6), 0}, {4, 0, 1, 0},       {4, -1, 1, 0},
                        {0, 1, 1, 0},    {1, 1, 1 / (1 + 1e-6), 0}, {INFINITY, 1, 0, 1}};
  for (const Case& c : cases) {
    std::vector<double> scalars(kScalarCount, 7.0);
    at(scalars, Scalar::square_sum) = c.square_sum;
    at(scalars, Scalar::loss_scale) = 1;
    clip_factor({scalars.data(), c.max_norm});
    EXPECT_EQ(at(scalars, Scalar::gradient_norm), std::sqrt(c.square_sum));
    EXPECT_NEAR(at(scalars, Scalar::clip_factor), c.factor, 1e-15);
    EXPECT_EQ(at(scalars, Scalar::skip), c.skip);
  }
  std::vector<double> scalars(kScalarCount, NAN);
  clip_factor({scalars.data(), 1});
  EXPECT_EQ(at(scalars, Scalar::skip), 1);
}

}  // namespace
}  // namespace snug::kernels::testing
