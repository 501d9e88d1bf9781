// Output head and cross entropy, a chunk of target rows at a time. The hidden rows of a chunk are gathered; then, panel by
// panel of the vocabulary, logits are multiplied out and, while they are in the caches, enter each row's running maximum and
// sum (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018). Each panel of logits is dense, so that
// every product has a dense result. The last chunk is filled up with rows of zeros, which contribute nothing, so that all
// chunks are of one shape.
//
// Training a head whose weights are frozen takes one walk over the panels: each is turned into exp(logit - maximum so far)
// in place and multiplied back at once; a row's sums shrink when its maximum grows, as attention's do (Dao et al.,
// "FlashAttention", 2022), and are divided by its softmax's sum in the end. The target stays out of those sums, whose
// rounding would drown what a share near 1 lacks; its row of weights is added last.
//
// Gradients of weights are summed over rows, each with a sum of its own, which is known after the first walk only: a second
// one turns logits into gradients. In fp32 it finds them kept; in bf16 multiplying is cheaper than keeping, and it makes
// each panel again.
//
// workspace = [hidden chunk][low chunk][d_hidden chunk][d_low chunk][row statistics][panel of weights copied, or of d_logits
// transposed][logits][a product's scratch, or mixed_product's workspace], 64-byte aligned; a part that is not needed has no
// bytes.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "kernels/cpu/mixed_product.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/softmax_rows.h"
#include "kernels/cpu/table.h"
#include "kernels/cpu/tiles.h"

namespace snug::kernels {
namespace {

constexpr int64_t kFloat = sizeof(float);

// What is known of one row's logits so far.
struct RowStatistics {
  double sum = 0;  // of exp(logit - maximum)
  float maximum = -std::numeric_limits<float>::infinity();
  float target = 0;  // the target's logit
  int32_t best = 0;  // the token of the maximum, the first if there are several
};
static_assert(sizeof(RowStatistics) == 24);

// One of the matrices whose products with rows make logits: weight with hidden, low_weight with low.
struct Factor {
  In rows;                                               // [M, inner]
  In weight;                                             // [V, inner]
  float* d_rows = nullptr;                               // [M, inner]
  float* d_weight = nullptr;                             // [V, inner]
  int64_t inner = 0;                                     // 0: absent
  bool adds = false;                                     // to the logits that are there
  bool copied = false;                                   // the weights are not fp32
  bool tiles = false;                                    // multiplied in bf16, in tiles
  int64_t chunk_at = 0, d_chunk_at = 0;                  // bytes into the workspace
  std::array<Product*, 2> logits{}, back{}, gradient{};  // [last panel]
};

struct Plan {
  std::array<Factor, 2> factors;
  int64_t rows = 0, cols = 0;  // a chunk, a panel
  bool trains = false;
  bool once = false;   // trains in one walk: the head's weights are frozen
  bool keeps = false;  // the logits of all panels until the way back
  int32_t threads = 1;
  int64_t statistics_at = 0, panel_at = 0, logits_at = 0, scratch_at = 0;
};

void make_products(const HeadLoss& op, const Plan& plan, Factor& factor, Products& products) {
  for (int last = 0; last < 2; ++last) {
    const int64_t end = op.vocabulary - (op.vocabulary - 1) / plan.cols * plan.cols;
    ProductKey key{.m = plan.rows,
                   .n = last != 0 ? end : plan.cols,
                   .k = factor.inner,
                   .b = Layout::transposed,
                   .accumulate = factor.adds,
                   .threads = plan.threads};
    if (factor.copied) key.b = Layout::packed;
    factor.logits[last] = &products.of(key);
    if (!plan.trains) continue;
    key.k = std::exchange(key.n, factor.inner);
    key.accumulate = true;
    if (!factor.copied) key.b = Layout::plain;
    factor.back[last] = &products.of(key);
    if (factor.d_weight == nullptr) continue;
    key.m = std::exchange(key.k, plan.rows);
    key.b = Layout::plain;
    factor.gradient[last] = &products.of(key);
  }
}

// What mixed_product takes for the three products of a panel of so many columns.
int64_t tile_bytes(const Plan& plan, const Factor& factor, int64_t cols) {
  const Cut cut = {.threads = plan.threads, .rows = kHeadRowBlock};
  const MatrixView chunk = {factor.rows, 0, false, plan.rows, factor.inner};
  int64_t bytes = workspace_bytes({.a = chunk, .b = {factor.weight, 0, true, factor.inner, cols}, .cut = cut});
  if (!plan.trains) return bytes;
  const MatrixView weights = {factor.weight, 0, false, cols, factor.inner};
  bytes = std::max(bytes, workspace_bytes({.a = {{}, 0, false, plan.rows, cols}, .b = weights, .cut = cut}));
  if (factor.d_weight == nullptr) return bytes;
  return std::max(bytes, workspace_bytes({.a = {{}, 0, true, cols, plan.rows}, .b = chunk, .cut = cut}));
}

Plan make_plan(const HeadLoss& op, Products& products) {
  Plan plan;
  plan.rows = op.cut.rows > 0 ? op.cut.rows : align_up(op.rows, 16);
  plan.cols = op.cut.cols > 0 ? std::min(op.cut.cols, op.vocabulary) : op.vocabulary;
  plan.trains = op.d_hidden != nullptr;
  plan.threads = std::max(op.cut.threads, 1);
  plan.factors[0] = {
      .rows = op.hidden, .weight = op.weight, .d_rows = op.d_hidden, .d_weight = op.d_weight, .inner = op.cols};
  plan.factors[1] = {.rows = op.low,
                     .weight = op.low_weight,
                     .d_rows = op.d_low,
                     .d_weight = op.d_low_weight,
                     .inner = op.rank,
                     .adds = true};

  plan.once = plan.trains && op.d_weight == nullptr && op.d_low_weight == nullptr;
  plan.keeps = plan.trains && !plan.once && op.cut.arithmetic == Arithmetic::fp32;

  int64_t bytes = 0;
  const auto part = [&bytes](int64_t of) { return std::exchange(bytes, bytes + align_up(of, 64)); };
  for (Factor& factor : plan.factors) {
    factor.tiles = in_bf16(op.cut.arithmetic) && is_half(factor.rows.dtype) && factor.weight.dtype == factor.rows.dtype;
    factor.chunk_at = part(plan.rows * factor.inner * (factor.tiles ? size_of(factor.rows.dtype) : kFloat));
  }
  int64_t panel = 0;
  int64_t scratch = 0;
  for (Factor& factor : plan.factors) {
    factor.copied = factor.weight.dtype != DType::f32;
    if (plan.trains) factor.d_chunk_at = part(plan.rows * factor.inner * kFloat);
    if (factor.inner == 0) continue;
    if (factor.tiles) {
      for (const int64_t cols : {plan.cols, op.vocabulary - (op.vocabulary - 1) / plan.cols * plan.cols})
        scratch = std::max(scratch, tile_bytes(plan, factor, cols));
      continue;
    }
    if (factor.copied) panel = std::max(panel, copied_floats(Layout::packed, factor.inner, plan.cols));
    if (factor.copied && plan.trains) panel = std::max(panel, copied_floats(Layout::packed, plan.cols, factor.inner));
    if (plan.trains && factor.d_weight != nullptr) panel = std::max(panel, plan.rows * plan.cols);
    make_products(op, plan, factor, products);
    for (const auto& set : {factor.logits, factor.back, factor.gradient}) {
      for (const Product* made : set) scratch = std::max(scratch, made != nullptr ? scratch_bytes(*made) : 0);
    }
  }
  const int64_t held = plan.keeps ? (op.vocabulary + plan.cols - 1) / plan.cols : 1;
  plan.statistics_at = part(plan.rows * int64_t{sizeof(RowStatistics)});
  plan.panel_at = part(panel * kFloat);
  plan.logits_at = part(held * plan.rows * plan.cols * kFloat);
  plan.scratch_at = bytes;
  if (bytes + scratch > op.workspace.bytes) {
    throw Error("the output head needs more workspace than the plan gives it", "", "use fewer threads");
  }
  return plan;
}

// The targets [first, first + count) of a call.
class Chunk {
 public:
  Chunk(const HeadLoss& op, const Plan& plan, int64_t first, int64_t count)
      : op_(op),
        plan_(plan),
        first_(first),
        count_(count),
        tile_rows_(std::min(align_up(count, 32), plan.rows)),
        base_(static_cast<char*>(op.workspace.data)) {}

  // Multiplies the rows out.
  void forward() {
    gather();
    RowStatistics* const rows = statistics();
    for (int64_t v = 0; v < op_.vocabulary; v += plan_.cols) {
      make_logits(v);
#pragma omp parallel for num_threads(plan_.threads) schedule(static)
      for (int64_t r = 0; r < count_; ++r) observe(rows[r], logits(v) + r * width(v), r, v);
    }
  }

  // The sum over rows.
  double loss() const {
    const RowStatistics* const rows = statistics();
    double loss = 0;
    for (int64_t r = 0; r < count_; ++r) {
      loss += static_cast<double>(rows[r].maximum) + std::log(rows[r].sum) - static_cast<double>(rows[r].target);
    }
    return loss;
  }

  void predict() const {
    for (int64_t r = 0; r < count_; ++r) op_.predictions[first_ + r] = statistics()[r].best;
  }

  // After forward. factor_of_loss: what its gradient is multiplied by.
  void backward(double factor_of_loss) {
    zero_d_rows();
    for (int64_t v = 0; v < op_.vocabulary; v += plan_.cols) {
      if (!plan_.keeps) make_logits(v);
      differentiate(v, factor_of_loss);
      for (const Factor& factor : plan_.factors) add_d_rows(factor, v);
      const bool turns =
          std::ranges::any_of(plan_.factors, [](const Factor& f) { return f.d_weight != nullptr && !f.tiles; });
      // d_logits^T; the weights there are no longer needed
      if (turns) copy_block({{logits(v)}, width(v), true, width(v), plan_.rows}, part(plan_.panel_at), plan_.threads);
      for (const Factor& factor : plan_.factors) add_d_weight(factor, v);
    }
    for (const Factor& factor : plan_.factors) scatter(factor);
  }

  // Both in one walk.
  void forward_and_backward(double factor_of_loss) {
    gather();
    zero_d_rows();
    RowStatistics* const rows = statistics();
    for (int64_t v = 0; v < op_.vocabulary; v += plan_.cols) {
      make_logits(v);
#pragma omp parallel for num_threads(plan_.threads) schedule(static)
      for (int64_t r = 0; r < plan_.rows; ++r) weigh(rows[r], logits(v) + r * width(v), r, v);
      for (const Factor& factor : plan_.factors) add_d_rows(factor, v);
    }
#pragma omp parallel for num_threads(plan_.threads) schedule(static)
    for (int64_t r = 0; r < count_; ++r) add_target(rows[r], r, factor_of_loss);
  }

 private:
  float* part(int64_t offset) const { return reinterpret_cast<float*>(base_ + offset); }
  RowStatistics* statistics() const { return reinterpret_cast<RowStatistics*>(base_ + plan_.statistics_at); }
  int64_t width(int64_t v) const { return std::min(plan_.cols, op_.vocabulary - v); }
  bool is_last(int64_t v) const { return v + plan_.cols >= op_.vocabulary; }
  float* logits(int64_t v) const { return part(plan_.logits_at) + (plan_.keeps ? v * plan_.rows : 0); }

  // ---- The products of panel v

  void make_logits(int64_t v) const {
    for (const Factor& factor : plan_.factors) {
      if (factor.inner == 0) continue;
      if (factor.tiles) {
        multiply({.a = chunk_rows(factor), .b = panel(factor, v, true), .c = {logits(v)}, .c_stride = width(v)},
                 factor.adds);
      } else {
        run(*factor.logits[is_last(v)], part(factor.chunk_at), weights(factor, v, true), logits(v), part(plan_.scratch_at));
      }
    }
    if (op_.softcap <= 0) return;
#pragma omp parallel for num_threads(plan_.threads) schedule(static)
    for (int64_t r = 0; r < plan_.rows; ++r) cap_in_place(logits(v) + r * width(v), width(v), op_.softcap);
  }

  void add_d_rows(const Factor& factor, int64_t v) const {
    if (factor.inner == 0) return;
    float* const d_rows = part(factor.d_chunk_at);
    if (factor.tiles) {
      const MatrixView d_logits = {{logits(v)}, width(v), false, tile_rows_, width(v)};
      return multiply({.a = d_logits, .b = panel(factor, v, false), .c = {d_rows}, .c_stride = factor.inner}, true);
    }
    run(*factor.back[is_last(v)], logits(v), weights(factor, v, false), d_rows, part(plan_.scratch_at));
  }

  void add_d_weight(const Factor& factor, int64_t v) const {
    if (factor.d_weight == nullptr) return;
    float* const d_weight = factor.d_weight + v * factor.inner;
    if (factor.tiles) {
      const MatrixView turned = {{logits(v)}, width(v), true, width(v), tile_rows_};
      return multiply({.a = turned, .b = chunk_rows(factor), .c = {d_weight}, .c_stride = factor.inner}, true);
    }
    run(*factor.gradient[is_last(v)], part(plan_.panel_at), part(factor.chunk_at), d_weight, part(plan_.scratch_at));
  }

  void multiply(MixedProduct product, bool accumulate) const {
    product.accumulate = accumulate;
    product.workspace = {base_ + plan_.scratch_at, op_.workspace.bytes - plan_.scratch_at};
    product.cut = {.threads = plan_.threads, .rows = kHeadRowBlock};
    mixed_product(product);
  }

  MatrixView chunk_rows(const Factor& factor) const {
    return {{base_ + factor.chunk_at, factor.rows.dtype}, factor.inner, false, tile_rows_, factor.inner};
  }

  // [inner, width] for logits, [width, inner] for the way back.
  MatrixView panel(const Factor& factor, int64_t v, bool for_logits) const {
    const In data = at(factor.weight, v * factor.inner);
    if (for_logits) return {data, factor.inner, true, factor.inner, width(v)};
    return {data, factor.inner, false, width(v), factor.inner};
  }

  // Panel v of the weights as the b of a product: [inner, width] for logits, [width, inner] for the way back.
  const float* weights(const Factor& factor, int64_t v, bool for_logits) const {
    const In panel = at(factor.weight, v * factor.inner);
    if (!factor.copied) return static_cast<const float*>(panel.data);
    const int64_t rows = for_logits ? factor.inner : width(v);
    const int64_t cols = for_logits ? width(v) : factor.inner;
    copy_operand({panel, factor.inner, for_logits, rows, cols}, Layout::packed, part(plan_.panel_at), plan_.threads);
    return part(plan_.panel_at);
  }

  void gather() const {
    for (const Factor& factor : plan_.factors) gather(factor);
    std::fill_n(statistics(), plan_.rows, RowStatistics{});
  }

  void zero_d_rows() const {
    for (const Factor& factor : plan_.factors) fill_zero(part(factor.d_chunk_at), plan_.rows * factor.inner, plan_.threads);
  }

  void gather(const Factor& factor) const {
    const int64_t inner = factor.inner;
    if (inner == 0) return;
    float* const chunk = part(factor.chunk_at);
#pragma omp parallel for num_threads(plan_.threads) schedule(static)
    for (int64_t r = 0; r < plan_.rows; ++r) {
      if (factor.tiles) {
        auto* const row = reinterpret_cast<uint16_t*>(chunk) + r * inner;
        if (r < count_) {
          std::copy_n(static_cast<const uint16_t*>(at(factor.rows, op_.target_rows[first_ + r] * inner).data), inner, row);
        } else {
          std::fill_n(row, inner, uint16_t{0});
        }
      } else if (r < count_) {
        copy_tile(at(factor.rows, op_.target_rows[first_ + r] * inner), inner, chunk + r * inner, inner, 1, inner);
      } else {
        std::fill_n(chunk + r * inner, inner, 0.0F);
      }
    }
  }

  void scatter(const Factor& factor) const {
    if (factor.d_rows == nullptr) return;
    const float* const chunk = part(factor.d_chunk_at);
#pragma omp parallel for num_threads(plan_.threads) schedule(static)
    for (int64_t r = 0; r < count_; ++r) {
      std::copy_n(chunk + r * factor.inner, factor.inner, factor.d_rows + op_.target_rows[first_ + r] * factor.inner);
    }
  }

  // The maximum of logits [v, v + width) and the target among them enter a row's statistics; returns what sums of before are
  // multiplied by.
  double raise(RowStatistics& row, const float* x, int64_t r, int64_t v) const {
    const int64_t token = target(r, v);
    if (token >= 0) row.target = x[token];
    const float most = max_of(x, width(v));
    if (!(most > row.maximum)) return 1.0;
    const double shrinks = std::exp(static_cast<double>(row.maximum) - static_cast<double>(most));
    row.maximum = most;
    row.sum *= shrinks;
    if (op_.predictions != nullptr) row.best = static_cast<int32_t>(v + (std::find(x, x + width(v), most) - x));
    return shrinks;
  }

  // Where the token that row r shall predict lies in panel v; -1: elsewhere.
  int64_t target(int64_t r, int64_t v) const {
    const int64_t token = op_.target_tokens[first_ + r] - v;
    return token < width(v) ? std::max<int64_t>(token, -1) : -1;
  }

  void observe(RowStatistics& row, const float* x, int64_t r, int64_t v) const {
    raise(row, x, r, v);
    row.sum += static_cast<double>(sum_of_exp(x, width(v), row.maximum));
  }

  // Logits but the target's enter their statistics and become exp(logit - maximum), times the softcap's slope; 0 for the
  // target and in rows that fill up the chunk.
  void weigh(RowStatistics& row, float* x, int64_t r, int64_t v) const {
    if (r >= count_) {
      std::fill_n(x, width(v), 0.0F);
      return;
    }
    const double shrinks = raise(row, x, r, v);
    if (shrinks < 1.0 && v > 0) {
      for (const Factor& factor : plan_.factors)
        multiply_row(part(factor.d_chunk_at) + r * factor.inner, factor.inner, shrinks);
    }
    const int64_t token = target(r, v);
    if (token >= 0) x[token] = -std::numeric_limits<float>::infinity();
    row.sum += static_cast<double>(exp_in_place(x, width(v), row.maximum, 1.0F, inverse_cap()));
    if (token >= 0) x[token] = 0.0F;
  }

  static void multiply_row(float* row, int64_t n, double by) {
    for (int64_t i = 0; i < n; ++i) row[i] *= static_cast<float>(by);
  }

  // The target enters row r's statistics and its gradients, which are divided and put where they belong.
  void add_target(RowStatistics& row, int64_t r, double factor_of_loss) const {
    const double others = row.sum;
    row.sum += std::exp(static_cast<double>(row.target) - static_cast<double>(row.maximum));
    const double scale = factor_of_loss / row.sum;
    for (const Factor& factor : plan_.factors) {
      if (factor.d_rows == nullptr) continue;
      const float* const sums = part(factor.d_chunk_at) + r * factor.inner;
      float* const to = factor.d_rows + op_.target_rows[first_ + r] * factor.inner;
      const int64_t token = op_.target_tokens[first_ + r];
      copy_tile(at(factor.weight, token * factor.inner), factor.inner, to, factor.inner, 1, factor.inner);
      const float of_target = static_cast<float>(-scale * others) * slope(row.target), of_others = static_cast<float>(scale);
      for (int64_t i = 0; i < factor.inner; ++i) to[i] = of_target * to[i] + of_others * sums[i];
    }
  }

  float inverse_cap() const { return op_.softcap > 0 ? 1.0F / op_.softcap : 0.0F; }
  // Of the softcap at a capped logit.
  float slope(float logit) const {
    const float height = logit * inverse_cap();
    return 1.0F - height * height;
  }

  // logits = (softmax - onehot) * factor_of_loss, times the softcap's slope, 0 in rows that fill up the chunk.
  void differentiate(int64_t v, double factor_of_loss) const {
#pragma omp parallel for num_threads(plan_.threads) schedule(static)
    for (int64_t r = 0; r < plan_.rows; ++r) {
      float* const x = logits(v) + r * width(v);
      if (r >= count_) {
        std::fill_n(x, width(v), 0.0F);
        continue;
      }
      const RowStatistics& row = statistics()[r];
      exp_in_place(x, width(v), row.maximum, static_cast<float>(factor_of_loss / row.sum), inverse_cap());
      if (const int64_t token = target(r, v); token >= 0) x[token] -= static_cast<float>(factor_of_loss) * slope(row.target);
    }
  }

  const HeadLoss& op_;
  const Plan& plan_;
  int64_t first_, count_;
  int64_t tile_rows_;  // multiplied on tiles: whole ones, or all; those that are not targets are zero
  char* base_;
};

}  // namespace

void prepare(const HeadLoss& op, Products& products) { make_plan(op, products); }

void head_loss(const HeadLoss& op, Products& products) {
  const Plan plan = make_plan(op, products);
  const auto scalar = [&](Scalar name) -> double& { return op.scalars[static_cast<int>(name)]; };
  const auto targets = static_cast<int64_t>(scalar(Scalar::target_count));
  const double inverse_labels = scalar(Scalar::inverse_labels);
  if (plan.trains) {
    for (const Factor& factor : plan.factors) {
      if (factor.d_rows != nullptr) fill_zero(factor.d_rows, op.rows * factor.inner, plan.threads);
    }
  }
  double loss = 0;
  for (int64_t first = 0; first < targets; first += plan.rows) {
    Chunk chunk(op, plan, first, std::min(plan.rows, targets - first));
    const double factor_of_loss = inverse_labels * scalar(Scalar::loss_scale);
    if (plan.once) {
      chunk.forward_and_backward(factor_of_loss);
    } else {
      chunk.forward();
    }
    loss += chunk.loss();
    if (op.predictions != nullptr) chunk.predict();
    if (plan.trains && !plan.once) chunk.backward(factor_of_loss);
  }
  scalar(Scalar::loss_sum) += loss * inverse_labels;
}

const Kernel cpu::head_loss = cpu::with_products<HeadLoss, kernels::prepare, kernels::head_loss>();

}  // namespace snug::kernels
