// Products from our own panels, on every machine: values, the same bits for each layout and any threads, scratch, edges.

#include "kernels/cpu/panel_product.h"

#include "kernels/op_reference.h"
#include "targets/cpu/products.h"

namespace snug {
namespace {

using kernels::Layout;
using tests::Doubles;
using tests::GuardedWorkspace;
using tests::Values;

// b [k, n] as `layout` has it.
Values laid_out(const Values& b, int64_t n, int64_t k, Layout layout) {
  const int64_t panel = align_up(k, kernels::kPanelDepth) * kernels::kPanelCols;
  const bool packed = layout == Layout::packed;
  Values out(packed ? align_up(n, kernels::kPanelCols) / kernels::kPanelCols * panel : n * k, DType::f32, 0, 0.0F);
  for (int64_t row = 0; row < k; ++row)
    for (int64_t col = 0; col < n; ++col) {
      const int64_t in_panel = col / kernels::kPanelCols * panel + row * kernels::kPanelCols + col % kernels::kPanelCols;
      const int64_t at = packed ? in_panel : layout == Layout::plain ? row * n + col : col * k + row;
      out.set(at, static_cast<float>(b[row * n + col]));
    }
  return out;
}

OperandB operand(Layout layout) {
  return layout == Layout::plain ? OperandB::plain : layout == Layout::packed ? OperandB::packed : OperandB::transposed;
}

struct Sizes {
  int64_t m, n, k;
};
// Rows that fill tiles of 6 or not, columns that fill panels, halves and vectors or not, depths of several panels; n a power
// of two, whose plain b is copied.
constexpr Sizes kSizes[] = {{1, 1, 1},    {6, 64, 16},   {7, 65, 33},   {13, 40, 256},   {12, 64, 70},    {50, 96, 257},
                            {3, 200, 96}, {64, 512, 40}, {200, 31, 64}, {272, 96, 1031}, {33, 128, 1500}, {41, 512, 700}};

class PanelProduct : public ::testing::TestWithParam<Sizes> {};

TEST_P(PanelProduct, gives_the_sums_and_the_same_bits_from_every_layout_on_any_threads) {
  const auto [m, n, k] = GetParam();
  Values a(m * k, DType::f32, 1);
  const Values b(k * n, DType::f32, 2), c0(m * n, DType::f32, 3);
  for (const bool accumulate : {false, true}) {
    const float scale = accumulate ? 0.75F : 1.0F;
    const Doubles exact = tests::ProductReference{m, n, k, false, false, static_cast<double>(scale)}(
        a.doubles(), b.doubles(), accumulate ? c0.doubles() : Doubles{});
    std::vector<Values> results;
    for (const Layout layout : {Layout::plain, Layout::transposed, Layout::packed})
      for (const int32_t threads : {1, 2, 5}) {
        const kernels::ProductKey key{
            .m = m, .n = n, .k = k, .b = layout, .accumulate = accumulate, .scale = scale, .threads = threads};
        EXPECT_LE(panel_scratch_bytes(key), product_scratch_bytes(m, n, k, operand(layout), accumulate, threads));
        GuardedWorkspace scratch(panel_scratch_bytes(key));
        Values b_in_layout = laid_out(b, n, k, layout);
        Values& c = results.emplace_back(c0);
        panel_product(key, a.f32(), b_in_layout.f32(), c.f32(), static_cast<float*>(scratch.get().data));
        EXPECT_TRUE(scratch.intact() && c.guarded());
        EXPECT_TRUE(c.same_bits(results.front())) << static_cast<int>(layout) << " on " << threads;
      }
    for (int64_t i = 0; i < m * n; ++i)
      ASSERT_NEAR(results.front()[i], exact[static_cast<size_t>(i)], 4e-7 * static_cast<double>(k) + 1e-6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(sizes, PanelProduct, ::testing::ValuesIn(kSizes), [](const auto& test) {
  return std::to_string(test.param.m) + "x" + std::to_string(test.param.n) + "x" + std::to_string(test.param.k);
});

}  // namespace
}  // namespace snug
