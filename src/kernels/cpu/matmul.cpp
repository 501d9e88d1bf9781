// c (+)= scale * op(a) op(b), block by block. A product takes dense fp32 matrices only, so a block is used in place if it
// is one already, and is copied into the workspace otherwise: widened from bf16 or f16, transposed (a), packed (b).
// Transposing a here instead of in the product takes one buffer instead of one for each thread, and is faster: each element
// is moved once.
//
// workspace = [a block][b block][c block][the product's scratch], 64-byte aligned; a part that is not needed has no bytes.

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "kernels/cpu/dot_product.h"
#include "kernels/cpu/matmul_plan.h"
#include "kernels/cpu/mixed_product.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"
#include "kernels/cpu/thin_product.h"
#include "kernels/cpu/tiles.h"

namespace snug::kernels {
namespace {

constexpr int64_t kAlign = 64;

MatmulCase case_of(const Matmul& op) {
  const auto block = [](int64_t cut, int64_t all) { return cut <= 0 ? all : std::min(cut, all); };
  return {op.a.dtype,
          op.b.dtype,
          op.c.dtype,
          op.m,
          op.n,
          op.k,
          op.transpose_a,
          op.transpose_b,
          op.accumulate,
          op.scale,
          block(op.cut.rows, op.m),
          block(op.cut.cols, op.n),
          block(op.cut.depth, op.k),
          op.workspace.bytes,
          std::max(op.cut.threads, 1)};
}

// The length of the last block.
int64_t last(int64_t all, int64_t block) { return all - (all - 1) / block * block; }

// Lays out the workspace and makes the products; false if a product's scratch does not fit.
bool fill(MatmulPlan& plan, Products& products) {
  const MatmulCase& of = plan.of;
  const int64_t floats = sizeof(float);
  plan.b_at = plan.a_in_place ? 0 : align_up(plan.rows * of.depth * floats, kAlign);
  plan.c_at = plan.b_at + (plan.b_in_place ? 0 : align_up(copied_floats(plan.b_layout, of.depth, of.cols) * floats, kAlign));
  plan.scratch_at = plan.c_at + (plan.c_in_place ? 0 : align_up(plan.rows * of.cols * floats, kAlign));
  // Which kinds of blocks occur: whole ones and, if it differs, the last.
  const auto length = [](int64_t all, int64_t block, int is_last) {
    return is_last != 0 ? last(all, block) : std::min(all, block);
  };
  const bool adds_first = plan.c_in_place && of.accumulate;
  const bool adds_later = of.depth < of.k;
  const bool adds_whole = of.depth * 2 < of.k;  // a whole block that is not the first
  int64_t scratch = 0;
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < 2; ++c) {
      for (int d = 0; d < 2; ++d) {
        for (int adds = 0; adds < 2; ++adds) {
          // The first depth block is whole, or the only one; later ones add.
          const bool occurs =
              adds == 0 ? !adds_first && (d == 0 || !adds_later) : adds_first || (d == 0 ? adds_whole : adds_later);
          if (!occurs) continue;
          Product& made = products.of({.m = length(of.m, plan.rows, r),
                                       .n = length(of.n, of.cols, c),
                                       .k = length(of.k, of.depth, d),
                                       .b = plan.b_layout,
                                       .accumulate = adds != 0,
                                       .scale = of.scale,
                                       .threads = of.threads});
          plan.products[r][c][d][adds] = &made;
          scratch = std::max(scratch, scratch_bytes(made));
        }
      }
    }
  }
  return plan.scratch_at + scratch <= of.bytes;
}

MatmulPlan make_plan(const MatmulCase& of, Products& products) {
  MatmulPlan plan{.of = of, .rows = of.rows};
  plan.a_in_place = of.a == DType::f32 && !of.transpose_a && of.depth == of.k;
  plan.b_in_place = of.b == DType::f32 && (of.transpose_b ? of.depth == of.k : of.cols == of.n);
  plan.c_in_place = of.c == DType::f32 && of.cols == of.n;
  plan.b_layout = !plan.b_in_place ? Layout::packed : of.transpose_b ? Layout::transposed : Layout::plain;
  // Where oneDNN chose another implementation than the rule knows, less may have to do.
  while (!fill(plan, products)) {
    if (plan.rows <= 16) {
      throw Error("a matrix product needs more workspace than the plan gives it",
                  std::to_string(of.m) + " x " + std::to_string(of.n) + " x " + std::to_string(of.k), "use fewer threads");
    }
    plan.rows = (plan.rows + 1) / 2;
  }
  return plan;
}

const MatmulPlan& plan_of(const Matmul& op, Products& products) {
  auto& plans = products.plans().by_case;
  const MatmulCase of = case_of(op);
  const auto found = plans.find(of);
  return found != plans.end() ? found->second : plans.emplace(of, make_plan(of, products)).first->second;
}

// A product in progress: which blocks the workspace holds.
class Run {
 public:
  Run(const Matmul& op, const MatmulPlan& plan)
      : op_(op), plan_(plan), of_(plan.of), base_(static_cast<char*>(op.workspace.data)) {}

  // Where c takes sums itself, a and b blocks are each copied as seldom as can be; where a block of c gathers them, it must
  // see all depths before the next block.
  void all() {
    for (int64_t c = 0; c < of_.n; c += of_.cols) {
      if (plan_.c_in_place) {
        for (int64_t d = 0; d < of_.k; d += of_.depth) {
          for (int64_t r = 0; r < of_.m; r += plan_.rows) multiply(r, c, d);
        }
      } else {
        for (int64_t r = 0; r < of_.m; r += plan_.rows) {
          for (int64_t d = 0; d < of_.k; d += of_.depth) multiply(r, c, d);
          store(r, c);
        }
      }
    }
  }

 private:
  float* part(int64_t offset) const { return reinterpret_cast<float*>(base_ + offset); }
  int64_t rows(int64_t r) const { return std::min(plan_.rows, of_.m - r); }
  int64_t cols(int64_t c) const { return std::min(of_.cols, of_.n - c); }
  int64_t depth(int64_t d) const { return std::min(of_.depth, of_.k - d); }

  const float* a_block(int64_t r, int64_t d) {
    const In start = at(op_.a, of_.transpose_a ? d * of_.m + r : r * of_.k + d);
    if (plan_.a_in_place) return static_cast<const float*>(start.data);
    if (r != a_row_ || d != a_depth_) {
      copy_block({start, of_.transpose_a ? of_.m : of_.k, of_.transpose_a, rows(r), depth(d)}, part(0), of_.threads);
      a_row_ = r;
      a_depth_ = d;
    }
    return part(0);
  }

  const float* b_block(int64_t c, int64_t d) {
    const In start = at(op_.b, of_.transpose_b ? c * of_.k + d : d * of_.n + c);
    if (plan_.b_in_place) return static_cast<const float*>(start.data);
    if (c != b_col_ || d != b_depth_) {
      copy_operand({start, of_.transpose_b ? of_.k : of_.n, of_.transpose_b, depth(d), cols(c)}, plan_.b_layout,
                   part(plan_.b_at), of_.threads);
      b_col_ = c;
      b_depth_ = d;
    }
    return part(plan_.b_at);
  }

  void multiply(int64_t r, int64_t c, int64_t d) {
    const bool adds = d > 0 || (plan_.c_in_place && of_.accumulate);
    float* result = plan_.c_in_place ? static_cast<float*>(op_.c.data) + r * of_.n : part(plan_.c_at);
    Product* const product = plan_.products[r + plan_.rows >= of_.m][c + of_.cols >= of_.n][d + of_.depth >= of_.k][adds];
    run(*product, a_block(r, d), b_block(c, d), result, part(plan_.scratch_at));
  }

  void store(int64_t r, int64_t c) const {
    store_block(part(plan_.c_at), at(op_.c, r * of_.n + c), of_.n, rows(r), cols(c), of_.accumulate, of_.threads);
  }

  const Matmul& op_;
  const MatmulPlan& plan_;
  const MatmulCase& of_;
  char* base_;
  int64_t a_row_ = -1, a_depth_ = -1, b_col_ = -1, b_depth_ = -1;
};

MixedProduct in_tiles(const Matmul& op) {
  MatrixView a = {op.a, op.transpose_a ? op.m : op.k, op.transpose_a, op.m, op.k};
  MatrixView b = {op.b, op.transpose_b ? op.k : op.n, op.transpose_b, op.k, op.n};
  if (op.cut.turned) {
    std::swap(a, b);
    for (MatrixView* view : {&a, &b}) {
      view->transposed = !view->transposed;
      std::swap(view->rows, view->cols);
    }
  }
  return {.a = a,
          .b = b,
          .c = op.c,
          .c_stride = op.n,
          .c_turned = op.cut.turned,
          .accumulate = op.accumulate,
          .scale = op.scale,
          .workspace = op.workspace,
          .cut = op.cut};
}

}  // namespace

void prepare(const Matmul& op, Products& products) {
  if (op.m <= 0 || op.n <= 0 || op.k <= 0) return;
  switch (op.cut.arithmetic) {
    case Arithmetic::fp32: plan_of(op, products); break;
    case Arithmetic::fp32_thin: require_workspace(op.workspace, thin_workspace_bytes(op), "matmul"); break;
    case Arithmetic::fp32_dots: require_few_rows(op); break;
    case Arithmetic::bf16:
    case Arithmetic::bf16_pieces: require_workspace(op.workspace, workspace_bytes(in_tiles(op)), "matmul"); break;
  }
}

void matmul(const Matmul& op, Products& products) {
  if (op.m <= 0 || op.n <= 0 || op.k <= 0) return;
  switch (op.cut.arithmetic) {
    case Arithmetic::fp32: return Run(op, plan_of(op, products)).all();
    case Arithmetic::fp32_thin: return thin_product(op);
    case Arithmetic::fp32_dots: return dot_product(op);
    case Arithmetic::bf16:
    case Arithmetic::bf16_pieces: return mixed_product(in_tiles(op));
  }
}

const Kernel cpu::matmul = cpu::with_products<Matmul, kernels::prepare, kernels::matmul>();

}  // namespace snug::kernels
