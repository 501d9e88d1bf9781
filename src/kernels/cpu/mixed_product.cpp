#include "kernels/cpu/mixed_product.h"

#include <algorithm>

#include "base/checked.h"
#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/dequantize.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/tiles.h"

namespace snug::kernels {
namespace {

constexpr int64_t kTileFloats = kTile * kTile;

// Of a matrix in a product with another.
int64_t pieces_of(const MatrixView& matrix, const MatrixView& other) {
  const DType dtype = values_of(matrix.data);
  return dtype == DType::bf16 || (dtype == DType::f32 && values_of(other.data) == DType::bf16) ? 1 : 2;
}

// The sizes of a product and where its parts lie in the workspace.
struct Shape {
  int64_t m, n, k, rows, cols, depth;  // the matrices; a block
  bool copies_a, gathers_c, direct_c;  // direct: every tile of c is computed where it belongs
  int64_t b_low, a_low;                // elements from high to low pieces, 0: none
  int64_t row_blocks, col_groups;      // what is shared out: few rows are split by columns too
  int32_t workers;
  int64_t c_at, threads_at, thread_bytes, tile_bytes, bytes;

  // NOLINTBEGIN(cppcoreguidelines-prefer-member-initializer): each size follows from those before it
  explicit Shape(const MixedProduct& op) : m(op.a.rows), n(op.b.cols), k(op.a.cols) {
    depth = align_up(op.cut.depth > 0 ? std::min(op.cut.depth, k) : k, kTile);
    cols = align_up(op.cut.cols > 0 ? std::min(op.cut.cols, n) : n, kTile);
    rows = align_up(op.cut.rows > 0 ? std::min(op.cut.rows, m) : m, kTile);
    copies_a = op.a.data.dtype != DType::bf16 || op.a.transposed || k % kTile != 0;
    gathers_c = depth < k && (op.c.dtype != DType::f32 || op.scale != 1.0F);
    const int64_t b_pieces = pieces_of(op.b, op.a);
    const int64_t a_pieces = pieces_of(op.a, op.b);
    direct_c =
        !gathers_c && !op.c_turned && op.c.dtype == DType::f32 && op.scale == 1.0F && m % kTile == 0 && n % kTile == 0;
    tile_bytes = direct_c ? 0 : (op.c_turned ? 2 : 1) * kTileFloats * 4;
    const int64_t a_rows = copies_a ? rows : m % kTile != 0 ? kTile : 0;
    b_low = b_pieces == 2 ? depth * cols : 0;
    a_low = a_pieces == 2 ? a_rows * depth : 0;
    c_at = b_pieces * depth * cols * 2;
    threads_at = c_at + (gathers_c ? align_up(m, kTile) * cols * 4 : 0);
    thread_bytes = a_pieces * a_rows * depth * 2 + tile_bytes;
    row_blocks = (m + rows - 1) / rows;
    col_groups = std::min(cols / kTile, (std::max(op.cut.threads, 1) + row_blocks - 1) / row_blocks);
    workers = static_cast<int32_t>(std::min<int64_t>(std::max(op.cut.threads, 1), row_blocks * col_groups));
    bytes = threads_at + workers * thread_bytes;
  }
  // NOLINTEND(cppcoreguidelines-prefer-member-initializer)
};

// A panel of b against rows of a.
class Panel {
 public:
  Panel(const MixedProduct& op, const Shape& shape, int64_t first_col, int64_t first_depth)
      : op_(op),
        shape_(shape),
        base_(static_cast<std::byte*>(op.workspace.data)),
        col_(first_col),
        depth_(first_depth),
        cols_(std::min(shape.cols, shape.n - first_col)),
        depths_(std::min(shape.depth, shape.k - first_depth)),
        padded_depths_(align_up(depths_, kTile)) {}

  int64_t col_tiles() const { return (cols_ + kTile - 1) / kTile; }

  // Column tiles [begin, end). A few side by side and a few rows at a time: a tile's part of a stored row may be a quarter
  // of a cache line, which shall still be there for the next tile.
  void pack(int64_t begin, int64_t end) const {
    constexpr int64_t kSide = 4, kDepths = 128;
    for (int64_t first = begin; first < end; first += kSide) {
      for (int64_t d = 0; d < depths_; d += kDepths) {
        for (int64_t tile = first; tile < std::min(first + kSide, end); ++tile) {
          const int64_t c = tile * kTile;
          const MatrixView part =
              op_.b.part(depth_ + d, col_ + c, std::min(kDepths, depths_ - d), std::min(kTile, cols_ - c));
          pack_pairs(part, b_tile(tile) + d * kTile, shape_.b_low);
        }
      }
    }
  }

  // Rows [first, first + shape.rows) times the panel's column tiles [begin, end), by one thread.
  void multiply(int32_t thread, int64_t first, int64_t begin, int64_t end) const {
    const TileRegisters registers;
    const int64_t last = std::min(first + shape_.rows, shape_.m);
    std::byte* const own = base_ + shape_.threads_at + thread * shape_.thread_bytes;
    auto* const c_tile = reinterpret_cast<float*>(own);
    auto* const a_block = reinterpret_cast<uint16_t*>(own + shape_.tile_bytes);
    if (shape_.copies_a) {
      for (int64_t r = first; r < last; r += kTile)
        split(r, std::min(kTile, last - r), a_block + (r - first) * padded_depths_);
    } else if (last % kTile != 0) {
      split(last / kTile * kTile, last % kTile, a_block);
    }
    for (int64_t tile = begin; tile < end; ++tile) {
      TileFactors factors{
          .b = b_tile(tile), .b_low = shape_.b_low, .k = padded_depths_, .left_half = cols_ - tile * kTile <= kTile / 2};
      for (int64_t r = first; r < last; r += kTile) {
        if (shape_.copies_a || r + kTile > last) {
          factors.a = a_block + (shape_.copies_a ? (r - first) * padded_depths_ : 0);
          factors.a_stride = padded_depths_;
          factors.a_low = shape_.a_low;
        } else {
          factors.a = static_cast<const uint16_t*>(op_.a.part(r, depth_, kTile, depths_).data.data);
          factors.a_stride = op_.a.stride;
        }
        finish(factors, c_tile, r, tile * kTile);
      }
    }
  }

 private:
  uint16_t* b_tile(int64_t tile) const { return reinterpret_cast<uint16_t*>(base_) + tile * kTile * padded_depths_; }

  void split(int64_t row, int64_t rows, uint16_t* to) const {
    split_rows(op_.a.part(row, depth_, rows, depths_), to, shape_.a_low);
  }

  // One tile of c, at [row, col] of the panel.
  void finish(const TileFactors& factors, float* scratch, int64_t row, int64_t col) const {
    const int64_t rows = std::min(kTile, shape_.m - row);
    const int64_t cols = std::min(kTile, cols_ - col);
    const bool is_last = depth_ + shape_.depth >= shape_.k;
    if (shape_.gathers_c) {
      float* const sums = reinterpret_cast<float*>(base_ + shape_.c_at) + row * shape_.cols + col;
      multiply_tile(factors, sums, shape_.cols, depth_ > 0);
      if (!is_last) return;
      for (int64_t r = 0; r < kTile; ++r) std::copy_n(sums + r * shape_.cols, kTile, scratch + r * kTile);
      return store(scratch, row, col, rows, cols, op_.accumulate);
    }
    const bool adds = op_.accumulate || depth_ > 0;
    if (op_.c.dtype == DType::f32 && op_.scale == 1.0F && rows == kTile && cols == kTile && !op_.c_turned)
      return multiply_tile(factors, static_cast<float*>(c_at(row, col).data), op_.c_stride, adds);
    multiply_tile(factors, scratch, kTile, false);
    store(scratch, row, col, rows, cols, adds);
  }

  Out c_at(int64_t row, int64_t col) const {
    return at(op_.c, op_.c_turned ? (col_ + col) * op_.c_stride + row : row * op_.c_stride + col_ + col);
  }

  // `tile` [32, 32], and where c is turned another behind it to turn it in.
  void store(float* tile, int64_t row, int64_t col, int64_t rows, int64_t cols, bool adds) const {
    if (!op_.c_turned) return store_tile(tile, c_at(row, col), op_.c_stride, rows, cols, op_.scale, adds);
    transpose_tile({tile, DType::f32}, kTile, tile + kTileFloats, kTile, kTile, kTile);
    store_tile(tile + kTileFloats, c_at(row, col), op_.c_stride, cols, rows, op_.scale, adds);
  }

  const MixedProduct& op_;
  const Shape& shape_;
  std::byte* base_;
  int64_t col_, depth_, cols_, depths_, padded_depths_;
};

}  // namespace

int64_t workspace_bytes(const MixedProduct& op) { return Shape(op).bytes; }

void mixed_product(const MixedProduct& op) {
  const Shape shape(op);
  const int32_t threads = std::max(op.cut.threads, 1);
  require_workspace(op.workspace, shape.bytes, "a mixed product");
  for (int64_t col = 0; col < shape.n; col += shape.cols) {
    for (int64_t depth = 0; depth < shape.k; depth += shape.depth) {
      const Panel panel(op, shape, col, depth);
      const int64_t tiles = panel.col_tiles();
      for_parts(threads, tiles, 1, [&](int32_t, int64_t begin, int64_t end) { panel.pack(begin, end); });
      const int64_t groups = shape.col_groups;
      for_parts(shape.workers, shape.row_blocks * groups, 1, [&](int32_t thread, int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t group = unit % groups;
          panel.multiply(thread, unit / groups * shape.rows, tiles * group / groups, tiles * (group + 1) / groups);
        }
      });
    }
  }
}

}  // namespace snug::kernels
