#include "model/deepseek_config.h"

#include "base/checked.h"

namespace snug {

namespace {

constexpr int64_t kMostDeepSeekExperts = 65'536;
constexpr int64_t kMostShared = 1024;

// How experts are chosen: what the family does is known, and memory does not depend on it.
void check_choice(const ConfigFields& config, const ModelSpec& spec) {
  const bool sigmoid = spec.experts.sigmoid_scores;
  const std::string method = config.string("topk_method", sigmoid ? "noaux_tc" : "greedy");
  if (sigmoid ? method != "noaux_tc" : method != "greedy" && method != "group_limited_greedy")
    config.refuse(fmt::format("topk_method '{}' is not supported yet", method),
                  sigmoid ? "supported: noaux_tc" : "supported: greedy, group_limited_greedy");
  const std::string scores = config.string("scoring_func", sigmoid ? "sigmoid" : "softmax");
  if (scores != (sigmoid ? "sigmoid" : "softmax"))
    config.refuse(fmt::format("scoring_func '{}' is not supported yet", scores));
  if (config.integer("moe_layer_freq", 1, 1, spec.layers) != 1)
    config.refuse("moe_layer_freq other than 1 is not supported yet", "every layer after the first ones must have experts");
}

}  // namespace

void read_latent_attention(const ConfigFields& config, ModelSpec& spec) {
  for (const std::string_view name : {"attention_bias", "mlp_bias"})
    if (config.boolean(name, false)) config.refuse(fmt::format("{} = true is not supported in this family", name));
  LatentAttention& latent = spec.latent;
  latent.rank = config.dimension("kv_lora_rank", 512);
  if (!config.given("q_lora_rank") || config.field("q_lora_rank")) latent.query_rank = config.dimension("q_lora_rank", 1536);
  latent.value_size = config.dimension("v_head_dim", 128);
  spec.rotary_size = config.dimension("qk_rope_head_dim", 64);
  spec.head_size = checked_add(config.dimension("qk_nope_head_dim", 128), spec.rotary_size);
  spec.kv_heads = spec.heads;  // num_key_value_heads says nothing here
  if (spec.rotary_size % 2 != 0)
    config.refuse(fmt::format("qk_rope_head_dim {} is odd", spec.rotary_size), "rotary embeddings turn pairs of elements");
}

void read_deepseek_experts(const ConfigFields& config, ModelSpec& spec) {
  const bool v3 = spec.experts.sigmoid_scores;
  Experts& experts = spec.experts;
  experts.count = config.integer("n_routed_experts", v3 ? 256 : 64, 1, kMostDeepSeekExperts);
  experts.per_token = config.integer("num_experts_per_tok", v3 ? std::optional<int64_t>(8) : std::nullopt, 1, experts.count);
  experts.intermediate_size = config.dimension("moe_intermediate_size", v3 ? 2048 : 1407);
  experts.shared = config.integer("n_shared_experts", v3 ? 1 : 2, 1, kMostShared);
  experts.shared_size = checked_mul(experts.shared, experts.intermediate_size);
  experts.normalize = config.boolean("norm_topk_prob", v3);
  experts.weight_scale = config.positive("routed_scaling_factor", v3 ? 2.5 : 1.0);
  experts.dense_layers = config.integer("first_k_dense_replace", v3 ? 3 : 0, 0, spec.layers - 1);
  check_choice(config, spec);
}

}  // namespace snug
