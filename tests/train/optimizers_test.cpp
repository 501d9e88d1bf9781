// The optimizers' update rules against PyTorch, bitsandbytes and transformers on single tensors. Golden file:
// tests/oracle/make_optimizers.py.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/bfloat16.h"
#include "formats/checkpoint.h"
#include "kernels/cpu/kernels.h"
#include "train/support_golden.h"

namespace snug::testing {

namespace {

constexpr int64_t kRows = 24, kCols = 40, kSteps = 50, kBlocks = 50;
constexpr double kRate = 1e-2, kDecay = 0.1, kClip = 0.75, kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

using Floats = std::vector<float>;
using Codes = std::vector<uint8_t>;

// Inputs as the oracle makes them.
uint32_t bits_of(uint32_t i, uint32_t stream) {
  uint32_t x = i + stream * 0x9E3779B9U;
  x = (x ^ (x >> 16)) * 0x7FEB352DU;
  x = (x ^ (x >> 15)) * 0x846CA68BU;
  return x ^ (x >> 16);
}

Floats numbers(int64_t count, uint32_t stream, float scale = 1.0F) {
  Floats values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (static_cast<float>(bits_of(static_cast<uint32_t>(i), stream) >> 8) * 0x1p-23F - 1.0F) * scale;
  return values;
}

std::vector<double> scalars_at(int64_t step) {
  std::vector<double> scalars(kScalarCount, 0.0);
  scalars[static_cast<size_t>(Scalar::learning_rate)] = kRate;
  scalars[static_cast<size_t>(Scalar::step)] = static_cast<double>(step);
  scalars[static_cast<size_t>(Scalar::clip_factor)] = kClip;
  return scalars;
}

std::filesystem::path golden() { return golden_directory("optimizers") / "expected.safetensors"; }

Codes read_codes(const std::string& tensor) {
  const Checkpoint checkpoint(golden());
  const TensorEntry& entry = checkpoint.at(tensor);
  Codes values(static_cast<size_t>(entry.elements()));
  checkpoint.read(entry, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

void expect_near(const Floats& actual, const std::string& tensor, double tolerance) {
  const Floats truth = read_floats(golden(), tensor);
  ASSERT_EQ(actual.size(), truth.size()) << tensor;
  double largest = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double error = std::abs(double(actual[i]) - truth[i]) / std::max(1.0, std::abs(double(truth[i])));
    largest = std::max(largest, error);
    ASSERT_LE(error, tolerance) << tensor << " at " << i;
  }
  ::testing::Test::RecordProperty(tensor, std::to_string(largest));
}

// Fifty steps of `update(gradient, scalars)` on one tensor.
using Update = std::function<void(const float* gradient, const double* scalars)>;
void fifty_steps(int64_t elements, const Update& update) {
  for (int64_t step = 1; step <= kSteps; ++step)
    update(numbers(elements, static_cast<uint32_t>(100 + step)).data(), scalars_at(step).data());
}

class Threads : public ::testing::TestWithParam<int32_t> {};

TEST_P(Threads, sgd_equals_pytorch_over_fifty_steps) {
  for (const bool with_momentum : {false, true}) {
    Floats p = numbers(kRows * kCols, 1), velocity(p.size(), 0.0F);
    fifty_steps(kRows * kCols, [&](const float* gradient, const double* scalars) {
      kernels::sgd({.parameter = {p.data(), DType::f32},
                    .gradient = gradient,
                    .velocity = with_momentum ? velocity.data() : nullptr,
                    .elements = kRows * kCols,
                    .momentum = 0.9,
                    .weight_decay = kDecay,
                    .scalars = scalars,
                    .cut = {.threads = GetParam()}});
    });
    expect_near(p, with_momentum ? "sgd_momentum.p" : "sgd.p", 1e-5);
    if (with_momentum) expect_near(velocity, "sgd_momentum.momentum_buffer", 1e-5);
  }
}

TEST_P(Threads, lion_equals_bitsandbytes_over_fifty_steps) {
  Floats p = numbers(kRows * kCols, 1), moment(p.size(), 0.0F);
  fifty_steps(kRows * kCols, [&](const float* gradient, const double* scalars) {
    kernels::lion({.parameter = {p.data(), DType::f32},
                   .gradient = gradient,
                   .first_moment = {moment.data()},
                   .elements = kRows * kCols,
                   .beta1 = kBeta1,
                   .beta2 = kBeta2,
                   .weight_decay = kDecay,
                   .scalars = scalars,
                   .cut = {.threads = GetParam()}});
  });
  expect_near(p, "lion.p", 1e-5);
  expect_near(moment, "lion.state1", 1e-5);
}

TEST_P(Threads, adafactor_equals_transformers_over_fifty_steps) {
  struct Case {
    std::string name;
    int64_t matrices, rows, cols;
  };
  for (const auto& [name, matrices, rows, cols] :
       {Case{"matrix", 1, kRows, kCols}, Case{"vector", 1, 1, kCols}, Case{"experts", 3, 8, kCols}}) {
    const int64_t elements = matrices * rows * cols;
    Floats p = numbers(elements, 1), row(static_cast<size_t>(matrices * rows), 0.0F),
           column(static_cast<size_t>(matrices * cols), 0.0F);
    std::vector<double> workspace(static_cast<size_t>(matrices * (rows + 1)));
    fifty_steps(elements, [&](const float* gradient, const double* scalars) {
      kernels::adafactor({.parameter = {p.data(), DType::f32},
                          .gradient = gradient,
                          .row_factor = name == "vector" ? nullptr : row.data(),
                          .column_factor = column.data(),
                          .matrices = matrices,
                          .rows = rows,
                          .cols = cols,
                          .weight_decay = kDecay,
                          .scalars = scalars,
                          .workspace = {workspace.data(), static_cast<int64_t>(workspace.size() * sizeof(double))},
                          .cut = {.threads = GetParam()}});
    });
    expect_near(p, "adafactor_" + name + ".p", 1e-5);
    if (name != "vector") expect_near(row, "adafactor_" + name + ".exp_avg_sq_row", 1e-5);
    expect_near(column, "adafactor_" + name + (name == "vector" ? ".exp_avg_sq" : ".exp_avg_sq_col"), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(on, Threads, ::testing::Values(1, 2, 3));

// ---- States in codes

// Blocks of a tensor with 8-bit states, as the oracle injects them.
struct EightBit {
  Floats p, gradient, absmax1, absmax2;
  Codes state1, state2;

  void add(uint32_t block) {
    const auto append = [](Floats& to, const Floats& from) { to.insert(to.end(), from.begin(), from.end()); };
    append(p, numbers(kStateBlock, 3000 + block));
    Floats g = numbers(kStateBlock, 1000 + block, 0.01F);
    if (block == 3) g[17] = std::numeric_limits<float>::quiet_NaN(), g[40] = std::numeric_limits<float>::infinity();
    append(gradient, g);
    for (uint32_t i = 0; i < kStateBlock; ++i) {
      state1.push_back(static_cast<uint8_t>(bits_of(i, 2000 + block) >> 24));
      state2.push_back(static_cast<uint8_t>(bits_of(i, 2100 + block) >> 24));
    }
    absmax1.push_back(0x1p-8F);
    absmax2.push_back(0x1p-14F);
  }

  void step(bool lion, int64_t step, int32_t threads) {
    const std::vector<double> scalars = scalars_at(step);
    const auto elements = static_cast<int64_t>(p.size());
    if (lion) {
      kernels::lion({.parameter = {p.data(), DType::f32},
                     .gradient = gradient.data(),
                     .first_moment = {state1.data(), DType::u8, absmax1.data()},
                     .elements = elements,
                     .beta1 = kBeta1,
                     .beta2 = kBeta2,
                     .weight_decay = kDecay,
                     .scalars = scalars.data(),
                     .cut = {.threads = threads}});
    } else {
      kernels::adamw({.parameter = {p.data(), DType::f32},
                      .gradient = gradient.data(),
                      .first_moment = {state1.data(), DType::u8, absmax1.data()},
                      .second_moment = {state2.data(), DType::u8, absmax2.data()},
                      .elements = elements,
                      .beta1 = kBeta1,
                      .beta2 = kBeta2,
                      .epsilon = kEpsilon,
                      .weight_decay = kDecay,
                      .scalars = scalars.data(),
                      .cut = {.threads = threads}});
    }
  }
};

// At least 99.9 % of codes are equal and none is further off than its neighbour.
void expect_codes(const Codes& actual, const std::string& tensor) {
  const Codes truth = read_codes(tensor);
  ASSERT_EQ(actual.size(), truth.size()) << tensor;
  size_t other = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    ASSERT_LE(std::abs(int{actual[i]} - int{truth[i]}), 1) << tensor << " at " << i;
    other += actual[i] != truth[i] ? 1 : 0;
  }
  EXPECT_LE(other, truth.size() / 1000) << tensor;
  ::testing::Test::RecordProperty(tensor + "_others", std::to_string(other));
}

class EightBitStates : public ::testing::TestWithParam<bool> {};

TEST_P(EightBitStates, follow_the_cuda_definition_from_fifty_states) {
  const bool lion = GetParam();
  EightBit all;
  for (uint32_t block = 0; block < kBlocks; ++block) {
    EightBit one;
    one.add(block);
    const EightBit before = one;
    one.step(lion, 1 + 7 * block, 1);
    if (block == 3) {
      for (const size_t i : {17, 40}) {
        EXPECT_EQ(one.p[i], before.p[i]);
        EXPECT_EQ(one.state1[i], 127);
        EXPECT_TRUE(lion || one.state2[i] == 0);
      }
    }
    all.p.insert(all.p.end(), one.p.begin(), one.p.end());
    all.state1.insert(all.state1.end(), one.state1.begin(), one.state1.end());
    all.state2.insert(all.state2.end(), one.state2.begin(), one.state2.end());
    all.absmax1.push_back(one.absmax1[0]);
    all.absmax2.push_back(one.absmax2[0]);
  }
  const std::string name = lion ? "lion_8bit." : "adamw_8bit.";
  expect_near(all.p, name + "p", 1e-5);  // steps are up to a hundred times the learning rate where the second moment is 0
  expect_near(all.absmax1, name + "absmax1", 1e-8);
  expect_codes(all.state1, name + "state1");
  if (lion) return;
  expect_near(all.absmax2, name + "absmax2", 1e-10);
  expect_codes(all.state2, name + "state2");
}

TEST_P(EightBitStates, have_the_same_bits_on_any_number_of_threads) {
  EightBit one, other;
  for (uint32_t block = 0; block < 7; ++block) one.add(block);
  for (uint32_t block = 0; block < 7; ++block) other.add(block);
  one.step(GetParam(), 5, 1);
  other.step(GetParam(), 5, 2);
  EXPECT_EQ(one.p, other.p);
  EXPECT_EQ(one.state1, other.state1);
  EXPECT_EQ(one.state2, other.state2);
  EXPECT_EQ(one.absmax1, other.absmax1);
  EXPECT_EQ(one.absmax2, other.absmax2);
}

TEST_P(EightBitStates, of_zeros_stay_zeros) {
  EightBit run;
  run.add(0);
  std::fill(run.gradient.begin(), run.gradient.end(), 0.0F);
  std::fill(run.absmax1.begin(), run.absmax1.end(), 0.0F);
  std::fill(run.absmax2.begin(), run.absmax2.end(), 0.0F);
  std::fill(run.p.begin(), run.p.end(), 0.0F);  // padding behind a weight
  run.step(GetParam(), 1, 1);
  for (const float p : run.p) EXPECT_EQ(p, 0.0F);
  EXPECT_EQ(run.absmax1[0], 0.0F);
}

INSTANTIATE_TEST_SUITE_P(of, EightBitStates, ::testing::Bool(),
                         [](const auto& test) { return std::string(test.param ? "lion" : "adamw"); });

// ---- Stochastic rounding

struct Bf16States {
  Floats p;
  std::vector<uint16_t> first, second;
  explicit Bf16States(int64_t elements) : p(numbers(elements, 1)), first(p.size(), 0), second(p.size(), 0) {}

  void step(const float* gradient, const double* scalars, int32_t threads, uint64_t seed = 42) {
    step(0, static_cast<int64_t>(p.size()), gradient, scalars, threads, seed);
  }

  // Of elements [begin, end) alone.
  void step(int64_t begin, int64_t end, const float* gradient, const double* scalars, int32_t threads, uint64_t seed = 42) {
    kernels::adamw({.parameter = {p.data() + begin, DType::f32},
                    .gradient = gradient + begin,
                    .first_moment = {first.data() + begin, DType::bf16},
                    .second_moment = {second.data() + begin, DType::bf16},
                    .elements = end - begin,
                    .beta1 = kBeta1,
                    .beta2 = kBeta2,
                    .epsilon = kEpsilon,
                    .weight_decay = kDecay,
                    .seed = seed,
                    .first_element = begin,
                    .scalars = scalars,
                    .cut = {.threads = threads}});
  }
};

TEST(StochasticRounding, depends_on_seed_and_step_and_not_on_threads) {
  constexpr int64_t kElements = 1001;
  Bf16States one(kElements), two(kElements), seeded(kElements);
  fifty_steps(kElements, [&](const float* gradient, const double* scalars) {
    one.step(gradient, scalars, 1);
    two.step(gradient, scalars, 2);
    seeded.step(gradient, scalars, 1, 43);
  });
  EXPECT_EQ(one.p, two.p);
  EXPECT_EQ(one.first, two.first);
  EXPECT_EQ(one.second, two.second);
  EXPECT_NE(one.first, seeded.first);
}

TEST(StochasticRounding, of_a_buffer_in_parts_gives_the_bits_of_the_whole) {
  constexpr int64_t kElements = 1001;
  Bf16States whole(kElements), parts(kElements);
  fifty_steps(kElements, [&](const float* gradient, const double* scalars) {
    whole.step(gradient, scalars, 2);
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>(512, kElements), {0, 32}, {32, 512}})
      parts.step(begin, end, gradient, scalars, 2);
  });
  EXPECT_EQ(whole.p, parts.p);
  EXPECT_EQ(whole.first, parts.first);
  EXPECT_EQ(whole.second, parts.second);
}

// beta2 = 0.999 moves a second moment by less than half a step of bf16: rounded to nearest it stands still, far from its
// limit.
TEST(StochasticRounding, keeps_what_rounding_to_nearest_loses) {
  constexpr int64_t kElements = 4096;
  Bf16States run(kElements);
  const Floats gradient(kElements, 0.5F);
  for (int64_t step = 1; step <= 2000; ++step) run.step(gradient.data(), scalars_at(step).data(), 1);
  double mean = 0;
  for (const uint16_t bits : run.second) mean += bf16_to_f32(bits) / static_cast<double>(kElements);
  const double truth = std::pow(0.5 * kClip, 2) * (1 - std::pow(kBeta2, 2000));
  EXPECT_NEAR(mean, truth, 2e-3 * truth);
  float nearest = 0;
  for (int64_t step = 1; step <= 2000; ++step)
    nearest = bf16_to_f32(f32_to_bf16(0.999F * nearest + 0.001F * static_cast<float>(std::pow(0.5 * kClip, 2))));
  EXPECT_LT(nearest, 0.9 * truth);
}

}  // namespace

}  // namespace snug::testing
