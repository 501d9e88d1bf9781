#pragma once
// What llama.cpp calls the parts of a model: for each family that can be exported its architecture's name, its numbers as
// GGUF keys, and for each tensor its new name and what is done to it on the way (ggml-org/llama.cpp, conversion/*.py,
// gguf-py/gguf/tensor_mapping.py). A model that llama.cpp would compute otherwise than it was trained is refused by name.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf_writer.h"

namespace snug {

enum class GgufChange : uint8_t {
  none,
  interleave_heads,  // rows of each head: from two halves to pairs, the order of llama.cpp's rotary embedding for "llama"
  add_one,           // Gemma's norms multiply by 1 + weight
  transpose,         // GPT-2's Conv1D
};

struct GgufPlace {
  std::string name;  // "blk.0.attn_q.weight"
  GgufChange change = GgufChange::none;
  int64_t heads = 1;        // interleave_heads
  bool always_f32 = false;  // norms, biases, positions, routers
  int64_t expert = -1;      // one of the experts that are stacked in this tensor
};

struct GgufFamily {
  std::string architecture;  // "llama"
  std::string model_type;    // "mistral"
  int64_t vocab_size = 0, layers = 0, heads = 0, kv_heads = 0, experts = 0;
  GgufKeys keys;                       // all that llama.cpp needs to know but the tokenizer
  std::vector<float> rope_factors;     // llama3: what frequencies are divided by; empty without
  std::vector<std::string> notes;      // what a user should know
  std::vector<int32_t> bos, eos, pad;  // token ids of config.json, none or one

  // Where a tensor goes; none for one that files carry and nobody needs. Throws Error for a name it does not know.
  std::optional<GgufPlace> place_of(std::string_view tensor) const;
};

// `model`: a checkpoint directory, of which config.json is read. Throws Error naming a family or field that cannot be
// exported.
GgufFamily read_gguf_family(const std::filesystem::path& model);
GgufFamily parse_gguf_family(std::string_view json, const std::string& where);

}  // namespace snug
