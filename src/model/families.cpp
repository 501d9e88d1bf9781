#include "model/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "model/parameters.h"

namespace snug {

namespace {

void plain(ModelSpec&) {}

void qwen2(ModelSpec& spec) { spec.query_key_value_bias = true; }

void qwen3(ModelSpec& spec) { spec.query_key_norms = true; }

void qwen3_moe(ModelSpec& spec) {
  spec.query_key_norms = true;
  spec.naming = TensorNaming::qwen_moe;
}

void mixtral(ModelSpec& spec) { spec.naming = TensorNaming::mixtral; }

void gemma(ModelSpec& spec) { spec.norms_from_zero = true; }

void gemma2(ModelSpec& spec) {
  spec.norms_from_zero = spec.post_norms = true;
  spec.naming = TensorNaming::gemma;
}

void gemma3(ModelSpec& spec) {
  gemma2(spec);
  spec.query_key_norms = true;
}

void phi3(ModelSpec& spec) {
  spec.fused_projections = spec.fused_gate_up = true;
  spec.naming = TensorNaming::phi3;
}

void gpt2(ModelSpec& spec) {
  spec.naming = TensorNaming::gpt2;
  spec.norm = NormKind::layer;
  spec.fused_projections = spec.input_features_first = spec.learned_positions = true;
  spec.query_key_value_bias = spec.output_bias = spec.mlp_bias = true;
  spec.activation_form = ActivationForm::written_out;
  spec.gated_mlp = spec.pad_row_is_fixed = false;
}

constexpr std::array<std::string_view, 1> kWindow = {"sliding_window"};
constexpr std::array<std::string_view, 4> kQwen = {"sliding_window", "use_sliding_window", "max_window_layers",
                                                   "layer_types"};
constexpr std::array<std::string_view, 12> kQwenMoe = {"sliding_window",
                                                       "use_sliding_window",
                                                       "max_window_layers",
                                                       "num_experts",
                                                       "num_local_experts",
                                                       "layer_types",
                                                       "num_experts_per_tok",
                                                       "norm_topk_prob",
                                                       "mlp_only_layers",
                                                       "decoder_sparse_step",
                                                       "shared_expert_intermediate_size",
                                                       "moe_intermediate_size"};
constexpr std::array<std::string_view, 3> kMixtral = {"sliding_window", "num_local_experts", "num_experts_per_tok"};
constexpr std::array<std::string_view, 1> kGemma = {"hidden_activation"};
constexpr std::array<std::string_view, 9> kGemma23 = {
    "hidden_activation",    "query_pre_attn_scalar",  "sliding_window",
    "layer_types",          "attn_logit_softcapping", "final_logit_softcapping",
    "rope_local_base_freq", "sliding_window_pattern", "_sliding_window_pattern"};
constexpr std::array<std::string_view, 2> kPhi3 = {"sliding_window", "original_max_position_embeddings"};
constexpr std::array<std::string_view, 16> kGpt2 = {"n_positions",
                                                    "n_ctx",
                                                    "n_embd",
                                                    "n_layer",
                                                    "n_head",
                                                    "n_inner",
                                                    "activation_function",
                                                    "attn_pdrop",
                                                    "embd_pdrop",
                                                    "resid_pdrop",
                                                    "summary_type",
                                                    "layer_norm_epsilon",
                                                    "scale_attn_weights",
                                                    "summary_use_proj",
                                                    "summary_proj_to_labels",
                                                    "summary_first_dropout"};

constexpr auto kFamilies = std::to_array<Family>({
    {.model_type = "llama", .architecture = "LlamaForCausalLM", .fix = plain, .max_position = 2048},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .fix = plain,
     .max_position = 131072,
     .kv_heads = 8,
     .sliding_window = 4096,
     .fields = kWindow},
    {.model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .fix = qwen2,
     .max_position = 32768,
     .kv_heads = 32,
     .fields = kQwen},
    {.model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .fix = qwen3,
     .max_position = 32768,
     .kv_heads = 32,
     .head_size = 128,
     .fields = kQwen},
    {.model_type = "qwen3_moe",
     .architecture = "Qwen3MoeForCausalLM",
     .fix = qwen3_moe,
     .max_position = 32768,
     .kv_heads = 4,
     .fields = kQwenMoe},
    {.model_type = "mixtral",
     .architecture = "MixtralForCausalLM",
     .fix = mixtral,
     .max_position = 131072,
     .kv_heads = 8,
     .norm_eps = 1e-5,
     .rope_theta = 1e6,
     .fields = kMixtral},
    {.model_type = "gemma",
     .architecture = "GemmaForCausalLM",
     .fix = gemma,
     .max_position = 8192,
     .kv_heads = 16,
     .head_size = 256,
     .tied = true,
     .activation = "gelu_pytorch_tanh",
     .fields = kGemma},
    {.model_type = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .fix = gemma2,
     .max_position = 8192,
     .kv_heads = 4,
     .head_size = 256,
     .sliding_window = 4096,
     .tied = true,
     .activation = "gelu_pytorch_tanh",
     .fields = kGemma23},
    {.model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .fix = gemma3,
     .max_position = 131072,
     .kv_heads = 4,
     .head_size = 256,
     .sliding_window = 4096,
     .rope_theta = 1e6,
     .tied = true,
     .activation = "gelu_pytorch_tanh",
     .fields = kGemma23},
    {.model_type = "phi3",
     .architecture = "Phi3ForCausalLM",
     .fix = phi3,
     .max_position = 4096,
     .norm_eps = 1e-5,
     .fields = kPhi3},
    {.model_type = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .fix = gpt2,
     .max_position = 1024,
     .norm_eps = 1e-5,
     .tied = true,
     .activation = "gelu_new",
     .fields = kGpt2},
});

}  // namespace

std::span<const Family> families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> list(kFamilies.begin(), kFamilies.end());
    const auto planned = planned_families();
    list.insert(list.end(), planned.begin(), planned.end());
    return list;
  }();
  return all;
}

const Family* find_family(std::string_view Family::*name, std::string_view value) {
  const auto all = families();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Family& f) { return f.*name == value; });
  return found == all.end() ? nullptr : &*found;
}

bool is_plan_only(const ModelSpec& spec) {
  const Family* family = find_family(&Family::model_type, spec.family);
  return family != nullptr && family->plan_only;
}

void refuse_plan_only(const ModelSpec& spec, std::string_view doing) {
  if (is_plan_only(spec))
    throw Error(fmt::format("models of family {} can be planned, but not be {} yet", spec.family, doing), spec.name,
                "`snug plan` answers for it; `snug models` lists those that can be " + std::string(doing));
}

namespace {

double weights_gib(const ModelSpec& spec) {
  return static_cast<double>(bytes_of(spec.dtype, total_parameters(spec))) / static_cast<double>(int64_t{1} << 30U);
}

}  // namespace

void refuse_unmodelled(const ModelSpec& spec) {
  if (!spec.unmodelled_step.empty())
    throw Error(fmt::format("the step of family {} is not modelled yet: {}; its weights alone take {:.1f} GiB in {}",
                            spec.family, spec.unmodelled_step, weights_gib(spec), name_of(spec.dtype)),
                spec.name,
                "`snug plan` with --gpu NAME says what PyTorch takes, `snug models` its parameters; `snug measure` runs its "
                "trainer");
}

std::string supported_families(std::string_view Family::*name) {
  std::string list;
  for (const Family& family : families()) list += (list.empty() ? "supported: " : ", ") + std::string(family.*name);
  return list;
}

}  // namespace snug
