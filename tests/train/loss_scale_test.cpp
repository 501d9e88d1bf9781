// The loss scale against torch.amp.GradScaler, overflow for overflow. Golden files: tests/oracle/make_loss_scale.py.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/scalars.h"
#include "kernels/cpu/kernels.h"
#include "run/in_place.h"
#include "train/support_golden.h"

namespace snug::testing {

namespace {

using Json = nlohmann::json;

TEST(LossScale, follows_torch_through_overflows_and_growth) {
  const Json golden = read_json(golden_directory("loss_scale.json"));
  for (const Json& c : golden["cases"]) {
    std::array<double, kScalarCount> scalars{};
    const auto scalar = [&](Scalar which) -> double& { return scalars[static_cast<size_t>(which)]; };
    scalar(Scalar::loss_scale) = c["init_scale"];
    for (size_t step = 0; step < c["overflows"].size(); ++step) {
      const bool overflow = c["overflows"][step];
      // The gradient (3, 4) times the slope, scaled.
      scalar(Scalar::square_sum) = overflow ? (step % 3 != 0 ? INFINITY : NAN)
                                            : 25.0 * std::pow(c["slope"].get<double>() * scalar(Scalar::loss_scale), 2);
      kernels::clip_factor({.scalars = scalars.data(), .max_norm = 1e9F});
      EXPECT_EQ(scalar(Scalar::skip) == 0.0, c["moved"][step].get<bool>()) << step;
      if (!overflow) {
        EXPECT_EQ(scalar(Scalar::gradient_norm), c["norms"][step].get<double>()) << step;
      }
      kernels::update_scale({.scalars = scalars.data(), .window = c["growth_interval"]});
      EXPECT_EQ(scalar(Scalar::loss_scale), c["scales"][step].get<double>()) << step;
      EXPECT_EQ(scalar(Scalar::steps_at_scale), c["trackers"][step].get<double>()) << step;
    }
  }
}

// Powers of two change no bit of what is scaled: the same weights, whatever the scale.
TEST(LossScale, does_not_change_what_is_learned) {
  const auto directory = golden_directory("untied");
  const std::vector<Json> window = {read_json(directory / "batch.json")};
  std::vector<std::vector<float>> learned;
  std::vector<double> norms;
  for (const double scale : {1.0, 65536.0, 0.125}) {
    Recipe recipe;
    recipe.method = Method::full;
    recipe.fp16 = true;
    GoldenRun run(directory, recipe, window);
    run.load();
    run.executor().set_scalar(Scalar::loss_scale, scale);
    for (int step = 1; step <= 3; ++step) {
      run.forward_backward(window);
      run.update(1e-3, step);
      ASSERT_EQ(run.executor().scalar(Scalar::skip), 0.0);
    }
    norms.push_back(run.executor().scalar(Scalar::gradient_norm));
    learned.emplace_back();
    for (const Weight& weight : run.program().weights) {
      const auto master = InPlace::elements<float>(run.executor(), weight.state(Slot::master));
      learned.back().insert(learned.back().end(), master.begin(), master.end());
    }
  }
  EXPECT_EQ(norms[1], norms[0]);
  EXPECT_EQ(learned[1], learned[0]);
  EXPECT_EQ(learned[2], learned[0]);
}

}  // namespace

}  // namespace snug::testing
