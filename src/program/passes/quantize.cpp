#include "program/passes/quantize.h"

#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/scalars.h"
#include "program/passes/list.h"

namespace snug {

namespace {

int64_t quantized_blocks_of(int64_t elements, int64_t block) { return (elements + block - 1) / block; }

bool is_quantized_kind(ParameterKind kind) { return kind == ParameterKind::linear || kind == ParameterKind::expert; }

class QuantizePass {
 public:
  QuantizePass(Program& program, const Quantize& quantize, DType values)
      : program_(program), quantize_(quantize), values_(values) {}

  void run() {
    for (Weight& weight : program_.weights)
      if (!weight.trainable && !weight.adapter && is_quantized_kind(weight.parameter.kind)) quantize(weight);
    for_each_op(program_.root, [&](Op& op, const Region&) { tell(op); });
    for (const auto& [weight, how] : quantized_) presume(told_.contains(weight), "an op that reads " + name_of(weight));
  }

 private:
  const std::string& name_of(TensorId id) const { return program_.tensor(id).name; }

  void quantize(Weight& weight) {
    Tensor& codes = program_.tensor(weight.tensor);
    presume(codes.storage == kNone && !weight.quantization, "an unplaced weight " + codes.name + " that is no code yet");
    if (weight.parameter.input_features_first) {
      std::swap(codes.shape[0], codes.shape[1]);
      turned_.insert(weight.tensor);
    }
    codes.dtype = quantize_.in_8bit ? DType::i8 : quantize_.type_4bit;
    const int64_t experts = weight.parameter.experts > 0 ? codes.dim(0) : 1;  // that this rank has
    const int64_t elements = codes.elements() / experts;                      // of a matrix that files hold
    Quantization how{.block_size = quantize_.in_8bit ? codes.shape.back().bound : kQuantizedBlock, .values = values_};
    const int64_t blocks = quantized_blocks_of(elements, how.block_size);
    const bool nested = !quantize_.in_8bit && quantize_.double_quant;
    how.absmax = scales(weight, "absmax", nested ? DType::u8 : DType::f32, experts, blocks);
    if (nested) {
      how.nested_absmax = scales(weight, "nested_absmax", DType::f32, experts, quantized_blocks_of(blocks, kNestedBlock));
      how.absmax_offset = scales(weight, "nested_offset", DType::f32, experts, 1);
    }
    weight.quantization = how;
    quantized_.emplace(weight.tensor, how);
  }

  TensorId scales(const Weight& weight, const char* name, DType dtype, int64_t experts, int64_t count) {
    Tensor tensor{.name = weight.parameter.name + "." + name, .dtype = dtype};
    if (weight.parameter.experts > 0) tensor.shape.emplace_back(experts);
    tensor.shape.emplace_back(count);
    return program_.add_tensor(std::move(tensor));
  }

  void tell(Op& op) {
    auto found = quantized_.find(op.find(Slot::b));
    if (found == quantized_.end()) found = quantized_.find(op.find(Slot::weight));  // measured for DoRA
    if (found == quantized_.end()) return;
    const Quantization& how = found->second;
    told_.insert(found->first);
    if (turned_.contains(found->first)) op.attributes.transpose_b = !op.attributes.transpose_b;
    op.attributes.block_size = how.block_size;
    op.attributes.values = how.values;
    op.reads(Slot::absmax, how.absmax);
    if (how.nested_absmax == kNone) return;
    op.reads(Slot::nested_absmax, how.nested_absmax).reads(Slot::absmax_offset, how.absmax_offset);
  }

  Program& program_;
  const Quantize& quantize_;
  DType values_;
  std::map<TensorId, Quantization> quantized_;
  std::set<TensorId> turned_, told_;
};

}  // namespace

void quantize_weights(Program& program, const Quantize& quantize, DType other_weights) {
  presume(program.count(Section::backward) == 0, "a forward that is not differentiated yet");
  QuantizePass(program, quantize, quantize.compute.value_or(other_weights)).run();
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

void passes::quantize(Program& program, const StepRequest& request) {
  if (const Quantize quantize = quantization_of(request.model, request.recipe); quantize.any())
    quantize_weights(program, quantize, request.precision.weights);
}

}  // namespace snug
