#include "program/passes/lora.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "program/find_op.h"
#include "program/passes/list.h"

namespace snug {

namespace {

bool contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// "model.layers.{}.self_attn.q_proj.weight" -> "model.layers.{}.self_attn.q_proj"
std::string module_path(const Parameter& parameter) { return parameter.name.substr(0, parameter.name.rfind('.')); }

class LoraPass {
 public:
  LoraPass(Program& program, const Lora& lora) : program_(program), lora_(lora) {}

  void run() {
    if (lora_.r < 1) throw Error("lora_r is " + std::to_string(lora_.r), "recipe", "give a rank of at least 1");
    const std::vector<std::string> targets = lora_targets(program_, lora_);
    const size_t model_weights = program_.weights.size();
    save_modules(model_weights);
    for (const std::string& target : targets) adapt(target, model_weights);
    note_experts(model_weights);
    note_unused_patterns();
  }

 private:
  // In training the head's product is within the loss.
  bool generates() const { return program_.generation.capacity > 0; }

  Operand& head_operand() {
    return operand(find_op(program_.root, program_.head.product).op(), generates() ? Slot::b : Slot::weight);
  }
  Parameter head_parameter() const { return program_.weights[static_cast<size_t>(program_.head.weight)].parameter; }
  bool head_is_tied() const { return program_.head.weight != kNone && head_parameter().kind == ParameterKind::embedding; }

  // The module's weight becomes an fp32 copy that is trained whole.
  void save_in_full(size_t index) {
    Weight& weight = program_.weights[index];
    program_.tensor(weight.tensor).dtype = DType::f32;
    weight.trainable = true;
    weight.adapter = true;
    saved_.push_back(weight.parameter.module);
  }

  // PEFT copies the module it saves, so a tied pair comes apart: the copy is trained, the other keeps the frozen weights.
  void save_tied(const std::string& module, const std::string& path, ParameterKind kind,
                 const std::vector<Operand*>& users) {
    Tensor copy = program_.tensor(users.front()->tensor);
    Weight weight{.parameter = {path + ".weight", module, {copy.dim(0), copy.dim(1)}, kind, false}, .source = copy.name};
    weight.trainable = weight.adapter = weight.copied = true;
    copy.name = path + ".weight";
    copy.dtype = DType::f32;
    weight.tensor = program_.add_tensor(std::move(copy));
    for (Operand* user : users) user->tensor = weight.tensor;
    program_.weights.push_back(std::move(weight));
    saved_.push_back(module);
    program_.notes.push_back("lm_head is tied to embed_tokens; modules_to_save trains a separate copy of " + module +
                             " and leaves the other frozen, as PEFT does");
  }

  void save_tied_modules(const Parameter& embedding) {
    if (contains(lora_.modules_to_save, "lm_head")) {
      save_tied("lm_head", "lm_head", ParameterKind::head, {&head_operand()});
      program_.head.weight = static_cast<int32_t>(program_.weights.size()) - 1;
    }
    if (!contains(lora_.modules_to_save, embedding.module)) return;
    std::vector<Operand*> tables;
    for (const OpId id : program_.token_lookups) tables.push_back(&operand(find_op(program_.root, id).op(), Slot::weight));
    save_tied(embedding.module, module_path(embedding), ParameterKind::embedding, tables);
  }

  void save_modules(size_t model_weights) {
    const bool tied = head_is_tied();
    for (size_t i = 0; i < model_weights; ++i) {
      const Parameter& parameter = program_.weights[i].parameter;
      if (contains(lora_.modules_to_save, parameter.module) && !(tied && parameter.kind == ParameterKind::embedding))
        save_in_full(i);
    }
    if (tied) save_tied_modules(head_parameter());
    for (const std::string& module : lora_.modules_to_save)
      if (!contains(saved_, module))
        throw Error("the model has no module '" + module + "'", "recipe: modules_to_save", "name modules such as lm_head");
  }

  void adapt(const std::string& target, size_t model_weights) {
    if (contains(saved_, target))
      throw Error("'" + target + "' is both in lora_target_modules and in modules_to_save", "recipe",
                  "name it in one of them");
    bool found = false;
    for (size_t i = 0; i < model_weights; ++i) {
      const Parameter parameter = program_.weights[i].parameter;
      if (parameter.module != target || parameter.kind == ParameterKind::bias) continue;
      if (parameter.kind == ParameterKind::expert && asks_for_all_linears(lora_)) continue;
      found = true;
      if (parameter.kind == ParameterKind::linear) adapt_linear(parameter, static_cast<int32_t>(i));
      if (parameter.kind == ParameterKind::head) adapt_head(parameter);
      if (parameter.kind != ParameterKind::linear && parameter.kind != ParameterKind::head)
        throw Error("LoRA on '" + target + "' is not supported", "recipe", "name linear modules, or use modules_to_save");
    }
    if (target == "lm_head" && !found && head_is_tied()) {
      found = true;
      const Tensor& weight = program_.tensor(head_operand().tensor);
      adapt_head({"lm_head.weight", "lm_head", {weight.dim(0), weight.dim(1)}, ParameterKind::head, false});
      program_.notes.emplace_back(
          "lm_head is tied to embed_tokens; LoRA adapts the head's product alone and leaves the embedding as it is, as PEFT "
          "does");
    }
    if (!found)
      throw Error("the model has no module '" + target + "'", "recipe: lora_target_modules", "name modules such as q_proj");
  }

  TensorId add_adapter(const Parameter& base, const char* part, const char* end, std::vector<int64_t> shape, Origin origin) {
    Parameter parameter{module_path(base) + "." + part + end, base.module, std::move(shape), ParameterKind::linear,
                        base.per_layer};
    parameter.first_layer = base.first_layer;
    parameter.layer_count = base.layer_count;
    Tensor tensor{.name = parameter.name, .dtype = DType::f32};
    for (int64_t size : parameter.shape) tensor.shape.emplace_back(size);
    Weight weight{.parameter = std::move(parameter), .source = {}, .tensor = program_.add_tensor(std::move(tensor))};
    weight.trainable = weight.adapter = true;
    weight.origin = origin;
    program_.weights.push_back(std::move(weight));
    return program_.weights.back().tensor;
  }

  struct Pair {
    TensorId a = kNone, b = kNone;  // [r, in], [out, r]
    TensorId magnitude = kNone;     // [out], with DoRA
    int64_t rank = 0;
    double scale = 1;
  };
  Pair add_pair(const Parameter& base) {
    Pair pair{.rank = one_for_all_layers(base, "rank_pattern", lora_.rank_pattern, lora_.r)};
    const double alpha = one_for_all_layers(base, "alpha_pattern", lora_.alpha_pattern, lora_.alpha);
    if (pair.rank < 1) throw Error("rank_pattern gives " + base.module + " a rank below 1", "recipe", "give at least 1");
    const auto rank = static_cast<double>(pair.rank);
    pair.scale = alpha / (lora_.use_rslora ? std::sqrt(rank) : rank);
    pair.a = add_adapter(base, "lora_A", ".weight", {pair.rank, base.input_features()}, Origin::lora_a);
    pair.b = add_adapter(base, "lora_B", ".weight", {base.output_features(), pair.rank}, Origin::zeros);
    if (lora_.use_dora) {
      pair.magnitude = add_adapter(base, "lora_magnitude_vector", "", {base.output_features()}, Origin::row_norms);
      program_.weights.back().source = base.name;
    }
    return pair;
  }

  // What the patterns say of a module: of all its layers alike, since these stay folded.
  template <class Value>
  Value one_for_all_layers(const Parameter& base, const char* setting, const PathPatterns<Value>& patterns,
                           Value otherwise) {
    if (patterns.empty()) return otherwise;
    PathPatterns<Value> sorted = patterns;  // PEFT saves them so, and the first that fits decides
    std::sort(sorted.begin(), sorted.end());
    std::optional<Value> found;
    for (int64_t layer = base.first_layer; layer < base.end_layer(program_.layers); ++layer) {
      const std::string name = base.instance(layer);
      const std::string_view path = std::string_view(name).substr(0, name.rfind('.'));
      const Value value = pattern_value(patterns, path, otherwise);
      if (value != pattern_value(sorted, path, otherwise))
        throw Error(std::string(setting) + " has several keys that fit '" + std::string(path) + "'", "recipe",
                    "PEFT forgets their order when it saves an adapter; leave one of them");
      if (found && value != *found)
        throw Error(std::string(setting) + " tells layers of " + base.module + " apart, which is not supported", "recipe",
                    "name modules without the number of their layer");
      found = value;
      for (const auto& [key, unused] : patterns)
        if (path_matches(key, path)) used_patterns_.insert(key);
    }
    return *found;
  }

  void note_experts(size_t model_weights) {
    const auto is_expert = [](const Weight& weight) { return weight.parameter.kind == ParameterKind::expert; };
    const auto end = program_.weights.begin() + static_cast<int64_t>(model_weights);
    if (asks_for_all_linears(lora_) && std::any_of(program_.weights.begin(), end, is_expert))
      program_.notes.emplace_back("all-linear leaves routed experts and routers as they are");
  }

  void note_unused_patterns() {
    const auto note = [&](const char* setting, const auto& patterns) {
      for (const auto& [key, value] : patterns)
        if (!used_patterns_.contains(key))
          program_.notes.push_back(std::string(setting) + " '" + key + "' fits no adapted module");
    };
    note("rank_pattern", lora_.rank_pattern);
    note("alpha_pattern", lora_.alpha_pattern);
  }

  // Of a slice of the base's inputs A has the same, of one of its outputs B.
  void slice_pair(const Weight& base, const Pair& pair) {
    if (!base.slice) return;
    const bool inputs = base.slice->axis == (base.parameter.input_features_first ? 0 : 1);
    const auto sliced = std::find_if(program_.weights.begin(), program_.weights.end(),
                                     [&](const Weight& w) { return w.tensor == (inputs ? pair.a : pair.b); });
    Extent& along = program_.tensor(sliced->tensor).shape[inputs ? 1 : 0];
    sliced->slice = base.slice;
    sliced->slice->axis = inputs ? 1 : 0;
    along.bound /= program_.mesh.size(base.slice->group);
  }

  // low [M, r] = s x A^T
  Op low_product(const Parameter& base, TensorId x, const Pair& pair) {
    const int64_t rows = program_.tensor(x).elements() / program_.tensor(pair.a).dim(1);
    Op op{OpKind::matmul};
    op.attributes = {.transpose_b = true, .scale = pair.scale};
    op.reads(Slot::a, x).reads(Slot::b, pair.a);
    op.writes(Slot::c, program_.make(base.module + ".low", DType::f32, {rows, pair.rank}, Role::temporary));
    return op;
  }

  void adapt_linear(const Parameter& base, int32_t weight) {
    const Pair pair = add_pair(base);
    slice_pair(program_.weights[static_cast<size_t>(weight)], pair);
    int64_t products = 0;
    for (Linear& linear : program_.linears) {
      if (linear.weight != weight) continue;
      adapt_product(linear, base, pair);
      ++products;
    }
    presume(products > 0, "a product with " + base.name);
  }

  // Adds the pair's product after the module's own.
  void adapt_product(Linear& linear, const Parameter& base, const Pair& pair) {
    const OpPlace place = find_op(program_.root, linear.product);
    Op& product = place.op();
    presume(product.kind == OpKind::matmul && product.find(Slot::a) == linear.input &&
                product.find(Slot::c) == linear.output && linear.adapter.down == kNone,
            "the product of " + base.name + ", with no adapter beside it");
    Op down = low_product(base, linear.input, pair);
    std::vector<Op> scaling;
    if (pair.magnitude != kNone) scaling = scale_rows(base, product, pair);
    Op up{OpKind::matmul};
    up.attributes = {.transpose_b = true, .accumulate = true};
    up.reads(Slot::a, down.find(Slot::c)).reads(Slot::b, pair.b).updates(Slot::c, product.find(Slot::c));
    linear.adapter = {.down = program_.identify(down), .up = program_.identify(up)};
    if (!scaling.empty()) linear.adapter.scale = program_.identify(scaling.back());
    scaling.insert(scaling.begin(), {std::move(down), std::move(up)});
    insert_after(place, std::move(scaling));
  }

  // DoRA: the product and what is added to it go into a tensor of their own, whose columns are scaled into the one that the
  // product wrote, before any bias.
  std::vector<Op> scale_rows(const Parameter& base, Op& product, const Pair& pair) {
    Operand& result = operand(product, Slot::c);
    const TensorId out = result.tensor;
    const Tensor like = program_.tensor(out);
    result.tensor = program_.make(base.module + ".unscaled", like.dtype, like.shape, Role::temporary);
    const TensorId norm = program_.make(base.module + ".norm", DType::f32, {base.output_features()}, Role::temporary);
    Op lengths{OpKind::dora_norm};
    lengths.attributes = {.transpose_b = !base.input_features_first, .scale = pair.scale};
    lengths.reads(Slot::weight, product.find(Slot::b))
        .reads(Slot::a, pair.a)
        .reads(Slot::b, pair.b)
        .writes(Slot::norm, norm);
    Op scale{OpKind::scale_columns};
    scale.reads(Slot::x, result.tensor).reads(Slot::magnitude, pair.magnitude).reads(Slot::norm, norm);
    scale.writes(Slot::out, out);
    return {std::move(lengths), std::move(scale)};
  }

  void adapt_head(const Parameter& base) {
    if (lora_.use_dora)
      throw Error("DoRA on lm_head is not supported", "recipe",
                  "leave lm_head out of lora_target_modules, or use_dora: false");
    const Pair pair = add_pair(base);
    if (generates()) return adapt_product(program_.head, base, pair);
    const OpPlace loss = find_op(program_.root, program_.loss);
    presume(loss.op().find(Slot::low) == kNone, "a loss with no adapter in it");
    Op down = low_product(base, program_.head.input, pair);
    program_.head.adapter.down = program_.identify(down);
    loss.op().reads(Slot::low, down.find(Slot::c)).reads(Slot::low_weight, pair.b);
    insert_before(loss, {std::move(down)});
  }

  Program& program_;
  const Lora& lora_;
  std::vector<std::string> saved_;
  std::set<std::string> used_patterns_;
};

}  // namespace

void add_lora(Program& program, const Lora& lora) {
  presume(program.count(Section::evaluate) + program.count(Section::backward) == 0, "forwards, and no copies of them");
  LoraPass(program, lora).run();
}

void passes::lora(Program& program, const StepRequest& request) {
  if (request.recipe.method == Method::lora) add_lora(program, request.recipe.lora);
}

}  // namespace snug
