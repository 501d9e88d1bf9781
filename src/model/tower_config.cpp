#include "model/tower_config.h"

#include <algorithm>

#include "base/checked.h"

namespace snug {

namespace {

int64_t sum(std::initializer_list<int64_t> parts) {
  int64_t total = 0;
  for (const int64_t part : parts) total = checked_add(total, part);
  return total;
}

// A SigLIP tower and Gemma 3's projector (transformers' modeling_siglip.py, modeling_gemma3.py): patches and positions,
// blocks with biases, a final norm; the projector's matrix and norm.
std::vector<KnownTensor> siglip(const ConfigFields& vision, int64_t hidden_size) {
  const int64_t C = vision.dimension("hidden_size", 768);
  const int64_t F = vision.dimension("intermediate_size", 3072);
  const int64_t layers = vision.integer("num_hidden_layers", 12, 1, kMostLayers);
  const int64_t patch = vision.dimension("patch_size", 16);
  const int64_t side = vision.dimension("image_size", 224) / patch;
  std::vector<KnownTensor> tensors;
  const auto add = [&](const std::string& module, std::vector<int64_t> shape, int64_t count) {
    const std::string path = "model.vision_tower.vision_model." + module;
    const int64_t out = shape.front();
    tensors.push_back({path + ".weight", std::move(shape), count});
    if (module != "embeddings.position_embedding") tensors.push_back({path + ".bias", {out}, count});
  };
  const auto in_block = [&](const std::string& module, std::vector<int64_t> shape) {
    add("encoder.layers.{}." + module, std::move(shape), layers);
  };
  add("embeddings.patch_embedding", {C, vision.dimension("num_channels", 3), patch, patch}, 0);
  add("embeddings.position_embedding", {checked_mul(side, side), C}, 0);
  in_block("layer_norm1", {C});
  for (const char* module : {"k_proj", "v_proj", "q_proj", "out_proj"}) in_block(std::string("self_attn.") + module, {C, C});
  in_block("layer_norm2", {C});
  in_block("mlp.fc1", {F, C});
  in_block("mlp.fc2", {C, F});
  add("post_layernorm", {C}, 0);
  tensors.push_back({"model.multi_modal_projector.mm_input_projection_weight", {C, hidden_size}, 0});
  tensors.push_back({"model.multi_modal_projector.mm_soft_emb_norm.weight", {C}, 0});
  return tensors;
}

int64_t numbers_in(const std::vector<KnownTensor>& tensors) {
  int64_t total = 0;
  for (const KnownTensor& tensor : tensors) {
    int64_t count = std::max<int64_t>(1, tensor.layers);
    for (const int64_t size : tensor.shape) count = checked_mul(count, size);
    total = checked_add(total, count);
  }
  return total;
}

// modeling_qwen2_5_vl.py: patches over time without bias, blocks with gated MLPs and biases, a merger of neighbours.
int64_t qwen_tower(const ConfigFields& vision, int64_t hidden_size) {
  const int64_t C = vision.dimension("hidden_size", 3584), F = vision.dimension("intermediate_size", 3420);
  const int64_t layers = vision.integer("depth", 32, 1, kMostLayers), side = vision.dimension("patch_size", 14);
  const int64_t out = vision.dimension("out_hidden_size", hidden_size);
  const int64_t channels = vision.dimension(vision.field("in_chans") ? "in_chans" : "in_channels", 3);
  const int64_t times = vision.dimension("temporal_patch_size", 2), merge = vision.dimension("spatial_merge_size", 2);
  const int64_t patches = checked_mul(checked_mul(C, channels), checked_mul(times, checked_mul(side, side)));
  const int64_t attention = checked_mul(4, checked_mul(C, C) + C);
  const int64_t mlp = sum({checked_mul(3, checked_mul(C, F)), 2 * F, C});
  const int64_t merged = checked_mul(C, checked_mul(merge, merge));
  const int64_t merger = sum({C, checked_mul(merged, merged), merged, checked_mul(out, merged), out});
  return sum({patches, checked_mul(layers, sum({attention, mlp, 2 * C})), merger});
}

// Two matrices with biases, around a nonlinearity.
int64_t biased_mlp(int64_t in, int64_t width, int64_t out) {
  return sum({checked_mul(in, width), width, checked_mul(width, out), out});
}

// modeling_qwen2_vl.py and modeling_qwen3_vl.py: LayerNorms, plain MLPs; the later one has learned positions, a bias on its
// patches, and mergers for what it hands on from blocks in the middle.
int64_t qwen_plain_tower(const ConfigFields& vision, int64_t hidden_size) {
  const bool later = vision.field("deepstack_visual_indexes").has_value();
  const int64_t C = vision.dimension(later ? "hidden_size" : "embed_dim", 1280);
  const int64_t F =
      later ? vision.dimension("intermediate_size", 4304) : checked_mul(C, vision.integer("mlp_ratio", 4, 1, 1024));
  const int64_t out = vision.dimension(later ? "out_hidden_size" : "hidden_size", hidden_size);
  const int64_t layers = vision.integer("depth", 32, 1, kMostLayers), side = vision.dimension("patch_size", later ? 16 : 14);
  const int64_t channels = vision.dimension(vision.field("in_chans") ? "in_chans" : "in_channels", 3);
  const int64_t times = vision.dimension("temporal_patch_size", 2), merge = vision.dimension("spatial_merge_size", 2);
  const int64_t patches = checked_mul(checked_mul(C, channels), checked_mul(times, checked_mul(side, side)));
  const int64_t attention = checked_mul(4, checked_mul(C, C) + C), block = sum({attention, biased_mlp(C, F, C), 4 * C});
  const int64_t merged = checked_mul(C, checked_mul(merge, merge)), merger = biased_mlp(merged, merged, out);
  const int64_t tower = sum({patches, checked_mul(layers, block), merger, 2 * C});
  if (!later) return tower;
  const auto handed_on = static_cast<int64_t>(vision.numbers("deepstack_visual_indexes").size());
  const int64_t positions = checked_mul(vision.dimension("num_position_embeddings", 2304), C);
  return sum({tower, C, positions, checked_mul(handed_on, sum({merger, 2 * merged}))});
}

// modeling_pixtral.py and modeling_mistral3.py
int64_t pixtral(const ConfigFields& outer, const ConfigFields& vision, int64_t hidden_size) {
  const int64_t C = vision.dimension("hidden_size", 1024), F = vision.dimension("intermediate_size", 4096);
  const int64_t layers = vision.integer("num_hidden_layers", 24, 1, kMostLayers), side = vision.dimension("patch_size", 14);
  const int64_t merge = outer.dimension("spatial_merge_size", 2);
  const int64_t patches = checked_mul(checked_mul(C, vision.dimension("num_channels", 3)), checked_mul(side, side));
  const int64_t block = sum({checked_mul(4, checked_mul(C, C)), checked_mul(3, checked_mul(C, F)), 2 * C});
  const int64_t biases = outer.boolean("multimodal_projector_bias", false) ? checked_mul(2, hidden_size) : 0;
  const int64_t projector = sum({C, checked_mul(checked_mul(C, C), checked_mul(merge, merge)), checked_mul(hidden_size, C),
                                 checked_mul(hidden_size, hidden_size), biases});
  return sum({patches, C, checked_mul(layers, block), projector});
}

}  // namespace

void read_tower(const ConfigFields& outer, ModelSpec& spec) {
  const auto found = outer.field("vision_config");
  if (!found) return;
  const ConfigFields vision(json_object("vision_config", *found, outer.where()), outer.where(), "vision_config.");
  if (spec.family == "gemma3") {
    spec.tower = siglip(vision, spec.hidden_size);
    spec.vision_parameters = numbers_in(spec.tower);
  }
  if (spec.family == "qwen2_5_vl") spec.vision_parameters = qwen_tower(vision, spec.hidden_size);
  if (spec.family == "qwen2_vl" || spec.family.starts_with("qwen3_vl"))
    spec.vision_parameters = qwen_plain_tower(vision, spec.hidden_size);
  if (spec.family == "mistral3") spec.vision_parameters = pixtral(outer, vision, spec.hidden_size);
}

}  // namespace snug
