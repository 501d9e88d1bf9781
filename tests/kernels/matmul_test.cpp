// matmul over shapes x dtypes x forms x cuts: values, gradients, same bits, workspace and allocations.

#include "base/cpu_features.h"
#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/cpu/product.h"
#include "kernels/op_reference.h"
#include "kernels/support_allocations.h"
#include "targets/cpu/products.h"

namespace snug {
namespace {

using tests::Doubles;
using tests::GuardedWorkspace;
using tests::ProductReference;
using tests::Values;

constexpr int32_t kThreads = 2;

struct Sizes {
  int64_t m, n, k;
};
struct Types {
  DType a, b, c;
};
constexpr Types kTypes[] = {{DType::f32, DType::f32, DType::f32},  {DType::bf16, DType::bf16, DType::bf16},
                            {DType::f32, DType::bf16, DType::f32}, {DType::f32, DType::bf16, DType::bf16},
                            {DType::bf16, DType::f32, DType::f32}, {DType::f32, DType::f32, DType::bf16},
                            {DType::f16, DType::f16, DType::f16},  {DType::f32, DType::f16, DType::f32},
                            {DType::f16, DType::f32, DType::f32},  {DType::f32, DType::f32, DType::f16}};

// One product with all that it touches. Blocks are those of `cut_as`: itself, or what it is turned.
struct Trial {
  ProductShape shape, cut_as;
  Blocks blocks;
  float scale;
  Values a, b, c;
  int64_t bytes;

  Trial(const ProductShape& of, const Blocks& cut, float times, bool turns = false)
      : shape(of),
        cut_as(turns ? turned(of) : of),
        blocks(cut),
        scale(times),
        a(of.m * of.k, of.a, 1),
        b(of.k * of.n, of.b, 2),
        c(of.m * of.n, of.c, 3, of.accumulate ? 1.0F : 0.0F),
        bytes(matmul_workspace_bytes(cut_as, cut, kThreads)) {}

  kernels::Matmul op(GuardedWorkspace& workspace) {
    return {.a = a.in(),
            .b = b.in(),
            .c = c.out(),
            .m = shape.m,
            .n = shape.n,
            .k = shape.k,
            .transpose_a = shape.transpose_a,
            .transpose_b = shape.transpose_b,
            .accumulate = shape.accumulate,
            .scale = scale,
            .workspace = workspace.get(),
            .cut = {.threads = kThreads,
                    .rows = blocks.rows,
                    .cols = blocks.cols,
                    .depth = blocks.depth,
                    .arithmetic = shape.arithmetic,
                    .turned = cut_as.turned}};
  }
  void run() {
    GuardedWorkspace workspace(bytes);
    kernels::matmul(op(workspace), tests::products());
    EXPECT_TRUE(workspace.intact());
    EXPECT_TRUE(a.guarded() && b.guarded() && c.guarded());
  }
  void expect_reference() {
    const ProductReference reference{shape.m,           shape.n,           shape.k,
                                     shape.transpose_a, shape.transpose_b, static_cast<double>(scale)};
    const Doubles before = shape.accumulate ? c.doubles() : Doubles();
    const Doubles expected = reference(multiplied(a, b), multiplied(b, a), before);
    run();
    const double rounding = tests::rounding_of(shape.c);
    const double sums = 0x1p-22 * static_cast<double>(shape.k + 8);  // a random walk of roundings
    const Doubles split = split_errors();
    for (int64_t i = 0; i < c.size(); ++i) {
      const double want = expected[static_cast<size_t>(i)];
      ASSERT_NEAR(c[i], want, rounding * std::abs(want) + sums + split[static_cast<size_t>(i)]) << "element " << i;
    }
  }
  // What of an operand is multiplied: beside bf16, in bf16 arithmetic, its numbers rounded to bf16.
  Doubles multiplied(const Values& of, const Values& other) const {
    return shape.arithmetic == Arithmetic::bf16 && other.dtype() == DType::bf16 ? tests::rounded_to_bf16(of) : of.doubles();
  }
  // What two bf16 pieces of an f16 operand, or of an fp32 one beside it, may leave out: 2^-8 of the low piece, which is 2^-8
  // of the number; and what the product of two low pieces would be.
  Doubles split_errors() const {
    if (shape.arithmetic != Arithmetic::bf16_pieces) return Doubles(static_cast<size_t>(shape.m * shape.n));
    const ProductReference sizes{shape.m,           shape.n,           shape.k,
                                 shape.transpose_a, shape.transpose_b, 0x1p-15 * std::abs(static_cast<double>(scale))};
    const auto absolute = [](Doubles values) {
      for (double& value : values) value = std::abs(value);
      return values;
    };
    return sizes(absolute(a.doubles()), absolute(b.doubles()), {});
  }
};

std::string describe(const ProductShape& s, const Blocks& blocks) {
  return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) + (s.transpose_a ? " a^T" : "") +
         (s.transpose_b ? " b^T" : "") + (s.accumulate ? " adds" : "") + " " + std::string(name_of(s.a)) + " " +
         std::string(name_of(s.b)) + " " + std::string(name_of(s.c)) + ", blocks " + std::to_string(blocks.rows) + " " +
         std::to_string(blocks.cols) + " " + std::to_string(blocks.depth) +
         (in_bf16(s.arithmetic)                   ? " in bf16"
          : s.arithmetic == Arithmetic::fp32_thin ? " thin"
          : s.arithmetic == Arithmetic::fp32_dots ? " dots"
                                                  : "");
}

// How this product can be computed here; the last is how a plan for this machine has it.
std::vector<Arithmetic> arithmetics(const ProductShape& shape) {
  std::vector<Arithmetic> known = {Arithmetic::fp32};
  const Arithmetic half = half_arithmetic(shape.a, shape.b, Arithmetic::bf16_pieces);
  if (multiplies_bf16() && in_bf16(half)) known.push_back(half);
  if (product_arithmetic(shape, Arithmetic::fp32) == Arithmetic::fp32_thin) known.push_back(Arithmetic::fp32_thin);
  if (has_few_rows(shape)) known.push_back(Arithmetic::fp32_dots);
  return known;
}

// Every form, dtype and arithmetic of one size.
void try_all(const Sizes& sizes, const Blocks* forced) {
  for (const Types& types : kTypes) {
    for (int form = 0; form < 8; ++form) {
      ProductShape shape{.m = sizes.m,
                         .n = sizes.n,
                         .k = sizes.k,
                         .transpose_a = (form & 1) != 0,
                         .transpose_b = (form & 2) != 0,
                         .accumulate = (form & 4) != 0,
                         .a = types.a,
                         .b = types.b,
                         .c = types.c,
                         .scaled = form % 3 != 0};
      for (const Arithmetic arithmetic : arithmetics(shape)) {
        shape.arithmetic = arithmetic;
        const Blocks blocks = forced != nullptr ? *forced : matmul_blocks(shape, kThreads);
        SCOPED_TRACE(describe(shape, blocks));
        const float scale = shape.scaled ? 0.25F : 1.0F;
        Trial(shape, blocks, scale).expect_reference();
        if (in_bf16(arithmetic))
          Trial(shape, forced != nullptr ? *forced : matmul_blocks(turned(shape), kThreads), scale, true).expect_reference();
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Matmul, SmallAndOddShapesMatchTheReference) {
  for (const Sizes& sizes : {Sizes{1, 1, 1},
                             {1, 7, 3},
                             {5, 1, 9},
                             {3, 2, 1},
                             {17, 33, 65},
                             {64, 64, 64},
                             {40, 130, 31},
                             {131, 200, 16},
                             {16, 147, 300},
                             {147, 11, 300}}) {
    try_all(sizes, nullptr);
  }
}

TEST(Matmul, AFewRowsMatchTheReference) {
  for (const Sizes& sizes : {Sizes{1, 300, 576}, {2, 129, 65}, {3, 70, 1025}, {4, 263, 130}, {4, 64, 16}, {1, 1030, 48}})
    try_all(sizes, nullptr);
}

TEST(Matmul, AFewRowsHaveTheSameBitsOnAnyNumberOfThreads) {
  for (const Types& types : kTypes) {
    for (const bool transpose_b : {false, true}) {
      const ProductShape shape{.m = 1,
                               .n = 1000,
                               .k = 300,
                               .transpose_b = transpose_b,
                               .a = types.a,
                               .b = types.b,
                               .c = types.c,
                               .arithmetic = Arithmetic::fp32_dots};
      Trial one(shape, {}, 1.0F);
      Trial three(shape, {}, 1.0F);
      GuardedWorkspace none(0);
      kernels::Matmul op = one.op(none);
      op.cut.threads = 1;
      kernels::matmul(op, tests::products());
      op = three.op(none);
      op.cut.threads = 3;
      kernels::matmul(op, tests::products());
      EXPECT_TRUE(one.c.same_bits(three.c));
    }
  }
}

TEST(Matmul, DotsRefuseMoreThanAFewRows) {
  const ProductShape shape{.m = 5, .n = 8, .k = 8, .transpose_b = true, .arithmetic = Arithmetic::fp32_dots};
  Trial trial(shape, {}, 1.0F);
  GuardedWorkspace none(0);
  EXPECT_THROW(kernels::prepare(trial.op(none), tests::products()), Error);
}

TEST(Matmul, ForcedCutsMatchTheReference) {
  constexpr Blocks kCuts[] = {{16, 0, 0}, {0, 64, 0}, {0, 0, 16}, {16, 64, 16}, {7, 5, 3}, {32, 128, 48}};
  for (const Blocks& blocks : kCuts) {
    // Below, at and above block sizes.
    for (const Sizes& sizes : {Sizes{15, 63, 15}, {16, 64, 16}, {17, 65, 17}, {33, 129, 49}, {32, 128, 48}})
      try_all(sizes, &blocks);
  }
}

TEST(Matmul, OwnBlocksMatchTheReferenceAtTheirBorders) {
  const ProductShape forward{.n = 300, .k = 2300, .transpose_b = true, .a = DType::bf16, .b = DType::bf16, .c = DType::bf16};
  const ProductShape weights{.n = 70, .k = 1025, .transpose_a = true, .accumulate = true, .a = DType::f32, .b = DType::bf16};
  for (ProductShape shape : {forward, weights}) {
    for (const int64_t m : {255, 256, 257, 513, -255, -513}) {
      shape.m = std::abs(m);
      shape.arithmetic = m < 0 ? arithmetics(shape).back() : Arithmetic::fp32;
      const Blocks blocks = matmul_blocks(shape, kThreads);
      SCOPED_TRACE(describe(shape, blocks));
      Trial(shape, blocks, 1.0F).expect_reference();
    }
  }
}

// The three products of a linear layer, y = scale * x w^T, as the adjoint makes them.
TEST(Matmul, GradientsMatchCentralDifferences) {
  const int64_t tokens = 37;
  const int64_t in = 19;
  const int64_t out = 70;
  const float scale = 0.5F;
  for (const auto& [dtype, most] : {std::pair{DType::f32, Arithmetic::fp32},
                                    {DType::bf16, Arithmetic::fp32},
                                    {DType::bf16, Arithmetic::bf16},
                                    {DType::f16, Arithmetic::fp32},
                                    {DType::f16, Arithmetic::bf16_pieces}}) {
    const Arithmetic arithmetic = multiplies_bf16() ? most : Arithmetic::fp32;
    const Values x(tokens * in, dtype, 21);
    const Values w(out * in, dtype, 22);
    const Values d_y(tokens * out, DType::f32, 23);
    const Doubles seed = arithmetic == Arithmetic::bf16 ? tests::rounded_to_bf16(d_y) : d_y.doubles();
    const ProductReference forward{tokens, out, in, false, true, static_cast<double>(scale)};
    const auto loss = [&](const Doubles& x64, const Doubles& w64) {
      const Doubles y = forward(x64, w64, {});
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += y[i] * seed[i];
      return sum;
    };
    const ProductShape back{.m = tokens, .n = in, .k = out, .b = dtype, .scaled = true, .arithmetic = arithmetic};
    Trial d_x(back, matmul_blocks(back, kThreads), scale);
    d_x.a = d_y;
    d_x.b = w;
    d_x.run();
    tests::expect_slope([&](const Doubles& value) { return loss(value, w.doubles()); }, x.doubles(), d_x.c.doubles(), 1);

    const ProductShape sum{
        .m = out, .n = in, .k = tokens, .transpose_a = true, .b = dtype, .scaled = true, .arithmetic = arithmetic};
    Trial d_w(sum, matmul_blocks(sum, kThreads), scale);
    d_w.a = d_y;
    d_w.b = x;
    d_w.run();
    tests::expect_slope([&](const Doubles& value) { return loss(x.doubles(), value); }, w.doubles(), d_w.c.doubles(), 2);
  }
}

TEST(Matmul, TwoRunsGiveTheSameBits) {
  for (const Types& types : kTypes) {
    ProductShape shape{.m = 130, .n = 200, .k = 700, .transpose_a = true, .a = types.a, .b = types.b, .c = types.c};
    shape.arithmetic = arithmetics(shape).back();
    const Blocks blocks{.rows = 64, .cols = 128, .depth = 256};
    Trial one(shape, blocks, 1.0F);
    Trial two(shape, blocks, 1.0F);
    one.run();
    two.run();
    EXPECT_TRUE(one.c.same_bits(two.c));
  }
}

TEST(Matmul, TurnedItGivesTheSameBits) {
  if (!multiplies_bf16()) GTEST_SKIP() << "no bf16 arithmetic here";
  for (const DType c : {DType::bf16, DType::f32}) {
    for (const int64_t rows : {64, 77}) {
      const ProductShape shape{.m = rows,
                               .n = 330,
                               .k = 4160,
                               .transpose_b = true,
                               .a = DType::bf16,
                               .b = DType::bf16,
                               .c = c,
                               .arithmetic = Arithmetic::bf16};
      ASSERT_TRUE(is_turned(shape));
      Trial one(shape, {.rows = 32, .cols = 128}, 1.0F), two(shape, matmul_blocks(turned(shape), kThreads), 1.0F, true);
      one.run();
      two.run();
      EXPECT_TRUE(one.c.same_bits(two.c));
    }
  }
}

TEST(Matmul, AllocatesNothingAfterPrepare) {
  if (!tests::watches_allocations()) GTEST_SKIP() << "the sanitizer watches";
  kernels::built_in_backend().start_threads(kThreads);
  for (const Types& types : kTypes) {
    for (const bool transpose_a : {false, true}) {
      ProductShape shape{.m = 300,
                         .n = 520,
                         .k = 1100,
                         .transpose_a = transpose_a,
                         .transpose_b = !transpose_a,
                         .accumulate = transpose_a,
                         .a = types.a,
                         .b = types.b,
                         .c = types.c};
      shape.arithmetic = arithmetics(shape).back();
      Trial trial(shape, matmul_blocks(shape, kThreads), 1.0F);
      GuardedWorkspace workspace(trial.bytes);
      const kernels::Matmul op = trial.op(workspace);
      kernels::prepare(op, tests::products());
      const int64_t made = tests::products().count();
      tests::take_largest_allocation();
      kernels::matmul(op, tests::products());
      EXPECT_LT(tests::take_largest_allocation(), size_t{4096});
      EXPECT_EQ(tests::products().count(), made);
    }
  }
}

TEST(Matmul, RefusesLessWorkspaceThanItsRuleStates) {
  const ProductShape shape{.m = 64, .n = 64, .k = 64, .a = DType::bf16, .b = DType::bf16};
  Trial trial(shape, {}, 1.0F);
  trial.bytes = 64 * 64 * 4;
  GuardedWorkspace workspace(trial.bytes);
  EXPECT_THROW(kernels::prepare(trial.op(workspace), tests::products()), Error);
}

}  // namespace
}  // namespace snug
