#include "program/compile.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "program/adjoint.h"
#include "program/passes/dropout.h"
#include "program/passes/evaluate.h"
#include "program/passes/lora.h"
#include "program/passes/optimizer.h"
#include "program/passes/optimizer_in_backward.h"
#include "program/passes/quantize.h"
#include "program/passes/recompute.h"
#include "program/passes/transfer.h"
#include "program/rules.h"

namespace snug {

namespace {

std::vector<int64_t> recomputed_layers(const ModelSpec& spec, const Recipe& recipe) {
  if (!recipe.gradient_checkpointing) return {};
  std::vector<int64_t> layers = recipe.checkpoint_layers;
  if (layers.empty()) {
    layers.resize(static_cast<size_t>(spec.layers));
    std::iota(layers.begin(), layers.end(), 0);
  }
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  if (layers.front() < 0 || layers.back() >= spec.layers)
    throw Error("layer " + std::to_string(layers.front() < 0 ? layers.front() : layers.back()) + " does not exist",
                "recipe: checkpoint_layers", "the model has layers 0 to " + std::to_string(spec.layers - 1));
  return layers;
}

void check_all(const Program& program) {
  for_each_op(program.root, [&](const Op& op, const Region&) { rule_of(op.kind).check(program, op); });
}

}  // namespace

int64_t sequence_length(const ModelSpec& spec, const Recipe& recipe) {
  constexpr int64_t kUsual = 1024;
  if (recipe.seq_len == 0) return spec.max_position > 0 ? std::min(kUsual, spec.max_position) : kUsual;
  if (spec.max_position > 0 && recipe.seq_len > spec.max_position)
    throw Error("max_length is " + std::to_string(recipe.seq_len), "recipe",
                "the model's positions end at " + std::to_string(spec.max_position));
  return recipe.seq_len;
}

Quantize quantization_of(const ModelSpec& spec, const Recipe& recipe) {
  Quantize quantize = recipe.quantize;
  if (!spec.quantization) return quantize;
  const StoredQuantization& stored = *spec.quantization;
  const bool in_4bit = is_4bit(stored.type);
  if (recipe.method == Method::full)
    throw Error("its weights are quantized, and cannot be trained in full", spec.name,
                "set method: lora, or give the model that it was made from");
  if (in_4bit ? quantize.in_8bit : quantize.in_4bit)
    throw Error(
        "its weights are " + std::string(name_of(stored.type)) + " already", spec.name,
        std::string("remove ") + (in_4bit ? "load_in_8bit" : "load_in_4bit") + ", or give the model that it was made from");
  quantize.in_4bit = in_4bit;
  quantize.in_8bit = !in_4bit;
  quantize.double_quant = stored.double_quant;
  if (in_4bit) quantize.type_4bit = stored.type;
  return quantize;
}

Program compile(const ModelSpec& spec, const Recipe& recipe) {
  const Precision precision = precision_of(recipe);
  const BatchShape shape{
      .batch = recipe.batch, .seq_len = sequence_length(spec, recipe), .micro_batches = recipe.accumulation};
  // Nothing below may wrap: the largest products of sizes are checked here once.
  checked_mul(checked_mul(shape.batch, shape.seq_len), checked_mul(std::max(spec.intermediate_size, spec.hidden_size), 64));

  Program program = build_forward(spec, precision, shape);
  if (recipe.method == Method::lora) {
    add_lora(program, recipe.lora);
  } else {
    for (Weight& weight : program.weights) weight.trainable = true;
  }
  if (const Quantize quantize = quantization_of(spec, recipe); quantize.any())
    quantize_weights(program, quantize, precision.weights);
  if (evaluates(recipe)) add_evaluation(program);
  if (recipe.method == Method::lora) add_dropout(program, recipe.lora.dropout, recipe.seed);
  differentiate(program);
  recompute_blocks(program, recomputed_layers(spec, recipe));
  place_weights(program, precision, recipe);
  if (recipe.optimizer_in_bwd) {
    add_optimizer_in_backward(program, recipe);
  } else {
    add_optimizer(program, recipe);
  }
  add_transfers(program);
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
  if (spec.quantization) quantize_weights(program, quantization_of(spec, {}), precision.weights);
  place_weights(program, precision);
  add_load(program);
  check_all(program);
  return program;
}

}  // namespace snug
