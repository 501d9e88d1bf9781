#pragma once
// One dense fp32 matrix product, created before step 0 and run without allocating: by oneDNN's brgemm on CPUs with AVX-512
// (the primitive keeps no memory of its own, and the memory objects only have their pointers set), by panel_product.h on all
// others. brgemm wants every matrix dense, so that a block of a wider matrix is copied first; `matmul.cpp` and
// `head_loss.cpp` see to that. Products are run by one thread at a time.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>

namespace snug::kernels {

// How b[k, n] lies in memory: row-major; as [n, k]; or packed, in panels of kPanelCols columns, each [k rounded up to
// kPanelDepth, kPanelCols] with zeros where b ends: what both read without a copy of their own.
enum class Layout : int32_t { plain, transposed, packed };
constexpr int64_t kPanelCols = 64;
constexpr int64_t kPanelDepth = 16;

// c[m, n] (+)= scale * a[m, k] b[k, n].
struct ProductKey {
  int64_t m = 0, n = 0, k = 0;
  Layout b = Layout::plain;
  bool accumulate = false;
  float scale = 1.0F;
  int32_t threads = 1;
  auto operator<=>(const ProductKey&) const = default;
};

class Product;

struct MatmulPlans;

// The products of one run, and how its matmuls use them.
class Products {
 public:
  Products();
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  // The product of this shape, created at the first call for it. Throws Error if oneDNN cannot.
  Product& of(const ProductKey& shape);
  int64_t count() const { return static_cast<int64_t>(products_.size()); }
  MatmulPlans& plans() { return *plans_; }

 private:
  std::map<ProductKey, Product> products_;
  std::unique_ptr<MatmulPlans> plans_;
};

// Bytes `run` scribbles on; the pointer should be 64-byte aligned.
int64_t scratch_bytes(const Product& product);
void run(Product& product, const float* a, const float* b, float* c, void* scratch);
// Whether this machine's products are oneDNN's.
bool has_brgemm();

}  // namespace snug::kernels
