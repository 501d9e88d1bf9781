#include "program/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "program/passes/list.h"
#include "program/passes/lora.h"
#include "program/rules.h"

namespace snug {

namespace {

using Pass = void (*)(Program&, const StepRequest&);

constexpr Pass kPasses[] = {
#define SNUG_PASS(name) passes::name,
    SNUG_PASSES(SNUG_PASS)
#undef SNUG_PASS
};

// Rows of a sequence that one rank has.
int64_t stretch_of(int64_t seq_len, const RankMesh& mesh) {
  if (seq_len % mesh.context != 0)
    throw Error(fmt::format("{} tokens cannot be split among cp_size {} processes", seq_len, mesh.context), "recipe",
                fmt::format("set max_length: {}", (seq_len / mesh.context + 1) * mesh.context));
  return seq_len / mesh.context;
}

Program forward_of(const ModelSpec& spec, const Recipe& recipe, const Precision& precision, const BatchShape& shape) {
  Program program = build_forward(spec, precision, shape);
  if (recipe.method == Method::full)
    for (Weight& weight : program.weights) weight.trainable = true;
  return program;
}

void check_all(const Program& program) {
  for_each_op(program.root, [&](const Op& op, const Region&) { rule_of(op.kind).check(program, op); });
}

}  // namespace

int64_t sequence_length(const ModelSpec& spec, const Recipe& recipe) {
  constexpr int64_t kUsual = 1024;
  if (recipe.seq_len == 0) return spec.max_position > 0 ? std::min(kUsual, spec.max_position) : kUsual;
  if (spec.learned_positions && spec.max_position > 0 && recipe.seq_len > spec.max_position)
    throw Error("max_length is " + std::to_string(recipe.seq_len), "recipe",
                "the model's positions end at " + std::to_string(spec.max_position));
  return recipe.seq_len;
}

Program compile(const ModelSpec& spec, const Recipe& recipe, const SavedChoice* saved) {
  const Precision precision = precision_of(recipe);
  const RankMesh mesh = recipe.parallel.mesh();
  const BatchShape shape{.batch = recipe.batch,
                         .seq_len = stretch_of(sequence_length(spec, recipe), mesh),
                         .micro_batches = recipe.accumulation};
  // Nothing below may wrap: the largest products of sizes are checked here once.
  checked_mul(checked_mul(shape.batch, shape.seq_len), checked_mul(std::max(spec.intermediate_size, spec.hidden_size), 64));

  Program program = forward_of(spec, recipe, precision, shape);
  if (mesh.pipeline > 1) {
    Program whole = program;
    passes::lora(whole, {spec, recipe, precision});
    program.of_all_stages = {whole.total_parameters(), whole.trainable_parameters()};
  }
  program.mesh = mesh;
  for (const Pass pass : kPasses) pass(program, {spec, recipe, precision, saved});
  check_all(program);
  return program;
}

Program compile_generation(const ModelSpec& spec, const Precision& precision, const GenerationShape& shape,
                           const Lora* lora) {
  checked_mul(checked_mul(shape.capacity, spec.kv_heads * spec.head_size), checked_mul(spec.layers, 8));
  checked_mul(checked_mul(shape.steps.front(), 64), std::max(spec.intermediate_size, spec.hidden_size));
  Program program = build_generation(spec, precision, shape);
  if (lora != nullptr) add_lora(program, *lora);
  for (Weight& weight : program.weights) {
    weight.trainable = false;
    if (weight.origin == Origin::lora_a) weight.origin = Origin::zeros;
  }
  const Recipe recipe;
  for (const Pass pass : {passes::quantize, passes::place_weights, passes::load}) pass(program, {spec, recipe, precision});
  check_all(program);
  return program;
}

}  // namespace snug
