#include "report/pytorch_report.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "recipe/bytes.h"
#include "report/units.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

std::string stack_text(const eager::StackProfile& stack) {
  return fmt::format("torch {}, transformers {}, peft {}, bitsandbytes {}", stack.torch, stack.transformers, stack.peft,
                     stack.bitsandbytes);
}

// By which kernels a gated delta rule is computed.
std::string delta_text(const eager::StackProfile& stack) {
  if (stack.fla.empty()) return ", gated delta rules by PyTorch's own ops (--stack fla=0.6.0: by flash-linear-attention)";
  return ", gated delta rules by flash-linear-attention " + stack.fla;
}

Json breakdown_of(const eager::Plan& plan) {
  Json json;
  for (size_t role = 0; role < eager::kRoles; ++role) json[eager::kRoleNames[role]] = plan.breakdown[role];
  return json;
}

// The peak of each phase that the run has.
Json phases_json(const eager::Plan& plan) {
  Json json;
  for (size_t i = 0; i < eager::kPhases; ++i) {
    const eager::PhasePeak& peak = plan.phases[i];
    if (peak.allocated_bytes > 0)
      json[eager::kPhaseNames[i]] = {{"allocated_bytes", peak.allocated_bytes}, {"reserved_bytes", peak.reserved_bytes}};
  }
  return json;
}

Json evaluation_json(const eager::Setup& setup) {
  const eager::Evaluation& evaluation = setup.evaluation;
  if (evaluation.rows == 0) return {};
  return {{"rows", evaluation.rows},
          {"batch", evaluation.batch},
          {"length", evaluation.length > 0 ? evaluation.length : setup.seq_len},
          {"keeps_outputs", evaluation.keeps_outputs},
          {"accumulation", evaluation.moved_after}};
}

// "  forward 2.10 GiB, backward 1.90 GiB, optimizer 1.20 GiB, evaluate 6.30 GiB".
std::string phases_text(const eager::Plan& plan) {
  std::string text;
  for (auto i = static_cast<size_t>(eager::Phase::forward); i < eager::kPhases; ++i)
    if (const int64_t bytes = plan.phases[i].allocated_bytes; bytes > 0)
      text += fmt::format("{}{} {}", text.empty() ? "  " : ", ", eager::kPhaseNames[i], format_bytes(bytes));
  return text + "\n";
}

// "evaluation in batches of 8 rows, of which the loss is kept".
std::string evaluation_text(const PyTorchAnswer& answer) {
  if (!answer.setup || answer.setup->evaluation.rows == 0) return "evaluation left out";
  const eager::Evaluation& evaluation = answer.setup->evaluation;
  const std::string batches = fmt::format("evaluation in batches of {} rows", evaluation.batch);
  if (!evaluation.keeps_outputs) return batches + ", of which only the loss is kept";
  const std::string until = evaluation.moved_after > 0 ? fmt::format("{} batches", evaluation.moved_after)
                                                       : fmt::format("{} rows", evaluation.rows);
  return fmt::format("{}, logits of {} kept on the device", batches, until);
}

constexpr std::array kShardings = {"none", "ddp", "fsdp1", "fsdp2", "zero1", "zero2", "zero3"};

// What was followed, in transformers' words where it has any.
Json setup_json(const eager::Setup& setup) {
  constexpr const char* kAttentions[] = {"eager", "sdpa", "flash_attention_2"};
  constexpr const char* kCheckpoints[] = {"none", "reentrant", "non_reentrant"};
  constexpr const char* kPreparations[] = {"none", "peft", "trl"};
  constexpr const char* kOptimizers[] = {"adamw_torch",      "adamw_torch_fused", "adamw_bnb_8bit",
                                         "paged_adamw_8bit", "paged_adamw_32bit", "lion_8bit",
                                         "lion_32bit",       "adafactor",         "sgd"};
  const bool lora = setup.method == eager::Method::lora;
  const char* four_bit = setup.double_quant ? "nf4-double" : "nf4";
  Json json{{"method", lora ? "lora" : "full"},
            {"weights", name_of(setup.weights)},
            {"autocast", setup.autocast ? Json(name_of(*setup.autocast)) : Json()},
            {"quantization", setup.quantization == eager::Quantization::none        ? "none"
                             : setup.quantization == eager::Quantization::eight_bit ? "int8"
                             : setup.quantization == eager::Quantization::gptq      ? "gptq"
                                                                                    : four_bit},
            {"preparation", kPreparations[static_cast<int>(setup.preparation)]},
            {"attention", kAttentions[static_cast<int>(setup.attention)]},
            {"checkpointing", kCheckpoints[static_cast<int>(setup.checkpointing)]},
            {"optimizer", kOptimizers[static_cast<int>(setup.optimizer)]},
            {"batch", setup.batch},
            {"accumulation", setup.accumulation},
            {"length", setup.seq_len},
            {"sharding", kShardings[static_cast<size_t>(setup.ranks.sharding)]},
            {"ranks", setup.ranks.count},
            {"evaluation", evaluation_json(setup)}};
  if (!lora) return json;
  json["rank"] = setup.rank;
  json["dropout"] = setup.dropout;
  json["dora"] = setup.dora;
  json["targets"] = setup.targets;
  return json;
}

// DeepSpeed's buckets, which its configuration sets.
std::string buckets_text(const eager::Ranks& ranks) {
  if (ranks.sharding < eager::Sharding::zero1) return "";
  return fmt::format("; {} of {} million gradients", ranks.overlaps ? "two buckets" : "a bucket",
                     static_cast<double>(ranks.bucket_elements) / 1e6);
}

// ", each of 4 GPUs by FSDP 2": of ranks whose shares differ the largest.
std::string ranks_text(const PyTorchAnswer& answer) {
  if (!answer.setup || answer.setup->ranks.count == 1) return "";
  const eager::Ranks& ranks = answer.setup->ranks;
  constexpr std::array kNames = {"", "DDP", "FSDP 1", "FSDP 2", "ZeRO-1", "ZeRO-2", "ZeRO-3"};
  return fmt::format(", each of {} GPUs by {}", ranks.count, kNames[static_cast<size_t>(ranks.sharding)]);
}

// What a quantized load leaves as it is.
std::string share_text(const PyTorchAnswer& answer, const TextStyle& style) {
  const QuantizedShare& share = *answer.share;
  std::string text = fmt::format("of the weights {:.1f} % are quantized, {:.1f} % stay as they are",
                                 100 * (1 - share.left_share()), 100 * share.left_share());
  if (share.left_experts > 0)
    text += fmt::format(", {:.1f} % in experts, which transformers {} keeps in one tensor a layer",
                        100 * static_cast<double>(share.left_experts) / static_cast<double>(share.parameters),
                        answer.stack.transformers);
  return fmt::format("  loading  {}\n", wrapped(text, style.width, 11));
}

Json share_json(const QuantizedShare& share) {
  return {{"parameters", share.parameters}, {"left", share.left}, {"left_experts", share.left_experts}};
}

}  // namespace

std::string pytorch_verdict(const PyTorchAnswer& answer) {
  if (!answer.plan) return fmt::format("{}: not known: {}", answer.trainer, answer.not_covered);
  const eager::Plan& plan = *answer.plan;
  const std::string figures = fmt::format("{} allocated, {} reserved, {} – {} on the device",
                                          format_bytes(plan.allocated_bytes), format_bytes(plan.reserved_bytes),
                                          format_bytes(plan.device_low_bytes), format_bytes(plan.device_high_bytes));
  const std::string who = answer.trainer + ranks_text(answer);
  if (answer.memory_bytes == 0) return fmt::format("{}: {}", who, figures);
  return fmt::format("{}: {}: {} of {}", who, plan.fits ? "fits" : "does not fit", figures,
                     format_bytes(answer.memory_bytes));
}

std::string pytorch_text(const PyTorchAnswer& answer, const TextStyle& style) {
  if (!answer.plan) return answer.share ? "\n" + share_text(answer, style) : "";
  const eager::Plan& plan = *answer.plan;
  std::string text = fmt::format("\nin PyTorch, at the peak in {} ({} = {} bytes allocated)\n",
                                 eager::kPhaseNames[static_cast<size_t>(plan.phase)], format_bytes(plan.allocated_bytes),
                                 plan.allocated_bytes);
  for (size_t role = 0; role < eager::kRoles; ++role)
    if (plan.breakdown[role] > 0)
      text += fmt::format("  {:<12} {:>10}\n", eager::kRoleNames[role], format_bytes(plan.breakdown[role]));
  text += phases_text(plan);
  text += fmt::format("  between steps {} stay allocated\n", format_bytes(plan.steady_bytes));
  if (answer.step_seconds)
    text += fmt::format("  {} a step, by the card's rates and what the host takes\n", seconds_text(*answer.step_seconds));
  const std::string autocast =
      answer.autocast ? "autocast to " + *answer.autocast + (answer.assumes_autocast ? " (nothing else was said)" : "")
                      : "no autocast";
  const std::string assumed =
      fmt::format("{}; weights in {}, {}; rows of full length{}; {}; saving{} left out", stack_text(answer.stack),
                  answer.weights, autocast,
                  answer.delta_rule    ? delta_text(answer.stack)
                  : answer.tower_rests ? ", without images: the vision tower rests"
                                       : std::string(),
                  evaluation_text(answer), ranks_text(answer).empty() ? "" : ", NCCL's own buffers") +
      (answer.setup ? buckets_text(answer.setup->ranks) : "");
  if (answer.share) text += share_text(answer, style);
  text += fmt::format("  assumed  {}\n", wrapped(assumed, style.width, 11));
  return text;
}

nlohmann::ordered_json pytorch_json(const PyTorchAnswer& answer) {
  Json stack{{"torch", answer.stack.torch},
             {"transformers", answer.stack.transformers},
             {"peft", answer.stack.peft},
             {"bitsandbytes", answer.stack.bitsandbytes}};
  if (!answer.stack.fla.empty()) stack["fla"] = answer.stack.fla;
  if (!answer.plan) {
    Json json{{"not_covered", answer.not_covered}, {"stack", stack}};
    if (answer.share) json["quantized_load"] = share_json(*answer.share);
    return json;
  }
  const eager::Plan& plan = *answer.plan;
  const int64_t count = answer.setup ? answer.setup->ranks.count : 1;
  Json rank{{"count", count}, {"allocated_bytes", plan.allocated_bytes}, {"reserved_bytes", plan.reserved_bytes}};
  Json json{{"allocated_bytes", plan.allocated_bytes},
            {"reserved_bytes", plan.reserved_bytes},
            {"device_bytes", {{"low", plan.device_low_bytes}, {"high", plan.device_high_bytes}}},
            {"phase", eager::kPhaseNames[static_cast<size_t>(plan.phase)]},
            {"steady_bytes", plan.steady_bytes},
            {"step_seconds", answer.step_seconds ? Json(*answer.step_seconds) : Json()},
            {"phases", phases_json(plan)},
            {"breakdown", breakdown_of(plan)},
            {"fits", answer.memory_bytes > 0 ? Json(plan.fits) : Json()},
            {"stack", stack}};
  if (answer.setup) json["setup"] = setup_json(*answer.setup);
  if (answer.share) json["quantized_load"] = share_json(*answer.share);
  json["ranks"] = Json::array({std::move(rank)});
  return json;
}

}  // namespace snug
