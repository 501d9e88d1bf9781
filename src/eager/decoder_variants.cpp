// What the blocks of some families do otherwise than Llama's: StableLM's and Phi's order, rotations of a part of a head,
// OPT's positions, MLPs without a gate.

#include <utility>

#include "eager/decoder.h"

namespace snug::eager {

// modeling_gpt2.py and modeling_seed_oss.py: outputs of attention and MLP are dropped within them.
bool Decoder::drops_outputs() const { return is_gpt2() || spec_.family == "seed_oss"; }

// StableLmDecoderLayer.forward: its locals live until it ends.
Tensor Decoder::stable_block(const Tensor& input, Block& b, const Positions& where) {
  const Tensor normed = norm(input, b.attention_norm);
  const Tensor attended = attention(normed, b, where);
  if (spec_.parallel == ParallelBlock::one_norm) {
    const Tensor wide = t_.dropout(mlp(normed, b), spec_.dropout);
    const Tensor sum = t_.add(input, attended);
    return t_.add(sum, wide);
  }
  const Tensor residual = t_.add(input, attended);
  Tensor wide;
  {
    const Tensor second = norm(residual, b.mlp_norm);
    wide = mlp(second, b);
  }
  wide = t_.dropout(wide, spec_.dropout);
  return t_.add(residual, wide);
}

// PhiDecoderLayer.forward
Tensor Decoder::phi_block(const Tensor& input, Block& b, const Positions& where) {
  const Tensor normed = norm(input, b.attention_norm);
  Tensor attended = attention(normed, b, where);
  attended = t_.dropout(attended, spec_.dropout);
  Tensor wide = mlp(normed, b);
  wide = t_.dropout(wide, spec_.dropout);
  const Tensor sum = t_.add(attended, wide);
  return t_.add(sum, input);
}

// The first numbers of a head turn. In Phi and StableLM what turned stays a local of attention (`locals`); in Nemotron and
// GLM it ends with the function that turns.
void Decoder::rotate_part(Tensor& query, Tensor& key, const Positions& where, Tensors& locals) {
  // Of two dtypes the kernel itself makes the wider one.
  const auto joined = [&](const Tensor& turned, Tensor rest) {
    rest.dtype = promoted(rest.dtype, turned.dtype);
    return t_.cat({turned, rest});
  };
  const auto part = [&](const Tensor& x, int64_t of_head) { return t_.slice(x, x.count / D_ * of_head); };
  const int64_t turns = spec_.rotated();
  Positions here = where;
  const bool interleaved = spec_.family == "glm" || spec_.family == "glm4", named_again = interleaved || is_hybrid();
  if (interleaved) {
    here.cos = t_.empty(T_ * turns, where.cos.dtype);
    here.sin = t_.empty(T_ * turns, where.sin.dtype);
  }
  const Tensor query_first = part(query, turns), query_rest = part(query, D_ - turns);
  const Tensor key_first = part(key, turns), key_rest = part(key, D_ - turns);
  Tensor turned_query = rotate(query_first, here), turned_key = rotate(key_first, here);
  query = joined(turned_query, query_rest);
  if (named_again) turned_query = {};
  key = joined(turned_key, key_rest);
  if (spec_.naming == TensorNaming::phi || spec_.naming == TensorNaming::stablelm) locals = {turned_query, turned_key};
}

// OPTDecoder.forward, OPTLearnedPositionalEmbedding
Tensor Decoder::opt_positions(const Tensor& embedded) {
  Tensor places = t_.empty(B_ * T_, DType::i64);
  {
    const Tensor counted = t_.empty(B_ * T_, DType::i64);
    places = t_.empty(B_ * T_, DType::i64);
  }
  const Tensor rows = t_.embedding(position_embedding_, B_ * T_, C_);
  return t_.add(embedded, rows);
}

// GPT2MLP, PhiMLP, NemotronMLP, OPTDecoderLayer
Tensor Decoder::plain_mlp(const Tensor& x, Block& b) {
  Tensor h = apply(x, b.up);
  switch (spec_.activation_form) {
    case ActivationForm::written_out: h = new_gelu(h); break;
    case ActivationForm::relu: h = t_.keeps_output(h); break;
    case ActivationForm::relu_squared: {
      const Tensor positive = t_.keeps_output(h);
      h = t_.square(t_.autocast_float(positive));
      break;
    }
    case ActivationForm::kernel:
    case ActivationForm::bloom: h = t_.keeps_input(h); break;
  }
  h = apply(h, b.down);
  return is_gpt2() ? t_.dropout(h, spec_.dropout) : h;
}

}  // namespace snug::eager
