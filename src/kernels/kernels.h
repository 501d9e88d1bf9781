#pragma once
// The boundary between programs and hardware: one function for each op, taking one small struct of named arguments. A kernel
// knows pointers, shapes, dtypes and its cut; it allocates nothing, keeps no state between calls and knows no model or plan.
// `kernels/cpu`, `kernels/cuda` and `kernels/none` answer to these declarations. This header compiles as CUDA too.
//
// Letters: B sequences, T tokens a sequence, M = B*T rows, C hidden, F MLP width, V vocabulary, H query heads, K key/value
// heads, D head size, R LoRA rank. Everything is row-major and dense. Arithmetic is fp32 whatever the storage dtype, but for
// products that their cut has in bf16 (base/arithmetic.h); storing bf16 rounds to nearest even.

#include <cstdint>

#include "base/activation.h"
#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/scalars.h"
#include "op/attributes.h"

namespace snug::kernels {

using Cut = OpCut;

// What the codes of a quantized matrix (nf4, fp4, i8) are multiplied by: one number for each block of elements, counted over
// the flattened matrix; i8 codes are hundred-and-twenty-sevenths of it. In nested form it is
// map[code] * nested_absmax[block / kNestedBlock] + offset, of the signed dynamic map (base/dynamic_map.h).
struct Scales {
  const void* absmax = nullptr;          // [blocks] f32, or u8 in nested form
  const float* nested_absmax = nullptr;  // null: not nested
  const float* offset = nullptr;         // [1], in nested form
  int64_t block_size = 0;                // elements; for 4-bit codes an even number
  DType values = DType::f32;             // what the products are rounded to: f32, f16 or bf16
};

// A dense matrix, or a vector with rows = 1. `data` may be null where the op says so. Quantized matrices are read by
// products alone, as their b.
struct In {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t first = 0;  // of a quantized matrix: the element it begins with, in its blocks
  Scales scales = {};
};
struct Out {
  void* data = nullptr;
  DType dtype = DType::f32;
};

// Bytes an op may scribble on during its call, 64-byte aligned.
struct Workspace {
  void* data = nullptr;
  int64_t bytes = 0;
};

using snug::kNestedBlock;
using snug::kScalarCount;
using snug::kSquareSumBlock;
using snug::kStateBlock;
using snug::Scalar;
using Scalars = double;  // pointer to kScalarCount of them

// ---- Products
// -------------------------------------------------------------------------------------------------------------

// c[m, n] (+)= scale * op(a)[m, k] op(b)[k, n].
// a is [m, k], or [k, m] if transpose_a; b is [k, n], or [n, k] if transpose_b. f32, bf16 or f16 each.
// cut.rows/cols/depth are block sizes. In fp32, operands in bf16 or f16 are widened block by block into the workspace;
// in bf16 (cut.arithmetic, base/arithmetic.h) one of the two must be bf16 or f16.
struct Matmul {
  In a, b;
  Out c;
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  float scale = 1.0F;
  Workspace workspace;
  Cut cut;
};
void matmul(const Matmul& op);
// Creates what `matmul` needs for this shape (pointers are ignored), so that the call itself allocates nothing.
// Throws Error if the backend cannot work within workspace.bytes.
void prepare(const Matmul& op);

// ---- Rows
// -----------------------------------------------------------------------------------------------------------------

// out[i, :] = scale * table[ids[i], :].
struct Embedding {
  In table;                      // [V, C]
  const int32_t* ids = nullptr;  // [M]
  Out out;                       // [M, C]
  int64_t rows = 0, cols = 0, vocabulary = 0;
  float scale = 1.0F;
  Cut cut;
};
void embedding(const Embedding& op);

// d_table[ids[i], :] += scale * d_out[i, :], summed in the order of i; rows of `untrained_row` are passed over.
struct EmbeddingBackward {
  const float* d_out = nullptr;  // [M, C]
  const int32_t* ids = nullptr;  // [M]
  float* d_table = nullptr;      // [V, C]
  int64_t rows = 0, cols = 0, vocabulary = 0;
  float scale = 1.0F;
  int64_t untrained_row = -1;  // none
  Cut cut;
};
void embedding_backward(const EmbeddingBackward& op);

// out = x * rstd * (weight_offset + weight), rstd = 1/sqrt(mean(x^2) + eps) (Zhang & Sennrich 2019).
struct RmsNorm {
  In x, weight;           // [M, C], [C]
  Out out;                // [M, C]
  float* rstd = nullptr;  // [M]
  int64_t rows = 0, cols = 0;
  float eps = 0;
  float weight_offset = 0;  // 1 in Gemma, whose weights are gains less one
  Cut cut;
};
void rms_norm(const RmsNorm& op);

// d_x (+)= the gradient through x; d_weight += sum over rows of d_out * x * rstd (null where the weight is frozen).
// workspace: threads * C floats where d_weight is wanted.
struct RmsNormBackward {
  const float* d_out = nullptr;  // [M, C]
  In x, weight;                  // [M, C], [C]
  const float* rstd = nullptr;   // [M]
  float* d_x = nullptr;          // [M, C]
  float* d_weight = nullptr;     // [C]
  int64_t rows = 0, cols = 0;
  bool accumulate = false;  // into d_x
  float weight_offset = 0;
  Workspace workspace;
  Cut cut;
};
void rms_norm_backward(const RmsNormBackward& op);

// out = (x - mean) * rstd * weight + bias, rstd = 1/sqrt(variance + eps) (Ba et al. 2016).
struct LayerNorm {
  In x, weight, bias;                      // [M, C], [C], [C]
  Out out;                                 // [M, C]
  float *mean = nullptr, *rstd = nullptr;  // [M]
  int64_t rows = 0, cols = 0;
  float eps = 0;
  Cut cut;
};
void layer_norm(const LayerNorm& op);

// d_x (+)= the gradient through x; d_weight and d_bias are added to (both null where frozen).
// workspace: 2 * threads * C floats where they are wanted.
struct LayerNormBackward {
  const float* d_out = nullptr;                  // [M, C]
  In x, weight;                                  // [M, C], [C]
  const float *mean = nullptr, *rstd = nullptr;  // [M]
  float* d_x = nullptr;                          // [M, C]
  float *d_weight = nullptr, *d_bias = nullptr;  // [C]
  int64_t rows = 0, cols = 0;
  bool accumulate = false;  // into d_x
  Workspace workspace;
  Cut cut;
};
void layer_norm_backward(const LayerNormBackward& op);

// x[i, :] += bias.
struct AddBias {
  Out x;    // [M, N]
  In bias;  // [N]
  int64_t rows = 0, cols = 0;
  Cut cut;
};
void add_bias(const AddBias& op);

// d_bias += sum over rows of d_out. workspace: threads * N floats.
struct BiasBackward {
  const float* d_out = nullptr;  // [M, N]
  float* d_bias = nullptr;       // [N]
  int64_t rows = 0, cols = 0;
  Workspace workspace;
  Cut cut;
};
void bias_backward(const BiasBackward& op);

// whole = [M, N] and its column blocks, side by side; all of one dtype. split copies out of the whole, join into it.
struct ColumnParts {
  struct Part {
    void* data = nullptr;  // [M, cols]
    int64_t cols = 0;      // 0: none
  };
  void* whole = nullptr;
  Part parts[3];
  DType dtype = DType::f32;
  int64_t rows = 0;
  Cut cut;
};
void split(const ColumnParts& op);
void join(const ColumnParts& op);

// cosine, sine [M, half] of positions[i] * inverse_frequency[j], times scale (YaRN's attention factor).
struct RopeTable {
  const int32_t* positions = nullptr;        // [M]
  const float* inverse_frequency = nullptr;  // [half]
  float* cosine = nullptr;                   // [M, half]
  float* sine = nullptr;                     // [M, half]
  int64_t rows = 0, half = 0;
  float scale = 1.0F;
  Cut cut;
};
void rope_table(const RopeTable& op);

// Rotates the first 2 * half numbers of each head in place, halves split ("rotate_half"): (x1, x2) -> (x1 cos - x2 sin, x2
// cos + x1 sin); `inverse` turns it back (which is also its gradient).
struct Rope {
  Out x;                          // [M, heads, D]
  const float* cosine = nullptr;  // [M, half], half <= D/2
  const float* sine = nullptr;
  int64_t rows = 0, heads = 0, head_size = 0, half = 0;
  bool inverse = false;
  Cut cut;
};
void rope(const Rope& op);

// out = activation(gate) * up, or activation(gate) where up's data is null.
struct ActivationGate {
  In gate, up;  // [M, F]
  Out out;      // [M, F]
  int64_t rows = 0, cols = 0;
  Activation kind = Activation::silu;
  Cut cut;
};
void activation(const ActivationGate& op);

// d_gate and d_up may each be the same memory as d_out; up and d_up are null together.
struct ActivationGateBackward {
  const float* d_out = nullptr;  // [M, F]
  In gate, up;                   // [M, F]
  float* d_gate = nullptr;
  float* d_up = nullptr;
  int64_t rows = 0, cols = 0;
  Activation kind = Activation::silu;
  Cut cut;
};
void activation_backward(const ActivationGateBackward& op);

// out = a + b. out may be the same memory as a or b.
struct Add {
  In a, b;
  Out out;
  int64_t elements = 0;
  Cut cut;
};
void add(const Add& op);

// ---- Attention
// ------------------------------------------------------------------------------------------------------------

// Causal attention within documents: token t sees tokens document_start[t]..t of its own sequence, with a window the last
// `window` of them alone. With a softcap a scaled score s becomes softcap * tanh(s / softcap). Grouped queries: head h
// reads key/value head h / (H/K). Blocks of cut.rows queries by cut.cols keys with running softmax (Dao et al.,
// FlashAttention, 2022); no T x T matrix. lse[b, h, t] = log sum exp of the scaled scores. workspace:
// attention_workspace(...) as the op's rule states it, one part for each thread.
struct Attention {
  In q, k, v;                               // [B, T, H, D], [B, T, K, D], [B, T, K, D]
  const int32_t* document_start = nullptr;  // [B, T], index within the sequence
  Out out;                                  // [B, T, H, D]
  float* lse = nullptr;                     // [B, H, T]
  int64_t batch = 0, seq_len = 0, heads = 0, kv_heads = 0, head_size = 0;
  float scale = 1.0F;
  float softcap = 0;   // 0: none
  int64_t window = 0;  // tokens, 0: none
  Workspace workspace;
  Cut cut;
};
void attention(const Attention& op);

// d_q, d_k, d_v are written. Work is split over (sequence, key/value head), so sums have one order.
struct AttentionBackward {
  const float* d_out = nullptr;  // [B, T, H, D]
  In q, k, v, out;
  const int32_t* document_start = nullptr;
  const float* lse = nullptr;  // [B, H, T]
  float* d_q = nullptr;        // [B, T, H, D]
  float* d_k = nullptr;        // [B, T, K, D]
  float* d_v = nullptr;
  int64_t batch = 0, seq_len = 0, heads = 0, kv_heads = 0, head_size = 0;
  float scale = 1.0F;
  float softcap = 0;
  int64_t window = 0;
  Workspace workspace;
  Cut cut;
};
void attention_backward(const AttentionBackward& op);

// Attention of new tokens over a cache of all tokens so far: keys and values of row i are stored at row positions[i] of the
// caches, then query i sees their rows max(0, positions[i] - window + 1) .. positions[i] (no window: 0 .. positions[i]).
// Scale, softcap and grouped queries as above; several rows must stand at different positions. workspace for each thread:
// the scores of a head [capacity], padded to 16, and a query [D], likewise.
struct CachedAttention {
  In q, k, v;                          // [M, H, D], [M, K, D], [M, K, D]
  const int32_t* positions = nullptr;  // [M], each within the capacity
  Out key_cache, value_cache;          // [capacity, K, D], of one dtype
  Out out;                             // [M, H, D]
  int64_t rows = 0, capacity = 0, heads = 0, kv_heads = 0, head_size = 0;
  float scale = 1.0F;
  float softcap = 0;   // 0: none
  int64_t window = 0;  // tokens, 0: none
  Workspace workspace;
  Cut cut;
};
// Throws Error for a position outside of the cache.
void cached_attention(const CachedAttention& op);

// ---- Loss
// -----------------------------------------------------------------------------------------------------------------

// Output head and cross entropy in one op; the logits exist for cut.rows targets at a time, in panels of cut.cols vocabulary
// entries. For each of the first scalars[target_count] target rows i:  logits = hidden[i] weight^T + low[i] low_weight^T,
// loss = lse(logits) - logits[target]. scalars[loss_sum] += loss_scale-free sum * scalars[inverse_labels].
// Training (d_hidden not null): d_logits = (softmax - onehot) * inverse_labels * loss_scale; d_hidden is written for every
// row (zero where nothing is predicted); d_weight, d_low_weight are added to (null where frozen); d_low is written like
// d_hidden. Evaluation: predictions[j] = argmax of target j's logits, where predictions is not null.
struct HeadLoss {
  In hidden;                               // [M, C]
  In weight;                               // [V, C]
  In low, low_weight;                      // LoRA on the head: [M, R], [V, R]; null without
  const int32_t* target_rows = nullptr;    // [M], ascending
  const int32_t* target_tokens = nullptr;  // [M]
  Scalars* scalars = nullptr;
  float* d_hidden = nullptr;       // [M, C]
  float* d_weight = nullptr;       // [V, C]
  float* d_low = nullptr;          // [M, R]
  float* d_low_weight = nullptr;   // [V, R]
  int32_t* predictions = nullptr;  // [M]
  int64_t rows = 0, cols = 0, vocabulary = 0, rank = 0;
  float softcap = 0;  // logits become softcap * tanh(logits / softcap); 0: they stay
  Workspace workspace;
  Cut cut;
};
void head_loss(const HeadLoss& op);
void prepare(const HeadLoss& op);

// ---- Optimizer
// ------------------------------------------------------------------------------------------------------------

// data[0, elements) = 0.
struct Zero {
  float* data = nullptr;
  int64_t elements = 0;
  Cut cut;
};
void zero(const Zero& op);

// scalars[square_sum] += sum of squares, in blocks of fixed size summed in order in fp64.
// workspace: one double for each block of kSquareSumBlock elements.
struct SquareSum {
  const float* data = nullptr;
  int64_t elements = 0;
  Scalars* scalars = nullptr;
  Workspace workspace;
  Cut cut;
};
void square_sum(const SquareSum& op);

// gradient_norm = sqrt(square_sum) / loss_scale; clip_factor as torch.nn.utils.clip_grad_norm_ (max_norm <= 0: 1), over
// loss_scale; skip = norm not finite.
struct ClipFactor {
  Scalars* scalars = nullptr;
  float max_norm = 0;
};
void clip_factor(const ClipFactor& op);

// loss_scale of the next step as torch.amp.GradScaler has it: half as large after a step that was skipped, twice as large
// after `window` steps in a row that were not. Counts both.
struct UpdateScale {
  Scalars* scalars = nullptr;
  int64_t window = 1;
};
void update_scale(const UpdateScale& op);

// A state of an optimizer, one number for each element. f32; or bf16, rounded stochastically; or u8: codes of a dynamic map
// (base/dynamic_map.h), signed for a first moment and unsigned for a second, times the largest magnitude of each block of
// kStateBlock elements.
struct CodedState {
  void* data = nullptr;  // [n]
  DType dtype = DType::f32;
  float* absmax = nullptr;  // [n / kStateBlock], of u8
};

// AdamW as torch.optim.AdamW (Loshchilov & Hutter 2019): decay first, then the bias-corrected step; gradient times
// clip_factor. With a master copy the update happens there and parameter receives its rounding. With states in u8 it is
// bitsandbytes' 8-bit AdamW on CUDA (csrc/kernels.cu:kOptimizerStatic8bit2StateBlockwise): decay after the step; where the
// gradient is not finite the states become 0 and the parameter stays. Both states have one dtype. What bf16 states are
// rounded by depends on the element, Scalar::step, seed and stream alone.
struct AdamW {
  Out parameter;            // [n]
  float* master = nullptr;  // [n] or null
  const float* gradient = nullptr;
  CodedState first_moment, second_moment;
  int64_t elements = 0;
  double beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  uint64_t seed = 0, stream = 0;
  int64_t first_element = 0;  // where the noise's counting of elements begins, a multiple of 4
  const Scalars* scalars = nullptr;
  Cut cut;
};
void adamw(const AdamW& op);

// Stochastic gradient descent as torch.optim.SGD: g = gradient * clip_factor + weight_decay * p; with a velocity,
// velocity = momentum * velocity + g and g = velocity; p -= learning_rate * g. Master copies as in AdamW.
struct Sgd {
  Out parameter;            // [n]
  float* master = nullptr;  // [n] or null
  const float* gradient = nullptr;
  float* velocity = nullptr;  // [n], null without momentum
  int64_t elements = 0;
  double momentum = 0, weight_decay = 0;
  const Scalars* scalars = nullptr;
  Cut cut;
};
void sgd(const Sgd& op);

// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023): p *= 1 - learning_rate * weight_decay, then
// p -= learning_rate * sign(beta1 * m + (1 - beta1) * g) and m = beta2 * m + (1 - beta2) * g; gradient times clip_factor.
// Master copies as in AdamW, states in u8 too (kOptimizerStatic8bit1StateBlockwise).
struct Lion {
  Out parameter;            // [n]
  float* master = nullptr;  // [n] or null
  const float* gradient = nullptr;
  CodedState first_moment;  // f32 or u8
  int64_t elements = 0;
  double beta1 = 0, beta2 = 0, weight_decay = 0;
  const Scalars* scalars = nullptr;
  Cut cut;
};
void lion(const Lion& op);

// Adafactor (Shazeer & Stern 2018) as transformers' with fixed learning rates: of each matrix's squared gradients only the
// running means of rows and columns are kept; the update is their rank-one estimate, scaled down to a root mean square of 1
// over the whole tensor. A vector is a matrix of one row without row_factor.
// workspace: a double for each matrix and each of its rows.
struct Adafactor {
  Out parameter;                    // [E, N, K]
  float* master = nullptr;          // likewise, or null
  const float* gradient = nullptr;  // likewise
  float* row_factor = nullptr;      // [E, N], or null
  float* column_factor = nullptr;   // [E, K]
  int64_t matrices = 1, rows = 1, cols = 0;
  double weight_decay = 0;
  const Scalars* scalars = nullptr;
  Workspace workspace;
  Cut cut;
};
void adafactor(const Adafactor& op);

// ---- Adapters
// -------------------------------------------------------------------------------------------------------------

// out (+)= x * keep/(1 - p) where keep is drawn for every element: 0 with probability p, else 1; if `complement`,
// out (+)= x minus that. The draw depends on seed, stream, layer, element, and the step and micro-batch that the scalars
// hold, so it is the same whenever and by however many threads it is made. out may be the same memory as x.
struct Dropout {
  In x;
  Out out;
  int64_t elements = 0;
  double probability = 0;  // p, below 1
  bool complement = false;
  bool accumulate = false;
  uint64_t seed = 0, stream = 0;  // stream < 2^16, one for each op
  int64_t layer = 0;              // < 2^16
  const Scalars* scalars = nullptr;
  Cut cut;
};
void dropout(const Dropout& op);

// norm[o] = the length of row o of weight + scale * B A, as DoRA needs it (Liu et al., 2024). weight [out, in], or [in, out]
// if `input_features_first`. a, b null: of the weight alone. Rows are made a few at a time. workspace: kDoraPanel floats for
// each thread, for [in, out] (kDoraColumns + 1) * rank + 3 * kDoraColumns.
struct DoraNorm {
  In weight;
  const float* a = nullptr;              // [rank, in]
  const float* b = nullptr;              // [out, rank]
  float* norm = nullptr;                 // [out]
  int64_t rows = 0, cols = 0, rank = 0;  // out, in
  float scale = 1.0F;
  bool input_features_first = false;
  Workspace workspace;
  Cut cut;
};
void dora_norm(const DoraNorm& op);

// out[i, j] = x[i, j] * magnitude[j] / norm[j]. out may be the same memory as x.
struct ScaleColumns {
  In x;                              // [M, N]
  const float* magnitude = nullptr;  // [N]
  const float* norm = nullptr;       // [N]
  Out out;                           // [M, N]
  int64_t rows = 0, cols = 0;
  Workspace workspace;  // N floats
  Cut cut;
};
void scale_columns(const ScaleColumns& op);

// d_x[i, j] = d_out[i, j] * magnitude[j] / norm[j]; d_magnitude[j] += the sum over i of d_out[i, j] * x[i, j] / norm[j].
// d_x may be the same memory as d_out. workspace: (threads + 1) * N floats.
struct ScaleColumnsBackward {
  const float* d_out = nullptr;
  In x;
  const float* magnitude = nullptr;
  const float* norm = nullptr;
  float* d_x = nullptr;
  float* d_magnitude = nullptr;
  int64_t rows = 0, cols = 0;
  Workspace workspace;
  Cut cut;
};
void scale_columns_backward(const ScaleColumnsBackward& op);

// ---- The backend itself
// ---------------------------------------------------------------------------------------------------

// Starts the threads that ops will use, with their stacks; call once before memory is counted.
void start_threads(int32_t threads);
// Distinct products prepared so far (each keeps a little memory outside any arena).
int64_t prepared_products();
// What this backend is: "cpu avx3_spr, oneDNN 2.6.3" or "none".
const char* backend_name();

// ---- Experts
// --------------------------------------------------------------------------------------------------------------

// A mixture of experts in routed rows: every choice of every token has a row, an expert's rows follow one another in the
// order of tokens, and each expert's share ends with padding so that it fills whole tiles. Letters: E experts, J choices a
// token, P routed rows, of which J*M are used at most. Rows of padding are zeros.

// Chooses the J experts with the largest logits of each token, the lowest index first among equals (NaN counts as infinite),
// weighs them by softmax over all E logits or, if `normalize`, over the J chosen ones, and gives every choice its row.
// workspace: E int32. Indices are within their bounds whatever the logits are.
struct Route {
  const float* logits = nullptr;    // [M, E]
  float* route_weights = nullptr;   // [M, J]
  int32_t* expert_rows = nullptr;   // [M, J], the row of each choice
  int32_t* row_tokens = nullptr;    // [P], the token of each row; -1: padding
  int32_t* tile_experts = nullptr;  // [P / tile], the expert of each tile of rows; -1: unused
  int64_t rows = 0, experts = 0, choices = 0, routed_rows = 0, tile = 0;
  bool normalize = false;
  Workspace workspace;
  Cut cut;
};
void route(const Route& op);

// d_logits = the gradient through the weights; which experts are chosen has none.
struct RouteBackward {
  const float* d_route_weights = nullptr;  // [M, J]
  const float* route_weights = nullptr;    // [M, J]
  const int32_t* expert_rows = nullptr;    // [M, J]
  const int32_t* tile_experts = nullptr;   // [P / tile]
  const float* logits = nullptr;           // [M, E]; not read if `normalize`
  float* d_logits = nullptr;               // [M, E]
  int64_t rows = 0, experts = 0, choices = 0, tile = 0;
  bool normalize = false;
  Cut cut;
};
void route_backward(const RouteBackward& op);

// out[expert_rows[m, j], :] = x[m, :]; rows of padding are zeroed.
struct GatherRows {
  In x;                                  // [M, C]
  const int32_t* expert_rows = nullptr;  // [M, J]
  const int32_t* row_tokens = nullptr;   // [P]
  Out out;                               // [P, C]
  int64_t rows = 0, cols = 0, choices = 0, routed_rows = 0;
  Cut cut;
};
void gather_rows(const GatherRows& op);

// d_x[m, :] (+)= the sum of d_out[expert_rows[m, j], :] in the order of j.
struct GatherRowsBackward {
  const float* d_out = nullptr;          // [P, C]
  const int32_t* expert_rows = nullptr;  // [M, J]
  float* d_x = nullptr;                  // [M, C]
  int64_t rows = 0, cols = 0, choices = 0;
  bool accumulate = false;
  Cut cut;
};
void gather_rows_backward(const GatherRowsBackward& op);

// Products of every tile of rows with the weight of its expert, W [E, N, K]:
//   transpose_b: c [P, N] (+)= a [P, K] W^T;  neither: c [P, K] (+)= a [P, N] W;  both zero where a tile is unused.
//   transpose_a: c [E, N, K] += a [P, N]^T b [P, K], summed over each expert's rows.
// Neighbouring tiles of one expert are multiplied together: in bf16 up to cut.span of them; in fp32 span, span/2 … 1
// of them, since those products are made before step 0. workspace and cut: as for `matmul` of each such product; if
// cut.apart, which is for bf16, also for one such product of one thread in each of cut.threads equal parts.
struct ExpertMatmul {
  In a, b;
  Out c;
  const int32_t* tile_experts = nullptr;  // [P / tile], -1: unused
  int64_t routed_rows = 0, tile = 0;
  int64_t n = 0, k = 0;  // of W
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  Workspace workspace;
  Cut cut;
};
void expert_matmul(const ExpertMatmul& op);
void prepare(const ExpertMatmul& op);

// out[m, :] = the sum over j of route_weights[m, j] * x[expert_rows[m, j], :].
struct Combine {
  In x;                                  // [P, C]
  const float* route_weights = nullptr;  // [M, J]
  const int32_t* expert_rows = nullptr;  // [M, J]
  Out out;                               // [M, C]
  int64_t rows = 0, cols = 0, choices = 0;
  Cut cut;
};
void combine(const Combine& op);

// d_x[expert_rows[m, j], :] = route_weights[m, j] * d_out[m, :], zero in padding; d_route_weights[m, j] = the product of
// d_out[m, :] and x[expert_rows[m, j], :]. Either may be null.
struct CombineBackward {
  const float* d_out = nullptr;          // [M, C]
  In x;                                  // [P, C]
  const float* route_weights = nullptr;  // [M, J]
  const int32_t* expert_rows = nullptr;  // [M, J]
  const int32_t* row_tokens = nullptr;   // [P]
  float* d_x = nullptr;                  // [P, C]
  float* d_route_weights = nullptr;      // [M, J]
  int64_t rows = 0, cols = 0, choices = 0, routed_rows = 0;
  Cut cut;
};
void combine_backward(const CombineBackward& op);

}  // namespace snug::kernels
