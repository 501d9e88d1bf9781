// Attention as transformers offers it: PyTorch's fused kernels, or products and a softmax.

#include <algorithm>
#include <utility>

#include "eager/decoder.h"

namespace snug::eager {

// Gemma 2, before masks were made apart from models.
bool Decoder::always_has_mask() const { return t_.stack().blocks_cut_masks && spec_.family == "gemma2"; }

// _prepare_4d_causal_attention_mask_with_cache_position
Tensor Decoder::causal_mask() {
  const bool always = always_has_mask() && setup_.attention == Attention::sdpa;
  if (setup_.attention != Attention::eager && !always && !(setup_.attention == Attention::sdpa && setup_.padded)) return {};
  return made_mask(always);
}

// masking_utils.py and modeling_attn_mask_utils.py, _ignore_causal_mask_sdpa: PyTorch's own causal mask will not do where a
// row is as long as the window.
Tensor Decoder::window_mask() {
  const bool any = std::find(spec_.local_layers.begin(), spec_.local_layers.end(), true) != spec_.local_layers.end();
  if (setup_.attention != Attention::sdpa || always_has_mask() || !any) return {};
  if (T_ < spec_.sliding_window && !setup_.padded) return {};
  return made_mask(false);
}

Tensor Decoder::made_mask(bool always) {
  const DType dtype = embedding_.dtype;
  if (t_.stack().masks_are_boolean) {  // masking_utils.py, eager_mask
    Tensor square = t_.empty(T_ * T_, DType::u8);
    square = t_.empty(T_ * T_, DType::u8);
    const Tensor padding = t_.empty(B_ * T_ * T_, DType::u8);
    return setup_.attention == Attention::sdpa ? padding : t_.empty(B_ * T_ * T_, dtype);
  }
  Tensor square = t_.empty(T_ * T_, dtype);
  square = t_.empty(T_ * T_, dtype);  // triu
  {
    Tensor indices = t_.empty(T_, DType::i64);
    const Tensor later = t_.empty(T_ * T_, DType::u8);
  }
  Tensor mask = t_.empty(B_ * T_ * T_, dtype);
  square = {};
  Tensor padding = t_.empty(B_ * T_ * T_, dtype);
  padding = t_.empty(B_ * T_ * T_, DType::u8);
  { const Tensor filled = t_.empty(B_ * T_ * T_, dtype); }
  padding = {};
  if (setup_.attention == Attention::sdpa && !always) {  // AttentionMaskConverter._unmask_unattended
    { const Tensor least = t_.empty(B_ * T_ * T_, DType::u8), rows = t_.empty(B_ * T_, DType::u8); }
    Tensor reached = t_.empty(B_ * T_ * T_, dtype);
    mask = std::move(reached);
  }
  return mask;
}

// repeat_kv: of one head a view.
Tensor Decoder::repeated(const Tensor& x, int64_t times) {
  const Tensor heads = t_.full_slices(x, 4);
  return spec_.kv_heads > 1 ? t_.repeat(heads, times) : t_.expand(heads, times);
}

// eager_attention_forward
Tensor Decoder::attend_eagerly(const Tensor& query, Tensor key, Tensor value, const Positions& where) {
  const int64_t times = spec_.heads / spec_.kv_heads, scores = B_ * spec_.heads * T_ * T_;
  if (times > 1) {
    key = repeated(key, times);
    value = repeated(value, times);
  }
  // matmul reshapes to batches of matrices: a copy where head and batch do not follow each other in memory
  const bool copied = times > 1 && spec_.kv_heads > 1;
  const auto batched = [&](const Tensor& x, bool contiguous) { return B_ > 1 && !contiguous ? t_.clone(x) : x; };
  Tensor weights;
  {
    const Tensor q = batched(query, false), k = batched(key, copied);
    weights = t_.matmul(q, k, scores);
  }
  weights = t_.scale(weights);
  if (spec_.attention_softcap > 0) {
    weights = t_.scale(weights);
    weights = t_.keeps_output(weights);
    weights = t_.scale(weights);
  }
  // GPT-2's own: tokens that come later are cut out beside the mask, shares stay in the products' dtype, some are dropped
  const bool own = is_gpt2();
  if (own && t_.stack().masks_of_gpt2_are_kept) weights = t_.scale(weights);  // torch.where
  weights = t_.add(weights, where.mask);
  {
    const Tensor wide = own ? t_.autocast_float(weights) : weights;
    const Tensor shares = t_.softmax(wide, own ? wide.dtype : DType::f32);
    weights = t_.to(shares, own ? value.dtype : query.dtype);
  }
  if (own) weights = t_.dropout(weights, spec_.dropout);
  Tensor output;
  {
    const Tensor v = batched(value, copied);
    output = t_.matmul(weights, v, query.count);
  }
  if (where.shares) *where.shares = weights;
  return t_.clone(output);
}

// Whether queries and keys are joined of a part that turned and one that did not, and so lie head by head.
bool Decoder::joins_rotations() const {
  if (setup_.liger.rope || setup_.fused.rope || spec_.learned_positions) return false;
  return spec_.rotated() < D_ || (spec_.fused_projections && t_.stack().phi3_joins_rotations);
}

// integrations/sdpa_attention.py and flash_attention.py
Tensor Decoder::attend(Tensor query, Tensor key, Tensor value, const Tensor& mask) {
  const auto product = [&](const Tensor& x) { return is_half(x.dtype) || t_.autocasts(); };
  const int64_t times = spec_.heads / spec_.kv_heads;
  if (setup_.attention == Attention::flash) {
    const bool repeats =
        t_.stack().flash_repeats_heads && spec_.family != "llama" && spec_.family.find("gemma") == std::string::npos;
    if (repeats && times > 1) {
      key = repeated(key, times);
      value = repeated(value, times);
    }
    return flash(query, key, value, false);
  }
  const bool copies = t_.stack().sdpa_copies_inputs, joined = joins_rotations();
  const bool by_flash = !mask.defined() && product(query);
  const bool by_itself = by_flash || (t_.stack().efficient_shares_heads && !mask.defined());
  if (times > 1 && (copies || !by_itself)) {
    key = repeated(key, times);
    value = repeated(value, times);
    if (copies && !joined) query = t_.clone(query);
  } else if (copies) {
    if (!joined) query = t_.clone(query);
    if (!joined) key = t_.clone(key);
    value = t_.clone(value);
  }
  if (!by_flash) return efficient(query, key, value, mask);
  const bool by_heads = copies || joined;
  const Tensor output = flash(query, key, value, by_heads);
  return by_heads ? t_.clone(output) : output;
}

AttentionShape Decoder::attention_shape() const { return {B_, T_, spec_.heads, D_}; }

// `copies`: queries, keys and values lie head by head.
Tensor Decoder::flash(const Tensor& query, const Tensor& key, const Tensor& value, bool copies) {
  AttentionShape shape = attention_shape();
  shape.head_by_head = copies;
  shape.shares_keys = setup_.attention == Attention::sdpa && !(is_gpt2() && t_.training && spec_.dropout > 0);
  shape.random_state = t_.stack().flash_makes_random_state || setup_.attention == Attention::flash;
  return flash_attention(t_, query, key, value, shape);
}

Tensor Decoder::efficient(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  return efficient_attention(t_, query, key, value, mask, attention_shape());
}

}  // namespace snug::eager
