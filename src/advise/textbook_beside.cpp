// What a plan says beside the rules of thumb, and why.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "advise/textbook.h"
#include "recipe/bytes.h"

namespace snug {

namespace {

int64_t at_peak(const Plan& plan, Role role) { return plan.breakdown[static_cast<size_t>(role)]; }

std::string billions(int64_t count) { return fmt::format("{:.4g} B", static_cast<double>(count) / 1e9); }

// Bytes of the quantized weights' codes, and of the scales beside them.
struct Quantized {
  int64_t codes = 0, scales = 0;
};

Quantized quantized(const Program& program) {
  Quantized sum;
  for (const Weight& weight : program.weights) {
    if (!weight.quantization) continue;
    const int64_t layers = weight.parameter.instances(program.layers);
    sum.codes += layers * program.tensor(weight.tensor).bytes();
    for (const TensorId id :
         {weight.quantization->absmax, weight.quantization->nested_absmax, weight.quantization->absmax_offset})
      if (id != kNone) sum.scales += layers * program.tensor(id).bytes();
  }
  return sum;
}

std::string why_weights(const Plan& plan, const TextbookQuestion& q) {
  std::string why;
  const auto add = [&](const std::string& reason) { why += (why.empty() ? "" : "; ") + reason; };
  if (const int64_t count = plan.program.total_parameters(); count != q.parameters)
    add(fmt::format("the model has {} parameters, the rule takes {}", billions(count), billions(q.parameters)));
  if (const Quantized sum = quantized(plan.program); sum.codes > 0) {
    const int64_t rest = at_peak(plan, Role::weight) - sum.codes - sum.scales;
    add(fmt::format("the linears' codes are {}, their scales {}, and embedding, head and norms stay in {}: {}",
                    format_bytes(sum.codes), format_bytes(sum.scales), name_of(plan.precision.weights), format_bytes(rest)));
  }
  if (const int64_t adapter = at_peak(plan, Role::adapter); adapter > 0)
    add(fmt::format("the rule leaves the adapter itself out, {}", format_bytes(adapter)));
  return why.empty() ? "the same: every weight is stored once, in this dtype" : why;
}

std::string why_gradients(const Plan& plan, const TextbookQuestion& q) {
  if (plan.recipe.optimizer_in_bwd) return "each gradient lives only from its layer's backward to its update";
  if (q.gradient_bits < 32)
    return fmt::format("gradients are summed in fp32: 4 bytes each, the rule takes {}", q.gradient_bits / 8);
  return q.trained == plan.program.trainable_parameters() ? "the same: fp32"
                                                          : "the rule's count of trained parameters is another";
}

std::string why_optimizer(const Plan& plan) {
  std::string why;
  const auto add = [&](const std::string& reason) { why += (why.empty() ? "" : "; ") + reason; };
  const Recipe& recipe = plan.recipe;
  if (recipe.method == Method::full && plan.precision.master != plan.precision.weights)
    add("an fp32 copy of the weights (4 bytes each) that updates are added to; the rule counts the states alone");
  switch (recipe.optim) {
    case Optimizer::adamw_8bit:
    case Optimizer::lion_8bit: add("8-bit states have scales, and small tensors' states are fp32"); break;
    case Optimizer::adafactor: add("a row and a column for each matrix, which the documents give no rule for"); break;
    default: break;
  }
  if (plan.away_bytes() > 0) add("paged: they lie on disk, with a window in memory");
  return why.empty() ? "the same states" : why;
}

// How many tensors a block keeps for backward.
size_t tensors_of_a_block(const Plan& plan) {
  std::set<StorageId> kept;
  for (const Life& life : plan.layout.timeline.lives) {
    const Storage& storage = plan.program.storage(life.storage);
    const bool alive = life.is_alive(Home::device, plan.layout.device().peak_time);
    if (alive && storage.role == Role::activation && storage.instances > 1) kept.insert(life.storage);
  }
  return kept.size();
}

std::string why_activations(const Plan& plan, const TextbookAnswer& answer) {
  const int64_t bytes = at_peak(plan, Role::activation);
  const std::optional<int64_t> rule = answer.of(TextbookRow::activations);
  const size_t tensors = tensors_of_a_block(plan);
  if (tensors == 0) return fmt::format("the peak is in {}, when they are gone", name_of(plan.peak_stage));
  const double times = rule ? static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, *rule)) : 0;
  if (plan.recipe.gradient_checkpointing && plan.recipe.checkpoint_layers.empty())
    return fmt::format(
        "checkpointing keeps {} tensor{} a block, as the rule assumes; the rest is one block recomputed "
        "(temporaries)",
        tensors, tensors == 1 ? "" : "s");
  return fmt::format("the rule counts one tensor a layer; a block keeps {}, {:.3g} times as much", tensors, times);
}

}  // namespace

std::array<ExactRow, kTextbookRows> beside_the_textbook(const Plan& plan, const TextbookQuestion& q) {
  const TextbookAnswer answer = by_the_textbook(q);
  const int64_t weights = at_peak(plan, Role::weight) + at_peak(plan, Role::adapter);
  const int64_t optimizer = at_peak(plan, Role::optimizer);
  const int64_t gradients = at_peak(plan, Role::gradient);
  const int64_t activations = at_peak(plan, Role::activation);
  const int64_t rest = plan.peak_bytes - weights - optimizer - gradients - activations;
  const std::string why_rest = fmt::format(
      "not a share but planned: temporaries {}, workspace {}, runtime {}; {:.2g} % of the peak",
      format_bytes(at_peak(plan, Role::temporary)), format_bytes(at_peak(plan, Role::workspace)),
      format_bytes(plan.runtime_bytes), 100.0 * static_cast<double>(rest) / static_cast<double>(plan.peak_bytes));
  return {ExactRow{weights, why_weights(plan, q)}, ExactRow{optimizer + plan.away_bytes(), why_optimizer(plan)},
          ExactRow{gradients, why_gradients(plan, q)}, ExactRow{activations, why_activations(plan, answer)},
          ExactRow{rest, why_rest}};
}

}  // namespace snug
