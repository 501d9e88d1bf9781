// expert_matmul over routings x sizes x dtypes x forms x arithmetics, cut and given workspace as its rule says: values,
// gradients, same bits, allocations.

#include "base/cpu_features.h"
#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/cpu/product.h"
#include "kernels/op_reference.h"
#include "kernels/support_allocations.h"
#include "kernels/support_routing.h"
#include "program/rules.h"
#include "sanitized.h"
#include "targets/cpu/products.h"

namespace snug {
namespace {

using tests::Doubles;
using tests::GuardedWorkspace;
using tests::Routing;
using tests::RoutingCase;
using tests::Values;

constexpr int32_t kThreads = 2;

enum class Form { forward, back, weights };
constexpr Form kForms[] = {Form::forward, Form::back, Form::weights};

struct Sizes {
  int64_t n, k;  // of an expert's weight
};
struct Types {
  DType rows, weight, result;
};

// Which experts tokens like: any; all the same; none but the last few.
enum class Taste { any, one, few };

std::vector<float> logits_of(const RoutingCase& c, Taste taste) {
  const Values random(c.tokens * c.experts, DType::f32, 1);
  std::vector<float> logits(static_cast<size_t>(c.tokens * c.experts));
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto expert = static_cast<int64_t>(i) % c.experts;
    logits[i] = static_cast<float>(random[static_cast<int64_t>(i)]);
    if (taste == Taste::one && expert == c.experts / 2) logits[i] = 100.0F;
    if (taste == Taste::few && expert + c.choices + 1 >= c.experts) logits[i] += 100.0F;
  }
  return logits;
}

// One op with all that it touches.
struct Trial {
  Form form;
  Sizes sizes;
  const Routing& routing;
  int64_t experts;
  int32_t threads;
  Program program;
  Op op{OpKind::expert_matmul};
  int64_t bytes;
  Values a, b, c;

  Trial(Form of, const Sizes& weight, const Types& types, const Routing& by, bool accumulate, Arithmetic arithmetic,
        int32_t cut_for = kThreads)
      : form(of),
        sizes(weight),
        routing(by),
        experts(by.c.experts),
        threads(cut_for),
        bytes(plan(types, accumulate, arithmetic)),
        a(elements(Slot::a), dtype(Slot::a), 11),
        b(elements(Slot::b), dtype(Slot::b), 12),
        c(elements(Slot::c), dtype(Slot::c), 13, accumulate ? 1.0F : 0.0F) {
    if (!accumulate)  // what was in memory must not matter
      for (int64_t i = 0; i < c.size(); ++i) c.set(i, NAN);
    clear_padding(a);
    if (form == Form::weights) clear_padding(b);
  }

  int64_t elements(Slot slot) const { return program.tensor(op.find(slot)).elements(); }
  DType dtype(Slot slot) const { return program.tensor(op.find(slot)).dtype; }

  int64_t plan(const Types& types, bool accumulate, Arithmetic arithmetic) {
    const auto make = [&](DType type, std::vector<Extent> shape) {
      return program.make("", type, std::move(shape), Role::temporary);
    };
    const int64_t n = sizes.n, k = sizes.k, rows = routing.rows;
    op.attributes = {.transpose_a = form == Form::weights,
                     .transpose_b = form == Form::forward,
                     .accumulate = accumulate,
                     .needed_rows = routing.c.tokens * routing.c.choices};
    op.reads(Slot::a, form == Form::forward ? make(types.rows, {rows, k}) : make(DType::f32, {rows, n}));
    op.reads(Slot::b, form == Form::weights ? make(types.rows, {rows, k}) : make(types.weight, {experts, n, k}));
    op.reads(Slot::tile_experts, make(DType::i32, {rows / routing.tile}));
    op.with(Slot::c, accumulate ? Access::update : Access::write,
            form == Form::forward ? make(types.result, {rows, n})
            : form == Form::back  ? make(DType::f32, {rows, k})
                                  : make(DType::f32, {experts, n, k}));
    rule_of(op.kind).check(program, op);
    const cpu::Machine machine{.threads = threads, .products = arithmetic};
    const OpView view = view_of(program, op);
    op.cut = cpu::sizing_of(op.kind).cut(view, machine);
    return cpu::sizing_of(op.kind).workspace(view, machine);
  }

  void clear_padding(Values& rows) const {
    const int64_t cols = rows.size() / routing.rows;
    for (int64_t row = 0; row < routing.rows; ++row)
      for (int64_t i = 0; i < cols && routing.row_tokens[static_cast<size_t>(row)] < 0; ++i) rows.set(row * cols + i, 0.0F);
  }

  kernels::ExpertMatmul call(GuardedWorkspace& workspace) {
    return {.a = a.in(),
            .b = b.in(),
            .c = c.out(),
            .tile_experts = routing.tile_experts.data(),
            .routed_rows = routing.rows,
            .tile = routing.tile,
            .n = sizes.n,
            .k = sizes.k,
            .transpose_a = op.attributes.transpose_a,
            .transpose_b = op.attributes.transpose_b,
            .accumulate = op.attributes.accumulate,
            .workspace = workspace.get(),
            .cut = op.cut};
  }

  void run(bool side_by_side = true) {
    GuardedWorkspace workspace(bytes);
    kernels::ExpertMatmul ready = call(workspace);
    ready.cut.apart = ready.cut.apart && side_by_side;
    kernels::prepare(ready, tests::products());
    kernels::expert_matmul(ready, tests::products());
    EXPECT_TRUE(workspace.intact());
    EXPECT_TRUE(a.guarded() && b.guarded() && c.guarded());
  }

  // c, from a and b in fp64; sizes of sums beside it, for what roundings may add up to.
  Doubles reference(const Doubles& left, const Doubles& right, const Doubles& before) const {
    Doubles result = before.empty() ? Doubles(static_cast<size_t>(elements(Slot::c))) : before;
    const int64_t n = sizes.n, k = sizes.k;
    for (int64_t row = 0; row < routing.rows; ++row) {
      const int32_t expert = routing.tile_experts[static_cast<size_t>(row / routing.tile)];
      if (expert < 0) continue;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < k; ++j) {
          const auto weight = static_cast<size_t>((expert * n + i) * k + j);
          const auto out = static_cast<size_t>(row * n + i), in = static_cast<size_t>(row * k + j);
          if (form == Form::forward) result[out] += left[in] * right[weight];
          if (form == Form::back) result[in] += left[out] * right[weight];
          if (form == Form::weights) result[weight] += left[out] * right[in];
        }
      }
    }
    return result;
  }

  void expect_reference() {
    const auto absolute = [](Doubles values) {
      for (double& value : values) value = std::abs(value);
      return values;
    };
    const Doubles before = op.attributes.accumulate ? c.doubles() : Doubles();
    const auto multiplied = [&](const Values& of, const Values& other) {
      return op.cut.arithmetic == Arithmetic::bf16 && other.dtype() == DType::bf16 ? tests::rounded_to_bf16(of)
                                                                                   : of.doubles();
    };
    const Doubles left = multiplied(a, b), right = multiplied(b, a);
    const Doubles expected = reference(left, right, before);
    const Doubles sizes_of_sums = reference(absolute(left), absolute(right), absolute(before));
    run();
    // fp32 sums; two bf16 pieces leave out 2^-16 of an operand, and 2^-16 of the product where both operands have two.
    const double relative = op.cut.arithmetic == Arithmetic::bf16_pieces ? 0x1p-15 + 0x1p-19 : 0x1p-19;
    const double rounding = tests::rounding_of(c.dtype());
    const double subnormal = c.dtype() == DType::f16 ? 0x1p-25 : 0.0;  // half a step below 2^-14
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(c[static_cast<int64_t>(i)], expected[i],
                  rounding * std::abs(expected[i]) + relative * sizes_of_sums[i] + subnormal)
          << "element " << i;
  }
};

std::vector<Arithmetic> arithmetics(const Types& types, Form form) {
  std::vector<Arithmetic> known = {Arithmetic::fp32};
  const DType second = form == Form::weights ? types.rows : types.weight;
  const Arithmetic half = half_arithmetic(types.rows, second, Arithmetic::bf16_pieces);
  if (multiplies_bf16() && in_bf16(half)) known.push_back(half);
  return known;
}

constexpr Types kTypes[] = {{DType::f32, DType::f32, DType::f32},  {DType::bf16, DType::bf16, DType::bf16},
                            {DType::bf16, DType::f32, DType::f32}, {DType::f32, DType::bf16, DType::bf16},
                            {DType::f16, DType::f16, DType::f16},  {DType::f32, DType::f16, DType::f16}};

void try_all(const RoutingCase& c, Taste taste, const Sizes& sizes) {
  const std::vector<float> logits = logits_of(c, taste);
  const Routing routing(c, logits.data(), true);
  for (const Types& types : kTypes) {
    for (Form form : kForms) {
      for (const Arithmetic arithmetic : arithmetics(types, form)) {
        for (bool accumulate : {false, true}) {
          if (form == Form::forward ? accumulate : form == Form::weights && !accumulate) continue;
          SCOPED_TRACE(c.name() + ", tile " + std::to_string(routing.tile) + ", form " +
                       std::to_string(static_cast<int>(form)) + ", " + std::to_string(sizes.n) + " x " +
                       std::to_string(sizes.k) + " " + std::string(name_of(types.rows)) + " " +
                       std::string(name_of(types.weight)) + (arithmetic == Arithmetic::fp32 ? "" : " in bf16") +
                       (accumulate ? " adds" : ""));
          const int32_t threads = taste == Taste::one ? kThreads : 1;  // many small products wait for one another
          Trial(form, sizes, types, routing, accumulate, arithmetic, threads).expect_reference();
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(ExpertMatmul, EveryFormMatchesTheReferenceForAnyRouting) {
  for (const RoutingCase& c : {RoutingCase{1, 1, 1}, {5, 8, 2}, {3, 60, 8}, {40, 8, 8}, {70, 60, 4}, {130, 3, 1}}) {
    for (const Taste taste : {Taste::any, Taste::one, Taste::few}) {
      try_all(c, taste, {13, 7});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ExpertMatmul, EveryFormMatchesTheReferenceAtTheSizesOfBlocks) {
  for (const Sizes& sizes : testing::thinned(std::vector<Sizes>{{33, 130}, {64, 32}, {1, 65}, {96, 1}}, 2)) {
    for (const RoutingCase& c : {RoutingCase{520, 4, 2}, {300, 1, 1}, {900, 2, 1}}) {  // tiles of 64 rows and many of them
      try_all(c, c.experts == 1 ? Taste::one : Taste::any, sizes);
      if (HasFatalFailure()) return;
    }
  }
}

// More rows than one product on bf16 tiles takes, and deeper and wider than its panels.
TEST(ExpertMatmul, LongRunsOfOneExpertMatchTheReference) {
  try_all({2300, 3, 1}, Taste::one, {24, 40});
  try_all({70, 2, 1}, Taste::one, {40, 2100});
  try_all({70, 2, 1}, Taste::one, {600, 48});
  try_all({900, 6, 2}, Taste::few, {64, 32});
}

TEST(ExpertMatmul, GradientsEqualCentralDifferences) {
  const RoutingCase c{23, 5, 2};
  const Sizes sizes{9, 14};
  const std::vector<float> logits = logits_of(c, Taste::any);
  const Routing routing(c, logits.data(), true);
  for (const Types& types : kTypes) {
    for (const Arithmetic arithmetic : arithmetics(types, Form::forward)) {
      const Trial forward(Form::forward, sizes, types, routing, false, arithmetic);
      Trial back(Form::back, sizes, types, routing, false, arithmetic);
      Trial weights(Form::weights, sizes, types, routing, true, arithmetic);
      const Values d_out = back.a;
      back.b = forward.b;
      weights.a = d_out, weights.b = forward.a;
      for (int64_t i = 0; i < weights.c.size(); ++i) weights.c.set(i, 0.0F);
      back.run();
      weights.run();
      const Doubles seed = d_out.doubles();
      const auto loss = [&](const Doubles& rows, const Doubles& weight) {
        const Doubles out = forward.reference(rows, weight, {});
        double sum = 0;
        for (size_t i = 0; i < out.size(); ++i) sum += out[i] * seed[i];
        return sum;
      };
      // Without experts, rows and weights have no part: compare where there is one.
      tests::expect_slope([&](const Doubles& v) { return loss(v, forward.b.doubles()); }, forward.a.doubles(),
                          back.c.doubles(), 1);
      tests::expect_slope([&](const Doubles& v) { return loss(forward.a.doubles(), v); }, forward.b.doubles(),
                          weights.c.doubles(), 2);
    }
  }
}

TEST(ExpertMatmul, TwoRunsGiveTheSameBits) {
  const RoutingCase c{700, 6, 2};
  const std::vector<float> logits = logits_of(c, Taste::any);
  const Routing routing(c, logits.data(), true);
  for (const Types& types : kTypes) {
    for (Form form : kForms) {
      const Arithmetic arithmetic = arithmetics(types, form).back();
      Trial one(form, {100, 90}, types, routing, form == Form::weights, arithmetic);
      Trial two(form, {100, 90}, types, routing, form == Form::weights, arithmetic);
      one.run();
      two.run();
      EXPECT_TRUE(one.c.same_bits(two.c));
    }
  }
}

// In bf16 small experts get a thread each; a routing that changes which ones are small changes no bit of the others.
TEST(ExpertMatmul, ExpertsSideBySideGiveTheBitsOfOneAfterTheOther) {
  if (!multiplies_bf16()) GTEST_SKIP() << "no bf16 arithmetic here";
  const RoutingCase c{700, 16, 2};
  for (const Taste taste : {Taste::any, Taste::one}) {
    const std::vector<float> logits = logits_of(c, taste);
    const Routing routing(c, logits.data(), true);
    for (Form form : kForms) {
      Trial apart(form, {100, 90}, kTypes[1], routing, form == Form::weights, Arithmetic::bf16);
      Trial together(form, {100, 90}, kTypes[1], routing, form == Form::weights, Arithmetic::bf16);
      Trial more(form, {100, 90}, kTypes[1], routing, form == Form::weights, Arithmetic::bf16, 5);
      ASSERT_TRUE(apart.op.cut.apart);
      EXPECT_FALSE(
          cpu::sizing_of(OpKind::expert_matmul).cut(view_of(apart.program, apart.op), {.products = Arithmetic::bf16}).apart);
      apart.run();
      together.run(false);
      more.run();
      EXPECT_TRUE(apart.c.same_bits(together.c));
      EXPECT_TRUE(apart.c.same_bits(more.c));
    }
  }
}

TEST(ExpertMatmul, AllocatesNothingAfterPrepare) {
  if (!tests::watches_allocations()) GTEST_SKIP() << "the sanitizer watches";
  kernels::built_in_backend().start_threads(kThreads);
  const RoutingCase c{700, 8, 2};
  const std::vector<float> logits = logits_of(c, Taste::any);
  const Routing routing(c, logits.data(), true);
  for (const Types& types : kTypes) {
    for (Form form : kForms) {
      for (const Arithmetic arithmetic : arithmetics(types, form)) {
        Trial trial(form, {300, 520}, types, routing, form == Form::weights, arithmetic);
        GuardedWorkspace workspace(trial.bytes);
        const kernels::ExpertMatmul op = trial.call(workspace);
        kernels::prepare(op, tests::products());
        const int64_t made = tests::products().count();
        tests::take_largest_allocation();
        kernels::expert_matmul(op, tests::products());
        EXPECT_LT(tests::take_largest_allocation(), size_t{4096});
        EXPECT_EQ(tests::products().count(), made);
      }
    }
  }
}

TEST(ExpertMatmul, RefusesLessWorkspaceThanItsRuleStates) {
  const RoutingCase c{300, 2, 1};
  const std::vector<float> logits = logits_of(c, Taste::any);
  const Routing routing(c, logits.data(), true);
  for (const Arithmetic arithmetic : arithmetics(kTypes[1], Form::forward)) {
    Trial trial(Form::forward, {64, 64}, kTypes[1], routing, false, arithmetic);
    ASSERT_GT(trial.bytes, 4096);
    trial.bytes = 4096;
    GuardedWorkspace workspace(trial.bytes);
    EXPECT_THROW(kernels::prepare(trial.call(workspace), tests::products()), Error);
  }
}

// Only rows that tokens need are work, whatever the padding.
TEST(ExpertMatmul, WorkCountsTheRowsThatTokensNeed) {
  const RoutingCase c{100, 8, 2};
  const std::vector<float> logits = logits_of(c, Taste::any);
  const Routing routing(c, logits.data(), true);
  for (Form form : kForms) {
    const Trial trial(form, {64, 32}, kTypes[0], routing, form == Form::weights, Arithmetic::fp32);
    EXPECT_EQ(rule_of(OpKind::expert_matmul).work(trial.program, trial.op).flops, 2.0 * 200 * 64 * 32);
  }
}

}  // namespace
}  // namespace snug
