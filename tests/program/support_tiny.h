#pragma once
// A decoder small enough to count by hand: C 32, F 80, V 96, 4 layers, 4 query heads and 2 key/value heads of 8, and 2
// sequences of 16 tokens, so M = 32.

#include <algorithm>
#include <string>
#include <vector>

#include "program/builder.h"
#include "program/find_op.h"

namespace snug::testing {

inline ModelSpec tiny_decoder() {
  ModelSpec spec{.name = "tiny", .architecture = "LlamaForCausalLM", .family = "llama"};
  spec.hidden_size = 32;
  spec.intermediate_size = 80;
  spec.vocab_size = 96;
  spec.layers = 4;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_size = 8;
  spec.max_position = 64;
  return spec;
}

// Of sizes that fill no block and divide by nothing: weights below and above 4,096 elements.
inline ModelSpec uneven_decoder() {
  ModelSpec spec{.name = "small", .architecture = "LlamaForCausalLM", .family = "llama"};
  spec.hidden_size = 60;
  spec.intermediate_size = 83;
  spec.vocab_size = 97;
  spec.layers = 3;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_size = 16;
  spec.max_position = 64;
  return spec;
}

inline Program tiny_forward(const ModelSpec& spec = tiny_decoder()) {
  return build_forward(spec, {}, {.batch = 2, .seq_len = 16});
}

inline const std::string& module_of(const Program& program, const Linear& linear) {
  return program.weights[static_cast<size_t>(linear.weight)].parameter.module;
}

inline Linear& linear_of(Program& program, const std::string& module) {
  const auto found = std::find_if(program.linears.begin(), program.linears.end(),
                                  [&](const Linear& linear) { return module_of(program, linear) == module; });
  presume(found != program.linears.end(), "a linear " + module);
  return *found;
}

// The ops of the one block loop, in order.
inline std::vector<Op> ops_of_block(const Program& program, Section section = Section::blocks) {
  std::vector<Op> ops;
  for (const Item& item : program.region(section).items) ops.push_back(*item.op());
  return ops;
}

inline size_t position_of(const std::vector<Op>& ops, OpId id) {
  return static_cast<size_t>(std::find_if(ops.begin(), ops.end(), [id](const Op& op) { return op.id == id; }) - ops.begin());
}

inline int64_t count_of(const std::vector<Op>& ops, OpKind kind) {
  return std::count_if(ops.begin(), ops.end(), [kind](const Op& op) { return op.kind == kind; });
}

inline Op op_with(Program& program, OpId id) { return find_op(program.region(Section::forward), id).op(); }

inline std::vector<int64_t> sizes_of(const Program& program, TensorId id) {
  std::vector<int64_t> sizes;
  for (const Extent& extent : program.tensor(id).shape) sizes.push_back(extent.bound);
  return sizes;
}

}  // namespace snug::testing
