#pragma once
// c[m, n] (+)= scale * a[m, k] b[k, n] in fp32 from our own registers, for CPUs on which oneDNN has no brgemm (no AVX-512):
// its older product packs both operands into memory that it allocates itself, which no plan knows. A thread walks along b in
// panels of kPanelCols columns, read where they lie or copied into its part of the scratch, and multiplies a few rows of a
// by a part of the panel that stays in the first cache (Goto & van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008, without the copy of a). Every sum runs in the same order whatever the threads.

#include "kernels/cpu/product.h"

namespace snug::kernels {

// Never more than the plan's product_scratch_bytes (targets/cpu/products.h).
int64_t panel_scratch_bytes(const ProductKey& shape);
// scratch: 64-byte aligned.
void panel_product(const ProductKey& shape, const float* a, const float* b, float* c, float* scratch);

}  // namespace snug::kernels
