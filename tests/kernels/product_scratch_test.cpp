// product_scratch_bytes is what oneDNN asks for, on machines where it runs the implementation the rule describes.

#include <gtest/gtest.h>

#include "kernels/cpu/product.h"
#include "targets/cpu/products.h"

namespace snug {
namespace {

OperandB operand(kernels::Layout layout) {
  switch (layout) {
    case kernels::Layout::plain: return OperandB::plain;
    case kernels::Layout::transposed: return OperandB::transposed;
    case kernels::Layout::packed: return OperandB::packed;
  }
  return OperandB::plain;
}

TEST(ProductScratch, IsExactlyWhatTheLibraryAsksFor) {
  if (!kernels::has_brgemm()) GTEST_SKIP() << "no AVX-512 here";
  kernels::Products products;
  constexpr int64_t kSizes[] = {1, 17, 64, 300, 512, 1024, 1025, 3000};
#ifdef _OPENMP
  constexpr int32_t kThreads[] = {1, 2, 5, 16};
#else
  constexpr int32_t kThreads[] = {1};
#endif
  for (const int32_t threads : kThreads) {
    for (const int64_t m : kSizes) {
      for (const int64_t n : kSizes) {
        for (const int64_t k : {1, 40, 512, 1500}) {
          if ((m + n + k + threads) % 11 != 0) continue;  // a sample; each product stays in memory
          for (const auto layout : {kernels::Layout::plain, kernels::Layout::transposed, kernels::Layout::packed}) {
            for (const bool accumulate : {false, true}) {
              const auto& product =
                  products.of({.m = m, .n = n, .k = k, .b = layout, .accumulate = accumulate, .threads = threads});
              EXPECT_EQ(product_scratch_bytes(m, n, k, operand(layout), accumulate, threads),
                        kernels::scratch_bytes(product))
                  << m << " x " << n << " x " << k << ", layout " << static_cast<int>(layout) << ", threads " << threads;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace snug
